"""The prediction for one structure: its bytes, and the work of searching one value.

``Work`` is counted in units that ``stabbing/measured.py`` has a price for::

    values    1, the loop itself            steps   comparisons on the way down a tree
    headers   directory entries looked at   words   64-bit words of bit vectors looked at
    lists     nonempty lists copied from    ids     ids copied from lists
    misses    lines of memory that the      bits    ids looked up one by one, for the bits of words
              cache does not hold, many             or the markers of a skip list
              asked for at a time           waits   such lines on the way down a tree: one by one
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from bittern.stabbing import measured
from bittern.stabbing.contract import MAX_BYTES

UNLIMITED = 2**63
"""``most`` of a structure that refuses no size."""


@dataclass(frozen=True)
class Work:
    """What searching one value does, on average; see the module."""

    values: float = 1.0
    headers: float = 0.0
    lists: float = 0.0
    ids: float = 0.0
    bits: float = 0.0
    steps: float = 0.0
    words: float = 0.0
    misses: float = 0.0
    waits: float = 0.0

    @property
    def nanoseconds(self) -> float:
        """Its price by the measured constants."""
        total = 0.0
        for each in fields(self):
            total += getattr(self, each.name) * measured.NANOSECONDS[each.name]
        return total


@dataclass(frozen=True)
class Estimate:
    """A structure with parameters, and the prediction for it."""

    name: str
    parameters: dict[str, int]
    bytes: int
    work: Work
    most: int = MAX_BYTES
    """Bytes beyond which the structure refuses to be built."""

    def fits(self, memory: int) -> bool:
        """Whether it can be built within this many bytes."""
        return self.bytes <= min(memory, self.most)

    @property
    def nanoseconds(self) -> float:
        """Predicted search time per value."""
        return self.work.nanoseconds


def misses(lines: float, n_bytes: float) -> float:
    """Lines that memory has to deliver: those of the share that the cache does not hold."""
    return lines * max(0.0, 1.0 - measured.CACHE_BYTES / max(n_bytes, 1.0))


def copied(lists: float, ids: float, n_bytes: float) -> float:
    """Lines to copy ids from: one for each list, and one more for every 16 ids."""
    return misses(lists + ids / 16, n_bytes)


def descent(steps: float, n_bytes: float) -> float:
    """Lines on the way down a tree that memory has to deliver: not those of its upper levels.

    Where many values go down side by side these are misses, and waits where each goes alone.
    """
    return min(steps, max(0.0, math.log2(max(n_bytes, 1.0) / measured.NEAR_BYTES)))


#: A limit of more bytes is shown as this one, for a float must hold it.
_MOST = 2**1000


def in_bytes(number: float) -> str:
    """A number of bytes in readable form: 17 B, 1.5 kB, 28.1 MB."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= 0.9995 * size:  # 999.6 MB is 1 GB in three digits
            return f"{figure(min(number, _MOST) / size)} {unit}"
    return f"{number:.0f} B"


def figure(number: float) -> str:
    """A number with at most three significant digits and at most three decimals."""
    return f"{number:,.0f}" if number >= 100 else f"{round(number, 3):.3g}"
