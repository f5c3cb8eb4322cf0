"""Postings of a k-index: where the clauses of classes are in its lists.

Classes are brought into normal form (``literature/clauses/normal.py``), their clauses numbered as
items (``literature/kindex/items.py``), and each predicate becomes one posting in the list of every
value it covers (``literature/kindex/values.py``). A "missing" predicate is a negative posting in
the list of the one cell that must not be there. The *size* of a conjunction counts its other
predicates::

    item 5: a BETWEEN 2 AND 4 AND b IS NULL        size 1

    value     2      3      4      b is there
    posting   (5 1)  (5 1)  (5 1)  (5 0)           in the lists of size 1; 0: must not hold

A conjunction of size 0 is posted in the Z-list besides: it matches unless a negative posting says
no. In conjunctive form the second number is the clause instead, and the size is the number of
clauses. But if some share a channel, one value can satisfy several of them: the size is the number
of clauses divided by the most that one value can satisfy, since an event needs no fewer values.

Cost: O(intervals) to count them; where they go is for the directory to say
(``literature/kindex/directory.py``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import ranges, starts_of
from bittern.jit import frozen, i4r, i8r, i8w, kernel, tuple_type, u1r, void
from bittern.literature.clauses.normal import Clauses, NormalForms, forms_and_refusals, take
from bittern.literature.kindex.items import ItemArrays
from bittern.literature.kindex.values import CellValues
from bittern.literature.sorted_lists.lists import MAX_PAIRS
from bittern.matching.contract import Refused
from bittern.model.classes.classes import Classes


class Postings(NamedTuple):
    """Clauses as kernels post them: their predicates are intervals of cells."""

    items: npt.NDArray[np.int32]  # of each clause
    sizes: npt.NDArray[np.int32]
    numbers: npt.NDArray[np.int32]  # of a clause within its item, or -1 if it is a conjunction
    starts: npt.NDArray[np.int64]
    negative: npt.NDArray[np.uint8]  # per predicate
    interval_starts: npt.NDArray[np.int64]
    lows: npt.NDArray[np.int32]
    highs: npt.NDArray[np.int32]
    totals: npt.NDArray[np.int64]  # how many postings a clause has

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """What kind of list each clause is posted in: its size, and 1 if not a conjunction."""
        return self.sizes << 1 | (self.numbers >= 0)


POSTINGS = tuple_type(Postings, i4r, i4r, i4r, i8r, u1r, i8r, i4r, i4r, i8r)


class Rewritten(NamedTuple):
    """Classes as items, and how these are posted."""

    items: ItemArrays
    conjunctions: Postings
    disjunctions: Postings
    always: npt.NDArray[np.int32]  # classes that are not posted, but always candidates

    @property
    def parts(self) -> tuple[Postings, Postings]:
        """Both kinds of postings."""
        return self.conjunctions, self.disjunctions

    @property
    def n_postings(self) -> int:
        """How many there are in all."""
        return sum(int(part.totals.sum()) for part in self.parts)

    def posted_as(self, items: npt.NDArray[np.int32]) -> Rewritten:
        """The same postings, under these numbers of the items."""
        one, other = (frozen(part._replace(items=items[part.items])) for part in self.parts)
        return self._replace(conjunctions=one, disjunctions=other)

    def item_codes(self) -> npt.NDArray[np.int32]:
        """The kind of list of each item that is posted."""
        whole = self.disjunctions
        return np.concatenate((self.conjunctions.codes, whole.codes[whole.numbers == 0]))


@kernel(void, i4r, i8r, i8r, i4r, i4r, i8r, i8w)
def _count(
    sizes: Any,
    starts: Any,
    interval_starts: Any,
    lows: Any,
    highs: Any,
    before: Any,
    totals: Any,
) -> None:
    """How many postings each clause has; ``before`` are the values of all cells before each."""
    for k in range(len(sizes)):
        total = np.int64(sizes[k] == 0)
        for i in range(interval_starts[starts[k]], interval_starts[starts[k + 1]]):
            total += before[highs[i] + 1] - before[lows[i]]
        totals[k] = total


def rewrite(classes: Classes, values: CellValues) -> Rewritten:
    """All classes as items. ``Refused`` names those whose form or range cannot be had."""
    forms, refused = forms_and_refusals(classes, cnf=True)
    for clauses in (forms.dnf, forms.cnf):
        refused |= values.refused(clauses)
    if refused:
        raise Refused(refused)
    return _as_items(_with_missing(classes, forms), len(classes), values)


def _with_missing(classes: Classes, forms: NormalForms) -> NormalForms:
    """Take plain conjunctions of nothing but "missing" back to the others: the Z-list has them."""
    plain = classes.structure_of[forms.always] == 0
    own = forms.always[plain]
    if not len(own):
        return forms
    sizes = classes.counts[own].astype(np.int64)
    tests = ranges(classes.starts[own], sizes)
    dnf = forms.dnf
    missing = np.full(len(tests), -1, dtype=np.int32)
    joined = Clauses(
        np.concatenate((dnf.owners, own)),
        np.concatenate((dnf.starts, dnf.starts[-1] + np.cumsum(sizes))),
        np.concatenate((dnf.channels, classes.channels[tests])),
        np.concatenate((dnf.interval_starts, dnf.interval_starts[-1] + 1 + np.arange(len(tests)))),
        np.concatenate((dnf.lows, missing)),
        np.concatenate((dnf.highs, missing)),
    )
    order = np.argsort(joined.owners, kind="stable")
    return NormalForms(take(joined, order), forms.cnf, forms.always[~plain])


def _as_items(forms: NormalForms, n_classes: int, values: CellValues) -> Rewritten:
    """Number the items of all classes, in the order of classes, and count what they post."""
    whole, whole_of, clauses = np.unique(forms.cnf.owners, return_inverse=True, return_counts=True)
    posted = np.concatenate((forms.dnf.owners, whole))
    others = np.ones(n_classes, dtype=np.bool_)
    others[posted] = False
    owners = np.concatenate((posted, np.flatnonzero(others))).astype(np.int32)
    order = np.argsort(owners, kind="stable")
    item_of = np.empty(len(owners), dtype=np.int32)
    item_of[order] = np.arange(len(owners), dtype=np.int32)

    n = len(forms.dnf)
    numbers = np.arange(len(whole_of)) - (np.cumsum(clauses) - clauses)[whole_of]
    conjunctions = _conjunctions(forms.dnf, item_of[:n], values)
    disjunctions = _posted(
        forms.cnf,
        item_of[n:][whole_of],
        _least_values(forms.cnf, whole_of, clauses)[whole_of],
        numbers,
        np.zeros(len(forms.cnf.channels), dtype=np.bool_),
        values,
    )
    clauses_of = np.zeros(len(owners), dtype=np.uint8)
    clauses_of[item_of[n : n + len(whole)]] = clauses
    entries = np.zeros(len(owners), dtype=np.int64)
    for part in (conjunctions, disjunctions):
        np.add.at(entries, part.items, part.totals)
    # One that has more of them is too large for any index.
    items = ItemArrays(owners[order], clauses_of, np.minimum(entries, MAX_PAIRS).astype(np.int32))
    return Rewritten(items, conjunctions, disjunctions, forms.always)


def _conjunctions(clauses: Clauses, items: npt.NDArray[np.int32], values: CellValues) -> Postings:
    """Conjunctions; a predicate that asks for "missing" is a negative one of the one cell."""
    first_intervals = clauses.interval_starts[:-1]
    negative = clauses.lows[first_intervals] < 0
    at = first_intervals[negative]
    if len(at):
        lows, highs = clauses.lows.copy(), clauses.highs.copy()
        lows[at] = highs[at] = values.bases[clauses.channels[negative]]
        clauses = Clauses(*clauses[:4], lows, highs)
    before = starts_of(~negative)
    sizes = before[clauses.starts[1:]] - before[clauses.starts[:-1]]
    return _posted(clauses, items, sizes, np.full(len(clauses), -1), negative, values)


def _least_values(
    clauses: Clauses, whole_of: npt.NDArray[Any], counts: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """What an event needs no fewer values than, to satisfy all clauses of each item."""
    owners = np.repeat(whole_of, np.diff(clauses.starts)).astype(np.int64)
    pairs, shared = np.unique(owners << 32 | clauses.channels, return_counts=True)
    most = np.ones(len(counts), dtype=np.int64)
    np.maximum.at(most, pairs >> 32, shared)
    return -(-counts // most)


def _posted(
    clauses: Clauses,
    items: npt.NDArray[np.int32],
    sizes: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    negative: npt.NDArray[np.bool_],
    values: CellValues,
) -> Postings:
    totals = np.empty(len(clauses), dtype=np.int64)
    spans = clauses.starts, clauses.interval_starts, clauses.lows, clauses.highs
    sizes_32 = sizes.astype(np.int32)
    _count(sizes_32, *spans, values.before, totals)
    starts, interval_starts, lows, highs = spans
    return frozen(
        Postings(
            items,
            sizes_32,
            numbers.astype(np.int32),
            starts,
            negative.astype(np.uint8),
            interval_starts,
            lows,
            highs,
            totals,
        )
    )
