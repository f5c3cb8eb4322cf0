"""IS-list, the interval skip list (Hanson and Johnson 1996): the papers' dynamic baseline.

A skip list whose keys are the end points of the intervals. An interval leaves a *marker* on every
edge of the staircase from its low to its high end, the path of longest edges within it, and on
every node that this path touches (the node's *eq markers*)::

    level 1   2 ----c---> 9 -------------> 17    a [2, 5]    on 2 -> 5
    level 0   2 -a-> 5 -> 9 -b,c-> 12 ---> 17    b [9, 12]   on 9 -> 12
                                                 c [2, 12]   on 2 -> 9 at level 1 and on 9 -> 12
    eq        a,c    a    b,c      b,c     d     d [17, 17]  a point: on its node alone

By definition: an edge carries an interval's marker if its keys lie within the interval, and those
of no edge do that spans more and the same. Such edges follow on each other without overlap. Hence a
search for a value goes down as in any skip list and reports the markers of each edge that passes
over the value, which are all different; where it meets a node of the value's key, the eq markers,
and that is the end::

    stab(7):   level 1: 2 -> 9 passes over: c.   level 0: 5 -> 9 passes over: nothing
    stab(9):   level 1: 2 -> 9 leads to it: eq markers b and c

Costs, for n intervals over m end points, of which each spans s: a search O(log m) and what it
reports; fewer than 2 log2(s) markers per interval and one eq marker more, hence O(n log n)
numbers; an insertion or deletion O(log m) nodes, and for every marker that it takes away the length
of the set. A deletion first looks for its interval among all that have the same low end, which are
a chain without order. A new end point moves markers of other intervals as well
(``changes``), and one at which no interval ends any more moves them back.

``branching``: one of this many nodes of a level is on the next. A larger number makes the list
flatter, which helps small lists, and staircases longer. For 640,000 intervals over 70 points, 2 and
4 take 467 and 461 ns per value and 104 and 116 MB; for 50,000 over 3 each, 193 and 153 ns and 4.9
and 4.5 MB. Where there are many intervals to an end point, markers are all that counts (10.5 and
14.9 per interval, for 512,000 over 100 of 5,000): hence 2.

Markers are numbers of *slots*: interval i of ``spans``, whose id is ``ids[i]``. Building sorts the
intervals by low end, and so the ids that a value reports lie close together; heights are
drawn from a generator that is part of the state, so that equal histories give equal arrays.

As built or mapped, sets lie one after the other without gaps, which is also the form that is
saved. The first insert or delete copies all arrays and gives every set an area to grow in
(``markers``); saving builds the packed form again, with the same heights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.arrays import Int32s, Int64s
from bittern.errors import OptionError, brief
from bittern.jit import read_only
from bittern.literature.is_list import nodes as skip
from bittern.literature.is_list.changes import delete_interval, insert_interval
from bittern.literature.is_list.checking import check_list
from bittern.literature.is_list.markers import spread
from bittern.literature.is_list.search import MarkedRuns
from bittern.stabbing.contract import MAX_DOMAIN, Located, StabbingIndex, unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

BRANCHINGS = (2, 4, 8, 16)

MAX_ENTRIES = 2**29
"""Markers and eq markers of one index: 2 GiB."""

MAX_TO_INSERT = 2**28
"""Into one with more nothing is inserted, so that areas to grow in have int32 positions."""

MAX_NODE_NUMBERS = 2**30
"""Numbers of all nodes: 4 GiB, and their positions are int32."""

_LEAST_ROOM = 256


def pack(
    lows: Int32s,
    highs: Int32s,
    ids: Int32s,
    keys: Int32s,
    heights: Int32s,
    state: Int64s,
) -> tuple[Int32s, Int32s, Int32s, Int32s, Int64s]:
    """Build the packed form over nodes of these keys and heights: O(n log n).

    Of the state, domain, branching, generator and adjustments stay; the rest is set anew, in a
    copy: until it is done, others may search what it is built from.
    """
    size = skip.HEAD_SIZE + len(keys) * skip.EDGES + (int(heights.sum()) << skip.EDGE_BITS)
    if size > MAX_NODE_NUMBERS:
        raise OptionError(
            f"{len(keys)} end points are too many for one interval skip list ({4 * size} "
            f"bytes of nodes, at most {4 * MAX_NODE_NUMBERS}): use a CEI index"
        )
    order = np.argsort(lows, kind="stable")
    lows, highs, ids = lows[order], highs[order], ids[order]
    nodes, places = np.empty(size, np.int32), np.empty(len(keys), np.int32)
    state = state.copy()
    state[skip.LEVELS] = 0
    skip.lay_nodes(keys, heights, places, nodes, state)
    starts, stops = (places[np.searchsorted(keys, ends)] for ends in (lows, highs))
    spans = np.empty(skip.SPAN * len(lows), np.int32)
    spans[skip.LOW :: skip.SPAN], spans[skip.HIGH :: skip.SPAN] = lows, highs
    entries = int(skip.count_markers(starts, stops, spans, nodes))
    if entries > MAX_ENTRIES:
        raise OptionError(
            f"{entries} markers are too many for one interval skip list ({4 * entries} "
            f"bytes, at most {4 * MAX_ENTRIES}): use a CEI index"
        )
    markers = np.empty(entries, np.int32)
    skip.place_markers(starts, stops, nodes, markers)
    state[[skip.NODES, skip.NODES_END]] = len(keys), size
    state[[skip.INTERVALS, skip.SLOTS_END]] = len(ids)
    state[[skip.ENTRIES, skip.MARKERS_END]] = entries
    state[skip.FREE_SLOT :] = skip.NOWHERE
    return nodes, markers, spans, ids, state


class ISList(StabbingIndex):
    """Interval skip list: markers on the longest edges within an interval; see the module."""

    name = "is-list"

    def __init__(
        self, nodes: Int32s, markers: Int32s, spans: Int32s, ids: Int32s, state: Int64s
    ) -> None:
        """Take packed arrays as they are, read-only or not: O(1)."""
        self.domain = int(state[skip.DOMAIN])
        self._path = np.empty(skip.MAX_LEVELS, np.int64)
        self._take(nodes, markers, spans, ids, state)

    def _take(
        self, nodes: Int32s, markers: Int32s, spans: Int32s, ids: Int32s, state: Int64s
    ) -> None:
        self.nodes, self.markers, self.state = nodes, markers, state
        self.spans, self.slot_ids = spans, ids
        self.packed = True

    @classmethod
    def _build(
        cls, lows: Int32s, highs: Int32s, ids: Int32s, domain: int, *, branching: int = 2
    ) -> Self:
        """O(n log n): a sort of the ends, and every interval's staircase; no adjustments."""
        if branching not in BRANCHINGS:
            known = ", ".join(map(str, BRANCHINGS))
            raise OptionError(f"branching is {brief(branching)}: choose from {known}")
        keys = np.unique(np.concatenate((lows, highs)))
        heights = np.empty(len(keys), np.int32)
        state = np.zeros(skip.STATE_SIZE, np.int64)
        state[skip.DOMAIN] = domain
        state[skip.BRANCH_BITS] = 1 + BRANCHINGS.index(branching)
        state[skip.RANDOM] = skip.SEED
        skip.draw_heights(state, heights)
        return cls(*pack(lows, highs, ids, keys, heights, state))

    def _insert(self, low: int, high: int, id: int) -> None:  # noqa: A002
        two_nodes = 2 * skip.HEAD_SIZE  # of any height
        if (
            self.state[skip.ENTRIES] >= MAX_TO_INSERT
            or self.state[skip.NODES_END] + two_nodes > MAX_NODE_NUMBERS
        ):
            raise OptionError(
                f"an interval skip list of {self.nbytes} bytes cannot take more intervals: "
                "use a CEI index"
            )
        self._loosen()
        state = self.state
        self.nodes = _with_room(self.nodes, int(state[skip.NODES_END]), two_nodes)
        if state[skip.FREE_SLOT] < 0:
            used = int(state[skip.SLOTS_END])
            self.slot_ids = _with_room(self.slot_ids, used, 1)
            self.spans = _with_room(self.spans, skip.SPAN * used, skip.SPAN)
        while room := insert_interval(low, high, id, *self._changing()):
            self._spread(room)

    def _delete(self, low: int, high: int, id: int) -> bool:  # noqa: A002
        slot = int(skip.find_slot(self.nodes, self.spans, self.slot_ids, low, high, id))
        if slot < 0:
            return False
        self._loosen()
        while room := delete_interval(low, high, slot, *self._changing()):
            self._spread(room)
            slot = skip.NOWHERE
        return True

    def _changing(self) -> tuple[NDArray[Any], ...]:
        return self.nodes, self.markers, self.spans, self.slot_ids, self.state, self._path

    def _loosen(self) -> None:
        """Own every array, with areas for the sets to grow in: O(size), once."""
        if self.packed:
            self.packed = False
            self.nodes, self.spans = self.nodes.copy(), self.spans.copy()
            self.slot_ids, self.state = self.slot_ids.copy(), self.state.copy()
            self._spread(0)

    def _spread(self, room: int) -> None:
        """Give every set an area afresh, with ``room`` numbers and in proportion at the end."""
        nothing = np.empty(0, np.int32)
        used = int(spread(self.nodes, self.markers, nothing))
        areas = np.empty(used + room + max(_LEAST_ROOM, used // 4), np.int32)
        self.state[skip.MARKERS_END] = spread(self.nodes, self.markers, areas)
        self.state[skip.FREE_AREAS :] = skip.NOWHERE
        self.markers = areas

    def _locate(self, values: Int32s) -> Located:
        return MarkedRuns(self.nodes, self.markers, self.slot_ids, self.state, values)

    def places(self, level: int = 0) -> Int32s:
        """Where the nodes of a level are, in ascending order of their keys: O(nodes)."""
        found = np.empty(int(self.state[skip.NODES]) + 1, np.int32)
        field = skip.EDGES + (level << skip.EDGE_BITS) + skip.NEXT
        count = int(skip.follow(self.nodes, skip.HEAD, field, found))
        return found[1:count]

    def statistics(self) -> dict[str, int | float]:
        """Sizes of nodes and sets, and the markers that changes have moved: O(nodes)."""
        state = self.state
        lengths = self.nodes[self.places() + skip.EQ + 1]
        entries, eq = int(state[skip.ENTRIES]), int(lengths.sum())
        intervals = int(state[skip.INTERVALS])
        return {
            "domain": self.domain,
            "branching": 1 << int(state[skip.BRANCH_BITS]),
            "intervals": intervals,
            "nodes": int(state[skip.NODES]),
            "levels": int(state[skip.LEVELS]),
            "entries": entries,
            "markers": entries - eq,
            "eq_markers": eq,
            "markers_per_interval": (entries - eq) / max(intervals, 1),
            "longest_eq_set": int(lengths.max(initial=0)),
            "adjustments": int(state[skip.MOVED]),
            "bytes": self.nbytes,
        }

    def ids(self) -> Int32s:
        """Distinct ids of the intervals, ascending."""
        ids = self.slot_ids[: int(self.state[skip.SLOTS_END])]
        return np.unique(ids[ids >= 0])

    def check(self) -> None:
        """Verify links, markers by their definition, owners and areas: O(markers log markers)."""
        arrays = self.nodes, self.markers, self.spans, self.slot_ids, self.state
        check_list(*arrays, packed=self.packed)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The packed form, built again with the same heights if anything changed."""
        if not self.packed:
            places = self.places()
            slots = np.flatnonzero(self.slot_ids[: int(self.state[skip.SLOTS_END])] >= 0)
            lows, highs = (self.spans[skip.SPAN * slots + end] for end in (skip.LOW, skip.HIGH))
            keys, heights = (self.nodes[places + field] for field in (skip.KEY, skip.HEIGHT))
            self._take(*pack(lows, highs, self.slot_ids[slots], keys, heights, self.state))
        return {
            "nodes": self.nodes,
            "markers": self.markers,
            "spans": self.spans,
            "ids": self.slot_ids,
            "state": self.state,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are; SnapshotError if their sizes disagree: O(1)."""
        names = ("nodes", "markers", "spans", "ids", "state")
        nodes, markers, spans, ids, state = (np.asarray(arrays[name]) for name in names)
        fit = (
            all(array.dtype == np.int32 for array in (nodes, markers, spans, ids))
            and state.dtype == np.int64
            and len(state) == skip.STATE_SIZE
            and 0 <= state[skip.DOMAIN] <= MAX_DOMAIN
            and 1 <= state[skip.BRANCH_BITS] <= len(BRANCHINGS)
            and 0 <= state[skip.LEVELS] <= skip.MAX_LEVELS
            and len(nodes) == state[skip.NODES_END] >= skip.HEAD_SIZE
            and len(markers) == state[skip.MARKERS_END] == state[skip.ENTRIES]
            and len(ids) == state[skip.SLOTS_END] == state[skip.INTERVALS]
            and len(spans) == skip.SPAN * len(ids)
            and (state[skip.FREE_SLOT :] == skip.NOWHERE).all()
        )
        if not fit:
            raise unfit("an IS-list")
        return cls(*(read_only(array) for array in (nodes, markers, spans, ids, state)))


def _with_room(array: Int32s, used: int, room: int) -> Int32s:
    """The same array, or a longer copy if less than ``room`` is free behind what is used."""
    if used + room <= len(array):
        return array
    longer = np.empty(used + room + max(_LEAST_ROOM, used // 4), np.int32)
    longer[:used] = array[:used]
    return longer
