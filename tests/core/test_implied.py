"""What is demanded of the documents: Table 2 by enumeration, and no match without it."""

from __future__ import annotations

import datetime as dt
import itertools
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.history.demands.implied import Constraint, constraints
from bittern.language.limits import MAX_PREDICATES
from bittern.language.parser import parse
from bittern.language.syntax import (
    And,
    Between,
    BooleanConstant,
    Compare,
    Expression,
    In,
    IsNull,
    Join,
    Like,
    Literal,
    Not,
    OfDocument,
    Or,
    Pair,
    Quantified,
    Regex,
    Window,
)
from effort import examples
from oracle import truth
from strategies import batches, joined_events, joined_expressions
from strategies import documents as earlier

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: Table 2 as it is printed: OP2, then OP1, then what follows for d.a; its empty cells are None.
TABLE_2: dict[str, dict[str, str | None]] = {
    "=": {"=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="},
    "<": {"=": "<", "<": "<", "<=": "<", ">": None, ">=": None},
    "<=": {"=": "<=", "<": "<", "<=": "<=", ">": None, ">=": None},
    ">": {"=": ">", "<": None, "<=": None, ">": ">", ">=": ">"},
    ">=": {"=": ">=", "<": None, "<=": None, ">": ">", ">=": ">="},
}
#: Close enough together that something lies between any two constants.
NUMBERS = [Decimal(n) / 4 for n in range(-4, 21)]


def exists(*conditions: Expression, window: Window | None = None) -> Quantified:
    return Quantified(False, conjunction(*conditions), window)


def forall(*conditions: Expression, window: Window | None = None) -> Quantified:
    return Quantified(True, conjunction(*conditions), window)


def conjunction(*operands: Expression) -> Expression:
    return And(operands) if len(operands) > 1 else operands[0]


def compare(attribute: str, operator_: str, value: Any) -> Compare:
    return Compare(attribute, operator_, Literal(value))


def some(condition: str) -> tuple[Constraint, ...]:
    return (Constraint(False, condition),)


def every(condition: str) -> tuple[Constraint, ...]:
    return (Constraint(True, condition),)


def implied(join: str, *facts: Expression) -> str:
    """The condition on x that ``EXISTS d (d.x OP1 a)`` implies beside these facts."""
    (found,) = constraints(conjunction(*facts, exists(Join("x", join, "a"))))
    assert not found.universal
    return found.condition


def satisfying(condition: str) -> set[Decimal | None]:
    """The values of x, None for a missing one, of which the condition is TRUE."""
    tree = parse(condition)
    return {x for x in [*NUMBERS, None] if truth(tree, {"x": x}) is True}


def reachable(join: str, *facts: Expression) -> set[Decimal]:
    """The values of x for which the comparison and all the facts are TRUE with some value of a."""
    values = [a for a in NUMBERS if all(truth(fact, {"a": a}) is True for fact in facts)]
    return {x for x in NUMBERS if any(OPERATORS[join](x, a) for a in values)}


def assert_tightest(join: str, facts: tuple[Expression, ...], constants: list[int]) -> None:
    """Nothing reachable is lost, and no comparison of x with a constant says more."""
    condition, needed = implied(join, *facts), reachable(join, *facts)
    allowed = satisfying(condition)
    assert needed <= allowed, condition
    candidates = [satisfying(f"x {op} {c}") for op in OPERATORS for c in constants]
    sound = [candidate for candidate in candidates if needed <= candidate]
    assert allowed <= set(NUMBERS).intersection(*sound), condition


# ------------------------------------------------------------------ the paper


