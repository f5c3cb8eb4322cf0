"""Typed values against the oracle's order, through every form that events have."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variants
from bittern.errors import EventError, OptionError
from bittern.jit import i8, i8r, i8w, kernel, u1r, u1w, u8, u8r, u8w, void
from bittern.model.events.typed.typed import (
    BOOLEAN,
    MISSING,
    NUMBER,
    OTHER,
    STRING,
    TIME,
    Typed,
    TypedReader,
    compare,
    hash_value,
    put_string,
    string_stop,
)
from oracle import _kind_and_key
from strategies import KINDS, STRINGS, TIMESTAMPS, UNWRITABLE_FLOATS

KIND_NAMES = {"number": NUMBER, "string": STRING, "boolean": BOOLEAN, "time": TIME}
NOT_COMPARABLE = 9


@kernel(void, u1r, i8r, i8r, u1r, u1r, i8r, i8r, u1r, i8w)
def _compare_all(
    kinds_a: Any,
    words_a: Any,
    ties_a: Any,
    heap_a: Any,
    kinds_b: Any,
    words_b: Any,
    ties_b: Any,
    heap_b: Any,
    out: Any,
) -> None:
    """Each of a with each of b."""
    for i in range(len(kinds_a)):
        for j in range(len(kinds_b)):
            kind = kinds_a[i]
            answer = np.int64(NOT_COMPARABLE)
            if kind == kinds_b[j] and kind not in (MISSING, OTHER):
                answer = compare(kind, words_a[i], ties_a[i], heap_a, words_b[j], ties_b[j], heap_b)
            out[i * len(kinds_b) + j] = answer


KEY = np.array([0x0123456789ABCDEF, 0xF1E2D3C4B5A69788, 0x5851F42D4C957F2D], np.uint64)


@kernel(void, u1r, i8r, i8r, u1r, u8, u8r, u8w)
def _hash_all(kinds: Any, words: Any, ties: Any, heap: Any, seed: Any, key: Any, out: Any) -> None:
    for i in range(len(kinds)):
        out[i] = hash_value(kinds[i], words[i], ties[i], heap, seed, key)


@kernel(i8, u1r, i8r, u1r, i8w, u1w, i8)
def _copy_strings(kinds: Any, ties: Any, heap: Any, new_ties: Any, target: Any, at: Any) -> Any:
    for i in range(len(kinds)):
        if kinds[i] == STRING:
            new_ties[i] = at
            room = string_stop(heap, ties[i]) - ties[i]
            end = put_string(heap, ties[i], target, at)
            at = end if end == at + room else -1
    return at


def row(typed: Typed, attribute: int = 0) -> tuple[Any, ...]:
    kinds, words, ties, heap = typed
    return kinds[attribute], words[attribute], ties[attribute], heap


def compared(ours: Typed, theirs: Typed) -> list[int]:
    """What ``compare`` says of each of ours with each of theirs."""
    a, b = row(ours), row(theirs)
    out = np.empty(len(a[0]) * len(b[0]), dtype=np.int64)
    _compare_all(*a, *b, out)
    return out.tolist()


def hashes(typed: Typed, seed: int = 7) -> list[int]:
    columns = row(typed)
    out = np.empty(len(columns[0]), dtype=np.uint64)
    _hash_all(*columns, seed, KEY, out)
    return out.tolist()


def expected(ours: list[Any], theirs: list[Any]) -> list[int]:
    """What the oracle says."""
    answers = []
    for left in map(_kind_and_key, ours):
        for right in map(_kind_and_key, theirs):
            if left is None or right is None or left[0] != right[0]:
                answers.append(NOT_COMPARABLE)
            else:
                answers.append((left[1] > right[1]) - (left[1] < right[1]))
    return answers


def kind_of(value: Any) -> int:
    if value is None:
        return MISSING
    key = _kind_and_key(value)
    return OTHER if key is None else KIND_NAMES[key[0]]


def read(events: Any, attribute: str = "v", json: Any = ()) -> Typed:
    typed, n_events, rejects = TypedReader([attribute]).read(events, json)
    assert not rejects
    assert typed.kinds.shape == typed.words.shape == typed.ties.shape == (1, n_events)
    return typed


def of(values: list[Any]) -> Typed:
    return read([{"v": value} for value in values])


def check(typed: Typed, values: list[Any], others: list[Any]) -> None:
    """These are the values: by kind, by order among themselves and others, and by hash."""
    assert typed.kinds[0].tolist() == [kind_of(value) for value in values]
    mappings = of(others)
    answers = compared(typed, mappings)
    assert answers == expected(values, others)
    assert compared(typed, typed) == expected(values, values)
    ours, theirs = hashes(typed), hashes(mappings)
    equal = np.flatnonzero(np.array(answers, dtype=np.int64) == 0).tolist()
    assert all(ours[at // len(others)] == theirs[at % len(others)] for at in equal)


# ------------------------------------------------------------------ values that are hard

_pick = st.sampled_from

#: Neighbours around every place where the representation changes. At most 33 digits: below the
#: limit beyond which numbers are one.
NUMBERS = (
    *(
        base + step
        for base in (2**53, -(2**53), 2**62, 2**63, -(2**63), 2**64)
        for step in range(-2, 3)
    ),
    *(
        2**63 - 512,
        2**63 - 513,
        2**63 - 1024,
        9223372036854776000,
        9223372036854775999,
        2**100,
        10**30,
    ),
    *(
        float(2**53),
        2.0**63,
        -(2.0**63),
        math.nextafter(2.0**63, 0),
        2.0**64,
        2.0**100,
        1e30,
        1e22,
        1e23,
    ),
    *(0, 0.0, -0.0, 5e-324, -5e-324, 1e308, 0.1, 0.3, 0.1 + 0.2, 9007199254740993.0),
    *map(
        Decimal,
        (
            *("0.1", "0.10", "0.10000000000000001", "0.1000000000000000055511151231257827"),
            *("0.099999999999999999", "0.3", "0.30000000000000004", "0.300000000000000041"),
            *("9007199254740992.5", "9007199254740993.5", "9007199254740993.00", "-0.00", "1e22"),
            *("9223372036854775807.5", "9223372036854775808.5", "9223372036854776000.1"),
            *("1e-30", "123456789012345", "12345678901234.5", "1234567890123456.7", "1e23"),
            *("18446744073709551615.5", "-9223372036854775808.5", "99999999999999999999.99"),
        ),
    ),
    *UNWRITABLE_FLOATS,
    Decimal("nan"),
    Decimal("inf"),
)


def scaled(mantissa: int, places: int) -> Decimal:
    """Exactly ``mantissa * 10**-places``, whatever the context's precision."""
    return Decimal(f"{mantissa}E{-places}")


