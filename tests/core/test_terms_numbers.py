"""Numbers in terms: types, failures and random columns against Python's exact arithmetic."""

from __future__ import annotations

import decimal
import random
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bittern.language.scalars import read_term
from bittern.terms.nodes import Call, Constant
from bittern.terms.scope import MeaninglessError, evaluate, folded

EXACT = decimal.Context(prec=200)


def values(text: str, **columns: pa.Array) -> tuple[list[Any], list[int]]:
    n_rows = len(next(iter(columns.values()), [None]))
    found, failures = evaluate(read_term(text), columns, n_rows)
    assert len(found) == n_rows
    return found.to_pylist(), [int(row) for failure in failures for row in failure.rows]


def type_of(text: str, **columns: pa.Array) -> pa.DataType:
    return evaluate(read_term(text), columns, len(next(iter(columns.values()))))[0].type


def decimals(kind: pa.DataType, seed: int, n: int = 100) -> pa.Array:
    """Of all sizes, some NULL."""
    source = random.Random(seed)
    units = [
        source.choice((None, source.randrange(-(10**digits), 10**digits)))
        if source.random() < 0.1
        else source.randrange(-(10**digits) + 1, 10**digits)
        for digits in (source.randint(1, kind.precision) for _ in range(n))
    ]
    return pa.array(
        [None if u is None else EXACT.scaleb(Decimal(u), -kind.scale) for u in units], kind
    )


KINDS = [pa.decimal128(*each) for each in ((10, 2), (5, 0), (18, 6), (38, 10), (38, 0), (20, 20))]


@pytest.mark.parametrize("left", KINDS, ids=str)
@pytest.mark.parametrize("right", KINDS, ids=str)
def test_decimals(left: pa.DataType, right: pa.DataType) -> None:
    columns = {"x": decimals(left, 1), "y": decimals(right, 2)}
    pairs = list(zip(columns["x"].to_pylist(), columns["y"].to_pylist(), strict=True))
    for sign in "+-*/%":
        kind = type_of(f"x {sign} y", **columns)
        found, failing = values(f"x {sign} y", **columns)
        for row, (x, y) in enumerate(pairs):
            expected = None
            if x is not None and y is not None and (y or sign not in "/%"):
                exact = _exactly(sign, Fraction(x), Fraction(y))
                if sign == "/":
                    exact = _rounded(exact, 39)
                exact = _rounded(exact, kind.scale)
                if abs(exact) < 10 ** (kind.precision - kind.scale):
                    expected = exact
            own = found[row]
            assert (None if own is None else Fraction(own)) == expected, (sign, x, y)
            assert (row in failing) == (expected is None and x is not None and y is not None)


def _exactly(sign: str, x: Fraction, y: Fraction) -> Fraction:
    if sign == "%":
        rest = abs(x) % abs(y)
        return rest if x >= 0 else -rest
    return {"+": x + y, "-": x - y, "*": x * y, "/": x / y if y else Fraction(0)}[sign]


