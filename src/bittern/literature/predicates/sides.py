"""A stabbing index made of a predicate index: intervals of cells become predicates.

Within its attribute, whose cells reach from ``first`` to ``last``, an interval is one of four::

    attribute of cells 10 .. 19             predicate
    [12, 12]                                = 12
    [12, 19]   up to the last cell          >= 12
    [10, 12]   from the first cell          <= 12
    [12, 15]                                >= 12 AND <= 15: *two-sided*, see ``two_sided``

The one-sided ones are predicates of one index (``one``), of which a value takes all that are found.
The two-sided are in a second index (``two``) under one of their ends.

``cuts`` are the first cells of the attributes, in ascending order: by default all cells are one
attribute. The axis of a catalog (``model/rank/space.py``) has all attributes one behind
the other; with its cuts, ``price >= 10`` is an interval up to the last cell of price and so
one-sided. An interval that crosses a cut is split there, into one for each attribute: a value
lies in one attribute, and finds the id once all the same.

Costs: those of the predicate index for the one-sided; O(n) candidates per value for the two-sided,
which makes these structures slow where there are many short ranges. Values are sorted, once per
batch, since predicate indexes search in order of the values: O(v log v) for v of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from bittern.arrays import Int32s, Int64s, prefixed, ranges, under
from bittern.errors import OptionError
from bittern.jit import i4r, i4w, i8r, kernel, read_only, void
from bittern.literature.predicates.contract import AT_LEAST, AT_MOST, EQUAL, PredicateIndex
from bittern.literature.predicates.two_sided import TwoSided
from bittern.stabbing.contract import MAX_DOMAIN, Located, StabbingIndex, as_int32, unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

_KEPT = 1 << 24
"""Two-sided ids that a batch keeps: 64 MiB."""

_TWO_SIDED = 255
"""In place of an operator, for an interval that none of them describes."""


@kernel(void, i8r, i8r, i4r, i8r, i4w)
def _copy_matches(places: Any, offsets: Any, matched: Any, starts: Any, ids: Any) -> None:
    for i in range(len(places)):
        at = starts[i]
        for k in range(offsets[places[i]], offsets[places[i] + 1]):
            ids[at] = matched[k]
            at += 1


class SideParts(NamedTuple):
    """Intervals that each lie within one attribute."""

    owners: Int64s
    """The interval that it is a part of."""
    lows: Int32s
    highs: Int32s
    firsts: Int64s
    """Cells of its attribute, from the first ..."""
    lasts: Int64s
    """... to the last."""
    operators: NDArray[np.uint8]
    """What it is, or ``_TWO_SIDED``."""
    keys: Int64s
    """The constant, where there is an operator."""


class PredicateStabbing(StabbingIndex):
    """Intervals filed as predicates (``contract``); see the module.

    A subclass names its predicate index. One that has parameters names them in ``_build``, and
    hands them on.
    """

    predicates: ClassVar[type[PredicateIndex]]

    def __init__(self, one: PredicateIndex, two: TwoSided, cuts: Int64s, *, domain: int) -> None:
        self.domain = domain
        self.one, self.two, self.cuts = one, two, cuts

    @classmethod
    def _build(
        cls,
        lows: Int32s,
        highs: Int32s,
        ids: Int32s,
        domain: int,
        *,
        cuts: ArrayLike | None = None,
        **parameters: Any,
    ) -> Self:
        """O(n log n), and what the predicate index asks for."""
        begins = _checked_cuts(cuts, domain)
        parts = _split(lows, highs, begins, domain)
        numbers = ids[parts.owners]
        of_one = np.flatnonzero(parts.operators != _TWO_SIDED)
        one = cls.predicates.build(
            parts.operators[of_one], parts.keys[of_one], numbers[of_one], **parameters
        )
        of_two = np.flatnonzero(parts.operators == _TWO_SIDED)
        bounded = parts.lows[of_two], parts.highs[of_two], numbers[of_two]
        bounds = parts.firsts[of_two], parts.lasts[of_two]
        two = TwoSided.build(cls.predicates, bounded, *bounds, parameters)
        return cls(one, two, begins, domain=domain)

    # -- changes ---------------------------------------------------------------------------------

    def _parts_of(self, low: int, high: int) -> list[tuple[int, ...]]:
        ends = np.array([low], np.int32), np.array([high], np.int32)
        columns = _split(*ends, self.cuts, self.domain)[1:]
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _insert(self, low: int, high: int, id: int) -> None:  # noqa: A002
        done: list[tuple[int, ...]] = []
        try:
            for part in self._parts_of(low, high):
                self._insert_part(part, id)
                done.append(part)
        except OptionError:
            for part in done:
                self._delete_part(part, id)
            raise

    def _delete(self, low: int, high: int, id: int) -> bool:  # noqa: A002
        done: list[tuple[int, ...]] = []
        for part in self._parts_of(low, high):
            if not self._delete_part(part, id):
                for gone in done:
                    self._insert_part(gone, id)
                return False
            done.append(part)
        return True

    def _insert_part(self, part: tuple[int, ...], id: int) -> None:  # noqa: A002
        low, high, first, last, operator, key = part
        if operator == _TWO_SIDED:
            self.two.insert(low, high, id, first, last)
        else:
            self.one.insert(operator, key, id)

    def _delete_part(self, part: tuple[int, ...], id: int) -> bool:  # noqa: A002
        low, high, first, last, operator, key = part
        if operator == _TWO_SIDED:
            return self.two.delete(low, high, id, first, last)
        return self.one.delete(operator, key, id)

    # -- searching -------------------------------------------------------------------------------

    def _locate(self, values: Int32s) -> Located:
        return SidesFound(self, values)

    # -- looking inside --------------------------------------------------------------------------

    def statistics(self) -> dict[str, int | float]:
        """Entries of both indexes, the two-sided among them, and the figures of each."""
        one, two = self.one.statistics(), self.two.index.statistics()
        return {
            "domain": self.domain,
            "attributes": len(self.cuts),
            "entries": one["entries"] + two["entries"],
            "two_sided": len(self.two.in_use()),
            **{f"one_{name}": figure for name, figure in one.items()},
            **{f"two_{name}": figure for name, figure in two.items()},
            "bytes": self.nbytes,
        }

    def ids(self) -> Int32s:
        """Distinct ids of both indexes, ascending."""
        return np.unique(np.concatenate((self.one.sids(), self.two.in_use())))

    def check(self) -> None:
        """Verify cuts, both indexes and the table of the two-sided."""
        assert _ascend(self.cuts, self.domain), "cuts do not ascend from 0 within the domain"
        self.one.check()
        assert (self.one.sids() >= 0).all(), "an id is negative"
        self.two.check(self.domain)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Cuts, the table of the two-sided, and the arrays of both indexes."""
        ids, others = self.two.table()
        shape = np.array([self.domain, len(self.cuts), len(ids), self.two.free], np.int64)
        return {
            "shape": shape,
            "cuts": self.cuts,
            "ids": ids,
            "others": others,
            **prefixed("one.", self.one.arrays()),
            **prefixed("two.", self.two.index.arrays()),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are; SnapshotError if their sizes disagree: O(1)."""
        names = ("shape", "cuts", "ids", "others")
        shape, cuts, ids, others = (np.asarray(arrays[name]) for name in names)
        fit = (
            shape.shape == (4,)
            and shape.dtype == cuts.dtype == np.int64
            and 0 <= shape[0] <= MAX_DOMAIN
            and cuts.shape == (shape[1],)
            and len(cuts) > 0
            and ids.dtype == others.dtype == np.int32
            and ids.shape == others.shape == (shape[2],)
            and -1 <= shape[3] < max(len(ids), 1)
        )
        if not fit:
            raise unfit(f"a {cls.name} index")
        one, two = (cls.predicates.from_arrays(under(arrays, side)) for side in ("one.", "two."))
        rows = TwoSided(two, read_only(ids), read_only(others), int(shape[3]))
        return cls(one, rows, read_only(cuts), domain=int(shape[0]))


class SidesFound(Located):
    """What a batch finds: how many one-sided ids, and the two-sided ones themselves.

    Where these are too many to be kept, they are found again for the values that are asked for.
    ``places`` leads from a value to its position in the sorted batch, or is -1 outside the domain.
    """

    def __init__(self, index: PredicateStabbing, values: Int32s) -> None:
        order = np.flatnonzero((values >= 0) & (values < index.domain))
        inside = values[order]
        if (inside[1:] < inside[:-1]).any():
            order = order[np.argsort(inside, kind="stable")]
        self._index, self._order = index, order
        self._places = np.full(len(values), -1, np.int64)
        self._places[order] = np.arange(len(order))
        self._values = values[order].astype(np.int64)
        self._bounds = _attributes(self._values, index.cuts, index.domain)
        self._counts = np.zeros(len(order), np.int64)
        index.one.count(self._values, *self._bounds, self._counts)
        self._matches = index.two.matches(self._values, *self._bounds, _KEPT)
        self.offsets = np.zeros(len(values) + 1, np.int64)
        self.offsets[order + 1] = self._counts + np.diff(self._matches.offsets)
        np.cumsum(self.offsets, out=self.offsets)

    def _fill(self, first: int, last: int, ids: Int32s) -> None:
        places = self._places[first:last]
        places = np.sort(places[places >= 0])
        starts = self.offsets[self._order[places]] - self.offsets[first]
        firsts, lasts = (bounds[places] for bounds in self._bounds)
        self._index.one.fill(self._values[places], firsts, lasts, starts, ids)
        starts += self._counts[places]
        matches = self._matches
        if matches.ids is None:
            matches = self._index.two.matches(self._values[places], firsts, lasts)
            places = np.arange(len(places))
        _copy_matches(places, *matches, starts, ids)


def _ascend(cuts: Int64s, domain: int) -> bool:
    bounded = len(cuts) > 0 and cuts[0] == 0 and cuts[-1] < max(domain, 1)
    return bool(bounded and (cuts[1:] > cuts[:-1]).all())


def _checked_cuts(cuts: ArrayLike | None, domain: int) -> Int64s:
    """First cells of the attributes; OptionError if they do not ascend from 0 within the domain."""
    begins = np.asarray(as_int32([0] if cuts is None else cuts, "cuts"), np.int64)
    if not _ascend(begins, domain):
        raise OptionError(
            f"cuts must ascend from 0 to less than the domain of {domain} cells: "
            "give the first cell of each attribute"
        )
    return begins


def _attributes(cells: Int64s, cuts: Int64s, domain: int) -> tuple[Int64s, Int64s]:
    """First and last cell of the attribute of each cell."""
    at = np.searchsorted(cuts, cells, "right")
    return cuts[at - 1], np.append(cuts, domain)[at] - 1


def _split(lows: Int32s, highs: Int32s, cuts: Int64s, domain: int) -> SideParts:
    """Cut intervals into those of single attributes, and tell what each of them is."""
    begin, end = (np.searchsorted(cuts, ends, "right") for ends in (lows, highs))
    numbers = end - begin + 1
    owners = np.repeat(np.arange(len(lows)), numbers)
    attribute = ranges(begin, numbers)
    firsts, lasts = cuts[attribute - 1], np.append(cuts, domain)[attribute] - 1
    low, high = np.maximum(lows[owners], firsts), np.minimum(highs[owners], lasts)
    equal, up, down = low == high, high == lasts, low == firsts
    operators = np.select([equal, up, down], [EQUAL, AT_LEAST, AT_MOST], _TWO_SIDED)
    return SideParts(
        owners,
        low.astype(np.int32),
        high.astype(np.int32),
        firsts,
        lasts,
        operators.astype(np.uint8),
        np.where(equal | up, low, high),
    )
