"""The intervals of an index, one per *slot*: what the bits of its bit vectors stand for.

Bit s of a row means the interval in slot s. Slots are ordered by (low, high, id) when an index is
built, so that intervals which are stabbed together are neighbours, and the bits that a value needs
are few words (``vectors``)::

    slot      0   1   2   3   4           slots that are in use: 5, of which 4 hold an interval
    lows      0   2   .   5   1
    highs     9   4   .   7   6           slot 2 was freed and contains nothing: low > high
    ids       7   3  -1   8   4           slot 4 was added later, out of order

A freed slot is used again by the next ``add``: free slots are chained, each keeping the number of
the next one (-1 at the end) where its id was.

Slots that are added spoil the order, and with it the shortness of the rows, little by little.
``worn`` says when it is time to build the structure again from ``live`` intervals: after as many
changes as half the intervals, so that this costs a constant number of rebuilt intervals per change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.errors import OptionError
from bittern.jit import read_only

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from bittern.arrays import Int32s

MAX_SLOTS = 2**31 - 1
"""Slots are numbered in int32."""

_LEAST_ROOM = 16
_FREE_LOW, _FREE_HIGH, _NO_SLOT = 0, -1, -1

# Where the running figures are kept.
_N_FREE, _FIRST_FREE = 0, 1


class Slots:
    """Intervals by slot: ``lows``, ``highs`` and ``ids``, with room at the end; see the module."""

    lows: Int32s
    highs: Int32s
    ids: Int32s

    def __init__(
        self, lows: Int32s, highs: Int32s, ids: Int32s, *, n_free: int = 0, first_free: int = -1
    ) -> None:
        """Take slots as they are, all of them in use: O(1)."""
        self.lows, self.highs, self.ids = lows, highs, ids
        self.n_slots = len(lows)
        self.changes = 0
        self._figures = np.array([n_free, first_free], np.int64)
        self._owned = False

    @classmethod
    def of(cls, lows: Int32s, highs: Int32s, ids: Int32s) -> Self:
        """Order valid intervals by (low, high, id): O(n log n)."""
        order = np.lexsort((ids, highs, lows))
        return cls(lows[order], highs[order], ids[order])

    @property
    def n_free(self) -> int:
        """How many slots hold nothing."""
        return int(self._figures[_N_FREE])

    @property
    def n_live(self) -> int:
        """How many slots hold an interval."""
        return self.n_slots - self.n_free

    @property
    def next(self) -> int:
        """The slot that ``add`` takes next; OptionError if there are no more."""
        if self.n_free:
            return int(self._figures[_FIRST_FREE])
        if self.n_slots == MAX_SLOTS:
            raise OptionError(f"an index holds at most {MAX_SLOTS} intervals: use several")
        return self.n_slots

    @property
    def worn(self) -> bool:
        """Whether so much changed since the slots were ordered that building again is paid for."""
        return self.changes > _LEAST_ROOM + self.n_slots // 2

    def add(self, low: int, high: int, id: int) -> int:  # noqa: A002
        """Put an interval into a slot, which is returned: O(1) amortised."""
        slot = self.next
        self._own(slot + 1)
        if self.n_free:
            self._figures[:] = self.n_free - 1, self.ids[slot]
        else:
            self.n_slots += 1
        self.lows[slot], self.highs[slot], self.ids[slot] = low, high, id
        self.changes += 1
        return slot

    def free(self, slot: int) -> None:
        """Remove the interval from a slot that holds one: O(1) amortised."""
        self._own(self.n_slots)
        self.lows[slot], self.highs[slot] = _FREE_LOW, _FREE_HIGH
        self.ids[slot] = self._figures[_FIRST_FREE]
        self._figures[:] = self.n_free + 1, slot
        self.changes += 1

    def _own(self, needed: int) -> None:
        """Copy arrays that others may hold, and leave room in proportion when it is used up."""
        if self._owned and needed <= len(self.lows):
            return
        room = min(max(_LEAST_ROOM, needed // 2), MAX_SLOTS - needed)
        for name in ("lows", "highs", "ids"):
            grown = np.empty(needed + room, np.int32)
            grown[: self.n_slots] = getattr(self, name)[: self.n_slots]
            setattr(self, name, grown)
        self._owned = True

    def live(self) -> tuple[Int32s, Int32s, Int32s]:
        """Lows, highs and ids of the slots that hold an interval: O(slots)."""
        used = slice(self.n_slots)
        held = self.lows[used] <= self.highs[used]
        return self.lows[used][held], self.highs[used][held], self.ids[used][held]

    def distinct_ids(self) -> Int32s:
        """Distinct ids of the intervals, ascending: O(slots log slots)."""
        return np.unique(self.live()[2])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every slot in use and where the chain of free ones begins; the next change copies."""
        self._owned = False
        used = slice(self.n_slots)
        return {
            "slot_lows": read_only(self.lows[used]),
            "slot_highs": read_only(self.highs[used]),
            "slot_ids": read_only(self.ids[used]),
            "slot_figures": self._figures.copy(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self | None:
        """Take these arrays where they are, or None if their sizes do not fit together: O(1)."""
        lows, highs, ids, figures = (
            np.asarray(arrays[f"slot_{name}"]) for name in ("lows", "highs", "ids", "figures")
        )
        if not (
            len(lows) == len(highs) == len(ids)
            and all(array.dtype == np.int32 for array in (lows, highs, ids))
            and figures.shape == (2,)
        ):
            return None
        n_free, first_free = (int(n) for n in figures)
        if not (0 <= n_free <= len(lows) and -1 <= first_free < len(lows)):
            return None
        return cls(lows, highs, ids, n_free=n_free, first_free=first_free)

    def check(self, domain: int) -> None:
        """Verify that live slots hold valid intervals and that the others are chained: O(slots)."""
        lows, highs, ids = (array[: self.n_slots] for array in (self.lows, self.highs, self.ids))
        free = lows > highs
        assert int(free.sum()) == self.n_free, "wrong number of free slots"
        assert (lows[~free] >= 0).all(), "an interval begins before the first cell"
        assert (highs[~free] < domain).all(), "an interval reaches past the domain"
        assert (ids[~free] >= 0).all(), "an id is negative"
        slot = int(self._figures[_FIRST_FREE])
        for _ in range(self.n_free):
            assert 0 <= slot < self.n_slots, "the chain of free slots ends early"
            assert free[slot], "a slot in the chain of free ones holds an interval"
            slot = int(ids[slot])
        assert slot == _NO_SLOT, "the chain of free slots goes on past the last one"
