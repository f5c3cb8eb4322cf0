"""The folders that a pipeline keeps documents in: complete, in order, folded, and never lost."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from bittern.engine.index import Index
from bittern.engine.live.delta import State
from bittern.errors import PipelineError
from bittern.model.events.typed.typed import TypedReader
from bittern.spark.history import remembered
from bittern.spark.history.remembered import HistoryMatcher
from bittern.spark.sink.part_files import Table
from bittern.spark.streaming import documents
from bittern.spark.streaming.documents import StreamHistory, readable
from bittern.spark.streaming.outbox import Outbox
from stream_parts import ids, names, put, read
from variants import MARKED, encode


@pytest.fixture
def history(tmp_path: Path) -> StreamHistory:
    made = StreamHistory(tmp_path / "history")
    made.claim("q1")
    return made


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two folders are enough to be folded."""
    monkeypatch.setattr(documents, "_FAN", 2)


# ------------------------------------------------------------------ what is before a batch


def test_documents_before_a_batch_are_those_of_all_batches_before_it(
    history: StreamHistory,
) -> None:
    history.open(0)
    assert history.before(0) == []
    put(history.path, 0, ids(5, 3), ids(4))
    assert read(history, 1) == [5, 3, 4]
    put(history.path, 1)
    assert read(history, 2) == [5, 3, 4]
    put(history.path, 2, ids(9))
    history.open(3)
    assert [(part.first, part.number, part.n_documents) for part in history.before(3)] == [
        (0, 0, 3),
        (1, 3, 0),
        (2, 3, 1),
    ]


def test_a_history_may_begin_with_any_batch(history: StreamHistory) -> None:
    history.open(7)
    assert history.before(7) == []
    put(history.path, 7, ids(1))
    assert read(StreamHistory(history.path), 8) == [1]


def test_a_batch_that_is_run_again_sees_what_it_saw(history: StreamHistory) -> None:
    history.open(0)
    put(history.path, 0, ids(1))
    put(history.path, 1, ids(2))
    history.open(1)
    assert read(history, 1) == [1]


def test_what_is_missing_is_told(history: StreamHistory) -> None:
    history.open(0)
    put(history.path, 0, ids(1))
    with pytest.raises(PipelineError, match=r"lacks batch 1, and the stream is at 2: .* restore"):
        history.open(2)


@pytest.mark.parametrize("begin", [0, 5])
def test_a_history_that_is_ahead_is_told(history: StreamHistory, begin: int) -> None:
    history.open(begin)
    for batch in range(begin, begin + 3):
        put(history.path, batch, ids(batch))
    with pytest.raises(PipelineError, match=f"is at batch {begin - 1 if begin else 1}, the hist"):
        history.open(begin - 1 if begin else 1)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"documents": "x"}'),
        *(f'{{"documents": {wrong}}}' for wrong in ("true", "0.0", '"0"', "-1", "null")),
    ],
)
def test_a_damaged_note_is_told(history: StreamHistory, text: str) -> None:
    history.open(0)
    (history.path / "_begin.0.json").write_text(text)
    with pytest.raises(PipelineError, match=r"_begin\.0\.json cannot be read .*: restore it"):
        history.open(0)


def test_folders_with_odd_names_are_none_of_a_history(history: StreamHistory) -> None:
    history.open(0)
    for batch in range(4):
        put(history.path, batch, ids(batch))
    for odd in ("batches=3-1", "batch=004", "batches=0-٣", "batches=2-", "_begin.٢.json"):
        (history.path / odd).mkdir()
    assert read(history, 4) == [0, 1, 2, 3]


def test_a_damaged_file_is_told(history: StreamHistory) -> None:
    history.open(0)
    put(history.path, 0, ids(1))
    file = next(history.path.glob("batch=0/*.parquet"))
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(PipelineError, match=r"batch=0 cannot be read .*: restore it"):
        history.open(1)


def test_a_history_belongs_to_one_query(history: StreamHistory) -> None:
    with pytest.raises(PipelineError, match="belongs to another query"):
        StreamHistory(history.path).claim("q2")


# ------------------------------------------------------------------ folding


def run(history: StreamHistory, batches: range, rows: int = 1) -> None:
    """Batches as the pipeline works on them."""
    for batch in batches:
        history.open(batch)
        history.tidy(batch)
        put(history.path, batch, ids(*range(batch * rows, (batch + 1) * rows)))


@pytest.mark.parametrize("begin", [0, 3])
def test_folding_changes_nothing(history: StreamHistory, begin: int) -> None:
    for batch in range(begin, 30):
        run(history, range(batch, batch + 1))
        assert read(history, batch + 1) == list(range(begin, batch + 1))
        assert read(history, batch) == list(range(begin, batch))  # it may be run again
        assert len(history.before(batch + 1)) <= 6
    assert names(history) == {
        f"_begin.{begin}.json",
        f"batches={begin}-15",
        "batches=16-23",
        "batches=24-27",
        "batch=28",
        "batch=29",
    }


