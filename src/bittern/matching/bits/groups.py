"""Groups: the cells of a channel, some tens of stretches that equally many events fall into.

A bitmap for each cell would be exact and far too large. So the cells of a channel are cut into at
most 63 groups, and a channel has one *line* (a bitmap of classes) for each group, and one for
events that have no value there::

    channel      price                       color          (no class tests "size")
    cells        0 1 2 | 3 4 | 5 6 7 8       9 | 10 | 11    12 13
    lines        1       2     3             1   2    3               0: no value
    slot         0                           1              -1

    firsts       0       3     5             9   10   11    12
    slots        0       0     0             1   1    1     -1
    lines        1       2     3             1   2    3     0

A *slot* is a channel that some class tests; they are numbered in order. How many groups there are
follows from the memory that the lines may take.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.arrays import Float64s, Int32s, Int64s
from bittern.jit import frozen, i4r, i8, i8r, kernel, tuple_type, u1r, u1w, void
from bittern.model.rank.encoded import stretch_of

#: Lines that a channel has at most: the groups of a test are the bits of a word.
MOST_LINES = 64
#: Groups that a channel has at least, if it has as many cells: fewer rule too little out.
LEAST_GROUPS = 7


class GroupArrays(NamedTuple):
    """Stretches of the axis: the first cell of each, the slot of its channel, and its line."""

    firsts: Int32s
    slots: Int32s
    lines: Any  # of 8 bits


GROUPS = tuple_type(GroupArrays, i4r, i4r, u1r)


def make_groups(tested: Int32s, bases: Int32s, mass: Float64s, most_lines: int) -> GroupArrays:
    """Group the cells of the channels ``tested``, which are in order. O(cells).

    ``most_lines`` is what all lines of a block of classes may be in number.
    """
    most = most_lines // max(1, len(tested)) - 1
    most = min(MOST_LINES - 1, max(LEAST_GROUPS, most))
    cells = np.diff(bases)
    channel = np.repeat(np.arange(len(cells)), cells)
    begins, ends = bases[:-1], bases[1:]
    whole = mass[ends] - mass[begins]
    at = np.arange(len(channel), dtype=np.int64)
    # Where the middle of a cell is, as a share of its channel; where no events are expected, each
    # cell counts alike.
    by_cell = (at - begins[channel] + 0.5) / cells[channel]
    middle = (mass[:-1] + mass[1:]) / 2 - mass[begins][channel]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(whole[channel] > 0, middle / whole[channel], by_cell)
    by_share = np.minimum((share * most).astype(np.int64), most - 1)  # a last cell may have no mass
    group = np.where(cells[channel] <= most, at, by_share)
    slot_of = np.full(len(cells), -1, dtype=np.int32)
    slot_of[tested] = np.arange(len(tested), dtype=np.int32)
    group[slot_of[channel] < 0] = 0
    first = np.ones(len(channel), dtype=np.bool_)
    first[1:] = (group[1:] != group[:-1]) | (channel[1:] != channel[:-1])
    firsts = np.flatnonzero(first)
    number = np.arange(len(firsts)) - np.searchsorted(firsts, begins)[channel[firsts]]
    slots = slot_of[channel[firsts]]
    lines = np.where(slots < 0, 0, number + 1)
    return frozen(GroupArrays(firsts.astype(np.int32), slots, lines.astype(np.uint8)))


def line_counts(groups: GroupArrays) -> Int32s:
    """How many lines each slot has: its groups, and one for events without a value."""
    used = groups.slots[groups.slots >= 0]
    return (np.bincount(used) + 1).astype(np.int32)


def line_shares(groups: GroupArrays, mass: Float64s) -> Float64s:
    """The share of events expected in each line, ``MOST_LINES`` for each slot."""
    ends = np.append(groups.firsts[1:], len(mass) - 1)
    used = groups.slots >= 0
    shares = np.zeros((len(line_counts(groups)), MOST_LINES))
    shares[groups.slots[used], groups.lines[used]] = (mass[ends] - mass[groups.firsts])[used]
    shares[:, 0] = np.maximum(0.0, 1.0 - shares.sum(axis=1))
    return shares.ravel()


@kernel(void, GROUPS, i4r, i8r, i4r, i8, i8, i8, u1w)
def find_lines(
    groups: Any,
    cells: Any,
    offsets: Any,
    rows: Any,
    first: Any,
    last: Any,
    n_slots: Any,
    values: Any,
) -> None:
    """The line of each slot for the events ``first`` to ``last``, ``n_slots`` for each event.

    The others are those of a batch by cell (``model/rank/encoded.py``). ``values`` are 0 at first.
    """
    firsts, slots, lines = groups
    group = 0
    for i in range(len(cells)):
        group = stretch_of(firsts, len(firsts), cells[i], group)
        slot = np.int64(slots[group])
        if slot < 0:
            continue
        line = lines[group]
        for k in range(offsets[i], offsets[i + 1]):
            row = np.int64(rows[np.uint64(k)])
            if first <= row < last:
                values[np.uint64((row - first) * n_slots + slot)] = line


def check_groups(groups: GroupArrays, n_slots: int, n_cells: int) -> Int64s:
    """The stretches tile the axis, and those of a slot have its lines in turn.

    Returns the number of lines of each slot.
    """
    firsts, slots, lines = groups
    assert len(firsts) == len(slots) == len(lines), "groups differ in number"
    assert (np.diff(firsts) > 0).all(), "groups are not in order"
    assert len(firsts) == 0 or (firsts[0] == 0 and firsts[-1] < n_cells), "groups leave the axis"
    assert (len(firsts) > 0) == (n_cells > 0), "there are no groups"
    assert ((slots >= -1) & (slots < n_slots)).all(), "a group has a slot that is not there"
    used = slots >= 0
    assert not lines[~used].any(), "a group that no class tests has a line"
    own, number = slots[used], lines[used].astype(np.int64)
    assert (np.diff(own) >= 0).all(), "slots are not in order"
    counts = np.bincount(own, minlength=n_slots)
    assert (counts < MOST_LINES).all(), "a slot has too many lines"
    assert (counts > 0).all(), "a slot has no groups"
    begins = np.cumsum(counts) - counts
    assert np.array_equal(number, np.arange(len(own)) - begins[own] + 1), "lines are not in turn"
    return counts + 1
