"""Pivot and verify: Bittern's own subscription index.

Each class is filed under its pivot cover (``matching/cover.py``) in one stabbing index over the
global axis of cells; a filed pivot is a *posting*. A batch visits the postings of each distinct
cell once for all events that carry it, and verifies::

    postings, in order of their lowest cell, so that neighbours on the axis are near in memory:
      heads     (channel, class)   channel of the first residual test, which is kept inline: most
                                   candidates are rejected here without touching anything else;
                                   ~class where nothing is left to test after it
      bounds    (low, high)        of that test
      lows, highs                  the pivot's own interval
    classes, numbered in order of their first posting:
      starts -> rows (channel, low, high, jump)   what is left to test (``matching/program.py``)
      several  1 where a class has several pivots; its rows then begin with the pivots, their
               number in the jump column, and the program follows

``model = 'x' AND price <= 9 AND size = 4`` filed under ``model`` keeps ``size = 4`` inline and one
row for ``price <= 9``. A test that always holds uses the events' extra column.

An event that satisfies several pivots of a class finds it several times; only the first pivot in
order that holds reports it, so nothing is deduplicated afterwards. Classes that no index can cover
(``a IS NULL``) are on the ``always`` list and run in full for each event.

Cost: O(pairs + candidates) per batch; 24 bytes per posting, plus the stabbing index's, plus 16
per row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bittern.engine.jit import (
    frozen,
    i4r,
    i4r2,
    i4w,
    i8r,
    i8w,
    inline,
    kernel,
    tuple_type,
    u1r,
    void,
)
from bittern.matching.always import run_programs
from bittern.matching.checks import check_filed
from bittern.matching.classes import Classes
from bittern.matching.contract import Found, candidates_of
from bittern.matching.filing import file_classes
from bittern.matching.output import Output
from bittern.matching.program import accepts, is_first_pivot
from bittern.matching.stabbed import Chosen, StabbedIndex
from bittern.model.encoded import EVENTS, EncodedEvents, cell_of, may_have
from bittern.model.rank import RankSpace

#: Postings looked up at once: bounds memory, and keeps them in the cache until they are verified.
CHUNK = 1 << 17
#: Matches to make room for at first, at most; where fewer are candidates, as many as they.
ROOM = 1 << 22


class PivotArrays(NamedTuple):
    """What kernels see."""

    heads: npt.NDArray[np.int32]
    bounds: npt.NDArray[np.int32]
    lows: npt.NDArray[np.int32]
    highs: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]
    several: npt.NDArray[np.uint8]
    always: npt.NDArray[np.int32]


PIVOT = tuple_type(PivotArrays, i4r2, i4r2, i4r, i4r, i4r, i4r2, u1r, i4r)


@inline
def _dense_pass(
    heads: Any,
    bounds: Any,
    starts: Any,
    rows: Any,
    several: Any,
    matrix: Any,
    base: Any,
    ids: Any,
    first: Any,
    last: Any,
    survivors: Any,
    out_classes: Any,
    n: Any,
) -> Any:
    """Test each posting inline, without a branch; returns the number of matches and of survivors.

    Of postings that hold, the class goes to the output where nothing is left to test; the others
    survive, unless the first of their rows rejects them. Unsigned indices spare a test for
    negative ones.
    """
    kept = np.int64(0)
    for i in range(first, last):
        posting = np.uint64(ids[i])
        cell = matrix[np.uint64(base + heads[posting, 0])]
        survivors[np.uint64(kept)] = ids[i]
        kept += np.int64((bounds[posting, 0] <= cell) & (cell <= bounds[posting, 1]))
    still = np.int64(0)
    for i in range(kept):
        posting = np.uint64(survivors[i])
        c = heads[posting, 1]
        if c < 0:
            out_classes[n] = ~c
            n += 1
            continue
        start = np.int64(starts[c])
        cell = matrix[base + rows[start, 0]]
        failed = np.int64((rows[start, 1] > cell) | (cell > rows[start, 2]))
        rejects = np.int64(rows[start, 3] == (starts[c + 1] - start + 1) << 1)
        survivors[still] = survivors[i]
        still += 1 - (failed & rejects & np.int64(several[c] == 0))
    return n, still


@inline
def _sparse_pass(
    heads: Any,
    signatures: Any,
    event: Any,
    always: Any,
    ids: Any,
    first: Any,
    last: Any,
    survivors: Any,
    out_classes: Any,
    n: Any,
) -> Any:
    """As ``_dense_pass``, but survivors have only passed the signature.

    The event may have the channel of their inline test (which is never for a missing value).
    """
    kept = 0
    for i in range(first, last):
        posting = np.uint64(ids[i])
        channel, c = heads[posting, 0], heads[posting, 1]
        done = np.int64(channel == always) & np.int64(c < 0)
        out_classes[np.uint64(n)] = ~c
        n += done
        survivors[np.uint64(kept)] = ids[i]
        kept += may_have(signatures, event, channel) & (1 - done)
    return n, kept


@kernel(void, PIVOT, EVENTS, i8r, i4r, i8r, i4r, i4w, i4w, i4w, i8w)
def _match(
    pivot: Any,
    events: Any,
    pair_offsets: Any,
    pair_rows: Any,
    offsets: Any,
    ids: Any,
    survivors: Any,
    out_rows: Any,
    out_classes: Any,
    state: Any,
) -> None:
    """Verify the postings of each cell for each event that carries it.

    ``state`` is (cell, pair, matches): where to go on, and how many matches there are now. Stops
    where the output might not have room for the next list and one more.
    """
    heads, bounds, lows, highs, starts, rows, several, _ = pivot
    matrix, width, event_offsets, entries, signatures = events
    cell, pair, n = state[0], state[1], state[2]
    dense = len(matrix) > 0
    always = width - 1
    while cell < len(offsets) - 1:
        first, last = offsets[cell], offsets[cell + 1]
        pair = max(pair, pair_offsets[cell])
        while first < last and pair < pair_offsets[cell + 1]:
            if n + last - first >= len(out_rows):
                state[0], state[1], state[2] = cell, pair, n
                return
            event = np.int64(pair_rows[pair])
            pair += 1
            before = n
            if dense:
                n, kept = _dense_pass(
                    heads,
                    bounds,
                    starts,
                    rows,
                    several,
                    matrix,
                    event * width,
                    ids,
                    first,
                    last,
                    survivors,
                    out_classes,
                    n,
                )
            else:
                n, kept = _sparse_pass(
                    heads, signatures, event, always, ids, first, last, survivors, out_classes, n
                )
            for i in range(kept):
                posting = np.uint64(survivors[i])
                if not dense and heads[posting, 0] != always:
                    inline = cell_of(
                        matrix, width, event_offsets, entries, event, heads[posting, 0]
                    )
                    if inline < bounds[posting, 0] or inline > bounds[posting, 1]:
                        continue
                c = heads[posting, 1]
                if c < 0:
                    c = ~c
                else:
                    start, stop = np.int64(starts[c]), np.int64(starts[c + 1])
                    program = start
                    if several[c]:
                        program = start + rows[start, 3]
                        if not is_first_pivot(
                            matrix,
                            width,
                            event_offsets,
                            entries,
                            event,
                            rows,
                            start,
                            lows[posting],
                            highs[posting],
                        ):
                            continue
                    if not accepts(
                        matrix, width, event_offsets, entries, event, rows, program, stop
                    ):
                        continue
                out_classes[n] = c
                n += 1
            for i in range(before, n):
                out_rows[i] = event
        cell += 1
    state[0], state[1], state[2] = cell, pair, n


def _classes_of(heads: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The class of each posting, whether or not anything is left to test."""
    return np.maximum(heads[:, 1], ~heads[:, 1])


