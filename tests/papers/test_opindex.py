"""OpIndex: the paper's example, all operators, forms, changes, and arrays that are broken.

What matches is judged by the oracle, and for sequences of changes by ``scan`` and by an index that
was built afresh of what is left.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import strategies
from answers import build, expected
from bittern.errors import OptionError
from bittern.language.printer import print_expression
from bittern.literature.clauses import forms as forms_module
from bittern.literature.opindex import filing as filing_module
from bittern.literature.opindex import partitions as partitions_module
from bittern.literature.opindex.index import OpIndex, OpIndexBS
from bittern.literature.opindex.operators import OPERATORS
from bittern.matching.contract import Refused
from bittern.matching.pivot.cover import cell_mass
from bittern.matching.scan import Scan
from subscription_contract import TABLE_1, compiled, encoded, part

Kind = type[OpIndex] | type[OpIndexBS]
KINDS: tuple[Kind, ...] = (OpIndex, OpIndexBS)
both = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def masses(catalog: Any) -> npt.NDArray[np.float64]:
    return cell_mass(catalog.rank, catalog.classes, None, 0)


def pairs(found: Any) -> list[tuple[int, int]]:
    return sorted(zip(found.rows.tolist(), found.classes.tolist(), strict=True))


def checked(index: Any, catalog: Any) -> None:
    index.check(catalog.rank.n_channels, catalog.rank.n_cells)


# ------------------------------------------------------------------ the paper's example

S1, S2, S3, S4, S5, S6 = range(6)


def table_1(kind: Kind = OpIndex, **parameters: Any) -> tuple[Any, Any]:
    """The index of Table 1's subscriptions, with the attributes A to E as channels 0 to 4.

    Attributes are numbered as they appear, and in Table 1 E comes before D. So an expression
    that is not indexed names them in order before; its constants are all among those of Table 1.
    """
    in_order = "A = 2 AND B = 3 AND C = 6 AND D = 12 AND E = 9"
    catalog = compiled([in_order, *TABLE_1.values()])
    assert catalog.rank.attribute_names() == list("ABCDE")
    assert catalog.rank.n_channels == len("ABCDE")
    classes = part(catalog.classes, range(1, 7))
    mass = cell_mass(catalog.rank, classes, None, 0)
    index, numbers = kind.build(classes, mass, catalog.rank, **parameters)
    assert numbers.tolist() == [S1, S2, S3, S4, S5, S6]
    checked(index, catalog)
    return catalog, index


@both
def test_seed_003_table_1_and_figure_4(kind: Kind) -> None:
    """The attributes are in so many subscriptions: A 3, B 3, C 3, D 2 and E 3.

    That makes D the pivot of S5 and S6, and S4 has A alone. S1 (A, B), S2 (A, C) and S3 (C, B, E)
    are ties, and the paper takes what is written first. Here the predicate decides that covers the
    least part of its attribute's cells, and it is the same: A = 2 is one cell of 5, B IN (3, 6, 9)
    three of 9; A <= 8 is 4 of 5, C >= 2 is 6 of 7; C = 6 is one of 7, B <= 4 is 4 of 9, E is 7 of
    9. The lowest channel alone would have put S3 under B.
    """
    catalog, index = table_1(kind)
    frequencies = index._space.frequencies
    assert (3 * frequencies / frequencies[0]).tolist() == pytest.approx([3, 3, 3, 2, 3])
    assert len(set(frequencies)) == 2
    assert np.diff(catalog.rank.arrays.bases).tolist() == [5, 9, 7, 5, 9]
    a, c, d = 0, 2, 3
    assert index.pivot_lists() == {a: [S1, S2, S4], c: [S3], d: [S5, S6]}


def test_equal_frequencies_are_equal() -> None:
    """However many cells a channel has, and wherever it stands on the axis."""
    catalog = compiled([f"a{i} IN {tuple(range(2 + i % 7))}" for i in range(300)])
    mass, bases = masses(catalog), catalog.rank.arrays.bases
    assert len(set(mass[bases[1:]] - mass[bases[:-1]])) > 1  # where rounding leaves traces
    index, _ = OpIndex.build(catalog.classes, mass, catalog.rank)
    assert len(set(index._space.frequencies)) == 1


def test_of_equally_frequent_attributes_the_smallest_part_is_the_pivot() -> None:
    """Then the lowest channel; a class in conjunctive form goes by the frequencies alone."""
    texts = {
        "a": "a = 1 AND b <= 5",
        "b": "b = 5 AND a != 3",
        "b again": "a >= 1 AND b BETWEEN 4 AND 5",
        "same part": "b = 7 AND a = 4",
    }
    index = build(texts, strategy="opindex")
    assert isinstance(index.subscriptions, OpIndex)
    assert np.diff(index.rank.arrays.bases).tolist() == [7, 7]
    assert index.rank.attribute_names() == ["a", "b"]
    assert index.subscriptions.pivot_lists() == {0: [0, 3], 1: [1, 2]}


def hashed(number: int, n_bits: int) -> int:
    """The bit that stands for a cell, which is an attribute and an operand, or for a channel."""
    return (number * 0x9E3779B97F4A7C15 % 2**64 >> 32) * n_bits >> 32


def signatures_of(index: OpIndex) -> dict[tuple[int, str, int], int]:
    """The signature of each segment by (pivot channel, operator, segment)."""
    pivot_of, firsts, signatures = index._directory.searched
    n_segments = index._directory.n_segments
    return {
        (channel, operator, segment): int(signatures[first + segment])
        for channel in np.flatnonzero(pivot_of >= 0).tolist()
        for place, operator in enumerate(OPERATORS)
        for first in [int(firsts[pivot_of[channel] * len(OPERATORS) + place])]
        for segment in range(n_segments)
        if first >= 0
    }


def test_seed_003_figure_5() -> None:
    """Lists, segments and signatures: h takes (attribute, operand) for =, else the attribute."""
    catalog, index = table_1(segments=2, signature_bits=4)
    bases = catalog.rank.arrays.bases.tolist()

    def operand(channel: int, cell: int) -> int:
        """The constant of a cell, in a channel of integers."""
        constants = catalog.rank.constants(channel).floors.tolist()
        return int(constants[(cell - bases[channel]) // 2])

    lists: dict[tuple[str, str, int], list[tuple[str, int, int]]] = {}
    for (pivot, operator, segment), rows in index.predicate_lists().items():
        assert rows == sorted(rows)
        assert {channel % 2 for channel, _, _ in rows} == {segment}
        lists["ABCDE"[pivot], operator, segment] = [
            ("ABCDE"[channel], operand(channel, cell), owner) for channel, cell, owner in rows
        ]
    ace, bd = 0, 1
    assert lists == {
        ("A", "=", ace): [("A", 2, S1), ("A", 2, S4)],
        ("A", "=", bd): [("B", 3, S1), ("B", 6, S1), ("B", 9, S1)],
        ("A", "<=", ace): [("A", 8, S2)],
        ("A", ">=", ace): [("C", 2, S2)],
        ("C", "=", ace): [("C", 6, S3)],
        ("C", "<=", ace): [("E", 12, S3)],
        ("C", "<=", bd): [("B", 4, S3)],
        ("C", ">=", ace): [("E", 3, S3)],
        ("D", "=", bd): [("B", 3, S6), ("B", 6, S6)],
        ("D", "<=", ace): [("C", 4, S6), ("E", 7, S6), ("E", 9, S5)],
        ("D", ">=", bd): [("D", 10, S6), ("D", 12, S5)],
    }
    assert signatures_of(index) == {
        (pivot, operator, segment): sum(
            {
                1 << hashed(cell if operator == "=" else channel, 4)
                for channel, cell, _ in index.predicate_lists().get((pivot, operator, segment), [])
            }
        )
        for pivot, operator in itertools.product((0, 2, 3), ("=", "<=", ">="))
        for segment in (ace, bd)
    }
    statistics = index.statistics()
    assert statistics["pivots"] == 3
    assert statistics["lists"] == 9
    assert statistics["clauses"] == 6
    assert statistics["entries_by_operator"] == {"=": 8, "<=": 6, ">=": 4}
    assert statistics["predicates_per_segment"] == 18 / (9 * 2)


@both
def test_seed_003_example_5(kind: Kind) -> None:
    """Only the lists of pivot C are searched, and only S3 is touched there: 9 is in [3, 12]."""
    catalog, index = table_1(kind)
    found = index.match(encoded(catalog, [{"B": 6, "C": 3, "E": 9}]))
    assert pairs(found) == []
    assert found.candidates.tolist() == [1]
    events = [
        {"B": 6, "C": 6, "E": 9},  # C = 6 and E, of S3, but not B <= 4
        {"B": 4, "C": 6, "E": 12},
        {"A": 2, "B": 6},  # Example 2: neither L(C) nor L(D) is accessed
        {"D": 12, "E": 9, "C": 4},
        {"B": 6},
    ]
    found = index.match(encoded(catalog, events))
    assert pairs(found) == [(1, S3), (2, S1), (2, S4), (3, S5)]
    assert found.candidates.tolist() == [1, 1, 3, 3, 0]


# ------------------------------------------------------------------ operators and forms

OPERATORS_OF_2_1 = {
    "<": "a < 3",
    "<=": "a <= 3",
    "=": "a = 3",
    "!=": "a != 3",
    ">": "a > 3",
    ">=": "a >= 3",
    "in a set": "a IN (1, 3, 5)",
    "not in a set": "a NOT IN (1, 3, 4)",
    "in an interval": "a BETWEEN 2 AND 4",
    "not in an interval": "a NOT BETWEEN 2 AND 4",
    "open interval": "a > 2 AND a < 5",
    "between two constants": "a > 3 AND a < 4",
    "two intervals": "a BETWEEN 1 AND 2 OR a BETWEEN 4 AND 6",
    "all but some": "a < 2 OR a > 2 AND a < 4 OR a > 4 AND a != 6",
    "prefix": "s LIKE 'ab%'",
    "long prefix": "s LIKE 'abc%'",
    "no prefix": "s NOT LIKE 'ab%'",
    "prefixes": "s LIKE 'ab%' OR s LIKE 'b%' OR s = 'a'",
    "touching prefixes": "s LIKE 'ab%' OR s LIKE 'ac%'",
    "suffix": "s LIKE '%bc'",
    "no suffix": "s NOT LIKE '%c'",
    "both ends": "s LIKE 'a%' AND s LIKE '%c'",
    "contains": "s LIKE '%b%'",
    "contains not": "s NOT LIKE '%b%'",
    "regular expression": "s RLIKE '^a.c'",
    "no match": "s NOT RLIKE 'c$'",
    "null": "a IS NULL",
    "not null": "a IS NOT NULL",
    "string order": "s >= 'ab' AND s < 'b'",
}
VALUES = (None, -1, 0, 1, 2, 2.5, 3, 3.5, 4, 5, 6, 7)
TEXTS = (None, "", "a", "ab", "abc", "abcd", "ac", "acc", "b", "bc", "c", "xbc")
GRID = [{"a": a, "s": s} for a, s in itertools.product(VALUES, TEXTS)]


@both
@pytest.mark.parametrize("other", ["", " AND b = 1", " AND b IS NULL", " OR b = 1"])
def test_every_operator(kind: Kind, other: str) -> None:
    catalog = {name: text + other for name, text in OPERATORS_OF_2_1.items()}
    events = [event | b for event in GRID for b in ({}, {"b": 1}, {"b": 2})]
    index = build(catalog, strategy=kind.name)
    assert bittern.Matcher(index).match(events).to_pylist() == expected(catalog, events)


def test_operators_are_rewritten_as_the_paper_says() -> None:
    """Entries and needed hits of each predicate, alone in a rank space of many constants."""
    others = ["a IN (1, 2, 3, 4, 5, 6, 7)", "s IN ('a', 'ab', 'abc', 'b')"]
    cases: dict[str, tuple[dict[str, int], int]] = {
        "a < 3": ({"<=": 1}, 1),
        "a >= 3": ({">=": 1}, 1),
        "a = 3": ({"=": 1}, 1),
        "a != 3": ({"!=": 1}, 1),
        "a IN (1, 3, 5)": ({"=": 3}, 1),
        "a NOT IN (1, 3, 5)": ({"!=": 3}, 3),
        "a BETWEEN 2 AND 4": ({"<=": 1, ">=": 1}, 2),
        "a NOT BETWEEN 2 AND 4": ({"<=": 1, ">=": 1}, 1),
        "a BETWEEN 1 AND 6 AND a NOT BETWEEN 3 AND 4": ({"<=": 2, ">=": 2}, 3),
        "s LIKE 'ab%'": ({"prefix": 1}, 1),
        "s LIKE 'ab%' OR s LIKE 'b%' OR s = 'a'": ({"=": 1, "prefix": 2}, 1),
        "s LIKE '%b'": ({"suffix": 1}, 1),
        "s LIKE '%b%'": ({"pattern": 1}, 1),
        "a IS NOT NULL": ({"=": 1}, 1),
        "a = 3 AND b IS NULL": ({"missing": 1, "=": 1}, 1),
        "a = 3 AND s NOT LIKE '%b%'": ({"missing": 1, "=": 1, ">=": 1}, 2),  # s is a string
    }
    catalog = compiled([*others, *cases])
    for place, (text, (entries, needs)) in enumerate(cases.items()):
        own = part(catalog.classes, [catalog.class_of[len(others) + place]])
        index, _ = OpIndex.build(own, masses(catalog), catalog.rank)
        checked(index, catalog)
        assert index.statistics()["entries_by_operator"] == entries, text
        assert index.arrays()["counters.needs"].tolist() == [needs], text


FORMS = {
    "cnf": "(a = 1 OR b = 1) AND (a = 2 OR c = 1) AND (b = 2 OR c = 1 OR d = 1)",
    "cnf of one pivot": "d = 1 AND (a = 1 OR b = 1)",
    "cnf of ranges": "(a BETWEEN 1 AND 2 OR b >= 2) AND (c BETWEEN 0 AND 1 OR d != 1)",
    "cnf of gaps": "(a NOT IN (0, 2) OR b = 1) AND (c BETWEEN 1 AND 2 OR b BETWEEN 0 AND 1)",
    "cnf too wide": "("
    + ") AND (".join(
        " OR ".join(f"{name}{i} NOT IN (1, 2, 3)" for name in "abc") for i in (0, 1, 2)
    )
    + ")",
    "dnf": "(a = 1 AND b = 1) OR (a = 2 AND c = 1) OR (b = 2 AND c = 2)",
    "dnf of one pivot": "(a = 1 AND b = 1) OR (a = 1 AND c = 1)",
    "dnf with null": "(a = 1 AND b IS NULL) OR (c = 1 AND d IS NULL)",
    "long": " AND ".join(f"w{i} = 1" for i in range(70)),
    "long or": " OR ".join(f"w{i} = 1" for i in range(70)),
    "always": "a IS NULL OR b = 1",
    "never": "a = 1 AND a = 2 AND b = 1",
}


def form_events() -> list[dict[str, Any]]:
    values = (None, 0, 1, 2)
    grid: list[dict[str, Any]] = [
        dict(zip("abcd", row, strict=True)) for row in itertools.product(values, repeat=4)
    ]
    wide = {f"w{i}": 1 for i in range(70)}
    threes = [
        {f"{name}{i}": v + i for i in range(3) for name, v in zip("abc", row, strict=True)}
        for row in itertools.product((0, 1, 3, 5), repeat=3)
    ]
    return [*grid, *threes, wide, wide | {"w69": 2}, {"w3": 1}]


@both
def test_forms(kind: Kind) -> None:
    events = form_events()
    index = build(FORMS, strategy=kind.name)
    matches = bittern.Matcher(index).match(events)
    assert matches.to_pylist() == expected(FORMS, events)


def test_which_form_a_class_is_filed_in() -> None:
    catalog = compiled(list(FORMS.values()))
    filings = {}
    for place, name in enumerate(FORMS):
        own = part(catalog.classes, [catalog.class_of[place]])
        index, _ = OpIndex.build(own, masses(catalog), catalog.rank)
        checked(index, catalog)
        arrays = index.arrays()
        bits = bool((arrays["lists.values"] < 0).any())
        filings[name] = sorted(arrays["counters.needs"].tolist()), bits
    assert filings == {
        "cnf": ([3, 3], True),
        "cnf of one pivot": ([2], True),
        "cnf of ranges": ([4, 4], True),  # (a >= 1 or b) (a <= 2 or b) and the same of c and d
        "cnf of gaps": ([6, 6], True),
        "cnf too wide": ([9] * 27, False),  # 81 bits
        "dnf": ([2, 2, 2], False),
        "dnf of one pivot": ([2, 2], False),
        "dnf with null": ([1, 1], False),
        "long": ([70], False),
        "long or": ([1] * 70, False),
        "always": ([], False),
        "never": ([], False),
    }


def test_pivots_are_the_least_frequent_attributes() -> None:
    """Of a conjunction the rarest attribute; of a conjunctive form the smallest clause's."""
    texts = [
        "a = 1 AND b = 1 AND c = 1",
        "(a = 1 OR b = 1) AND (b = 2 OR c = 1) AND (c = 2 OR d = 1 OR b = 3)",
        "a IS NULL AND c = 1",
    ]
    sample = [{"a": 1, "b": 1, "c": 1}] * 6 + [{"a": 1, "c": 1}] * 3 + [{"c": 1, "d": 1}] * 9
    index = build(dict(enumerate(texts)), sample=sample, strategy="opindex")
    assert isinstance(index.subscriptions, OpIndex)
    names = index.rank.attribute_names()
    attributes = index.rank.channel_attributes
    pivots = {
        names[attributes[channel]]: classes
        for channel, classes in index.subscriptions.pivot_lists().items()
    }
    assert pivots == {"a": [1], "b": [0, 1], "c": [2]}


