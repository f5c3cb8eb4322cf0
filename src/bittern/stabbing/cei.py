"""CEI, containment-encoded intervals (Wu, Chen and Yu; seed 001): the default stabbing index.

The cells are cut into segments of L = 2**bits cells. In each segment the 2L - 1 aligned blocks
(CEIs) of 1, 2, 4 .. L cells form a perfect binary tree and are numbered like one, from local id 1
for the whole segment to L .. 2L-1 for its cells; in segment i, l is list l + 2iL::

    L = 4, segment 0          1                Q1 [0, 3]  list 1
                      2               3        Q2 [1, 2]  lists 5 and 6
                  4       5       6       7    Q3 [1, 3]  lists 5 and 3
          cell    0       1       2       3    Q4 [0, 1]  list 2

Containment is in the numbers: the parent of l is l >> 1. An interval is decomposed into a minimal
set of blocks (``blocks``) and its id stands in the list of each (``id_lists``). The blocks that
contain a value are its cell's and that one's ancestors, so searching value 1 reads lists 5, 2 and
1 (Q2 and Q3, Q4, Q1) and compares nothing.

Most lists are empty, and whole levels are: a region with equalities alone has only cells. For
every 64 cells ``masks`` tells which levels hold anything there (bit v: blocks of 2**v cells), so
that value and list are only met where there is something to find. A clear bit is a promise; a bit
that deletions made untrue stays until ``arrays`` folds the changes in.

Costs, for r cells and n intervals of w cells: a list per block, 2r of them, at 4 bytes; an
interval stands in at most 2 log2(w) lists, plus w / L if it is longer than a segment; a search
visits at most 1 + log2(L) lists, nonempty levels only, whatever n is.

``segment`` (L): every doubling adds a list to each search, and saves the entries of intervals that
are longer: w / L whole segments become about log2(w / L) blocks. The default is the smallest L,
from 32 on, whose segments add at most a sixth to the entries, by these estimates; as long as
the domain when there are no intervals to learn from. One inserted later that is much longer than
those takes its w / L entries; who has the intervals builds anew when ``filed`` has doubled, as
``Intervals`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.arrays import Int32s, Int64s
from bittern.errors import OptionError, brief
from bittern.jit import i4r, i4w, i8, i8r, i8w, inline, kernel, prefetch, read_only, void
from bittern.stabbing.blocks import block_level, decompose_one
from bittern.stabbing.contract import MAX_DOMAIN, StabbingIndex, as_integer, check_bytes, unfit
from bittern.stabbing.id_lists import IdLists, in_order_of_ids
from bittern.stabbing.runs import RUNS, Runs, add_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

GROUP_BITS = 6
"""One mask per 64 cells: a sixteenth of a byte per cell, and mostly in the nearest cache."""

_SMALLEST_BITS = 5
_LARGEST_BITS = 30
_EXTRA = 6
_FEW = 64
"""Ids that one value is given room for at first."""
_AHEAD = 32
"""Values between asking for the directory entries of a path and reading them."""


@inline
def list_of_block(start: Any, level: Any, bits: Any) -> Any:
    """Global id l + 2iL of the block of 2**level cells that begins at ``start``."""
    size = 1 << bits
    return ((start >> bits) << (bits + 1)) + ((size + (start & (size - 1))) >> level)


@kernel(void, i4r, i4r, i8w, i8w)
def _by_length(lows: Any, highs: Any, numbers: Any, cells: Any) -> None:
    """How many intervals have 2**v to 2**(v+1) - 1 cells, and their cells together, per v."""
    for i in range(len(lows)):
        length = int(highs[i]) - int(lows[i]) + 1
        v = 0
        while length >> v > 1:
            v += 1
        numbers[v] += 1
        cells[v] += length


@kernel(void, i4r, i4r, i8, i4w)
def _count_entries(lows: Any, highs: Any, bits: Any, counts: Any) -> None:
    for i in range(len(lows)):
        low, stop = int(lows[i]), int(highs[i]) + 1
        while low < stop:
            level = block_level(low, stop, bits)
            counts[list_of_block(low, level, bits)] += 1
            low += 1 << level


@kernel(void, i4r, i4r, i4r, i8, i4w, i4w)
def _place_entries(lows: Any, highs: Any, ids: Any, bits: Any, offsets: Any, items: Any) -> None:
    for i in range(len(lows) - 1, -1, -1):
        low, stop = int(lows[i]), int(highs[i]) + 1
        while low < stop:
            level = block_level(low, stop, bits)
            n = list_of_block(low, level, bits)
            offsets[n] -= 1
            items[offsets[n]] = ids[i]
            low += 1 << level


@inline
def _mark(start: Any, level: Any, group_bits: Any, masks: Any) -> None:
    last = min((start + (1 << level) - 1) >> group_bits, len(masks) - 1)
    for group in range(start >> group_bits, last + 1):
        masks[group] |= 1 << level


@kernel(void, i4r, i4r, i8, i8, i8, i4w)
def _mark_all(begins: Any, ends: Any, domain: Any, bits: Any, group_bits: Any, masks: Any) -> None:
    for level in range(bits + 1):
        for start in range(0, domain, 1 << level):
            n = list_of_block(start, level, bits)
            if begins[n] < ends[n]:
                _mark(start, level, group_bits, masks)


@kernel(void, i4r, i4r, i8, i4w)
def _mark_some(starts: Any, levels: Any, group_bits: Any, masks: Any) -> None:
    for i in range(len(starts)):
        _mark(int(starts[i]), int(levels[i]), group_bits, masks)


@kernel(void, i4r, i4r, i8, i4w)
def _lists_of_blocks(starts: Any, levels: Any, bits: Any, lists: Any) -> None:
    for i in range(len(starts)):
        lists[i] = list_of_block(int(starts[i]), int(levels[i]), bits)


@inline
def fetch_path(list_begins: Any, bits: Any, value: Any) -> None:
    """Ask for the directory entries of a value's lists."""
    base = (value >> bits) << (bits + 1)
    local = (1 << bits) + (value & ((1 << bits) - 1))
    # The levels in between and above mostly share these cache lines, or are always cached.
    prefetch(list_begins, base + local)
    prefetch(list_begins, base + (local >> 1))
    prefetch(list_begins, base + (local >> 2))
    prefetch(list_begins, base + (local >> 4))


