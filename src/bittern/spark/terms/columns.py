r"""The SQL of terms, in which no row fails a job.

In ANSI mode a division by zero, an overflow or an invalid cast fails the query. Spark's SQL has no
TRY, and ``try_divide`` and its kin are few. But ``try_to_binary`` catches whatever happens inside
of it: ``fails`` asks by it whether terms fail on a row, and a term itself is only computed where it
does not::

    \2failed              fails(all terms)
    \1price / quantity    CASE WHEN `\2failed` THEN CASE WHEN fails(price / quantity) THEN NULL
                          ELSE price / quantity END ELSE price / quantity END
    \1                    CASE WHEN `\2failed` THEN CASE WHEN fails(...) THEN 'price / ... ' END END

Most rows are done with one question. It is asked inside of a lambda function: what expressions have
in common may be computed beforehand, outside of ``try_to_binary``, but nothing that is in a lambda
is. A lambda is interpreted, not compiled: ten terms take 0.2 us for each row.

Python functions cannot be called in a lambda. So their calls are columns of their own, which terms
then read; a function that raises an error fails the job, as it does in every query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bittern.language.printer import print_short, print_text
from bittern.language.term_printer import print_term
from bittern.model.events.derived.derived import REASONS
from bittern.terms.nodes import Attribute, Call, Constant, Term, walk

#: Starts the names of columns that are only needed on the way; alone, the parameter of a lambda.
OWN = "\2"
_FAILED = OWN + "failed"
#: What may go wrong, by the functions that do.
_CAUSES = {
    **dict.fromkeys(("/", "%", "div", "mod", "pmod"), "a division by zero"),
    **dict.fromkeys(("+", "-", "*", "negative", "abs"), "an overflow"),
    **dict.fromkeys(("cast", "int", "bigint", "double", "decimal", "date"), "an invalid cast"),
    **dict.fromkeys(("[]", "element_at", "elt"), "an element that is not there"),
}


@dataclass(frozen=True)
class ComputedTerm:
    """A term that Spark computes, or two that it compares, under a derived attribute's name."""

    name: str
    sides: tuple[Term, ...]
    #: SQL of what Python functions that it calls are given: if that fails, so does the term.
    given: tuple[str, ...] = ()
    #: Is it of a type that no predicate compares, so that only its presence counts?
    is_presence: bool = False

    @property
    def sql(self) -> str:
        """The term, and nothing about failures; of two that are compared -1, 0 or 1."""
        if len(self.sides) == 1:
            return f"({print_term(self.sides[0])})"
        left, right = (f"({print_term(side)})" for side in self.sides)
        return (
            f"CASE WHEN {left} < {right} THEN -1 WHEN {left} = {right} THEN 0 "
            f"WHEN {left} > {right} THEN 1 END"
        )

    @property
    def failing(self) -> str:
        """SQL that tells whether it fails."""
        return fails((*self.given, self.sql))

    @property
    def value(self) -> str:
        """SQL of its value, NULL where it fails."""
        value = f"IF({self.sql} IS NULL, NULL, array(0))" if self.is_presence else self.sql
        own = f"CASE WHEN {self.failing} THEN NULL ELSE {value} END"
        return f"CASE WHEN `{_FAILED}` THEN {own} ELSE {value} END"

    @property
    def reason(self) -> str:
        """Why it has no value, as far as that is known."""
        calls = (
            node.function for side in self.sides for node in walk(side) if isinstance(node, Call)
        )
        causes = dict.fromkeys(_CAUSES[name] for name in calls if name in _CAUSES)
        why = " or ".join(causes) or "it is not defined"
        return f"{print_short(self.name)} has no value: {why}, where Spark fails the query"


@dataclass(frozen=True)
class TermPlan:
    """How the terms among the attributes of an index are computed."""

    computed: tuple[ComputedTerm, ...] = ()
    #: SQL of calls of Python functions by the names of their columns; each round may read the
    #: columns of those before.
    rounds: tuple[Mapping[str, str], ...] = ()


def with_terms(events: DataFrame, plan: TermPlan) -> DataFrame:
    """The events, and a column for each term that Spark computes, and one of reasons."""
    if not plan.computed:
        return events
    frame = events
    for calls in plan.rounds:
        frame = with_calls(frame, calls)
    asked = [sql for term in plan.computed for sql in (*term.given, term.sql)]
    frame = frame.select("*", F.expr(fails(dict.fromkeys(asked))).alias(_FAILED))
    whens = (f"WHEN {term.failing} THEN {print_text(term.reason)}" for term in plan.computed)
    columns = [F.col("`" + name.replace("`", "``") + "`") for name in events.columns]
    columns += [F.expr(term.value).alias(term.name) for term in plan.computed]
    reasons = F.expr(f"CASE WHEN `{_FAILED}` THEN CASE {' '.join(whens)} END END")
    return frame.select(*columns, reasons.alias(REASONS))


def with_calls(frame: DataFrame, calls: Mapping[str, str]) -> DataFrame:
    """The rows, and a column for each of these calls of Python functions."""
    return frame.select("*", *(F.expr(sql).alias(name) for name, sql in calls.items()))


def fails(terms: Iterable[str]) -> str:
    """SQL that tells whether Spark fails to compute one of these terms.

    CASE keeps it from computing what is constant while it plans the query.
    """
    row = f"`{OWN}`"
    body = f"CASE WHEN {row} = 0 THEN struct({', '.join(terms)}) END"
    return f"(try_to_binary(string(size(transform(array(0), {row} -> {body}))), 'utf-8') IS NULL)"


def guarded(term: Term) -> str:
    """SQL of a term, NULL where it fails."""
    sql = print_term(term)
    if isinstance(term, Attribute | Constant):
        return sql
    return f"CASE WHEN {fails((sql,))} THEN NULL ELSE {sql} END"
