"""Which terms Spark can compute for events of some schema, and why not the others.

Spark's analyzer is asked, with an empty DataFrame and without a job. A condition of a join is the
one place where it refuses all that a subscription must not have: unknown functions and wrong types,
but also aggregates, windows, generators and functions that give another value each time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
)

from bittern.errors import OptionError
from bittern.language.derived import (
    element_of,
    has_unknown_functions,
    is_derived,
    sets_of,
    term_of,
)
from bittern.language.literals import TERM, attribute_parts
from bittern.language.printer import print_attribute
from bittern.language.term_printer import print_term
from bittern.spark.arrow_types import arrow_type
from bittern.spark.session import is_case_sensitive
from bittern.spark.terms.columns import OWN, ComputedTerm, TermPlan, fails, guarded, with_calls
from bittern.spark.versions import VariantType, condition, query_log
from bittern.terms.nodes import Attribute, Call, Constant, Lambda, Term, attributes_of
from bittern.terms.unknown import unknown_functions

logger = logging.getLogger("bittern")

#: Gets a derived attribute that cannot be computed, and why.
OnRefused: TypeAlias = Callable[[str, str], None]

_NULL = Constant(pa.scalar(None, pa.null()))
_PYTHON = "LAMBDA_FUNCTION_WITH_PYTHON_UDF"
_WORDS = {
    "INVALID_NON_DETERMINISTIC_EXPRESSIONS": "it gives another value each time",
    "UNSUPPORTED_EXPR_FOR_OPERATOR": "it needs many rows, and a subscription sees one event",
    "UNSUPPORTED_GENERATOR": "it gives many rows, and a subscription sees one event",
}


def refuse(name: str, why: str) -> None:
    """Raise: this derived attribute cannot be computed for these events."""
    raise OptionError(f"{print_attribute(name)} cannot be computed for these events: {why}")


def plan_terms(
    spark: SparkSession,
    schema: StructType,
    attributes: Iterable[str],
    json: Sequence[str],
    on_refused: OnRefused = refuse,
) -> TermPlan:
    """Ask Spark which terms it can compute for events of a schema, and how.

    What it cannot is evaluated by workers, if they know all its functions; else ``on_refused`` gets
    it, and it is NULL if that returns. A few questions to the analyzer for each term.
    """
    names = [name for name in attributes if is_derived(name) and not _is_for_workers(name)]
    if not names:
        return TermPlan()
    schema_of = Columns(schema, json, case_sensitive=is_case_sensitive(spark))
    terms: list[ComputedTerm] = []
    refused: dict[str, str] = {}
    for name in names:
        try:
            terms.append(ComputedTerm(name, tuple(map(schema_of.resolved, sides(name)))))
        except LookupError as missing:
            refused[name] = str(missing)
    frame = spark.createDataFrame([], schema)
    refused |= refusals(frame, terms)
    terms = [term for term in terms if term.name not in refused]
    for name, why in refused.items():
        if any(map(unknown_functions, sides(name))):
            on_refused(name, why)
            terms.append(ComputedTerm(name, (_NULL,)))
    return _planned(frame, terms)


def _is_for_workers(name: str) -> bool:
    """Whether workers evaluate it: they look for all elements of an array at once, and into sets.

    ``language/derived.py`` refuses to look up what only Spark can compute.
    """
    if sets_of([name]):
        return True
    return element_of(name) is not None and not has_unknown_functions([name])


class PlansOfStream:
    """Plans for one micro-batch after the other: Spark is asked again only if something changed.

    A term that cannot be computed is NULL: a subscription does not stop a stream.
    """

    def __init__(self, spark: SparkSession, json: Sequence[str]) -> None:
        self._spark = spark
        self._json = json
        self._known: tuple[StructType, tuple[str, ...]] | None = None
        self._plan = TermPlan()

    def plan(self, schema: StructType, attributes: Sequence[str]) -> TermPlan:
        """The plan for events of this schema."""
        known = schema, tuple(filter(is_derived, attributes))
        if known != self._known:
            self._plan = plan_terms(self._spark, *known, self._json, _warn)
            self._known = known
        return self._plan


def _warn(name: str, why: str) -> None:
    shown = print_attribute(name)
    logger.warning("bittern: %s is NULL, since it cannot be computed: %s", shown, why)


def sides(name: str) -> tuple[Term, ...]:
    """The term that a derived attribute stands for, or the two that it compares."""
    term = term_of(name)
    is_pair = TERM in name[1:-1]
    return term.arguments if is_pair and isinstance(term, Call) else (term,)


class Columns:
    """The columns of events, and which attributes a path in them leads to."""

    def __init__(self, schema: StructType, json: Sequence[str], *, case_sensitive: bool) -> None:
        self._case_sensitive = case_sensitive
        plain = [field for field in schema if not _is_document(field.name, field.dataType, json)]
        self._plain = StructType(plain)
        #: Are there attributes that only the content of columns tells?
        self._has_open = len(plain) < len(schema) or any(
            isinstance(field.dataType, MapType) for field in plain
        )

    def is_plain(self, name: str) -> bool:
        """Whether a path of columns, fields and entries leads to an attribute."""
        type_: DataType = self._plain
        for part in attribute_parts(name):
            if isinstance(type_, ArrayType):
                type_ = type_.elementType  # the path leads to an array of what is in its elements
            if isinstance(type_, StructType):
                twins = [each for each in type_ if each.name.lower() == part.lower()]
                if len(twins) != 1 or (self._case_sensitive and twins[0].name != part):
                    return False
                type_ = twins[0].dataType
            elif isinstance(type_, MapType) and isinstance(type_.keyType, StringType):
                type_ = type_.valueType
            else:
                return False
        return True

    def resolved(self, term: Term) -> Term:
        """The term, with NULL for what no event has; ``LookupError`` if that cannot be told."""
        hidden = [name for name in attributes_of(term) if not self.is_plain(name)]
        if hidden and (self._has_open or not unknown_functions(term)):
            raise LookupError(
                f"{hidden[0]} is no column, and only Spark knows the function "
                f"{', '.join(unknown_functions(term))}, which it can apply to columns alone"
            )
        return replaced(term, {Attribute(name): _NULL for name in hidden})


def _is_document(name: str, type_: DataType, json: Sequence[str]) -> bool:
    return name in json or isinstance(type_, VariantType)


def replaced(term: Term, by: dict[Term, Term]) -> Term:
    """The term, other terms in place of some parts of it; parameters of lambdas stay."""
    if term in by:
        return by[term]
    if isinstance(term, Call):
        arguments = tuple(replaced(argument, by) for argument in term.arguments)
        return replace(term, arguments=arguments)
    if isinstance(term, Lambda):
        own = {key: value for key, value in by.items() if not _is_bound(key, term.parameters)}
        return replace(term, body=replaced(term.body, own))
    return term


def _is_bound(term: Term, parameters: Sequence[str]) -> bool:
    return isinstance(term, Attribute) and term.name.split(".", 1)[0] in parameters


def refusals(frame: DataFrame, terms: Sequence[ComputedTerm]) -> dict[str, str]:
    """By name, why Spark cannot compute terms over the rows of a frame."""
    if not terms or _refusal(frame, [term.sql for term in terms]) is None:
        return {}
    found = {term.name: _refusal(frame, [term.sql]) for term in terms}
    return {name: why for name, why in found.items() if why is not None}


def _refusal(frame: DataFrame, sql: Sequence[str]) -> str | None:
    """Why Spark cannot compute one of these terms, or None."""
    other = frame.sparkSession.range(1).select(F.lit(1).alias(OWN))
    joined = " AND ".join(f"({each} IS NULL)" for each in sql)
    try:
        with _quietly():
            _ = frame.join(other, F.expr(joined)).schema
            types = [field.dataType for field in frame.select(*map(F.expr, sql)).schema]
    except AnalysisException as wrong:
        kind = condition(wrong).split(".")[0]
        return _WORDS.get(kind) or str(wrong).split("\n", 1)[0]
    collated = [type_ for type_ in types if _is_collated(type_)]
    return f"it is {collated[0].simpleString()}" if collated else None


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep PySpark from writing errors to the log that are answers here."""
    log = query_log()
    was, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was


