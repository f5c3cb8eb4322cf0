"""Classes: expressions in rank space, each distinct one once.

After compiling, a subscription is a structure (``model/classes/structure.py``) and one *test* per
leaf: a channel and a closed interval of global cells; [-1, -1] is "missing". Here every expression
is put into canonical form, so that the same condition written twice becomes one **class** with two
subscribers:

- tests of one conjunction on the same channel are intersected
  (``a >= 3 AND a <= 5`` is one interval);
- tests of one disjunction on the same channel are united where they overlap or touch
  (``a < 5 OR a < 7`` is one interval, and an empty test beside it);
- a plain conjunction keeps only its tests, sorted, whatever order it was written in.

A test whose interval is empty (low > high) never holds; a class that it decides never matches.

    tests         channels  lows  highs      one row per test
    starts        where a subscription's tests begin, and counts how many are left
    structure_of  number of its structure; 0 is "a plain conjunction of all tests"
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import starts_of
from bittern.jit import (
    folded_product,
    frozen,
    i4,
    i4r,
    i4w,
    i8,
    i8r,
    inline,
    kernel,
    tuple_type,
    u8r,
    u8w,
    void,
)
from bittern.model.classes.structure import AND, OR, TEST, Structure
from bittern.model.hashing import hash_pair, secret_key

#: Sorting a conjunction's tests is quadratic; longer ones stay as written.
_SORTED_UP_TO = 64


class StructureArrays(NamedTuple):
    """All structures, one after the other; number 0 is the plain conjunction and has no nodes."""

    node_starts: npt.NDArray[np.int64]
    operators: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int32]
    jump_starts: npt.NDArray[np.int64]
    jumps: npt.NDArray[np.int32]

    @classmethod
    def of(cls, structures: list[Structure]) -> StructureArrays:
        """Lay structures 1, 2, ... out in arrays."""
        nodes = [0, 0, *np.cumsum([len(s.operators) for s in structures])]
        jumps = [0, 0, *np.cumsum([len(s.jumps) for s in structures])]
        empty = [np.empty(0, dtype=np.int32)]
        return frozen(
            cls(
                np.array(nodes, dtype=np.int64),
                np.concatenate(empty + [s.operators for s in structures]),
                np.concatenate(empty + [s.sizes for s in structures]),
                np.array(jumps, dtype=np.int64),
                np.concatenate(empty + [s.jumps for s in structures]),
            )
        )


STRUCTURES = tuple_type(StructureArrays, i8r, i4r, i4r, i8r, i4r)


@inline
def _conjunction(channels: Any, lows: Any, highs: Any, start: Any, count: Any, seen: Any) -> Any:
    """Intersect tests on the same channel, keep one each; returns how many are left."""
    kept = 0
    for i in range(start, start + count):
        channel = channels[i]
        earlier = seen[channel]
        if start <= earlier < start + kept and channels[earlier] == channel:
            lows[earlier] = max(lows[earlier], lows[i])
            highs[earlier] = min(highs[earlier], highs[i])
        else:
            at = start + kept
            channels[at], lows[at], highs[at] = channel, lows[i], highs[i]
            seen[channel] = at
            kept += 1
    if kept <= _SORTED_UP_TO:
        for i in range(start + 1, start + kept):
            channel, low, high = channels[i], lows[i], highs[i]
            at = i
            while at > start and channels[at - 1] > channel:
                channels[at], lows[at], highs[at] = channels[at - 1], lows[at - 1], highs[at - 1]
                at -= 1
            channels[at], lows[at], highs[at] = channel, low, high
    return kept


@inline
def _nested(
    structures: Any,
    first: Any,
    last: Any,
    channels: Any,
    lows: Any,
    highs: Any,
    at: Any,
    seen: Any,
    owner: Any,
    test_of: Any,
) -> None:
    """Narrow each test to the intersection with its siblings on the same channel under an AND.

    ``owner`` (of a test: the AND that it is a child of) and ``test_of`` (of a node: its first
    test) are room to work in.
    """
    operators, sizes = structures.operators, structures.sizes
    number = at
    for i in range(first, last):
        test_of[i - first] = number
        if operators[i] == TEST:
            number += 1
    for i in range(first, last):
        if operators[i] != AND:
            continue
        for give in range(2):  # first the earliest sibling gathers, then it gives to all
            child = i + 1
            while child < i + sizes[i]:
                if operators[child] == TEST:
                    test = test_of[child - first]
                    earliest = seen[channels[test]]
                    if not (at <= earliest < number and owner[earliest - at] == i):
                        seen[channels[test]] = test
                        owner[test - at] = i
                    elif give:
                        lows[test], highs[test] = lows[earliest], highs[earliest]
                    else:
                        lows[earliest] = max(lows[earliest], lows[test])
                        highs[earliest] = min(highs[earliest], highs[test])
                child += sizes[child]


@inline
def _sort_by_low(order: Any, n: Any, lows: Any) -> None:
    """Shell sort: in place, and near enough to n log n for thousands."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            test = order[i]
            at = i
            while at >= gap and lows[order[at - gap]] > lows[test]:
                order[at] = order[at - gap]
                at -= gap
            order[at] = test
        gap //= 3


@inline
def _united(
    structures: Any,
    first: Any,
    last: Any,
    channels: Any,
    lows: Any,
    highs: Any,
    test_of: Any,
    order: Any,
) -> None:
    """Unite intervals of one channel that overlap or touch under an OR; what is left over is empty.

    So an event satisfies at most one of the pivots that such an OR has in a channel, however
    many predicates it was written with. Cells tell channels apart, so sorting by cell is enough.
    """
    operators, sizes = structures.operators, structures.sizes
    for i in range(first, last):
        if operators[i] != OR:
            continue
        n = 0
        child = i + 1
        while child < i + sizes[i]:
            test = test_of[child - first]
            if operators[child] == TEST and 0 <= lows[test] <= highs[test]:
                order[n] = test
                n += 1
            child += sizes[child]
        _sort_by_low(order, n, lows)
        current = order[0]
        for k in range(1, n):
            test = order[k]
            if channels[current] == channels[test] and lows[test] <= highs[current] + 1:
                highs[current] = max(highs[current], highs[test])
                lows[test], highs[test] = 0, -1
            else:
                current = test


