"""Nodes and lists of an Interval Tree: planting a tree in bulk, and changing one.

``nodes`` has a row per node: key, left and right child (-1: none), and where its lists begin, end
and have to end. The left and the right list of a node have the same length, so that one area of
``lists`` serves both, the left list by ascending low and the right list by descending high::

    nodes   35  1  2   0 5 5         lists  lows        5   8  10  15  30   18   60  75
            25 -1 -1   5 6 6                highs      50  45  35  60  70   25   80  90
            80 -1 -1   6 8 8                far highs  70  60  50  45  35   25   90  80
                                            ids         4   6   1   2   7    0    3   5
                                            far ids     7   2   4   6   1    0    5   3

The left list (lows, highs, ids) alone tells which low and high belong together.

``figures`` are running figures, which the kernels update. Arrays may be longer than what is used:
new rows and areas come from their free ends. A list that outgrows its area moves there with half as
much room again; a subtree that is planted anew leaves its old rows behind, empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import i4r2, i4w, i4w2, i8, i8w, inline, kernel, void

# Columns of a node's row.
KEY, LEFT, RIGHT, BEGIN, END, LIMIT = range(6)
N_COLUMNS = 6

# Rows of the lists: the ids come last, to be one array of them.
LOWS, HIGHS, FAR_HIGHS, IDS, FAR_IDS = range(5)
N_LISTS = 5
_LEFT_LIST, _RIGHT_LIST = (LOWS, HIGHS, IDS), (FAR_HIGHS, FAR_IDS)

# The root (-1: none), rows and list slots in use, intervals, rows without any, and what the last
# insertion found: the room it lacks, or a subtree that is too high (root, node above, intervals).
ROOT, ROWS, USED, ENTRIES, EMPTY, LACK, HIGH, ABOVE, WEIGHT = range(9)
N_FIGURES = 9

DONE, NO_ROOM, TOO_DEEP = range(3)

DEEPEST = 128
"""More than the depth that an insertion lets any tree of int32 many intervals reach."""

SMALLEST_AREA = 4
_SLACK = 6


@inline
def deepest(entries: Any) -> Any:
    """Depth that a tree of so many intervals may reach: a built one has half of it, or less."""
    bits = 0
    while entries >> bits:
        bits += 1
    return 2 * bits + _SLACK


@inline
def first_after(lows: Any, begin: Any, end: Any, value: Any) -> Any:
    """Position in an ascending list of the first end that is after ``value``."""
    while begin < end:
        middle = (begin + end) >> 1
        if lows[np.uint64(middle)] <= value:
            begin = middle + 1
        else:
            end = middle
    return begin


@inline
def first_before(highs: Any, begin: Any, end: Any, value: Any) -> Any:
    """Position in a descending list of the first end that is before ``value``."""
    while begin < end:
        middle = (begin + end) >> 1
        if highs[np.uint64(middle)] >= value:
            begin = middle + 1
        else:
            end = middle
    return begin


@inline
def _move(lists: Any, rows: Any, begin: Any, end: Any, to: Any) -> None:
    """Copy columns [begin, end) of these rows to [to, ..), which may overlap."""
    for row in rows:
        if to < begin:
            for i in range(begin, end):
                lists[row, to + i - begin] = lists[row, i]
        else:
            for i in range(end - 1, begin - 1, -1):
                lists[row, to + i - begin] = lists[row, i]


@inline
def _middle_end(intervals: Any, by_low: Any, by_high: Any, begin: Any, end: Any) -> Any:
    """Upper median of the distinct ends of the intervals at [begin, end) of the two orders."""
    wanted, last = -1, -1
    for _ in range(2):  # once to count them, once to go half of the way
        i, j = begin, end - 1
        seen, last = 0, -1
        while seen != wanted and (i < end or j >= begin):
            high = intervals[1, by_high[max(j, begin)]]
            if i < end and (j < begin or intervals[0, by_low[i]] <= high):
                point = intervals[0, by_low[i]]
                i += 1
            else:
                point = high
                j -= 1
            seen += point != last
            last = point
        wanted = seen // 2 + 1
    return last


@inline
def _part(intervals: Any, order: Any, begin: Any, end: Any, key: Any, kept: Any, here: Any) -> Any:
    """Order those left of the key before those right of it; what contains it goes to ``here``."""
    left, right, middle = begin, 0, 0
    for i in range(begin, end):
        one = order[i]
        if intervals[1, one] < key:
            order[left] = one
            left += 1
        elif intervals[0, one] > key:
            kept[right] = one
            right += 1
        else:
            here[middle] = one
            middle += 1
    for i in range(right):
        order[left + i] = kept[i]
    return left, right, middle


@kernel(i8, i4r2, i4w, i4w, i4w2, i4w2, i8w)
def plant(intervals: Any, by_low: Any, by_high: Any, nodes: Any, lists: Any, figures: Any) -> Any:
    """Build a tree of intervals (rows: lows, highs, ids) at the free ends; return its root.

    ``by_low`` is their order by ascending low, ``by_high`` by descending high; both are used up.
    """
    n = len(by_low)
    kept, near, far = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    waiting = np.empty((DEEPEST, 4), np.int64)
    waiting[0] = (0, n, -1, LEFT)
    n_waiting = 1
    root = -1
    while n_waiting:
        n_waiting -= 1
        begin, end, above, side = waiting[n_waiting]
        if begin == end:
            continue
        key = _middle_end(intervals, by_low, by_high, begin, end)
        left, right, here = _part(intervals, by_low, begin, end, key, kept, near)
        _part(intervals, by_high, begin, end, key, kept, far)
        node, first = figures[ROWS], figures[USED]
        for i in range(here):
            lists[LOWS, first + i] = intervals[0, near[i]]
            lists[HIGHS, first + i] = intervals[1, near[i]]
            lists[IDS, first + i] = intervals[2, near[i]]
            lists[FAR_HIGHS, first + i] = intervals[1, far[i]]
            lists[FAR_IDS, first + i] = intervals[2, far[i]]
        nodes[node] = (key, -1, -1, first, first + here, first + here)
        figures[ROWS] += 1
        figures[USED] += here
        if above >= 0:
            nodes[above, side] = node
        else:
            root = node
        waiting[n_waiting] = (left, left + right, node, RIGHT)
        waiting[n_waiting + 1] = (begin, left, node, LEFT)
        n_waiting += 2
    return root


@kernel(void, i4w2, i4r2, i8, i4w2, i8w)
def uproot(nodes: Any, lists: Any, root: Any, intervals: Any, figures: Any) -> None:
    """Copy the intervals of a subtree out and leave its rows empty."""
    waiting = np.empty(DEEPEST, np.int64)
    waiting[0] = root
    n_waiting = int(root >= 0)
    at = 0
    while n_waiting:
        n_waiting -= 1
        node = waiting[n_waiting]
        begin, end = nodes[node, BEGIN], nodes[node, END]
        for i in range(begin, end):
            intervals[0, at] = lists[LOWS, i]
            intervals[1, at] = lists[HIGHS, i]
            intervals[2, at] = lists[IDS, i]
            at += 1
        figures[EMPTY] += begin < end
        nodes[node, END] = begin
        for side in (RIGHT, LEFT):
            if nodes[node, side] >= 0:
                waiting[n_waiting] = nodes[node, side]
                n_waiting += 1


@inline
def _weigh(nodes: Any, root: Any, waiting: Any) -> Any:
    """Intervals in a subtree."""
    weight = 0
    waiting[0] = root
    n_waiting = int(root >= 0)
    while n_waiting:
        n_waiting -= 1
        node = waiting[n_waiting]
        weight += nodes[node, END] - nodes[node, BEGIN]
        for side in (RIGHT, LEFT):
            if nodes[node, side] >= 0:
                waiting[n_waiting] = nodes[node, side]
                n_waiting += 1
    return weight


@inline
def _find_too_high(nodes: Any, path: Any, depth: Any, waiting: Any, figures: Any) -> None:
    """Note the smallest subtree on the path that is too high for its size; the whole one is."""
    weight = 0
    for at in range(depth, -1, -1):
        node = path[at]
        weight += nodes[node, END] - nodes[node, BEGIN]
        for side in (LEFT, RIGHT):
            if at == depth or nodes[node, side] != path[at + 1]:
                weight += _weigh(nodes, nodes[node, side], waiting)
        if depth - at > deepest(weight):
            figures[HIGH], figures[WEIGHT] = node, weight
            figures[ABOVE] = path[at - 1] if at else -1
            return


@kernel(i8, i4w2, i4w2, i8w, i8, i8, i8)
def put(nodes: Any, lists: Any, figures: Any, low: Any, high: Any, number: Any) -> Any:
    """Add an interval; NO_ROOM, and nothing changed, if there is none."""
    path = np.empty(DEEPEST, np.int64)
    depth = 0
    node = figures[ROOT]
    while node >= 0:
        path[depth] = node
        key = nodes[node, KEY]
        if low <= key <= high:
            break
        depth += 1
        node = nodes[node, LEFT] if high < key else nodes[node, RIGHT]
    used = figures[USED]
    if node < 0:
        if figures[ROWS] == len(nodes) or used + SMALLEST_AREA > lists.shape[1]:
            figures[LACK] = SMALLEST_AREA
            return NO_ROOM
        node = figures[ROWS]
        # The key is the upper median of its own ends.
        nodes[node] = (high, -1, -1, used, used, used + SMALLEST_AREA)
        figures[USED] += SMALLEST_AREA
        figures[ROWS] += 1
        figures[EMPTY] += 1
        if depth:
            above = path[depth - 1]
            nodes[above, LEFT if high < nodes[above, KEY] else RIGHT] = node
        else:
            figures[ROOT] = node
        path[depth] = node
    begin, end = int(nodes[node, BEGIN]), int(nodes[node, END])
    if end == nodes[node, LIMIT]:
        room = end - begin + max(SMALLEST_AREA, (end - begin) // 2)
        if used + room > lists.shape[1]:
            figures[LACK] = room
            return NO_ROOM
        _move(lists, _LEFT_LIST, begin, end, used)
        _move(lists, _RIGHT_LIST, begin, end, used)
        begin, end = used, used + end - begin
        nodes[node, BEGIN], nodes[node, LIMIT] = begin, used + room
        figures[USED] += room
    at = first_after(lists[LOWS], begin, end, low)
    _move(lists, _LEFT_LIST, at, end, at + 1)
    lists[LOWS, at], lists[HIGHS, at], lists[IDS, at] = low, high, number
    at = first_before(lists[FAR_HIGHS], begin, end, high)
    _move(lists, _RIGHT_LIST, at, end, at + 1)
    lists[FAR_HIGHS, at], lists[FAR_IDS, at] = high, number
    nodes[node, END] = end + 1
    figures[EMPTY] -= begin == end
    figures[ENTRIES] += 1
    if depth <= deepest(figures[ENTRIES]):
        return DONE
    _find_too_high(nodes, path, depth, np.empty(DEEPEST, np.int64), figures)
    return TOO_DEEP


@inline
def _node_of(nodes: Any, node: Any, low: Any, high: Any) -> Any:
    """Topmost node, from this one on, whose key the interval contains, or -1."""
    while node >= 0:
        key = nodes[node, KEY]
        if high < key:
            node = nodes[node, LEFT]
        elif low > key:
            node = nodes[node, RIGHT]
        else:
            break
    return node


@kernel(i8, i4r2, i4r2, i8, i8, i8, i8)
def find(nodes: Any, lists: Any, root: Any, low: Any, high: Any, number: Any) -> Any:
    """Position of an interval in its left list, or -1."""
    node = _node_of(nodes, root, low, high)
    if node >= 0:
        begin = int(nodes[node, BEGIN])
        end = first_after(lists[LOWS], begin, int(nodes[node, END]), low)
        for at in range(end - 1, begin - 1, -1):
            if lists[LOWS, at] < low:
                break
            if lists[HIGHS, at] == high and lists[IDS, at] == number:
                return at
    return -1


@kernel(void, i4w2, i4w2, i8w, i8)
def take(nodes: Any, lists: Any, figures: Any, at: Any) -> None:
    """Remove the interval at this position of its left list."""
    low, high, number = lists[LOWS, at], lists[HIGHS, at], lists[IDS, at]
    node = _node_of(nodes, figures[ROOT], low, high)
    begin, end = int(nodes[node, BEGIN]), int(nodes[node, END])
    _move(lists, _LEFT_LIST, at + 1, end, at)
    # Any entry of this end and id will do: the left list alone tells which low belongs to it.
    at = first_before(lists[FAR_HIGHS], begin, end, high) - 1
    while lists[FAR_IDS, at] != number:
        at -= 1
    _move(lists, _RIGHT_LIST, at + 1, end, at)
    nodes[node, END] = end - 1
    figures[EMPTY] += begin == end - 1
    figures[ENTRIES] -= 1
