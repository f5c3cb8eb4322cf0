"""OpIndex: the lemmas of seed 003 that say what the index costs, on random catalogs.

Subscriptions are conjunctions of ``=``, ``<=`` and ``>=`` on different attributes, as in the
paper's analysis, so that each predicate is one basic predicate. Lemmas 3, 6 and 7 are averages of
the paper's uniform workload; `benchmarks/papers` counts them.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bittern.literature.opindex.index import OpIndex
from bittern.literature.opindex.operators import OPERATORS
from bittern.matching.pivot.cover import cell_mass
from effort import examples
from subscription_contract import compiled, encoded, truth

ATTRIBUTES = "abcde"
SEGMENTS = 2

predicates = st.tuples(st.sampled_from(["=", "<=", ">="]), st.integers(0, 6))
subscriptions = st.dictionaries(st.sampled_from(ATTRIBUTES), predicates, min_size=1, max_size=4)
events = st.dictionaries(st.sampled_from(ATTRIBUTES), st.integers(-1, 7))


class Filed:
    """Distinct subscriptions in an index, and in a compiled catalog that knows all attributes.

    Its first expression names the attributes in order, so that channel i is the i-th, with
    constants enough that no predicate that can be drawn holds for every value or for none.
    """

    def __init__(self, drawn: list[dict[str, Any]], signature_bits: int = 64) -> None:
        every = " AND ".join(f"{name} IN (-1, 0, 1, 2, 3, 4, 5, 6, 7)" for name in ATTRIBUTES)
        texts = {
            " AND ".join(f"{name} {op} {n}" for name, (op, n) in sorted(each.items())): each
            for each in drawn
        }
        self.catalog = compiled([every, *texts])
        assert self.catalog.rank.attribute_names() == list(ATTRIBUTES)
        numbers = self.catalog.class_of[1:].tolist()
        self.needs = dict(zip(numbers, texts.values(), strict=True))
        mass = cell_mass(self.catalog.rank, self.catalog.classes, None, 0)
        self.classes = self.catalog.classes.take(np.array(numbers, dtype=np.int64))
        self.index, own = OpIndex.build(
            self.classes, mass, self.catalog.rank, segments=SEGMENTS, signature_bits=signature_bits
        )
        self.class_of = dict(zip(own.tolist(), numbers, strict=True))
        self.index.check(self.catalog.rank.n_channels, self.catalog.rank.n_cells)

    @property
    def pivot_of(self) -> dict[int, str]:
        """The attribute that each class is filed under."""
        found: dict[int, str] = {}
        for channel, filed in self.index.pivot_lists().items():
            for number in filed:
                own = self.class_of[number]
                assert own not in found, "a conjunction is filed twice"
                found[own] = ATTRIBUTES[channel]
        return found


@examples(2)
@given(st.lists(subscriptions, min_size=1, max_size=30), st.lists(events, min_size=1, max_size=8))
def test_lemma_1_matches_are_in_the_lists_of_the_events_attributes(
    drawn: list[dict[str, Any]], given_events: list[dict[str, int]]
) -> None:
    filed = Filed(drawn)
    pivots = filed.pivot_of
    assert set(pivots) == set(filed.needs)
    batch = encoded(filed.catalog, given_events)
    for event, matched in zip(given_events, truth(filed.catalog, batch), strict=True):
        candidates = {c for c, pivot in pivots.items() if pivot in event}
        assert matched & set(filed.needs) <= candidates
    found = filed.index.match(batch)
    in_lists = [sum(pivot in event for pivot in pivots.values()) for event in given_events]
    assert (found.candidates <= np.array(in_lists)).all()


@given(st.lists(subscriptions, min_size=1, max_size=5))
def test_lemma_2_no_other_pivots_are_accessed_less(drawn: list[dict[str, Any]]) -> None:
    """For events whose attributes are as frequent as in the subscriptions, by trying them all."""
    filed = Filed(drawn)
    frequency = dict(zip(ATTRIBUTES, filed.index._space.frequencies.tolist(), strict=True))
    chosen = sum(frequency[pivot] for pivot in filed.pivot_of.values())
    choices = [[frequency[name] for name in needs] for needs in filed.needs.values()]
    least = min(map(sum, itertools.product(*choices)))
    assert chosen <= least * (1 + 1e-12)


@given(st.lists(subscriptions, min_size=1, max_size=40))
def test_lemma_4_one_entry_for_each_predicate_and_one_counter_for_each_subscription(
    drawn: list[dict[str, Any]],
) -> None:
    filed = Filed(drawn)
    figures = filed.index.statistics()
    assert figures["entries"] == sum(map(len, filed.needs.values()))
    assert figures["clauses"] == len(filed.needs)
    per_operator = dict.fromkeys(("=", "<=", ">="), 0)
    for operator, _ in itertools.chain.from_iterable(
        each.values() for each in filed.needs.values()
    ):
        per_operator[operator] += 1
    assert figures["entries_by_operator"] == {k: n for k, n in per_operator.items() if n}
    # Beside them, lists and segments: at most one list for each pivot and operator.
    assert figures["lists"] <= 3 * figures["pivots"] <= 3 * len(ATTRIBUTES)
    assert filed.index._directory.n_lists == figures["lists"] * SEGMENTS


@given(st.lists(subscriptions, min_size=1, max_size=20), subscriptions)
def test_lemma_5_an_insertion_touches_one_segment_for_each_predicate(
    drawn: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    """And in it one place; the search for that place is the logarithm of the lemma."""
    filed = Filed([*drawn, more])
    last = filed.classes.take(np.array([len(filed.needs) - 1]))
    mass = cell_mass(filed.catalog.rank, filed.catalog.classes, None, 0)
    others = filed.classes.take(np.arange(len(filed.needs) - 1, dtype=np.int64))
    index, _ = OpIndex.build(others, mass, filed.catalog.rank, segments=SEGMENTS)
    before = {place: list(rows) for place, rows in index.predicate_lists().items()}
    (number,) = index.insert(last).tolist()
    needs = list(filed.needs.values())[-1]
    new = []
    for (pivot, operator, segment), rows in index.predicate_lists().items():
        own = [row for row in rows if row[2] == number]
        assert [row for row in rows if row[2] != number] == before.get(
            (pivot, operator, segment), []
        )
        assert rows == sorted(rows)
        new += [(ATTRIBUTES[channel], operator) for channel, _, _ in own]
    assert sorted(new) == sorted((name, operator) for name, (operator, _) in needs.items())


def test_lemma_8_signatures_are_set_as_often_as_the_lemma_says() -> None:
    """Of w bits, 1 - (1 - 1/w)^n are set by n different (attribute, operand) of a segment."""
    rng = np.random.default_rng(8)
    for bits in (16, 64):
        expected, measured = [], []
        for _ in range(60):
            n = int(rng.integers(1, 40))
            drawn = [
                {"a": ("=", int(rng.integers(0, 7))), name: ("=", int(rng.integers(0, 7)))}
                for name in rng.choice(list("bcde"), n)
            ]
            filed = Filed(drawn, bits)
            pivot_of, firsts, signatures = filed.index._directory.searched
            for (pivot, operator, segment), rows in filed.index.predicate_lists().items():
                first = firsts[pivot_of[pivot] * len(OPERATORS) + OPERATORS.index(operator)]
                distinct = len({(channel, cell) for channel, cell, _ in rows})
                expected.append(1 - (1 - 1 / bits) ** distinct)
                measured.append(int(signatures[first + segment]).bit_count() / bits)
        assert abs(np.mean(measured) / np.mean(expected) - 1) < 0.1


@given(st.lists(subscriptions, min_size=1, max_size=30), events)
def test_lemma_8_lists_of_an_event_are_at_most_the_square_of_its_attributes(
    drawn: list[dict[str, Any]], event: dict[str, int]
) -> None:
    """An event of m attributes looks into 3 m lists, for each attribute into one segment."""
    filed = Filed(drawn)
    looked_into = [
        (pivot, operator, segment, name)
        for pivot, operator, segment in filed.index.predicate_lists()
        if ATTRIBUTES[pivot] in event
        for name in event
        if ATTRIBUTES.index(name) % SEGMENTS == segment
    ]
    assert len(looked_into) <= 3 * len(event) ** 2
    hits = sum(
        pivot in event
        for c, pivot in filed.pivot_of.items()
        for name, (operator, n) in filed.needs[c].items()
        if name in event
        and {"=": event[name] == n, "<=": event[name] <= n, ">=": event[name] >= n}[operator]
    )
    found = filed.index.match(encoded(filed.catalog, [event]))
    assert found.candidates[0] <= hits
