"""Pages of a PB+tree: items in the order of their keys, in 32-bit words.

A page is a header of 16 words, slots that grow upwards and contents that grow downwards from the
end. Slot i and the contents of item i lie in the same order, so that the contents of several
neighbours are one block, to be copied at once::

    header | slot 0 | slot 1 | slot 2 |   free   | contents 2 | contents 1 | contents 0 |
                                                   sids, tail   sids, tail   sids, tail

Five kinds of pages hold items or sids::

    branch   key, child                          4 words a slot
    leaf     key, SidSet, three list pointers    8
    list     key, SidSet                         6
    spill    sids of one SidSet that has grown beyond an eighth of a page, ascending, linked
    fork     what leads to the spill pages of one SidSet, and the smallest sid of each

A slot begins with the first eight bytes of the key as a number (order-preserving, see ``keys``),
which decides nearly every comparison. Then comes the key's length in bytes with the place of its
*tail*, what is longer than eight bytes. Numbers and times have none. The SidSet is a place among
the contents, or the negative number of its fork or only spill page; and how many sids there are.

The key below all others (head) and the one above all (tail of a list) are never compared: a page
says in its header that its first or its last item is one.

Everything here works on one page at ``base`` (its first word in ``ints``) and takes O(page) at
most. The caller makes sure that there is room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bittern.jit import apart, i4r, i8r, inline, tuple_type, u8r

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bittern.arrays import Int32s, Int64s, UInt64s

BRANCH, LEAF, LIST, SPILL, FORK = 1, 2, 3, 4, 5

# Words of the header; 0 to 4 are the page file's.
KIND, COUNT, PREVIOUS, NEXT, FIRST, LAST = 5, 6, 7, 8, 9, 10
SPILLED = 11
"""How many items have their SidSet in spill pages."""
SIDS = 6
"""Sids of all items, as a 64-bit number (words 12 and 13)."""
HEADER = 16

# Words of a slot.
KEY, TAIL, CHILD, PLACE, N_SIDS, POINTERS = 0, 2, 3, 3, 4, 5

# The numbers of the whole tree, beside those of the pool.
PAGE_WORDS, ROOT, HEIGHT, FIRST_LEAF, KEYS, LEAF_SIDS, LONGEST = 2, 3, 4, 5, 6, 7, 8
"""LONGEST: words of the longest tail so far."""
HEADS, TAILS, LIST_KEYS, LIST_SIDS, LIST_NODES = 10, 13, 16, 19, 22
"""Three numbers each, for the Inequality, GreaterThan and LessThan list."""
LEAVES, BRANCHES, SPILLS = 25, 26, 27
INSERTED, ADJUSTED, DELETED, READJUSTED = 28, 29, 30, 31
"""Predicates inserted, and leaves accessed to adjust pointers (the paper's Number_update); deleted,
and leaves accessed for that."""
PENDING = 32
"""An adjustment of pointers that is not at its end: six numbers, see ``adjust``."""
PHASE = 38
"""What is left to do for the row at hand, when a kernel comes back for room: see ``delete``."""

INEQ, GT, LT = 0, 1, 2

LENGTH = 0xFFFF
NUMBER_BYTES = 8
"""The length of every key that is not a string."""


class PageArrays(NamedTuple):
    """The pages of a tree as kernels see them: the frames, as words and as longs, and numbers."""

    pool: Int64s  # what is in which frame; see ``pool``
    ints: Int32s
    longs: UInt64s
    tree: Int64s


class Key(NamedTuple):
    """A key, in a kernel: its first eight bytes as a number, its length, and its tail."""

    prefix: Any
    length: Any
    tails: Any
    start: Any  # of the tail in ``tails``


class TreeKeys(NamedTuple):
    """Keys in their order-preserving form: see ``keys``; without lengths, all are numbers.

    Kernels take them read-only.
    """

    prefixes: NDArray[np.uint64]
    lengths: Int32s
    starts: Int64s
    tails: Int32s


KEYS_TYPE = tuple_type(TreeKeys, u8r, i4r, i8r, i4r)


@inline
def stride_of(kind: Any) -> Any:
    """Words of a slot."""
    if kind == LEAF:
        return 8
    return 4 if kind == BRANCH else 6


@inline
def tail_words(length: Any) -> Any:
    """Words of what is longer than eight bytes."""
    return (length - 5) >> 2 if length > 8 else 0


@inline
def slot_of(ints: Any, base: Any, at: Any) -> Any:
    """The first word of a slot."""
    return base + HEADER + at * stride_of(ints[base + KIND])


@inline
def clear(ints: Any, longs: Any, base: Any, kind: Any) -> None:
    """Make it a page of this kind without items."""
    for word in range(base + KIND, base + HEADER):
        ints[word] = 0
    ints[base + KIND] = kind
    longs[(base >> 1) + SIDS] = 0


# -- keys --------------------------------------------------------------------------------------


@inline
def is_below(ints: Any, longs: Any, base: Any, slot: Any, key: Any) -> Any:
    """Whether the key of a slot is below a key."""
    prefix, length, tails, start = key
    own = longs[slot >> 1]
    if own != prefix:
        return own < prefix
    word = ints[slot + TAIL]
    own_length = word & LENGTH
    if own_length > 8 and length > 8:
        tail = base + (word >> 16)
        for k in range(min(tail_words(own_length), tail_words(length))):
            a, b = np.uint32(ints[tail + k]), np.uint32(tails[start + k])
            if a != b:
                return a < b
    return own_length < length


@inline
def is_equal(ints: Any, longs: Any, base: Any, slot: Any, key: Any) -> Any:
    """Whether the key of a slot is this key."""
    prefix, length, tails, start = key
    word = ints[slot + TAIL]
    if longs[slot >> 1] != prefix or word & LENGTH != length:
        return False
    tail = base + (word >> 16)
    for k in range(tail_words(length)):  # noqa: SIM110
        if ints[tail + k] != tails[start + k]:
            return False
    return True


@inline
def find(
    ints: Any,
    longs: Any,
    base: Any,
    low: Any,
    high: Any,
    key: Any,
) -> Any:
    """The first item of low .. high-1 that is not below a key, or high."""
    stride = stride_of(ints[base + KIND])
    first = base + HEADER
    while low < high:
        middle = (low + high) >> 1
        if is_below(ints, longs, base, first + middle * stride, key):
            low = middle + 1
        else:
            high = middle
    return low


@inline
def holds(ints: Any, longs: Any, base: Any, at: Any, key: Any) -> Any:
    """Whether item ``at``, which may be beyond the last, has this key and is not a sentinel."""
    if at >= ints[base + COUNT] - ints[base + LAST] or at < ints[base + FIRST]:
        return False
    slot = slot_of(ints, base, at)
    return is_equal(ints, longs, base, slot, key)


@apart
def take_key(ints: Any, base: Any, at: Any, scratch: Any) -> None:
    """Copy the key of an item: two words of prefix, the length, the tail."""
    slot = slot_of(ints, base, at)
    word = ints[slot + TAIL]
    scratch[0], scratch[1], scratch[2] = ints[slot], ints[slot + 1], word & LENGTH
    tail = base + (word >> 16)
    for k in range(tail_words(word & LENGTH)):
        scratch[3 + k] = ints[tail + k]


@inline
def prefix_in(scratch: Any) -> Any:
    """The prefix of a key that was taken."""
    return np.uint64(np.uint32(scratch[0])) | (np.uint64(np.uint32(scratch[1])) << np.uint64(32))


# -- room --------------------------------------------------------------------------------------


@inline
def low_of(ints: Any, kind: Any, slot: Any) -> Any:
    """Where the contents of an item begin: its sids, or its tail if it has none here."""
    if kind != BRANCH and ints[slot + PLACE] >= 0:
        return ints[slot + PLACE]
    return ints[slot + TAIL] >> 16


@inline
def edge(ints: Any, base: Any, words: Any, at: Any) -> Any:
    """Where the contents of the items before ``at`` begin; those of the others are below."""
    if at == 0:
        return words
    return low_of(ints, ints[base + KIND], slot_of(ints, base, at - 1))


@inline
def free_words(ints: Any, base: Any, words: Any) -> Any:
    """Words between slots and contents."""
    count = ints[base + COUNT]
    return edge(ints, base, words, count) - HEADER - count * stride_of(ints[base + KIND])


@apart
def shift(ints: Any, base: Any, words: Any, first: Any, limit: Any, by: Any) -> None:
    """Move all contents below ``limit`` down by some words: those of items from ``first`` on."""
    kind, count = ints[base + KIND], ints[base + COUNT]
    low = edge(ints, base, words, count)
    if by > 0:
        for word in range(base + low, base + limit):
            ints[word - by] = ints[word]
    else:
        for word in range(base + limit - 1, base + low - 1, -1):
            ints[word - by] = ints[word]
    for at in range(first, count):
        slot = slot_of(ints, base, at)
        ints[slot + TAIL] -= by << 16
        if kind != BRANCH and ints[slot + PLACE] >= 0:
            ints[slot + PLACE] -= by


# -- items -------------------------------------------------------------------------------------


@apart
def put_item(
    ints: Any,
    longs: Any,
    base: Any,
    words: Any,
    at: Any,
    key: Any,
) -> Any:
    """Put an item without sids in before item ``at``; returns its slot."""
    prefix, length, tails, start = key
    stride, count = stride_of(ints[base + KIND]), ints[base + COUNT]
    limit, size = edge(ints, base, words, at), tail_words(length)
    shift(ints, base, words, at, limit, size)
    slot = base + HEADER + at * stride
    for word in range(base + HEADER + count * stride - 1, slot - 1, -1):
        ints[word + stride] = ints[word]
    longs[slot >> 1] = prefix
    ints[slot + TAIL] = ((limit - size) << 16) | length
    for k in range(size):
        ints[base + limit - size + k] = tails[start + k]
    ints[slot + PLACE] = limit - size
    for word in range(slot + PLACE + 1, slot + stride):
        ints[word] = 0
    ints[base + COUNT] = count + 1
    return slot


@apart
def drop_item(ints: Any, longs: Any, base: Any, words: Any, at: Any) -> None:
    """Take an item out, with the sids that are here."""
    kind, stride, count = ints[base + KIND], stride_of(ints[base + KIND]), ints[base + COUNT]
    slot = slot_of(ints, base, at)
    low, high = low_of(ints, kind, slot), edge(ints, base, words, at)
    if kind != BRANCH:
        longs[(base >> 1) + SIDS] -= np.uint64(ints[slot + N_SIDS])
        if ints[slot + PLACE] < 0:
            ints[base + SPILLED] -= 1
    shift(ints, base, words, at + 1, low, low - high)
    for word in range(slot, base + HEADER + (count - 1) * stride):
        ints[word] = ints[word + stride]
    ints[base + COUNT] = count - 1


@apart
def move_items(ints: Any, longs: Any, base: Any, words: Any, first: Any, to: Any) -> None:
    """Append all items from ``first`` on to the page at ``to``, of the same kind."""
    kind, stride = ints[base + KIND], stride_of(ints[base + KIND])
    count, before = ints[base + COUNT], ints[to + COUNT]
    low, high = edge(ints, base, words, count), edge(ints, base, words, first)
    delta = edge(ints, to, words, before) - high
    for word in range(low, high):
        ints[to + delta + word] = ints[base + word]
    source, target = slot_of(ints, base, first), slot_of(ints, to, before)
    for k in range((count - first) * stride):
        ints[target + k] = ints[source + k]
    sids, spilled = 0, 0
    for at in range(count - first):
        slot = target + at * stride
        ints[slot + TAIL] += delta << 16
        if kind != BRANCH:
            sids += ints[slot + N_SIDS]
            if ints[slot + PLACE] >= 0:
                ints[slot + PLACE] += delta
            else:
                spilled += 1
    ints[to + COUNT] = before + count - first
    ints[base + COUNT] = first
    if kind != BRANCH:
        longs[(to >> 1) + SIDS] += np.uint64(sids)
        longs[(base >> 1) + SIDS] -= np.uint64(sids)
        ints[to + SPILLED] += spilled
        ints[base + SPILLED] -= spilled
    ints[to + LAST], ints[base + LAST] = ints[base + LAST], 0


@apart
def middle_of(ints: Any, base: Any, words: Any, at: Any) -> Any:
    """Where to cut a page in two that gets one more item before ``at``.

    In the middle of what is stored; but where the new item comes last, behind all, so that
    ascending keys leave full pages. The key below all stays to the left, the key above all does not
    stand alone to the right unless the new item joins it there.
    """
    count, last = ints[base + COUNT], ints[base + LAST]
    if at >= count - last:
        return count - 1
    used = words - edge(ints, base, words, count) + count * stride_of(ints[base + KIND])
    stride = stride_of(ints[base + KIND])
    cut = 1
    while cut < count - 1:
        if words - edge(ints, base, words, cut) + cut * stride >= used >> 1:
            break
        cut += 1
    if last and cut == count - 1 and cut > 1:
        cut -= 1
    return cut


# -- sids in the page itself -------------------------------------------------------------------


@apart
def put_sid(ints: Any, longs: Any, base: Any, words: Any, at: Any, sid: Any) -> None:
    """Add a sid to an item whose sids are here."""
    slot = slot_of(ints, base, at)
    place = ints[slot + PLACE]
    shift(ints, base, words, at + 1, place, 1)
    ints[base + place - 1] = sid
    ints[slot + PLACE] = place - 1
    ints[slot + N_SIDS] += 1
    longs[(base >> 1) + SIDS] += np.uint64(1)


@apart
def drop_sids(ints: Any, longs: Any, base: Any, words: Any, at: Any, count: Any) -> None:
    """Take the first ``count`` sids of an item out that are here."""
    slot = slot_of(ints, base, at)
    place = ints[slot + PLACE]
    shift(ints, base, words, at + 1, place, -count)
    ints[slot + PLACE] = place + count
    ints[slot + N_SIDS] -= count
    longs[(base >> 1) + SIDS] -= np.uint64(count)
