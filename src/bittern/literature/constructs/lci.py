"""LCI, logarithmic construct intervals, with full bitmap vectors (seed 000, section 2.3).

As ``sci``, but constructs have 1, 2, 4, .. L = 2**k cells, so that k + 1 instead of L of them
begin at each cell. An interval takes one per L cells and one for every binary digit of the rest::

    [a, a + 6], L = 16      7 cells = 4 + 2 + 1
    constructs              (a, 4 cells), (a + 4, 2 cells), (a + 6, 1 cell)

The rows of bits take r * r * (k + 1) bits: 19 MB for 5,000 cells and L = 32, and more than is
allowed from 76,000 cells on. What this saves beside ``lci_bc`` is one addition per list, and its
rows lie too far apart in memory for that to be seen.

Cost of a search: the words of (L - 1) * (k + 1) + 1 bits, and the active lists. An interval of w
cells is in w / L lists, and one for each binary digit of the rest.
"""

from __future__ import annotations

from bittern.literature.constructs.covering import BitmapIndex
from bittern.literature.constructs.family import LOGARITHMIC


class LCI(BitmapIndex):
    """Constructs of power-of-two lengths, found by full bitmaps."""

    name = "lci"
    scheme = LOGARITHMIC
    instead = "lci-bc or lci-dt"
    clipped = False
