"""Live changes: whatever is subscribed when ``match`` is called counts, and nothing else.

A state machine keeps a dictionary beside the matcher and asks the oracle. Compaction runs in the
same process here, and stops half-way until the machine lets it go on, so that every change can
happen while it is under way; a few tests run it for real, in its own process.
"""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import bittern
from answers import build, expected
from bittern.engine.live import changes as changes_module
from bittern.engine.live import delta as delta_module
from bittern.engine.live import layers as layers_module
from bittern.engine.live.compact import Child
from bittern.errors import BitternError, OptionError, SubscriptionError, UnknownSubscriptionError
from effort import examples
from live_cases import EVENTS, HOLDS, TEXTS, HeldBack
from steady import PATIENCE

IDS: tuple[Any, ...] = (*range(4), *"0123", "", "é", -1)


@pytest.fixture
def held_back(monkeypatch: pytest.MonkeyPatch) -> HeldBack:
    held = HeldBack()
    monkeypatch.setattr(Child, "run", held.run)
    return held


@pytest.fixture
def at_once(held_back: HeldBack) -> HeldBack:
    """Compaction in this process, without a stop."""
    held_back.go_on.set()
    return held_back


class LiveMachine(RuleBasedStateMachine):
    """A live matcher and the dictionary that it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(delta_module, "SMALL_DELTA", 2)
        self.patch.setattr(delta_module, "FOLD_RATIO", 1)
        self.patch.setattr(changes_module, "SEAL_AFTER", 3)
        self.subscribed: dict[Any, tuple[str, float]] = {}
        self.compaction: threading.Thread | None = None
        self.held = HeldBack()

    @initialize(
        rows=st.lists(
            st.tuples(st.sampled_from(IDS), st.sampled_from(TEXTS)), unique_by=lambda r: repr(r[0])
        ),
        weighted=st.booleans(),
        start=st.sampled_from(["empty", "built"]),
    )
    def begin(self, rows: list[tuple[Any, str]], weighted: bool, start: str) -> None:  # noqa: FBT001
        index = None
        if start == "built":
            weights = {id_: float(n % 3) if weighted else 1.0 for n, (id_, _) in enumerate(rows)}
            index = build([(*row, weights[row[0]] if weighted else None) for row in rows])
            self.subscribed = {id_: (text, weights[id_]) for id_, text in rows}
        self.live = bittern.LiveMatcher(index)

    @rule(
        id_=st.sampled_from(IDS),
        text=st.sampled_from(TEXTS),
        weight=st.sampled_from([None, 0, 2.5]),
    )
    def subscribe(self, id_: Any, text: str, weight: float | None) -> None:
        if id_ in self.subscribed:
            with pytest.raises(SubscriptionError, match="already"):
                self.live.subscribe(id_, text, weight)
        else:
            self.live.subscribe(id_, text, weight)
            self.subscribed[id_] = (text, 1.0 if weight is None else weight)

    @rule(id_=st.sampled_from(IDS))
    def unsubscribe(self, id_: Any) -> None:
        if id_ in self.subscribed:
            self.live.unsubscribe(id_)
            del self.subscribed[id_]
        else:
            with pytest.raises(UnknownSubscriptionError):
                self.live.unsubscribe(id_)

    @rule(id_=st.sampled_from(IDS), text=st.sampled_from(TEXTS))
    def replace(self, id_: Any, text: str) -> None:
        if id_ in self.subscribed:
            self.live.replace(id_, text, 1.0)
            self.subscribed[id_] = (text, 1.0)
        else:
            with pytest.raises(UnknownSubscriptionError):
                self.live.replace(id_, text, 1.0)

    @rule(
        rows=st.lists(
            st.tuples(
                st.sampled_from(IDS), st.sampled_from((*TEXTS, "a =")), st.sampled_from([None, 2])
            ),
            max_size=7,
        )
    )
    def subscribe_many(self, rows: list[tuple[Any, str, float | None]]) -> None:
        """All, or none and a complaint about each that is bad."""
        seen: set[Any] = set()
        bad = []
        for id_, text, _ in rows:
            if text == "a =" or id_ in seen or id_ in self.subscribed:
                bad.append(id_)
            if text != "a =":
                seen.add(id_)
        if bad:
            with pytest.raises(SubscriptionError) as caught:
                self.live.subscribe_many(rows)
            assert set(map(repr, bad)) == {repr(each.id) for each in caught.value.bad}
        else:
            self.live.subscribe_many(rows)
            for id_, text, weight in rows:
                self.subscribed[id_] = (text, 1.0 if weight is None else weight)

    @rule(ids=st.lists(st.sampled_from(IDS), max_size=7))
    def unsubscribe_many(self, ids: list[Any]) -> None:
        if len(set(map(repr, ids))) < len(ids) or not all(id_ in self.subscribed for id_ in ids):
            with pytest.raises(UnknownSubscriptionError):
                self.live.unsubscribe_many(ids)
        else:
            self.live.unsubscribe_many(ids)
            for id_ in ids:
                del self.subscribed[id_]

    @rule(id_=st.sampled_from(IDS), text=st.sampled_from(["a =", "", "(", "a RLIKE '('"]))
    def fail_to_replace(self, id_: Any, text: str) -> None:
        with pytest.raises(BitternError):
            self.live.replace(id_, text)
        with pytest.raises(BitternError):
            self.live.subscribe(id_, text)

    @rule()
    def match(self) -> None:
        found = self.live.match(EVENTS).to_pylist()
        right = [
            {id_ for id_, (text, _) in self.subscribed.items() if HOLDS[text][event]}
            for event in range(len(EVENTS))
        ]
        assert [set(ids) for ids in found] == right
        assert [len(ids) for ids in found] == [len(ids) for ids in right]

    @rule(limit=st.integers(1, 4))
    def match_the_heaviest(self, limit: int) -> None:
        def rank(id_: Any) -> Any:
            return (
                -self.subscribed[id_][1],
                isinstance(id_, str),
                id_ if isinstance(id_, int) else id_.encode(),
            )

        right = [
            sorted(
                (id_ for id_, (text, _) in self.subscribed.items() if HOLDS[text][event]), key=rank
            )[:limit]
            for event in range(len(EVENTS))
        ]
        assert self.live.match(EVENTS, limit=limit).to_pylist() == right

    @precondition(lambda self: self.compaction is None)
    @rule()
    def begin_compaction(self) -> None:
        self.held = HeldBack()
        self.patch.setattr(Child, "run", self.held.run)
        self.compaction = threading.Thread(target=self.live.compact)
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

    @invariant()
    def knows_what_is_subscribed(self) -> None:
        if not hasattr(self, "live"):
            return
        assert len(self.live) == len(self.subscribed)
        for id_ in IDS:
            assert (id_ in self.live) == (id_ in self.subscribed), id_
            if id_ in self.subscribed:
                assert self.live.expression(id_) == self.subscribed[id_][0]
            else:
                with pytest.raises(UnknownSubscriptionError):
                    self.live.expression(id_)

    def teardown(self) -> None:
        if self.compaction is not None:
            self.finish_compaction()
        if hasattr(self, "live"):
            self.match()
            self.live.close()
        self.patch.undo()


TestLiveMachine = LiveMachine.TestCase
TestLiveMachine.settings = examples(0.25, steps=25)

# ------------------------------------------------------------------ one by one


def test_the_first_example() -> None:
    with bittern.LiveMatcher(build({"s1": "price < 10"})) as live:
        live.subscribe("s2", "price < 100")
        assert live.match([{"price": 5}]).to_pylist() == [["s1", "s2"]]
        live.unsubscribe("s1")
        assert live.match([{"price": 5}]).to_pylist() == [["s2"]]
        assert bittern.explain(live, {"price": 5}, "s2").matched
        with pytest.raises(UnknownSubscriptionError):
            bittern.explain(live, {"price": 5}, "s1")


def test_matches_do_not_change_afterwards() -> None:
    with bittern.LiveMatcher(build(dict.fromkeys(range(5), "a = 1"))) as live:
        before = live.match({"a": 1})
        for n in range(5):
            live.replace(n, "a = 2")
        assert live.match({"a": 1}).to_pylist() == [[]]
        assert before.to_pylist() == [[0, 1, 2, 3, 4]]
        live.subscribe("x", "a = 1")
        assert live.match({"a": 1}).to_pylist() == [["x"]]
        assert before.to_pylist() == [[0, 1, 2, 3, 4]]


def test_ids_of_two_kinds_are_two_ids() -> None:
    with bittern.LiveMatcher(build({1: "a = 1"})) as live:
        live.subscribe("1", "a = 1")
        assert live.match({"a": 1}).to_pylist() == [[1, "1"]]
        live.unsubscribe(1)
        assert live.match({"a": 1}).to_pylist() == [["1"]]
        assert "1" in live
        assert 1 not in live
        assert None not in live
        assert [1] not in live


@pytest.mark.parametrize("id_", [True, 1.0, None, [1], b"1", 2**63])
def test_what_is_no_id_is_unknown(id_: Any) -> None:
    with bittern.LiveMatcher(build({1: "a = 1"})) as live:
        live.subscribe(0, "a = 1")
        for wrong in (id_, False):
            with pytest.raises(UnknownSubscriptionError):
                live.unsubscribe(wrong)
            with pytest.raises(BitternError):
                live.replace(wrong, "a = 2")
            with pytest.raises(SubscriptionError):
                live.subscribe(wrong, "a = 2")
            assert wrong not in live
        assert live.match({"a": 1}).to_pylist() == [[1, 0]]


@pytest.mark.parametrize(
    ("expression", "weight", "position"),
    [("a = ", None, 4), ("a = 1 AND", None, 9), (5, None, 0), (None, None, 0), ("\ud800", None, 0)]
    + [("a = 1", weight, 0) for weight in (float("nan"), float("inf"), "1", True, 10**400)],
    ids=lambda value: repr(value)[:20],
)
def test_bad_subscriptions_change_nothing(expression: Any, weight: Any, position: int) -> None:
    with bittern.LiveMatcher(build({"x": "a = 1"})) as live:
        for change, id_ in ((live.subscribe, "y"), (live.replace, "x")):
            with pytest.raises(SubscriptionError) as caught:
                change(id_, expression, weight)
            [bad] = caught.value.bad
            assert (bad.id, bad.position) == (id_, position)
        assert len(live) == 1
        assert live.match({"a": 1}).to_pylist() == [["x"]]


def test_every_form_of_events_and_rejects() -> None:
    with bittern.LiveMatcher(build({"x": "a = 1"})) as live:
        live.subscribe("y", "a = 1")
        for events in (
            {"a": 1},
            [{"a": 1}],
            '{"a": 1}',
            pa.table({"a": [1]}),
            pa.array([{"a": 1}]),
        ):
            assert live.match(events).to_pylist() == [["x", "y"]]
        matches = live.match(['{"a": 1}', "[", '{"a": 1}'])
        assert matches.to_pylist() == [["x", "y"], [], ["x", "y"]]
        assert [row for row, _ in matches.rejects] == [1]
        assert live.last_statistics["events"] == 3
        assert live.last_statistics["rejects"] == 1
        assert live.match([]).to_pylist() == []
        with pytest.raises(OptionError):
            live.match([], limit=0)


def test_what_only_a_delta_cannot_read_is_rejected_as_by_one_index() -> None:
    """Only the delta asks for ``b``, in which the second event has a string that is not UTF-8."""
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.array([0, 1, 2], pa.int32()).buffers()[1], pa.py_buffer(b"x\xff")]
    )
    events, texts = pa.table({"a": [1, 1], "b": broken}), {"x": "a = 1", "y": "b = 'x'"}
    right = bittern.Matcher(build(texts)).match(events)
    with bittern.LiveMatcher(build({"x": texts["x"]})) as live:
        live.subscribe("y", texts["y"])
        found = live.match(events)
        assert found.to_pylist() == right.to_pylist() == [["x", "y"], []]
        assert found.rejects == right.rejects
        assert live.last_statistics["rejects"] == 1


def test_blocks_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    from bittern.engine import matcher

    monkeypatch.setattr(matcher, "BLOCK", 3)
    catalog = {n: f"a = {n % 3}" for n in range(6)}
    events = [{"a": n % 4} for n in range(11)]
    with bittern.LiveMatcher(build({n: catalog[n] for n in range(3)})) as live:
        for n in range(3, 6):
            live.subscribe(n, catalog[n])
        assert live.match(events).to_pylist() == expected(catalog, events)


def test_many_segments() -> None:
    """Deltas of many sizes beside each other; every hundredth subscription is taken back."""
    with bittern.LiveMatcher(build({f"base {n}": f"a = {n % 50}" for n in range(3000)})) as live:
        catalog: dict[Any, int] = {f"base {n}": n % 50 for n in range(3000)}
        for n in range(4000):
            live.subscribe(n, f"a = {n % 50} AND b = {n % 2}")
            catalog[n] = n % 50
            if n % 100 == 99:
                for gone in (n - 50, f"base {n // 2}"):
                    live.unsubscribe(gone)
                    del catalog[gone]
            if n in (1500, 1501, 2900, 3200, 3300, 3999):
                [found] = live.match({"a": 7, "b": 1}).to_pylist()
                right = [i for i, a in catalog.items() if a == 7 and (isinstance(i, str) or i % 2)]
                assert sorted(map(repr, found)) == sorted(map(repr, right))
        assert len(live) == len(catalog)


# ------------------------------------------------------------------ many at a time

MANY = {n: f"a = {n % 3}" for n in range(700)}
_TABLE = pa.table({"id": list(MANY), "expression": list(MANY.values())})


@pytest.mark.parametrize(
    "form",
    [
        *(MANY, list(MANY.items()), iter([(*row, 1) for row in MANY.items()])),
        *(_TABLE, _TABLE.to_batches()[0], _TABLE.to_pandas()),
    ],
    ids=["mapping", "pairs", "iterator", "table", "batch", "frame"],
)
@pytest.mark.parametrize("n", [7, 700])
def test_many_at_a_time_in_every_form(form: Any, n: int) -> None:
    if n < len(MANY):
        if not hasattr(form, "__len__"):
            form = list(MANY.items())
        form = dict(list(form.items())[:n]) if isinstance(form, dict) else form[:n]
    with bittern.LiveMatcher(build({"x": "a = 1"})) as live:
        live.subscribe_many(form)
        right = [id_ for id_ in range(n) if id_ % 3 == 1]
        assert live.match({"a": 1}).to_pylist() == [["x", *right]]
        live.unsubscribe_many(pa.array(right))
        live.unsubscribe_many(["x"])
        assert live.match([{"a": 1}, {"a": 2}]).to_pylist() == [[], list(range(2, n, 3))]
        assert len(live) == n - len(right)


@pytest.mark.parametrize("n", [0, 500])
def test_all_mistakes_of_many_at_once(n: int) -> None:
    good = {f"good {i}": "a = 1" for i in range(n)}
    wrong = [("x", "a = 1"), (True, "a = 1"), ("y", "a = "), ("z", "a = 1", float("nan"))]
    wrong += [("twice", "a = 2"), ("twice", "a = 3"), ("w", None)]
    with bittern.LiveMatcher(build({"x": "a = 1"})) as live:
        with pytest.raises(SubscriptionError) as caught:
            live.subscribe_many([*good.items(), *wrong])
        found = [(each.id, each.position) for each in caught.value.bad]
        assert found == [("x", 0), (True, 0), ("y", 4), ("z", 0), ("twice", 0), ("w", 0)]
        assert len(live) == 1
        live.subscribe_many(good)
        with pytest.raises(UnknownSubscriptionError, match="'nobody' and 1 more"):
            live.unsubscribe_many([*good, "nobody", None])
        with pytest.raises(UnknownSubscriptionError, match="given twice"):
            live.unsubscribe_many([*good, "x", "x"])
        assert len(live) == 1 + n
        for none in ([], {}, ()):
            live.subscribe_many(none)
            live.unsubscribe_many(none)
        for what in (5, "text", b"x", None):
            with pytest.raises(OptionError):
                live.subscribe_many(what)
            with pytest.raises(OptionError):
                live.unsubscribe_many(what)
        assert len(live.match({"a": 1}).ids(0)) == 1 + n


def test_a_set_that_is_not_there_is_a_mistake_of_many() -> None:
    rows = {n: f"a IN SET {'vips' if n % 2 else 'nobody'}" for n in range(600)}
    with bittern.LiveMatcher(sets={"vips": [7]}) as live:
        for some in (dict(list(rows.items())[:6]), rows):
            with pytest.raises(SubscriptionError) as caught:
                live.subscribe_many(some)
            assert [each.id for each in caught.value.bad] == [n for n in some if n % 2 == 0]
            assert len(live) == 0
        live.subscribe_many({n: text for n, text in rows.items() if n % 2})
        assert len(live.match({"a": 7}).ids(0)) == 300


def test_a_set_that_is_not_there_is_a_mistake_of_what_is_applied() -> None:
    with bittern.LiveMatcher(sets={"vips": [7]}) as live:
        live.subscribe("x", "a = 7")
        put = [("x", "a IN SET nobody", None), ("y", "a IN SET vips", None)]
        bad = live.apply([], put, 1)
        assert [each.id for each in bad] == ["x"]
        assert "x" not in live
        assert live.expression("y") == "a IN SET vips"


def test_writers_index_what_piles_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No match has more to seal than a few changes, and there are few deltas."""
    most = 0
    with bittern.LiveMatcher(build({"x": "a = 1"})) as live:
        for n in range(6000):
            live.subscribe(n, f"a = {n % 7}")
            if n >= 1000:
                live.unsubscribe(n - 1000)
            most = max(most, len(live._held.changes))
            assert len(live._held.state.segments) <= 10
        assert most <= changes_module.SEAL_AFTER + 1
        assert len(live) == 1001
        right = sum(n % 7 == 1 for n in range(5000, 6000))
        assert len(live.match({"a": 1}).ids(0)) == 1 + right