numbers = st.one_of(
    _pick(NUMBERS),
    KINDS["number"],
    st.integers(-(10**33), 10**33),
    st.builds(scaled, st.integers(-(10**33), 10**33), st.integers(0, 33)),
    st.floats(),
)
#: Equal first 8 bytes, zeros that look like padding, and everything longer than a word.
texts = st.one_of(
    _pick(STRINGS),
    st.text("a\0", max_size=18),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.builds(
        lambda head, n, tail: head * n + tail,
        _pick(["ab", "\0", "é"]),
        st.integers(0, 40),
        _pick(["", "a", "\0", "b"]),
    ),
)
zones = _pick([None, dt.UTC, dt.timezone(dt.timedelta(hours=-7, minutes=-30))])
times = st.one_of(
    _pick(TIMESTAMPS),
    st.dates(),
    st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1), timezones=zones),
)
values = st.one_of(numbers, texts, times, st.booleans(), st.none(), st.just([1]), st.just({"x": 1}))


@given(st.lists(values, max_size=25))
def test_the_order_is_the_oracles(drawn):
    check(of(drawn), drawn, drawn)


def test_all_hard_numbers_against_each_other():
    check(of(list(NUMBERS)), list(NUMBERS), list(NUMBERS))


@given(st.lists(texts, max_size=25))
def test_strings_are_in_the_order_of_their_bytes(drawn):
    check(of(drawn), drawn, drawn)


def test_strings_longer_than_any_word_differ_in_their_last_byte():
    drawn = ["x" * 100_000 + end for end in ("", "a", "b", "a\0")]
    check(of(drawn), drawn, drawn)


