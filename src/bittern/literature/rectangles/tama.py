"""TAMA: ranges in cells that are halved level by level; an event counts what it satisfies.

A channel is halved again and again, ``levels`` times at most. A range is filed under the fewest
parts that make it up, and a value is in one part of each level::

    level 0   1                               range [1, 5] of 8 cells: parts 9, 5 and 6
    level 1   2       3
    level 2   4   5   6   7                   value 3: parts 1, 2, 5 and 11. Found under 5: count
    level 3   8 9 ... 15

    starts    where the boxes of each part begin, channel by channel, from part 0 on
    boxes     of each part

A box of which as many sides are satisfied as it has is left. The parts of the last level are
several cells where a channel has more than they are, and the range is taken to end where they do:
the paper's results are approximate there, and here each class that is left runs its program.

Chosen: counters go down from a box's sides to 0, so that no counter is looked at after an event,
and are copied anew for each event.

Cost: O(boxes + levels for each channel + sides that are satisfied) per event. Memory: up to
2 * ``levels`` entries of 4 bytes for each side, and 4 bytes for each part.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s, starts_of
from bittern.jit import i4r, i8, i8r, i8w, kernel, tuple_type, void
from bittern.literature.rectangles.boxes import VERIFYING, Boxes, BoxIndex, Verifying, report, stops
from bittern.matching.output import OUTPUT, OutputArrays
from bittern.model.classes.classes import Classes
from bittern.model.rank.encoded import EVENTS, EncodedEvents, cell_of
from bittern.model.rank.space import RankSpace

#: What the authors of HEM gave TAMA in their comparison.
LEVELS = 13


class HalvedParts(NamedTuple):
    """The first part of each channel, its levels, how far a cell is shifted; and what is filed."""

    first_parts: Int64s
    levels: Int32s
    shifts: Int32s
    starts: Int32s
    boxes: Int32s
    sizes: Int32s


_PARTS = tuple_type(HalvedParts, i8r, i4r, i4r, i4r, i4r, i4r)


def parts_of(bases: Int32s, boxes: Boxes, levels: int) -> HalvedParts:
    """File every side under its parts. O(sides x levels)."""
    cells = np.diff(bases).astype(np.int64)
    tested = np.bincount(boxes.channels, minlength=len(cells)) > 0
    bits = np.array([int(n - 1).bit_length() for n in cells.tolist()], np.int64)
    own_levels = np.minimum(bits, levels - 1)
    first_parts = starts_of(np.where(tested, np.int64(2) << own_levels, 0))
    shifts = bits - own_levels
    channels = boxes.channels
    leaf, shift, base = np.int64(1) << own_levels[channels], shifts[channels], bases[channels]
    low = leaf + ((boxes.lows - base).astype(np.int64) >> shift)
    end = leaf + ((boxes.highs - base).astype(np.int64) >> shift) + 1
    parts, filed = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    while (low < end).any():
        for odd, is_end in ((low, False), (end, True)):
            own = np.flatnonzero((low < end) & (odd & 1 == 1))
            part = odd[own] - is_end
            parts.append(first_parts[channels[own]] + part)
            filed.append(boxes.boxes[own])
            odd[own] += -1 if is_end else 1
        low >>= 1
        end >>= 1
    part, box = np.concatenate(parts), np.concatenate(filed)
    order = np.argsort(part, kind="stable")
    starts = starts_of(np.bincount(part, minlength=int(first_parts[-1])), np.int32)
    sizes = np.bincount(boxes.boxes, minlength=len(boxes.owners))
    return HalvedParts(
        first_parts,
        own_levels.astype(np.int32),
        shifts.astype(np.int32),
        starts,
        box[order],
        sizes.astype(np.int32),
    )


@kernel(void, _PARTS, i4r, EVENTS, i8, VERIFYING, i8w, OUTPUT)
def _match(
    own: Any,
    bases: Any,
    events: Any,
    n_events: Any,
    verifying: Any,
    candidates: Any,
    out: Any,
) -> None:
    """Match events from ``state[0]`` on."""
    matrix, width, table_starts, table, entries = events
    first_parts, levels, shifts, starts, boxes, sizes = own
    left, found = np.empty(len(sizes), dtype=np.int32), np.empty(len(sizes), dtype=np.int32)
    n = out.state[2]
    for event in range(out.state[0], n_events):
        left[:] = sizes
        n_found = 0
        for channel in range(len(bases) - 1):
            if first_parts[channel] == first_parts[channel + 1]:
                continue
            cell = cell_of(matrix, width, table_starts, table, entries, event, channel)
            if cell < 0:
                continue
            part = (np.int64(1) << np.int64(levels[channel])) + (
                np.int64(cell - bases[channel]) >> np.int64(shifts[channel])
            )
            while part > 0:
                place = first_parts[channel] + part
                for i in range(starts[place], starts[place + 1]):
                    box = np.uint64(boxes[np.uint64(i)])
                    left[box] -= 1
                    if left[box] == 0:
                        found[np.uint64(n_found)] = box
                        n_found += 1
                part >>= 1
        if stops(out, event, n_found, n):
            return
        candidates[event] = n_found
        for i in range(n_found):
            n = report(events, verifying, out, event, np.int64(found[i]), n)
    out.state[0], out.state[2] = n_events, n


class Tama(BoxIndex):
    """Counts satisfied ranges; see the module for the layout."""

    name: ClassVar[str] = "tama"
    numbers = {"levels": (LEVELS, 32)}  # noqa: RUF012  never changed
    record = HalvedParts
    _own: HalvedParts

    @classmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],  # noqa: ARG003
        rank: RankSpace,
        *,
        levels: int = LEVELS,
    ) -> tuple[Self, Int32s]:
        """File every side under the parts that it is made of. O(n log n)."""
        return cls._built(classes, rank, {"levels": levels})

    @staticmethod
    def _made(bases: Int32s, boxes: Boxes, **parameters: int) -> HalvedParts:
        return parts_of(bases, boxes, parameters["levels"])

    def _call(
        self, events: EncodedEvents, verifying: Verifying, candidates: Int64s, out: OutputArrays
    ) -> None:
        _match(
            self._own,
            self._bases,
            events.by_event,
            events.n_events,
            verifying,
            candidates,
            out,
        )
