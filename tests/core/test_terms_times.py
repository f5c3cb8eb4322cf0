"""Dates, timestamps and intervals without Spark: Python's calendar, literals, failures, types."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from bittern.language.scalars import read_term
from bittern.terms.nodes import Attribute, Call, Constant
from bittern.terms.scope import MeaninglessError, Scope, evaluate, folded
from bittern.terms.times.interval_literals import interval_literal, print_months
from bittern.terms.times.patterns import parsed, written
from bittern.terms.times.zones import there_at, utc_of, zone_of
from bittern.terms.types import DAY_TIME, DAYS, TIMESTAMP, YEAR_MONTH

RANDOM = np.random.default_rng(7)
FIRST, LAST = dt.date(1, 1, 1), dt.date(9999, 12, 31)
EPOCH = dt.datetime(1970, 1, 1)


def constant(value, kind=None):
    is_int = isinstance(value, int) and not isinstance(value, bool)
    return Constant(pa.scalar(value, pa.int32() if is_int else kind))


def call(name, *arguments):
    return Call(
        name, tuple(each if hasattr(each, "__slots__") else constant(each) for each in arguments)
    )


@pytest.fixture(scope="module")
def days():
    """Days of all years, some of them months' ends."""
    epoch = dt.date(1970, 1, 1)
    numbers = RANDOM.integers((FIRST - epoch).days, (LAST - epoch).days, 3000, endpoint=True)
    ends = [dt.date(y, m, 28) + dt.timedelta(1) for y in range(1890, 2110, 3) for m in (2, 3, 12)]
    return [epoch + dt.timedelta(int(each)) for each in numbers] + ends + [FIRST, LAST, None]


def values(term, **columns):
    arrays = {name: pa.array(column) for name, column in columns.items()}
    size = max(map(len, arrays.values()))
    array, failures = evaluate(term, arrays, size)
    assert not failures
    return array.to_pylist()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("year", lambda day: day.year),
        ("month", lambda day: day.month),
        ("quarter", lambda day: (day.month + 2) // 3),
        ("day", lambda day: day.day),
        ("dayofweek", lambda day: day.isoweekday() % 7 + 1),
        ("weekday", lambda day: day.weekday()),
        ("dayofyear", lambda day: day.timetuple().tm_yday),
        ("weekofyear", lambda day: day.isocalendar().week),
        ("unix_date", lambda day: (day - EPOCH.date()).days),
    ],
)
def test_fields_are_those_of_python(name, expected, days):
    found = values(call(name, Attribute("d")), d=days)
    assert found == [None if day is None else expected(day) for day in days]


def test_columns_and_constants_agree(days):
    """Each row as a constant gives what it gives in a column."""
    some = [*days[:40], None]
    column = pa.array(some, pa.date32())
    for name, more in [("last_day", ()), ("add_months", (5,)), ("date_add", (5,)), ("hour", ())]:
        term = call(name, Attribute("d"), *more)
        whole, _ = evaluate(term, {"d": column}, len(column))
        ones = [folded(call(name, Constant(each), *more)) for each in column]
        assert [each.as_py() for each in ones] == whole.to_pylist()
        assert {each.type for each in ones} == {whole.type}


def test_no_unit_is_one_for_no_row():
    for text in ("trunc(d, 'x')", "date_trunc('x', d)", "trunc(DATE '2024-02-29', u)"):
        found, _ = evaluate(read_term(text), {"d": pa.array([FIRST] * 3), "u": pa.nulls(3)}, 3)
        assert found.to_pylist() == [None] * 3


def test_months_are_added_to_the_last_day():
    dates = [dt.date(2024, 1, 31), dt.date(2023, 1, 31), dt.date(2024, 2, 29), dt.date(2024, 12, 1)]
    assert values(call("add_months", Attribute("d"), 1), d=dates) == [
        dt.date(2024, 2, 29), dt.date(2023, 2, 28), dt.date(2024, 3, 29), dt.date(2025, 1, 1),
    ]  # fmt: skip


