"""Checks of what kernels trust: invariants of rows, postings and programs.

Nothing here is needed to match. A channel that does not exist, a jump out of its program or a list
item without a posting would make a kernel read beyond an array. These functions find that first,
and an AssertionError says which invariant is broken. All are O(rows + postings).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s


def check_channels(bases: Int32s, n_channels: int, n_cells: int) -> None:
    """The channels tile the axis: channel c has the cells ``bases[c] .. bases[c + 1] - 1``."""
    assert bases.dtype == np.int32, "the bases of channels are not of 32 bits"
    assert bases.shape == (n_channels + 1,), "there is not one base per channel, and the end"
    assert bases[0] == 0, "channels do not begin at the first cell"
    assert (bases[1:] > bases[:-1]).all(), "a channel has no cell"
    assert bases[-1] == n_cells, "channels do not end at the last cell of another rank space"


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


def check_filed(filed: tuple[npt.NDArray[Any], ...], n_channels: int, n_cells: int) -> None:
    """The arrays of ``pivot/index.py``, which explains them, are sound and fit together."""
    heads, bounds, lows, highs, starts, rows, several, always = filed
    n_classes, n_postings = len(several), len(lows)
    assert heads.shape == bounds.shape == (n_postings, 2), "postings differ in number"
    assert len(highs) == n_postings, "postings differ in number"
    assert (np.diff(lows) >= 0).all(), "postings are not in order"
    assert (lows <= highs).all(), "a posting has an empty interval"
    assert ((lows >= 0) & (highs < n_cells)).all(), "a posting is beyond the axis"
    check_starts(starts, rows, n_classes)
    check_tests(rows, n_channels, n_cells)
    lengths = np.diff(starts).astype(np.int64)
    classes = np.maximum(heads[:, 1], ~heads[:, 1])
    assert (classes < n_classes).all(), "a posting points to no class"
    empty = lengths[classes] == 0
    assert np.array_equal(heads[:, 1] < 0, empty), "a posting is wrong about what is left to test"
    _check_inline_tests(heads[:, 0], bounds, n_channels, n_cells)
    keys = lows.astype(np.int64) << 32 | heads[:, 0]
    assert (np.diff(keys) >= 0).all(), "postings of a cell are not in the order of their channels"

    assert (several <= 1).all(), "a class has neither one pivot nor several"
    many = several == 1
    assert (lengths[many] > 0).all(), "a class of several pivots has no rows"
    n_pivots = np.zeros(n_classes, dtype=np.int64)
    n_pivots[many] = rows[starts[:-1][many], 3]
    assert (n_pivots[many] >= 2).all(), "a class of several pivots has fewer than two"
    assert (n_pivots[many] < lengths[many]).all(), "a class of several pivots has no program"
    owners = np.repeat(np.arange(n_classes), lengths)
    is_pivot = np.arange(len(rows)) - starts[owners] < n_pivots[owners]
    check_jumps(lengths - n_pivots, rows[~is_pivot])
    found = many[classes]
    # Looking for the pivot that found a class, a kernel stops only at one that holds.
    postings = _sorted(classes[found], lows[found], highs[found])
    pivots = _sorted(owners[is_pivot], rows[is_pivot, 1], rows[is_pivot, 2])
    assert np.array_equal(postings, pivots), "postings and pivots disagree"
    assert np.diff(pivots).any(axis=0).all(), "a class has the same pivot twice"

    # Where nothing says which of several pivots reports a class, they have to exclude each other.
    owner, low, high = _sorted(classes[~found], lows[~found], highs[~found])
    apart = (owner[1:] != owner[:-1]) | (low[1:] > high[:-1])
    assert apart.all(), "a class is filed twice for one cell"

    assert ((always >= 0) & (always < n_classes)).all(), "an always-candidate is no class"
    assert len(np.unique(always)) == len(always), "an always-candidate stands twice"
    assert not np.isin(always, classes).any(), "an always-candidate has pivots"


def check_parts(
    filed: tuple[npt.NDArray[Any], ...],
    owners: Int32s,
    repeats: npt.NDArray[np.uint8],
    n_channels: int,
) -> None:
    """Every part belongs to a class; parts of one that does not repeat exclude each other.

    Whether two cells are of one channel is not known here.
    """
    heads, _, lows, highs, _, _, several, always = filed
    if not len(owners) and not len(repeats):
        return
    assert len(owners) == len(several), "there is not one owner per part"
    assert ((owners >= 0) & (owners < len(repeats))).all(), "a part belongs to no class"
    assert (repeats <= 1).all(), "a class neither repeats nor does not"
    n_parts = np.bincount(owners, minlength=len(repeats))
    assert not repeats[n_parts <= 1].any(), "a class of one part is said to repeat"
    apart = (n_parts > 1) & (repeats == 0)
    assert not apart[owners[always]].any(), "a class is said not to repeat, but it may"
    own = apart[owners[np.maximum(heads[:, 1], ~heads[:, 1])]]
    bare = (heads[own, 1] < 0) & (heads[own, 0] == n_channels)
    assert bare.all(), "a class is said not to repeat, but it may"
    owner, low, high = _sorted(owners[~heads[own, 1]], lows[own], highs[own])
    disjoint = (owner[1:] != owner[:-1]) | (low[1:] > high[:-1])
    assert disjoint.all(), "a class is said not to repeat, but it may"


def _check_inline_tests(channels: Int32s, bounds: Int32s, n_channels: int, n_cells: int) -> None:
    """They test a channel for cells of the axis, or the extra column for 0."""
    known = (channels >= 0) & (channels <= n_channels)
    assert known.all(), "an inline test's channel is not there"
    tested = channels < n_channels
    assert not bounds[~tested].any(), "an inline test of the extra column is not for 0"
    lows, highs = bounds[tested, 0], bounds[tested, 1]
    on_axis = (lows >= 0) & (lows < n_cells) & (highs >= -1) & (highs < n_cells)
    assert on_axis.all(), "an inline test is for cells beyond the axis"


def _sorted(*columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Rows of columns in order."""
    return np.stack(columns)[:, np.lexsort(columns[::-1])]
