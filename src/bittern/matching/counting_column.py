"""Arrays that grow at their end, for an index that changes.

One that was given or handed out (mapped, saved, compared) is taken for shared: the first change
after that is made in a copy. Growing leaves room in proportion, so that n items appended one by one
cost O(n) moves in all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Column:
    """An array with room at its end."""

    def __init__(self, items: npt.NDArray[Any]) -> None:
        """Take an array as it is, read-only or not: O(1)."""
        self._room = items
        self._n = len(items)
        self._shared = True

    def __len__(self) -> int:
        return self._n

    @property
    def items(self) -> npt.NDArray[Any]:
        """What is in it, to be read."""
        return self._room[: self._n]

    def share(self) -> npt.NDArray[Any]:
        """What is in it, in an array that does not change any more."""
        self._shared = True
        return self.items

    def extended(self, more: int) -> npt.NDArray[Any]:
        """What is in it and ``more`` items that are to be written, in an array to change."""
        size = self._n + more
        if self._shared or len(self._room) < size:
            room = np.empty(size if self._shared else 2 * size, self._room.dtype)
            room[: self._n] = self.items
            self._room, self._shared = room, False
        self._n = size
        return self.items

    def append(self, more: npt.NDArray[Any]) -> None:
        """Write items at the end."""
        self.extended(len(more))[self._n - len(more) :] = more

    def cut(self, size: int) -> None:
        """Leave the last items out."""
        self._n = size
