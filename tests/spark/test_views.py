"""Layers that take changes version by version, and views of them in other processes.

A state machine applies changes to layers, a dictionary beside them, and asks the oracle: of the
layers, and of a view of them that went through a pickle. Compaction stops half-way until the
machine lets it go on, so that versions pass while it is under way.
"""

from __future__ import annotations

import math
import pickle
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from effort import examples

pytest.importorskip("pyspark")

import bittern
from answers import build, expected
from bittern.engine.live import delta as delta_module
from bittern.engine.live import layers as layers_module
from bittern.engine.live.compact import Child
from bittern.engine.live.layers import Layers
from bittern.engine.matcher import StateMatcher
from bittern.engine.subscriptions import read_subscriptions
from bittern.errors import SnapshotError
from bittern.language.shapes import Shapes
from bittern.spark.catalogs import views
from bittern.spark.catalogs.views import Carried, View, view_of
from bittern.spark.operator import Operator
from bittern.spark.snapshots import store as stores
from bittern.spark.snapshots.node_cache import SnapshotRef
from live_cases import EVENTS, HOLDS, TEXTS, HeldBack
from steady import PATIENCE
from stream_parts import forget, matches

IDS = ("0", "1", "2", "10", "", "é", "a b", "s" * 40)
BAD_TEXTS = ("a =", "", "(", "a RLIKE '('")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store, beside an empty cache."""
    monkeypatch.setenv("BITTERN_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    yield tmp_path / "store"
    forget()


def text_index(subscriptions: dict[str, str]) -> bittern.Index:
    """A base as the builder makes it, whose ids are text even if there are none."""
    shapes = Shapes()
    read = read_subscriptions(subscriptions, shapes, on_error="raise", progress=None)
    return bittern.Index.of_subscriptions(read, shapes.templates, text_ids=True)


def view(layers: Layers, store: Path, **options: Any) -> View:
    """A view as a worker gets it: through a pickle, in a process that has seen nothing."""
    made = view_of(
        layers.seal(), layers.version, lambda index: stores.write(index, str(store)), **options
    )
    sent = pickle.dumps(made)
    forget()
    taken = pickle.loads(sent)
    assert isinstance(taken, View)
    assert (taken.id, taken.version) == (made.id, layers.version)
    return taken


# ------------------------------------------------------------------ versions


class ApplyMachine(RuleBasedStateMachine):
    """Layers, and the dictionary that each version should be."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(delta_module, "SMALL_DELTA", 2)
        self.patch.setattr(delta_module, "FOLD_RATIO", 1)
        self.folder = tempfile.TemporaryDirectory(prefix="bittern-views-")
        self.patch.setenv("BITTERN_CACHE_DIR", f"{self.folder.name}/cache")
        forget()
        self.subscribed: dict[str, tuple[str, float]] = {}
        self.compaction: threading.Thread | None = None
        self.began: tuple[int, dict[str, tuple[str, float]]] = (0, {})
        self.held = HeldBack()

    @initialize(texts=st.dictionaries(st.sampled_from(IDS), st.sampled_from(TEXTS), max_size=6))
    def begin(self, texts: dict[str, str]) -> None:
        self.layers = Layers(text_index(texts), 7)
        self.subscribed = {id_: (text, 1.0) for id_, text in texts.items()}
        self.began = (7, self.subscribed.copy())

    @rule(
        removed=st.lists(st.sampled_from(IDS), max_size=4),
        put=st.lists(
            st.tuples(
                st.sampled_from(IDS),
                st.sampled_from(TEXTS + BAD_TEXTS),
                st.sampled_from([None, 0.0, 2.5, float("nan")]),
            ),
            max_size=5,
        ),
        step=st.integers(0, 3),
    )
    def apply(
        self, removed: list[str], put: list[tuple[str, str, float | None]], step: int
    ) -> None:
        version = self.layers.version + step
        bad = self.layers.apply(iter(removed), iter(put), version)
        for id_ in removed:
            self.subscribed.pop(id_, None)
        wrong = []
        for id_, text, weight in put:
            self.subscribed.pop(id_, None)
            if text in BAD_TEXTS or (weight is not None and math.isnan(weight)):
                wrong.append(id_)
            else:
                self.subscribed[id_] = (text, 1.0 if weight is None else weight)
        assert [each.id for each in bad] == wrong
        assert all(each.message for each in bad)
        assert self.layers.version == version

    @rule(published=st.booleans())
    def match(self, published: bool) -> None:  # noqa: FBT001
        right = [
            sorted(id_ for id_, (text, _) in self.subscribed.items() if HOLDS[text][event])
            for event in range(len(EVENTS))
        ]
        assert matches(StateMatcher(self.layers.seal())) == right
        found = view(self.layers, Path(self.folder.name) / "store", carry=not published)
        assert matches(found.matcher()) == right
        assert not found.matcher().match(EVENTS).all_ids.is_int64

    @rule(limit=st.integers(1, 4))
    def match_the_heaviest(self, limit: int) -> None:
        def rank(id_: str) -> tuple[float, bytes]:
            return -self.subscribed[id_][1], id_.encode()

        right = [
            sorted(
                (id_ for id_, (text, _) in self.subscribed.items() if HOLDS[text][event]), key=rank
            )[:limit]
            for event in range(len(EVENTS))
        ]
        found = view(self.layers, Path(self.folder.name) / "store").matcher()
        assert found.match(EVENTS, limit=limit).to_pylist() == right

    @precondition(lambda self: self.compaction is None)
    @rule()
    def begin_compaction(self) -> None:
        self.held = HeldBack()
        self.patch.setattr(Child, "run", self.held.run)
        self.began = (self.layers.version, self.subscribed.copy())
        self.compaction = threading.Thread(target=self.layers.compact)
        self.compaction.start()
        assert self.held.started.wait(PATIENCE)

    @precondition(lambda self: self.compaction is not None)
    @rule()
    def finish_compaction(self) -> None:
        assert self.compaction is not None
        self.held.go_on.set()
        self.compaction.join(PATIENCE)
        assert not self.compaction.is_alive()
        self.compaction = None
        self.base_is_of_its_version()

    def base_is_of_its_version(self) -> None:
        """Whoever opens the base alone has the version that it is said to be of."""
        index, version = self.layers.base()
        began, subscribed = self.began
        assert (version, self.layers.base_version) == (began, began)
        texts = dict(zip(index.ids.to_pylist(), index.texts.to_pylist(), strict=True))
        assert texts == {id_: text for id_, (text, _) in subscribed.items()}

    @invariant()
    def knows_what_is_subscribed(self) -> None:
        if hasattr(self, "layers"):
            assert len(self.layers) == len(self.subscribed)
            assert {id_ for id_ in IDS if id_ in self.layers} == set(self.subscribed)

    def teardown(self) -> None:
        if self.compaction is not None:
            self.finish_compaction()
        if hasattr(self, "layers"):
            self.match(published=True)
            self.layers.close()
        self.patch.undo()
        forget()
        self.folder.cleanup()