@pytest.mark.parametrize("join", ["=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("fact", list(TABLE_2))
def test_table_2_as_printed(fact: str, join: str) -> None:
    expected = TABLE_2[fact][join]
    tree = And((compare("a", fact, 10), exists(Join("a", join, "a"))))
    assert constraints(tree) == some(f"a {expected} 10" if expected else "a IS NOT NULL")


@pytest.mark.parametrize("join", list(OPERATORS))
@pytest.mark.parametrize("fact", list(OPERATORS))
def test_table_2_by_enumeration(fact: str, join: str) -> None:
    assert_tightest(join, (compare("a", fact, 2),), [2])


@pytest.mark.parametrize("join", list(OPERATORS))
def test_the_first_row_of_table_2_says_all(join: str) -> None:
    """Where OP2 is =, what is implied and the comparison hold of the same documents."""
    fact = compare("a", "=", 2)
    assert satisfying(implied(join, fact)) == reachable(join, fact)


def test_example_6() -> None:
    tree = And((compare("price", "=", 10), exists(Join("price", "=", "price"))))
    assert constraints(tree) == some("price = 10")


def test_example_7() -> None:
    tree = And((compare("price", "<", 10), exists(Join("price", "=", "price"))))
    assert constraints(tree) == some("price < 10")


def test_existence_of_an_attribute() -> None:
    assert constraints(exists(Join("x", "<", "a"))) == some("x IS NOT NULL")
    assert constraints(forall(Join("x", "<", "a"))) == every("x IS NOT NULL")


def test_constants_on_old_documents() -> None:
    between = OfDocument(Between("x", Literal(1), Literal(5)))
    assert constraints(exists(between)) == some("x BETWEEN 1 AND 5")
    assert constraints(forall(between)) == every("x BETWEEN 1 AND 5")


# ------------------------------------------------------------------ intervals

ENDS = list(itertools.product((">", ">="), ("<", "<=")))


@pytest.mark.parametrize("join", list(OPERATORS))
@pytest.mark.parametrize(("above", "below"), ENDS)
@pytest.mark.parametrize(("low", "high"), [(1, 3), (2, 2), (3, 1)])
def test_the_interval_form_by_enumeration(
    low: int, high: int, above: str, below: str, join: str
) -> None:
    facts = (compare("a", above, low), compare("a", below, high))
    if (low, above, below) == (2, ">=", "<=") or low < high:
        assert_tightest(join, facts, [low, high])
    else:
        assert implied(join, *facts) == "FALSE"


@pytest.mark.parametrize("join", list(OPERATORS))
@pytest.mark.parametrize(
    "facts",
    [
        (Between("a", Literal(1), Literal(3)),),
        (Not(Between("a", Literal(1), Literal(3))),),
        (In("a", (Literal(1), Literal(3), Literal(2))),),
        (Not(In("a", (Literal(1), Literal(3)))),),
        (In("a", (Literal(1), Literal(3))), compare("a", "<", 3)),
        (In("a", (Literal(1), Literal(2), Literal(3))), compare("a", "!=", 3)),
        (compare("a", "<=", 3), compare("a", "!=", 3)),
        (compare("a", ">=", 1), compare("a", "!=", 1), compare("a", "!=", 3)),
        (compare("a", "<", 3), compare("a", "<=", 1), compare("a", "<", 2)),
        (Or((compare("a", "<", 1), compare("a", "=", 3))),),
        (Or((compare("a", "=", 1), And((compare("a", ">", 2), compare("a", "<=", 3))))),),
        (Or((IsNull("a"), compare("a", "<=", 3))),),
        (Not(IsNull("a")),),
    ],
    ids=str,
)
def test_several_constants_are_combined(join: str, facts: tuple[Expression, ...]) -> None:
    assert_tightest(join, facts, [1, 2, 3])


@pytest.mark.parametrize(
    ("join", "facts", "condition"),
    [
        ("=", [Between("a", Literal(1), Literal(3))], "x BETWEEN 1 AND 3"),
        ("<=", [Between("a", Literal(1), Literal(3))], "x <= 3"),
        (">", [Between("a", Literal(1), Literal(3))], "x > 1"),
        ("=", [In("a", (Literal(3), Literal(1)))], "x IN (3, 1)"),
        ("<", [In("a", (Literal(3), Literal(1)))], "x < 3"),
        (">=", [In("a", (Literal(3), Literal(1)))], "x >= 1"),
        ("!=", [In("a", (Literal(3), Literal(1)))], "x IS NOT NULL"),
        ("!=", [In("a", (Literal(3), Literal(3)))], "x != 3"),
        ("=", [compare("a", ">", 1), compare("a", "<", 3)], "x > 1 AND x < 3"),
        ("=", [Like("a", "p%"), Not(Regex("a", "q$"))], "x LIKE 'p%' AND x NOT RLIKE 'q$'"),
        ("<", [Like("a", "p%")], "x IS NOT NULL"),
        ("<", [Like("a", "p%"), compare("a", "<", 3)], "FALSE"),
        ("=", [IsNull("a")], "FALSE"),
        ("=", [compare("b", "=", 3)], "x IS NOT NULL"),
    ],
    ids=str,
)
def test_how_it_is_written(join: str, facts: list[Expression], condition: str) -> None:
    assert implied(join, *facts) == condition


# ------------------------------------------------------------------ kinds


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("9", "\U0001f600"),
        ("\uff5e", "\U0001f600"),  # as UTF-8 orders them, not as UTF-16 does
        (False, True),
        (dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 1, tzinfo=dt.UTC)),
        (0.1, Decimal("0.100000000000000005")),
        (2**53, 9007199254740994.0),
        (-1e300, 5),
    ],
)
def test_every_kind_has_its_order(low: Any, high: Any) -> None:
    either = Or((compare("a", "=", high), compare("a", "=", low)))
    for join, end in (("<=", high), (">=", low)):
        tree = parse(implied(join, either))
        assert isinstance(tree, Compare)
        assert (tree.operator, tree.operand) == (join, Literal(end))


