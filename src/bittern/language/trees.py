"""Building and walking trees without recursion.

The parser and the normaliser both produce nested AND and OR; the tree must be flat::

    Branch(And, [a, Branch(And, [b, c]), Branch(Or, [d, e])])   ->   And((a, b, c, Or((d, e))))

``flatten`` does that in one pass, moving every operand once, so it costs O(nodes) however the
text was parenthesised. Nothing here uses Python's stack, so no depth can overflow it. A quantified
predicate is a leaf, whatever stands inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from bittern.language.syntax import And, Expression, Leaf, Not, Or

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Branch(NamedTuple):
    """An AND, OR or NOT still being built; ``height`` is the depth of the flat tree below it."""

    operator: type[And | Or | Not]
    operands: list[Draft]
    height: int = 0


Draft: TypeAlias = Branch | Expression


class _Frame(NamedTuple):
    """A branch that waits for its operands: those to come (last first), those done."""

    operator: type[And | Or | Not]
    pending: list[Draft]
    done: list[Expression]


def _node(operator: type[And | Or | Not], operands: list[Expression]) -> Expression:
    return Not(operands[0]) if operator is Not else operator(tuple(operands))  # type: ignore[arg-type]


def flatten(draft: Draft) -> Expression:
    """Freeze a draft into a tree, merging AND into AND and OR into OR, order kept. O(nodes)."""
    frames: list[_Frame] = []
    while True:
        if isinstance(draft, Branch):
            operator, operands, _ = draft
            if frames and frames[-1].operator is operator and operator is not Not:
                frames[-1].pending.extend(reversed(operands))
            else:
                frames.append(_Frame(operator, operands[::-1], []))
        else:
            node: Expression = draft
            while frames:
                frames[-1].done.append(node)
                if frames[-1].pending:
                    break
                node = _node(frames[-1].operator, frames.pop().done)
            else:
                return node
        draft = frames[-1].pending.pop()


def walk(tree: Expression) -> Iterator[Expression]:
    """Every node, parents before children, left to right. O(nodes)."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Not):
            waiting.append(node.operand)
        elif isinstance(node, And | Or):
            waiting.extend(reversed(node.operands))


def flat(tree: Expression) -> tuple[Any, ...]:
    """The tree as its nodes in the order of ``walk``: equal trees, equal tuples. O(nodes).

    An AND or OR is (its type, how many operands), a NOT its type, a leaf itself. Comparing, hashing
    and pickling this needs no stack, whatever the depth.
    """
    return tuple(map(_flat_node, walk(tree)))


def _flat_node(node: Expression) -> Any:
    if isinstance(node, And | Or):
        return type(node), len(node.operands)
    return Not if isinstance(node, Not) else node


def unflat(nodes: Sequence[Any]) -> Expression:
    """The tree of these nodes: the inverse of ``flat``. O(nodes)."""
    done: list[Expression] = []
    for node in reversed(nodes):
        if node is Not:
            done[-1] = Not(done[-1])
        elif isinstance(node, tuple):
            operator, count = node
            operands = tuple(reversed(done[-count:]))
            done[-count:] = [operator(operands)]
        else:
            done.append(node)
    return done[0]


def map_leaves(tree: Expression, change: Callable[[Leaf], Expression]) -> Expression:
    """Build the same tree with every predicate and constant replaced by its change. O(nodes)."""
    nodes = flat(tree)
    return unflat([n if n is Not or isinstance(n, tuple) else change(n) for n in nodes])
