"""Paths into maps, lists and structs, in every form that events have, against oracle and Spark.

One event of these tests is a mapping; ``FORMS`` has what else it can be: a table of typed columns,
JSON text, a column of it, a variant, and a document of a history. Spark itself judges the tables.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import oracle
import strategies
from bittern.errors import LimitError, SubscriptionError
from bittern.history.documents.documents import Documents
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.syntax import Compare, Expression, IsNull, Literal, Not
from bittern.model.events.typed.typed import MISSING
from effort import examples
from variants import column as variant_column
from variants import encode

if TYPE_CHECKING:
    from collections.abc import Callable

_FIELDS = pa.struct([("i", pa.int64()), ("s", pa.string())])
_COUNTS, _WORDS = pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.string())
#: No key of a map is the name of a column: then it would not be an attribute.
SCHEMA = pa.schema(
    [
        ("mp", _COUNTS),
        ("words", _WORDS),
        ("ms", pa.map_(pa.string(), _FIELDS)),
        ("mm", pa.map_(pa.string(), _COUNTS)),
        ("ml", pa.map_(pa.string(), pa.list_(_FIELDS))),
        ("ls", pa.list_(_FIELDS)),
        ("deep", pa.list_(pa.struct([("st", _FIELDS)]))),
        ("st", pa.struct([("mp", _COUNTS), ("ls", pa.list_(_FIELDS)), ("st", _FIELDS)])),
    ]
)
#: The paths that Spark takes for these columns, and the kind that lies there.
PATHS = {
    "mp.k": "number",
    "mp.`a.b`": "number",
    "words.k": "string",
    "ms.k": "other",
    "ms.k.i": "number",
    "ms.`a.b`.s": "string",
    "mm.k": "other",
    "mm.k.`a.b`": "number",
    "ml.k": "other",
    "ml.k.i": "other",
    "ls": "other",
    "ls.i": "other",
    "deep.st": "other",
    "deep.st.i": "other",
    "st.mp": "other",
    "st.mp.k": "number",
    "st.ls.i": "other",
    "st.st.i": "number",
}


def _values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """NULL or a value of a type; a map is a mapping."""
    if pa.types.is_struct(kind):
        value: Any = st.fixed_dictionaries({field.name: _values(field.type) for field in kind})
    elif pa.types.is_map(kind):
        key = st.sampled_from(["k", "a.b", "other"])
        value = st.dictionaries(key, _values(kind.item_type), max_size=2)
    elif pa.types.is_list(kind):
        value = st.lists(_values(kind.value_type), max_size=2)
    else:
        value = st.sampled_from([1, 2] if pa.types.is_integer(kind) else ["", "x", "é"])
    return st.one_of(value, value, value, st.none())


events = st.fixed_dictionaries({field.name: _values(field.type) for field in SCHEMA})


def _predicates(path: str, kind: str) -> st.SearchStrategy[Expression]:
    is_null: Any = st.just(IsNull(path))
    if kind == "other":
        return is_null
    constant = st.sampled_from([1, 2] if kind == "number" else ["x", "é"]).map(Literal)
    operator = st.sampled_from(strategies.OPERATORS)
    return st.one_of(is_null, st.builds(Compare, st.just(path), operator, constant))


leaves = st.one_of(*(_predicates(path, kind) for path, kind in PATHS.items()))
expressions = strategies.expressions(st.one_of(leaves, leaves.map(Not)), depth=1)


def typed(rows: list[dict[str, Any]]) -> pa.Table:
    return strategies.as_arrow(rows, SCHEMA)


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(row) for row in rows]


#: Every form, and what names its columns of JSON.
FORMS: dict[str, Callable[[list[dict[str, Any]]], tuple[Any, str | tuple[()]]]] = {
    "mappings": lambda rows: (rows, ()),
    "table": lambda rows: (typed(rows), ()),
    "batch": lambda rows: (typed([{}, *rows]).combine_chunks().to_batches()[0].slice(1), ()),
    "structs": lambda rows: (typed(rows).to_struct_array(), ()),
    "texts": lambda rows: (texts(rows), ()),
    "json": lambda rows: (pa.table({"doc": pa.array(texts(rows), pa.string())}), "doc"),
    "variant": lambda rows: (pa.table({"v": variant_column([encode(row) for row in rows])}), ()),
}


def expected(catalog: dict[str, str], rows: list[dict[str, Any]]) -> list[list[str]]:
    trees = {name: parse(text) for name, text in catalog.items()}
    return [[name for name, tree in trees.items() if oracle.matches(tree, row)] for row in rows]


def of_form(catalog: dict[str, str], rows: list[dict[str, Any]], form: str) -> list[list[str]]:
    batch, names = FORMS[form](rows)
    found = bittern.Matcher(bittern.Index.build(catalog)).match(batch, json=names)
    return [[name for name in catalog if name in set(each)] for each in found.to_pylist()]


ROWS: list[dict[str, Any]] = [
    {"mp": {"k": 1}, "ls": [{"i": 1, "s": "x"}], "st": {"mp": {"k": 1}, "ls": [], "st": {"i": 1}}},
    {"mp": {"k": 2, "a.b": 1}, "ls": [], "ms": {"k": {"i": 1}}, "mm": {"k": {"a.b": 1}}},
    {"mp": {}, "ls": None, "ml": {"k": [{"i": 1}]}, "deep": [{"st": {"i": 1}}]},
    {"mp": {"k": None}, "ls": [None], "deep": [None], "words": {"k": "é"}, "ml": {"k": None}},
    {},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", PATHS)
def test_a_path_into_maps_and_lists(path: str, form: str) -> None:
    catalog = {"null": f"{path} IS NULL", "there": f"{path} IS NOT NULL", "one": f"{path} = 1"}
    assert of_form(catalog, ROWS, form) == expected(catalog, ROWS)


@pytest.mark.parametrize("form", FORMS)
def test_any_expression_on_such_paths(form: str) -> None:
    @examples(0.5)
    @given(st.lists(expressions, min_size=1, max_size=4), st.lists(events, min_size=1, max_size=4))
    def agrees(trees: list[Expression], rows: list[dict[str, Any]]) -> None:
        catalog = {f"s{number}": print_expression(tree) for number, tree in enumerate(trees)}
        assert of_form(catalog, rows, form) == expected(catalog, rows)

    agrees()


def test_what_events_of_a_history_were() -> None:
    """Documents have what events had, as mappings and as tables."""
    names = [name for name in PATHS if name != "ls"]
    there = [[oracle.look_up(row, name) is not None for row in ROWS] for name in names]
    for form in ("mappings", "table", "texts"):
        with Documents() as documents:
            documents.append(FORMS[form](ROWS)[0])
            [(_, values)] = documents.scan(names)
            assert (values.kinds != MISSING).tolist() == there, form


def test_a_list_is_told_to_be_no_number() -> None:
    index = bittern.Index.build({"one": "ls.i = 1", "null": "ls.i IS NULL"})
    why = "ls.i is not a number, string, boolean or time, and subscriptions compare it with numbers"
    for form in ("mappings", "texts", "json", "variant"):
        batch, names = FORMS[form](ROWS[:3])
        matches = bittern.Matcher(index).match(batch, json=names)
        assert matches.to_pylist() == [[], [], ["null"]]
        assert matches.mistyped == [(0, why), (1, why)], form


def test_types_inside_columns_are_judged_beforehand() -> None:
    texts = ("mp.k = 'x'", "words.k = 'x'", "ls.i = 1", "ms.k.i = TRUE", "bin = 'x'", "mb.k = 'x'")
    index = bittern.Index.build({text: text for text in texts})
    more = [("bin", pa.binary()), ("mb", pa.map_(pa.string(), pa.large_binary()))]
    told = index.encoder.mistyped_columns(pa.schema([*SCHEMA, *more]))
    assert [path for path, _ in told] == ["mp.k", "ms.k.i", "ls.i", "bin", "mb.k"]
    assert told[-2][1] == "bin is of type binary, and subscriptions compare it with strings"


def test_bytes_are_no_string_and_that_is_told() -> None:
    matcher = bittern.Matcher(bittern.Index.build({"is": "bin = 'abc'", "like": "bin LIKE 'a%'"}))
    matches = matcher.match([{"bin": b"abc"}])
    assert matches.to_pylist() == [[]]
    why = "bin is not a number, string, boolean or time, and subscriptions compare it with strings"
    assert matches.mistyped == [(0, why)]


def test_a_key_of_a_map_is_an_attribute_and_a_path() -> None:
    """The path belongs to the column, even where the map lacks the key."""
    table = pa.table(
        {
            "mp": pa.array([{"k": 1, "mp": 2}, {}, None], _COUNTS),
            "other": pa.array([{"mp": {"i": 3}, "k": {"i": 3}}] * 3, pa.map_(pa.string(), _FIELDS)),
            "doc": ['{"mp": {"k": 4, "z": 4}, "k": 4, "other": {"x": {"i": 4}}}'] * 3,
        }
    )
    catalog = {
        "path": "mp.k = 1",
        "key": "k = 1",
        "other": "k.i = 3",
        "inner": "other.k.i = 3 AND other.mp.i = 3",
        "document": "k = 4",
        "nothing": "mp.i = 3 OR mp.k = 4 OR mp.z = 4 OR mp = 2 OR other.x.i = 4",
    }
    found = bittern.Matcher(bittern.Index.build(catalog)).match(table, json="doc").to_pylist()
    assert found == [["path", "key", "inner"], ["other", "inner"], ["other", "inner"]]


@pytest.mark.parametrize(
    "kind",
    [
        *(make(_FIELDS) for make in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)),
        pa.list_(_FIELDS, 1),
    ],
    ids=str,
)
def test_every_type_of_list(kind: pa.DataType) -> None:
    column = pa.array([[{"i": 1, "s": ""}], [None], None], kind)
    catalog = {"null": "a.i IS NULL", "there": "a.i IS NOT NULL", "one": "a.i = 1"}
    matcher = bittern.Matcher(bittern.Index.build(catalog))
    assert matcher.match(pa.table({"a": column})).to_pylist() == [["there"], ["there"], ["null"]]


def test_explain_looks_into_maps_and_lists() -> None:
    index = bittern.Index.build({path: f"{path} IS NOT NULL" for path in PATHS})
    matcher = bittern.Matcher(index)
    table = typed(ROWS)
    for number in range(len(ROWS)):
        [found] = matcher.match(table.slice(number, 1)).to_pylist()
        told = [p for p in PATHS if bittern.explain(index, table.slice(number, 1), p).matched]
        assert sorted(told) == sorted(found)


@pytest.mark.spark
def test_spark_keeps_what_matches_and_bittern_on_spark_as_well(spark: Any) -> None:
    """Each expression is a column that Spark computes; the same frame goes through the operator."""
    import bittern.spark

    rows = [*ROWS, *strategies.sample(events, 60)]
    trees = strategies.sample(expressions, 60)
    catalog = {f"s{number}": print_expression(tree) for number, tree in enumerate(trees)}
    catalog |= {path: f"{path} IS NOT NULL" for path in PATHS}
    table = typed(rows).append_column("row", pa.array(range(len(rows)), pa.int64()))
    frame = spark.createDataFrame(table)
    asked = [f"({text}) AS c{number}" for number, text in enumerate(catalog.values())]
    kept = {
        (row["row"], name)
        for row in frame.selectExpr("row", *asked).toArrow().to_pylist()
        for number, name in enumerate(catalog)
        if row[f"c{number}"]
    }
    right = expected(catalog, rows)
    assert kept == {(row, name) for row, names in enumerate(right) for name in names}
    matched = bittern.spark.match(frame, bittern.Index.build(catalog), event_id="row", explode=True)
    assert {(row["row"], row["subscription"]) for row in matched.collect()} == kept


def _deep(parts: int) -> tuple[str, dict[str, Any]]:
    """A path of so many parts, and an event with a value there."""
    event: Any = 1
    for _ in range(parts):
        event = {"a": event}
    return ".".join("a" * parts), event


def test_the_longest_path_is_found_in_every_form() -> None:
    name, event = _deep(64)
    kind = pa.int64()
    for _ in range(63):
        kind = pa.struct([("a", kind)])
    table = strategies.as_arrow([event], pa.schema([("a", kind)]))
    catalog = {"one": f"{name} = 1", "null": f"{name} IS NULL"}
    matcher = bittern.Matcher(bittern.Index.build(catalog))
    assert matcher.match(table).to_pylist() == [["one"]]
    for form in ("mappings", "texts", "json", "variant"):
        batch, names = FORMS[form]([event])
        assert matcher.match(batch, json=names).to_pylist() == [["one"]], form


def test_a_longer_path_is_refused() -> None:
    name = _deep(65)[0]
    for text in (f"b = 1 AND {name} IS NULL", f"EXISTS d (b = d.{name})"):
        with pytest.raises(LimitError, match="at most 64 parts") as told:
            parse(text)
        assert told.value.position == text.index("a.a" if text[0] == "b" else "d.a")
    parse(f"EXISTS d (b = d.{_deep(64)[0]})")
    parse("b = 1 AND `" + "." * 100 + "` IS NULL")
    # In bulk, a text of a shape that is known does not meet the parser.
    texts = {1: "b = 1", 2: f"{name} = 1", 3: "c = 1"}
    with pytest.raises(SubscriptionError) as many:
        bittern.Index.build(texts)
    assert [bad.id for bad in many.value.bad] == [2]


STRINGS = {
    "string": lambda array: array,
    "large_string": lambda array: array.cast(pa.large_string()),
    "string_view": lambda array: array.cast(pa.string_view()),
    "dictionary": lambda array: array.dictionary_encode(),
    "sliced": lambda array: pa.concat_arrays([array, array]).slice(len(array)),
}


def _strings(texts: list[bytes | None]) -> pa.Array:
    """An Arrow array of strings, whether they are or not."""
    buffers = pa.array(texts, pa.binary()).buffers()
    return pa.StringArray.from_buffers(len(texts), buffers[1], buffers[2], buffers[0])


@pytest.mark.parametrize("form", STRINGS)
def test_a_string_that_is_not_utf8_is_rejected(form: str) -> None:
    column = STRINGS[form](
        _strings([b"abc", b"a\xff", None, "é".encode(), b"\xe9", b"\xed\xa0\x80"])
    )
    catalog = {"any": "s LIKE '%'", "null": "s IS NULL", "other": "n = 1", "inner": "st.s > ''"}
    matcher = bittern.Matcher(bittern.Index.build(catalog))
    numbers = pa.array([1] * 6)
    why = " is a string that is not valid UTF-8"
    right = [["any", "other"], [], ["null", "other"], ["any", "other"], [], []]
    table = pa.table({"s": column, "n": numbers})
    matches = matcher.match(table)
    assert [sorted(each) for each in matches.to_pylist()] == right
    assert matches.rejects == [(row, f"s{why}") for row in (1, 4, 5)]
    struct = pa.StructArray.from_arrays([column], ["s"])
    matches = matcher.match(pa.table({"st": struct, "n": numbers}))
    assert matches.rejects == [(row, f"st.s{why}") for row in (1, 4, 5)]
    # What no subscription asks for is not looked at.
    assert matcher.match(pa.table({"other": column, "n": numbers})).rejects == []


def test_maps_that_are_not_utf8_are_rejected() -> None:
    """By the keys of a map that is read, and by its values where their keys are asked for."""
    keys = _strings([b"k", b"k", b"z", b"k\xff"])
    items = _strings([b"x", b"\xff", b"\xff", b"x"])
    column = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), keys, items)
    why = "is a string that is not valid UTF-8"
    wrong = {"k": f"k {why}", "mp.k": f"mp.k {why}"}
    for path, reason in wrong.items():
        matcher = bittern.Matcher(
            bittern.Index.build({"x": f"{path} = 'x'", "no": f"{path} IS NULL"})
        )
        matches = matcher.match(pa.table({"mp": column}))
        assert matches.to_pylist() == [["x"], [], ["no"], []]
        assert matches.rejects == [(1, reason), (3, "a key of a map is not valid UTF-8")]
    structs = pa.StructArray.from_arrays([items], ["s"])
    column = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), keys, structs)
    matcher = bittern.Matcher(bittern.Index.build({"x": "k.s = 'x'", "path": "mp.k.s = 'x'"}))
    matches = matcher.match(pa.table({"mp": column}))
    assert matches.to_pylist() == [["x", "path"], [], [], []]
    assert [row for row, _ in matches.rejects] == [1, 3]