TestApplyMachine = ApplyMachine.TestCase
TestApplyMachine.settings = examples(0.25, steps=20)


def test_ids_of_both_kinds_are_applied() -> None:
    with Layers(build({1: "a = 1", "1": "a = 1"})) as layers:
        layers.apply([1], [("x", "a = 1", None), (2, "a = 1", None)], 1)
        assert StateMatcher(layers.seal()).match({"a": 1}).to_pylist() == [["1", "x", 2]]
        layers.apply(["1", 2], [(1, "a = 1", None)], 2)
        assert StateMatcher(layers.seal()).match({"a": 1}).to_pylist() == [["x", 1]]


@pytest.mark.parametrize("id_", [True, 1.0, None, b"1", 2**63, "\ud800"])
def test_what_is_no_id_is_bad(id_: Any) -> None:
    with Layers(build({"x": "a = 1"})) as layers:
        [bad] = layers.apply([id_], [(id_, "a = 1", None), ("y", "a = 1", None)], 1)
        assert bad.id is id_
        assert StateMatcher(layers.seal()).match({"a": 1}).to_pylist() == [["x", "y"]]


def test_a_state_that_somebody_has_does_not_change() -> None:
    with Layers(build({"x": "a = 1", "y": "a = 1"})) as layers:
        before = StateMatcher(layers.seal())
        layers.apply(["x"], [("y", "a = 2", None), ("z", "a = 1", None)], 1)
        between = StateMatcher(layers.seal())
        layers.apply(["z"], [], 2)
        assert before.match({"a": 1}).to_pylist() == [["x", "y"]]
        assert between.match({"a": 1}).to_pylist() == [["z"]]
        assert StateMatcher(layers.seal()).match({"a": 1}).to_pylist() == [[]]


