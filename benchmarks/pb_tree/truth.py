"""What a value satisfies, by binary searches in sorted arrays.

The constants of every operator are sorted, with their sids and running sums of these. Whatever
holds for a value is a run at the beginning, at the end, or in the middle of them::

    >  constants  2  5  5  9      value 6:  3 of them are below it
    sums of sids  0  7  8 12 20             their sids add up to 12

So the number of ids and their sum are known for every value, at once for all, and the ids
themselves for a few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.draw import Floats, Ints
from benchmarks.pb_tree.workloads import Predicates
from benchmarks.run import DisagreementError, agree
from bittern.literature.predicates.contract import AT_LEAST, AT_MOST, EQUAL, GREATER, LESS, UNEQUAL

#: Values whose ids are compared one by one.
COMPARED = 20


class Truth:
    """What values are to find among predicates, and among those of another truth as well."""

    def __init__(self, predicates: Predicates, beside: Truth | None = None) -> None:
        self._beside = beside
        self._sorted = {}
        for operator in range(6):
            rows = predicates.taken(predicates.operators == operator)
            rows = rows.taken(np.argsort(rows.constants, kind="stable"))
            sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(rows.sids, dtype=np.int64)])
            self._sorted[operator] = rows.constants, rows.sids, sums

    def expected(self, values: Floats) -> tuple[Ints, Ints]:
        """How many ids each value finds, and their sum."""
        if self._beside is None:
            counts, sums = np.zeros((2, len(values)), np.int64)
        else:
            counts, sums = self._beside.expected(values)
        for operator, (constants, _, running) in self._sorted.items():
            for first, last in _runs(operator, constants, values):
                counts += last - first
                sums += running[last] - running[first]
        return counts, sums

    def ids(self, value: float) -> NDArray[np.int32]:
        """The ids of one value, ascending."""
        found = [] if self._beside is None else [self._beside.ids(value)]
        for operator, (constants, sids, _) in self._sorted.items():
            for (first,), (last,) in _runs(operator, constants, np.array([value])):
                found.append(sids[first:last])
        return np.sort(np.concatenate(found))

    def judge(self, who: str, values: Floats, offsets: Ints, ids: NDArray[np.int32]) -> None:
        """Raise unless the ids that somebody found for these values are those that hold."""
        counts, sums = self.expected(values)
        agree(who, np.diff(offsets), counts)
        running = np.concatenate([np.zeros(1, np.int64), np.cumsum(ids, dtype=np.int64)])
        wrong = np.flatnonzero(np.diff(running[offsets]) != sums)
        for i in (*wrong[:1], *np.linspace(0, len(values) - 1, COMPARED).astype(np.int64)):
            found = np.sort(ids[offsets[i] : offsets[i + 1]])
            expected = self.ids(float(values[i]))
            if not np.array_equal(found, expected):
                raise DisagreementError(
                    f"{who} finds other ids for {values[i]}: {np.setxor1d(found, expected)[:5]}"
                    " are superfluous or missing"
                )


def _runs(operator: int, constants: Floats, values: Floats) -> tuple[tuple[Ints, Ints], ...]:
    """Where the constants that hold begin and end, for each value; two runs for ``!=``."""
    below = np.searchsorted(constants, values, side="left")
    up_to = np.searchsorted(constants, values, side="right")
    none, every = np.zeros_like(below), np.full_like(below, len(constants))
    runs: dict[int, tuple[tuple[Ints, Ints], ...]] = {
        EQUAL: ((below, up_to),),
        UNEQUAL: ((none, below), (up_to, every)),
        LESS: ((up_to, every),),
        AT_MOST: ((below, every),),
        GREATER: ((none, below),),
        AT_LEAST: ((none, up_to),),
    }
    return runs[operator]
