"""HEM: REIN with bitmaps, so that an event ORs words instead of marking boxes one by one.

The buckets of a channel are cut into ``groups``. Each group has a bitmap of what begins in it or in
later groups, and one of what ends in earlier ones. A value takes those of its group, and marks one
by one only what lies between the bounds of the group and its own bucket::

    low buckets    0 1 | 2 3 | 4 5        value in bucket 2: OR the bitmap from 4 on,
    bitmaps        all   2..   4..        mark what begins in 3, compare with 2

Chosen: groups have about equally many ends (which adapts to skew), 16 of them for each channel and
both ends; a value takes the bitmap that rules out less and marks the rest, and never unmarks. A
channel with fewer sides than a bitmap has words has no bitmaps: it is marked as in REIN.

Cost: O(words of a bitmap for each channel and end, ends in a group). Memory: 16 bytes for each side
and 2 bits for each box, channel and group: 80 bytes for each box over 20 channels.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s, UInt64s
from bittern.jit import i4r, i8r, kernel, u8w, void
from bittern.literature.rectangles.boxes import Boxes
from bittern.literature.rectangles.rein import BUCKETS, Buckets, Rein, buckets_of
from bittern.model.classes.classes import Classes
from bittern.model.rank.space import RankSpace

#: What the authors used: four bits.
GROUPS = 16


@kernel(void, i8r, i8r, i4r, i4r, i8r, u8w)
def _fill(first: Any, last: Any, starts: Any, boxes: Any, n_words: Any, words: Any) -> None:
    """Write the boxes of the buckets ``first`` to ``last`` into each bitmap."""
    size = n_words[0]
    for line in range(len(first)):
        for i in range(starts[first[line]], starts[last[line]]):
            box = np.uint64(boxes[i])
            at = np.uint64(line * size) + (box >> np.uint64(6))
            words[at] |= np.uint64(1) << (box & np.uint64(63))


def _bounds(firsts: Int64s, lasts: Int64s, starts: Int32s, groups: int) -> Int64s:
    """The bucket where each group begins, for channels with these buckets."""
    begin, end = starts[firsts].astype(np.int64), starts[lasts].astype(np.int64)
    wanted = begin[:, None] + (end - begin)[:, None] * np.arange(groups) // groups
    found = np.searchsorted(starts, wanted.ravel(), "right") - 1
    bounds = found.reshape(wanted.shape)
    bounds[:, 0] = firsts
    return np.clip(bounds, firsts[:, None], lasts[:, None]).ravel()


class Hem(Rein):
    """REIN with bitmaps for groups of buckets; see the module for the layout."""

    name: ClassVar[str] = "hem"
    numbers = {**Rein.numbers, "groups": (GROUPS, 1 << 10)}  # noqa: RUF012  never changed

    @classmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],  # noqa: ARG003
        rank: RankSpace,
        *,
        buckets: int = BUCKETS,
        groups: int = GROUPS,
    ) -> tuple[Self, Int32s]:
        """Put the ends of all sides in buckets, and make bitmaps of them. O(n log n)."""
        return cls._built(classes, rank, {"buckets": buckets, "groups": groups})

    @staticmethod
    def _made(bases: Int32s, boxes: Boxes, **parameters: int) -> Buckets:
        own = buckets_of(bases, boxes, parameters["buckets"])
        groups, size = parameters["groups"], (len(boxes.owners) + 63) >> 6
        sides = np.bincount(boxes.channels, minlength=len(bases) - 1)
        chosen = np.flatnonzero((sides > 0) & (sides >= size))
        bitmaps = np.full(len(bases) - 1, -1, np.int32)
        bitmaps[chosen] = np.arange(len(chosen), dtype=np.int32)
        firsts, lasts = own.first_buckets[chosen], own.first_buckets[chosen + 1]

        def words(first: Int64s, last: Int64s, starts: Int32s, filed: Int32s) -> UInt64s:
            made = np.zeros(len(first) * size, np.uint64)
            _fill(first, last, starts, filed, np.array([size]), made)
            return made

        low_bounds = _bounds(firsts, lasts, own.low_starts, groups)
        high_bounds = _bounds(firsts, lasts, own.high_starts, groups)
        low_words = words(low_bounds, np.repeat(lasts, groups), own.low_starts, own.low_boxes)
        high_words = words(np.repeat(firsts, groups), high_bounds, own.high_starts, own.high_boxes)
        return own._replace(
            bitmaps=bitmaps,
            low_bounds=low_bounds,
            high_bounds=high_bounds,
            low_words=low_words,
            high_words=high_words,
        )
