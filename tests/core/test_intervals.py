"""Intervals over real values, against brute force over exact keys, under every structure."""

from __future__ import annotations

import copy
import datetime as dt
import math
import tempfile
from collections import Counter
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import bittern
import oracle
import strategies
from bittern import Intervals
from bittern.engine import intervals as intervals_module
from bittern.engine.intervals import CLOSED
from bittern.errors import OptionError, SnapshotError
from bittern.stabbing.guide import Guide
from bittern.stabbing.layer import Layer
from bittern.stabbing.registry import STRUCTURES
from effort import examples

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
INF, NAN = math.inf, math.nan


# ------------------------------------------------------------------ the truth


def key(value: Any) -> Any:
    """Where a value stands in the order of its kind; times in nanoseconds."""
    if isinstance(value, np.datetime64):
        return int(value.astype("M8[ns]").astype(np.int64))
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (aware - EPOCH) // dt.timedelta(microseconds=1) * 1000
    if isinstance(value, dt.date):
        return (value - EPOCH.date()).days * 86_400 * 10**9
    if isinstance(value, str):
        return value.encode()
    return oracle._number_key(value.item() if isinstance(value, np.generic) else value)


def is_end(value: Any) -> bool:
    """None, NaT and infinities are no ends."""
    if value is None or (isinstance(value, np.datetime64) and np.isnat(value)):
        return False
    return not (isinstance(value, float | np.floating) and math.isinf(value))


Interval = tuple[Any, Any, str, int]


def contains(interval: Interval, value: Any) -> bool:
    low, high, closed, _ = interval
    left, right = CLOSED[closed]
    at = key(value)
    above = not is_end(low) or key(low) < at or (left and key(low) == at)
    return above and (not is_end(high) or at < key(high) or (right and key(high) == at))


def brute_force(intervals: list[Interval], values: Any) -> list[list[int]]:
    return [
        sorted(
            interval[3]
            for interval in intervals
            if value is not None and not is_nat(value) and contains(interval, value)
        )
        for value in values
    ]


def is_nat(value: Any) -> bool:
    return isinstance(value, np.datetime64) and bool(np.isnat(value))


def is_valid(low: Any, high: Any, closed: str) -> bool:
    """Whether build should take it."""
    if not is_end(low) or not is_end(high):
        return True
    return key(low) < key(high) or (key(low) == key(high) and closed == "both")


def found(index: Intervals, values: Any) -> list[list[int]]:
    """Sorted ids per value, from one batch."""
    offsets, ids = index.stab_batch(values)
    assert (offsets.dtype, ids.dtype) == (np.int64, np.int32)
    assert offsets[0] == 0
    assert offsets[-1] == len(ids)
    return [sorted(part.tolist()) for part in np.split(ids, offsets[1:-1])][: len(values)]


# ------------------------------------------------------------------ kinds of values


class Kind(NamedTuple):
    """Scalars to draw ends and values from, and the forms that whole columns may have."""

    ends: st.SearchStrategy[Any]
    values: st.SearchStrategy[Any]
    forms: list[Callable[[list[Any]], Any]]


def arrow(type_: pa.DataType) -> Callable[[list[Any]], Any]:
    return lambda items: pa.array(items, type_)


def chunked(items: list[Any]) -> pa.ChunkedArray:
    half = len(items) // 2
    array = pa.array(items)
    return pa.chunked_array([array[:half], array[half:]], array.type)


def floats(items: list[Any]) -> list[float]:
    return [NAN if item is None else item for item in items]


_BIG = 2**53
pick = st.sampled_from
small = st.integers(-5, 12)
int64s = st.one_of(small, pick(strategies.LARGE_INTEGERS), pick([_BIG + 3, -_BIG + 1]))
doubles = st.one_of(
    pick(strategies.SMALL_FLOATS), pick(strategies.EDGE_FLOATS), small.map(float), st.just(1e19)
)
any_number = st.one_of(
    int64s,
    doubles,
    pick(strategies.SHORT_DECIMALS),
    pick(strategies.LONG_DECIMALS),
    pick([2**63, 2**64 - 1, -(2**63) - 1, 2**70, Decimal(10**30), Decimal("1e-30")]),
)
moments = st.one_of(pick(strategies.TIMESTAMPS), pick(strategies.DATES))
nanoseconds = st.one_of(
    st.integers(-3, 3), st.integers(-(2**62), 2**62), pick([1000, 999, 1001, 10**9, 10**9 + 1])
).map(lambda ns: np.datetime64(ns, "ns"))
decimals = st.integers(-60, 60).map(lambda n: Decimal(n).scaleb(-1))

KINDS: dict[str, Kind] = {
    "int64": Kind(
        int64s,
        st.one_of(any_number, pick([NAN, INF, -INF])),
        [list, arrow(pa.int64()), chunked],
    ),
    "dense integers": Kind(small, st.one_of(small, doubles), [list, arrow(pa.int16())]),
    "floats": Kind(
        st.one_of(doubles, pick([None, None])),
        st.one_of(doubles, int64s, pick([NAN, INF, -INF, None])),
        [list, arrow(pa.float64())],
    ),
    "mixed numbers": Kind(any_number, st.one_of(any_number, pick([NAN, INF, -INF])), [list]),
    "decimals": Kind(decimals, st.one_of(decimals, doubles), [list, arrow(pa.decimal128(9, 3))]),
    "strings": Kind(
        pick(strategies.STRINGS),
        st.one_of(pick(strategies.STRINGS), st.text("ab\uff5e😀", max_size=3)),
        [
            list,
            arrow(pa.string()),
            arrow(pa.large_string()),
            chunked,
            lambda items: pa.array(items, pa.string()).dictionary_encode(),
        ],
    ),
    "datetimes": Kind(moments, moments, [list]),
    "nanoseconds": Kind(
        nanoseconds, st.one_of(nanoseconds, moments.filter(lambda m: 1700 < m.year < 2200)), [list]
    ),
}