def test_constants_of_several_kinds() -> None:
    mixed = Or((compare("a", "=", 1), compare("a", "=", True), compare("a", "=", "p")))
    assert implied("=", mixed) == "x = 1 OR x = TRUE OR x = 'p'"
    assert implied("<", mixed) == "x < 1 OR x < TRUE OR x < 'p'"
    assert implied("!=", mixed) == "x != 1 OR x != TRUE OR x != 'p'"
    assert implied("<", compare("a", "<", 1), compare("a", "<", "p")) == "FALSE"
    # The event's side can be of any kind that its constants leave open.
    assert implied("<", Or((compare("a", "<", 1), compare("a", ">", "p")))) == (
        "x < 1 OR x IS NOT NULL"
    )


def test_the_number_one_is_not_true() -> None:
    ones = Or((OfDocument(compare("x", "=", 1)), OfDocument(compare("x", "=", True))))
    assert constraints(exists(ones)) == some("x = 1 OR x = TRUE")


def test_nan_is_above_all_numbers() -> None:
    tree = parse(implied("<=", compare("a", "<=", 5)))
    assert truth(tree, {"x": float("nan")}) is False
    assert truth(parse(implied(">=", compare("a", ">=", 5))), {"x": float("nan")}) is True


# ------------------------------------------------------------------ where demands come from

IN_X = OfDocument(compare("x", "=", 1))
ON_Y = OfDocument(compare("y", "=", 2))
JOIN = Join("z", "=", "a")


def test_one_quantifier_makes_one_condition() -> None:
    tree = And((compare("a", "<", 9), exists(IN_X, ON_Y, JOIN), exists(JOIN)))
    assert constraints(tree) == (*some("x = 1 AND y = 2 AND z < 9"), *some("z < 9"))


def test_equal_demands_are_listed_once() -> None:
    assert constraints(And((exists(IN_X), exists(IN_X, compare("a", "=", 5))))) == some("x = 1")


def test_an_attribute_that_is_compared_is_there() -> None:
    assert constraints(exists(Join("x", "!=", "a"), IN_X)) == some("x = 1")
    assert constraints(exists(Join("x", "!=", "a"), Join("x", "<", "b"))) == some("x IS NOT NULL")
    null = OfDocument(IsNull("x"))
    assert constraints(exists(Or((null, IN_X)), Join("x", "!=", "a"))) == some(
        "(x IS NULL OR x = 1) AND x IS NOT NULL"
    )


def test_or_inside_a_quantifier_demands_one_of_its_branches() -> None:
    assert constraints(exists(Or((IN_X, And((ON_Y, JOIN)))))) == some(
        "x = 1 OR y = 2 AND z IS NOT NULL"
    )
    free = Or((IN_X, compare("a", "=", 5)))
    assert constraints(exists(free, ON_Y)) == some("y = 2")
    assert constraints(exists(free)) == some("TRUE")
    assert constraints(forall(free)) == ()


