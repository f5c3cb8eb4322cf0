"""Each rule of ``semantics.py`` against the oracle, the engine, Spark and the document."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given

import bittern
import oracle
import semantics
import strategies
from beside_spark import evaluated
from bittern.errors import ExpressionError
from bittern.language import limits
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.terms import scope
from bittern.terms.limits import MAX_ELEMENTS, MAX_REGEX_LENGTH

if TYPE_CHECKING:
    from bittern.language.syntax import Expression
from semantics import ERROR, REFUSED, RULES, SCHEMA, TERMS, Case, Rule

FUNCTIONS = semantics.function_rules()
ALL = RULES | TERMS | FUNCTIONS


def _pairs(rules: dict[str, tuple[Rule, ...]]) -> list[tuple[Rule, Case]]:
    return [(rule, case) for rule in itertools.chain(*rules.values()) for case in rule.cases]


PAIRS = _pairs(ALL)
PLAIN = _pairs(RULES)
#: Rules in which Spark agrees throughout can share a job; one that may fail has its own.
AGREED = [(rule, case) for rule, case in PAIRS if not rule.why]
DIFFERENT = [(rule, case) for rule, case in PAIRS if rule.why]


def _name(item: Rule | Case) -> str:
    return item.name if isinstance(item, Rule) else semantics.event_text(item.event)


def test_names_are_unique() -> None:
    names = [rule.name for rules in ALL.values() for rule in rules]
    assert len(names) == len(set(names))


def test_document_shows_these_rules() -> None:
    assert semantics.documented() == semantics.tables(), "run: python tests/semantics.py"


def test_document_shows_these_functions() -> None:
    shown = semantics.documented(semantics.FUNCTIONS_DOCUMENT)
    assert shown == semantics.function_tables(), "run: python tests/semantics.py"


def test_every_function_has_a_row() -> None:
    """IN SET has a table of its own, and what compares two terms is written as its operator."""
    assert set(scope.functions()) - semantics.names_of_functions() == {"compare", "in set"}


def test_oracle() -> None:
    wrong = [
        (rule.name, case.event, found)
        for rule, case in PLAIN
        if (found := oracle.truth(parse(rule.expression), case.event)) is not case.answer
    ]
    assert not wrong


@pytest.fixture(scope="module")
def matcher() -> bittern.Matcher:
    """One index of every rule and its negation: what neither matches is unknown."""
    catalog = {}
    for rules in ALL.values():
        for rule in rules:
            catalog[rule.name] = rule.expression
            catalog[f"not {rule.name}"] = f"NOT ({rule.expression})"
    return bittern.Matcher(bittern.Index.build(catalog))


@pytest.mark.parametrize("form", ["mapping", "arrow"])
def test_engine(matcher: bittern.Matcher, form: str) -> None:
    events: Any = [case.event for _, case in PAIRS]
    if form == "arrow":
        events = strategies.as_arrow(events, SCHEMA)
    wrong = []
    for (rule, case), matched in zip(PAIRS, matcher.match(events).to_pylist(), strict=True):
        answers = {rule.name: True, f"not {rule.name}": False}
        found = [answers[name] for name in matched if name in answers]
        if found != ([] if case.answer is None else [case.answer]):
            wrong.append((rule.name, case.event, found))
    assert not wrong


def test_functions_fail_where_spark_does() -> None:
    wrong = []
    for rule, case in _pairs(FUNCTIONS):
        _, failing = evaluated(rule.expression, strategies.as_arrow([case.event], SCHEMA))
        if bool(failing) is not (case.spark == ERROR):
            wrong.append(rule.name)
    assert not wrong


@given(
    strategies.catalogs(strategies.free_expressions()),
    strategies.batches(strategies.free_events()),
)
def test_engine_agrees_with_the_oracle_on_anything(
    catalog: dict[str, Expression], events: list[dict[str, Any]]
) -> None:
    index = bittern.Index.build({name: print_expression(tree) for name, tree in catalog.items()})
    matched = bittern.Matcher(index).match(events).to_pylist()
    expected = [
        [name for name, tree in catalog.items() if oracle.matches(tree, event)] for event in events
    ]
    assert [sorted(names) for names in matched] == [sorted(names) for names in expected]


@pytest.mark.spark
def test_spark_agrees(spark: Any) -> None:
    """All rules on which Spark agrees, in one job: each expression a column, each case a row.

    An expression is only asked for its own row: it may fail on others.
    """
    table = strategies.as_arrow([case.event for _, case in AGREED], SCHEMA)
    rows = table.append_column("own_row", pa.array(range(len(AGREED))))
    columns = [
        f"CASE WHEN own_row = {number} THEN ({rule.expression}) END AS c{number}"
        for number, (rule, _) in enumerate(AGREED)
    ]
    answered = spark.createDataFrame(rows).orderBy("own_row").selectExpr(*columns).toArrow()
    wrong = [
        (rule.name, rule.expression, case.event, f"Spark says {answer}")
        for number, (rule, case) in enumerate(AGREED)
        if (answer := answered.column(number)[number].as_py()) is not case.answer
    ]
    assert not wrong


@pytest.mark.spark
@pytest.mark.parametrize(("rule", "case"), DIFFERENT, ids=_name)
def test_spark_differs(spark: Any, rule: Rule, case: Case) -> None:
    """The deliberate differences are real: Spark does answer otherwise, or fails."""
    from pyspark.errors import PySparkException

    frame = spark.createDataFrame(strategies.as_arrow([case.event], SCHEMA))
    if case.spark == ERROR:
        with pytest.raises(PySparkException):
            frame.filter(rule.expression).collect()
        return
    [[answer]] = frame.selectExpr(rule.expression).collect()
    assert answer is case.spark


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: refused.expression)
def test_refused(refused: semantics.Refused) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse(refused.expression)
    assert 0 <= raised.value.position < len(refused.expression)


@pytest.mark.spark
def test_spark_accepts_what_is_refused(spark: Any) -> None:
    frame = spark.createDataFrame(strategies.as_arrow([{"n": 5}], SCHEMA))
    frame.selectExpr(*[refused.expression for refused in REFUSED]).collect()


def test_document_shows_the_limits_and_its_examples_are_valid() -> None:
    text = semantics.DOCUMENT.read_text(encoding="utf-8")
    sizes = (
        *(limits.MAX_LENGTH, limits.MAX_DEPTH, limits.MAX_PREDICATES, MAX_REGEX_LENGTH),
        *(limits.MAX_PARTS, limits.MAX_WINDOW_COUNT, limits.MAX_WINDOW_DAYS),
        *(limits.MAX_TERM_DEPTH, limits.MAX_TERM_HEIGHT, limits.MAX_TERMS, limits.MAX_OPERANDS),
        MAX_ELEMENTS,
    )
    for size in sizes:
        assert f"| {size:,} " in text
    blocks = [rest.partition("```")[0] for rest in text.split("```sql\n")[1:]]
    examples = [example for block in blocks for example in block.splitlines()]
    assert len([parse(example) for example in examples]) > 12
