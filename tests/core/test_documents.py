"""Documents come back as they were, whatever form they came in and whatever killed the writer."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import strategies
import variants
from bittern.errors import EventError, HistoryError, OptionError
from bittern.history.documents import mapping_rows
from bittern.history.documents.documents import Documents
from bittern.history.documents.segments import merge
from bittern.model.events.typed.typed import MISSING, OTHER, TypedReader
from document_rows import Value, expected, found, values
from effort import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

# ------------------------------------------------------------------ forms

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
BOOKS = pa.table(
    {
        "i": pa.array([1, None, -(2**63), 2**53 + 1]),
        "u": pa.array([1, 2**64 - 1, None, 2**63], pa.uint64()),
        "h": pa.array([np.float16(0.5), None, np.float16(2), np.float16(1)], pa.float16()),
        "x": pa.array([0.1, -0.0, math.nan, math.inf]),
        "d": pa.array([Decimal("1.50"), None, Decimal("12345678901234567.89"), Decimal(0)]),
        "w": pa.array([10**60, 10**60 + 1, None, 3], pa.decimal256(70)),
        "s": pa.array(["red", "", None, "a longer string than a word holds"]),
        "v": pa.array(["red", None, "a longer string than a view holds", ""], pa.string_view()),
        "k": pa.array(["x", "y", "x", None]).dictionary_encode(),
        "r": pa.RunEndEncodedArray.from_arrays(pa.array([3, 4], pa.int32()), pa.array(["p", "q"])),
        "b": pa.array([True, None, False, True]),
        "t": pa.array([NOON, None, NOON, NOON], pa.timestamp("ns", "UTC")),
        "seconds": pa.array([0, 2**62, None, -(2**62)], pa.int64()).cast(pa.timestamp("s")),
        "day": pa.array([NOON.date(), None, NOON.date(), None]),
        "ms": pa.array([1, None, 86_400_001, 3], pa.int64()).view(pa.date64()),
        "l": pa.array([[1], None, [], [2, 3]]),
        "z": pa.array([1, None, 2, 3], pa.duration("s")),
        "n": pa.nulls(4),
        "a.b": pa.array([1, 2, 3, 4]),
        "st": pa.array(
            [{"i": 1, "in": {"s": "x"}}, None, {"i": None, "in": None}, {"i": 2, "in": {"s": "y"}}]
        ),
        "m": pa.array(
            [[("p", 1), ("q", 2)], None, [], [("p", None), ("i", 9)]],
            pa.map_(pa.string(), pa.int64()),
        ),
    }
)
NAMES = (
    *(name for name in BOOKS.column_names if name not in ("a.b", "r")),
    *("r", "`a.b`", "st.i", "st.in", "st.in.s", "p", "q", "missing"),
)
MAPPINGS = [
    {"a": 1, "b": {"c": "x", "d": {"e": None}}, "l": [1], 5: "no name"},
    {"a": 1.0, "b": 10**40, "big": -(10**5000)},
    {"a": "1", "b": Decimal("0.1234567890123456789"), "n": Decimal("NaN")},
    {},
    None,
    {"a": True, "b": NOON, "t": NOON.replace(tzinfo=None), "day": NOON.date()},
    {"a": math.nan, "b": -0.0, "s": "", "u": "é" * 100, "`": 1, "b.c": 2},
    {"a": np.int8(3), "b": np.float32(0.1), "t": np.datetime64("2024-01-01T00:00:00.123456789")},
    {"a": np.datetime64(2**62, "us"), "b": pd.NA, "t": pd.Timestamp("2024-01-01")},
    MappingProxyType({"a": {1, 2}, "b": object(), "n": 2**63}),
]
MAPPING_NAMES = ("a", "b", "b.c", "b.d", "l", "big", "n", "t", "day", "s", "u", "````", "`b.c`")
TEXTS = ['{"a": 1, "b": {"c": "x"}}', '{"a": 0.1}', '{"b": [1], "c": null}', "{}"]
SOME = pa.table({"a": [1, 2, 3], "doc": ['{"a": 9, "b": "x"}', None, '{"b": {"c": 1}}']})
ENCODED = [variants.encode(event) for event in ({"a": 1, "b": {"c": 2.5}}, {"a": "x"}, {"d": [1]})]
MARKED = variants.column([*ENCODED, None])

FORMS: dict[str, tuple[Any, Sequence[str], Any]] = {
    "table": (BOOKS, NAMES, ()),
    "table without rows": (BOOKS.slice(0, 0), NAMES, ()),
    "table without columns": (pa.table({}), ("a",), ()),
    "slice": (pa.concat_tables([BOOKS, BOOKS]).combine_chunks().slice(3, 4), NAMES, ()),
    "chunks": (pa.concat_tables([BOOKS.slice(3), BOOKS.slice(0, 0), BOOKS.slice(1)]), NAMES, ()),
    "record batch": (BOOKS.drop_columns(["r"]).to_batches()[0], NAMES, ()),
    "structs": (BOOKS.column("st").combine_chunks(), ("i", "in.s"), ()),
    "chunked structs": (BOOKS.column("st"), ("i", "in.s"), ()),
    "maps": (BOOKS.column("m"), ("p", "q", "i", "m", "events"), ()),
    "texts": (pa.array([*TEXTS, None]), ("a", "b", "b.c", "c", "events"), ()),
    "views of texts": (pa.array([*TEXTS, None], pa.string_view()), ("a", "b.c"), ()),
    "nulls": (pa.nulls(3), ("a",), ()),
    "json column": (SOME, ("a", "b", "b.c", "doc"), "doc"),
    "arrow.json": (
        SOME.set_column(1, "doc", SOME["doc"].combine_chunks().cast(pa.json_())),
        ("a", "b"),
        (),
    ),
    "variants": (MARKED, ("a", "b", "b.c", "d"), ()),
    "column of variants": (pa.table({"x": MARKED, "a": [7, 8, 9, 0]}), ("a", "b.c", "x"), ()),
    "data frame": (pd.DataFrame({"a": [1, None], "b": ["x", "y"]}), ("a", "b"), ()),
    "mappings": (MAPPINGS, MAPPING_NAMES, ()),
    "mapping": (MAPPINGS[0], MAPPING_NAMES, ()),
    "list of texts": (TEXTS, ("a", "b.c"), ()),
    "text": (TEXTS[0], ("a", "b.c"), ()),
    "texts and mappings": ([MAPPINGS[0], *TEXTS, None, MAPPINGS[1]], ("a", "b", "b.c"), ()),
    "tuple": (tuple(TEXTS), ("a",), ()),
    "nothing": ([], ("a",), ()),
}


def rows_of(events: Any) -> list[Any]:
    """Events one by one, in the same form."""
    if isinstance(events, str | dict):
        return [events]
    if isinstance(events, pd.DataFrame):
        return [events.iloc[i : i + 1] for i in range(len(events))]
    return [events[i : i + 1] for i in range(len(events))]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_comes_back_as_it_was(form: str, tmp_path: Path) -> None:
    events, attributes, json = FORMS[form]
    told = expected(events, attributes, json)
    with Documents(tmp_path / "own") as documents:
        assert documents.append(events, json) == 0
        assert documents.append(events, json=json) == len(told)
    with Documents(tmp_path / "own") as documents:
        assert (documents.first, documents.end) == (0, 2 * len(told))
        assert found(documents, attributes) == told + told
        for attribute, column in zip(attributes, zip(*told, strict=True), strict=False):
            assert found(documents, [attribute]) == [[value] for value in column + column]
        documents.check()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_can_be_merged(form: str) -> None:
    events, attributes, json = FORMS[form]
    told = [row for event in rows_of(events) for row in expected(event, attributes, json)]
    with Documents() as documents:
        for _ in range(9):
            for event in rows_of(events):
                documents.append(event, json)
        assert found(documents, attributes) == told * 9
        assert documents.statistics()["segments"] <= max(7, 3 * len(told))
        documents.check()


def test_all_forms_share_segments() -> None:
    told, attributes = [], ("a", "b", "b.c", "i", "s", "st.in.s", "p", "x")
    with Documents() as documents:
        for _ in range(4):
            for events, _, json in FORMS.values():
                documents.append(events, json)
                told += expected(events, attributes, json)
        assert found(documents, attributes) == told
        assert documents.statistics()["segments"] < 4 * len(FORMS) // 2
        documents.check()


@given(
    batches=st.lists(st.lists(strategies.free_events(), max_size=5), max_size=12),
    data=st.data(),
)
def test_any_mappings(batches: list[list[Any]], data: st.DataObject) -> None:
    names = ("a", "b", "c", "d", "m", "n", "n.x", "n.`y.z`")
    told = []
    with Documents() as documents:
        for batch in batches:
            keep = np.array(data.draw(st.lists(st.booleans(), **size(len(batch)))), dtype=bool)
            documents.append(batch, keep=keep)
            told += [row for row, kept in zip(expected(batch, names), keep, strict=True) if kept]
        assert found(documents, names) == told


def size(n: int) -> dict[str, int]:
    return {"min_size": n, "max_size": n}


@pytest.mark.parametrize("form", ["table", "texts", "mappings", "texts and mappings", "maps"])
def test_keep_says_which_events_become_documents(form: str) -> None:
    events, attributes, json = FORMS[form]
    told = expected(events, attributes, json)
    for bits in range(2 ** min(4, len(told))):
        keep = [bool(bits >> i % 4 & 1) for i in range(len(told))]
        with Documents() as documents:
            assert documents.append(events, json, keep) == 0
            assert documents.end == sum(keep)
            assert found(documents, attributes) == [t for t, k in zip(told, keep, strict=True) if k]


def test_an_array_of_nested_views_can_be_kept_in_part() -> None:
    kind = pa.struct([("v", pa.string_view()), ("k", pa.dictionary(pa.int8(), pa.string()))])
    table = pa.table({"s": pa.array([{"v": "a", "k": "x"}, None, {"v": "b", "k": "y"}], kind)})
    with Documents() as documents:
        for _ in range(10):
            documents.append(table, keep=[True, False, True])
        assert found(documents, ["s.v", "s.k"]) == expected(table, ["s.v", "s.k"])[::2] * 10


def test_what_no_subscription_minded_does_not_cost_the_other_values() -> None:
    class Failing(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError

    class Zone(dt.tzinfo):
        def utcoffset(self, _: Any) -> Any:
            raise RuntimeError

    half = "\ud800"
    events = [
        {"a": 1, "b": half, "c": {"d": half, "e": 2}},
        {"a": 1, half: 3, "c": {half: 1}},
        {"a": 1, "b": NOON.replace(tzinfo=Zone()), "c": Failing(x=1)},
        Failing(a=1),
        17,
        half,
        '{"a": 1',
    ]
    with Documents() as documents:
        documents.append(events)
        kinds = [[value[0] for value in row] for row in found(documents, ["a", "b", "c.d", "c.e"])]
        assert kinds[0] == [1, OTHER, OTHER, 1]
        assert kinds[1] == [1, MISSING, MISSING, MISSING]
        assert kinds[2] == [1, OTHER, MISSING, MISSING]
        assert kinds[3:] == [[MISSING] * 4] * 4
        documents.check()


def test_a_long_append_makes_several_segments() -> None:
    n = 150_000
    table = pa.table({"i": np.arange(n), "s": pa.array(map(str, range(n)))})
    with Documents() as documents:
        documents.append(table.slice(0, 5))
        documents.append(table)
        assert documents.statistics()["segments"] == 3
        numbers = [number for number, _ in documents.scan(["i"], start=70_000, stop=140_000)]
        assert numbers == [70_000, 131_077]
        words = np.concatenate([t.words[0] for _, t in documents.scan(["i"], 70_000, 140_000)])
        assert np.array_equal(
            words, TypedReader(["i"]).read(table.slice(69_995, 70_000)).typed.words[0]
        )


def test_a_large_append_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bittern.history.documents.documents._MOST_BYTES", 2_000)
    texts = [os.urandom(300).hex() for _ in range(6)]
    with Documents() as documents:
        documents.append([{"s": text} for text in texts])
        assert documents.statistics()["segments"] > 1
        assert found(documents, ["s"]) == expected([{"s": text} for text in texts], ["s"])
        with pytest.raises(HistoryError, match=r"a document of .* bytes is too large"):
            documents.append([{"s": "small"}, {"s": os.urandom(3_000).hex()}])
        assert documents.end == 6


# ------------------------------------------------------------------ segments


@pytest.mark.parametrize(
    "sizes", [[1] * 1_200, [1, 2_000] * 40, [1] * 7 + [600, 1, 1], [3, 1, 40, 500] * 60]
)
def test_segments_stay_few_and_in_order(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    merged = [0]

    def counting(segments: Any) -> bytes:
        segments = list(segments)
        merged[0] += sum(n_documents for n_documents, _ in segments)
        return merge(segments)

    monkeypatch.setattr("bittern.history.documents.documents.merge", counting)
    n = sum(sizes)
    table = pa.table({"i": np.arange(n)})
    with Documents() as documents:
        at = most = 0
        for size in sizes:
            assert documents.append(table.slice(at, size)) == at
            at += size
            most = max(most, documents.statistics()["segments"])
        assert most <= 8 * (1 + math.log(n, 8)) + n // 2**13
        assert merged[0] <= n * (1 + math.log(n, 8))
        words = np.concatenate([typed.words[0] for _, typed in documents.scan(["i"])])
        assert np.array_equal(words, TypedReader(["i"]).read(table).typed.words[0])


def test_bounds_of_a_scan() -> None:
    table = pa.table({"i": range(100)})
    told = expected(table, ["i"])
    with Documents() as documents:
        for i in range(100):
            documents.append(table.slice(i, 1))
        documents.expire(10)
        for start in (None, -5, 0, 10, 11, 63, 64, 99, 100, 200):
            for stop in (None, -1, 0, 10, 11, 64, 65, 99, 100, 200):
                own = slice(max(10, start or 0), 100 if stop is None else max(stop, 0))
                assert found(documents, ["i"], start=start, stop=stop) == told[own]
        assert found(documents, []) == [[]] * 90


def test_stored_events_are_read_like_any_others() -> None:
    told, attributes = [], ("a", "b.c", "i", "p")
    with Documents() as documents:
        for form in ("table", "texts", "mappings", "json column", "table", "maps"):
            events, _, json = FORMS[form]
            documents.append(events, json)
            told += expected(events, attributes, json)
        documents.append('{"a": 1')  # which nobody has kept from becoming a document
        told.append([(MISSING, 0, 0)] * 4)
        documents.expire(6)
        rows: list[list[Value]] = []
        for number, events in documents.stored():
            reading = TypedReader(attributes).read(events)
            assert reading.n_events == events.n_documents
            own = values(reading.typed)
            assert own == told[number : number + events.n_documents]
            rows += own
        assert number + events.n_documents == documents.end
        assert [row for row, _ in reading.rejects] == [reading.n_events - 1]
        assert len(rows) >= len(documents)


def test_what_is_not_asked_for_is_not_read() -> None:
    broken = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xff\xff")
    )
    with Documents() as documents:
        documents.append(pa.table({"a": [1, 2], "b": broken}))
        assert found(documents, ["a"]) == expected(pa.table({"a": [1, 2]}), ["a"])


# ------------------------------------------------------------------ expiring


def test_expired_documents_are_gone_for_good(tmp_path: Path) -> None:
    table = pa.table({"i": range(40)})
    told = expected(table, ["i"])
    documents = Documents(tmp_path)
    for i in range(0, 40, 4):
        documents.append(table.slice(i, 4))
    for before in (0, 1, 3, 4, 4, 2, 17, 39):
        documents.expire(before)
        first = max(before, documents.first)
        assert documents.first == first
        assert len(documents) == 40 - first
        assert found(documents, ["i"]) == told[first:]
        documents.check()
        documents.close()
        documents = Documents(tmp_path)
        assert (documents.first, documents.end) == (first, 40)
    documents.expire(40)
    assert documents.statistics()["segments"] == len(documents) == 0
    assert found(documents, ["i"]) == []
    documents.close()
    with Documents(tmp_path) as documents:
        assert (documents.first, documents.end) == (40, 40)
        assert documents.append({"i": 7}) == 40
        with pytest.raises(OptionError, match="documents before 42 cannot expire"):
            documents.expire(42)


def test_expiring_gives_room_back(tmp_path: Path) -> None:
    with Documents(tmp_path) as documents:
        for _ in range(20):
            documents.append([{"s": os.urandom(50_000).hex()}])
        full = documents.statistics()["file_bytes"]
        documents.expire(19)
        assert documents.statistics()["file_bytes"] < full / 4
        for _ in range(10):
            documents.append([{"s": os.urandom(50_000).hex()}])
            documents.expire(documents.end - 1)
        assert documents.statistics()["file_bytes"] < full / 2
        documents.check()


def test_a_scan_goes_on_while_documents_come_and_go() -> None:
    table = pa.table({"i": range(200)})
    told = expected(table, ["i"])
    with Documents() as documents:
        for i in range(60):
            documents.append(table.slice(i, 1))
        scan = documents.scan(["i"])
        _, typed = next(scan)
        assert values(typed) == told[: typed.kinds.shape[1]]
        for i in range(60, 200):  # nothing merges with what the scan has passed
            documents.append(table.slice(i, 1))
        documents.expire(55)
        rest = [(number, values(typed)) for number, typed in scan]
        assert rest[0][0] == 55
        assert [row for _, rows in rest for row in rows] == told[55:60]
        assert found(documents, ["i"]) == told[55:]
        before = documents.statistics()["segments"]
        documents.append(table.slice(0, 1))
        assert documents.statistics()["segments"] < before


def test_threads_append_and_scan() -> None:
    failures: list[BaseException] = []

    def guarded(work: Any) -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)

    with Documents() as documents:

        def write() -> None:
            for _ in range(60):
                documents.append([{"one": 1}, {"one": 1}])

        def read() -> None:
            for _ in range(15):
                rows = found(documents, ["one"])
                assert len(rows) % 2 == 0
                assert len({row[0] for row in rows}) <= 1

        threads = [threading.Thread(target=guarded, args=(work,)) for work in (write, write, read)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert documents.end == 240


class AgainstAList(RuleBasedStateMachine):
    """Appending, expiring, reopening and reading, beside a list of rows."""

    attributes = ("a", "b", "b.c", "i")

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="bittern-test-")
        self.documents = Documents(self.folder)
        self.rows: list[list[Value]] = []
        self.first = 0

    @rule(
        form=st.sampled_from(["texts", "mappings", "texts and mappings", "json column", "table"]),
        times=st.sampled_from([1, 2, 9]),
    )
    def append(self, form: str, times: int) -> None:
        events, _, json = FORMS[form]
        for _ in range(times):
            assert self.documents.append(events, json) == len(self.rows)
            self.rows += expected(events, self.attributes, json)

    @rule(share=st.floats(0, 1))
    def expire(self, share: float) -> None:
        before = self.first + int((len(self.rows) - self.first) * share)
        self.documents.expire(before)
        self.first = max(self.first, before)

    @rule()
    def reopen(self) -> None:
        self.documents.close()
        self.documents = Documents(self.folder)

    @rule(start=st.integers(0, 99), length=st.integers(0, 99))
    def scan(self, start: int, length: int) -> None:
        own = found(self.documents, self.attributes, start=start, stop=start + length)
        assert own == self.rows[max(start, self.first) : start + length]

    @invariant()
    def same(self) -> None:
        assert (self.documents.first, self.documents.end) == (self.first, len(self.rows))

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            assert found(self.documents, self.attributes) == self.rows[self.first :]
            self.documents.check()
            self.documents.close()
            shutil.rmtree(self.folder)


TestAgainstAList = AgainstAList.TestCase
TestAgainstAList.settings = examples(0.25, steps=10)


# ------------------------------------------------------------------ death and damage


@pytest.mark.parametrize("point", ["rename", "fsync"])
def test_a_writer_that_dies_while_it_makes_the_file(tmp_path: Path, point: str) -> None:
    code = f"""
        from dying import die_before
        from bittern.history.documents.documents import Documents
        die_before(1, ["{point}"])
        Documents("history")
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert [path.name for path in (tmp_path / "history").iterdir()] == [".documents.sqlite.new"]
    with Documents(tmp_path / "history") as documents:
        assert documents.append({"a": 1}) == 0
    names = {path.name for path in (tmp_path / "history").iterdir()}
    assert names == {"documents.sqlite", "documents.sqlite-journal"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[list[Value]]]:
    """The file of a few documents, some of which expired, and what is in it."""
    folder = tmp_path_factory.mktemp("small")
    with Documents(folder) as documents:
        for i in range(12):
            documents.append([{"i": i, "s": f"text {i}"}, {"i": -i}])
        documents.expire(3)
        told = found(documents, ["i", "s"])
    return (folder / "documents.sqlite").read_bytes(), told