@kernel(void, i4w, i4w, i4w, i8r, i4w, i4w, STRUCTURES, u8r, u8w, i8)
def _canonical(
    channels: Any,
    lows: Any,
    highs: Any,
    starts: Any,
    counts: Any,
    structure_of: Any,
    structures: Any,
    key: Any,
    hashes: Any,
    n_channels: Any,
) -> None:
    """Bring every subscription's tests into canonical form and hash it."""
    node_starts = structures.node_starts
    widest = 1
    for i in range(len(node_starts) - 1):
        widest = max(widest, node_starts[i + 1] - node_starts[i])
    owner = np.empty(widest, dtype=np.int64)
    test_of = np.empty(widest, dtype=np.int64)
    seen = np.full(n_channels + 1, -1, dtype=np.int64)
    for i in range(len(starts)):
        structure, start = structure_of[i], starts[i]
        if structure == 0:
            counts[i] = _conjunction(channels, lows, highs, start, counts[i], seen)
        else:
            first, last = node_starts[structure], node_starts[structure + 1]
            _nested(structures, first, last, channels, lows, highs, start, seen, owner, test_of)
            _united(structures, first, last, channels, lows, highs, test_of, owner)
        mixed = hash_pair(structure, counts[i], key)
        for test in range(start, start + counts[i]):
            packed = np.uint64(np.uint32(lows[test])) << np.uint64(32) | np.uint64(
                np.uint32(highs[test])
            )
            channel = np.uint64(np.uint32(channels[test]))
            mixed = folded_product(packed ^ key[1], mixed ^ channel)
        hashes[i] = folded_product(mixed, key[2])


@inline
def _same(channels: Any, lows: Any, highs: Any, start_a: Any, start_b: Any, count: Any) -> Any:
    for i in range(count):
        if (
            channels[start_a + i] != channels[start_b + i]
            or lows[start_a + i] != lows[start_b + i]
            or highs[start_a + i] != highs[start_b + i]
        ):
            return False
    return True


@kernel(i4, i4r, i4r, i4r, i8r, i4r, i4r, u8w, i4w, i4w)
def _distinct(
    channels: Any,
    lows: Any,
    highs: Any,
    starts: Any,
    counts: Any,
    structure_of: Any,
    hashes: Any,
    class_of: Any,
    representatives: Any,
) -> Any:
    """Number the distinct expressions in order of appearance; returns how many there are."""
    size = 16
    while size < 2 * len(starts):
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, dtype=np.int32)
    n_classes = 0
    for i in range(len(starts)):
        at = hashes[i] & mask
        while True:
            other = slots[at]
            if other < 0:
                slots[at] = n_classes
                representatives[n_classes] = i
                class_of[i] = n_classes
                n_classes += 1
                break
            r = representatives[other]
            if (
                hashes[r] == hashes[i]
                and structure_of[r] == structure_of[i]
                and counts[r] == counts[i]
                and _same(channels, lows, highs, starts[r], starts[i], counts[i])
            ):
                class_of[i] = other
                break
            at = (at + np.uint64(1)) & mask
    return n_classes


class ClassArrays(NamedTuple):
    """Classes as kernels see them."""

    channels: npt.NDArray[np.int32]
    lows: npt.NDArray[np.int32]
    highs: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int32]
    structure_of: npt.NDArray[np.int32]
    structures: StructureArrays


CLASSES = tuple_type(ClassArrays, i4r, i4r, i4r, i8r, i4r, i4r, STRUCTURES)


@dataclass(frozen=True)
class Classes:
    """The distinct expressions of all subscriptions, in rank space."""

    channels: npt.NDArray[np.int32]
    lows: npt.NDArray[np.int32]
    highs: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int32]
    structure_of: npt.NDArray[np.int32]
    structures: StructureArrays

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def arrays(self) -> ClassArrays:
        """What kernels take."""
        return frozen(ClassArrays(*(getattr(self, name) for name in ClassArrays._fields)))

    def take(self, which: npt.NDArray[Any]) -> Classes:
        """Some classes, in this order; their tests stay where they are."""
        return replace(
            self,
            starts=self.starts[which],
            counts=self.counts[which],
            structure_of=self.structure_of[which],
        )


def classify(
    channels: npt.NDArray[np.int32],
    lows: npt.NDArray[np.int32],
    highs: npt.NDArray[np.int32],
    counts: npt.NDArray[np.int32],
    structure_of: npt.NDArray[np.int32],
    structures: StructureArrays,
    n_channels: int,
) -> tuple[Classes, npt.NDArray[np.int32]]:
    """Classes, and the class of each subscription. O(tests); the test arrays are rewritten."""
    starts = starts_of(counts)[:-1]
    hashes = np.empty(len(counts), dtype=np.uint64)
    tests = channels, lows, highs, starts, counts, structure_of
    _canonical(*tests, structures, secret_key(), hashes, n_channels)
    class_of = np.empty(len(counts), dtype=np.int32)
    representatives = np.empty(len(counts), dtype=np.int32)
    n = _distinct(*tests, hashes, class_of, representatives)
    chosen = representatives[:n]
    classes = Classes(
        channels, lows, highs, starts[chosen], counts[chosen], structure_of[chosen], structures
    )
    return classes, class_of
