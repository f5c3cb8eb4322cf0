"""The Cluster Index (Tatbul; seed 004, 4.1.1): a few keys lead to candidates for a value.

A tree of keys leads a value to a leaf (``cluster_tree``). The bits of the leaf's row are its
cluster, the intervals that meet the leaf's cells and so *may* contain the value; each of them is
then compared with the value::

    a [2, 6]   b [6, 21]   c [19, 23]   d [21, 48]   e [23, 50]

    leaf     0          1          2          3         value 7: less than 21 and less than 19,
    cells    .. 18      19 .. 20   21 .. 22   23 ..     so leaf 0; of a and b, a does not contain
    row      a b        b c        b c d      c d e     it: 2 keys and 2 candidates

A leaf's row is what seed 004 stores in every node; it notes that the inner nodes' are not needed.

Costs, for n intervals: an interval is in each leaf that it meets. There are as many leaves as
can be told apart: with little overlap about n, of a few intervals each. Where many overlap, rows
are long, and all their candidates are compared with the value: that is what the Hybrid Index
mends. Rows are words of bits (``vectors``), n**2 / 64 of them when everything overlaps; what
would exceed its limit is refused. ``minimum`` ends splitting at clusters of that size, which saves
leaves and costs candidates; 1 is the paper's rule.

An insertion sets a bit in each leaf that it meets and leaves the keys as they are, so that clusters
grow. When as much changed as half of the intervals, everything is built again (``Slots.worn``),
with keys for what is there.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.arrays import Int32s, Int64s, starts_of, stretches
from bittern.jit import (
    i4r,
    i4r2,
    i4w,
    i8,
    i8w,
    inline,
    kernel,
    read_only,
    u8r,
    u8w,
    void,
)
from bittern.literature.bit_vectors.bit_runs import BitRuns, ask_for_slots, find_slot
from bittern.literature.bit_vectors.bitmaps import NO_BITS, ONE_BIT, count_bits, lowest_bit
from bittern.literature.bit_vectors.cluster_tree import ClusterTree, checked_minimum, way_to
from bittern.literature.bit_vectors.slots import Slots
from bittern.literature.bit_vectors.vectors import BitVectors
from bittern.literature.bit_vectors.words import count_row
from bittern.stabbing.contract import MAX_DOMAIN, Located, StabbingIndex, as_values, unfit
from bittern.stabbing.runs import RUNS, add_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

_6, _64 = np.uint64(6), np.uint64(64)
_FEW = np.uint64(4)

MOST_WORDS = 2**24
"""Words of candidates that are compared with values at a time: 192 MiB."""


@inline
def _matching(word: Any, base: Any, lows: Any, highs: Any, value: Any) -> Any:
    """Those bits of a word of candidates, from slot ``base`` on, whose interval has the value.

    Comparing all 64 slots takes wide instructions, and no longer than four one by one.
    """
    matching = NO_BITS
    if base + _64 <= np.uint64(len(lows)) and count_bits(word) > _FEW:
        for bit in range(_64):
            hit = (lows[base + bit] <= value) & (value <= highs[base + bit])
            matching |= np.uint64(hit) << bit
        return matching & word
    while word != NO_BITS:
        bit = lowest_bit(word)
        hit = (lows[base + bit] <= value) & (value <= highs[base + bit])
        matching |= np.uint64(hit) << bit
        word &= word - ONE_BIT
    return matching


@kernel(void, i4r, i4r, i4r, u8r, i4r, RUNS, i4w, u8w)
def _keep_matches(
    lows: Any,
    highs: Any,
    numbers: Any,
    words: Any,
    values: Any,
    runs: Any,
    kept_numbers: Any,
    kept_words: Any,
) -> None:
    """Compare the candidates of all values, and make the runs those of the words that are kept.

    A run is written over one that was read: there are no more of them, and in the same order.
    """
    offsets, ends, begins, lengths = runs
    total, kept, n, run = NO_BITS, np.uint64(0), 0, 0
    last = ends[len(values)] - 1
    for i in range(len(values)):
        value = values[i]
        while run < ends[i + 1]:
            ask_for_slots(numbers, begins, run, last, lows)
            ask_for_slots(numbers, begins, run, last, highs)
            begin, begun = np.uint64(begins[run]), kept
            for j in range(begin, begin + np.uint64(lengths[run])):
                base = np.uint64(numbers[j]) << _6
                word = _matching(words[j], base, lows, highs, value)
                kept_numbers[kept], kept_words[kept] = numbers[j], word
                kept += np.uint64(word != NO_BITS)
                total += count_bits(word)
            n = add_run(begun, kept, begins, lengths, n)
            run += 1
        offsets[i + 1] = np.int64(total)
        ends[i + 1] = n


@kernel(void, i4r2, i4r, i4r, u8r, i8, i4r, i8w)
def _evaluate(
    nodes: Any, row_begins: Any, row_ends: Any, words: Any, domain: Any, values: Any, counts: Any
) -> None:
    for i in range(len(values)):
        value = values[i]
        counts[i] = 0
        if 0 <= value < domain:
            leaf, keys = way_to(nodes, value)
            counts[i] = keys + count_row(words, row_begins[leaf], row_ends[leaf])


class _Pieces(Located):
    """Matches of a batch with so many candidates that its words would not fit.

    The values are compared piece by piece: once to count, and once more when the ids are asked for.
    """

    def __init__(self, matches: Callable[[Int32s], Located], values: Int32s, cuts: Int64s) -> None:
        """Piece i is values cuts[i] .. cuts[i + 1] - 1; ``matches`` finds those of one."""
        self._matches, self._values, self._cuts = matches, values, cuts
        self.offsets = np.zeros(len(values) + 1, np.int64)
        for begin, end in pairwise(cuts.tolist()):
            offsets = matches(values[begin:end]).offsets
            self.offsets[begin + 1 : end + 1] = self.offsets[begin] + offsets[1:]

    def _fill(self, first: int, last: int, ids: Int32s) -> None:
        inside = self._cuts[(self._cuts > first) & (self._cuts < last)]
        for begin, end in pairwise([first, *inside.tolist(), last]):
            at, stop = self.offsets[[begin, end]] - self.offsets[first]
            found = self._matches(self._values[begin:end])
            found._fill(0, end - begin, ids[at:stop])  # noqa: SLF001


class ClusterIndex(StabbingIndex):
    """Candidates by a tree of keys, and each compared with the value; see the module."""

    name = "cluster"

    def __init__(
        self, tree: ClusterTree, bits: BitVectors, slots: Slots, *, domain: int, minimum: int
    ) -> None:
        self.domain = domain
        self.minimum = minimum
        self._shape = np.array([domain, minimum], np.int64)
        self.tree, self.bits, self.slots = tree, bits, slots

    @classmethod
    def _build(
        cls, lows: Int32s, highs: Int32s, ids: Int32s, domain: int, *, minimum: int = 1
    ) -> Self:
        """O(n log n + words): a sort of the end points, and the rows word by word."""
        minimum = checked_minimum(minimum)
        planted = _plant(lows, highs, ids, minimum, refuse=True)
        return cls(*planted, domain=domain, minimum=minimum)

    def _rebuild(self) -> None:
        live = self.slots.live()
        self.tree, self.bits, self.slots = _plant(*live, self.minimum, refuse=False)

    def _insert(self, low: int, high: int, id: int) -> None:  # noqa: A002
        if self.slots.worn:
            self._rebuild()
        self.bits.set(self.tree.leaves_between(low, high), self.slots.next)
        self.slots.add(low, high, id)

    def _delete(self, low: int, high: int, id: int) -> bool:  # noqa: A002
        rows = self.tree.leaves_between(low, high)
        slot = find_slot(self.bits, rows[:1], self.slots, (low, high, id))
        if slot < 0:
            return False
        self.bits.clear(rows, slot)
        self.slots.free(slot)
        if self.slots.worn:
            self._rebuild()
        return True

    def _locate(self, values: Int32s) -> Located:
        runs = self._candidates(values)
        _, ends, _, lengths = runs.found
        lengths = lengths[: ends[-1]]
        if int(lengths.sum(dtype=np.int64)) <= MOST_WORDS:
            return self._matches(values, runs)
        pieces = stretches(starts_of(lengths)[ends], MOST_WORDS)
        return _Pieces(self._matches, values, np.array([0, *(last for _, last in pieces)]))

    def _matches(self, values: Int32s, runs: BitRuns | None = None) -> BitRuns:
        """Compare the values with their candidates, which are found first if not given."""
        runs = runs or self._candidates(values)
        candidates = runs.numbers, runs.words
        _, ends, _, lengths = runs.found
        room = int(lengths[: ends[-1]].sum(dtype=np.int64))
        runs.numbers, runs.words = np.empty(room, np.int32), np.empty(room, np.uint64)
        slots, kept = self.slots, (runs.numbers, runs.words)
        _keep_matches(slots.lows, slots.highs, *candidates, values, runs.found, *kept)
        return runs

    def candidates_batch(self, values: ArrayLike) -> Located:
        """The candidates of each value, matching or not: where they are, before they are copied."""
        return self._candidates(as_values(values))

    def _candidates(self, values: Int32s) -> BitRuns:
        return BitRuns.of_rows(self.bits, self.slots, self.tree.leaves_of(values, self.domain))

    def evaluations(self, values: ArrayLike) -> Int64s:
        """Count the predicate evaluations for each value, as figures 7 and 8 of seed 004 do.

        One for each key on the way to the leaf, and one for each candidate there, which is
        compared with the value. A value outside the domain is compared with nothing.
        """
        checked = as_values(values)
        counts = np.empty(len(checked), np.int64)
        bits = self.bits
        _evaluate(self.tree.nodes, bits.begins, bits.ends, bits.words, self.domain, checked, counts)
        return counts

    def statistics(self) -> dict[str, int | float]:
        """Sizes of tree and clusters; ``entries`` are the bits that are set: O(words)."""
        entries, leaves = self.bits.n_bits, self.tree.n_leaves
        return {
            "domain": self.domain,
            "minimum": self.minimum,
            "intervals": self.slots.n_live,
            "leaves": leaves,
            "depth": self.tree.depth(),
            "candidates_per_leaf": entries / leaves,
            "entries": entries,
            "words": self.bits.n_words,
            "bytes": self.nbytes,
        }

    def ids(self) -> Int32s:
        """Distinct ids of the intervals, ascending."""
        return self.slots.distinct_ids()

    def check(self) -> None:
        """Verify slots, tree, and the bits of every leaf against the intervals: O(words)."""
        self.slots.check(self.domain)
        self.bits.check(self.slots.n_slots)
        self.tree.check()
        assert self.bits.n_rows == self.tree.n_leaves, "not one row per leaf"
        runs = _runs_of(self.slots, self.tree)
        needed = BitVectors.of_runs(*runs, self.tree.n_leaves, refuse=False)
        assert self.bits.same(needed), "a leaf's cluster is not the intervals that meet its cells"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Tree, rows and slots as they would be built now: O(1) if unchanged."""
        if self.slots.changes:
            self._rebuild()
        return {
            "shape": self._shape.copy(),
            "nodes": read_only(self.tree.nodes),
            **self.bits.arrays(),
            **self.slots.arrays(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are; SnapshotError if their sizes disagree: O(1)."""
        shape, tree = np.asarray(arrays["shape"]), ClusterTree.from_array(arrays["nodes"])
        bits, slots = BitVectors.from_arrays(arrays), Slots.from_arrays(arrays)
        if (
            tree is None
            or bits is None
            or slots is None
            or shape.shape != (2,)
            or not 0 <= shape[0] <= MAX_DOMAIN
            or shape[1] < 1
            or bits.n_rows != tree.n_leaves
        ):
            raise unfit("a Cluster Index")
        return cls(tree, bits, slots, domain=int(shape[0]), minimum=int(shape[1]))


def _plant(
    lows: Int32s, highs: Int32s, ids: Int32s, minimum: int, *, refuse: bool
) -> tuple[ClusterTree, BitVectors, Slots]:
    """Tree, rows and slots of these intervals."""
    slots = Slots.of(lows, highs, ids)
    tree = ClusterTree.of(slots.lows, slots.highs, minimum)
    bits = BitVectors.of_runs(*_runs_of(slots, tree), tree.n_leaves, refuse=refuse)
    return tree, bits, slots


def _runs_of(slots: Slots, tree: ClusterTree) -> tuple[Int32s, Int32s]:
    """First and last leaf that the interval of each slot meets; reversed if it holds none."""
    used = slice(slots.n_slots)
    firsts, lasts = tree.leaves(slots.lows[used]), tree.leaves(slots.highs[used])
    lasts[slots.lows[used] > slots.highs[used]] = -1
    return firsts, lasts