def outcome(folder: Path) -> Any:
    """What an opened history holds, or that it cannot be opened or read, with the file's name."""
    try:
        with Documents(folder) as documents:
            documents.check()
            return documents.first, documents.end, found(documents, ["i", "s"])
    except HistoryError as error:
        return None if "documents.sqlite" in str(error) else error


def test_a_file_that_was_cut_off_is_told(tmp_path: Path, small: Any) -> None:
    whole, told = small
    file = tmp_path / "documents.sqlite"
    file.write_bytes(whole)
    assert outcome(tmp_path) == (3, 24, told)
    for length in {*range(0, len(whole), 211), *range(60), *range(len(whole) - 60, len(whole))}:
        file.write_bytes(whole[:length])
        # The last page may end with bytes that nothing stands in.
        whole_or_told = (None, (3, 24, told)) if length > len(whole) - 4096 else (None,)
        assert outcome(tmp_path) in whole_or_told, length


@examples(3)
@given(data=st.data())
def test_bytes_that_changed_are_told_or_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, small: Any, data: st.DataObject
) -> None:
    whole, told = small
    folder = tmp_path_factory.getbasetemp() / "changed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(whole) - 1))
        garbage = data.draw(st.binary(min_size=1, max_size=40))
        damaged[place : place + len(garbage)] = garbage
    (folder / "documents.sqlite").write_bytes(damaged[: len(whole)])
    assert outcome(folder) in (None, (3, 24, told))


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM segments WHERE start > 0 AND start < 20", "from .* on are missing"),
        ("DELETE FROM segments WHERE start = 0", "from 3 on are missing"),
        ("DELETE FROM segments WHERE start = 22", "from 22 to 23 are missing"),
        ("DELETE FROM segments", "from 3 to 23 are missing"),
        ("UPDATE segments SET count = 0 WHERE start = 22", "from 22 on are missing"),
        ("UPDATE segments SET count = 'many'", "numbers are unreadable"),
        ("UPDATE segments SET data = zeroblob(length(data)) WHERE start = 0", "0 to .* unreadable"),
        ("UPDATE segments SET checksum = 1 WHERE start = 22", "22 to 23 are unreadable"),
        ("UPDATE segments SET start = -16 WHERE start = 0", "before 3 have not expired"),
        ("UPDATE state SET first = 23", "not those that were written"),
        ("DELETE FROM state", "numbers are unreadable"),
        ("DROP TABLE segments", "no such table"),
        ("PRAGMA user_version = 7", "has version 7; this release reads version 1"),
        ("PRAGMA application_id = 7", "is damaged, or is not a file of a history"),
    ],
)
def test_what_is_missing_is_told(tmp_path: Path, small: Any, statement: str, told: str) -> None:
    file = tmp_path / "documents.sqlite"
    file.write_bytes(small[0])
    with contextlib.closing(sqlite3.connect(file)) as db:
        db.execute(statement)
        db.commit()
    with pytest.raises(HistoryError, match=rf"documents\.sqlite.*{told}"), Documents(tmp_path) as d:
        found(d, ["i"])


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    with Documents(tmp_path) as documents:
        documents.append([{"i": 1}] * 3)
        (pages,) = documents._db.execute("PRAGMA page_count").fetchone()
        documents._db.execute(f"PRAGMA max_page_count = {pages + 4}")
        with pytest.raises(HistoryError, match=r"documents\.sqlite cannot be used: .*full"):
            documents.append([{"s": os.urandom(100_000).hex()}])
        assert documents.end == 3
        documents._db.execute("PRAGMA max_page_count = 100000")
        assert documents.append([{"i": 1}]) == 3
        assert found(documents, ["i"]) == expected([{"i": 1}] * 4, ["i"])
        documents.check()