@given(
    strategies.catalogs(strategies.free_expressions(), max_size=14),
    strategies.batches(strategies.free_events(), max_size=8),
    st.sampled_from([("opindex", None), ("opindex", {"segments": 3, "signature_bits": 2})])
    | st.just(("opindex-bs", None)),
)
def test_any_catalog(catalog: Any, events: Any, how: tuple[str, Any]) -> None:
    texts = {name: print_expression(tree) for name, tree in catalog.items()}
    strategy, parameters = how
    index = build(texts, strategy=strategy, parameters=parameters)
    assert bittern.Matcher(index).match(events).to_pylist() == expected(texts, events)


# ------------------------------------------------------------------ changes

POOL = [
    *OPERATORS_OF_2_1.values(),
    *FORMS.values(),
    *(f"a = {a} AND b = {b}" for a in range(3) for b in range(3)),
    *(f"(a = {a} OR b = 1) AND (c <= {a} OR b = 2)" for a in range(3)),
    *(f"s LIKE '{text}%' AND b = 1" for text in ("a", "ab", "abc")),
]
CATALOG = compiled(POOL)
EVENTS = encoded(
    CATALOG,
    [*(event | b for event in GRID[::7] for b in ({}, {"b": 1})), *form_events()[::5]],
)


def truth(live: dict[int, int]) -> list[tuple[int, int]]:
    """What ``scan`` finds of the classes that are there, by their numbers."""
    scan, _ = Scan.build(part(CATALOG.classes, list(live.values())), masses(CATALOG), CATALOG.rank)
    found = scan.match(EVENTS)
    numbers = np.array(list(live), dtype=np.int64)
    return sorted(zip(found.rows.tolist(), numbers[found.classes].tolist(), strict=True))


