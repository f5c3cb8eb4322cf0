"""What a matcher asks about earlier documents: which EXISTS and FORALL hold for each event.

``history/joins/joins.py`` answers. Its package is to the right of this one, so matchers know it
only by these protocols, and a matcher without a history does not load it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bittern.arrays import Mask
from bittern.engine.index import Index
from bittern.language.syntax import Quantified
from bittern.model.events.reads import Read


class SeenBefore(Protocol):
    """Earlier documents: ``bittern.history.History``."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held while a call is matched: answers depend on the order of arrival."""

    def __len__(self) -> int: ...

    def append_some(self, events: Any, json: str | Sequence[str], which: Mask) -> int:
        """Remember the events that ``which`` marks; returns the number of the first of them."""


class Answering(Protocol):
    """Answers quantified predicates, for one matcher."""

    @property
    def history(self) -> SeenBefore:
        """Where the documents are."""

    @property
    def lookups(self) -> int:
        """The number of lookups and searches so far."""

    def prepare(self, indexes: Sequence[Index]) -> None:
        """Prepare for these segments."""

    def block_size(self, most: int) -> int:
        """How many events to take next."""

    def run(
        self,
        events: Any,
        json: str | Sequence[str],
        reads: Sequence[Read],
        sets: Mapping[str, Any],
        *,
        remember: bool,
    ) -> Sequence[npt.NDArray[np.uint64]]:
        """For each segment, the pairs to add to its encoded block."""

    def readable(self, reads: Sequence[Read]) -> Mask:
        """Which events of a block can be answered and remembered."""

    def holds(self, quantified: Sequence[Quantified], event: Any) -> list[bool]:
        """Whether each of these predicates would hold for an event that came now."""

    def outlook(self, indexes: Sequence[Index], attributes: float) -> Any:
        """Which phase goes first, and why; ``str`` gives it as text."""

    def close(self) -> None:
        """Let the history serve another matcher."""


def answers_from(history: SeenBefore | str | os.PathLike[str]) -> Answering:
    """Answers from a history, or from the history in a folder, which is closed with them."""
    found: Answering = import_module("bittern.history.joins.joins").Joins(history)
    return found
