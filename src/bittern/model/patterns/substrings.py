"""Many substrings sought at once: an Aho-Corasick automaton in flat arrays.

States are the distinct prefixes of the literals, numbered breadth first, so the children of a
state are consecutive numbers and one offset array describes the whole tree. For the literals
``he`` (0), ``she`` (1), ``hers`` (2):

    state       0   1   2   3    4    5     6     7
    prefix      ''  h   s   he   sh   her   she   hers
    labels          h   s   e    h    r     e     s      the byte that leads into the state
    children    1   3   4   5    6    7     8     8   8  of state s: children[s] to children[s + 1]
    fallbacks   0   0   0   0    1    0     3     2      longest proper suffix that is a state
    hits       -1  -1  -1   0   -1   -1     1     2      longest literal that the prefix ends with
    hit_links  -1   0  -1    (one per literal)           the next shorter literal it ends with

Bytes are first mapped to classes (bytes that no literal uses share class 0; an automaton that
folds case gives ``A`` and ``a`` one class). The first states, which are the shallow and hot ones,
also have a dense row with the final transition for every class: one load per byte, no fallback.
Deeper states, most of which have a single child, search their labels.

Cost: building O(total literal bytes); finding O(value bytes + hits) per value whatever the
literals, because a literal already reported for a value ends the walk along ``hit_links``.
About 13 bytes per state and at most ``DENSE_ENTRIES`` words of dense rows. Nothing is compiled or
copied when the arrays are opened from a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bittern.jit import (
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

#: Dense rows hold at most this many 4-byte transitions: 1 MB, to stay in a core's own cache.
DENSE_ENTRIES = 1 << 18

#: ASCII letters folded to one class each; RE2 folds ``k`` and ``s`` with non-ASCII letters too.
_FOLD = bytes(range(256)).lower()


class Automaton(NamedTuple):
    """The arrays of the module docstring, as kernels take them."""

    classes: np.ndarray
    dense: np.ndarray
    children: np.ndarray
    labels: np.ndarray
    fallbacks: np.ndarray
    hits: np.ndarray
    hit_links: np.ndarray


class StateTree(NamedTuple):
    """States before they are linked: parent, incoming class, literal that ends there or -1."""

    parents: np.ndarray
    labels: np.ndarray
    ends: np.ndarray


class FoundLiterals(NamedTuple):
    """CSR: the literals found in each value, in no particular order."""

    offsets: np.ndarray
    literals: np.ndarray


_AUTOMATON = tuple_type(Automaton, u1r, i4r, i4r, u1r, i4r, i4r, i4r)
_BUILDING = tuple_type(Automaton, u1w, i4w, i4w, u1w, i4w, i4w, i4w)
_TREE = tuple_type(StateTree, i4w, u1w, i4w)
_FOUND = tuple_type(FoundLiterals, i8w, i4w)


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
    while state >= n_dense:
        low = automaton.children[state]
        high = automaton.children[state + 1]
        while low < high:
            middle = (low + high) >> 1
            if automaton.labels[middle] < label:
                low = middle + 1
            else:
                high = middle
        if low < automaton.children[state + 1] and automaton.labels[low] == label:
            return low
        # Always a smaller number; a damaged one might lead back here, for ever.
        state = min(state - 1, automaton.fallbacks[state])
    return automaton.dense[state * n_classes + label]


@kernel(void, _BUILDING, i4r, i4r, i8, i8)
def _link(automaton: Any, parents: Any, ends: Any, n_classes: Any, n_dense: Any) -> None:
    """Fill fallbacks, hits and dense rows; a state only needs those of smaller numbers."""
    for state in range(parents.shape[0]):
        fallback = np.int32(0)
        parent = parents[state]
        if parent != 0:
            label = np.int64(automaton.labels[state])
            fallback = np.int32(
                _step(automaton, n_classes, n_dense, automaton.fallbacks[parent], label)
            )
        automaton.fallbacks[state] = fallback
        shorter = automaton.hits[fallback] if state else np.int32(-1)
        if ends[state] >= 0:
            automaton.hits[state] = ends[state]
            automaton.hit_links[ends[state]] = shorter
        else:
            automaton.hits[state] = shorter
        if state < n_dense:
            row = state * n_classes
            if state:
                for k in range(n_classes):
                    automaton.dense[row + k] = automaton.dense[fallback * n_classes + k]
            for child in range(automaton.children[state], automaton.children[state + 1]):
                automaton.dense[row + np.int64(automaton.labels[child])] = child


@kernel(_FOUND, _AUTOMATON, i8, i8, u1r, i8r)
def _find(automaton: Any, n_classes: Any, n_dense: Any, data: Any, offsets: Any) -> Any:
    """Every literal of every value, each once per value."""
    n_values = offsets.shape[0] - 1
    found_offsets = np.zeros(n_values + 1, np.int64)
    found = np.empty(4 * n_values + 16, np.int32)
    n_found = 0
    last_value = np.full(automaton.hit_links.shape[0], -1, np.int32)
    for value in range(n_values):
        state = 0
        for position in range(offsets[value], offsets[value + 1]):
            label = np.int64(automaton.classes[data[position]])
            if label == 0:  # no literal has this byte
                state = 0
                continue
            state = _step(automaton, n_classes, n_dense, state, label)
            hit = automaton.hits[state]
            while hit >= 0 and last_value[hit] != value:
                last_value[hit] = value
                if n_found == found.shape[0]:
                    larger = np.empty(2 * n_found, np.int32)
                    larger[:n_found] = found
                    found = larger
                found[n_found] = hit
                n_found += 1
                hit = automaton.hit_links[hit]
        found_offsets[value + 1] = n_found
    return FoundLiterals(found_offsets, found[:n_found].copy())


class Substrings:
    """Distinct, non-empty literals; tells which of them each value contains. Immutable."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = Automaton(*map(read_only, automaton))
        self._n_classes = int(automaton.classes.max()) + 1
        self._n_dense = len(automaton.dense) // self._n_classes

    @classmethod
    def build(cls, literals: Sequence[bytes], *, fold: bool = False) -> Substrings:
        """Literal i gets id i; ``fold`` ignores the case of ASCII letters. O(total bytes).

        >>> found = Substrings.build([b"he", b"she", b"hers"]).find(
        ...     np.frombuffer(b"ushers", np.uint8), np.array([0, 6]))
        >>> sorted(found.literals.tolist())
        [0, 1, 2]
        """
        seen = np.zeros(256, np.bool_)
        seen[np.frombuffer(b"".join(literals), np.uint8)] = True
        representative = np.frombuffer(_FOLD, np.uint8) if fold else np.arange(256)
        used = np.unique(representative[seen])
        assert len(used) < 256, "UTF-8 uses at most 243 byte values"
        class_of = np.zeros(256, np.uint8)
        class_of[used] = np.arange(1, len(used) + 1)
        classes = class_of[representative]
        table = classes.tobytes()

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
        automaton = Automaton(
            classes=classes,
            dense=np.zeros(n_dense * n_classes, np.int32),
            children=np.concatenate([[1], 1 + np.cumsum(degrees)]).astype(np.int32),
            labels=tree.labels,
            fallbacks=np.zeros(n_states, np.int32),
            hits=np.zeros(n_states, np.int32),
            hit_links=np.zeros(len(literals), np.int32),
        )
        _link(automaton, tree.parents, tree.ends, n_classes, n_dense)
        return cls(automaton)

    def __len__(self) -> int:
        return len(self.automaton.hit_links)

    def find(self, data: np.ndarray, offsets: np.ndarray) -> FoundLiterals:
        """Find the literals that each value contains, each once. O(value bytes + found)."""
        found: FoundLiterals = _find(self.automaton, self._n_classes, self._n_dense, data, offsets)
        return found

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
        assert len(a.classes) == 256
        assert len(a.fallbacks) == len(a.hits) == len(a.children) - 1 == n_states
        assert a.children[0] == 1
        assert a.children[-1] == n_states
        assert (np.diff(a.children) >= 0).all()
        assert len(a.dense) == self._n_classes * self._n_dense
        assert 1 <= self._n_dense <= n_states
        assert (a.children[:-1] > np.arange(n_states)).all() or n_states == 1
        parents = np.repeat(np.arange(n_states), np.diff(a.children))
        siblings = parents[1:] == parents[:-1]
        assert (np.diff(a.labels[1:].astype(np.int64))[siblings] > 0).all()
        assert ((a.labels[1:] > 0) & (a.labels[1:] < self._n_classes)).all()
        states = np.arange(1, n_states)
        assert ((a.fallbacks[1:] >= 0) & (a.fallbacks[1:] < states)).all()
        assert a.fallbacks[0] == 0
        assert ((a.dense >= 0) & (a.dense < n_states)).all()
        assert ((a.hits >= -1) & (a.hits < n_literals)).all()
        assert ((a.hit_links >= -1) & (a.hit_links < n_literals)).all()
        assert set(a.hits[a.hits >= 0].tolist()) == set(range(n_literals))
