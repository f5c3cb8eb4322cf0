"""The k-index of Whang et al., which seed 003 compares itself with (section 3, figure 2).

Conjunctions are partitioned by size, attribute and value. Only equalities can be looked up so, and
a range is rewritten into one for each whole number that it covers. For ``A = 2``,
``A = 2 AND B = 3`` and ``A <= 3 AND C = 6`` (items 0, 1 and 2) and the domain 1 to 4::

    value    (A, 1)   (A, 2)         (A, 3)   (B, 3)   (C, 6)
    size 1            0
    size 2   2        1 2            2        1        2

An event of two values cannot satisfy a conjunction of size 3, so that larger sizes are left out;
for the others its values' lists are joined (``literature/kindex/match.py``). What is posted where
is in ``literature/kindex/postings.py``, ranges are in ``literature/kindex/values.py``. One array of
sorted lists (``literature/sorted_lists/lists.py``) holds them all::

    list 0                  the Z-list: conjunctions of size 0, that only forbid something
    first[cell]             the lists of the cell's first value, one for each code that occurs,
                            then those of its next value ...; -1 where nothing is posted
    codes                   size << 1, or 1 more for lists of conjunctive forms

so that all sizes of a value lie side by side. A code or a cell that occurs for the first time gets
its lists when it does. Classes that may hold where something is missing, but are not conjunctions,
are run for each event (``matching/always.py``).

Memory: 8 bytes per posting and 4 per list, and there is a posting for each whole number that a
range covers: that is the price of this index, and why it grows with the space of values. A range
also has one for each two constants in it without a whole number between them, where fractions fall:
where all whole numbers are constants, that makes twice as many.

Cost of an event: for each size up to its own, joining the lists of its values
(``literature/kindex/match.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import occupied, prefixed, under
from bittern.errors import OptionError
from bittern.jit import frozen, read_only
from bittern.literature.kindex.checking import check_postings
from bittern.literature.kindex.directory import CellDirectory, Triple, Z
from bittern.literature.kindex.items import Items
from bittern.literature.kindex.match import KIndexScratch, SearchArrays, match_events
from bittern.literature.kindex.postings import Rewritten, rewrite
from bittern.literature.kindex.values import CellValues, Domain, checked_domain
from bittern.literature.sorted_lists.lists import MAX_PAIRS, SortedLists
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

#: What an index may occupy. Ranges are multiplied before they are filled in, so it is known before.
MOST_BYTES = 8 << 30
#: Matches to make room for at first.
_ROOM = 1 << 12


class KIndex(ChangingIndex):
    """Lists of conjunctions by size, attribute and value; see the module for the layout."""

    name: ClassVar[str] = "kindex"

    def __init__(
        self,
        domain: Domain | None,
        values: CellValues,
        directory: CellDirectory,
        code_items: npt.NDArray[np.int64],
        lists: SortedLists,
        items: Items,
        always: Always,
    ) -> None:
        self._domain = domain
        self._values = frozen(values)
        self._directory = directory
        self._code_items = code_items
        self._lists = lists
        self._items = items
        self._always = always

    @classmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],  # noqa: ARG003
        rank: RankSpace,
        *,
        domain: Domain | None = None,
    ) -> tuple[Self, npt.NDArray[np.int32]]:
        """Post all conjunctions; ``domain`` is the range of every numeric attribute.

        O(postings). ``Refused`` names classes with a range that cannot be rewritten, and
        ``OptionError`` says so where there would be too many postings.
        """
        domain = checked_domain(domain)
        values = CellValues.of(rank, domain)
        new = rewrite(classes, values)
        codes, code_items = np.unique(new.item_codes(), return_counts=True)
        first = np.full(rank.n_cells, -1, dtype=np.int32)
        directory = CellDirectory(codes, first, values.counts)
        cells = directory.new_cells(new.parts)
        n_lists = Z + 1 + len(codes) * int(values.counts[cells].sum(dtype=np.int64))
        _check_room(new.n_postings, n_lists)
        directory = directory.with_cells(cells, Z + 1)
        always = Always.of(classes, new.always, new.always)
        lists = directory.lists_of(new.parts, n_lists)
        items = Items(new.items)
        index = cls(domain, values, directory, code_items, lists, items, always)
        return index, np.arange(len(classes), dtype=np.int32)

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, Any]) -> None:
        """Also refuse a domain that is not valid."""
        super().check_parameters(parameters)
        checked_domain(parameters.get("domain"))

    # -- matching ------------------------------------------------------------------------------

    def match(self, events: EncodedEvents) -> Found:
        """Join the lists of each event's values."""
        entries = event_entries(events, self._values.bases)
        items, (codes, first, _) = self._items, self._directory
        owners, clauses, _ = items.arrays
        search = SearchArrays(read_only(codes), read_only(first), owners, clauses)
        n_bitmaps = len(items) if items.conjunctive else 0
        scratch = KIndexScratch(
            np.zeros(items.n_classes if items.several else 0, dtype=np.int32),
            np.zeros(n_bitmaps, dtype=np.uint64),
            np.empty(n_bitmaps, dtype=np.int32),
        )
        candidates = np.zeros(events.n_events, dtype=np.int64)
        out = Output()
        out.make_room(_ROOM)
        while True:
            match_events(search, self._lists.searched, entries, scratch, candidates, out.arrays)
            if out.state[0] == events.n_events:
                break
            out.make_room(2 * len(out.rows))
        self._always.match(events, out)
        candidates += len(self._always.classes)
        n = int(out.state[2])
        return Found(out.rows[:n], out.classes[:n], candidates)

    # -- changes -------------------------------------------------------------------------------

    def insert(self, classes: Classes) -> npt.NDArray[np.int32]:
        """Post more classes; O(log length) for each posting, whatever the lists hold."""
        given, n_items = self._items.n_classes, len(self._items)
        check_size("classes", given + len(classes))
        new = rewrite(classes, self._values)
        new = new.posted_as(np.arange(n_items, n_items + len(new.items.owners), dtype=np.int32))
        always = Always.of(classes, new.always, given + new.always)
        added, added_items = np.unique(new.item_codes(), return_counts=True)
        codes = np.union1d(self._directory.codes, added).astype(np.int32)
        cells = self._directory.new_cells(new.parts)
        n_new = int(self._values.counts[cells].sum(dtype=np.int64))
        n_values = self._directory.n_values(self._lists.n_lists) + n_new
        _check_room(self._lists.n_pairs + new.n_postings, Z + 1 + len(codes) * n_values)

        if len(codes) > len(self._directory.codes):
            self._directory, self._lists, self._code_items = self._with_codes(codes)
        if len(cells):
            n = self._lists.add_lists(len(codes) * n_new)
            self._directory = self._directory.with_cells(cells, n)
        self._lists.insert(*self._directory.all_triples(new.parts))
        self._code_items[np.searchsorted(codes, added)] += added_items
        self._items.append(new.items._replace(owners=given + new.items.owners))
        self._always = self._always.with_more(always)
        return np.arange(given, given + len(classes), dtype=np.int32)

    def _with_codes(
        self, codes: npt.NDArray[np.int32]
    ) -> tuple[CellDirectory, SortedLists, npt.NDArray[np.int64]]:
        """Directory, lists and items by code, for these codes."""
        code_items = np.zeros(len(codes), dtype=np.int64)
        code_items[np.searchsorted(codes, self._directory.codes)] = self._code_items
        return *self._directory.with_codes(codes, self._lists), code_items

    def delete(self, classes: Classes, numbers: npt.NDArray[np.int32]) -> None:
        """Remove the postings of classes; O(log length) for each, whatever the lists hold."""
        found = self._find(classes, numbers)
        if found is None:
            raise OptionError(NOT_THERE)
        old, items, triple = found
        removed, removed_items = np.unique(old.item_codes(), return_counts=True)
        self._lists.delete(*triple)
        self._code_items[np.searchsorted(self._directory.codes, removed)] -= removed_items
        self._items.mark_deleted(items)
        self._always = self._always.without(numbers[old.always])

    def _find(
        self, classes: Classes, numbers: npt.NDArray[np.int32]
    ) -> tuple[Rewritten, npt.NDArray[np.int32], Triple] | None:
        """Classes as they were posted under these numbers, their items, and all postings.

        None unless all of that is there, and nothing else of these classes.
        """
        if not are_numbers(numbers, len(classes), self._items.n_classes):
            return None
        try:
            old = rewrite(classes, self._values)
        except Refused:
            return None
        owners = old.items.owners
        firsts, counts = self._items.of_classes(numbers)
        if not np.array_equal(counts, np.bincount(owners, minlength=len(classes))):
            return None
        own_firsts = np.searchsorted(owners, np.arange(len(classes)))
        items = (firsts - own_firsts)[owners] + np.arange(len(owners))
        items = items.astype(np.int32)
        if not np.array_equal(self._items.arrays.entries[items], old.items.entries):
            return None
        old = old.posted_as(items)
        directory = self._directory
        known = np.isin(old.item_codes(), directory.codes).all()
        if not known or len(directory.new_cells(old.parts)):
            return None
        triple = directory.all_triples(old.parts)
        if self._lists.count_held(*triple) < len(triple[0]):
            return None
        there = self._always.holds(classes, old.always, numbers)
        return (old, items, triple) if there else None

    # -- the rest ------------------------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything; the lists packed, under ``lists.``."""
        self._directory = self._directory._replace(first=read_only(self._directory.first))
        out: dict[str, npt.NDArray[Any]] = {
            "bases": self._values.bases,
            "counts": self._values.counts,
            "objections": self._values.objections,
            "codes": self._directory.codes,
            "first": self._directory.first,
            "code_items": self._code_items.copy(),
        }
        out |= prefixed("lists.", self._lists.arrays())
        return out | self._items.to_arrays() | self._always.arrays()

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], parameters: Mapping[str, Any]
    ) -> Self:
        """Search these arrays in place."""
        counts = arrays["counts"]
        return cls(
            checked_domain(parameters["domain"]),
            CellValues.from_arrays(arrays["bases"], counts, arrays["objections"]),
            CellDirectory(read_only(arrays["codes"]), read_only(arrays["first"]), counts),
            arrays["code_items"].copy(),
            SortedLists.from_arrays(under(arrays, "lists.")),
            Items.from_arrays(arrays),
            Always.from_arrays(arrays),
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The domain."""
        return {"domain": self._domain}

    @property
    def nbytes(self) -> int:
        """What is in use; lists that have changed are not packed for this."""
        own = self._values, self._directory, self._code_items, self._items.arrays, self._always
        return occupied(own) + self._lists.nbytes

    def statistics(self) -> dict[str, Any]:
        """Classes, conjunctions by size, conjunctive forms by size, lists and postings.

        Names are strings, as everywhere; those of sizes too.
        """
        codes, items = self._directory.codes.tolist(), self._code_items.tolist()
        by_code = {code: n for code, n in zip(codes, items, strict=True) if n}
        return {
            "classes": self._items.n_classes,
            "clauses": sum(n for code, n in by_code.items() if not code & 1),
            "sizes": {str(code >> 1): n for code, n in by_code.items() if not code & 1},
            "conjunctive": {str(code >> 1): n for code, n in by_code.items() if code & 1},
            "always": len(self._always.classes),
            "z": by_code.get(0, 0),
            "slots": self._directory.n_values(self._lists.n_lists),
            "lists": self._lists.n_lists,
            "entries": self._lists.n_pairs,
        }

    def postings(
        self, *, conjunctive: bool = False
    ) -> dict[tuple[int, int, int, int], list[tuple[int, int]]]:
        """All postings by (size, channel, cell, which value of the cell), for people to look at.

        A posting is (class, 1), or (class, 0) where the value must not be there; in the lists of
        conjunctive forms it is (class, clause). The Z-list has no channel and no cell: both -1.
        """
        arrays = self._lists.arrays()
        offsets, keys, values = (arrays[name].tolist() for name in ("offsets", "keys", "values"))
        owners = self._items.arrays.owners.tolist()
        codes = self._directory.codes.tolist()
        places = {} if conjunctive else {(0, -1, -1, 0): Z}
        for cell in np.flatnonzero(self._directory.first >= 0).tolist():
            channel = int(np.searchsorted(self._values.bases, cell, "right")) - 1
            first = int(self._directory.first[cell])
            for value in range(int(self._values.counts[cell])):
                for column, code in enumerate(codes):
                    if code & 1 == conjunctive:
                        n = first + value * len(codes) + column
                        places[code >> 1, channel, cell, value] = n
        return {
            place: [(owners[keys[i]], values[i]) for i in range(offsets[n], offsets[n + 1])]
            for place, n in places.items()
            if offsets[n] < offsets[n + 1]
        }

    def check(self, n_channels: int, n_cells: int) -> None:
        """Values, directory, lists, items and always-candidates are sound and fit together."""
        self._values.check(n_channels, n_cells)
        self._directory.check(self._lists.n_lists)
        self._lists.check()
        self._items.check()
        check_postings(
            self._values.bases, self._directory, self._lists, self._items, self._code_items
        )
        self._always.check(self._items.n_classes, n_channels, n_cells)
        items, counts = self._items.of_classes(self._always.classes)
        posted = (counts > 1) | (self._items.arrays.entries[items] != 0)
        assert not posted.any(), "an always-candidate is posted, or deleted"


def _check_room(n_postings: int, n_lists: int) -> None:
    """OptionError if there would be too many postings or lists."""
    n_bytes = 8 * n_postings + 4 * n_lists
    if max(n_postings, n_lists) > MAX_PAIRS or n_bytes > MOST_BYTES:
        raise OptionError(
            f"k-index would have {n_postings:,} postings in {n_lists:,} lists, {n_bytes:,} bytes: "
            "one for each whole number that a range covers. It holds at most "
            f"{MAX_PAIRS:,} postings and {MOST_BYTES:,} bytes: give a smaller domain, or use the "
            "strategy opindex"
        )