def test_what_is_known_of_the_event_inside_a_quantifier() -> None:
    inside = And((compare("a", "<", 9), JOIN))
    assert constraints(exists(compare("a", "<", 9), JOIN)) == some("z < 9")
    # Each branch knows its own, and what stands around it.
    assert constraints(And((compare("a", ">", 3), exists(Or((inside, JOIN)))))) == some(
        "z > 3 AND z < 9 OR z > 3"
    )
    # What one quantifier says of the event inside an OR, another one does not know.
    assert constraints(And((exists(Or((inside, IN_X))), exists(JOIN)))) == (
        *some("z < 9 OR x = 1"),
        *some("z IS NOT NULL"),
    )


def test_negations_inside_a_quantifier() -> None:
    assert constraints(exists(Not(OfDocument(Like("x", "a%"))))) == some("x NOT LIKE 'a%'")
    assert constraints(exists(Not(OfDocument(IsNull("x"))))) == some("x IS NOT NULL")
    assert constraints(exists(Not(Or((IN_X, JOIN))), compare("a", "=", 3))) == some(
        "x != 1 AND z != 3"
    )


def test_pairs_demand_that_the_attributes_of_the_document_are_there() -> None:
    assert constraints(exists(Pair(True, "x", "<", "y"))) == some("x IS NOT NULL AND y IS NOT NULL")
    assert constraints(exists(Pair(False, "a", "<", "b"), IN_X)) == some("x = 1")


def test_any_document_at_all() -> None:
    assert constraints(exists(compare("a", "=", 5))) == some("TRUE")
    assert constraints(exists(BooleanConstant(True))) == some("TRUE")
    assert constraints(exists(BooleanConstant(False))) == some("FALSE")
    assert constraints(forall(BooleanConstant(True))) == ()
    assert constraints(forall(BooleanConstant(False))) == every("FALSE")


@pytest.mark.parametrize(
    "tree",
    [
        compare("a", "=", 5),
        BooleanConstant(True),
        BooleanConstant(False),
        Or((exists(IN_X), compare("a", "=", 5))),
        Or((exists(IN_X), forall(IN_X))),
        Not(exists(IN_X)),
        Not(forall(IN_X)),
        Not(And((exists(IN_X), compare("a", "=", 5)))),
    ],
    ids=str,
)
def test_what_demands_nothing(tree: Expression) -> None:
    assert constraints(tree) == ()


def test_a_quantifier_that_must_hold_under_two_negations() -> None:
    assert constraints(Not(Or((Not(exists(IN_X)), compare("a", "=", 5))))) == some("x = 1")


def test_windows() -> None:
    last = Window(count=5)
    assert constraints(exists(IN_X, window=last)) == some("x = 1")
    assert constraints(forall(IN_X, window=last)) == ()
    hour = Window(microseconds=3_600_000_000, of="ts")
    assert constraints(exists(IN_X, window=hour)) == some("x = 1 AND ts IS NOT NULL")
    assert constraints(forall(IN_X, window=hour)) == ()


def test_groups() -> None:
    per = Window(per=("shop", "a"))
    fact = compare("a", "=", 5)
    assert constraints(And((fact, exists(IN_X, window=per)))) == some(
        "x = 1 AND shop IS NOT NULL AND a = 5"
    )
    # What is known inside the quantifier holds for the window too.
    assert constraints(exists(IN_X, fact, window=per)) == some(
        "x = 1 AND shop IS NOT NULL AND a = 5"
    )
    assert constraints(forall(IN_X, window=per)) == ()


def test_names_that_need_quotes() -> None:
    tree = And((compare("a", "=", 5), exists(Join("odd name.`x.y`", "=", "a"))))
    assert constraints(tree) == some("`odd name`.`x.y` = 5")


# ------------------------------------------------------------------ hostile expressions