@st.composite
def intervals_of(draw: st.DrawFn, kind: Kind, max_size: int = 12) -> list[Interval]:
    """Valid intervals, some unbounded, some points; ids repeat."""
    end = st.one_of(kind.ends, kind.ends, kind.ends, st.none())
    out = []
    for _ in range(draw(st.integers(0, max_size))):
        low, high, closed = draw(end), draw(end), draw(pick(list(CLOSED)))
        if is_end(low) and draw(st.integers(0, 5)) == 0:
            high = low
        if not is_valid(low, high, closed):
            low, high = high, low
        if is_valid(low, high, closed):
            out.append((low, high, closed, draw(st.integers(0, 6))))
    return out


def build(
    intervals: list[Interval], form: Callable[[list[Any]], Any] = list, **options: Any
) -> Any:
    """Build from those that are closed in one way, and insert the others."""
    closed = intervals[0][2] if intervals else "both"
    same = [interval for interval in intervals if interval[2] == closed]
    lows, highs = [interval[0] for interval in same], [interval[1] for interval in same]
    index = Intervals.build(
        form(lows), form(highs), [interval[3] for interval in same], closed=closed, **options
    )
    for low, high, other, number in intervals:
        if other != closed:
            index.insert(low, high, number, closed=other)
    index.check()
    assert len(index) == len(intervals)
    return index


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_every_kind_agrees_with_brute_force(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    intervals = data.draw(intervals_of(kind))
    index = build(intervals, data.draw(pick(kind.forms)))
    values = data.draw(st.lists(st.one_of(kind.values, kind.ends), max_size=12))
    expected = brute_force(intervals, values)
    assert found(index, values) == expected
    assert [sorted(index.stab(value).tolist()) for value in values] == expected
    index.check()


@pytest.mark.parametrize("structure", STRUCTURES)
@examples(0.25)
@given(data=st.data())
def test_every_structure_agrees_with_brute_force(structure: str, data: st.DataObject) -> None:
    kind = KINDS[data.draw(pick(list(KINDS)))]
    intervals = data.draw(intervals_of(kind, 25))
    index = build(intervals, structure=structure)
    values = data.draw(st.lists(st.one_of(kind.values, kind.ends), max_size=12))
    assert found(index, values) == brute_force(intervals, values)
    assert index.structure.name == structure


@pytest.mark.parametrize("name", KINDS)
@examples(0.25)
@given(data=st.data())
def test_what_is_saved_is_found_again(name: str, data: st.DataObject) -> None:
    """In the snapshot, after further changes of what was opened, and in the snapshot again."""
    kind = KINDS[name]
    intervals = data.draw(intervals_of(kind))
    structure = data.draw(pick(["cei", "dlist", "interval-tree", "sci", "cluster"]))
    values = data.draw(st.lists(st.one_of(kind.values, kind.ends), max_size=8))
    expected = brute_force(intervals, values)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "intervals"
        build(intervals, structure=structure).save(path)
        opened = Intervals.open(path, verify=True)
        opened.check()
        assert (len(opened), opened.structure.name) == (len(intervals), structure)
        assert found(opened, values) == expected
        assert [sorted(opened.stab(value).tolist()) for value in values] == expected
        for low, high, closed, number in intervals[:3]:
            opened.delete(low, high, number, closed=closed)
        opened.check()
        assert found(opened, values) == brute_force(intervals[3:], values)
        for low, high, closed, number in intervals[:3]:
            opened.insert(low, high, number, closed=closed)
        opened.check()
        assert found(opened, values) == expected
        assert found(Intervals.open(path), values) == expected
        opened.save(path)
        assert found(Intervals.open(path, verify=True), values) == expected


def test_snapshots_of_other_things_are_refused(tmp_path: Path) -> None:
    bittern.Index.build({"a": "x > 1"}).save(tmp_path / "index")
    with pytest.raises(SnapshotError, match="is a snapshot, but not one of Intervals"):
        Intervals.open(tmp_path / "index")
    index = Intervals.build([1, 5], [9, None], closed="left")
    index.save(tmp_path / "intervals")
    with pytest.raises(SnapshotError, match="not an index that this release can read"):
        bittern.Index.open(tmp_path / "intervals")
    arrays, meta = index._layer.parts()
    for change in ({"cells": arrays["cells"][:-1]}, {"ids": arrays["ids"][1:]}):
        with pytest.raises(SnapshotError, match="do not fit together"):
            Layer.of_parts(arrays | change, meta)


def test_a_single_value_and_the_same_in_a_batch_find_the_same_when_much_changed() -> None:
    """Lists that grow and move: what a single value is told of where they lie is told anew."""
    rng = np.random.default_rng(5)
    index = Intervals.build(np.arange(300), np.arange(300) + 5)
    for step in range(400):
        low = int(rng.integers(0, 300))
        index.insert(low, low + int(rng.integers(0, 6)), 1_000 + step)
        for value in (low, low + 0.5, float(low)):
            alone, ids = index.stab(value), index.stab_batch([value])[1]
            assert alone.tolist() == ids.tolist()
    copied = copy.deepcopy(index)
    for value in range(300):
        assert copied.stab(value).tolist() == index.stab(value).tolist()


def test_the_choice_of_a_structure_can_be_left_to_the_library() -> None:
    rng = np.random.default_rng(3)
    lows = rng.integers(0, 3000, 2000)
    highs = lows + rng.integers(0, 50, 2000)
    index = Intervals.build(lows, highs, structure="auto")
    index.check()
    values = rng.random(300) * 3000
    exact = Intervals.build(lows, highs)
    assert found(index, values) == found(exact, values)
    assert index.structure.name in STRUCTURES
    roomy = Intervals.build(lows, highs, structure="auto", memory=10**9)
    assert found(roomy, values) == found(exact, values)
    with pytest.raises(OptionError, match="memory"):
        Intervals.build(lows, highs, structure="auto", memory=0)
    with pytest.raises(OptionError, match="fits into 1 byte:"):
        Intervals.build(lows, highs, structure="auto", memory=1)


def test_parameters_reach_the_structure() -> None:
    index = Intervals.build(np.arange(1000), np.arange(1000) + 7, segment=16)
    assert index.structure.statistics()["segment"] == 16
    with pytest.raises(OptionError, match="segment"):
        Intervals.build([1], [2], segment=3)
    with pytest.raises(OptionError, match="no stabbing index is called 'tree'"):
        Intervals.build([1], [2], structure="tree")


# ------------------------------------------------------------------ forms of columns


@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">i4", ">f8"]
)
def test_numpy_numbers(dtype: str) -> None:
    lows, highs = np.array([1, 5, 5], dtype), np.array([4, 5, 100], dtype)
    index = Intervals.build(lows, highs)
    assert found(index, np.array([0, 1, 4, 5, 100, 101], dtype)) == [[], [0], [0], [1, 2], [2], []]
    assert found(index, [4.5, 5, Decimal("100.1")]) == [[], [1, 2], []]
    strided = Intervals.build(np.repeat(lows, 2)[::2], np.repeat(highs, 2)[::2])
    assert found(strided, np.array([5, 4], dtype)[::-1]) == [[0], [1, 2]]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_numpy_times_in_every_unit(unit: str) -> None:
    days = ["2020-01-02", "2021-01-01", "2024-05-06"]
    lows, highs = (
        np.array(days, f"M8[{unit}]"),
        np.array(["2024-05-06", "NaT", "NaT"], f"M8[{unit}]"),
    )
    index = Intervals.build(lows, highs, closed="left")
    expected = [
        (low, high, "left", i) for i, (low, high) in enumerate(zip(lows, highs, strict=True))
    ]
    ticks = np.array([1, -1], "m8[ns]")
    values = np.concatenate(
        [lows.astype("M8[ns]"), *(lows.astype("M8[ns]") + tick for tick in ticks)]
    )
    assert found(index, values) == brute_force(expected, values)
    assert found(index, lows) == brute_force(expected, lows)
    assert found(index, [dt.date(2021, 1, 1), None]) == brute_force(
        expected, [dt.date(2021, 1, 1), None]
    )