def test_many_changes_begin_a_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins when all of a version's changes are in, so that its base has all of them."""
    held = HeldBack()
    monkeypatch.setattr(Child, "run", held.run)
    monkeypatch.setattr(layers_module, "COMPACT_ROWS", 4)
    with Layers(text_index({"x": "a = 1"}), 3) as layers:
        layers.apply([], [(str(n), "a = 1", None) for n in range(4)], 4)
        assert not held.started.is_set()
        layers.apply(["x"], [(str(n), "a = 2", None) for n in range(3, 9)], 5)
        assert held.started.wait(PATIENCE)
        layers.apply(["0"], [], 6)
        assert layers.base_version == 3
        held.go_on.set()
        running = layers._compacting
        if running is not None:
            running.join(PATIENCE)
        index, version = layers.base()
        assert (version, layers.version) == (5, 6)
        assert sorted(index.ids.to_pylist()) == [str(n) for n in range(9)]
        assert matches(StateMatcher(layers.seal()), [{"a": 1}]) == [["1", "2"]]


# ------------------------------------------------------------------ an index in parts


@pytest.mark.parametrize(
    "subscriptions",
    [
        {},
        dict(enumerate(TEXTS)),
        {f"s{n}": text for n, text in enumerate(TEXTS)},
        {(n if n % 2 else f"s{n}"): text for n, text in enumerate(TEXTS)},
        [(n, text, n % 3) for n, text in enumerate(TEXTS)],
    ],
    ids=["nothing", "integers", "text", "both", "weights"],
)
def test_an_index_goes_through_its_parts(subscriptions: Any) -> None:
    index = build(subscriptions)
    again = bittern.Index.of_parts(*pickle.loads(pickle.dumps(index.parts())))
    again.check()
    for limit in (None, 2):
        right = bittern.Matcher(index).match(EVENTS, limit=limit).to_pylist()
        assert bittern.Matcher(again).match(EVENTS, limit=limit).to_pylist() == right
    everything = np.arange(len(index))
    assert again.all_ids.take(everything) == index.all_ids.take(everything)
    assert again.texts.equals(index.texts)
    assert again.statistics()["predicates"] == index.statistics()["predicates"]


# ------------------------------------------------------------------ views


def test_a_view_matches_as_a_live_matcher_does(store: Path) -> None:
    texts = {f"s{n}": text for n, text in enumerate(TEXTS)}
    with bittern.LiveMatcher(text_index(texts)) as live:
        live.unsubscribe("s0")
        live.replace("s3", "b LIKE 'xx%'")
        live.match(EVENTS)
        live.subscribe("new", "a > 0")
        live.replace("s4", "TRUE")
        live.unsubscribe("new")
        live.subscribe("new", "a < 3 AND b = 'x'")
        del texts["s0"]
        texts |= {"s3": "b LIKE 'xx%'", "s4": "TRUE", "new": "a < 3 AND b = 'x'"}
        found = view(live, store)
        assert isinstance(found.layers[0].index, SnapshotRef)
        assert found.layers[0].dead
        assert all(isinstance(layer.index, Carried) for layer in found.layers[1:])
        right = [sorted(ids) for ids in expected(texts, EVENTS)]
        assert matches(found.matcher()) == matches(live) == right
        rejects = found.matcher().match(['{"a": 1}', "[", '{"a": "?"}'])
        assert [row for row, _ in rejects.rejects] == [1]
        assert rejects.mistyped == live.match(['{"a": 1}', "[", '{"a": "?"}']).mistyped