steps = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "delete", "save"]),
        st.lists(st.integers(0, 10**6), max_size=6),
    ),
    max_size=8,
)


@given(
    st.sampled_from(KINDS),
    st.lists(st.integers(0, 10**6), max_size=10),
    steps,
    st.sampled_from([64, 0, -(10**6)]),
)
def test_changes(kind: Kind, first: list[int], changes: Any, few_holes: int) -> None:
    """Any changes leave what an index built afresh would find, list by list.

    With few holes that are worth it, everything is written anew often, or after every deletion.
    """
    n = len(CATALOG.classes)
    start = [number % n for number in first]
    index, numbers = kind.build(part(CATALOG.classes, start), masses(CATALOG), CATALOG.rank)
    live = dict(zip(numbers.tolist(), start, strict=True))
    given_out = len(start)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions_module, "_FEW_HOLES", few_holes)
        for what, drawn in changes:
            if what == "insert":
                chosen = [number % n for number in drawn]
                numbers = index.insert(part(CATALOG.classes, chosen))
                assert numbers.tolist() == list(range(given_out, given_out + len(chosen)))
                live |= dict(zip(numbers.tolist(), chosen, strict=True))
                given_out += len(chosen)
            elif what == "delete" and live:
                going = sorted({list(live)[number % len(live)] for number in drawn})
                classes = part(CATALOG.classes, [live[number] for number in going])
                index.delete(classes, np.array(going, dtype=np.int32))
                live = {number: c for number, c in live.items() if number not in going}
            else:
                index = kind.from_arrays(index.arrays(), index.parameters)
            checked(index, CATALOG)
    assert pairs(index.match(EVENTS)) == truth(live)
    assert index.statistics()["classes"] == given_out
    assert index.statistics()["deleted"] == given_out - len(live)
    afresh, _ = kind.build(
        part(CATALOG.classes, list(live.values())), masses(CATALOG), CATALOG.rank
    )
    place = {number: at for at, number in enumerate(live)}
    assert {
        key: sorted((channel, operand, place[owner]) for channel, operand, owner in rows)
        for key, rows in index.predicate_lists().items()
    } == {key: sorted(rows) for key, rows in afresh.predicate_lists().items()}
    assert np.array_equal(index.match(EVENTS).candidates, afresh.match(EVENTS).candidates)


