"""Sorted lists in flat arrays, as kernels see them: searching them, and changing single pairs.

A list holds pairs (key, value), ascending. Short ones are a *flat run*: list n is what lies in
``keys`` and ``values`` from ``begins[n]`` to ``ends[n]``, and may grow up to ``limits[n]``
(``stabbing/areas.py``). A long one that may change is a B+tree of *blocks*, which lie in the same
two arrays; ``begins[n]`` is then ~(where its root is), and ``ends[n]`` the number of its pairs. A
block is a header and ``BLOCK`` places::

    leaf    keys    count  | key key key ...                              free
            values  next   | value value value ...                        free
    inner   keys    ~count | key key key ...     free | child child child ...   free
            values  .      | value value value   free |

``next`` is the leaf that follows, or -1, so that a scan goes on without the tree. An inner block
repeats, for each child, a pair that is above all pairs of the child before and not above its own;
its first half has room for ``FAN`` of them, its second for the children. Every block but a root is
at least a quarter full.

Searching::

    begin, end, block = seek(begins, ends, keys, n, key)
    while True:
        for i in range(begin, end):
            ...                                     # keys[i] >= key, values[i]; break at will
        block, begin, end = following(keys, values, block)
        if block < 0:
            break

Inserting splits full blocks on the way down, deleting first fills up those at the least size from
their neighbours: one way down, no way back. Both are O(log n) comparisons and move at most a
block's pairs on each level, whatever the list's length; ``room_for`` tells how many slots at the
free end are enough. Freed blocks are chained through their ``next`` and used again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.jit import i4r, i4w, i8w, inline, tuple_type
from bittern.stabbing.areas import HELD, USED, move_to_end, rank

BLOCK = 64
"""Pairs in a full leaf."""
FAN = BLOCK // 2
"""Children of a full inner block."""
SLOTS = BLOCK + 1
"""What a block occupies of the arrays."""
FREE = 2
"""Where, among the running figures, the first freed block is, or -1."""

_SMALLEST_AREA = 4
# An inner block has 8 children at least and a leaf 16 pairs: 2**31 pairs make 10 levels at most.
_MOST_BLOCKS = 11


class ListArrays(NamedTuple):
    """What searching needs of sorted lists."""

    begins: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]
    keys: npt.NDArray[np.int32]
    values: npt.NDArray[np.int32]


LISTS = tuple_type(ListArrays, i4r, i4r, i4r, i4r)


class LooseArrays(NamedTuple):
    """What changing needs of sorted lists."""

    begins: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]
    limits: npt.NDArray[np.int32]
    keys: npt.NDArray[np.int32]
    values: npt.NDArray[np.int32]
    figures: npt.NDArray[np.int64]


LOOSE = tuple_type(LooseArrays, i4w, i4w, i4w, i4w, i4w, i8w)


def room_for(n_pairs: int, used: int) -> int:
    """Slots at the free end that are enough to insert this many pairs, whichever they are.

    Each pair can split a block on each level. But all together, every run and block that there is
    can make room for itself and for a new root once; what is new after that is half empty.
    """
    return min(n_pairs * _MOST_BLOCKS * SLOTS, 4 * used + 16 * n_pairs)


@inline
def length_of(begins: Any, ends: Any, n: Any) -> Any:
    """How many pairs list n holds."""
    begin = int(begins[np.uint64(n)])
    return int(ends[np.uint64(n)]) - max(begin, 0)


@inline
def seek(begins: Any, ends: Any, keys: Any, n: Any, key: Any) -> tuple[Any, Any, Any]:
    """Where the pairs of list n from ``key`` on begin, where their run ends, and its block.

    The block is -1 where the list is one flat run. An empty answer with a block may go on in the
    following one.
    """
    begin = int(begins[np.uint64(n)])
    if begin >= 0:
        end = int(ends[np.uint64(n)])
        return rank(keys, begin, end, key), end, -1
    block = ~begin
    count = int(keys[np.uint64(block)])
    while count < 0:
        # The last child whose pair has a lower key; the first one takes what is below all.
        at = rank(keys, block + 2, block + 1 + ~count, key) - 1
        block = int(keys[np.uint64(at + FAN)])
        count = int(keys[np.uint64(block)])
    end = block + 1 + count
    return rank(keys, block + 1, end, key), end, block


@inline
def following(keys: Any, values: Any, block: Any) -> tuple[Any, Any, Any]:
    """The next block of the same list, and where its pairs begin and end; -1 after the last."""
    if block < 0:
        return -1, 0, 0
    after = int(values[np.uint64(block)])
    if after < 0:
        return -1, 0, 0
    return after, after + 1, after + 1 + int(keys[np.uint64(after)])


@inline
def start_of(begins: Any, ends: Any, keys: Any, n: Any) -> tuple[Any, Any, Any]:
    """As ``seek``, from the list's first pair on."""
    begin, end, block = seek(begins, ends, keys, n, -2147483648)
    return begin, end, block


