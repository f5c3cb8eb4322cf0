"""Guards: no entry that matters is left out, none that cannot matter is asked for."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.engine.index import Index
from bittern.history.demands.implied import Constraint, constraints
from bittern.history.joins.guards import Guards
from bittern.language.normalize import normal_form
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.quantifiers import HIDDEN, canonical, hidden_name
from bittern.language.syntax import And, BooleanConstant, Expression, Not, Or, Quantified
from bittern.language.trees import map_leaves, walk
from oracle import truth
from strategies import batches, documents, joined_events, joined_expressions, quantified

ISBN, PRICE = "EXISTS d (d.isbn = isbn)", "EXISTS d (d.price > price)"
OK = "FORALL d (d.ok = TRUE)"
CATALOG = {
    "cheap": f"price < 10 AND {ISBN}",
    "new": f"shop = 's' AND NOT {ISBN}",
    "dearer": f"price < 10 AND {PRICE}",
    "both": f"{ISBN} AND {OK}",
    "plain": "price < 10",
}


def guards_of(*texts: str) -> Guards:
    guards = Guards.of(Index.build(enumerate(texts)))
    assert guards is not None
    return guards


def needed(guards: Guards, events: Any, **options: Any) -> list[list[str]]:
    """The texts of the entries that each event needs."""
    starts, numbers = guards.needed(events, **options).rows
    assert starts[0] == 0
    for low, high in itertools.pairwise(starts.tolist()):
        assert (np.diff(numbers[low:high]) > 0).all()
    names = [guards.entries[number].removeprefix(HIDDEN) for number in numbers.tolist()]
    return [names[low:high] for low, high in itertools.pairwise(starts.tolist())]


# ------------------------------------------------------------------ by hand


def test_only_guards_that_hold_ask_for_entries() -> None:
    guards = guards_of(CATALOG["cheap"], CATALOG["new"], CATALOG["dearer"], CATALOG["plain"])
    events = [{"price": 5}, {"shop": "s"}, {"price": 5, "shop": "s"}, {"price": 50}, {}]
    assert needed(guards, events) == [[ISBN, PRICE], [ISBN], [ISBN, PRICE], [], []]
    assert guards.always().tolist() == []


def test_what_every_event_needs() -> None:
    guards = guards_of(*CATALOG.values())
    assert [guards.entries[number] for number in guards.always()] == [HIDDEN + ISBN, HIDDEN + OK]
    events = [{"price": 5}, {"shop": "s"}, {}]
    assert needed(guards, events) == [[ISBN, PRICE, OK], [ISBN, OK], [ISBN, OK]]


def test_only_guards_that_always_hold() -> None:
    guards = guards_of(ISBN, f"NOT {PRICE} OR a = 1")
    assert needed(guards, [{}, {"a": 1}]) == [[ISBN, PRICE]] * 2
    assert needed(guards, []) == []


def test_a_guard_that_asks_for_what_is_missing() -> None:
    guards = guards_of(f"a IS NULL AND {ISBN}", f"a = 1 AND NOT (b = 2 OR {OK})", PRICE)
    assert needed(guards, ["{}", '{"a": 1}', '{"a": 1, "b": 1}']) == [
        [ISBN, PRICE],
        [PRICE],
        [OK, PRICE],
    ]
    # What cannot be read matches nothing, so it needs nothing.
    assert needed(guards, ["{", "{}"]) == [[], [ISBN, PRICE]]


def test_equal_guards_stand_once() -> None:
    once = guards_of(*CATALOG.values())
    again = guards_of(*CATALOG.values(), *CATALOG.values(), f"price  <  10 AND {ISBN.lower()}")
    assert len(again) == len(once) == 4
    assert again.entries == once.entries
    # The same constants and entries, but another demand.
    assert len(guards_of(f"a = 1 AND {ISBN}", f"a = 1 AND NOT {ISBN}")) == 2


@pytest.mark.parametrize(
    "text",
    [
        "price < 10",
        "exists = 1",
        "s = 'EXISTS d (d.x = x)'",
        f"FALSE AND {ISBN}",
        f"a = 1 OR TRUE OR {ISBN}",
    ],
)
def test_nothing_to_guard(text: str) -> None:
    assert Guards.of(Index.build({"s": text})) is None
    # ... and beside something that is, it stays out.
    assert len(guards_of(text, PRICE)) == 1


def test_an_empty_index() -> None:
    assert Guards.of(Index.build({})) is None


def test_every_form_of_events() -> None:
    guards = guards_of(*CATALOG.values())
    events = [{"price": 5, "shop": "t"}, {"price": 50, "shop": "s"}]
    expected = needed(guards, events)
    assert needed(guards, pa.Table.from_pylist(events)) == expected
    column = pa.table({"body": ['{"price": 5}', '{"shop": "s"}']})
    assert needed(guards, column, json="body") == expected


# ------------------------------------------------------------------ the pre-filter


def test_constraints_and_who_is_alive() -> None:
    guards = guards_of(*CATALOG.values())
    assert guards.constraints == [
        Constraint(False, "isbn IS NOT NULL"),
        Constraint(False, "price IS NOT NULL"),
        Constraint(True, "ok = TRUE"),
    ]
    assert guards.alive(np.array([True, True, True])).tolist() == [True] * 4
    alive = guards.alive(np.array([True, False, False]))
    assert alive.tolist() == [True, True, False, False]  # "both" comes last: it always holds
    assert guards.entries_alive(alive).tolist() == [True, False, False]
    assert guards.always(alive).tolist() == []
    events = [{"price": 5}, {"shop": "s"}, {}]
    assert needed(guards, events, alive=alive) == [[ISBN], [ISBN], []]
    nobody = np.zeros(4, dtype=np.bool_)
    assert needed(guards, events, alive=nobody) == [[], [], []]
    assert not guards.entries_alive(nobody).any()


def test_constants_that_stand_in_different_places_of_one_shape() -> None:
    joined = "EXISTS d (d.p <= p AND d.p >= p)"
    guards = guards_of(f"p < 1 AND x > 1 AND {joined}", f"x < 1 AND p > 1 AND {joined}")
    assert guards.constraints == [Constraint(False, "p < 1"), Constraint(False, "p > 1")]


# ------------------------------------------------------------------ against brute force

conjunctions = st.lists(
    st.one_of(quantified(), quantified().map(Not), joined_expressions(0)), min_size=2, max_size=4
).map(lambda drawn: And(tuple(drawn)))
catalogs = st.lists(st.one_of(conjunctions, joined_expressions()), min_size=1, max_size=6)


def with_entries(tree: Expression, holding: Mapping[str, bool]) -> Expression:
    """The expression with an answer in the place of each quantified predicate."""

    def answer(leaf: Any) -> Expression:
        return BooleanConstant(holding[hidden_name(leaf)]) if isinstance(leaf, Quantified) else leaf

    return map_leaves(tree, answer)


def names_in(tree: Expression) -> list[str]:
    found = [hidden_name(node) for node in walk(tree) if isinstance(node, Quantified)]
    return list(dict.fromkeys(found))


def that_matter(tree: Expression, event: Mapping[str, Any]) -> set[str]:
    """The entries whose answer decides about a match, given some answers of the others."""
    names = names_in(tree)[:7]
    rest = dict.fromkeys(names_in(tree)[7:], False)
    answers = {
        drawn: truth(with_entries(tree, rest | dict(zip(names, drawn, strict=True))), event) is True
        for drawn in itertools.product((False, True), repeat=len(names))
    }
    return {
        name
        for place, name in enumerate(names)
        for drawn, answer in answers.items()
        if answer != answers[(*drawn[:place], not drawn[place], *drawn[place + 1 :])]
    }


def built(trees: Sequence[Expression]) -> Guards | None:
    return Guards.of(Index.build(enumerate(map(print_expression, trees))))


def entries_needed(guards: Guards | None, events: Any, **options: Any) -> list[set[str]]:
    if guards is None:
        return [set() for _ in events]
    return [{HIDDEN + name for name in own} for own in needed(guards, events, **options)]


@given(catalogs, batches(joined_events(), 5))
def test_every_entry_that_matters_is_needed(
    trees: list[Expression], events: list[dict[str, Any]]
) -> None:
    for event, own in zip(events, entries_needed(built(trees), events), strict=True):
        for tree in trees:
            assert that_matter(tree, event) <= own


def granted(tree: Expression) -> Expression:
    """A normal form with TRUE in the place of each quantified predicate, negated or not."""
    if isinstance(tree, And | Or):
        return type(tree)(tuple(map(granted, tree.operands)))
    return BooleanConstant(True) if names_in(tree) else tree


@given(catalogs, batches(joined_events(), 5))
def test_no_entry_is_needed_where_constants_have_failed(
    trees: list[Expression], events: list[dict[str, Any]]
) -> None:
    for event, own in zip(events, entries_needed(built(trees), events), strict=True):
        expected: set[str] = set()
        for tree in map(normal_form, trees):
            if truth(granted(tree), event) is True:
                expected |= set(names_in(tree))
        assert own == expected


def satisfied(constraint: Constraint, seen: list[dict[str, Any]]) -> bool:
    quantifier = all if constraint.universal else any
    tree = parse(constraint.condition)
    return quantifier(truth(tree, document) is True for document in seen)


@given(catalogs, documents(4), batches(joined_events(), 4))
def test_what_is_not_looked_up_changes_no_match(
    trees: list[Expression], seen: list[dict[str, Any]], events: list[dict[str, Any]]
) -> None:
    """Constants first and joins first, each after the pre-filter, agree with nested loops."""
    guards = built(trees)
    if guards is None:
        return
    alive = guards.alive(
        np.array([satisfied(each, seen) for each in guards.constraints], dtype=np.bool_)
    )
    constants_first = entries_needed(guards, events, alive=alive)
    joins_first = set(itertools.compress(guards.entries, guards.entries_alive(alive)))
    quantifiers = {
        hidden_name(node): node
        for tree in trees
        for node in walk(tree)
        if isinstance(node, Quantified)
    }
    for event, own in zip(events, constants_first, strict=True):
        assert own <= joins_first
        holds = {name: truth(node, event, seen) is True for name, node in quantifiers.items()}
        for tree in trees:
            expected = truth(tree, event, seen) is True
            for looked_up in (own, joins_first):
                answers = {name: holds[name] and name in looked_up for name in holds}
                assert (truth(with_entries(tree, answers), event) is True) == expected


@given(catalogs)
def test_constraints_are_those_of_the_expressions(trees: list[Expression]) -> None:
    def shown(leaf: Any) -> Expression:
        return canonical(leaf) if isinstance(leaf, Quantified) else leaf

    guards = built(trees)
    expected = {each for tree in trees for each in constraints(map_leaves(tree, shown))}
    assert (set() if guards is None else set(guards.constraints)) == expected
