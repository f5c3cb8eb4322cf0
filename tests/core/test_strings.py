"""The string table against a dictionary, and Arrow's string arrays as flat bytes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import EventError, SnapshotError
from bittern.model.strings import (
    StringTable,
    arrow_strings,
    big_endian_prefix,
    compare_bytes,
    hash_bytes,
    same_bytes,
)

KEY = np.array([0x0123456789ABCDEF, 0xF1E2D3C4B5A69788, 0x5851F42D4C957F2D], np.uint64)

# Few letters and all lengths around a word's, so that equal prefixes and whole twins are common.
strings = st.binary(max_size=20) | st.text(alphabet="ab", max_size=18).map(str.encode)
keys = st.tuples(st.integers(-2, 2), strings)


def packed(texts):
    data = np.frombuffer(b"".join(texts), np.uint8)
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return data, offsets


def built(pairs):
    return StringTable.build(
        *packed([text for _, text in pairs]), np.array([group for group, _ in pairs], np.int32)
    )


def found(table, pairs):
    groups = np.array([group for group, _ in pairs], np.int32)
    return table.find_batch(*packed([text for _, text in pairs]), groups).tolist()


@given(st.lists(keys, max_size=60), st.lists(keys, max_size=60))
def test_it_is_a_dictionary_in_which_the_first_twin_wins(pairs, others):
    expected = {}
    for index, pair in enumerate(pairs):
        expected.setdefault(pair, index)
    table = built(pairs)
    table.check()
    assert len(table) == len(pairs)
    asked = pairs + others
    assert found(table, asked) == [expected.get(pair, -1) for pair in asked]
    assert [table.find_one(text, group) for group, text in asked] == found(table, asked)


def test_many_strings_are_all_found_and_no_others():
    texts = [b"%d" % i for i in range(30_000)]
    table = StringTable.build(*packed(texts), 3)
    table.check()
    assert np.array_equal(table.find_batch(*packed(texts), 3), np.arange(30_000))
    assert (table.find_batch(*packed(texts), 4) == -1).all()
    assert (table.find_batch(*packed([b"x" + text for text in texts]), 3) == -1).all()


def test_an_empty_table_finds_nothing():
    table = StringTable.build(*packed([]), 0)
    table.check()
    assert found(table, [(0, b""), (0, b"a")]) == [-1, -1]
    assert found(table, []) == []


def test_it_goes_to_disk_and_back_as_mapped_arrays(tmp_path):
    pairs = [(0, b"red"), (0, b"blue"), (7, b"red"), (7, b"")]
    table = built(pairs)
    arrays = table.arrays()
    assert table.nbytes == sum(array.nbytes for array in arrays.values())
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    mapped = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in arrays}
    opened = StringTable.from_arrays(mapped)
    opened.check()
    assert np.shares_memory(opened.as_tuple.slots, mapped["slots"])
    assert found(opened, [*pairs, (1, b"red")]) == [0, 1, 2, 3, -1]


def test_its_arrays_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        built([(0, b"a")]).arrays()["data"][0] = 0


def one_less(array):
    return array[:-1]


def emptied(array):
    return np.zeros_like(array)


def filled(array):
    return np.full_like(array, (1 << 32) | 1)


def backwards(array):
    return array[::-1].copy()


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("groups", one_less, "offsets and groups disagree"),
        ("slots", one_less, "power of two"),
        ("data", one_less, "miss some bytes"),
        ("offsets", backwards, "miss some bytes"),
        ("slots", emptied, "not found"),
        ("slots", filled, "more than half"),
        ("slots", lambda slots: np.where(slots > 0, slots | 255, 0), "points nowhere"),
        ("slots", lambda slots: np.where(slots > 0, slots >> 32 << 32 | 1, 0), "two slots"),
        ("groups", lambda groups: groups + 1, "not found"),
        ("data", emptied, "not found"),
    ],
)
def test_damage_is_noticed(name, damage, message):
    arrays = built([(0, b"red"), (0, b"blue"), (7, b"red"), (7, b"green")]).arrays()
    arrays[name] = damage(arrays[name])
    with pytest.raises(SnapshotError, match=message):
        StringTable.from_arrays(arrays).check()


@given(strings, strings)
def test_bytes_are_ordered_as_python_orders_them(a, b):
    data_a, data_b = np.frombuffer(b"??" + a, np.uint8), np.frombuffer(b"?" + b, np.uint8)
    expected = (a > b) - (a < b)
    assert compare_bytes(data_a, 2, 2 + len(a), data_b, 1, 1 + len(b)) == expected
    prefix_a = big_endian_prefix(data_a, 2, 2 + len(a))
    assert prefix_a == int.from_bytes(a[:8].ljust(8, b"\0"), "big")
    if len(a) == len(b):
        assert same_bytes(data_a, 2, data_b, 1, len(a)) == (a == b)


@given(st.binary(max_size=30), st.binary(max_size=9), st.binary(max_size=9))
def test_a_hash_depends_on_the_string_alone(text, before, behind):
    alone, among = (np.frombuffer(t, np.uint8) for t in (text, before + text + behind))
    start, stop = len(before), len(before) + len(text)
    assert hash_bytes(alone, 0, len(text), 5, KEY) == hash_bytes(among, start, stop, 5, KEY)


def test_every_bit_of_a_string_its_length_and_seed_change_about_half_of_the_hash():
    for length in range(25):
        text = np.arange(length, dtype=np.uint8)
        original = hash_bytes(text, 0, length, 1, KEY)
        longer = np.append(text, np.uint8(0))
        changed = [hash_bytes(text, 0, length, 2, KEY), hash_bytes(longer, 0, length + 1, 1, KEY)]
        for bit in range(8 * length):
            other = text.copy()
            other[bit // 8] ^= 1 << bit % 8
            changed.append(hash_bytes(other, 0, length, 1, KEY))
        distances = [(int(original) ^ int(other)).bit_count() for other in changed]
        assert min(distances) >= 8
        assert 26 <= np.mean(distances) <= 38 or length < 3


def test_both_halves_of_hashes_spread_evenly():
    texts = [b"user%06d" % i for i in range(20_000)]
    data, offsets = packed(texts)
    hashes = np.array([hash_bytes(data, a, b, 0, KEY) for a, b in pairwise(offsets)], np.uint64)
    for part in (hashes & np.uint64(1023), hashes >> np.uint64(54)):
        counts = np.bincount(part.astype(np.int64), minlength=1024)
        assert counts.max() < 60  # 20 expected, standard deviation 4.4
        assert counts.min() > 0


TEXTS = ["", "red", None, "grün", "a\0b", None, "x" * 40]


def arrow_array(kind):
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or kind == pa.binary_view():
        return pa.array([None if t is None else t.encode() for t in TEXTS], kind)
    if pa.types.is_dictionary(kind):
        return pa.array(TEXTS, pa.string()).dictionary_encode().cast(kind)
    return pa.array(TEXTS, kind)


KINDS = [
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.string_view(),
    pa.binary_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.large_string()),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(("start", "stop"), [(0, 7), (1, 5), (3, 5), (2, 3), (7, 7)])
def test_arrow_strings_of_every_kind_and_slice(kind, start, stop):
    data, offsets, valid = arrow_strings(arrow_array(kind)[start:stop])
    assert (data.dtype, offsets.dtype) == (np.uint8, np.int64)
    expected = TEXTS[start:stop]
    if None in expected:
        assert valid.tolist() == [text is not None for text in expected]
    else:
        assert valid is None
    actual = [bytes(data[a:b]) for a, b in pairwise(offsets)]
    for text, text_bytes in zip(expected, actual, strict=True):
        assert text is None or text.encode() == text_bytes


@pytest.mark.parametrize("kind", KINDS[:4], ids=str)
def test_arrow_bytes_are_not_copied(kind):
    array = arrow_array(kind)[2:]
    data, offsets, _ = arrow_strings(array)
    assert data.ctypes.data == array.buffers()[2].address
    if kind in (pa.large_string(), pa.large_binary()):
        assert offsets.ctypes.data == array.buffers()[1].address + 2 * 8


def test_arrow_extension_types_give_their_storage():
    data, offsets, valid = arrow_strings(pa.array(['{"a":1}'], pa.json_()))
    assert (bytes(data), offsets.tolist(), valid) == (b'{"a":1}', [0, 7], None)


@pytest.mark.parametrize("values", [[1, 2], [["a"]], [None]])
def test_other_arrow_types_are_an_error(values):
    with pytest.raises(EventError, match="expected strings"):
        arrow_strings(pa.array(values))
