"""Variants against the oracle, against Spark, and against bytes that are no variants."""

from __future__ import annotations

import json
import math
import os
import random
import struct
import subprocess
import sys
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import strategies
from answers import build, engine, expected
from bittern.errors import EventError
from bittern.language.printer import print_expression
from bittern.model.events.typed.typed import MISSING, TypedReader
from bittern.model.events.variant.values import REJECT_REASONS
from variants import (
    FUZZ_CATALOG,
    FUZZED,
    MARKED,
    Layout,
    column,
    encode,
    mangled,
    metadata_of,
    primitive,
)

if TYPE_CHECKING:
    from bittern.language.syntax import Expression

layouts = st.builds(
    Layout,
    extra=st.integers(0, 3),
    large=st.booleans(),
    backwards=st.booleans(),
    long_strings=st.booleans(),
    keys=st.lists(st.sampled_from(["a", "y.z", "z", "unheard of", "n", "é"]), unique=True),
)


@given(
    strategies.catalogs(strategies.free_expressions(2), max_size=10),
    st.lists(st.tuples(strategies.free_events(), layouts), max_size=8),
)
def test_variants_say_what_mappings_say(
    catalog: dict[str, Expression], drawn: list[tuple[dict[str, Any], Layout]]
) -> None:
    texts = {name: print_expression(tree) for name, tree in catalog.items()}
    events = [event for event, _ in drawn]
    right = expected(texts, events)
    matcher = bittern.Matcher(build(texts))
    variants = column([encode(event, layout) for event, layout in drawn])
    for form in (pa.table({"v": variants}), variants):
        matches = matcher.match(form)
        assert matches.to_pylist() == right
        assert matches.rejects == []
        assert matches.mistyped == matcher.match(events).mistyped


def test_wide_objects() -> None:
    """More than 255 fields, and a dictionary that needs offsets of two bytes."""
    event = {f"attribute {i}": i for i in range(1000)} | {"deep": {"x": {"y": "z" * 100}}}
    catalog = {"last": "`attribute 999` = 999", "deep": "deep.x.y LIKE 'zz%' AND deep IS NOT NULL"}
    value, metadata = encode(event)
    assert engine(catalog, column([(value, metadata)])) == [["last", "deep"]]


# ------------------------------------------------------------------ single values


def of_bytes(content: bytes) -> tuple[bytes, bytes]:
    """The variant whose field ``a`` has this encoding."""
    layout = Layout(keys=["a"])
    return b"\x02\x01\x00\x00" + bytes([len(content)]) + content, metadata_of(layout)


def nanoseconds(ticks: int) -> bytes:
    return ticks.to_bytes(8, "little", signed=True)


def wide_decimal(mantissa: int, places: int, kind: int = 10) -> bytes:
    size = {8: 4, 9: 8, 10: 16}[kind]
    return primitive(kind, bytes([places]) + mantissa.to_bytes(size, "little", signed=True))


