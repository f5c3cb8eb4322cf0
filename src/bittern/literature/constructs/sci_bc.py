"""SCI-BC, simple construct intervals with clipped bitmaps (seed 000, section 3).

Of the bits that ``sci`` keeps per value, only those of its covering segment can ever be set: the
constructs that contain value j begin at cells j-L+1 .. j. From j = L-1 on the segment begins with
the longest construct of cell j-L+1 and ends with the longest of cell j; before, it begins with
the first construct of cell 0 that reaches j::

    L = 4    value    0        1        2        3        4         5
             segment  0 .. 3   1 .. 7   2 .. 11  3 .. 15  7 .. 19   11 .. 23

Bit b of a row stands for the construct C_min + b, at the price of one addition. Rows are as long
as the longest segment, (L - 1) * L + 1 bits: r * L * L bits in all.

Cost: a search and a change take what they take in ``sci``.
"""

from __future__ import annotations

from bittern.literature.constructs.covering import BitmapIndex
from bittern.literature.constructs.family import SIMPLE


class ClippedSCI(BitmapIndex):
    """Constructs of all lengths, found by bitmaps of the covering segments alone."""

    name = "sci-bc"
    scheme = SIMPLE
    instead = "sci-dt or lci-bc"
    clipped = True