def test_times_of_every_arrow_type_and_zone() -> None:
    moment = dt.datetime(2024, 3, 1, 12)
    zone = dt.timezone(dt.timedelta(hours=2))
    index = Intervals.build([moment], [moment + dt.timedelta(hours=1)])
    for unit in ("s", "ms", "us", "ns"):
        for type_ in (pa.timestamp(unit), pa.timestamp(unit, "Europe/Berlin")):
            assert found(index, pa.array([moment, None], type_)) == [[0], []]
    inside = moment.replace(tzinfo=dt.UTC).astimezone(zone)
    assert found(index, [inside, inside - dt.timedelta(microseconds=1)]) == [[0], []]
    dates = Intervals.build(
        pa.array([dt.date(2024, 3, 1)]), pa.array([dt.date(2024, 3, 2)], pa.date64())
    )
    assert found(dates, [moment, dt.date(2024, 3, 2), dt.date(2024, 3, 3)]) == [[0], [0], []]


def test_pandas_series_and_timestamps() -> None:
    index = Intervals.build(pd.Series([1.5, 2]), pd.Series([3.0, 2]))
    assert found(index, pd.Series([2, 3])) == [[0, 1], [0]]
    assert found(index, pd.array([2, None], dtype="Int64")) == [[0, 1], []]
    start = pd.Timestamp("2024-01-01 00:00:00.000000001")
    times = Intervals.build([start], [start + pd.Timedelta(1, "ns")])
    later = [start + pd.Timedelta(n, "ns") for n in (-1, 0, 1, 2)]
    assert found(times, later) == [[], [0], [0], []]
    assert found(times, pd.Series(later)) == [[], [0], [0], []]
    assert found(times, pd.Series(later).dt.tz_localize("UTC")) == [[], [0], [0], []]
    assert found(times, [pd.NaT, later[1]]) == [[], [0]]


def test_a_list_of_dates_and_times_keeps_the_times() -> None:
    day, noon = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 12)
    for mixed in ([day, noon], [noon, day]):
        index = Intervals.build(mixed, mixed)
        assert found(index, [day, noon]) == [[mixed.index(day)], [mixed.index(noon)]]


def test_numpy_strings_and_null_columns() -> None:
    index = Intervals.build(np.array(["a", "b"]), np.array(["b", "😀"]))
    assert found(index, np.array(["b", "\uff5e", "z"])) == [[0, 1], [1], [1]]
    assert found(index, pa.nulls(2)) == [[], []]
    assert found(index, [None]) == [[]]
    assert found(index, pa.array(["b", None]).dictionary_encode()) == [[0, 1], []]


def test_float32_stands_for_the_float64_it_widens_to() -> None:
    third = np.float32(0.1)
    index = Intervals.build(np.array([third]), np.array([third]))
    assert found(index, np.array([0.1, float(third)])) == [[], [0]]


# ------------------------------------------------------------------ numbers at the edges


