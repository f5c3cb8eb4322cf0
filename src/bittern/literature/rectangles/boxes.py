"""Classes as boxes: one range of cells for each channel that a clause asks for.

``(a <= 4 AND b IN (3, 7)) OR c > 5`` is two boxes::

    owners     0 0               the class of each box
    boxes      0 0 1             for each side its box,
    channels   a b c             its channel,
    lows       0 3 6             and the cells where it begins
    highs      4 7 9             and ends: the range around all values of a set

Cost: O(predicates); 4 bytes for each box and 16 for each side, beside the programs of classes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s, occupied, prefixed, record_of, under
from bittern.jit import frozen, i4r, i4r2, i8w, inline, read_only, tuple_type
from bittern.literature.clauses.normal import normal_forms
from bittern.matching.always import Always
from bittern.matching.checks import check_channels, check_jumps, check_starts, check_tests
from bittern.matching.contract import Found, SubscriptionIndex, check_size
from bittern.matching.output import Output, OutputArrays, first_time
from bittern.matching.program import accepts, programs
from bittern.model.classes.classes import Classes
from bittern.model.rank.encoded import EncodedEvents
from bittern.model.rank.space import RankSpace
from bittern.options import whole_number


class Boxes(NamedTuple):
    """Boxes and their sides, as the module draws them."""

    owners: Int32s
    boxes: Int32s
    channels: Int32s
    lows: Int32s
    highs: Int32s


class Verifying(NamedTuple):
    """What is needed to report a box: its class, the class's program, and what was reported."""

    owners: Int32s
    starts: Int32s
    rows: Int32s
    stamps: Int64s


VERIFYING = tuple_type(Verifying, i4r, i4r, i4r2, i8w)


def boxes_of(classes: Classes) -> tuple[Boxes, Int32s]:
    """The boxes of all classes, and the classes that no box tells apart: always candidates."""
    dnf, _, always = normal_forms(classes, cnf=False)
    first, last = dnf.interval_starts[:-1], dnf.interval_starts[1:] - 1
    asks = np.flatnonzero(dnf.lows[first] >= 0)  # the others ask that something is missing
    box_of = np.repeat(np.arange(len(dnf), dtype=np.int32), np.diff(dnf.starts))
    sides = box_of[asks], dnf.channels[asks], dnf.lows[first][asks], dnf.highs[last][asks]
    check_size("sides of boxes", len(asks))
    return frozen(Boxes(dnf.owners, *sides)), always


@inline
def report(events: Any, verifying: Any, out: Any, event: Any, box: Any, n: Any) -> Any:
    """Report the class of a box once, if it accepts the event; returns the number of matches."""
    matrix, width, table_starts, table, entries = events
    c = np.int64(verifying.owners[box])
    if first_time(verifying.stamps, c, event):
        start, stop = np.int64(verifying.starts[c]), np.int64(verifying.starts[c + 1])
        rows = verifying.rows
        if accepts(matrix, width, table_starts, table, entries, event, rows, start, stop):
            out.rows[n] = event
            out.classes[n] = c
            n += 1
    return n


@inline
def stops(out: Any, event: Any, needed: Any, n: Any) -> Any:
    """Whether a kernel has to stop before this event, for lack of room for so many matches."""
    lacks = n + needed > len(out.rows)
    if lacks:
        out.state[0], out.state[1], out.state[2] = event, needed, n
    return lacks


