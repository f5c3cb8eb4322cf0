"""A draft, and each of its predicates as a subscription of its own.

In normal form negations stand at the leaves, and AND and OR never make TRUE of what is not. So it
is enough to know which leaves are true, and a matcher that holds them as subscriptions tells that::

    NOT (price >= 10 OR used) AND brand IN ('a', 'b')       number
    price < 10 AND used != TRUE AND brand IN ('a', 'b')     0       the draft itself
                                                            1       price < 10
                                                            2       used != TRUE
                                                            3       brand IN ('a', 'b')

A leaf that is not true *rejects* an event if all that it is part of is not true either: in
``a AND (b OR c)``, b and c reject an event only together. It rejects *alone* if the event would
have matched with this leaf true and all others as they are.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.errors import ExpressionError, SubscriptionError
from bittern.language.normalize import normal_form
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.syntax import And, BooleanConstant, Expression, Or, Quantified
from bittern.language.trees import walk

#: The number of the draft among the subscriptions; its predicates follow.
DRAFT = 0

Truths = npt.NDArray[np.bool_]


class DraftNode(NamedTuple):
    """A node of the normal form: its parent (-1: none), AND, OR or None, and a leaf's number."""

    parent: int
    operator: type[And | Or] | None
    leaf: int


class Rejections(NamedTuple):
    """By leaf, from 0 on: events that it rejects, and that it rejects alone."""

    rejects: Truths
    alone: Truths


class ReadDraft:
    """A draft that was read; ``ExpressionError`` says what is wrong with it."""

    def __init__(self, text: str) -> None:
        self.text = text
        tree = parse(text)
        self.has_quantifiers = any(isinstance(node, Quantified) for node in walk(tree))
        #: The predicates, each once, in the order in which they are read.
        self.predicates: list[str] = []
        self.nodes: list[DraftNode] = []
        self._read(normal_form(tree))

    def _read(self, tree: Expression) -> None:
        """List the nodes, parents before their children."""
        numbers: dict[str, int] = {}
        waiting: list[tuple[Expression, int]] = [(tree, -1)]
        while waiting:
            node, parent = waiting.pop()
            if isinstance(node, BooleanConstant):  # the whole of it, or normal form had none
                break
            place = len(self.nodes)
            if isinstance(node, And | Or):
                self.nodes.append(DraftNode(parent, type(node), -1))
                waiting.extend((operand, place) for operand in reversed(node.operands))
            else:
                leaf = numbers.setdefault(print_expression(node), len(numbers))
                self.nodes.append(DraftNode(parent, None, leaf))
        self.predicates = list(numbers)
        places = Counter(node.leaf for node in self.nodes if node.leaf >= 0)
        self._repeated = [leaf for leaf, count in places.items() if count > 1]

    def subscriptions(self) -> dict[int, str]:
        """The draft and its predicates, by number."""
        return dict(enumerate([self.text, *self.predicates]))

    def refusal(self, error: SubscriptionError) -> ExpressionError | SubscriptionError:
        """What an index said of the draft, as a mistake in it."""
        for bad in error.bad:
            if bad.id == DRAFT:
                return ExpressionError(bad.message, self.text, bad.position)
        return error

    def outcome(self, leaves: Truths) -> Rejections:
        """Which leaves reject which events; ``leaves`` is true where a leaf (row) is true."""
        n_events = leaves.shape[1]
        rejects, alone = np.zeros_like(leaves), np.zeros_like(leaves)
        truths = self._truths(leaves)
        n_true = np.zeros((len(self.nodes), n_events), dtype=np.int32)
        n_children = np.zeros(len(self.nodes), dtype=np.int32)
        for node, truth in zip(self.nodes, truths, strict=True):
            if node.parent >= 0:
                n_true[node.parent] += truth
                n_children[node.parent] += 1
        blamed, decisive = ~truths, ~truths  # of the nodes above: they come first
        for place, (parent, _, leaf) in enumerate(self.nodes):
            if parent >= 0:
                blamed[place] &= blamed[parent]
                decisive[place] &= decisive[parent]
                if self.nodes[parent].operator is And:
                    decisive[place] &= n_true[parent] == n_children[parent] - 1
            if leaf >= 0:
                rejects[leaf] |= blamed[place]
                alone[leaf] |= decisive[place]
        for leaf in self._repeated:  # true in all its places at once
            with_it = leaves.copy()
            with_it[leaf] = True
            alone[leaf] = self._truths(with_it)[0] & ~truths[0]
        return Rejections(rejects, alone)

    def _truths(self, leaves: Truths) -> Truths:
        """By node, where it is true: children come after their parents, so the last ones first."""
        truths = np.zeros((len(self.nodes), leaves.shape[1]), dtype=np.bool_)
        for place, node in enumerate(self.nodes):
            truths[place] = leaves[node.leaf] if node.operator is None else node.operator is And
        for place in range(len(self.nodes) - 1, 0, -1):
            parent = self.nodes[place].parent
            if self.nodes[parent].operator is And:
                truths[parent] &= truths[place]
            else:
                truths[parent] |= truths[place]
        return truths