def test_integers_beyond_floats_meet_floats_exactly() -> None:
    ends = [_BIG, _BIG + 1, _BIG + 2, 2**63 - 1]
    index = Intervals.build(ends, ends)
    values = [float(_BIG), float(_BIG + 2), 2.0**63, float(_BIG) + 1.0, 2**63 - 1, 2**63]
    assert found(index, np.array(values[:4])) == [[0], [2], [], [0]]
    assert found(index, values) == [[0], [2], [], [0], [3], []]
    fractions = Intervals.build([0.5, *ends], [0.5, *ends])
    assert found(fractions, values) == [[1], [3], [], [1], [4], []]
    assert found(fractions, np.array([_BIG + 1, 2**63 - 1])) == [[2], [4]]


def test_floats_stand_for_what_they_print() -> None:
    index = Intervals.build([Decimal("0.1"), 0.3], [Decimal("0.1"), 0.3])
    values = [0.1, Decimal("0.1"), Decimal("0.100000000000000005"), 0.1 + 0.2, 0.3]
    assert found(index, values) == [[0], [0], [], [], [1]]
    long = Intervals.build([Decimal("0.100000000000000005")], [1])
    assert found(long, [0.1, math.nextafter(0.1, 1)]) == [[], [0]]


def test_minus_zero_is_zero() -> None:
    for low, high in ((0.0, -0.0), (-0.0, 0.0), (0, -0.0)):
        index = Intervals.build([low], [high])
        assert found(index, [0, 0.0, -0.0, 5e-324]) == [[0], [0], [0], []]


def test_unsigned_integers_of_64_bits() -> None:
    index = Intervals.build(
        np.array([2**63, 5], np.uint64), np.array([2**64 - 1, 2**63], np.uint64)
    )
    values = np.array([2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 4], np.uint64)
    assert found(index, values) == [[1], [0, 1], [0], [0], []]
    # Such a float stands for what it prints: 9223372036854776000 and 18446744073709552000.
    assert found(index, [2.0**63, 2.0**64, -1]) == [[0], [], []]


def test_decimals_of_any_scale_meet_integers() -> None:
    index = Intervals.build([-1, 0, 3, 10**17], [0, 0, 3, 10**17])
    for type_ in (pa.decimal128(38, 20), pa.decimal128(18, 2), pa.decimal256(60, 25)):
        texts = ["-1.01", "-1", "-0.01", "0", "0.01", "3", "3.5"]
        values = pa.array([*map(Decimal, texts), None], type_)
        assert found(index, values) == [[], [0], [0], [0, 1], [], [2], [], []]
    tiny = pa.array([Decimal("-1e-30"), Decimal(0), Decimal("1e-30")], pa.decimal128(38, 30))
    assert found(index, tiny) == [[0], [0, 1], []]
    huge = pa.array([Decimal(10) ** 17, Decimal(10) ** 19], pa.decimal128(20, -2))
    assert found(index, huge) == [[3], []]
    negative = pa.array([Decimal(-(10**30))], pa.decimal128(31, -25))
    assert found(index, negative) == [[]]


def test_the_callers_decimal_context_does_not_matter() -> None:
    with localcontext(prec=3):
        index = Intervals.build([Decimal("1.23456")], [Decimal("1.23457")])
        values = pa.array([Decimal("1.23455"), Decimal("1.23456"), Decimal("1.2345")])
        assert found(index, values) == [[], [0], []]
        assert found(index, [Decimal("1.234565")]) == [[0]]


def test_values_beyond_the_unit_of_times() -> None:
    last = np.datetime64(2**63 - 1, "ns")
    first = np.datetime64(-(2**63) + 1, "ns")
    index = Intervals.build([first, first], [last, None], closed="both")
    values = np.array(["9999-01-01", "2000-01-01", "0001-01-01", "NaT"], "M8[s]")
    assert found(index, values) == [[1], [0, 1], [], []]
    assert found(index, np.array([last, first])) == [[0, 1], [0, 1]]


def test_nan_and_infinities_as_values() -> None:
    index = Intervals.build([None, 0, -INF, 5.0], [0, None, INF, 7], closed="neither")
    values = [NAN, INF, -INF, 6]
    assert found(index, values) == [[1, 2], [1, 2], [0, 2], [1, 2, 3]]
    assert found(index, np.array(values)) == [[1, 2], [1, 2], [0, 2], [1, 2, 3]]
    assert found(index, [NAN, 2**70, None]) == [[1, 2], [1, 2], []]
    whole = Intervals.build([None, 0], [0, None], closed="neither")  # no float among the ends
    assert found(whole, np.array(values)) == [[1], [1], [0], [1]]


# ------------------------------------------------------------------ many of them

_RNG = np.random.default_rng(12)
MANY = {
    "dense integers": _RNG.integers(0, 5000, 6000),
    "sparse integers": _RNG.integers(0, 10**12, 6000),
    "integers beyond floats": _RNG.integers(2**60, 2**62, 6000),
    "floats": _RNG.random(6000) * 1e4,
    "crowded floats": _RNG.random(6000) ** 20,
    "floats of any size": _RNG.random(6000) * 10.0 ** _RNG.integers(-300, 300, 6000),
    "whole floats": _RNG.integers(0, 5000, 6000).astype(np.float64),
    "nanoseconds": (_RNG.integers(0, 2**62, 6000)).astype("M8[ns]"),
    "seconds": (_RNG.integers(0, 2**33, 6000)).astype("M8[s]"),
    "strings": np.array([f"{n:x}" for n in _RNG.integers(0, 2**31, 6000)]),
}


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("name", MANY)
def test_many_intervals_agree_with_numpy(name: str, closed: str) -> None:
    drawn = MANY[name]
    lows, highs = np.sort(drawn[:5000].reshape(2, -1), axis=0)
    kept = lows < highs
    lows, highs = lows[kept], highs[kept]
    index = Intervals.build(lows, highs, closed=closed)
    index.check()
    values = np.concatenate((drawn[4900:5050], lows[:20], highs[:20], np.sort(drawn)[[0, -1]]))
    offsets, ids = index.stab_batch(values)
    left, right = CLOSED[closed]
    for i, value in enumerate(values):
        above = lows <= value if left else lows < value
        below = value <= highs if right else value < highs
        assert sorted(ids[offsets[i] : offsets[i + 1]]) == np.flatnonzero(above & below).tolist()


