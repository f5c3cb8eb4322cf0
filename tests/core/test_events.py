"""The same events in every form give the same matches.

A batch is drawn once as mappings, which the oracle judges, and then laid out as tables, record
batches, slices, chunks, dictionaries, views, structs, maps, JSON texts and data frames.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import strategies
import variants
from answers import build, engine, expected
from bittern.errors import EventError, OptionError
from bittern.history import History
from bittern.language.printer import print_expression
from bittern.model.events.mappings import Collector
from effort import examples
from strategies import as_arrow

if TYPE_CHECKING:
    from bittern.language.syntax import Expression

# ------------------------------------------------------------------ the typed world, in every form


def sliced(table: pa.Table) -> pa.Table:
    """The same rows from the middle of a larger table."""
    return pa.concat_tables([table, table, table]).combine_chunks().slice(len(table), len(table))


def chunked(table: pa.Table) -> pa.Table:
    """The same rows in chunks of one, with an empty one between."""
    parts = [table.slice(row, 1) for row in range(len(table))]
    return pa.concat_tables([*parts[:1], table.slice(0, 0), *parts[1:]])


def with_text(table: pa.Table, make: Any) -> pa.Table:
    place = table.schema.get_field_index("s")
    return table.set_column(place, "s", make(table.column("s")))


def as_struct(table: pa.Table) -> pa.Array:
    return (
        table.to_struct_array().combine_chunks() if len(table) else pa.array([], table_type(table))
    )


def table_type(table: pa.Table) -> pa.DataType:
    return pa.struct(list(table.schema))


def as_frame(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


TABLE_FORMS: dict[str, Any] = {
    "table": lambda table: table,
    "record batch": lambda table: table.combine_chunks().to_batches()[0] if len(table) else table,
    "slice": sliced,
    "chunks": chunked,
    "slice of chunks": lambda table: chunked(pa.concat_tables([table, table])).slice(len(table)),
    "dictionary": lambda table: with_text(table, lambda s: s.dictionary_encode()),
    "sliced dictionary": lambda table: sliced(with_text(table, lambda s: s.dictionary_encode())),
    "large strings": lambda table: with_text(table, lambda s: s.cast(pa.large_string())),
    "string views": lambda table: with_text(table, lambda s: s.cast(pa.string_view())),
    "sliced string views": lambda table: sliced(
        with_text(table, lambda s: s.cast(pa.string_view()))
    ),
    "columns in another order": lambda table: table.select(table.schema.names[::-1]),
    "more columns than needed": lambda table: table.append_column(
        "unheard of", pa.array([[{"x": 1}]] * len(table), pa.list_(pa.struct([("x", pa.int8())])))
    ),
    "struct array": as_struct,
    "sliced struct array": lambda table: as_struct(sliced(table)),
    "chunked struct array": lambda table: pa.chunked_array([as_struct(table)], table_type(table)),
    "data frame": as_frame,
    "rows": lambda table: table.to_pylist(),
    "a tuple of rows": lambda table: tuple(table.to_pylist()),
}


@examples(0.5)
@given(
    strategies.catalogs(strategies.typed_expressions(2), max_size=10),
    strategies.batches(strategies.typed_events(), max_size=8),
)
def test_every_form_of_a_table(
    catalog: dict[str, Expression], events: list[dict[str, Any]]
) -> None:
    texts = {name: print_expression(tree) for name, tree in catalog.items()}
    right = expected(texts, events)
    matcher = bittern.Matcher(build(texts))
    table = as_arrow(events)
    for name, form in TABLE_FORMS.items():
        matches = matcher.match(form(table))
        assert matches.to_pylist() == right, name
        assert matches.rejects == [], name
        assert matches.counts.tolist() == [len(each) for each in right], name


EVERY_TYPE = {
    "n": "n > 2 OR n IS NULL",
    "x": "x <= 1.5",
    "d": "d = 0.1",
    "s": "s LIKE 'a%' OR s LIKE '%c' OR s LIKE '%b_%' OR s RLIKE '^b'",
    "t": "t < TIMESTAMP '2024-01-01 12:00:00'",
    "day": "day >= DATE '2024-01-01'",
    "b": "b OR b IS NULL",
    "st.i": "st.i = 1 OR st.s = 'a'",
    "st.f": "st.deep.f > 0",
    "st null": "st IS NULL AND n = 3",
    "deep null": "st.deep IS NULL AND st IS NOT NULL",
}
ROWS: list[dict[str, Any]] = [
    {"n": 3, "x": 1.5, "d": Decimal("0.1000"), "s": "abc", "b": True, "day": dt.date(2024, 1, 1)},
    {"n": 1, "st": {"i": 1, "s": None, "deep": {"f": 0.5}}, "t": strategies.TIMESTAMPS[0]},
    {"st": {"i": None, "s": "a", "deep": None}, "s": "b"},
    {},
    {"n": None, "st": None, "s": "xb1", "x": math.nan, "b": False},
]


def test_null_structs_hide_what_lies_below_them() -> None:
    """A null struct's children may hold anything; so may a row of a null struct array."""
    inner = pa.array([1, 1, 1])
    deep = pa.StructArray.from_arrays(
        [pa.array([1.0, 1.0, 1.0])], ["f"], mask=pa.array([False, True, False])
    )
    st_ = pa.StructArray.from_arrays(
        [inner, deep], ["i", "deep"], mask=pa.array([False, False, True])
    )
    catalog = {
        "i": "st.i = 1",
        "f": "st.deep.f = 1",
        "gone": "st IS NULL",
        "half": "st.deep IS NULL",
    }
    right = [["i", "f"], ["i", "half"], ["gone", "half"]]
    assert engine(catalog, pa.table({"st": st_})) == right
    assert engine(catalog, pa.table({"st": st_}).slice(1)) == right[1:]
    rows = pa.StructArray.from_arrays([st_], ["st"], mask=pa.array([True, False, False]))
    assert engine(catalog, rows) == [["gone", "half"], *right[1:]]


