"""A layer: intervals of real values as cells on an axis, under one structure.

The distinct ends cut the line into places (``axis``), and places that no interval tells apart are
one cell::

    [10, 20)  id 0       place   (..10) 10 (10..15) 15 (15..20) 20 (20..)
    [15, 20)  id 1       cell       0    1    1      2     2     3    3

so that half-open intervals need one cell per end, as in the papers, and closed ones up to two. Cuts
say the same as ends: an interval that begins with a cell begins at the cut before it, which is an
end and whether it is inside. So cells, 4 bytes per place, lead back to the intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bittern.arrays import Int32s, Int64s, prefixed, under
from bittern.errors import OptionError, brief
from bittern.model.rank.space import STRING, TIME
from bittern.stabbing.axis import Axis
from bittern.stabbing.contract import StabbingIndex, unfit
from bittern.stabbing.registry import AUTO, build_chosen, checked_memory
from bittern.stabbing.registry import structure as structure_named
from bittern.stabbing.single import LONG_WAY, SingleValues
from bittern.stabbing.values import NANOSECONDS, Scalar, Values, of_scalars

Maker: TypeAlias = Callable[[Int32s, Int32s, Int32s, int], StabbingIndex]
"""Builds a structure from lows, highs, ids and domain."""

_GROWTH = 2

Cells: TypeAlias = tuple[int, int, int]
"""An interval in a layer: low cell, high cell, id."""


class Interval(NamedTuple):
    """One interval with canonical ends; a side without an end counts as closed."""

    low: Scalar | None
    high: Scalar | None
    left: bool
    right: bool
    id: int


class Spans(NamedTuple):
    """Intervals as closed intervals of places."""

    firsts: Int32s
    lasts: Int32s
    ids: Int32s

    def joined(self, more: Spans) -> Spans:
        """These, then those."""
        return Spans(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))


class Layer:
    """Intervals on an axis; it keeps the intervals that it was built from."""

    def __init__(
        self,
        axis: Axis,
        cells: Int32s,
        intervals: tuple[Int32s, Int32s, Int32s],
        index: StabbingIndex,
        *,
        is_sorted: bool = False,
    ) -> None:
        self.axis, self.cells, self.index = axis, cells, index
        self.lows, self.highs, self.ids = intervals
        #: Beyond it, a structure that chooses is due to be built anew: cells are lists to build.
        self.most_filed = _GROWTH * index.filed + self.n_cells
        self._sorted = is_sorted
        self._single: SingleValues | None = None

    @classmethod
    def build(cls, axis: Axis, spans: Spans, make: Maker) -> Self:
        """Give every place its cell and build the structure over the cells: O(m + n) and its."""
        begins = np.zeros(axis.n_places + 1, np.bool_)
        begins[spans.firsts] = True
        begins[spans.lasts + 1] = True
        begins[0] = False
        cells = np.cumsum(begins[:-1], dtype=np.int32)
        intervals = cells[spans.firsts], cells[spans.lasts], spans.ids
        return cls(axis, cells, intervals, make(*intervals, int(cells[-1]) + 1))

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays by name and a few plain values, of which ``of_parts`` makes the layer again."""
        arrays = prefixed("axis.", self.axis.arrays()) | prefixed("index.", self.index.arrays())
        arrays |= {name: getattr(self, name) for name in ("cells", "lows", "highs", "ids")}
        axis = {"axis_kind": self.axis.kind, "axis_scale": self.axis.scale}
        return arrays, {**axis, "index": self.index.name, "sorted": self._sorted}

    @classmethod
    def of_parts(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Self:
        """The layer that has these parts, which are not copied; SnapshotError if sizes disagree."""
        axis = Axis.from_arrays(under(arrays, "axis."), meta["axis_kind"], meta["axis_scale"])
        index = structure_named(meta["index"]).from_arrays(under(arrays, "index."))
        cells, lows, highs, ids = (arrays[name] for name in ("cells", "lows", "highs", "ids"))
        if not (
            len(cells) == axis.n_places
            and len(lows) == len(highs) == len(ids)
            and all(each.dtype == np.int32 for each in (cells, lows, highs, ids))
            and index.domain == int(cells[-1]) + 1
        ):
            raise unfit("intervals")
        return cls(axis, cells, (lows, highs, ids), index, is_sorted=meta["sorted"])

    @property
    def n_cells(self) -> int:
        """The domain of the structure."""
        return int(self.cells[-1]) + 1

    def stab(self, values: Values) -> tuple[Int64s, Int32s]:
        """Offsets and ids of values of the axis's kind."""
        places = self.axis.places(values)
        cells = self.cells[places]
        if len(values.valid):
            cells[places < 0] = -1
        return self.index.stab_batch(cells)

    def stab_one(self, value: Any) -> Int32s | None:
        """Ids of one value; None if it goes no short way (``single``)."""
        if self._single is None:
            self._single = SingleValues(self.axis, self.cells)
        cell = self._single.cell(value)
        return None if cell == LONG_WAY else self.index.stab(cell)

    def find(self, low: Values, high: Values, interval: Interval) -> Cells | None:
        """The cells of one interval; None if no cell begins where it does, or none ends there."""
        first, last = int(self.axis.places(low)[0]), int(self.axis.places(high)[0])
        if (first >= 0 and not first & 1) or (last >= 0 and not last & 1):
            return None
        first = 0 if first < 0 else first + (not interval.left)
        last = self.axis.n_places - 1 if last < 0 else last - (not interval.right)
        cells = self.cells
        if (first > 0 and cells[first - 1] == cells[first]) or (
            last + 1 < len(cells) and cells[last + 1] == cells[last]
        ):
            return None
        return int(cells[first]), int(cells[last]), interval.id

    def rows(self, wanted: Cells) -> tuple[int, int]:
        """The range of rows that hold exactly this interval: O(log n) after sorting once."""
        if not self._sorted:
            order = np.lexsort((self.ids, self.highs, self.lows))
            self.lows, self.highs = self.lows[order], self.highs[order]
            self.ids = self.ids[order]
            self._sorted = True
        begin, end = 0, len(self.ids)
        for column, number in zip((self.lows, self.highs, self.ids), wanted, strict=True):
            part = column[begin:end]
            end = begin + int(part.searchsorted(np.int32(number), "right"))
            begin += int(part.searchsorted(np.int32(number), "left"))
        return begin, end

    def intervals(self, added: Counter[Cells], removed: Counter[Cells]) -> tuple[Int32s, ...]:
        """Lows, highs and ids in cells, with what came and went since the layer was built."""
        kept = np.ones(len(self.ids), np.bool_)
        for wanted, times in removed.items():
            begin, _ = self.rows(wanted)
            kept[begin : begin + times] = False
        more = np.array(list(added.elements()), np.int32).reshape(-1, 3).T
        own = (self.lows, self.highs, self.ids)
        return tuple(np.concatenate((a[kept], b)) for a, b in zip(own, more, strict=True))

    def moved(
        self, intervals: tuple[Int32s, ...], others: list[Interval], *, kind: int | None, scale: int
    ) -> tuple[Axis, Spans]:
        """Intervals of this layer and others on a new axis, which knows the ends in use only."""
        lows, highs, ids = intervals
        begins = np.flatnonzero(np.diff(self.cells, prepend=-1, append=self.n_cells))
        firsts, lasts = begins[lows], begins[highs + 1] - 1
        # Place 2i + 1 is constant i; one that begins at 2i + 2, or ends at 2i, leaves it out.
        low_ends, high_ends = (firsts - 1) >> 1, lasts >> 1
        unbounded = lasts == self.axis.n_places - 1
        used = np.zeros(len(self.axis.constants) + 1, np.bool_)
        used[low_ends[firsts > 0]] = True
        used[high_ends[~unbounded]] = True
        kept = np.flatnonzero(used[:-1])
        ends = self.axis.ends(kept)
        low, high, *others_sides = columns(others, kind, scale)
        axis = Axis.build([ends, low, high])
        place = np.zeros(len(used), np.int32)
        place[kept] = axis.places(ends)
        own = Spans(
            np.where(firsts > 0, place[low_ends] + (firsts & 1 == 0), 0).astype(np.int32),
            np.where(unbounded, axis.n_places - 1, place[high_ends] - (lasts & 1 == 0)).astype(
                np.int32
            ),
            ids,
        )
        return axis, own.joined(spans(axis, low, high, *others_sides))

    def check(self, intervals: tuple[Int32s, ...]) -> None:
        """Verify axis, cells and structure, and that the structure holds these intervals."""
        self.axis.check()
        assert len(self.cells) == self.axis.n_places, "there is not one cell per place"
        assert self.cells[0] == 0, "cells do not begin at 0"
        assert np.isin(np.diff(self.cells), (0, 1)).all(), "cells do not ascend one by one"
        self.index.check()
        assert self.index.domain == self.n_cells, "the structure has another domain"
        lows, highs, ids = intervals
        covering = np.zeros(self.n_cells + 1, np.int64)
        np.add.at(covering, lows, 1)
        np.subtract.at(covering, highs + 1, 1)
        found = np.diff(self.index.locate_batch(np.arange(self.n_cells)).offsets)
        assert np.array_equal(found, np.cumsum(covering[:-1])), "a cell finds too many or too few"
        assert np.array_equal(self.index.ids(), np.unique(ids)), "the structure has other ids"


def columns(intervals: list[Interval], kind: int | None, scale: int) -> tuple[Any, ...]:
    """Intervals one by one as lows, highs, which of these are inside, and ids: see ``spans``."""
    low, high = (of_scalars(kind, [each[side] for each in intervals], scale) for side in (0, 1))
    left, right = (np.array([each[side] for each in intervals], np.bool_) for side in (2, 3))
    return low, high, left, right, np.array([each.id for each in intervals], np.int32)


def spans(
    axis: Axis,
    lows: Values,
    highs: Values,
    left: NDArray[np.bool_] | np.bool_,
    right: NDArray[np.bool_] | np.bool_,
    ids: Int32s,
) -> Spans:
    """The places of intervals, the low end inside if ``left``; OptionError names a wrong row."""
    firsts, lasts = axis.places(lows), axis.places(highs)
    bounded = lows.is_valid & highs.is_valid
    wrong = bounded & ((firsts > lasts) | ((firsts == lasts) & ~(left & right)))
    if wrong.any():
        row = int(np.argmax(wrong))
        inside_low, inside_high = (
            bool(np.broadcast_to(side, len(ids))[row]) for side in (left, right)
        )
        shown = Interval(
            lows.scalar(row), highs.scalar(row), inside_low, inside_high, int(ids[row])
        )
        refuse_order(shown, axis.kind, axis.scale, f"interval {row}")
    return Spans(
        np.where(lows.is_valid, firsts + ~left, 0).astype(np.int32),
        np.where(highs.is_valid, lasts - ~right, axis.n_places - 1).astype(np.int32),
        ids,
    )


def refuse_order(interval: Interval, kind: int | None, scale: int, what: str) -> None:
    """Raise the OptionError of an interval whose low end is not below its high end."""
    shown = show(interval, kind, scale)
    if interval.low == interval.high:
        raise OptionError(f"{what}, {shown}, is empty: a single value needs both ends closed")
    raise OptionError(f"{what}, {shown}, is reversed: low must be <= high")


def show(interval: Interval, kind: int | None, scale: int) -> str:
    """An interval as messages write it."""

    def text(end: Any) -> str:
        if kind == STRING:
            return brief(end.decode())
        if kind != TIME:
            return brief(end)
        return str(np.datetime64(end, "ns") if scale == NANOSECONDS else np.datetime64(end, "us"))

    low = "(-inf" if interval.low is None else f"{'(['[interval.left]}{text(interval.low)}"
    high = "inf)" if interval.high is None else f"{text(interval.high)}{')]'[interval.right]}"
    return f"{low}, {high} with id {interval.id}"


def check_structure(name: str, parameters: dict[str, Any]) -> None:
    """Refuse an unknown structure, and a parameter that it does not have."""
    memory = parameters.get("memory")
    if name != AUTO:
        if memory is not None:
            raise OptionError(f'memory is for structure="{AUTO}", not for {name!r}')
        structure_named(name).check_parameters(parameters)
        if "cuts" in parameters:
            raise OptionError(
                "cuts separate attributes, but these values are of one attribute: leave cuts out"
            )
        return
    for each in parameters:
        if each != "memory":
            raise OptionError(f'structure="{AUTO}" has no parameter {each!r}: it has only memory')
    checked_memory(memory, 0)


def maker(name: str, parameters: dict[str, Any]) -> Maker:
    """A function that builds the structure of this name, or the one chosen for the intervals."""

    def make(lows: Int32s, highs: Int32s, ids: Int32s, domain: int) -> StabbingIndex:
        if name == AUTO:
            return build_chosen(lows, highs, ids, domain, **parameters)
        return structure_named(name).build(lows, highs, ids, domain=domain, **parameters)

    return make
