"""SCI-BV(DT), simple construct intervals with a distance table (seed 000, section 4.1).

The L * (L + 1) / 2 constructs that contain a value lie at the same distances from the first of
them, whatever the value, so one table leads to them by addition. Those that begin at one cell are
neighbours up to its last, so the table needs one entry for each of the L beginnings::

    L = 4, value 5     beginning   2     3        4            5
                       covering   11   14 15   17 18 19   20 21 22 23

While the lists are packed, the ids of neighbours are neighbours, too: a beginning then costs two
offsets and one copy, a search L of them, no more than in LCI. After changes it visits each list,
until ``arrays`` packs them again.

Cost of a search: L beginnings, or L * (L + 1) / 2 lists, and the ids. Memory: the lists, L for each
cell, and a table of L numbers.
"""

from __future__ import annotations

from bittern.literature.constructs.covering import TableIndex
from bittern.literature.constructs.family import SIMPLE


class TableSCI(TableIndex):
    """Constructs of all lengths, found by distances that are the same for all values."""

    name = "sci-dt"
    scheme = SIMPLE
    instead = "lci-dt"