# ------------------------------------------------------------------ at the door


def test_one_writer(tmp_path: Path) -> None:
    in_use = pytest.raises(HistoryError, match="are in use, by this or another process: close them")
    with Documents(tmp_path), in_use:
        Documents(tmp_path)
    with Documents(tmp_path), Documents() as one, Documents() as other:
        one.append({"a": 1})
        assert other.end == 0


def test_folders_of_something_else_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(HistoryError, match=r"holds 'notes.txt' and no documents: give the history"):
        Documents(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(HistoryError, match=r"cannot keep documents in .*notes.txt"):
        Documents(tmp_path / "notes.txt")
    with pytest.raises(HistoryError, match=r"cannot keep documents in .*null byte"):
        Documents("a\0b")
    with pytest.raises(OptionError, match="a history needs the path of a folder"):
        Documents(17)  # type: ignore[arg-type]
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "documents.sqlite").write_text("no database " * 1_000)
    with pytest.raises(HistoryError, match=r"documents\.sqlite cannot be used: file is not a data"):
        Documents(tmp_path / "text")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "documents.sqlite").touch()
    with pytest.raises(HistoryError, match="is damaged, or is not a file of a history"):
        Documents(tmp_path / "empty")


def test_closed_documents_say_so(tmp_path: Path) -> None:
    documents = Documents(tmp_path / "a" / "b")
    documents.append({"a": 1})
    scan = documents.scan(["a"])
    documents.close()
    documents.close()
    uses = (
        lambda: documents.append({"a": 1}),
        lambda: documents.expire(1),
        lambda: next(scan),
        documents.statistics,
        documents.check,
    )
    for use in uses:
        with pytest.raises(HistoryError, match="were closed: open them again"):
            use()
    Documents(tmp_path / "a" / "b").close()