def test_null_rows_of_an_array_have_no_attributes() -> None:
    catalog = {"one": "a = 1", "none": "a IS NULL"}
    rows = pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int64())]))
    assert engine(catalog, rows) == [["one"], ["none"], ["none"]]
    maps = pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64()))
    assert engine(catalog, maps) == [["one"], ["none"], ["none"]]
    texts = pa.array(['{"a": 1}', None, "{}"])
    assert engine(catalog, texts) == [["one"], ["none"], ["none"]]
    assert engine(catalog, pa.nulls(2)) == [["none"], ["none"]]
    assert engine(catalog, [{"a": 1}, None, {}]) == [["one"], ["none"], ["none"]]


def test_a_column_of_nulls() -> None:
    assert (
        engine({"none": "a IS NULL", "one": "a = 1"}, pa.table({"a": pa.nulls(2)}))
        == [["none"]] * 2
    )


def test_the_lists_that_readme_shows() -> None:
    right = expected(EVERY_TYPE, ROWS)
    assert engine(EVERY_TYPE, ROWS) == right
    assert engine(EVERY_TYPE, as_arrow(ROWS)) == right
    assert engine(EVERY_TYPE, [MappingProxyType(row) for row in ROWS]) == right
    matcher = bittern.Matcher(build(EVERY_TYPE))
    assert [matcher.match(row).to_pylist()[0] for row in ROWS] == right


# ------------------------------------------------------------------ kinds that Arrow encodes apart

TEXT_COLUMNS = {
    "string": pa.array(["a", None, "ab", "", "é", "xab"]),
    "large_string": pa.array(["a", None, "ab", "", "é", "xab"], pa.large_string()),
    "string_view": pa.array(["a", None, "ab", "", "é", "xab"], pa.string_view()),
    "dictionary": pa.array(["a", None, "ab", "", "é", "xab"]).dictionary_encode(),
    "dictionary of views": pa.DictionaryArray.from_arrays(
        pa.array([0, None, 1, 2, 3, 4], pa.int8()),
        pa.array(["a", "ab", "", "é", "xab"], pa.string_view()),
    ),
    "dictionary with a null": pa.DictionaryArray.from_arrays(
        pa.array([1, 0, 2, 3, 4, 5]), pa.array([None, "a", "ab", "", "é", "xab"])
    ),
    "run ends": pa.RunEndEncodedArray.from_arrays(
        pa.array([1, 2, 3, 4, 5, 6], pa.int32()), pa.array(["a", None, "ab", "", "é", "xab"])
    ),
}


@pytest.mark.parametrize("form", TEXT_COLUMNS)
def test_every_encoding_of_text(form: str) -> None:
    catalog = {
        "equal": "a = 'ab'",
        "other": "a != 'ab'",
        "prefix": "a LIKE 'a%'",
        "suffix": "a LIKE '%ab'",
        "contains": "a LIKE '%a_%'",
        "no suffix": "a NOT LIKE '%b'",
        "not contains": "a NOT LIKE '%a%b%'",
        "regex": "a RLIKE '^.$'",
        "order": "a > 'a'",
        "null": "a IS NULL",
    }
    column = TEXT_COLUMNS[form]
    right = expected(catalog, [{"a": text} for text in ("a", None, "ab", "", "é", "xab")])
    assert engine(catalog, pa.table({"a": column})) == right
    assert engine(catalog, pa.table({"a": column}).slice(2, 3)) == right[2:5]
    assert engine(catalog, pa.table({"a": pa.chunked_array([column, column])})) == right * 2
    struct = pa.StructArray.from_arrays([column], ["a"])
    nested = {name: text.replace("a ", "st.a ", 1) for name, text in catalog.items()}
    assert engine(nested, pa.table({"st": struct})) == right


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [], None]),
        pa.array([b"5", b"", None]),
        pa.array([dt.time(5), dt.time(6), None]),
        pa.array([dt.timedelta(5), dt.timedelta(6), None]),
        pa.array([{"z": 5}, {"z": None}, None]),
        pa.array([[("z", 5)], [], None], pa.map_(pa.string(), pa.int64())),
        pa.array([[1, 2], [3, 4], None], pa.list_(pa.int8(), 2)),
    ],
    ids=lambda column: str(column.type),
)
def test_values_without_a_kind_are_only_null_or_not(column: pa.Array) -> None:
    catalog = {"null": "a IS NULL", "there": "a IS NOT NULL", "five": "a = 5", "not": "a != 'x'"}
    right = [["there"], ["there"], ["null"]]
    assert engine(catalog, pa.table({"a": column})) == right
    assert engine(catalog, [{"a": value} for value in column.to_pylist()]) == right


# ------------------------------------------------------------------ maps

MAP_VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [1, 2, 3, None]),
    "int8": (pa.int8(), [1, 2, 3, None]),
    "uint64": (pa.uint64(), [1, 2, 2**64 - 1, None]),
    "double": (pa.float64(), [1.0, 2.5, math.nan, math.inf, None]),
    "float": (pa.float32(), [1.0, 2.5, math.nan, None]),
    "string": (pa.string(), ["a", "ab", "xab", "", "é", None]),
    "large_string": (pa.large_string(), ["a", "ab", "xab", "", None]),
    "string_view": (pa.string_view(), ["a", "ab", "xab", "", None]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "ab", "xab", "", None]),
    "bool": (pa.bool_(), [True, False, None]),
    "date": (pa.date32(), [dt.date(2024, 1, 1), dt.date(2024, 1, 2), None]),
    "timestamp us": (pa.timestamp("us", "UTC"), [*strategies.TIMESTAMPS, None]),
    "timestamp s": (pa.timestamp("s"), [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2), None]),
    "timestamp ms": (pa.timestamp("ms"), [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2), None]),
    "decimal": (pa.decimal128(18, 2), [Decimal("1.00"), Decimal("2.50"), Decimal("99.99"), None]),
    "decimal256": (pa.decimal256(50, 2), [Decimal("1.00"), Decimal("2.50"), Decimal(10**40), None]),
    "list": (pa.list_(pa.int64()), [[1], [], None]),
    "struct": (pa.struct([("z", pa.int64())]), [{"z": 1}, {"z": None}, None]),
}

