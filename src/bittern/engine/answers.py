"""What a matcher asks of documents seen before: which EXISTS and FORALL hold for each event.

``history/joins.py`` answers. Its room stands right of this one, so matchers know it by what they
call, and one without a history loads none of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bittern.engine.index import Index
from bittern.language.syntax import Quantified
from bittern.model.events.reads import Read

Mask = npt.NDArray[np.bool_]


class Remembered(Protocol):
    """Documents seen before: ``bittern.history.History``."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held while a call is matched: answers depend on the order of arrival."""

    def __len__(self) -> int: ...

    def append_some(self, events: Any, json: str | Sequence[str], which: Mask) -> int:
        """Remember the events that ``which`` marks; returns the number of the first."""


class Answers(Protocol):
    """Answers quantified predicates, for one matcher."""

    @property
    def history(self) -> Remembered:
        """Where the documents are."""

    @property
    def lookups(self) -> int:
        """How many lookups and searches were made so far."""

    def prepare(self, indexes: Sequence[Index]) -> None:
        """Be ready for these segments."""

    def block_size(self, most: int) -> int:
        """How many events to take next."""

    def run(
        self, events: Any, json: str | Sequence[str], reads: Sequence[Read], *, remember: bool
    ) -> Sequence[npt.NDArray[np.uint64]]:
        """For each segment, pairs to add to the block that it has read."""

    def readable(self, reads: Sequence[Read]) -> Mask:
        """Which events of a block can be asked for and remembered."""

    def holds(self, quantified: Sequence[Quantified], event: Any) -> list[bool]:
        """Do these predicates hold for an event that would come now?"""

    def outlook(self, indexes: Sequence[Index], attributes: float) -> Any:
        """Which phase goes first, and why; ``str`` of it is for people."""

    def close(self) -> None:
        """Let the history serve another matcher."""


def answers_from(history: Remembered | str | os.PathLike[str]) -> Answers:
    """Answers from a history, or from the one in a folder, which is closed with them."""
    found: Answers = import_module("bittern.history.joins").Joins(history)
    return found