@pytest.mark.parametrize(
    "constants",
    [
        [0.0],
        [0.0, 5e-324],
        [-1.7e308, 1.7e308],
        [-1.7e308, 0, 1, 2, 1.7e308],
        [1.0, math.nextafter(1.0, 2)],
        [*range(100), 1e15],
        [2.0**-n for n in range(1000, 0, -1)],
        np.sort(_RNG.random(1000)),
    ],
    ids=lambda constants: f"{len(constants)} from {constants[0]}",
)
def test_a_guide_finds_what_a_binary_search_finds(constants: Any) -> None:
    constants = np.array(constants, np.float64)
    near = np.concatenate([np.nextafter(constants, side) for side in (-INF, INF)])
    far = [INF, -INF, 0, -0.0, NAN]
    values = np.concatenate((constants, near, -constants, constants * 0.7, far))
    at = np.searchsorted(constants, values)
    equal = constants[np.minimum(at, len(constants) - 1)] == values
    valid = np.ones(len(values), np.uint8)
    places = Guide.build(constants).places(values, np.empty(0, np.uint8))
    assert places.tolist() == (2 * at + equal).tolist()
    valid[3] = 0
    places[3] = -1
    assert Guide.build(constants).places(values, valid).tolist() == places.tolist()


# ------------------------------------------------------------------ changes


class Changes(RuleBasedStateMachine):
    """Any sequence of changes and searches, with thresholds that are soon met."""

    structure = "cei"

    @initialize(data=st.data(), name=pick(list(KINDS)))
    def start(self, data: st.DataObject, name: str) -> None:
        self.kind = KINDS[name]
        self.held: list[Interval] = data.draw(intervals_of(self.kind))
        self.index = build(self.held, structure=self.structure)

    def draw(self, data: st.DataObject) -> Interval | None:
        drawn = data.draw(intervals_of(self.kind, 1))
        return drawn[0] if drawn else None

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        interval = self.draw(data)
        if interval:
            low, high, closed, number = interval
            self.index.insert(low, high, number, closed=closed)
            self.held.append(interval)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def insert_with_known_ends(self, data: st.DataObject) -> None:
        low, high, closed, _ = data.draw(pick(self.held))
        number = data.draw(st.integers(0, 6))
        self.index.insert(low, high, number, closed=closed)
        self.held.append((low, high, closed, number))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        low, high, closed, number = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.index.delete(low, high, number, closed=closed)

    @rule(data=st.data())
    def delete_what_is_not_there(self, data: st.DataObject) -> None:
        interval = self.draw(data)
        if interval and canonical(interval) not in map(canonical, self.held):
            low, high, closed, number = interval
            with pytest.raises(OptionError, match="not in the index"):
                self.index.delete(low, high, number, closed=closed)

    @rule(data=st.data())
    def search(self, data: st.DataObject) -> None:
        values = data.draw(st.lists(st.one_of(self.kind.values, self.kind.ends), max_size=6))
        assert found(self.index, values) == brute_force(self.held, values)

    @invariant()
    def is_sound(self) -> None:
        if hasattr(self, "index"):
            self.index.check()
            assert len(self.index) == len(self.held)


def canonical(interval: Interval) -> Any:
    """What makes two intervals the same: equal ends, and closedness where there is an end."""
    low, high, closed, number = interval
    left, right = CLOSED[closed]
    return (
        (key(low), left) if is_end(low) else None,
        (key(high), right) if is_end(high) else None,
        number,
    )


