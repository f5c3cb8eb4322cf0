"""Keys of a predicate index sort as what they stand for, and so does what lies in between."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bittern.errors import OptionError
from bittern.literature.pb_tree.keys import (
    EncodedKeys,
    check_constants,
    encode,
    encode_one,
    keys_of,
)
from predicate_oracle import rank

INF, NAN = math.inf, math.nan

EDGES = [
    *(0, 0.0, -0.0, 1, 2.5, NAN, INF, -INF, 5e-324, -5e-324, 1.7976931348623157e308),
    *(sign * 2**bits + more for sign in (1, -1) for bits in (53, 63, 64) for more in (-1, 0, 1)),
    *(sign * 2.0**bits for sign in (1, -1) for bits in (53, 62, 63, 64)),
    *(10**400, -(10**400), Decimal("1E-450"), Decimal("-1E-450"), Decimal("1.8E308"), 10**22),
    *(0.1, Decimal("0.1"), Decimal("0.10000000000000000000001"), 1e22, 1e23, 123456789.123),
]

floats = st.floats(width=64) | st.integers(-40, 40).map(lambda n: n / 8)
numbers = st.one_of(
    st.sampled_from(EDGES),
    st.integers(-5, 5),
    st.integers(-(2**65), 2**65),
    floats,
    st.decimals(allow_nan=False, min_value=-(10**25), max_value=10**25, places=4),
    st.decimals(allow_nan=False, allow_infinity=False).filter(lambda d: abs(d.adjusted()) < 500),
)
"""Some are close to each other, which is where keys go wrong."""


def near(number: Any) -> list[Any]:
    """A number, and its neighbours among integers and floats."""
    if isinstance(number, float | Decimal) and not Decimal(number).is_finite():
        return [number]
    whole = math.floor(number) if abs(number) < 10**30 else 0
    try:
        nearest = float(number)
    except OverflowError:
        nearest = 1.7e308 if number > 0 else -1.7e308
    around = [nearest, math.nextafter(nearest, INF), math.nextafter(nearest, -INF)]
    return [number, whole, whole + 1, *around]


texts = st.text(st.sampled_from("\0\x01ab\x7f\x80é\uffff\U0001f600"), max_size=7) | st.builds(
    lambda start, rest: start + rest,
    st.sampled_from(["prefix0", "prefix00", "prefix00abcd", "\0" * 8, "\0" * 12]),
    st.text(st.sampled_from("\0ab\xff"), max_size=6),
)

moments = st.one_of(
    st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
    st.integers(-3000, 3000).map(lambda n: np.datetime64(n, "ns")),
    st.integers(-(2**63) + 1, 2**63 - 1).map(lambda n: np.datetime64(n, "ns")),
    st.integers(-5, 5).map(lambda n: np.datetime64(n, "us")),
    st.integers(-5, 5).map(lambda n: np.datetime64(n, "s")),
)


def key(encoded: EncodedKeys, i: int) -> tuple[int, bytes, int]:
    """Key i in a form that Python compares as the tree does: prefix, tail, length."""
    keys = encoded.keys
    if not len(keys.lengths):
        return int(keys.prefixes[i]), b"", 8
    length, start = int(keys.lengths[i]), int(keys.starts[i])
    words = (length - 5) >> 2 if length > 8 else 0
    tail = keys.tails[start : start + words].astype(">i4").tobytes()
    return int(keys.prefixes[i]), tail, length


def check_order(kind: str, values: list[Any]) -> None:
    encoded = encode(kind, values, "values")
    keys = [key(encoded, i) for i in range(len(values))]
    ranks = [rank(value) for value in values]
    for i, (a, own) in enumerate(zip(ranks, keys, strict=True)):
        assert key(encode(kind, [values[i]], "values"), 0) == own  # whoever comes with it
        one = encode_one(kind, values[i], "values")
        assert one is not None
        alone = EncodedKeys(keys_of(one), np.ones(1, np.bool_), None)
        assert key(alone, 0) == own
        for b, other in zip(ranks[:i], keys[:i], strict=True):
            is_constant = kind == "string" or 8 in (own[2], other[2])
            if a == b:
                assert own == other
            elif is_constant:
                assert (own < other) == (a < b)
            else:  # both in between: nothing tells them apart if they are between the same two
                assert own == other or (own < other) == (a < b)
    order = encoded.order().tolist()
    assert sorted(order) == list(range(len(values)))
    assert [keys[i] for i in order] == sorted(keys)
    taken = EncodedKeys(encoded.take(np.array(order)), encoded.valid, None)
    assert [key(taken, i) for i in range(len(values))] == sorted(keys)


@given(st.lists(numbers, min_size=2, max_size=4))
@example([2**53, 2**53 + 1, 2.0**53, 2**53 - 1])
@example([-(2**53), -(2**53) - 1])
@example([-(2**63), -(2**63) - 1, -(2.0**63), -(2.0**64)])
@example([2**63 - 1, 2**63, 2.0**63, Decimal("9223372036854775807.5")])
@example([INF, NAN, 10**400, Decimal("1.8E308")])
@pytest.mark.parametrize("kind", ["integer", "float"])
def test_numbers_keep_their_order(kind: str, values: list[Any]) -> None:
    check_order(kind, [each for value in values for each in near(value)])


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6))
@example([2**53 + 1, 2**53])
@example([2**53 + 1])
@example([-(2**53) - 1, 0])
@example([-(2**63)])
@pytest.mark.parametrize("kind", ["integer", "float"])
def test_arrays_of_integers(kind: str, values: list[int]) -> None:
    check_order(kind, values)
    array = encode(kind, np.array(values, np.int64), "values")
    arrow = encode(kind, pa.array(values, pa.int64()), "values")
    single = [key(encode(kind, [value], "values"), 0) for value in values]
    assert [key(array, i) for i in range(len(values))] == single
    assert [key(arrow, i) for i in range(len(values))] == single


@given(st.lists(floats, min_size=1, max_size=8))
@pytest.mark.parametrize("kind", ["integer", "float"])
def test_arrays_of_floats(kind: str, values: list[float]) -> None:
    check_order(kind, values)
    array = encode(kind, np.array(values), "values")
    assert [key(array, i) for i in range(len(values))] == [
        key(encode(kind, [value], "values"), 0) for value in values
    ]
    if kind == "float":  # every float is a constant
        check_constants(array, kind, 0)
        assert len(array.keys.lengths) == 0


@given(st.lists(texts, min_size=1, max_size=8))
@example(["", "\0", "\0" * 8, "\0" * 9, "\0" * 12, "\0" * 13])
@example(["prefix00", "prefix00\0", "prefix00\0\0\0\0", "prefix00\0\0\0\0\0", "prefix0"])
@example(["prefix00\x7fabc", "prefix00\x80abc", "prefix00é"])
def test_strings_keep_their_order(values: list[str]) -> None:
    check_order("string", values)
    sliced = pa.array(["before", *values, None]).slice(1, len(values))
    encoded = encode("string", sliced, "values")
    assert [key(encoded, i) for i in range(len(values))] == [
        key(encode("string", [value], "values"), 0) for value in values
    ]


@given(st.lists(moments, min_size=1, max_size=6))
def test_times_keep_their_order(values: list[Any]) -> None:
    micros = [np.datetime64(rank(value) // 1000, "us") for value in values]
    inside = all(abs(rank(value)) < 2**63 for value in [*values, *micros])
    check_order("timestamp", values + micros * inside)


@given(
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.lists(
        st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1, 0, 1, -1]),
        min_size=1,
        max_size=5,
    ),
)
@example("s", [-(2**63)])
@example("ms", [-(2**63), 0])
def test_times_of_every_unit_and_size(unit: str, ticks: list[int]) -> None:
    factor = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[unit]
    encoded = encode("timestamp", pa.array(ticks, pa.timestamp(unit)), "values")
    for i, tick in enumerate(ticks):
        micros, rest = divmod(tick * factor, 1000)
        if micros < -(2**63):
            expected = (0, b"", 0)
        elif micros > 2**63 - 1:
            expected = (2**64 - 1, bytes(4), 9)
        else:
            expected = (micros + 2**63, bytes(4), 9) if rest else (micros + 2**63, b"", 8)
        assert key(encoded, i) == expected


@given(st.lists(st.none() | numbers, max_size=8), st.lists(st.none() | texts, max_size=8))
def test_nulls_have_no_place_in_the_order(values: list[Any], strings: list[Any]) -> None:
    for kind, each in (("integer", values), ("float", values), ("string", strings)):
        encoded = encode(kind, each, "values")
        present = [i for i, value in enumerate(each) if value is not None]
        order = encoded.order().tolist()
        assert sorted(order) == present
        assert encoded.valid.tolist() == [value is not None for value in each]
        keys = [key(encoded, i) for i in order]
        assert keys == sorted(keys)
        for a, b in pairwise(order):  # the first given comes first
            assert a < b or key(encoded, a) != key(encoded, b)
    assert encode_one("float", None, "values") is None


def test_the_forms_of_one_number() -> None:
    one: list[Any] = [1, 1.0, Decimal(1), Decimal("1.00"), np.int8(1), np.uint64(1), np.float32(1)]
    for kind in ("integer", "float"):
        assert len({key(encode(kind, [value], "values"), 0) for value in one}) == 1
        assert len({key(encode(kind, one, "values"), i) for i in range(len(one))}) == 1
    quiet = np.array([0x7FF8000000000001, 0xFFF8000000000000, 0x7FFFFFFFFFFFFFFF], np.uint64)
    nans = [*quiet.view(np.float64).tolist(), NAN, Decimal("NaN"), np.float32(NAN)]
    assert len({key(encode("float", [value], "values"), 0) for value in nans}) == 1
    array = encode("float", quiet.view(np.float64), "values")
    assert {key(array, i) for i in range(3)} == {key(encode("float", [NAN], "values"), 0)}
    assert encode_one("float", -0.0, "values") == encode_one("float", 0, "values")


@given(numbers)
@pytest.mark.parametrize("kind", ["integer", "float"])
def test_what_can_be_a_constant(kind: str, number: Any) -> None:
    """An integer of 64 bits; a number that a float stands for."""
    own = rank(number)
    if kind == "integer":
        whole = own[0] == 0 and own[1].denominator == 1
        right = whole and -(2**63) <= own[1] <= 2**63 - 1
    else:
        try:
            right = own[0] != 0 or any(rank(each) == own for each in near(number)[3:])
        except OverflowError:
            right = False
    encoded = encode(kind, [number], "constants")
    if right:
        check_constants(encoded, kind, 0)
    else:
        with pytest.raises(
            OptionError, match=f"constant 0, .*, is not a key of kind {kind} in 64 bits"
        ):
            check_constants(encoded, kind, 0)


def test_a_signalling_nan_is_nan() -> None:
    signalling = np.array([0x7FF0000000000001], np.uint64).view(np.float64)
    nan = key(encode("float", [NAN], "values"), 0)
    assert key(encode("float", signalling, "values"), 0) == nan
    assert key(encode("float", signalling.tolist(), "values"), 0) == nan
