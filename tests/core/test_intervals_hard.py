"""Hard cases of ``bittern.Intervals``: odd columns, wrong parameters, long lives."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bittern import Intervals
from bittern.engine.intervals import CLOSED
from bittern.errors import OptionError, brief
from bittern.model.numbers import exact
from bittern.stabbing.registry import STRUCTURES

INF = math.inf


# ------------------------------------------------------------------ columns of intervals


def test_masked_values_are_null():
    masked = np.ma.array([1, 2], mask=[False, True])
    assert Intervals.build(masked, [3, 4]).stab(0).tolist() == [1]
    assert Intervals.build([1], [3]).stab_batch(masked)[0].tolist() == [0, 1, 1]


@pytest.mark.parametrize("dtype", ["M8[10s]", "M8[25h]", "M8[2ms]"])
def test_times_in_steps_of_several_units(dtype):
    low, high = np.array([10], dtype), np.array([100], dtype)
    middle = np.array([75], dtype).astype("M8[ms]")
    assert Intervals.build(low, high).stab_batch(middle)[1].tolist() == [0]
    assert Intervals.build(low.astype("M8[ms]"), high.astype("M8[ms]")).stab_batch(
        np.array([75], dtype)
    )[1].tolist() == [0]


@pytest.mark.parametrize("far", [np.datetime64(2**62, "s"), np.datetime64(300_000, "Y")])
def test_a_time_beyond_64_bits_of_microseconds_is_late(far):
    assert Intervals.build([dt.datetime(2020, 1, 1)], [None]).stab(far).tolist() == [0]


def test_infinite_decimals_are_infinite():
    index = Intervals.build([Decimal(1), Decimal("-Infinity")], [Decimal("Infinity"), Decimal(5)])
    assert sorted(index.stab(3).tolist()) == [0, 1]
    assert index.stab(Decimal("Infinity")).tolist() == [0]


def test_the_missing_value_of_pandas_is_null():
    assert Intervals.build([1, pd.NA], [3, 4]).stab(0).tolist() == [1]
    assert Intervals.build([1], [3]).stab(pd.NA).tolist() == []


def test_unsigned_polars_series():
    big = pl.Series([1, 2**63 + 5], dtype=pl.UInt64)
    assert Intervals.build(big, big).stab_batch(big)[1].tolist() == [0, 1]


def test_a_frame_is_no_column():
    with pytest.raises(OptionError, match="one-dimensional"):
        Intervals.build(pd.DataFrame({"low": [1]}), pd.DataFrame({"high": [2]}))


def test_an_end_of_too_many_digits_is_refused_in_words():
    with pytest.raises(OptionError, match="low end") as refused:
        Intervals.build([10**5_000], [None])
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (pl.Series([1, None]), 0),
        (pl.Series([1.5, None]), 0),
        (pl.Series(["b", None]), "a"),
        (pl.Series([dt.date(2020, 1, 1), None]), dt.date(2019, 1, 1)),
        (pl.Series([dt.datetime(2020, 1, 1), None]), np.datetime64("2019")),
        (pl.Series([Decimal("1.10"), None]), Decimal("1.09")),
        (pd.Series([1, None], dtype="Int64"), 0),
        (pd.Series(["b", None], dtype="string"), "a"),
        (pd.Series([pd.Timestamp("2020"), pd.NaT]), dt.datetime(2019, 1, 1)),
    ],
)
def test_nulls_of_every_library_mean_no_end(column, value):
    assert Intervals.build(column, [None, None]).stab(value).tolist() == [1]


def test_missing_values_in_lists_of_any_kind():
    masked = np.ma.masked
    assert Intervals.build([1, masked], [3, 4]).stab(0).tolist() == [1]
    assert Intervals.build(["b", pd.NA], ["c", masked]).stab("a").tolist() == [1]
    day = dt.date(2020, 1, 1)
    assert Intervals.build([day, pd.NA], [masked, day]).stab(day).tolist() == [0, 1]
    objects = np.array([1, pd.NA, 2.5], object)
    assert Intervals.build([0], [2]).stab_batch(objects)[0].tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(
    "data",
    [
        np.array([5, 9], np.uint64),
        np.array([5.0, math.nan]),
        np.array([5, object()], object),
        np.array([5, 2**62], "M8[Y]"),
        np.array(["5", "9"]),
    ],
    ids=lambda data: str(data.dtype),
)
def test_what_is_under_a_mask_does_not_matter(data):
    column = np.ma.array(data, mask=[False, True])
    index = Intervals.build(column, column)
    assert index.stab_batch(data[:1])[1].tolist() == [0, 1]
    assert Intervals.build(data[:1], data[:1]).stab_batch(column)[0].tolist() == [0, 1, 1]
    open_ = np.ma.array(data[:1])
    assert Intervals.build(open_, open_).stab_batch(open_)[1].tolist() == [0]


@pytest.mark.parametrize("dtype", ["M8[s]", "M8[ns]", "M8[W]", "u8", "U2"])
def test_arrays_of_the_other_byte_order(dtype):
    ends = np.array([3, 7]).astype(dtype)
    swapped = ends.astype(ends.dtype.newbyteorder(">"))
    index = Intervals.build(swapped, swapped)
    assert index.stab_batch(ends)[1].tolist() == index.stab_batch(swapped)[1].tolist() == [0, 1]


def test_times_at_the_edges_of_what_a_unit_holds():
    year = 365.2425 * 86_400
    last = 2**63 // (366 * 86_400)
    for years in (300_000, -300_000, last, -last):
        column = np.array([years, "NaT"], "M8[Y]")
        seconds = column.astype("M8[s]")
        assert abs(int(seconds[0].astype(np.int64)) / year - years) < abs(years) * 0.001 + 1
        for values in (column, seconds, list(column)):
            offsets = Intervals.build([np.datetime64(0, "s")], [None]).stab_batch(values)[0]
            assert offsets.tolist() == [0, int(years > 0), int(years > 0)]
    for unit, most in (("Y", last), ("M", 2**63 // (31 * 86_400)), ("3h", 2**63 // 10_800)):
        for ticks in (most + 1, -most - 1, 2**63 - 1):
            far = np.array([0, ticks], f"M8[{unit}]")
            for values in (far, list(far)):
                with pytest.raises(OptionError, match="not fit into 64 bits of s"):
                    Intervals.build(values, [None, None])
    with pytest.raises(OptionError, match="whole number of microseconds in 64 bits"):
        Intervals.build([np.datetime64(2**62, "s")], [None])
    with pytest.raises(OptionError, match="too far apart"):
        Intervals.build([np.datetime64(2**62, "s"), dt.datetime(2020, 1, 1, microsecond=1)], [1, 2])
    with pytest.raises(OptionError, match="finer than nanoseconds"):
        Intervals.build(np.array([1], "M8[ps]"), [None])
    assert len(Intervals.build(np.array(["NaT"], "M8"), [None])) == 1


def test_a_list_of_far_and_near_times_takes_a_unit_that_holds_all():
    day = dt.date(2020, 1, 1)
    values = [np.datetime64(2**62, "s"), day, None, np.datetime64(-(10**15), "ms")]
    index = Intervals.build([day, None], [None, day])
    offsets, ids = index.stab_batch(values)
    assert offsets.tolist() == [0, 1, 3, 3, 4]
    assert ids.tolist() == [0, *sorted(ids[1:3], reverse=bool(ids[1])), 1]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (pl.DataFrame({"low": [1]}), "one-dimensional"),
        (pa.table({"low": [1]}), "one-dimensional"),
        (np.int64(5), "one-dimensional"),
        ({"low": 1}, "not dict"),
        ({1}, "not set"),
        (pl.Series([object()]), "lows are fixed_size_binary"),
        (pl.Series([1], dtype=pl.Int128), "lows cannot be read"),
        ([Decimal("sNaN")], "lows cannot be read"),
        ([Decimal("NaN")], "interval 0 has the low end nan"),
        ([1, Decimal("Infinity")], "interval 1 has the low end inf"),
        (pd.Series([1, None]), "interval 1 has the low end nan"),
    ],
)
def test_columns_that_are_none(columns, said):
    with pytest.raises(OptionError, match=said):
        Intervals.build(columns, [None] * len(columns) if hasattr(columns, "__len__") else [None])


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (10**5_000, 5),
        (Decimal(10) ** 300 + Decimal("0.5"), 5),
        (10**300, 5),
        ("b" * 5_000, "a" * 5_000),
        (["x" * 5_000], None),
    ],
    ids=["digits", "decimal", "float", "strings", "list"],
)
def test_messages_are_short(low, high):
    wrong = [lambda: Intervals.build([low], [high]), lambda: index.insert(low, high, 1)]
    index = Intervals.build([], [])
    index.insert(None, None, 3)
    for each in (*wrong, lambda: index.delete(high, None, 1)):
        with pytest.raises(OptionError) as refused:
            each()
        assert len(str(refused.value)) < 300


# ------------------------------------------------------------------ parameters


@pytest.mark.parametrize(
    ("structure", "parameters", "said"),
    [
        ("cei", {"segmnt": 4}, "segmnt"),
        ("dlist", {"segment": 4}, "segment"),
        ("cei", {"memory": 10_000}, "memory"),
        ("auto", {"segment": 4}, "segment"),
        ("auto", {"memory": "much"}, "memory"),
        ("auto", {"memory": 10**6, "longest": 4}, "'longest': it has only memory"),
        ("cei", {"segment": "x"}, "segment"),
        ("lci", {"longest": "x"}, "longest"),
        ("hybrid", {"minimum": "x"}, "minimum"),
        ("is-list", {"branching": "x"}, "branching"),
        (["cei"], {}, "stabbing index"),
    ],
)
def test_wrong_parameters_are_said_in_words(structure, parameters, said):
    with pytest.raises(OptionError, match=said):
        Intervals.build([1], [2], structure=structure, **parameters)


# ------------------------------------------------------------------ long lives


def test_an_insertion_does_not_count_those_before_it():
    """Or n insertions with new ends take n * n steps."""

    class Watched(Counter):
        def values(self):
            raise AssertionError("everything aside is counted")

    index = Intervals.build(range(1_000), range(1, 1_001))
    index._aside = Watched()
    for i in range(3):
        index.insert(i + 0.25, i + 0.75, i)
    assert len(index) == 1_003


@pytest.mark.parametrize("number", [True, False, np.True_, "1", None, 1.0])
def test_an_id_is_a_whole_number(number):
    index = Intervals.build([1], [2])
    for change in (index.insert, index.delete):
        with pytest.raises(OptionError, match=f"{brief(number)} is not a whole number"):
            change(1, 2, number)
    with pytest.raises(OptionError, match="ids must be whole numbers"):
        Intervals.build([1], [2], [number])
    with pytest.raises(OptionError, match=r"id 1.00000e\+5000 is not in 0 to"):
        index.insert(1, 2, 10**5_000)
    with pytest.raises(OptionError, match="ids are masked"):
        Intervals.build([1], [2], np.ma.array([1], mask=[True]))
    index.insert(1, 2, np.int8(7))
    assert sorted(index.stab(1).tolist()) == [0, 7]


def test_messages_about_one_interval_have_no_row():
    index = Intervals.build([1], [2])
    with pytest.raises(OptionError, match=r"^the interval has the low end nan"):
        index.insert(math.nan, 2, 1)
    times = Intervals.build(np.array([1], "M8[us]"), [None])
    with pytest.raises(OptionError, match=r"^the high end of the interval is not a whole number"):
        times.delete(None, np.datetime64(1, "ns"), 1)


@pytest.mark.parametrize("structure", ["cei", "dlist", "interval-tree", "interval", "auto"])
def test_deletions_give_memory_back(structure):
    n = 2_000
    index = Intervals.build(range(n), range(1, n + 1), structure=structure)
    whole, ends = index.nbytes, index.statistics()["ends"]
    for i in range(n - 100):
        index.delete(i, i + 1, i)
    assert index.statistics()["ends"] < ends / 5
    assert index.nbytes < whole / 4
    assert len(index._removed) <= 64 + 200
    assert sorted(index.stab(n - 50).tolist()) == [n - 51, n - 50]
    index.check()


@pytest.mark.parametrize("structure", ["cei", "auto"])
def test_changes_that_undo_each_other_do_not_pile_up(structure, monkeypatch):
    index = Intervals.build([1, 2], [3, 4], structure=structure)
    folds, fold = [], index._fold
    monkeypatch.setattr(index, "_fold", lambda: (folds.append(index._changes), fold()))
    for _ in range(500):
        index.insert(1, 4, 7)
        index.delete(1, 4, 7)
    assert folds == [66] * (1_000 // 66)
    index.check()


def insert_all(index, intervals):
    for interval in intervals:
        index.insert(*interval)
        index.stab(1)


def test_an_index_that_outgrew_its_memory_goes_on_with_known_ends(monkeypatch):
    lows = np.arange(300)
    small = Intervals.build(lows, lows + 1, structure="auto", memory=10**9)
    limit = int(1.5 * small.structure.nbytes)
    index = Intervals.build(lows, lows + 1, structure="auto", memory=limit)
    tried, fold = [], index._fold
    monkeypatch.setattr(index, "_fold", lambda: (tried.append(len(index)), fold()))
    new = [(i % 300 + 0.25, i % 300 + 0.5 + i / 10**5, i) for i in range(2_000)]
    with pytest.raises(OptionError, match="fits into"):
        insert_all(index, new)
    held = len(index)
    with pytest.raises(OptionError, match="fits into"):
        index.insert(0.125, 7, 1)
    assert len(index) == held
    tried.clear()
    for i in range(3_000):
        index.insert(5, 6, i)
    assert len(index) == held + 3_000
    assert 1 <= len(tried) < 20
    assert set(index.stab(5.75).tolist()) >= set(range(3_000))
    index.check()
    for i in range(3_000):
        index.delete(5, 6, i)
    for interval in new[: held - 300]:
        index.delete(*interval)
    index.check()
    index.insert(0.125, 7, 1)
    assert len(index) == 301


NUMBERS = [0, -0.0, 0.1, Decimal("0.1"), 0.1 + 0.2, 2**53, 2**53 + 1, 2.0**53, 2**63 - 1, -(2**63)]
NUMBERS += [2**63, 2**64 - 1, 2.0**63, 1e300, -1e300, 5e-324, 10**30, 1e30, Decimal("1e30"), 1.5]
STRINGS = [
    "",
    "a",
    "a\0",
    "a\0\0",
    "b",
    "ab",
    "é",
    "\uffff",
    "\U00010000",
    "\U0010ffff",
    "~",
    "\x7f",
]
TIMES = [dt.datetime(2020, 1, day, microsecond=us) for day in (1, 2) for us in (0, 1, 999_999)]
TIMES += [np.datetime64("2020-01-01T12", "s"), pd.Timestamp("2020-01-02"), dt.date(2020, 1, 2)]
TIMES += [dt.datetime(2020, 1, 1, 5, tzinfo=dt.timezone(dt.timedelta(hours=5)))]


def order(value):
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dt.date | np.datetime64):
        moment = pd.Timestamp(value)
        return (moment if moment.tzinfo else moment.tz_localize("UTC")).as_unit("ns").value
    return exact(value)


def is_in(value, interval):
    low, high, closed, _ = interval
    left, right = CLOSED[closed]
    if value is None:
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return low is None if value < 0 else high is None
    at = order(value)
    above = low is None or order(low) < at or (left and order(low) == at)
    return above and (high is None or at < order(high) or (right and order(high) == at))


@pytest.mark.parametrize("structure", [*STRUCTURES, "auto"])
def test_a_long_life_with_refusals_agrees_with_brute_force(structure):
    rng = random.Random(structure)
    for pool in (NUMBERS, STRINGS, TIMES):
        # Half of the ends come from the middle of others: they are new, and kept aside.
        spread = [*pool, *(rng.uniform(-9, 9) for _ in range(20))] if pool is NUMBERS else pool

        def drawn(spread=spread):
            while True:
                low, high = (rng.choice([*spread, None]) for _ in range(2))
                closed = rng.choice(list(CLOSED))
                if low is None or high is None or order(low) < order(high):
                    return low, high, closed, rng.randrange(9)

        held = [(*drawn()[:2], "both", i % 9) for i in range(25)]
        lows, highs = [each[0] for each in held], [each[1] for each in held]
        index = Intervals.build(lows, highs, [each[3] for each in held], structure=structure)
        wrong = {
            "reversed": lambda index=index, pool=pool: index.insert(
                max(pool, key=order), min(pool, key=order), 1
            ),
            "negative": lambda index=index: index.insert(None, None, -1),
            "bits": lambda index=index: index.insert(None, None, 2**31),
            "closed": lambda index=index: index.insert(None, None, 1, closed="open"),
            "missing": lambda index=index: index.delete(None, None, 77),
            "kind": lambda index=index, pool=pool: index.insert(
                1 if pool is not NUMBERS else "", None, 1
            ),
            "value": lambda index=index: index.stab_batch([object()]),
        }
        for turn in range(120):
            change = rng.random()
            if change < 0.5:
                held.append(drawn())
                low, high, closed, number = held[-1]
                index.insert(low, high, number, closed=closed)
            elif change < 0.8:
                low, high, closed, number = held.pop(rng.randrange(len(held)))
                index.delete(low, high, number, closed=closed)
            else:
                before = index.statistics()
                with pytest.raises(OptionError):
                    rng.choice(list(wrong.values()))()
                assert index.statistics() == before
            if turn % 12 == 0:
                values = [*spread, None, *([INF, -INF, math.nan] if pool is NUMBERS else [])]
                offsets, ids = index.stab_batch(values)
                for i, value in enumerate(values):
                    expected = sorted(each[3] for each in held if is_in(value, each))
                    assert sorted(ids[offsets[i] : offsets[i + 1]].tolist()) == expected, value
        assert len(index) == len(held)
        index.check()
