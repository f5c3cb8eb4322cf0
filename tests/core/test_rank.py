"""Rank space: constants as columns, and the cell of every kind of value, against exact fractions.

Everything about numbers is compared with ``Fraction``; through the façade every operator on every
constant is a subscription, so one wrong cell shows as a wrong list of matches.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import strategies
from answers import build, engine, expected
from bittern.errors import SnapshotError
from bittern.language.literals import number_value, time_value
from bittern.model.numbers import (
    INT64_MAX,
    INT64_MIN,
    Number,
    NumberColumns,
    cells_of_doubles,
    exact,
    floors_at_scale,
)
from bittern.model.rank.space import (
    BASE,
    COUNT,
    DIRECT,
    FINE,
    FIRST,
    GREATEST,
    KIND_NAMES,
    LEAST,
    ORDERED,
    STRING,
    RankSpace,
)
from bittern.model.strings import StringTable

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")

# ------------------------------------------------------------------ numbers

#: Literals of every type at the places where types change over.
LITERALS = (
    *("0", "-0.0", "1", "-1", "2", "3", "0.1", "-0.1", "0.5", "-0.5", "1.5", "-1.5", "3.25"),
    *("1e-300", "-1e-300", "5e-324", "1e15", "999999999999999", "1e16", "123456789012345000"),
    *(
        "123456789012345.678",
        "0.123456789012345678",
        "0.100000000000000005",
        "-0.000000000000000001",
    ),
    *("999999999999999999", "0.999999999999999999", "99999999999999999.9", "-99999999999999999.9"),
    *("9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993"),
    *("9007199254740992.5", "9007199254740994e0", "4611686018427387904", "4611686018427388404"),
    *("9223372036854775806", "9223372036854775807", "-9223372036854775808", "-9223372036854775807"),
    *("9223372036854775807e0", "-9223372036854775808e0", "9.3e18", "-9.3e18", "1e19", "-1e19"),
    *("1e300", "-1e300", "1.7976931348623157e308"),
)

numbers = st.one_of(
    st.sampled_from([exact(number_value(text)) for text in LITERALS]),
    strategies.integers,
    strategies.decimals.map(exact),
    st.floats(-1e30, 1e30).map(exact),
    st.integers(-3, 3),
)
columns_of_numbers = st.lists(numbers, min_size=1, max_size=12, unique=True).map(sorted)


def fraction(value: float | Decimal) -> Fraction:
    """What a finite value stands for, said once more."""
    if isinstance(value, float) and abs(value) < 2**53:
        return Fraction(repr(value))
    return Fraction(value)


@given(st.one_of(strategies.integers, strategies.decimals, strategies.floats))
def test_exact_is_the_printed_decimal_or_the_whole_number(value: float | Decimal) -> None:
    stands_for = exact(value)
    if not isinstance(value, float) or abs(value) < 2**63:
        assert Fraction(stands_for) == fraction(value)
    assert float(stands_for) == float(value)
    assert isinstance(stands_for, int) == (Fraction(stands_for).denominator == 1)


def test_exact_of_zero_has_no_sign() -> None:
    assert str(exact(-0.0)) == str(exact(Decimal("-0.00"))) == "0"


@given(columns_of_numbers)
def test_columns_hold_constants_exactly(constants: list[Number]) -> None:
    columns = NumberColumns.of(constants)
    for i, constant in enumerate(constants):
        value = Fraction(constant)
        assert columns.number(i) == constant
        assert columns.floors[i] == max(INT64_MIN, min(INT64_MAX, math.floor(value)))
        assert columns.whole[i] == (value.denominator == 1 and INT64_MIN <= value <= INT64_MAX)
        assert columns.doubles[i] == float(constant)


@given(columns_of_numbers)
def test_a_double_lies_beside_constants_that_it_does_not_equal(constants: list[Number]) -> None:
    columns = NumberColumns.of(constants)
    for double, cell in zip(columns.doubles.tolist(), cells_of_doubles(columns), strict=True):
        value = Fraction(exact(double))
        below = sum(Fraction(constant) < value for constant in constants)
        assert cell == 2 * below + any(Fraction(constant) == value for constant in constants)


@given(columns_of_numbers, st.integers(-6, 38))
def test_floors_at_a_scale(constants: list[Number], scale: int) -> None:
    floors, whole = floors_at_scale(NumberColumns.of(constants), scale)
    for floor, is_whole, constant in zip(floors, whole, constants, strict=True):
        value = Fraction(constant) * Fraction(10) ** scale
        assert floor == max(INT64_MIN, min(INT64_MAX, math.floor(value)))
        assert is_whole == (value.denominator == 1 and INT64_MIN <= value <= INT64_MAX)


# ------------------------------------------------------------------ numbers through the façade


def every_operator(literals: list[str] | tuple[str, ...], attribute: str = "a") -> dict[str, str]:
    comparisons = {
        f"{sign} {literal}": f"{attribute} {sign} {literal}"
        for literal in literals
        for sign in OPERATORS
    }
    pairs = list(itertools.pairwise(literals))
    between = {f"{a}..{b}": f"{attribute} BETWEEN {a} AND {b}" for a, b in pairs}
    outside = {f"not {a}..{b}": f"{attribute} NOT BETWEEN {a} AND {b}" for a, b in pairs}
    return comparisons | between | outside


GROUPS = {
    "dense integers": [str(n) for n in range(-20, 40, 3)],
    "dense and large": [str(2**62 + n) for n in range(0, 1500, 100)],
    "dense at the top": [str(2**63 - 1025 - n) for n in range(0, 60, 7)],
    "dense at the very top": [str(2**63 - 1 - n) for n in range(0, 60, 7)],
    "dense at the bottom": [str(-(2**63) + n) for n in range(0, 60, 7)],
    "two far apart": ["-1000000", "1000000"],
    "two as far apart as can be": [str(-(2**63)), str(2**63 - 1)],
    "sparse integers": [
        "-5000000000",
        "-7",
        "0",
        "1",
        "3000",
        "9007199254740991",
        "123456789012345000",
    ],
    "one integer": ["5"],
    "one fraction": ["-0.5"],
    "fractions": ["-1.5", "-1.4", "-1", "-0.5", "-0.1", "0.1", "0.25", "3", "3.2", "3.7", "4.0"],
    "the same double": ["9007199254740992", "9007199254740993", "9007199254740992.5", "0.5"],
    "the same double again": ["0.1", "0.100000000000000005", "0.100000000000000001", "1e-1"],
    "few digits, yet no double": ["123456789012345000", "-123456789012345000", "0.5"],
    "huge": ["-1e300", "-1e19", "0", "1e19", "1.5e300"],
    "everything": list(LITERALS),
}

VALUES: tuple[Any, ...] = (
    *range(-24, 44),
    *(
        n + d
        for n in (2**31, 2**53, -(2**53), 2**62, 2**62 + 500, 2**63 - 1100)
        for d in range(-2, 3)
    ),
    *(2**63 - 1 - n for n in range(20)),
    *(-(2**63) + n for n in range(20)),
    *(123456789012344992, 123456789012345000, 123456789012345008, -123456789012344992),
    *(-5000000000, 999999, 1000000, 1000001, 3000),
)
FLOATS: tuple[float, ...] = (
    *(-0.0, 0.0, 0.1, -0.1, 0.5, -0.5, 1.5, 2.999, 3.0, 3.2, 3.25, 3.7, 3.9, 38.5, 40.5, -20.5),
    *(math.nextafter(0.1, 1), math.nextafter(0.1, 0), math.nextafter(3, 4), math.nextafter(3, 0)),
    *(
        5e-324,
        -5e-324,
        1e-300,
        1e15,
        999999999999999.0,
        1e16,
        123456789012345000.0,
        -123456789012345000.0,
    ),
    *(2.0**53 - 1, 2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**62, 2.0**62 + 1024, 2.0**63, -(2.0**63)),
    *(
        math.nextafter(2.0**63, 0),
        math.nextafter(-(2.0**63), 0),
        math.nextafter(-(2.0**63), -math.inf),
    ),
    *(9.3e18, -9.3e18, 1e19, -1e19, 1e300, -1e300, 1.5e300, 1.7976931348623157e308),
    *(math.inf, -math.inf, math.nan),
)
DECIMALS: tuple[Decimal, ...] = tuple(
    Decimal(text)
    for text in (
        *("0", "-0.0", "0.1", "-0.1", "0.10000", "3.2", "3.25", "3.7", "-1.45", "-1.5", "4.00"),
        *("0.123456789012345678", "0.100000000000000005", "0.999999999999999999", "-0.5"),
        *("-0.000000000000000001", "99999999999999999.9", "9007199254740992.5", "9007199254740992"),
        *("123456789012345000", "12345678901234567890123.5", "-12345678901234567890123.5"),
    )
)
HUGE = (2**63, 2**63 + 1, 2**64 - 1, 2**64, -(2**63) - 1, 10**19, 10**30, -(10**30), 10**300 + 1)


@pytest.fixture(scope="module", params=GROUPS)
def group(request: pytest.FixtureRequest) -> tuple[dict[str, str], bittern.Matcher]:
    """All comparisons with some constants, beside channels that a stray write would hit."""
    catalog = every_operator(GROUPS[request.param])
    catalog |= every_operator([str(n) for n in range(5)], "z")
    return catalog, bittern.Matcher(build(catalog))


def agree(
    group: tuple[dict[str, str], bittern.Matcher], values: Any, column: pa.Array | None
) -> None:
    """Compare the matches of values, as mappings or as a column, with the oracle's."""
    catalog, matcher = group
    events = [{"a": value} for value in values]
    found = matcher.match(events if column is None else pa.table({"a": column})).to_pylist()
    for event, mine, right in zip(events, found, expected(catalog, events), strict=True):
        assert set(mine) == set(right), event
        assert len(mine) == len(right), event