def test_patterns_read_what_they_write():
    micros = RANDOM.integers(-62135596800 * 10**6, 253402300799 * 10**6, 2000)
    for pattern in ("yyyy-MM-dd HH:mm:ss.SSSSSS", "d MMMM yyyy hh:mm:ss.SSSSSS a", "yyyyDDDHHmmss"):
        back = parsed(pattern, written(pattern, micros))
        size = 1 if "S" in pattern else 10**6
        assert back.fits.all()
        assert (back.micros == micros // size * size).all()


def test_patterns_that_java_refuses_are_refused():
    for pattern in ("W", "yyyy {", "'x", "]", "HHH", "u", "b", "yyyyyyy", "M" * 2000):
        with pytest.raises(MeaninglessError):
            written(pattern, np.zeros(1, np.int64))
    for pattern in ("E", "Q", "yyyy yy", "dM", "yyyyMMddSSS", "H h", "X x"):
        with pytest.raises(MeaninglessError):
            parsed(pattern, pa.array(["1"]))


def test_a_pattern_is_a_constant():
    with pytest.raises(MeaninglessError, match="constant"):
        evaluate(
            call("date_format", Attribute("t"), Attribute("p")),
            {"t": pa.array([EPOCH]), "p": pa.array(["y"])},
            1,
        )


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/New_York", "Pacific/Apia", "UTC"])
def test_zones_are_those_of_python(name):
    micros = RANDOM.integers(-2_200_000_000, 20_000_000_000, 1000) * 10**6
    zone, known = zone_of(name), ZoneInfo(name)
    utc = [EPOCH.replace(tzinfo=dt.UTC) + dt.timedelta(microseconds=int(each)) for each in micros]
    local = [each.astimezone(known).replace(tzinfo=None) for each in utc]
    assert (there_at(zone, micros).astype("M8[us]") == np.array(local, "M8[us]")).all()
    back = [
        each.replace(tzinfo=known).astimezone(dt.UTC).replace(tzinfo=None)
        for each in (EPOCH + dt.timedelta(microseconds=int(each)) for each in micros)
    ]
    assert (utc_of(zone, micros).astype("M8[us]") == np.array(back, "M8[us]")).all()


def test_names_of_zones():
    known = {"+8": 8 * 3600, "-08:30": -30600, "UTC+8:3": 28980, "GMT": 0, "Z": 0, "EST": -18000}
    assert {name: zone_of(name) for name in known} == known
    for name in ("", "nowhere", "+19", "+08:60", "UTC+", "+8:30:0", "localtime", "../UTC", "zulu"):
        assert zone_of(name) is None


def test_a_zone_that_is_none_fails_its_rows_alone():
    moments = pa.array([0, 0, None], pa.int64()).view(TIMESTAMP)
    columns = {"t": moments, "z": pa.array(["nowhere", "+01:00", "nowhere"])}
    array, failures = evaluate(
        call("from_utc_timestamp", Attribute("t"), Attribute("z")), columns, 3
    )
    assert array.view(pa.int64()).to_pylist() == [None, 3600 * 10**6, None]
    assert [failure.rows.tolist() for failure in failures] == [[0]]


@pytest.mark.parametrize(
    ("pieces", "kind", "number"),
    [
        ([("1", "DAY")], DAYS, 86_400),
        ([("-3", "weeks")], DAYS, -21 * 86_400),
        ([("3", "DAYS"), ("2", "HOURS")], DAY_TIME, 74 * 3600 * 10**6),
        ([("interval 3 days -2 hours", "")], DAY_TIME, 70 * 3600 * 10**6),
        ([("1 02:03:04.5", "DAY TO SECOND")], DAY_TIME, 93_784_500_000),
        ([("-1 02", "day  to hour")], DAY_TIME, -26 * 3600 * 10**6),
        ([("100:04.000001", "MINUTE TO SECOND")], DAY_TIME, 6_004_000_001),
        ([("- .5", "second")], DAY_TIME, -500_000),
        ([("1.1234567", "seconds")], DAY_TIME, 1_123_456),
        ([("1-2", "YEAR TO MONTH")], YEAR_MONTH, 14),
        ([("-1 year 2 months", "")], YEAR_MONTH, -10),
    ],
)
def test_literals_of_intervals(pieces, kind, number):
    scalar = interval_literal(pieces)
    assert scalar.type == kind
    found = scalar.as_py().months if kind == YEAR_MONTH else scalar.cast(pa.int64()).as_py()
    assert found == number
    if kind != DAY_TIME:
        text, unit = print_months(scalar).removeprefix("INTERVAL '").split("' ")
        assert interval_literal([(text, unit)]) == scalar


@pytest.mark.parametrize(
    "pieces",
    [
        [("", "DAY")],
        [("5", "")],
        [("abc", "")],
        [("1.5", "HOUR")],
        [("1 month 1 day", "")],
        [("1-12", "YEAR TO MONTH")],
        [("1 24:00", "DAY TO MINUTE")],
        [("1", "DAY TO SECOND")],
        [("1", "SECOND TO DAY")],
        [("106751992", "DAY")],
        [("200000000", "YEAR")],
        [("1", "fortnight")],
        [("1.1234567890", "second")],
    ],
)
def test_what_is_no_interval(pieces):
    with pytest.raises(ValueError, match=r"interval|does not go|too many|years and months"):
        interval_literal(pieces)


def test_units_are_words():
    t = Constant(pa.scalar(0, pa.int64()).cast(TIMESTAMP))
    moved = folded(call("timestampadd", Attribute("MONTH"), 13, t))
    assert moved.as_py() == dt.datetime(1971, 2, 1, tzinfo=dt.UTC)
    assert folded(call("timestampdiff", Attribute("week"), t, Constant(moved))).as_py() == 56
    assert folded(call("datediff", Attribute("year"), Constant(moved), t)).as_py() == -1
    with pytest.raises(ValueError, match="unit"):
        folded(call("timestampadd", Attribute("fortnight"), 1, t))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("year", (5,)), ("unix_date", ("2024-01-01",)), ("date_add", (dt.date(1, 1, 1), 1.5)),
     ("timestamp_millis", (1.5,)), ("extract", ("epoch", dt.date(1, 1, 1))), ("last_day", (True,))],
)  # fmt: skip
def test_types_without_meaning(name, arguments):
    with pytest.raises(ValueError, match=r"\w"):
        folded(call(name, *arguments))