@both
def test_only_what_is_there_is_deleted(kind: Kind) -> None:
    catalog = compiled(
        ["a = 1", "a IN (1, 2)", "a = 1 OR b = 1", "a = 1 AND a = 2", "a IS NULL", "b IS NULL"]
    )
    classes = catalog.classes
    index, _ = kind.build(classes, masses(catalog), catalog.rank)
    before = {name: array.copy() for name, array in index.arrays().items()}
    wrong: list[tuple[list[int], list[int]]] = [
        ([0], [1]),  # less than was inserted
        ([1], [0]),  # more
        ([0], [2]),
        ([2], [0]),
        ([3], [4]),  # what never matches, under the number of what is run always
        ([4], [3]),
        ([4], [0]),
        ([0], [6]),  # numbers that were never given
        ([0], [-1]),
        ([0, 0], [0, 0]),  # twice
        ([1, 0], [1, 2]),  # the first one alone would be right
        ([0], [0, 1]),
    ]
    for which, numbers in wrong:
        with pytest.raises(OptionError, match="not in the index"):
            index.delete(part(classes, which), np.array(numbers, dtype=np.int32))
    after = index.arrays()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    everything = np.arange(6, dtype=np.int32)
    index.delete(classes, everything)
    checked(index, catalog)
    with pytest.raises(OptionError, match="not in the index"):
        index.delete(part(classes, [3]), np.array([3], dtype=np.int32))
    events = encoded(catalog, [{"a": 1, "b": 1}, {}])
    assert pairs(index.match(events)) == []
    assert index.insert(part(classes, [0])).tolist() == [6]
    assert pairs(index.match(events)) == [(0, 6)]


