"""The clock of the PB+tree benchmarks.

Everybody who holds the same predicates is measured in turns, pass by pass: a machine that others
use is faster in one minute than in the next, and what is compared is measured at the same time::

    pass 1   PB+tree | SQLite | LMDB | ...      a pass: as many values as fit into ``seconds``
    pass 2   PB+tree | SQLite | LMDB | ...      a time: the median of the passes, per value
"""

from __future__ import annotations

import gc
import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.draw import Floats
from benchmarks.pb_tree import workloads
from benchmarks.pb_tree.peers import Given, Peer, offsets_of
from benchmarks.pb_tree.truth import Truth
from benchmarks.pb_tree.workloads import Predicates
from bittern.errors import OptionError

PASSES = 3
#: Ids that a batch may find at most.
BATCH_IDS = 4_000_000
#: Values that a pass has at least.
FEWEST = 5
#: Values that are looked at when nothing is timed.
SOME = 200
#: Changes between two looks at the clock.
LOOKED = 20


@dataclass(frozen=True)
class Scale:
    """How much of everything."""

    thresholds: tuple[int, ...]
    wide: tuple[int, ...]
    in_memory: int  # structures in memory, up to this n
    slow_search: int  # those whose search visits everything
    values: int
    seconds: float  # that a pass of single searches, or a round of changes, should take
    changes: int  # predicates that are inserted and deleted again, in each round
    commits: int  # of one predicate each
    growth: tuple[int, ...]
    growth_changes: int  # fewer: whoever numbers constants numbers those to come as well
    growth_limits: dict[str, int]
    update_sizes: tuple[int, ...]
    update_n: int
    cached: tuple[int, ...]
    cache_shares: tuple[float, ...]
    cold_values: int


class Setting:
    """What every part gets: the scale, and a folder for each set of predicates."""

    def __init__(self, scale: Scale, folder: Path) -> None:
        self.scale, self._folder = scale, folder

    def folder(self, *names: object) -> Path:
        """A folder of this name, made when it is first asked for."""
        path = self._folder / "-".join(map(str, names))
        path.mkdir(exist_ok=True)
        return path


class Held:
    """Predicates of a family, what is asked of them, and the truth."""

    def __init__(self, family: str, n: int, scale: Scale) -> None:
        self.family, self.n = family, n
        self.predicates = workloads.predicates(family, n)
        self.later = workloads.predicates(family, n, PASSES * scale.changes)
        some_old = np.linspace(0, n - 1, min(n, PASSES * scale.changes)).astype(np.int64)
        self.old = self.predicates.taken(np.random.default_rng(n).permutation(some_old))
        self.truth = Truth(self.predicates)
        some = workloads.values(family, n, scale.values)
        counts, _ = self.truth.expected(some)
        fitting = int(np.searchsorted(np.cumsum(counts), BATCH_IDS))
        self.values = some[: max(FEWEST, fitting)]
        self.ids_per_value = float(counts[: len(self.values)].mean())

    def judge(self, peer: Peer, values: Floats, *, also: Predicates | None = None) -> None:
        """Raise unless a peer finds what holds; ``also`` was inserted since."""
        truth = self.truth if also is None else Truth(also, self.truth)
        truth.judge(peer.name, values, *peer.search_batch(values))

    def judge_singles(self, peer: Peer, values: Floats) -> None:
        """The same for values that are searched one by one."""
        found = [peer.search(value) for value in values.tolist()]
        self.truth.judge(
            peer.name, values, offsets_of([len(ids) for ids in found]), np.concatenate(found)
        )


@contextmanager
def holders(kinds: Sequence[type[Peer]], held: Held, folder: Path) -> Iterator[dict[str, Any]]:
    """All who can hold the predicates, by name, with what building took; or why they cannot."""
    found: dict[str, Any] = {}
    try:
        for kind in kinds:
            try:
                begin = perf_counter()
                peer = kind(Given(held.predicates, held.later, folder))
                seconds = perf_counter() - begin
            except OptionError as refusal:
                found[kind.name] = {"refused": str(refusal)}
                continue
            told = {"build_seconds": seconds, "bytes": peer.nbytes}
            found[kind.name] = {"peer": peer, "told": told}
            held.judge(peer, held.values[:SOME])
        yield found
    finally:
        for one in found.values():
            if "peer" in one:
                one["peer"].close()
        shutil.rmtree(folder, ignore_errors=True)