MAP_CATALOG = {
    f"{attribute} {name}": text.replace("_", attribute)
    for attribute in ("a", "b", "`c.d`", "`e```", "été")
    for name, text in {
        "number": "_ = 1 OR _ >= 2.5",
        "text": "_ = 'a' OR _ LIKE 'x%' OR _ LIKE '%ab'",
        "pattern": "_ RLIKE '^a.$'",
        "flag": "_ = TRUE",
        "time": "_ >= DATE '2024-01-02'",
        "null": "_ IS NULL",
        "there": "_ IS NOT NULL",
        "z": "_.z = 1",
    }.items()
}
KEYS = ("a", "b", "c.d", "e`", "été", "c", "d", "unheard of", "")


@st.composite
def maps(draw: st.DrawFn, kind: str) -> list[list[tuple[str, Any]] | None]:
    """Rows of (key, value) pairs; a key may come twice, and then the last value counts."""
    value = st.sampled_from(MAP_VALUES[kind][1])
    entries = st.lists(st.tuples(st.sampled_from(KEYS), value), max_size=5)
    return draw(st.lists(st.one_of(st.none(), entries, entries), min_size=1, max_size=6))


@pytest.fixture(scope="module")
def map_matcher() -> bittern.Matcher:
    return bittern.Matcher(build(MAP_CATALOG))


@pytest.mark.parametrize("kind", MAP_VALUES)
def test_maps(map_matcher: bittern.Matcher, kind: str) -> None:
    value_type = MAP_VALUES[kind][0]

    @examples(0.25)
    @given(maps(kind))
    def agrees(rows: list[list[tuple[str, Any]] | None]) -> None:
        plain_type = pa.string() if pa.types.is_dictionary(value_type) else value_type
        column = pa.array(rows, pa.map_(pa.string(), plain_type))
        if plain_type is not value_type:
            column = pa.MapArray.from_arrays(
                column.offsets, column.keys, column.items.dictionary_encode()
            )
            rows = [row or [] for row in rows]
        events = [dict(row or []) for row in rows]
        right = expected(MAP_CATALOG, events)
        table = pa.table({"attributes": column})
        assert map_matcher.match(table).to_pylist() == right
        assert map_matcher.match(column).to_pylist() == right
        assert map_matcher.match(table.slice(1)).to_pylist() == right[1:]
        assert map_matcher.match(sliced(table)).to_pylist() == right
        assert map_matcher.match(pa.concat_tables([table, table])).to_pylist() == right * 2

    agrees()


HIDDEN: dict[str, tuple[pa.Array, str]] = {
    "integers": (pa.array([1, 1, 1]), "a = 1"),
    "strings": (pa.array(["x", "x", "x"]), "a LIKE '%x%' AND a = 'x'"),
    "decimals": (pa.array([Decimal("1.5")] * 3), "a = 1.5"),
    "seconds": (pa.array([1, 1, 1]).cast(pa.timestamp("s")), "a > DATE '1970-01-01'"),
    "huge": (pa.array([2**64 - 1] * 3, pa.uint64()), "a > 1e19"),
    "structs": (pa.array([{"z": 1}] * 3), "a.z = 1"),
    "lists": (pa.array([[1]] * 3), "a IS NOT NULL"),
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_a_null_map_hides_the_entries_below_it(kind: str) -> None:
    items, expression = HIDDEN[kind]
    column = pa.MapArray.from_arrays(
        pa.array([0, 1, 2, 2, 3], pa.int32()),
        pa.array(["a", "a", "a"]),
        items,
        mask=pa.array([False, True, False, False]),
    )
    catalog = {"there": expression, "null": "a IS NULL"}
    right = [["there"], ["null"], ["null"], ["there"]]
    for form in (column, pa.table({"m": column})):
        assert engine(catalog, form) == right
        assert engine(catalog, form.slice(1)) == right[1:]
        assert engine(catalog, form.slice(1, 2)) == right[1:3]


@pytest.mark.parametrize("kind", ["int64", "decimal", "timestamp s", "struct", "uint64"])
def test_a_column_wins_over_a_map_entry_of_its_name(kind: str) -> None:
    value_type, values = MAP_VALUES[kind]
    column = pa.array([[("a", values[1]), ("b", values[1])]] * 3, pa.map_(pa.string(), value_type))
    table = pa.table({"m": column, "a": pa.array(["own", None, "own"])})
    catalog = {
        "own": "a = 'own'",
        "null": "a IS NULL",
        "number": "a > 0",
        "time": "a > DATE '2000-01-01'",
        "z": "a.z IS NOT NULL",
        "b": "b IS NOT NULL",
    }
    assert engine(catalog, table) == [["own", "b"], ["null", "b"], ["own", "b"]]
    assert engine(catalog, table.select(["a", "m"])) == [["own", "b"], ["null", "b"], ["own", "b"]]


def test_one_attribute_has_one_value_when_two_maps_have_its_key() -> None:
    """Whichever map wins, an attribute never has two values at once."""
    kind = pa.map_(pa.string(), pa.int64())
    table = pa.table(
        {"m": pa.array([[("a", 2)], None], kind), "n": pa.array([[("a", 3)], [("a", 3)]], kind)}
    )
    catalog = {"2": "a = 2", "3": "a = 3", "range": "a BETWEEN 2 AND 3"}
    first, second = engine(catalog, table)
    assert first in (["2", "range"], ["3", "range"])
    assert second == ["3", "range"]


def test_maps_of_several_types_side_by_side() -> None:
    table = pa.table(
        {
            "words": pa.array(
                [[("color", "red")], [("color", None)]], pa.map_(pa.string(), pa.string())
            ),
            "numbers": pa.array([[("price", 5.0)], []], pa.map_(pa.string(), pa.float64())),
            "size": [4, 5],
        }
    )
    catalog = {"all": "color = 'red' AND price < 10 AND size = 4", "null": "color IS NULL"}
    assert engine(catalog, table) == [["all"], ["null"]]


def test_a_map_whose_keys_are_no_strings_has_no_attributes() -> None:
    column = pa.array([[(1, 5)], []], pa.map_(pa.int64(), pa.int64()))
    assert engine({"m": "m IS NOT NULL", "a": "a = 5"}, pa.table({"m": column})) == [["m"], ["m"]]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_map_timestamps_beyond_the_year_9999(unit: str) -> None:
    ticks = pa.array([2**62, -(2**62)]).cast(pa.timestamp(unit))
    column = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["a", "a"]), ticks)
    catalog = {"after": "a > DATE '2020-01-01'", "before": "a < DATE '1900-01-01'"}
    assert engine(catalog, pa.table({"m": column})) == engine(catalog, pa.table({"a": ticks}))


