"""What every subscription index promises.

A subscription index is built from classes (distinct expressions in rank space) and answers a batch
of encoded events with (event, class) pairs: exactly those classes that the events satisfy, each
pair once. ``scan`` defines the truth for all others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.engine.jit import i4r, i8r, i8w, kernel, void
from bittern.errors import OptionError
from bittern.matching.classes import Classes
from bittern.model.encoded import EncodedEvents

#: Tests, rows and postings are numbered in 32 bits.
MOST_ROWS = 2**31 - 1


class Found(NamedTuple):
    """(event, class) pairs in no particular order, and how many classes each event looked at."""

    rows: npt.NDArray[np.int32]
    classes: npt.NDArray[np.int32]
    candidates: npt.NDArray[np.int64]


@kernel(void, i8r, i8r, i4r, i8w)
def _add_candidates(offsets: Any, pair_offsets: Any, pair_rows: Any, out: Any) -> None:
    for cell in range(len(offsets) - 1):
        n = offsets[cell + 1] - offsets[cell]
        if n:
            for pair in range(pair_offsets[cell], pair_offsets[cell + 1]):
                out[np.uint64(pair_rows[pair])] += n


def candidates_of(events: EncodedEvents, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Candidates of each event; the i-th cell has those from ``offsets[i]`` on. O(pairs)."""
    out = np.zeros(events.n_events, dtype=np.int64)
    _add_candidates(offsets, events.offsets, events.rows, out)
    return out


class SubscriptionIndex(ABC):
    """Which classes does each event of a batch satisfy? Immutable; safe to share."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],
        n_cells: int,
        *,
        n_channels: int,
        stabbing: str = "cei",
        stabbing_memory: int | None = None,
    ) -> tuple[SubscriptionIndex, npt.NDArray[np.int32]]:
        """Index classes; ``mass`` is the running sum of expected events per cell.

        Also returns the number under which the index reports each class: an index may number
        them anew for the sake of locality.
        """

    @abstractmethod
    def match(self, events: EncodedEvents) -> Found:
        """All (event, class) pairs of a batch."""

    @abstractmethod
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What it consists of, to be saved; read-only memory-mapped arrays work as well."""

    @classmethod
    @abstractmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], parameters: Mapping[str, Any]
    ) -> SubscriptionIndex:
        """The index again, from ``arrays()`` and ``parameters``."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What it was built with, to be saved beside its arrays."""
        return {}

    @property
    def nbytes(self) -> int:
        """What its arrays occupy."""
        return sum(array.nbytes for array in self.arrays().values())

    @abstractmethod
    def statistics(self) -> dict[str, Any]:
        """Counts worth knowing, by name."""

    @abstractmethod
    def check(self, n_channels: int, n_cells: int) -> None:
        """Verify every invariant; raises AssertionError that says which one is broken.

        ``n_channels`` and ``n_cells`` are those of the rank space that it was built for.
        """


def check_size(what: str, n: int) -> None:
    """OptionError if an index would hold more rows of this kind than it can number."""
    if n > MOST_ROWS:
        raise OptionError(
            f"the subscriptions have {n:,} {what}; one index holds at most {MOST_ROWS:,}: "
            "split the catalog"
        )
