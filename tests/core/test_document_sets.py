"""Document sets and ordered indexes against nested loops over the documents."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

import oracle
from bittern.errors import OptionError
from bittern.history.sets import ordered, ordered_runs, sets
from bittern.history.sets.ordered import OrderedIndex
from bittern.history.sets.ordered_runs import bitmap_of, places_of
from bittern.history.sets.outcomes import ANYHOW, APART, OUTCOMES
from bittern.history.sets.sets import DocumentSets
from bittern.language.alternatives import Apart, Conjunction, OneSided, PairHolds, entry_of
from bittern.language.parser import parse
from bittern.language.syntax import Expression, Join, Pair, Quantified, Window
from bittern.model.events.typed.typed import Typed, TypedReader, TypedValue

Document = dict[str, Any]

NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
SECONDS = [NOON + dt.timedelta(seconds=s) for s in (-1, 0, 1, 2)]
NUMBERS = [0, 1, 2, -1, 0.0, -0.0, 0.5, Decimal("0.5"), 1e300, float("inf"), float("-inf")]
CLOSE_NUMBERS = [2**53, 2**53 + 1, -(2**60), -(2**60) - 1, Decimal("0.1"), 0.1, float("nan")]
STRINGS = ["", "a", "a\0", "ab", "b", "abcdefgh", "abcdefghi", "abcdefgh\0", "abcdefghj", "zürich"]
OTHERS = [None, [1, 2], True, False]
POOL = [*NUMBERS, *CLOSE_NUMBERS, *STRINGS, *OTHERS, *SECONDS]

ATTRIBUTES = ("a", "b", "ts")
DOCUMENT_CONDITIONS = ("a > 0", "b IS NULL", "b = 'abcdefghi'", "a IN (1, 2) OR ts IS NULL")
EVENT_CONDITIONS = ("a >= 1", "b LIKE 'a%'")
DOCUMENT_PAIRS = (Pair(True, "a", "<", "b"), Pair(True, "a", "!=", "ts"))
EVENT_PAIRS = (Pair(False, "b", "<=", "a"), Pair(False, "a", "=", "b"))


@contextmanager
def small_parts() -> Iterator[None]:
    """Limits so small that a dozen documents have runs, marks, merges and renumbering."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "LONGEST_TAIL", 3)
        patch.setattr(ordered, "RATIO", 2)
        patch.setattr(ordered_runs, "MOST_MARKS", 4)
        patch.setattr(ordered_runs, "LEAST_STEP", 2)
        patch.setattr(sets, "FEW", 2)
        patch.setattr(sets, "FEWEST_EXPIRED", 4)
        yield


def typed(documents: Sequence[Document], attributes: Sequence[str] = ATTRIBUTES) -> Typed:
    reading = TypedReader(attributes).read(documents)
    assert not reading.rejects
    return reading.typed


def value_of(value: Any) -> TypedValue:
    return TypedValue.of(typed([{"a": value}], ["a"]), 0, 0)


def index_of(values: Sequence[Any], *, batch: int = 1) -> OrderedIndex:
    index = OrderedIndex()
    for start in range(0, len(values), batch):
        append(index, values[start : start + batch])
    return index


def append(index: OrderedIndex, values: Sequence[Any]) -> None:
    own = typed([{"a": value} for value in values], ["a"])
    index.append(own.kinds[0], own.words[0], own.ties[0], own.heap)


def compared(value: Any, operator: str, other: Any) -> bool | None:
    return oracle._compare(value, operator, other)


def expected(values: Sequence[Any], outcomes: int, other: Any) -> list[int]:
    ways = {name: own for name, own in OUTCOMES.items() if own & ~outcomes == 0}
    return [
        i
        for i, value in enumerate(values)
        if (outcomes & APART and compared(value, "=", other) is None)
        or any(compared(value, name, other) for name in ways)
    ]


def check_found(index: OrderedIndex, values: Sequence[Any], others: Sequence[Any]) -> None:
    everything = np.arange(len(values), dtype=np.int32)
    for other in others:
        sought = value_of(other)
        for outcomes in (*OUTCOMES.values(), APART, *(ANYHOW ^ each for each in OUTCOMES.values())):
            right = expected(values, outcomes, other)
            found = index.found(outcomes, sought)
            assert found.count == len(right)
            assert sorted(found.places().tolist()) == right
            assert set(found.places(2).tolist()) <= set(right)
            assert len(found.places(2)) == min(2, len(right))
            assert found.keep(everything).tolist() == right
            assert found.narrow(BitMap(range(1, len(values)))) == BitMap(i for i in right if i)
            if outcomes == OUTCOMES["="]:
                assert found.places().tolist() == right


