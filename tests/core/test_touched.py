"""Values that no delta's test holds for are not looked up in it, and nothing else is left out."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import strategies
from answers import build, expected
from bittern.engine.live import delta as delta_module
from bittern.engine.matcher import StateMatcher
from bittern.language.printer import print_expression
from bittern.model.events.encoder import read_together
from bittern.model.rank.touched import Touched
from effort import examples


def kept(base: dict[Any, str], delta: dict[Any, str], events: Any) -> list[list[int]]:
    """The numbers of pairs that each event has in the delta: of all values, of those that touch."""
    first, own = build(base), build(delta)
    numbers = own.encoder.numbers_in(first.encoder)
    assert numbers is not None
    touched = Touched(first.rank)
    touched.mark(own.rank, numbers, own.subscriptions.tests())
    found = []
    for cells in (None, touched):
        read = read_together([first.encoder, own.encoder], events, touched=cells)[1]
        rows = (read.pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)
        found.append(np.bincount(rows, minlength=read.n_events).tolist())
    return found


BASE = {
    1: "a = 10 OR a = 20 OR a > 100.5 OR a = 'x' OR b = 'red' OR c IS NULL OR d LIKE 'm%'",
    2: "e = TRUE OR f > TIMESTAMP '2020-01-01 00:00:00'",
}


@pytest.mark.parametrize(
    ("test", "values", "right"),
    [
        ("a = 10", [9, 10, 11, 10.0, 10.5, "x", None], [0, 1, 0, 1, 0, 0, 0]),
        ("a = 15", [10, 11, 19, 20, 21], [0, 1, 1, 0, 0]),  # of one cell of the base
        ("a < 15", [-5, 10, 11, 20, 21], [1, 1, 1, 0, 0]),
        ("a >= 20", [19, 20, 1000, float("nan")], [0, 1, 1, 1]),
        ("a = 100.25", [20, 100, 101], [0, 1, 0]),
        ("a BETWEEN 10 AND 20", [9, 10, 15, 20, 21], [0, 1, 1, 1, 0]),
        ("a <> 10", [9, 10, 11], [1, 1, 1]),  # the inline test is from the lowest to the highest
        ("b = 'red'", ["red", "tan"], [1, 0]),
        ("b = 'tan'", ["red", "tan", "blue"], [0, 1, 1]),
        ("d = 'm'", ["m", "ma", "a"], [1, 0, 0]),
        ("d >= 'ma'", ["m", "ma", "a"], [1, 1, 1]),  # the order of strings is not looked at
        ("a IS NULL", [10, 11, "y"], [1, 1, 1]),
        ("b LIKE '%d'", ["red", "tan"], [1, 1]),
        ("b LIKE '%e%'", ["red", "tan"], [1, 0]),
        ("e = FALSE", [True, False], [0, 1]),
        ("c = 3", [3, 4], [1, 1]),  # the base knows no numbers of it
    ],
)
def test_of_one_test(test: str, values: list[Any], right: list[int]) -> None:
    name = test.split(maxsplit=1)[0]
    whole, some = kept(BASE, {3: test}, [{name: value} for value in values])
    assert [int(n > 0) for n in some] == right
    assert all(a >= b for a, b in zip(whole, some, strict=True))


TEXTS = st.dictionaries(
    st.integers(0, 99), strategies.free_expressions().map(print_expression), max_size=8
)


@given(
    base=TEXTS,
    deltas=st.lists(TEXTS, min_size=1, max_size=3),
    events=strategies.batches(strategies.free_events(), max_size=8),
)
@examples(0.5)
def test_any_deltas(
    base: dict[int, str], deltas: list[dict[int, str]], events: list[dict[str, Any]]
) -> None:
    whole = dict(base)
    with pytest.MonkeyPatch.context() as patch, bittern.LiveMatcher(build(base)) as live:
        patch.setattr(delta_module, "SMALL_DELTA", 0)  # each stays a delta
        for number, texts in enumerate(deltas, start=1):
            more = {1000 * number + id_: text for id_, text in texts.items()}
            live.subscribe_many(more)
            whole |= more
            found = StateMatcher(live.seal()).match(events).to_pylist()
            assert list(map(sorted, found)) == list(map(sorted, expected(whole, events)))


def test_a_copy_of_a_state_marks_anew() -> None:
    with bittern.LiveMatcher(build({1: "a = 1"})) as live:
        live.subscribe(2, "a = 2")
        state = pickle.loads(pickle.dumps(live.seal()))
        assert live.seal().touched is not None
        assert state.touched is None
        copied = delta_module.Held(state, 0, 0, {}, 2)
        row = state.segments[1].rows[0]._replace(id=3)
        both = delta_module.extended(copied, [row])
        assert StateMatcher(both.state).match([{"a": 2}]).to_pylist() == [[2, 3]]


def test_attributes_that_the_snapshot_learns_of_when_deltas_are_folded() -> None:
    # The second delta reads for itself until the subscription on z is gone.
    with (
        pytest.MonkeyPatch.context() as patch,
        bittern.LiveMatcher(build({1: "a = 1 AND b = 1"})) as live,
    ):
        patch.setattr(delta_module, "SMALL_DELTA", 0)
        for id_, texts in enumerate((["a = 5"] * 5, ["a = 3", "z = 1"], ["a = 4"]), start=1):
            live.subscribe_many({10 * id_ + n: text for n, text in enumerate(texts)})
            live.seal()
        live.unsubscribe(21)
        live.seal()
        held = live._held
        folded = delta_module.folded(held, 2)
        assert len(folded.state.segments) == 3
        found = StateMatcher(folded.state).match([{"a": 3}, {"a": 4}]).to_pylist()
        assert found == [[20], [30]]
