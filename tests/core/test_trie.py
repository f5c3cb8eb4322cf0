"""The trie of prefixes against Python's own ``startswith``, on real strings."""

from __future__ import annotations

import bisect
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from answers import build
from bittern.arrays import occupied
from bittern.jit import i4w, i8, kernel
from bittern.literature.opindex.trie import TRIE, Trie, innermost
from bittern.model.rank.space import ORDERED, REVERSED, STRING, RankSpace
from effort import examples


@kernel(i8, TRIE, i8, i4w)
def _path(trie: Any, cell: Any, path: Any) -> Any:
    lows, highs, parents = trie
    n = 0
    node = innermost(lows, highs, parents, cell)
    while node >= 0:
        path[n] = node
        n += 1
        node = parents[node]
    return n


def path_of(trie: Trie, cell: int) -> list[int]:
    """The nodes that a kernel finds for a cell, the innermost first."""
    path = np.empty(len(trie), np.int32)
    return [int(node) for node in path[: _path(trie.searched, cell, path)]]


def constants(rank: RankSpace, channel: int) -> list[bytes]:
    """The strings of a channel, in order."""
    data, offsets, channels, *_ = rank.arrays.strings
    own = np.flatnonzero(channels == channel)
    return [data[offsets[i] : offsets[i + 1]].tobytes() for i in own]


def cell_of(rank: RankSpace, channel: int, value: bytes) -> int:
    """The global cell of any string, by definition."""
    strings = constants(rank, channel)
    at = bisect.bisect_left(strings, value)
    return int(rank.arrays.bases[channel]) + 2 * at + int(value in strings[at : at + 1])


def successor(prefix: bytes) -> bytes:
    """The least string above all that begin with a prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def prefix_of(rank: RankSpace, channel: int, prefix: bytes) -> tuple[int, int]:
    """The cells of all strings with a prefix, by definition."""
    return cell_of(rank, channel, prefix), cell_of(rank, channel, successor(prefix)) - 1


def node_of(trie: Trie, low: int, high: int) -> int:
    """The node of an interval, or -1."""
    return int(trie.nodes_of(np.array([low], np.int32), np.array([high], np.int32))[0])


def quoted(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def like(attribute: str, text: str, *, suffix: bool) -> str:
    """A predicate for a prefix or suffix."""
    pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"{attribute} LIKE {quoted(f'%{pattern}' if suffix else f'{pattern}%')}"


def channel_of(rank: RankSpace, attribute: str, kind: int) -> int:
    """The channel of an attribute's strings."""
    return int(rank.arrays.channels[rank.attribute_names().index(attribute), kind])


def example_rank() -> RankSpace:
    """The module's example."""
    texts = ["s LIKE 'a%'", "s LIKE 'ab%'", "s LIKE 'b%'", "s = 'abd'"]
    return build(dict(enumerate(texts))).rank


def test_the_modules_example() -> None:
    rank = example_rank()
    trie = Trie.of(rank)
    trie.check(rank.n_cells)
    assert {name: array.tolist() for name, array in trie.arrays().items()} == {
        "lows": [1, 3, 9],
        "highs": [8, 6, 10],
        "parents": [-1, 0, -1],
    }
    assert trie.depth == 2
    assert occupied(trie) == 36
    channel = channel_of(rank, "s", STRING)
    for value, nodes in ((b"abx", [1, 0]), (b"abd", [1, 0]), (b"ad", [0]), (b"cab", []), (b"", [])):
        assert path_of(trie, cell_of(rank, channel, value)) == nodes


def test_only_what_is_exactly_a_prefix_is_a_node() -> None:
    """Of all intervals of cells, those of the three prefixes and no others."""
    rank = example_rank()
    trie = Trie.of(rank)
    pairs = list(itertools.combinations_with_replacement(range(-1, rank.n_cells), 2))
    lows, highs = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    found = trie.nodes_of(lows, highs)
    nodes = {pair: n for pair, n in zip(pairs, found.tolist(), strict=True) if n >= 0}
    assert nodes == {(1, 8): 0, (3, 6): 1, (9, 10): 2}


