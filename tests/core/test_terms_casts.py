"""Casts in terms: random columns against Python, what fails, and what is written."""

from __future__ import annotations

import datetime as dt
import random
import struct
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pytest

from bittern.language.scalars import read_term
from bittern.terms.scope import MeaninglessError, evaluate
from bittern.terms.types import TIMESTAMP, TIMESTAMP_NTZ


def cast(column: pa.Array, kind: str, *, name: str = "CAST") -> tuple[pa.Array, list[int]]:
    found, failures = evaluate(read_term(f"{name}(x AS {kind})"), {"x": column}, len(column))
    return found, [int(row) for failure in failures for row in failure.rows]


def floats(seed: int, n: int = 500) -> list[float]:
    """Of all magnitudes, and short ones."""
    source = random.Random(seed)
    found = [struct.unpack("d", source.randbytes(8))[0] for _ in range(n)]
    found = [number for number in found if number == number]  # noqa: PLR0124  no NaN
    return found + [round(source.uniform(-1000, 1000), source.randint(0, 6)) for _ in range(n)]


def test_doubles_are_written_as_java_does() -> None:
    numbers = floats(1)
    texts, _ = cast(pa.array(numbers), "string")
    for text, number in zip(texts.to_pylist(), numbers, strict=True):
        assert float(text) == number
        size = abs(number)
        assert ("E" in text) == (size != 0 and not 1e-3 <= size < 1e7)
        mantissa = text.partition("E")[0]
        assert mantissa.lstrip("-").partition(".")[0].isdigit()
        digits = mantissa.replace("-", "").replace(".", "").strip("0")
        assert len(digits) <= max(len(repr(size).partition("e")[0].replace(".", "").strip("0")), 2)
    odd = [4.9e-324, 1e-323, 1e7, 9999999.0, 1e-3, 9.99e-4, -0.0, float("nan"), float("-inf")]
    assert cast(pa.array(odd), "string")[0].to_pylist() == (
        [
            "4.9E-324",
            "9.9E-324",
            "1.0E7",
            "9999999.0",
            "0.001",
            "9.99E-4",
            "-0.0",
            "NaN",
            "-Infinity",
        ]
    )
    single = pa.array([1e10, 0.1, 1.4e-45, 3.4028235e38, 100.0], pa.float32())
    expected = ["1.0E10", "0.1", "1.4E-45", "3.4028235E38", "100.0"]
    assert cast(single, "string")[0].to_pylist() == expected


def test_doubles_are_read_back() -> None:
    numbers = floats(2)
    texts, _ = cast(pa.array(numbers), "string")
    assert cast(texts, "double")[0].to_pylist() == numbers
    assert (
        cast(pa.array([f" {number!r}d " for number in numbers]), "double")[0].to_pylist() == numbers
    )


@pytest.mark.parametrize("digits", [3, 12, 30])
def test_decimals(digits: int) -> None:
    source = random.Random(digits)
    texts = [
        f"{source.choice(('', '-', '+'))}{source.randrange(10 ** source.randint(1, digits))}"
        f".{source.randrange(10 ** source.randint(1, 20))}{source.choice(('', '', 'e2', 'E-3'))}"
        for _ in range(300)
    ]
    exact = Context(prec=100)
    for precision, scale in ((10, 2), (38, 18), (38, 0), (5, 5)):
        kind = f"decimal({precision}, {scale})"
        found, failing = cast(pa.array(texts), kind)
        again, _ = cast(cast(pa.array(texts), "decimal(38, 19)", name="TRY_CAST")[0], kind)
        for row, text in enumerate(texts):
            unit = Decimal(1).scaleb(-scale)
            expected: Any = Decimal(text).quantize(unit, ROUND_HALF_UP, exact)
            if abs(expected) >= Decimal(10) ** (precision - scale):
                expected = None
            assert found[row].as_py() == expected, text
            assert (row in failing) == (expected is None)
            wide = Decimal(text).quantize(Decimal(1).scaleb(-19), ROUND_HALF_UP, exact)
            if expected is not None and wide == Decimal(text) and abs(wide) < 10**19:
                assert again[row].as_py() == expected
        # Written with every digit of the scale, and read back.
        written, _ = cast(found, "string")
        assert cast(written, kind)[0] == found
        for text, number in zip(written.to_pylist(), found.to_pylist(), strict=True):
            assert text == (None if number is None else f"{number:f}")


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integers(bits: int) -> None:
    name = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}[bits]
    edge = 2 ** (bits - 1)
    numbers = [0, 1, -1, edge - 1, edge, -edge, -edge - 1, 10**19, -(10**30), 9 * 10**18]
    fits = [-edge <= number < edge for number in numbers]
    expected = [number if ok else None for number, ok in zip(numbers, fits, strict=True)]
    failing = [row for row, ok in enumerate(fits) if not ok]
    texts = pa.array([f" {number:+030d}\t" for number in numbers])
    for column in (texts, pa.array(numbers, pa.decimal128(38, 0))):
        found, wrong = cast(column, name)
        assert (found.to_pylist(), wrong) == (expected, failing)
        assert cast(column, name, name="TRY_CAST")[1] == []
    halves = pa.array([number + 0.9 if number >= 0 else number - 0.9 for number in numbers[:4]])
    if bits < 64:
        assert cast(halves, name)[0].to_pylist() == numbers[:4]