class BoxIndex(SubscriptionIndex):
    """A strategy that finds boxes, with what the three have alike."""

    #: What it is built with, numbers from 1: by name the default, and the most.
    numbers: ClassVar[Mapping[str, tuple[int, int]]]
    #: The structure: a NamedTuple of arrays.
    record: ClassVar[type[Any]]

    def __init__(
        self,
        bases: Int32s,
        boxes: Boxes,
        programs_: tuple[Int32s, Int32s],
        always: Always,
        own: Any,
        parameters: Mapping[str, int],
    ) -> None:
        self._bases, self._boxes = bases, frozen(boxes)
        self._programs = read_only(programs_[0]), read_only(programs_[1])
        self._always, self._own, self._parameters = always, frozen(own), dict(parameters)

    @classmethod
    def _built(
        cls, classes: Classes, rank: RankSpace, parameters: Mapping[str, int]
    ) -> tuple[Self, Int32s]:
        boxes, always = boxes_of(classes)
        numbers = np.arange(len(classes), dtype=np.int32)
        bases = rank.arrays.bases
        own = cls._made(bases, boxes, **parameters)
        some = programs(classes, numbers), Always.of(classes, always, always)
        return cls(bases, boxes, *some, own, parameters), numbers

    @staticmethod
    @abstractmethod
    def _made(bases: Int32s, boxes: Boxes, **parameters: int) -> Any:
        """The structure, which follows from the boxes."""

    @abstractmethod
    def _call(
        self, events: EncodedEvents, verifying: Verifying, candidates: Int64s, out: OutputArrays
    ) -> None:
        """Call the kernel, which matches events from ``state[0]`` on until it ``stops``."""

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, Any]) -> None:
        """Also refuse what is no number from 1 to the most."""
        super().check_parameters(parameters)
        for name, (default, most) in cls.numbers.items():
            whole_number(name, parameters.get(name, default), 1, most)

    def match(self, events: EncodedEvents) -> Found:
        """Find boxes for all events, and verify the classes that they belong to."""
        out, candidates = Output(), np.zeros(events.n_events, dtype=np.int64)
        starts, rows = self._programs
        stamps = np.zeros(len(starts) - 1, dtype=np.int64)
        verifying = Verifying(self._boxes.owners, starts, rows, stamps)
        while True:
            self._call(events, verifying, candidates, out.arrays)
            if out.state[0] == events.n_events:
                break
            out.make_room(int(out.state[1]))
        self._always.match(events, out)
        n = int(out.state[2])
        return Found(out.rows[:n], out.classes[:n], candidates + len(self._always.classes))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Programs, boxes, always-candidates, and the structure under ``own.``."""
        starts, rows = self._programs
        mine = {"bases": self._bases, "starts": starts, "rows": rows}
        boxes, own = prefixed("boxes.", self._boxes), prefixed("own.", self._own)
        return mine | boxes | own | self._always.arrays()

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], parameters: Mapping[str, Any]
    ) -> Self:
        """Search these arrays in place."""
        return cls(
            arrays["bases"],
            record_of(Boxes, under(arrays, "boxes.")),
            (arrays["starts"], arrays["rows"]),
            Always.from_arrays(arrays),
            record_of(cls.record, under(arrays, "own.")),
            parameters,
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """What it was built with."""
        return dict(self._parameters)

    def statistics(self) -> dict[str, Any]:
        """Classes, their boxes and sides, and what the structure takes beside them."""
        return {
            "classes": len(self._programs[0]) - 1,
            "boxes": len(self._boxes.owners),
            "sides": len(self._boxes.boxes),
            "always": len(self._always.classes),
            "structure_bytes": occupied(self._own),
        }

    def check(self, n_channels: int, n_cells: int) -> None:
        """Programs and boxes are sound, and the structure is what follows from the boxes."""
        starts, rows = self._programs
        n_classes = len(starts) - 1
        check_channels(self._bases, n_channels, n_cells)
        check_starts(starts, rows, n_classes)
        check_tests(rows, n_channels, n_cells)
        check_jumps(np.diff(starts).astype(np.int64), rows)
        self._always.check(n_classes, n_channels, n_cells)
        self._check_boxes(n_classes, n_channels)
        again = frozen(self._made(self._bases, self._boxes, **self._parameters))
        for name, mine, right in zip(again._fields, self._own, again, strict=True):
            same = mine.dtype == right.dtype and np.array_equal(mine, right)
            assert same, f"{name} is not what follows from the boxes"

    def _check_boxes(self, n_classes: int, n_channels: int) -> None:
        owners, boxes, channels, lows, highs = self._boxes
        assert all(each.dtype == np.int32 for each in self._boxes), "boxes are not of 32 bits"
        assert ((owners >= 0) & (owners < n_classes)).all(), "a box has no class"
        assert len({each.shape for each in (boxes, channels, lows, highs)}) == 1, "sides differ"
        assert boxes.ndim == 1, "sides are not in a row"
        assert (np.diff(boxes) >= 0).all(), "sides are not in the order of their boxes"
        assert np.array_equal(np.unique(boxes), np.arange(len(owners))), "a box has no sides"
        assert ((channels >= 0) & (channels < n_channels)).all(), "a side has no channel"
        inside = (lows >= self._bases[channels]) & (highs < self._bases[channels + 1])
        assert (inside & (lows <= highs)).all(), "a side leaves its channel"
        pairs = boxes.astype(np.int64) * max(1, n_channels) + channels
        assert len(np.unique(pairs)) == len(pairs), "a box has two sides in one channel"
