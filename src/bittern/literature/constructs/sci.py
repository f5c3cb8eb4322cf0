"""SCI, simple construct intervals, with full bitmap vectors (seed 000, section 2.2).

At each cell begin constructs of 1, 2, .. L cells; with L = 4 those of cell 0 are 0 .. 3, of cell
4 they are 16 .. 19. An interval takes one construct per L cells and one for the remnant. Every
value has a row of bits, one for each construct that there is, set for the active ones that
contain the value. The paper's figure 3(a), with p = [0, 5] and q = [0, 1]::

    p: constructs 3 (cells 0 .. 3) and 17 (4, 5)          domain = 7, L = 4: rows of 28 bits
    q: construct 1 (cells 0, 1)
    row     0     1     2     3     4     5     6
    bits  1, 3  1, 3    3     3    17    17     -         stab(1) = lists 1 and 3 = {q, p}

An insertion sets bits only where a list was empty, a deletion clears them only where one became
empty. A search reads no list that is empty or does not contain the value, but the rows take
r * r * L bits: 50 MB for 5,000 cells and L = 16, and more than is allowed from 47,000 cells on.
Only the words of the covering segment can be other than 0, and no others are read; ``sci_bc``
keeps no others.

Cost of a search: the words of (L - 1) * L + 1 bits, and the active lists; an interval of w cells is
in ceil(w / L) of them. A change of an active list is O(its length), of one that was empty O(L).
"""

from __future__ import annotations

from bittern.literature.constructs.covering import BitmapIndex
from bittern.literature.constructs.family import SIMPLE


class SCI(BitmapIndex):
    """Constructs of all lengths up to the longest, found by full bitmaps."""

    name = "sci"
    scheme = SIMPLE
    instead = "sci-bc, sci-dt or lci-dt"
    clipped = False
