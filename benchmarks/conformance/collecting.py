"""The Boolean expressions of a file about one row of one relation, and what is left out, and why.

An expression is taken if Spark's analyzer resolves it over the relation alone, its type is BOOLEAN,
and it needs nothing but the row: no subquery, aggregate, window, generator, chance, session or
function that the file itself defines. The name of the relation in front of a column (``t.a``) is
taken off: an event has none.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import monotonically_increasing_id
from pyspark.sql.types import BooleanType, NullType

from benchmarks.conformance.catalyst import Catalyst, Item, items, kind, members, nodes
from benchmarks.conformance.inputs import File

#: So many rows of a relation are asked about.
MOST_ROWS = 64
#: The column that numbers them.
ROW = "bittern_row"
#: Statements that are run only when they have to be, or never: settings stay as they are.
_NOT_RUN = re.compile(
    r"\s*(DROP|SET|RESET|EXPLAIN|DESC|SHOW|USE|CLEAR|REFRESH|BEGIN)\b", re.IGNORECASE
)
_MADE = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:GLOBAL\s+|TEMP\w*\s+)*(VIEW|TABLE|FUNCTION)", re.IGNORECASE
)
_SESSION = {
    "CurrentDate": "the present moment",
    "CurrentTimestamp": "the present moment",
    "CurrentTime": "the present moment",
    "CurDateExpressionBuilder": "the present moment",
    "Now": "the present moment",
    "LocalTimestamp": "the present moment",
    "CurrentTimeZone": "the session",
    "CurrentUser": "the session",
    "CurrentDatabase": "the session",
    "CurrentCatalog": "the session",
    "CurrentPath": "the session",
    "SparkVersion": "the session",
    "VariableReference": "the session",
    "InputFileName": "the session",
    "FileSourceMetadataAttribute": "the session",
}


_WINDOWS = ("WindowExpression", "UnresolvedWindowExpression")
#: A literal that is another moment each day, of which the analyzer leaves only the moment.
_PRESENT = re.compile(
    r"\b(?:date|timestamp\w*)\s*'\s*(?:now|today|tomorrow|yesterday)\b", re.IGNORECASE
)


@dataclass
class Relation:
    """Some rows, each with its number, and the expressions about them."""

    name: str
    frame: DataFrame
    expressions: dict[str, Expression] = field(default_factory=dict)


@dataclass
class Expression:
    """An expression about a row, as it was written but without the name of its relation."""

    text: str
    file: str
    is_condition: bool
    #: The names in it that columns have in another case.
    other_case: tuple[str, ...] = ()
    #: Types that Spark casts into each other by itself, as ``STRING to INT``.
    implicit: tuple[str, ...] = ()


class Collector:
    """Runs files and collects what they ask about rows."""

    def __init__(self, catalyst: Catalyst, spark: Any) -> None:
        self._catalyst = catalyst
        self._spark = spark
        self._seen: set[tuple[str, str]] = set()
        self.left_out: Counter[str] = Counter()
        #: What needs no relation at all, of all files.
        self.one_row = Relation("one row", spark.range(1).withColumnRenamed("id", ROW))

    def collect(self, file: File) -> list[Relation]:
        """Run a file's statements one after the other; returns the relations with expressions."""
        relations: dict[str, Relation] = {}
        for statement in file.statements:
            try:
                plan = self._catalyst.plan(statement)
            except Exception:  # noqa: BLE001
                self.left_out["the statement is not parsed by Spark"] += 1
                continue
            for item in items(statement, plan, self._catalyst.expression):
                self._add(item, file.name, relations)
            self._run(statement)
        return [each for each in relations.values() if each.expressions]

    def _run(self, statement: str) -> None:
        """Run what later statements may need."""
        head = statement.lstrip("( \n").upper()
        if _NOT_RUN.match(statement) or head.startswith(
            ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
        ):
            return
        try:
            self._spark.sql(statement).collect()
        except Exception as wrong:  # noqa: BLE001
            if "ALREADY_EXISTS" not in str(wrong) or _MADE.match(statement) is None:
                return
            what = _MADE.match(statement)[1]  # type: ignore[index]
            name = (
                statement[_MADE.match(statement).end() :]
                .split(maxsplit=1)[0]
                .split("(", maxsplit=1)[0]
            )  # type: ignore[union-attr]
            for drop in (f"DROP {what} {name}", f"DROP TEMPORARY {what} {name}"):
                try:
                    self._spark.sql(drop)
                    self._spark.sql(statement).collect()
                except Exception:  # noqa: BLE001
                    continue
                return

    def _leave(self, why: str) -> None:
        self.left_out[why] += 1

    def _add(self, item: Item, file: str, relations: dict[str, Relation]) -> None:
        if not item.text:
            return self._leave("where it is written is not known")
        plan = item.relation
        while kind(plan) in ("Filter", "PipeOperator"):
            plan = plan.child()
        if kind(plan) in ("Join", "Generate", "LateralJoin", "AsOfJoin"):
            return self._leave("several relations")
        if any(clause.allowRecursion() for clause in item.around):
            return self._leave("a recursive relation")
        try:
            frame = self._catalyst.frame(plan, item.around)
            text, other_case = self._named(item.text, frame.columns)
            if kind(plan) == "OneRowRelation":
                relation: Relation | None = self.one_row
            else:
                relation = relations.get(f"{plan} {frame.dtypes}")
            selected = (relation.frame if relation else frame).selectExpr(f"({text}\n)")
            type_ = selected.schema[0].dataType
        except Exception as wrong:  # noqa: BLE001
            return self._leave(_unresolved(item, str(wrong)))
        if not isinstance(type_, BooleanType | NullType if item.is_condition else BooleanType):
            return None
        why = self._refusal(selected)
        if why is None and any(
            kind(node) in _WINDOWS for node in nodes(self._catalyst.expression(text))
        ):
            why = "a window"  # the analyzer puts it below the projection
        if why is None and _PRESENT.search(text):
            why = "it reads the present moment"
        if why is None and len({each.lower() for each in frame.columns}) < len(frame.columns):
            why = "two columns of one name"
        key = " ".join(text.split()), str(frame.dtypes)
        if why is None and key in self._seen:
            why = "the same once more"
        if why is not None:
            return self._leave(why)
        self._seen.add(key)
        if relation is None:
            rows = self._catalyst.local(frame.limit(MOST_ROWS))
            rows = self._catalyst.local(rows.select(monotonically_increasing_id().alias(ROW), "*"))
            relation = Relation(f"{file}: {' '.join(str(plan).split())[:60]}", rows)
            relations[f"{plan} {frame.dtypes}"] = relation
        analyzed = selected._jdf.queryExecution().analyzed()
        found = Expression(text, file, item.is_condition, other_case, _implicit(analyzed))
        relation.expressions[text] = found
        return None

    def _refusal(self, selected: DataFrame) -> str | None:
        """Why an expression needs more than its row."""
        plan = selected._jdf.queryExecution().analyzed()
        kinds = {"Aggregate": "an aggregate", "Window": "a window", "Generate": "a generator"}
        if kind(plan) in kinds or kind(plan) != "Project":
            return kinds.get(kind(plan), f"a plan of {kind(plan)}")
        if kind(plan.child()) in kinds and "generator" in str(plan.child()):
            return "a generator"
        (expression,) = members(plan.projectList())
        for node in nodes(expression):
            name = kind(node)
            if name in _SESSION:
                return f"it reads {_SESSION[name]}"
            if "ubquery" in name or name in ("Exists", "ListQuery", "OuterReference"):
                return "a subquery"
            if name in ("WindowExpression", "AggregateExpression"):
                return "a window or an aggregate"
            if name in ("SQLFunctionExpression", "SQLScalarFunction", "ScalaUDF", "PythonUDF"):
                return "a function that the file defines"
        if not expression.deterministic():
            return "it gives another value each time"
        return None

    def _named(self, text: str, names: list[str]) -> tuple[str, tuple[str, ...]]:
        """The text without names of relations, and the names that columns have in another case."""
        columns = {name.lower(): name for name in names}
        places: list[tuple[int, int, list[str]]] = []
        other_case: list[str] = []
        for node in nodes(self._catalyst.expression(text)):
            if kind(node) != "UnresolvedAttribute":
                continue
            parts = [str(part) for part in members(node.nameParts())]
            first = next((at for at, part in enumerate(parts) if part.lower() in columns), 0)
            if first:
                origin = node.origin()
                places.append((origin.startIndex().get(), origin.stopIndex().get(), parts[first:]))
            if parts[first].lower() in columns and columns[parts[first].lower()] != parts[first]:
                other_case.append(parts[first])
        for start, stop, parts in sorted(places, reverse=True):
            shown = (part if part.isidentifier() else f"`{part}`" for part in parts)
            text = text[:start] + ".".join(shown) + text[stop + 1 :]
        return text, tuple(dict.fromkeys(other_case))


