"""Filing: from classes to postings, inline tests and what is left to verify.

For a plain conjunction the cheapest test is the pivot, the next cheapest goes inline, the others
become rows, cheapest first. Anything else is filed under each test of its cover; the inline test is
the cheapest further operand of a top-level AND, and the rows are the whole program.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.jit import (
    f8r,
    i4r,
    i4r2,
    i4w,
    i4w2,
    i8,
    i8w,
    inline,
    kernel,
    tuple_type,
    u1r,
    u1w,
    void,
)
from bittern.matching.contract import check_size
from bittern.matching.pivot.cover import UNCOVERABLE, mark_cover, test_cost
from bittern.matching.pivot.match import PivotArrays
from bittern.matching.program import write_program
from bittern.model.classes.classes import CLASSES, Classes
from bittern.model.classes.structure import AND, OR, TEST


@inline
def _order_by_cost(costs: Any, order: Any, n: Any) -> None:
    """The first ``n`` test numbers, cheapest first; of a long conjunction only the two cheapest."""
    for i in range(n):
        order[i] = i
    sorted_prefix = n if n <= 64 else 2
    for i in range(sorted_prefix):
        best = i
        for k in range(i + 1, n):
            if costs[order[k]] < costs[order[best]]:
                best = k
        chosen = order[best]
        for k in range(best, i, -1):
            order[k] = order[k - 1]
        order[i] = chosen


@inline
def _inline_test(
    structures: Any,
    first: Any,
    last: Any,
    costs: Any,
    marks: Any,
    start: Any,
    channels: Any,
    lows: Any,
    highs: Any,
) -> Any:
    """The cheapest test directly under a top-level AND that is not a pivot: channel, low, high.

    So is an OR of tests of one channel, from its lowest to its highest cell; the program tests it
    again. The channel is -1 if there is none. "Missing" is never inline: one look at an event's
    table could not tell that it may hold.
    """
    least = UNCOVERABLE
    channel, low, high = np.int64(-1), np.int64(0), np.int64(0)
    if structures.operators[first] != AND:
        return channel, low, high
    child, test = first + 1, 0
    while child < last:
        size = structures.sizes[child]
        one_channel = structures.operators[child] == TEST or structures.operators[child] == OR
        cost = 0.0
        child_low, child_high = np.int64(2147483647), np.int64(-1)
        begin = test
        for node in range(child, child + size):
            if structures.operators[node] != TEST:
                one_channel &= node == child
                continue
            one_channel &= channels[start + test] == channels[start + begin] and not marks[test]
            cost += costs[test]
            if lows[start + test] <= highs[start + test]:
                child_low = min(child_low, np.int64(lows[start + test]))
                child_high = max(child_high, np.int64(highs[start + test]))
            test += 1
        if one_channel and cost < least and 0 <= child_low <= child_high:
            least = cost
            channel, low, high = np.int64(channels[start + begin]), child_low, child_high
        child += size
    return channel, low, high


@inline
def _write_head(
    heads: Any,
    bounds: Any,
    posting: Any,
    c: Any,
    no_channel: Any,
    channel: Any,
    low: Any,
    high: Any,
) -> None:
    """A posting's class and its inline test, which is one that always holds if there is none."""
    heads[posting, 0], heads[posting, 1] = no_channel, c
    bounds[posting, 0] = bounds[posting, 1] = 0
    if channel >= 0:
        heads[posting, 0] = channel
        bounds[posting, 0], bounds[posting, 1] = low, high


@inline
def _exclude_each_other(
    structures: Any, first: Any, last: Any, chosen: Any, marks: Any, channels: Any, start: Any
) -> Any:
    """Whether all pivots are tests that one OR has in one channel, where they are disjoint."""
    ors, channel = 0, -1
    test = start
    for i in range(first, last):
        if structures.operators[i] == TEST:
            if marks[test - start]:
                if channel >= 0 and channels[test] != channel:
                    return False
                channel = channels[test]
            test += 1
        elif chosen[i - first]:
            if ors:  # a pivot is further down than right below the OR
                return False
            ors += structures.operators[i] == OR
    return ors == 1


