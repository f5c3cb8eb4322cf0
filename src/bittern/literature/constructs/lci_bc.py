"""LCI-BC, logarithmic construct intervals with clipped bitmaps (seed 000, section 3).

As ``sci_bc``: a row has bits for the covering segment of its value only, with L = 2**k from the
longest construct of cell j-L+1 to the longest of cell j, and for the first values from the
shortest construct of cell 0 that reaches j::

    L = 4    value    0        1        2        3        4         5
             segment  0 .. 2   1 .. 5   2 .. 8   2 .. 11  5 .. 14   8 .. 17

A row of (L - 1) * (k + 1) + 1 bits is three words for L = 32: where few constructs are active,
no other structure of this family touches as little memory.

Cost: a search and a change take what they take in ``lci``.
"""

from __future__ import annotations

from bittern.literature.constructs.covering import BitmapIndex
from bittern.literature.constructs.family import LOGARITHMIC


class ClippedLCI(BitmapIndex):
    """Constructs of power-of-two lengths, found by bitmaps of the covering segments alone."""

    name = "lci-bc"
    scheme = LOGARITHMIC
    instead = "lci-dt"
    clipped = True
