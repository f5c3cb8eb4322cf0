"""What the strategies have in common that look cells up in a stabbing index: its choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bittern.matching.contract import SubscriptionIndex
from bittern.model.rank import under
from bittern.stabbing.choose import AUTO, build_named, check_name
from bittern.stabbing.contract import StabbingIndex
from bittern.stabbing.registry import structure


class Chosen:
    """A stabbing index, and what was asked for if it was chosen."""

    def __init__(self, index: StabbingIndex, asked: Mapping[str, Any]) -> None:
        self.index = index
        self._asked = dict(asked)

    @classmethod
    def build(
        cls,
        name: str,
        memory: int | None,
        lows: npt.NDArray[np.int32],
        highs: npt.NDArray[np.int32],
        n_cells: int,
    ) -> Self:
        """Index intervals of cells, numbered in order, with the structure of this name."""
        index = build_named(name, lows, highs, max(1, n_cells), memory)
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
        return {f"stabbing.{name}": array for name, array in self.index.arrays().items()}

    @property
    def parameters(self) -> dict[str, Any]:
        """The name of the structure and, if it was chosen, what was asked for."""
        return {"stabbing": self.index.name, **self._asked}

    @property
    def options(self) -> dict[str, Any]:
        """What was asked for, not what was chosen then: other classes, other intervals."""
        name = self._asked.get("asked", self.index.name)
        return {"stabbing": name, "stabbing_memory": self._asked.get("memory")}


class StabbedIndex(SubscriptionIndex):
    """A strategy over a stabbing index, ``chosen``."""

    chosen: Chosen

    @property
    def parameters(self) -> dict[str, Any]:
        """The name of the stabbing index and, if it was chosen, what was asked for."""
        return self.chosen.parameters

    @property
    def options(self) -> dict[str, Any]:
        """What was asked for of the stabbing index."""
        return self.chosen.options

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, Any]) -> None:
        """Also refuse the name of no structure, and memory for one that was not chosen by it."""
        super().check_parameters(parameters)
        check_name(parameters.get("stabbing", "cei"), parameters.get("stabbing_memory"))
