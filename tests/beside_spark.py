"""Terms evaluated by Spark and by us over the same rows, for the tests of terms.

``compare`` takes the texts of terms. Rows for which we say that Spark would fail are left out of
the one query for all of them, in a CASE that does not reach them; of each term that has such rows,
some are then given to Spark alone, which has to fail (of rows that are alike in what the term
reads, one)::

    term        rows 0 1 2 3        we fail on 2
    t + 1       SELECT CASE WHEN id NOT IN (2) THEN t + 1 END      compared: values and type
                SELECT t + 1 … WHERE id = 2                        has to fail
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from bittern.language.scalars import read_term
from bittern.terms.scope import MeaninglessError, evaluate
from bittern.terms.types import TIMESTAMP_NTZ, settled


def table_of(columns: dict[str, tuple[pa.DataType, list[Any]]], n_rows: int) -> pa.Table:
    """Columns of values that come again and again, each at its own pace; ``id`` counts the rows."""
    arrays = {
        name: pa.array(list(itertools.islice(itertools.cycle(values), n_rows)), kind)
        for name, (kind, values) in columns.items()
    }
    return pa.table({"id": pa.array(range(n_rows), pa.int32())} | arrays)


def values_of(kind: pa.DataType, text: str) -> tuple[pa.DataType, list[Any]]:
    """Numbers of a type that are written one after the other; a dot is NULL."""
    of: Any = int
    if pa.types.is_floating(kind):
        of = float
    elif pa.types.is_decimal(kind):
        of = Decimal
    return kind, [None if word == "." else of(word) for word in text.split()]


def evaluated(text: str, table: pa.Table) -> tuple[pa.Array, set[int]]:
    """Our values of a term, and the rows that fail."""
    columns = {name: settled(pa.concat_arrays(table[name].chunks)) for name in table.column_names}
    values, failures = evaluate(read_term(text), columns, table.num_rows)
    return values, {int(row) for failure in failures for row in failure.rows}


def meaningless(text: str, table: pa.Table) -> bool:
    """Whether the term has no meaning for the types of the columns."""
    try:
        evaluated(text, table)
    except MeaninglessError:
        return True
    return False


def frame_of(spark: Any, table: pa.Table) -> Any:
    """The table in Spark, with its types."""
    frame = spark.createDataFrame(table)
    for field in table.schema:
        if field.type == TIMESTAMP_NTZ:  # Spark takes these as local ones
            frame = frame.withColumn(field.name, frame[field.name].cast("timestamp_ntz"))
    return frame


def compare(
    spark: Any, table: pa.Table, texts: list[str], *, ulps: int = 0, n_failing: int = 1
) -> list[str]:
    """Each difference between Spark's answers and ours, as a line."""
    ours = [evaluated(text, table) for text in texts]
    frame = frame_of(spark, table).coalesce(1).cache()
    wrong = []
    for start in range(0, len(texts), 100):
        own = range(start, min(start + 100, len(texts)))
        columns = [
            f"CASE WHEN id NOT IN ({', '.join(map(str, {-1, *ours[at][1]}))}) "
            f"THEN ({texts[at]}) END AS c{at}"
            for at in own
        ]
        answers = frame.selectExpr(*columns).toArrow()
        for at in own:
            answer = pa.concat_arrays(answers[f"c{at}"].chunks)
            wrong += _differences(texts[at], table, *ours[at], answer, ulps)
    for text, (_, failing) in zip(texts, ours, strict=True):
        for row in _unlike(table, text, sorted(failing))[:n_failing]:
            with contextlib.suppress(Exception):  # whichever it is, Spark fails
                found = frame.where(f"id = {row}").selectExpr(f"{text} AS x").toArrow()
                wrong.append(
                    f"{text}  {_event(table, text, row)}: we fail, Spark has {found['x'][0]}"
                )
    frame.unpersist()
    return wrong


def _differences(
    text: str, table: pa.Table, values: pa.Array, failing: set[int], answer: pa.Array, ulps: int
) -> list[str]:
    answer = settled(answer)
    if values.type != answer.type:
        return [f"{text}: we have type {values.type}, Spark {answer.type}"]
    if pa.types.is_temporal(values.type):  # Python has no years beyond 9999
        number = pa.int32() if pa.types.is_date(values.type) else pa.int64()
        values, answer = values.view(number), answer.view(number)
    wrong = [f"{text}: row {row} fails and has a value" for row in failing if values[row].is_valid]
    for row, (own, other) in enumerate(zip(values.to_pylist(), answer.to_pylist(), strict=True)):
        if row in failing or _same(own, other, ulps):
            continue
        wrong.append(f"{text}  {_event(table, text, row)}: we have {own!r}, Spark {other!r}")
    return wrong


def _unlike(table: pa.Table, text: str, rows: list[int]) -> list[int]:
    """The first of all rows that have the same values in the columns that the term reads."""
    words = set(re.findall(r"\w+", text.lower()))
    names = [
        name
        for name in table.column_names
        if (name.lower() in words if name.isidentifier() else name in text)
    ]
    first: dict[tuple[str, ...], int] = {}
    for row in rows:
        values = (str(table[name].slice(row, 1).combine_chunks()) for name in names)
        first.setdefault(tuple(values), row)
    return list(first.values())


def _event(table: pa.Table, text: str, row: int) -> dict[str, str]:
    return {
        name: str(table[name].slice(row, 1).chunk(0)).split()[1]
        for name in table.column_names
        if name in text
    }


def _same(own: Any, other: Any, ulps: int) -> bool:
    if isinstance(own, float) and isinstance(other, float):
        if math.isnan(own) or math.isnan(other):
            return math.isnan(own) and math.isnan(other)
        if ulps and own != other:
            return abs(own - other) <= ulps * float(np.spacing(max(abs(own), abs(other))))
        return own == other and math.copysign(1, own) == math.copysign(1, other)
    return own == other