@inline
def add_path(
    list_begins: Any,
    list_ends: Any,
    masks: Any,
    shape: Any,
    value: Any,
    begins: Any,
    lengths: Any,
    n: Any,
) -> Any:
    """Write a value's lists as runs from the n-th on, at most ``bits + 1``.

    Returns how many runs there are now, and the number of ids in the new ones.
    """
    domain, bits, group_bits = shape
    total = np.int64(0)
    if 0 <= value < domain:
        levels = (2 << bits) - 1  # what a damaged mask has beyond would make the search endless
        mask = int(masks[np.uint64(value >> group_bits)]) & levels
        base = (value >> bits) << (bits + 1)
        local = (1 << bits) + (value & ((1 << bits) - 1))
        while mask:
            if mask & 1:
                c = np.uint64(base + local)  # unsigned: no test for a negative index
                begin, end = list_begins[c], list_ends[c]
                total += max(0, int(end) - int(begin))  # of damaged ones, as runs have it
                n = add_run(begin, end, begins, lengths, n)
            mask >>= 1
            local >>= 1
    return n, total


@kernel(i8, i4r, i4r, i4r, i8r, i4r, i8, RUNS)
def _search(
    list_begins: Any, list_ends: Any, masks: Any, shape: Any, values: Any, first: Any, runs: Any
) -> Any:
    """Lists of the values from ``first`` on, as runs, while there is room for a whole path."""
    offsets, ends, begins, lengths = runs
    domain, bits, group_bits = shape[0], shape[1], shape[2]
    total, n = offsets[first], ends[first]
    for i in range(first, len(values)):
        if n + bits + 1 > len(begins):
            return i
        later = int(values[np.uint64(min(i + _AHEAD, len(values) - 1))])
        fetch_path(list_begins, bits, later)
        n, more = add_path(
            list_begins,
            list_ends,
            masks,
            (domain, bits, group_bits),
            int(values[i]),
            begins,
            lengths,
            n,
        )
        total += more
        offsets[i + 1] = total
        ends[i + 1] = n
    return len(values)


