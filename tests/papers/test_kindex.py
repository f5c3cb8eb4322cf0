"""The k-index: figure 2 of seed 003, ranges as equalities, refusals, changes, and exact answers."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import bittern
import strategies
from answers import build, expected
from bittern.errors import OptionError, SubscriptionError
from bittern.language.printer import print_expression
from bittern.language.syntax import (
    And,
    Between,
    Compare,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
)
from bittern.literature.kindex import index as kindex_module
from bittern.literature.kindex.index import KIndex
from bittern.matching.contract import Refused
from bittern.matching.scan import Scan
from subscription_contract import TABLE_1, compiled, encoded, part

if TYPE_CHECKING:
    from bittern.matching.contract import SubscriptionIndex
    from bittern.model.classes.compile import Compiled
    from bittern.model.rank.encoded import EncodedEvents

Domain = tuple[int, int]


def of_part(
    catalog: Compiled, which: Sequence[int] | npt.NDArray[Any], domain: Domain | None = (1, 12)
) -> KIndex:
    """A k-index of some of the classes, checked."""
    mass = np.zeros(catalog.rank.n_cells + 1)
    index, numbers = KIndex.build(part(catalog.classes, which), mass, catalog.rank, domain=domain)
    assert numbers.tolist() == list(range(len(which)))
    index.check(catalog.rank.n_channels, catalog.rank.n_cells)
    return index


def of_texts(texts: Sequence[str], domain: Domain | None = (1, 12)) -> tuple[Compiled, KIndex]:
    """A k-index of distinct expressions; class i is the i-th."""
    catalog = compiled(texts)
    assert catalog.class_of.tolist() == list(range(len(texts)))
    return catalog, of_part(catalog, range(len(texts)), domain)


def pairs(index: SubscriptionIndex, events: EncodedEvents) -> list[tuple[int, int]]:
    found = index.match(events)
    out = sorted(zip(found.rows.tolist(), found.classes.tolist(), strict=True))
    assert len(set(out)) == len(out), "a pair is found twice"
    return out


# ------------------------------------------------------------------ seed 003

#: Figure 2: subscriptions and values by size and attribute, for the domain 1 to 13. Under n = 4 the
#: paper also prints (A, 1) with S2, which is a misprint: S2 has two predicates, and it is there
#: under n = 2; the only subscription of four, S6, has none about A.
FIGURE_2 = {
    1: {"A": {4: [2]}},
    2: {
        "A": {1: [2], 2: range(1, 9)},
        "B": {1: [3, 6, 9]},
        "C": {2: range(2, 14)},
        "D": {5: range(12, 14)},
        "E": {5: range(1, 10)},
    },
    3: {"B": {3: range(1, 5)}, "C": {3: [6]}, "E": {3: range(3, 13)}},
    4: {
        "B": {6: [3, 6]},
        "C": {6: range(1, 5)},
        "D": {6: range(10, 14)},
        "E": {6: range(1, 8)},
    },
}


def by_value(catalog: Compiled, index: KIndex, domain: Domain) -> dict[tuple[Any, ...], list[int]]:
    """Subscriptions, counted from 1, by (size, attribute, whole number)."""
    rank, names = catalog.rank, catalog.rank.attribute_names()
    out = {}
    for (size, channel, cell, which), postings in index.postings().items():
        constants = rank.constants(channel).floors.tolist()
        gap, is_constant = divmod(cell - int(rank.arrays.bases[channel]), 2)
        value = constants[gap] if is_constant else (constants[gap - 1] + 1 if gap else domain[0])
        value += which
        above = constants[gap] if gap < len(constants) else domain[1] + 1
        if is_constant or value < above:  # else it is where fractions fall, and what is outside
            assert all(positive == 1 for _, positive in postings)
            name = names[rank.channel_attributes[channel]]
            out[size, name, value] = [c + 1 for c, _ in postings]
    return out


def test_seed_003_figure_2() -> None:
    domain = (1, 13)
    catalog, index = of_texts(list(TABLE_1.values()), domain)
    right: dict[tuple[Any, ...], list[int]] = {}
    for size, attributes in FIGURE_2.items():
        for attribute, rows in attributes.items():
            for subscription, values in rows.items():
                for value in values:
                    right.setdefault((size, attribute, value), []).append(subscription)
    assert by_value(catalog, index, domain) == right
    assert index.statistics()["sizes"] == {"1": 1, "2": 3, "3": 1, "4": 1}
    events = [
        {"A": 2, "B": 6, "C": 3},
        {"A": 2, "B": 3, "C": 4, "D": 12, "E": 5},
        {"B": 4, "C": 6, "E": 12},
        {"D": 13},
    ]
    assert pairs(index, encoded(catalog, events)) == [
        *((0, 0), (0, 1), (0, 3)),
        *((1, 0), (1, 1), (1, 3), (1, 4), (1, 5)),
        (2, 2),
    ]


def test_seed_003_section_3_eight_entries_for_a_range() -> None:
    """The paper: A <= 8 over the domain {1, 2, ...} requires the eight entries (2, A, 1 .. 8)."""
    catalog, index = of_texts(["A <= 8 AND C = 2"], (1, 100))
    lists = by_value(catalog, index, (1, 100))
    assert sorted(place for place in lists if place[1] == "A") == [
        (2, "A", value) for value in range(1, 9)
    ]


# ------------------------------------------------------------------ the Z-list, negative postings


def test_only_forbidding_goes_to_the_z_list() -> None:
    texts = ["a IS NULL", "a IS NULL AND b IS NULL", "TRUE", "a = 1", "a = 1 OR b IS NULL"]
    catalog, index = of_texts(texts)
    assert index.postings()[0, -1, -1, 0] == [(0, 1), (1, 1), (2, 1)]
    assert index.statistics()["z"] == index.statistics()["sizes"]["0"] == 3
    assert index.statistics()["always"] == 1  # no conjunction: it is run for each event
    events = [{}, {"a": 1}, {"b": 1}, {"a": 2, "b": 1}]
    assert pairs(index, encoded(catalog, events)) == [
        *((0, 0), (0, 1), (0, 2), (0, 4)),
        *((1, 2), (1, 3), (1, 4)),
        *((2, 0), (2, 2)),
        (3, 2),
    ]


def test_a_negative_posting_does_not_count_for_the_size() -> None:
    texts = ["a = 1 AND b IS NULL", "a = 1 AND c = 2 AND b IS NULL AND d IS NULL"]
    catalog, index = of_texts(texts)
    assert index.statistics()["sizes"] == {"1": 1, "2": 1}
    any_b = int(catalog.rank.arrays.channels[catalog.rank.attribute_names().index("b"), 5])
    cell = int(catalog.rank.arrays.bases[any_b])
    assert index.postings()[1, any_b, cell, 0] == [(0, 0)]
    assert index.postings()[2, any_b, cell, 0] == [(1, 0)]
    events = [{"a": 1}, {"a": 1, "b": 7}, {"a": 1, "c": 2}, {"a": 1, "c": 2, "d": 0}, {"c": 2}]
    assert pairs(index, encoded(catalog, events)) == [(0, 0), (2, 0), (2, 1), (3, 0)]


def test_patterns_that_must_not_hold() -> None:
    texts = {"no y": "s NOT LIKE '%y%'", "x, no y": "s LIKE '%x%' AND s NOT LIKE '%y%' AND a = 1"}
    index = build(texts, strategy="kindex")
    events = [{"s": "x", "a": 1}, {"s": "xy", "a": 1}, {"s": "z"}, {"a": 1}, {"s": 3, "a": 1}]
    assert bittern.Matcher(index).match(events).to_pylist() == expected(texts, events)


# ------------------------------------------------------------------ conjunctive forms


def test_a_conjunctive_form_is_posted_by_clause() -> None:
    texts = ["(a = 1 OR b = 2) AND (c = 3 OR d = 4)"]
    catalog, index = of_texts(texts)
    assert not index.postings()
    lists = index.postings(conjunctive=True)
    assert sorted(postings for postings in lists.values()) == [
        [(0, 0)],
        [(0, 0)],
        [(0, 1)],
        [(0, 1)],
    ]
    assert {size for size, _, _, _ in lists} == {2}
    assert index.statistics()["conjunctive"] == {"2": 1}
    events = [{"a": 1}, {"a": 1, "b": 2}, {"b": 2, "c": 3}, {"a": 1, "b": 2, "c": 3, "d": 4}]
    assert pairs(index, encoded(catalog, events)) == [(2, 0), (3, 0)]


def test_one_value_may_satisfy_several_clauses() -> None:
    """The size is then what an event needs at least, or it would be left out."""
    texts = [
        "(a = 1 OR b = 2) AND (a = 1 OR c = 3)",
        "(a <= 5 OR b = 2) AND (a <= 3 OR c = 3) AND (a = 1 OR d = 4 OR e = 9)",
    ]
    catalog, index = of_texts(texts)
    assert index.statistics()["conjunctive"] == {"1": 2}
    events = [{"a": 1}, {"a": 2}, {"a": 2, "d": 4}, {"b": 2, "c": 3}, {"b": 2, "c": 3, "e": 9}]
    assert pairs(index, encoded(catalog, events)) == [
        *((0, 0), (0, 1), (2, 1), (3, 0), (4, 0), (4, 1)),
    ]


def test_sixty_four_clauses_fill_a_word() -> None:
    clauses = [f"(a{i} = 1 OR b{i} = 1)" for i in range(64)]
    catalog, index = of_texts([" AND ".join(clauses)])
    assert index.statistics()["conjunctive"] == {"64": 1}
    whole = {f"a{i}" if i % 2 else f"b{i}": 1 for i in range(64)}
    events = [whole, {**whole, "a63": 2}, {f"b{i}": 1 for i in range(64)}]
    assert pairs(index, encoded(catalog, events)) == [(0, 0), (2, 0)]


# ------------------------------------------------------------------ what is refused

OPEN, FRACTION = "open to one side: give the parameter domain, two whole", "begins or ends"
TIMES, TEXT = "a range of times", "a range of strings"
REFUSED = {
    "a <= 3": OPEN,
    "a > 3": OPEN,
    "a != 3": OPEN,
    "a NOT IN (3, 4)": OPEN,
    "a NOT BETWEEN 3 AND 4": OPEN,
    "b = 1 AND (a >= 3 OR c = 1)": OPEN,
    "(a >= 3 OR c = 1) AND (a >= 3 OR d = 1)": OPEN,
    "a < 2.5": FRACTION,
    "a BETWEEN 1 AND 2.5": FRACTION,
    "a > 0.5 AND a < 3": FRACTION,
    "a < 1e300": FRACTION,
    "a >= DATE '2024-01-01'": TIMES,
    "a != TIMESTAMP '2024-01-01 10:00:00'": TIMES,
    "s < 'm'": TEXT,
    "s != 'm'": TEXT,
    "s LIKE 'm%'": TEXT,
    "s LIKE '%m'": TEXT,
    "s BETWEEN 'a' AND 'b'": TEXT,
}
ACCEPTED = [
    "a = 3",
    "a IN (3, 4, 9)",
    "a BETWEEN 3 AND 9",
    "a >= 3 AND a < 9",
    "a > 2 AND a <= 3 AND b = 1",
    "a = 2.5",
    "a = DATE '2024-01-01'",
    "s = 'm'",
    "s IN ('m', 'n')",
    "s LIKE '%m%'",
    "s LIKE 'm'",
    "s RLIKE 'm+'",
    "a IS NULL",
    "a IS NOT NULL",
    "t = TRUE",
    "t != TRUE",
    "t < TRUE",
    "FALSE",
    "a < 2.5 AND a > 3",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_rewritten_is_refused(text: str) -> None:
    catalog = {"good": "a = 3 AND b = 1", "bad": text, "bad again": text}
    with pytest.raises(SubscriptionError) as raised:
        bittern.Index.build(catalog, strategy="kindex")
    assert [each.id for each in raised.value.bad] == ["bad", "bad again"]
    for each in raised.value.bad:
        assert REFUSED[text] in each.message
        assert "use the strategy opindex" in each.message
    index = build(catalog, strategy="kindex", on_error="skip")
    assert index.ids.to_pylist() == ["good"]
    assert index.bad == raised.value.bad


def test_a_domain_makes_open_ranges_possible() -> None:
    texts = {i: text for i, (text, reason) in enumerate(REFUSED.items()) if reason == OPEN}
    events = [{"a": a, "b": 1, "c": c} for a in range(-1, 8) for c in (None, 1)]
    index = build(texts, strategy="kindex", parameters={"domain": (1, 5)})
    assert bittern.Matcher(index).match(events).to_pylist() == expected(texts, events)
    others = {i: text for i, (text, reason) in enumerate(REFUSED.items()) if reason != OPEN}
    with pytest.raises(SubscriptionError) as raised:
        bittern.Index.build(others, strategy="kindex", parameters={"domain": (1, 5)})
    assert {each.id for each in raised.value.bad} == set(others)


def test_what_needs_no_domain() -> None:
    catalog = dict(enumerate(ACCEPTED))
    index = build(catalog, strategy="kindex")
    events = [
        {"a": a, "b": 1, "s": s, "t": t}
        for a, s, t in itertools.product(
            (None, 2, 2.5, 3, 8.5, 9, dt.date(2024, 1, 1)), ("m", "mm", "x"), (None, True, False)
        )
    ]
    assert bittern.Matcher(index).match(events).to_pylist() == expected(catalog, events)


def test_both_kinds_of_refusals_are_named_at_once() -> None:
    """What has no normal form, and what has a range that cannot be rewritten."""
    large = " AND ".join(f"(a{i} = 1 AND b{i} = 1 OR c{i} = 1 AND d{i} = 1)" for i in range(20))
    catalog = {"large": large, "range": "a < 'x'", "good": "a = 1"}
    with pytest.raises(SubscriptionError) as raised:
        bittern.Index.build(catalog, strategy="kindex")
    messages = {each.id: each.message for each in raised.value.bad}
    assert set(messages) == {"large", "range"}
    assert "normal form" in messages["large"]
    index = build(catalog, strategy="kindex", on_error="skip")
    assert index.ids.to_pylist() == ["good"]


NUMBERS = st.sampled_from([0, 1, 2, 3, 5, Decimal("2.5"), Decimal("3.0")])
OPERANDS: dict[str, st.SearchStrategy[Any]] = {
    "n": NUMBERS,
    "m": NUMBERS,
    "s": st.sampled_from(["", "a", "ab", "b"]),
    "d": st.sampled_from([dt.date(2024, 1, 1), dt.date(2024, 1, 2)]),
    "t": st.booleans(),
}


def one_predicate(name: str) -> st.SearchStrategy[Expression]:
    literal = OPERANDS[name].map(Literal)
    likes = st.sampled_from(["a%", "%b", "%a%", "ab"]).map(lambda p: Like(name, p, "\\"))
    kinds: list[st.SearchStrategy[Expression]] = [
        st.builds(Compare, st.just(name), st.sampled_from(strategies.OPERATORS), literal),
        st.builds(Between, st.just(name), literal, literal),
        st.builds(In, st.just(name), st.lists(literal, min_size=1, max_size=3).map(tuple)),
        st.just(IsNull(name)),
        st.just(Not(IsNull(name))),
    ]
    return st.one_of(*kinds, likes) if name == "s" else st.one_of(*kinds)


def objection(predicate: Expression, domain: Domain | None) -> str | None:
    """Why a k-index cannot hold a predicate, if so; "never" where it cannot hold at all."""
    ends: list[Any]
    match predicate:
        case IsNull() | Not():
            return None
        case In():
            return None
        case Like(pattern=pattern):
            return TEXT if pattern in ("a%", "%b") else None
        case Compare(operator="="):
            return None
        case Compare(operand=Literal(value=value)):
            ends, is_open = [value], True
        case Between(low=Literal(value=low), high=Literal(value=high)):
            if low >= high:
                return None if low == high else "never"
            ends, is_open = [low, high], False
    if isinstance(ends[0], bool):
        return None
    if isinstance(ends[0], str):
        return TEXT
    if isinstance(ends[0], dt.date):
        return TIMES
    if any(int(end) != end for end in ends):
        return FRACTION
    return OPEN if is_open and domain is None else None


@given(
    st.lists(st.tuples(*(st.none() | one_predicate(name) for name in OPERANDS)), max_size=8),
    st.none() | st.just((0, 5)),
)
def test_refusals_are_those_of_the_single_predicates(
    catalog: list[tuple[Expression | None, ...]], domain: Domain | None
) -> None:
    conjunctions = [[p for p in row if p is not None] for row in catalog]
    conjunctions = [row for row in conjunctions if row]
    texts = {
        i: print_expression(And(tuple(row)) if len(row) > 1 else row[0])
        for i, row in enumerate(conjunctions)
    }
    right: dict[int, set[str]] = {}
    for i, row in enumerate(conjunctions):
        objections = {objection(predicate, domain) for predicate in row}
        if "never" not in objections and objections != {None}:
            right[i] = {each for each in objections if each}
    options: dict[str, Any] = {"strategy": "kindex", "parameters": {"domain": domain}}
    index = build(texts, on_error="skip", **options)
    assert {each.id for each in index.bad} == set(right)
    for each in index.bad:
        assert isinstance(each.id, int)
        assert any(reason in each.message for reason in right[each.id])


# ------------------------------------------------------------------ parameters and limits


@pytest.mark.parametrize("domain", [(1,), (5, 1), (1.0, 2.0), (True, 2), "ab", 7, (0, 2**70)])
def test_a_domain_is_a_pair_of_whole_numbers(domain: Any) -> None:
    with pytest.raises(OptionError, match="the lowest and the highest whole number"):
        bittern.Index.build({}, strategy="kindex", parameters={"domain": domain})


def test_other_parameters_are_refused() -> None:
    with pytest.raises(OptionError, match="has no parameter 'segments': it has only domain"):
        bittern.Index.build({}, strategy="kindex", parameters={"segments": 3})


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("a BETWEEN 1 AND 20000000000", None),
        ("a >= 1", (1, 2_000_000_000)),
        ("a BETWEEN -9223372036854775808 AND 9223372036854775807", None),
    ],
)
def test_a_range_of_very_many_numbers_is_refused(text: str, domain: Domain | None) -> None:
    catalog = {"wide": text, "narrow": "a = 1 AND b = 2"}
    index = bittern.Index.build(
        catalog, strategy="kindex", parameters={"domain": domain}, on_error="skip"
    )
    assert index.ids.to_pylist() == ["narrow"]
    assert "covers more than 1,048,576" in index.bad[0].message
    both = compiled(list(catalog.values()))
    part_index = of_part(both, [1], domain)
    with pytest.raises(Refused):
        part_index.insert(part(both.classes, [0]))
    part_index.check(both.rank.n_channels, both.rank.n_cells)
    assert part_index.statistics()["classes"] == 1


def test_too_many_postings_are_refused_before_memory_is_taken() -> None:
    texts = [f"a BETWEEN {i} AND {i + 1_000_000}" for i in range(2_000)]
    with pytest.raises(OptionError, match=r"postings in .* lists, .*give a smaller domain"):
        bittern.Index.build(dict(enumerate(texts)), strategy="kindex")
    catalog = compiled([*texts, "a = 1 AND b = 2"])
    index = of_part(catalog, [2_000], None)
    with pytest.raises(OptionError, match="give a smaller domain"):
        index.insert(part(catalog.classes, list(range(2_000))))
    index.check(catalog.rank.n_channels, catalog.rank.n_cells)
    assert index.statistics()["classes"] == 1


def test_too_many_postings_are_counted_without_being_gone_through() -> None:
    """Five billion of them: one by one they would take longer than anybody waits."""
    n = 100_000
    catalog = compiled([f"a <= {i}" for i in range(n)])
    with pytest.raises(OptionError, match=f"would have {(n + 1) * n:,} postings in 200,001 lists"):
        of_part(catalog, range(n), (1, n))


def values_of_cells(constants: Sequence[int], low: int, high: int, domain: Domain) -> int:
    """Postings of an interval between two constants, or open (a bound outside the domain)."""
    edges = [-(10**9), *sorted(constants), 10**9]
    total = sum(low <= constant <= high for constant in constants)
    for below, above in itertools.pairwise(edges):
        if low <= below and above <= high:
            inside = range(max(below + 1, domain[0]), min(above - 1, domain[1]) + 1)
            total += max(1, len(inside))
    return total


@given(
    st.lists(
        st.tuples(st.sampled_from(["<=", ">=", "="]), st.integers(1, 15)), min_size=1, max_size=8
    ),
    st.integers(15, 40),
)
def test_postings_are_as_many_as_the_values(
    predicates: list[tuple[str, int]], highest: int
) -> None:
    texts = list(dict.fromkeys(f"a {operator} {value}" for operator, value in predicates))
    constants = {int(text.split()[2]) for text in texts}
    least, most = -(10**9), 10**9
    _, index = of_texts(texts, (1, highest))
    total = 0
    for text in texts:
        operator, value = text.split()[1], int(text.split()[2])
        low, high = {"<=": (least, value), ">=": (value, most), "=": (value, value)}[operator]
        total += values_of_cells(sorted(constants), low, high, (1, highest))
    assert index.statistics()["entries"] == total == sum(map(len, index.postings().values()))


def test_memory_grows_with_the_domain() -> None:
    texts = [f"a >= {n} AND b = {n}" for n in range(1, 11)] + [f"b <= {n}" for n in range(1, 21)]
    sizes = {}
    for highest in (20, 50, 1000, 12_800):
        _, index = of_texts(texts, (1, highest))
        sizes[highest] = index.statistics()["entries"]
        assert index.nbytes >= 8 * sizes[highest]
    for one, other in itertools.pairwise(sizes):
        assert sizes[other] - sizes[one] == 10 * (other - one)  # ten predicates are open above


# ------------------------------------------------------------------ exact answers

VALUES = [None, -3, 0, 1, 2, 3, 4, 5, 6, 7, 13, 2.5, 3.0, 0.5, 6.5, -0.5, 1e300, float("nan"), "3"]


def whole_number_expressions() -> st.SearchStrategy[Expression]:
    operands = st.integers(0, 6)
    leaves = [strategies.predicates_on(name, operands, text=False) for name in "abcd"]
    return strategies.expressions(st.one_of(*leaves), depth=3)


def events_of_numbers() -> st.SearchStrategy[dict[str, Any]]:
    values = st.sampled_from(VALUES) | st.integers(0, 6)
    return st.fixed_dictionaries({}, optional=dict.fromkeys("abcd", values))


DOMAINS = st.sampled_from([(0, 6), (2, 3), (-9, 12), (4, 4)])


@given(
    strategies.catalogs(whole_number_expressions(), max_size=12),
    strategies.batches(events_of_numbers(), max_size=8),
    DOMAINS,
)
def test_any_catalog_of_whole_numbers(
    catalog: dict[str, Expression], events: list[dict[str, Any]], domain: Domain
) -> None:
    texts = {name: print_expression(tree) for name, tree in catalog.items()}
    index = build(texts, strategy="kindex", parameters={"domain": domain}, on_error="skip")
    for each in index.bad:
        assert "normal form" in each.message
        del texts[str(each.id)]
    right = expected(texts, events)
    matcher = bittern.Matcher(index)
    assert matcher.match(events).to_pylist() == right
    with mock.patch.object(kindex_module, "_ROOM", 0):  # every event is done again
        assert matcher.match(events).to_pylist() == right


@given(
    strategies.catalogs(strategies.free_expressions(depth=2), max_size=10),
    strategies.batches(strategies.free_events(), max_size=6),
)
def test_any_catalog_at_all(catalog: dict[str, Expression], events: list[dict[str, Any]]) -> None:
    """Strings, times, patterns, fractions: what is held is answered right."""
    texts = {name: print_expression(tree) for name, tree in catalog.items()}
    with mock.patch.object(kindex_module, "MOST_BYTES", 1 << 20):
        try:
            index = build(texts, strategy="kindex", on_error="skip")
        except OptionError as error:
            assume("give a smaller domain" not in str(error))
            raise
    for each in index.bad:
        del texts[str(each.id)]
    assert bittern.Matcher(index).match(events).to_pylist() == expected(texts, events)


def test_values_outside_the_domain_and_fractions_are_exact() -> None:
    texts = [
        *("a <= 8", "a < 8", "a >= 3", "a > 3", "a != 5", "a BETWEEN 2 AND 100", "a = 3"),
        *("a NOT IN (3, 8)", "a > 3 AND a < 4", "a >= 0 AND a <= 1", "a < 20", "a = 7.5"),
    ]
    events = [{"a": n / 4} for n in range(-20, 500)] + [{"a": n} for n in range(-5, 120)]
    right = expected(dict(enumerate(texts)), events)
    for domain in ((1, 12), (5, 5), (50, 60), (-100, -50), (-1000, 1000)):
        catalog, index = of_texts(texts, domain)
        for sparse in (False, True):
            found = pairs(index, encoded(catalog, events, sparse=sparse))
            assert found == [(e, c) for e, numbers in enumerate(right) for c in numbers]


def test_candidates_are_counted() -> None:
    catalog, index = of_texts(["a = 1", "a = 1 AND b = 2", "a = 1 AND b = 3", "b IS NULL"])
    found = index.match(encoded(catalog, [{"a": 1, "b": 2}, {}, {"a": 1}]))
    # Size 2: the lists stop at item 1 and are both there, then one ends. Size 1: item 0. Size 0:
    # item 3, which the first event rejects.
    assert found.candidates.tolist() == [3, 1, 2]


# ------------------------------------------------------------------ changes


def alive_pairs(
    catalog: Compiled, alive: dict[int, int], events: EncodedEvents
) -> list[tuple[int, int]]:
    """What Scan finds among the classes that are there, by their numbers in the index."""
    numbers = sorted(alive)
    classes = part(catalog.classes, [alive[number] for number in numbers])
    scan, _ = Scan.build(classes, np.zeros(catalog.rank.n_cells + 1), catalog.rank)
    return [(row, numbers[c]) for row, c in pairs(scan, events)]


def same_postings(catalog: Compiled, index: KIndex, alive: dict[int, int], domain: Domain) -> None:
    """A fresh index of the same classes has the same postings."""
    numbers = sorted(alive)
    fresh = of_part(catalog, [alive[number] for number in numbers], domain)
    for conjunctive in (False, True):
        right = {
            place: [(numbers[c], value) for c, value in postings]
            for place, postings in fresh.postings(conjunctive=conjunctive).items()
        }
        assert index.postings(conjunctive=conjunctive) == right
    kept = ("clauses", "sizes", "conjunctive", "always", "z", "entries")
    ours, theirs = index.statistics(), fresh.statistics()
    assert {name: ours[name] for name in kept} == {name: theirs[name] for name in kept}


@given(
    st.lists(whole_number_expressions(), min_size=1, max_size=10),
    st.lists(events_of_numbers(), max_size=5),
    DOMAINS,
    st.data(),
)
def test_any_sequence_of_changes(
    trees: list[Expression], events: list[dict[str, Any]], domain: Domain, data: st.DataObject
) -> None:
    catalog = compiled([print_expression(tree) for tree in trees])
    batch = encoded(catalog, events)
    choice = st.lists(st.integers(0, len(catalog.classes) - 1), max_size=4)
    chosen = data.draw(choice)
    try:
        index = of_part(catalog, chosen, domain)
    except Refused:  # a normal form that is too large
        return
    alive = dict(enumerate(chosen))
    given_out = len(chosen)
    for _ in range(data.draw(st.integers(1, 5))):
        step = data.draw(st.sampled_from(["insert", "insert", "delete", "save"]))
        if step == "insert":
            chosen = data.draw(choice)
            try:
                numbers = index.insert(part(catalog.classes, chosen)).tolist()
            except Refused:
                chosen, numbers = [], []
            assert numbers == list(range(given_out, given_out + len(chosen)))
            given_out += len(chosen)
            alive |= dict(zip(numbers, chosen, strict=True))
        elif step == "delete" and alive:
            numbers = data.draw(st.lists(st.sampled_from(sorted(alive)), unique=True, max_size=4))
            classes = part(catalog.classes, [alive.pop(number) for number in numbers])
            index.delete(classes, np.array(numbers, dtype=np.int32))
        elif step == "save":
            index = KIndex.from_arrays(index.arrays(), index.parameters)
        index.check(catalog.rank.n_channels, catalog.rank.n_cells)
        assert pairs(index, batch) == alive_pairs(catalog, alive, batch)
        assert index.statistics()["classes"] == given_out
    same_postings(catalog, index, alive, domain)


def test_long_lists_change_as_well() -> None:
    """Lists of hundreds become trees of blocks when they change, and are joined as such."""
    random = np.random.default_rng(3)
    texts = [
        f"a <= {3 + n % 3} AND b >= {n % 5} AND c = {n}" if n % 3 else f"a <= {n % 4} AND d = {n}"
        for n in range(900)
    ]
    texts += ["(a = 2 OR b = 7) AND (b >= 2 OR c = 1)", "a >= 1", "e IS NULL"]
    catalog = compiled(texts)
    events = [
        {"a": a, "b": b, "c": int(c), "d": int(d)}
        for a, b in itertools.product((None, 1, 2, 5), (None, 1, 4))
        for c, d in random.integers(0, 900, (3, 2))
    ]
    batch = encoded(catalog, events)
    n = len(catalog.classes)
    index = of_part(catalog, range(100), (0, 9))
    alive = {number: number for number in range(100)}
    order = random.permutation(np.arange(100, n))
    for chosen in np.split(order, [1, 2, 300, 301]):
        numbers = index.insert(part(catalog.classes, chosen)).tolist()
        alive |= dict(zip(numbers, chosen.tolist(), strict=True))
        assert pairs(index, batch) == alive_pairs(catalog, alive, batch)
    gone = random.permutation(n)
    for numbers in np.split(gone, [1, 2, 400, 850]):
        index.check(catalog.rank.n_channels, catalog.rank.n_cells)
        assert pairs(index, batch) == alive_pairs(catalog, alive, batch)
        classes = part(catalog.classes, [alive.pop(number) for number in numbers.tolist()])
        index.delete(classes, numbers.astype(np.int32))
    assert index.statistics()["entries"] == 0
    assert not pairs(index, batch)


def test_deleting_what_is_not_there_changes_nothing() -> None:
    texts = [
        *("a = 1", "a BETWEEN 1 AND 3", "a = 1 AND b = 2", "a = 1 OR b = 2", "a IS NULL"),
        *(
            "FALSE",
            "a = 1 OR b IS NULL",
            "a = 2 OR b IS NULL",
            "(a = 1 OR b = 2) AND (c = 1 OR d = 1)",
        ),
        *("e = 1", "a = 4 AND b = 4 AND c = 4 AND d = 4 AND e = 4"),
    ]
    catalog = compiled(texts)
    n = 9
    index = of_part(catalog, range(n))
    everything = {name: array.copy() for name, array in index.arrays().items()}

    def refused(classes: list[int], numbers: list[int]) -> None:
        with pytest.raises(OptionError, match="not in the index"):
            index.delete(part(catalog.classes, classes), np.array(numbers, dtype=np.int32))

    for c, number in itertools.product(range(len(texts)), range(-1, n + 1)):
        if c != number:
            refused([c], [number])
            refused([8, c], [8, number])
    refused([0, 0], [0, 0])
    refused([0, 1], [0])
    now = index.arrays()
    assert now.keys() == everything.keys()
    assert all(np.array_equal(now[name], everything[name]) for name in everything)
    for number in range(n):
        index.delete(part(catalog.classes, [number]), np.array([number], dtype=np.int32))
        refused([number], [number])
    assert index.insert(part(catalog.classes, [0])).tolist() == [n]
    assert pairs(index, encoded(catalog, [{"a": 1}])) == [(0, n)]


def test_what_is_refused_is_not_inserted() -> None:
    catalog = compiled(["a = 1", "a < 3", "s = 'x'", "s > 'x'"])
    index = of_part(catalog, [0, 2], None)
    with pytest.raises(Refused) as refused:
        index.insert(part(catalog.classes, [0, 1, 3]))
    assert {c: OPEN in reason for c, reason in refused.value.reasons.items()} == {1: True, 2: False}
    assert index.statistics()["classes"] == 2
    assert index.insert(part(catalog.classes, [0])).tolist() == [2]


# ------------------------------------------------------------------ saving and checking


def test_a_saved_index_is_mapped_and_changes_only_its_copy(tmp_path: Any) -> None:
    more = ["A IS NULL", "(A = 1 OR B = 2) AND (C = 1 OR D = 2)", "A = 1 OR B IS NULL"]
    texts = dict(enumerate([*TABLE_1.values(), *more]))
    events = [{"A": a, "B": b, "C": c} for a in (None, 1, 2, 9) for b in (3, 6) for c in (1, 2, 6)]
    index = build(texts, strategy="kindex", parameters={"domain": (1, 12)})
    index.save(tmp_path / "index")
    opened = bittern.Index.open(tmp_path / "index", verify=True)
    opened.check()
    assert opened.subscriptions.parameters == {"domain": (1, 12)}
    assert opened.statistics()["kindex"] == index.statistics()["kindex"]
    right = expected(texts, events)
    assert bittern.Matcher(opened).match(events).to_pylist() == right

    mapped = opened.subscriptions
    assert isinstance(mapped, KIndex)
    catalog = compiled(list(texts.values()))
    numbers = mapped.insert(catalog.classes)
    mapped.delete(catalog.classes, numbers)
    mapped.delete(part(catalog.classes, [3]), np.array([3], dtype=np.int32))
    mapped.check(catalog.rank.n_channels, catalog.rank.n_cells)
    right = [[each for each in row if each != 3] for row in right]
    assert bittern.Matcher(opened).match(events).to_pylist() == right
    again = bittern.Index.open(tmp_path / "index", verify=True)
    assert again.statistics()["kindex"] == index.statistics()["kindex"]


def test_check_finds_what_is_corrupted() -> None:
    """One item of one array is off: either it is found, or it changes no answer.

    But a predicate of a conjunctive form in another of its clauses, a conjunction of another class
    and another test in a program make expressions that are as good: nothing says what they were.
    """
    texts = [
        *("a <= 3 AND b = 2", "a = 2", "b IS NULL AND a = 4", "b IS NULL", "a = 1 OR b = 2"),
        *("(a = 1 OR b = 2) AND (a = 4 OR c = 3)", "a = 1 OR c IS NULL"),
    ]
    catalog, index = of_texts(texts, (1, 5))
    values = (None, 1, 2, 3, 4)
    batch = encoded(
        catalog, [{"a": a, "b": b, "c": c} for a in values for b in values for c in values]
    )
    right = pairs(index, batch)
    space = catalog.rank.n_channels, catalog.rank.n_cells
    arrays = index.arrays()
    found = dict.fromkeys(arrays, 0)
    other_expressions = {"lists.values": {5}, "items.owners": {3, 4}, "always.rows": {6}}
    for name, array in arrays.items():
        places = [np.s_[:-1], np.s_[1:]] if array.ndim == 1 and len(array) else []
        damaged = [array[place] for place in places]
        for place in np.ndindex(array.shape):
            for wrong in (-2, -1, 1, 2, 100):
                copy = array.copy()
                value = int(copy[place]) + wrong
                if np.iinfo(copy.dtype).min <= value <= np.iinfo(copy.dtype).max:
                    copy[place] = value
                    damaged.append(copy)
        for copy in damaged:
            broken = KIndex.from_arrays(arrays | {name: copy}, index.parameters)
            try:
                broken.check(*space)
            except AssertionError:
                found[name] += 1
            else:
                others = other_expressions.get(name, set())
                found_now = [pair for pair in pairs(broken, batch) if pair[1] not in others]
                assert found_now == [pair for pair in right if pair[1] not in others], name
    assert all(found.values())
    for name in ("lists.keys", "lists.values", "lists.offsets", "first", "codes", "items.owners"):
        assert found[name] >= 4 * arrays[name].size, name
