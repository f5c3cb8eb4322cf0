"""Many substrings sought at once: an automaton (``automaton.py``), and windows in front of it.

``windows.py`` has the places where literals begin, which is all that most values need.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from bittern.jit import frozen, read_only
from bittern.model.patterns.automaton import (
    CHILD,
    DEGREE,
    END,
    FALLBACK,
    HIT,
    START,
    Automaton,
    Finding,
    StateTree,
    grow,
    link,
)
from bittern.model.patterns.windows import ROOM, Windows, windows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Dense rows hold at most this many 4-byte transitions: 128 kB, to stay in a core's own cache.
DENSE_ENTRIES = 1 << 15

#: ASCII letters folded to one class each; RE2 folds ``k`` and ``s`` with non-ASCII letters too.
_FOLD = bytes(range(256)).lower()


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
        tree: StateTree = grow(
            data,
            np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
            np.array([i for _, i in order], np.int32),
        )
        n_states = len(tree.parents)
        n_classes = len(used) + 1
        n_dense = max(1, min(n_states, DENSE_ENTRIES // n_classes))
        degrees = np.bincount(tree.parents[1:], minlength=n_states)
        nodes = np.zeros((n_states, 4), np.int32)
        nodes[0, CHILD] = 1
        nodes[1:, CHILD] = 1 + np.cumsum(degrees)[:-1]
        first_labels = np.append(tree.labels, [0])[nodes[:, CHILD]]
        nodes[:, DEGREE] = degrees << 8 | np.where(degrees > 0, first_labels, 0)
        automaton = Automaton(
            classes=classes,
            dense=np.zeros(n_dense * n_classes, np.int32),
            nodes=nodes.reshape(-1),
            labels=tree.labels,
            hit_links=np.zeros(len(literals), np.int32),
        )
        link(automaton, tree.parents, tree.ends, n_classes, n_dense)
        return cls(automaton)

    def __len__(self) -> int:
        return len(self.automaton.hit_links)

    def finding(self, lengths: np.ndarray) -> Finding:
        """Room for what ``find_literals`` finds; ``lengths`` are those of the literals."""
        n_literals = len(self)
        marks = np.full(n_literals, -1, np.int32)
        firsts, lasts, found = (np.empty(n_literals, np.int32) for _ in range(3))
        counts = np.array([0, 0, self._n_classes, self._n_dense, 0, 0])
        passed = np.empty(ROOM, np.uint64)
        return Finding(
            marks, firsts, lasts, found, read_only(lengths), counts, passed, *self._windows
        )

    @functools.cached_property
    def _windows(self) -> Windows:
        """Made when values are first read: O(states of the first eight bytes)."""
        if self._n_dense == len(self.automaton.labels):
            return frozen(Windows(*(np.zeros(0, np.uint64) for _ in range(3))))
        return frozen(windows_of(self.automaton))

    def literal_lengths(self) -> np.ndarray:
        """How long each literal is, from the tree. O(states)."""
        nodes = self.automaton.nodes.reshape(-1, 4)
        parents = np.repeat(np.arange(len(nodes)), nodes[:, DEGREE] >> 8)
        depths = [0]
        for parent in parents.tolist():
            depths.append(depths[parent] + 1)
        # A literal belongs to the first state that ends with it: states come by their length.
        literals, states = np.unique(nodes[:, HIT], return_index=True)
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
        children, degrees = nodes[:, CHILD], nodes[:, DEGREE] >> 8
        assert (children == 1 + np.cumsum(degrees) - degrees).all()
        assert degrees.sum() == n_states - 1
        assert (degrees >= 0).all()
        assert len(a.dense) == self._n_classes * self._n_dense
        assert 1 <= self._n_dense <= n_states
        states = np.arange(n_states)
        assert (children[degrees > 0] > states[degrees > 0]).all()
        has_any = degrees > 0
        assert (nodes[has_any, DEGREE] & 0xFF == a.labels[children[has_any]]).all()
        assert (nodes[~has_any, DEGREE] == 0).all()
        parents = np.repeat(states, degrees)
        siblings = parents[1:] == parents[:-1]
        assert (np.diff(a.labels[1:].astype(np.int64))[siblings] > 0).all()
        assert ((a.labels[1:] > 0) & (a.labels[1:] < self._n_classes)).all()
        fallbacks, hits = nodes[:, FALLBACK], nodes[:, HIT]
        assert ((fallbacks[1:] >= 0) & (fallbacks[1:] < states[1:])).all()
        assert fallbacks[0] == 0
        assert ((a.dense >= 0) & (a.dense < n_states)).all()
        assert ((hits >= -1) & (hits < n_literals)).all()
        assert ((a.hit_links >= -1) & (a.hit_links < n_literals)).all()
        assert set(hits[hits >= 0].tolist()) == set(range(n_literals))