class Pivot(StabbedIndex):
    """Candidates by stabbing, then verification; see the module for the layout."""

    name: ClassVar[str] = "pivot"

    def __init__(self, arrays: PivotArrays, chosen: Chosen) -> None:
        self._arrays = frozen(arrays)
        self.chosen = chosen

    @classmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],
        rank: RankSpace,
        *,
        stabbing: str = "cei",
        stabbing_memory: int | None = None,
    ) -> tuple[Self, npt.NDArray[np.int32]]:
        """Choose covers, file the classes under them, index the filed intervals."""
        filed, numbers = file_classes(classes, mass, rank.n_channels)
        arrays = PivotArrays(*filed)
        ends = arrays.lows, arrays.highs
        return cls(arrays, Chosen.build(stabbing, stabbing_memory, *ends, rank.n_cells)), numbers

    def match(self, events: EncodedEvents) -> Found:
        """Candidates of all events, verified. O(pairs + candidates)."""
        out = Output()
        candidates = self._match_postings(events, out)
        if len(self._arrays.always):
            always, starts, rows = self._arrays.always, self._arrays.starts, self._arrays.rows
            run_programs(always, always, starts, rows, events, out)
            candidates += len(always)
        n = int(out.state[2])
        return Found(out.rows[:n], out.classes[:n], candidates)

    def _match_postings(self, events: EncodedEvents, out: Output) -> npt.NDArray[np.int64]:
        """Look cells up chunk by chunk, so that a chunk's postings are read while still cached."""
        located = self.chosen.index.locate_batch(events.cells)
        ends = located.offsets
        candidates = candidates_of(events, ends)
        out.make_room(min(int(candidates.sum()), ROOM))
        first = 0
        while first < len(events.cells):
            last = int(np.searchsorted(ends, ends[first] + CHUNK, "right")) - 1
            last = max(first + 1, last)
            offsets = ends[first : last + 1] - ends[first]
            ids = located.ids(first, last)
            longest = int(np.diff(offsets).max())
            survivors = np.empty(longest + 1, dtype=np.int32)
            out.state[:2] = 0, 0
            while True:
                _match(
                    self._arrays,
                    events.by_event,
                    events.offsets[first : last + 1],
                    events.rows,
                    offsets,
                    ids,
                    survivors,
                    out.rows,
                    out.classes,
                    out.state,
                )
                if out.state[0] == last - first:
                    break
                out.make_room(longest)
            first = last
        return candidates

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Own arrays, and the stabbing index's under ``stabbing.``."""
        return self._arrays._asdict() | self.chosen.arrays()

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], parameters: Mapping[str, Any]
    ) -> Self:
        """Search these arrays in place."""
        own = PivotArrays(*(arrays[field] for field in PivotArrays._fields))
        return cls(own, Chosen.from_arrays(arrays, parameters))

    def statistics(self) -> dict[str, Any]:
        """Postings, classes on the always list, and the stabbing index's own figures."""
        arrays, stabbing = self._arrays, self.chosen.index
        filed = np.zeros(len(arrays.several), dtype=np.bool_)
        filed[_classes_of(arrays.heads)] = True
        filed[arrays.always] = True
        return {
            "classes": len(arrays.several),
            "postings": len(arrays.lows),
            "always": len(arrays.always),
            "never": int(np.count_nonzero(~filed)),
            "rows": len(arrays.rows),
            "stabbing": {"structure": stabbing.name} | stabbing.statistics(),
        }

    def check(self, n_channels: int, n_cells: int) -> None:
        """Postings, pivots, programs and the stabbing index are sound and fit together."""
        stabbing = self.chosen.index
        check_filed(self._arrays, n_channels, n_cells)
        stabbing.check()
        known = np.arange(len(self._arrays.lows))
        found = stabbing.ids()
        assert np.array_equal(found, known), "the stabbing index finds other postings"
