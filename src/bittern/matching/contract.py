"""What every subscription index promises.

A subscription index is built from classes (distinct expressions in rank space) and answers a batch
of encoded events with (event, class) pairs: exactly those classes that the events satisfy, each
pair once. ``scan`` defines the truth for all others.

Most indexes of the papers are ``ChangingIndex``: classes of the same rank space are inserted and
deleted one by one. A strategy refuses classes that it cannot hold, before anything is changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.errors import OptionError
from bittern.jit import i4r, i8r, i8w, kernel, void
from bittern.model.classes.classes import Classes
from bittern.model.rank.encoded import EncodedEvents, Pairs, encode_pairs
from bittern.model.rank.space import RankSpace
from bittern.stabbing.contract import keywords_of, refuse_unknown

if TYPE_CHECKING:
    from bittern.model.rank.touched import CellTests

#: Tests, rows and postings are numbered in 32 bits.
MOST_ROWS = 2**31 - 1


class Refused(Exception):  # noqa: N818  it is what happened to the classes
    """Classes that a strategy cannot hold, by number, and why."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__(reasons)
        self.reasons = dict(reasons)


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
    """Finds the classes that each event of a batch satisfies. Immutable; safe to share."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],
        rank: RankSpace,
        *_: Any,
        **parameters: Any,
    ) -> tuple[SubscriptionIndex, npt.NDArray[np.int32]]:
        """Index classes of a rank space; ``mass`` is the running sum of expected events per cell.

        A strategy names its own parameters, and may build another one that serves these classes
        better. Also returns the number under which the index reports each class: an index may
        renumber them for the sake of locality. ``Refused`` names all classes that it cannot hold.
        """

    @classmethod
    def takes(cls) -> list[str]:
        """The names of the parameters of ``build``."""
        return keywords_of(cls.build)

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, Any]) -> None:
        """OptionError for a parameter that this strategy does not have, or whose value is bad."""
        refuse_unknown(parameters, cls.takes(), f"the strategy {cls.name}")

    @abstractmethod
    def match(self, events: EncodedEvents) -> Found:
        """All (event, class) pairs of a batch."""

    def match_pairs(self, pairs: Pairs, n_events: int, bases: npt.NDArray[np.int32]) -> Found:
        """The same for packed pairs ``cell << 32 | event``, which may be sorted in place.

        ``bases`` are the first cells of the channels, and the end of the axis.
        """
        return self.match(encode_pairs(pairs, n_events, bases))

    def tests(self) -> CellTests | None:
        """All tests that decide which classes an event satisfies; None if it cannot tell."""
        return None

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
    def rebuilt_as(self) -> str:
        """The strategy by which other classes get such an index, with ``options``."""
        return self.name

    @property
    def options(self) -> dict[str, Any]:
        """The parameters to build such an index again for other classes."""
        return self.parameters

    @property
    def nbytes(self) -> int:
        """What its arrays occupy."""
        return sum(array.nbytes for array in self.arrays().values())

    def found_by(self, number: int) -> str:  # noqa: ARG002  where one strategy finds all
        """The strategy that finds the class of this number, by name."""
        return self.name

    @abstractmethod
    def statistics(self) -> dict[str, Any]:
        """Counts worth knowing, by name."""

    @abstractmethod
    def check(self, n_channels: int, n_cells: int) -> None:
        """Verify every invariant; raises AssertionError that says which one is broken.

        ``n_channels`` and ``n_cells`` are those of the rank space that it was built for.
        """


class ChangingIndex(SubscriptionIndex):
    """An index whose classes change in place; nothing else may use it meanwhile."""

    @abstractmethod
    def insert(self, classes: Classes) -> npt.NDArray[np.int32]:
        """Add classes of the same rank space; returns their numbers, which follow the last one."""

    @abstractmethod
    def delete(self, classes: Classes, numbers: npt.NDArray[np.int32]) -> None:
        """Remove classes that were inserted under these numbers, which are not used again.

        OptionError, and nothing changed, if one of them is not there.
        """


#: What ``delete`` says of classes that it is asked to take out and that are not there.
NOT_THERE = "a class to delete is not in the index: delete exactly what was inserted"


def are_numbers(numbers: npt.NDArray[np.int32], n: int, given: int) -> bool:
    """Whether these are n different ones of the ``given`` first class numbers."""
    known = (numbers >= 0) & (numbers < given)
    return len(numbers) == n == len(np.unique(numbers)) and bool(known.all())


def check_size(what: str, n: int) -> None:
    """OptionError if an index would hold more rows of this kind than it can number."""
    if n > MOST_ROWS:
        raise OptionError(
            f"the subscriptions have {n:,} {what}; one index holds at most {MOST_ROWS:,}: "
            "split the subscriptions"
        )
