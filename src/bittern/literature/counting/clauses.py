"""What classes come to when they are counted: clauses, their sizes and their intervals.

``literature/counting/index.py`` builds its arrays of this, and finds again what it has to take out.
For its example, with clauses numbered from 0 on::

    n_clauses   1  2                      of classes 0 and 1
    sizes       2  1  1                   predicates of clauses 0, 1 and 2 that are not "missing"
    keys        [0,4] [7,7] | [0,4] [9,9] forbids | [7,7]
    clause_of   0 0 1 1 2     class_of   0 0 1 1 1
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s
from bittern.literature.clauses.normal import normal_forms, take
from bittern.literature.counting.intervals import keys_of
from bittern.model.classes.classes import Classes

#: Predicates that a clause may have, so that a byte can count them.
MOST_COUNTED = 255


class Filed(NamedTuple):
    """What classes come to: their clauses, numbered from 0 on, and the intervals of these."""

    n_clauses: Int64s  # of each class
    sizes: npt.NDArray[np.uint8]  # predicates of each clause that have to be satisfied
    keys: Int64s  # of each interval
    clause_of: Int32s
    class_of: Int32s
    always: Int32s  # classes that are not counted

    @classmethod
    def of(cls, classes: Classes, bases: Int32s) -> Self:
        """Classes in normal form; ``Refused`` names those that have none. O(predicates)."""
        dnf, _, always = normal_forms(classes, cnf=False)
        wide = np.unique(dnf.owners[np.diff(dnf.starts) > MOST_COUNTED])
        if len(wide):
            dnf = take(dnf, np.flatnonzero(~np.isin(dnf.owners, wide)))
            always = np.union1d(always, wide).astype(np.int32)
        clauses = np.arange(len(dnf), dtype=np.int32)
        clause_of_predicate = np.repeat(clauses, np.diff(dnf.starts))
        n_intervals = np.diff(dnf.interval_starts)
        is_missing = dnf.lows[dnf.interval_starts[:-1]] < 0
        sizes = np.bincount(clause_of_predicate[~is_missing], minlength=len(dnf))
        clause_of = np.repeat(clause_of_predicate, n_intervals)
        forbids = np.repeat(is_missing, n_intervals)
        lows, highs = dnf.lows.copy(), dnf.highs.copy()
        lows[forbids] = highs[forbids] = bases[dnf.channels[is_missing]]
        return cls(
            np.bincount(dnf.owners, minlength=len(classes)),
            sizes.astype(np.uint8),
            keys_of(lows, highs, forbids),
            clause_of,
            dnf.owners[clause_of],
            always,
        )

    @property
    def entries(self) -> Int32s:
        """How many intervals the clauses of each class have together."""
        return np.bincount(self.class_of, minlength=len(self.n_clauses)).astype(np.int32)
