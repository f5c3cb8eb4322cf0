"""Hard cases for the strategies: refusals, sizes, damage, and pivots as they are chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import bittern
from bittern.arrays import under
from bittern.engine.expected import expected_events
from bittern.errors import OptionError
from bittern.literature.betree.index import BETree
from bittern.literature.counting.index import Counting
from bittern.literature.opindex.index import OpIndex, OpIndexBS
from bittern.matching.contract import ChangingIndex, Refused
from bittern.matching.registry import STRATEGIES, strategy
from bittern.service import cli
from bittern.stabbing.registry import build_named
from subscription_contract import (
    TABLE_1,
    compiled,
    encoded,
    expected_pairs,
    held,
    pairs,
    part,
    truth,
)

if TYPE_CHECKING:
    from pathlib import Path


def pivots(index: bittern.Index) -> dict[str, list[str | int]]:
    """Of each pivot attribute the subscriptions under it, where every class has one of them."""
    attributes = [index.rank.attribute_names()[a] for a in index.rank.channel_attributes]
    ids = index.ids.to_pylist()
    assert isinstance(index.subscriptions, OpIndex | OpIndexBS)
    lists = index.subscriptions.pivot_lists()
    return {attributes[channel]: [ids[c] for c in own] for channel, own in lists.items()}


def any_of(attribute: str, n: int, predicate: str) -> str:
    return "(" + " OR ".join(f"{attribute}{i} {predicate}" for i in range(n)) + ")"


# ------------------------------------------------------------------ looking inside


@pytest.mark.parametrize(
    "strategy", ["betree", "counting", "hem", "kindex", "opindex", "opindex-bs", "rein", "tama"]
)
def test_every_strategy_is_inspected(strategy: str, tmp_path: Path) -> None:
    bittern.Index.build({"s": "a = 1 AND b = 2"}, strategy=strategy).save(tmp_path / "index")
    assert cli.main(["inspect", str(tmp_path / "index"), "--check"]) == 0


# ------------------------------------------------------------------ what check must not accept


def test_counting_with_a_stabbing_index_of_other_intervals() -> None:
    """A list that an event goes through twice leaves the room for notes: n_pairs places."""
    catalog = {"s": "a = 1 AND b = 2", "t": "a = 1 AND c = 3"}
    index = bittern.Index.build(catalog, strategy="counting")
    counting, n_cells = index.subscriptions, index.rank.n_cells
    arrays = counting.arrays()
    lows = np.zeros(len(arrays["keys"]), np.int32)
    wide = build_named("cei", lows, lows + n_cells - 1, n_cells, None)
    assert under(arrays, "stabbing.").keys() == wide.arrays().keys()
    wrong = arrays | {f"stabbing.{name}": array for name, array in wide.arrays().items()}
    other = Counting.from_arrays(wrong, counting.parameters)
    with pytest.raises(AssertionError):
        other.check(index.rank.n_channels, n_cells)


@pytest.mark.parametrize(("classes", "numbers"), [([1], [1, 2]), ([1, 2], [1]), ([], [2])])
def test_betree_deletes_as_many_classes_as_numbers(classes: list[int], numbers: list[int]) -> None:
    catalog = compiled(["a = 1 AND b = 2", "a = 2", "b = 1 AND b = 3"])  # the last never holds
    tree, _ = BETree.build(catalog.classes, expected_events(catalog, None), catalog.rank)
    with pytest.raises(OptionError):
        tree.delete(part(catalog.classes, classes), np.array(numbers, np.int32))


# ------------------------------------------------------------------ what is not there

CHANGING = [name for name in sorted(STRATEGIES) if issubclass(strategy(name), ChangingIndex)]


@pytest.mark.parametrize("name", CHANGING)
def test_what_is_not_there_is_not_deleted(name: str) -> None:
    """One wrong class or number among those to delete, and the index is as it was."""
    held_texts = ["a = 1 AND b = 2", "a = 2", "a = 1 OR b = 2", "b IS NULL", "b = 1 AND b = 3"]
    too_large = " AND ".join(any_of(f"x{i}_", 6, "= 1 AND y = 2") for i in range(6))
    catalog = compiled([*held_texts, "a = 1 AND c = 3", too_large])
    inside, other, refused = range(5), 5, 6
    assert catalog.class_of.tolist() == [*inside, other, refused]
    events = encoded(catalog, [{"a": a, "b": b, "c": 3} for a in (1, 2, 3) for b in (None, 1, 2)])
    right = truth(catalog, events)
    index, live = held(strategy(name), catalog, inside)
    assert isinstance(index, ChangingIndex)
    numbers = [number for number, _ in sorted(live.items(), key=lambda item: item[1])]
    with pytest.raises(Refused):
        index.insert(part(catalog.classes, [refused]))

    def refuse(which: list[int], under_numbers: list[int]) -> None:
        with pytest.raises(OptionError):
            index.delete(part(catalog.classes, which), np.array(under_numbers, np.int32))
        index.check(catalog.rank.n_channels, catalog.rank.n_cells)
        assert pairs(index, events) == expected_pairs(right, live)

    for c in inside:
        own = numbers[c]
        for wrong in {*numbers, len(numbers), 1 << 30, -1, -(1 << 31)} - {own}:
            refuse([c], [wrong])
        refuse([c, c], [own, own])
        refuse([other], [own])
        refuse([refused], [own])
        refuse([c, refused], [own, numbers[c - 1]])
        refuse([c], [own, numbers[c - 1]])
        refuse([c, c - 1], [own])
        refuse([], [own])
    for c in inside:
        index.delete(part(catalog.classes, [c]), np.array([numbers[c]], np.int32))
        del live[numbers[c]]
        for gone in inside[: c + 1]:
            refuse([gone], [numbers[gone]])
            refuse([gone, *inside[c + 1 :]], [numbers[gone], *numbers[c + 1 :]])


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize("strategy", ["opindex", "opindex-bs"])
def test_all_that_is_refused_is_left_out(strategy: str) -> None:
    either = [any_of(f"x{i}_", 6, "= 1").replace("= 1", "= 1 AND y = 2") for i in range(6)]
    catalog = {
        "many clauses": " AND ".join(either),
        "many bits": " AND ".join(any_of(f"w{i}_", 7, "BETWEEN 1 AND 3") for i in range(4)),
        "fine": "a = 1",
    }
    index = bittern.Index.build(catalog, strategy=strategy, on_error="skip")
    assert [each.id for each in index.bad] == ["many clauses", "many bits"]
    assert index.ids.to_pylist() == ["fine"]


def test_compaction_of_more_than_a_k_index_holds() -> None:
    """Each range is fine by itself, but not all of them; then compaction takes pivot."""
    index = bittern.Index.build({"s": "a = 1"}, strategy="kindex")
    with bittern.LiveMatcher(index) as live:
        for i in range(2_200):
            live.subscribe(f"t{i}", f"a BETWEEN {i} AND {1_000_000 + i}")
        assert live.compact().subscriptions.name == "pivot"


@pytest.mark.parametrize(
    "given", [{"strategy": ["opindex"]}, {"parameters": "segments=4"}, {"stabbing": ["cei"]}]
)
def test_options_that_are_none(given: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        bittern.Index.build({"s": "a = 1"}, **given)


# ------------------------------------------------------------------ memory


def test_one_expression_in_conjunctive_form_takes_bounded_memory() -> None:
    """1,000 predicates, each under 500 pivots; as conjunctions they would be 250,000."""
    text = f"{any_of('a', 500, '= 1')} AND {any_of('b', 500, '= 1')}"
    catalog = {"s": text, "fine": "a0 = 1 AND b0 = 1"}
    index = bittern.Index.build(catalog, strategy="opindex", on_error="skip")
    [refused] = index.bad
    assert refused.id == "s"
    assert "more than 1,024 clauses" in refused.message
    assert index.subscriptions.statistics()["entries"] == 2


def test_segments_that_no_attribute_falls_into_take_no_memory() -> None:
    parameters = {"segments": 65_536}
    index = bittern.Index.build({"s": "a = 1"}, strategy="opindex", parameters=parameters)
    assert index.subscriptions.nbytes < 10_000
    assert index.subscriptions.parameters["segments"] == 65_536


# ------------------------------------------------------------------ pivots from subscriptions


@pytest.mark.parametrize("strategy", ["opindex", "opindex-bs"])
def test_seed_003_figure_4_as_it_is_built(strategy: str) -> None:
    """B, C and E are equally frequent, and C = 6 asks for the least of its attribute."""
    index = bittern.Index.build(TABLE_1, strategy=strategy)
    assert pivots(index) == {"A": ["S1", "S2", "S4"], "C": ["S3"], "D": ["S5", "S6"]}


def test_attributes_are_as_frequent_as_the_subscriptions_that_have_them() -> None:
    """Seed 003, 4.1: a is in 52 of them and b in 51, so b is the pivot of what has both."""
    catalog: dict[int | str, str] = {i: f"a = {i} AND b = {i}" for i in range(50)}
    catalog |= {50: "a = 50", 51: "a = 51"}
    values = ", ".join(map(str, range(1_000)))
    index = bittern.Index.build(catalog | {52: f"b IN ({values}) AND c = 1"}, strategy="opindex")
    assert pivots(index)["b"] == list(range(50))
