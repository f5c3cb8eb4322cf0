"""A guide: where a number lies among many, found in about one step instead of a binary search.

The stretch from the least constant to the greatest is cut into as many buckets of equal width as
there are constants, and ``starts`` tells which constants each bucket holds::

    constants   0.5  2.0  2.5  7.0  8.5       width 1.6, 5 buckets from 0.5 on
    bucket        0    0    1    4    4
    starts        0  2  3  3  3  5            bucket b has constants[starts[b]:starts[b + 1]]

The bucket of a value never falls as the value grows, as rounding keeps order: so constants of lower
buckets are below it, those of higher ones above, and a binary search inside its own decides,
exactly. Evenly spread constants have about one per bucket; crowded ones cost what they did before.
4 bytes per constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bittern.arrays import Int32s
from bittern.jit import f8, f8r, i4r, i4w, kernel, u1r, void
from bittern.stabbing.areas import rank


@kernel(void, f8r, i4r, f8, f8, f8r, u1r, i4w)
def _find_places(
    constants: Any, starts: Any, least: Any, factor: Any, values: Any, valid: Any, places: Any
) -> None:
    count, last = len(constants), len(starts) - 2
    for row in range(len(values)):
        value = values[row]
        if len(valid) and not valid[row]:
            places[row] = -1
            continue
        if np.isnan(value):
            places[row] = 2 * count
            continue
        scaled = (value - least) * factor
        bucket = 0
        if scaled >= last:
            bucket = last
        elif scaled > 0:
            bucket = int(scaled)
        low = int(starts[np.uint64(bucket)])
        high = int(starts[np.uint64(bucket + 1)])
        low = rank(constants, low, high, value)
        places[row] = 2 * low + (low < count and constants[low] == value)


class Guide:
    """Ascending distinct finite floats with their buckets; immutable."""

    def __init__(
        self, constants: NDArray[np.float64], starts: Int32s, least: float, factor: float
    ) -> None:
        self._constants, self._starts = constants, starts
        self._least, self._factor = least, factor

    @classmethod
    def build(cls, constants: NDArray[np.float64]) -> Self:
        """O(n)."""
        buckets, least = len(constants), float(constants[0])
        with np.errstate(all="ignore"):
            factor = float(buckets / (constants[-1] - constants[0])) if buckets > 1 else 0.0
            scaled = (constants - least) * factor
        if not np.isfinite(scaled).all() or factor == 0:  # too close, or too far apart
            buckets, factor, scaled = 1, 0.0, np.zeros(len(constants))
        own = np.minimum(scaled, buckets - 1).astype(np.int32)
        starts = np.searchsorted(own, np.arange(buckets + 1, dtype=np.int32)).astype(np.int32)
        return cls(constants, starts, least, factor)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that ``from_arrays`` needs: O(1)."""
        shape = np.array([self._least, self._factor])
        return {"constants": self._constants, "starts": self._starts, "shape": shape}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The guide that ``arrays`` described, where they are: O(1)."""
        return cls(arrays["constants"], arrays["starts"], *arrays["shape"].tolist())

    def places(self, values: NDArray[np.float64], valid: NDArray[np.uint8]) -> Int32s:
        """2i + 1 for what equals constant i, the even place beside if nothing does; -1: not valid.

        NaN is above all. O(1) per value, expected.
        """
        places = np.empty(len(values), np.int32)
        _find_places(
            self._constants, self._starts, self._least, self._factor, values, valid, places
        )
        return places
