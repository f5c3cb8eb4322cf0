"""Bits: every attribute of an event rules classes out, 512 at a time.

Where subscriptions are many wide ranges, whichever predicate they are filed under holds for a large
share of all events, and each of them would be looked at for each of those. Here the classes stand
in blocks of 512, and a block has one bitmap, a *line*, for each group of cells of each channel: the
classes that may still match an event with a value there. For three classes over two channels::

    0   price in [3, 8] and size in [0, 4]       price   cells 0 1 2 | 3 4 5 | 6 7 8 9   groups
    1   price in [0, 5]                          size    cells 0 1 2 3 | 4 5 6 7
    2   size in [5, 7]

    price   missing  ..2          size   missing  .1.         event (price 4, size 5):
            0 1 2    .12                 0 to 3   01.             price 3 4 5    012
            3 4 5    012                 4 to 7   012             size  4 to 7   012
            6 to 9   0.2                                          AND            012
                                                              programs: 0 no, 1 yes, 2 yes

An event ANDs one line of each channel; what is left is verified by its program, which is exact.
Events that lack a channel have a line of their own, and a channel that no class of a block tests
has no lines there. Blocks are things that have lines as well (``unions``), so that an event skips
those that it cannot match: the classes are ordered so that there are many (``order.py``).

    groups       the cells of each channel, grouped                       groups.py
    blocks       lines of classes, by block                               lines.py
    unions       lines of blocks, by 512 of them                          lines.py
    starts, rows   the program of each class                              matching/program.py

Whatever the expression is, its lines hold at least the events that it matches (``limits.py``).
What has no predicate in common for its alternatives (``a = 1 OR b = 2``) is ruled out by nothing
and run for every event: bits are for conjunctions.

Cost: for each event and block that is not skipped, one load of 64 bytes for each channel that the
block's classes test, some 20 ns for 20 of them; then O(candidates). Memory: at most ``memory``
bytes (96) of lines per class, a little more for blocks, and 16 for each test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s, prefixed, record_of, under
from bittern.jit import frozen
from bittern.matching.bits.groups import (
    GroupArrays,
    check_groups,
    find_lines,
    line_shares,
    make_groups,
)
from bittern.matching.bits.limits import Limits, Programs
from bittern.matching.bits.lines import (
    BLOCK,
    Lines,
    block_limits,
    check_lines,
    choose_columns,
    empty_lines,
    n_blocks,
    write_lines,
)
from bittern.matching.bits.match import BitsArrays, match_blocks, tiles, waiting_events
from bittern.matching.bits.order import class_order
from bittern.matching.checks import check_jumps, check_starts, check_tests
from bittern.matching.contract import Found, SubscriptionIndex
from bittern.matching.output import Output
from bittern.matching.program import programs
from bittern.model.classes.classes import Classes
from bittern.model.rank.encoded import EncodedEvents
from bittern.model.rank.space import RankSpace
from bittern.options import whole_number

#: Bytes of lines per class: 38 lines for each of 20 channels.
MEMORY = 96
#: Classes whose limits are held at once while lines are built: whole blocks.
_CHUNK = 256 * BLOCK


def _class_lines(programmed: Programs, counts: Int64s, columns: Int32s) -> Lines:
    """The lines of classes, whose blocks have these columns."""
    lines = empty_lines(counts, columns, programmed.n_lines)
    for first, limits in programmed.limits(_CHUNK):
        write_lines(lines, first // BLOCK, limits, programmed.n_lines)
    return lines


def _block_lines(n_lines: Int32s, limits: Limits, counts: Int64s, columns: Int32s) -> Lines:
    """The lines of blocks with these limits, where every 512 of them have these columns."""
    lines = empty_lines(counts, columns, n_lines)
    write_lines(lines, 0, limits, n_lines)
    return lines


class Bits(SubscriptionIndex):
    """Candidates by bitmaps, then verification; see the module for the layout."""

    name: ClassVar[str] = "bits"

    def __init__(
        self, arrays: BitsArrays, groups: GroupArrays, channels: Int32s, memory: int
    ) -> None:
        self._arrays = frozen(arrays)
        self._groups = frozen(groups)
        self._channels = channels  # of each slot
        self._memory = memory

    @classmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],
        rank: RankSpace,
        *,
        memory: int = MEMORY,
    ) -> tuple[Self, Int32s]:
        """Order the classes, group the cells, write the lines. O(tests x groups)."""
        starts, rows = programs(classes, np.arange(len(classes), dtype=np.int32))
        order = class_order(starts, rows, mass, rank.n_channels)
        starts, rows = programs(classes, order.astype(np.int32))
        numbers = np.empty(len(order), dtype=np.int32)
        numbers[order] = np.arange(len(order), dtype=np.int32)
        channels = np.unique(rows[:, 0])
        channels = channels[channels >= 0].astype(np.int32)
        most_lines = memory * 8  # of 64 bytes, for 512 classes
        groups = make_groups(channels, rank.arrays.bases, mass, most_lines)
        programmed = Programs(starts, rows, channels, groups)
        shares = line_shares(groups, mass)
        chosen = [
            choose_columns(limits, programmed.n_lines, shares, most_lines)
            for _, limits in programmed.limits(_CHUNK)
        ]
        none = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
        counts, columns = map(np.concatenate, zip(none, *chosen, strict=True))
        blocks = _class_lines(programmed, counts, columns)
        limits = block_limits(blocks, programmed.n_lines)
        unions = _block_lines(
            programmed.n_lines,
            limits,
            *choose_columns(limits, programmed.n_lines, shares, most_lines),
        )
        return cls(BitsArrays(blocks, unions, starts, rows), groups, channels, memory), numbers

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, Any]) -> None:
        """Also refuse a memory that is no number of bytes."""
        super().check_parameters(parameters)
        whole_number("memory", parameters.get("memory", MEMORY), 1, 1 << 20)

    def match(self, events: EncodedEvents) -> Found:
        """Candidates of all events, verified. O(events x blocks x channels + candidates)."""
        out = Output()
        candidates = np.zeros(events.n_events, dtype=np.int64)
        n_slots = len(self._channels)
        for first, last in tiles(events.n_events, n_slots, len(self._arrays.blocks.offsets) - 1):
            values = np.zeros((last - first) * n_slots, dtype=np.uint8)
            cells, offsets, rows = events.cells, events.offsets, events.rows
            find_lines(self._groups, cells, offsets, rows, first, last, n_slots, values)
            waiting = waiting_events(self._arrays, values, n_slots, last - first)
            out.state[:2] = 0, 0
            while True:
                match_blocks(
                    self._arrays,
                    events.by_event,
                    waiting,
                    values,
                    n_slots,
                    first,
                    candidates,
                    out.arrays,
                )
                if out.state[0] == len(self._arrays.blocks.offsets) - 1:
                    break
                out.make_room(BLOCK)
        n = int(out.state[2])
        return Found(out.rows[:n], out.classes[:n], candidates)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Programs, groups, and lines under ``blocks.`` and ``unions.``."""
        own = self._arrays
        out = {"starts": own.starts, "rows": own.rows, "channels": self._channels}
        out |= prefixed("groups.", self._groups)
        out |= prefixed("blocks.", own.blocks)
        out |= prefixed("unions.", own.unions)
        return out

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], parameters: Mapping[str, Any]
    ) -> Self:
        """Search these arrays in place."""
        own = BitsArrays(
            record_of(Lines, under(arrays, "blocks.")),
            record_of(Lines, under(arrays, "unions.")),
            arrays["starts"],
            arrays["rows"],
        )
        groups = record_of(GroupArrays, under(arrays, "groups."))
        return cls(own, groups, arrays["channels"], parameters["memory"])

    @property
    def parameters(self) -> dict[str, Any]:
        """The memory that lines may take."""
        return {"memory": self._memory}

    def statistics(self) -> dict[str, Any]:
        """Classes, their blocks, and how many lines these have."""
        blocks = self._arrays.blocks
        return {
            "classes": len(self._arrays.starts) - 1,
            "tests": len(self._arrays.rows),
            "blocks": len(blocks.offsets) - 1,
            "channels": len(self._channels),
            "groups": int(np.count_nonzero(self._groups.slots >= 0)),
            "columns": len(blocks.columns),
            "line_bytes": blocks.words.nbytes + self._arrays.unions.words.nbytes,
        }

    def check(self, n_channels: int, n_cells: int) -> None:
        """Programs and groups are sound, and the lines are what follows from them."""
        blocks, unions, starts, rows = self._arrays
        n_classes = len(starts) - 1
        check_starts(starts, rows, n_classes)
        check_tests(rows, n_channels, n_cells)
        check_jumps(np.diff(starts).astype(np.int64), rows)
        channels = self._channels
        assert channels.ndim == 1, "channels are not in a row"
        known = (channels >= 0) & (channels < n_channels)
        assert known.all(), "a slot is for a channel that is not there"
        assert (np.diff(channels) > 0).all(), "the channels of slots are not in order"
        counts = check_groups(self._groups, len(channels), n_cells)
        check_lines(blocks, n_classes, counts)
        check_lines(unions, n_blocks(n_classes), counts)
        programmed = Programs(starts, rows, channels, self._groups)
        again = _class_lines(programmed, np.diff(blocks.offsets), blocks.columns)
        assert np.array_equal(again.words, blocks.words), "lines are not what programs say"
        limits = block_limits(blocks, programmed.n_lines)
        again = _block_lines(programmed.n_lines, limits, np.diff(unions.offsets), unions.columns)
        assert np.array_equal(again.words, unions.words), "lines of blocks are not what blocks hold"