def clock(work: Callable[[], Any]) -> float:
    """Seconds of one call, in which no garbage is collected; nor before: there are many calls."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        begin = perf_counter()
        work()
        return perf_counter() - begin
    finally:
        if was_on:
            gc.enable()


def search_in_turns(found: dict[str, Any], held: Held, seconds: float) -> None:
    """Microseconds per value, one by one and in one batch, of everybody; ids verified before."""
    works: list[Work] = []
    for one in found.values():
        if "peer" not in one:
            continue
        peer, told = one["peer"], one["told"]
        singles = _fitting(partial(_each_of, peer), held.values, seconds)
        batch = _fitting(peer.search_batch, held.values, seconds)
        held.judge_singles(peer, singles)
        held.judge(peer, batch)
        told["singles"], told["batch"] = len(singles), len(batch)
        works.append(Work(told, "single_us", len(singles), partial(_each, peer, singles.tolist())))
        works.append(Work(told, "batch_us", len(batch), partial(peer.search_batch, batch)))
    passes = [[clock(work.call) for work in works] for _ in range(PASSES)]
    for work, took in zip(works, zip(*passes, strict=True), strict=True):
        work.told[work.key] = statistics.median(took) / work.values * 1e6


class Work(NamedTuple):
    """A pass over so many values, and where its time goes."""

    told: dict[str, Any]
    key: str
    values: int
    call: Callable[[], Any]


def _each(peer: Peer, values: list[float]) -> None:
    search = peer.search
    for value in values:
        search(value)


def _each_of(peer: Peer, values: Floats) -> None:
    _each(peer, values.tolist())


def _fitting(search: Callable[[Floats], Any], values: Floats, seconds: float) -> Floats:
    """As many values as take so long; the first ones load what they need."""
    n = FEWEST
    for _ in range(2):
        took = clock(partial(search, values[:n]))
        n = max(FEWEST, min(len(values), int(seconds / took * n)))
    return values[:n]


def change(peer: Peer, held: Held, scale: Scale) -> dict[str, Any]:
    """Insert and delete again, round by round, one by one and together; and what a commit costs.

    What is deleted is what came last, and, in turn, what was there from the beginning.

    A round ends when its time is up, so that what takes milliseconds has fewer changes.
    """
    took: dict[str, list[float]] = {}
    some = held.values[:SOME]
    done = 0
    for number in range(PASSES):
        rows = held.later.rows(number * scale.changes, (number + 1) * scale.changes)
        triples = rows.triples()
        done = _until(peer.insert, triples, scale.seconds, took.setdefault("insert_us", []))
        _commit(peer, done, took, "insert_committed_us")
        if number == 0:
            held.judge(peer, some, also=rows.rows(0, done))
        _until(peer.delete, triples[:done], None, took.setdefault("delete_us", []))
        _commit(peer, done, took, "delete_committed_us")
        old = held.old.rows(number * scale.changes, (number + 1) * scale.changes).triples()
        if old:
            gone = _until(peer.delete, old, scale.seconds, took.setdefault("delete_old_us", []))
            for one in old[:gone]:
                peer.insert(*one)
            peer.commit()
        if number == 0:
            held.judge(peer, some)
    told = {key: statistics.median(each) for key, each in took.items()}
    told["changes"] = done
    if peer.on_disk:
        told |= _together(peer, held, scale) | _singly(peer, held, scale)
        held.judge(peer, some)
    return told


def _until(
    work: Callable[..., None],
    triples: Sequence[tuple[int, float, int]],
    seconds: float | None,
    took: list[float],
) -> int:
    """How many were done before the time was up; microseconds of each go to ``took``."""
    done = 0

    def some() -> None:
        nonlocal done
        begin = perf_counter()
        for start in range(0, len(triples), LOOKED):
            for one in triples[start : start + LOOKED]:
                work(*one)
            done = min(start + LOOKED, len(triples))
            if seconds is not None and perf_counter() - begin > seconds:
                break

    spent = clock(some)
    took.append(spent / done * 1e6)
    return done


def _commit(peer: Peer, n: int, took: dict[str, list[float]], key: str) -> None:
    """The commit of all changes of a round is shared by them."""
    seconds = clock(peer.commit)
    calls = took[key.replace("_committed", "")][-1]
    took.setdefault(key, []).append(calls + seconds / n * 1e6)


def _together(peer: Peer, held: Held, scale: Scale) -> dict[str, float]:
    """Microseconds for each of many that are changed by one call and one commit."""
    rows = held.later.rows(0, scale.changes)
    told = {}
    for key, work in (
        ("insert_many_us", peer.insert_many),
        ("delete_many_us", peer.delete_many),
    ):

        def both(work: Callable[[Predicates], None] = work) -> None:
            work(rows)
            peer.commit()

        told[key] = clock(both) / len(rows) * 1e6
    return told


def _singly(peer: Peer, held: Held, scale: Scale) -> dict[str, float]:
    """Milliseconds of an insertion that is committed by itself."""
    triples = held.later.rows(0, scale.commits).triples()
    took = []
    for one in triples:

        def alone(one: tuple[int, float, int] = one) -> None:
            peer.insert(*one)
            peer.commit()

        took.append(clock(alone))
    for one in triples:
        peer.delete(*one)
    peer.commit()
    return {"alone_ms": statistics.median(took) * 1e3}