@given(st.lists(st.sampled_from(POOL), max_size=40), st.integers(1, 9), st.data())
def test_ordered_index_compares_like_nested_loops(
    values: list[Any], batch: int, data: st.DataObject
) -> None:
    others = [None, [1, 2], *data.draw(st.lists(st.sampled_from(POOL), min_size=1, max_size=3))]
    with small_parts():
        index = index_of(values, batch=batch)
        check_found(index, values, others)
        index.check()
        dropped = data.draw(st.integers(0, len(values)))
        index.drop(dropped)
        index.check()
        values = values[dropped:]
        check_found(index, values, others)
        more = data.draw(st.lists(st.sampled_from(POOL), max_size=10))
        append(index, more)
        index.check()
        check_found(index, values + more, others)


def test_ordered_index_keeps_its_own_strings() -> None:
    own = typed([{"a": "a long string"}, {"a": "a long strinG"}], ["a"])
    heap = own.heap.copy()
    index = OrderedIndex()
    index.append(own.kinds[0], own.words[0], own.ties[0], heap)
    heap[:] = 0
    assert index.found(OUTCOMES["="], value_of("a long string")).places().tolist() == [0]
    index.drop(1)
    assert index.statistics()["heap_bytes"] == 8 + len("a long strinG")
    assert index.found(OUTCOMES["<"], value_of("a long string")).places().tolist() == [0]


@pytest.mark.parametrize("batch", [700, 20_000])
def test_long_runs_have_marks_and_stay_few(batch: int) -> None:
    numbers = np.random.default_rng(7).integers(0, 5_000, 20_000)
    index = index_of(numbers.tolist(), batch=batch)
    for operator in OUTCOMES:
        found = index.found(OUTCOMES[operator], value_of(2_500))
        compare = {"<": np.less, "<=": np.less_equal, "=": np.equal, "!=": np.not_equal}
        right = np.flatnonzero(
            compare[operator](numbers, 2_500)
            if operator in compare
            else {">": np.greater, ">=": np.greater_equal}[operator](numbers, 2_500)
        )
        assert found.count == len(right)
        assert found.narrow(BitMap(range(20_000))) == bitmap_of(right.astype(np.int32))
    statistics = index.statistics()
    assert statistics["marks"] >= 10
    assert statistics["runs"] <= 3
    assert statistics["bytes"] >= 20_000 * 21
    index.check()


def test_check_finds_damage() -> None:
    with small_parts():
        index = index_of([3, 1, 2, 5, 4, 0])
        index.check()
        run = index.runs[index._kinds[0]][0]
        run.places[:2] = run.places[1::-1].copy()
        with pytest.raises(AssertionError, match="out of order"):
            index.check()


# Alternatives


def is_member(alternative: Conjunction, event: Document, document: Document) -> bool:
    """Whether a document satisfies the parts of an alternative that speak of it."""
    return (
        all(
            is_true(each.text, document) == each.holds
            for each in alternative.document
        )
        and all(
            compared(document.get(j.document), j.operator, event.get(j.event))
            for j in alternative.joins
        )
        and not any(
            compared(document.get(j.document), j.operator, event.get(j.event))
            for j in alternative.denied
        )
        and all(compared(document.get(a.document), "=", event.get(a.event)) is None
                for a in alternative.apart)
        and all(
            pair_is_true(pair, document if pair.of_document else event) == holds
            for pair, holds in alternative.pairs
        )
        and all(
            is_true(each.text, event) == each.holds for each in alternative.event
        )
    )  # fmt: skip


@cache
def tree_of(text: str) -> Expression:
    return parse(text)


def is_true(text: str, side: Document) -> bool:
    return oracle.truth(tree_of(text), side) is True


def pair_is_true(pair: Pair, side: Document) -> bool:
    return compared(side.get(pair.left), pair.operator, side.get(pair.right)) is True


def in_window(window: Window, event: Document, documents: Sequence[Document]) -> list[Document]:
    """Those of the documents, in order of arrival, that a window has for an event."""
    own = [d for d in documents if all(compared(d.get(a), "=", event.get(a)) for a in window.per)]
    if window.count is not None:
        own = own[-window.count :]
    if window.of is not None and window.microseconds is not None:
        time = event.get(window.of)
        if not isinstance(time, dt.datetime):
            return []
        times = [(d, d.get(window.of)) for d in own]
        microsecond = dt.timedelta(microseconds=1)
        own = [
            d
            for d, own_time in times
            if isinstance(own_time, dt.datetime)
            and (time - own_time) // microsecond <= window.microseconds
        ]
    return own


