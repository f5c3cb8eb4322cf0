"""BE-Tree: what the oracle and ``scan`` find, whatever comes and goes; seed 003's example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import bittern
import strategies
from answers import build, engine, expected
from bittern.engine.expected import expected_events
from bittern.engine.subscriptions import read_subscriptions
from bittern.errors import OptionError, SubscriptionError
from bittern.language.printer import print_expression
from bittern.language.shapes import Shapes
from bittern.literature.betree import index as betree
from bittern.literature.betree.clauses import CLASS, LEAF, SIZE
from bittern.literature.betree.index import BETree
from bittern.literature.betree.nodes import (
    AREAS,
    BEGIN,
    CAPACITY,
    CHANNEL,
    END,
    FREE_NODE,
    HIGH,
    LEFT,
    LISTED,
    LOW,
    MOST_LISTED,
    N_CLAUSES,
    N_SEVERAL,
    PARENT,
    ROOT,
    USED_ITEMS,
    USED_NODES,
    USED_ROWS,
)
from bittern.matching.scan import Scan
from bittern.model.classes.compile import Compiled, compile_subscriptions
from bittern.model.events.encoder import Encoder
from bittern.model.rank import encoded as encoded_module
from bittern.model.rank.encoded import EncodedEvents
from effort import examples
from matching_cases import SHAPES, World, pairs, right_pairs, small_events
from subscription_contract import TABLE_1, part

if TYPE_CHECKING:
    from bittern.language.syntax import Expression

CAPACITIES = [1, 2, 5]


def tree_of(index: bittern.Index) -> BETree:
    assert isinstance(index.subscriptions, BETree)
    return index.subscriptions


def paths(index: bittern.Index) -> dict[int, list[tuple[str, int, int]]]:
    """(attribute, low, high) of the c-nodes that lead to each class of a single clause."""
    tree, names = tree_of(index), index.rank.attribute_names()
    out = {}
    for number, clause in enumerate(tree._firsts.items.tolist()):
        path, node = [], tree._tree.rows[clause, LEAF]
        while node != ROOT:
            channel, low, high = tree._tree.nodes[node, [CHANNEL, LOW, HIGH]].tolist()
            path.append((names[index.rank.channel_attributes[channel]], low, high))
            node = tree._tree.nodes[node, PARENT]
        out[number] = path[::-1]
    return out


# ------------------------------------------------------------------ seed 003

#: A and B are rarer in events than the others, or A, B, C and E would be equally good to cut by.
MOST_EVENTS = [{"C": n, "D": n, "E": n} for n in range(1, 13)]


def test_seed_003_figure_3() -> None:
    """The text says: p-nodes A and B; S3 below B; S5, which has neither, in another branch.

    The figure itself is lost in the scan, so that node capacity and the shape below p-nodes are
    open, and so is where the other branch is: here, at the root.
    """
    index = build(TABLE_1, sample=MOST_EVENTS, strategy="betree", parameters={"capacity": 2})
    found = paths(index)
    assert [path[0][0] if path else None for path in found.values()] == [
        *("A", "A", "B", "A", None, "B")
    ]
    assert index.statistics()["betree"]["p_nodes"] == 2
    without_a = [{"B": 3, "C": 6, "D": 12, "E": 7}]
    bittern.Matcher(index).match(without_a)
    assert index.subscriptions.match(index.encoder.encode(without_a).events).candidates == [3]


def test_seed_003_figure_3_the_smallest_interval_that_covers_b_up_to_4() -> None:
    """Below p-node B, once it overflows, S3 is in a half that ends before 6: [1, 4] and 5."""
    more = {f"T{n}": f"B <= 4 AND C = {n}" for n in range(8)}
    index = build(TABLE_1 | more, sample=MOST_EVENTS, strategy="betree", parameters={"capacity": 2})
    channel = int(np.flatnonzero(index.rank.channel_attributes == 1)[0])
    assert index.rank.attribute_names()[1] == "B"
    cells = {
        value: int(index.encoder.encode([{"B": value}]).events.cells[0]) for value in (1, 4, 5, 6)
    }
    _, low, high = [step for step in paths(index)[2] if step[0] == "B"][-1]
    assert low == index.rank.arrays.bases[channel]
    assert low <= cells[1] <= cells[4] <= high < cells[6]
    events = index.encoder.encode([{"B": 4, "C": 6}, {"B": 9, "C": 6}]).events
    looked_at = index.subscriptions.match(events).candidates
    assert looked_at[1] < looked_at[0]


@pytest.mark.parametrize("capacity", [*CAPACITIES, 6])
def test_seed_003_table_1(capacity: int) -> None:
    events = [
        {name: value for name, value in zip("ABCDE", values, strict=True) if value}
        for values in np.random.default_rng(3).integers(0, 14, (400, 5)).tolist()
    ]
    parameters = {"capacity": capacity}
    for sample in (None, MOST_EVENTS):
        found = engine(TABLE_1, events, strategy="betree", parameters=parameters, sample=sample)
        assert found == expected(TABLE_1, events)


# ------------------------------------------------------------------ against the oracle


@given(
    strategies.catalogs(strategies.free_expressions(3), max_size=14),
    strategies.batches(strategies.free_events(), max_size=8),
    st.one_of(st.none(), strategies.batches(strategies.free_events(), max_size=5)),
    st.sampled_from(CAPACITIES),
    st.booleans(),
)
def test_any_catalog(
    catalog: dict[str, Expression],
    events: list[dict[str, Any]],
    sample: list[dict[str, Any]] | None,
    capacity: int,
    sparse: bool,  # noqa: FBT001
) -> None:
    texts = {name: print_expression(tree) for name, tree in catalog.items()}
    index = bittern.Index.build(
        texts,
        sample=sample,
        strategy="betree",
        parameters={"capacity": capacity},
        on_error="skip",  # what has too many clauses
    )
    index.check()
    kept = {name: texts[name] for name in index.ids.to_pylist()}
    size = 0 if sparse else encoded_module.SMALL_MATRIX
    with mock.patch.object(encoded_module, "SMALL_MATRIX", size):
        matcher, right = bittern.Matcher(index), expected(kept, events)
        assert matcher.match(events).to_pylist() == right
        with mock.patch.object(betree, "_ROOM", 0):  # what finds no room is done again
            assert matcher.match(events).to_pylist() == right


@pytest.mark.parametrize("capacity", [*CAPACITIES, 250])
def test_shapes_of_expressions(capacity: int) -> None:
    events = small_events()
    for sample in (None, events):
        found = engine(
            SHAPES, events, strategy="betree", sample=sample, parameters={"capacity": capacity}
        )
        assert found == expected(SHAPES, events)


@pytest.mark.parametrize(
    ("n_attributes", "n_events", "per_event", "capacity"),
    [(300, 200, 20, 5), (30, 500, 25, 1), (30, 500, 25, 50), (3000, 300, 5, 2)],
)
def test_large_catalogs(n_attributes: int, n_events: int, per_event: int, capacity: int) -> None:
    world = World(n_attributes + n_events, n_attributes, n_events, per_event)
    texts, holds = zip(*(world.conjunction() for _ in range(6_000)), strict=True)
    events = world.events()
    for sample in (None, events.slice(0, 50)):
        index = build(
            zip(range(len(texts)), texts, strict=True),
            sample=sample,
            strategy="betree",
            parameters={"capacity": capacity},
        )
        assert np.array_equal(pairs(bittern.Matcher(index).match(events)), right_pairs(list(holds)))


def test_large_catalogs_of_nested_expressions() -> None:
    world = World(7, 20, 200, 12)
    texts, holds, _ = zip(*(world.nested(2) for _ in range(2000)), strict=True)
    index = build(zip(range(len(texts)), texts, strict=True), strategy="betree")
    found = bittern.Matcher(index).match(world.events())
    assert np.array_equal(pairs(found), right_pairs(list(holds)))


def test_too_many_clauses_are_refused() -> None:
    wide = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(12))
    with pytest.raises(SubscriptionError, match="clauses"):
        build({"wide": wide, "fine": "a1 = 1"}, strategy="betree")
    index = bittern.Index.build(
        {"wide": wide, "fine": "a1 = 1"}, strategy="betree", on_error="skip"
    )
    assert [bad.id for bad in index.bad] == ["wide"]
    assert bittern.Matcher(index).match([{"a1": 1}]).to_pylist() == [["fine"]]


@pytest.mark.parametrize("capacity", [0, -1, True, 2.5, "5", None])
def test_bad_capacities(capacity: Any) -> None:
    with pytest.raises(OptionError, match="capacity must be a whole number from 1 to"):
        build({"a": "a = 1"}, strategy="betree", parameters={"capacity": capacity})


# ------------------------------------------------------------------ how the tree is cut


def test_a_large_p_directory_is_looked_up_and_its_leaf_stays_small() -> None:
    n = 20 * MOST_LISTED
    catalog = {k: f"a{k} = 1 AND b{k} = 2" for k in range(n)}
    index = build(catalog, strategy="betree", sample=[{"c": 1}])
    tree = tree_of(index)
    assert tree._tree.nodes[ROOT, LISTED] < 0
    assert tree.statistics()["largest_leaf"] <= MOST_LISTED + 1
    found = bittern.Matcher(index).match([{f"a{k}": 1, f"b{k}": 2} for k in range(n)] + [{}])
    assert found.to_pylist() == [*([k] for k in range(n)), []]


def test_rare_attributes_are_preferred_among_equally_frequent_predicates() -> None:
    sample = [{"common": 1}] * 99 + [{"rare": 1}]
    both: list[tuple[str, Callable[[int], int]]] = [("common", int), ("rare", lambda k: k % 2)]
    for parts in (both, both[::-1]):
        texts = {
            k: " AND ".join(f"{name} = {value(k)}" for name, value in parts) for k in range(20)
        }
        index = build(texts, strategy="betree", sample=sample, parameters={"capacity": 2})
        assert {path[0][0] for path in paths(index).values() if path} == {"rare"}


SKEWED = {
    "one value": [f"a = 1 AND b{k} = 1" for k in range(300)],
    "one attribute, ranges over the middle": [
        f"a <= {k + 500} AND a >= {500 - k}" for k in range(400)
    ],
    "one attribute, points": [f"a = {k}" for k in range(500)],
    "one value, sets": [f"a IN (0, {k}, 999)" for k in range(1, 300)],
    "nothing but presence": [f"a{k % 40} IS NOT NULL AND b{k} IS NOT NULL" for k in range(300)],
}


@pytest.mark.parametrize("name", SKEWED)
@pytest.mark.parametrize("capacity", CAPACITIES)
def test_skewed_data(name: str, capacity: int) -> None:
    catalog = dict(enumerate(SKEWED[name]))
    events = [
        {"a": k, f"b{k % 300}": 1, f"a{k % 40}": 1} for k in (*range(12), 499, 500, 501, 999, 2000)
    ]
    index = build(catalog, strategy="betree", parameters={"capacity": capacity})
    assert bittern.Matcher(index).match(events).to_pylist() == expected(catalog, events)


def test_points_of_one_attribute_are_clustered_down_to_the_capacity() -> None:
    index = build({k: f"a = {k}" for k in range(1000)}, strategy="betree")
    statistics = index.statistics()["betree"]
    assert statistics["largest_leaf"] <= 10
    assert statistics["p_nodes"] == 1
    assert statistics["deepest"] <= 12
    candidates = index.subscriptions.match(index.encoder.encode([{"a": 77}]).events).candidates
    assert candidates[0] <= 10 * statistics["deepest"]


# ------------------------------------------------------------------ changes


def compiled(texts: Mapping[Any, str]) -> Compiled:
    shapes = Shapes()
    catalog = read_subscriptions(texts, shapes, on_error="raise", progress=None)
    return compile_subscriptions(shapes.templates, catalog.shape_ids, catalog.parameters)


def found_pairs(
    tree: BETree | Scan, events: EncodedEvents, names: npt.NDArray[np.int64]
) -> list[tuple[int, int]]:
    """Sorted (event, class) pairs, each class under its name."""
    rows, numbers, candidates = tree.match(events)
    assert len(candidates) == events.n_events
    found = list(zip(rows.tolist(), names[numbers].tolist(), strict=True))
    assert len(set(found)) == len(found), "something is reported twice"
    return sorted(found)


def world_of_changes() -> tuple[Compiled, EncodedEvents, list[tuple[int, int]]]:
    """Classes with much in common, events, and which satisfy which."""
    world = World(11, 6, 60, 4)
    texts = [world.conjunction()[0] for _ in range(120)]
    texts += [world.nested(2)[0] for _ in range(60)]
    texts += [f"a0 = 3 AND x{n} = 1" for n in range(3 * MOST_LISTED)]
    texts += ["a0 IS NULL", "a1 IS NULL AND a2 IS NULL", "a0 > 5 AND a0 < 3", "TRUE"]
    done = compiled(dict(enumerate(dict.fromkeys(texts))))
    events = Encoder(done.rank, done.patterns).encode(world.events()).events
    scan, numbers = Scan.build(done.classes, np.zeros(1), done.rank)
    return done, events, found_pairs(scan, events, numbers.astype(np.int64))


WORLD, EVENTS, TRUTH = world_of_changes()
MASS = expected_events(WORLD, None)


class History(RuleBasedStateMachine):
    """Any sequence of changes, against what ``scan`` finds for the classes that are there."""

    @initialize(data=st.data(), capacity=st.sampled_from(CAPACITIES))
    def start(self, data: st.DataObject, capacity: int) -> None:
        n = len(WORLD.classes)
        which = data.draw(st.sampled_from([0, 5, n // 2, n]))
        order = np.random.default_rng(data.draw(st.integers(0, 9))).permutation(n)
        self.names = order[:which]
        self.out = order[which:].tolist()
        self.tree, numbers = BETree.build(
            part(WORLD.classes, self.names), MASS, WORLD.rank, capacity=capacity
        )
        assert numbers.tolist() == list(range(which))
        self.live = dict(zip(self.names.tolist(), numbers.tolist(), strict=True))
        self.given: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = []

    @precondition(lambda self: self.out)
    @rule(share=st.sampled_from([0.02, 0.3, 1.0]))
    def insert(self, share: float) -> None:
        n = max(1, int(share * len(self.out)))
        new, self.out = self.out[:n], self.out[n:]
        numbers = self.tree.insert(part(WORLD.classes, new))
        assert numbers.tolist() == list(range(len(self.names), len(self.names) + n))
        self.names = np.concatenate((self.names, new)).astype(np.int64)
        self.live |= dict(zip(new, numbers.tolist(), strict=True))

    @precondition(lambda self: self.live)
    @rule(data=st.data(), share=st.sampled_from([0.02, 0.3, 1.0]))
    def delete(self, data: st.DataObject, share: float) -> None:
        order = np.random.default_rng(data.draw(st.integers(0, 9))).permutation(len(self.live))
        names = np.array(list(self.live))[order[: max(1, int(share * len(order)))]]
        numbers = np.array([self.live.pop(name) for name in names.tolist()], dtype=np.int32)
        self.tree.delete(part(WORLD.classes, names), numbers)
        self.out += names.tolist()

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def delete_what_is_not_there(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.live)))
        number = self.live[name]
        other = (name + 1) % len(WORLD.classes)
        for names, numbers in (
            ([name], [len(self.names)]),
            ([name], [-1]),
            ([name, name], [number, number]),
            ([name, other], [number, len(self.names) + 5]),
        ):
            with pytest.raises(OptionError, match="not in the index"):
                self.tree.delete(part(WORLD.classes, names), np.array(numbers, dtype=np.int32))

    @rule()
    def save_and_open(self) -> None:
        arrays = self.tree.arrays()
        for array in arrays.values():
            array.flags.writeable = False
        self.given += [(array, array.copy()) for array in arrays.values()]
        self.tree = BETree.from_arrays(arrays, self.tree.parameters)

    @rule()
    def save_and_go_on(self) -> None:
        self.given += [(array, array.copy()) for array in self.tree.arrays().values()]

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "tree"):
            return
        self.tree.check(WORLD.rank.n_channels, WORLD.rank.n_cells)
        statistics = self.tree.statistics()
        assert statistics["classes"] == len(self.names)
        found = found_pairs(self.tree, EVENTS, self.names)
        assert found == [pair for pair in TRUTH if pair[1] in self.live]
        if not self.live:
            assert statistics["c_nodes"] == 1, "empty c-nodes are left"

    def teardown(self) -> None:
        for array, before in getattr(self, "given", []):
            assert np.array_equal(array, before), "what was given away has changed"


def test_any_history() -> None:
    run_state_machine_as_test(History, settings=examples(0.5, steps=12))


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_one_by_one_is_the_same_tree_as_at_once(capacity: int) -> None:
    n = len(WORLD.classes)
    whole, _ = BETree.build(WORLD.classes, MASS, WORLD.rank, capacity=capacity)
    tree, _ = BETree.build(part(WORLD.classes, []), MASS, WORLD.rank, capacity=capacity)
    for number in range(n):
        assert tree.insert(part(WORLD.classes, [number])).tolist() == [number]
    assert tree.statistics() == whole.statistics()
    for name, array in whole.arrays().items():
        assert np.array_equal(tree.arrays()[name], array), name


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_the_tree_does_not_depend_on_where_room_ran_out(capacity: int) -> None:
    """Also not in the middle of a cut: its other clauses are moved before anything else is cut."""
    whole, _ = BETree.build(WORLD.classes, MASS, WORLD.rank, capacity=capacity)
    for room in (1, 7, 10_000):
        with mock.patch.object(betree, "_LEAST_ROOM", room):
            tree, _ = BETree.build(WORLD.classes, MASS, WORLD.rank, capacity=capacity)
            again, _ = BETree.build(part(WORLD.classes, []), MASS, WORLD.rank, capacity=capacity)
            for number in range(len(WORLD.classes)):
                again.insert(part(WORLD.classes, [number]))
        for name, array in whole.arrays().items():
            assert np.array_equal(tree.arrays()[name], array), name
            assert np.array_equal(again.arrays()[name], array), name


def test_a_class_that_has_no_normal_form_cannot_be_there() -> None:
    bomb = " AND ".join(f"(x{i} = 1 OR y{i} = 1)" for i in range(12))
    catalog = compiled({"a": "a = 1", "b": bomb})
    mass = expected_events(catalog, None)
    tree, numbers = BETree.build(part(catalog.classes, [0]), mass, catalog.rank)
    with pytest.raises(OptionError, match="delete exactly what was inserted"):
        tree.delete(part(catalog.classes, [1]), numbers)


def test_deleting_a_class_by_the_expression_of_another_changes_nothing() -> None:
    plain = {"a": "a = 1 AND b = 2", "b": "a = 1 AND b = 3", "c": "a = 1 OR b = 2"}
    for catalog in (plain, {"a": "a IS NULL", "b": "b IS NULL", "c": "a IS NULL AND b IS NULL"}):
        refuse_to_delete_others(compiled(catalog))


def refuse_to_delete_others(done: Compiled) -> None:
    tree, numbers = BETree.build(done.classes, expected_events(done, None), done.rank)
    before = {name: array.copy() for name, array in tree.arrays().items()}
    for turned in (1, 2):
        with pytest.raises(OptionError, match="not in the index"):
            tree.delete(done.classes, np.roll(numbers, turned))
    for name, array in tree.arrays().items():
        assert np.array_equal(array, before[name]), name
    tree.delete(done.classes, numbers)
    assert tree.statistics()["clauses"] == tree.statistics()["always"] == 0


def test_room_is_used_again() -> None:
    tree, numbers = BETree.build(WORLD.classes, MASS, WORLD.rank)
    half = np.arange(0, len(numbers), 2)
    sizes = []
    own = numbers[half]
    for _ in range(40):
        tree.delete(part(WORLD.classes, half), own)
        own = tree.insert(part(WORLD.classes, half))
        sizes.append(tree.nbytes - tree._firsts.items.nbytes)
    assert max(sizes) < 4 * sizes[0]
    tree.check(WORLD.rank.n_channels, WORLD.rank.n_cells)


# ------------------------------------------------------------------ snapshots, and wrong arrays


def test_save_and_map(tmp_path: Path) -> None:
    catalog = dict(enumerate(SHAPES.values()))
    events = small_events()
    index = build(catalog, strategy="betree", parameters={"capacity": 2})
    index.save(tmp_path / "tree")
    opened = bittern.Index.open(tmp_path / "tree", verify=True)
    opened.check()
    assert tree_of(opened).parameters == {"capacity": 2}
    assert opened.statistics()["betree"] == index.statistics()["betree"]
    assert bittern.Matcher(opened).match(events).to_pylist() == expected(catalog, events)


def soft_copy(tree: BETree) -> dict[str, npt.NDArray[Any]]:
    return {name: array.copy() for name, array in tree.arrays().items()}


WRONG: dict[str, tuple[str, Any, Any]] = {
    "have the wrong type": ("nodes", None, np.float64),
    "are used than there are": ("figures", USED_NODES, 10**6),
    "more items are used": ("figures", USED_ITEMS, -1),
    "more rows are used": ("figures", USED_ROWS, 10**9),
    "wrong number of clauses": ("figures", N_CLAUSES, 3),
    "wrong number of classes with several": ("figures", N_SEVERAL, 3),
    "free c-nodes are not one chain": ("figures", FREE_NODE, 10**9),
    "free areas are not chains": ("figures", AREAS + 3, 10**12),
    "clauses do not tile": ("rows", (0, SIZE), 0),
    "a clause's class is not there": ("rows", (0, CLASS), 10**9),
    "predicate's channel": ("rows", (1, 0), 10**9),
    "cells of another channel": ("rows", (1, 2), 10**9),
    "a clause is filed in no c-node": ("rows", (0, LEAF), -7),
    "the root has a channel": ("nodes", (ROOT, CHANNEL), 1),
    "a c-node's channel is not there": ("nodes", (1, CHANNEL), 10**9),
    "a c-node has no parent": ("nodes", (1, PARENT), 10**9),
    "a c-node is not below the root": ("nodes", (1, PARENT), 1),
    "a p-node does not cover its channel": ("nodes", (1, LOW), 10**9),
    "the root has a half": ("nodes", (ROOT, LEFT), 1),
    "holds less than the capacity": ("nodes", (1, CAPACITY), 0),
    "a run ends before it begins": ("nodes", (1, BEGIN), 10**9),
    "leaves its area": ("nodes", (1, END), 10**9),
    "wrong about its p-nodes": ("nodes", (1, LISTED), 10**9),
    "first clause is elsewhere": ("firsts", 0, 1),
    "neither there nor deleted": ("firsts", 0, -9),
    "not a power of two": ("slots", slice(0, -1), None),
    "one entry per p-node": ("slots", slice(None), 2**64 - 1),
    "a channel has no cell": ("bases", 1, 0),
}


@pytest.mark.parametrize("message", WRONG)
def test_check_says_what_is_wrong(message: str) -> None:
    name, where, value = WRONG[message]
    arrays = soft_copy(BETree.build(WORLD.classes, MASS, WORLD.rank, capacity=2)[0])
    if where is None:
        arrays[name] = arrays[name].astype(value)
    elif value is None:
        arrays[name] = arrays[name][where]
    else:
        arrays[name][where] = value
    tree = BETree.from_arrays(arrays, {"capacity": 2})
    with pytest.raises(AssertionError, match=message):
        tree.check(WORLD.rank.n_channels, WORLD.rank.n_cells)


def wrong_numbers(size: int) -> Iterator[int]:
    yield from (-3, -2, -1, 0, 1, size - 1, size, 2**31 - 1, -(2**31))


@examples(3)
@given(st.data())
def test_whatever_is_wrong_is_found_or_makes_no_difference(data: st.DataObject) -> None:
    tree, numbers = BETree.build(WORLD.classes, MASS, WORLD.rank, capacity=2)
    if data.draw(st.booleans()):
        tree.delete(part(WORLD.classes, numbers[::3]), numbers[::3])
        arrays = {name: array.copy() for name, array in tree._held().items()}
        arrays["firsts"] = arrays["firsts"][: len(numbers)]
    else:
        arrays = soft_copy(tree)
    right = found_pairs(tree, EVENTS, numbers.astype(np.int64))
    name = data.draw(st.sampled_from([k for k in sorted(arrays) if not k.startswith("always")]))
    flat = arrays[name].reshape(-1)
    at = data.draw(st.integers(0, len(flat) - 1))
    if flat.dtype.kind == "f":
        flat[at] = data.draw(st.sampled_from([0.0, 0.5, 1.0, -1.0, np.nan]))
    else:
        values = [n % 2**64 if flat.dtype.kind == "u" else n for n in wrong_numbers(len(flat))]
        flat[at] = data.draw(st.sampled_from([*values, int(flat[at]) ^ 1, int(flat[at]) ^ 4]))
    wrong = BETree.from_arrays(arrays, {"capacity": 2})
    try:
        wrong.check(WORLD.rank.n_channels, WORLD.rank.n_cells)
    except AssertionError:
        return
    assert found_pairs(wrong, EVENTS, numbers.astype(np.int64)) == right