def test_values_as_mappings(group: Any) -> None:
    agree(group, [*VALUES, *FLOATS, *DECIMALS, *HUGE, True, "5", None], None)


def test_numpy_scalars_as_mappings(group: Any) -> None:
    catalog, matcher = group
    scalars: list[Any] = [
        np.int8(3),
        np.int64(-20),
        np.uint64(2**63 + 1),
        np.float64(3.2),
        np.float32(0.5),
    ]
    scalars += [np.bool_(True), np.str_("5")]
    events = [{"a": scalar.item()} for scalar in scalars]
    found = matcher.match([{"a": scalar} for scalar in scalars]).to_pylist()
    assert found == expected(catalog, events)


@pytest.mark.parametrize("kind", ["int64", "float64", "decimal128", "decimal256"])
def test_values_as_columns(group: Any, kind: str) -> None:
    values, column = {
        "int64": (VALUES, pa.array(VALUES, pa.int64())),
        "float64": (FLOATS, pa.array(FLOATS, pa.float64())),
        "decimal128": (DECIMALS[:-3], pa.array(DECIMALS[:-3], pa.decimal128(38, 18))),
        "decimal256": (DECIMALS, pa.array(DECIMALS, pa.decimal256(60, 20))),
    }[kind]
    agree(group, values, column)
    agree(group, values[3:], column[3:])


