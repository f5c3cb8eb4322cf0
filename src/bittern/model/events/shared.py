"""One reading of a batch for several rank spaces.

A snapshot and the deltas on top of it mostly ask for the same attributes. So the events are read
once, for the first of them, and every value is handed on to each of the others that asks for its
attribute, under the number that it has there::

    first        price 0   color 1   size 2
    second       size 0    price 1               own numbers of the first's attributes: 1 -1 0
    a value      (row 4, attribute 2, 39)   ->   first (4, 2, 39)   second (4, 0, 39)

What is read for an attribute does not depend on which others are asked for, so that each gets what
it would have read itself. O(values) for each, a nanosecond or so where few are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bittern.jit import frozen, i4r, i4w, i8, i8r, i8w, kernel, tuple_type, u1r, u1w
from bittern.model.events.batch import EventRows, PairBatch
from bittern.model.events.mistyped import Kinds, Strays
from bittern.model.rank.cells import AskedValues
from bittern.model.tagged import TaggedValues

if TYPE_CHECKING:
    from bittern.model.events.columns import Column
    from bittern.model.numbers import Number
    from bittern.model.rank.touched import Touched

_EVERYWHERE = np.empty(0, dtype=np.int64)

_GIVEN = tuple_type(TaggedValues, i4r, i4r, u1r, i8r, i4r, u1r)
_PICKED = tuple_type(TaggedValues, i4w, i4w, u1w, i8w, i4w, u1r)


@kernel(i8, _GIVEN, i4r, _PICKED)
def _pick(given: Any, numbers: Any, picked: Any) -> Any:
    """Copy the values that are asked for, under own numbers; returns how many."""
    n: Any = 0
    for i in range(len(given.rows)):
        number = numbers[np.uint64(given.attributes[i])]
        picked.rows[n], picked.attributes[n] = given.rows[i], number
        picked.tags[n], picked.payloads[n] = given.tags[i], given.payloads[i]
        picked.lengths[n] = given.lengths[i]
        n += np.int64(number >= 0)
    return n


class Asking:
    """One that is read for: its pairs, and its strays."""

    def __init__(self, numbers: npt.NDArray[np.int32], batch: PairBatch, kinds: Kinds) -> None:
        """``numbers`` has by attribute of the reading the own number, or -1."""
        self.batch = batch
        self.strays: list[Strays] = []
        self.numbers = numbers
        self._kinds = kinds
        self._picked: tuple[TaggedValues, TaggedValues] | None = None

    def own(self, attribute: int) -> int:
        """The own number of an attribute, or -1."""
        return int(self.numbers[attribute])

    def judge(self, values: TaggedValues) -> None:
        """Find the strays among values."""
        self.strays.append(self._kinds.strays(self.pick(values)))

    def pick(self, values: TaggedValues) -> TaggedValues:
        """The values that are asked for, under their own numbers."""
        if self._picked is None or self._picked[0] is not values:
            given, room = frozen(values), len(values.rows) + 1
            picked = TaggedValues(
                np.empty(room, dtype=np.int32),
                np.empty(room, dtype=np.int32),
                np.empty(room, dtype=np.uint8),
                np.empty(room, dtype=np.int64),
                np.empty(room, dtype=np.int32),
                given.data,
            )
            n = _pick(given, self.numbers, picked)
            self._picked = values, picked.at(slice(n))
        return self._picked[1]


class SharedBatch:
    """A sink that hands everything on to the pairs of several rank spaces."""

    def __init__(
        self, first: PairBatch, kinds: Kinds, others: list[Asking], touched: Touched | None
    ) -> None:
        """``touched`` are the cells of the first that others ask about, if they are known."""
        self._first = first
        self._touched = touched
        self._kinds = kinds
        self._others = others
        self._marks: list[list[int]] = []

    def strays(self, values: TaggedValues) -> Strays:
        """Those of the first; the others keep their own."""
        for other in self._others:
            other.judge(values)
        return self._kinds.strays(values)

    def mark(self) -> int:
        """Where the next pairs will be, for ``move_rows``."""
        self._marks.append([batch.mark() for batch in self._batches()])
        return len(self._marks) - 1

    def move_rows(self, mark: int, rows: EventRows) -> None:
        """Pairs since ``mark`` that are in row i belong in ``rows[i]``."""
        for batch, own in zip(self._batches(), self._marks[mark], strict=True):
            batch.move_rows(own, rows)

    def repeat_rows(self, mark: int, codes: EventRows) -> None:
        """Pairs since ``mark`` that are in row i belong in every row whose code is i."""
        for batch, own in zip(self._batches(), self._marks[mark], strict=True):
            batch.repeat_rows(own, codes)

    def _batches(self) -> list[PairBatch]:
        return [self._first, *(other.batch for other in self._others)]

    def add_column(self, attribute: int, column: Column) -> None:
        """A column of one type."""
        self._first.add_column(attribute, column)
        for other in self._others:
            own = other.own(attribute)
            if own >= 0:
                other.batch.add_column(own, column)

    def add_tagged(self, values: TaggedValues) -> None:
        """Values of any kind, except those that no payload holds."""
        places = _EVERYWHERE
        if self._touched is None:
            self._first.add_tagged(values)
        else:
            places = self._first.add_touching(values, self._touched.arrays)
        for other in self._others:
            if other.batch.has_patterns:
                other.batch.add_tagged(other.pick(values))
            elif self._touched is None or len(places):
                other.batch.add_asked(values, AskedValues(places, other.numbers))

    def add_exact_numbers(self, numbers: list[tuple[int, int, Number]]) -> None:
        """(row, attribute, number), one by one."""
        self._first.add_exact_numbers(numbers)
        for other in self._others:
            owned = [(row, other.own(attribute), number) for row, attribute, number in numbers]
            other.batch.add_exact_numbers([each for each in owned if each[1] >= 0])

    def add_variant_numbers(self, values: TaggedValues) -> None:
        """Long decimals and nanoseconds among the values of variants."""
        self._first.add_variant_numbers(values)
        for other in self._others:
            other.batch.add_variant_numbers(other.pick(values))

    def add_present(self, attributes: EventRows, rows: EventRows) -> None:
        """Attributes that are there in these rows, one by one."""
        self._first.add_present(attributes, rows)
        for other in self._others:
            own = other.numbers[attributes]
            other.batch.add_present(own[own >= 0], rows[own >= 0])
