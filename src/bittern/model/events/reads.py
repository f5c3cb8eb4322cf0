"""A batch that was read: pairs of events and cells before and after they are sorted.

``Read`` is the result of reading (``model/events/encoder.py``), for callers that have pairs to add.
``Encoded`` has the two views that indexes match (``model/rank/encoded.py``). Events that could not
be read are listed in both, and have no pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.model.events.mistyped import Strays, listed
from bittern.model.rank.encoded import EncodedEvents, Pairs, encode_pairs

Rejects = list[tuple[int, str]]


class Encoded(NamedTuple):
    """Events in rank space, those that could not be read (row, reason), and values that stray."""

    events: EncodedEvents
    rejects: Rejects
    strays: Strays

    @property
    def mistyped(self) -> Rejects:
        """Events that have a value which no subscription compares: (row, reason), one per row."""
        return listed([self.strays])


class Read(NamedTuple):
    """Events that were read and not sorted into their two views yet."""

    pairs: Pairs
    n_events: int
    rejects: Rejects
    strays: Strays
    bases: npt.NDArray[np.int32]

    def with_pairs(self, added: Pairs) -> Read:
        """The same with some more pairs ``cell << 32 | event``."""
        return self._replace(pairs=np.concatenate((self.pairs, added)))

    def encoded(self) -> Encoded:
        """The events in rank space."""
        events = encode_pairs(self.pairs, self.n_events, self.bases)
        return Encoded(events, self.rejects, self.strays)


def first_reasons(rejects: Rejects) -> Rejects:
    """The rows that could not be read, ascending, each with the first reason."""
    return sorted(dict(reversed(rejects)).items())


def readable_rows(n_events: int, *rejects: Sequence[tuple[int, str]]) -> npt.NDArray[np.bool_]:
    """Which events are in none of these lists of rejects."""
    readable = np.ones(n_events, dtype=np.bool_)
    for each in rejects:
        readable[[row for row, _ in each]] = False
    return readable
