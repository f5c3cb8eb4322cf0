"""Terms of times beside Spark: rows at the edges of the calendar, and one query for many terms."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from bittern.language.scalars import read_term
from bittern.terms.scope import evaluate
from bittern.terms.types import TIMESTAMP, TIMESTAMP_NTZ, YEAR_MONTH, type_name

DATES = [
    "0001-01-01", "0004-02-29", "1582-10-10", "1600-02-29", "1900-02-28", "1969-12-31",
    "1970-01-01", "1999-12-31", "2000-02-29", "2023-01-01", "2024-01-31", "2024-02-29",
    "2024-03-31", "2024-10-27", "2024-12-29", "2024-12-30", "2024-12-31", "2026-01-01",
    "9999-12-30", "9999-12-31",
]  # fmt: skip
CLOCKS = [
    "00:00:00",
    "23:59:59.999999",
    "12:00:00.5",
    "02:30:00",
    "11:59:59.000001",
    "13:05:07.012",
]
WEEKDAYS = ["Mo", "tue", "WEDNESDAY", "th", "fri", "sat", "SU"]


def edges() -> pa.Table:
    """Days of all kinds with a clock each, NULL last, and small numbers beside them."""
    moments = [f"{day}T{CLOCKS[i % len(CLOCKS)]}" for i, day in enumerate(DATES)]
    micros = np.array(moments, "M8[us]").astype(np.int64)
    days = np.array(DATES, "M8[D]").astype(np.int32)
    numbers = [(-1) ** i * i * 7 % 400 - 100 for i in range(len(DATES))]
    others = days[::-1].copy()
    offsets = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "+05:30", "PST", "UTC"]
    units = ["year", "MM", "week", "Quarter", "bogus", "day", "hour", "millisecond", "yy"]
    columns = {
        "d": pa.array(days).view(pa.date32()),
        "e": pa.array(others).view(pa.date32()),
        "t": pa.array(micros).view(TIMESTAMP),
        "u": pa.array(micros[::-1].copy()).view(TIMESTAMP),
        "n": pa.array(micros).view(TIMESTAMP_NTZ),
        "i": pa.array(numbers, pa.int32()),
        "y": pa.array([each % 120 for each in numbers], pa.int8()),
        "l": pa.array([each * 86_399 for each in numbers], pa.int64()),
        "x": pa.array([each / 7 for each in numbers], pa.float64()),
        "f": pa.array([each / 3 for each in numbers], pa.float32()),
        "c": pa.array([Decimal(each) / 8 for each in numbers], pa.decimal128(12, 3)),
        "z": pa.array([offsets[i % len(offsets)] for i in range(len(DATES))]),
        "w": pa.array([units[i % len(units)] for i in range(len(DATES))]),
        "p": pa.array([WEEKDAYS[i % 7] for i in range(len(DATES))]),
        "v": pa.array([each * 3_600_000_001 for each in numbers], pa.int64()).view(
            pa.duration("us")
        ),
    }
    with_null = {
        name: pa.concat_arrays([column, pa.nulls(1, column.type)])
        for name, column in columns.items()
    }
    return pa.table(with_null)


def plain(array: pa.Array) -> list[Any]:
    """Values that can be compared, whatever year they are in."""
    kind = array.type
    if pa.types.is_date(kind):
        return array.view(pa.int32()).to_pylist()
    if pa.types.is_duration(kind):
        return array.cast(pa.duration("us")).view(pa.int64()).to_pylist()
    if pa.types.is_timestamp(kind):
        return array.view(pa.int64()).to_pylist()
    if kind == YEAR_MONTH:
        return [None if each is None else each.months for each in array.to_pylist()]
    return [repr(each) if isinstance(each, float) else each for each in array.to_pylist()]


def same_type(ours: pa.DataType, name: str) -> bool:
    """Whether Spark's name of a type is ours; some of its intervals are one type here."""
    shown = type_name(ours).lower().replace(", ", ",")
    if name.startswith("interval"):
        ends_with_days = name == "interval day"
        months = "month" in name or "year" in name
        return shown == (
            "interval year to month"
            if months
            else "interval day"
            if ends_with_days
            else "interval day to second"
        )
    return shown == name


def compare(spark: Any, rows: pa.Table, texts: list[str]) -> None:
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    ours = []
    for text in texts:
        array, failures = evaluate(read_term(text), columns, rows.num_rows)
        assert not failures, (text, failures)
        assert len(array) == rows.num_rows, text
        ours.append(array)
    frame = spark.createDataFrame(rows)
    if "n" in columns:  # which comes with a zone otherwise
        frame = frame.withColumn("n", frame["n"].cast("timestamp_ntz"))
    types = [field.dataType.simpleString() for field in frame.selectExpr(*texts).schema.fields]
    asked = [
        f"CAST(CAST(({text}) AS INTERVAL MONTH) AS INT)" if array.type == YEAR_MONTH else text
        for text, array in zip(texts, ours, strict=True)
    ]
    named = [f"({text}) AS c{number}" for number, text in enumerate(asked)]
    theirs = frame.selectExpr(*named).toArrow()
    wrong = []
    for number, (text, array, name) in enumerate(zip(texts, ours, types, strict=True)):
        if not same_type(array.type, name):
            wrong.append((text, type_name(array.type), name))
        expected = plain(theirs[f"c{number}"].combine_chunks())
        found = plain(array)
        wrong += [
            (text, {each: rows[each][row].as_py() for each in ("i", "w", "p", "z")},
             str(rows["t"][row]), f"ours {own}", f"Spark {other}")
            for row, (own, other) in enumerate(zip(found, expected, strict=True))
            if own != other
        ]  # fmt: skip
    assert not wrong, "\n".join(map(str, wrong[:40]))
