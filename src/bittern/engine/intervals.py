"""Intervals over real values: finds those that contain a number, a time or a string.

``Intervals`` puts any structure of this package under values of any ordered kind (``layer``): the
structure only sees cells. This adds 12 bytes per interval and some 20 per distinct end, and two
look-ups per value: of its place, and of the place's cell.

An interval that is inserted later goes straight into the structure if its ends are known cuts. One
with a new end would renumber all cells: it is kept *aside*, in a small layer of its own that is
made when it is next searched. Once more than 4 sqrt(n) are aside and searched, or n / 2 in any
case, the next one with a new end builds all of them into one layer. So a change costs what it costs
in the structure. If its ends are new, O(sqrt n) amortised is added if every change is followed by a
search, and O(1) amortised if few are.

A layer keeps what it was built from, and the changes of its structure since. After n / 2 such
changes everything is built again, O(1) amortised, which frees the room of deleted intervals. So it
is when the entries of the structure have doubled, unless its parameter was given: what was chosen
for short intervals gives many entries to long ones, and a build that has seen them chooses better.
If that does not fit into the ``memory`` of "auto", the layer stays as it is and still accepts known
ends and deletions; new ends are refused.
"""

from __future__ import annotations

import os
from collections import Counter
from math import isqrt
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bittern.arrays import Int32s, Int64s, occupied
from bittern.engine.snapshot.folder import read_snapshot, write_snapshot
from bittern.errors import OptionError, SnapshotError, brief
from bittern.jit import i4r, i4w, i8r, kernel, void
from bittern.model.numbers import exact
from bittern.model.rank.space import TIME
from bittern.notebooks import facts
from bittern.stabbing.axis import Axis
from bittern.stabbing.cei import CEI
from bittern.stabbing.contract import StabbingIndex, as_int32, as_integer
from bittern.stabbing.layer import (
    Cells,
    Interval,
    Layer,
    check_structure,
    columns,
    maker,
    refuse_order,
    show,
    spans,
)
from bittern.stabbing.registry import AUTO
from bittern.stabbing.values import Values, as_ends, kind_name, read

CLOSED = {
    "both": (True, True),
    "left": (True, False),
    "right": (False, True),
    "neither": (False, False),
}
"""Whether the low and the high end belong to an interval; the words are those of pandas."""

SAVED = "intervals"
"""What a snapshot says that it is of."""

_SOME = 64
_ROOTS = 4
_LAST_ID = 2**31 - 1


@kernel(void, i8r, i4r, i8r, i4r, i4w)
def _interleave(offsets_a: Any, ids_a: Any, offsets_b: Any, ids_b: Any, ids: Any) -> None:
    """The ids of each value from a, then those from b."""
    at = 0
    for i in range(len(offsets_a) - 1):
        for k in range(offsets_a[i], offsets_a[i + 1]):
            ids[at] = ids_a[k]
            at += 1
        for k in range(offsets_b[i], offsets_b[i + 1]):
            ids[at] = ids_b[k]
            at += 1


