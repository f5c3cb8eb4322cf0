"""Arrays that grow at their end.

An array that ``longer`` has made lies at the start of a larger *room*; what is behind it is free,
so that n items appended one by one cost O(n) moves in all::

    items   4 7 9            longer(items, 1)     4 7 9 0
    room    4 7 9 . . .                           4 7 9 0 . .      the same memory

A ``GrowingColumn`` is such an array that is sometimes handed out (mapped, saved, compared): the
first change after that is made in a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class _Room(np.ndarray[Any, np.dtype[Any]]):
    """Memory that was made to grow in. No view of an array that lies in it has it as its base."""


def _start_of(room: _Room, size: int) -> npt.NDArray[Any]:
    return np.ndarray((size, *room.shape[1:]), room.dtype, room)


def _room_of(array: npt.NDArray[Any]) -> _Room | None:
    """The room that an array was put at the start of, by this module; a view of one has none."""
    return array.base if isinstance(array.base, _Room) else None


def longer(array: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """The array with n zeros after it, in memory of its own: O(n), amortised.

    An array that came from here grows in place, so no other code may hold it; any other array, also
    a view of one that came from here, is copied and stays as it is.
    """
    size, room = len(array), _room_of(array)
    if room is None or len(room) < size + n:
        room = _Room((size + max(size, n), *array.shape[1:]), array.dtype)
        room[:size] = array
    room[size : size + n] = 0
    return _start_of(room, size + n)


class GrowingColumn:
    """An array that grows, and that is copied before it changes if others may have it."""

    def __init__(self, items: npt.NDArray[Any]) -> None:
        """Take an array as it is, read-only or not: O(1)."""
        #: What is in it, to be read.
        self.items = items
        self._shared = True

    def __len__(self) -> int:
        return len(self.items)

    def share(self) -> npt.NDArray[Any]:
        """What is in it, in an array that does not change any more."""
        self._shared = True
        return self.items

    def extended(self, more: int) -> npt.NDArray[Any]:
        """What is in it and ``more`` zeros, in an array to change."""
        if self._shared or more:
            own = self.items[:] if self._shared else self.items  # a view has no room: it is copied
            self.items, self._shared = longer(own, more), False
        return self.items

    def append(self, more: npt.NDArray[Any]) -> None:
        """Write items at the end."""
        size = len(self)
        self.extended(len(more))[size:] = more

    def cut(self, size: int) -> None:
        """Leave the last items out."""
        room = _room_of(self.items)
        self.items = self.items[:size] if room is None else _start_of(room, size)