def test_unsigned_columns(group: Any) -> None:
    small = [0, 3, 5, 2**53 + 1, 2**62, 2**62 + 500, 2**63 - 1]
    agree(group, [*small, None], pa.array([*small, None], pa.uint64()))
    large = [*small, 2**63, 2**63 + 1, 2**64 - 1, None]
    agree(group, large, pa.array(large, pa.uint64()))


@pytest.mark.parametrize("scale", [0, 1, 4, 17])
def test_decimals_of_every_scale_that_fit_in_64_bits(group: Any, scale: int) -> None:
    digits = [0, 1, -1, 5, -5, 32, -15, 10**17, -(10**17), 10**18 - 1, 123456789012345000]
    values = [Decimal(each).scaleb(-scale) for each in digits]
    agree(group, values, pa.array(values, pa.decimal128(18, scale)))


def test_decimals_of_a_negative_scale(group: Any) -> None:
    values = [Decimal(text) for text in ("0", "100", "-300", "123456789012345000", "300000000")]
    agree(group, values, pa.array(values, pa.decimal128(18, -2)))


@pytest.mark.parametrize(
    "kind", ["int8", "int16", "int32", "uint8", "uint32", "float16", "float32"]
)
def test_narrow_columns(group: Any, kind: str) -> None:
    values = [0, 1, 3, 7, 40, 100, None]
    agree(group, values, pa.array(np.array([0, 1, 3, 7, 40, 100, 0], kind), mask=np.arange(7) == 6))