TICK = "TIMESTAMP '1970-01-01 00:00:00.000001'"
SINGLE: list[tuple[str, bytes, str, bool | None]] = [
    ("a float32 is the float64 it widens to", struct.pack("<f", 0.1), "a = 0.1", False),
    ("widened exactly", struct.pack("<f", 0.1), "a = 0.10000000149011612e0", True),
    ("a float32 of few digits", struct.pack("<f", -2.5), "a = -2.5", True),
    ("the least float32", struct.pack("<f", 1e-45), "a = 1.401298464324817e-45", True),
    ("the greatest float32", struct.pack("<f", 3.4028235e38), "a > 3.40282e38", True),
    ("infinity", struct.pack("<f", -math.inf), "a < -1e308", True),
    ("NaN", struct.pack("<f", math.nan), "a > 1e308", True),
    ("minus zero", struct.pack("<f", -0.0), "a = 0", True),
]
SINGLE = [(name, primitive(14, content), text, truth) for name, content, text, truth in SINGLE]
SINGLE += [
    ("a double", primitive(7, struct.pack("<d", 0.1)), "a = 0.1", True),
    ("int8", primitive(3, b"\xff"), "a = -1", True),
    ("int16", primitive(4, b"\x00\x80"), "a = -32768", True),
    ("int32", primitive(5, b"\x00\x00\x00\x80"), "a = -2147483648", True),
    ("int64", primitive(6, nanoseconds(-(2**63))), "a = -9223372036854775808", True),
    ("a decimal of 38 digits", wide_decimal(10**38 - 1, 38), "a < 1", True),
    ("it is not one", wide_decimal(10**38 - 1, 38), "a >= 1", False),
    ("below minus one", wide_decimal(-(10**38) + 1, 37), "a < -9.99", True),
    ("equal after many zeros", wide_decimal(25 * 10**30, 31), "a = 2.5", True),
    ("almost equal", wide_decimal(25 * 10**30 + 1, 31), "a = 2.5", False),
    ("just above", wide_decimal(25 * 10**30 + 1, 31), "a > 2.5", True),
    ("just below", wide_decimal(-25 * 10**30 - 1, 31), "a < -2.5", True),
    ("17 digits", wide_decimal(84442185152504812, 17, 9), "a = 0.84442185152504812", True),
    ("16 of them", wide_decimal(84442185152504812, 17, 9), "a > 0.8444218515250481", True),
    ("small with many places", wide_decimal(-3, 30, 8), "a < 0", True),
    ("zero with many places", wide_decimal(0, 30, 8), "a = 0", True),
    ("an integer with places", wide_decimal(-700, 2, 8), "a = -7", True),
    ("an integer beyond 64 bits", wide_decimal(2**63, 0), "a > 9223372036854775807", True),
    ("far below", wide_decimal(-(2**100), 0), "a < -9223372036854775808", True),
    ("whole microseconds", primitive(18, nanoseconds(1000)), f"a = {TICK}", True),
    ("between microseconds", primitive(19, nanoseconds(1001)), f"a = {TICK}", False),
    ("after the first", primitive(19, nanoseconds(1001)), f"a > {TICK}", True),
    ("before the second", primitive(18, nanoseconds(-1)), "a < DATE '1970-01-01'", True),
    ("a day beyond all years", primitive(11, b"\xff\xff\xff\x7f"), "a > DATE '9999-12-31'", True),
    ("a binary", primitive(15, b"\x01\x00\x00\x00x"), "a = 'x'", None),
    ("a time of day", primitive(17, nanoseconds(5)), "a = 5", None),
    ("a UUID", primitive(20, bytes(16)), "a = ''", None),
    ("a UUID is there", primitive(20, bytes(16)), "a IS NOT NULL", True),
    ("an array", b"\x03\x01\x00\x02\x0c\x01", "a = 1", None),
    ("an array is there", b"\x03\x00\x00", "a IS NULL", False),
    ("null", primitive(0), "a IS NULL", True),
    ("a long string of no byte", primitive(16, bytes(4)), "a = ''", True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "text", "truth"), [case[1:] for case in SINGLE], ids=[case[0] for case in SINGLE]
)
def test_single_values(content: bytes, text: str, *, truth: bool | None) -> None:
    catalog = {"yes": text, "no": f"NOT ({text})", "other": "b = 1"}
    right = {True: ["yes"], False: ["no"], None: []}[truth]
    assert engine(catalog, column([of_bytes(content)])) == [right]
    above = {name: own.replace("a ", "x.a ") for name, own in catalog.items()}
    layout = Layout(keys=["a", "x"])
    inner = of_bytes(content)[0]
    outer = b"\x02\x01\x01\x00" + bytes([len(inner)]) + inner
    assert engine(above, column([(outer, metadata_of(layout))])) == [right]


@given(
    st.lists(st.integers(-(10**38) + 1, 10**38 - 1), min_size=1, max_size=8),
    st.integers(0, 38),
    st.data(),
)
def test_long_decimals_compare_exactly(
    mantissas: list[int], places: int, data: st.DataObject
) -> None:
    """Constants of 18 digits that begin as the values do, and one step beside them."""
    values = [Decimal((int(m < 0), tuple(map(int, str(abs(m)))), -places)) for m in mantissas]
    texts = {}
    for i, value in enumerate(values):
        whole_digits = max(1, value.adjusted() + 1)
        if whole_digits > 17:
            continue
        unit = Decimal(1).scaleb(whole_digits - 18)
        constant = value.quantize(unit, ROUND_FLOOR) + unit * data.draw(st.integers(-1, 2))
        if len(constant.as_tuple().digits) <= 18:
            texts[f"= {i}"], texts[f"< {i}"] = f"a = {constant:f}", f"a < {constant:f}"
    variants = column([encode({"a": value}) for value in values])
    assert engine(texts, variants) == expected(texts, [{"a": value} for value in values])


