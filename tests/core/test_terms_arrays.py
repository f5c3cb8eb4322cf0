"""Arrays, maps and structs in terms: their functions, and events of every form that hold them."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bittern
import variants
from bittern.errors import LimitError
from bittern.language.scalars import read_term
from bittern.language.term_printer import print_term
from bittern.model.events.derived.opened import _one_by_one, typed_arrays
from bittern.terms.nested import arrays, lambdas
from bittern.terms.nested.nested import settled_nested
from bittern.terms.scope import MeaninglessError, evaluate, functions

SUBSCRIPTIONS = {
    "cheap": "exists(items, i -> i.price < 10 AND i.quantity > 2)",
    "tagged": "array_contains(tags, 'x')",
    "several": "size(tags) > 1",
    "first": "items[0].price = 5",
    "keyed": "map_contains_key(m, 'k')",
    "value": "m['k'] = 1",
    "prices": "array_contains(items.price, 12)",
    "entries": "size(m) = 2",
    "branded": "exists(tags, t -> t = brand)",
    "found": "element_at(m, brand) = 1",
    "no prices": "items.price IS NULL",
    "deep": "size(deep.list.p) = 2",
    "odd": "exists(`odd.name`.tags, t -> t >= 'q')",
    "all": "forall(items, i -> i.quantity > 1)",
    "nested": "exists(items, i -> exists(i.codes, c -> c = 7))",
    "plain": "brand = 'y'",
}
EVENTS: list[dict[str, Any]] = [
    {
        "items": [{"price": 5, "quantity": 3}, {"price": 12, "quantity": 1, "codes": [1, 7]}],
        "tags": ["x", "y"],
        "m": {"k": 1, "z": 2},
        "brand": "y",
    },
    {"items": [{"price": 12, "quantity": 3}], "tags": ["z"], "m": {"y": 1}, "brand": "y"},
    {"items": [], "tags": []},
    {"tags": None, "m": {"k": None}},
    {"items": [None, {"price": None}], "tags": [None, "x"], "m": {}},
    {"deep": {"list": [{"p": 1}, {"p": None}]}, "odd.name": {"tags": ["q\u00e9\\"]}},
    {},
]
EXPECTED = [
    {"cheap", "tagged", "several", "first", "keyed", "value", "prices", "entries", "branded"}
    | {"nested", "plain"},
    {"prices", "found", "all", "plain"},
    {"all"},
    {"keyed", "no prices"},
    {"tagged", "several"},
    {"no prices", "deep", "odd"},
    {"no prices"},
]
ITEM = pa.struct([("price", pa.uint32()), ("quantity", pa.int8()), ("codes", pa.list_(pa.int64()))])
WORDS = pa.large_list(pa.dictionary(pa.int8(), pa.string()))
SCHEMA = pa.schema(
    [
        ("items", pa.list_(ITEM)),
        ("tags", WORDS),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("brand", pa.string()),
        ("deep", pa.struct([("list", pa.list_(pa.struct([("p", pa.float32())])))])),
        ("odd.name", pa.struct([("tags", pa.list_(pa.large_string()))])),
    ]
)


def table() -> pa.Table:
    rows = [{name: event.get(name) for name in SCHEMA.names} for event in EVENTS]
    rows = [row | {"m": list(row["m"].items()) if row["m"] else row["m"]} for row in rows]
    rows[4]["m"] = []
    return pa.Table.from_pylist(rows, SCHEMA)


def forms() -> dict[str, Any]:
    texts = [json.dumps(event) for event in EVENTS]
    whole = table()
    return {
        "table": whole,
        "chunks": pa.concat_tables([whole.slice(0, 3), whole.slice(3)]),
        "structs": whole.to_struct_array(),
        "mappings": EVENTS,
        "arrays": [
            {name: tuple(value) if isinstance(value, list) else value for name, value in e.items()}
            for e in EVENTS
        ],
        "texts": texts,
        "column of texts": pa.array(["", *texts])[1:],
        "variants": variants.column([variants.encode(event) for event in EVENTS]),
    }


@pytest.fixture(scope="module")
def matcher() -> bittern.Matcher:
    return bittern.Matcher(bittern.Index.build(SUBSCRIPTIONS))


@pytest.mark.parametrize("form", list(forms()))
def test_events_of_all_forms_match_the_same(matcher: bittern.Matcher, form: str) -> None:
    found = matcher.match(forms()[form])
    assert [set(each) for each in found.to_pylist()] == EXPECTED
    why = "items[0].price has no value: the array has no element there"
    assert (2, why) in list(found.mistyped)


def test_documents_in_columns_and_next_to_columns(matcher: bittern.Matcher) -> None:
    texts = pa.array([json.dumps(event) for event in EVENTS])
    found = matcher.match(pa.table({"doc": texts}), json="doc")
    assert [set(each) for each in found.to_pylist()] == EXPECTED
    own = pa.table({"doc": texts, "tags": pa.array([["own"]] * len(EVENTS))})
    assert not any("tagged" in each for each in matcher.match(own, json="doc").to_pylist())


def match(expression: str, events: Any) -> list[bool]:
    found = bittern.Matcher(bittern.Index.build({0: expression})).match(events)
    return [bool(each) for each in found.to_pylist()]


def test_each_event_has_its_own_types() -> None:
    values: list[Any] = [[1, 2], [1, 2.5], ["1"], [], [None], [1, "a"], 5, {"a": 1}, [True], [[1]]]
    events = [{"v": value} for value in values]
    texts = [json.dumps(event) for event in events]
    for form in (events, texts):
        assert match("array_contains(v, 1)", form) == [True, True, *[False] * 8]
        assert match("array_contains(v, '1')", form) == [*[False] * 2, True, *[False] * 7]
        sizes = [2, 2, 1, 0, 1, 2, None, 1, 1, 1]
        assert match("size(v) = 2", form) == [size == 2 for size in sizes]
    index = bittern.Index.build({0: "array_contains(v, 1)"})
    assert [row for row, _ in bittern.Matcher(index).match(events).mistyped] == [2, 5, 6, 7, 8, 9]


def test_numbers_of_json_are_read_as_elsewhere() -> None:
    texts = ['{"v": [9007199254740993, 1e999, 99999999999999999999999, -0.0, 1.50]}']
    assert match("array_contains(v, 9007199254740992e0)", texts) == [True]  # one list, one type
    assert match("array_contains(v, 0)", texts) == [True]
    assert match("array_contains(v, 9007199254740993)", ['{"v": [9007199254740993]}']) == [True]
    assert match("array_contains(v, 9007199254740992)", ['{"v": [9007199254740993]}']) == [False]
    assert match("array_contains(v.a, 2)", ['{"v": [3], "v": [{"a": 1, "a": 2}]}']) == [True]


def test_python_values_of_all_kinds() -> None:
    moment = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
    day = dt.date(2024, 5, 1)
    values: list[Any] = [
        [moment, day],
        [day],
        np.array(["2024-05-01"], dtype="datetime64[ns]"),
        np.array([1, 2], dtype=np.int16),
        [Decimal("1.5"), 2],
        [2**70, 1],
        [2**70, Decimal("1e-30")],
        [Decimal("NaN")],
        [b"x"],
        [dt.timedelta(seconds=1)],
        ["\ud800"],
        [{1}],
        {"a": [1], "b": [2.5]},
    ]
    found = {
        place: array.type
        for places, array in typed_arrays(values, frozenset())
        for place in places.tolist()
    }
    time = pa.timestamp("us", "UTC")
    kinds = [time, pa.date32(), time, pa.int64(), pa.decimal128(21, 1), pa.decimal128(22, 0)]
    assert [found[place].value_type for place in range(6)] == kinds
    assert [found[place].value_type for place in (6, 7)] == [pa.float64()] * 2
    assert found[12] == pa.map_(pa.string(), pa.list_(pa.float64()))
    assert match("size(v) = 1", [{"v": value} for value in values])[7:12] == [True] * 5


def test_values_read_together_are_as_read_alone() -> None:
    generator = random.Random(3)
    pool: list[Any] = [None, 1, 2.5, 7, 2**53 + 1, "a", True, {"f": 1}, {"f": 2.5}, {"f": None}]
    pool += [{}, [1], [1, 2.5], [], {"f": [1, None]}, 2**64]

    def some() -> Any:
        own = generator.sample(pool, generator.choice([1, 1, 2, 3]))
        drawn = generator.choices(own, k=generator.randrange(4))
        return dict(zip("fghi", drawn, strict=False)) if generator.random() < 0.3 else drawn

    values = [some() for _ in range(400)]
    fields = frozenset("f")
    together: dict[int, pa.Scalar] = {}
    for places, array in typed_arrays(values, fields):
        together |= dict(zip(places.tolist(), array, strict=True))
    assert sorted(together) == list(range(400))

    def shown(found: Any) -> Any:
        """Without what is missing, and with types of numbers told apart."""
        if isinstance(found, list):
            return [shown(each) for each in found]
        if isinstance(found, tuple):
            return found[0], shown(found[1])
        if isinstance(found, dict):
            return {key: shown(each) for key, each in found.items() if each is not None}
        return repr(found)

    for place, value in enumerate(values):
        ((_, alone),) = typed_arrays([value], fields)
        assert shown(alone[0].as_py()) == shown(together[place].as_py()), value
        slow = _one_by_one([value], fields)[0][1]
        assert shown(alone[0].as_py()) == shown(slow[0].as_py()), value


def test_deep_and_cyclic_values_end() -> None:
    cyclic: list[Any] = [1]
    cyclic.append(cyclic)
    twice: list[Any] = []
    twice += [twice, twice, 1]
    assert match("size(v) = 2", [{"v": cyclic}, {"v": twice}]) == [True, False]


def test_mangled_variants_do_no_harm() -> None:
    index = bittern.Index.build(
        {0: "size(c.d) = 2", 1: "exists(c.d, x -> x.a = 2)", 2: "size(c) > 0"}
    )
    generator = random.Random(5)
    pairs = [variants.mangled(generator) for _ in range(300)]
    bittern.Matcher(index).match(variants.column(pairs))


# ------------------------------------------------------------------ functions


def value(text: str, **columns: pa.Array) -> list[Any]:
    n_rows = len(next(iter(columns.values()))) if columns else 1
    return evaluate(read_term(text), columns, n_rows)[0].to_pylist()


def failures(text: str, **columns: pa.Array) -> list[int]:
    found = evaluate(read_term(text), columns, len(next(iter(columns.values()))))[1]
    return sorted({row for each in found for row in each.rows.tolist()})


def contains(a: list[Any] | None, x: Any) -> bool | None:
    if a is None or x is None:
        return None
    return True if x in a else None if None in a else False


def overlap(a: list[Any] | None, b: list[Any] | None) -> bool | None:
    if a is None or b is None:
        return None
    if ({*a} & {*b}) - {None}:
        return True
    return None if a and b and None in [*a, *b] else False


def exists(a: list[Any] | None, x: Any) -> bool | None:
    if a is None:
        return None
    holds = [None if e is None or x is None else e > x for e in a]
    return True if True in holds else None if None in holds else False


def test_random_columns_against_python() -> None:
    generator = random.Random(1)
    pool = [None, *range(6)]

    def some() -> list[Any] | None:
        if generator.random() < 0.1:
            return None
        return generator.choices(pool, k=generator.randrange(6))

    a, b = [some() for _ in range(500)], [some() for _ in range(500)]
    x = generator.choices(pool, k=500)
    kind = pa.list_(pa.int32())
    given = {"a": pa.array(a, kind), "b": pa.array(b, kind), "x": pa.array(x, pa.int32())}
    both = list(zip(a, b, strict=True))
    each = list(zip(a, x, strict=True))
    there = [None if r is None else [e for e in r if e is not None] for r in a]
    assert value("array_contains(a, x)", **given) == [contains(r, e) for r, e in each]
    assert value("arrays_overlap(a, b)", **given) == [overlap(r, s) for r, s in both]
    assert value("exists(a, e -> e > x)", **given) == [exists(r, e) for r, e in each]
    assert value("NOT forall(a, e -> e <= x)", **given) == [exists(r, e) for r, e in each]
    assert value("array_max(a)", **given) == [max(r, default=None) if r else None for r in there]
    assert value("array_min(a)", **given) == [min(r, default=None) if r else None for r in there]
    assert value("filter(a, e -> e > 2)", **given) == [
        None if r is None else [e for e in r if e > 2] for r in there
    ]
    assert value("array_distinct(a)", **given) == [r and list(dict.fromkeys(r)) for r in a]
    nulls = [None if r is None else [e for e in r if e is None] for r in a]
    assert value("sort_array(a)", **given) == [
        None if r is None else n + sorted(r) for r, n in zip(there, nulls, strict=True)
    ]
    assert value("slice(a, 2, 2)", **given) == [r and r[1:3] for r in a]
    assert value("get(a, x)", **given) == [
        None if r is None or e is None or e >= len(r) else r[e] for r, e in each
    ]
    want = [sum(e is not None for e in r) if r else 0 for r in a]
    own = "aggregate(coalesce(a, array()), array(1), (c, e) -> if(e IS NULL, c, c)) IS NOT NULL"
    assert value(own, **given) == [True] * 500
    assert value("size(filter(coalesce(a, array()), e -> e IS NOT NULL))", **given) == want


def test_constants_fold_and_read_back() -> None:
    for text, result in {
        "size(array(1, 2, 3))": "3",
        "array('it''s', NULL)": "array('it''s', NULL)",
        "array_contains(array(1, 2), 2)": "TRUE",
        "array_max(array(1.5, 2))": "CAST('2.0' AS DECIMAL(11, 1))",
        "array(1, 2)[1]": "2",
        "element_at(array('a'), -1)": "'a'",
        "slice(array(1, 2, 3), 2, 9)": "array(2, 3)",
        "get(array(1), 5) IS NULL": "TRUE",
        "array(1, 2)[7]": "array(1, 2)[7]",
        "sort_array(array(2, 1), FALSE)": "array(2, 1)",
        "array_join(array('a', 'b'), '-')": "'a-b'",
    }.items():
        assert print_term(read_term(text)) == result
    for text in (
        "exists(a, `x y` -> (`x y`.b > 1))",
        "transform(a, (x, i) -> array(x, i))",
        "get(a, 1).`b.c`.d",
        "m['']",
        "coalesce(a, array())[b]",
    ):
        assert print_term(read_term(text)) == text


def test_keys_of_maps_are_paths() -> None:
    for text in ("m['k']", "m.k", "(m).k", '(m)["k"]'):
        assert read_term(text) == read_term("m.k")
    assert print_term(read_term("m['a.b'].c")) == "m.`a.b`.c"
    with pytest.raises(LimitError):
        read_term("m" + "['k']" * 100)


def test_what_comes_behind_the_answer_cannot_fail() -> None:
    a = pa.array([[[1], []], [[], [1]], [[2], []]])
    assert failures("exists(a, e -> e[0] = 1)", a=a) == [1, 2]
    assert value("exists(a, e -> e[0] = 1)", a=a) == [True, None, None]
    assert failures("forall(a, e -> e[0] = 1)", a=a) == [0, 1]
    assert value("forall(a, e -> e[0] = 1)", a=a) == [None, None, False]
    assert failures("size(transform(a, e -> e[0])) = 2", a=a) == [0, 1, 2]


def test_many_elements_are_taken_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lambdas, "MAX_ELEMENTS", 10)
    a = [list(range(i % 7)) for i in range(100)]
    a[50] = list(range(11))
    w = ["x" * (160 if i == 3 else 1) for i in range(100)]
    given = {"a": pa.array(a), "w": pa.array(w)}
    want = [4 in each for each in a]
    assert failures("exists(a, e -> e = 4)", **given) == [50]
    assert value("exists(a, e -> e = 4)", **given) == [
        None if i == 50 else each for i, each in enumerate(want)
    ]
    assert failures("exists(a, e -> e = 4 AND w = 'x')", **given) == [3, 50]
    doubled = [None if i == 50 else [[e] for e in each] for i, each in enumerate(a)]
    assert value("transform(a, e -> array(e))", **given) == doubled
    # What is repeated for each element counts, too.
    assert value("exists(array(1, 2, 3), e -> e = size(a))", **given) == [
        None if 3 * (1 + len(each)) > 10 else len(each) in (1, 2, 3) for each in a
    ]


def test_texts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    long = pa.array(["-" * 600_000, "-", None])
    a = pa.array([["x"] * 3, ["x"] * 3, ["x"]])
    assert failures("array_join(a, w)", a=a, w=long) == [0]
    assert value("array_join(a, w)", a=a, w=long) == [None, "x-x-x", None]
    monkeypatch.setattr(arrays, "_MAX_TEXTS", 10)
    assert failures("array_join(a, '-')", a=a) == [2]
    assert failures("aggregate(a, '', (c, e) -> e)", a=pa.array([["x"] * 10_001])) == [0]


def test_types_without_meaning() -> None:
    given = {
        "a": pa.array([[1]], pa.list_(pa.int64())),
        "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "x": pa.array([1]),
        "s": pa.array(["x"]),
        "r": pa.array([[{"f": 1}]]),
    }
    for text in (
        "size(x)",
        "array_size(m)",
        "array_contains(a, s)",
        "array_contains(x, 1)",
        "arrays_overlap(a, array('x'))",
        "a[1.5]",
        "x[0]",
        "get(m, 1)",
        "map_keys(a)",
        "map_contains_key(m, 1)",
        "get(r, 0)[s]",
        "exists(a, 1)",
        "exists(x, e -> e)",
        "exists(a, e -> e)",
        "exists(a, (e, i) -> e = i)",
        "aggregate(a, 's', (c, e) -> e)",
        "aggregate(a, 0, c -> c)",
        "sort_array(a, x)",
        "array_join(r, ',')",
        "size(e -> e)",
    ):
        with pytest.raises(MeaninglessError):
            value(text, **given)


def test_values_of_several_types_are_not_equal() -> None:
    texts = [
        "l[0] = l[1]",
        "l[0] <= l[1]",
        "l[0] IN (l[1])",
        "array_contains(l, l[1])",
        "size(array_distinct(l)) = 1",
        "arrays_overlap(l, l)",
        "exists(l, x -> x = l[0])",
        "greatest(l[0], l[1]) IS NOT NULL",
        "CASE l[0] WHEN l[1] THEN 1 ELSE 2 END IS NOT NULL",
        "a = b",
    ]
    matcher = bittern.Matcher(bittern.Index.build({text: text for text in texts}))
    matches = matcher.match([{"l": [1, "x"], "a": {1}, "b": {2}}, {"l": [1, 1], "a": 1, "b": 1}])
    assert matches.ids(0) == []
    assert sorted(matches.ids(1)) == sorted(texts)
    assert [row for row, _ in matches.mistyped] == [0]


def test_types_that_spark_lacks_are_only_there() -> None:
    pieces = [pa.array([1, 2]), pa.array(["a", "b"])]
    for array in (
        pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), pieces),
        pa.array([1, 2], pa.int32()).view(pa.time32("s")),
        pa.array([1, 2], pa.decimal256(50, 0)),
    ):
        texts = {"there": "coalesce(a, a) IS NOT NULL", "same": "a = b", "longer": "length(a) > 0"}
        matcher = bittern.Matcher(bittern.Index.build(texts))
        assert matcher.match(pa.table({"a": array, "b": array})).to_pylist() == [["there"]] * 2


def test_types_of_arrow_beyond_those_of_spark() -> None:
    far = pa.array([2**62, -(2**62), 0, None])
    for kind, most in ((pa.timestamp("s", "UTC"), 10**6), (pa.timestamp("ms"), 1000)):
        micros = settled_nested(far.view(kind)).cast(pa.int64()).to_pylist()
        limit = (2**63 - 1) // most * most
        assert micros == [limit, -limit, 0, None]
    days = pa.array([-1, 86_400_001, 2**62, None]).view(pa.date64())
    assert settled_nested(days).view(pa.int32()).to_pylist() == [-1, 1, 2**31 - 1, None]
    hundreds = settled_nested(pa.array([Decimal(500), None], pa.decimal128(3, -2)))
    assert (hundreds.type, hundreds[0].as_py()) == (pa.decimal128(5, 0), 500)
    assert settled_nested(pa.array([5], pa.decimal256(9, 1))).type == pa.decimal128(9, 1)


def test_what_arrow_cannot_do_stops_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise pa.ArrowNotImplementedError("no kernel")

    matcher = bittern.Matcher(bittern.Index.build({"a": "lower(s) = 'x'", "b": "upper(s) = 'X'"}))
    monkeypatch.setitem(functions(), "lower", functions()["lower"]._replace(evaluate=refused))
    matches = matcher.match([{"s": "x"}, {}])
    assert matches.to_pylist() == [["b"], []]
    assert matches.mistyped == [(0, "lower(s) has no value: no kernel")]


def test_nothing_in_all_places() -> None:
    for text in (
        "size(nothing)",
        "array_contains(nothing, 1)",
        "array_contains(array(1), nothing)",
        "arrays_overlap(nothing, array(1))",
        "array_position(nothing, 1)",
        "array_max(nothing)",
        "array_distinct(nothing)",
        "array_join(nothing, ',')",
        "array_join(array('a'), nothing)",
        "slice(nothing, 1, 1)",
        "slice(array(1), nothing, 1)",
        "sort_array(nothing)",
        "sort_array(array(1), NULL)",
        "nothing[0]",
        "nothing[nothing]",
        "get(array(1, 2), nothing)",
        "element_at(nothing, 1)",
        "map_keys(nothing)",
        "map_contains_key(nothing, 1)",
        "exists(nothing, e -> e > 1)",
        "forall(nothing, e -> e)",
        "filter(nothing, e -> e)",
        "transform(nothing, e -> 1)",
        "aggregate(nothing, 0, (c, e) -> c)",
    ):
        for n_rows in (0, 3):
            found, failed = evaluate(read_term(text), {"nothing": pa.nulls(n_rows)}, n_rows)
            assert found.to_pylist() == [None] * n_rows, text
            assert not failed


def test_arrow_types_are_settled_inside() -> None:
    words = pa.array([["a", None], None, ["b"]])
    for kind in (
        pa.large_list(pa.large_string()),
        pa.list_(pa.string_view()),
        pa.list_view(pa.string()),
        pa.list_(pa.field("element", pa.string(), nullable=True)),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
    ):
        array = settled_nested(pa.array([["z"], *words.to_pylist()], kind)[1:])
        assert array.type == pa.list_(pa.string())
        assert array.to_pylist() == words.to_pylist()
    pairs = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.uint8(), 2))
    assert settled_nested(pairs).type == pa.list_(pa.int16())
    assert settled_nested(pairs[1:]).to_pylist() == [None, [3, 4]]
    entries = [[("a", 1)], None, [("b", None), ("c", 2)]]
    maps = pa.array(entries, pa.map_(pa.large_string(), pa.uint64()))
    assert settled_nested(maps[1:]).to_pylist() == entries[1:]
    assert settled_nested(maps).type == pa.map_(pa.string(), pa.decimal128(20, 0))
    hidden = pa.ListArray.from_arrays([0, 2, 3], pa.array([1, 2, 3]), mask=pa.array([True, False]))
    assert settled_nested(hidden).to_pylist() == [None, [3]]
    assert len(settled_nested(hidden).values) == 1
    deep = pa.array([{"s": [{"t": dt.datetime(2024, 1, 1)}]}, None])
    assert str(settled_nested(deep).type) == "struct<s: list<item: struct<t: timestamp[us]>>>"
    assert settled_nested(deep).to_pylist() == deep.to_pylist()
    assert settled_nested(pa.array([[{}], None])).to_pylist() == [[{}], None]
