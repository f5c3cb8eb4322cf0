"""UI, unit-length intervals (seed 001, section 2.2): direct lists under seed 001's name.

Seed 001 cuts every interval into constructs of length 1, N = r of them, of which exactly one
covers any value. Seed 000 keeps for every value a list of the ids that cover it, and searches it
directly. Over cells the unit interval [a, a+1) *is* the value a, so the constructs of the one are
the lists of the other, entry by entry::

    seed 001    unit intervals    [0, 1)  [1, 2)  [2, 3)
    seed 000    direct lists        DL_0    DL_1    DL_2         each an id list of one cell

Both names exist so that either paper's experiments run under its own words (figures 14 to 19 of
seed 001 compare UI, LCI and CEI; figures 6 and 7 of seed 000 have Dlist).

Cost: that of ``stabbing/dlist.py``: a search is one list, an interval of w cells is in w lists.
"""

from __future__ import annotations

from bittern.stabbing.dlist import Dlist


class UI(Dlist):
    """Unit-length intervals: over cells, the direct lists of ``dlist``."""

    name = "ui"