@inline
def _repeated(
    latest: Any, previous: Any, heads: Any, post_highs: Any, c: Any, low: Any, high: Any
) -> Any:
    """Whether class ``c`` already has this interval; follows its postings from this low."""
    posting = latest[low]
    while posting >= 0 and heads[posting, 1] == c:
        if post_highs[posting] == high:
            return True
        posting = previous[posting]
    return False


#: The arrays of ``index.py`` while they are written.
_FILED = tuple_type(PivotArrays, i4w2, i4w2, i4w, i4w, i4w, i4w2, u1w, i4w)


@kernel(void, CLASSES, f8r, i8, _FILED, i8w)
def _file(classes: Any, mass: Any, no_channel: Any, filed: Any, sizes: Any) -> None:
    """File every class; ``sizes`` becomes the number of postings, rows and always-candidates."""
    channels, lows, highs, test_starts, counts, structure_of, structures = classes
    heads, bounds, post_lows, post_highs, starts, rows, several, always = filed
    longest = 1
    for c in range(len(counts)):
        longest = max(longest, counts[c])
    widest = 1
    for s in range(len(structures.node_starts) - 1):
        widest = max(widest, structures.node_starts[s + 1] - structures.node_starts[s])
    costs = np.empty(longest, dtype=np.float64)
    order = np.empty(longest, dtype=np.int32)
    marks = np.empty(longest, dtype=np.uint8)
    node_costs = np.empty(widest, dtype=np.float64)
    chosen = np.empty(widest, dtype=np.uint8)
    latest = np.full(len(mass), -1, dtype=np.int32)
    previous = np.empty(len(post_lows), dtype=np.int32)
    n_posts, n_rows, n_always = 0, 0, 0
    for c in range(len(counts)):
        start, count, structure = test_starts[c], counts[c], structure_of[c]
        starts[c] = n_rows
        never = False
        for i in range(count):
            costs[i] = test_cost(lows[start + i], highs[start + i], mass)
            never |= structure == 0 and lows[start + i] > highs[start + i]
        if never:
            continue
        if structure == 0:
            _order_by_cost(costs, order, count)
            pivot = order[0] if count else -1
            if count == 0 or costs[pivot] >= UNCOVERABLE:
                always[n_always] = c
                n_always += 1
                n_rows = write_program(
                    rows, n_rows, structure, structures, channels, lows, highs, start, count
                )
                continue
            post_lows[n_posts], post_highs[n_posts] = lows[start + pivot], highs[start + pivot]
            channel, low, high = np.int64(-1), np.int64(0), np.int64(0)
            if count > 1 and costs[order[1]] < UNCOVERABLE:
                test = start + order[1]
                channel, low, high = channels[test], lows[test], highs[test]
            _write_head(heads, bounds, n_posts, c, no_channel, channel, low, high)
            n_posts += 1
            first_row = 2 if channel >= 0 else 1
            for k in range(first_row, count):
                test = start + order[k]
                rows[n_rows, 0], rows[n_rows, 1], rows[n_rows, 2] = (
                    channels[test],
                    lows[test],
                    highs[test],
                )
                rows[n_rows, 3] = (count - first_row + 1) << 1  # reject
                n_rows += 1
            continue
        first, last = structures.node_starts[structure], structures.node_starts[structure + 1]
        cost = mark_cover(structures, first, last, costs[:count], node_costs, chosen, marks)
        if cost >= UNCOVERABLE:
            always[n_always] = c
            n_always += 1
            n_rows = write_program(
                rows, n_rows, structure, structures, channels, lows, highs, start, count
            )
            continue
        channel, inline_low, inline_high = _inline_test(
            structures, first, last, costs, marks, start, channels, lows, highs
        )
        first_row, n_pivots = n_rows, 0
        for i in range(count):
            low, high = lows[start + i], highs[start + i]
            if not marks[i] or low > high:
                continue
            if _repeated(latest, previous, heads, post_highs, c, low, high):
                continue
            previous[n_posts], latest[low] = latest[low], n_posts
            post_lows[n_posts], post_highs[n_posts] = low, high
            _write_head(heads, bounds, n_posts, c, no_channel, channel, inline_low, inline_high)
            n_posts += 1
            rows[n_rows, 0], rows[n_rows, 1] = channels[start + i], low
            rows[n_rows, 2], rows[n_rows, 3] = high, 0
            n_rows += 1
            n_pivots += 1
        if n_pivots == 0:
            continue
        if n_pivots == 1 or _exclude_each_other(
            structures, first, last, chosen, marks, channels, start
        ):
            n_rows = first_row
        else:
            several[c] = 1
            rows[first_row, 3] = n_pivots
        n_rows = write_program(
            rows, n_rows, structure, structures, channels, lows, highs, start, count
        )
    starts[len(counts)] = n_rows
    sizes[0], sizes[1], sizes[2] = n_posts, n_rows, n_always


