"""Drivers, workers, executors and databases that die under a stream; full disks, damage, poison.

Whatever happens, in the end each event has the matches that the oracle finds in the one catalog
version that its batch is pinned to, each once; and its rejects, each once. Every version has a
subscription of its own that is true of every event, so a batch that is matched with a wrong version
shows in every row, and an event that is lost shows as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import remembering
from bittern.errors import PipelineError
from bittern.spark.streaming.pins import Checkpoint
from killed_places import LONG, MISTYPED, ODD, UNREADABLE, Place
from postgres import Server
from spark_jobs import streams
from spark_sessions import RemoteError, Session, why_no_spark
from steady import wait_until

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", autouse=True)
def _java() -> None:
    reason = why_no_spark()
    if reason is not None:
        pytest.skip(f"NO SPARK: {reason}")


@pytest.fixture(scope="module")
def driver(_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A driver that survives; what runs in it are pipelines of their own, one after the other."""
    with Session("classic", tmp_path_factory.mktemp("driver") / "session", streams.CONF) as session:
        yield session


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place")


def run(session: Session, place: Place | remembering.Place, **options: Any) -> Any:
    """Match all that is there; how it ended."""
    return session.call("spark_jobs.streams:run", place=str(place.path), **options)


def wait_for(happened: Callable[[], bool], session: Session) -> None:
    """Wait for what a stream in a session is to do."""

    def look() -> None:
        assert not session.has_replied(), session.receive()

    wait_until(happened, look)


# ------------------------------------------------------------------ drivers that are killed

#: A batch and its stages, at which what is there is copied; and what is done to snapshots before a
#: driver goes on from the copy: to those of its cache, or of its store. (Only a base that is no
#: younger than the version of a batch is looked at, so batches that are pinned come first.) Once
#: Spark has committed a batch, nothing happens until the next one is to be pinned.
STAGES = (
    ("after the pin", 0, None, True),
    ("before the commit", 0, "flipped", True),
    ("after the commit", 0, None, False),
    ("before the pin", 0, "flipped", False),
    ("before the pin", 1, "cut", False),
)


def test_driver_is_killed_at_every_stage(driver: Session, place: Place, tmp_path: Path) -> None:
    """One driver dies with all its processes in the midst of its second batch.

    What one would have left that died at an earlier stage was copied then. Another driver goes on
    from each copy, and in the end from what the dead one did leave.
    """
    cache, store = driver.scratch / "cache", tmp_path / "store"
    copies = [tmp_path / f"copy {number}" for number in range(len(STAGES))]

    def copied(batch: int) -> dict[str, str]:
        each = zip(STAGES, copies, strict=True)
        return {stage: str(copy) for (stage, of, _, _), copy in each if of == batch}

    with Session("classic", tmp_path / "dying", streams.CONF) as dying:
        place.arrive()
        told = run(dying, place, batch=0, copies=copied(0))
        assert told == {"error": None, "heard": []}
        place.check_pins()
        place.change()
        place.arrive()
        with pytest.raises(RemoteError, match="the session ended"):
            run(dying, place, batch=1, copies=copied(1), die_at="half written")
    place.assert_died_at("half written", 1)
    place.change()
    for (stage, batch, damage, stored), copy in zip(STAGES, copies, strict=True):
        where = store if stored else cache
        with place.as_it_was(copy):
            place.assert_died_at(stage, batch)
            if damage is not None:
                hurt(where, damage)
            told = run(driver, place, store=str(store) if stored else None)
            assert_made_again(told, damage)
            place.assert_exact()
            assert place.batches() == {0, 1}
            is_new = place.pins[batch]["version"] == place.catalog.version()
            assert is_new == (stage == "before the pin")
    place.arrive()
    hurt(store, "manifest")
    told = run(driver, place, store=str(store))
    assert_made_again(told, "manifest")
    assert place.batches() == {0, 1, 2}
    place.assert_exact()
    assert len({pin["version"] for pin in place.pins.values()}) == 3


def assert_made_again(told: dict[str, Any], damage: str | None) -> None:
    """A run ended well; snapshots that were damaged were not used, and that was said."""
    assert told["error"] is None
    assert bool(told["heard"]) == (damage is not None)
    assert all(ANEW in message for message in told["heard"])


ANEW = "a base of the catalog is made again"