def _is_collated(type_: DataType) -> bool:
    """Whether strings are compared otherwise than by their bytes."""
    return isinstance(type_, StringType) and type_ != StringType()


def _planned(frame: DataFrame, terms: list[ComputedTerm]) -> TermPlan:
    """The plan for terms that Spark can compute."""
    rounds: list[dict[str, str]] = []
    columns: dict[Term, str] = {}
    while True:
        calls: dict[Term, str] = {}
        for at, term in enumerate(terms):
            found = [call for side in term.sides for call in _python_calls(frame, side)]
            for call in found:
                columns.setdefault(call, f"{OWN}{len(columns)}")
                calls[call] = columns[call]
            by: dict[Term, Term] = {call: Attribute(columns[call]) for call in found}
            given = tuple(print_term(each) for call in found for each in call.arguments)
            sides = tuple(replaced(side, by) for side in term.sides)
            terms[at] = replace(term, sides=sides, given=(*term.given, *given))
        if not calls:
            break
        rounds.append({name: _call(call) for call, name in calls.items()})
        frame = with_calls(frame, rounds[-1])
    types = [field.dataType for field in frame.select(*(F.expr(term.sql) for term in terms)).schema]
    computed = [
        replace(term, is_presence=not _is_compared(type_))
        for term, type_ in zip(terms, types, strict=True)
    ]
    return TermPlan(tuple(computed), tuple(rounds))


def _is_compared(type_: DataType) -> bool:
    """Whether predicates compare values of this type."""
    nested = ArrayType | MapType | StructType | VariantType | BinaryType
    return arrow_type(type_) is not None and not isinstance(type_, nested)


def _python_calls(frame: DataFrame, term: Term) -> list[Call]:
    """The innermost calls of Python functions in a term."""
    if not isinstance(term, Call) or not unknown_functions(term):
        return []
    inner = [call for argument in term.arguments for call in _python_calls(frame, argument)]
    if inner or not unknown_functions(replace(term, arguments=())):
        return inner
    try:
        with _quietly():
            _ = frame.select(F.expr(fails((print_term(term),)))).schema
    except AnalysisException as wrong:
        if _PYTHON in condition(wrong):
            return [term]
        raise
    return []


def _call(call: Term) -> str:
    assert isinstance(call, Call)
    return f"{call.function}({', '.join(map(guarded, call.arguments))})"
