"""What OpIndex trusts: that entries, counters and classes fit together.

Nothing here is needed to match. The directory, the lists and the counter arrays have been verified
by themselves; here each entry has to be where its attribute belongs and known to its signature, and
each counter has to need exactly what its entries can give, whatever the arrays hold.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s
from bittern.literature.opindex.counters import Counters
from bittern.literature.opindex.directory import PivotDirectory
from bittern.literature.opindex.entries import ListEntries
from bittern.literature.opindex.operators import (
    AT_LEAST,
    AT_MOST,
    MISSING,
    NODES,
    NOT_EQUAL,
    SATISFIES,
    SUFFIX,
)
from bittern.literature.opindex.space import Space
from bittern.model.rank.space import PATTERN, REVERSED, STRING


def check_entries(
    entries: ListEntries, counters: Counters, directory: PivotDirectory, space: Space, held: Int32s
) -> None:
    """Verify all entries, and what counters need of them. O(n log n)."""
    _check_keys(entries, directory, space)
    clean = directory.unsigned()
    clean.sign(entries.lists, entries.operators, entries.channels, entries.keys)
    lacking = clean.searched.signatures & ~directory.searched.signatures
    assert not lacking.any(), "a signature lacks a predicate"
    positions = _check_slots(entries, counters)
    owners = counters.searched.owners[positions]
    counts = np.bincount(owners, minlength=len(held))
    assert (held >= -1).all(), "a class holds less than nothing"
    assert np.array_equal(counts, np.maximum(held, 0)), "a class holds other entries"
    _check_needs(entries, counters, directory, positions)


def _check_keys(entries: ListEntries, directory: PivotDirectory, space: Space) -> None:
    """Operands are of the kind that their operator has, in the segment of their attribute."""
    operators, channels, keys = entries.operators, entries.channels, entries.keys
    known = (channels >= 0) & (channels < len(space.kinds))
    assert known.all(), "a predicate is of no attribute"
    segments = entries.lists % directory.n_segments
    assert (channels % directory.n_segments == segments).all(), "a predicate is in a wrong segment"
    kinds = space.kinds[channels]
    single = space.bases[channels + 1] - space.bases[channels] == 1
    assert single[(operators == MISSING) | (operators == SATISFIES)].all(), (
        "only what has one cell is missing, or a pattern"
    )
    assert (kinds[operators == SATISFIES] == PATTERN).all(), "a pattern is none"
    of_nodes = NODES >> operators & 1 > 0
    assert (keys[of_nodes] < len(space.trie)).all(), "a prefix is not in the trie"
    strings = np.where(operators[of_nodes] == SUFFIX, REVERSED, STRING)
    assert np.array_equal(kinds[of_nodes], strings), "a prefix is not of a string"


def _check_slots(entries: ListEntries, counters: Counters) -> Int64s:
    """Each entry has a counter that is no hole; where it is."""
    begins, ends, _, needs = counters.searched
    positions = begins[entries.pivots].astype(np.int64) + entries.slots
    inside = (entries.slots >= 0) & (positions < ends[entries.pivots])
    assert inside.all(), "an entry has no counter"
    assert (needs[positions] > 0).all(), "an entry belongs to a hole"
    return positions


def _check_needs(
    entries: ListEntries, counters: Counters, directory: PivotDirectory, positions: Int64s
) -> None:
    """Counters need as many hits as their entries have counts, or all of their bits."""
    needs = counters.searched.needs
    live, _ = counters.live()
    n = len(needs)
    is_bit = entries.bits >= 0
    with_bits = np.bincount(positions[is_bit], minlength=n) > 0
    with_hits = np.bincount(positions[~is_bit], minlength=n) > 0
    assert not (with_bits & with_hits).any(), "a counter counts both hits and bits"
    on_pivot = directory.pivots()[entries.pivots] == entries.channels
    found = np.bincount(positions[on_pivot & (entries.operators != MISSING)], minlength=n) > 0
    assert found[live].all(), "a counter has no predicate on its pivot"
    expected = _hits(entries, positions, n)
    assert (entries.bits[is_bit] < needs[positions[is_bit]]).all(), "a bit is beyond the clauses"
    distinct = np.unique(positions[is_bit] << 6 | entries.bits[is_bit]) >> 6
    expected += np.bincount(distinct, minlength=n)
    assert np.array_equal(expected[live], needs[live]), "a counter needs what it cannot have"


def _hits(entries: ListEntries, positions: Int64s, n: int) -> npt.NDArray[np.int64]:
    """The counts that the entries of each counter make, channel by channel.

    Single operands of one channel are one count. Of bounds, the lowest one is a count of its own
    if it is from below, and so is the highest if it is from above; the others enclose gaps, two
    of them each.
    """
    operators = entries.operators
    own = np.flatnonzero((entries.bits < 0) & (operators != MISSING))
    by_bound = operators[own] == AT_MOST
    order = own[np.lexsort((by_bound, entries.keys[own], entries.channels[own], positions[own]))]
    places, channels, operators = positions[order], entries.channels[order], operators[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (np.diff(places) != 0) | (np.diff(channels) != 0)
    group = np.cumsum(new) - 1
    n_groups = int(group[-1]) + 1 if len(group) else 0

    def count(which: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        return np.bincount(group[which], minlength=n_groups)

    at_most, at_least = count(operators == AT_MOST), count(operators == AT_LEAST)
    bounds = np.flatnonzero((operators == AT_MOST) | (operators == AT_LEAST))
    first = bounds[np.unique(group[bounds], return_index=True)[1]]
    from_below = np.zeros(n_groups, dtype=np.int64)
    from_below[group[first]] = operators[first] == AT_LEAST
    gaps = at_least - from_below
    single = count((operators != AT_MOST) & (operators != AT_LEAST) & (operators != NOT_EQUAL))
    ranges = at_most + at_least - gaps + count(operators == NOT_EQUAL)
    assert not ((single > 0) & (ranges > 0)).any(), "operators are mixed in one predicate"
    hits = np.minimum(single, 1) + ranges
    return np.bincount(places[new], weights=hits, minlength=n).astype(np.int64)
