"""Numbered lists of ids in flat arrays: the storage under every structure that keeps id lists.

List n holds ``items[begins[n]:ends[n]]``, ascending. Searching needs nothing else, whichever of
two forms the lists are in:

*packed*, as built or mapped: one array of offsets, 4 bytes per list. ``begins`` and ``ends``
are two views of it::

    offsets  0  2  2  5              lists 0: {3, 8}  1: {}  2: {1, 4, 9}
    items    3  8  1  4  9

*loose*, from the first insert or delete on: 12 bytes per list. Each list owns an area up to its
``limits``; one that outgrows it moves to the end and leaves a hole (``areas``)::

    begins   5  2  2                 after inserting 5 into list 0
    ends     8  2  5
    limits   9  2  5
    items    .  .  1  4  9  3  5  8  .  free ...

When the free end is used up, everything is copied to a new array, without the holes and with a free
end in proportion to its size. A list that has moved keeps the room it got, so that only a list that
is full, or has never moved, moves again. So n changes cost O(n) moves in all, beside O(length) for
each list they touch.

Building in bulk is a counting sort in two kernels of the structure, because only it knows which
lists an interval goes to: the first adds up ``counts[n]``, ``for_counts`` turns these into
offsets, and the second goes through the intervals **backwards by id** and for each list n does
``offsets[n] -= 1; items[offsets[n]] = id``, which leaves every list ascending and the offsets
right, with no array besides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.errors import OptionError
from bittern.jit import b1, i4r, i4w, i8, i8w, kernel, void
from bittern.stabbing.areas import HELD, USED, check_areas, move_to_end, rank, room_to_move

if TYPE_CHECKING:
    from bittern.arrays import Int32s

MAX_ENTRIES = 2**31 - 1
"""Offsets are int32: half the bytes of the directory, which is most of a sparse index."""

_SMALLEST_AREA = 4
_LEAST_ROOM = 64
_NONE = np.empty(0, np.int32)


@kernel(i8, i4w)
def _accumulate(counts: Any) -> Any:
    """Make counts[n] the end of list n, in place, and return the full total."""
    total = 0
    for n in range(len(counts)):
        total += int(counts[n])
        counts[n] = min(total, 2147483647)
    return total


@kernel(b1, i4r, i8, i4r, i4r, i4r)
def _holds(lists: Any, number: Any, begins: Any, ends: Any, items: Any) -> Any:
    for n in lists:
        at = rank(items, begins[n], ends[n], number)
        if at == ends[n] or items[at] != number:
            return False
    return True


@kernel(i8, i4r, i4r, i4r, i4r)
def _room_to_add(lists: Any, begins: Any, ends: Any, limits: Any) -> Any:
    """Slots at the free end for those of these lists that have to move."""
    room = 0
    for n in lists:
        if ends[n] == limits[n]:
            room += room_to_move(begins[n], ends[n], _SMALLEST_AREA)
    return room


@kernel(void, i4r, i8, i4w, i4w, i4w, i4w, i8w)
def _add(
    lists: Any, number: Any, begins: Any, ends: Any, limits: Any, items: Any, figures: Any
) -> None:
    for n in lists:
        begin, end = int(begins[n]), int(ends[n])
        if end == limits[n]:
            old = begin
            begin, end = move_to_end(n, begins, ends, limits, figures, _SMALLEST_AREA)
            for i in range(begin, end):
                items[i] = items[old + i - begin]
        at = rank(items, begin, end, number)
        for i in range(end, at, -1):
            items[i] = items[i - 1]
        items[at] = number
        ends[n] = end + 1
        figures[HELD] += 1


@kernel(void, i4r, i8, i4r, i4w, i4w, i8w)
def _remove(lists: Any, number: Any, begins: Any, ends: Any, items: Any, figures: Any) -> None:
    for n in lists:
        end = int(ends[n])
        for i in range(rank(items, begins[n], end, number), end - 1):
            items[i] = items[i + 1]
        ends[n] = end - 1
        figures[HELD] -= 1


@kernel(void, i4r, i4r, i4r, i4w, i4w)
def _pack(begins: Any, ends: Any, items: Any, offsets: Any, packed: Any) -> None:
    at = 0
    for n in range(len(begins)):
        offsets[n] = at
        for i in range(begins[n], ends[n]):
            packed[at] = items[i]
            at += 1
    offsets[len(begins)] = at


@kernel(i8, i4r, i4r, i4r, i4w, i4w, i4w)
def _lay_out(
    begins: Any, ends: Any, limits: Any, new_begins: Any, new_ends: Any, new_limits: Any
) -> Any:
    """Areas side by side, of which none is larger than a move would make it; where they stop."""
    at = 0
    for n in range(len(begins)):
        length, area = int(ends[n]) - int(begins[n]), int(limits[n]) - int(begins[n])
        new_begins[n] = at
        new_ends[n] = at + length
        at += min(area, room_to_move(begins[n], ends[n], _SMALLEST_AREA)) if length else 0
        new_limits[n] = at
    return at


@kernel(void, i4r, i4r, i4r, i4r, i4w)
def _copy(begins: Any, ends: Any, items: Any, new_begins: Any, new_items: Any) -> None:
    for n in range(len(begins)):
        for i in range(int(ends[n]) - int(begins[n])):
            new_items[new_begins[n] + i] = items[begins[n] + i]


@kernel(i8, i4r, i4r, i4r)
def _first_unordered(begins: Any, ends: Any, items: Any) -> Any:
    """Find the first list that is not ascending from 0 on, or -1."""
    for n in range(len(begins)):
        previous = 0
        for i in range(begins[n], ends[n]):
            if items[i] < previous:
                return n
            previous = items[i]
    return -1


def in_order_of_ids(lows: Int32s, highs: Int32s, ids: Int32s) -> tuple[Int32s, Int32s, Int32s]:
    """Sort intervals by id, as filling lists backwards asks; no copy where they are."""
    if not len(ids) or (ids[:-1] <= ids[1:]).all():
        return lows, highs, ids
    order = np.argsort(ids, kind="stable")
    return lows[order], highs[order], ids[order]


class IdLists:
    """Lists of ids, searched through ``begins``, ``ends`` and ``items``; see the module."""

    begins: Int32s
    ends: Int32s
    items: Int32s

    def __init__(self, offsets: Int32s, items: Int32s) -> None:
        """Take packed lists as they are, read-only or not: O(1)."""
        self._take(offsets, items)

    def _take(self, offsets: Int32s, items: Int32s) -> None:
        self._offsets: Int32s | None = offsets
        self._limits: Int32s | None = None
        self._figures = np.array([len(items), len(items)], np.int64)
        self.begins, self.ends, self.items = offsets[:-1], offsets[1:], items

    @classmethod
    def for_counts(cls, counts: Int32s) -> tuple[Self, Int32s]:
        """Make lists for these lengths (with one 0 more at the end), and the offsets to fill by.

        ``counts`` is changed in place and owned by the lists from now on.
        """
        total = int(_accumulate(counts))
        if total > MAX_ENTRIES:
            raise OptionError(
                f"{total} list entries are too many for one index (at most {MAX_ENTRIES}): "
                "use longer segments or several indexes"
            )
        return cls(counts, np.empty(total, np.int32)), counts

    @property
    def n_lists(self) -> int:
        """How many lists there are, empty ones included."""
        return len(self.begins)

    @property
    def packed(self) -> bool:
        """Whether nothing changed since the lists were built, mapped or packed."""
        return self._limits is None

    @property
    def n_entries(self) -> int:
        """How many ids all lists hold together."""
        return int(self._figures[HELD])

    def insert(self, lists: Int32s, number: int) -> None:
        """Add an id to each of these distinct lists: O(their lengths), amortised."""
        limits = self.ends if self._limits is None else self._limits
        room = int(_room_to_add(lists, self.begins, self.ends, limits))
        if self._limits is None or int(self._figures[USED]) + room > len(self.items):
            limits = self._loosen(lists)
        _add(lists, number, self.begins, self.ends, limits, self.items, self._figures)

    def delete(self, lists: Int32s, number: int) -> bool:
        """Take an id once out of each of these lists; False, and no change, if one lacks it."""
        if not _holds(lists, number, self.begins, self.ends, self.items):
            return False
        if self._limits is None:
            self._loosen(_NONE)
        _remove(lists, number, self.begins, self.ends, self.items, self._figures)
        return True

    def extend(self, n_lists: int) -> None:
        """Have so many lists; the new ones are empty: O(lists), so ask for many at once."""
        if self._limits is None:
            self._loosen(_NONE)
        assert self._limits is not None
        empty = np.zeros(n_lists - self.n_lists, np.int32)
        self.begins, self.ends, self._limits = (
            np.concatenate((numbers, empty)) for numbers in (self.begins, self.ends, self._limits)
        )

    def pack(self) -> tuple[Int32s, Int32s]:
        """Offsets and items of the packed form, entering it if needed: O(1) or O(everything)."""
        if self._offsets is None:
            offsets = np.empty(self.n_lists + 1, np.int32)
            items = np.empty(self.n_entries, np.int32)
            _pack(self.begins, self.ends, self.items, offsets, items)
            self._take(offsets, items)
        assert self._offsets is not None
        return self._offsets, self.items

    def _loosen(self, lists: Int32s) -> Int32s:
        """Enter the loose form, or be rid of its holes, with free slots to add to these lists."""
        entries, limits = self.n_entries, self._limits
        # The room of lists is given up before an id is refused, and where there is none yet.
        kept = (
            limits if limits is not None and _SMALLEST_AREA * entries < MAX_ENTRIES else self.ends
        )
        begins, ends, areas = (np.empty(self.n_lists, np.int32) for _ in range(3))
        used = int(_lay_out(self.begins, self.ends, kept, begins, ends, areas))
        room = int(_room_to_add(lists, begins, ends, areas))
        if used + room > MAX_ENTRIES:
            raise OptionError(f"an index holds at most {MAX_ENTRIES} list entries")
        # The directory counts as well: rewriting it must be paid for by many changes.
        room += max(_LEAST_ROOM, entries // 2, self.n_lists // 8)
        items = np.empty(min(used + room, MAX_ENTRIES), np.int32)
        _copy(self.begins, self.ends, self.items, begins, items)
        # All memory is there: from here on nothing fails half way.
        self.begins, self.ends, self.items = begins, ends, items
        self._offsets = None
        self._limits = areas
        self._figures[USED] = used
        return areas

    def ids(self) -> Int32s:
        """Distinct ids in all lists, ascending: O(n log n)."""
        items = np.empty(self.n_entries, np.int32)
        _pack(self.begins, self.ends, self.items, np.empty(self.n_lists + 1, np.int32), items)
        return np.unique(items)

    def check(self) -> None:
        """Verify order, bounds and that no two lists share a slot: O(lists + entries)."""
        lengths = self.ends.astype(np.int64) - self.begins
        assert (lengths >= 0).all(), "a list ends before it begins"
        assert int(lengths.sum()) == self.n_entries, "lists do not add up to the entries"
        if self._limits is None:
            assert self._offsets is not None
            assert int(self._offsets[0]) == 0, "packed lists do not begin at 0"
            assert int(self._offsets[-1]) == len(self.items), "packed lists do not fill the items"
        else:
            used = int(self._figures[USED])
            assert used <= len(self.items), "more slots are used than there are"
            check_areas(self.begins, self.ends, self._limits, used, "list")
        bad = int(_first_unordered(self.begins, self.ends, self.items))
        assert bad < 0, f"list {bad} is not ascending"