def test_a_demand_beyond_the_limits_asks_for_any_document() -> None:
    many = In("a", tuple(Literal(n) for n in range(MAX_PREDICATES // 2)))
    branches = [And((JOIN, Join(f"y{n}", "=", "a"))) for n in range(3)]
    assert constraints(And((many, exists(Or(tuple(branches)))))) == some("TRUE")
    assert constraints(And((many, forall(Or(tuple(branches)))))) == ()


def test_thousands_of_constants_on_one_attribute() -> None:
    apart = [compare("a", "!=", n) for n in range(MAX_PREDICATES - 2)]
    assert implied("<=", *apart, compare("a", "<=", 7)) == "x < 7"


def test_deep_nesting() -> None:
    tree: Expression = JOIN
    for level in range(90):
        tree = Or((And((tree, compare("b", "!=", level))), IN_X))
    (found,) = constraints(exists(tree))
    assert found.condition == "z IS NOT NULL OR x = 1"


# ------------------------------------------------------------------ against the nested loops

_numbers, _strings = st.sampled_from([1, 2, 3, Decimal("2.5")]), st.sampled_from(["p", "pq", "q"])
_values = st.one_of(_numbers, _numbers, _strings, st.booleans())
_operators = st.sampled_from(list(OPERATORS))


def _predicates(names: str) -> st.SearchStrategy[Any]:
    name, number = st.sampled_from(names), _numbers.map(Literal)
    compared = st.builds(Compare, name, _operators, _values.map(Literal))
    return st.one_of(
        compared,
        compared,
        st.builds(Between, name, number, number),
        st.builds(In, name, st.lists(number, min_size=1, max_size=3).map(tuple)),
        st.builds(IsNull, name),
        st.builds(Like, name, st.just("p%")),
    )


def _trees(leaves: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def grow(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(several.map(And), several.map(And), several.map(Or), inner.map(Not))

    return st.recursive(leaves, grow, max_leaves=5)


_windows = st.one_of(
    st.none(),
    st.none(),
    st.builds(Window, count=st.integers(1, 2)),
    st.builds(Window, per=st.sampled_from([("x",), ("x", "y")])),
    st.builds(Window, count=st.just(1), per=st.just(("x",))),
)
_inside = _trees(
    st.one_of(
        _predicates("xy").map(OfDocument),
        st.builds(Join, st.sampled_from("xy"), _operators, st.sampled_from("xy")),
        st.builds(Join, st.sampled_from("xy"), _operators, st.sampled_from("xy")),
        st.builds(Pair, st.booleans(), st.just("x"), _operators, st.just("y")),
        _predicates("xy"),
    )
)
_quantified = st.builds(Quantified, st.booleans(), _inside, _windows)
_expressions = st.one_of(
    _quantified,
    st.lists(st.one_of(_predicates("xy"), _quantified), min_size=2, max_size=4).map(
        lambda drawn: And(tuple(drawn))
    ),
    _trees(st.one_of(_predicates("xy"), _quantified)),
)
_events = st.fixed_dictionaries({}, optional={"x": _values, "y": _values})


def holds(constraint: Constraint, documents: list[dict[str, Any]]) -> bool:
    tree = parse(constraint.condition)
    quantifier = all if constraint.universal else any
    return quantifier(truth(tree, document) is True for document in documents)


def assert_no_match_without(
    tree: Expression, documents: list[dict[str, Any]], events: list[dict[str, Any]]
) -> None:
    found = constraints(tree)
    if not all(holds(each, documents) for each in found):
        assert not [event for event in events if truth(tree, event, documents) is True], found


@examples(6)
@given(_expressions, st.lists(_events, max_size=4), st.lists(_events, min_size=3, max_size=8))
def test_nothing_matches_where_a_constraint_fails(
    tree: Expression, documents: list[dict[str, Any]], events: list[dict[str, Any]]
) -> None:
    assert_no_match_without(tree, documents, events)


@examples(3)
@given(joined_expressions(), earlier(4), batches(joined_events(), 5))
def test_nor_where_values_are_hard_to_tell_apart(
    tree: Expression, documents: list[dict[str, Any]], events: list[dict[str, Any]]
) -> None:
    assert_no_match_without(tree, documents, events)