def test_the_layout_is_what_it_says():
    kinds, words, ties, heap = (
        TypedReader(["a", "n.b"])
        .read([{"a": "red", "n": {"b": 2**53 + 1}}, {"a": -0.0, "n": {"b": True}}])
        .typed
    )
    assert kinds.tolist() == [[STRING, NUMBER], [NUMBER, BOOLEAN]]
    assert words[0, 0] == int.from_bytes(b"red\0\0\0\0\0", "big") - 2**63
    assert bytes(heap) == (3).to_bytes(8, "little") + b"red"
    assert words[0, 1] == 0
    assert words[1].tolist() == [int(np.float64(2.0**53).view(np.int64)), 1]
    assert ties.tolist() == [[0, 0], [2**61, 0]]
    assert [array.dtype for array in (kinds, words, ties, heap)] == [
        np.uint8,
        np.int64,
        np.int64,
        np.uint8,
    ]
    assert all(array.flags.c_contiguous for array in (kinds, words, ties))


def test_numbers_that_are_one():
    """The limits that the module's docstring names, and what is still told apart beyond them."""
    close = Decimal("0.1000000000000000000000000000000000000001")  # agrees in 39 digits
    largest = int(1.7976931348623157e308)
    ascending = [
        -math.inf,
        -(10**400),
        -largest,
        Decimal("-1e-400"),
        0,
        Decimal("1e-400"),
        Decimal("0.1"),
        close,
        largest,
        10**309,
        math.inf,
        math.nan,
    ]
    typed = of(ascending)
    answers = compared(typed, typed)
    n = len(ascending)
    assert all(answers[i * n + j] == -1 for i, j in pairwise(range(n)))
    for one, other in (
        (10**309, 10**5000),
        (Decimal("1e-400"), Decimal("1e-9999")),
        (close, Decimal(f"{close}9")),
    ):
        assert compared(of([one]), of([other])) == [0]
        assert hashes(of([one])) == hashes(of([other]))


def test_hashes_depend_on_the_seed_and_spread():
    typed = of(list(range(1000)) + [f"s{i}" for i in range(1000)] + [i / 8 for i in range(1, 8)])
    ours = hashes(typed)
    assert len(set(ours)) == len(ours)
    assert len({value % 4096 for value in ours}) > 1400  # 2007 thrown at random hit 1586 on average
    assert not set(ours) & set(hashes(typed, seed=8))


# ------------------------------------------------------------------ forms

DECIMALS = {
    pa.decimal128(15, 4): 15,
    pa.decimal128(18, 4): 18,
    pa.decimal128(33, 18): 33,
    pa.decimal128(20, 0): 20,
    pa.decimal128(30, 30): 30,
    pa.decimal256(33, 6): 33,
    pa.decimal256(12, 2): 12,
    pa.decimal128(6, -3): 6,
}


