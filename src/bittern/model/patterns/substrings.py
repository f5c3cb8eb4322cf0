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

Cost: building O(total literal bytes); finding O(value bytes + hits) per value whatever the
literals. To know where a literal is found last, every one that ends at a byte is visited; after so
many visits more than there are bytes, or where nobody asks for places, one that was found before
ends the walk along ``hit_links``.
About 17 bytes per state and at most ``DENSE_ENTRIES`` words of dense rows. Nothing is compiled or
copied when the arrays are opened from a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bittern.jit import (
    apart,
    i4r,
    i4w,
    i8,
    i8r,
    i8w,
    inline,
    kernel,
    read_only,
    tuple_type,
    u1r,
    u1w,
    void,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: In a literal: the value's start and end.
START, END = 0xFF, 0xFE
_START_CLASS, _END_CLASS = 256, 257

#: Dense rows hold at most this many 4-byte transitions: 128 kB, to stay in a core's own cache.
DENSE_ENTRIES = 1 << 15

#: Instead of how many literals may be visited again: where they are is not asked.
NOBODY_ASKS = -1

#: The fields of a node; a degree from ``_SEVERAL`` on says that there is more than one child.
_CHILD, _DEGREE, _FALLBACK, _HIT = 0, 1, 2, 3
_SEVERAL = 2 << 8

#: ASCII letters folded to one class each; RE2 folds ``k`` and ``s`` with non-ASCII letters too.
_FOLD = bytes(range(256)).lower()


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
    found there first and last. ``counts``: how many were found, whether there were too many to know
    where each is found last, classes, and dense rows.
    """

    marks: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    found: np.ndarray
    lengths: np.ndarray
    counts: np.ndarray


AUTOMATON = tuple_type(Automaton, u1r, i4r, i4r, u1r, i4r)
FINDING = tuple_type(Finding, i4w, i4w, i4w, i4w, i4r, i8w)
_BUILDING = tuple_type(Automaton, u1w, i4w, i4w, u1w, i4w)
_TREE = tuple_type(StateTree, i4w, u1w, i4w)


@kernel(_TREE, u1r, i8r, i4r)
def _grow(data: Any, offsets: Any, ids: Any) -> Any:
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
        child = np.int64(nodes[4 * state + _CHILD])
        degree = nodes[4 * state + _DEGREE]
        if degree & 0xFF == label:
            return child
        if degree > _SEVERAL:
            for other in range(child + 1, child + (degree >> 8)):
                if automaton.labels[other] == label:
                    return other
        # Always a smaller number; a damaged one might lead back here, for ever.
        state = min(state - 1, np.int64(nodes[4 * state + _FALLBACK]))
    return np.int64(automaton.dense[state * n_classes + label])


@kernel(void, _BUILDING, i4r, i4r, i8, i8)
def _link(automaton: Any, parents: Any, ends: Any, n_classes: Any, n_dense: Any) -> None:
    """Fill fallbacks, hits and dense rows; a state only needs those of smaller numbers."""
    nodes = automaton.nodes
    for state in range(parents.shape[0]):
        fallback = np.int64(0)
        parent = np.int64(parents[state])
        if parent != 0:
            label = np.int64(automaton.labels[state])
            before = np.int64(nodes[4 * parent + _FALLBACK])
            fallback = _step(automaton, n_classes, n_dense, before, label)
        nodes[4 * state + _FALLBACK] = fallback
        shorter = nodes[4 * fallback + _HIT] if state else np.int32(-1)
        if ends[state] >= 0:
            nodes[4 * state + _HIT] = ends[state]
            automaton.hit_links[ends[state]] = shorter
        else:
            nodes[4 * state + _HIT] = shorter
        if state < n_dense:
            row = state * n_classes
            if state:
                for k in range(n_classes):
                    automaton.dense[row + k] = automaton.dense[fallback * n_classes + k]
            child = np.int64(nodes[4 * state + _CHILD])
            for each in range(child, child + (nodes[4 * state + _DEGREE] >> 8)):
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
            finding.found[finding.counts[0]] = hit
            finding.counts[0] += 1
        elif spare <= 0:
            finding.counts[1] = 1
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


@apart
def find_literals(
    automaton: Any, finding: Any, text: Any, begin: Any, end: Any, value: Any, spare: Any
) -> None:
    """Find every literal of one value, ``text[begin:end]``, in ``finding``."""
    n_classes, n_dense = finding.counts[2], finding.counts[3]
    nodes = automaton.nodes
    finding.counts[0] = finding.counts[1] = 0
    state = np.int64(0)
    label = np.int64(automaton.classes[_START_CLASS])
    if label:
        state = _step(automaton, n_classes, n_dense, state, label)
        spare = _visit(automaton, finding, nodes[4 * state + _HIT], value, 0, spare)
    for position in range(begin, end):
        label = np.int64(automaton.classes[text[position]])
        if label == 0:  # no literal has this byte
            state = np.int64(0)
            continue
        state = _step(automaton, n_classes, n_dense, state, label)
        hit = nodes[4 * state + _HIT]
        if hit >= 0:
            spare = _visit(automaton, finding, hit, value, position + 1 - begin, spare)
    label = np.int64(automaton.classes[_END_CLASS])
    if label:
        state = _step(automaton, n_classes, n_dense, state, label)
        _visit(automaton, finding, nodes[4 * state + _HIT], value, end - begin + 1, spare)


class Substrings:
    """Distinct, non-empty literals; tells which of them each value contains. Immutable."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = Automaton(*map(read_only, automaton))
        self._n_classes = int(automaton.classes.max()) + 1
        self._n_dense = len(automaton.dense) // self._n_classes

    @classmethod
    def build(cls, literals: Sequence[bytes], *, fold: bool = False) -> Substrings:
        """Literal i gets id i; ``fold`` ignores the case of ASCII letters. O(total bytes)."""
        seen = np.zeros(256, np.bool_)
        seen[np.frombuffer(b"".join(literals), np.uint8)] = True
        representative = np.frombuffer(_FOLD, np.uint8) if fold else np.arange(256)
        used = np.unique(representative[seen])
        assert len(used) < 256, "UTF-8 uses at most 243 byte values"
        class_of = np.zeros(256, np.uint8)
        class_of[used] = np.arange(1, len(used) + 1)
        table = class_of[representative].tobytes()
        classes = np.concatenate([class_of[representative], class_of[[START, END]]])
        classes[[START, END]] = 0  # as bytes of a value, which is not UTF-8, they are others

        order = sorted((literal.translate(table), i) for i, literal in enumerate(literals))
        lengths = np.array([len(text) for text, _ in order], np.int64)
        data = np.frombuffer(b"".join(text for text, _ in order), np.uint8)
        tree: StateTree = _grow(
            data,
            np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
            np.array([i for _, i in order], np.int32),
        )
        n_states = len(tree.parents)
        n_classes = len(used) + 1
        n_dense = max(1, min(n_states, DENSE_ENTRIES // n_classes))
        degrees = np.bincount(tree.parents[1:], minlength=n_states)
        nodes = np.zeros((n_states, 4), np.int32)
        nodes[0, _CHILD] = 1
        nodes[1:, _CHILD] = 1 + np.cumsum(degrees)[:-1]
        first_labels = np.append(tree.labels, [0])[nodes[:, _CHILD]]
        nodes[:, _DEGREE] = degrees << 8 | np.where(degrees > 0, first_labels, 0)
        automaton = Automaton(
            classes=classes,
            dense=np.zeros(n_dense * n_classes, np.int32),
            nodes=nodes.reshape(-1),
            labels=tree.labels,
            hit_links=np.zeros(len(literals), np.int32),
        )
        _link(automaton, tree.parents, tree.ends, n_classes, n_dense)
        return cls(automaton)

    def __len__(self) -> int:
        return len(self.automaton.hit_links)

    def finding(self, lengths: np.ndarray) -> Finding:
        """Room for what ``find_literals`` finds; ``lengths`` are those of the literals."""
        n_literals = len(self)
        marks = np.full(n_literals, -1, np.int32)
        firsts, lasts, found = (np.empty(n_literals, np.int32) for _ in range(3))
        counts = np.array([0, 0, self._n_classes, self._n_dense])
        return Finding(marks, firsts, lasts, found, read_only(lengths), counts)

    def literal_lengths(self) -> np.ndarray:
        """How long each literal is, from the tree. O(states)."""
        nodes = self.automaton.nodes.reshape(-1, 4)
        parents = np.repeat(np.arange(len(nodes)), nodes[:, _DEGREE] >> 8)
        depths = [0]
        for parent in parents.tolist():
            depths.append(depths[parent] + 1)
        # A literal belongs to the first state that ends with it: states come by their length.
        literals, states = np.unique(nodes[:, _HIT], return_index=True)
        return np.array(depths, np.int32)[states[literals >= 0]]

    def arrays(self, prefix: str) -> dict[str, np.ndarray]:
        """Give the automaton's arrays, under names that begin with ``prefix``."""
        return {prefix + name: array for name, array in self.automaton._asdict().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], prefix: str) -> Substrings:
        """Undo ``arrays``; copies nothing."""
        return cls(Automaton(*(arrays[prefix + name] for name in Automaton._fields)))

    def check(self) -> None:
        """Assert every invariant of the layout. O(states)."""
        a = self.automaton
        n_states, n_literals = len(a.labels), len(a.hit_links)
        assert len(a.classes) == 258
        assert len(a.nodes) == 4 * n_states
        nodes = a.nodes.reshape(-1, 4)
        children, degrees = nodes[:, _CHILD], nodes[:, _DEGREE] >> 8
        assert (children == 1 + np.cumsum(degrees) - degrees).all()
        assert degrees.sum() == n_states - 1
        assert (degrees >= 0).all()
        assert len(a.dense) == self._n_classes * self._n_dense
        assert 1 <= self._n_dense <= n_states
        states = np.arange(n_states)
        assert (children[degrees > 0] > states[degrees > 0]).all()
        has_any = degrees > 0
        assert (nodes[has_any, _DEGREE] & 0xFF == a.labels[children[has_any]]).all()
        assert (nodes[~has_any, _DEGREE] == 0).all()
        parents = np.repeat(states, degrees)
        siblings = parents[1:] == parents[:-1]
        assert (np.diff(a.labels[1:].astype(np.int64))[siblings] > 0).all()
        assert ((a.labels[1:] > 0) & (a.labels[1:] < self._n_classes)).all()
        fallbacks, hits = nodes[:, _FALLBACK], nodes[:, _HIT]
        assert ((fallbacks[1:] >= 0) & (fallbacks[1:] < states[1:])).all()
        assert fallbacks[0] == 0
        assert ((a.dense >= 0) & (a.dense < n_states)).all()
        assert ((hits >= -1) & (hits < n_literals)).all()
        assert ((a.hit_links >= -1) & (a.hit_links < n_literals)).all()
        assert set(hits[hits >= 0].tolist()) == set(range(n_literals))
