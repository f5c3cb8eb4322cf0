"""Three ways to find the active constructs that contain a value (seed 000, sections 2 to 4).

``BitmapIndex`` asks a row of bits per value, in which a bit is set for each active construct that
contains it; ``VirtualIndex`` asks every header of the covering segment, and then whether the
construct is long enough; ``TableIndex`` goes to the covering constructs by a table that is the
same for all values. ``family`` says what these are; the modules of the single structures
show each of them by an example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from bittern.jit import (
    b1,
    i4r,
    i8,
    i8r,
    inline,
    kernel,
    prefetch,
    read_only,
    u8r,
    u8w,
    void,
)
from bittern.literature.bit_vectors.bitmaps import (
    NO_BITS,
    ONE_BIT,
    clear_bit,
    lowest_bit,
    set_bit,
    words_for,
)
from bittern.literature.constructs.family import ConstructIndex, ConstructTables, first_of_segment
from bittern.stabbing.contract import unfit
from bittern.stabbing.runs import RUNS, Runs, add_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from bittern.arrays import Int32s
    from bittern.stabbing.id_lists import IdLists

    Words = NDArray[np.uint64]


_AHEAD = 4
"""Values between asking for the headers of a covering segment and reading them."""

_LINE, _MOST_LINES = 16, 64
"""Headers in a cache line, and how many lines are worth asking for: 4 KB of them."""


@inline
def _ahead(values: Any, i: Any, domain: Any) -> Any:
    """The value that comes some steps after values[i]; any cell if that one is none."""
    value = int(values[np.uint64(min(i + _AHEAD, len(values) - 1))])
    return value if 0 <= value < domain else 0


@inline
def _ask_for_headers(list_begins: Any, value: Any, per: Any, longest: Any, reach: Any) -> None:
    """Ask for the memory of a covering segment's headers."""
    first = first_of_segment(value, per, longest, reach)
    last = min(value * per + per - 1, first + _LINE * _MOST_LINES)
    for c in range(first, last + _LINE, _LINE):
        prefetch(list_begins, c)


@kernel(void, i4r, b1, i8r, i4r, i4r, u8w)
def _mark_constructs(
    coordinates: Any, on: Any, shape: Any, lengths: Any, reach: Any, words: Any
) -> None:
    """Set or clear the bit of each construct in the rows of all values that it contains."""
    width, clipped = shape[2], shape[3]
    per, longest = len(lengths), len(reach)
    for n in coordinates:
        start = int(n) // per
        for value in range(start, start + int(lengths[int(n) % per])):
            bit = int(n)
            if clipped:
                bit -= first_of_segment(value, per, longest, reach)
            if on:
                set_bit(words, width, value, bit)
            else:
                clear_bit(words, width, value, bit)


@inline
def _span_of_words(value: Any, width: Any, clipped: Any, per: Any, longest: Any, reach: Any) -> Any:
    """First and last word of a value's covering segment, and the coordinate of its first bit."""
    first = first_of_segment(value, per, longest, reach)
    last = value * per + per - 1
    if clipped:
        return value * width, value * width + ((last - first) >> 6), first
    return value * width + (first >> 6), value * width + (last >> 6), first >> 6 << 6


@kernel(i8, i4r, i4r, u8r, i8r, i4r, i4r, i8, RUNS)
def _search_bits(
    list_begins: Any,
    list_ends: Any,
    words: Any,
    shape: Any,
    reach: Any,
    values: Any,
    first: Any,
    runs: Any,
) -> Any:
    offsets, ends, begins, lengths = runs
    domain, per, width, clipped, most = shape[0], shape[1], shape[2], shape[3], shape[4]
    longest = len(reach)
    total, n = offsets[first], ends[first]
    for i in range(first, len(values)):
        if n + most > len(begins):
            return i
        value = _ahead(values, i, domain)
        _ask_for_headers(list_begins, value, per, longest, reach)
        at, last, _ = _span_of_words(value, width, clipped, per, longest, reach)
        prefetch(words, at)
        prefetch(words, last)
        value = int(values[i])
        if 0 <= value < domain:
            at, last, base = _span_of_words(value, width, clipped, per, longest, reach)
            while at <= last:
                word = words[np.uint64(at)]
                while word != NO_BITS:
                    c = np.uint64(base) + lowest_bit(word)
                    word &= word - ONE_BIT
                    begin, end = list_begins[c], list_ends[c]
                    total += int(end) - int(begin)
                    n = add_run(begin, end, begins, lengths, n)
                at += 1
                base += 64
        offsets[i + 1] = total
        ends[i + 1] = n
    return len(values)


