"""Normal forms: the clauses of a class say what its expression says, in as few predicates.

Clauses are read here as their definition reads, cell by cell in plain Python, and compared with the
oracle on events that meet at the edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given

import oracle
import strategies
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.literature.clauses.forms import (
    MOST_CLAUSES,
    MOST_CNF_CLAUSES,
    MOST_PREDICATES,
    by_form,
)
from bittern.literature.clauses.normal import Clauses, NormalForms, normal_forms, take
from bittern.matching.always import Always
from bittern.matching.contract import Refused
from bittern.matching.output import Output
from bittern.model.rank.encoded import event_entries
from subscription_contract import compiled, encoded, part

if TYPE_CHECKING:
    from bittern.language.syntax import Expression
    from bittern.model.classes.compile import Compiled

Cells = Mapping[int, int]


# ------------------------------------------------------------------ clauses by their definition


def cells_by_event(catalog: Compiled, events: list[dict[str, Any]]) -> list[dict[int, int]]:
    """The cell of each channel that an event has."""
    offsets, entries = event_entries(encoded(catalog, events), catalog.rank.arrays.bases)
    again = event_entries(encoded(catalog, events, sparse=True), catalog.rank.arrays.bases)
    assert np.array_equal(offsets, again[0])
    assert np.array_equal(entries, again[1])
    assert len(offsets) == len(events) + 1
    assert offsets[-1] == len(entries)
    rows = [entries[offsets[e] : offsets[e + 1]].tolist() for e in range(len(events))]
    found = [{entry >> 32: entry & 0xFFFFFFFF for entry in row} for row in rows]
    assert [len(cells) for cells in found] == [len(row) for row in rows], "two cells in a channel"
    assert rows == [sorted(row) for row in rows]
    return found


def always_found(
    always: Always, catalog: Compiled, events: list[dict[str, Any]], *, sparse: bool = False
) -> list[tuple[int, int]]:
    out = Output()
    always.match(encoded(catalog, events, sparse=sparse), out)
    n = int(out.state[2])
    return sorted(zip(out.rows[:n].tolist(), out.classes[:n].tolist(), strict=True))


def predicate_holds(clauses: Clauses, predicate: int, cells: Cells) -> bool:
    cell = cells.get(int(clauses.channels[predicate]), -1)
    first, last = clauses.interval_starts[predicate : predicate + 2]
    return any(
        low <= cell <= high
        for low, high in zip(clauses.lows[first:last], clauses.highs[first:last], strict=True)
    )


def clause_holds(clauses: Clauses, clause: int, cells: Cells, *, conjunctive: bool) -> bool:
    combine = any if conjunctive else all
    own = range(int(clauses.starts[clause]), int(clauses.starts[clause + 1]))
    return combine(predicate_holds(clauses, predicate, cells) for predicate in own)


def holds(forms: NormalForms, c: int, cells: Cells) -> bool:
    """Whether a class outside ``always`` holds, by its clauses alone."""
    own = np.flatnonzero(forms.dnf.owners == c).tolist()
    if own:
        return any(clause_holds(forms.dnf, clause, cells, conjunctive=False) for clause in own)
    own = np.flatnonzero(forms.cnf.owners == c).tolist()
    return bool(own) and all(
        clause_holds(forms.cnf, clause, cells, conjunctive=True) for clause in own
    )


def check_clauses(clauses: Clauses, catalog: Compiled, *, conjunctive: bool) -> None:
    """Every invariant that the indexes build on."""
    bases = catalog.rank.arrays.bases
    assert (np.diff(clauses.owners) >= 0).all()
    for offsets, items in (
        (clauses.starts, clauses.channels),
        (clauses.interval_starts, clauses.lows),
    ):
        assert offsets.dtype == np.int64
        assert offsets[0] == 0
        assert offsets[-1] == len(items)
        assert (np.diff(offsets) > 0).all(), "nothing stands in a clause, or in a predicate"
    assert len(clauses.starts) == len(clauses.owners) + 1 == len(clauses) + 1
    assert len(clauses.interval_starts) == len(clauses.channels) + 1
    assert len(clauses.lows) == len(clauses.highs)
    for array in (clauses.owners, clauses.channels, clauses.lows, clauses.highs):
        assert array.dtype == np.int32
    for clause in range(len(clauses)):
        own = slice(clauses.starts[clause], clauses.starts[clause + 1])
        channels = clauses.channels[own].tolist()
        assert len(set(channels)) == len(channels), "a clause asks twice of one channel"
        present = 0
        for predicate in range(own.start, own.stop):
            channel = int(clauses.channels[predicate])
            first, last = clauses.interval_starts[predicate : predicate + 2]
            lows, highs = clauses.lows[first:last], clauses.highs[first:last]
            if lows[0] == -1:
                assert (lows.tolist(), highs.tolist()) == ([-1], [-1])
                assert bases[channel + 1] - bases[channel] == 1, "missing in a channel of cells"
                assert not conjunctive
                continue
            present += 1
            assert (lows <= highs).all()
            assert bases[channel] <= lows[0]
            assert highs[-1] < bases[channel + 1]
            assert (lows[1:] > highs[:-1] + 1).all(), "intervals overlap or touch"
        assert present > 0, "a clause that no cell can find"
    if conjunctive and len(clauses):
        assert np.unique(clauses.owners, return_counts=True)[1].max() <= MOST_CNF_CLAUSES


def check_forms(forms: NormalForms, catalog: Compiled) -> None:
    check_clauses(forms.dnf, catalog, conjunctive=False)
    check_clauses(forms.cnf, catalog, conjunctive=True)
    where = [np.unique(forms.dnf.owners), np.unique(forms.cnf.owners), forms.always]
    together = np.concatenate(where)
    assert len(np.unique(together)) == len(together), "a class is in two places"
    assert not len(together) or 0 <= together.min() <= together.max() < len(catalog.classes)
    assert (np.diff(forms.always) > 0).all()


def agrees(texts: list[str], events: list[dict[str, Any]]) -> None:
    """Both kinds of normal forms of these expressions say of these events what the oracle says."""
    catalog = compiled(texts)
    cells = cells_by_event(catalog, events)
    trees = [parse(text) for text in texts]
    for cnf in (False, True):
        forms = normal_forms(catalog.classes, cnf=cnf)
        check_forms(forms, catalog)
        assert cnf or not len(forms.cnf)
        always = set(forms.always.tolist())
        found = always_found(
            Always.of(catalog.classes, forms.always, forms.always), catalog, events
        )
        for tree, c in zip(trees, catalog.class_of.tolist(), strict=True):
            for place, (event, own) in enumerate(zip(events, cells, strict=True)):
                is_found = (place, c) in found if c in always else holds(forms, c, own)
                assert is_found == oracle.matches(tree, event), (str(tree), event, cnf)


@given(
    strategies.catalogs(strategies.free_expressions(depth=3), max_size=8),
    strategies.batches(strategies.free_events(), max_size=8),
)
def test_clauses_agree_with_the_oracle(
    catalog: dict[str, Expression], events: list[dict[str, Any]]
) -> None:
    agrees([print_expression(tree) for tree in catalog.values()], events)


# ------------------------------------------------------------------ single expressions


def shape_of(text: str, *, cnf: bool = False) -> tuple[str, list[list[int]]]:
    """Where one expression goes, and how many intervals each predicate of each clause has."""
    catalog = compiled([text])
    forms = normal_forms(catalog.classes, cnf=cnf)
    check_forms(forms, catalog)
    if len(forms.always):
        return "always", []
    clauses = forms.cnf if len(forms.cnf) else forms.dnf
    counts = np.diff(clauses.interval_starts)
    return (
        "cnf" if len(forms.cnf) else "dnf" if len(forms.dnf) else "never",
        [
            sorted(counts[clauses.starts[i] : clauses.starts[i + 1]].tolist())
            for i in range(len(clauses))
        ],
    )


@pytest.mark.parametrize(
    ("text", "intervals"),
    [
        ("a IN (1, 5, 9)", 3),
        ("a IN (1, 5, 5, 1)", 2),
        ("a NOT IN (1, 5, 9)", 4),
        ("a != 4", 2),
        ("a BETWEEN 1 AND 3 OR a BETWEEN 2 AND 5", 1),
        ("a NOT BETWEEN 1 AND 3", 2),
        ("a < 1 OR a = 2 OR a BETWEEN 4 AND 6 OR a > 5", 3),
        ("a IN (1, 2, 3) AND a IN (2, 3, 4)", 2),
        ("a != 1 AND a != 2 AND a != 3", 4),
        ("a != 1 AND a < 5", 2),
        ("a IN (1, 3, 5, 7) AND a BETWEEN 2 AND 5", 2),
        ("(a = 1 OR a = 2) AND (a = 2 OR a = 3)", 1),
    ],
)
def test_what_is_asked_of_one_channel_is_one_predicate(text: str, intervals: int) -> None:
    for cnf in (False, True):
        assert shape_of(text, cnf=cnf) == ("dnf", [[intervals]])
    for cnf in (False, True):
        where, clauses = shape_of(f"({text}) AND b = 1", cnf=cnf)
        assert (where, clauses) == ("dnf", [[1, intervals]])


def test_integers_between_bounds_do_not_touch_because_constants_stand_between_them() -> None:
    """``a = 1 OR a = 2`` is two cells with those of 1.5 between them, not one interval."""
    assert shape_of("a = 1 OR a = 2") == ("dnf", [[2]])


@pytest.mark.parametrize(
    ("text", "where", "clauses"),
    [
        ("(a = 1 OR b = 2) AND (c = 3 OR d = 4)", "cnf", [[1, 1], [1, 1]]),
        ("(a = 1 AND b = 2) OR (c = 3 AND d = 4)", "dnf", [[1, 1], [1, 1]]),
        ("a = 1 AND (b = 2 OR c = 3)", "cnf", [[1], [1, 1]]),
        ("a = 1 OR (b = 2 AND c = 3)", "dnf", [[1], [1, 1]]),
        ("a = 1 OR b = 2", "dnf", [[1], [1]]),  # as many predicates either way
        ("(a IN (1, 4) OR b < 3) AND (a = 9 OR c = 2)", "cnf", [[1, 2], [1, 1]]),
        ("(a = 1 OR b IS NULL) AND (c = 3 OR d = 4)", "dnf", [[1, 1]] * 4),
    ],
)
def test_an_expression_goes_where_it_has_fewer_predicates(
    text: str, where: str, clauses: list[list[int]]
) -> None:
    assert shape_of(text, cnf=True) == (where, clauses)
    assert shape_of(text)[0] == "dnf"


@pytest.mark.parametrize(
    "text",
    [
        "FALSE",
        "NULL",
        "a > 5 AND a < 3",
        "a = NULL",
        "a = 1 AND (b = NULL OR c = NULL)",
        "(a = 1 OR b = 1) AND (c > 5 AND c < 3 OR c = 1 AND c = 2)",
        "(a = 1 AND a = 2) OR (b > 5 AND b < 3)",
        "s LIKE '%m%' AND s NOT LIKE '%m%'",
        "a IS NULL AND a IS NOT NULL",
        "(s LIKE '%m%' OR a = NULL) AND (s NOT LIKE '%m%' OR b = NULL)",
    ],
)
def test_what_can_never_hold_is_nowhere(text: str) -> None:
    for cnf in (False, True):
        assert shape_of(text, cnf=cnf) == ("never", [])


@pytest.mark.parametrize(
    "text",
    [
        "TRUE",
        "a = 1 OR TRUE",
        "a IS NULL",
        "a IS NULL AND b IS NULL",
        "a IS NULL OR b = 1",
        "(a IS NULL OR b = 1) AND (c IS NULL OR d = 1)",
    ],
)
def test_what_no_cell_can_find_is_always_a_candidate(text: str) -> None:
    for cnf in (False, True):
        assert shape_of(text, cnf=cnf) == ("always", [])


def test_a_clause_that_asks_for_a_pattern_and_its_absence_is_left_out() -> None:
    """The clause with both never holds; the three others do."""
    text = "(s LIKE '%m%' OR a = 1) AND (s NOT LIKE '%m%' OR b = 1)"
    events = [
        {"s": s, "a": a, "b": b} for s in (None, "m", "n") for a in (None, 1) for b in (None, 1)
    ]
    agrees([text], events)
    assert len(shape_of(text)[1]) == 3


def test_always_candidates_come_and_go() -> None:
    texts = ["a IS NULL", "TRUE", "a IS NULL AND b IS NULL", "b IS NULL OR a = 1"]
    catalog = compiled(texts)
    classes, rank = catalog.classes, catalog.rank
    events = [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 1}]
    trees = [parse(text) for text in texts]

    def right(numbers: dict[int, int]) -> list[tuple[int, int]]:
        return sorted(
            (place, number)
            for place, event in enumerate(events)
            for number, text in numbers.items()
            if oracle.matches(trees[text], event)
        )

    def some(which: list[int], numbers: list[int]) -> Always:
        chosen = catalog.class_of[which]
        return Always.of(classes, chosen, np.array(numbers, dtype=np.int32))

    always = some([], [])
    assert always_found(always, catalog, events) == []
    always = always.with_more(some([0, 1], [5, 2]))
    always = always.with_more(some([], [])).with_more(some([3, 2, 1], [7, 8, 30]))
    everything = {5: 0, 2: 1, 7: 3, 8: 2, 30: 1}
    for sparse in (False, True):
        assert always_found(always, catalog, events, sparse=sparse) == right(everything)
    always.check(31, rank.n_channels, rank.n_cells)
    with pytest.raises(AssertionError, match="no class"):
        always.check(30, rank.n_channels, rank.n_cells)
    always = Always.from_arrays(always.arrays()).without(np.array([2, 7, 6], dtype=np.int32))
    always.check(31, rank.n_channels, rank.n_cells)
    assert always_found(always, catalog, events) == right({5: 0, 8: 2, 30: 1})
    always = always.without(np.array([5, 8, 30], dtype=np.int32))
    always.check(0, rank.n_channels, rank.n_cells)
    assert always_found(always, catalog, events) == []


def test_an_empty_catalog_has_no_forms() -> None:
    catalog = compiled([])
    forms = normal_forms(catalog.classes, cnf=True)
    check_forms(forms, catalog)
    assert (len(forms.dnf), len(forms.cnf), len(forms.always)) == (0, 0, 0)


# ------------------------------------------------------------------ forms that look alike


def test_classes_of_one_structure_are_told_apart_by_the_channels_they_share() -> None:
    texts = [
        "(a = 1 OR b = 2) AND (c = 3 OR d = 4)",
        "(b = 1 OR c = 2) AND (d = 3 OR a = 4)",  # another place for each, nothing shared
        "(a = 1 OR b = 2) AND (a = 3 OR d = 4)",
        "(a = 1 OR b = 2) AND (c = 3 OR a = 4)",
        "(a = 1 OR b = 2) AND (a = 3 OR b = 4)",
        "(a = 1 OR b = 2) AND (c = 3 OR b = 4)",
        "(a = 1 OR b = 2) AND (c = 3 OR d IS NULL)",
        "(c = 7 OR a = 5) AND (b = 6 OR d IS NULL)",
        "(a = 1 OR a = 2) AND (c = 3 OR d = 4)",
    ]
    catalog = compiled(texts)
    assert len(set(catalog.classes.structure_of.tolist())) == 1
    groups = by_form(catalog.classes, np.arange(len(texts), dtype=np.int32))
    found = sorted(sorted(catalog.class_of[group].tolist()) for group in groups)
    assert found == [[0, 1], [2], [3], [4], [5], [6, 7], [8]]
    values = (None, 1, 2, 3, 4, 5, 7)
    rng = np.random.default_rng(5)
    drawn = rng.integers(0, len(values), (300, 4)).tolist()
    agrees(texts, [dict(zip("abcd", (values[i] for i in row), strict=True)) for row in drawn])


def test_forms_do_not_depend_on_which_classes_stand_around_them() -> None:
    """A part of the classes, in another order, has the clauses that it has among all."""
    texts = [
        f"(a = {i} OR {x} = {i}) AND ({y} < {i} OR c IN ({i}, {i + 2}))"
        for i in range(6)
        for x in "ab"
        for y in "abc"
    ]
    texts += [f"a = {i} AND b = {i}" for i in range(6)]
    catalog = compiled(texts)
    whole = normal_forms(catalog.classes, cnf=True)
    which = np.random.default_rng(3).permutation(len(catalog.classes))[:20]
    some = normal_forms(part(catalog.classes, which), cnf=True)
    for before, after in ((whole.dnf, some.dnf), (whole.cnf, some.cnf)):
        for place, c in enumerate(which.tolist()):
            expected = take(before, np.flatnonzero(before.owners == c))
            found = take(after, np.flatnonzero(after.owners == place))
            assert len(expected) == len(found)
            for name in Clauses._fields[1:]:
                assert np.array_equal(getattr(expected, name), getattr(found, name)), name


# ------------------------------------------------------------------ limits


def bomb(ors: int, wide: int = 2) -> str:
    """An AND of ORs over distinct attributes: ``wide ** ors`` clauses in disjunctive form."""
    parts = (" OR ".join(f"x{i}_{k} = {i}" for k in range(wide)) for i in range(ors))
    return " AND ".join(f"({part})" for part in parts)


def test_an_expression_bomb_is_refused_by_number_and_the_others_are_not_named() -> None:
    texts = ["a = 1", bomb(11), "b = 2", f"{bomb(11)} AND q IS NULL"]
    catalog = compiled(texts)
    with pytest.raises(Refused) as refused:
        normal_forms(catalog.classes, cnf=False)
    bad = catalog.class_of[[1, 3]].tolist()
    assert sorted(refused.value.reasons) == sorted(bad)
    for reason in refused.value.reasons.values():
        assert f"more than {MOST_CLAUSES:,} clauses" in reason
        assert 'strategy="pivot"' in reason
    with pytest.raises(Refused) as refused:  # the first one has eleven clauses in conjunctive form
        normal_forms(catalog.classes, cnf=True)
    assert list(refused.value.reasons) == [catalog.class_of[3]]


def test_limits_are_met_exactly() -> None:
    assert len(shape_of(bomb(9))[1]) == MOST_CLAUSES // 2
    assert len(shape_of(bomb(10))[1]) == MOST_CLAUSES
    assert shape_of(bomb(MOST_CNF_CLAUSES), cnf=True)[0] == "cnf"
    with pytest.raises(Refused):
        shape_of(bomb(MOST_CNF_CLAUSES + 1), cnf=True)
    many = " OR ".join(f"x{i} = 1" for i in range(MOST_CLAUSES))
    assert len(shape_of(many)[1]) == MOST_CLAUSES
    with pytest.raises(Refused):
        shape_of(f"{many} OR y = 1")
    assert shape_of(f"({many} OR y = 1) AND z = 1", cnf=True)[0] == "cnf"


def test_clauses_that_are_few_but_long_are_refused_as_well() -> None:
    """Ten ORs before three thousand plain predicates: a thousand clauses of that many each."""
    wide = " AND ".join(f"y{i} = 1" for i in range(3000))
    assert shape_of(f"{bomb(4)} AND {wide}") == ("dnf", [[1] * 3004] * 16)
    for text in (f"{bomb(10)} AND {wide}", f"{wide} AND {bomb(10)}"):
        with pytest.raises(Refused) as refused:
            shape_of(text)
        assert f"more than {MOST_PREDICATES:,} predicates" in refused.value.reasons[0]


def test_a_long_in_list_is_one_predicate_of_a_clause() -> None:
    values = np.random.default_rng(1).permutation(4000).tolist()
    assert shape_of(f"a IN ({', '.join(map(str, values))})") == ("dnf", [[4000]])
    assert shape_of(f"a NOT IN ({', '.join(map(str, values))})") == ("dnf", [[4001]])