# ------------------------------------------------------------------ JSON


def json_value() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.none(),
        st.booleans(),
        strategies.integers,
        strategies.floats,
        st.sampled_from(strategies.STRINGS),
        st.sampled_from([[], [1], {}, {"x": 5}]),
    )


@given(
    strategies.catalogs(strategies.free_expressions(2), max_size=10),
    st.lists(
        st.dictionaries(
            st.sampled_from(["a", "b", "d", "m", "n", "q`.", "unheard of"]),
            st.one_of(
                json_value(), st.dictionaries(st.sampled_from(["x", "y.z", "z"]), json_value())
            ),
        ),
        max_size=8,
    ),
)
def test_json_texts(catalog: dict[str, Expression], events: list[dict[str, Any]]) -> None:
    texts = {name: print_expression(tree) for name, tree in catalog.items()}
    right = expected(texts, events)
    matcher = bittern.Matcher(build(texts))
    lines = [json.dumps(event, ensure_ascii=row % 2 == 0) for row, event in enumerate(events)]
    array = pa.array(lines, pa.string())
    forms = {
        "mappings": events,
        "list": lines,
        "tuple": tuple(lines),
        "array": array,
        "large": array.cast(pa.large_string()),
        "view": array.cast(pa.string_view()),
        "dictionary": array.dictionary_encode(),
        "chunks": pa.chunked_array([array.slice(0, 1), array.slice(1)]),
        "slice": pa.array(["{", *lines, "}"], pa.string()).slice(1, len(lines)),
    }
    for name, form in forms.items():
        matches = matcher.match(form)
        assert matches.to_pylist() == right, name
        assert matches.rejects == [], name


def test_one_json_text() -> None:
    matcher = bittern.Matcher(build({"a": "a = 1"}))
    assert matcher.match('{"a": 1}').to_pylist() == [["a"]]


def test_texts_and_none_in_one_list() -> None:
    matcher = bittern.Matcher(build({"one": "a = 1", "null": "a IS NULL"}))
    matches = matcher.match(['{"a": 1}', None, '{"a": 2}'])
    assert matches.to_pylist() == [["one"], ["null"], []]


# ------------------------------------------------------------------ names

ODD_NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("plain", {"plain": 1}),
    "dotted path": ("a.b.c", {"a": {"b": {"c": 1}}}),
    "dot in a key": ("`a.b`", {"a.b": 1}),
    "dot in an inner key": ("a.`b.c`", {"a": {"b.c": 1}}),
    "dot in an outer key": ("`a.b`.c", {"a.b": {"c": 1}}),
    "back quote": ("`a``b`", {"a`b": 1}),
    "only a back quote": ("````", {"`": 1}),
    "only a dot": ("`.`", {".": 1}),
    "spaces": ("` odd  name `", {" odd  name ": 1}),
    "letters of the world": ("`été 東京 😀`", {"été 東京 😀": 1}),
    "key word": ("`and`", {"and": 1}),
    "quotes": ('`it\'s "so"`', {'it\'s "so"': 1}),
    "long": ("`" + "x" * 3000 + "`", {"x" * 3000: 1}),
    "line end": ("`a\nb`", {"a\nb": 1}),
}


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names(name: str) -> None:
    catalog = {
        f"{number}": f"{attribute} = 1" for number, (attribute, _) in enumerate(ODD_NAMES.values())
    }
    event = ODD_NAMES[name][1]
    right = [[str(list(ODD_NAMES).index(name))]]
    assert expected(catalog, [event]) == right
    assert engine(catalog, event) == right
    assert engine(catalog, json.dumps(event)) == right
    assert engine(catalog, json.dumps(event, ensure_ascii=False)) == right
    assert engine(catalog, pa.Table.from_pylist([event])) == right
    assert engine(catalog, pd.DataFrame([event])) == right
    [(key, value)] = event.items()
    if not isinstance(value, dict):
        kind = pa.map_(pa.string(), pa.int64())
        assert engine(catalog, pa.table({"m": pa.array([[(key, value)]], kind)})) == right


def test_an_empty_key_is_harmless() -> None:
    catalog = {"a": "a = 1", "a.b": "a.b = 1"}
    for event in ({"": 1, "a": 1}, {"": {"b": 1}, "a": 1}):
        assert engine(catalog, event) == [["a"]]
        assert engine(catalog, json.dumps(event)) == [["a"]]
        assert engine(catalog, pa.Table.from_pylist([event])) == [["a"]]
    with pytest.raises(bittern.errors.SubscriptionError, match="empty"):
        bittern.Index.build({"x": "`` = 1"})


