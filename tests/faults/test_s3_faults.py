"""Pipelines in an object store: drivers that die or meet there, and what readers see.

The server speaks S3's protocol. Whatever happens, in the end each event has the matches of the one
catalog version that its batch is pinned to, each once; and its rejects, each once.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from killed_places import Place
from s3_server import BUCKET, ObjectStore
from spark_jobs import streams
from spark_sessions import RemoteError, Session

pytestmark = pytest.mark.spark


class RemotePlace(Place):
    """A pipeline's place whose checkpoint and tables are in a bucket, under a name of its own."""

    def __init__(self, folder: Path, s3: ObjectStore, name: str) -> None:
        self.s3, self.name = s3, name
        super().__init__(folder)

    @property
    def root(self) -> str:
        return f"s3a://{BUCKET}/{self.name}"

    def rows(self, table: str = "matches") -> list[dict[str, Any]]:
        """What the manifests name."""
        found = []
        for manifest in self.s3.names(f"{self.name}/{table}/_manifests"):
            told = json.loads(self.s3.read(f"{self.name}/{table}/_manifests/{manifest}"))
            for file in told["files"]:
                content = self.s3.read(f"{self.name}/{table}/_files/{file['name']}")
                assert len(content) == file["bytes"]
                rows = pq.read_table(io.BytesIO(content)).to_pylist()
                found += [{"batch": told["batch"]} | row for row in rows]
        return found

    def check_pins(self) -> None:
        folder = f"{self.name}/checkpoint/bittern/pins"
        for name in self.s3.names(folder):
            pin = json.loads(self.s3.read(f"{folder}/{name}"))
            assert self.pins.setdefault(int(name.removesuffix(".json")), pin) == pin

    def left_behind(self, table: str) -> set[str]:
        """The files of a table that no manifest names."""
        folder = f"{self.name}/{table}"
        named = {
            file["name"]
            for manifest in self.s3.names(f"{folder}/_manifests")
            for file in json.loads(self.s3.read(f"{folder}/_manifests/{manifest}"))["files"]
        }
        return {*self.s3.names(f"{folder}/_files")} - named