@given(
    st.lists(
        st.one_of(st.sampled_from(LITERALS), st.integers(-9, 9).map(str)), min_size=1, max_size=8
    ),
    st.lists(strategies.KINDS["number"], min_size=1, max_size=8),
)
def test_any_constants_and_any_values(literals: list[str], values: list[Any]) -> None:
    catalog = every_operator(literals)
    events = [{"a": value} for value in values]
    found = engine(catalog, events)
    assert [set(each) for each in found] == [set(each) for each in expected(catalog, events)]


@pytest.mark.parametrize("precision", [1, 5])
def test_the_callers_decimal_context_does_not_matter(precision: int) -> None:
    catalog = every_operator(["123456.789", "123456.788", "-0.123456789012345678"])
    values = (
        123456.789,
        123456.788,
        123457,
        Decimal("123456.789"),
        Decimal("-0.123456789012345678"),
    )
    events = [{"a": value} for value in values]
    right = expected(catalog, events)
    column = pa.array([Decimal("123456.789"), Decimal("123456.7885")], pa.decimal128(18, 6))
    right_column = expected(catalog, [{"a": value} for value in column.to_pylist()])
    with localcontext() as context:
        context.prec = precision
        matcher = bittern.Matcher(build(catalog))
        assert matcher.match(events).to_pylist() == right
        assert matcher.match(pa.table({"a": column})).to_pylist() == right_column


# ------------------------------------------------------------------ times