# ------------------------------------------------------------------ columns


def test_only_marked_structs_are_variants() -> None:
    pair = encode({"a": 1})
    plain = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    catalog = {"a": "a = 1", "value": "v.value IS NOT NULL", "v": "v IS NOT NULL"}
    assert engine(catalog, pa.table({"v": column([pair])})) == [["a"]]
    assert engine(catalog, pa.table({"v": column([pair], plain)})) == [["value", "v"]]
    named = pa.field("v", plain, metadata={b"ARROW:extension:name": b"arrow.parquet.variant"})
    table = pa.table([column([pair], plain)], schema=pa.schema([named]))
    assert engine(catalog, table) == [["a"]]
    large = pa.struct([pa.field(f.name, pa.large_binary(), metadata=f.metadata) for f in MARKED])
    assert engine(catalog, pa.table({"v": column([pair], large)})) == [["a"]]


def test_a_variant_inside_a_struct_or_a_map_has_no_kind() -> None:
    pair = column([encode({"a": 1}), None])
    catalog = {"there": "st.v IS NOT NULL", "value": "st.v.value IS NOT NULL", "one": "st.v = 1"}
    table = pa.table({"st": pa.StructArray.from_arrays([pair], fields=[pa.field("v", MARKED)])})
    assert engine(catalog, table) == [["there"], []]
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["k", "k"]), pair)
    catalog = {"there": "k IS NOT NULL", "value": "k.value IS NOT NULL", "one": "k = 1"}
    assert engine(catalog, pa.table({"m": maps})) == [["there"], []]


def test_explain_does_not_pretend_to_read_variants() -> None:
    with pytest.raises(EventError, match="variant"):
        bittern.explain(build({"s": "a = 1"}), pa.table({"v": column([encode({"a": 1})])}), "s")


def test_nulls_slices_and_chunks() -> None:
    variants = column([encode({"a": i}) if i % 3 else None for i in range(9)])
    table = pa.table({"v": variants, "b": list(range(9))})
    catalog = {"a": "a >= 4", "b": "b < 5", "none": "a IS NULL"}
    events = [{"a": i if i % 3 else None, "b": i} for i in range(9)]
    right = expected(catalog, events)
    chunks = pa.concat_tables([table.slice(i, 2) for i in range(0, 9, 2)])
    assert engine(catalog, table) == engine(catalog, chunks) == right
    assert engine(catalog, table.slice(2, 5)) == right[2:7]
    assert engine(catalog, table.to_struct_array()) == right
    assert engine(catalog, table.slice(0, 0)) == []


def test_columns_then_maps_then_documents() -> None:
    variants = column([encode(event) for event in ({"a": 4, "b": 4, "c": 4, "d": 4}, {"d": None})])
    others = column([encode(event) for event in ({"d": 5, "e": 5}, {"d": 5, "b": 5, "e": 5})])
    table = pa.table(
        {
            "last": others,
            "a": pa.array([1, None]),
            "m": pa.array([[("b", 2), ("a", 2)], None], pa.map_(pa.string(), pa.int64())),
            "text": ['{"c": 3, "b": 3, "e": null}', None],
            "v": variants,
        }
    )
    names = ["m", "a", "text", "v", "last"]
    catalog = {f"{name}{i}": f"{name} = {i}" for name in "abcde" for i in range(1, 6)}
    index = build(catalog)
    matches = bittern.Matcher(index).match(table.select(names), json="text")
    assert matches.to_pylist() == [["a1", "b2", "c3", "d4", "e5"], ["b5", "d5", "e5"]]
    assert matches.rejects == matches.mistyped == []


# ------------------------------------------------------------------ what cannot be read


