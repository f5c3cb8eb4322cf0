"""Folding deltas takes over whole columns, and gives what their living rows alone would give."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import strategies
from bittern.engine.live import delta as delta_module
from bittern.engine.live.columns import RowColumns
from bittern.engine.live.delta import Held, folded
from bittern.engine.matcher import StateMatcher
from bittern.language.printer import print_expression
from effort import examples

SUBSCRIPTIONS = st.lists(
    st.tuples(
        strategies.free_expressions().map(print_expression),
        st.none() | st.floats(0.5, 4),
        st.booleans(),
    ),
    max_size=6,
)


def deltas_of(live: bittern.LiveMatcher, deltas: list[list[Any]]) -> Held:
    """One delta for each list of (text, weight, whether it is alive)."""
    ids = iter(range(100, 1000))
    for rows in deltas:
        given = [(next(ids), text, weight, alive) for text, weight, alive in rows]
        if given:
            columns = dict(
                zip(("id", "expression", "weight", "alive"), zip(*given, strict=True), strict=True)
            )
            table = pa.table({name: list(column) for name, column in columns.items()})
            live.subscribe_many(table.drop_columns("alive"))
            live.seal()
            live.unsubscribe_many([id_ for id_, _, _, alive in given if not alive])
            live.seal()
    return live._held


@given(
    deltas=st.lists(SUBSCRIPTIONS, max_size=4),
    events=strategies.batches(strategies.free_events(), max_size=4),
)
@examples(0.5)
def test_folding(deltas: list[list[Any]], events: list[dict[str, Any]]) -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        bittern.LiveMatcher(bittern.Index.build({1: "a = 1"})) as live,
    ):
        patch.setattr(delta_module, "SMALL_DELTA", 0)
        held = deltas_of(live, deltas)
        right = StateMatcher(held.state).match(events).to_pylist()
        living = [row for delta in held.state.segments[1:] for row in delta.living()]
        for first in range(1, len(held.state.segments)):
            whole = folded(held, first)
            assert StateMatcher(whole.state).match(events).to_pylist() == right
            after = [row for delta in whole.state.segments[1:] for row in delta.living()]
            assert after == living
            for delta in whole.state.segments[first:]:
                delta.index.check()
                assert delta.index.all_ids.take(range(len(delta.index))) == list(delta.places)
                assert delta.index.texts.to_pylist() == [row.text for row in delta.rows or []]
                weights = [1.0 if row.weight is None else row.weight for row in delta.rows or []]
                if delta.index.weights is None:
                    assert set(weights) <= {1.0}
                else:
                    assert delta.index.weights.tolist() == weights


def test_a_delta_that_was_copied_without_columns_makes_them_again() -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        bittern.LiveMatcher(bittern.Index.build({1: "a = 1"})) as live,
    ):
        patch.setattr(delta_module, "SMALL_DELTA", 0)
        held = deltas_of(live, [[("a = 2", None, True)], [("a = 3 OR b = 1", 2.0, True)]])
        base, *deltas = pickle.loads(pickle.dumps(held.state.segments))
        assert all(delta.columns is not None for delta in deltas)
        one, other = (delta_module.Segment(each.index, each.alive, 0, each.rows) for each in deltas)
        state = delta_module.State.of([base, one, other])
        whole = folded(Held(state, 0, 0, {}, 3), 1)
        assert StateMatcher(whole.state).match([{"a": 3}]).to_pylist() == [[101]]


def test_rows_of_several_readers_have_one_plan_for_each_shape() -> None:
    with bittern.LiveMatcher() as live:
        rows = [live._reading.read(id_, f"a = {id_}", None) for id_ in (1, 2)]
        live._reading.forget()
        rows.append(live._reading.read(3, "a = 3", None))
        columns = RowColumns.of_rows(rows)
        assert columns.held.shape_ids.tolist() == [0, 0, 1]
        none = delta_module.ALL_ALIVE
        joined = RowColumns.joined([(columns, none), (RowColumns.of_rows(rows[:2]), none)])
        assert joined.held.shape_ids.tolist() == [0, 0, 1, 0, 0]
        assert len(joined.plans) == 2
