"""LCI-BV(DT), logarithmic construct intervals with a distance table (seed 000, section 4.1).

Just "LCI" in seed 001, which knows it by its 2L - 1 covering constructs per value. These lie at
the same distances from the first of them, whatever the value, so one table leads to them by
addition. Those that begin at one cell are neighbours up to its last, so the table needs one entry
for each of the L beginnings::

    L = 4, value 5     beginning   2    3     4        5           2L - 1 = 7
                       covering    8   11   13 14   15 16 17

While the lists are packed, the ids of neighbours are neighbours, too: a beginning then costs two
offsets and one copy, a search L of them. After changes it visits the 2L - 1 lists one by one,
until ``arrays`` packs them again. The paper's best, and the family's best here, where more than
a few of the covering constructs are active.

Cost of a search: L beginnings, or 2L - 1 lists, and the ids. Memory: the lists, k + 1 for each
cell, and a table of L numbers.
"""

from __future__ import annotations

from bittern.literature.constructs.covering import TableIndex
from bittern.literature.constructs.family import LOGARITHMIC


class TableLCI(TableIndex):
    """Constructs of power-of-two lengths, found by distances that are the same for all values."""

    name = "lci-dt"
    scheme = LOGARITHMIC
    instead = "cei"