def _decimals(kind: pa.DataType, digits: int) -> Any:
    edges = _pick([0, 1, -1, 10 ** (digits - 1), 1 - 10**digits, 25 * 10 ** (digits // 2)])
    mantissas = st.one_of(edges, st.integers(1 - 10**digits, 10**digits - 1))
    short = st.integers(-(10**6), 10**6).map(lambda m: m * 10 ** max(0, digits - 8))
    small = st.one_of(mantissas, short.filter(lambda m: abs(m) < 10**digits))
    return small.map(lambda mantissa: scaled(mantissa, kind.scale))


def _ranged(bits: int, *, signed: bool) -> Any:
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    edges = [v for v in NUMBERS if isinstance(v, int) and least <= v <= most]
    return st.one_of(_pick([least, most, *edges]), st.integers(least, most))


_floats = st.one_of(st.floats(), _pick([v for v in NUMBERS if isinstance(v, float)]))
_moments = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
_seconds = _moments.map(lambda moment: moment.replace(microsecond=0))
TYPES: dict[pa.DataType, Any] = {
    pa.int8(): _ranged(8, signed=True),
    pa.int32(): _ranged(32, signed=True),
    pa.int64(): _ranged(64, signed=True),
    pa.uint32(): _ranged(32, signed=False),
    pa.uint64(): _ranged(64, signed=False),
    pa.float16(): _pick([0.5, -0.0, 1.0, math.inf, math.nan]).map(np.float16),
    pa.float32(): st.floats(width=32),
    pa.float64(): _floats,
    pa.string(): texts,
    pa.large_string(): texts,
    pa.string_view(): texts,
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.date64(): st.dates(),
    pa.timestamp("s"): _seconds,
    pa.timestamp("ms", "UTC"): _seconds.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    pa.timestamp("us"): _moments,
    pa.timestamp("us", "America/New_York"): _moments.map(lambda m: m.replace(tzinfo=dt.UTC)),
    pa.timestamp("ns"): _moments,
    pa.list_(pa.int64()): st.just([1]),
    pa.null(): st.none(),
    **{kind: _decimals(kind, digits) for kind, digits in DECIMALS.items()},
}


def as_column(array: pa.Array) -> Any:
    return "v", pa.table({"other": pa.nulls(len(array)), "v": array})


def as_batch_with_quotes(array: pa.Array) -> Any:
    return "`v.``w`", pa.record_batch({"v.`w": array})


def as_slices(array: pa.Array) -> Any:
    """Chunks that are slices of something longer."""
    if array.type == pa.string_view():  # Arrow cannot concatenate them
        return as_column(array)
    around = pa.concat_arrays([array.slice(0, 1), array, array.slice(0, 1)])
    first = min(1, len(array))
    middle = first + len(array) // 2
    chunks = [
        around.slice(first, middle - first),
        around.slice(middle, first + len(array) - middle),
    ]
    return "v", pa.table({"v": pa.chunked_array(chunks, array.type)})


def as_dictionary(array: pa.Array) -> Any:
    if array.type in (pa.float16(), pa.string_view()) or pa.types.is_nested(array.type):
        return as_column(array)
    return "v", pa.table({"v": array.dictionary_encode()})


def as_field(array: pa.Array) -> Any:
    inner = pa.StructArray.from_arrays([array], ["v"])
    return "s.t.v", pa.table({"s": pa.StructArray.from_arrays([inner], ["t"])})


def as_structs(array: pa.Array) -> Any:
    return "v", pa.StructArray.from_arrays([array], ["v"])


def as_map(array: pa.Array) -> Any:
    keys = pa.array(["v"] * len(array), pa.string())
    return "v", pa.table({"m": pa.MapArray.from_arrays(list(range(len(array) + 1)), keys, array)})


def as_map_of_structs(array: pa.Array) -> Any:
    if array.type == pa.string_view():  # Arrow cannot take some of them
        return as_map(array)
    keys = pa.array(["k"] * len(array), pa.string())
    items = pa.StructArray.from_arrays([array], ["v"])
    return "k.v", pa.MapArray.from_arrays(list(range(len(array) + 1)), keys, items)


FORMS = (
    as_column,
    as_batch_with_quotes,
    as_slices,
    as_dictionary,
    as_field,
    as_structs,
    as_map,
    as_map_of_structs,
)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@given(st.data())
def test_a_column_holds_what_it_says(kind, data):
    drawn = data.draw(st.lists(st.one_of(TYPES[kind], TYPES[kind], st.none()), max_size=8))
    others = data.draw(st.lists(values, max_size=4))
    name, events = data.draw(_pick(FORMS))(pa.array(drawn, kind))
    typed = read(events, name)
    plain = [float(value) if isinstance(value, np.float16) else value for value in drawn]
    check(typed, plain, [*plain, *others])


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12), _pick(FORMS))
def test_nanoseconds_are_a_tie(ticks, form):
    name, events = form(pa.array(ticks, pa.int64()).view(pa.timestamp("ns")))
    typed = read(events, name)
    assert typed.words[0].tolist() == [tick // 1000 for tick in ticks]
    assert typed.ties[0].tolist() == [tick % 1000 for tick in ticks]
    assert compared(typed, typed) == [(a > b) - (a < b) for a in ticks for b in ticks]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_times_too_far_away_are_as_far_as_can_be(unit):
    far = pa.array([-(2**63) + 1, -(2**62), 0, 2**62, 2**63 - 1]).view(pa.timestamp(unit))
    words = read(pa.table({"v": far})).words[0].tolist()
    assert words[0] == words[1] < -9e18 < 0 == words[2] < 9e18 < words[3] == words[4]
    days = read(pa.table({"v": pa.array([2**31 - 1], pa.int32()).view(pa.date32())}))
    assert days.words[0, 0] > 9e18


@given(
    st.lists(
        st.one_of(
            _ranged(64, signed=True),
            _floats.filter(math.isfinite),
            texts,
            st.booleans(),
            st.none(),
            st.just([1]),
            st.just({"x": 2}),
        ),
        max_size=12,
    ),
    st.booleans(),
    st.lists(values, max_size=4),
)
def test_json_holds_what_it_says(drawn, ascii_only, others):
    written = [json.dumps({"n": {"v": value}}, ensure_ascii=ascii_only) for value in drawn]
    check(read(written, "n.v"), drawn, [*drawn, *others])
    table = pa.table({"doc": pa.array(written, pa.string())})
    check(read(table, "n.v", json="doc"), drawn, [*drawn, *others])


@given(
    st.lists(
        st.one_of(
            _ranged(64, signed=True),
            _floats,
            texts,
            st.booleans(),
            st.none(),
            times,
            st.just([1]),
            *(_decimals(kind, digits) for kind, digits in DECIMALS.items() if kind.scale > 0),
        ),
        max_size=12,
    ),
    st.lists(values, max_size=4),
)
def test_variants_hold_what_they_say(drawn, others):
    column = variants.column([variants.encode({"n": {"v": value}}) for value in drawn])
    check(read(pa.table({"doc": column}), "n.v"), drawn, [*drawn, *others])


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_nanoseconds_in_variants_are_those_of_columns(ticks):
    layout = variants.Layout(keys=["v"])
    pairs = []
    for tick in ticks:
        value = variants.primitive(18, tick.to_bytes(8, "little", signed=True))
        pairs.append((bytes([2, 1, 0, 0, len(value)]) + value, variants.metadata_of(layout)))
    typed = read(pa.table({"doc": variants.column(pairs)}))
    ours = pa.table({"v": pa.array(ticks, pa.int64()).view(pa.timestamp("ns"))})
    assert compared(typed, read(ours)) == [(a > b) - (a < b) for a in ticks for b in ticks]


def test_data_frames_and_single_events():
    frame = pd.DataFrame({"v": [1.5, math.nan], "w": ["a", None]})
    typed = TypedReader(["v", "w"]).read(frame).typed
    assert typed.kinds.tolist() == [[NUMBER, MISSING], [STRING, MISSING]]
    check(read({"v": 5}), [5], [5.0, 6])
    check(read('{"v": 5}'), [5], [5.0, 6])
    check(read([{"v": np.float32(0.1)}, {"v": np.int8(3)}]), [float(np.float32(0.1)), 3], [0.1, 3])


# ------------------------------------------------------------------ which value counts, and rejects


def test_columns_come_before_maps_and_maps_before_documents():
    table = pa.table(
        {
            "doc": ['{"color": "tan", "size": 3}', '{"color": "tan", "price": 9}'],
            "m": pa.array(
                [[("price", "6"), ("color", "red")], [("color", None)]],
                pa.map_(pa.string(), pa.string()),
            ),
            "d": pa.array(
                [[("size", Decimal("1.5"))], None], pa.map_(pa.string(), pa.decimal128(5, 2))
            ),
            "price": pa.array([5, None]),
        }
    )
    typed = TypedReader(["price", "color", "size"]).read(table, json="doc").typed
    assert typed.kinds.tolist() == [[NUMBER, MISSING], [STRING, STRING], [NUMBER, MISSING]]
    for attribute, (wanted, others) in enumerate(
        [([5, None], [5]), (["red", "tan"], ["red", "tan"]), ([Decimal("1.5"), None], [1.5])]
    ):
        one = Typed(*(array[attribute : attribute + 1] for array in typed[:3]), typed.heap)
        check(one, wanted, others)


def test_a_field_of_a_column_comes_before_several_maps_of_structs():
    kind = pa.struct([("b", pa.decimal128(38, 10)), ("c", pa.string())])
    inner = [[("a", {"b": Decimal("0.5"), "c": "map"})]]
    table = pa.table(
        {
            "a": pa.array([{"b": 7}]),
            "m": pa.array(inner, pa.map_(pa.string(), kind)),
            "n": pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    check(read(table, "a.b"), [7], [7, 0.5])
    check(read(table, "a.c"), ["map"], ["map"])


def test_maps_of_structs_and_of_decimals_move_their_rows():
    kind = pa.map_(pa.string(), pa.struct([("b", pa.decimal128(38, 10)), ("c", pa.string())]))
    maps = pa.array(
        [
            [("x", {"b": Decimal(1), "c": "p"})],
            None,
            [("a", {"b": Decimal("2.5"), "c": "q"})],
            [("a", None)],
        ],
        kind,
    )
    typed = TypedReader(["a.b", "a.c", "a"]).read(pa.table({"m": maps})).typed
    assert typed.kinds.tolist() == [[0, 0, NUMBER, 0], [0, 0, STRING, 0], [0, 0, OTHER, 0]]
    decimals = pa.array(
        [None, [("v", Decimal("2.5"))], [], [("v", Decimal("12345678901234567890.5"))]],
        pa.map_(pa.string(), pa.decimal128(38, 10)),
    )
    check(read(decimals), [None, Decimal("2.5"), None, Decimal("12345678901234567890.5")], [2.5])


def test_rejects_are_those_of_encoding_and_have_no_values():
    events = [
        {"v": 1, "w": "x"},
        5,
        '{"v": 2',
        '{"v": 3}',
        '{"v": "\ud800"}',
        {"v": "\ud800", "w": 2},
        None,
    ]
    typed, n_events, rejects = TypedReader(["v", "w"]).read(events)
    assert n_events == 7
    assert [at for at, _ in rejects] == [1, 2, 4, 5]
    assert rejects[0][1] == "an event must be a mapping, not int"
    assert rejects[3][1] == "a string holds half a surrogate pair"
    assert typed.kinds.tolist() == [[NUMBER, 0, 0, NUMBER, 0, 0, 0], [STRING, 0, 0, 0, 0, 0, 0]]
    # A row whose document is broken has no values in its other columns either.
    table = pa.table({"v": ["a", "b"], "doc": ["{", "{}"]})
    typed, _, rejects = TypedReader(["v"]).read(table, json=["doc"])
    assert [at for at, _ in rejects] == [0]
    assert typed.kinds.tolist() == [[MISSING, STRING]]
    assert typed.words[0, 0] == typed.ties[0, 0] == 0


def test_what_is_no_events_is_said():
    reader = TypedReader(["v"])
    with pytest.raises(EventError, match="events must be an Arrow table"):
        reader.read(5)
    with pytest.raises(EventError, match="two columns of the events are named 'v'"):
        reader.read(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["v", "v"]))
    with pytest.raises(
        OptionError, match="json names the column 'doc', but the events have no such column"
    ):
        reader.read(pa.table({"v": [1]}), json="doc")
    with pytest.raises(OptionError, match="the attribute 'v' is asked for twice"):
        TypedReader(["v", "w", "v"])


@pytest.mark.parametrize("attributes", [[], ["v"], ["v", "w.x"]])
@pytest.mark.parametrize(
    "events",
    [[], pa.table({"v": pa.array([], pa.int64())}), pa.array([], pa.string())],
    ids=["list", "table", "texts"],
)
def test_nothing_at_all(attributes, events):
    typed, n_events, rejects = TypedReader(attributes).read(events)
    assert (n_events, rejects, typed.kinds.shape) == (0, [], (len(attributes), 0))


def test_no_attribute_in_some_events():
    typed, n_events, rejects = TypedReader([]).read([{"v": 1}, '{"v": 2}', 3])
    assert (n_events, typed.kinds.shape) == (3, (0, 3))
    assert [at for at, _ in rejects] == [2]


# ------------------------------------------------------------------ selecting and copying


@given(st.lists(values, max_size=12), st.data())
def test_taking_some_events(drawn, data):
    typed = of(drawn)
    mask = data.draw(st.lists(st.booleans(), min_size=len(drawn), max_size=len(drawn)))
    kept = [value for value, keep in zip(drawn, mask, strict=True) if keep]
    taken = typed.take(np.array(mask, dtype=np.bool_))
    check(taken, kept, drawn)
    places = data.draw(st.lists(st.integers(0, len(drawn) - 1), max_size=8)) if drawn else []
    again = typed.take(np.array(places, dtype=np.int64))
    check(again, [drawn[place] for place in places], drawn)
    assert all(array.flags.c_contiguous for array in (*taken[:3], *again[:3]))
    assert taken.heap is typed.heap


@given(st.lists(texts, max_size=12), st.integers(0, 9))
def test_strings_move_to_another_heap(drawn, start):
    typed = of([*drawn, 5])
    kinds, _, ties, heap = row(typed)
    moved = np.zeros_like(ties)
    target = np.full(start + len(heap) + 3, 255, dtype=np.uint8)
    assert _copy_strings(kinds, ties, heap, moved, target, start) == start + len(heap)
    assert set(target[:start].tolist()) | set(target[-3:].tolist()) == {255}
    other = Typed(typed.kinds, typed.words, moved.reshape(1, -1), target)
    check(other, [*drawn, 5], [*drawn, 5])
