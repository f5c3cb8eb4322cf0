"""OpIndex (seed 003): partitions by pivot attribute and operator, searched and counted.

A class is filed under its least frequent attribute, its *pivot* (``filing``), and each of
its basic predicates (``operators``) goes into the pivot's list of that operator
(``directory``), sorted by (attribute, operand), with the slot of a counter in the pivot's
counter array (``counters``). Of Table 1's subscriptions, S1, S2 and S4 have the pivot A::

    S1  A = 2 AND B IN (3, 6, 9)      list of =     (A,2) 0   (A,2) 2   (B,3) 0   (B,6) 0   (B,9) 0
    S2  A <= 8 AND C >= 2             list of <=    (A,8) 1
    S4  A = 2                         list of >=    (C,2) 1
                                      counters      0: S1 needs 2   1: S2 needs 2   2: S4 needs 1

An attribute is a channel and (attribute, operand) one global cell (``model/rank/space.py``). An
event searches the lists of those of its attributes that are pivots, each with all of its attributes
(``match``). Lists are cut into segments by attribute, and each segment has a signature that
avoids most vain searches. ``opindex-bs`` is the paper's OpIndex-BS, with neither.

The parts, and how they change, are in ``partitions``; here are the two kinds by name, with
what can be chosen. There are at most as many segments as channels: more would all be empty.

Memory: 8 bytes for each basic predicate and each counter, 4 for each class, and 12 for each segment
of a list that exists (``opindex-bs``: 4).

Cost of an event of m attributes, k of them pivots: O(k m) signatures for each operator, and the
hits (``literature/opindex/match.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bittern.literature.opindex.partitions import Partitioned
from bittern.model.classes.classes import Classes
from bittern.model.rank.space import RankSpace
from bittern.options import whole_number

SEGMENTS, SIGNATURE_BITS = 32, 64
_MOST_SEGMENTS = 1 << 16


class OpIndex(Partitioned):
    """OpIndex with a directory of segments, each with a signature."""

    name: ClassVar[str] = "opindex"

    @classmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],
        rank: RankSpace,
        *,
        segments: int = SEGMENTS,
        signature_bits: int = SIGNATURE_BITS,
    ) -> tuple[Self, npt.NDArray[np.int32]]:
        """File all classes. O(n log n)."""
        cls.check_parameters({"segments": segments, "signature_bits": signature_bits})
        return cls._build(classes, mass, rank, segments, signature_bits)

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, Any]) -> None:
        """Also refuse numbers that are none, or too large."""
        super().check_parameters(parameters)
        for name, most in (("segments", _MOST_SEGMENTS), ("signature_bits", SIGNATURE_BITS)):
            whole_number(name, parameters.get(name, 1), 1, most)

    @property
    def parameters(self) -> dict[str, Any]:
        """The number of segments, and of bits of a signature."""
        return {"segments": self._directory.segments, "signature_bits": self._directory.n_bits}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], parameters: Mapping[str, Any]
    ) -> Self:
        """Search these arrays in place."""
        return cls._from_arrays(arrays, parameters["segments"], parameters["signature_bits"])


class OpIndexBS(Partitioned):
    """OpIndex without segments and signatures (section 7: OpIndex-BS)."""

    name: ClassVar[str] = "opindex-bs"

    @classmethod
    def build(
        cls, classes: Classes, mass: npt.NDArray[np.float64], rank: RankSpace
    ) -> tuple[Self, npt.NDArray[np.int32]]:
        """File all classes. O(n log n)."""
        return cls._build(classes, mass, rank, 1, 0)

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, npt.NDArray[Any]],
        parameters: Mapping[str, Any],  # noqa: ARG003
    ) -> Self:
        """Search these arrays in place."""
        return cls._from_arrays(arrays, 1, 0)