def hurt(store: Path, damage: str) -> None:
    """Damage all snapshots of a store."""
    snapshots = [manifest.parent for manifest in store.glob("*/manifest.json")]
    assert snapshots
    for snapshot in snapshots:
        largest = max(snapshot.glob("*.npy"), key=lambda file: file.stat().st_size)
        with largest.open("r+b") as file:
            if damage == "flipped":
                file.seek(-9, os.SEEK_END)
                byte = file.read(1)[0] ^ 1
                file.seek(-9, os.SEEK_END)
                file.write(bytes([byte]))
            elif damage == "cut":
                file.truncate(largest.stat().st_size - 1)
        if damage == "manifest":
            (snapshot / "manifest.json").write_text("{", encoding="utf-8")


# ------------------------------------------------------------------ tasks that are killed


@pytest.fixture(scope="module")
def cluster(_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    scratch = tmp_path_factory.mktemp("cluster")
    with Session("local-cluster", scratch / "session", streams.CONF) as session:
        yield session


@pytest.mark.parametrize("remembers", [False, True])
def test_worker_and_executor_are_killed(
    cluster: Session, tmp_path: Path, *, remembers: bool
) -> None:
    """The stream goes on; each trouble comes once, in the midst of the first batch of a run.

    Whoever takes the place of a worker has the documents that it had.
    """
    place: Any = (remembering.Place if remembers else Place)(tmp_path / "place")
    # Files of both are three Arrow batches.
    options = {"history": remembers, "records_a_batch": 2 if remembers else 8}
    for kind in ("worker", "executor"):
        trouble = tmp_path / kind
        trouble.mkdir()
        place.change()
        place.arrive()
        place.arrive()
        asked = {"trouble": str(trouble), "kind": kind, "store": str(tmp_path / "store")}
        assert run(cluster, place, **asked, **options)["error"] is None
        assert (trouble / "killed").exists()
        assert (trouble / "complete-1").exists()
    assert {row[0] if remembers else row["batch"] for row in place.rows()} == {0, 1, 2, 3}
    place.assert_exact()
    place.catalog.close()


# ------------------------------------------------------------------ the catalog's server is killed


def test_postgresql_is_killed(driver: Session, postgres: Server, tmp_path: Path) -> None:
    """In the midst of a batch, and between two: the stream stops, and goes on when restarted."""
    place = Place(tmp_path / "place", postgres.new_url())
    url = place.catalog.url
    for batch, held in enumerate((True, False)):
        place.arrive()
        asked = {"place": str(place.path), "hold_at": batch if held else None}
        driver.send("spark_jobs.streams:serve", catalog=url, **asked)
        done = place.path / "held" if held else place.path / "checkpoint" / "commits" / str(batch)
        wait_for(done.exists, driver)
        postgres.kill()
        try:
            (place.path / "go").touch()
            if not held:
                place.arrive()
            told = driver.receive()
        finally:
            postgres.start()
        assert "PipelineError: the stream has stopped" in told["error"]
        assert "catalog postgresql" in told["error"]
        assert "start it again, and it continues from the checkpoint" in told["error"]
        assert f":{postgres.port}/" in told["error"]
        place.check_pins()
        place.change()
        assert run(driver, place, catalog=url)["error"] is None
        place.assert_exact()
    assert place.pins[0]["version"] < place.pins[1]["version"] < place.catalog.version()


# ------------------------------------------------------------------ two of something


def test_two_pipelines_with_one_checkpoint(driver: Session, place: Place) -> None:
    place.arrive()
    driver.send("spark_jobs.streams:serve", place=str(place.path))
    wait_for(lambda: place.batches() == {0}, driver)
    checkpoint = Checkpoint(place.path / "checkpoint")
    with pytest.raises(PipelineError, match=f"in use by process {driver.pid} .*stop that one"):
        checkpoint.__enter__()  # another process
    (place.path / "rival").touch()  # another pipeline of the same process
    said = place.path / "rival said"
    wait_for(said.exists, driver)
    assert "PipelineError: the checkpoint" in said.read_text(encoding="utf-8")
    assert f"in use by process {driver.pid} " in said.read_text(encoding="utf-8")
    place.change()
    place.arrive()
    wait_for(lambda: place.matched() == place.events.keys() - place.unreadable, driver)
    (place.path / "stop").touch()
    assert driver.receive() == {"error": None, "heard": []}
    place.assert_exact()


def test_two_queries_with_one_table(driver: Session, place: Place) -> None:
    place.arrive()
    assert run(driver, place)["error"] is None
    error = run(driver, place, checkpoint=str(place.path / "other"))["error"]
    assert "PipelineError" in error
    assert "matches belongs to another query" in error
    place.arrive()
    assert run(driver, place)["error"] is None
    place.assert_exact()


# ------------------------------------------------------------------ disks


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """Mount something at a folder, which takes the right to."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"CANNOT MOUNT: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("name", ["checkpoint", "matches"])
def test_full_disk(driver: Session, place: Place, name: str) -> None:
    """It fills at each point of a batch in turn; that is said every time, and the end is exact."""
    with mounted(place.path / name, "-t", "tmpfs", "-o", "size=512k", "tmpfs"):
        place.arrive()
        assert run(driver, place)["error"] is None
        place.change()
        place.arrive()
        ballast = place.path / name / ".ballast"
        with pytest.raises(OSError, match="No space left"):
            shutil.copyfile("/dev/zero", ballast)
        errors = driver.call(
            "spark_jobs.streams:run_as_room_is_made",
            place=str(place.path),
            ballast=str(ballast),
        )
        ballast.unlink()
        assert errors
        for error in errors:
            assert "PipelineError: " in error
            assert "No space left on device" in error
        place.assert_exact()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("checkpoint", "cannot write to the checkpoint"),
        ("matches", "cannot write to"),
        ("rejects", "cannot write to"),
    ],
)
def test_read_only_disk(driver: Session, place: Place, name: str, said: str) -> None:
    place.arrive()
    assert run(driver, place)["error"] is None
    place.change()
    place.arrive()
    folder = str(place.path / name)
    with mounted(place.path / name, "--bind", folder):
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        error = run(driver, place)["error"]
    assert "PipelineError: " in error
    assert f"{said} {folder}" in error
    assert "Read-only file system" in error
    assert run(driver, place)["error"] is None
    place.assert_exact()


def test_checkpoint_in_a_file(driver: Session, place: Place) -> None:
    (place.path / "file").write_text("x")
    inside = place.path / "file" / "checkpoint"
    error = run(driver, place, checkpoint=str(inside))["error"]
    assert f"PipelineError: cannot write to the checkpoint {inside}: " in error


# ------------------------------------------------------------------ damage


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ('{"version": 2, "ti', "cannot be read"),
        ('{"version": "new", "time": "2026-01-01T00:00:00+00:00"}', "cannot be read"),
        ('{"version": 99, "time": "2026-01-01T00:00:00+00:00"}', "there is no version 99 yet"),
    ],
)
def test_damaged_pin(driver: Session, place: Place, text: str, said: str) -> None:
    pins = place.path / "checkpoint" / "bittern" / "pins"
    pins.mkdir(parents=True)
    (pins / f"{0:020d}.json").write_text(text)
    place.arrive()
    error = run(driver, place)["error"]
    assert "PipelineError: the stream has stopped" in error
    assert said in error
    assert place.rows() == []
    (pins / f"{0:020d}.json").unlink()
    assert run(driver, place)["error"] is None
    place.assert_exact()


# ------------------------------------------------------------------ poison


def test_poison_events(driver: Session, place: Place) -> None:
    """What cannot be read is rejected, each event alone; all others match as ever."""
    place.arrive()
    place.put([{"price": 45.5, "document": text} for text in UNREADABLE])
    place.put([{"price": 45.5, "document": text} for text in MISTYPED])
    place.put([{"price": 45.5, "document": text} for text in ODD])
    for price in (float("nan"), float("inf"), float("-inf"), -0.0, 1e308, None):
        place.put([{"price": price, "colour": "red", "document": '{"size": 5}'}])
    for colour in ("", "\x00", LONG, "r\u0301e\U0001f600", None):
        place.put([{"price": 5.0, "colour": colour, "document": '{"size": 5}'}])
    place.arrive()
    assert run(driver, place) == {"error": None, "heard": []}
    place.assert_exact()
    reasons = {row["id"]: row["rejected"] for row in place.rows("rejects")}
    assert all(reasons.values())


BAD_TEXTS = ("", "price <", "price < 'x' AND", "(" * 5_000, "colour REGEXP '('", "\x00", LONG)


@pytest.mark.parametrize("running", [False, True], ids=["at the start", "while it runs"])
def test_poison_subscriptions(driver: Session, place: Place, *, running: bool) -> None:
    """Texts that were written past the catalog's door are left out, and said; others match."""
    place.arrive()
    if running:
        assert run(driver, place)["error"] is None
        place.arrive()
    for number, text in enumerate(BAD_TEXTS):
        place.write_past_the_door(f"bad-{number}", text)
    place.write_past_the_door("s7", "price < < 7")  # which was good before
    place.write_past_the_door("bad weight", "price > 1.25", float("inf"))
    told = run(driver, place)
    assert told["error"] is None
    assert len(told["heard"]) == len(BAD_TEXTS) + 2
    assert all("is left out" in message for message in told["heard"])
    place.assert_exact()
    place.catalog.add("s7", "price > 7", replace=True)
    place.change()
    place.arrive()
    assert run(driver, place)["error"] is None
    place.assert_exact()