@both
def test_saved_and_mapped(kind: Kind, tmp_path: Any) -> None:
    """A mapped index finds the same, is changed without touching the file, and is saved again."""
    texts = dict(enumerate(POOL))
    index = build(texts, strategy=kind.name)
    index.save(tmp_path / "one")
    mapped = bittern.Index.open(tmp_path / "one", verify=True)
    mapped.check()
    assert mapped.subscriptions.parameters == index.subscriptions.parameters
    events = [*GRID, *form_events()]
    right = bittern.Matcher(index).match(events).to_pylist()
    assert bittern.Matcher(mapped).match(events).to_pylist() == right
    inner = mapped.subscriptions
    assert isinstance(inner, kind)
    assert inner.nbytes == index.subscriptions.nbytes
    whole = EVENTS
    before = pairs(inner.match(whole))
    numbers = inner.insert(part(CATALOG.classes, [0, 1, 2]))
    inner.delete(part(CATALOG.classes, [0, 1]), numbers[:2])
    checked(inner, CATALOG)
    assert bittern.Index.open(tmp_path / "one", verify=True).id == index.id
    again = kind.from_arrays(inner.arrays(), inner.parameters)
    checked(again, CATALOG)
    found = pairs(again.match(whole))
    assert found == pairs(inner.match(whole))
    assert [pair for pair in found if pair[1] != numbers[2]] == before


