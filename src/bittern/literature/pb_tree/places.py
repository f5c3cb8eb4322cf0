"""The places of a page file: which are free, and which will be when they have no readers any more.

A commit does not overwrite what it replaces: it writes to free places. The old places wait, with
the number of that commit, until the version before it is not needed (two versions are always
complete) and no reader has an older one::

    commit 7 moved page 3 from place 12 to 15: version 6 has it at 12, version 7 at 15
    waiting (7, [12])      free for commit 9, if no reader still has version 6 or older

Nothing of this is stored: a writer that opens the file knows the places of its two versions, and
assumes that all others were left by the newest commit that can have left them. Free places at the
end of the file are cut off. Cost: O(free places) for each commit, in NumPy.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Self

import numpy as np

from bittern.arrays import Int64s
from bittern.errors import PageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_PLACES = 1 << 32
_NONE = np.zeros(0, np.int64)


class Places:
    """Free places, lowest first; see the module."""

    def __init__(self, end: int) -> None:
        self.end = end
        self._end_before = end
        self._waiting: deque[tuple[int, Int64s]] = deque()
        self._free = _NONE
        self._taken = 0  # of ``_free``, since the last commit
        self._left: list[Int64s] = []
        self._unused: list[Int64s] = []

    @classmethod
    def besides(
        cls, first: int, end: int, version: int, used: Int64s, before: Int64s | None
    ) -> Self:
        """The places from ``first`` to ``end`` that this version and the one before do not use.

        If it is not known what the one before used, a reader may be using any of them.
        """
        places = cls(end)
        unused = np.ones(end, np.bool_)
        unused[:first] = False
        unused[used] = False
        left = np.full(end, before is None)
        if before is not None:
            left[before] = True
        places.wait(version - 1, np.flatnonzero(unused & ~left))
        places.wait(version, np.flatnonzero(unused & left))
        return places

    @property
    def free(self) -> int:
        """How many can be written at once."""
        return len(self._free) - self._taken

    def wait(self, version: int, places: Int64s) -> None:
        """These were left by this commit; versions come in order."""
        if len(places):
            self._waiting.append((version, places))

    def release(self, version: int) -> None:
        """Free what commits up to this one have left: no reader needs it. Call before taking."""
        released = [self._free]
        while self._waiting and self._waiting[0][0] <= version:
            released.append(self._waiting.popleft()[1])
        if len(released) > 1:
            self._free = np.sort(np.concatenate(released), kind="stable")

    def take(self, count: int) -> Int64s:
        """Free places, ascending; the file grows if there are too few."""
        chosen = self._free[self._taken : self._taken + count]
        self._taken += len(chosen)
        more = count - len(chosen)
        if self.end + more > MOST_PLACES:
            raise PageError(f"a page file has at most {MOST_PLACES:,} places: use larger pages")
        self.end += more
        return np.concatenate([chosen, np.arange(self.end - more, self.end)])

    def is_new(self, places: Int64s) -> NDArray[np.bool_]:
        """Which of these were taken since the last commit, and may be overwritten."""
        taken = self._free[: self._taken]
        at = np.searchsorted(taken, places)
        found = np.zeros(len(places), np.bool_)
        inside = at < len(taken)
        found[inside] = taken[at[inside]] == places[inside]
        return found | (places >= self._end_before)

    def leave(self, places: Int64s) -> None:
        """The next version does not need these any more."""
        new = self.is_new(places)
        self._left.append(places[~new])
        self._unused.append(places[new])

    def finish(self) -> int:
        """How many places the file has with the next version: it is about to be committed."""
        free = np.sort(np.concatenate([self._free[self._taken :], *self._unused]), kind="stable")
        # The last free place is the file's last one, the one before it the last but one, ...
        behind = np.flatnonzero(free != np.arange(self.end - len(free), self.end))
        cut = int(behind[-1]) + 1 if len(behind) else 0
        self.end -= len(free) - cut
        self._free, self._taken, self._unused = free[:cut], 0, []
        return self.end

    def committed(self, version: int) -> None:
        """The next version is there: what it has left waits."""
        self.wait(version, np.concatenate([_NONE, *self._left]))
        self._left = []
        self._end_before = self.end

    def rolled_back(self) -> None:
        """Nothing was taken or left since the last commit."""
        self._taken, self._left, self._unused = 0, [], []
        self.end = self._end_before
