"""Spark's own parser and analyzer: plans, expressions, and where in the text they are.

This reaches behind PySpark into the JVM, which only a measurement may do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

#: Levels of parentheses that are looked for around a value.
_MOST_PARENTHESES = 8
#: Numbers that Spark gives to expressions, each time others.
_NUMBERS = re.compile(r"#\d+L?")


class Item(NamedTuple):
    """A condition or an item after SELECT: its text, its kind, and the plan that it reads."""

    text: str
    kind: str
    relation: Any
    #: The WITH clauses around it, the outermost first.
    around: tuple[Any, ...]
    is_condition: bool


def members(sequence: Any) -> list[Any]:
    """The members of a Scala sequence."""
    iterator = sequence.iterator()
    found = []
    while iterator.hasNext():
        found.append(iterator.next())
    return found


def kind(node: Any) -> str:
    """The name of a node's class."""
    return str(node.getClass().getSimpleName()).rstrip("$")


def nodes(tree: Any) -> Iterator[Any]:
    """Every node of a tree, parents first."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(members(node.children()))


class Catalyst:
    """The parser and the analyzer of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._session = spark._jsparkSession
        self._parser = self._session.sessionState().sqlParser()
        self._jvm: Any = spark._jvm

    def plan(self, text: str) -> Any:
        """The plan of a statement, with nothing resolved."""
        return self._parser.parsePlan(text)

    def expression(self, text: str) -> Any:
        """An expression, with nothing resolved."""
        return self._parser.parseExpression(text)

    def frame(self, plan: Any, around: tuple[Any, ...]) -> DataFrame:
        """The rows of a plan, inside of WITH clauses."""
        for clause in reversed(around):
            plan = clause.withNewChildren(self._jvm.PythonUtils.toSeq([plan]))
        dataset = self._jvm.org.apache.spark.sql.classic.Dataset
        return DataFrame(dataset.ofRows(self._session, plan), self._spark)

    def local(self, frame: DataFrame) -> DataFrame:
        """The rows of a frame, fetched once and kept in the plan, with all their types."""
        rows = frame._jdf.collectAsList()
        return DataFrame(self._session.createDataFrame(rows, frame._jdf.schema()), self._spark)


def items(text: str, plan: Any, parse: Callable[[str], Any]) -> Iterator[Item]:
    """All conditions of WHERE and items of SELECT in the plan of a text, subqueries included."""
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(plan, ())]
    while waiting:
        node, around = waiting.pop(0)
        name = kind(node)
        if name == "UnresolvedWith":
            around = (*around, node)
        if name == "Filter":
            found = text_of(text, node.condition(), parse), kind(node.condition())
            yield Item(*found, node.child(), around, is_condition=True)
        elif name == "Project":
            for listed in members(node.projectList()):
                item = _unnamed(listed)
                if kind(item) in ("UnresolvedStar", "UnresolvedAttribute"):
                    continue
                found = text_of(text, item, parse), kind(item)
                yield Item(*found, node.child(), around, is_condition=False)
        waiting += [(each, around) for each in members(node.children())]
        waiting += [(each, around) for each in members(node.innerChildren()) if _is_plan(each)]


def _unnamed(item: Any) -> Any:
    while kind(item) in ("Alias", "UnresolvedAlias", "MultiAlias", "PipeExpression"):
        item = item.child()
    return item


def _is_plan(node: Any) -> bool:
    name = str(node.getClass().getName())
    return ".plans.logical." in name or ".analysis." in name or ".command." in name


def text_of(text: str, node: Any, parse: Callable[[str], Any]) -> str:
    """What was written for a node; empty if that cannot be told.

    The parser says where a node begins and ends, but for ``a IN (1)`` only where ``IN (1)`` does,
    and it does not count parentheses. So what is found is parsed again.
    """
    places = [(each.startIndex(), each.stopIndex()) for each in (n.origin() for n in nodes(node))]
    known = [(one.get(), two.get()) for one, two in places if one.isDefined() and two.isDefined()]
    if not known:
        return ""
    meant = str(node)
    (start, stop), least = known[0], min(one for one, _ in known)
    for _ in range(_MOST_PARENTHESES):
        for first in dict.fromkeys((start, least)):
            found = text[first : stop + 1].strip()
            if _is_meant(found, meant, parse):
                return found
        before = text[:least].rstrip()
        if not before.endswith("("):
            return ""
        least = len(before) - 1
    return ""


def _is_meant(found: str, meant: str, parse: Callable[[str], Any]) -> bool:
    try:
        return _NUMBERS.sub("", str(parse(found))) == _NUMBERS.sub("", meant)
    except Exception:  # noqa: BLE001
        return False
