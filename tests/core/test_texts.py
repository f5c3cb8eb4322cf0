"""Columns of texts read by kernels: the same shapes and mistakes as one text at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
from bittern.engine.known_schema import KnownSchema
from bittern.engine.subscriptions import read_subscriptions
from bittern.engine.texts.columns import ColumnReader
from bittern.engine.texts.distinct import Distinct
from bittern.errors import ExpressionError
from bittern.language.normalize import normal_form
from bittern.language.parser import parse
from bittern.language.shapes import Shapes
from bittern.model.strings import arrow_text
from effort import examples

#: What stands between two words, and words that are easily taken for one another.
FRAMES = [
    "{} = {}", "{}={}AND{}<{}", "{} = {} AND {} < {}", "{} < {} AND {} = {}", "{} = {} {}",
    "{}{}{}",
    "{} IN ({}, {})", "{} IN({},{}){}", "{} BETWEEN {} AND {}", "{} LIKE {} OR {}", "{}RLIKE{}",
    "{} NOT LIKE {} ESCAPE {}", "{} < DATE {}", "{} {} < TIMESTAMP {}", "{} is {}", "NOT{} OR{}",
    "NOT ({} = {} AND {} = {})", "({}{}{})", "{} IS NULL AND {} = {} AND {} <= {}", "{}\n+\t{}",
]  # fmt: skip
WORDS = [
    "a", "b", "c", "b.c", "_x1", "b.c.d", "`a b`", "`a", "and", "OR", "not", "IN", "null", "TRUE",
    "missing", "b.missing", "exists", "EXISTS d", "date", "and.b", "a.and", "a.", "x", "ilike",
    "\u0131s", "r", "r'x'", "R\"x'", "'x'", "'x%'", "'%x'", "'x''y'", '"x"', "'\\\\'", "'\\", "'/'",
    "'\\u00e9'", "'\\U00110000'", "'é'", "'∃'", "'€--'", "'/*'", "''", "'\0'", "'2020-01-01'",
    "'2020-02-30'", "'('", "'", '"', "\\", "5", "-5", "- 5", "+5", "+", "5.", ".5", ".5.5", "5..5",
    "5e3", "5e", "5e-5", "5E+99", "5e999", "5L", "999999999999999999", "9999999999999999999",
    "12345678901234567.8", "٣", "--", "/*", ".", ",", "(", ")", "==", "!", "-", "\0", "\x1f",
    "\x7f", "\u00a0", "é", "∀ d (d.a = b)", "/", "lower(a)",
]  # fmt: skip
#: Conditions in which AND, OR and NOT are nested.
CONDITIONS = [
    "a = 1 AND NOT (b IN (2, 3) OR NOT (c < 4 AND d BETWEEN 5 AND 6))",
    "NOT NOT (a NOT IN (1, 2) OR b != 3) AND (c = 'x' OR d IS NULL)",
    "((a = 1)) OR (b IS NOT NULL AND (c IN (1)))",
    "a = NULL OR (b = 1 AND c = 2)",
    "(a LIKE 'x%' OR b = 2) AND NOT (c < DATE '2024-01-02')",
    "NOT (a OR 5 < b) AND c BETWEEN 1 AND d",
    "(lower(a) = 'x' OR b = 1) AND NOT c NOT BETWEEN 2 AND 3",
    "a = 1 OR b = 2 AND TRUE",
    "a IN (1, (2)) OR b = 1",
]
#: The same with a mistake.
WRONG_CONDITIONS = [
    "(a = 1 OR b = 2) AND (c = 3 OR d = )",
    "(a = 1 OR b = 2)) AND (c = 3",
    "((a = 1 OR b = 2)",
    "(a = 1 OR b = 2) AND",
    "(a = 1) b = 2 OR c = 3",
    "a = 1 OR NOT",
]


def column_of(texts: list[bytes]) -> pa.Array:
    """Texts, of which some may not be UTF-8, behind others that were cut off."""
    offsets = np.cumsum([0, 3, *map(len, texts)]).astype(np.int64)
    return arrow_text(np.frombuffer(b"cut" + b"".join(texts), np.uint8), offsets)[1:]


def one_by_one(shapes: Shapes, texts: list[bytes]) -> tuple[list[int], list[str], list[tuple]]:
    """The shapes, parameters and mistakes of texts."""
    ids, raws, bad = [], [], []
    for row, text in enumerate(texts):
        try:
            shape_id, parameters = shapes.read(text.decode(errors="surrogateescape"))
        except ExpressionError as wrong:
            ids.append(-1)
            bad.append((row, type(wrong), wrong.message, wrong.position))
            continue
        ids.append(shape_id)
        raws += parameters
    return ids, raws, bad


def agree(texts: list[bytes]) -> None:
    plain, shapes = Shapes(), Shapes()
    expected = one_by_one(plain, texts)
    reader = ColumnReader(shapes)
    cut = len(texts) // 3
    ids, bad = [], []
    for start, part in ((0, texts[:cut]), (cut, texts[cut:])):
        found, wrong = reader.read(column_of(part))
        ids += found.tolist()
        bad += [(start + row, type(own), own.message, own.position) for row, own in wrong]
    parameters = reader.parameters()
    assert (ids, parameters.to_pylist(), bad) == expected
    assert shapes.templates == plain.templates
    assert parameters.dictionary.to_pylist() == list(dict.fromkeys(expected[1]))


filled = st.tuples(
    st.sampled_from(FRAMES), st.lists(st.sampled_from(WORDS), min_size=6, max_size=6)
).map(lambda drawn: drawn[0].format(*drawn[1]).encode())
broken = st.sampled_from(
    [b"a = '\xff'", b"a = '\xed\xa0\x80' -- \xc3", b"\xe9 = 1", b"a = 1 -- \xff"]
)
plain_texts = st.sampled_from(
    [b"a = 1", b"b <= 2 AND a = 1", b"a = 1 AND b <= 2", b"c = 7", b"a = 1 AND c = 2 AND b <= 'x'"]
)


@pytest.mark.parametrize("many", [0, 2, 1000])
@examples(4)
@given(st.lists(st.one_of(plain_texts, filled, filled, broken), max_size=40))
def test_a_column_is_read_as_one_text_after_the_other(many: int, texts: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bittern.language.shapes._MANY_KEYS", many)
        agree(texts + texts[::2])


def test_long_texts_and_many_of_them_and_blocks(monkeypatch) -> None:
    monkeypatch.setattr("bittern.engine.texts.columns._BYTES", 4096)
    monkeypatch.setattr("bittern.engine.texts.words.MOST_KEYS", 4096)
    long = " AND ".join(f"a{i} = {i}" for i in range(6000)).encode()
    texts = [f"a = {i} AND b{i % 7} <= {i % 11}".encode() for i in range(500)]
    texts += [b"x = '" + b"y" * length + b"'" for length in (100, 65_530, 65_531)]
    agree([*texts, long, long[:3000] + b"0", *texts])


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_are_put_together_as_the_parser_would(monkeypatch, text: str) -> None:
    monkeypatch.setattr("bittern.language.shapes._MANY_KEYS", 0)
    shapes = Shapes()
    right = normal_form(parse(text))
    for _ in range(2):  # the second time, its predicates are known
        shape_id, parameters = shapes.read(text)
        assert shapes.templates[shape_id].fill(parameters) == right
    assert len(shapes.templates) == 1


@pytest.mark.parametrize("text", WRONG_CONDITIONS)
def test_mistakes_in_conditions_are_where_they_were_made(monkeypatch, text: str) -> None:
    monkeypatch.setattr("bittern.language.shapes._MANY_KEYS", 0)
    with pytest.raises(ExpressionError) as expected:
        parse(text)
    shapes = Shapes()
    shapes.read("a = 1 OR (b = 2 OR NOT c = 3)")
    with pytest.raises(ExpressionError) as caught:
        shapes.read(text)
    assert caught.value.message == expected.value.message
    assert caught.value.position == expected.value.position


def test_strings_are_numbered_as_they_come() -> None:
    strings = Distinct()
    assert len(strings) == 0
    assert strings.to_arrow().to_pylist() == []
    assert len(strings.make_room(3, 10).slots) >= 6


ROWS = [
    (1, "a = 1", None), (2, "a = ", None), (2, "b = 2", None), (1, "c = 3", None), (True, "a", 1),
    ("x", "d = 4", 2.0), ("x\ud800", "d = 4", None), ("y", 5, None), ("z", None, None),
    ("w", "e = 5", float("nan")), (3, "f = '\ud800'", None), (4, "f = 'x'", 7),
]  # fmt: skip


@pytest.mark.parametrize("form", ["plain", "repeated", "mixed", "weights"])
def test_many_rows_are_checked_as_few_are(monkeypatch, form: str) -> None:
    monkeypatch.setattr("bittern.engine.given.CHUNK", 5)
    rows = {
        "plain": [(i, f"a = {i}" if i % 7 else "a = ", None) for i in range(20)],
        "repeated": [(i % 9, f"a = {i}" if i % 7 else "a = ", None) for i in range(20)],
        "mixed": [*[(10 + i, f"a{i % 3} = {i}", None) for i in range(6)], *ROWS],
        "weights": [(str(i), f"a = {i}", float(i) if i > 9 else None) for i in range(20)],
    }[form]
    found = []
    for many in (2_000, 1):
        monkeypatch.setattr("bittern.engine.subscriptions.MANY", many)
        shapes = Shapes()
        catalog = read_subscriptions(rows, shapes, on_error="skip", progress=None)
        weights = None if catalog.weights is None else catalog.weights.tolist()
        parameters = catalog.parameters.to_pylist()
        shape_ids, texts = catalog.shape_ids.tolist(), catalog.texts.to_pylist()
        bad = [(repr(each.id), each.position, each.message) for each in catalog.bad]
        found.append((catalog.ids, texts, weights, shape_ids, parameters, bad, shapes.templates))
    assert found[0] == found[1]
    assert len(found[0][0]) + len(found[0][5]) == len(rows)


def test_many_live_rows_are_checked_as_few_are(monkeypatch) -> None:
    rows = [(i % 30, f"a{i % 5} = {i}" if i % 7 else "a = ", None) for i in range(40)]
    rows += [row for row in ROWS if isinstance(row[1], str) and row[1].isprintable()]
    told = []
    for many in (2_000, 1):
        monkeypatch.setattr("bittern.engine.live.reading.MANY", many)
        with bittern.LiveMatcher() as live:
            with pytest.raises(bittern.errors.SubscriptionError) as caught:
                live.subscribe_many(rows)
            assert len(live) == 0
            told.append([(repr(each.id), each.position, each.message) for each in caught.value.bad])
            good = {f"s{i}": f"a = {i % 9} OR b BETWEEN {i} AND 20" for i in range(600)}
            live.subscribe_many(good)
            told.append([sorted(live.match({"a": 4, "b": 15}).ids(0)), live.expression("s3")])
    assert told[:2] == told[2:]
    assert len(told[0]) > 5


@pytest.mark.parametrize("wrong", ["", "price = '1e' AND day > 'x'", "day < DATE '2020-13-01'"])
def test_many_rows_are_typed_as_few_are(monkeypatch, wrong: str) -> None:
    schema = pa.schema([("price", pa.float64()), ("brand", pa.string()), ("day", pa.date32())])
    texts = ["price > '98'", "brand = 5", "price > 9.5 AND brand = 'x'", "day = '2024-01-02'"]
    rows = [(i, texts[i % 4].replace("9", str(i)), None) for i in range(40)]
    rows += [(40, wrong or "prize = 1", None), (41, "price >", None)]
    found = []
    for many in (2_000, 1):
        monkeypatch.setattr("bittern.engine.subscriptions.MANY", many)
        shapes, known = Shapes(), KnownSchema.of(schema)
        catalog = read_subscriptions(rows, shapes, on_error="skip", progress=None, known=known)
        bad = [(each.id, each.position, each.message) for each in catalog.bad]
        trees, raws = [], iter(catalog.parameters.to_pylist())
        for shape_id in catalog.shape_ids.tolist():
            template = shapes.templates[shape_id]
            trees.append(template.fill([next(raws) for _ in template.kinds]))
        unknown = known.unknown(catalog, shapes.templates)
        found.append((catalog.ids, catalog.texts.to_pylist(), bad, trees, unknown))
    assert found[0] == found[1]
    assert any("e0" in text or "CAST" in text.upper() for text in found[0][1])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_a_long_table_is_read_by_columns(kind: pa.DataType) -> None:
    texts = [f"price < {i % 50} AND brand = 'b{i % 7}'" for i in range(2500)]
    table = pa.table({"id": list(map(str, range(2500))), "expression": pa.array(texts, kind)})
    index = bittern.Index.build(table)
    pairs = bittern.Index.build(dict(zip(table["id"].to_pylist(), texts, strict=True)))
    assert index.texts.to_pylist() == texts
    event = {"price": 48, "brand": "b0"}
    expected = [i for i in range(2500) if i % 50 > 48 and i % 7 == 0]
    for each in (index, pairs):
        assert sorted(map(int, bittern.Matcher(each).match(event).ids(0))) == expected