@pytest.fixture(scope="module")
def driver(s3: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A driver that survives."""
    scratch = tmp_path_factory.mktemp("driver") / "session"
    with Session("classic", scratch, streams.CONF | s3.conf) as session:
        yield session


@pytest.fixture
def place(s3: ObjectStore, tmp_path: Path, request: pytest.FixtureRequest) -> RemotePlace:
    return RemotePlace(tmp_path / "place", s3, request.node.name)


def run(session: Session, place: RemotePlace, **options: Any) -> Any:
    """Match all that is there; how it ended."""
    options = {"root": place.root} | options
    return session.call("spark_jobs.stores:run", place=str(place.path), **options)


# ------------------------------------------------------------------ objects


def test_of_all_who_create_an_object_one_does(driver: Session, s3: ObjectStore) -> None:
    root = f"s3a://{BUCKET}/objects"
    created = driver.call("spark_jobs.stores:create_at_once", root=root, name="one", n=8)
    assert sum(created) == 1
    assert json.loads(s3.read("objects/one")) == {"number": created.index(True)}
    # The server refused the others: it was asked under the condition that there is none.
    assert len(s3.requests("PUT /bucket/objects/one")) == 8
    assert sum(" 412 " in line for line in s3.requests("PUT /bucket/objects/one")) == 7
    told = driver.call("spark_jobs.stores:small_objects", root=f"{root}/small")
    assert told == {
        "before": [False, False, {}],
        "created": [True, False],
        "sent again": True,
        "there": [True, True, {"b": 8}, {"a": 0}],
        "replaced": "other",
        "after": [False, False, {}],
        "missing": f"{root}/small/a/b is not there",
    }


def test_a_checkpoint_has_one_driver(driver: Session) -> None:
    told = driver.call("spark_jobs.stores:claims", root=f"s3a://{BUCKET}/claims")
    beating, silent = told.pop("while it beats"), told.pop("the silent one")
    assert told == {"first": 5, "second": 5, "third": 7, "third hears of it": True, "last": 7}
    assert "in use by process" in beating
    assert "stop that one first" in beating
    assert all("another pipeline has taken over the checkpoint" in each for each in silent)


def test_a_stream_whose_checkpoint_was_taken_over_stops(
    driver: Session, place: RemotePlace
) -> None:
    place.arrive()
    said = driver.call("spark_jobs.stores:taken_over", place=str(place.path), root=place.root)
    assert "another pipeline has taken over the checkpoint" in said
    place.arrive()
    assert run(driver, place)["error"] is None
    assert place.batches() == {0, 1}
    place.assert_exact()


# ------------------------------------------------------------------ drivers that are killed

STAGES = {"after the pin": 0, "before the commit": 0, "after the commit": 0, "before the pin": 1}


def test_driver_is_killed_at_every_stage(
    driver: Session, place: RemotePlace, s3: ObjectStore, tmp_path: Path
) -> None:
    """One dies in the midst of its second batch; others go on from what it left at each stage."""

    def copied(batch: int) -> dict[str, str]:
        return {
            stage: f"{place.root} {stage}".replace(" ", "-")
            for stage, of in STAGES.items()
            if of == batch
        }

    with Session("classic", tmp_path / "dying", streams.CONF | s3.conf) as dying:
        place.arrive()
        assert run(dying, place, batch=0, copies=copied(0)) == {"error": None, "heard": []}
        place.check_pins()
        place.change()
        place.arrive()
        with pytest.raises(RemoteError, match="the session ended"):
            run(dying, place, batch=1, copies=copied(1), half_written=True)
    place.assert_died_at("half written", 1)
    assert place.left_behind("matches")
    place.change()
    origin, pins = place.name, place.pins
    for stage, batch in [*STAGES.items(), ("half written", 1)]:
        if stage != "half written":
            place.name, place.pins = f"{origin}-{stage.replace(' ', '-')}", {}
        else:
            place.name, place.pins = origin, pins
        place.assert_died_at(stage, batch)
        assert run(driver, place)["error"] is None
        place.assert_exact()
        assert place.batches() == {0, 1}
        assert not place.left_behind("matches") | place.left_behind("rejects")
        is_new = place.pins[batch]["version"] == place.catalog.version()
        assert is_new == (stage == "before the pin")


# ------------------------------------------------------------------ tables


def test_steps_and_readers(driver: Session, place: RemotePlace, s3: ObjectStore) -> None:
    """Steps let the same pass as with paths; readers see what the manifests name and no more."""
    for _ in range(2):
        place.arrive()
        for root in (place.root, str(place.path)):
            assert run(driver, place, root=root, steps=True) == {"error": None, "heard": []}
    local = driver.call("spark_jobs.stores:read", path=f"{place.path}/matches")
    remote = driver.call("spark_jobs.stores:read", path=f"{place.root}/matches")
    assert local == remote
    assert len(remote) > 10
    s3.write(f"{place.name}/matches/_files/batch=0/part-00000-9-dead.parquet", b"PAR1 half")
    assert driver.call("spark_jobs.stores:read", path=f"{place.root}/matches") == remote
    with pytest.raises(RemoteError, match=r"(?i)unable to infer schema|not be inferred"):
        driver.call("spark_jobs.stores:read_plainly", path=f"{place.root}/matches")
    # What was forwarded is forgotten, and steps keep two batches.
    own = f"{place.name}/checkpoint/bittern"
    assert len(s3.names(f"{own}/outbox/_manifests")) == 1
    assert len(s3.names(f"{own}/after/0/state/_manifests")) == 2


def test_what_cannot_be_done_is_told(driver: Session, place: RemotePlace) -> None:
    place.arrive()
    assert "give history= the path of a folder" in run(driver, place, history=True)["error"]
    assert run(driver, place)["error"] is None
    other = RemotePlace(place.path.with_name("other"), place.s3, "other")
    other.arrive()
    said = driver.call(
        "spark_jobs.stores:run",
        place=str(other.path),
        root=other.root,
        matches=f"{place.root}/matches",
    )["error"]
    assert f"{place.root}/matches belongs to another query" in said
    missing = "s3a://no-such-bucket/matches"
    assert "no-such-bucket" in run(driver, other, matches=missing)["error"]
    with pytest.raises(RemoteError, match="has no batch yet"):
        driver.call("spark_jobs.stores:read", path=f"s3a://{BUCKET}/nothing")
