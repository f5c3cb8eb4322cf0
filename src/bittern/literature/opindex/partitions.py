"""The parts of an OpIndex and how they change together: what both kinds of it share.

::

    space       channels, their frequencies and prefixes     (``space``)
    directory   which list a pivot has for an operator       (``directory``)
    lists       basic predicates, sorted                     (``sorted_lists``)
    counters    what each filing needs, pivot by pivot       (``counters``)
    held        of each class its list entries, or DELETED
    always      classes that no index can look up            (``always``)

Inserting and deleting are O(log n) for each basic predicate. Deleting leaves bits of signatures set
and holes among the counters; when these are most of them, everything is written anew. What is
deleted is exactly what was inserted, or nothing is: ``held`` tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, occupied, prefixed, under
from bittern.errors import OptionError
from bittern.growing import GrowingColumn
from bittern.jit import read_only
from bittern.literature.opindex.checking import check_entries
from bittern.literature.opindex.counters import Counters
from bittern.literature.opindex.directory import PivotDirectory
from bittern.literature.opindex.entries import (
    ListEntries,
    check_slots,
    entries_of,
    pivot_lists,
    predicate_lists,
    values_of,
)
from bittern.literature.opindex.filing import Filings, file_classes
from bittern.literature.opindex.match import OpIndexScratch, Searched, match
from bittern.literature.opindex.operators import OPERATORS
from bittern.literature.opindex.space import Space
from bittern.literature.sorted_lists.lists import SortedLists
from bittern.matching.always import Always
from bittern.matching.contract import (
    NOT_THERE,
    ChangingIndex,
    Found,
    Refused,
    are_numbers,
    check_size,
)
from bittern.matching.output import Output
from bittern.model.classes.classes import Classes
from bittern.model.rank.encoded import EncodedEvents, event_entries
from bittern.model.rank.space import RankSpace

#: What a class that was taken out has in place of the number of its entries.
DELETED = -1
#: Matches of an event that there is room for at first.
_ROOM = 8
#: Holes among the counters that are never worth writing everything anew.
_FEW_HOLES = 64


class _Parts(NamedTuple):
    """What an index consists of."""

    space: Space
    directory: PivotDirectory
    lists: SortedLists
    counters: Counters
    held: Int32s
    n_several: int  # classes with several filings, which are found several times
    always: Always


class Partitioned(ChangingIndex):
    """Classes by pivot and operator; see the module for its parts."""

    def __init__(self, parts: _Parts) -> None:
        self._space = parts.space
        self._bases = read_only(parts.space.bases)
        self._directory = parts.directory
        self._lists = parts.lists
        self._counters = parts.counters
        self._held = GrowingColumn(parts.held)
        self._n_several = parts.n_several
        self._always = parts.always
        #: The most prefixes that a string can have, once it was asked for.
        self._depth: int | None = None

    @classmethod
    def _build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],
        rank: RankSpace,
        segments: int,
        n_bits: int,
    ) -> tuple[Self, Int32s]:
        space = Space.of(rank, mass)
        filings, always = file_classes(classes, space)
        directory = PivotDirectory.empty(rank.n_channels, segments, n_bits)
        directory.add(filings)
        pivots, lists = directory.look_up(filings)
        order = np.argsort(filings.owners, kind="stable")
        slots = np.empty(len(order), dtype=np.int32)
        counters, slots[order] = Counters.build(
            pivots[order], filings.owners[order], filings.needs[order], directory.n_pivots
        )
        check_slots(counters.longest, filings.bits)
        values = values_of(np.repeat(slots, filings.sizes), filings.bits)
        directory.sign(lists, filings.operators, filings.channels, filings.keys)
        parts = _Parts(
            space,
            directory,
            SortedLists.build(lists, filings.keys, values, directory.n_lists),
            counters,
            filings.entry_counts(len(classes)),
            filings.n_several(),
            Always.of(classes, always, always),
        )
        return cls(parts), np.arange(len(classes), dtype=np.int32)

    def match(self, events: EncodedEvents) -> Found:
        """Algorithm 2; candidates are the filings that an event touched.

        A class counts once for each of its clauses, or of its pivots, that was touched.
        """
        longest = self._counters.longest
        index, entries = self._searched(), event_entries(events, self._bases)
        scratch = OpIndexScratch(
            np.zeros(longest + 1, dtype=np.int64),
            np.empty(longest + 1, dtype=np.int32),
            np.zeros(len(self._held) if self._n_several else 0, dtype=np.int32),
        )
        candidates = np.full(events.n_events, len(self._always.classes), dtype=np.int64)
        out = Output()
        while out.state[0] < events.n_events:
            out.make_room(2 * longest + _ROOM * events.n_events)
            match(index, entries, scratch, candidates, out.arrays)
        self._always.match(events, out)
        n = int(out.state[2])
        return Found(out.rows[:n], out.classes[:n], candidates)

    def _searched(self) -> Searched:
        """What there is to search now."""
        if self._depth is None:
            self._depth = self._space.trie.depth
        return Searched(
            self._lists.searched,
            self._counters.searched,
            self._directory.searched,
            self._space.trie.searched,
            self._bases,
            self._depth,
            self._directory.n_segments,
            self._directory.n_bits,
        )

    def insert(self, classes: Classes) -> Int32s:
        """File more classes. O(log n) for each basic predicate."""
        filings, always = file_classes(classes, self._space)
        n = len(self._held)
        check_size("classes", n + len(classes))
        check_slots(self._counters.longest + len(filings.owners), filings.bits)
        self._lists.reserve(len(filings.keys))
        self._directory.add(filings)
        # From here on nothing fails half way.
        if self._directory.n_lists > self._lists.n_lists:
            self._lists.add_lists(self._directory.n_lists - self._lists.n_lists)
        if self._directory.n_pivots > self._counters.n_pivots:
            self._counters.add_pivots(self._directory.n_pivots - self._counters.n_pivots)
        numbers = np.arange(n, n + len(classes), dtype=np.int32)
        order = np.argsort(filings.owners, kind="stable")
        pivots, lists = self._directory.look_up(filings)
        slots = np.empty(len(order), dtype=np.int32)
        slots[order] = self._counters.append(
            pivots[order], numbers[filings.owners[order]], filings.needs[order]
        )
        self._lists.insert(
            lists, filings.keys, values_of(np.repeat(slots, filings.sizes), filings.bits)
        )
        self._directory.sign(lists, filings.operators, filings.channels, filings.keys)
        self._held.append(filings.entry_counts(len(classes)))
        self._n_several += filings.n_several()
        if len(always):
            self._always = self._always.with_more(Always.of(classes, always, numbers[always]))
        return numbers

    def delete(self, classes: Classes, numbers: npt.NDArray[np.int32]) -> None:
        """Take classes out. O(log n) for each basic predicate, amortised."""
        try:
            filings, always = file_classes(classes, self._space)
        except Refused:
            raise OptionError(NOT_THERE) from None
        self._check_there(classes, filings, always, numbers)
        pivots, lists = self._directory.look_up(filings)
        slots = self._counters.find(pivots, numbers[filings.owners], filings.needs)
        if (slots < 0).any() or (lists < 0).any():
            raise OptionError(NOT_THERE)
        values = values_of(np.repeat(slots, filings.sizes), filings.bits)
        if self._lists.count_held(lists, filings.keys, values) < len(lists):
            raise OptionError(NOT_THERE)
        self._lists.delete(lists, filings.keys, values)
        self._counters.clear(pivots, slots)
        self._held.extended(0)[numbers] = DELETED
        self._n_several -= filings.n_several()
        if len(always):
            self._always = self._always.without(numbers[always])
        if self._counters.n_holes > self._counters.n_counters + _FEW_HOLES:
            self._write_anew()

    def _check_there(
        self, classes: Classes, filings: Filings, always: Int32s, numbers: Int32s
    ) -> None:
        """OptionError unless these are as many classes that are there, with as many entries."""
        n = len(classes)
        if not (
            are_numbers(numbers, n, len(self._held))
            and np.array_equal(self._held.items[numbers], filings.entry_counts(n))
            and self._always.holds(classes, always, numbers)
        ):
            raise OptionError(NOT_THERE)

    def _write_anew(self) -> None:
        """Without holes, all lists packed and signatures clean. O(everything)."""
        entries = self._entries()
        counters, starts, new_slots = self._counters.without_holes()
        slots = new_slots[starts[entries.pivots] + entries.slots]
        packed = self._lists.arrays()
        # Slots keep their order, so that lists stay sorted.
        values = values_of(slots, entries.bits)
        lists = SortedLists(packed["offsets"], packed["keys"], values)
        directory = self._directory.unsigned()
        directory.sign(entries.lists, entries.operators, entries.channels, entries.keys)
        self._directory, self._lists, self._counters = directory, lists, counters

    def _entries(self) -> ListEntries:
        return entries_of(self._lists, self._directory, self._space)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, packed."""
        if not (self._lists.packed and self._counters.packed):
            self._write_anew()
        out: dict[str, npt.NDArray[Any]] = {
            "held": self._held.share(),
            "several": np.array([self._n_several], dtype=np.int64),
        }
        for name, part in (
            ("space", self._space),
            ("directory", self._directory),
            ("lists", self._lists),
            ("counters", self._counters),
        ):
            out |= prefixed(f"{name}.", part.arrays())
        return out | self._always.arrays()

    @classmethod
    def _from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], segments: int, n_bits: int
    ) -> Self:
        return cls(
            _Parts(
                Space.from_arrays(under(arrays, "space.")),
                PivotDirectory.from_arrays(under(arrays, "directory."), segments, n_bits),
                SortedLists.from_arrays(under(arrays, "lists.")),
                Counters.from_arrays(under(arrays, "counters.")),
                arrays["held"],
                int(arrays["several"][0]),
                Always.from_arrays(arrays),
            )
        )

    @property
    def nbytes(self) -> int:
        """What is in use."""
        own = occupied(self._space, self._directory, self._held.items, self._always)
        return own + self._lists.nbytes + self._counters.nbytes

    def pivot_lists(self) -> dict[int, list[int]]:
        """Level one (Figure 4): of each pivot channel the classes that are filed under it."""
        return pivot_lists(self._counters, self._directory)

    def predicate_lists(self) -> dict[tuple[int, str, int], list[tuple[int, int, int]]]:
        """Level two (Figure 5): of each (pivot channel, operator, segment) its rows in order.

        A row is (channel, operand, class); the operand is a cell, or a node of the trie.
        """
        return predicate_lists(self._entries(), self._counters, self._directory)

    def statistics(self) -> dict[str, Any]:
        """Counts; "predicates_per_segment" is over all segments of the lists that exist."""
        by_operator = np.bincount(self._entries().operators, minlength=len(OPERATORS))
        signatures = self._directory.searched.signatures
        n_set = int(np.bitwise_count(signatures).sum())
        return {
            "classes": len(self._held),
            "deleted": int(np.count_nonzero(self._held.items == DELETED)),
            "clauses": self._counters.n_counters,
            "pivots": len(np.unique(self._counters.live()[1])),
            "lists": self._directory.n_lists // self._directory.n_segments,
            "entries": self._lists.n_pairs,
            "entries_by_operator": {
                name: n for name, n in zip(OPERATORS, by_operator.tolist(), strict=True) if n
            },
            "predicates_per_segment": self._lists.n_pairs / max(1, self._directory.n_lists),
            "signature_fill": n_set / max(1, len(signatures) * self._directory.n_bits),
            "trie_nodes": len(self._space.trie),
            "always": len(self._always.classes),
        }

    def check(self, n_channels: int, n_cells: int) -> None:
        """Every part is sound, and entries, counters and classes fit together."""
        self._space.check(n_channels, n_cells)
        self._always.check(len(self._held), n_channels, n_cells)
        self._directory.check(n_channels, self._lists.n_lists)
        self._lists.check()
        assert self._counters.n_pivots == self._directory.n_pivots, "a pivot has no counters"
        self._counters.check(len(self._held))
        held = self._held.items
        check_entries(self._entries(), self._counters, self._directory, self._space, held)
        several = self._counters.n_several()
        assert several == self._n_several, "classes with several filings are counted wrong"
        assert not held[self._always.classes].any(), "an always-candidate is filed as well"
