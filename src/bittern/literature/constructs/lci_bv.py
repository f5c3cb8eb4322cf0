"""LCI-BV, logarithmic construct intervals with virtual bitmaps (seed 000, section 4).

As ``sci_bv``: every header of the covering segment, (L - 1) * (k + 1) + 1 of them for L = 2**k, is
looked at, and where a list is not empty, its construct begins at c // (k + 1) and has
2 ** (c % (k + 1)) cells::

    L = 4, value 5: coordinates 8 .. 17
    10    not empty    begins at 3, 2 cells: 3 and 4     does not contain 5
    13    not empty    begins at 4, 2 cells: 4 and 5     contains 5

Only 2L - 1 of the segment do contain the value. Headers are empty or not as if at random, and so
each costs a guess of the processor, beside the division: the slowest of the family, as in the
paper, and a step towards ``lci_dt``.

Cost of a search: (L - 1) * (k + 1) + 1 headers, and the active lists. Memory: the lists, k + 1 for
each cell.
"""

from __future__ import annotations

from bittern.literature.constructs.covering import VirtualIndex
from bittern.literature.constructs.family import LOGARITHMIC


class VirtualLCI(VirtualIndex):
    """Constructs of power-of-two lengths, found by looking at every list in question."""

    name = "lci-bv"
    scheme = LOGARITHMIC
    instead = "cei"