def test_what_arrays_gave_stays_as_it_is() -> None:
    index, _ = OpIndex.build(CATALOG.classes, masses(CATALOG), CATALOG.rank)
    index.insert(part(CATALOG.classes, [0]))
    arrays = index.arrays()
    before = {name: array.copy() for name, array in arrays.items()}
    other = OpIndex.from_arrays(arrays, index.parameters)
    for changed in (index, other):
        numbers = changed.insert(CATALOG.classes)
        changed.delete(CATALOG.classes, numbers)
        checked(changed, CATALOG)
    assert all(np.array_equal(before[name], arrays[name]) for name in before)


def test_refused_forms_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    index, _ = OpIndex.build(CATALOG.classes, masses(CATALOG), CATALOG.rank)
    monkeypatch.setattr(forms_module, "MOST_CLAUSES", 8)
    wide = list(FORMS).index("cnf too wide") + len(OPERATORS_OF_2_1)
    chosen = [0, int(CATALOG.class_of[wide])]
    before = {name: array.copy() for name, array in index.arrays().items()}
    with pytest.raises(Refused) as refused:
        index.insert(part(CATALOG.classes, chosen))
    assert list(refused.value.reasons) == [1]
    assert all(np.array_equal(before[name], array) for name, array in index.arrays().items())


def test_all_refusals_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No normal form; too many bits and no other form; too many entries in either form."""
    either = [" OR ".join(f"x{i}_{k} = 1 AND y = 2" for k in range(6)) for i in range(6)]
    gaps = [" OR ".join(f"w{i}_{k} BETWEEN 1 AND 3" for k in range(7)) for i in range(4)]
    entries = [" OR ".join(f"v{i}_{k} = 1" for k in range(20)) for i in range(2)]
    texts = {
        "no form": "(" + ") AND (".join(either) + ")",
        "bits": "(" + ") AND (".join(gaps) + ")",
        "entries": "(" + ") AND (".join(entries) + ")",
        "fine": "a = 1",
        "few entries": "(a = 1 OR b = 1) AND (c = 1 OR d = 1)",
    }
    catalog = compiled(list(texts.values()))
    index, _ = OpIndex.build(part(catalog.classes, [2, 3, 4]), masses(catalog), catalog.rank)
    assert index.statistics()["entries"] == 20 * 40 + 1 + 2 * 4
    monkeypatch.setattr(filing_module, "MOST_ENTRIES", 799)
    with pytest.raises(Refused) as refused:
        index.insert(catalog.classes)
    reasons = {list(texts)[c]: reason for c, reason in refused.value.reasons.items()}
    assert reasons.keys() == {"no form", "bits", "entries"}
    assert "basic predicates for it; the strategy pivot" in reasons["entries"]
    assert index.statistics()["classes"] == 3
    monkeypatch.setattr(filing_module, "MOST_ENTRIES", 800)
    own = part(catalog.classes, [2, 4])
    assert index.insert(own).tolist() == [3, 4]


def test_fewer_entries_in_disjunctive_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clause of two intervals is four clauses of ends, each end in two of them.

    So each of two pivots has 2 x 8 entries; as four conjunctions of four ends they are 16.
    """
    some = [f"({one} BETWEEN 1 AND 2 OR {other} BETWEEN 1 AND 2)" for one, other in ("ab", "cd")]
    catalog = compiled([" AND ".join(some)])
    rows = itertools.product((0, 1, 2, 3), repeat=4)
    events = encoded(catalog, [dict(zip("abcd", row, strict=True)) for row in rows])
    found = {}
    for most in (32, 31, 16):
        monkeypatch.setattr(filing_module, "MOST_ENTRIES", most)
        index, _ = OpIndex.build(catalog.classes, masses(catalog), catalog.rank)
        checked(index, catalog)
        statistics = index.statistics()
        assert len(pairs(index.match(events))) == (4**2 - 2**2) ** 2
        found[most] = statistics["clauses"], statistics["entries"]
    assert found == {32: (2, 32), 31: (4, 16), 16: (4, 16)}
    monkeypatch.setattr(filing_module, "MOST_ENTRIES", 15)
    with pytest.raises(Refused):
        OpIndex.build(catalog.classes, masses(catalog), catalog.rank)