def _rounded(number: Fraction, places: int) -> Fraction:
    units = abs(number) * 10**places
    whole = units.numerator // units.denominator
    whole += 2 * (units - whole) >= 1
    return Fraction(whole if number >= 0 else -whole, 10**places)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_integers(kind: pa.DataType) -> None:
    source = random.Random(3)
    bits = kind.bit_width - 1
    low, high = -(2**bits), 2**bits - 1
    some = [low, high, 0, 1, -1, low + 1, 2 ** (bits // 2), -(2 ** (bits // 2)) - 1, None]
    some += [source.randrange(-(2**n), 2**n) for n in range(bits + 1)]
    pairs = [(x, y) for x in some for y in some]
    columns = {
        "x": pa.array([x for x, _ in pairs], kind),
        "y": pa.array([y for _, y in pairs], kind),
    }
    exact: dict[str, Any] = {
        "+": lambda x, y: x + y,
        "-": lambda x, y: x - y,
        "*": lambda x, y: x * y,
        "%": lambda x, y: (abs(x) % abs(y)) * (1 if x >= 0 else -1) if y else None,
    }
    for sign, answer in exact.items():
        found, failing = values(f"x {sign} y", **columns)
        for row, (x, y) in enumerate(pairs):
            expected = None if x is None or y is None else answer(x, y)
            if expected is not None and not low <= expected <= high:
                expected = None
            assert found[row] == expected, (sign, x, y)
            assert (row in failing) == (expected is None and x is not None and y is not None)


@pytest.mark.parametrize("places", [-5, -2, 0, 1, 2, 3, 8, 14, 18])
def test_rounding_of_doubles(places: int) -> None:
    source = random.Random(places)
    numbers = [source.uniform(-1, 1) * 10 ** source.randint(-12, 17) for _ in range(400)]
    numbers += [round(number, max(places, 0) + 1) for number in numbers]
    numbers += [(source.randrange(10**6) * 2 + 1) / 2 * 10.0**-places for _ in range(400)]
    for name, mode in (("round", ROUND_HALF_UP), ("bround", ROUND_HALF_EVEN)):
        found, _ = values(f"{name}(x, {places})", x=pa.array(numbers))
        unit = Decimal(1).scaleb(-places)
        expected = [float(Decimal(repr(x)).quantize(unit, mode, EXACT)) for x in numbers]
        assert found == [number + 0.0 for number in expected]


@pytest.mark.parametrize("kind", KINDS[:4], ids=str)
def test_rounding_of_decimals(kind: pa.DataType) -> None:
    column = decimals(kind, 5)
    modes = {"round": ROUND_HALF_UP, "bround": ROUND_HALF_EVEN}
    modes |= {"floor": ROUND_FLOOR, "ceil": ROUND_CEILING}
    for name, mode in modes.items():
        for places in (-2, 0, 1, 30):
            found, failing = values(f"{name}(x, {places})", x=column)
            assert not failing
            unit = Decimal(1).scaleb(-min(places, kind.scale))
            for own, x in zip(found, column.to_pylist(), strict=True):
                assert own == (None if x is None else x.quantize(unit, mode, EXACT))


def test_constants_have_their_own_digits() -> None:
    x = pa.array([Decimal("1.25")], pa.decimal128(10, 2))
    assert type_of("x * 3", x=x) == pa.decimal128(12, 2)
    assert type_of("x * 100", x=x) == pa.decimal128(14, 2)
    assert type_of("x / 3", x=x) == pa.decimal128(14, 6)
    assert type_of("x * i", x=x, i=pa.array([3], pa.int32())) == pa.decimal128(21, 2)
    assert type_of("x * i", x=x, i=pa.array([3.0])) == pa.float64()


def test_constants_fold() -> None:
    for text, expected in (
        ("1 + 2", 3),
        ("7 div 2", 3),
        ("7 / 2", 3.5),
        ("1.5 * 2", Decimal("3.0")),
        ("-(5)", -5),
        ("round(2.5)", Decimal(3)),
        ("abs(-2)", 2),
        ("sqrt(16)", 4.0),
        ("hex(255)", "FF"),
        ("hex('ab')", "6162"),
        ("shiftleft(1, 4)", 16),
        ("pmod(-7, 3)", 2),
    ):
        term = read_term(text)
        assert isinstance(term, Constant), text
        assert term.scalar.as_py() == expected, text


def test_what_fails_says_why() -> None:
    for text, reason in (("1 / 0", "zero"), ("127Y + 1Y", "fit"), ("-(-128Y)", "fit")):
        with pytest.raises(ValueError, match=reason):
            folded(read_term(text))


def test_only_rows_that_fail_are_null() -> None:
    x, y = pa.array([1, 2, None, 2**31 - 1], pa.int32()), pa.array([0, 2, 0, 1], pa.int32())
    assert values("x / y", x=x, y=y) == ([None, 1.0, None, 2147483647.0], [0])
    assert values("x + y", x=x, y=y) == ([1, 4, None, None], [3])
    assert values("try_add(x, y)", x=x, y=y) == ([1, 4, None, None], [])
    assert values("x div y", x=x, y=y) == ([None, 1, None, 2147483647], [0])


def test_rows_without_columns_of_their_own() -> None:
    empty = pa.array([], pa.int32())
    for text in ("x + 1", "x / 2", "x * 1.5", "x div 3", "round(x, -1)", "-x", "hex(x)", "sqrt(x)"):
        assert values(text, x=empty) == ([], [])
    part = pa.array([9, 1, None, 3], pa.int32()).slice(1)
    assert values("x * 2", x=part) == ([2, None, 6], [])
    assert values("x * 1.5", x=part) == ([Decimal("1.5"), None, Decimal("4.5")], [])
    part = pa.array([Decimal(9), Decimal(1), None], pa.decimal128(5, 2)).slice(1)
    assert values("x + 1", x=part) == ([Decimal(2), None], [])
    assert values("missing + x", x=part) == ([None, None], [])


def test_without_meaning() -> None:
    columns = {"b": pa.array([True]), "s": pa.array(["x"]), "d": pa.array([1.5])}
    for text in ("b + 1", "s + s", "d div 2", "d & 1", "~d", "abs(b)", "round(d, d)", "bin(b)"):
        with pytest.raises(MeaninglessError):
            values(text, **columns)


def test_bits() -> None:
    numbers = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 200)
    column = pa.array(numbers)
    whole = numbers.tolist()
    assert values("hex(x)", x=column)[0] == [f"{x & (1 << 64) - 1:X}" for x in whole]
    assert values("bin(x)", x=column)[0] == [f"{x & (1 << 64) - 1:b}" for x in whole]
    assert values("bit_count(x)", x=column)[0] == [(x & (1 << 64) - 1).bit_count() for x in whole]
    assert values("x ^ 5", x=column)[0] == [x ^ 5 for x in whole]
    assert values("shiftright(x, 3)", x=column)[0] == [x >> 3 for x in whole]


def test_dates_are_shifted_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from bittern.terms.times import times

    def shifted(scope: Any, call: Call, left: Any, right: Any) -> Any:
        return pa.scalar(f"{left.type} {call.function} {right.type}")

    monkeypatch.setattr(times, "shifted", shifted, raising=False)
    day = pa.array([1], pa.int32()).view(pa.date32())
    assert values("x + 1", x=day)[0] == ["date32[day] + int32"]
