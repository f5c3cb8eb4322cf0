"""The prefixes of a rank space as a trie: which of them a string has (seed 003, section 6.2).

``s LIKE 'ab%'`` is the interval of cells from that of 'ab' to the one before that of its successor
'ac', the least string above all that begin with 'ab'; a suffix is the same on reversed strings. Two
such intervals nest, as the one prefix begins with the other, or they are apart. So the prefixes
are a forest, a node for each, under the longest other one that it begins with: a trie whose paths
are compressed. Nodes are numbered in order of their first cell, a node before what is under it::

    strings  a  ab abd ac  b  c        s LIKE 'a%', 'ab%' or 'b%', s = 'abd': the successors of the
    cells    1  3  5   7   9  11       prefixes are constants as well

    node     0  1  2                   a ---- ab          b
    low      1  3  9                   0      1           2
    high     8  6  10
    parent  -1  0 -1                   'abx' has prefixes 1 and 0, 'ad' only 0, 'cab' none

The channels of all attributes, and of reversed strings, lie on one axis, so that the attribute is
in the cell (the paper writes it before each prefix) and one forest serves them all.

A string has those prefixes whose nodes contain its cell. They are one path: ``innermost`` finds its
lower end, and ``parents`` lead up from there::

    node = innermost(lows, highs, parents, cell)
    while node >= 0:
        ...
        node = parents[node]

A constant is a node if its successor is a constant of the same channel too, whether or not a
subscription asks for that prefix. So the trie depends on the rank space alone: it never changes,
and neither do the numbers of nodes, whichever subscriptions come and go. A node that no
subscription uses costs 12 bytes, like every node, and one vain search for strings that have it.

Cost: O(bytes of the strings) to build, O(log nodes + depth) to find a path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, record_of
from bittern.jit import (
    b1,
    frozen,
    i4r,
    i4w,
    i8,
    i8r,
    inline,
    kernel,
    tuple_type,
    u1r,
    void,
)
from bittern.model.rank.space import FIRST, ORDERED, RankSpace
from bittern.model.strings import same_bytes
from bittern.stabbing.areas import rank as position


class TrieArrays(NamedTuple):
    """What kernels see."""

    lows: Int32s
    highs: Int32s
    parents: Int32s


TRIE = tuple_type(TrieArrays, i4r, i4r, i4r)


@inline
def innermost(lows: Any, highs: Any, parents: Any, cell: Any) -> Any:
    """The node of the longest prefix that the string in this cell has, or -1."""
    # What contains the cell begins at the last node that begins before it, or around that one.
    node = position(lows, 0, len(lows), int(cell) + 1) - 1
    while node >= 0 and highs[np.uint64(node)] < cell:
        node = int(parents[np.uint64(node)])
    return node


@inline
def _begins_with(data: Any, start: Any, stop: Any, first: Any, last: Any) -> Any:
    """Whether the string data[start:stop] begins with data[first:last]."""
    length = last - first
    return length <= stop - start and same_bytes(data, start, data, first, length)


@inline
def _succeeds(data: Any, start: Any, stop: Any, first: Any, last: Any) -> Any:
    """Whether the string data[start:stop] is the successor of data[first:last]."""
    length = last - first
    return (
        length > 0
        and length == stop - start
        and int(data[stop - 1]) == int(data[last - 1]) + 1
        and _begins_with(data, start, stop - 1, first, last - 1)
    )


@kernel(void, u1r, i8r, i4r, i4w, i4w)
def _find_successors(data: Any, offsets: Any, channels: Any, shorter: Any, successors: Any) -> None:
    """For each string, its successor in the same channel, or -1; strings ascend.

    ``shorter`` is the longest string before each that it begins with, or -1: the chain of those
    that the last string begins with is what may still end. The first string that does not begin
    with one of them is above all that do; no other can be its successor.
    """
    top = -1
    for i in range(len(channels)):
        start, stop = offsets[i], offsets[i + 1]
        if i and channels[i] != channels[i - 1]:
            top = -1
        while top >= 0 and not _begins_with(data, start, stop, offsets[top], offsets[top + 1]):
            if _succeeds(data, start, stop, offsets[top], offsets[top + 1]):
                successors[top] = i
            top = int(shorter[top])
        shorter[i] = top
        top = i


@kernel(b1, i4r, i4r, i4w)
def _link(lows: Any, highs: Any, parents: Any) -> Any:
    """The parents of intervals in order of their lows; False if two neither nest nor are apart."""
    for i in range(len(lows)):
        parent = i - 1
        while parent >= 0 and highs[parent] < lows[i]:
            parent = int(parents[parent])
        if parent >= 0 and highs[parent] < highs[i]:
            return False
        parents[i] = parent
    return True


@kernel(i8, TRIE, i4w)
def _depths(trie: Any, depths: Any) -> Any:
    """The number of prefixes from the root down to each node, and the greatest."""
    _, _, parents = trie
    most = 0
    for i in range(len(parents)):
        depths[i] = 1 if parents[i] < 0 else depths[parents[i]] + 1
        most = max(most, depths[i])
    return most


@kernel(void, TRIE, i4r, i4r, i4w)
def _nodes_of(trie: Any, some_lows: Any, some_highs: Any, nodes: Any) -> None:
    lows, highs, _ = trie
    for i in range(len(nodes)):
        node = position(lows, 0, len(lows), some_lows[i])
        found = node < len(lows) and lows[node] == some_lows[i] and highs[node] == some_highs[i]
        nodes[i] = node if found else -1


class Trie:
    """All prefixes that a rank space can tell apart; immutable, see the module."""

    def __init__(self, arrays: TrieArrays) -> None:
        self.searched = frozen(arrays)

    @classmethod
    def of(cls, rank: RankSpace) -> Self:
        """The trie of a rank space: O(bytes of its strings)."""
        data, offsets, channels, *_ = rank.arrays.strings
        heads, bases = rank.arrays.heads, rank.arrays.bases
        shorter = np.empty(len(channels), np.int32)
        successors = np.full(len(channels), -1, np.int32)
        _find_successors(data, offsets, channels, shorter, successors)
        strings = np.flatnonzero((successors >= 0) & (heads[channels, ORDERED] > 0))
        owners = channels[strings]
        # The cell of constant i of a channel is its 2i + 1-st, and that before it the 2i-th.
        origins = bases[owners] - 2 * (heads[owners, FIRST] - len(rank.arrays.floors))
        lows = (origins + 2 * strings + 1).astype(np.int32)
        highs = (origins + 2 * successors[strings].astype(np.int64)).astype(np.int32)
        parents = np.empty_like(lows)
        _link(lows, highs, parents)
        return cls(TrieArrays(lows, highs, parents))

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self.searched.lows)

    @property
    def depth(self) -> int:
        """The most prefixes that one string can have: O(nodes)."""
        return int(_depths(self.searched, np.empty(len(self), np.int32)))

    def nodes_of(self, lows: Int32s, highs: Int32s) -> Int32s:
        """The node of each interval of cells that is a prefix, and -1 for others: O(log nodes)."""
        nodes = np.empty(len(lows), np.int32)
        _nodes_of(self.searched, lows, highs, nodes)
        return nodes

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What it consists of, to be saved; read-only memory-mapped arrays work as well."""
        return dict(self.searched._asdict())

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The trie again, searched in place."""
        return cls(record_of(TrieArrays, arrays))

    def check(self, n_cells: int) -> None:
        """Verify every invariant: O(nodes)."""
        lows, highs, parents = self.searched
        assert len(lows) == len(highs) == len(parents), "a node of the trie is cut off"
        for array in self.searched:
            assert array.dtype == np.int32, "the trie is not of 32 bits"
            assert array.ndim == 1, "the trie is not flat"
        assert (lows >= 0).all(), "a prefix begins before the axis"
        assert (lows <= highs).all(), "a prefix ends before it begins"
        assert (highs < n_cells).all(), "a prefix is past the end of the axis"
        assert (lows[1:] > lows[:-1]).all(), "prefixes are out of order"
        linked = np.empty_like(parents)
        assert _link(lows, highs, linked), "two prefixes neither nest nor are apart"
        assert np.array_equal(parents, linked), "a prefix is under the wrong one"
