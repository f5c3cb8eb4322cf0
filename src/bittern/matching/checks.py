"""What kernels trust: invariants of rows, postings and programs, which they never look at again.

Nothing here is needed to match. A channel that is not there, a jump out of its program or a list
item without a posting would make a kernel read beyond an array; these functions find it first and
say which invariant is broken, in an AssertionError. All are O(rows + postings).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Int32s: TypeAlias = npt.NDArray[np.int32]


def check_starts(starts: Int32s, rows: Int32s, n_classes: int) -> None:
    """The rows of the classes tile ``rows``, which have four columns."""
    assert rows.shape == (len(rows), 4), "rows do not have four columns"
    assert len(starts) == n_classes + 1, "there is not one start per class, and the end"
    assert starts[0] == 0, "class rows do not start at the first row"
    assert (np.diff(starts.astype(np.int64)) >= 0).all(), "class rows are not ascending"
    assert starts[-1] == len(rows), "class rows do not end at the last row"


def check_tests(rows: Int32s, n_channels: int, n_cells: int) -> None:
    """Every row tests a channel for cells of the axis; "missing" is cell -1.

    A test that never holds (low > high) may do without a channel, which is then -1.
    """
    channels, lows, highs = rows[:, 0], rows[:, 1], rows[:, 2]
    known = (channels >= 0) | ((channels == -1) & (lows > highs))
    assert (known & (channels < n_channels)).all(), "a row tests a channel that is not there"
    on_axis = (lows >= -1) & (highs >= -1) & (lows < max(1, n_cells)) & (highs < n_cells)
    assert on_axis.all(), "a row tests cells beyond the axis"


def check_jumps(lengths: npt.NDArray[np.int64], rows: Int32s) -> None:
    """In programs of these lengths, one after the other, jumps go forward to where they may."""
    own_start = np.repeat(np.cumsum(lengths) - lengths, lengths)
    targets = rows[:, 3] >> 1
    places = np.arange(len(rows)) - own_start
    assert (targets > places).all(), "a jump goes backwards"
    assert (targets <= np.repeat(lengths, lengths) + 1).all(), "a jump leaves its program"


def check_heads(
    heads: Int32s, bounds: Int32s, lengths: npt.NDArray[np.int64], n_channels: int, n_cells: int
) -> None:
    """Postings point to classes, and their inline tests to channels and cells that are there.

    ``lengths`` has the number of rows of each class.
    """
    channels, classes = heads[:, 0], np.maximum(heads[:, 1], ~heads[:, 1])
    assert (classes < len(lengths)).all(), "a posting points to no class"
    done = heads[:, 1] < 0
    assert np.array_equal(done, lengths[classes] == 0), "a posting is wrong about what is left"
    assert ((channels >= 0) & (channels <= n_channels)).all(), (
        "an inline test's channel is not there"
    )
    lows, highs = bounds[:, 0], bounds[:, 1]
    tested = channels < n_channels
    assert not bounds[~tested].any(), "an inline test that always holds has bounds"
    on_axis = (lows >= 0) & (lows < n_cells) & (highs >= -1) & (highs < n_cells)
    assert on_axis[tested].all(), "an inline test's bounds are beyond the axis"


def check_pivots(classes: Int32s, lows: Int32s, highs: Int32s, several: Int32s, rows: Int32s) -> None:
    """The postings of classes with several pivots are exactly their pivots.

    The first three are the class and interval of each posting; ``several`` and ``rows`` are the
    class and row of each pivot.
    """
    postings = np.stack((classes, lows, highs), axis=1)
    pivots = np.stack((several, rows[:, 1], rows[:, 2]), axis=1)
    assert np.array_equal(_sorted(postings), _sorted(pivots)), "postings and pivots disagree"
    assert len(np.unique(pivots, axis=0)) == len(pivots), "a class has the same pivot twice"


def _sorted(triples: Int32s) -> Int32s:
    return triples[np.lexsort(triples.T[::-1])]