@inline
def joined(key: Any, value: Any) -> Any:
    """One number per pair, in the order of pairs."""
    return (int(key) << 32) + (int(value) + 2147483648)


@inline
def _pair_rank(keys: Any, values: Any, begin: Any, end: Any, pair: Any) -> Any:
    """Position in [begin, end) of the first pair that is not below this one."""
    while begin < end:
        middle = (begin + end) >> 1
        if joined(keys[np.uint64(middle)], values[np.uint64(middle)]) < pair:
            begin = middle + 1
        else:
            end = middle
    return begin


@inline
def _child_of(keys: Any, values: Any, block: Any, pair: Any) -> Any:
    """Where in an inner block the pair of the child is that a pair belongs to."""
    end = block + 1 + ~int(keys[np.uint64(block)])
    at = _pair_rank(keys, values, block + 2, end, pair)
    if at < end and joined(keys[np.uint64(at)], values[np.uint64(at)]) == pair:
        return at
    return at - 1


@inline
def find_pair(begins: Any, ends: Any, keys: Any, values: Any, n: Any, key: Any, value: Any) -> Any:
    """Where in the arrays list n holds a pair, or -1."""
    pair = joined(key, value)
    begin = int(begins[np.uint64(n)])
    end = int(ends[np.uint64(n)])
    if begin < 0:
        block = ~begin
        while keys[np.uint64(block)] < 0:
            block = int(keys[np.uint64(_child_of(keys, values, block, pair) + FAN)])
        begin, end = block + 1, block + 1 + int(keys[np.uint64(block)])
    at = _pair_rank(keys, values, begin, end, pair)
    if at < end and joined(keys[np.uint64(at)], values[np.uint64(at)]) == pair:
        return at
    return -1


@inline
def _slide(keys: Any, values: Any, source: Any, target: Any, n: Any) -> None:
    """Move n places, which may overlap."""
    if target <= source:
        for i in range(n):
            keys[target + i] = keys[source + i]
            values[target + i] = values[source + i]
    else:
        for i in range(n - 1, -1, -1):
            keys[target + i] = keys[source + i]
            values[target + i] = values[source + i]


@inline
def _put(keys: Any, values: Any, at: Any, end: Any, key: Any, value: Any) -> None:
    """Insert a pair before what is in [at, end)."""
    _slide(keys, values, at, at + 1, end - at)
    keys[at] = key
    values[at] = value


@inline
def _new_block(values: Any, figures: Any) -> Any:
    block = int(figures[FREE])
    if block >= 0:
        figures[FREE] = values[block]
    else:
        block = int(figures[USED])
        figures[USED] += SLOTS
    return block


@inline
def _free_block(keys: Any, values: Any, figures: Any, block: Any) -> None:
    keys[block] = 0
    values[block] = figures[FREE]
    figures[FREE] = block


@inline
def _size(keys: Any, block: Any) -> tuple[Any, Any]:
    """How much a block holds, and how much it can."""
    count = int(keys[np.uint64(block)])
    if count < 0:
        return ~count, FAN
    return count, BLOCK


@inline
def _level(keys: Any, values: Any, left: Any, right: Any, target: Any) -> None:
    """Move pairs (and children) between two neighbours until the left one holds ``target``."""
    inner = keys[left] < 0
    a, _ = _size(keys, left)
    b, _ = _size(keys, right)
    for part in range(2 if inner else 1):
        first, second = left + 1 + part * FAN, right + 1 + part * FAN
        if a > target:
            _slide(keys, values, second, second + a - target, b)
            _slide(keys, values, first + target, second, a - target)
        else:
            _slide(keys, values, second, first + a, target - a)
            _slide(keys, values, second + target - a, second, a + b - target)
    keys[left] = ~target if inner else target
    keys[right] = ~(a + b - target) if inner else a + b - target