def test_a_change_stays_made_if_it_cannot_be_indexed_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(_: Any) -> Any:
        raise MemoryError

    with bittern.LiveMatcher(build({"x": "a = 1"})) as live:
        with monkeypatch.context() as patch:
            patch.setattr(changes_module, "sealed", no_room)
            for n in range(changes_module.SEAL_AFTER + 5):
                live.subscribe(n, "a = 2")
            with pytest.raises(MemoryError):
                live.match({"a": 2})
        assert len(live.match({"a": 2}).ids(0)) == changes_module.SEAL_AFTER + 5


# ------------------------------------------------------------------ compaction


def test_compaction_in_its_own_process(tmp_path: Path) -> None:
    catalog = {n: TEXTS[n % len(TEXTS)] for n in range(60)}
    rows = [(n, text, n % 4) for n, text in list(catalog.items())[:30]]
    with bittern.LiveMatcher(build(rows)) as live:
        for n in range(30, 60):
            live.subscribe(n, catalog[n], n % 4)
        for n in range(0, 60, 7):
            live.unsubscribe(n)
            del catalog[n]
        live.match(EVENTS)
        index = live.compact()
        index.check()
        assert len(index) == len(live) == len(catalog)
        right = expected(catalog, EVENTS)
        assert bittern.Matcher(index).match(EVENTS).to_pylist() == right
        assert live.match(EVENTS).to_pylist() == right
        ranked = bittern.Matcher(index).match(EVENTS, limit=5).to_pylist()
        assert ranked == [sorted(ids, key=lambda n: (-(n % 4), n))[:5] for ids in right]
        live.unsubscribe(1)
        live.subscribe("late", "TRUE")
        saved = live.save(tmp_path / "s")
        opened = bittern.Index.open(tmp_path / "s", verify=True)
        assert opened.id == saved
        assert bittern.Matcher(opened).match(EVENTS).to_pylist() == live.match(EVENTS).to_pylist()
        folder = live._work_folder.path
        assert folder.exists()
    assert not folder.exists()


