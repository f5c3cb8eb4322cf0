"""Many substrings sought at once: an Aho-Corasick automaton in flat arrays.

States are the distinct prefixes of the literals, numbered breadth first, so the children of a
state are consecutive numbers. For the literals ``he`` (0), ``she`` (1), ``hers`` (2):

    state       0   1   2   3    4    5     6     7
    prefix      ''  h   s   he   sh   her   she   hers
    labels          h   s   e    h    r     e     s      the byte that leads into the state
    nodes:
      child     1   3   4   5    6    7     8     8      its first child
      degree    2   1   1   1    1    1     0     0      how many, and the first one's label
      fallback  0   0   0   0    1    0     3     2      longest proper suffix that is a state
      hit      -1  -1  -1   0   -1   -1     1     2      longest literal that the prefix ends with
    hit_links  -1   0  -1    (one per literal)           the next shorter literal it ends with

The four numbers of a node lie together: most steps touch one line of the cache and find the only
child there.

Bytes are first mapped to classes (bytes that no literal uses share class 0; an automaton that
folds case gives ``A`` and ``a`` one class). The start and the end of a value have classes of their
own: in a literal two bytes stand for them that UTF-8 never uses, and ``classes`` has them behind
the 256 bytes. The first states, which are the shallow and hot ones,
also have a dense row with the final transition for every class: one load per byte, no fallback.
Deeper states, most of which have a single child, compare its label or search their labels.

``windows.py`` reads most values without it, ``substrings.py`` builds it.

Cost: building O(total literal bytes); finding O(value bytes + hits) per value whatever the
literals. To know where a literal is found last, every one that ends at a byte is visited; after so
many visits more than there are bytes, or where nobody asks for places, one that was found before
ends the walk along ``hit_links``.
About 17 bytes per state and at most ``DENSE_ENTRIES`` words of dense rows. Nothing is compiled or
copied when the arrays are opened from a file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.jit import (
    i4r,
    i4w,
    i8,
    i8r,
    i8w,
    inline,
    kernel,
    tuple_type,
    u1r,
    u1w,
    u8r,
    u8w,
    void,
)

#: In a literal: the value's start and end.
START, END = 0xFF, 0xFE
START_CLASS, END_CLASS = 256, 257

#: Instead of how many literals may be visited again: where they are is not asked.
NOBODY_ASKS = -1

#: The fields of a node; a degree counts children by ``ONE_CHILD``, and has the first one's label.
CHILD, DEGREE, FALLBACK, HIT = 0, 1, 2, 3
ONE_CHILD = 1 << 8
_SEVERAL = 2 * ONE_CHILD

#: What a finding counts: how many were found, whether there were too many to know where each is
#: found last; what it needs of the automaton: classes, dense rows; and what ``windows.py`` counts.
N_FOUND, TOO_MANY, N_CLASSES, N_DENSE, EXCESS, PAUSE = 0, 1, 2, 3, 4, 5


class Automaton(NamedTuple):
    """The arrays of the module docstring, as kernels take them."""

    classes: np.ndarray
    dense: np.ndarray
    nodes: np.ndarray
    labels: np.ndarray
    hit_links: np.ndarray


class StateTree(NamedTuple):
    """States before they are linked: parent, incoming class, literal that ends there or -1."""

    parents: np.ndarray
    labels: np.ndarray
    ends: np.ndarray


class Finding(NamedTuple):
    """Where literals were found: ``found`` are those of the value that was read last.

    ``marks``: for each literal the last value that has it, ``firsts`` and ``lasts``: where it is
    found there first and last. ``counts``: see ``N_FOUND``. ``passed`` is room for ``windows.py``,
    and the rest its table.
    """

    marks: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    found: np.ndarray
    lengths: np.ndarray
    counts: np.ndarray
    passed: np.ndarray
    bits: np.ndarray
    slots: np.ndarray
    probes: np.ndarray


AUTOMATON = tuple_type(Automaton, u1r, i4r, i4r, u1r, i4r)
FINDING = tuple_type(Finding, i4w, i4w, i4w, i4w, i4r, i8w, u8w, u8r, u8r, u8r)
_BUILDING = tuple_type(Automaton, u1w, i4w, i4w, u1w, i4w)
_TREE = tuple_type(StateTree, i4w, u1w, i4w)


@kernel(_TREE, u1r, i8r, i4r)
def grow(data: Any, offsets: Any, ids: Any) -> Any:
    """Build the tree of sorted literals level by level: states come out in breadth-first order."""
    n_literals = ids.shape[0]
    capacity = data.shape[0] + 1
    parents = np.zeros(capacity, np.int32)
    labels = np.zeros(capacity, np.uint8)
    ends = np.full(capacity, -1, np.int32)
    at = np.zeros(n_literals, np.int32)
    active = np.arange(n_literals)
    n_active = n_literals
    n_states = 1
    depth = 0
    while n_active > 0:
        kept = 0
        last_parent = -1
        for k in range(n_active):
            i = active[k]
            parent = at[i]
            label = data[offsets[i] + depth]
            if parent != last_parent or label != labels[n_states - 1]:
                parents[n_states] = parent
                labels[n_states] = label
                n_states += 1
                last_parent = parent
            at[i] = n_states - 1
            if offsets[i] + depth + 1 == offsets[i + 1]:
                ends[n_states - 1] = ids[i]
            else:
                active[kept] = i
                kept += 1
        n_active = kept
        depth += 1
    return StateTree(parents[:n_states].copy(), labels[:n_states].copy(), ends[:n_states].copy())


@inline
def _step(automaton: Any, n_classes: Any, n_dense: Any, state: Any, label: Any) -> Any:
    """Return the state after one more byte, of class ``label``."""
    nodes = automaton.nodes
    while state >= n_dense:
        child = np.int64(nodes[4 * state + CHILD])
        degree = nodes[4 * state + DEGREE]
        if degree & 0xFF == label:
            return child
        if degree > _SEVERAL:
            for other in range(child + 1, child + (degree >> 8)):
                if automaton.labels[other] == label:
                    return other
        # Always a smaller number; a damaged one might lead back here, for ever.
        state = min(state - 1, np.int64(nodes[4 * state + FALLBACK]))
    return np.int64(automaton.dense[state * n_classes + label])


@kernel(void, _BUILDING, i4r, i4r, i8, i8)
def link(automaton: Any, parents: Any, ends: Any, n_classes: Any, n_dense: Any) -> None:
    """Fill fallbacks, hits and dense rows; a state only needs those of smaller numbers."""
    nodes = automaton.nodes
    for state in range(parents.shape[0]):
        fallback = np.int64(0)
        parent = np.int64(parents[state])
        if parent != 0:
            label = np.int64(automaton.labels[state])
            before = np.int64(nodes[4 * parent + FALLBACK])
            fallback = _step(automaton, n_classes, n_dense, before, label)
        nodes[4 * state + FALLBACK] = fallback
        shorter = nodes[4 * fallback + HIT] if state else np.int32(-1)
        if ends[state] >= 0:
            nodes[4 * state + HIT] = ends[state]
            automaton.hit_links[ends[state]] = shorter
        else:
            nodes[4 * state + HIT] = shorter
        if state < n_dense:
            row = state * n_classes
            if state:
                for k in range(n_classes):
                    automaton.dense[row + k] = automaton.dense[fallback * n_classes + k]
            child = np.int64(nodes[4 * state + CHILD])
            for each in range(child, child + (nodes[4 * state + DEGREE] >> 8)):
                automaton.dense[row + np.int64(automaton.labels[each])] = each


@inline
def _visit(automaton: Any, finding: Any, hit: Any, value: Any, behind: Any, spare: Any) -> Any:
    """Note the literal ``hit`` and those that it ends with, before the place ``behind``.

    With ``NOBODY_ASKS`` to spare, only whether they are there: what is not touched need not be
    waited for.
    """
    while hit >= 0:
        is_new = finding.marks[hit] != value
        if is_new:
            finding.marks[hit] = value
            finding.found[finding.counts[N_FOUND]] = hit
            finding.counts[N_FOUND] += 1
        elif spare <= 0:
            finding.counts[TOO_MANY] = 1
            break
        else:
            spare -= 1
        if spare != NOBODY_ASKS:
            start = behind - finding.lengths[hit]
            if is_new:
                finding.firsts[hit] = start
            finding.lasts[hit] = start
        hit = automaton.hit_links[hit]
    return spare


@inline
def read_by_automaton(
    automaton: Any, finding: Any, text: Any, begin: Any, end: Any, value: Any, spare: Any
) -> None:
    """Find every literal of one value byte by byte, those besides that ``finding`` has."""
    n_classes, n_dense = finding.counts[N_CLASSES], finding.counts[N_DENSE]
    nodes = automaton.nodes
    state = np.int64(0)
    label = np.int64(automaton.classes[START_CLASS])
    if label:
        state = _step(automaton, n_classes, n_dense, state, label)
        spare = _visit(automaton, finding, nodes[4 * state + HIT], value, 0, spare)
    for position in range(begin, end):
        label = np.int64(automaton.classes[text[position]])
        if label == 0:  # no literal has this byte
            state = np.int64(0)
            continue
        state = _step(automaton, n_classes, n_dense, state, label)
        hit = nodes[4 * state + HIT]
        if hit >= 0:
            spare = _visit(automaton, finding, hit, value, position + 1 - begin, spare)
    label = np.int64(automaton.classes[END_CLASS])
    if label:
        state = _step(automaton, n_classes, n_dense, state, label)
        _visit(automaton, finding, nodes[4 * state + HIT], value, end - begin + 1, spare)