@inline
def _split(keys: Any, values: Any, figures: Any, parent: Any, at: Any) -> None:
    """Move the upper half of a full child to a new one; ``at`` is the child's pair."""
    left = int(keys[at + FAN])
    right = _new_block(values, figures)
    if keys[left] < 0:
        keys[right] = ~0
        values[right] = -1
    else:
        keys[right] = 0
        values[right] = values[left]
        values[left] = right
    size, _ = _size(keys, left)
    _level(keys, values, left, right, size // 2)
    end = parent + 1 + ~int(keys[parent])
    _put(keys, values, at + 1, end, keys[right + 1], values[right + 1])
    _put(keys, values, at + 1 + FAN, end + FAN, right, 0)
    keys[parent] -= 1


@inline
def _fill_up(keys: Any, values: Any, figures: Any, parent: Any, at: Any) -> None:
    """Share what the children at ``at`` and after it hold, or make them one if that is not much."""
    left, right = int(keys[at + FAN]), int(keys[at + 1 + FAN])
    a, most = _size(keys, left)
    b, _ = _size(keys, right)
    if 4 * (a + b) > 3 * most:
        _level(keys, values, left, right, (a + b) // 2)
        keys[at + 1] = keys[right + 1]
        values[at + 1] = values[right + 1]
        return
    _level(keys, values, left, right, a + b)
    if keys[left] >= 0:
        values[left] = values[right]
    _free_block(keys, values, figures, right)
    end = parent + 1 + ~int(keys[parent])
    _slide(keys, values, at + 2, at + 1, end - at - 2)
    _slide(keys, values, at + 2 + FAN, at + 1 + FAN, end - at - 2)
    keys[parent] += 1


@inline
def insert_pair(
    begins: Any,
    ends: Any,
    limits: Any,
    keys: Any,
    values: Any,
    figures: Any,
    n: Any,
    key: Any,
    value: Any,
) -> Any:
    """Insert a pair into list n; False if it is there already. There must be room."""
    pair = joined(key, value)
    begin, end = int(begins[n]), int(ends[n])
    if begin >= 0 and end == limits[n]:
        old, size = begin, end - begin
        if 2 * size < BLOCK:
            begin, end = move_to_end(n, begins, ends, limits, figures, _SMALLEST_AREA)
            _slide(keys, values, old, begin, size)
        else:
            block = _new_block(values, figures)
            _slide(keys, values, old, block + 1, size)
            keys[block] = size
            values[block] = -1
            begin = ~block
            begins[n], ends[n], limits[n] = begin, size, begin
    if begin < 0:
        block = ~begin
        size, most = _size(keys, block)
        if size == most:
            root = _new_block(values, figures)
            keys[root] = ~1
            values[root] = -1
            keys[root + 1] = keys[block + 1]
            values[root + 1] = values[block + 1]
            keys[root + 1 + FAN] = block
            values[root + 1 + FAN] = 0
            _split(keys, values, figures, root, root + 1)
            begins[n] = ~root
            block = root
        while keys[np.uint64(block)] < 0:
            at = _child_of(keys, values, block, pair)
            size, most = _size(keys, int(keys[at + FAN]))
            if size == most:
                _split(keys, values, figures, block, at)
                at += int(joined(keys[at + 1], values[at + 1]) <= pair)
            if at == block + 1 and pair < joined(keys[at], values[at]):
                keys[at], values[at] = key, value
            block = int(keys[at + FAN])
        begin, end = block + 1, block + 1 + int(keys[block])
        at = _pair_rank(keys, values, begin, end, pair)
        if at < end and joined(keys[at], values[at]) == pair:
            return False
        keys[block] += 1
    else:
        at = _pair_rank(keys, values, begin, end, pair)
        if at < end and joined(keys[at], values[at]) == pair:
            return False
    _put(keys, values, at, end, key, value)
    ends[n] += 1
    figures[HELD] += 1
    return True


@inline
def delete_pair(
    begins: Any,
    ends: Any,
    keys: Any,
    values: Any,
    figures: Any,
    n: Any,
    key: Any,
    value: Any,
) -> Any:
    """Delete a pair from list n; False if it is not there. Needs no room."""
    pair = joined(key, value)
    begin, end = int(begins[n]), int(ends[n])
    block = -1
    if begin < 0:
        block = ~begin
        while keys[np.uint64(block)] < 0:
            at = _child_of(keys, values, block, pair)
            size, most = _size(keys, int(keys[at + FAN]))
            if 4 * size <= most:
                at -= int(at > block + 1)
                _fill_up(keys, values, figures, block, at)
                if keys[block] == ~1:  # only a root comes to this
                    begins[n] = ~keys[at + FAN]
                    _free_block(keys, values, figures, block)
                else:
                    at = _child_of(keys, values, block, pair)
            block = int(keys[at + FAN])
        begin, end = block + 1, block + 1 + int(keys[block])
    at = _pair_rank(keys, values, begin, end, pair)
    if at == end or joined(keys[at], values[at]) != pair:
        return False
    _slide(keys, values, at + 1, at, end - at - 1)
    if block >= 0:
        keys[block] -= 1
    ends[n] -= 1
    figures[HELD] -= 1
    return True
