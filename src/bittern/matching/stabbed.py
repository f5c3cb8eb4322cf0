"""The choice of a stabbing index, for the strategies that look up cells in one.

They trust it to find exactly the intervals that they filed, under their numbers: an index that
finds others would lead kernels to lists and programs that are not meant for the event.
``Chosen.check`` searches it for the cells of the whole axis, first only for the number of intervals
of each cell and then for the intervals. A value is in half of all intervals that begin or end with
their channel (``<``, ``>=``), so there may be too many to check; then every second, third, ... cell
is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, prefixed, stretches, under
from bittern.errors import OptionError, brief
from bittern.jit import b1, i4r, i4w, i8r, kernel
from bittern.matching.contract import SubscriptionIndex
from bittern.stabbing.contract import StabbingIndex
from bittern.stabbing.registry import AUTO, build_named, check_name, structure

#: Intervals of cells that ``check`` looks at in all, and cells and intervals at once.
_MOST_COMPARED = 1 << 28
_CHUNK = 1 << 20


@kernel(b1, i4r, i8r, i4r, i4r, i4r, i4w)
def _contain(cells: Any, offsets: Any, ids: Any, lows: Any, highs: Any, stamps: Any) -> Any:
    """Whether all intervals that were found contain their cells, none of them twice.

    ``stamps``, one for each interval, are 0 at first and know the last cell that found it.
    """
    for i in range(len(cells)):
        for k in range(offsets[i] - offsets[0], offsets[i + 1] - offsets[0]):
            n = ids[k]
            if n < 0 or n >= len(lows) or stamps[n] == cells[i] + 1:
                return False
            if cells[i] < lows[n] or cells[i] > highs[n]:
                return False
            stamps[n] = cells[i] + 1
    return True


def _check_found(index: StabbingIndex, lows: Int32s, highs: Int32s) -> None:
    """Each cell has as many intervals as it should, and these contain it."""
    used = lows <= highs
    assert ((lows >= 0) & (highs < index.domain))[used].all(), "an interval is beyond the axis"
    begun = np.bincount(lows[used], minlength=index.domain + 1)
    ended = np.bincount(highs[used] + 1, minlength=index.domain + 1)
    right = np.cumsum(begun - ended)[: index.domain]
    step = 1 + int(right.sum()) // _MOST_COMPARED
    stamps = np.zeros(len(lows), np.int32)
    for begin in range(0, index.domain, _CHUNK):
        cells = np.arange(begin, min(begin + _CHUNK, index.domain), dtype=np.int32)
        located = index.locate_batch(cells)
        same = np.array_equal(np.diff(located.offsets), right[cells])
        assert same, "the stabbing index finds more or fewer intervals"
        if step > 1:
            cells = cells[::step].copy()
            located = index.locate_batch(cells)
        for first, last in stretches(located.offsets, _CHUNK):
            offsets, ids = located.offsets[first : last + 1], located.ids(first, last)
            contain = _contain(cells[first:last], offsets, ids, lows, highs, stamps)
            assert contain, "the stabbing index finds other intervals"


class Chosen:
    """A stabbing index, and the request if it was chosen automatically."""

    def __init__(self, index: StabbingIndex, asked: Mapping[str, Any]) -> None:
        self.index = index
        self._asked = dict(asked)

    @classmethod
    def build(
        cls,
        name: str,
        memory: int | None,
        lows: Int32s,
        highs: Int32s,
        bases: Int32s,
    ) -> Self:
        """Index intervals of cells, numbered in order, with the structure of this name.

        ``bases`` are the first cells of the channels, and the end of the axis.
        """
        cuts = bases[:-1] if len(bases) > 1 else None
        index = build_named(name, lows, highs, max(1, int(bases[-1])), memory, cuts)
        return cls(index, {"asked": AUTO, "memory": memory} if name == AUTO else {})

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], parameters: Mapping[str, Any]
    ) -> Self:
        """The same again, from a strategy's arrays and parameters."""
        index = structure(parameters["stabbing"]).from_arrays(under(arrays, "stabbing."))
        return cls(index, {k: parameters[k] for k in ("asked", "memory") if k in parameters})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The structure's arrays, under ``stabbing.``."""
        return prefixed("stabbing.", self.index.arrays())

    @property
    def parameters(self) -> dict[str, Any]:
        """The name of the structure and, if it was chosen automatically, the request."""
        return {"stabbing": self.index.name, **self._asked}

    @property
    def options(self) -> dict[str, Any]:
        """The request, not the choice: other classes have other intervals."""
        name = self._asked.get("asked", self.index.name)
        return {"stabbing": name, "stabbing_memory": self._asked.get("memory")}

    def check(self, lows: Int32s, highs: Int32s, n_cells: int) -> None:
        """The structure is sound and finds these intervals, by their positions, and no others.

        A position that is not in use has an empty one (low > high).
        """
        self.index.check()
        assert self.index.domain == max(1, n_cells), "the stabbing index has another axis"
        _check_found(self.index, lows, highs)


class StabbedIndex(SubscriptionIndex):
    """A strategy over a stabbing index, ``chosen``."""

    chosen: Chosen

    @property
    def parameters(self) -> dict[str, Any]:
        """The name of the stabbing index and, if it was chosen automatically, the request."""
        return self.chosen.parameters

    @property
    def options(self) -> dict[str, Any]:
        """The request for the stabbing index."""
        return self.chosen.options

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, Any]) -> None:
        """Also refuse an unknown structure, and a memory limit without "auto"."""
        super().check_parameters(parameters)
        name = parameters.get("stabbing", "cei")
        if not isinstance(name, str):
            raise OptionError(f"stabbing must be the name of a stabbing index, not {brief(name)}")
        check_name(name, parameters.get("stabbing_memory"))