def test_documents_that_nobody_holds_let_go_of_their_folder(tmp_path: Path) -> None:
    Documents(tmp_path).append({"a": 1})
    with Documents(tmp_path) as documents:
        assert len(documents) == 1


TWINS = pa.struct([("x", pa.int64()), ("x", pa.int64())])


@pytest.mark.parametrize(
    ("events", "arguments", "error", "told"),
    [
        (17, {}, EventError, "events must be an Arrow table or array"),
        (b"{}", {}, EventError, "events must be an Arrow table or array"),
        (pa.array([1]), {}, EventError, "must hold JSON text, structs or maps, not int64"),
        (pa.array(["{}"]), {"json": "a"}, OptionError, "json needs a table with columns"),
        ([{}], {"json": "a"}, OptionError, "json needs a table with columns"),
        (SOME, {"json": "b"}, OptionError, "json names the column 'b'"),
        (SOME, {"json": 3}, OptionError, "json must be the name of a column"),
        (pa.table([[1], [2]], names=["a", "a"]), {}, EventError, "two columns of the events"),
        (pa.table({"s": pa.nulls(1, TWINS)}), {}, EventError, "in 's' are named 'x'"),
        (
            pa.table({"m": pa.nulls(1, pa.map_(pa.string(), pa.struct([("t", TWINS)])))}),
            {},
            EventError,
            "in 'm.t' are named 'x'",
        ),
        ([{}, {}], {"keep": [True]}, OptionError, r"for each of the 2 events, .* shape \(1,\)"),
        ([{}], {"keep": [1]}, OptionError, "must be a Boolean for each .* type int64"),
        (pd.DataFrame({"a": [1, "x"]}), {}, EventError, "cannot become an Arrow table"),
    ],
)
def test_what_cannot_be_read_is_refused(
    events: Any, arguments: dict[str, Any], error: type[Exception], told: str
) -> None:
    with Documents() as documents:
        with pytest.raises(error, match=told):
            documents.append(events, **arguments)
        assert documents.end == 0


def test_an_attribute_is_asked_for_once() -> None:
    with Documents() as documents, pytest.raises(OptionError, match="'a' is asked for twice"):
        documents.scan(["a", "a"])


def test_a_mapping_within_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping_rows, "MOST_ATTRIBUTES", 5_000)
    event: dict[str, Any] = {"a": 1}
    event |= {"left": event, "right": event}
    with Documents() as documents:
        with pytest.raises(
            EventError, match="5,000 or more different attributes cannot become doc"
        ):
            documents.append([{"a": 1}, event])
        assert documents.end == 0
        line: dict[str, Any] = {"a": 1}
        line["next"] = line  # ends where mappings are too deep
        documents.append(line)
        assert found(documents, ["a", "next.next.a"])[0][1][0] != MISSING
