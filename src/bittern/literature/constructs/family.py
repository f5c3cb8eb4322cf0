"""Virtual construct intervals (Wu, Chen, Yu and Mei; seed 000): what SCI and LCI have in common.

A *construct* is an interval that exists whether or not it is used. At every cell begin
``per`` of them, one for each entry of a table of lengths, up to the longest, L. The construct of
``lengths[j]`` cells that begins at cell ``start`` has the number, or *coordinate*,
``start * per + j``, and a list of ids under it (``id_lists``; H in the paper)::

    SCI, L = 4   lengths 1 2 3 4    per 4    constructs at cell 2:  8  9 10 11
    LCI, L = 4   lengths 1 2 4      per 3    constructs at cell 2:  6  7  8

An interval is cut from left to right, each time with the longest construct that fits, and its id
goes into their lists. SCI takes whole L's and a remnant, LCI whole L's and the binary digits of
the rest: 7 cells are 4 + 2 + 1. A construct is *active* while its list is not empty.

The constructs that contain value j begin d = 0 .. L-1 cells before it and are longer than d. Of
one beginning these are the last few, from ``reach[d]`` on (the first length above d), so all
four ways of searching share that little table::

    j = 5, LCI, L = 4       d = 3    begins at 2    6  7 [8]            reach[3] = 2
    covering: 8 11          d = 2    begins at 3    9 10 [11]           reach[2] = 2
    13 14 15 16 17          d = 1    begins at 4   12 [13 14]           reach[1] = 1
                            d = 0    begins at 5  [15 16 17]            reach[0] = 0

Their *covering segment* is the shortest row of coordinates that holds them, 8 to 17 here. From
the cell L-1 on it has (L - 1) * per + 1 coordinates; before that it begins with cell 0's.

The paper's intervals [x, y] have integer ends, y > x, and contain both. Cut at x + L, both
parts of [x, y] contain the value x + L, and searching that one would report the id twice. So here
[x, y] is the cells x .. y-1, the unit intervals between the integers, and a construct of length
m is m cells: every coordinate in the paper's figures stays as it is, and each value lies in one
part. What the joints cost the paper is gone, too: its covering segment has L * per + 1
coordinates, and its table of covering constructs L(L+3)/2 (SCI) or 2L + k (LCI), where cells
need L(L+1)/2 and 2L - 1.

``longest`` (L): an interval of w cells is in w / L lists and a few more, so L much below w
costs entries; every search goes through L beginnings, so a large one costs time, and every length
costs a list per cell. The default is the largest power of two up to the mean length (not the
median: most entries belong to the long intervals), but at most 32 for LCI, where doubling it
once more saves less in entries than the additional lists take, and 16 for SCI, which has L lists
per cell. It is cut to the domain, since longer constructs would never be used.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from bittern.arrays import Int32s
from bittern.errors import OptionError, brief
from bittern.jit import i4r, i4w, i8, inline, kernel, void
from bittern.stabbing.contract import MAX_DOMAIN, StabbingIndex, check_bytes, unfit
from bittern.stabbing.id_lists import IdLists, in_order_of_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

MAX_LONGEST = 1 << 16
"""A search that visited more beginnings than this would be pointless."""


@dataclass(frozen=True)
class Scheme:
    """Which lengths constructs have."""

    logarithmic: bool
    default: int
    """The longest construct where intervals would suggest a longer one."""

    def lengths(self, longest: int) -> Int32s:
        """Lengths of the constructs that begin at one cell, ascending."""
        if self.logarithmic:
            return np.left_shift(1, np.arange(longest.bit_length())).astype(np.int32)
        return np.arange(1, longest + 1, dtype=np.int32)

    def checked(self, longest: int) -> int:
        """Refuse a longest construct that the scheme does not have."""
        try:
            given = operator.index(longest)
        except TypeError:
            given = 0
        if not 1 <= given <= MAX_LONGEST or (self.logarithmic and given & (given - 1)):
            kind = "a power of two" if self.logarithmic else "a whole number"
            raise OptionError(
                f"longest is {brief(longest)}: give {kind} from 1 to {MAX_LONGEST} cells"
            )
        return given

    def n_entries(self, lows: Int32s, highs: Int32s, longest: int) -> int:
        """How many constructs the intervals are cut into, without cutting them: O(n)."""
        whole, rest = np.divmod(highs.astype(np.int64) - lows + 1, longest)
        parts = np.bitwise_count(rest) if self.logarithmic else rest > 0
        return int(whole.sum()) + int(parts.sum(dtype=np.int64))

    def within(self, longest: int, domain: int) -> int:
        """Shorten to what fits into the domain: longer constructs would never be used."""
        if longest <= domain:
            return longest
        return 1 << (domain.bit_length() - 1) if self.logarithmic and domain else max(domain, 1)


SIMPLE = Scheme(logarithmic=False, default=16)
LOGARITHMIC = Scheme(logarithmic=True, default=32)


class ConstructTables:
    """What follows from the lengths alone, as kernels use it."""

    def __init__(self, scheme: Scheme, longest: int) -> None:
        self.longest = longest
        self.lengths = scheme.lengths(longest)
        self.per = len(self.lengths)
        self.fits = _positions(self.lengths, np.arange(longest + 1), "right")
        """``fits[w]``: position of the longest construct of at most w > 0 cells."""
        self.fits -= 1
        self.reach = _positions(self.lengths, np.arange(longest), "right")
        """``reach[d]``: position of the shortest construct of more than d cells."""
        self.n_covering = int((self.per - self.reach).sum())
        """How many constructs contain a value from cell L-1 on; fewer begin before it."""


def _positions(lengths: Int32s, cells: NDArray[Any], side: Any) -> Int32s:
    return np.searchsorted(lengths, cells, side).astype(np.int32)


@inline
def first_of_segment(value: Any, per: Any, longest: Any, reach: Any) -> Any:
    """First coordinate of the covering segment; the last one is ``value * per + per - 1``."""
    d = min(value, longest - 1)
    return (value - d) * per + int(reach[np.uint64(d)])


@kernel(void, i4r, i4r, i4r, i4r, i4w)
def _count_entries(lows: Any, highs: Any, lengths: Any, fits: Any, counts: Any) -> None:
    per, longest = len(lengths), len(fits) - 1
    for i in range(len(lows)):
        low, stop = int(lows[i]), int(highs[i]) + 1
        while low < stop:
            at = int(fits[np.uint64(min(stop - low, longest))])
            counts[np.uint64(low * per + at)] += 1
            low += int(lengths[np.uint64(at)])


@kernel(void, i4r, i4r, i4r, i4r, i4r, i4w, i4w)
def _place_entries(
    lows: Any, highs: Any, ids: Any, lengths: Any, fits: Any, offsets: Any, items: Any
) -> None:
    per, longest = len(lengths), len(fits) - 1
    for i in range(len(lows) - 1, -1, -1):
        low, stop = int(lows[i]), int(highs[i]) + 1
        while low < stop:
            at = int(fits[np.uint64(min(stop - low, longest))])
            n = np.uint64(low * per + at)
            offsets[n] -= 1
            items[np.uint64(offsets[n])] = ids[i]
            low += int(lengths[np.uint64(at)])


@kernel(i8, i8, i8, i4r, i4r, i4w)
def _decompose(low: Any, high: Any, lengths: Any, fits: Any, coordinates: Any) -> Any:
    """Write the constructs of one interval and return how many there are."""
    per, longest = len(lengths), len(fits) - 1
    stop = high + 1
    n = 0
    while low < stop:
        at = int(fits[min(stop - low, longest)])
        coordinates[n] = low * per + at
        low += int(lengths[at])
        n += 1
    return n


class ConstructIndex(StabbingIndex):
    """Id lists of constructs; how the covering ones of a value are found is left to subclasses."""

    scheme: ClassVar[Scheme]
    instead: ClassVar[str]
    """What to use where this would take too much memory."""

    def __init__(self, lists: IdLists, tables: ConstructTables, *, domain: int) -> None:
        self.domain = domain
        self.lists = lists
        self.tables = tables
        self.longest = tables.longest

    @classmethod
    def _build(
        cls, lows: Int32s, highs: Int32s, ids: Int32s, domain: int, *, longest: int | None = None
    ) -> Self:
        """O(N + n w / L): a counting sort of the entries, after a sort of ids out of order."""
        if longest is None:
            longest = choose_longest(cls.scheme, lows, highs)
        longest = cls.scheme.within(cls.scheme.checked(longest), domain)
        tables = ConstructTables(cls.scheme, longest)
        fixed = 4 * (domain * tables.per + 1) + cls._bytes_beside(tables, domain)
        what = f"{cls.name} over {domain} cells with longest={longest}"
        check_bytes(fixed, what, f"{cls.instead}, or a shorter longest")
        entries = cls.scheme.n_entries(lows, highs, longest)
        check_bytes(fixed + 4 * entries, what, "longer constructs, or several indexes")
        counts = np.zeros(domain * tables.per + 1, np.int32)
        _count_entries(lows, highs, tables.lengths, tables.fits, counts)
        lows, highs, ids = in_order_of_ids(lows, highs, ids)
        lists, offsets = IdLists.for_counts(counts)
        _place_entries(lows, highs, ids, tables.lengths, tables.fits, offsets, lists.items)
        return cls._of(lists, tables, domain)

    @classmethod
    @abstractmethod
    def _of(cls, lists: IdLists, tables: ConstructTables, domain: int) -> Self:
        """Add to lists that were just built whatever else the search needs."""

    @classmethod
    def _bytes_beside(cls, tables: ConstructTables, domain: int) -> int:  # noqa: ARG003
        """Bytes that the search needs beside the lists."""
        return 0

    def coordinates(self, low: int, high: int) -> Int32s:
        """The constructs that an interval is cut into, from left to right: O(w / L + log L)."""
        most = (high - low + 1) // self.longest + self.tables.per
        found = np.empty(most, np.int32)
        n = _decompose(low, high, self.tables.lengths, self.tables.fits, found)
        return found[: int(n)]

    def _empty(self, coordinates: Int32s) -> Int32s:
        """Those of the constructs whose lists are empty now."""
        empty: Int32s = coordinates[self.lists.begins[coordinates] == self.lists.ends[coordinates]]
        return empty

    def _insert(self, low: int, high: int, id: int) -> None:  # noqa: A002
        coordinates = self.coordinates(low, high)
        activated = self._empty(coordinates)
        self.lists.insert(coordinates, id)
        self._mark(activated, on=True)

    def _delete(self, low: int, high: int, id: int) -> bool:  # noqa: A002
        coordinates = self.coordinates(low, high)
        if not self.lists.delete(coordinates, id):
            return False
        self._mark(self._empty(coordinates), on=False)
        return True

    def _mark(self, coordinates: Int32s, *, on: bool) -> None:
        """Note that these constructs have become active, or are no longer."""

    def active(self) -> Int32s:
        """Coordinates of all active constructs, ascending: O(N)."""
        return np.flatnonzero(self.lists.ends > self.lists.begins).astype(np.int32)

    @property
    def filed(self) -> int:
        """Entries; how many depends on the longest construct that a build chooses."""
        return self.lists.n_entries

    def statistics(self) -> dict[str, int | float]:
        """Sizes of the directory and the lists, and what a search goes through: O(N)."""
        lengths = self.lists.ends - self.lists.begins
        tables = self.tables
        return {
            "domain": self.domain,
            "longest": self.longest,
            "lists": self.lists.n_lists,
            "nonempty_lists": int(np.count_nonzero(lengths)),
            "longest_list": int(lengths.max(initial=0)),
            "entries": self.lists.n_entries,
            "covering": tables.n_covering,
            "covering_segment": (self.longest - 1) * tables.per + 1,
            "bytes": self.nbytes,
        }

    def ids(self) -> Int32s:
        """Distinct ids in the lists, ascending."""
        return self.lists.ids()

    def check(self) -> None:
        """Verify the lists and that no construct leaves the domain: O(N + entries)."""
        per = self.tables.per
        assert self.lists.n_lists == self.domain * per, "wrong number of lists"
        self.lists.check()
        active = self.active()
        stops = active // per + self.tables.lengths[active % per]
        assert (stops <= self.domain).all(), "a construct reaches past the domain"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Packed lists and the two numbers that shape them: O(1) if unchanged."""
        offsets, items = self.lists.pack()
        shape = np.array([self.domain, self.longest], np.int64)
        return {"shape": shape, "offsets": offsets, "items": items}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are; SnapshotError if their sizes disagree: O(1)."""
        lists, tables, domain = cls._opened(arrays)
        return cls(lists, tables, domain=domain)

    @classmethod
    def _opened(cls, arrays: Mapping[str, NDArray[Any]]) -> tuple[IdLists, ConstructTables, int]:
        shape = np.asarray(arrays["shape"])
        domain, longest = (int(n) for n in shape) if shape.shape == (2,) else (-1, -1)
        offsets, items = np.asarray(arrays["offsets"]), np.asarray(arrays["items"])
        if not (
            0 <= domain <= MAX_DOMAIN
            and 1 <= longest <= MAX_LONGEST
            and cls.scheme.within(longest, domain) == longest
            and not (cls.scheme.logarithmic and longest & (longest - 1))
            and len(offsets) == domain * len(cls.scheme.lengths(longest)) + 1
            and (int(offsets[0]), int(offsets[-1])) == (0, len(items))
            and offsets.dtype == items.dtype == np.int32
        ):
            raise unfit(f"a {cls.name} index")
        return IdLists(offsets, items), ConstructTables(cls.scheme, longest), domain


def choose_longest(scheme: Scheme, lows: Int32s, highs: Int32s) -> int:
    """Choose the default longest construct; the module says how. O(n)."""
    if not len(lows):
        return scheme.default
    mean = int((highs.sum(dtype=np.int64) - lows.sum(dtype=np.int64)) // len(lows)) + 1
    return min(1 << (mean.bit_length() - 1), scheme.default)
