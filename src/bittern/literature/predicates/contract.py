"""The contract of every predicate index: it finds the predicates that a value satisfies.

A predicate is an operator, a constant and the id of its subscription, its *sid*. Constants are
whole numbers here, called keys: ordered values are numbered in their order beforehand::

    =  3   sid 7        value 3 satisfies   {7, 5, 8}
    >= 3   sid 5        value 4 satisfies   {5, 9}
    >  3   sid 9        value 2 satisfies   {8}
    <  5   sid 8        ...

One index can hold several attributes one behind the other, as the axis of the whole catalog does:
a value comes with the *first* and the *last* key of its attribute, and only predicates on keys in
between are asked::

    key     0 ... 9 | 10 ... 14 | 15 ... 99        value 12 with first 10 and last 14

A sid is reported once for every predicate of it that is satisfied, in no particular order. An index
does not remember predicates one by one: ``>=`` may be stored as ``=`` and ``>``. So what is deleted
must have been inserted, or be a part of it; the rest then stays.

This class checks nothing: ``literature/predicates/sides.py`` or another caller does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from bittern.arrays import Int32s, Int64s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
"""The operators; everywhere else an operator is its position here."""

EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST = range(6)


class PredicateIndex(ABC):
    """Predicates with ids, searched by value; see the module for the rules."""

    @classmethod
    @abstractmethod
    def build(cls, *predicates: Any, **parameters: Any) -> Self:
        """Build from n operators (uint8), keys (int64) and sids (int32), in bulk."""

    @abstractmethod
    def insert(self, operator: int, key: int, sid: int) -> None:
        """Add one predicate."""

    @abstractmethod
    def delete(self, operator: int, key: int, sid: int) -> bool:
        """Take one predicate out, or change nothing and say False."""

    @abstractmethod
    def count(self, values: Int64s, firsts: Int64s, lasts: Int64s, counts: Int64s) -> None:
        """Write how many predicates each value satisfies; values ascend, with repetitions."""

    @abstractmethod
    def fill(
        self, values: Int64s, firsts: Int64s, lasts: Int64s, starts: Int64s, sids: Int32s
    ) -> None:
        """Write the sids of value i from ``sids[starts[i]]`` on; values as for ``count``."""

    @abstractmethod
    def statistics(self) -> dict[str, int | float]:
        """Figures that explain size and speed: at least ``entries``, the sids that are stored."""

    @abstractmethod
    def sids(self) -> Int32s:
        """Every stored sid, repeated as often as it is stored, in no particular order."""

    @abstractmethod
    def check(self) -> None:
        """Verify every invariant; AssertionError says which one is broken."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything needed to come back with ``from_arrays``; later changes do not change it."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search these arrays in place, read-only or mapped; the first change copies them: O(1)."""