MOMENTS = [
    *("1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.000001"),
    *(
        "2024-01-01 00:00:00",
        "2024-01-01 00:00:00.5",
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59.999999",
    ),
]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit(unit: str) -> None:
    """One tick of the unit around each constant that the unit can hold."""
    catalog = every_operator([f"TIMESTAMP '{moment}'" for moment in MOMENTS])
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    seconds = (0, 1704067200, -62135596800, 253402300799)
    ticks = [s * per_second + d for s in seconds for d in range(-2, 3)]
    ticks += [s * per_second + per_second // 2 + d for s in seconds for d in range(-1, 2)]
    ticks += [INT64_MIN + 1, INT64_MIN, INT64_MAX]
    ticks = [tick for tick in ticks if INT64_MIN <= tick <= INT64_MAX]
    constants = [Fraction(parse_moment(moment), 10**6) for moment in MOMENTS]  # in seconds, exactly
    compare: dict[str, Callable[[Any, Any], bool]] = {
        "=": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
    column = pa.array(np.array(ticks, dtype=np.int64)).cast(pa.timestamp(unit))
    found = bittern.Matcher(build(catalog)).match(pa.table({"a": column})).to_pylist()
    for tick, ids in zip(ticks, found, strict=True):
        value = Fraction(tick, per_second)
        for moment, constant in zip(MOMENTS, constants, strict=True):
            for sign, holds in compare.items():
                name = f"{sign} TIMESTAMP '{moment}'"
                assert (name in ids) == holds(value, constant), (tick, name)


def parse_moment(moment: str) -> int:
    return time_value("timestamp", f"'{moment}'")


def test_dates_are_midnights() -> None:
    catalog = every_operator(["DATE '2024-01-01'", "TIMESTAMP '2024-01-01 00:00:00.000001'"])
    days = [19722, 19723, 19724, 0, -1, None]
    for kind in (pa.date32(), pa.date64()):
        column = pa.array(days, pa.int32()).cast(pa.date32()).cast(kind)
        events = [{"a": day} for day in column.to_pylist()]
        found = engine(catalog, pa.table({"a": column}))
        assert found == expected(catalog, events)


def test_days_beyond_64_bits_of_microseconds() -> None:
    catalog = {"before": "a < DATE '2024-01-01'", "after": "a > DATE '2024-01-01'"}
    days = pa.array([2**31 - 1, -(2**31), 106_751_992, -106_751_992], pa.int32()).view(pa.date32())
    assert engine(catalog, pa.table({"a": days})) == [["after"], ["before"], ["after"], ["before"]]


def test_booleans() -> None:
    catalog = every_operator(["TRUE", "FALSE"])
    events = [{"a": value} for value in (True, False, None, 0, 1, "true")]
    assert engine(catalog, events) == expected(catalog, events)
    column = pa.array([True, False, None])
    assert engine(catalog, pa.table({"a": column})) == expected(catalog, events[:3])


# ------------------------------------------------------------------ strings

TEXTS = (
    *(
        "",
        "a",
        "ab",
        "abc",
        "abd",
        "ac",
        "b",
        "a\x00",
        "a\x00b",
        "\x00",
        "a\x7f",
        "a\x80",
        "aÿ",
        "aÿ0",
    ),
    *(
        "é",
        "éa",
        "aé",
        "ée",
        "è",
        "ê",
        "\u07ff",
        "\u0800",
        "\uffff",
        "\U00010000",
        "\U0010ffff",
        "\U0010ffffz",
    ),
    *(
        "z\U0010ffff",
        "\u00bf",
        "\u00c0",
        "xé",
        "xè",
        "longer than eight bytes",
        "longer than eight bytez",
    ),
    *("longer than eight", "more than eight bytes", "12345678", "123456789", "1234567", "12345679"),
)


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''").replace("\x00", "\\0") + "'"


def string_catalog(*, ordered: bool) -> dict[str, str]:
    catalog = {}
    for number, text in enumerate(TEXTS[:-4:2]):
        catalog[f"= {number}"] = f"a = {quoted(text)}"
        catalog[f"!= {number}"] = f"a != {quoted(text)}"
        catalog[f"in {number}"] = f"a IN ({quoted(text)}, 'ab', {quoted(text)})"
        catalog[f"not in {number}"] = f"a NOT IN ({quoted(text)}, 'ab')"
        if ordered:
            catalog |= {f"{o} {number}": f"a {o} {quoted(text)}" for o in OPERATORS[2:]}
            catalog[f"prefix {number}"] = f"a LIKE {quoted(text + '%')}"
            catalog[f"not prefix {number}"] = f"a NOT LIKE {quoted(text + '%')}"
            catalog[f"suffix {number}"] = f"a LIKE {quoted('%' + text)}"
            catalog[f"not suffix {number}"] = f"a NOT LIKE {quoted('%' + text)}"
            catalog[f"between {number}"] = f"a BETWEEN 'a' AND {quoted(text)}"
    return catalog


@pytest.mark.parametrize("ordered", [False, True], ids=["hashed", "ordered"])
def test_strings(*, ordered: bool) -> None:
    catalog = string_catalog(ordered=ordered)
    index = build(catalog)
    kinds = index.rank.channel_kinds
    assert bool(index.rank.arrays.heads[kinds == STRING, ORDERED].any()) == ordered
    events = [{"a": text} for text in TEXTS] + [{"a": None}, {"a": 5}, {}]
    right = expected(catalog, events)
    matcher = bittern.Matcher(index)
    assert matcher.match(events).to_pylist() == right
    column = pa.array([*TEXTS, None])
    assert matcher.match(pa.table({"a": column})).to_pylist() == right[: len(column)]
    assert matcher.match(pa.table({"a": column.slice(7, 11)})).to_pylist() == right[7:18]


def neighbours(text: str) -> list[str]:
    """The text, its extensions, and strings just below and above all that begin with it."""
    out = [text, text + "\x00", text + "\U0010ffff", text + "zz", text[:-1]]
    for step in (-1, 1):
        if (
            text
            and 0 < ord(text[-1]) + step < 0x110000
            and not 0xD800 <= ord(text[-1]) + step < 0xE000
        ):
            other = text[:-1] + chr(ord(text[-1]) + step)
            out += [other, other + "\U0010ffff", other + "\x01"]
    return out


@given(st.lists(strategies.strings, min_size=1, max_size=5))
def test_prefixes_and_suffixes_at_their_ends(texts: list[str]) -> None:
    catalog: dict[str, str] = {}
    values: list[str] = []
    for number, text in enumerate(texts):
        escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        catalog[f"p{number}"] = f"a LIKE {quoted(escaped + '%')}"
        catalog[f"s{number}"] = f"a LIKE {quoted('%' + escaped)}"
        catalog[f"not p{number}"] = f"a NOT LIKE {quoted(escaped + '%')}"
        catalog[f">={number}"] = f"a >= {quoted(text)}"
        catalog[f"={number}"] = f"a = {quoted(text)}"
        values += neighbours(text) + [each[::-1] for each in neighbours(text[::-1])]
    events = [{"a": value} for value in values]
    assert engine(catalog, events) == expected(catalog, events)


# ------------------------------------------------------------------ the layout itself

RICH = {
    "dense": "a = 3 OR a BETWEEN 7 AND 12",
    "fine": "b < 0.5 AND b != 1e300",
    "far": "c IN (1, 1000000, -1000000)",
    "time": "t >= DATE '2024-01-01'",
    "flag": "f = TRUE",
    "text": "s > 'm' OR s LIKE 'ab%' OR s LIKE '%yz'",
    "word": "w IN ('x', 'y')",
    "pattern": "p LIKE '%a_b%' AND p RLIKE 'c+' AND p IS NOT NULL",
}


def test_channels_are_numbered_by_kind() -> None:
    rank = build(RICH).rank
    kinds = [KIND_NAMES[kind] for kind in rank.channel_kinds]
    assert kinds == sorted(kinds, key=KIND_NAMES.index)
    assert set(kinds) == set(KIND_NAMES)
    assert sorted(rank.attribute_names()) == ["a", "b", "c", "f", "p", "s", "t", "w"]
    assert rank.n_cells == rank.arrays.bases[-1]


def test_constants_come_back() -> None:
    rank = build(RICH).rank
    names = rank.attribute_names()
    for name, constants in {"a": [3, 7, 12], "b": [Decimal("0.5"), 10**300]}.items():
        channel = int(rank.arrays.channels[names.index(name), 0])
        columns = rank.constants(channel)
        assert [columns.number(i) for i in range(len(columns.floors))] == constants


def test_a_dense_channel_has_a_table_and_a_sparse_one_has_none() -> None:
    rank = build(RICH).rank
    names = rank.attribute_names()
    heads = {
        name: rank.arrays.heads[rank.arrays.channels[names.index(name), 0]]
        for name in ("a", "b", "c")
    }
    assert {name: bool(head[DIRECT] >= 0) for name, head in heads.items()} == {
        "a": True,
        "b": False,
        "c": False,
    }
    assert heads["a"][GREATEST] - heads["a"][LEAST] + 1 == 10


def _swap(array: Any) -> Any:
    return array[::-1].copy()


@pytest.mark.parametrize("field", ["heads", "bases", "floors"])
def test_a_damaged_rank_space_is_noticed(field: str) -> None:
    rank = build(RICH).rank
    arrays = rank.arrays._replace(**{field: _swap(getattr(rank.arrays, field))})
    with pytest.raises((AssertionError, SnapshotError)):
        dataclasses.replace(rank, arrays=arrays).check()


def test_channels_out_of_order_are_noticed() -> None:
    rank = build(RICH).rank
    with pytest.raises(AssertionError, match="out of order"):
        dataclasses.replace(rank, channel_kinds=_swap(rank.channel_kinds)).check()


def test_a_damaged_string_table_is_noticed() -> None:
    rank = build(RICH).rank
    strings = rank.arrays.strings._replace(slots=np.zeros_like(rank.arrays.strings.slots))
    with pytest.raises((AssertionError, SnapshotError)):
        dataclasses.replace(rank, arrays=rank.arrays._replace(strings=strings)).check()


#: Channels of RICH: a, b, c are numbers (dense, fine, far), then times, booleans, three of strings
#: (s, w, and s reversed), "p is not NULL" and two patterns of p.
CHANNEL_A, CHANNEL_B, CHANNEL_C, _, _, CHANNEL_S, _, _, CHANNEL_ANY, _, _ = range(11)
DAMAGE: dict[str, tuple[str, Any, Any, str]] = {
    "count": ("heads", (CHANNEL_A, COUNT), -1, "negative number"),
    "first": ("heads", (CHANNEL_B, FIRST), 0, "constants do not tile"),
    "start of the axis": ("bases", 0, -1, "does not start at 0"),
    "cells": ("bases", -1, 10**6, "do not tile the axis"),
    "base": ("heads", (CHANNEL_B, BASE), 0, "base is wrong"),
    "fine start": ("heads", (CHANNEL_B, FINE), 1, "fine constants do not tile"),
    "negative fine start": ("heads", (CHANNEL_B, FINE), -2, "fine constants do not tile"),
    "fine but not": ("heads", (CHANNEL_C, FINE), 2, "fine constants are missing"),
    "fine strings": ("heads", (CHANNEL_S, FINE), 0, "not numeric has tables"),
    "direct strings": ("heads", (CHANNEL_S, DIRECT), 0, "not numeric has tables"),
    "whole": ("fine_whole", 0, 2, "neither whole nor not"),
    "doubles": ("fine_doubles", 0, 1e305, "fine constants do not ascend"),
    "no double": ("fine_doubles", 0, math.nan, "fine constants do not ascend"),
    "fine cell": ("fine_cells", 1, 5, "not in its channel"),
    "negative fine cell": ("fine_cells", 0, -1, "not in its channel"),
    "floors": ("floors", 1, 2, "numeric constants do not ascend"),
    "equal floors": ("floors", 1, 3, "numeric constants do not ascend"),
    "direct but fine": ("heads", (CHANNEL_B, DIRECT), 0, "cannot have a direct table"),
    "direct but far": ("heads", (CHANNEL_C, DIRECT), 0, "a direct table is cut off"),
    "direct start": ("heads", (CHANNEL_A, DIRECT), 1, "direct tables do not tile"),
    "negative direct start": ("heads", (CHANNEL_A, DIRECT), -2, "direct tables do not tile"),
    "least": ("heads", (CHANNEL_A, LEAST), 2, "least integer is off"),
    "greatest": ("heads", (CHANNEL_A, GREATEST), 13, "greatest integer is off"),
    "direct cell": ("direct", 1, 99, "wrong cell"),
    "negative direct cell": ("direct", 1, -1, "wrong cell"),
    "a channel too many": ("channels", (0, 1), 0, "channel too many"),
    "another channel": ("channels", (0, 0), 2, "table of channels is wrong"),
    "no channel": ("channels", (0, 0), -1, "channel too many"),
    "a channel that is not there": ("channels", (0, 0), 99, "table of channels is wrong"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_each_invariant_of_a_rank_space_is_checked(name: str) -> None:
    field, place, value, message = DAMAGE[name]
    rank = build(RICH).rank
    array = getattr(rank.arrays, field).copy()
    array[place] = value
    with pytest.raises(AssertionError, match=message):
        dataclasses.replace(rank, arrays=rank.arrays._replace(**{field: array})).check()


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("heads", "one head per channel"),
        ("bases", "one base per channel"),
        ("floors", "numeric constants are missing"),
        ("fine_whole", "fine constants are missing"),
        ("fine_doubles", "fine constants are missing"),
        ("fine_cells", "fine constants are missing"),
        ("direct", "direct tables are cut off"),
        ("channels", "table of channels is cut off"),
    ],
)
def test_arrays_cut_off_are_noticed(field: str, message: str) -> None:
    rank = build(RICH).rank
    arrays = rank.arrays._replace(**{field: getattr(rank.arrays, field)[:-1].copy()})
    with pytest.raises(AssertionError, match=message):
        dataclasses.replace(rank, arrays=arrays).check()


def test_constants_of_a_channel_without_any_are_noticed() -> None:
    rank = build(RICH).rank
    heads, bases = rank.arrays.heads.copy(), rank.arrays.bases.copy()
    heads[CHANNEL_ANY, COUNT] = 1
    heads[CHANNEL_ANY + 1 :, FIRST] += 1
    heads[CHANNEL_ANY + 1 :, BASE] += 2
    bases[CHANNEL_ANY + 1 :] += 2
    with pytest.raises(AssertionError, match="cannot have"):
        dataclasses.replace(rank, arrays=rank.arrays._replace(heads=heads, bases=bases)).check()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({0: 99}, "no attribute"),
        ({0: -1}, "no attribute"),
        ({0: 1}, "table of channels is wrong"),
        ({-2: 6}, None),
        ({-1: 6}, "not adjacent"),
    ],
)
def test_attributes_of_channels_are_checked(attributes: dict[int, int], message: str) -> None:
    rank = build(RICH).rank
    owners = rank.channel_attributes.copy()
    for channel, attribute in attributes.items():
        owners[channel] = attribute
    damaged = dataclasses.replace(rank, channel_attributes=owners)
    if message is None:
        damaged.check()
    else:
        with pytest.raises(AssertionError, match=message):
            damaged.check()