def test_folders_of_many_bytes_are_left_alone(
    history: StreamHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_FULL", 50_000)
    history.open(0)
    for batch in range(20):
        noise = pa.array([np.random.default_rng(batch).bytes(10_000)])
        put(history.path, batch, ids(batch).append_column("noise", noise))
    history.tidy(20)
    assert read(history, 20) == list(range(20))
    assert [part.last - part.first + 1 for part in history.before(20)] == [4, 4, 4, 4, 2, 1, 1]


def test_columns_may_come_and_go_between_folders_that_are_folded(history: StreamHistory) -> None:
    history.open(0)
    for batch in range(5):
        tables = [ids(batch), ids(100 + batch)]
        if batch == 2:
            tables[1] = tables[1].append_column("x", pa.array(["a"]))
        put(history.path, batch, *tables)
    history.tidy(5)
    (folded, _) = history.before(5)
    assert folded.path.endswith("batches=0-3")
    files = sorted(Path(folded.path).glob("*.parquet"))
    assert [pq.read_schema(file).names for file in files] == [["id"], ["id", "x"], ["id"]]
    assert read(history, 5) == [id_ for batch in range(5) for id_ in (batch, 100 + batch)]


@pytest.mark.parametrize("keep", [None, 7])
def test_workers_follow_whatever_is_folded(
    tmp_path: Path, keep: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that lags behind, or is asked for less than it has, answers with the same documents."""
    rows_read = 0

    def counted(*arguments: Any, real: Any = remembered._documents) -> Any:
        nonlocal rows_read
        for events, json in real(*arguments):
            rows_read += events.num_rows
            yield events, json

    monkeypatch.setattr(remembered, "_documents", counted)
    index = Index.build({"seen": "EXISTS d (d.id = id)"})
    state = State.over(index)
    history = StreamHistory(tmp_path, keep)
    history.claim("q1")
    draw = random.Random(5)
    for batch in range(40):
        run(history, range(batch, batch + 1), rows=2)
        for asked in [batch + 1, batch] if batch % 13 == 12 else [batch + 1] * draw.randrange(2):
            matcher = HistoryMatcher(state, history.remembered(asked), in_order=False)
            found = matcher.match([{"id": id_} for id_ in range(90)], limit=None, json=())
            known = list(range(2 * asked))[-(keep or 90) :]
            assert [id_ for id_, ids in enumerate(found.to_pylist()) if ids] == known
    again = 3 * (keep + 8) if keep else 2 * (12 + 25 + 38)  # what it is asked for less
    assert rows_read <= 2 * 40 + again + 6


# ------------------------------------------------------------------ letting go


def test_documents_that_no_longer_count_are_removed(tmp_path: Path) -> None:
    history = StreamHistory(tmp_path, keep=10)
    history.claim("q1")
    for batch in range(40):
        run(history, range(batch, batch + 1), rows=3)
        for before in (batch, batch + 1):
            assert read(history, before)[-10:] == list(range(3 * before))[-10:]
            assert sum(part.n_documents for part in history.before(before)[1:]) < 10
        assert sum(part.n_documents for part in StreamHistory(tmp_path).before(batch + 1)) < 30
    assert len(names(history)) < 8
    assert len([*tmp_path.glob("_begin.*")]) == 1


def test_fewer_may_be_kept_later_and_more(tmp_path: Path) -> None:
    """What was removed does not come back; the numbers of documents stay what they were."""
    StreamHistory(tmp_path).claim("q1")
    run(StreamHistory(tmp_path, keep=5), range(25))
    (first, *_) = StreamHistory(tmp_path).before(25)
    assert first.number == first.first > 10
    run(StreamHistory(tmp_path, keep=1_000), range(25, 40))
    assert read(StreamHistory(tmp_path), 40) == list(range(first.number, 40))


# ------------------------------------------------------------------ what is stored of events


def test_events_that_cannot_be_read_become_no_documents() -> None:
    texts = ['{"a": 1}', "no", "[1]", '{"a": 2}', None, '{"a": "x']
    batch = pa.RecordBatch.from_pydict({"id": range(6), "text": pa.array(texts, pa.string())})
    assert [rows.to_pydict()["id"] for rows in readable(batch, ["text"])] == [[0], [3, 4]]
    assert [rows.num_rows for rows in readable(batch, [])] == [6]
    assert list(readable(batch.slice(1, 2), ["text"])) == []


def test_what_columns_are_comes_back(tmp_path: Path) -> None:
    """JSON says that it is JSON and variants that they are variants, before and after folding."""
    pairs = [dict(zip(("value", "metadata"), encode({"size": n}), strict=True)) for n in (1, 2)]
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(['{"a": 1}', None]),
            pa.array([*pairs], MARKED),
            pa.array([7, None], pa.duration("us")),
            pa.nulls(2),
            pa.array([[("weight", 1)], None], pa.map_(pa.string(), pa.int32())),
        ],
        names=["text", "variant", "wait", "nothing", "tags"],
    )
    history = StreamHistory(tmp_path)
    history.claim("q1")
    history.open(0)
    for number in range(3):
        with Outbox(tmp_path).staging(number) as staging:
            table = Table(str(staging.attempts), staging.token, "zstd", {}, for_arrow=True)
            part = table.part(0, 0)
            for rows in readable(batch, ["text"]):
                part.add(rows)
            staging.accept(*part.close())
            staging.commit()
    history.tidy(3)
    reader = TypedReader(["a", "size", "weight"])
    expected = reader.read(batch, ["text"]).typed
    assert (expected.kinds != 0).sum() == 1 + 2 + 1
    folders = history.before(3)
    assert len(folders) == 2
    for part, times in zip(folders, (2, 1), strict=True):
        (file,) = Path(part.path).glob("*.parquet")
        typed = reader.read(pq.read_table(file)).typed
        assert np.array_equal(typed.kinds, np.tile(expected.kinds, times))
        assert np.array_equal(typed.words, np.tile(expected.words, times))