def _implicit(analyzed: Any) -> tuple[str, ...]:
    """Casts that Spark adds by itself between texts and other types."""
    found: list[str] = []
    (expression,) = members(analyzed.projectList())
    for node in nodes(expression):
        if kind(node) == "Cast" and "USER_SPECIFIED" not in _tags(node):
            source, to = str(node.child().dataType().sql()), str(node.dataType().sql())
            if (source == "STRING") != (to == "STRING"):
                found.append(f"{source} to {to}")
    return tuple(dict.fromkeys(found))


def _tags(node: Any) -> str:
    # A cast that was written has a tag; its name is all that matters.
    return "USER_SPECIFIED" if node.getTagValue(_user_cast()).isDefined() else ""


def _user_cast() -> Any:
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm
    return jvm.org.apache.spark.sql.catalyst.expressions.Cast.USER_SPECIFIED_CAST()


def _unresolved(item: Item, message: str) -> str:
    lowered = item.text.lower()
    if re.search(r"\(\s*select\b", lowered):
        return "a subquery"
    if "MISSING_AGGREGATION" in message or "AGGREGATE" in message:
        return "an aggregate"
    if "UNRESOLVED_ROUTINE" in message or "UNRESOLVED_FUNCTION" in message:
        return "a function that Spark does not know"
    return "Spark does not accept it over the relation alone"
