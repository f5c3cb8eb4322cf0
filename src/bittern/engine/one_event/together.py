"""A snapshot and the deltas on top of it: one call reads the event once and matches it with all.

The snapshot reads, and each value is handed on to the deltas that ask for its attribute, as a batch
does (``model/events/shared.py``)::

    part    table    marks       numbers                     shift
    0       ...      12 dead     -                           0            the snapshot, which reads
    1       ...      all alive   own number of price: 1      1,000,000    a delta
    2       ...      all alive   own number of price: 0      1,060,000    a delta

That is for indexes which one call does, of attributes that the snapshot has as well. Whatever stops
the call, but for a scratch that is too small, leaves the event to calls of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bittern.arrays import starts_of
from bittern.engine.one_event.kernel import REASONS, ROOM, match_one
from bittern.engine.one_event.table import ALIVE, N_ALIVE, N_NUMBERS, NUMBERS_AT, PART, SHIFT, TABLE

if TYPE_CHECKING:
    from bittern.engine.live.delta import Segment
    from bittern.engine.one_event.matcher import OneEvent, Positions
    from bittern.engine.one_event.table import Scratch

_COUNT = 0xFFFFFFFF


class Together:
    """Matches one event at a time with several segments. Threads may share it."""

    def __init__(
        self,
        segments: Sequence[Segment],
        ones: list[OneEvent],
        numbers: list[npt.NDArray[np.int32]],
    ) -> None:
        self._ones = ones
        self._kept = segments, numbers  # of whose arrays the parts have the addresses
        self._parts = np.zeros((len(ones), PART), np.int64)
        sizes = [len(segment.index) for segment in segments]
        self._parts[:, SHIFT] = starts_of(sizes, np.int64)[:-1]
        for part, segment in enumerate(segments):
            self._parts[part, [ALIVE, N_ALIVE]] = segment.marks_at
        for part, own in enumerate(numbers, start=1):
            self._parts[part, [NUMBERS_AT, N_NUMBERS]] = own.ctypes.data, len(own)
        self._free: list[_Scratches] = []

    @classmethod
    def of(cls, segments: Sequence[Segment]) -> Together | None:
        """For several segments; None if each needs a call of its own. Empty ones match nothing."""
        segments = [segment for segment in segments if len(segment.index)]
        ones = [segment.one_event for segment in segments]
        served = [one for one in ones if one is not None and one.is_one_call]
        if not ones or len(served) < len(ones):
            return None
        first, *others = (segment.index.encoder for segment in segments)
        numbers = [other.numbers_in(first) for other in others]
        known = [own for own in numbers if own is not None]
        return cls(segments, served, known) if len(known) == len(others) else None

    def match(self, event: str | dict[Any, Any]) -> tuple[Positions, int] | None:
        """The subscriptions, and how many were candidates; None if that takes several calls."""
        try:
            scratches = self._free.pop()
        except IndexError:
            scratches = _Scratches(self._ones, self._parts)
        first = scratches.of[0]
        try:
            mode, given = self._ones[0].read(event, first)
        except Exception:  # noqa: BLE001  a call of its own says what to do
            self._free.append(scratches)
            return None
        while True:
            found = match_one(scratches.at, len(scratches.of), given, mode)
            part, reason = divmod(-found - 1, REASONS)
            if found >= 0 or reason != -ROOM - 1 or not scratches.of[part].grow():
                break
        subscriptions = None if found < 0 else first.found[: found & _COUNT].copy()
        self._free.append(scratches)
        return None if subscriptions is None else (subscriptions, found >> 32)


class _Scratches:
    """What one call writes, and its parts."""

    def __init__(self, ones: Sequence[OneEvent], parts: npt.NDArray[np.int64]) -> None:
        #: A scratch for each part.
        self.of: list[Scratch] = [one.take() for one in ones]
        self._parts = parts.copy()
        self._parts[:, TABLE] = [scratch.table for scratch in self.of]
        #: Where the parts are.
        self.at = int(self._parts.ctypes.data)
