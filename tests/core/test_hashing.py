"""Strings and numbers that were chosen to collide in hash tables, and do not."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
from bittern.history import History
from bittern.history.passes import passes
from bittern.history.passes.groups import renew
from bittern.jit import _folded_product
from bittern.literature.counting.intervals import DistinctIntervals
from bittern.literature.predicates.key_table import KEY_SLOTS, KeyTable
from bittern.model.distinct import distinct, encoded, places_in, table_of, unified
from bittern.model.hashing import KEY_WORDS, hash_pair, hash_word, key_of, secret_key
from bittern.model.rank.tables import build_tables, find_cell
from bittern.model.strings import StringTable, hash_bytes
from flooding import (
    colliding,
    colliding_documents,
    colliding_in_arrow,
    longest_run,
    old_hash,
    probes,
)

N = 1_000


@pytest.fixture(scope="module")
def attack():
    """Strings of one home slot under the hash without a key, in a table of up to 2**24 slots."""
    return colliding(N)


def packed(texts):
    data = np.frombuffer(b"".join(texts), np.uint8)
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return data, offsets


def hashes(texts, key, seed=0):
    data, offsets = packed(texts)
    bounds = itertools.pairwise(offsets.tolist())
    return [int(hash_bytes(data, start, stop, seed, key)) for start, stop in bounds]


def test_the_attack_was_one(attack):
    assert len(set(attack)) == N
    assert len({old_hash(text, 0) & 0xFFFFFF for text in attack}) == 1


def test_what_collided_without_a_key_does_not(attack):
    table = StringTable.build(*packed(attack), 0)
    table.check()
    assert longest_run(table.as_tuple.slots) < 64
    assert probes(table.as_tuple.slots) < 16 * N


def test_an_index_of_such_constants_is_found_at_once(attack):
    texts = [text.decode() for text in attack]
    index = bittern.Index.build({i: f"a = '{text}'" for i, text in enumerate(texts)})
    strings = index.rank.arrays.strings
    assert len(strings.groups) == N
    assert longest_run(strings.slots) < 64
    found = bittern.Matcher(index).match([{"a": text} for text in texts]).to_pylist()
    assert found == [[i] for i in range(N)]


def test_names_of_attributes_are_no_way_in(attack):
    names = [f"`{text.decode()}`" for text in attack if b"`" not in text]
    index = bittern.Index.build({i: f"{name} = 1" for i, name in enumerate(names)})
    assert longest_run(index.rank.names.as_tuple.slots) < 64


def test_what_collides_in_one_table_does_not_in_the_next(attack):
    """Somebody who has learnt a key has learnt nothing: the next table has another."""
    texts = [b"%08d" % i for i in range(200_000)]
    first = StringTable.build(*packed(texts), 0).as_tuple.key
    chosen = [t for t, h in zip(texts, hashes(texts, first), strict=True) if h & 1023 == 5]
    assert len(chosen) > 100
    table = StringTable.build(*packed(chosen), 0)
    assert not np.array_equal(table.as_tuple.key, first)
    assert longest_run(table.as_tuple.slots) < 64


def test_the_key_is_that_of_the_content():
    keys = [
        StringTable.build(*packed(texts), groups).as_tuple.key.tobytes()
        for texts, groups in [
            ([b"a", b"b"], 0),
            ([b"a", b"b"], 0),
            ([b"ab"], 0),
            ([b"b", b"a"], 0),
            ([b"a", b"b"], 1),
            ([], 0),
        ]
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == len(keys) - 1
    assert key_of(np.array([1, 2])).dtype == np.uint64
    assert len({secret_key().tobytes() for _ in range(8)}) == 8


FAMILIES = {
    "short": [bytes(pair) for n in (0, 1, 2) for pair in itertools.product(b"\0\1a", repeat=n)],
    "lengths of one letter": [b"a" * n for n in range(200)],
    "lengths of zeros": [b"\0" * n for n in range(200)],
    "single bits": [
        (1 << bit).to_bytes(n, "little") for n in (8, 16, 24, 40) for bit in range(8 * n)
    ],
    "two words in turn": [
        b"".join(words)
        for words in itertools.product((b"abcdefgh", b"hgfedcba", b"\0" * 8), repeat=4)
    ],
    "all but one byte": [b"x" * at + b"y" + b"x" * (n - at) for n in range(40) for at in range(n)],
}


@pytest.mark.parametrize("name", FAMILIES)
def test_no_family_of_strings_collides_under_every_key(name):
    """What is alike in all ways that matter to the hash: words, places, lengths, groups."""
    texts = sorted(set(FAMILIES[name]))
    for _ in range(5):
        key = secret_key()
        found = [h for group in (0, 1, 7, 8) for h in hashes(texts, key, group)]
        assert len(set(found)) == len(found)
        assert len({h >> 32 for h in found}) > 0.99 * len(found)


def test_the_string_and_its_group_do_not_cancel_out():
    """Groups, lengths and words that differ in the same bits."""
    for _ in range(5):
        key = secret_key()
        found = set()
        for number in range(300):
            words = [(number ^ mask).to_bytes(8, "little") for mask in (0, 1, 8, 255)]
            found |= {h for text in words for h in hashes([text, text * 2], key, number)}
        assert len(found) == 300 * 4 * 2


def test_the_key_decides_about_collisions():
    """Strings of one home under a key have many under another, in a family of like strings."""
    texts = [b"user%06d" % i for i in range(20_000)]
    first, second = secret_key(), secret_key()
    homes = np.array(hashes(texts, first), np.uint64) & np.uint64(255)
    chosen = [texts[i] for i in np.flatnonzero(homes == homes[0])]
    assert len(chosen) > 40
    others = {h & 255 for h in hashes(chosen, second)}
    assert len(others) > len(chosen) / 3


def test_documents_whose_keys_collided_are_groups_at_once(monkeypatch):
    made = []
    monkeypatch.setattr(passes, "renew", lambda *asked: made.append(renew(*asked)) or made[-1])
    texts = [text.decode() for text in colliding_documents(N)]
    with History() as history, bittern.LiveMatcher(history=history) as matcher:
        matcher.subscribe("s", "EXISTS d (d.a = a)")
        found = matcher.match([{"a": text} for text in texts + texts[::7]]).to_pylist()
    assert found == [[]] * N + [["s"]] * len(texts[::7])
    assert made[-1].used[0] == N
    assert longest_run(made[-1].slots) < 64


#: What tables of integers were hashed with, so that a window of slots could be filled.
FIBONACCI = 0x9E3779B97F4A7C15


def chosen_integers(n, home):
    """A tenth of the first integers, those that were at home in a tenth of the slots."""
    numbers = np.arange(10 * n, dtype=np.uint64)
    homes = home(numbers) & np.uint64(4 * n - 1)
    return numbers[np.argsort(homes, kind="stable")[:n]].astype(np.int64)


def test_an_event_with_chosen_attributes_is_found_its_cells():
    """As many as were at home in a tenth of the bits, of which a quarter at most are set."""
    n = 1 << 10
    channels = np.sort(chosen_integers(n, lambda c: c * np.uint64(0x9E3779B1) >> np.uint64(16)))
    starts, table, entries = build_tables(np.array([0, n]), channels << 32 | 7)
    bits = np.unpackbits(table[:-1:2].copy().view(np.uint8), bitorder="little")
    assert int(bits.sum()) == n
    assert longest_run(bits) < 64
    assert [find_cell(starts, table, entries, 0, c) for c in channels] == [7] * n
    assert build_tables(np.array([0, n]), channels << 32)[1][-1] != table[-1]


def test_intervals_that_were_chosen_are_found_at_once():
    n = 1 << 10
    lows = chosen_integers(n, lambda c: mixed_key(c.astype(np.int64) << 32))
    intervals = DistinctIntervals(lows << 32)
    assert np.array_equal(intervals.find(lows << 32), np.arange(n))
    assert longest_run(intervals._slots, -1) < 64


def mixed_key(keys):
    mixed = keys.astype(np.uint64) * np.uint64(FIBONACCI)
    return mixed ^ mixed >> np.uint64(32)


def test_keys_of_predicates_that_were_chosen_are_found_at_once():
    n = 1 << 10
    home = lambda k: k * np.uint64(FIBONACCI) >> np.uint64(32)  # noqa: E731
    keys = chosen_integers(n, home)
    kinds, sids = np.zeros(n, np.int32), np.arange(n, dtype=np.int32)
    table = KeyTable.build(keys, kinds, sids, 1)
    assert longest_run(table.directory[:-KEY_SLOTS]) < 64
    again = KeyTable.build(keys, kinds, sids, 1)
    assert np.array_equal(table.directory, again.directory)
    table.insert(-5, np.zeros(1, np.int32), n)  # from now on the key is a secret
    assert not np.array_equal(table.directory[-KEY_SLOTS:], again.directory[-KEY_SLOTS:])
    assert longest_run(table.directory[:-KEY_SLOTS]) < 64
    table.check()


@pytest.mark.parametrize("a", [0, 1, 3, 1 << 63, (1 << 64) - 1, 0x9E3779B97F4A7C15])
@pytest.mark.parametrize("b", [0, 1, 1 << 32, (1 << 64) - 1, 0xD6E8FEB86659FD93])
def test_folded_products(a, b):
    expected = (a * b >> 64) ^ (a * b & (1 << 64) - 1)
    assert hash_word(np.uint64(a), np.uint64(b)) == expected >> 32
    assert hash_pair(np.uint64(a), np.uint64(b), np.zeros(3, np.uint64)) == expected
    assert _folded_product(a, b) == expected


def test_a_damaged_table_without_a_free_slot_does_not_hang():
    arrays = StringTable.build(*packed([b"a", b"b", b"c"]), 0).arrays()
    arrays["slots"] = np.full_like(arrays["slots"], (1 << 32) | 1)
    table = StringTable.from_arrays(arrays)
    assert table.find_batch(*packed([b"x", b"yy"]), 0).tolist() == [-1, -1]


def test_another_process_finds_everything(tmp_path, attack):
    texts = [text.decode() for text in attack[:50]]
    index = bittern.Index.build({i: f"`a.b` = '{text}'" for i, text in enumerate(texts)})
    index.save(tmp_path / "s")
    (tmp_path / "events").write_text("\n".join(texts))
    code = (
        "import sys, bittern\n"
        "matcher = bittern.Matcher(bittern.Index.open(sys.argv[1], verify=True))\n"
        "texts = open(sys.argv[2]).read().split('\\n')\n"
        "print(matcher.match([{'a.b': text} for text in texts]).to_pylist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "s", tmp_path / "events"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str([[i] for i in range(50)])
    opened = bittern.Index.open(tmp_path / "s")
    assert len(opened.rank.arrays.strings.key) == KEY_WORDS
    opened.check()


BUILD = """
import sys, tempfile, bittern
texts = {i: f"a = 'x{i % 9}' AND (b > {i} OR c = {i % 5} AND d = 'y{i}')" for i in range(60)}
ways = [{"strategy": name} for name in ("pivot", "betree", "counting", "opindex")]
for way in [*ways, {"stabbing": "grouped-filter"}]:
    with tempfile.TemporaryDirectory() as folder:
        print(bittern.Index.build(texts, **way).save(folder + "/s"))