class CEI(StabbingIndex):
    """Containment-encoded intervals: id lists per aligned block, found by shifting."""

    name = "cei"

    def __init__(self, lists: IdLists, masks: Int32s, *, domain: int, bits: int) -> None:
        self.domain = domain
        self.bits = bits
        self.segment = 1 << bits
        self.lists = lists
        self.masks = masks
        #: What kernels take: cells, bits of a segment, bits of a group of cells with one mask.
        self.shape = np.array([domain, bits, min(bits, GROUP_BITS)], np.int64)
        self._single: tuple[Callable[..., int], Int64s] | None = None

    @classmethod
    def _build(
        cls,
        lows: Int32s,
        highs: Int32s,
        ids: Int32s,
        domain: int,
        *,
        segment: int | None = None,
    ) -> Self:
        """O(r + n log w): a counting sort of the entries, after a sort of ids out of order."""
        if segment is None:
            bits = choose_bits(lows, highs, domain)
        else:
            bits = min(_checked_bits(segment), _bits_of_domain(domain))
        # At least the whole segments: what is far too much is refused before it is counted.
        whole = np.maximum(((highs.astype(np.int64) - lows + 1) >> bits) - 1, 1)
        directory = n_lists(domain, bits) + 1 + n_masks(domain, bits)
        what = f"cei over {domain} cells with segment={1 << bits}"
        check_bytes(4 * (directory + int(whole.sum())), what, "interval-tree, or longer segments")
        lows, highs, ids = in_order_of_ids(lows, highs, ids)
        counts = np.zeros(n_lists(domain, bits) + 1, np.int32)
        _count_entries(lows, highs, bits, counts)
        lists, offsets = IdLists.for_counts(counts)
        _place_entries(lows, highs, ids, bits, offsets, lists.items)
        return cls(lists, masks_of(lists, domain, bits), domain=domain, bits=bits)

    def _blocks(self, low: int, high: int) -> tuple[Int32s, Int32s, Int32s]:
        starts, levels = decompose_one(low, high, self.bits)
        lists = np.empty_like(starts)
        _lists_of_blocks(starts, levels, self.bits, lists)
        return starts, levels, lists

    def _insert(self, low: int, high: int, id: int) -> None:  # noqa: A002
        starts, levels, lists = self._blocks(low, high)
        self._single = None
        self.lists.insert(lists, id)
        if not self.masks.flags.writeable:
            self.masks = self.masks.copy()
        _mark_some(starts, levels, self.shape[2], self.masks)

    def _delete(self, low: int, high: int, id: int) -> bool:  # noqa: A002
        self._single = None
        return self.lists.delete(self._blocks(low, high)[2], id)

    def stab(self, value: int) -> Int32s:
        """Ids of the intervals that contain one value: one kernel, below a microsecond."""
        if type(value) is not int:
            return super().stab(value)
        if not 0 <= value < self.domain:
            return np.empty(0, np.int32)
        if self._single is None:
            self._single = self._located()
        stab, where = self._single
        ids = np.empty(_FEW, np.int32)
        n = stab(where, value, ids)
        if n > _FEW:
            ids = np.empty(n, np.int32)
            stab(where, value, ids)
        return ids[:n]

    def __getstate__(self) -> dict[str, Any]:
        """A copy has arrays of its own."""
        return {**self.__dict__, "_single": None}

    def _located(self) -> tuple[Callable[..., int], Int64s]:
        """``stab`` of ``cei_single``, loaded with the first call, and where the arrays are now."""
        from bittern.stabbing.cei_single import stab  # noqa: PLC0415  a default match needs none

        begins, ends, items = self.lists.begins, self.lists.ends, self.lists.items
        addresses = [each.ctypes.data for each in (begins, ends, self.masks, items)]
        return stab, np.array([*self.shape, len(begins), *addresses, len(items)], np.int64)

    def _locate(self, values: Int32s) -> Runs:
        lists = self.lists
        runs = Runs(lists.items, len(values), self.bits + 1)
        return runs.search(_search, lists.begins, lists.ends, self.masks, self.shape, values)

    @property
    def filed(self) -> int:
        """Entries; how many depends on the segment that a build chooses."""
        return self.lists.n_entries

    def statistics(self) -> dict[str, int | float]:
        """Sizes of the directory and the lists: O(r)."""
        lengths = self.lists.ends - self.lists.begins
        levels = np.bitwise_count(self.masks)
        return {
            "domain": self.domain,
            "segment": self.segment,
            "lists": self.lists.n_lists,
            "nonempty_lists": int(np.count_nonzero(lengths)),
            "longest_list": int(lengths.max(initial=0)),
            "entries": self.lists.n_entries,
            "levels_per_value": float(levels.mean()) if len(levels) else 0.0,
            "bytes": self.nbytes,
        }

    def ids(self) -> Int32s:
        """Distinct ids in the lists, ascending."""
        return self.lists.ids()

    def check(self) -> None:
        """Verify lists, unused numbers, masks and that no block leaves the domain: O(r + n)."""
        lists = self.lists
        assert lists.n_lists == n_lists(self.domain, self.bits), "wrong number of lists"
        lists.check()
        nonempty = np.flatnonzero(lists.ends > lists.begins)
        local = nonempty & (2 * self.segment - 1)
        assert (local > 0).all(), "local id 0 is in use"
        levels = self.bits - (np.frexp(local)[1] - 1)
        stops = (nonempty >> (self.bits + 1) << self.bits) + ((local + 1) << levels) - self.segment
        assert (stops <= self.domain).all(), "a block reaches past the domain"
        needed = masks_of(lists, self.domain, self.bits)
        assert len(self.masks) == len(needed), "wrong number of masks"
        assert not (self.masks & ~np.int32((2 << self.bits) - 1)).any(), "a mask has a level more"
        assert not (needed & ~self.masks).any(), "a mask hides a level that holds entries"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Packed lists, exact masks and the two numbers that shape them: O(1) if unchanged."""
        changed, self._single = not self.lists.packed, None
        offsets, items = self.lists.pack()
        if changed:
            self.masks = masks_of(self.lists, self.domain, self.bits)
        self.masks = read_only(self.masks)  # others hold it too: the next insert copies it first
        shape = self.shape[:2].copy()
        return {"shape": shape, "offsets": offsets, "items": items, "masks": self.masks}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are; SnapshotError if their sizes disagree: O(1)."""
        shape = np.asarray(arrays["shape"])
        domain, bits = (int(n) for n in shape) if shape.shape == (2,) else (-1, -1)
        offsets, items, masks = (np.asarray(arrays[name]) for name in ("offsets", "items", "masks"))
        fit = (
            0 <= domain <= MAX_DOMAIN
            and 0 <= bits <= _LARGEST_BITS
            and len(offsets) == n_lists(domain, bits) + 1
            and len(masks) == n_masks(domain, bits)
            and (int(offsets[0]), int(offsets[-1])) == (0, len(items))
            and all(array.dtype == np.int32 for array in (offsets, items, masks))
        )
        if not fit:
            raise unfit("a CEI index")
        return cls(IdLists(offsets, items), read_only(masks), domain=domain, bits=bits)