class BitmapIndex(ConstructIndex):
    """A row of bits per value names the active constructs that contain it.

    Bits outside the covering segment of the value are never set, so a search reads the words of
    that alone. Full rows have a bit for each construct there is; clipped ones for those of the
    segment, the first of them as bit 0.
    """

    clipped: ClassVar[bool]

    def __init__(
        self, lists: IdLists, tables: ConstructTables, words: Words, *, domain: int
    ) -> None:
        super().__init__(lists, tables, domain=domain)
        self.words = words
        width = self._width(tables, domain)
        covering = tables.n_covering
        self._shape = np.array([domain, tables.per, width, self.clipped, covering], np.int64)

    @classmethod
    def _width(cls, tables: ConstructTables, domain: int) -> int:
        """Words per row: the first values' segments are shorter, but their rows are not."""
        clipped = (tables.longest - 1) * tables.per + 1
        return words_for(clipped if cls.clipped else domain * tables.per)

    @classmethod
    def _bytes_beside(cls, tables: ConstructTables, domain: int) -> int:
        return 8 * domain * cls._width(tables, domain)

    @classmethod
    def _of(cls, lists: IdLists, tables: ConstructTables, domain: int) -> Self:
        words = np.zeros(domain * cls._width(tables, domain), np.uint64)
        index = cls(lists, tables, words, domain=domain)
        index._mark(index.active(), on=True)
        return index

    def _mark(self, coordinates: Int32s, *, on: bool) -> None:
        if not len(coordinates):
            return
        if not self.words.flags.writeable:
            self.words = self.words.copy()
        tables = self.tables
        _mark_constructs(coordinates, on, self._shape, tables.lengths, tables.reach, self.words)

    def _locate(self, values: Int32s) -> Runs:
        lists, reach = self.lists, self.tables.reach
        runs = Runs(lists.items, len(values), self.tables.n_covering)
        return runs.search(
            _search_bits, lists.begins, lists.ends, self.words, self._shape, reach, values
        )

    def statistics(self) -> dict[str, int | float]:
        """As of all constructs, and the bytes of the bitmaps."""
        return super().statistics() | {"bitmap_bytes": self.words.nbytes}

    def check(self) -> None:
        """Verify also that exactly the active constructs have their bits: O(words + bits)."""
        super().check()
        exact = self._of(self.lists, self.tables, self.domain).words
        assert len(self.words) == len(exact), "wrong number of words"
        assert not (exact & ~self.words).any(), "an active construct lacks a bit"
        assert not (self.words & ~exact).any(), "a bit is set where no active construct is"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Packed lists and the bitmaps: O(1) if unchanged."""
        self.words = read_only(self.words)  # others hold it too: the next change copies it first
        return super().arrays() | {"words": self.words}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are; SnapshotError if their sizes disagree: O(1)."""
        lists, tables, domain = cls._opened(arrays)
        words = np.asarray(arrays["words"])
        if len(words) != domain * cls._width(tables, domain) or words.dtype != np.uint64:
            raise unfit(f"a {cls.name} index")
        return cls(lists, tables, read_only(words), domain=domain)


