"""Predicted bytes and search work of predicate indexes under intervals: estimates only.

What a value costs depends on the *sides* of the intervals (``sides``), which a summary does not
know: an interval of one cell is an equality, and every longer one is taken for two-sided here, as
in a single attribute where intervals begin anywhere. Then a quarter of these are candidates of a
value, whatever it finds::

    filed by low     in the upper half of the cells: half of the intervals, and half of them
                     below a value of that half; none for a value of the other half
    filed by high    in the lower half, the same way round

With the cuts of a catalog, where most ranges are open to one side, there are fewer candidates, and
those are results. Distinct keys are counted as if they fell anywhere among the cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from bittern.literature.pb_tree.pages import HEADER
from bittern.literature.pb_tree.pool import TREE_SIZE
from bittern.literature.pb_tree.tree import PAGE_BYTES
from bittern.literature.predicates.key_table import KEY_SLOTS, n_slots
from bittern.literature.predicates.keyed_lists import STATE_SIZE
from bittern.literature.predicates.red_black import WIDTH
from bittern.stabbing.estimate import UNLIMITED, Estimate, Work
from bittern.stabbing.predict import Family
from bittern.stabbing.summary import Summary

_KEY, _LINKS, _SLOT, _ID = 8, 16, 4, 4
_FIXED = 8 * STATE_SIZE + 4 + 16  # figures of the entries, the end of the lists, figures of these
_ROW = 8  # bytes of a two-sided interval's id and other end
_CUTS = 8

# Comparisons that take as long, as measured: sorting a value among others, going to the next node
# of a tree that has something to give, looking at a node of all twice, comparing a candidate.
_SORT, _NODE, _ANY_NODE, _CANDIDATE = 40.0, 2.5, 7.4, 1.0

# The same for a PB+tree: going down and starting four scans, and a candidate from a scan. Of its
# lists, head and tail have a page each.
_DESCENT, _SCANNED, _SENTINELS = 90.0, 1.3, 2
_UNFILLED = 0.4


def tree_bytes(keys: float, sids: float, width: int) -> float:
    """Bytes of a red-black tree with this many lists per node."""
    return (keys + 1) * (_KEY + _LINKS + _ID * width) + _ID * sids + _FIXED


def table_bytes(keys: float, sids: float) -> float:
    """Bytes of a hash table with one list to a key."""
    return (
        (keys + 1) * (_KEY + _ID) + _SLOT * (n_slots(round(keys)) + KEY_SLOTS) + _ID * sids + _FIXED
    )


def sides(summary: Summary) -> tuple[float, float]:
    """Intervals that are equalities, and those that are taken for two-sided."""
    equal = float(summary.counts[0])
    return equal, summary.n - equal


def distinct(keys: float, summary: Summary) -> float:
    """The expected number of distinct keys, if keys fall anywhere among the cells."""
    return -summary.domain * math.expm1(-keys / max(summary.domain, 1))


def _grouped_filter(name: str, summary: Summary) -> Iterator[Estimate]:
    equal, two = sides(summary)
    keys = distinct(two, summary)
    one_side = 2 * tree_bytes(0, 0, 2) + table_bytes(distinct(equal, summary), equal)
    two_sides = 2 * tree_bytes(keys / 2, two / 2, 2) + table_bytes(0, 0)
    size = one_side + two_sides + 2 * table_bytes(0, 0) + _ROW * two + _CUTS
    steps = _SORT + _NODE * keys / 4 + _CANDIDATE * two / 4
    work = Work(steps=steps, lists=1, ids=summary.ids_per_value)
    yield Estimate(name, {}, round(size), work, UNLIMITED)


def _red_black(name: str, summary: Summary) -> Iterator[Estimate]:
    equal, two = sides(summary)
    one_keys, two_keys = distinct(equal, summary), distinct(two, summary)
    size = tree_bytes(one_keys, equal, WIDTH) + tree_bytes(two_keys, two, WIDTH)
    steps = _SORT + _ANY_NODE * (one_keys + two_keys) + _CANDIDATE * two / 4
    work = Work(steps=steps, lists=1, ids=summary.ids_per_value)
    yield Estimate(name, {}, round(size + _ROW * two + _CUTS), work, UNLIMITED)


def pb_bytes(keys: float, equal: float, at_least: float, at_most: float) -> float:
    """Bytes of a PB+tree over this many keys with sids of ``=``, ``>=`` and ``<=``.

    A page is full as long as a key has one sid. With more of them to a key pages are cut between
    larger items, and the later part of an insertion in order is left with room.
    """
    sids = equal + at_least + at_most
    leaves = max(1, _pages(8, keys, sids))
    branches = _pages(4, leaves, 0) if leaves > 1 else 0
    lists = sum(
        _SENTINELS + _pages(6, keys * own / max(sids, 1), own) for own in (0.0, at_least, at_most)
    )
    n = 1 + leaves + branches + lists
    return n * (PAGE_BYTES + _ID) + 8 * TREE_SIZE


def _pages(words: int, items: float, sids: float) -> int:
    """Pages for slots of this many words and for sids, several of which may belong to an item."""
    several = 1 - min(items / sids, 1.0) if sids else 0.0
    needed = (4 * words * items + _ID * sids) * (1 + _UNFILLED * several)
    return math.ceil(needed / (PAGE_BYTES - 4 * HEADER))


def _pb_tree(name: str, summary: Summary) -> Iterator[Estimate]:
    equal, two = sides(summary)
    size = pb_bytes(distinct(equal, summary), equal, 0, 0)
    size += pb_bytes(distinct(two, summary), 0, two / 2, two / 2)
    steps = _SORT + _DESCENT + _SCANNED * two / 4
    work = Work(steps=steps, lists=1, ids=summary.ids_per_value)
    yield Estimate(name, {}, round(size + _ROW * two + _CUTS), work)


PREDICATES: dict[str, Family] = {
    "grouped-filter": _grouped_filter,
    "red-black": _red_black,
    "pb-tree": _pb_tree,
}
