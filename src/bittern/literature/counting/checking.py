"""Verifying the counting index: that its arrays fit together, safely where they do not.

Each function takes what those before it have found to be sound.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s
from bittern.literature.counting.clauses import MOST_COUNTED
from bittern.literature.counting.intervals import UNUSED, ends_of
from bittern.literature.sorted_lists.lists import SortedLists

DELETED = -1
"""What a class that was taken out has in place of the number of its intervals."""


def check_counters(starts: Int32s, entries: Int32s, sizes: npt.NDArray[np.uint8]) -> None:
    """The clauses of classes tile the clauses; a class has clauses where it has intervals."""
    assert starts.dtype == entries.dtype == np.int32, "figures of classes are not of 32 bits"
    assert sizes.dtype == np.uint8, "sizes of clauses are not bytes"
    assert sizes.ndim == entries.ndim == 1, "figures of classes or clauses are not flat"
    assert starts.shape == (len(entries) + 1,), "there is not one start per class, and the end"
    assert starts[0] == 0, "clauses do not start at the first class"
    assert (starts[1:] >= starts[:-1]).all(), "the clauses of classes do not ascend"
    assert starts[-1] == len(sizes), "clauses do not end at the last class"
    assert (entries >= DELETED).all(), "a class has less than no intervals"
    counted = np.repeat(entries, np.diff(starts)) > 0
    assert np.array_equal(sizes > 0, counted), "a clause counts for a class that has none"


def check_lists(
    sorted_lists: SortedLists,
    keys: Int64s,
    bases: Int32s,
    starts: Int32s,
    entries: Int32s,
    sizes: npt.NDArray[np.uint8],
) -> None:
    """Every clause is on as many lists, of as many channels, as its class and its size say."""
    assert sorted_lists.n_lists == len(keys), "there is not one list per interval"
    lists, clauses, classes = sorted_lists.pairs()
    used = np.zeros(len(keys), np.bool_)
    used[lists] = True
    assert np.array_equal(used, keys != UNUSED), "an interval is kept that no clause uses"
    assert ((clauses >= 0) & (clauses < len(sizes))).all(), "a list names no clause"
    owners = np.repeat(np.arange(len(entries)), np.diff(starts))
    assert np.array_equal(owners[clauses], classes), "a list gives a clause to another class"
    found = np.bincount(classes, minlength=len(entries))
    assert np.array_equal(found, np.maximum(entries, 0)), "a class has more or fewer intervals"
    lows, highs = ends_of(keys[lists])
    order = np.lexsort((lows, clauses))
    forbids = (keys[lists] & 1).astype(np.bool_)[order]
    clauses, lows, highs = clauses[order], lows[order], highs[order]
    same = clauses[1:] == clauses[:-1]
    assert (lows[1:] > highs[:-1])[same].all(), "a clause counts one cell twice"
    channels = np.searchsorted(bases, lows, "right")
    first = np.ones(len(clauses), np.bool_)
    first[1:] = ~same | (channels[1:] != channels[:-1])
    satisfied = np.bincount(clauses[first & ~forbids], minlength=len(sizes))
    assert np.array_equal(satisfied, sizes), "a clause counts to another number"
    most = np.bincount(clauses[first], minlength=len(sizes)).max(initial=0)
    assert most <= MOST_COUNTED, "a clause has more predicates than a byte can count"
