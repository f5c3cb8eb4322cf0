"""Changes of rows: which subscriptions they enter, leave and stay in, in every form of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import strategies
from answers import expected
from bittern.errors import EventError, OptionError
from bittern.history.history import History
from bittern.language.printer import print_expression

SHOP = {
    "cheap": "price < 10",
    "red": "color = 'red'",
    "none": "price IS NULL",
    "all": "TRUE",
    "both": "price >= 10 AND color = 'red'",
}
BEFORE: list[Any] = [
    {"price": 5, "color": "red"},
    {"price": 5, "color": None},
    None,
    {"price": 50, "color": "red"},
    None,
    {"price": None, "color": "tan"},
]
AFTER: list[Any] = [
    {"price": 50, "color": "red"},
    {"price": 7, "color": None},
    {"price": 1, "color": "red"},
    None,
    None,
    {"price": None, "color": "tan"},
]


def told(before: Sequence[Any], after: Sequence[Any], catalog: Any = SHOP) -> list[dict[str, Any]]:
    """What the oracle says: an event that is not there matches nothing."""
    found = []
    sides = (expected(catalog, side) for side in (before, after))
    for old, new, was, now in zip(before, after, *sides, strict=True):
        held, holds = set(was if old is not None else ()), set(now if new is not None else ())
        kinds = {"enter": holds - held, "leave": held - holds, "stay": held & holds}
        found.append({kind: sorted(ids) for kind, ids in kinds.items()})
    return found


def in_order(changes: Any) -> list[dict[str, Any]]:
    return [{k: sorted(ids) for k, ids in each.items()} for each in changes.to_pylist()]


def _struct(side: list[Any]) -> pa.Array:
    return pa.array(side, pa.struct([("price", pa.int64()), ("color", pa.string())]))


FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "mappings": list,
    "a tuple": tuple,
    "texts": lambda side: [each and json.dumps(each) for each in side],
    "an array of texts": lambda side: pa.array([each and json.dumps(each) for each in side]),
    "structs": _struct,
    "chunks": lambda side: pa.chunked_array([_struct(side[:2]), _struct(side[2:])]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("other", [None, "mappings"])
def test_every_form_of_rows(form: str, other: str | None) -> None:
    """Also where the two sides have different forms, and so are two batches."""
    sides = FORMS[form](BEFORE), FORMS[other or form](AFTER)
    matcher = bittern.Matcher(bittern.Index.build(SHOP))
    found = matcher.match_changes(*sides)
    assert in_order(found) == told(BEFORE, AFTER)
    assert len(found) == len(BEFORE)
    assert (found.rejects, found.mistyped) == ([], [])
    assert matcher.last_statistics["events"] == 8
    with bittern.LiveMatcher() as live:
        live.subscribe_many(SHOP)
        assert in_order(live.match_changes(*sides)) == told(BEFORE, AFTER)


def test_tables_have_all_rows() -> None:
    before, after = ([each or {} for each in side] for side in (BEFORE, AFTER))
    matcher = bittern.Matcher(bittern.Index.build(SHOP))
    tables = [pa.Table.from_pylist(side) for side in (before, after)]
    assert in_order(matcher.match_changes(*tables)) == told(before, after)
    batches = [table.to_batches()[0] for table in tables]
    assert in_order(matcher.match_changes(*batches)) == told(before, after)
    frames = [table.to_pandas() for table in tables]
    assert in_order(matcher.match_changes(*frames)) == told(before, after)
    other = tables[1].append_column("size", pa.array([1] * 6))  # a column that came
    assert in_order(matcher.match_changes(tables[0], other)) == told(before, after)
    texts = [pa.table({"row": [json.dumps(each) for each in side]}) for side in (before, after)]
    assert in_order(matcher.match_changes(*texts, json="row")) == told(before, after)


def test_inserts_deletes_and_single_rows() -> None:
    matcher = bittern.Matcher(bittern.Index.build(SHOP))
    row = {"price": 5, "color": "red"}
    inserted = matcher.match_changes(None, row)
    assert in_order(inserted) == told([None], [row])
    assert in_order(matcher.match_changes([row, row], None)) == told([row] * 2, [None] * 2)
    assert in_order(matcher.match_changes(row, {"price": 70})) == told([row], [{"price": 70}])
    assert in_order(matcher.match_changes([None], None)) == told([None], [None])
    assert in_order(matcher.match_changes([], [])) == []
    assert inserted.to_arrow(flat=True).to_pylist() == [
        {"event": 0, "subscription": id_, "change": "enter"} for id_ in ("cheap", "red", "all")
    ]
    assert inserted.to_arrow().to_pylist() == [
        {"event": 0, "enter": ["cheap", "red", "all"], "leave": [], "stay": []}
    ]
    assert matcher.match_changes([], None).to_arrow(flat=True).num_rows == 0


def test_rejects_and_values_of_the_wrong_kind() -> None:
    """Of a change that is read by half nothing can be said."""
    matcher = bittern.Matcher(bittern.Index.build(SHOP))
    before = ['{"price": 5}', "{", "[]", '{"price": "x"}', None]
    after = ["{", '{"price": 5}', "{", '{"price": 5}', '{"price": "y"}']
    found = matcher.match_changes(before, after)
    assert [row for row, _ in found.rejects] == [0, 1, 2]
    assert [reason.split(":")[0] for _, reason in found.rejects] == ["after", "before", "before"]
    nothing = {"enter": [], "leave": [], "stay": []}
    assert in_order(found)[:3] == [nothing] * 3
    assert in_order(found)[3:] == told([{"price": "x"}, None], [{"price": 5}, {"price": "y"}])
    sides = [(row, reason.split(":")[0]) for row, reason in found.mistyped]
    assert sides == [(3, "before"), (4, "after")]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([{}], [{}, {}], "have 1 and 2 rows"),
        (None, None, "have no rows"),
        ([{}], {1: 2}.items(), "must be Arrow tables or arrays"),
        (5, [{}], "not int"),
    ],
)
def test_sides_that_are_none(before: Any, after: Any, said: str) -> None:
    with pytest.raises(EventError, match=said):
        bittern.Matcher(bittern.Index.build(SHOP)).match_changes(before, after)


def test_more_rows_than_a_block_and_subscriptions_of_deltas() -> None:
    """Enough for several blocks; a subscription that is gone is in none of the three."""
    rng = np.random.default_rng(1)
    sides = [rng.integers(0, 20, 20_000) for _ in range(2)]
    tables = [pa.table({"price": side, "color": ["red"] * len(side)}) for side in sides]
    with bittern.LiveMatcher(bittern.Index.build(SHOP)) as live:
        live.subscribe("dear", "price > 15")
        live.unsubscribe("all")
        changes = live.match_changes(*tables)
    old, new = (side > 15 for side in sides)
    dear = changes.entered.to_arrow(flat=True).filter(
        pa.compute.equal(changes.entered.to_arrow(flat=True)["subscription"], "dear")
    )
    assert dear["event"].to_pylist() == np.flatnonzero(new & ~old).tolist()
    cheap = [side < 10 for side in sides]
    assert changes.left.counts.sum() == (
        (cheap[0] & ~cheap[1]).sum() + (~cheap[0] & cheap[1]).sum() + (old & ~new).sum()
    )
    assert changes.stayed.counts.min() == 1  # red
    assert "all" not in changes.stayed.ids(0)


def test_sets_and_a_history(tmp_path: Any) -> None:
    index = bittern.Index.build({"vip": "user IN SET vips"}, sets={"vips": [7, 9]})
    for matcher in (bittern.Matcher(index), bittern.LiveMatcher(index)):
        found = matcher.match_changes([{"user": 7}, {"user": 1}], [{"user": 9}, {"user": 7}])
        assert [each["stay"] for each in found.to_pylist()] == [["vip"], []]
        assert [each["enter"] for each in found.to_pylist()] == [[], ["vip"]]
    with (
        History(tmp_path / "history") as history,
        bittern.LiveMatcher(history=history) as live,
        pytest.raises(OptionError, match="changes are not compared with a history"),
    ):
        live.match_changes([{}], [{}])


_ROW = st.one_of(st.none(), strategies.free_events())


@given(
    st.lists(strategies.free_expressions(depth=2), min_size=1, max_size=6),
    st.lists(st.tuples(_ROW, _ROW), max_size=8),
    st.booleans(),
)
def test_random_changes_agree_with_the_oracle(
    trees: list[Any],
    rows: list[tuple[Any, Any]],
    half: bool,  # noqa: FBT001
) -> None:
    """Rows differ in some attributes or in none."""
    catalog = {at: print_expression(tree) for at, tree in enumerate(trees)}
    before = [old for old, _ in rows]
    after = [
        {**old, **dict(list(new.items())[::2])} if half and old and new else new
        for old, new in rows
    ]
    matcher = bittern.Matcher(bittern.Index.build(catalog))
    assert in_order(matcher.match_changes(before, after)) == told(before, after, catalog)