def test_a_value_and_a_struct_under_one_name() -> None:
    catalog = {"value": "a = 1", "inner": "a.b = 1", "there": "a IS NOT NULL"}
    events = [{"a": 1}, {"a": {"b": 1}}, {"a": {"b": None}}, {"a": {}}, {"a.b": 1}]
    right = [["value", "there"], ["inner", "there"], ["there"], ["there"], []]
    assert engine(catalog, events) == right
    assert engine(catalog, [json.dumps(event) for event in events]) == right


def test_names_are_read_as_they_are_written() -> None:
    assert engine({"a": "a = 1", "A": "A = 1"}, [{"a": 1}, {"A": 1}]) == [["a"], ["A"]]


# ------------------------------------------------------------------ data frames and Python values


def test_a_data_frame_of_plain_pandas_types() -> None:
    frame = pd.DataFrame(
        {
            "n": [1, 2, 3],
            "x": [0.5, None, 2.5],
            "s": ["a", None, "b"],
            "t": pd.to_datetime(["2024-01-01", None, "2024-01-02"]),
            "c": pd.Categorical(["u", "v", None]),
            "i": pd.array([1, None, 3], dtype="Int64"),
        },
        index=[7, 8, 9],
    )
    catalog = {
        "n": "n >= 2",
        "x": "x < 1",
        "no x": "x IS NULL",
        "s": "s = 'b'",
        "t": "t = DATE '2024-01-02'",
        "c": "c = 'v'",
        "i": "i = 3",
        "no i": "i IS NULL",
    }
    assert engine(catalog, frame) == [["x"], ["n", "no x", "c", "no i"], ["n", "s", "t", "i"]]
    records = frame.to_dict("records")
    assert engine({"no i": "i IS NULL", "i": "i > 0"}, records) == [["i"], ["no i"], ["i"]]


@pytest.mark.parametrize(
    "value",
    [
        np.datetime64("2024-01-02", "ns"),
        np.datetime64("2024-01-02", "D"),
        np.datetime64("2024-01-02T00:00", "us"),
        pd.Timestamp("2024-01-02"),
        pd.Timestamp("2024-01-02 01:00", tz="Europe/Paris"),
        dt.datetime(2024, 1, 2),
        dt.datetime(2024, 1, 1, 19, tzinfo=dt.timezone(dt.timedelta(hours=-5))),
        dt.date(2024, 1, 2),
    ],
    ids=repr,
)
def test_moments_of_every_library(value: Any) -> None:
    catalog = {
        "same": "a = DATE '2024-01-02'",
        "number": "a > 0 OR a <= 0",
        "later": "a > DATE '2024-01-02'",
    }
    assert engine(catalog, {"a": value}) == [["same"]]


FAR_AWAY = [
    *(np.datetime64(sign * 2**62, unit) for sign in (1, -1) for unit in ("Y", "M", "D", "s", "ms")),
    *(np.datetime64(f"{sign}1000000-01-01", unit) for sign in ("", "-") for unit in ("D", "s")),
    *(np.datetime64(sign * 2**62, "us") for sign in (1, -1)),
    *(pd.Timestamp(np.datetime64(f"{sign}1000000-01-01", "s")) for sign in ("", "-")),
    *(pd.Timestamp(np.datetime64(f"{sign}20000-01-01", "s"), tz="UTC") for sign in ("", "-")),
]


@pytest.mark.parametrize("value", FAR_AWAY, ids=range(len(FAR_AWAY)))
def test_times_far_away_are_on_their_side(value: Any) -> None:
    catalog = {"after": "a > TIMESTAMP '9999-12-31 23:59:59'", "before": "a < DATE '0001-01-01'"}
    number = value.to_datetime64() if isinstance(value, pd.Timestamp) else value
    right = [["after"]] if number.astype(np.int64) > 0 else [["before"]]
    assert engine(catalog, {"a": value}) == right
    unit = np.datetime_data(number.dtype)[0]
    if unit in ("D", "s", "ms", "us") and (unit != "D" or abs(number.astype(np.int64)) < 2**31):
        assert engine(catalog, pa.table({"a": pa.array(np.array([number]))})) == right


@pytest.mark.parametrize("unit", ["ns", "100ns", "ps", "fs", "as"])
def test_times_finer_than_microseconds_are_cut(unit: str) -> None:
    catalog = {"after": "a > TIMESTAMP '1970-01-01 00:00:00'", "before": "a < DATE '1970-01-01'"}
    for count in (-(2**63) + 1, -(2**63) + 999, -1):
        assert engine(catalog, {"a": np.datetime64(count, unit)}) == [["before"]]
    assert engine(catalog, {"a": np.datetime64(2**63 - 1, unit)}) == [["after"]]
    assert engine(catalog, {"a": np.datetime64(0, unit)}) == [[]]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64(), *map(pa.timestamp, ("s", "ms"))])
def test_the_first_and_the_last_time_of_every_type(kind: pa.DataType) -> None:
    catalog = {"after": "a > DATE '9999-12-31'", "before": "a < DATE '0001-01-01'"}
    width = 32 if pa.types.is_date32(kind) else 64
    ends = pa.array([2 ** (width - 1) - 1, -(2 ** (width - 1))], f"int{width}").view(kind)
    table = pa.table({"a": ends, "st": pa.StructArray.from_arrays([ends], ["a"])})
    assert engine(catalog, table) == [["after"], ["before"]]
    inner = {name: text.replace("a ", "st.a ") for name, text in catalog.items()}
    assert engine(inner, table) == [["after"], ["before"]]


@pytest.mark.parametrize(
    "value", [None, pd.NaT, pd.NA, np.datetime64("NaT"), np.datetime64("NaT", "D")], ids=repr
)
def test_nulls_of_every_library(value: Any) -> None:
    assert engine({"null": "a IS NULL", "there": "a IS NOT NULL"}, {"a": value}) == [["null"]]