@kernel(i8, i4r, i4r, i8r, i4r, i4r, i4r, i8, RUNS)
def _search_segment(
    list_begins: Any,
    list_ends: Any,
    shape: Any,
    sizes: Any,
    reach: Any,
    values: Any,
    first: Any,
    runs: Any,
) -> Any:
    offsets, ends, begins, lengths = runs
    domain, most = shape[0], shape[1]
    per, longest = len(sizes), len(reach)
    total, n = offsets[first], ends[first]
    for i in range(first, len(values)):
        if n + most > len(begins):
            return i
        _ask_for_headers(list_begins, _ahead(values, i, domain), per, longest, reach)
        value = int(values[i])
        if 0 <= value < domain:
            lowest = first_of_segment(value, per, longest, reach)
            for c in range(np.uint64(lowest), np.uint64(value * per + per)):
                begin, end = list_begins[c], list_ends[c]
                if begin != end:
                    # 32 bits wide: dividing twice as many takes twice as long.
                    start, at = np.uint32(c) // np.uint32(per), np.uint32(c) % np.uint32(per)
                    # No branch: whether it is long enough is as good as random.
                    end = end if int(start) + int(sizes[at]) > value else begin
                    total += int(end) - int(begin)
                    n = add_run(begin, end, begins, lengths, n)
        offsets[i + 1] = total
        ends[i + 1] = n
    return len(values)


class VirtualIndex(ConstructIndex):
    """No bitmaps: a list that is not empty says itself that its construct is active.

    All headers of the covering segment are looked at, and for a nonempty list the coordinate is
    divided: the quotient is where the construct begins, the remainder tells its length.
    """

    @classmethod
    def _of(cls, lists: IdLists, tables: ConstructTables, domain: int) -> Self:
        return cls(lists, tables, domain=domain)

    def _locate(self, values: Int32s) -> Runs:
        lists, tables = self.lists, self.tables
        shape = np.array([self.domain, tables.n_covering], np.int64)
        runs = Runs(lists.items, len(values), tables.n_covering)
        return runs.search(
            _search_segment, lists.begins, lists.ends, shape, tables.lengths, tables.reach, values
        )


@kernel(i8, i4r, i4r, i8r, i4r, i4r, i8, RUNS)
def _search_table(
    list_begins: Any, list_ends: Any, shape: Any, reach: Any, values: Any, first: Any, runs: Any
) -> Any:
    offsets, ends, begins, lengths = runs
    domain, per, packed, most = shape[0], shape[1], shape[2], shape[3]
    longest = len(reach)
    total, n = offsets[first], ends[first]
    for i in range(first, len(values)):
        if n + most > len(begins):
            return i
        _ask_for_headers(list_begins, _ahead(values, i, domain), per, longest, reach)
        value = int(values[i])
        if 0 <= value < domain:
            base = value * per
            for d in range(min(value + 1, longest)):
                c, last = base + int(reach[np.uint64(d)]), base + per - 1
                if packed:
                    begin, end = list_begins[np.uint64(c)], list_ends[np.uint64(last)]
                    total += int(end) - int(begin)
                    n = add_run(begin, end, begins, lengths, n)
                else:
                    while c <= last:
                        begin, end = list_begins[np.uint64(c)], list_ends[np.uint64(c)]
                        total += int(end) - int(begin)
                        n = add_run(begin, end, begins, lengths, n)
                        c += 1
                base -= per
        offsets[i + 1] = total
        ends[i + 1] = n
    return len(values)


class TableIndex(ConstructIndex):
    """No bitmaps: the covering constructs are found by adding distances, the same for all values.

    Those of one beginning are neighbours, so the table keeps where each such run starts; and
    while the lists are packed, the ids of a run are neighbours as well and copied at once.
    """

    @classmethod
    def _of(cls, lists: IdLists, tables: ConstructTables, domain: int) -> Self:
        return cls(lists, tables, domain=domain)

    def _locate(self, values: Int32s) -> Runs:
        lists, tables = self.lists, self.tables
        most = tables.longest if lists.packed else tables.n_covering
        shape = np.array([self.domain, tables.per, lists.packed, most], np.int64)
        runs = Runs(lists.items, len(values), most)
        return runs.search(_search_table, lists.begins, lists.ends, shape, tables.reach, values)
