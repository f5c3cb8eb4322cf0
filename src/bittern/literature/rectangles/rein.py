"""REIN: each event marks the boxes that do not match it, and what is left unmarked does.

For each channel there are two rows of buckets: one holds where the ranges of boxes begin, the other
where they end. A value marks all that begin in later buckets or end in earlier ones, and compares
with those in its own. Of an attribute that an event lacks, all are marked. For three boxes with
the sides a [0, 4], a [3, 9] and a [6, 7], in four buckets of cells 0-2, 3-5, 6-8, 9::

    lows    0 | 1 | 2 | .        value 4: own bucket is the second. Low 3 is not above 4;
    highs   . | 0 | 2 | 1        later lows: mark 2. High 4 is not below 4: 0 and 1 are left.

    starts  0 1 2 3 3            where each bucket begins, channel by channel
    boxes   0 1 2                in which order the ends of a bucket are, is left open
    values  0 3 6

Chosen: a channel has at most ``buckets`` buckets of equally many cells (equally wide parts of the
domain in the paper), and one for each cell if it has fewer. An event marks in a bitmap that is
cleared before, and reads it word by word at the end.

Cost: O(ends that do not match + boxes / 64) per event. Memory: 16 bytes for each side.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s, UInt64s, starts_of
from bittern.jit import i4r, i8, i8r, i8w, inline, kernel, popcount, tuple_type, u8r, void
from bittern.literature.rectangles.boxes import VERIFYING, Boxes, BoxIndex, Verifying, report, stops
from bittern.matching.output import OUTPUT, OutputArrays
from bittern.model.classes.classes import Classes
from bittern.model.rank.encoded import EVENTS, EncodedEvents, cell_of
from bittern.model.rank.space import RankSpace

#: What the authors of HEM gave REIN in their comparison.
BUCKETS = 1_000
_ONE = np.uint64(1)


class Buckets(NamedTuple):
    """Where the buckets of each channel begin, the ends in each, and bitmaps, if any.

    ``bitmaps[channel]`` is the number of a channel's bitmaps, or -1; see ``hem.py``.
    """

    first_buckets: Int64s
    low_starts: Int32s
    low_boxes: Int32s
    low_values: Int32s
    high_starts: Int32s
    high_boxes: Int32s
    high_values: Int32s
    bitmaps: Int32s
    low_bounds: Int64s
    high_bounds: Int64s
    low_words: UInt64s
    high_words: UInt64s


BUCKETS_TYPE = tuple_type(Buckets, i8r, i4r, i4r, i4r, i4r, i4r, i4r, i4r, i8r, i8r, u8r, u8r)


def buckets_of(bases: Int32s, boxes: Boxes, buckets: int) -> Buckets:
    """Ends in buckets; no bitmaps. O(sides log sides)."""
    cells = np.diff(bases).astype(np.int64)
    tested = np.bincount(boxes.channels, minlength=len(cells)) > 0
    first_buckets = starts_of(np.where(tested, np.minimum(cells, buckets), 0))

    def filed(values: Int32s) -> tuple[npt.NDArray[Any], ...]:
        channels = boxes.channels
        n = np.diff(first_buckets)[channels]
        bucket = first_buckets[channels] + (values - bases[channels]) * n // cells[channels]
        order = np.argsort(bucket, kind="stable")
        starts = starts_of(np.bincount(bucket, minlength=int(first_buckets[-1])), np.int32)
        return starts, boxes.boxes[order], values[order]

    none = np.full(len(cells), -1, np.int32), *(np.empty(0, np.int64) for _ in range(2))
    no_words = (np.empty(0, np.uint64) for _ in range(2))
    return Buckets(first_buckets, *filed(boxes.lows), *filed(boxes.highs), *none, *no_words)


@inline
def _mark(boxes: Any, first: Any, last: Any, marked: Any) -> None:
    for i in range(first, last):
        box = np.uint64(boxes[np.uint64(i)])
        marked[box >> np.uint64(6)] |= _ONE << (box & np.uint64(63))


@inline
def _mark_all(words: Any, line: Any, marked: Any) -> None:
    """Mark what one bitmap has."""
    base = line * len(marked)
    for word in range(len(marked)):
        marked[np.uint64(word)] |= words[np.uint64(base + word)]


@inline
def _mark_channel(own: Any, bases: Any, channel: Any, cell: Any, groups: Any, marked: Any) -> None:
    """Mark what a value of a channel, or its lack (a negative cell), does not match."""
    first, last = own.first_buckets[channel], own.first_buckets[channel + 1]
    bitmap = np.int64(own.bitmaps[channel])
    if cell < 0:
        if bitmap >= 0:
            _mark_all(own.low_words, bitmap * groups, marked)
        else:
            _mark(own.low_boxes, own.low_starts[first], own.low_starts[last], marked)
        return
    base, end = np.int64(bases[channel]), np.int64(bases[channel + 1])
    bucket = first + (cell - base) * (last - first) // (end - base)
    later, earlier = last, first
    if bitmap >= 0:
        group = 0  # the first one that begins behind the bucket
        while group < groups and own.low_bounds[bitmap * groups + group] <= bucket:
            group += 1
        if group < groups:
            later = own.low_bounds[bitmap * groups + group]
            _mark_all(own.low_words, bitmap * groups + group, marked)
        group = groups - 1  # the one that has the bucket
        while group > 0 and own.high_bounds[bitmap * groups + group] > bucket:
            group -= 1
        earlier = own.high_bounds[bitmap * groups + group]
        _mark_all(own.high_words, bitmap * groups + group, marked)
    _mark(own.low_boxes, own.low_starts[bucket + 1], own.low_starts[later], marked)
    _mark(own.high_boxes, own.high_starts[earlier], own.high_starts[bucket], marked)
    for i in range(own.low_starts[bucket], own.low_starts[bucket + 1]):
        if own.low_values[i] > cell:
            _mark(own.low_boxes, i, i + 1, marked)
    for i in range(own.high_starts[bucket], own.high_starts[bucket + 1]):
        if own.high_values[i] < cell:
            _mark(own.high_boxes, i, i + 1, marked)


@kernel(void, BUCKETS_TYPE, i4r, i8, EVENTS, i8, VERIFYING, i8w, OUTPUT)
def _match(
    own: Any,
    bases: Any,
    groups: Any,
    events: Any,
    n_events: Any,
    verifying: Any,
    candidates: Any,
    out: Any,
) -> None:
    """Match events from ``state[0]`` on."""
    matrix, width, table_starts, table, entries = events
    n_boxes = len(verifying.owners)
    marked = np.empty((n_boxes + 63) >> 6, dtype=np.uint64)
    n = out.state[2]
    for event in range(out.state[0], n_events):
        marked[:] = 0
        for channel in range(len(bases) - 1):
            if own.first_buckets[channel] < own.first_buckets[channel + 1]:
                cell = cell_of(matrix, width, table_starts, table, entries, event, channel)
                _mark_channel(own, bases, channel, np.int64(cell), groups, marked)
        n_marked = np.int64(0)
        for each in marked:
            n_marked += np.int64(popcount(each))
        left = n_boxes - n_marked
        if stops(out, event, left, n):
            return
        candidates[event] = left
        for word in range(len(marked)):
            unmarked = ~marked[word]
            while unmarked:
                lowest = unmarked & (~unmarked + _ONE)
                unmarked ^= lowest
                box = 64 * word + np.int64(popcount(lowest - _ONE))
                if box >= n_boxes:
                    break
                n = report(events, verifying, out, event, box, n)
    out.state[0], out.state[2] = n_events, n


class Rein(BoxIndex):
    """Marks what does not match; see the module for the layout."""

    name: ClassVar[str] = "rein"
    numbers = {"buckets": (BUCKETS, 1 << 20)}  # noqa: RUF012  never changed
    record = Buckets
    _own: Buckets

    @classmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],  # noqa: ARG003
        rank: RankSpace,
        *,
        buckets: int = BUCKETS,
    ) -> tuple[Self, Int32s]:
        """Put the ends of all sides in buckets. O(n log n)."""
        return cls._built(classes, rank, {"buckets": buckets})

    @staticmethod
    def _made(bases: Int32s, boxes: Boxes, **parameters: int) -> Buckets:
        return buckets_of(bases, boxes, parameters["buckets"])

    def _call(
        self, events: EncodedEvents, verifying: Verifying, candidates: Int64s, out: OutputArrays
    ) -> None:
        _match(
            self._own,
            self._bases,
            self._parameters.get("groups", 0),
            events.by_event,
            events.n_events,
            verifying,
            candidates,
            out,
        )