def n_lists(domain: int, bits: int) -> int:
    """Count the lists that these cells need: up to the one of the last cell."""
    last, size = domain - 1, 1 << bits
    return (last >> bits << (bits + 1)) + size + (last & (size - 1)) + 1 if domain else 0


def n_masks(domain: int, bits: int) -> int:
    """Count the masks that these cells need: one per 64 of them, or per segment if shorter."""
    return -(-domain >> min(bits, GROUP_BITS))


def masks_of(lists: IdLists, domain: int, bits: int) -> Int32s:
    """Exact masks: which levels hold anything in each group of cells. O(r)."""
    masks = np.zeros(n_masks(domain, bits), np.int32)
    _mark_all(lists.begins, lists.ends, domain, bits, min(bits, GROUP_BITS), masks)
    return masks


def choose_bits(lows: Int32s, highs: Int32s, domain: int) -> int:
    """Choose the default segment, as a power of two; the module says how. O(n)."""
    largest = _bits_of_domain(domain)
    if not len(lows):
        return largest
    numbers = np.zeros(_LARGEST_BITS + 1, np.int64)
    cells = np.zeros_like(numbers)
    _by_length(lows, highs, numbers, cells)
    levels = np.arange(_LARGEST_BITS + 1)
    least = int(numbers @ (levels + 1))
    bits = min(_SMALLEST_BITS, largest)
    while bits < largest:
        longer = slice(bits + 1, None)
        whole = (cells[longer] >> bits) - numbers[longer] * (levels[longer] - bits + 1)
        if int(np.maximum(whole, 0).sum()) * _EXTRA <= least:
            break
        bits += 1
    return bits


def _bits_of_domain(domain: int) -> int:
    """Bits of the shortest segment that holds the whole domain; a longer one is only larger."""
    return max(domain - 1, 0).bit_length()


def _checked_bits(segment: int) -> int:
    bits = as_integer(segment, "segment").bit_length() - 1
    if bits not in range(_LARGEST_BITS + 1) or segment != 1 << bits:
        raise OptionError(
            f"segment is {brief(segment)}: give a power of two from 1 to 2**{_LARGEST_BITS} cells"
        )
    return bits