class Model:
    """Documents in a list, and the sets that are to give the same answers."""

    def __init__(
        self,
        conditions: Iterable[str] = DOCUMENT_CONDITIONS,
        pairs: Iterable[Pair] = DOCUMENT_PAIRS,
        first: int = 0,
    ) -> None:
        self.conditions = list(conditions)
        self.sets = DocumentSets(ATTRIBUTES, self.conditions, list(pairs))
        self.documents: list[Document] = []
        self.start = self.first = first

    @property
    def end(self) -> int:
        return self.start + len(self.documents)

    def append(self, documents: Sequence[Document]) -> None:
        true = [
            [i for i, text in enumerate(self.conditions) if is_true(text, document)]
            for document in documents
        ]
        offsets = np.cumsum([0, *map(len, true)])
        conditions = np.array([i for own in true for i in own], dtype=np.int32)
        self.sets.append(self.end, typed(documents), (offsets, conditions))
        self.documents += documents

    def expire(self, before: int) -> None:
        self.first = min(max(self.first, before), self.end)
        self.sets.expire(before)

    def find(
        self, alternative: Conjunction, window: Window, event: Document, stop: int, first: int = 0
    ) -> tuple[bool, bool]:
        """What nested loops say, and what the sets say."""
        first_place = max(self.first, first) - self.start
        live = self.documents[first_place : max(first_place, stop - self.start)]
        right = any(is_member(alternative, event, d) for d in in_window(window, event, live))
        asked = self.asked(event, EVENT_CONDITIONS)
        return right, self.sets.find(alternative, window, *asked, stop, first)

    def asked(
        self, event: Document, conditions: Iterable[str]
    ) -> tuple[Typed, dict[str, int], int, set[str]]:
        """An event as ``find`` wants it: beside another one, and what is TRUE for it."""
        rows = {name: i for i, name in enumerate(ATTRIBUTES)}
        return typed([{}, event]), rows, 1, {text for text in conditions if is_true(text, event)}


SIMPLE = [1, 2, 3, 2.5, "abcdefgh", "abcdefghi", None]
documents_of = st.fixed_dictionaries(
    {
        "a": st.sampled_from(SIMPLE) | st.sampled_from(POOL),
        "b": st.sampled_from(SIMPLE) | st.sampled_from(POOL),
        "ts": st.sampled_from(SECONDS) | st.sampled_from([None, 1, "a"]),
    }
)
names = st.sampled_from(ATTRIBUTES)
joins = st.builds(Join, names, st.sampled_from(list(OUTCOMES)), names)


def some_of(strategy: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=most, unique=True).map(tuple)


alternatives = st.builds(
    Conjunction,
    some_of(st.builds(OneSided, st.sampled_from(DOCUMENT_CONDITIONS), st.booleans(), st.none()), 2),
    some_of(st.builds(OneSided, st.sampled_from(EVENT_CONDITIONS), st.booleans(), st.none()), 1),
    some_of(joins, 3),
    some_of(st.builds(Apart, names, names), 1),
    some_of(
        st.builds(PairHolds, st.sampled_from((*DOCUMENT_PAIRS, *EVENT_PAIRS)), st.booleans()), 1
    ),
    some_of(joins, 1),
)
per = st.lists(names, max_size=2, unique=True).map(tuple)
durations = st.sampled_from([0, 1, 1_000_000, 1_999_999, 2**63 - 1, 10**30])
windows = (
    st.builds(Window, count=st.none() | st.integers(1, 6), per=per)
    | st.builds(Window, microseconds=durations, of=st.just("ts"), per=per)
)  # fmt: skip


