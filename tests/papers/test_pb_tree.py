"""The PB+tree of seed 002: in memory, behind both contracts, and as the paper draws it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import OptionError, SnapshotError
from bittern.literature.pb_tree import pages as page_words
from bittern.literature.pb_tree.check import Page, check_tree, read_page
from bittern.literature.pb_tree.index import MemoryPages, PBPredicates, PBTree
from bittern.literature.pb_tree.pages import GT, HEADS, INEQ, LT, NEXT, POINTERS, ROOT
from bittern.literature.pb_tree.tree import ASCENDING, Tree, of_numbers
from bittern.literature.predicates.contract import OPERATORS
from effort import examples
from predicate_contract import PredicateContract, satisfies
from stabbing_contract import StabbingContract

SIZES = [{}, {"page_bytes": 512}, {"page_bytes": 1024}]


class TestPBTree(StabbingContract):
    name = "pb-tree"
    parameters = st.sampled_from(SIZES)


class TestPBPredicates(PredicateContract):
    cls = PBPredicates
    parameters = st.sampled_from(SIZES)


class Drawn:
    """A tree that is planted and written to by hand, and looked at as a figure."""

    def __init__(self, page_bytes: int = 512) -> None:
        self.pages = MemoryPages.new(page_bytes)
        self.tree = Tree(self.pages)
        self.tree.plant()

    def change(self, *rows: tuple[str, int, int], delete: bool = False) -> Any:
        keys = of_numbers(np.array([key for _, key, _ in rows], np.int64))
        operators = np.array([OPERATORS.index(operator) for operator, _, _ in rows], np.uint8)
        sids = np.array([sid for _, _, sid in rows], np.int32)
        done = (self.tree.delete if delete else self.tree.insert)(keys, operators, sids)
        check_tree(self.pages)
        return done

    def page(self, number: int) -> Page:
        return read_page(self.pages, number)

    def chain(self, number: int) -> list[Page]:
        found = []
        while number:
            found.append(self.page(number))
            number = int(found[-1].header[NEXT])
        return found

    def list_keys(self, which: int) -> list[list[Any]]:
        """The keys of each node of a list; MIN and MAX for the sentinels."""
        nodes = self.chain(int(self.pages.tree[HEADS + which]))
        return [[shown(key) for key, _ in node.items] for node in nodes]

    def pointed(self, key: int, which: int) -> list[Any]:
        """The keys of the node that the leaf item of a key points to."""
        leaf = self.chain(int(self.pages.tree[page_words.FIRST_LEAF]))
        (item,) = [
            item for page in leaf for item in page.items if item.key and shown(item.key) == key
        ]
        node = self.page(int(item.words[POINTERS + which]))
        return [shown(key) for key, _ in node.items]

    def found(self, value: int) -> list[int]:
        sids, cursors = np.empty(9999, np.int32), np.zeros(1, np.int64)
        self.tree.search(of_numbers(np.array([value])), cursors, sids)
        return sorted(sids[: cursors[0]].tolist())


def shown(key: Any) -> Any:
    return "sentinel" if key is None else key[0] - 2**63


END = "sentinel"


def test_fig_5_pointers_lead_to_the_largest_key_not_above_and_the_smallest_not_below() -> None:
    """What the paper says of Fig. 5: 5 and 6 have the same GTPointer, INEQPointers are set in the
    same way, and each list has a head with the lowest and a tail with the highest key."""
    tree = Drawn()
    tree.change((">", 3, 1), (">=", 5, 2), ("=", 6, 3), ("<", 8, 4), ("!=", 4, 5), ("<=", 9, 6))
    assert tree.list_keys(GT) == [[END, 3, 5], [END]]
    assert tree.list_keys(INEQ) == [[END, 4], [END]]
    assert tree.list_keys(LT) == [[END], [8, 9, END]]
    for which, keys in ((GT, [END, 3, 5]), (INEQ, [END, 4]), (LT, [8, 9, END])):
        assert tree.pointed(5, which) == tree.pointed(6, which) == keys
    assert tree.found(5) == [1, 2, 4, 5, 6]
    assert tree.found(6) == [1, 2, 3, 4, 5, 6]
    assert tree.found(4) == [1, 4, 6]
    assert tree.found(9) == [1, 2, 5, 6]
    assert tree.found(2) == [4, 5, 6]


def test_fig_6_a_new_constant_takes_over_the_pointers_of_its_neighbours() -> None:
    """GTPointer and INEQPointer of the item before it, LTPointer of the item behind it."""
    tree = Drawn()
    tree.change(
        *((operator, key, key) for key in range(0, 400, 10) for operator in (">", "<", "!="))
    )
    assert min(len(tree.list_keys(which)) for which in range(3)) > 3
    adjusted = tree.tree.statistics()["leaves_adjusted"]
    for key in (5, 123, 391):
        tree.change(("=", key, key))
        before, behind = key // 10 * 10, min(key // 10 * 10 + 10, 390)
        assert tree.pointed(key, GT) == tree.pointed(before, GT)
        assert tree.pointed(key, INEQ) == tree.pointed(before, INEQ)
        if key < 390:
            assert tree.pointed(key, LT) == tree.pointed(behind, LT)
    assert tree.pointed(391, LT)[-1] == END
    assert tree.tree.statistics()["leaves_adjusted"] == adjusted


def test_fig_7_a_split_node_stays_in_order_and_adjusts_pointers_from_its_cut_on() -> None:
    tree = Drawn()
    tree.change(*(("=", key, key) for key in range(100)))
    for key in range(0, 100, 2):
        nodes = len(tree.list_keys(GT))
        tree.change((">", key, key))
        if len(tree.list_keys(GT)) > nodes:
            break
    keys = tree.list_keys(GT)
    assert [key for node in keys for key in node] == [END, *range(0, key + 1, 2), END]
    assert tree.pointed(keys[1][0], GT) == keys[1]
    assert tree.pointed(keys[1][0] - 1, GT) == keys[0]
    assert tree.pointed(99, GT) == keys[1]
    assert tree.tree.statistics()["leaves_adjusted"] > 0


def test_fig_8_a_value_that_no_constant_has_starts_where_the_descent_stopped() -> None:
    tree = Drawn()
    tree.change(*((operator, key, key) for key in range(0, 2000, 10) for operator in (">", "<=")))
    leaf = tree.chain(int(tree.pages.tree[page_words.FIRST_LEAF]))
    assert tree.page(int(tree.pages.tree[ROOT])).number != leaf[0].number
    edges = [shown(page.items[0].key) for page in leaf[1:]]
    for value in [edge + by for edge in edges for by in (-1, 0, 1)] + [-5, 5000]:
        expected = [key for key in range(0, 2000, 10) if value > key or value <= key]
        assert tree.found(value) == expected


def test_number_update_is_nothing_if_all_pointers_are_in_one_leaf() -> None:
    """Section 5: the minimum, O(log n). Only splits adjust, and each looks at one leaf or two."""
    few = Drawn(4096)
    few.change(*((">", key, key) for key in range(60)))
    assert few.tree.statistics()["leaves_adjusted"] == 0


def test_number_update_grows_with_the_leaves_that_a_node_spans() -> None:
    """Section 5: the maximum, O(n). One operator in a thousand has a list to itself."""
    figures = []
    for n in (2_000, 20_000):
        tree = Drawn()
        tree.change(*(("=", key, key) for key in range(n)))
        inserted = tree.tree.statistics()["inserted"]
        tree.change(*((">", key, key) for key in range(0, n, n // 17)))
        assert tree.tree.statistics()["inserted"] == inserted + 18
        figures.append(tree.tree.statistics()["leaves_adjusted"])
    assert figures[1] > 5 * figures[0] > 0


def test_ascending_constants_leave_full_pages() -> None:
    rng = np.random.default_rng(1)
    n = 5000
    operators = rng.integers(0, 6, n).astype(np.uint8)
    keys, sids = rng.integers(0, 10 * n, n), np.arange(n, dtype=np.int32)
    built = PBPredicates.build(operators, keys, sids).statistics()
    one_by_one = PBPredicates.build(operators[:0], keys[:0], sids[:0])
    for row in range(n):
        one_by_one.insert(int(operators[row]), int(keys[row]), row)
    grown = one_by_one.statistics()
    one_by_one.check()
    assert built["keys"] == grown["keys"]
    assert built["pages"] < 0.8 * grown["pages"]


@examples(0.5)
@given(
    st.lists(
        st.tuples(st.sampled_from(OPERATORS), st.integers(0, 6), st.integers(0, 3)), max_size=400
    )
)
def test_popular_constants_spill_and_come_back(rows: list[tuple[str, int, int]]) -> None:
    """A SidSet of more than 16 sids has pages of its own here; deletions bring it back."""
    tree = Drawn()
    rows = rows * 3
    if rows:
        tree.change(*rows)
    for value in range(-1, 8):
        expected = sorted(
            sid for op, key, sid in rows if satisfies(OPERATORS.index(op), key, value)
        )
        assert tree.found(value) == expected
    most = max((rows.count(row) for row in rows), default=0)
    assert tree.tree.statistics()["spill_pages"] > 0 or most <= 16
    if rows:
        assert tree.change(*rows, delete=True).all()
    empty = tree.tree.statistics()
    assert (empty["pages"], empty["height"], empty["entries"]) == (7, 1, 0)


@pytest.mark.parametrize("distinct", [1, 200, 10**9])
@pytest.mark.parametrize("way", ["upwards", "downwards", "any"])
def test_a_sid_set_of_many_pages(distinct: int, way: str) -> None:
    """A fork above forks, with runs of equal sids over several pages; it comes back in the end."""
    rng = np.random.default_rng([distinct, len(way)])
    sids = rng.integers(0, distinct, 9_000).astype(np.int32)
    ordered = np.ascontiguousarray(np.sort(sids)[:: -1 if way == "downwards" else 1])
    keys = of_numbers(np.zeros(len(sids), np.int64))
    operators = np.zeros(len(sids), np.uint8)
    for coming in (sids, ordered):
        tree = Drawn()
        for start in range(0, 9_000, 3_000):
            rows = slice(start, start + 3_000)
            tree.tree.insert(keys, operators[rows], coming[rows])
            check_tree(tree.pages)
        assert tree.found(0) == sorted(sids.tolist())
        absent = np.array([-1, distinct], np.int32)
        assert not tree.tree.delete(keys, operators[:2], absent).any()
        going = rng.permutation(sids) if way == "any" else ordered
        for start in range(0, 9_000, 1_500):
            rows = slice(start, start + 1_500)
            assert tree.tree.delete(keys, operators[rows], going[rows]).all()
            check_tree(tree.pages)
            assert tree.found(0) == sorted(going[start + 1_500 :].tolist())
        empty = tree.tree.statistics()
        assert (empty["pages"], empty["spill_pages"]) == (7, 0)


def test_deleting_joins_pages_and_lowers_the_tree() -> None:
    rng = np.random.default_rng(2)
    rows = [(OPERATORS[key % 6], int(key), int(key)) for key in rng.permutation(6000)]
    tree = Drawn()
    tree.change(*rows)
    full = tree.tree.statistics()
    assert full["height"] > 3
    tree.change(*rows[:5700], delete=True)
    left = tree.tree.statistics()
    assert left["height"] < full["height"]
    assert left["pages"] < full["pages"] / 5
    tree.change(*rows[5700:], delete=True)
    assert tree.tree.statistics()["pages"] == 7


@pytest.mark.parametrize("size", [0, 100, 256, 1000, 131_072, 4096.0, "large"])
def test_wrong_page_sizes_are_refused(size: Any) -> None:
    with pytest.raises(OptionError, match="page_bytes"):
        PBTree.build([1], [2], [3], domain=10, page_bytes=size)


def test_arrays_whose_sids_do_not_ascend_are_refused() -> None:
    arrays = PBPredicates.build(
        np.zeros(40, np.uint8), np.zeros(40, np.int64), np.arange(40, dtype=np.int32)
    ).arrays()
    older = arrays["tree"].copy()
    older[ASCENDING] = 0
    with pytest.raises(SnapshotError, match="build it again"):
        PBPredicates.from_arrays(arrays | {"tree": older})


def break_something(pages: MemoryPages, rng: np.random.Generator) -> None:
    """Change one word of a page that is in use, past what belongs to the page file."""
    words = int(pages.tree[page_words.PAGE_WORDS])
    page = int(rng.integers(1, int(pages.tree[0])))
    base = page * words
    used = [*range(5, 13), *range(16, 16 + 8 * int(pages.ints[base + page_words.COUNT]))]
    word = base + int(rng.choice(used))
    pages.ints[word] ^= np.int32(1 << int(rng.integers(0, 12)))


def test_check_notices_what_is_broken() -> None:
    """Nearly every word has a meaning; spare words of slots have none."""
    rng = np.random.default_rng(3)
    noticed = 0
    for _ in range(300):
        tree = Drawn()
        tree.change(*((OPERATORS[key % 6], key, key) for key in range(120)))
        break_something(tree.pages, rng)
        try:
            check_tree(tree.pages)
        except AssertionError:
            noticed += 1
    assert noticed > 200