def file_classes(
    classes: Classes, mass: npt.NDArray[np.float64], n_channels: int
) -> tuple[PivotArrays, npt.NDArray[np.int32]]:
    """The arrays of ``index.py``, and the number that each class has in them. O(tests).

    Postings are sorted by their lowest cell and then by the channel of their inline test, and
    classes are numbered as their first postings are, so that what neighbours on the axis need
    lies together.
    """
    n_tests = int(classes.counts.sum())
    check_size("tests", n_tests)  # and there are no more postings than tests
    filed = PivotArrays(
        heads=np.empty((n_tests, 2), dtype=np.int32),
        bounds=np.empty((n_tests, 2), dtype=np.int32),
        lows=np.empty(n_tests, dtype=np.int32),
        highs=np.empty(n_tests, dtype=np.int32),
        starts=np.empty(len(classes) + 1, dtype=np.int32),
        rows=np.empty((2 * n_tests, 4), dtype=np.int32),
        several=np.zeros(len(classes), dtype=np.uint8),
        always=np.empty(len(classes), dtype=np.int32),
    )
    sizes = np.zeros(3, dtype=np.int64)
    _file(classes.arrays, mass, n_channels, filed, sizes)
    n_posts, n_rows, n_always = (int(size) for size in sizes)
    check_size("rows", n_rows)
    keys = filed.lows[:n_posts].astype(np.int64) << 32 | filed.heads[:n_posts, 0]
    order = np.argsort(keys, kind="stable")
    heads, always = filed.heads[order], filed.always[:n_always]
    numbers = np.full(len(classes), -1, dtype=np.int32)
    _number_classes(heads, always, numbers)
    starts = np.zeros(len(classes) + 1, dtype=np.int32)
    rows = np.empty((n_rows, 4), dtype=np.int32)
    several = np.empty_like(filed.several)
    _renumber(numbers, filed.starts, filed.rows, filed.several, heads, starts, rows, several)
    in_order = PivotArrays(
        heads,
        filed.bounds[order],
        filed.lows[order],
        filed.highs[order],
        starts,
        rows,
        several,
        numbers[always],
    )
    return in_order, numbers


@kernel(void, i4r2, i4r, i4w)
def _number_classes(heads: Any, always: Any, numbers: Any) -> None:
    """Number classes in order of their first posting, then the always-candidates, then the rest."""
    n = 0
    for posting in range(len(heads)):
        c = heads[posting, 1]
        if numbers[c] < 0:
            numbers[c] = n
            n += 1
    for c in always:
        numbers[c] = n
        n += 1
    for c in range(len(numbers)):
        if numbers[c] < 0:
            numbers[c] = n
            n += 1


@kernel(void, i4r, i4r, i4r2, u1r, i4w2, i4w, i4w2, u1w)
def _renumber(
    numbers: Any,
    starts: Any,
    rows: Any,
    several: Any,
    heads: Any,
    new_starts: Any,
    new_rows: Any,
    new_several: Any,
) -> None:
    """Lay classes out in their new order, and say in the postings where nothing is left to test."""
    for c in range(len(numbers)):
        new_starts[numbers[c] + 1] = starts[c + 1] - starts[c]
    for c in range(len(numbers)):
        new_starts[c + 1] += new_starts[c]
    for c in range(len(numbers)):
        at = new_starts[numbers[c]]
        new_several[numbers[c]] = several[c]
        for i in range(starts[c], starts[c + 1]):
            for k in range(4):  # whole rows at once take ten times as long to compile
                new_rows[at, k] = rows[i, k]
            at += 1
    for posting in range(len(heads)):
        c = heads[posting, 1]
        empty = starts[c] == starts[c + 1]
        heads[posting, 1] = ~numbers[c] if empty else numbers[c]