@given(st.data())
def test_alternatives_are_found_like_nested_loops(data: st.DataObject) -> None:
    with small_parts():
        model = Model()
        for _ in range(data.draw(st.integers(1, 5))):
            model.append(data.draw(st.lists(documents_of, max_size=8)))
            model.expire(data.draw(st.integers(0, model.end)))
            model.sets.check()
            for _ in range(3):
                alternative, window = data.draw(alternatives), data.draw(windows)
                event = data.draw(documents_of)
                stop = data.draw(st.integers(max(0, model.end - 3), model.end))
                first = data.draw(st.sampled_from([0, model.end // 2]))
                right, found = model.find(alternative, window, event, stop, first)
                assert found == right, (alternative, window, event)
        model.sets.check()


SEEN = [
    {"a": number, "b": "even" if number % 2 == 0 else "odd", "ts": ts}
    for number, ts in enumerate([*SECONDS, None, 1, "a", *SECONDS])
]
NOW = {"b": "odd", "ts": SECONDS[2]}


@pytest.mark.parametrize(
    ("window", "event", "inside"),
    [
        (Window(), NOW, [2, 3, 4, 5, 6, 7, 8, 9]),
        (Window(count=1), NOW, [9]),
        (Window(count=6), NOW, [4, 5, 6, 7, 8, 9]),
        (Window(count=10**30), NOW, [2, 3, 4, 5, 6, 7, 8, 9]),
        (Window(per=("b",)), NOW, [3, 5, 7, 9]),
        (Window(count=1, per=("b",)), NOW, [9]),
        (Window(count=3, per=("b",)), NOW, [5, 7, 9]),
        (Window(count=3, per=("b", "ts")), NOW, [9]),
        (Window(count=3, per=("b",)), {"b": None}, []),
        (Window(per=("ts",)), {"ts": [1]}, []),
        (Window(microseconds=0, of="ts"), NOW, [2, 3, 9]),
        (Window(microseconds=1_000_000, of="ts"), NOW, [2, 3, 8, 9]),
        (Window(microseconds=1_000_000, of="ts", per=("b",)), NOW, [3, 9]),
        (Window(microseconds=10**30, of="ts"), NOW, [2, 3, 7, 8, 9]),
        (Window(microseconds=10**30, of="ts"), {"ts": 1}, []),
        (Window(microseconds=10**30, of="ts"), {"ts": None}, []),
    ],
)
@pytest.mark.parametrize("part", ["whole", "small"])
def test_windows(part: str, window: Window, event: Document, inside: list[int]) -> None:
    with small_parts() if part == "small" else nullcontext():
        model = Model()
        model.append(SEEN)
        model.expire(2)
        only = Conjunction(joins=(Join("a", "=", "a"),))
        found = [n for n in range(-1, 12) if model.find(only, window, event | {"a": n}, 10)[1]]
        assert found == inside
        # As far from an equality as can be: all documents but one have to be looked at.
        both = Conjunction(joins=(Join("a", "<=", "a"), Join("a", ">=", "a")))
        found = [n for n in range(-1, 12) if model.find(both, window, event | {"a": n}, 10)[1]]
        assert found == inside


@pytest.mark.parametrize(("nanoseconds", "inside"), [(-301, False), (-300, True), (1, True)])
def test_windows_of_time_are_of_whole_microseconds(nanoseconds: int, *, inside: bool) -> None:
    now, hour = 1_700_000_000_000_000_300, 3_600_000_000_000
    times = pa.array([now - hour + nanoseconds, now], pa.timestamp("ns"))
    own = TypedReader(["ts"]).read(pa.table({"ts": times})).typed
    history = DocumentSets(["ts"], (), ())
    history.append(0, own.take(np.array([0])), (np.zeros(2, np.int64), np.zeros(0, np.int32)))
    window = Window(microseconds=hour // 1000, of="ts")
    assert history.find(Conjunction(), window, own, {"ts": 0}, 1, (), 1) == inside


CONDITIONS = (
    "d.a < b AND d.b >= a",
    "d.a != a AND d.b != b AND d.ts != ts",
    "NOT (d.a = a OR d.b < b) AND d.a < d.b",
    "d.a > a AND d.b > a OR d.b IS NULL AND d.ts = ts",
    "a >= 1 AND d.a <= a AND d.a >= b",
    "(d.a > 0 OR d.a < d.b) AND (a = b OR NOT d.b = 'abcdefghi')",
    "d.ts > ts OR d.a != a",
)
WINDOWS = ("", "IN LAST 3 ", "IN LAST '1 second' OF ts ", "PER a ", "IN LAST 2 PER b ")


@given(
    st.sampled_from(["EXISTS", "FORALL"]),
    st.sampled_from(WINDOWS),
    st.sampled_from(CONDITIONS),
    st.lists(documents_of, min_size=3, max_size=12),
)
def test_quantified_predicates_against_the_oracle(
    quantifier: str, window: str, condition: str, documents: list[Document]
) -> None:
    tree = parse(f"{quantifier} d {window}({condition})")
    assert isinstance(tree, Quantified)
    entry = entry_of(tree)
    texts = {each.text for alternative in entry.alternatives for each in alternative.document}
    pairs = {
        pair
        for alternative in entry.alternatives
        for pair, _ in alternative.pairs
        if pair.of_document
    }
    with small_parts():
        model = Model(texts, pairs)
        model.append(documents)
        model.sets.check()
        for number, event in enumerate(documents):  # each as if it had just arrived
            texts = {each.text for alternative in entry.alternatives for each in alternative.event}
            found = any(
                model.sets.find(alternative, entry.window, *model.asked(event, texts), number)
                for alternative in entry.alternatives
            )
            right = oracle.truth(tree, event, documents[:number])
            assert (found != entry.negated) is right, (event, documents[:number])


def random_documents(n: int, seed: int) -> list[Document]:
    generator = np.random.default_rng(seed)
    columns = generator.integers(0, 100, (3, n)).tolist()
    return [
        {"a": a, "b": b if b % 10 else None, "ts": NOON + dt.timedelta(seconds=s)}
        for a, b, s in zip(*columns, strict=True)
    ]


@pytest.mark.parametrize("few", [2048, 16])
def test_sets_of_thousands_of_documents(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(sets, "FEW", few)
    model = Model(first=2**40)
    documents = random_documents(6_000, 1)
    for start in range(0, 6_000, 1_200):
        model.append(documents[start : start + 1_500])
        model.expire(model.end - 4_500)
    model.sets.check()
    both = (Join("a", ">", "a"), Join("b", "<", "b"), Join("b", "!=", "a"))
    impossible = (Join("a", "<", "a"), Join("a", ">", "a"))
    asked = [
        (Conjunction(joins=both), Window()),
        (Conjunction(joins=impossible), Window()),
        (Conjunction(joins=both, document=(OneSided("b IS NULL", True),)), Window()),
        (Conjunction(joins=both), Window(count=4_000)),
        (Conjunction(joins=both), Window(count=2, per=("b",))),
        (Conjunction(joins=impossible), Window(count=4_000, per=("b",))),
        (Conjunction(joins=both, pairs=(PairHolds(DOCUMENT_PAIRS[0], False),)), Window()),
        (Conjunction(apart=(Apart("b", "a"),), joins=both[:1]), Window()),
        (
            Conjunction(apart=(Apart("b", "a"),), document=(OneSided("b IS NULL", False),)),
            Window(),
        ),
        (Conjunction(joins=both), Window(microseconds=3_000_000, of="ts")),
        (Conjunction(), Window(count=3, per=("a", "b"))),
    ]
    answers = set()
    for event in random_documents(4, 2):
        for alternative, window in asked:
            right, found = model.find(alternative, window, event, model.end - 7)
            assert found == right, (alternative, window, event)
            answers.add(right)
    assert answers == {True, False}
    model.sets.check()
    statistics = model.sets.statistics()
    assert statistics["documents"] == 4_500
    assert statistics["expired"] < 4_500
    assert statistics["marks"] > 0
    assert statistics["bytes"] == model.sets.nbytes > 4_500 * 3 * 21


def test_sets_without_documents() -> None:
    model = Model()
    assert model.find(Conjunction(), Window(), {}, 0) == (False, False)
    model.append([])
    model.append([{"a": 1}])
    assert model.find(Conjunction(), Window(), {}, 1) == (True, True)
    model.expire(5)
    assert model.find(Conjunction(), Window(), {}, 1) == (False, False)
    assert model.sets.first == model.sets.end == 1


def test_numbers_go_on_where_they_ended() -> None:
    model = Model()
    model.append([{"a": 1}, {"a": 2}])
    nothing = (np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int32))
    with pytest.raises(OptionError, match="the next document is number 2, not 3"):
        model.sets.append(3, typed([{"a": 1}]), nothing)
    with pytest.raises(OptionError, match="the next document is number 2, not 0"):
        model.sets.append(0, typed([{"a": 1}]), nothing)


def test_more_documents_than_places_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "MOST_DOCUMENTS", 3)
    model = Model()
    model.append([{"a": 1}] * 3)
    with pytest.raises(OptionError, match=r"4 documents are more than .* let older ones expire"):
        model.append([{"a": 1}])
    model.sets.check()


def test_places_and_sets_are_the_same() -> None:
    places = np.array([5, 0, 70_000, 3], dtype=np.int32)
    assert places_of(bitmap_of(places)).tolist() == [0, 3, 5, 70_000]
    assert places_of(bitmap_of(places[:0])).tolist() == []
