"""A growing table: each batch whole or absent, one query's own, readable at any moment."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from bittern.errors import OptionError, PipelineError
from bittern.spark.stores.places import remote_place
from bittern.spark.streaming.files import Files
from bittern.spark.streaming.outbox import Outbox, check_apart
from steady import PATIENCE


def put(outbox: Outbox, batch: int, rows: int) -> None:
    """Write a batch as tasks and the driver do, without Spark."""
    with outbox.staging(batch) as staging:
        pq.write_table(pa.table({"id": range(rows)}), staging.attempts / "part-0.parquet")
        size = (staging.attempts / "part-0.parquet").stat().st_size
        staging.accept("part-0.parquet", size)
        staging.commit()


# ------------------------------------------------------------------ whose it is


def test_a_table_belongs_to_the_query_that_claimed_it(tmp_path: Path) -> None:
    outbox = Outbox.at(tmp_path / "matches")
    outbox.claim("q1")
    outbox.claim("q1")
    put(outbox, 0, 3)
    outbox.claim("q1")
    with pytest.raises(PipelineError, match="belongs to another query, q1: use the checkpoint"):
        outbox.claim("q2")
    assert outbox.has(0)


def test_a_folder_with_something_else_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(PipelineError, match="holds something that no pipeline wrote"):
        Outbox.at(tmp_path).claim("q1")
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_empty_folder_is_claimed(tmp_path: Path) -> None:
    Outbox.at(tmp_path).claim("q1")
    with pytest.raises(PipelineError, match="another query"):
        Outbox.at(tmp_path).claim("q2")


@pytest.mark.parametrize("left", [".0123456789abcdef", ".snapshot"])
def test_what_a_killed_claim_left_is_in_nobodys_way(tmp_path: Path, left: str) -> None:
    (tmp_path / left).write_text('{"que')
    Outbox.at(tmp_path).claim("q1")
    with pytest.raises(PipelineError, match="another query"):
        Outbox.at(tmp_path).claim("q2")


def test_of_two_claims_at_once_one_wins(tmp_path: Path) -> None:
    meet, failures = threading.Barrier(8), []

    def claim(query: str) -> None:
        meet.wait(PATIENCE)
        try:
            Outbox.at(tmp_path / "matches").claim(query)
        except PipelineError as error:
            failures.append(str(error))

    threads = [threading.Thread(target=claim, args=(f"q{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(failures) == 7
    assert all("belongs to another query" in failure for failure in failures)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"query": true}', '{"query": 5}'])
def test_a_damaged_mark_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "_bittern").write_text(text)
    with pytest.raises(PipelineError, match=rf"{tmp_path}/_bittern, .* cannot be read .*restore"):
        Outbox.at(tmp_path).claim("q1")


def test_a_table_where_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(PipelineError, match="cannot write to"):
        Outbox.at(tmp_path / "file").claim("q1")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("s3://bucket/matches", r"s3://bucket/matches.*: write s3a://bucket/folder"),
        ("s3n://bucket/matches", r"write s3a://bucket/folder"),
        ("gs://bucket/matches", r"gs://bucket/matches is not: give a path"),
        ("s3a://bucket", r"must be a folder in a bucket"),
        ("s3a://bucket/", r"must be a folder in a bucket"),
        ("s3a://bucket/a/../b", r"must be a folder in a bucket"),
        ("s3a:/bucket/matches", r"has no bucket or has options"),
        ("s3a:///matches", r"has no bucket or has options"),
        ("s3a://bucket/matches?endpoint=x", r"spark\.hadoop\.fs\.s3a\.\*"),
    ],
)
def test_a_table_has_a_path_or_a_folder_in_a_bucket(path: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        Files(path).check(None)  # type: ignore[arg-type]


def test_places_in_buckets() -> None:
    for written in ("s3a://b/a/c", "s3a://b//a/c/", "s3a://b/a//c//"):
        assert remote_place(written, "table") == "s3a://b/a/c"
    for path in ("matches", "/data/s3a:/x", "file:/data/matches", Path("x")):
        assert remote_place(path, "table") is None


# ------------------------------------------------------------------ batches


def test_a_batch_is_there_when_it_is_committed(tmp_path: Path) -> None:
    outbox = Outbox.at(tmp_path)
    assert not outbox.has(0)
    with outbox.staging(0) as staging:
        pq.write_table(pa.table({"id": [1]}), staging.attempts / "part-0.parquet")
        assert not outbox.has(0)
        assert all(entry.name.startswith(".") for entry in tmp_path.iterdir())
    assert not outbox.has(0)
    put(outbox, 0, 2)
    assert outbox.has(0)
    assert outbox.folder(0) == tmp_path / "batch=0"


@pytest.mark.parametrize("name", ["../../victim", "/etc/x", "", ".", "..", "a/b", ".hidden", None])
def test_only_files_of_a_task_are_taken(tmp_path: Path, name: Any) -> None:
    (tmp_path / "victim").write_text("x")
    with (
        Outbox.at(tmp_path / "matches").staging(0) as staging,
        pytest.raises(OptionError, match="a task reported a file that does not exist"),
    ):
        staging.accept(name, 1)
    assert (tmp_path / "victim").exists()


def test_batches_before_one_are_forgotten(tmp_path: Path) -> None:
    outbox = Outbox.at(tmp_path)
    outbox.claim("q1")
    for batch in (0, 1, 2, 10):
        put(outbox, batch, 1)
    (tmp_path / "batch=x").mkdir()
    (tmp_path / "batch=-1").mkdir()
    for odd in ("batch=007", "batch=٣", "batch=1.0"):
        (tmp_path / odd).mkdir()
    assert sorted(outbox.batches()) == [0, 1, 2, 10]
    outbox.forget(2)
    assert {n for n in range(12) if outbox.has(n)} == {2, 10}
    assert (tmp_path / "batch=x").exists()
    assert (tmp_path / "batch=-1").exists()
    outbox.claim("q1")


def test_folders_are_apart(tmp_path: Path) -> None:
    inside = tmp_path / "a" / "b"
    check_apart(checkpoint=tmp_path / "a", sink=tmp_path / "ab", rejects=None)
    for one, other in ((tmp_path / "a", inside), (inside, tmp_path / "a"), (inside, inside)):
        with pytest.raises(OptionError, match="separate folders"):
            check_apart(checkpoint=one, sink=other)
    check_apart(checkpoint="s3a://b/a", sink="s3a://b/ab", rejects=tmp_path / "a")
    for one, other in (("a", "a/b"), ("a/b", "a"), ("a", "a"), ("a/", "/a")):
        with pytest.raises(OptionError, match="separate folders"):
            check_apart(checkpoint=f"s3a://b/{one}", sink=f"s3a://b/{other}")
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(OptionError, match="sink and rejects must be separate"):
        check_apart(sink=f"file://{tmp_path}/link/b", rejects=tmp_path / "a")


# ------------------------------------------------------------------ with Spark


@pytest.mark.spark
def test_a_frame_is_written_once(spark: Any, tmp_path: Path) -> None:
    outbox = Outbox.at(tmp_path / "matches")
    outbox.claim("q1")
    outbox.write(spark.range(5), 3)
    outbox.write(spark.range(99), 3)  # a replay
    assert outbox.read(spark, 3).count() == 5
    files = [file.name for file in outbox.folder(3).iterdir()]
    assert "_SUCCESS" in files
    assert all(name.endswith(".parquet") or name == "_SUCCESS" for name in files)
    empty = spark.createDataFrame([], "id bigint, subscription string")
    outbox.write(empty, 4)
    assert outbox.read(spark, 4).schema == empty.schema
    assert outbox.read(spark, 4).count() == 0


@pytest.mark.spark
def test_a_frame_that_fails_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    outbox = Outbox.at(tmp_path)
    frame = spark.range(4).selectExpr("if(id = 3, raise_error('no'), id) AS id")
    with pytest.raises(Exception, match="no"):
        outbox.write(frame, 0)
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_a_reader_sees_whole_batches_only(spark: Any, tmp_path: Path) -> None:
    """While batches come, every look finds a prefix of them, each with all of its rows."""
    outbox = Outbox.at(tmp_path / "matches")
    outbox.claim("q1")
    put(outbox, 0, 100)
    hidden = tmp_path / "matches" / ".batch=77.0123456789abcdef.writing" / "attempts"
    hidden.mkdir(parents=True)
    pq.write_table(pa.table({"id": range(7)}), hidden / "part-0.parquet")
    (hidden / "part-1.parquet").write_bytes(b"PAR1 half")
    go_on, written = threading.Event(), threading.Event()

    def write() -> None:
        for batch in range(1, 30):
            put(outbox, batch, 100)
            if batch == 5:
                written.set()
                assert go_on.wait(PATIENCE)

    writer = threading.Thread(target=write)
    writer.start()
    looks = []
    assert written.wait(PATIENCE)
    for look in range(3):
        found = spark.read.parquet(str(tmp_path / "matches")).groupBy("batch").count().collect()
        looks.append({row["batch"]: row["count"] for row in found})
        if look == 0:
            go_on.set()
        else:
            writer.join(0.3)
    writer.join(PATIENCE)
    for counts in looks:
        assert counts == dict.fromkeys(range(len(counts)), 100)
    assert len(looks[0]) == 6
    everything = spark.read.parquet(str(tmp_path / "matches"))
    assert everything.columns == ["id", "batch"]
    assert everything.count() == 3000