def test_strings_that_are_only_compared_for_equality_are_no_prefixes() -> None:
    rank = build({0: "s = 'a'", 1: "s = 'b'", 2: "n < 4"}).rank
    trie = Trie.of(rank)
    assert len(trie) == 0
    assert trie.depth == 0
    trie.check(rank.n_cells)
    assert path_of(trie, 1) == []


def test_a_rank_space_without_strings() -> None:
    rank = build({0: "n < 4"}).rank
    trie = Trie.of(rank)
    trie.check(rank.n_cells)
    assert len(trie) == 0


texts = st.one_of(st.text("ab", min_size=1, max_size=5), st.text(min_size=1, max_size=3))
asked = st.lists(
    st.tuples(st.sampled_from("st"), st.sampled_from(["prefix", "suffix", "="]), texts),
    min_size=1,
    max_size=25,
)


@examples(3)
@given(asked=asked, values=st.lists(texts | st.just(""), max_size=10))
@example(asked=[("s", "prefix", "a" * n) for n in range(1, 9)], values=["a" * 7, "aab"])
@example(asked=[("s", "suffix", "é"), ("s", "prefix", "\U0010ffff")], values=["é", "\U0010ffff"])
def test_paths_are_the_prefixes_that_a_string_has(
    asked: list[tuple[str, str, str]], values: list[str]
) -> None:
    catalog = {}
    for i, (attribute, operator, text) in enumerate(asked):
        if operator == "=":
            catalog[i] = f"{attribute} = {quoted(text)}"
        else:
            catalog[i] = like(attribute, text, suffix=operator == "suffix")
    rank = build(catalog).rank
    trie = Trie.of(rank)
    trie.check(rank.n_cells)
    for attribute, operator, text in asked:
        if operator != "=":
            suffix = operator == "suffix"
            channel = channel_of(rank, attribute, REVERSED if suffix else STRING)
            prefix = text.encode()[::-1] if suffix else text.encode()
            assert node_of(trie, *prefix_of(rank, channel, prefix)) >= 0

    seen = 0
    for channel in np.flatnonzero(np.isin(rank.channel_kinds, (STRING, REVERSED))).tolist():
        strings = constants(rank, channel)
        nodes = {}
        if rank.arrays.heads[channel, ORDERED]:
            for string in strings:
                if string and successor(string) in strings:
                    nodes[string] = node_of(trie, *prefix_of(rank, channel, string))
        assert -1 not in nodes.values()
        seen += len(nodes)
        others = [value.encode() for value in values]
        for value in (*strings, *others, *(value[::-1] for value in others)):
            right = [nodes[value[:n]] for n in range(len(value), 0, -1) if value[:n] in nodes]
            assert path_of(trie, cell_of(rank, channel, value)) == right
            assert len(right) <= trie.depth
    assert seen == len(trie), "each node is the prefix of one channel"


def test_mapped_arrays() -> None:
    trie = Trie.of(example_rank())
    arrays = {name: array.copy() for name, array in trie.arrays().items()}
    for array in arrays.values():
        array.flags.writeable = False
    again = Trie.from_arrays(arrays)
    again.check(13)
    assert path_of(again, 5) == path_of(trie, 5) == [1, 0]


FAULTS = [
    ("lows", 0, -1, "begins before the axis"),
    ("lows", 2, 11, "ends before it begins"),
    ("highs", 2, 13, "past the end of the axis"),
    ("lows", 1, 1, "out of order"),
    ("highs", 1, 9, "neither nest nor are apart"),
    ("parents", 1, -1, "under the wrong one"),
    ("parents", 2, 2**31 - 1, "under the wrong one"),
]


@pytest.mark.parametrize(("name", "at", "value", "message"), FAULTS)
def test_check_finds_what_is_broken(name: str, at: int, value: int, message: str) -> None:
    arrays = {key: array.copy() for key, array in Trie.of(example_rank()).arrays().items()}
    arrays[name][at] = value
    with pytest.raises(AssertionError, match=message):
        Trie.from_arrays(arrays).check(13)
    with pytest.raises(AssertionError, match="cut off"):
        Trie.from_arrays(arrays | {name: arrays[name][:-1]}).check(13)
    with pytest.raises(AssertionError, match="32 bits"):
        Trie.from_arrays(arrays | {name: arrays[name].astype(np.int64)}).check(13)