BAD: list[tuple[str, bytes | None, bytes | None, int]] = [
    ("a scalar", primitive(3, b"\x05"), None, 1),
    ("an array", b"\x03\x00\x00", None, 1),
    ("a null of JSON", primitive(0), None, 1),
    ("no value", b"", None, 2),
    ("no metadata", None, b"", 2),
    ("another version", None, b"\x02\x01\x00\x01a", 2),
    ("metadata cut off", None, b"\x01\x01\x00", 2),
    ("a key behind the metadata", None, b"\x01\x01\x00\x02a", 2),
    ("keys that go back", None, b"\x01\x01\x05\x01a", 2),
    ("a key that is not there", b"\x02\x01\x07\x00\x01\x00", None, 2),
    ("an object cut off", b"\x02\x01\x00", None, 2),
    ("more fields than bytes", b"\x02\xff\x00\x00\x01\x00", None, 2),
    ("a field behind the object", b"\x02\x01\x00\x05\x01\x00", None, 2),
    ("an object behind the value", b"\x02\x01\x00\x00\xff\x00", None, 2),
    ("an integer cut off", b"\x02\x01\x00\x00\x03\x18\x00\x00", None, 2),
    ("a string cut off", b"\x02\x01\x00\x00\x02\x11a", None, 2),
    ("places beyond 38", of_bytes(wide_decimal(1, 39))[0], None, 2),
    ("text that is not UTF-8", of_bytes(b"\x05\xff")[0], None, 4),
    ("a type that is not known", of_bytes(primitive(21, b"\x00"))[0], None, 5),
]


