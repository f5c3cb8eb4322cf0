"""Whoever holds predicates and finds those that a value satisfies; ours are here.

    PB+tree            ``PredicateFile``, the index on disk, its cache larger than itself
    PB+tree, memory    the same pages and kernels without a file
    Grouped Filter     two ordered trees and two hash tables
    red-black          one ordered tree with a list for each operator in every node
    Intervals          ``bittern.Intervals``, the structure under the engine's ranges: a predicate
                       is an interval of floats, ``!=`` two

and beside them, for growth only, structures over cells: the constants, and the gaps between them,
are numbered, those of predicates to come included, and a predicate is one or two intervals of such
numbers. Floats are turned into whole numbers, in their order, inside of what is timed.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from benchmarks.draw import Floats, Ints
from benchmarks.pb_tree.workloads import Predicates, ordered_keys
from bittern.arrays import Int32s, occupied
from bittern.literature.predicates.contract import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    GREATER,
    LESS,
    UNEQUAL,
    PredicateIndex,
)

_ENDS = np.iinfo(np.int64)


class Given(NamedTuple):
    """What a peer gets."""

    predicates: Predicates
    later: Predicates
    """What will be inserted: whoever numbers constants has to number these as well."""
    folder: Path


class Peer(ABC):
    """Someone who holds predicates."""

    name: ClassVar[str]
    on_disk: ClassVar[bool] = False

    @abstractmethod
    def __init__(self, given: Given) -> None:
        """Take the predicates."""

    @abstractmethod
    def search(self, value: float) -> Int32s:
        """Find the ids of the predicates that one value satisfies."""

    @abstractmethod
    def search_batch(self, values: Floats) -> tuple[Ints, Int32s]:
        """Find those of several values, as offsets and one array."""

    @abstractmethod
    def insert(self, operator: int, constant: float, sid: int) -> None:
        """Add a predicate."""

    @abstractmethod
    def delete(self, operator: int, constant: float, sid: int) -> None:
        """Take one out that is there."""

    def insert_many(self, predicates: Predicates) -> None:
        """Add several, in the way that suits it best."""
        for one in predicates.triples():
            self.insert(*one)

    def delete_many(self, predicates: Predicates) -> None:
        """Take several out."""
        for one in predicates.triples():
            self.delete(*one)

    def commit(self) -> None:  # noqa: B027
        """Make changes last; in memory there is nothing to do."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """What it occupies, on disk or in memory."""

    def close(self) -> None:  # noqa: B027
        """Let go of files."""


def offsets_of(counts: Sequence[int] | Ints) -> Ints:
    """Where the ids of each value begin, and the end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


class Intervals(Peer):
    """Intervals of floats in memory."""

    name = "Intervals"

    def __init__(self, given: Given) -> None:
        import bittern

        lows, highs, sids = as_intervals(given.predicates)
        self._index = bittern.Intervals.build(lows, highs, sids, structure="auto")

    def search(self, value: float) -> Int32s:  # noqa: D102
        return self._index.stab(value)

    def search_batch(self, values: Floats) -> tuple[Ints, Int32s]:  # noqa: D102
        return self._index.stab_batch(values)

    def insert(self, operator: int, constant: float, sid: int) -> None:  # noqa: D102
        for low, high in _spans(operator, constant):
            self._index.insert(low, high, sid)

    def delete(self, operator: int, constant: float, sid: int) -> None:  # noqa: D102
        for low, high in _spans(operator, constant):
            self._index.delete(low, high, sid)

    @property
    def nbytes(self) -> int:  # noqa: D102
        return self._index.nbytes


_INF = float("inf")


def _spans(operator: int, constant: float) -> tuple[tuple[float, float], ...]:
    """The closed intervals of one predicate: beside a float there is a next one."""
    below, above = (float(np.nextafter(constant, end)) for end in (-_INF, _INF))
    spans: dict[int, tuple[tuple[float, float], ...]] = {
        EQUAL: ((constant, constant),),
        UNEQUAL: ((-_INF, below), (above, _INF)),
        LESS: ((-_INF, below),),
        AT_MOST: ((-_INF, constant),),
        GREATER: ((above, _INF),),
        AT_LEAST: ((constant, _INF),),
    }
    return spans[operator]


def as_intervals(predicates: Predicates) -> tuple[Floats, Floats, Int32s]:
    """All predicates as closed intervals; an infinite end is none."""
    operators, constants, sids = predicates
    below, above = (np.nextafter(constants, end) for end in (-_INF, _INF))
    lows = np.full(len(sids), -_INF)
    highs = np.full(len(sids), _INF)
    for operator, low, high in (
        (EQUAL, constants, constants),
        (UNEQUAL, None, below),
        (LESS, None, below),
        (AT_MOST, None, constants),
        (GREATER, above, None),
        (AT_LEAST, constants, None),
    ):
        of = operators == operator
        if low is not None:
            lows[of] = low[of]
        if high is not None:
            highs[of] = high[of]
    twice = operators == UNEQUAL
    return (
        np.concatenate([lows, above[twice]]),
        np.concatenate([highs, np.full(int(twice.sum()), _INF)]),
        np.concatenate([sids, sids[twice]]),
    )


