"""Counting: the two-phase algorithm that seeds 000, 001 and 002 assume for complex predicates.

Expressions are taken in disjunctive normal form (``literature/clauses/normal.py``). Phase one finds
the satisfied predicates: every distinct interval that some clause asks for stands once in a
stabbing index. The papers keep one index per attribute; channels own disjoint ranges of cells, so
that one index over the axis of all cells is these indexes laid end to end. Phase two counts: each
interval has the list of the clauses that use it, and a clause of which as many predicates are
satisfied as it has holds::

    class 0   a <= 4 AND b = 7                  clause 0, 2 predicates
    class 1   a <= 4 AND c IS NULL OR b = 7     clause 1, 1 predicate, and clause 2, 1 predicate

    intervals    [0,4]      [7,7]     [9,9] forbids        9 is the one cell of c
    clauses      0  1       0  2      1
    classes      0  1       0  1      1

    event {4, 7}        left to satisfy   2 1 1  ->  0 0 0        classes 0 and 1
    event {4, 7, 9}                       2 1 1  ->  0 1 0        classes 0 and 1, by clause 2
    event {4, 9}                          2 1 1  ->  1 1 1        none

A predicate that is a union of intervals is satisfied through one of them at most, so each interval
counts for one. An interval that forbids a clause adds one, so that it cannot reach zero.

How events go through the lists is in ``literature/counting/match.py``. Counters are bytes: a class
with a clause of more than 255 predicates is on the ``always`` list, as is one that no predicate
can find.

Lists are ``SortedLists``: a change costs O(log n) for each predicate, however many clauses share
it. Changes go to the stabbing index one distinct interval at a time: its contract has no other way.

Cost: O(cells + satisfied predicates + clauses that use them) per event; 8 bytes per interval of
each clause, 12 per distinct interval beside the stabbing index's, 1 per clause and 8 per class.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, occupied, prefixed, starts_of, under
from bittern.errors import OptionError
from bittern.growing import GrowingColumn
from bittern.literature.counting.checking import DELETED, check_counters, check_lists
from bittern.literature.counting.clauses import Filed
from bittern.literature.counting.intervals import DistinctIntervals, ends_of, numbered
from bittern.literature.counting.match import CountingScratch, count_all
from bittern.literature.sorted_lists.lists import SortedLists
from bittern.matching.always import Always
from bittern.matching.checks import check_channels
from bittern.matching.contract import (
    NOT_THERE,
    ChangingIndex,
    Found,
    Refused,
    are_numbers,
    check_size,
)
from bittern.matching.output import Output
from bittern.matching.stabbed import Chosen, StabbedIndex
from bittern.model.classes.classes import Classes
from bittern.model.rank.encoded import EncodedEvents
from bittern.model.rank.space import RankSpace


class Counting(StabbedIndex, ChangingIndex):
    """Satisfied predicates by stabbing, then counted; see the module for the layout."""

    name: ClassVar[str] = "counting"

    def __init__(
        self,
        own: Mapping[str, npt.NDArray[Any]],
        lists: SortedLists,
        always: Always,
        chosen: Chosen,
    ) -> None:
        self._bases: Int32s = own["bases"]
        self._intervals = DistinctIntervals(own["keys"])
        self._starts, self._entries = GrowingColumn(own["starts"]), GrowingColumn(own["entries"])
        self._sizes = GrowingColumn(own["sizes"])
        self._lists = lists
        self._always = always
        self.chosen = chosen
        # One for each thread that has matched at the same time as others since the last change.
        self._scratch: deque[CountingScratch] = deque()

    @classmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],  # noqa: ARG003
        rank: RankSpace,
        *,
        stabbing: str = "cei",
        stabbing_memory: int | None = None,
    ) -> tuple[Self, Int32s]:
        """Number clauses and distinct intervals, index the intervals. O(n log n)."""
        bases = rank.arrays.bases
        filed = Filed.of(classes, bases)
        check_size("intervals of clauses", len(filed.keys))
        keys, interval_of = numbered(filed.keys, bases)
        chosen = Chosen.build(stabbing, stabbing_memory, *ends_of(keys), bases)
        lists = SortedLists.build(interval_of, filed.clause_of, filed.class_of, len(keys))
        starts = starts_of(filed.n_clauses, np.int32)
        own: dict[str, npt.NDArray[Any]] = {
            "bases": bases,
            "keys": keys,
            "starts": starts,
            "entries": filed.entries,
            "sizes": filed.sizes,
        }
        always = Always.of(classes, filed.always, filed.always)
        built = cls(own, lists, always, chosen)
        return built, np.arange(len(classes), dtype=np.int32)

    # -- matching ------------------------------------------------------------------------------

    def match(self, events: EncodedEvents) -> Found:
        """Count for all events, after looking their cells up."""
        out = Output()
        try:
            scratch = self._scratch.pop()
        except IndexError:
            scratch = CountingScratch.of(self._sizes.items, self._n_classes, self._lists.n_pairs)
        lists, keys = self._lists.searched, self._intervals.keys
        candidates = count_all(events, self.chosen.index, lists, keys, scratch, out)
        self._scratch.append(scratch)
        self._always.match(events, out)
        n = int(out.state[2])
        return Found(out.rows[:n], out.classes[:n], candidates + len(self._always.classes))

    # -- changes -------------------------------------------------------------------------------

    @property
    def _n_classes(self) -> int:
        return len(self._entries)

    def insert(self, classes: Classes) -> Int32s:
        """Add classes: O(log n) for each interval, plus the cost of the stabbing index."""
        filed = Filed.of(classes, self._bases)
        n_clauses, n = len(self._sizes), self._n_classes
        check_size("classes", n + len(classes))
        check_size("clauses", n_clauses + len(filed.sizes))
        self._lists.reserve(len(filed.keys))  # which refuses what would be too many
        self._scratch.clear()
        numbers = np.arange(n, n + len(classes), dtype=np.int32)
        intervals, added = self._intervals.add(filed.keys)
        lows, highs = ends_of(self._intervals.keys[added])
        for low, high, number in zip(lows, highs, added, strict=True):
            self.chosen.index.insert(low, high, number)
        self._lists.add_lists(len(self._intervals.keys) - self._lists.n_lists)
        clauses = filed.clause_of + np.int32(n_clauses)
        self._lists.insert(intervals, clauses, numbers[filed.class_of])
        self._starts.append(n_clauses + np.cumsum(filed.n_clauses))
        self._entries.append(filed.entries)
        self._sizes.append(filed.sizes)
        if len(filed.always):
            more = Always.of(classes, filed.always, numbers[filed.always])
            self._always = self._always.with_more(more)
        return numbers

    def delete(self, classes: Classes, numbers: Int32s) -> None:
        """Remove classes: O(log n) for each interval, plus the cost of the stabbing index."""
        try:
            filed = Filed.of(classes, self._bases)
        except Refused:
            raise OptionError(NOT_THERE) from None
        numbers = np.ascontiguousarray(numbers, np.int32)
        self._check_known(classes, numbers, filed)
        first = self._starts.items[numbers].astype(np.int64)
        before = np.cumsum(filed.n_clauses) - filed.n_clauses
        clauses = (filed.clause_of + (first - before)[filed.class_of]).astype(np.int32)
        intervals = self._intervals.find(filed.keys)
        owners = numbers[filed.class_of]
        if (intervals < 0).any() or self._lists.count_held(intervals, clauses, owners) < len(
            intervals
        ):
            raise OptionError(NOT_THERE)
        self._scratch.clear()
        self._lists.delete(intervals, clauses, owners)
        self._entries.extended(0)[numbers] = DELETED
        self._sizes.extended(0)[clauses] = 0
        self._always = self._always.without(numbers)
        self._give_up(np.unique(intervals))

    def _check_known(self, classes: Classes, numbers: Int32s, filed: Filed) -> None:
        """OptionError if these numbers are not of classes that are as large as these."""
        if numbers.shape != (len(classes),):
            raise OptionError(f"{len(classes)} classes to delete have {len(numbers)} numbers")
        if not are_numbers(numbers, len(classes), self._n_classes):
            raise OptionError(NOT_THERE)
        starts = self._starts.items
        same = (self._entries.items[numbers] == filed.entries) & (
            starts[numbers + 1] - starts[numbers] == filed.n_clauses
        )
        if not (same.all() and self._always.holds(classes, filed.always, numbers)):
            raise OptionError(NOT_THERE)

    def _give_up(self, numbers: Int32s) -> None:
        """Intervals that no clause uses any more leave the stabbing index."""
        begins, ends = self._lists.searched.begins, self._lists.searched.ends
        lengths = ends[numbers] - np.maximum(begins[numbers], 0)
        unused = numbers[lengths == 0]
        lows, highs = ends_of(self._intervals.keys[unused])
        for low, high, number in zip(lows, highs, unused, strict=True):
            self.chosen.index.delete(low, high, number)
        self._intervals.remove(unused)

    # -- keeping and looking inside ------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Own arrays, the lists', the always-candidates' and the stabbing index's."""
        lists = prefixed("lists.", self._lists.arrays())
        own: dict[str, npt.NDArray[Any]] = {
            "bases": self._bases,
            "keys": self._intervals.share(),
            "starts": self._starts.share(),
            "entries": self._entries.share(),
            "sizes": self._sizes.share(),
        }
        return own | lists | self.chosen.arrays() | self._always.arrays()

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], parameters: Mapping[str, Any]
    ) -> Self:
        """Search these arrays in place."""
        return cls(
            arrays,
            SortedLists.from_arrays(under(arrays, "lists.")),
            Always.from_arrays(arrays),
            Chosen.from_arrays(arrays, parameters),
        )

    @property
    def nbytes(self) -> int:
        """What is in use, also after changes."""
        own = self._bases, self._starts.items, self._entries.items, self._sizes.items
        parts = self._intervals, self._lists, self.chosen.index
        return occupied(own, self._always) + sum(part.nbytes for part in parts)

    def statistics(self) -> dict[str, Any]:
        """Classes, clauses, intervals, and the stabbing index's own figures."""
        entries = self._entries.items
        n_always = len(self._always.classes)
        return {
            "classes": self._n_classes,
            "deleted": int(np.count_nonzero(entries == DELETED)),
            "clauses": int(np.count_nonzero(self._sizes.items)),
            "intervals": len(self._intervals.numbers()),
            "entries": self._lists.n_pairs,
            "always": n_always,
            "never": int(np.count_nonzero(entries == 0)) - n_always,
            "stabbing": {"structure": self.chosen.index.name} | self.chosen.index.statistics(),
        }

    def check(self, n_channels: int, n_cells: int) -> None:
        """Intervals, lists, counters and the stabbing index are sound and fit together."""
        check_channels(self._bases, n_channels, n_cells)
        self._intervals.check(self._bases)
        self._lists.check()
        counters = self._starts.items, self._entries.items, self._sizes.items
        check_counters(*counters)
        check_lists(self._lists, self._intervals.keys, self._bases, *counters)
        self._always.check(self._n_classes, n_channels, n_cells)
        uncounted = self._entries.items[self._always.classes] == 0
        assert uncounted.all(), "an always-candidate is counted, or deleted"
        self.chosen.check(*self._intervals.ends(), n_cells)
