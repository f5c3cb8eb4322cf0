"""Pivots and bits in one index: each class stands where it costs less.

``pivot`` becomes this by itself where it pays (``choice.py``)::

    class     0 1 2 3 4 5 6        2, 3 and 6 are conjunctions of wide ranges
    pivot     0 1 4 5              numbers 0 1 2 3
    bits      2 3 6                numbers 4 5 6, behind those of the pivots

Both halves answer every batch, and their pairs are put together: no class is in both. The arrays of
each are under its name.

Cost and memory: those of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Mask, prefixed, under
from bittern.matching.bits.index import MEMORY, Bits
from bittern.matching.contract import Found, SubscriptionIndex
from bittern.matching.pivot.choice import cheaper_in_bits
from bittern.matching.pivot.index import Pivot
from bittern.model.classes.classes import Classes
from bittern.model.rank.encoded import EncodedEvents
from bittern.model.rank.space import RankSpace


class PivotBits(SubscriptionIndex):
    """Some classes under pivots, the others in bits; see the module."""

    name: ClassVar[str] = "pivot-bits"

    def __init__(self, pivot: Pivot, bits: Bits) -> None:
        self._pivot = pivot
        self._bits = bits
        self._first_in_bits = int(pivot.statistics()["classes"])
        #: Whether it was asked for by name, or pivots took bits by themselves.
        self.is_asked_for = True

    @classmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],
        rank: RankSpace,
        *,
        stabbing: str = "cei",
        stabbing_memory: int | None = None,
        memory: int = MEMORY,
    ) -> tuple[Self, Int32s]:
        """Choose for each class, however few choose bits."""
        chosen, _ = cheaper_in_bits(classes, mass, rank.n_channels)
        return cls.split(chosen, classes, mass, rank, stabbing, stabbing_memory, memory)

    @classmethod
    def split(
        cls,
        chosen: Mask,
        classes: Classes,
        mass: npt.NDArray[np.float64],
        rank: RankSpace,
        stabbing: str,
        stabbing_memory: int | None,
        memory: int = MEMORY,
    ) -> tuple[Self, Int32s]:
        """The index that has the classes ``chosen`` in bits."""
        under_pivots, in_bits = np.flatnonzero(~chosen), np.flatnonzero(chosen)
        pivot, first = Pivot.alone(
            classes.take(under_pivots), mass, rank, stabbing, stabbing_memory
        )
        bits, second = Bits.build(classes.take(in_bits), mass, rank, memory=memory)
        numbers = np.empty(len(classes), dtype=np.int32)
        numbers[under_pivots] = first
        numbers[in_bits] = second + len(under_pivots)
        return cls(pivot, bits), numbers

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, Any]) -> None:
        """What pivots say to theirs, and bits to theirs."""
        super().check_parameters(parameters)
        memory = {name: value for name, value in parameters.items() if name == "memory"}
        Bits.check_parameters(memory)
        Pivot.check_parameters({k: v for k, v in parameters.items() if k not in memory})

    def match(self, events: EncodedEvents) -> Found:
        """The pairs of both. O(what either of them needs)."""
        first, second = self._pivot.match(events), self._bits.match(events)
        return Found(
            np.concatenate((first.rows, second.rows)),
            np.concatenate((first.classes, second.classes + np.int32(self._first_in_bits))),
            first.candidates + second.candidates,
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Those of each, under ``pivot.`` and ``bits.``."""
        out = prefixed("pivot.", self._pivot.arrays())
        return out | prefixed("bits.", self._bits.arrays())

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], parameters: Mapping[str, Any]
    ) -> Self:
        """Search these arrays in place."""
        index = cls(
            Pivot.from_arrays(under(arrays, "pivot."), parameters["pivot"]),
            Bits.from_arrays(under(arrays, "bits."), parameters["bits"]),
        )
        index.is_asked_for = parameters["is_asked_for"]
        return index

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of each, under its name."""
        own = {"pivot": self._pivot.parameters, "bits": self._bits.parameters}
        return own | {"is_asked_for": self.is_asked_for}

    @property
    def rebuilt_as(self) -> str:
        """Pivots, which choose anew whether bits pay, unless it was asked for."""
        return self.name if self.is_asked_for else self._pivot.name

    @property
    def options(self) -> dict[str, Any]:
        """The request for the stabbing index, and the memory of bits that were asked for."""
        memory = self._bits.parameters if self.is_asked_for else {}
        return self._pivot.options | memory

    def found_by(self, number: int) -> str:
        """The half that has the class."""
        return self._pivot.name if number < self._first_in_bits else self._bits.name

    def statistics(self) -> dict[str, Any]:
        """All classes, and the figures of each half."""
        pivot, bits = self._pivot.statistics(), self._bits.statistics()
        return {"classes": pivot["classes"] + bits["classes"], "pivot": pivot, "bits": bits}

    def check(self, n_channels: int, n_cells: int) -> None:
        """Both halves are sound."""
        self._pivot.check(n_channels, n_cells)
        self._bits.check(n_channels, n_cells)