def test_times() -> None:
    source = random.Random(7)
    low, high = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)
    times = [
        low
        + dt.timedelta(microseconds=source.randrange((high - low) // dt.timedelta(microseconds=1)))
        for _ in range(300)
    ]
    times += [time.replace(microsecond=0) for time in times[:50]]
    texts = pa.array([time.isoformat(source.choice(" T")) for time in times])
    for kind, own in (("timestamp_ntz", TIMESTAMP_NTZ), ("timestamp", TIMESTAMP)):
        found, failing = cast(texts, kind)
        assert found.type == own
        assert not failing
        assert found.view(TIMESTAMP_NTZ).to_pylist() == times
        written = cast(found, "string")[0].to_pylist()
        assert [dt.datetime.fromisoformat(_filled(text)) for text in written] == times
        assert cast(found, "date")[0].to_pylist() == [time.date() for time in times]
    days = pa.array([time.date() for time in times])
    assert cast(cast(days, "string")[0], "date")[0] == days
    # The slow way, one by one, reads the same.
    slowly = pa.array([f"+{text}+00:00" for text in texts.to_pylist()])
    assert cast(slowly, "timestamp")[0] == cast(texts, "timestamp")[0]


def _filled(text: str) -> str:
    """Python before 3.11 wants three or six digits."""
    head, _, fraction = text.partition(".")
    assert not fraction.endswith("0")
    return f"{head}.{fraction:0<6}"


@pytest.mark.parametrize("year", [-290000, -1, 0, 10000, 200000])
def test_years_beyond_four_digits(year: int) -> None:
    text = f"{'-' if year < 0 else '+'}{abs(year):04}-02-28 01:02:03.5"
    found, failing = cast(pa.array([text]), "timestamp")
    assert not failing
    assert cast(found, "string")[0].to_pylist() == [text if year else text[1:]]
    assert cast(cast(found, "date")[0], "string")[0].to_pylist() == [
        (text if year else text[1:])[:-11]
    ]


def test_rows_that_cannot_be_cast() -> None:
    column = pa.array(["1", "x", None, "3"])
    found, failing = cast(column, "int")
    assert (found.to_pylist(), failing) == ([1, None, None, 3], [1])
    assert cast(column, "int", name="TRY_CAST")[1] == []
    assert cast(pa.array([b"ok", b"\xff", None]), "string")[0].to_pylist() == ["ok", None, None]
    assert cast(pa.array([b"ok", b"\xff", None]), "string")[1] == [1]
    with pytest.raises(MeaninglessError, match="DATE cannot be cast to INT"):
        cast(pa.array([dt.date(2020, 1, 1)]), "int")


def test_texts_without_end() -> None:
    long = 100_000
    texts = ["1" * long, "1" * long + "x", "0" * long + "7", f"0.{'0' * long}7e{long + 1}"]
    texts += ["7." + "4" * long, "7.5" + "0" * long, "\u0660" * long + "7", "." * long, "-" * long]
    found, failing = cast(pa.array(texts), "decimal(3, 0)")
    expected = [None, None, 7, 7, 7, 8, 7, None, None]
    assert (found.to_pylist(), failing) == (expected, [0, 1, 7, 8])
    for kind in ("int", "double", "boolean", "date", "timestamp"):
        cast(pa.array([*texts, "2020-01-01 00:00:00" + "+" * long, "2020-01-01 " * long]), kind)


def test_nothing_at_all() -> None:
    kinds = ("int", "double", "decimal(5, 2)", "string", "boolean", "date", "timestamp", "binary")
    for kind in kinds:
        assert cast(pa.array([], pa.string()), kind)[0].to_pylist() == []
        assert cast(pa.nulls(2), kind)[0].to_pylist() == [None, None]
        assert cast(pa.nulls(2, pa.string()), kind)[0].to_pylist() == [None, None]
        assert cast(pa.array(["7", "1", "0"]).slice(1, 1), "int")[0].to_pylist() == [1]
