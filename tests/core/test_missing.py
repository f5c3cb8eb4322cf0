"""``a IS MISSING`` tells a NULL from what is not there, in every form of events.

Random expressions have it too (``strategies.py``): so strategies, shards, explanations and variants
are compared with the oracle. ``test_language_fuzz.py`` has it among its words.
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
from bittern.errors import ExpressionError
from bittern.language.normalize import normal_form
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.shapes import Shapes
from bittern.language.syntax import And, Compare, Expression, IsNull, Literal, Not
from bittern.matching.registry import STRATEGIES
from variants import column as variant_column
from variants import encode

if TYPE_CHECKING:
    from pathlib import Path

MISSING = strategies.is_missing

# ------------------------------------------------------------------ the language


@pytest.mark.parametrize(
    ("text", "tree", "printed"),
    [
        ("a IS MISSING", MISSING("a"), "a IS MISSING"),
        ("a is not Missing", Not(MISSING("a")), "a IS NOT MISSING"),
        ("NOT a.b IS MISSING", Not(MISSING("a.b")), "a.b IS NOT MISSING"),
        ("missing IS MISSING", MISSING("missing"), "missing IS MISSING"),
        ("`a.b`.`c``d` IS MISSING", MISSING("`a.b`.`c``d`"), "`a.b`.`c``d` IS MISSING"),
        ("(a) IS MISSING", MISSING("a"), "a IS MISSING"),
        ("mp['k'] IS MISSING", MISSING("mp.k"), "mp.k IS MISSING"),
        ("a /* or b */ IS -- not\n MISSING", MISSING("a"), "a IS MISSING"),
        ("missing = 5", Compare("missing", "=", Literal(5)), "missing = 5"),
        ("missing", Compare("missing", "=", Literal(True)), "missing = TRUE"),
        ("`missing` IS NULL", IsNull("missing"), "missing IS NULL"),
        (
            "missing.a = 5 AND b IS MISSING",
            And((Compare("missing.a", "=", Literal(5)), MISSING("b"))),
            "missing.a = 5 AND b IS MISSING",
        ),
    ],
)
def test_reading_and_printing(text: str, tree: Expression, printed: str) -> None:
    assert parse(text) == tree
    assert print_expression(tree) == printed
    assert parse(printed) == tree
    shapes = Shapes()
    shape, parameters = shapes.read(text)
    assert shapes.templates[shape].fill(parameters) == normal_form(tree)


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("lower(a) IS MISSING", "IS MISSING is asked of an attribute", 12),
        ("a + b IS MISSING", "IS MISSING is asked of an attribute", 9),
        ("l[0].b IS MISSING", "IS MISSING is asked of an attribute", 10),
        ("CASE WHEN a THEN b END IS MISSING", "IS MISSING is asked of an attribute", 26),
        ("5 IS MISSING", "IS MISSING is asked of an attribute", 5),
        ("(a IS MISSING) = b", "IS MISSING stands by itself, not inside a term", 0),
        ("a IS MISSING IS NULL", "IS MISSING stands by itself, not inside a term", 0),
        ("coalesce(a IS MISSING, b)", "IS MISSING stands by itself, not inside a term", 0),
        ("exists(l, i -> i.x IS MISSING)", "IS MISSING stands by itself", 0),
        ("EXISTS d (d.x IS MISSING)", "cannot stand inside EXISTS or FORALL", 17),
        ("a = 1 AND FORALL d (b IS NOT MISSING)", "cannot stand inside EXISTS or FORALL", 29),
        ("a IS MISSINGS", "expected", 5),
        ("a IS `MISSING`", "expected", 5),
        ("a IS", "expected", 4),
        ("a IS MISSING b", "expected", 13),
        ("`\3a` IS NULL", "cannot start with U+0003", 0),
        ("x = 1 AND `\3a` = 5", "cannot start with U+0003", 10),
        ("lower(`\3a`) = 'x'", "cannot start with U+0003", 6),
    ],
)
def test_refused(text: str, message: str, position: int) -> None:
    for read in (parse, Shapes().read):
        with pytest.raises(ExpressionError, match=message.replace("+", r"\+")) as wrong:
            read(text)
        assert wrong.value.position == position


def test_texts_share_shapes() -> None:
    shapes = Shapes()
    first = shapes.read("a IS MISSING AND b > 5")[0]
    for name in ("x", "x.y", "`odd name`.b", "missing"):
        assert shapes.read(f"{name} IS MISSING AND c > 7")[0] == first
        assert shapes.read(f"{name} IS NULL AND c > 7")[0] == first
    assert shapes.read("a IS NOT MISSING AND b > 5")[0] != first


# ------------------------------------------------------------------ forms of events

#: Values of every sort, for each step of a path.
VALUES: list[Any] = [None, 5, "x", True, 1.5, [], [{"b": 1}], {}, {"b": None}, {"b": 1}, {"c": 1}]
DEEP = [*VALUES, *({"b": value} for value in VALUES), {"b": {"c": None}}, {"b": {"c": [1]}}]
EVENTS: list[dict[str, Any]] = [
    {},
    {"missing": None},
    {"x.y": None, "`": 5},
    {"a.b": 1},
    *({"a": value} for value in DEEP),
]
CATALOG = {
    f"{kind} {path}": f"{path} IS {kind}"
    for path in ("a", "a.b", "a.b.c", "`x.y`", "```", "`a.b`", "missing", "other")
    for kind in ("MISSING", "NOT MISSING", "NULL")
    if path != "```"
} | {"quoted": "```` IS MISSING", "both": "a IS NULL AND a IS NOT MISSING AND other IS MISSING"}


def expected(events: list[dict[str, Any]]) -> list[list[str]]:
    trees = {id_: parse(text) for id_, text in CATALOG.items()}
    return [[id_ for id_, tree in trees.items() if oracle.matches(tree, e)] for e in events]


def matched(events: Any, catalog: dict[str, str] = CATALOG, **options: Any) -> list[list[str]]:
    return bittern.Matcher(bittern.Index.build(catalog)).match(events, **options).to_pylist()


@pytest.mark.parametrize("form", ["mappings", "one", "texts", "json", "bytes", "variant"])
def test_documents(form: str) -> None:
    texts = [json.dumps(event) for event in EVENTS]
    right = expected(EVENTS)
    if form == "mappings":
        found = matched(EVENTS)
    elif form == "one":
        found = [matched(event)[0] for event in EVENTS]
    elif form == "texts":
        found = matched(texts)
    elif form == "json":
        found = matched(pa.table({"doc": texts, "z": [1] * len(texts)}), json="doc")
    elif form == "bytes":
        found = matched(pa.table({"doc": [text.encode() for text in texts]}), json="doc")
    else:
        found = matched(pa.table({"v": variant_column([encode(event) for event in EVENTS])}))
    assert found == right
    assert right[0] != right[4], "what is NULL is told from what is missing"


_scalars = st.sampled_from([None, 1, "x", True])
_trees = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b", "x.y"]), inner, max_size=3)
    ),
    max_leaves=6,
)
_paths = st.lists(st.sampled_from(["a", "b", "`x.y`"]), min_size=1, max_size=3).map(".".join)


@given(
    st.lists(st.dictionaries(st.sampled_from(["a", "b", "x.y"]), _trees, max_size=3), max_size=6),
    st.lists(_paths, min_size=1, max_size=8, unique=True),
)
def test_random_documents(events: list[dict[str, Any]], paths: list[str]) -> None:
    catalog = {path: f"{path} IS MISSING" for path in paths}
    catalog |= {f"{path} null": f"{path} IS NULL" for path in paths}
    trees = {id_: parse(text) for id_, text in catalog.items()}
    right = [[id_ for id_, tree in trees.items() if oracle.matches(tree, e)] for e in events]
    matcher = bittern.Matcher(bittern.Index.build(catalog))
    assert matcher.match(events).to_pylist() == right
    assert matcher.match([json.dumps(event) for event in events]).to_pylist() == right
    variants = pa.table({"v": variant_column([encode(event) for event in events])})
    assert matcher.match(variants).to_pylist() == right


def test_what_is_no_mapping_is_rejected_and_matches_nothing() -> None:
    class Odd(dict):  # type: ignore[type-arg]
        def items(self) -> Any:
            raise RuntimeError("no")

    index = bittern.Index.build({"s": "a IS MISSING", "t": "a IS NOT MISSING"})
    matches = bittern.Matcher(index).match([{}, 5, None, Odd(), "{", '{"a": null}'])
    assert matches.to_pylist() == [["s"], [], ["s"], [], [], ["t"]]
    assert [row for row, _ in matches.rejects] == [1, 3, 4]


def test_repeated_keys_of_json() -> None:
    index = bittern.Index.build({"s": "a IS MISSING", "b": "a.b IS MISSING"})
    texts = ['{"a": 1, "a": null}', '{"a": null, "a": 1}', '{"\\u0061": null}', '{"b": {"a": 1}}']
    assert bittern.Matcher(index).match(texts).to_pylist() == [[], [], [], ["s", "b"]]


STRUCT = pa.struct([("b", pa.struct([("c", pa.int64())]))])


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        ({"z": pa.array([1, None])}, [["a", "a.b", "a.b.c"]] * 2),
        ({"a": pa.array([1, None])}, [["a.b", "a.b.c"]] * 2),
        ({"a": pa.nulls(2)}, [["a.b", "a.b.c"]] * 2),
        ({"a": pa.array([{"b": {"c": 1}}, {"b": None}, None], STRUCT)}, [[]] * 3),
        ({"a": pa.array([{"x": 1}, None])}, [["a.b", "a.b.c"]] * 2),
        ({"a": pa.array([{"b": 1}, None])}, [["a.b.c"]] * 2),
        ({"a": pa.array([[{"x": 1}], [], None])}, [[]] * 3),
        ({"a": pa.array(["x", "x"]).dictionary_encode()}, [["a.b", "a.b.c"]] * 2),
    ],
)
def test_columns(columns: dict[str, pa.Array], missing: list[list[str]]) -> None:
    catalog = {path: f"{path} IS MISSING" for path in ("a", "a.b", "a.b.c")}
    table = pa.table(columns)
    assert matched(table, catalog) == missing
    assert matched(table.to_struct_array().combine_chunks(), catalog) == missing
    assert matched(table.slice(1), catalog) == missing[1:]
    denied = {id_: f"NOT ({text})" for id_, text in catalog.items()}
    found = matched(table, denied)
    assert [sorted((*yes, *no)) for yes, no in zip(missing, found, strict=True)] == [
        sorted(catalog)
    ] * len(missing)


MAP = pa.map_(pa.string(), pa.int64())
DEEP_MAP = pa.map_(pa.string(), pa.struct([("b", pa.int64()), ("m", MAP)]))


def test_keys_of_maps() -> None:
    catalog = {p: f"{p} IS MISSING" for p in ("m", "m.k", "k", "m.k.b", "k.b", "`x.y`", "m.`x.y`")}
    rows = [[("k", 1), ("x.y", None)], [("k", None)], [], None]
    found = matched(pa.table({"m": pa.array(rows, MAP)}), catalog)
    inside = ["m.k.b", "k.b"]  # of a number, there is nothing
    assert found == [
        inside,
        [*inside, "`x.y`", "m.`x.y`"],
        ["m.k", "k", *inside, "`x.y`", "m.`x.y`"],
        ["k", "k.b", "`x.y`"],
    ]
    table = pa.table({"m": pa.array(rows, MAP)})
    assert matched(table.slice(1, 2), catalog) == found[1:3]
    alone = ["m", "m.k", "m.k.b", "m.`x.y`"]  # there is no column of that name
    names = [each for each in catalog if each in alone]
    assert [
        [each for each in own if each in names] for own in matched(pa.array(rows, MAP), catalog)
    ] == [names] * 4


def test_maps_of_structs_and_maps() -> None:
    paths = ("m.k", "m.k.b", "m.k.m.q", "k.b", "k.m.q", "m.k.z")
    catalog = {path: f"{path} IS MISSING" for path in paths}
    rows = [
        [("k", {"b": None, "m": [("q", None)]})],
        [("k", {"b": 1, "m": []})],
        [("k", {"b": 1, "m": None})],
        [("k", None)],
        [("other", None)],
        None,
    ]
    found = matched(pa.table({"m": pa.array(rows, DEEP_MAP)}), catalog)
    assert found == [
        ["m.k.z"],
        ["m.k.m.q", "k.m.q", "m.k.z"],
        ["m.k.z"],
        ["m.k.z"],
        ["m.k", "m.k.b", "m.k.m.q", "k.b", "k.m.q", "m.k.z"],
        ["k.b", "k.m.q"],
    ]


def test_maps_whose_keys_are_no_text() -> None:
    rows = pa.array([[(1, 2)], None], pa.map_(pa.int64(), pa.int64()))
    catalog = {path: f"{path} IS MISSING" for path in ("m", "m.k", "k")}
    assert matched(pa.table({"m": rows}), catalog) == [["m.k", "k"]] * 2


def test_several_places() -> None:
    catalog = {path: f"{path} IS MISSING" for path in ("a", "b", "a.x", "m.k")}
    table = pa.table(
        {
            "m": pa.array([[("a", 1)], [("b", None)], None, []], MAP),
            "j": ['{"b": 1}', '{"a": null}', None, '{"a": {"x": null}, "m": {"k": 1}}'],
            "v": variant_column([encode({}), encode({}), encode({"b": None}), None]),
        }
    )
    assert matched(table, catalog, json="j") == [
        ["a.x", "m.k"],
        ["m.k"],
        ["a", "a.x"],  # and NULL is what the key of a NULL map is
        ["b", "m.k"],  # the column m decides
    ]
    own = table.append_column("a", pa.array([None] * 4, pa.int64()))
    assert matched(own, catalog, json="j") == [
        ["a.x", "m.k"],
        ["a.x", "m.k"],
        ["a.x"],
        ["b", "a.x", "m.k"],
    ]


def test_events_under_such_a_name_do_not_count() -> None:
    catalog = {"s": "a IS MISSING"}
    assert matched([{"\3a": 1}, {"a": 1}], catalog) == [["s"], []]
    assert matched(pa.table({"\3a": [1]}), catalog) == [["s"]]
    assert matched(['{"\\u0003a": 1}'], catalog) == [["s"]]
    assert matched([{"\3a": {"b": [1]}}], {"s": "a.b IS MISSING"}) == [["s"]]


def test_pandas() -> None:
    pd = pytest.importorskip("pandas")
    catalog = {"a": "a IS MISSING", "b": "b IS MISSING"}
    assert matched(pd.DataFrame({"a": [1.0, None]}), catalog) == [["b"], ["b"]]
    assert matched([{"a": pd.NA}, {"b": pd.NaT}], catalog) == [["b"], ["a"]]
    assert matched([{"a": pd.NA}], {"s": "a.b IS MISSING"}) == [[]]


# ------------------------------------------------------------------ around matching


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_strategies(name: str) -> None:
    catalog = {
        "one": "i = 1 AND j IS NOT MISSING",
        "two": "i = 1 AND j IS MISSING",
        "null": "i = 1 AND j IS NULL AND j IS NOT MISSING",
    }
    parameters = {"domain": (0, 9)} if name == "kindex" else {}
    index = bittern.Index.build(catalog, strategy=name, parameters=parameters, on_error="skip")
    held = set(index.ids.to_pylist())
    events = [{"i": 1}, {"i": 1, "j": None}, {"i": 1, "j": 5}, {"j": 5}]
    right = [["two"], ["one", "null"], ["one"], []]
    found = bittern.Matcher(index).match(events).to_pylist()
    assert found == [[each for each in own if each in held] for own in right]
    assert held >= {"one"}


def test_snapshots(tmp_path: Path) -> None:
    bittern.Index.build(CATALOG).save(tmp_path / "s.bittern")
    index = bittern.Index.open(tmp_path / "s.bittern", verify=True)
    assert bittern.Matcher(index).match(EVENTS).to_pylist() == expected(EVENTS)


def test_live() -> None:
    index = bittern.Index.build({"s": "x = 1"})
    with bittern.LiveMatcher(index) as live:
        live.subscribe("t", "a IS MISSING AND x = 1")
        live.subscribe("u", "a IS NOT MISSING AND a IS NULL")
        events = [{"x": 1}, {"x": 1, "a": None}, {"a": 2}]
        assert live.match(events).to_pylist() == [["s", "t"], ["s", "u"], []]
        live.unsubscribe("t")
        assert live.match(events).to_pylist() == [["s"], ["s", "u"], []]


def test_beside_a_quantifier(tmp_path: Path) -> None:
    index = bittern.Index.build({"s": "a IS MISSING AND EXISTS d (d.x = x)"})
    with bittern.LiveMatcher(index, history=tmp_path / "h") as live:
        events = [{"x": 1}, {"x": 1, "a": None}, {"x": 1}, {"x": 2}]
        assert live.match(events).to_pylist() == [[], [], ["s"], []]


def test_beside_a_term() -> None:
    catalog = {"s": "lower(a) = 'x' OR a IS MISSING", "t": "b IS NOT MISSING AND length(a) = 1"}
    assert matched([{"a": "X"}, {}, {"a": "Y", "b": None}], catalog) == [["s"], ["s"], ["t"]]


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ({}, "a.b IS MISSING: true, a.b is missing"),
        ({"a": 5}, "a.b IS MISSING: true, a.b is missing"),
        ({"a": None}, "a.b IS MISSING: false, a.b is null"),
        ({"a": {"b": None}}, "a.b IS MISSING: false, a.b is null"),
        ({"a": {"b": 7}}, "a.b IS MISSING: false, a.b is 7"),
        ('{"a": {"b": null}}', "a.b IS MISSING: false, a.b is null"),
        (pa.table({"a": [5]}), "a.b IS MISSING: true, a.b is missing"),
        (pa.table({"a": pa.array([None], STRUCT)}), "a.b IS MISSING: false, a.b is null"),
        (pa.table({"a": pa.array([[]], MAP)}), "a.b IS MISSING: true, a.b is missing"),
        (pa.table({"a": pa.array([[("b", 7)]], MAP)}), "a.b IS MISSING: false, a.b is 7"),
    ],
)
def test_explanations(event: Any, found: str) -> None:
    index = bittern.Index.build({"s": "a.b IS MISSING"})
    explanation = bittern.explain(index, event, "s")
    assert found in str(explanation)
    assert [["s"] if explanation.matched else []] == bittern.Matcher(index).match(event).to_pylist()
