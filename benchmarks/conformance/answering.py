"""The answers of Spark, of Bittern in this process and of Bittern on Spark, over the same rows.

Only TRUE counts, as in a filter. Where Spark fails for a row, Bittern's rule is that the term is
NULL and the row is listed: such rows are not compared, but have to be listed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import bittern
import bittern.spark
from benchmarks.conformance.collecting import ROW, Relation
from bittern.errors import BitternError
from bittern.model.event_schema import EventSchema
from bittern.spark.attributes import event_schema
from bittern.spark.terms.planning import plan_terms

#: So many expressions are asked of Spark at once.
_AT_ONCE = 40
#: Where Spark keeps what the type of a text column was written as.
_WRITTEN_TYPE = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass
class Answer:
    """The rows for which an expression is TRUE; why it is refused, if it is."""

    true: set[int] = field(default_factory=set)
    refused: str | None = None
    #: Rows that Spark fails for, or that Bittern lists.
    listed: set[int] = field(default_factory=set)


@dataclass
class Rows:
    """Some rows of a relation, with a number each, in Spark and as Arrow."""

    frame: DataFrame
    table: pa.Table
    #: Columns of types that Spark does not give to Arrow.
    missing: dict[str, str]

    @property
    def padded(self) -> list[str]:
        """The columns of type CHAR(n)."""
        kinds = {each.name: each.metadata.get(_WRITTEN_TYPE, "") for each in self.frame.schema}
        return [name for name, kind in kinds.items() if kind.startswith("char(")]

    @property
    def numbers(self) -> list[int]:
        """The numbers of all rows."""
        return list(map(int, self.table[ROW].to_pylist()))


def rows_of(relation: Relation) -> Rows:
    """The rows of a relation, as Arrow too."""
    frame = relation.frame
    columns: dict[str, pa.ChunkedArray] = {}
    missing: dict[str, str] = {}
    for name in frame.columns:
        try:
            columns[name] = frame.select(F.col(f"`{name.replace('`', '``')}`")).toArrow()[name]
        except Exception as wrong:  # noqa: BLE001
            missing[name] = str(wrong)[:80]
    return Rows(frame, pa.table(columns), missing)


def of_spark(rows: Rows, texts: list[str]) -> list[Answer]:
    """What Spark's filter keeps."""
    answers = []
    for start in range(0, len(texts), _AT_ONCE):
        answers += _asked(rows.frame, texts[start : start + _AT_ONCE], rows.numbers)
    return answers


def _asked(frame: DataFrame, texts: list[str], numbers: list[int]) -> list[Answer]:
    columns = [f"({text}\n) AS c{at}" for at, text in enumerate(texts)]
    try:
        found = frame.selectExpr(ROW, *columns).collect()
    except Exception as wrong:  # noqa: BLE001
        if len(texts) > 1:
            half = len(texts) // 2
            return _asked(frame, texts[:half], numbers) + _asked(frame, texts[half:], numbers)
        if len(numbers) > 1:
            each = [_asked(frame.where(F.col(ROW) == n), texts, [n])[0] for n in numbers]
            true = set().union(*(one.true for one in each))
            return [Answer(true, None, set().union(*(one.listed for one in each)))]
        return [Answer(set(), str(wrong), set(numbers))]
    return [Answer({int(row[ROW]) for row in found if row[f"c{at}"]}) for at in range(len(texts))]


def embedded(rows: Rows, texts: list[str], known: list[Answer]) -> list[Answer]:
    """What Bittern matches in this process, beside what Spark keeps."""
    schema = rows.table.schema
    index = bittern.Index.build(dict(enumerate(texts)), on_error="skip", schema=schema)
    answers = _refused(index, len(texts))
    good = [at for at, answer in enumerate(answers) if answer.refused is None]
    _alone_or_together(
        good, lambda own: _matched_here(rows, {at: texts[at] for at in own}, answers), answers
    )
    for at in good:
        # Of each event one reason is listed, whichever expression it is for: ask again.
        if answers[at].refused is None and (known[at].listed or known[at].true != answers[at].true):
            own = bittern.Index.build({0: texts[at]}, schema=schema)
            alone = bittern.Matcher(own).match(rows.table)
            answers[at].listed = {rows.numbers[row] for row in _rows_told(alone.mistyped)}
    return answers


def _rows_told(mistyped: Any) -> Iterable[int]:
    return [int(each[0]) for each in mistyped]


def _refused(index: bittern.Index, n: int) -> list[Answer]:
    answers = [Answer() for _ in range(n)]
    for bad in index.bad:
        answers[int(bad.id)].refused = bad.message
    return answers


def _matched_here(rows: Rows, texts: dict[int, str], answers: list[Answer]) -> None:
    index = bittern.Index.build(texts, schema=rows.table.schema)
    found = bittern.Matcher(index).match(rows.table)
    for number, ids in zip(rows.numbers, found.to_pylist(), strict=True):
        for at in ids:
            answers[int(at)].true.add(number)


def _alone_or_together(
    good: list[int], match: Callable[[list[int]], None], answers: list[Answer]
) -> None:
    """Match all at once; if that fails, half of them, down to the one that is to blame."""
    if not good:
        return
    try:
        match(good)
    except Exception as wrong:  # noqa: BLE001
        if len(good) == 1:
            kind = "" if isinstance(wrong, BitternError) else f"CRASH {type(wrong).__name__}: "
            answers[good[0]].refused = kind + str(wrong)
            return
        half = len(good) // 2
        for own in (good[:half], good[half:]):
            for at in own:
                answers[at].true.clear()
            _alone_or_together(own, match, answers)


def on_spark(rows: Rows, texts: list[str]) -> list[Answer]:
    """What Bittern matches on Spark."""
    schema = _schema(rows)
    texts_of = dict(enumerate(texts))
    index = bittern.Index.build(texts_of, on_error="skip", functions="spark", schema=schema)
    answers = _refused(index, len(texts))
    good = [at for at, answer in enumerate(answers) if answer.refused is None]
    names = {at: _attributes(texts[at], schema) for at in good}
    why: dict[str, str] = {}
    asked = dict.fromkeys(name for own in names.values() for name in own)
    plan_terms(rows.frame.sparkSession, rows.frame.schema, asked, (), why.__setitem__)
    for at in good:
        answers[at].refused = next((why[name] for name in names[at] if name in why), None)
    good = [at for at in good if answers[at].refused is None]
    _alone_or_together(
        good, lambda own: _matched_there(rows, {at: texts[at] for at in own}, answers), answers
    )
    return answers


def _matched_there(rows: Rows, texts: dict[int, str], answers: list[Answer]) -> None:
    schema = _schema(rows)
    index = bittern.Index.build(texts, functions="spark", schema=schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = bittern.spark.match(rows.frame, index, event_id=ROW, rejects=True).collect()
    for row in found:
        for at in row["subscriptions"]:
            answers[int(at)].true.add(int(row[ROW]))
        if row["rejected"] is not None:
            for at in texts:
                answers[at].listed.add(int(row[ROW]))


def _schema(rows: Rows) -> EventSchema:
    """What the DataFrame tells, as it does where subscriptions are one too."""
    return event_schema(rows.frame.drop(ROW).schema, (), case_sensitive=False)


def _attributes(text: str, schema: EventSchema) -> list[str]:
    index = bittern.Index.build({0: text}, functions="spark", schema=schema)
    return index.rank.attribute_names()