def test_a_channel_of_no_kind_is_noticed() -> None:
    rank = build(RICH).rank
    kinds = rank.channel_kinds.copy()
    kinds[-1] = len(KIND_NAMES)
    with pytest.raises(AssertionError, match="no kind"):
        dataclasses.replace(rank, channel_kinds=kinds).check()


def test_a_pattern_without_a_channel_is_noticed() -> None:
    index = build(RICH)
    owners = index.rank.channel_attributes.copy()
    owners[-2] = 6
    index.rank = dataclasses.replace(index.rank, channel_attributes=owners)
    with pytest.raises(AssertionError, match="one channel per pattern"):
        index.check()


def with_strings(rank: RankSpace, texts: list[bytes], groups: Any) -> RankSpace:
    ends = np.cumsum([0, *map(len, texts)])
    table = StringTable.build(np.frombuffer(b"".join(texts), dtype=np.uint8), ends, groups)
    return dataclasses.replace(rank, arrays=rank.arrays._replace(strings=table.as_tuple))


def test_strings_of_other_channels_or_out_of_order_are_noticed() -> None:
    rank = build(RICH).rank
    data, offsets, groups, *_ = rank.arrays.strings
    texts = [bytes(data[a:b]) for a, b in itertools.pairwise(offsets.tolist())]
    assert texts == [b"ab", b"ac", b"m", b"x", b"y", b"zy", b"zz"]
    with_strings(rank, texts, groups).check()
    swapped = [texts[1], texts[0], *texts[2:]]
    for wrong, message in ((swapped, "strings do not ascend"), (texts[:-1], "strings are missing")):
        with pytest.raises(AssertionError, match=message):
            with_strings(rank, wrong, groups[: len(wrong)]).check()
    moved = groups.copy()
    moved[2] += 1
    with pytest.raises(AssertionError, match="string's channel is wrong"):
        with_strings(rank, texts, moved).check()