class Intervals:
    """Intervals with ids, searched by value. Build one with ``Intervals.build``.

    An id is reported once for every interval of it that contains the value, in no particular
    order. Searching may go on in many threads at once, but not while another thread changes it.

    >>> prices = Intervals.build([10, 15, None], [20, 20, 12.5], closed="left")
    >>> prices.stab(12).tolist()
    [0, 2]
    >>> offsets, ids = prices.stab_batch([5, 15.0, 20])
    >>> offsets.tolist()
    [0, 1, 3, 3]
    """

    def __init__(
        self, layer: Layer, kind: int | None, scale: int, closed: str, structure: tuple[str, Any]
    ) -> None:
        self.closed = closed
        self._layer = layer
        self._kind, self._scale = kind, scale
        self._structure = structure
        self._aside: Counter[Interval] = Counter()
        self._n_aside = 0
        self._aside_layer: Layer | None = None
        # Since the layer was built, what its structure got and lost.
        self._added: Counter[Cells] = Counter()
        self._removed: Counter[Cells] = Counter()
        self._changes = 0
        self._size = len(layer.ids)

    @classmethod
    def build(
        cls,
        lows: Any,
        highs: Any,
        ids: ArrayLike | None = None,
        *,
        closed: str = "both",
        structure: str = "cei",
        **parameters: Any,
    ) -> Self:
        """Build from n intervals between ``lows[i]`` and ``highs[i]``: O(n log n).

        Ends are NumPy or Arrow arrays, series of pandas or polars, or lists: numbers (any mix of
        integers, floats and decimals), times, or strings. ``None``, NULL in any other form, and an
        infinity that points outward mean that there is no end on that side. Such an interval also
        contains infinities, and one without a high end contains NaN, which is above every number.
        ``closed`` tells which ends belong to an interval: "both", "left", "right" or "neither".
        ``ids`` are from 0 to 2**31 - 1 and may repeat; the default is 0 .. n-1.

        ``structure`` is a name in ``bittern.stabbing.registry``, with its own ``parameters``, or
        "auto" to choose one, of at most ``memory`` bytes if that is given.
        """
        left, right = _closed(closed)
        check_structure(structure, parameters)
        low, high = read(lows, "lows"), read(highs, "highs")
        if len(low.data) != len(high.data):
            raise OptionError(
                f"there are {len(low.data)} lows and {len(high.data)} highs: give one of each"
            )
        kind = high.kind if low.kind is None else low.kind
        if high.kind not in (None, kind):
            raise OptionError(f"lows are {kind_name(kind)} and highs are {kind_name(high.kind)}")
        scale = max(0, low.scale, high.scale) if kind == TIME else 0
        low, high = as_ends(low, low=True, scale=scale), as_ends(high, low=False, scale=scale)
        numbers = _ids(ids, len(low.data))
        axis = Axis.build([low, high])
        placed = spans(axis, low, high, np.bool_(left), np.bool_(right), numbers)
        layer = Layer.build(axis, placed, maker(structure, parameters))
        return cls(layer, kind, scale, closed, (structure, parameters))

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<bittern.Intervals: {len(self):,} intervals of {kind_name(self._kind)}>"

    def _repr_html_(self) -> str:
        """What it consists of, for notebooks."""
        return facts(repr(self).strip("<>"), self.statistics())

    # -- searching -----------------------------------------------------------------------------

    def stab(self, value: Any) -> Int32s:
        """Ids of the intervals that contain one value: on a short way if it is of a usual type."""
        ids = self._layer.stab_one(value)
        if ids is None:
            return self.stab_batch([value])[1]
        if not self._aside:
            return ids
        if self._aside_layer is None:
            self._aside_layer = self._made_aside()
        more = self._aside_layer.stab_one(value)
        return self.stab_batch([value])[1] if more is None else np.concatenate((ids, more))

    def stab_batch(self, values: Any) -> tuple[Int64s, Int32s]:
        """Ids per value, as offsets and one flat array: O(n + ids), fastest on sorted values.

        The intervals that contain ``values[i]`` are ``ids[offsets[i]:offsets[i + 1]]``. Values
        come in the same forms as ends. NULL is in no interval, NaN is above every number, and a
        value outside of all ends is not an error. OptionError if they are of another kind.
        """
        column = self._read(values, "values")
        offsets, ids = self._layer.stab(column)
        if not self._aside:
            return offsets, ids
        if self._aside_layer is None:
            self._aside_layer = self._made_aside()
        more_offsets, more_ids = self._aside_layer.stab(column)
        both = np.empty(len(ids) + len(more_ids), np.int32)
        _interleave(offsets, ids, more_offsets, more_ids, both)
        return offsets + more_offsets, both

    def _read(self, values: Any, what: str) -> Values:
        column = read(values, what)
        if self._kind is not None and column.kind not in (None, self._kind):
            raise OptionError(
                f"{what} are {kind_name(column.kind)}, but the intervals are of "
                f"{kind_name(self._kind)}"
            )
        return column

    def _made_aside(self) -> Layer:
        low, high, *more = columns(list(self._aside.elements()), self._kind, self._scale)
        axis = Axis.build([low, high])
        return Layer.build(axis, spans(axis, low, high, *more), maker(CEI.name, {}))

    # -- changes -------------------------------------------------------------------------------

    def insert(self, low: Any, high: Any, id: int, *, closed: str | None = None) -> None:  # noqa: A002
        """Add one interval, closed like the others by default; the module states the cost.

        Times count in the unit that the index was built in (nanoseconds if an end was, else
        microseconds); an end that is finer is refused. A refused interval changes nothing.
        """
        interval, ends = self._one(low, high, id, closed)
        cells = self._layer.find(*ends, interval)
        if cells is None and self._is_due():
            self._fold()
            cells = self._layer.find(*ends, interval)
        if cells is not None:
            self._layer.index.insert(*cells)  # first of all: what it refuses changes nothing
        if self._kind is None:
            kinds = {end.kind for end in ends} - {None}
            self._kind, self._scale = next(iter(kinds), None), self._scale_of(ends)
        self._size += 1
        if cells is None:
            self._aside[interval] += 1
            self._n_aside += 1
            self._aside_layer = None
        else:
            if not _less(self._removed, cells):
                self._added[cells] += 1
            self._changed()

    def delete(self, low: Any, high: Any, id: int, *, closed: str | None = None) -> None:  # noqa: A002
        """Remove one interval, as it was inserted; OptionError, and no change, if it is not there.

        Equal ends may be written differently (2 and 2.0). O(log n) plus the structure's cost; the
        first deletion after a build sorts the intervals.
        """
        interval, ends = self._one(low, high, id, closed)
        if _less(self._aside, interval):
            self._n_aside -= 1
            self._aside_layer = None
            self._size -= 1
            return
        cells = self._layer.find(*ends, interval)
        if cells is None or not self._holds(cells):
            raise OptionError(
                f"interval {show(interval, ends[0].kind or ends[1].kind, self._scale_of(ends))} "
                "is not in the index: delete exactly what was inserted"
            )
        self._layer.index.delete(*cells)
        if not _less(self._added, cells):
            self._removed[cells] += 1
        self._size -= 1
        self._changed()

    def _one(
        self,
        low: Any,
        high: Any,
        id: int,  # noqa: A002
        closed: str | None,
    ) -> tuple[Interval, tuple[Values, Values]]:
        """Read one interval; OptionError if it is not valid."""
        left, right = _closed(self.closed if closed is None else closed)
        number = _id(id)
        ends = self._read([low], "low ends"), self._read([high], "high ends")
        kinds = {end.kind for end in ends} - {None}
        if len(kinds) > 1:
            raise OptionError("the low end and the high end are of different kinds")
        scale = self._scale_of(ends)
        ends = (
            as_ends(ends[0], low=True, scale=scale, alone=True),
            as_ends(ends[1], low=False, scale=scale, alone=True),
        )
        first, last = ends[0].scalar(0), ends[1].scalar(0)
        interval = Interval(first, last, left or first is None, right or last is None, number)
        if first is not None and last is not None:
            a, b = _order(first), _order(last)
            if a > b or (a == b and not (left and right)):
                refuse_order(interval, next(iter(kinds)), scale, "the interval")
        return interval, ends

    def _scale_of(self, ends: tuple[Values, Values]) -> int:
        """The unit of the index; where it has none yet, that of its first ends."""
        if self._kind is not None:
            return self._scale
        return max([0, *(end.scale for end in ends if end.kind == TIME)])

    def _holds(self, cells: Cells) -> bool:
        begin, end = self._layer.rows(cells)
        return end - begin + self._added[cells] > self._removed[cells]

    def _is_due(self) -> bool:
        """Whether to build what is aside in before there is more of it; see the module."""
        n, aside = len(self._layer.ids), self._n_aside
        searched = self._aside_layer is not None and aside > _SOME + _ROOTS * isqrt(n)
        return searched or aside > _SOME + n // 2

    def _changed(self) -> None:
        """Count a change of the structure, and build all anew after many."""
        self._changes += 1
        layer = self._layer
        grown = self._chooses and layer.index.filed > layer.most_filed
        if grown or self._changes > _SOME + len(layer.ids) // 2:
            try:
                self._fold()
            except OptionError:  # the change itself was possible: try again after as many
                self._changes = 0
                layer.most_filed = 2 * max(layer.most_filed, layer.index.filed)

    @property
    def _chooses(self) -> bool:
        """Whether a build chooses by its intervals; parameters but ``memory`` leave no choice."""
        name, parameters = self._structure
        return name == AUTO or not parameters

    def _fold(self) -> None:
        """Build one layer of everything; OptionError, and no change, if it does not fit."""
        held = self._layer.intervals(self._added, self._removed)
        others = list(self._aside.elements())
        axis, placed = self._layer.moved(held, others, kind=self._kind, scale=self._scale)
        self._layer = Layer.build(axis, placed, maker(*self._structure))
        self._aside_layer = None
        self._n_aside = self._changes = 0
        for changes in (self._aside, self._added, self._removed):
            changes.clear()

    # -- on disk -------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write a snapshot, crash-safely; returns its id. Changes are built in first: O(size)."""
        if self._aside or self._added or self._removed:
            self._fold()
        name, parameters = self._structure
        arrays, meta = self._layer.parts()
        chosen = {key: None if n is None else as_integer(n) for key, n in parameters.items()}
        meta |= {"kind": SAVED, "closed": self.closed, "structure": name, "parameters": chosen}
        return write_snapshot(path, arrays, meta | {"of": self._kind, "scale": self._scale})

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = False) -> Self:
        """Map saved intervals, in milliseconds whatever their number; ``verify`` reads all of it.

        What changes them afterwards copies what it changes; the snapshot stays as it is.
        """
        snapshot = read_snapshot(path, verify=verify)
        meta = snapshot.meta
        if meta.get("kind") != SAVED:
            raise SnapshotError(f"{os.fspath(path)} is a snapshot, but not one of Intervals")
        try:
            layer = Layer.of_parts(snapshot.arrays, meta)
            structure = meta["structure"], meta["parameters"]
            return cls(layer, meta["of"], meta["scale"], meta["closed"], structure)
        except (KeyError, ValueError, TypeError, IndexError) as wrong:
            raise SnapshotError(
                f"{os.fspath(path)} has intervals that this release cannot read: {wrong!r}"
            ) from wrong

    # -- looking inside ------------------------------------------------------------------------

    @property
    def structure(self) -> StabbingIndex:
        """The structure under all intervals that are not aside; it holds cells, not values."""
        return self._layer.index

    @property
    def cells(self) -> tuple[Int32s, Int32s, int]:
        """Lows, highs and domain that the structure was built from, as another one would get."""
        return self._layer.lows, self._layer.highs, self._layer.n_cells

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; changes since the last build, kept as objects, not included."""
        return occupied(self._layer, self._aside_layer)

    def statistics(self) -> dict[str, Any]:
        """Figures that explain size and speed, the structure's own among them."""
        return {
            "intervals": len(self),
            "aside": self._n_aside,
            "kind": kind_name(self._kind),
            "ends": len(self._layer.axis.constants),
            "cells": self._layer.n_cells,
            "bytes": self.nbytes,
            "structure": {"name": self.structure.name, **self.structure.statistics()},
        }

    def check(self) -> None:
        """Verify every invariant; AssertionError says which one is broken. O(size)."""
        held = self._layer.intervals(self._added, self._removed)
        self._layer.check(held)
        assert self._aside.total() == self._n_aside, "the number of intervals aside is off"
        assert len(held[0]) + self._n_aside == self._size, "the number of intervals is off"
        if self._aside_layer is not None:
            layer = self._aside_layer
            layer.check((layer.lows, layer.highs, layer.ids))


