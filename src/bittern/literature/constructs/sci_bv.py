"""SCI-BV, simple construct intervals with virtual bitmaps (seed 000, section 4).

Nothing is kept beside the lists. The (L - 1) * L + 1 headers of a value's covering segment are
looked at, and where a list is not empty its construct is computed from the coordinate: it begins
at c // L and has c % L + 1 cells::

    L = 4, value 5: coordinates 11 .. 23
    17    not empty    begins at 4, 2 cells: 4 and 5     contains 5
    12    not empty    begins at 3, 1 cell               does not

Half of the segment does not contain the value, and the divisions for it are wasted: ``sci_dt`` is
better in every way, and this is the paper's step towards it.

Cost of a search: (L - 1) * L + 1 headers, and the active lists. Memory: the lists, L for each cell.
"""

from __future__ import annotations

from bittern.literature.constructs.covering import VirtualIndex
from bittern.literature.constructs.family import SIMPLE


class VirtualSCI(VirtualIndex):
    """Constructs of all lengths, found by looking at every list in question."""

    name = "sci-bv"
    scheme = SIMPLE
    instead = "lci-dt"
