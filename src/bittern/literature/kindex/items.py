"""Items: what a k-index posts, each under a number that is never given again.

A conjunction is an item; a class in disjunctive form has one for each. A class in conjunctive form
is one item as a whole. A class that is not posted at all (it never matches, or is always a
candidate) has one too, so that every class is here, and classes ascend::

    class 0: a = 1 OR b = 2     class 1: FALSE     class 2: (a = 1 OR b = 2) AND (a = 3 OR c = 4)

    owners   0  0  1  2      class of each item
    clauses  0  0  0  2      of one in conjunctive form, else 0
    entries  1  1  0  4      how often it is posted, or DELETED

Cost: 9 bytes per item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import prefixed, record_of, under
from bittern.growing import GrowingColumn
from bittern.jit import frozen, i4r, tuple_type, u1r

DELETED = -1


class ItemArrays(NamedTuple):
    """One row per item."""

    owners: npt.NDArray[np.int32]
    clauses: npt.NDArray[np.uint8]
    entries: npt.NDArray[np.int32]


ITEMS = tuple_type(ItemArrays, i4r, u1r, i4r)


class Items:
    """Items that may be added and marked as deleted; the arrays it is given never change."""

    def __init__(self, arrays: ItemArrays) -> None:
        self._columns = tuple(GrowingColumn(array) for array in arrays)
        self._arrays: ItemArrays | None = None
        #: Whether a class has several items, and whether one is in conjunctive form.
        self.several, self.conjunctive = _kinds(arrays)

    def __len__(self) -> int:
        return len(self._columns[0])

    @property
    def arrays(self) -> ItemArrays:
        """All items so far; made once after a change."""
        if self._arrays is None:
            self._arrays = frozen(ItemArrays(*(column.items for column in self._columns)))
        return self._arrays

    @property
    def n_classes(self) -> int:
        """How many class numbers have been given out."""
        return int(self.arrays.owners[-1]) + 1 if len(self) else 0

    def of_classes(self, numbers: npt.NDArray[np.int32]) -> tuple[Any, Any]:
        """The first item of each of these classes, and how many each has. O(log items) each."""
        owners = self.arrays.owners
        first = np.searchsorted(owners, numbers, "left")
        return first, np.searchsorted(owners, numbers, "right") - first

    def append(self, added: ItemArrays) -> None:
        """Add items of new classes. O(added), amortised."""
        self._arrays = None
        arrays: tuple[npt.NDArray[Any], ...] = added
        for column, more in zip(self._columns, arrays, strict=True):
            column.append(more)
        several, conjunctive = _kinds(added)
        self.several, self.conjunctive = self.several or several, self.conjunctive or conjunctive

    def mark_deleted(self, items: npt.NDArray[Any]) -> None:
        """Remember that items are deleted."""
        self._arrays = None
        self._columns[-1].extended(0)[items] = DELETED

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, to be saved; later changes do not show in it."""
        shared = (column.share() for column in self._columns)
        return prefixed("items.", ItemArrays(*shared))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The same again, from an index's arrays."""
        return cls(record_of(ItemArrays, under(arrays, "items.")))

    def check(self) -> None:
        """Every class has items; classes ascend. O(items)."""
        owners, clauses, entries = self.arrays
        assert len(clauses) == len(entries) == len(owners), "items differ in number"
        steps = np.diff(owners.astype(np.int64))
        assert not len(owners) or owners[0] == 0, "the first item is not of the first class"
        assert ((steps == 0) | (steps == 1)).all(), "a class has no item, or is out of order"
        assert (entries >= DELETED).all(), "an item has a negative number of entries"
        assert (clauses <= 64).all(), "an item has more clauses than a word has bits"
        whole = clauses > 0
        assert not (whole[1:] & (steps == 0)).any(), "a class in conjunctive form has two items"
        assert not (whole[:-1] & (steps == 0)).any(), "a class in conjunctive form has two items"


def _kinds(arrays: ItemArrays) -> tuple[bool, bool]:
    owners, clauses, _ = arrays
    return bool((owners[1:] == owners[:-1]).any()), bool(clauses.any())