def test_empty_columns_and_nulls_have_types():
    empty = {"d": pa.array([], pa.date32())}
    for name, more, kind in [
        ("year", (), pa.int32()),
        ("date_format", ("yyyy",), pa.string()),
        ("from_utc_timestamp", ("Europe/Berlin",), TIMESTAMP),
        ("months_between", (dt.date(1, 1, 1),), pa.float64()),
    ]:
        array, failures = evaluate(call(name, Attribute("d"), *more), empty, 0)
        assert (array.type, len(array), failures) == (kind, 0, [])
        assert folded(call(name, constant(None, pa.null()), *more)).type == kind


@pytest.mark.parametrize("micros", [1, -1, 9_223_372_036_854_775, -9_223_372_036_854_775])
def test_intervals_of_all_parts_read_back(micros):
    scalar = pa.scalar(pa.MonthDayNano([-14, 3, micros * 1000]), YEAR_MONTH)
    assert folded(read_term(print_months(scalar))) == scalar


def test_intervals_of_months_and_days_have_no_order():
    both = Constant(pa.scalar(pa.MonthDayNano([1, 1, 0]), YEAR_MONTH))
    months = Constant(pa.scalar(pa.MonthDayNano([13, 0, 0]), YEAR_MONTH))
    assert Scope({}, 1).value(call(">", months, months)).as_py() is False
    with pytest.raises(MeaninglessError, match="no order"):
        Scope({}, 1).value(call("<", both, months))