def test_insertion_is_logarithmic() -> None:
    """All on one attribute and one value: no insertion or deletion moves more than some blocks."""
    n, more = 20_000, 500
    texts = [f"a = 1 AND b <= {i}" for i in range(n + more)]
    catalog = compiled(texts)
    events = [{"a": 1, "b": 7}]
    sample = cell_mass(catalog.rank, catalog.classes, None, 0)
    index, _ = OpIndexBS.build(part(catalog.classes, range(n)), sample, catalog.rank)
    index.insert(part(catalog.classes, [n]))  # enters the form that changes
    lists = index._lists.searched
    before = lists.keys.copy(), lists.values.copy()
    for i in range(n + 1, n + more):
        index.insert(part(catalog.classes, [i]))
    lists = index._lists.searched
    size = min(len(before[0]), len(lists.keys))
    written = (lists.keys[:size] != before[0][:size]) | (lists.values[:size] != before[1][:size])
    # In each of the two lists a new pair goes to the end, or moves at most two blocks' pairs.
    assert np.count_nonzero(written) < more * 2 * 2 * 64
    index.delete(part(catalog.classes, range(10, n)), np.arange(10, n, dtype=np.int32))
    checked(index, catalog)
    left = [*range(10), *range(n, n + more)]
    right = [(0, i) for i in left if i >= 7]
    assert pairs(index.match(encoded(catalog, events))) == right
    assert index.statistics()["clauses"] == len(left)
    assert index._counters.n_holes == 0  # written anew


# ------------------------------------------------------------------ parameters and statistics


