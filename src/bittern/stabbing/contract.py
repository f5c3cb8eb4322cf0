"""The contract of every stabbing index: it finds the intervals that contain a value.

The domain is a row of cells 0 .. domain-1. An index holds closed intervals [low, high] of cells,
each with an id, and a value (one cell) *stabs* the intervals that contain it::

    cell      0  1  2  3  4  5  6  7         domain = 8
    id 7      [--------]                     (0, 3, 7)
    id 9               [--------]            (3, 6, 9)
    id 7                  [--]               (4, 5, 7): an id may own several intervals
    stab(3) = {7, 9}    stab(4) = {9, 7}    stab(7) = {}

An id is reported once for each of its intervals that contains the value, in no particular order.
A value outside the domain stabs nothing. That is not an error, so a batch needs no filtering.

A structure stores lists of ids, rarely the intervals themselves, and that shows in ``delete``:

- an interval that was inserted is removed;
- an interval with a cell that the id does not cover is refused, and nothing changes;
- in between (the id covers all of [low, high], but with other intervals) a structure may refuse,
  or remove these cells from the id once, exactly as if they had been inserted on their own.

This class checks arguments and shapes results, once for all structures. A structure adds the
underscored methods; their arguments are already checked, contiguous int32 arrays. Searching may
go on in many threads at once, but not while another thread inserts, deletes, or folds changes in
(``arrays``), nor is what a search has ``Located`` good for anything after that.

``from_arrays`` compares sizes and types and trusts the contents, since reading them all would take
as long as building anew: damaged ones can give wrong ids, or worse. ``check`` reads them all.
"""

from __future__ import annotations

import functools
import inspect
import operator
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.arrays import Int32s, Int64s, occupied
from bittern.errors import OptionError, SnapshotError, brief

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


MAX_DOMAIN = 2**30
"""Lists are numbered in int32, and a structure may need two of them per cell."""

MAX_BYTES = 4 * 2**30
"""The most bytes of an index when it is built; changes may make it larger."""

_INT32 = np.iinfo(np.int32)


class Located(ABC):
    """Where a batch's ids are, before they are copied: lets a caller cut a batch by memory."""

    offsets: Int64s
    """Where each value's ids begin among those of the batch, and the end."""

    @abstractmethod
    def _fill(self, first: int, last: int, ids: Int32s) -> None:
        """Write the ids of values first .. last-1, one value after the other."""

    def ids(self, first: int, last: int) -> Int32s:
        """The ids of values first .. last-1 of the batch: O(ids)."""
        ids = np.empty(int(self.offsets[last] - self.offsets[first]), np.int32)
        self._fill(first, last, ids)
        return ids