class Cells(Peer):
    """A stabbing index over numbered constants and gaps: 2 i + 1 is the i-th constant."""

    structure: ClassVar[str]

    def __init__(self, given: Given) -> None:
        from bittern.stabbing.registry import structure

        self._cuts = np.unique(np.concatenate([given.predicates.constants, given.later.constants]))
        lows, highs, sids = as_intervals(given.predicates)
        self._domain = 2 * len(self._cuts) + 1
        self._index = structure(self.structure).build(
            np.where(lows == -_INF, 0, self._numbers(lows)),
            np.where(highs == _INF, self._domain - 1, self._numbers(highs)),
            sids,
            domain=self._domain,
        )

    def _numbers(self, floats: Floats) -> Int32s:
        left = np.searchsorted(self._cuts, floats, "left")
        right = np.searchsorted(self._cuts, floats, "right")
        return (left + right).astype(np.int32)

    def search(self, value: float) -> Int32s:  # noqa: D102
        cuts = self._cuts
        return self._index.stab(
            int(np.searchsorted(cuts, value, "left") + np.searchsorted(cuts, value, "right"))
        )

    def search_batch(self, values: Floats) -> tuple[Ints, Int32s]:  # noqa: D102
        return self._index.stab_batch(self._numbers(values))

    def insert(self, operator: int, constant: float, sid: int) -> None:  # noqa: D102
        for low, high in self._cells(operator, constant):
            self._index.insert(low, high, sid)

    def delete(self, operator: int, constant: float, sid: int) -> None:  # noqa: D102
        for low, high in self._cells(operator, constant):
            self._index.delete(low, high, sid)

    def _cells(self, operator: int, constant: float) -> tuple[tuple[int, int], ...]:
        cell, last = 2 * int(np.searchsorted(self._cuts, constant)) + 1, self._domain - 1
        cells: dict[int, tuple[tuple[int, int], ...]] = {
            EQUAL: ((cell, cell),),
            UNEQUAL: ((0, cell - 1), (cell + 1, last)),
            LESS: ((0, cell - 1),),
            AT_MOST: ((0, cell),),
            GREATER: ((cell + 1, last),),
            AT_LEAST: ((cell, last),),
        }
        return cells[operator]

    @property
    def nbytes(self) -> int:  # noqa: D102
        return self._index.nbytes


class ISList(Cells):
    """The interval skip list: the IBS-tree's idea on skip lists."""

    name = "IS-list"
    structure = "is-list"


class Dlist(Cells):
    """For every cell all ids: what a Time Index keeps at every indexing point."""

    name = "Dlist"
    structure = "dlist"


class IntervalTree(Cells):
    """Every interval at one node only."""

    name = "interval tree"
    structure = "interval-tree"


class PredicatesInMemory(Peer):
    """A predicate index over whole numbers."""

    index: PredicateIndex

    def __init__(self, given: Given) -> None:
        operators, constants, sids = given.predicates
        self.index = self._class().build(operators, ordered_keys(constants), sids)
        self._key, self._first, self._last, self._count, self._zero = np.zeros((5, 1), np.int64)
        self._first[0], self._last[0] = _ENDS.min, _ENDS.max

    @classmethod
    @abstractmethod
    def _class(cls) -> type[PredicateIndex]:
        """Which one."""

    def search(self, value: float) -> Int32s:  # noqa: D102
        self._key[0] = _key_of(value)
        self.index.count(self._key, self._first, self._last, self._count)
        sids = np.empty(self._count[0], np.int32)
        self.index.fill(self._key, self._first, self._last, self._zero, sids)
        return sids

    def search_batch(self, values: Floats) -> tuple[Ints, Int32s]:  # noqa: D102
        order = np.argsort(values)
        keys = ordered_keys(values)[order]
        firsts, lasts = np.full_like(keys, _ENDS.min), np.full_like(keys, _ENDS.max)
        counts, sorted_counts = np.empty((2, len(keys)), np.int64)
        self.index.count(keys, firsts, lasts, sorted_counts)
        counts[order] = sorted_counts
        offsets = offsets_of(counts)
        sids = np.empty(offsets[-1], np.int32)
        self.index.fill(keys, firsts, lasts, offsets[order], sids)
        return offsets, sids

    def insert(self, operator: int, constant: float, sid: int) -> None:  # noqa: D102
        self.index.insert(operator, _key_of(constant), sid)

    def delete(self, operator: int, constant: float, sid: int) -> None:  # noqa: D102
        assert self.index.delete(operator, _key_of(constant), sid)

    @property
    def nbytes(self) -> int:  # noqa: D102
        return occupied(self.index)


def _key_of(constant: float) -> int:
    (bits,) = struct.unpack("<q", struct.pack("<d", constant))
    return int(bits if bits >= 0 else bits ^ (2**63 - 1))


class PBInMemory(PredicatesInMemory):
    """The pages of a PB+tree, without a file."""

    name = "PB+tree, memory"

    @classmethod
    def _class(cls) -> type[PredicateIndex]:
        from bittern.literature.pb_tree.index import PBPredicates

        return PBPredicates


class GroupedFilter(PredicatesInMemory):
    """Two ordered trees and two hash tables."""

    name = "Grouped Filter"

    @classmethod
    def _class(cls) -> type[PredicateIndex]:
        from bittern.literature.predicates.grouped_filter import GroupedPredicates

        return GroupedPredicates


class RedBlack(PredicatesInMemory):
    """One ordered tree, searched whole."""

    name = "red-black"

    @classmethod
    def _class(cls) -> type[PredicateIndex]:
        from bittern.literature.predicates.red_black import RedBlackPredicates

        return RedBlackPredicates