@pytest.mark.parametrize(
    "value", [math.nan, np.float64("nan"), np.float32("nan"), Decimal("nan")], ids=repr
)
def test_not_a_number_is_above_every_number(value: Any) -> None:
    catalog = {"above": "a > 1e308", "below": "a <= 1e308", "other": "a != 5", "null": "a IS NULL"}
    assert engine(catalog, {"a": value}) == [["above", "other"]]


@pytest.mark.parametrize("value", [math.inf, np.float64("inf"), Decimal("inf")], ids=repr)
def test_infinities(value: Any) -> None:
    catalog = {"above": "a > 1e308", "below": "a < -1e308", "none": "a BETWEEN -1e308 AND 1e308"}
    assert engine(catalog, [{"a": value}, {"a": -value}]) == [["above"], ["below"]]


def test_two_columns_of_one_name_are_an_error() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(EventError, match="'a'"):
        engine({"x": "a = 1"}, table)
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(EventError, match="'a'"):
        engine({"x": "a = 1"}, twice)
    with pytest.raises(EventError, match="'a'"):
        engine({"x": "st.a = 1"}, pa.table({"st": twice}))


# ------------------------------------------------------------------ several ways in at once


def _struct_map(rows: list[Any]) -> pa.Array:
    return pa.array(rows, pa.map_(pa.string(), pa.struct([("x", pa.int64())])))


def test_the_first_of_two_map_columns_wins_structs_included() -> None:
    catalog = {"there": "n IS NOT NULL", "x1": "n.x = 1", "x2": "n.x = 2", "plain": "n = 7"}
    first, second = _struct_map([[("n", {"x": 1})], None]), _struct_map([[("n", {"x": 2})]] * 2)
    numbers = pa.array([[("n", 7)], None], pa.map_(pa.string(), pa.int64()))
    tables = [{"m": first, "o": second}, {"m": numbers, "o": second}]
    assert engine(catalog, pa.table(tables[0])) == [["there", "x1"], ["there", "x2"]]
    assert engine(catalog, pa.table(tables[1])) == [["there", "plain"], ["there", "x2"]]


def test_a_column_wins_over_two_map_columns_with_structs() -> None:
    catalog = {"column": "n = 5", "x1": "n.x = 1"}
    table = pa.table({"n": [5], "m": _struct_map([[("n", {"x": 1})]]), "o": _struct_map([None])})
    assert engine(catalog, table) == [["column"]]


def test_texts_among_mappings_are_read_as_texts_alone_are() -> None:
    catalog = {"k": "k > 0", "x": "n.x = 1", "y": "n.y = 2"}
    texts = ['{"k": 1}', '{"k": NaN}', '{"n": {"x": 1}, "n": {"y": 2}}', "[" * 200_000, '{"k"']
    matcher = bittern.Matcher(build(catalog))
    alone, among = matcher.match(texts), matcher.match([*texts, {"k": 2}])
    assert among.to_pylist() == [*alone.to_pylist(), ["k"]]
    assert among.rejects == alone.rejects
    assert [row for row, _ in alone.rejects] == [1, 3, 4]


