"""Drivers that are killed at any point of what they do to folders: readers never notice."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

from bittern.spark.sink import writing as sink
from bittern.spark.sink.part_files import Task
from bittern.spark.streaming import documents
from bittern.spark.streaming.documents import StreamHistory
from dying import die_before, forks_of
from sink_parts import AS_THEY_ARE, BATCH, content, put, table_in
from sink_parts import names as names_in
from stream_parts import ids, names, read
from stream_parts import put as put_batch

# ------------------------------------------------------------------ written matches


def write_and_die(path: str, last: int) -> None:
    """Overwrite matches and rejects, killed just before the ``last``-th operation."""
    die_before(last, ("rename", "mkdir", "fsync", "unlink", "rmdir"))
    with sink._staged(f"{path}/out", f"{path}/bad", "overwrite") as (staging, rejects):
        task = Task(AS_THEY_ARE, table_in(staging), table_in(rejects), explode=False)
        report = task.run(iter([BATCH]), 0, 1).to_pylist()[0]
        staging.accept(report["file"], report["bytes"])
        rejects.accept(report["rejects_file"], report["rejects_bytes"])
        rejects.commit()
        staging.commit()


def reachable(path: Path) -> list:
    """What is at the target, or where the next writer finds it."""
    following = path.with_name(f".{path.name}.next")
    place = path if path.exists() else following
    assert (place / "_SUCCESS").exists(), "a table is there that is not complete"
    return content(place)


def test_killed_at_any_point_one_complete_table_is_there(tmp_path: Path) -> None:
    old, new, bad = [0], [1, 2, 3], [2]
    outcomes = []
    with forks_of(write_and_die) as writer:
        for last in range(1, 100):
            put(tmp_path / "out", old, "overwrite")
            put(tmp_path / "bad", old, "overwrite")
            assert names_in(tmp_path) == ["bad", "out"], "litter was not cleaned"
            ended = writer(str(tmp_path), last)
            if ended == 0:
                break
            assert ended == -signal.SIGKILL
            outcomes.append((reachable(tmp_path / "bad"), reachable(tmp_path / "out")))
    # Rejects first, then matches, and no way back.
    order = [(old, old), (bad, old), (bad, new)]
    assert [order.index(outcome) for outcome in outcomes] == sorted(map(order.index, outcomes))
    assert [outcome for outcome in order if outcome in outcomes] == order
    assert content(tmp_path / "out") == new
    assert names_in(tmp_path) == ["bad", "out"]


# ------------------------------------------------------------------ folders of documents

KEPT, BATCHES = 6, 14


def tidy_and_die(path: str, last: int) -> None:
    """Fold and remove folders, killed just before the ``last``-th operation."""
    os.fsync = lambda _: None
    documents._FAN = 2
    die_before(last, ("rename", "mkdir", "unlink", "rmdir", "link", "fsync"))
    StreamHistory(Path(path), keep=KEPT).tidy(BATCHES)


def test_killed_at_any_point_the_same_documents_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_FAN", 2)
    origin, path = tmp_path / "origin", tmp_path / "history"
    StreamHistory(origin).claim("q1")
    StreamHistory(origin).open(0)
    for batch in range(BATCHES):
        put_batch(origin, batch, ids(batch))
    listings = set()
    with forks_of(tidy_and_die) as driver:
        for last in range(1, 200, 2):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(origin, path)
            ended = driver(str(path), last)
            following = StreamHistory(path, keep=KEPT)
            listings.add(frozenset(names(following)))
            for _ in range(2):
                for batch in (BATCHES - 1, BATCHES):
                    assert read(following, batch)[-KEPT:] == list(range(batch - KEPT, batch))
                following.claim("q1")
                following.tidy(BATCHES)
            assert len(names(following)) < 6
            if ended == 0:
                break
            assert ended == -signal.SIGKILL
    assert ended == 0
    assert len(listings) > 10