class StabbingIndex(ABC):
    """Closed intervals of cells with ids, searched by value; see the module for the rules."""

    name: ClassVar[str]
    """The name by which the structure is chosen."""

    domain: int
    """Cells are 0 .. domain-1."""

    @classmethod
    def build(
        cls, lows: ArrayLike, highs: ArrayLike, ids: ArrayLike, *, domain: int, **parameters: Any
    ) -> Self:
        """Build from n intervals [lows[i], highs[i]] with ids[i], in bulk."""
        cls.check_parameters(parameters)
        low, high, number = check_intervals(lows, highs, ids, domain)
        return cls._build(low, high, number, check_domain(domain), **parameters)

    @classmethod
    def parameter_names(cls) -> list[str]:
        """The parameters that this structure has."""
        return keywords_of(cls._build)

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, Any]) -> None:
        """Refuse parameters that this structure does not have."""
        refuse_unknown(parameters, cls.parameter_names(), cls.name)

    def insert(self, low: int, high: int, id: int) -> None:  # noqa: A002
        """Add one interval."""
        self._insert(*check_interval(low, high, id, self.domain))

    def delete(self, low: int, high: int, id: int) -> None:  # noqa: A002
        """Remove one interval; OptionError, and no change, if it is not in the index."""
        if not self._delete(*check_interval(low, high, id, self.domain)):
            raise OptionError(
                f"interval [{low}, {high}] with id {id} is not in the index: "
                "delete exactly what was inserted"
            )

    def stab(self, value: int) -> Int32s:
        """Ids of the intervals that contain one value; some structures have a shorter way."""
        return self.stab_batch(np.asarray([value]))[1]

    def stab_batch(self, values: ArrayLike) -> tuple[Int64s, Int32s]:
        """Ids per value, as offsets and one flat array: O(n + ids), fastest on sorted values.

        The intervals that contain ``values[i]`` are ``ids[offsets[i]:offsets[i + 1]]``.
        """
        located = self.locate_batch(values)
        return located.offsets, located.ids(0, len(located.offsets) - 1)

    def locate_batch(self, values: ArrayLike) -> Located:
        """How many ids each value gives, and where they are, without copying them: O(n)."""
        return self._locate(as_values(values))

    @property
    def filed(self) -> int:
        """Entries of which another build, that learns from what came since, may need far fewer.

        0 where what a build chooses does not matter to their number. O(1).
        """
        return 0

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays occupy now, room for growth included."""
        return occupied(self)

    @abstractmethod
    def statistics(self) -> dict[str, int | float]:
        """Figures that explain size and speed: at least ``domain``, ``entries``, ``bytes``."""

    @abstractmethod
    def ids(self) -> Int32s:
        """Distinct ids that are in the index, ascending: O(size log size)."""

    @abstractmethod
    def check(self) -> None:
        """Verify every invariant of the arrays; AssertionError says which one is broken."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that ``from_arrays`` needs; recent changes are folded in first."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search these arrays in place, read-only or memory-mapped: O(1).

        The first insert or delete copies what it changes; the given arrays never change.
        """

    @classmethod
    @abstractmethod
    def _build(cls, *intervals: Any, **parameters: Any) -> Self:
        """Build from valid ``lows, highs, ids, domain``; a structure names its own parameters."""

    @abstractmethod
    def _insert(self, low: int, high: int, id: int) -> None:  # noqa: A002
        """Add a valid interval."""

    @abstractmethod
    def _delete(self, low: int, high: int, id: int) -> bool:  # noqa: A002
        """Remove a valid interval, or change nothing and return False."""

    @abstractmethod
    def _locate(self, values: Int32s) -> Located:
        """Find the ids of the values, without copying them."""


@functools.cache
def keywords_of(build: Callable[..., Any]) -> list[str]:
    """The names that a function takes by keyword alone: the parameters of what it builds."""
    parameters = inspect.signature(build).parameters.items()
    return [name for name, each in parameters if each.kind is each.KEYWORD_ONLY]


def refuse_unknown(parameters: Iterable[str], known: Sequence[str], what: str) -> None:
    """OptionError for a parameter that something does not have."""
    for name in parameters:
        if name not in known:
            has = f"has only {', '.join(known)}" if known else "has none"
            raise OptionError(f"{what} has no parameter {name!r}: it {has}")


def check_bytes(needed: int, what: str, instead: str) -> None:
    """Refuse to build what would take too much memory, before any is allocated."""
    if needed > MAX_BYTES:
        raise OptionError(f"{what} would take {needed} bytes (at most {MAX_BYTES}): use {instead}")


def unfit(what: str) -> SnapshotError:
    """The error of ``from_arrays`` if sizes or types disagree."""
    return SnapshotError(f"the arrays of {what} do not fit together: build it again")


def check_domain(domain: int) -> int:
    """Refuse a number of cells that lists cannot be numbered for."""
    cells = as_integer(domain)
    if not 0 <= cells <= MAX_DOMAIN:
        raise OptionError(f"domain is {cells}: give 0 to {MAX_DOMAIN} cells")
    return cells


def check_intervals(
    lows: ArrayLike, highs: ArrayLike, ids: ArrayLike, domain: int
) -> tuple[Int32s, Int32s, Int32s]:
    """Return n intervals as int32 arrays; OptionError names the first that is not valid."""
    domain = check_domain(domain)
    low, high = as_int32(lows, "lows"), as_int32(highs, "highs")
    number = as_int32(ids, "ids")
    if not len(low) == len(high) == len(number):
        raise OptionError(
            f"lows, highs and ids have {len(low)}, {len(high)} and {len(number)} items: "
            "give one of each per interval"
        )
    if len(low):
        wrong = (low < 0) | (low > high) | (high >= domain) | (number < 0)
        if wrong.any():
            first = int(np.argmax(wrong))
            check_interval(int(low[first]), int(high[first]), int(number[first]), domain)
    return low, high, number


def check_interval(low: int, high: int, id: int, domain: int) -> tuple[int, int, int]:  # noqa: A002
    """Refuse an interval that is reversed or outside the domain, or an id that is negative."""
    low, high, id = as_integer(low), as_integer(high), as_integer(id)  # noqa: A001
    if low > high:
        raise OptionError(f"interval [{low}, {high}] with id {id} is reversed: low must be <= high")
    if low < 0 or high >= domain:
        raise OptionError(
            f"interval [{low}, {high}] with id {id} leaves the domain of {domain} cells from 0"
        )
    if not 0 <= id <= _INT32.max:
        raise OptionError(f"id {id} of interval [{low}, {high}] is not in 0 to {_INT32.max}")
    return low, high, id


def as_integer(number: int, parameter: str = "") -> int:
    """Refuse what is not a whole number, as an end, an id or a parameter."""
    try:
        return operator.index(number)
    except TypeError:
        where = f"{parameter}: " if parameter else ""
        raise OptionError(f"{where}{brief(number)} is not a whole number") from None


def as_int32(numbers: ArrayLike, what: str) -> Int32s:
    """Make a contiguous int32 array of whole numbers that fit; no copy when it is one already."""
    given = _whole(numbers, what)
    if given.dtype != np.int32 and len(given):
        low, high = given.min(), given.max()
        if low < _INT32.min or high > _INT32.max:
            raise OptionError(f"{what} reach from {low} to {high}: they must fit into int32")
    return np.ascontiguousarray(given, dtype=np.int32)


def as_values(values: ArrayLike) -> Int32s:
    """Make values contiguous int32; what does not fit becomes -1, which stabs nothing."""
    given = np.asarray(values)
    if given.dtype == object and all(isinstance(value, int) for value in given.ravel()):
        given = np.where((given >= 0) & (given <= _INT32.max), given, -1).astype(np.int32)
    given = _whole(given, "values")
    if given.dtype != np.int32:
        given = np.where((given >= 0) & (given <= _INT32.max), given, -1)
    return np.ascontiguousarray(given, dtype=np.int32)


def _whole(numbers: ArrayLike, what: str) -> NDArray[Any]:
    # asarray also turns a memory map into a plain view, which kernels take on their fast path.
    try:
        given = np.asarray(numbers)
    except ValueError as wrong:  # lists of different lengths
        raise OptionError(f"{what} must be a list of numbers: {wrong}") from None
    if given.ndim != 1:
        raise OptionError(f"{what} must be one-dimensional, not of shape {given.shape}")
    if given.dtype.kind in "iu":
        return given
    if len(given):
        raise OptionError(f"{what} must be whole numbers, not {given.dtype}")
    return np.empty(0, np.int32)  # an empty list has no type of its own