def _closed(closed: str) -> tuple[bool, bool]:
    try:
        return CLOSED[closed]
    except (KeyError, TypeError):
        raise OptionError(f"closed is {brief(closed)}: choose from {', '.join(CLOSED)}") from None


def _id(number: Any) -> int:
    if isinstance(number, bool):
        raise OptionError(f"{number} is not a whole number: ids must be whole numbers")
    whole = as_integer(number, "id")
    if not 0 <= whole <= _LAST_ID:
        raise OptionError(f"id {brief(whole)} is not in 0 to {_LAST_ID}")
    return whole


def _ids(ids: ArrayLike | None, n: int) -> Int32s:
    if ids is None:
        return np.arange(n, dtype=np.int32)
    if np.ma.is_masked(ids):
        raise OptionError("some ids are masked: give one per interval")
    numbers = as_int32(ids, "ids")
    if len(numbers) != n:
        raise OptionError(f"there are {n} intervals and {len(numbers)} ids: give one of each")
    if n and numbers.min() < 0:
        row = int(np.argmax(numbers < 0))
        raise OptionError(f"id {numbers[row]} of interval {row} is negative: ids start at 0")
    return numbers


def _order(end: Any) -> Any:
    return end if isinstance(end, bytes) else exact(end)


def _less(counts: Counter[Any], key: Any) -> bool:
    """Count one less, and say whether there was one."""
    if key not in counts:
        return False
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
    return True