"""


def test_the_same_subscriptions_are_the_same_snapshot_in_every_process():
    """However their tables are hashed: retried tasks and stores of snapshots rely on it."""
    run = [sys.executable, "-c", BUILD]
    told = [subprocess.run(run, capture_output=True, text=True, check=True) for _ in range(2)]
    assert told[0].stdout == told[1].stdout
    assert len(set(told[0].stdout.split())) == 5


# ------------------------------------------------------------------ what Arrow would hash

#: What hashes strings in Arrow, and where it may: of strangers' strings not more than a block of
#: events has (the terms), or integers, or the table of months.
BY_ARROW = re.compile(r"\b(dictionary_encode|index_in|unify_dictionaries|unique|value_counts)\(")
BOUNDED = {
    "engine/subscriptions.py": 1,  # ids that are integers
    "model/events/derived/elements.py": 2,  # numbers
    "model/events/derived/known.py": 1,  # integers and times
    "model/events/mistyped.py": 1,  # integers
    "model/events/derived/repeats.py": 1,  # integers and times
    "spark/sharded/building.py": 1,  # names of attributes, on the driver, once
}
TEXTS = st.lists(st.none() | st.text("aé\0", max_size=20) | st.sampled_from(["a" * 16, "b" * 40]))


def test_what_collides_in_arrow_does_not_here():
    """Of 1,000 strings with one hash in Arrow, hardly two have one under our key."""
    texts = [text.encode() for text in colliding_in_arrow(N)]
    found = hashes(texts, secret_key())
    assert len(set(texts)) == N
    assert len({h >> 32 for h in found}) > 0.99 * N
    quoted = colliding_in_arrow(N, b"'")
    assert all(text[0] == text[-1] == "'" for text in quoted)
    assert len({h >> 32 for h in hashes([text.encode() for text in quoted], secret_key())}) > 990


def test_arrow_hashes_no_strings_that_strangers_choose():
    """Its hash has no key: 160,000 constants that collide took a build from 1.2 s to 35."""
    package = Path(bittern.__file__).parent
    found = {
        str(path.relative_to(package)): len(BY_ARROW.findall(text))
        for path in sorted(package.rglob("*.py"))
        if BY_ARROW.search(text := re.sub(r"np\.unique\(", "", path.read_text(encoding="utf-8")))
    }
    assert {path: n for path, n in found.items() if not path.startswith("terms/")} == BOUNDED


@given(TEXTS, st.integers(0, 3))
def test_strings_are_numbered_as_arrow_does_it(texts, start):
    strings = pa.array(["behind", *texts], pa.string()).slice(start)
    wanted = strings.dictionary_encode(null_encoding="encode")
    codes, firsts = distinct(strings)
    assert codes.tolist() == wanted.indices.to_pylist()
    assert strings.take(pa.array(firsts)).equals(wanted.dictionary)
    table = table_of(wanted.dictionary)
    assert places_in(table, strings).tolist() == codes.tolist()
    assert places_in(table, pa.array(["nowhere"])).tolist() == [-1]


@given(st.lists(st.lists(st.text("ab", max_size=3)), min_size=1, max_size=4))
def test_codes_of_several_chunks_have_one_dictionary(parts):
    arrays = [pa.array(part, pa.large_string()) for part in parts]
    found = unified([encoded(array) for array in arrays])
    wanted = pa.chunked_array(arrays).combine_chunks().dictionary_encode()
    assert found.to_pylist() == [text for part in parts for text in part]
    assert found.dictionary.to_pylist() == wanted.dictionary.to_pylist()


def test_constants_that_collide_in_arrow_are_found():
    quoted, plain = colliding_in_arrow(N, b"'"), colliding_in_arrow(N)
    index = bittern.Index.build(
        {f"{i}": f"a = {text}" for i, text in enumerate(quoted)}
        | {f"l{i}": f"array_contains(l, '{text}')" for i, text in enumerate(plain)}
    )
    events = [{"a": text[1:-1]} for text in quoted] + [{"l": [text]} for text in plain]
    found = bittern.Matcher(index).match(events).to_pylist()
    assert found == [[f"{i}"] for i in range(N)] + [[f"l{i}"] for i in range(N)]
