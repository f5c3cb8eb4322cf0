"""The red-black-tree-based index: both contracts, its five arrays, and the tree by its rules."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.literature.predicates.contract import OPERATORS
from bittern.literature.predicates.keyed_lists import ROOT
from bittern.literature.predicates.red_black import RedBlackPredicates
from bittern.literature.predicates.red_black_nodes import LEFT, PARENT, RED, RIGHT, RedBlackTree
from predicate_contract import PredicateContract, build
from stabbing_contract import StabbingContract

FIRST = np.zeros(1, np.int32)


class TestPredicates(PredicateContract):
    cls = RedBlackPredicates


class TestStabbing(StabbingContract):
    name = "red-black"


def test_a_node_has_five_arrays() -> None:
    index = build(RedBlackPredicates, [(operator, 5, operator) for operator in range(6)])
    keys, kinds, sids = (column.tolist() for column in index.tree.contents())
    assert keys == [5] * 7
    assert [OPERATORS[sid] for sid in sids] == ["!=", "<", "<=", "=", ">=", "!=", ">"]
    assert kinds == [0, 0, 1, 2, 3, 4, 4]
    assert index.statistics() == {"entries": 7, "keys": 1, "height": 1}


def tree(keys: list[int]) -> RedBlackTree:
    sids = np.arange(len(keys), dtype=np.int32)
    return RedBlackTree.build(np.array(keys, np.int64), np.zeros(len(keys), np.int32), sids, 1)


def test_the_example_of_the_module() -> None:
    built = tree([3, 7, 12, 20])
    built.check()
    assert built.keys[1:].tolist() == [3, 7, 12, 20]
    assert built.directory[1:].tolist() == [[0, 0, 2, 1], [1, 0, 3, 0], [2, 4, 0, 0], [0, 0, 3, 0]]
    assert built.state[ROOT] == 3


def test_trees_of_every_size_are_built_by_the_rules() -> None:
    for n in range(140):
        built = tree(list(range(n)))
        built.check()
        assert built.height == (n.bit_length() if n else 0)


@pytest.mark.parametrize("order", ["ascending", "descending", "random", "inwards"])
def test_a_tree_keeps_its_rules_in_any_order(order: str) -> None:
    n = 700
    keys = np.arange(n)
    if order == "random":
        keys = np.random.default_rng(1).permutation(n)
    elif order == "inwards":
        keys = np.stack((keys[: n // 2], keys[::-1][: n // 2]), axis=1).ravel()
    given_keys = keys.tolist()[:: -1 if order == "descending" else 1]
    grown = tree([])
    for i, key in enumerate(given_keys):
        grown.insert(key, FIRST, key)
        if i % 23 == 0:
            grown.check()
        assert grown.height <= 2 * math.log2(i + 2)
    grown.check()
    assert grown.contents()[0].tolist() == list(range(n))
    for i, key in enumerate(given_keys):
        assert grown.delete(key, FIRST, key)
        if i % 23 == 0:
            grown.check()
    grown.check()
    assert grown.n_keys == 0


@given(st.lists(st.integers(0, 40), max_size=60), st.lists(st.integers(0, 40), max_size=60))
def test_every_change_keeps_the_rules(first: list[int], changes: list[int]) -> None:
    """A key that is there is taken out, any other is put in."""
    grown, held = tree(sorted(set(first))), set(first)
    sids = {key: sid for sid, key in enumerate(sorted(held))}
    for key in changes:
        if key in held:
            assert grown.delete(key, FIRST, sids[key])
        else:
            grown.insert(key, FIRST, sids.setdefault(key, 50))
        held ^= {key}
        grown.check()
        assert grown.contents()[0].tolist() == sorted(held)


def test_a_million_keys_are_built_in_order() -> None:
    keys = np.random.default_rng(2).permutation(1_000_000)
    built = RedBlackTree.build(keys, np.zeros(len(keys), np.int32), keys.astype(np.int32), 1)
    built.check()
    assert built.height == 20


@pytest.mark.parametrize(
    ("node", "column", "number", "message"),
    [
        (7, RED, 1, "root is red"),
        (4, RED, 1, "red child|numbers of black nodes"),
        (4, RED, 2, "no colour"),
        (1, RED, 0, "numbers of black nodes"),
        (1, PARENT, 0, "does not know its parent"),
        (1, LEFT, 99, "out of the tree"),
        (1, LEFT, 7, "further down"),
        (4, RIGHT, 2, "two parents"),
        (0, LEFT, 3, "none has links"),
        (7, LEFT, 0, "numbers of black nodes"),
    ],
)
def test_check_sees_a_damaged_tree(node: int, column: int, number: int, message: str) -> None:
    built = tree(list(range(12)))
    assert (built.state[ROOT], built.directory[7, LEFT]) == (7, 4)
    arrays = {name: array.copy() for name, array in built.arrays().items()}
    arrays["links"][node, column] = number
    with pytest.raises(AssertionError, match=message):
        RedBlackTree.from_arrays(arrays, 1).check()


def test_check_sees_keys_out_of_order_and_nodes_without_sids() -> None:
    arrays = {name: array.copy() for name, array in tree(list(range(12))).arrays().items()}
    keys, offsets = arrays["keys"].copy(), arrays["offsets"].copy()
    keys[[3, 4]] = keys[[4, 3]]
    with pytest.raises(AssertionError, match="out of order"):
        RedBlackTree.from_arrays({**arrays, "keys": keys}, 1).check()
    offsets[5] = offsets[4]
    with pytest.raises(AssertionError, match="no sids"):
        RedBlackTree.from_arrays({**arrays, "offsets": offsets}, 1).check()