def test_an_empty_catalog_matches_nothing_by_text(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever made it empty, the type of what tasks yield is the same."""
    at_once = HeldBack()
    at_once.go_on.set()
    monkeypatch.setattr(Child, "run", at_once.run)
    batch = pa.record_batch({"id": [1, 2], "a": [1, 5]})
    with Layers(text_index({})) as empty, Layers(text_index({"x": "a = 1"})) as emptied:
        emptied.apply(["x"], [], 1)
        views_of = [view(empty, store), view(emptied, store)]
        emptied.compact()
        views_of.append(view(emptied, store))
        emptied.apply([], [("y", "a = 5", None)], 2)
        views_of.append(view(emptied, store))
        emptied.apply(["y"], [], 3)
        views_of.append(view(emptied, store))
    right: list[list[list[str]]] = [[[], []], [[], []], [[], []], [[], ["y"]], [[], []]]
    for found, wanted in zip(views_of, right, strict=True):
        [out] = Operator(found, ("id",))(iter([batch]))
        assert out.schema.field("subscriptions").type == pa.list_(pa.string())
        assert out.column("subscriptions").to_pylist() == wanted


def test_small_deltas_are_carried_and_large_ones_published(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []

    def send(index: bittern.Index) -> SnapshotRef:
        sent.append(len(index))
        return stores.write(index, str(store))

    with Layers(text_index({"x": "a = 1", "y": "a = 2"})) as layers:
        layers.apply(["y"], [("z", "a = 1", None)], 1)
        carried = view_of(layers.seal(), 1, send)
        assert view_of(layers.seal(), 1, send) == carried
        assert sent == [2]
        assert isinstance(carried.layers[1].index, Carried)
        stored = view_of(layers.seal(), 1, send, carry=False)
        assert sent == [2, 1]
        assert isinstance(stored.layers[1].index, SnapshotRef)
        assert view_of(layers.seal(), 1, send) == stored  # it is there already
        assert sent == [2, 1]
        layers.apply([], [("w", "a = 1", None)], 2)
        monkeypatch.setattr(views, "CARRIED", 100)
        large = view_of(layers.seal(), 2, send)
        assert sent == [2, 1, 2]
        assert all(isinstance(layer.index, SnapshotRef) for layer in large.layers)
        forget()
        for found, right in ((carried, ["x", "z"]), (stored, ["x", "z"]), (large, ["w", "x", "z"])):
            assert matches(found.matcher(), [{"a": 1}, {"a": 2}]) == [right, []]


def test_views_of_one_content_are_one(store: Path) -> None:
    with Layers(text_index({"x": "a = 1", "y": "a = 1"})) as layers:
        first = view(layers, store)
        layers.apply([], [], 9)
        second = view(layers, store)
        layers.apply(["x"], [], 10)
        third = view(layers, store)
    assert first.id == second.id != third.id
    assert first.state() is second.state() is not third.state()


def test_a_process_keeps_few_views(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_KEPT_DELTAS", 3)
    monkeypatch.setattr(views, "_KEPT_VIEWS", 2)
    with Layers(text_index({"x": "a = 1"})) as layers:
        made = []
        for n in range(6):
            layers.apply([], [(f"n{n}", "a = 1", None)], n + 1)
            made.append(view(layers, store))
        forget()
        for found in made:
            found.matcher()
            assert len(views._states) <= 2
            assert len(views._indexes) <= 3
        kept = made[-1].state()
        made[-2].matcher()
        assert made[-1].state() is kept
        for n, found in enumerate(made):  # and one that was dropped is made again
            assert len(found.matcher().match({"a": 1}).to_pylist()[0]) == n + 2


def test_threads_share_what_a_process_has(store: Path) -> None:
    with Layers(text_index({"x": "a = 1"})) as layers:
        layers.apply([], [("y", "a = 1", None)], 1)
        found = view(layers, store)
    meet, seen = threading.Barrier(8), []

    def open_it() -> None:
        meet.wait(PATIENCE)
        seen.append(found.state())

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(seen) == 8
    assert len(set(map(id, seen))) == 1


def test_a_base_that_is_gone_is_told(store: Path) -> None:
    with Layers(text_index({"x": "a = 1"})) as layers:
        made = view_of(layers.seal(), 1, lambda index: stores.write(index, str(store)))
    stores.remove(str(store), made.layers[0].index.id)
    forget()
    with pytest.raises(SnapshotError, match="cannot get snapshot"):
        made.matcher()
