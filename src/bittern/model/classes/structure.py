"""The Boolean structure that many expressions share, apart from their predicates.

An expression in normal form is a tree of AND and OR over *tests*; a test is one closed interval of
cells in one channel (see ``model/rank/space.py``). ``price < 10 AND (color = 'red' OR size != 4)``
has four tests (``!=`` is two intervals) and this structure, nodes in prefix order::

    node       0    1  2   3  4   5  6
    operator   AND  T  OR  T  OR  T  T          T: a test, numbered from left to right
    size       7    1  5   1  3   1  1          nodes in the subtree, so that the next sibling
                                                of node i is node i + size[i]
    jumps of the tests:  0 -> false: REJECT     price < 10
                         1 -> true:  ACCEPT     color = 'red'
                         2 -> true:  ACCEPT     size < 4
                         3 -> false: REJECT     size > 4

Running the tests in order and jumping evaluates the whole expression, stopping early: one test
either falls through to the next one, or jumps. A jump is stored as ``target << 1 | when``, where
``when`` is the outcome that jumps; target n (of n tests) accepts, n + 1 rejects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

TEST, AND, OR = 0, 1, 2

#: A nested structure while it is put together: ``TEST``, or ``(AND | OR, [children])``.
Nested = int | tuple[int, list["Nested"]]


@dataclass(frozen=True)
class Structure:
    """Nodes in prefix order, and the jump of each test."""

    operators: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int32]
    jumps: npt.NDArray[np.int32]

    @property
    def key(self) -> bytes:
        """Equal for equal structures (sizes and jumps follow from the prefix form)."""
        return self.operators.tobytes() + self.sizes.tobytes()

    @classmethod
    def of(cls, nested: Nested) -> Structure:
        """Flatten a nested structure; O(nodes), no recursion."""
        operators: list[int] = []
        children: list[int] = []
        stack = [nested]
        while stack:
            node = stack.pop()
            if isinstance(node, int):
                operators.append(TEST)
                children.append(0)
            else:
                operators.append(node[0])
                children.append(len(node[1]))
                stack.extend(reversed(node[1]))
        sizes = [1] * len(operators)
        for i in range(len(operators) - 1, -1, -1):
            child = i + 1
            for _ in range(children[i]):
                sizes[i] += sizes[child]
                child += sizes[child]
        return cls._of_nodes(operators, sizes)

    @classmethod
    def below(cls, whole: Structure, node: int) -> Structure:
        """The structure of one node and what is below it."""
        nodes = slice(node, node + int(whole.sizes[node]))
        return cls._of_nodes(whole.operators[nodes].tolist(), whole.sizes[nodes].tolist())

    @classmethod
    def _of_nodes(cls, operators: list[int], sizes: list[int]) -> Structure:
        return cls(
            np.array(operators, dtype=np.int32),
            np.array(sizes, dtype=np.int32),
            np.array(_jumps(operators, sizes), dtype=np.int32),
        )


def _jumps(operators: list[int], sizes: list[int]) -> list[int]:
    """Where each test goes: one of its two outcomes is always the next test."""
    tests_before = [0]
    for operator in operators:
        tests_before.append(tests_before[-1] + (operator == TEST))
    n = tests_before[-1]
    first = [0] * len(operators)  # the number of a subtree's first test
    if_true = [0] * len(operators)
    if_false = [0] * len(operators)
    if_true[0], if_false[0] = n, n + 1
    jumps: list[int] = []
    for i, operator in enumerate(operators):
        if operator == TEST:
            following = first[i] + 1
            if if_true[i] == following:
                jumps.append(if_false[i] << 1)
            else:
                jumps.append(if_true[i] << 1 | 1)
            continue
        child, end, at = i + 1, i + sizes[i], first[i]
        while child < end:
            first[child] = at
            at += tests_before[child + sizes[child]] - tests_before[child]
            last = child + sizes[child] == end
            if_true[child] = at if operator == AND and not last else if_true[i]
            if_false[child] = at if operator == OR and not last else if_false[i]
            child += sizes[child]
    return jumps