@pytest.mark.parametrize(
    ("value", "metadata", "code"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_what_is_no_variant_is_rejected_alone(
    value: bytes | None, metadata: bytes | None, code: int
) -> None:
    good = encode({"a": 1})
    bad = (good[0] if value is None else value, good[1] if metadata is None else metadata)
    table = pa.table({"v": column([good, bad, good]), "b": [1, 1, 1]})
    matches = bittern.Matcher(build({"a": "a = 1", "b": "b = 1", "none": "b IS NULL"})).match(table)
    assert matches.rejects == [(1, REJECT_REASONS[code])]
    assert matches.to_pylist() == [["a", "b"], [], ["a", "b"]]


def nested(depth: int) -> tuple[bytes, bytes]:
    event: Any = 1
    for _ in range(depth):
        event = {"a": event}
    return encode(event)


def test_depth() -> None:
    names = [".".join(["a"] * parts) for parts in (64, 70)]
    matcher = bittern.Matcher(build({"deep": f"{names[0]} = 1", "top": "a IS NOT NULL"}))
    variants = column([nested(64), nested(65), nested(3)])
    assert matcher.match(variants).to_pylist() == [["deep", "top"], ["top"], ["top"]]
    # No subscription has such a path, but what is on disk may.
    reading = TypedReader([names[0], names[1], "a"]).read(variants)
    assert (reading.typed.kinds != MISSING).tolist() == [
        [True, False, False],
        [False, False, False],
        [True, False, True],
    ]
    assert reading.rejects == [(1, REJECT_REASONS[3])]
    # Where no path in use leads, nobody looks.
    shallow = bittern.Matcher(build({"top": "a IS NOT NULL"}))
    assert shallow.match(column([nested(100)])).to_pylist() == [["top"]]


def test_fields_that_share_their_bytes_do_not_multiply() -> None:
    """Each object names the next one 200 times: 200 ** 30 fields, if somebody counted them."""
    value = primitive(3, b"\x01")
    for _ in range(30):
        many = 200
        value = (
            b"\x06"
            + bytes([many])
            + bytes(many)
            + bytes(2 * many)
            + (len(value).to_bytes(2, "little") + value)
        )
    metadata = metadata_of(Layout(keys=["a"]))
    matcher = bittern.Matcher(build({"deep": f"{'.'.join(['a'] * 30)} = 1"}))
    matches = matcher.match(column([(value, metadata)]))
    assert matches.rejects == [(0, REJECT_REASONS[2])]


def test_mangled_variants_are_read_or_rejected_alone() -> None:
    generator = random.Random(5)
    good = encode(FUZZED[0])
    matcher = bittern.Matcher(build(FUZZ_CATALOG))
    right = matcher.match(column([good])).to_pylist()[0]
    rejected = 0
    for _ in range(60):
        batch = [good if i % 4 == 0 else mangled(generator) for i in range(200)]
        matches = matcher.match(column(batch))
        found = matches.to_pylist()
        assert found[::4] == [right] * 50
        gone = {row for row, _ in matches.rejects}
        assert all(found[row] == [] for row in gone)
        assert not gone & {row for row, _ in matches.mistyped}
        rejected += len(gone)
    assert 1_000 < rejected < 8_000  # some are readable after all


IN_PLAIN_PYTHON = """
import random
import bittern
from variants import FUZZ_CATALOG, column, mangled

generator = random.Random(6)
matcher = bittern.Matcher(bittern.Index.build(FUZZ_CATALOG))
variants = [mangled(generator) for _ in range(200)]
variants += [(generator.randbytes(9), generator.randbytes(9)) for _ in range(50)]
variants += [(b"\\x02" + generator.randbytes(9), b"\\x01\\x01\\x00\\x01a") for _ in range(100)]
from bittern.model.events.objects import read_variants

for variant in variants:  # one by one: what is read behind its end raises IndexError
    read_variants(column([variant]), matcher.index.encoder.table)
print("done", len(variants))
"""


def test_nothing_is_read_out_of_bounds() -> None:
    """As plain Python, where NumPy checks every index; compiled code would read on."""
    folder = str(Path(__file__).parents[1])
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": folder}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IN_PLAIN_PYTHON],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "done 350\n", done.stderr


# ------------------------------------------------------------------ Spark's own

JSON_TEXTS = [
    '{"n": 5, "x": 1.5, "s": "abc", "b": true, "st": {"i": 1, "s": "a", "deep": {"f": 0.5}}}',
    '{"n": -9223372036854775808, "x": 1e300, "s": "", "b": false, "st": {}}',
    '{"n": null, "x": 0.1, "s": "\\u00e9\\ud83d\\ude00", "st": null, "t": [1, {"n": 3}]}',
    '{"n": 127, "x": 100, "s": "' + "long " * 30 + '"}',
    '{"n": 32768, "x": -0.25, "st": {"i": 2147483648, "s": "ab"}, "y.z": 4}',
    '{"n": "5", "x": true, "s": 5, "b": "true", "st": [1]}',
    "{}",
    '{"x": 12345678.125, "n": 3.0, "more": {"than": {"needed": [1, 2, 3]}}}',
    "[1, 2]",
    '"text"',
    "5",
    "null",
]
JSON_CATALOG = {
    "n": "n >= 5 OR n = -9223372036854775808",
    "n string": "n = '5'",
    "n null": "n IS NULL",
    "x": "x = 0.1 OR x > 99 OR x = 12345678.125",
    "x low": "x < 1.5",
    "s": "s LIKE 'a%' OR s LIKE '%long ' OR s = 'é😀'",
    "s pattern": "s RLIKE '^$|long l'",
    "b": "b",
    "not b": "NOT b",
    "i": "st.i IN (1, 2147483648)",
    "deep": "st.deep.f BETWEEN 0.25 AND 0.5",
    "st": "st IS NOT NULL",
    "odd": "`y.z` = 4",
    "t": "t IS NOT NULL",
    "more": "more.than IS NOT NULL AND more.than.needed IS NOT NULL",
}


def in_a_task(frame: Any, catalog: dict[str, str]) -> tuple[Any, Any, Any]:
    """Matches, rejects, mistyped in a Python worker: ``toArrow`` refuses null variants."""

    def answers(batches: Any) -> Any:
        matcher = bittern.Matcher(bittern.Index.build(catalog))
        for batch in batches:
            matches = matcher.match(batch)
            answer = [matches.to_pylist(), matches.rejects, matches.mistyped]
            yield pa.record_batch({"answer": [json.dumps(answer)]})

    (row,) = frame.coalesce(1).mapInArrow(answers, "answer string").collect()
    found, rejects, mistyped = json.loads(row.answer)
    return found, [tuple(each) for each in rejects], [tuple(each) for each in mistyped]


@pytest.mark.spark
def test_sparks_variants_of_json(spark: Any) -> None:
    texts = [*JSON_TEXTS, None]
    frame = spark.createDataFrame([(text,) for text in texts], "doc string")
    by_text = bittern.Matcher(build(JSON_CATALOG)).match(frame.toArrow(), json="doc")
    found, rejects, mistyped = in_a_task(frame.selectExpr("parse_json(doc) AS v"), JSON_CATALOG)
    events = [json.loads(text) if text else None for text in texts]
    unread = {8, 9, 10, 11}
    right = [[] if row in unread else ids for row, ids in enumerate(expected(JSON_CATALOG, events))]
    assert by_text.to_pylist() == found == right
    assert [row for row, _ in by_text.rejects] == [row for row, _ in rejects] == sorted(unread)
    assert by_text.mistyped == mistyped
    assert [row for row, _ in mistyped] == [5]


TYPED_COLUMNS = {
    "i1": "CAST(id - 3 AS tinyint)",
    "i2": "CAST((id - 3) * 1000 AS smallint)",
    "i4": "CAST((id - 3) * 100000 AS int)",
    "i8": "(id - 3) * 10000000000",
    "f4": "CAST((id - 3) / 3 AS float)",
    "f8": "CAST((id - 3) / 3 AS double)",
    "d4": "CAST((id - 3) * 1.25 AS decimal(9, 2))",
    "d8": "CAST((id - 3) * 1.25 AS decimal(18, 10))",
    "d16": "CAST((id - 3) * 1.25 AS decimal(38, 20))",
    "huge": "CAST((id - 3) AS decimal(38, 0)) * 10000000000000000000",
    "s": "repeat('ab', CAST(id * 20 AS int))",
    "b": "id % 2 = 0",
    "day": "date_add(DATE '2024-01-01', CAST(id - 3 AS int))",
    "t": "timestamp_micros(1704067200000000 + id - 3)",
    "ntz": "CAST(timestamp_micros(1704067200000000 + id - 3) AS timestamp_ntz)",
    "bytes": "CAST('x' AS binary)",
    "list": "array(id)",
    "st": "named_struct('i', id, 'deep', named_struct('s', CAST(id AS string)))",
    "gone": "CAST(NULL AS int)",
}
TYPED_CATALOG = {
    f"{name} {operator}": f"{name} {operator} {literal}"
    for names, literal in {
        "i1 i2 i4 i8 huge": "0",
        "f4 f8": "0.3333333333333333",
        "d4 d8 d16": "1.25",
        "s": "'abababababababababababababababababababab'",
        "day": "DATE '2024-01-01'",
        "t ntz": "TIMESTAMP '2024-01-01 00:00:00.000001'",
        "st.i": "4",
        "st.deep.s": "'4'",
    }.items()
    for name in names.split()
    for operator in ("<", "=", ">")
} | {
    "b": "b",
    "f4 exact": "f4 = 0.3333333432674408e0",
    "huge exact": "huge > 1.5e19",
    "there": "bytes IS NOT NULL AND list IS NOT NULL AND st IS NOT NULL AND gone IS NULL",
}


@pytest.mark.spark
def test_sparks_variants_of_typed_values(spark: Any) -> None:
    """The same rows as columns and as ``to_variant_object`` of them, here and in a task."""
    frame = spark.range(8).selectExpr(
        *(f"{text} AS {name}" for name, text in TYPED_COLUMNS.items())
    )
    variant = "to_variant_object(struct(*)) AS v"
    matcher = bittern.Matcher(build(TYPED_CATALOG))
    right = matcher.match(frame.toArrow()).to_pylist()
    assert sum(map(len, right)) > 100
    assert matcher.match(frame.selectExpr(variant).toArrow()).to_pylist() == right

    assert in_a_task(frame.selectExpr(variant), TYPED_CATALOG) == (right, [], [])


@pytest.mark.spark
def test_sparks_casts_to_variant(spark: Any) -> None:
    """Variants inside an object, maps, NULL and what is no object."""
    sql = """
        SELECT to_variant_object(named_struct(
            'a', CAST(1.50BD AS variant), 'b', CAST('x' AS variant),
            'c', CAST(DATE '2024-01-01' AS variant), 'd', CAST(NULL AS variant))) AS v
        UNION ALL SELECT to_variant_object(map('a', 1.5D))
        UNION ALL SELECT CAST(NULL AS variant)
        UNION ALL SELECT CAST(array(1) AS variant)
    """
    catalog = {"a": "a = 1.5", "b": "b = 'x'", "c": "c = DATE '2024-01-01'", "d": "d IS NULL"}
    found, rejects, mistyped = in_a_task(spark.sql(sql), catalog)
    assert found == [["a", "b", "c", "d"], ["a", "d"], ["d"], []]
    assert rejects == [(3, REJECT_REASONS[1])]
    assert mistyped == []