@pytest.mark.parametrize(
    "parameters",
    [
        {"segments": 0},
        {"segments": 1.5},
        {"segments": 1 << 20},
        {"signature_bits": 0},
        {"signature_bits": 65},
        {"bits": 3},
    ],
)
def test_bad_parameters(parameters: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        bittern.Index.build({"x": "a = 1"}, strategy="opindex", parameters=parameters)
    with pytest.raises(OptionError, match="it has none"):
        bittern.Index.build({"x": "a = 1"}, strategy="opindex-bs", parameters=parameters)


@pytest.mark.parametrize(("segments", "signature_bits"), [(1, 1), (7, 64), (64, 13), (100, 1)])
def test_any_parameters(segments: int, signature_bits: int) -> None:
    parameters = {"segments": segments, "signature_bits": signature_bits}
    index = build(FORMS, strategy="opindex", parameters=parameters)
    assert index.subscriptions.parameters == parameters
    events = form_events()
    assert bittern.Matcher(index).match(events).to_pylist() == expected(FORMS, events)


def test_empty() -> None:
    for kind in KINDS:
        index = build({}, strategy=kind.name)
        assert bittern.Matcher(index).match([{"a": 1}, {}]).to_pylist() == [[], []]
        empty, _ = kind.build(part(CATALOG.classes, []), masses(CATALOG), CATALOG.rank)
        checked(empty, CATALOG)
        assert pairs(empty.match(EVENTS)) == []
        empty.delete(part(CATALOG.classes, []), np.empty(0, dtype=np.int32))
        numbers = empty.insert(CATALOG.classes)
        checked(empty, CATALOG)
        assert pairs(empty.match(EVENTS)) == truth(
            dict(zip(numbers.tolist(), numbers, strict=True))
        )


def test_more_matches_than_there_is_room_for() -> None:
    texts = {i: f"a <= {i}" for i in range(3000)}
    index = build(texts, strategy="opindex")
    found = bittern.Matcher(index).match([{"a": 0}, {"a": 2990}] * 40)
    assert found.counts.tolist() == [3000, 10] * 40


def test_operators_have_names() -> None:
    assert len(set(OPERATORS)) == len(OPERATORS)
    everything, _ = OpIndex.build(CATALOG.classes, masses(CATALOG), CATALOG.rank)
    assert set(everything.statistics()["entries_by_operator"]) == set(OPERATORS)


# ------------------------------------------------------------------ broken arrays


def broken(name: str, change: Any) -> Any:
    """An index of which one array was changed."""
    index, _ = OpIndex.build(
        CATALOG.classes, masses(CATALOG), CATALOG.rank, segments=4, signature_bits=16
    )
    arrays = dict(index.arrays())
    if name == "space.trie":  # all of it
        arrays |= {key: array[:0] for key, array in arrays.items() if key.startswith(name)}
    else:
        array = arrays[name].copy()
        changed = change(array)
        arrays[name] = array if changed is None else changed
    return OpIndex.from_arrays(arrays, index.parameters)


def setting(place: Any, value: Any) -> Any:
    def change(array: Any) -> None:
        array[place] = value

    return change


def adding(place: Any, value: Any) -> Any:
    def change(array: Any) -> None:
        array[place] += value

    return change


BROKEN = {
    "axis": ("space.bases", adding(-1, 1), "another rank space"),
    "channel": ("space.bases", lambda array: array[1:], "one base per channel"),
    "order": ("space.bases", lambda array: array * 0, "another rank space|no cell"),
    "kinds": ("space.kinds", lambda array: array[:-1], "cut off"),
    "frequency": ("space.frequencies", setting(0, -1.0), "less frequent than never"),
    "trie": ("space.trie.parents", setting(-1, 0), "prefix"),
    "trie out": ("space.trie.parents", setting(slice(None), 10**9), "under the wrong one"),
    "no trie": ("space.trie", None, "no attribute"),
    "pivots": ("directory.pivot_of", setting(slice(None), 0), "numbered in turn"),
    "pivot out": ("directory.pivot_of", setting(slice(2), 10**6), "numbered in turn"),
    "directory": ("directory.firsts", lambda array: array[:-8], "pivots|cut off"),
    "lists": ("directory.firsts", lambda array: np.where(array >= 0, array + 4, array), "in turn"),
    "swapped": ("directory.firsts", lambda array: array[::-1].copy(), "."),
    "signatures": ("directory.signatures", lambda array: array[:-1], "signatures are missing"),
    "signature": ("directory.signatures", lambda array: array * 0, "lacks a predicate"),
    "offsets": ("lists.offsets", setting(1, 10**6), "."),
    "key order": ("lists.keys", lambda array: array[::-1].copy(), "."),
    "key out": ("lists.keys", setting(slice(None), 2**31 - 1), "."),
    "key below": ("lists.keys", setting(slice(None), -5), "."),
    "slot out": ("lists.values", setting(-1, 2**31 - 1), "."),
    "bit out": ("lists.values", setting(-1, -(2**31)), "."),
    "cut": ("lists.values", lambda array: array[:-1], "."),
    "counters": ("counters.offsets", setting(1, 10**6), "ends before it begins|cut off"),
    "counters below": ("counters.offsets", setting(0, -3), "before the first|begin at 0"),
    "counters cut": ("counters.owners", lambda array: array[:-1], "differ in number"),
    "owner": ("counters.owners", setting(0, 10**6), "no class"),
    "owners": ("counters.owners", lambda array: array[::-1].copy(), "ascend|other entries"),
    "needs less": ("counters.needs", setting(0, 0), "holes"),
    "needs more": ("counters.needs", adding(slice(None), 1), "cannot have"),
    "needs fewer": ("counters.needs", lambda array: np.maximum(array - 1, 1), "cannot have|bit"),
    "held": ("held", adding(0, 1), "holds other entries"),
    "deleted": ("held", setting(0, -1), "holds other entries"),
    "held less": ("held", setting(0, -2), "less than nothing"),
    "several": ("several", adding(0, 1), "counted wrong"),
    "always": ("always.classes", setting(0, 0), "filed as well|stands twice"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_check_finds_broken_arrays(name: str) -> None:
    array, change, message = BROKEN[name]
    with pytest.raises(AssertionError, match=message):
        checked(broken(array, change), CATALOG)


def test_check_finds_broken_changes() -> None:
    """The same while the arrays are those that change."""
    for name in ("needs", "owners", "ends"):
        index, _ = OpIndex.build(CATALOG.classes, masses(CATALOG), CATALOG.rank)
        index.insert(CATALOG.classes)
        checked(index, CATALOG)
        arrays = index._counters._own
        getattr(arrays, name)[0 if name == "ends" else arrays.begins[0]] += 1
        with pytest.raises(AssertionError):
            checked(index, CATALOG)