@pytest.mark.parametrize("some", [1, 10**9])
def test_any_history_agrees_with_brute_force(some: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 1, almost everything is folded at once; with a billion, nothing ever is."""
    monkeypatch.setattr(intervals_module, "_SOME", some)
    monkeypatch.setattr(intervals_module, "_ROOTS", 0)
    run_state_machine_as_test(Changes, settings=examples(steps=20))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_changes_under_every_structure(structure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals_module, "_SOME", 4)
    machine = type("Under", (Changes,), {"structure": structure})
    run_state_machine_as_test(machine, settings=examples(0.25, steps=15))


def test_intervals_aside_are_folded_in_at_the_stated_share() -> None:
    index = Intervals.build(np.arange(400), np.arange(400) + 5)
    kept = [(n, n + 5, "both", n) for n in range(400)]
    aside = []
    for n in range(150):
        interval = (n + 0.5, n + 0.75, "both", 1000 + n)
        index.insert(interval[0], interval[1], 1000 + n)
        kept.append(interval)
        assert found(index, [n + 0.5]) == [[*range(max(0, n - 4), n + 1), 1000 + n]]
        aside.append(index.statistics()["aside"])
    limit = 64 + 4 * 20
    assert max(aside) == limit + 1
    assert aside[limit + 1] == 1  # all in one again, but for the newest
    assert index.statistics()["intervals"] == 550
    values = [0.25, 77.5, 149.75, 399.5, 405]
    assert found(index, values) == brute_force(kept, values)


def count_folds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many intervals there are, whenever everything is built into one layer."""
    folds, fold = [], Intervals._fold
    monkeypatch.setattr(Intervals, "_fold", lambda index: (folds.append(len(index)), fold(index)))
    return folds


def test_many_insertions_without_a_search_are_folded_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = Intervals.build([], [])
    folds = count_folds(monkeypatch)
    for n in range(2000):
        index.insert(n + 0.5, n + 1.25, n)
    assert 3 < len(folds) < 20
    assert found(index, [7.1, 7.6]) == [[6], [7]]
    index.check()


def test_bookkeeping_of_many_changes_is_folded_too() -> None:
    index = Intervals.build([0, 1], [1, 2])
    for n in range(300):
        index.insert(n % 2, n % 2 + 1, n)
    assert len(index._added) < 200
    index.check()
    assert len(index.stab(1)) == 302
    for n in range(300):
        index.delete(n % 2, n % 2 + 1, n)
    index.check()
    assert len(index) == 2


@pytest.mark.parametrize("structure", ["cei", "lci-dt"])
def test_ranges_much_longer_than_before_are_filed_as_a_build_would(
    structure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points are built with a short segment, of which an open range would need thousands."""
    folds = count_folds(monkeypatch)
    n, k = 20_000, 600
    ends = np.random.default_rng(7).integers(0, n, k).tolist()
    index = Intervals.build(np.arange(n), np.arange(n), structure=structure)
    for i, end in enumerate(ends):
        index.insert(end, None, n + i)
    lows, highs = [*range(n), *ends], [*range(n), *[None] * k]
    at_once = Intervals.build(lows, highs, structure=structure)
    assert index.structure.filed <= 3 * at_once.structure.filed
    assert index.nbytes <= 4 * at_once.nbytes
    assert 1 <= len(folds) <= 8
    for value in (0, 7, n // 2, n - 1, n):
        assert sorted(index.stab(value).tolist()) == sorted(at_once.stab(value).tolist())
    index.check()


def test_a_parameter_that_was_given_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """To build again with the same segment would save nothing."""
    folds = count_folds(monkeypatch)
    index = Intervals.build(np.arange(5000), np.arange(5000), segment=32)
    for i in range(100):
        index.insert(i, None, 5000 + i)
    assert index.statistics()["structure"]["segment"] == 32
    assert not folds


def test_growth_that_cannot_be_built_in_is_tried_again_after_as_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n, tried = 2000, []
    index = Intervals.build(np.arange(n), np.arange(n))

    def refuse(_: Intervals) -> None:
        tried.append(index.structure.filed)
        raise OptionError("no room")

    monkeypatch.setattr(Intervals, "_fold", refuse)
    for i in range(500):
        index.insert(i, None, n + i)
    assert index.structure.filed > 20 * n
    assert 1 <= len(tried) <= 6
    assert all(b >= 2 * a for a, b in pairwise(tried))
    index.check()


def test_what_was_deleted_can_be_inserted_again() -> None:
    index = Intervals.build([1, 1], [5, 5], [7, 7])
    for _ in range(3):
        index.delete(1, 5.0, 7)
        index.delete(Decimal(1), 5, 7)
        with pytest.raises(OptionError, match="not in the index"):
            index.delete(1, 5, 7)
        assert (len(index), index.stab(3).tolist()) == (0, [])
        assert index.structure.statistics()["entries"] == 0
        index.insert(1, 5, 7)
        index.insert(1, 5, 7)
        assert index.stab(3).tolist() == [7, 7]
        index.check()
    assert not index._added
    assert not index._removed


def test_an_index_of_nothing_takes_the_kind_of_its_first_end() -> None:
    for low, high, inside, other in (
        (1, 2.5, 2, "x"),
        ("a", "c", "b", 5),
        (dt.datetime(2024, 1, 1), None, dt.date(2025, 1, 1), 5),
    ):
        index = Intervals.build([], [])
        index.check()
        assert [index.stab(each).tolist() for each in (1, "a", None)] == [[], [], []]
        index.insert(None, None, 3)
        assert [index.stab(each).tolist() for each in (1, "a", None)] == [[3], [3], []]
        index.insert(low, high, 4)
        assert sorted(index.stab(inside).tolist()) == [3, 4]
        with pytest.raises(OptionError, match="but the intervals are of"):
            index.stab(other)
        with pytest.raises(OptionError, match="but the intervals are of"):
            index.insert(other, None, 3)
        index.check()


def test_nanoseconds_are_refused_by_an_index_of_microseconds() -> None:
    moment = np.datetime64("2024-01-01T00:00:00.000001")
    index = Intervals.build([moment], [None])
    index.insert(moment.astype("M8[ns]"), None, 5)
    before = everything(index)
    with pytest.raises(OptionError, match="whole number of microseconds"):
        index.insert(moment.astype("M8[ns]") + np.timedelta64(1, "ns"), None, 6)
    assert everything(index) == before
    assert sorted(index.stab(moment.astype("M8[ns]") + np.timedelta64(1, "ns")).tolist()) == [0, 5]
    fine = Intervals.build([moment.astype("M8[ns]") + np.timedelta64(1, "ns")], [None])
    fine.insert(moment, None, 6)
    assert fine.stab(moment).tolist() == [6]
    with pytest.raises(OptionError, match="whole number of nanoseconds in 64 bits"):
        fine.insert(dt.datetime(9999, 1, 1), None, 6)


# ------------------------------------------------------------------ bad input


def everything(index: Intervals) -> Any:
    """All that a refused call must leave alone."""
    arrays = index.structure.arrays()
    return (
        {name: array.tobytes() for name, array in arrays.items()},
        Counter(index._aside),
        len(index),
        index._kind,
        index._scale,
    )


@pytest.mark.parametrize(
    ("lows", "highs", "options", "message"),
    [
        ([1, 5], [2, 4], {}, r"interval 1, \[5, 4\] with id 1, is reversed"),
        ([1, 5.5], [2, 5], {}, r"interval 1, \[5.5, 5\] with id 1, is reversed"),
        (["b"], ["a"], {}, r"interval 0, \['b', 'a'\] with id 0, is reversed"),
        (
            np.array(["2024-01-02"], "M8[D]"),
            np.array(["2024-01-01"], "M8[D]"),
            {"closed": "right"},
            r"\(2024-01-02T00:00:00.000000, 2024-01-01T00:00:00.000000\] with id 0, is reversed",
        ),
        ([1, 2], [2, 2], {"closed": "left"}, r"interval 1, \[2, 2\) with id 1, is empty"),
        ([2], [2.0], {"closed": "right"}, "is empty"),
        ([2], [2.0], {"closed": "neither"}, "is empty"),
        ([0.0, NAN], [1, 1], {}, "interval 1 has the low end nan"),
        ([0.0], np.array([NAN]), {}, "interval 0 has the high end nan"),
        ([2**70, NAN], [2**70, 1], {}, "interval 1 has the low end nan"),
        ([INF], [None], {}, "interval 0 has the low end inf"),
        ([0], [-INF], {}, "interval 0 has the high end -inf"),
        ([2**70], [-INF], {}, "interval 0 has the high end -inf"),
        ([10**400], [None], {}, "within the range of floats"),
        ([Decimal("1e-500")], [1], {}, "within the range of floats"),
        ([1], [2, 3], {}, "1 lows and 2 highs"),
        ([1], ["a"], {}, "lows are numbers and highs are strings"),
        ([dt.date(2024, 1, 1)], [5], {}, "lows are times and highs are numbers"),
        ([1, "a"], [2, 3], {}, "lows mix strings with other values"),
        ([dt.date(2024, 1, 1), 5], [None, None], {}, "lows mix times with other values"),
        ([True], [True], {}, "lows are bool"),
        ([1, True], [1, 1], {}, "lows cannot be read: True is not a number"),
        ([b"a"], [b"b"], {}, "lows are binary"),
        ([[1]], [[2]], {}, "lows are list"),
        ([1], [object()], {}, "highs cannot be read"),
        ("ab", "cd", {}, "lows must be a list or an array, not str"),
        (5, 6, {}, "lows cannot be read"),
        (np.array([[1]]), np.array([[2]]), {}, r"one-dimensional, not of shape \(1, 1\)"),
        (np.array([1 + 2j]), [3], {}, "lows cannot be read"),
        (np.array([1], "m8[s]"), [None], {}, "lows are duration"),
        (["\ud800"], ["a"], {}, "lows cannot be read"),
        ([np.datetime64(1, "ps")], [None], {}, "finer than nanoseconds"),
        (np.array(["9999-01-01"], "M8[s]"), np.array([5], "M8[ns]"), {}, "nanoseconds in 64 bits"),
        ([1], [2], {"closed": "open"}, "closed is 'open': choose from both, left, right, neither"),
        ([1], [2], {"closed": None}, "closed is None"),
        ([1], [2], {"ids": [-1]}, "id -1 of interval 0 is negative"),
        ([1], [2], {"ids": [2**31]}, "fit into int32"),
        ([1], [2], {"ids": [0.5]}, "whole numbers"),
        ([1], [2], {"ids": [1, 2]}, "1 intervals and 2 ids"),
        ([1], [2], {"ids": [[1]]}, "one-dimensional"),
    ],
)
def test_bad_columns(lows: Any, highs: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Intervals.build(lows, highs, **options)


BAD_CALLS: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((5, 4, 1), {}, r"the interval, \[5, 4\] with id 1, is reversed"),
    ((5, 5, 1), {"closed": "left"}, r"the interval, \[5, 5\) with id 1, is empty"),
    ((NAN, 5, 1), {}, "low end nan"),
    ((5, NAN, 1), {}, "high end nan"),
    ((INF, None, 1), {}, "low end inf"),
    ((None, -INF, 1), {}, "high end -inf"),
    (("a", "b", 1), {}, "low ends are strings, but the intervals are of numbers"),
    ((1, dt.date(2024, 1, 1), 1), {}, "high ends are times, but the intervals are of numbers"),
    ((1, 2, -1), {}, "id -1"),
    ((1, 2, 2**31), {}, "id 2147483648"),
    ((1, 2, 1.5), {}, "1.5 is not a whole number"),
    ((1, 2, None), {}, "None is not a whole number"),
    ((1, 2, 1), {"closed": "half"}, "closed is 'half'"),
    (([1], 2, 1), {}, "low ends are list"),
]


@pytest.mark.parametrize("structure", STRUCTURES)
def test_refused_changes_change_nothing(structure: str) -> None:
    index = Intervals.build([1, 2, None], [4, 6, 3], [1, 2, 1], structure=structure)
    index.insert(1.5, 9, 3)
    before = everything(index)
    for arguments, options, message in BAD_CALLS:
        for call in (index.insert, index.delete):
            with pytest.raises(OptionError, match=message):
                call(*arguments, **options)
            assert everything(index) == before
    absent = [(1, 4, 2), (1, 6, 1), (2, 4, 1), (1, None, 1), (1.5, 9, 2), (1.5, 8, 3), (0, 1, 1)]
    for arguments in absent:
        with pytest.raises(OptionError, match="not in the index: delete exactly what was inserted"):
            index.delete(*arguments)
        assert everything(index) == before
    with pytest.raises(OptionError, match=r"interval \[1, 4\) with id 1 is not in the index"):
        index.delete(1, 4, 1, closed="left")
    with pytest.raises(OptionError, match=r"interval \(-inf, inf\) with id 1 is not"):
        index.delete(None, None, 1, closed="neither")
    assert everything(index) == before
    index.check()
    assert found(index, [3]) == [[1, 1, 2, 3]]


def test_parts_of_an_interval_cannot_be_deleted() -> None:
    """Even where the id covers them: a structure alone could not tell."""
    index = Intervals.build([1, 5, 1], [5, 9, 9], [3, 3, 4], closed="left")
    with pytest.raises(OptionError, match="not in the index"):
        index.delete(1, 9, 3)
    with pytest.raises(OptionError, match="not in the index"):
        index.delete(1, 5, 4)
    index.check()
    assert found(index, [1, 5]) == [[3, 4], [3, 4]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a"], "values are strings, but the intervals are of numbers"),
        ([dt.date(2024, 1, 1)], "values are times"),
        ([True], "values are bool"),
        ([1, "a"], "mix strings"),
        (5, "cannot be read"),
        ([[1]], "values are list"),
        (np.ones((2, 2)), "one-dimensional"),
        (np.array([object()]), "cannot be read"),
    ],
)
def test_bad_values(values: Any, message: str) -> None:
    index = Intervals.build([1], [2])
    before = everything(index)
    with pytest.raises(OptionError, match=message):
        index.stab_batch(values)
    assert everything(index) == before


def test_values_outside_of_all_ends_are_no_error() -> None:
    index = Intervals.build([10, 20], [15, 30])
    values = [-(2**63), 9, 31, 2**63 - 1, 2**200, -(10**400), -1e308, INF, -INF, NAN]
    assert found(index, values) == [[]] * len(values)
    assert found(index, np.array([-1e308, 1e308, 9.999])) == [[], [], []]
    strings = Intervals.build(["b"], ["c"])
    assert found(strings, ["", "\U0010ffff"]) == [[], []]


def test_a_structure_that_would_be_too_large_is_refused() -> None:
    ends = np.arange(200_000)
    with pytest.raises(OptionError, match="bytes"):
        Intervals.build(ends, ends + 100_000, structure="sci")


# ------------------------------------------------------------------ looking inside


def test_half_open_intervals_need_one_cell_per_end() -> None:
    ends = np.arange(100)
    for closed, cells in (("left", 102), ("right", 102), ("both", 201), ("neither", 201)):
        index = Intervals.build(ends, ends + 1, closed=closed)
        assert index.statistics()["cells"] <= cells
        assert index.statistics()["ends"] == 101
        index.check()
    assert Intervals.build(ends, ends + 1, closed="left").statistics()["cells"] == 102
    assert Intervals.build([None] * 3, [None] * 3).statistics()["cells"] == 1


def test_statistics_and_bytes() -> None:
    index = Intervals.build(np.arange(1000), np.arange(1000) + 3.5)
    figures = index.statistics()
    assert figures["intervals"] == len(index) == 1000
    assert figures["kind"] == "numbers"
    assert figures["structure"]["name"] == "cei"
    assert figures["bytes"] == index.nbytes > index.structure.nbytes + 12 * 1000
    assert repr(index) == "<bittern.Intervals: 1,000 intervals of numbers>"
    index.insert(0.25, 0.75, 5)
    assert index.statistics()["aside"] == 1
    before = index.nbytes
    index.stab(0.5)
    assert index.nbytes > before


def test_check_notices_damage() -> None:
    def fresh() -> Intervals:
        index = Intervals.build([1, 2, 3], [4, 5, 6.5])
        index.insert(0.5, 9, 9)
        index.stab(1)
        return index

    def lost(index: Intervals) -> None:
        index._size += 1

    def miscounted(index: Intervals) -> None:
        index._n_aside += 1

    def unknown(index: Intervals) -> None:
        index._layer.ids = index._layer.ids + np.int32(1)

    def shifted(index: Intervals) -> None:
        index._layer.highs = index._layer.highs + np.int32(1)

    def jumped(index: Intervals) -> None:
        index._layer.cells[3] += 5

    def begun(index: Intervals) -> None:
        index._layer.cells += 1

    def cut(index: Intervals) -> None:
        index._layer.cells = index._layer.cells[:-1]

    def moved(index: Intervals) -> None:
        index._layer.axis.constants[0] = 3

    def aside(index: Intervals) -> None:
        index._aside_layer.ids = index._aside_layer.ids + np.int32(1)  # type: ignore[union-attr]

    def structure(index: Intervals) -> None:
        index._layer.index.lists.items[0] = -1  # type: ignore[attr-defined]

    for damage, message in (
        (lost, "number of intervals is off"),
        (miscounted, "number of intervals aside"),
        (unknown, "other ids"),
        (shifted, "too many or too few"),
        (jumped, "ascend"),
        (begun, "begin at 0"),
        (cut, "one cell per place"),
        (moved, "not at its place"),
        (aside, "other ids"),
        (structure, "ascending"),
    ):
        index = fresh()
        index.check()
        damage(index)
        with pytest.raises(AssertionError, match=message):
            index.check()


def test_searching_from_many_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    index = Intervals.build(np.arange(500), np.arange(500) + 10)
    index.insert(0.5, 400.5, 900)
    values = np.arange(1000) / 2
    right = [[*range(max(0, math.ceil(v) - 10), min(500, int(v) + 1))] for v in values]
    right = [[*row, 900] if 1 <= i <= 801 else row for i, row in enumerate(right)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: found(index, values), range(8)))
    assert answers == [right] * 8