def test_folders_that_killed_processes_left_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the age, one that somebody holds stays; so does one that was just made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program = (
        "import bittern, os, signal; live = bittern.LiveMatcher(); "
        "print(live._work_folder.path, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    left = Path(killed.stdout.strip())
    assert left.parent == tmp_path
    (left / "work").mkdir()
    (left / "work" / "base").write_text("a snapshot")
    elsewhere = tmp_path / "bittern-else"
    link = tmp_path / "bittern-live-link"
    elsewhere.mkdir()
    link.symlink_to(elsewhere)
    live = bittern.LiveMatcher()
    assert left.is_dir()
    for path in (left, live._work_folder.path, elsewhere, link):
        os.utime(path, (0, 0), follow_symlinks=False)
    with live, bittern.LiveMatcher() as other:
        assert not left.exists()
        remaining = {elsewhere, link, live._work_folder.path, other._work_folder.path}
        assert set(tmp_path.iterdir()) == remaining
    assert set(tmp_path.iterdir()) == {elsewhere, link}


def test_only_folders_of_the_same_user_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / "bittern-live-left"
    left.mkdir()
    os.utime(left, (0, 0))
    with monkeypatch.context() as another:
        another.setattr(os, "getuid", lambda: left.stat().st_uid + 1)
        bittern.LiveMatcher().close()
    assert left.is_dir()
    bittern.LiveMatcher().close()
    assert not left.exists()


def test_a_closed_matcher_holds_no_descriptor() -> None:
    live = bittern.LiveMatcher()
    held = os.open(live._work_folder.path, os.O_RDONLY)
    try:
        with pytest.raises(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        live.close()
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(held)


def test_a_snapshot_that_was_replaced_meanwhile_is_not_mistaken(
    at_once: HeldBack, tmp_path: Path
) -> None:
    build({f"x{n}": f"a = {n}" for n in range(5)}).save(tmp_path / "s")
    with bittern.LiveMatcher(bittern.Index.open(tmp_path / "s")) as live:
        build({f"y{n}": f"a = {n}" for n in range(5)}).save(tmp_path / "s")
        live.unsubscribe("x0")
        live.subscribe("new", "a = 3")
        live.compact()
        assert live.match([{"a": 0}, {"a": 3}]).to_pylist() == [[], ["x3", "new"]]


def test_a_snapshot_that_was_removed_meanwhile_is_not_needed(
    at_once: HeldBack, tmp_path: Path
) -> None:
    import shutil

    build({f"x{n}": f"a = {n}" for n in range(5)}).save(tmp_path / "s")
    with bittern.LiveMatcher(bittern.Index.open(tmp_path / "s")) as live:
        shutil.rmtree(tmp_path / "s")
        live.unsubscribe("x0")
        live.compact()
        assert live.match([{"a": 0}, {"a": 3}]).to_pylist() == [[], ["x3"]]


def test_compaction_leaves_the_index_it_was_given_as_it_was(at_once: HeldBack) -> None:
    index = build({"x": "a = 1"})
    with bittern.LiveMatcher(index) as live:
        live.subscribe("y", "a = 1")
        live.compact()
        live.unsubscribe("y")
        live.compact()
    assert (index.path, index.id) == (None, None)
    assert bittern.Matcher(index).match({"a": 1}).to_pylist() == [["x"]]


class Odd(dict[str, Any]):
    """Events that cannot be handed to another process."""

    def __reduce__(self) -> Any:
        raise TypeError("not to be pickled")


@pytest.mark.parametrize(
    "events", [5, [MappingProxyType({"a": 1})], [{"a": 1, "f": lambda: 1}], Odd(a=1), b""]
)
def test_odd_events_do_not_stand_in_the_way_of_compaction(at_once: HeldBack, events: Any) -> None:
    with bittern.LiveMatcher() as live:
        live.subscribe("x", "a = 1")
        try:
            assert live.match(events).to_pylist() == [["x"]]
        except bittern.errors.EventError:
            assert not isinstance(events, list | dict)
        assert len(live.compact()) == 1
        assert live.match({"a": 1}).to_pylist() == [["x"]]


def test_a_failed_compaction_loses_nothing(held_back: HeldBack, caplog: Any) -> None:
    held_back.go_on.set()
    held_back.returncode, held_back.stderr = 1, "Traceback\nMemoryError: no room"
    with bittern.LiveMatcher(build({"x": "a = 1"})) as live:
        live.subscribe("y", "a = 1")
        live.unsubscribe("x")
        with caplog.at_level(logging.CRITICAL), pytest.raises(BitternError, match="no room"):
            live.compact()
        assert live.match({"a": 1}).to_pylist() == [["y"]]
        held_back.returncode = 0
        live.compact()
        assert live.match({"a": 1}).to_pylist() == [["y"]]


def test_compaction_starts_by_itself(at_once: HeldBack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers_module, "COMPACT_ROWS", 10)
    with bittern.LiveMatcher() as live:
        for n in range(200):
            live.subscribe(n, f"a = {n % 5}")
        for _ in range(100):
            running = live._compacting
            if running is None:
                break
            running.join()
        assert len(live.base()[0]) > 10
        assert live.match({"a": 3}).to_pylist() == [[n for n in range(200) if n % 5 == 3]]
        assert len(live) == 200


# ------------------------------------------------------------------ threads


@pytest.fixture
def readers() -> Iterator[Any]:
    """Run functions in threads until the test is over; the first failure is raised at the end."""
    stop = threading.Event()
    failures: list[BaseException] = []
    threads: list[threading.Thread] = []

    def again_and_again(read: Any) -> None:
        try:
            while not stop.is_set():
                read()
        except BaseException as failure:  # noqa: BLE001  raised below
            failures.append(failure)

    def start(read: Any, times: int = 1) -> None:
        for _ in range(times):
            threads.append(threading.Thread(target=again_and_again, args=(read,)))
            threads[-1].start()

    yield start
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)
    if failures:
        raise failures[0]


def test_readers_see_one_state(
    readers: Any, at_once: HeldBack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Always exactly one of two expressions, and a run of numbers without a gap."""
    monkeypatch.setattr(layers_module, "COMPACT_ROWS", 150)
    with bittern.LiveMatcher(build({"x": "a = 1", **dict.fromkeys(range(50), "b = 1")})) as live:
        subscribed = [50]

        def see() -> None:
            before = subscribed[0]
            both, *others = live.match([{"a": 1, "b": 1}, {"a": 1, "b": 1}, {"b": 1}]).to_pylist()
            assert both.count("x") == 1
            assert others[0] == both
            numbers = sorted(id_ for id_ in both if id_ != "x")
            assert numbers == list(range(len(numbers)))
            assert len(numbers) >= before
            assert [id_ for id_ in others[1] if id_ != "x"] == [id_ for id_ in both if id_ != "x"]

        readers(see, 3)
        for n in range(50, 400):
            live.replace("x", "b = 1 AND a IS NOT NULL" if n % 2 else "a = 1 OR a = 7")
            live.subscribe(n, f"b = 1 OR c = {n}")
            subscribed[0] = n + 1
        assert len(live.match({"b": 1}).ids(0)) >= 400


def test_writers_do_not_lose_each_others_changes(readers: Any, at_once: HeldBack) -> None:
    with bittern.LiveMatcher() as live:
        readers(lambda: live.match({"a": 1}))

        def write(name: str) -> None:
            for n in range(150):
                live.subscribe(f"{name}{n}", "a = 1")
                if n % 3:
                    live.unsubscribe(f"{name}{n}")
                if n == 75:
                    live.compact()

        writers = [threading.Thread(target=write, args=(name,)) for name in "pqrs"]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(PATIENCE)
        right = {f"{name}{n}" for name in "pqrs" for n in range(0, 150, 3)}
        assert set(live.match({"a": 1}).ids(0)) == right
        assert len(live) == len(right)


def test_a_change_is_seen_by_the_next_match_in_any_thread() -> None:
    with bittern.LiveMatcher() as live:
        found: list[bool] = []
        for n in range(20):
            live.subscribe(n, f"a = {n}")
            reader = threading.Thread(
                target=lambda n=n: found.append(live.match({"a": n}).ids(0) == [n])
            )
            reader.start()
            reader.join(PATIENCE)
        assert found == [True] * 20


def test_shapes_of_expressions_that_are_gone_are_forgotten(monkeypatch: Any) -> None:
    monkeypatch.setattr(layers_module, "SPARE_SHAPES", 5)
    with bittern.LiveMatcher() as live:
        live.subscribe("kept", "a = 1 OR b = 2")
        for n in range(1, 40):
            live.subscribe("passing", " OR ".join(f"a = {k}" for k in range(n)))
            assert live.match([{"b": 2}]).to_pylist() == [["kept"]]
            live.unsubscribe("passing")
        assert len(live._reading.shapes.templates) <= 5 + 4 * 2 + 1
        assert live.match([{"a": 1}]).to_pylist() == [["kept"]]
