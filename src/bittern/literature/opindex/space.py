"""What OpIndex keeps of the rank space it was built for, by channel.

A class that is inserted or deleted later has to be rewritten with the same prefixes and filed under
the same pivots as at any other time, wherever the index was saved and mapped in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, prefixed, under
from bittern.literature.opindex.trie import Trie
from bittern.matching.checks import check_channels
from bittern.model.rank.space import RankSpace

#: Bits that the sum of all frequencies has: finer than logs of events, coarser than what rounding
#: leaves of a running sum.
_PRECISION = 36


class Space(NamedTuple):
    """Channels, and the prefixes that they can tell apart."""

    bases: Int32s  # first cells, and the end
    kinds: npt.NDArray[np.uint8]
    frequencies: npt.NDArray[np.float64]  # how many events have a value: whole numbers of a unit
    trie: Trie

    @classmethod
    def of(cls, rank: RankSpace, mass: npt.NDArray[np.float64]) -> Space:
        """The channels of a rank space, and how many events to expect in each.

        The differences of a running sum are not exact: of channels that are equally frequent, the
        last bits would decide. So frequencies are rounded to a small part of all of them, and as
        whole numbers they are added up exactly, in whatever order.
        """
        bases = rank.arrays.bases
        _, exponent = np.frexp(mass[-1])
        shares = mass[bases[1:]] - mass[bases[:-1]]
        frequencies = np.rint(np.ldexp(shares, _PRECISION - exponent))
        return cls(bases, rank.channel_kinds, frequencies, Trie.of(rank))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, to be saved."""
        out: dict[str, npt.NDArray[Any]] = {
            "bases": self.bases,
            "kinds": self.kinds,
            "frequencies": self.frequencies,
        }
        return out | prefixed("trie.", self.trie.arrays())

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Space:
        """The same again."""
        trie = Trie.from_arrays(under(arrays, "trie."))
        return cls(arrays["bases"], arrays["kinds"], arrays["frequencies"], trie)

    def check(self, n_channels: int, n_cells: int) -> None:
        """Channels tile the axis, and each has a kind and a frequency."""
        check_channels(self.bases, n_channels, n_cells)
        assert len(self.kinds) == len(self.frequencies) == n_channels, "a channel is cut off"
        assert (self.frequencies >= 0).all(), "a channel is less frequent than never"
        self.trie.check(n_cells)