class _Unreadable(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("broken")


def test_a_mapping_that_cannot_be_read_is_rejected_alone() -> None:
    matches = bittern.Matcher(build({"a": "a = 1"})).match([{"a": 1}, _Unreadable(a=1), {"a": 1}])
    assert matches.to_pylist() == [["a"], [], ["a"]]
    assert matches.rejects == [(1, "unreadable: RuntimeError('broken')")]


# ------------------------------------------------------------------ JSON columns beside others


@given(
    strategies.catalogs(strategies.typed_expressions(2), max_size=10),
    strategies.batches(strategies.typed_events(), max_size=8),
    st.sets(st.sampled_from(["n", "x", "s", "b", "st"])),
)
def test_some_attributes_as_columns_and_some_as_json(
    catalog: dict[str, Expression], events: list[dict[str, Any]], written: set[str]
) -> None:
    texts = {name: print_expression(tree) for name, tree in catalog.items()}
    right = expected(texts, events)
    matcher = bittern.Matcher(build(texts))
    documents = [json.dumps({name: event.get(name) for name in written}) for event in events]
    table = as_arrow(events).drop_columns(sorted(written))
    table = table.append_column("doc", pa.array(documents, pa.string()))
    struct = as_struct(table)
    forms = (table, sliced(table), struct, table.to_pandas(types_mapper=pd.ArrowDtype))
    for form in forms if events and all(_finite(event) for event in events) else ():
        matches = matcher.match(form, json="doc")
        assert matches.to_pylist() == right
        assert matches.rejects == []


def _finite(event: dict[str, Any]) -> bool:
    inner = ((event.get("st") or {}).get("deep") or {}).get("f")
    return all(x is None or math.isfinite(x) for x in (event.get("x"), inner))


@pytest.mark.parametrize(
    "encode",
    [
        pa.array,
        lambda texts: pa.array(texts, pa.large_string()),
        lambda texts: pa.array(texts, pa.string_view()),
        lambda texts: pa.array(texts).dictionary_encode(),
        lambda texts: pa.array([t and t.encode() for t in texts], pa.binary()),
    ],
    ids=["string", "large", "view", "dictionary", "binary"],
)
def test_every_encoding_of_a_json_column(encode: Any) -> None:
    texts = ['{"a": 5, "st": {"b": "x"}}', None, '{"a": 6, "doc": 1}']
    catalog = {"a": "a >= 5", "b": "st.b = 'x'", "doc": "doc IS NOT NULL", "own": "own = 1"}
    matcher = bittern.Matcher(build(catalog))
    matches = matcher.match(pa.table({"own": [1, 1, 2], "doc": encode(texts)}), json=["doc"])
    assert matches.to_pylist() == [["a", "b", "own"], ["own"], ["a", "doc"]]
    assert matches.rejects == []


def test_a_json_column_is_text_unless_it_is_named() -> None:
    table = pa.table({"doc": ['{"doc": 5, "a": 1}']})
    catalog = {"text": "doc LIKE '%5%'", "five": "doc = 5", "a": "a = 1"}
    matcher = bittern.Matcher(build(catalog))
    assert matcher.match(table).to_pylist() == [["text"]]
    assert matcher.match(table, json="doc").to_pylist() == [["five", "a"]]
    assert matcher.match(pa.table({"doc": pa.nulls(2)}), json="doc").to_pylist() == [[], []]


def test_who_wins_among_columns_maps_and_documents() -> None:
    """A column always; then the first map or document that has a value in the row."""
    kind = pa.map_(pa.string(), pa.int64())
    table = pa.table(
        {
            "second": ['{"a": 5, "b": 5, "c": 5, "d": 5}', '{"a": 5, "b": 5, "d": 5}', "{}"],
            "first": ['{"a": 4, "b": 4, "c": null}', '{"a": "four", "c": 4}', None],
            "m": pa.array([[("b", 2), ("c", 2)], [("b", None)], [("d", 2)]], kind),
            "n": pa.array([[("b", 3)], [("b", 3)], None], kind),
            "a": pa.array([1, None, 1]),
        }
    )
    catalog = {f"{name}{i}": f"{name} = {i}" for name in "abcd" for i in range(1, 6)}
    matcher = bittern.Matcher(build(catalog))
    ordered = table.select(["m", "first", "n", "second", "a"])
    matches = matcher.match(ordered, json=("second", "first"))
    assert matches.to_pylist() == [["a1", "b2", "c2", "d5"], ["b3", "c4", "d5"], ["a1", "d2"]]
    # What loses is not looked at: "four" is no number, but a has a column of its own.
    assert matches.mistyped == []
    matches = matcher.match(table.drop_columns(["a", "m", "n"]), json=("first", "second"))
    assert matches.to_pylist()[0] == ["a5", "b5", "c5", "d5"]
    structs = pa.array(
        [[("st", {"b": 2})], [("st", {"b": None})]],
        pa.map_(pa.string(), pa.struct([("b", pa.int64())])),
    )
    table = pa.table({"m": structs, "doc": ['{"st": {"b": 3, "c": 3}}'] * 2})
    catalog = {f"{name}{i}": f"st.{name} = {i}" for name in "bc" for i in (2, 3)}
    matches = bittern.Matcher(build(catalog)).match(table, json="doc")
    assert matches.to_pylist() == [["b2", "c3"], ["b3", "c3"]]


def test_a_row_with_a_broken_document_matches_nothing_at_all() -> None:
    table = pa.table(
        {
            "a": [1, 1, 1],
            "m": pa.array([[("b", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
            "doc": ['{"c": 1}', '{"c": 1', '{"c": "x"}'],
            "more": ["{}", "[]", "{}"],
        }
    )
    catalog = {name: f"{name} = 1" for name in "abc"} | {"none": "a IS NULL"}
    matcher = bittern.Matcher(build(catalog))
    matches = matcher.match(table, json=("doc", "more"))
    assert matches.to_pylist() == [["a", "b", "c"], [], ["a", "b"]]
    assert matches.rejects == [(1, "the text ends too early")]
    assert [row for row, _ in matches.mistyped] == [2]
    assert matcher.last_statistics["rejects"] == matcher.last_statistics["mistyped"] == 1


@pytest.mark.parametrize("json_", ["doc", ["a", "doc"], ("doc", "a")])
def test_a_json_column_that_is_not_there(json_: Any) -> None:
    matcher = bittern.Matcher(build({"a": "a = 1"}))
    with pytest.raises(OptionError, match=r"'doc'.*they have 'a', 'b'"):
        matcher.match(pa.table({"a": ["{}"], "b": [2]}), json=json_)


@pytest.mark.parametrize("json_", [5, [5], None, {"a"}])
def test_json_is_a_name_or_names(json_: Any) -> None:
    with pytest.raises(OptionError, match="name of a column"):
        bittern.Matcher(build({"a": "a = 1"})).match(pa.table({"a": ["{}"]}), json=json_)


def test_a_json_column_that_is_no_text() -> None:
    matcher = bittern.Matcher(build({"a": "a = 1"}))
    with pytest.raises(EventError, match=r"'b', which holds int64, not text"):
        matcher.match(pa.table({"a": ["{}"], "b": [2]}), json="b")
    for events in ([{"a": 1}], ['{"a": 1}'], pa.array(['{"a": 1}']), {"a": 1}):
        with pytest.raises(OptionError, match="json needs a table with columns"):
            matcher.match(events, json="a")


# ------------------------------------------------------------------ values that nobody compares

COMPARED = {
    "n": "n > 5",
    "s": "s = 'x'",
    "like": "l LIKE 'x%'",
    "suffix": "u LIKE '%x'",
    "regex": "r RLIKE 'x'",
    "flag": "f",
    "time": "t > DATE '2024-01-01'",
    "any": "z IS NOT NULL",
    "two": "m = 5 OR m = 'x'",
    "also null": "n IS NULL",
    "deep": "st.i = 1",
}
KINDLESS = "is not a number, string, boolean or time, and subscriptions"
MISTYPED: list[tuple[dict[str, Any], str | None]] = [
    ({"n": 5, "s": "x", "l": "x", "u": "x", "r": "x", "f": True, "z": 5, "m": 5}, None),
    ({"n": 0.5, "z": "x", "m": "x", "st": {"i": 1}}, None),
    ({"n": None, "z": [1], "unheard of": "x"}, None),
    ({"z": {"a": 1}}, None),
    ({"n": "5"}, "n is a string, and subscriptions compare it with numbers"),
    ({"n": True}, "n is a boolean, and subscriptions compare it with numbers"),
    ({"s": 5}, "s is a number, and subscriptions compare it with strings"),
    ({"l": 5}, "l is a number, and subscriptions compare it with strings"),
    ({"u": 5}, "u is a number, and subscriptions compare it with strings"),
    ({"r": 5}, "r is a number, and subscriptions compare it with strings"),
    ({"f": 1}, "f is a number, and subscriptions compare it with booleans"),
    ({"t": "2024-01-01"}, "t is a string, and subscriptions compare it with times"),
    ({"m": False}, "m is a boolean, and subscriptions compare it with numbers or strings"),
    ({"st": {"i": "1"}}, "st.i is a string, and subscriptions compare it with numbers"),
    ({"n": [1]}, f"n {KINDLESS} compare it with numbers"),
    ({"s": {"x": 1}}, f"s {KINDLESS} compare it with strings"),
]


def test_values_that_no_subscription_compares_are_reported() -> None:
    events = [event for event, _ in MISTYPED]
    right = [(row, why) for row, (_, why) in enumerate(MISTYPED) if why is not None]
    matcher = bittern.Matcher(build(COMPARED))
    texts = [json.dumps(event) for event in events]
    for form, names in (
        (events, ()),
        (texts, ()),
        (pa.array(texts), ()),
        (pa.table({"doc": texts}), "doc"),
        (pa.table({"v": variants.column([variants.encode(event) for event in events])}), ()),
    ):
        matches = matcher.match(form, json=names)
        assert matches.mistyped == right
        assert matches.rejects == []
        assert matches.to_pylist() == expected(COMPARED, events)
        assert matcher.last_statistics["mistyped"] == len(right)
        assert matcher.match(form, json=names, limit=1).mistyped == right
    encoded = matcher.index.encoder.encode(texts)
    assert encoded.mistyped == right


def test_numbers_of_every_size_are_numbers() -> None:
    matcher = bittern.Matcher(build({"n": "n > 5", "t": "t > DATE '2024-01-01'"}))
    events = [{"n": 2**70}, {"n": Decimal("1e40")}, {"n": math.nan}, {"t": dt.date(2024, 1, 1)}]
    assert matcher.match(events).mistyped == []
    assert [row for row, _ in matcher.match([{"t": 2**70}, {"t": Decimal(1)}]).mistyped] == [0, 1]


def test_one_report_per_event_in_the_order_of_attributes() -> None:
    matcher = bittern.Matcher(build({"s": "alpha = 1 AND beta = 1 AND gamma = 1"}))
    names = matcher.index.rank.attribute_names()
    events = [dict.fromkeys(order, "x") for order in (names, names[::-1], names[1:])]
    reports = matcher.match(events * 20_000).mistyped  # several blocks
    assert [row for row, _ in reports] == list(range(60_000))
    assert [why.split()[0] for _, why in reports[-3:]] == [names[0], names[0], names[1]]


def test_a_live_matcher_asks_all_its_subscriptions() -> None:
    with bittern.LiveMatcher(build({"n": "a > 5 AND b = 1"})) as live:
        events = [{"a": "x"}, {"b": "x"}, {"a": 1}, {"c": "x"}, {"a": True}]
        texts = pa.table({"doc": [json.dumps(event) for event in events]})
        assert [row for row, _ in live.match(events).mistyped] == [0, 1, 4]
        live.subscribe("s", "a = 'x' AND c = 5")
        live.subscribe("null", "b IS NULL")
        for form, names in ((events, ()), (texts, "doc")):
            told = dict(live.match(form, json=names).mistyped)
            assert sorted(told) == [1, 3, 4]
            assert told[4] == "a is a boolean, and subscriptions compare it with numbers or strings"
            assert live.last_statistics["mistyped"] == 3


def test_columns_are_judged_by_their_type() -> None:
    encoder = build(COMPARED).encoder
    schema = pa.schema(
        [
            ("n", pa.string()),
            ("s", pa.dictionary(pa.int8(), pa.string())),
            ("l", pa.decimal128(9, 2)),
            ("f", pa.bool_()),
            ("t", pa.date64()),
            ("z", pa.list_(pa.int8())),
            ("m", pa.timestamp("us")),
            ("st", pa.struct([("i", pa.large_string()), ("other", pa.int8())])),
            ("u", pa.null()),
            ("r", pa.string_view()),
            ("unheard of", pa.int8()),
        ]
    )
    assert encoder.mistyped_columns(schema) == [
        ("n", "n is of type string, and subscriptions compare it with numbers"),
        ("l", "l is of type decimal128(9, 2), and subscriptions compare it with strings"),
        ("m", "m is of type timestamp[us], and subscriptions compare it with numbers or strings"),
        ("st.i", "st.i is of type large_string, and subscriptions compare it with numbers"),
    ]
    assert [path for path, _ in encoder.mistyped_columns(schema, json="n")] == ["l", "m", "st.i"]
    table = pa.table({"n": ["5"], "s": [5]})
    assert bittern.Matcher(build(COMPARED)).match(table).mistyped == []


def test_arrows_json_type_is_a_document() -> None:
    text = pa.array(['{"a": 1}', None, "{"])
    table = pa.table({"doc": pa.ExtensionArray.from_storage(pa.json_(pa.string()), text)})
    index = build({"one": "a = 1", "text": "doc IS NOT NULL"})
    matches = bittern.Matcher(index).match(table)
    assert matches.to_pylist() == [["one"], [], []]
    assert [row for row, _ in matches.rejects] == [2]
    assert index.encoder.mistyped_columns(table.schema) == []


def test_want_of_memory_is_no_fault_of_a_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be rejected, or become a document without some of its values, and nobody told."""

    def text(self: Collector, value: str) -> int:
        raise MemoryError

    matcher, history = bittern.Matcher(build({"a": "a = 'x'"})), History()
    monkeypatch.setattr(Collector, "text", text)
    with pytest.raises(MemoryError):
        matcher.match([{"a": "x"}, {"a": 1}])
    with pytest.raises(MemoryError):
        history.append([{"a": "x"}, {"a": 1}])
    assert history.end == 0
