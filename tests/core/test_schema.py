"""What a known schema of events tells: names in any case, constants in the types of attributes, and
what the events do not have. ``tests/spark/test_spark_schema.py`` compares it with Spark."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bittern
from bittern.engine.known_schema import KnownSchema, Unknown
from bittern.errors import OptionError, SubscriptionError
from bittern.language.shapes import Shapes
from bittern.model.event_schema import EventSchema
from bittern.service.cli import main
from semantics import ERROR, RULES, TOLD_BY_SCHEMA, Rule
from semantics import SCHEMA as RULE_SCHEMA
from steady import said_here

FIELDS = {
    "price": pa.float64(),
    "n": pa.int32(),
    "s": pa.string(),
    "c": pa.decimal128(10, 2),
    "w": pa.decimal128(30, 4),
    "t": pa.timestamp("us", "UTC"),
    "day": pa.date32(),
    "b": pa.bool_(),
    "bin": pa.binary(),
    "device": pa.struct([("os", pa.string()), ("size", pa.int64())]),
    "l": pa.list_(pa.int32()),
    "ls": pa.list_(pa.struct([("i", pa.int32())])),
}
SCHEMA = pa.schema(list(FIELDS.items()))


def index_of(*texts: str, schema: Any = SCHEMA, **options: Any) -> bittern.Index:
    return bittern.Index.build(dict(enumerate(texts)), schema=schema, **options)


# -- names ---------------------------------------------------------------------------------------

TABLE = pa.table(
    {
        "price": [6, 2],
        "device": [{"os": "x"}, {"os": "y"}],
        "mp": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        "ls": [[{"i": 5}], []],
        "tags": [["q"], ["r"]],
    }
)
#: Expressions, and the rows of the table that match if case counts, and if it does not.
NAMED = {
    "PRICE > 5": ([], [0]),
    "price < 3": ([1], [1]),
    "PRICE > 1 AND price < 3": ([], [1]),
    "Device.OS = 'x'": ([], [0]),
    "device.os = 'x' AND DEVICE.os = 'x'": ([], [0]),
    "upper(device.Os) = 'X'": ([], [0]),
    "MP.k = 1": ([], [0]),
    "mp.K = 1": ([], []),  # a key
    "k = 1": ([0], [0]),
    "K = 1": ([], []),
    "exists(LS, v -> v.I = 5)": ([], [0]),
    "LS.I[0] = 5": ([], [0]),
    "ls.I IS NULL": ([], []),  # what is in a list is there if the list is
    "array_contains(TAGS, 'q')": ([], [0]),
    "PRICE * 2 > price": ([], [0, 1]),
    "DEVICE IS NULL": ([0, 1], []),
}


@pytest.mark.parametrize("case_sensitive", [True, False])
def test_names_of_columns_and_fields_are_found_in_any_case_if_asked_for(
    case_sensitive: Any,
) -> None:
    index = bittern.Index.build({text: text for text in NAMED})
    with bittern.LiveMatcher(index, case_sensitive=case_sensitive) as live:
        live.subscribe("new", "PrIcE = 2")
        matcher = bittern.Matcher(index, case_sensitive=case_sensitive)
        for match, events in (
            (matcher.match, TABLE),
            (matcher.match, TABLE.to_batches()[0]),
            (matcher.match, pa.array(TABLE.to_pylist(), pa.struct(list(TABLE.schema)))),
            (live.match, TABLE),
        ):
            found = match(events).to_pylist()
            rows = {text: [r for r in (0, 1) if text in found[r]] for text in NAMED}
            assert rows == {text: both[not case_sensitive] for text, both in NAMED.items()}
        assert ("new" in live.match(TABLE).to_pylist()[1]) != case_sensitive
    assert matcher.match([{"price": 6}, {"PRICE": 6}]).to_pylist()[0].count("PRICE > 5") == 0


def test_of_two_columns_that_differ_in_case_the_exact_name_is_meant() -> None:
    matcher = bittern.Matcher(
        bittern.Index.build({text: text for text in ("ab = 1", "AB = 2", "Ab = 1", "Ab = 2")}),
        case_sensitive=False,
    )
    events = pa.table({"ab": [1], "AB": [2]})
    assert sorted(matcher.match(events).to_pylist()[0]) == ["AB = 2", "ab = 1"]


def test_documents_of_a_history_are_found_in_any_case(tmp_path: Path) -> None:
    with bittern.LiveMatcher(history=tmp_path / "h", case_sensitive=False) as live:
        live.subscribe("x", "EXISTS d (d.PRICE > Price)")
        assert live.match(pa.table({"price": [6, 2]})).to_pylist() == [[], ["x"]]
    with bittern.LiveMatcher(history=tmp_path / "h", case_sensitive=False) as live:
        live.subscribe("y", "EXISTS d (d.pRICE = priCE)")
        assert live.match(pa.table({"PRICE": [6, 7]})).to_pylist() == [["y"], []]


# -- kinds ---------------------------------------------------------------------------------------

CONVERTED = {
    "price > '98'": "price > 98.0e0",
    "n IN ('1', ' 2 ')": "n IN (1, 2)",
    "s > 98": "CAST(s AS BIGINT) > 98",
    "s = 1.5": "CAST(s AS DOUBLE) = 1.5",
    "s IN (5, 6.5)": "(CAST(s AS DECIMAL(21, 1))) IN (5, 6.5)",
    "s NOT IN (5, 6)": "CAST(s AS BIGINT) NOT IN (5, 6)",
    "s BETWEEN 1 AND 5": "CAST(s AS BIGINT) BETWEEN 1 AND 5",
    "s BETWEEN 1 AND 5.5": "CAST(s AS BIGINT) >= 1 AND CAST(s AS DOUBLE) <= 5.5",
    "c = '1.5'": "c = 1.5e0",
    "w = '1.5'": "CAST(w AS DOUBLE) = 1.5e0",  # of its 30 digits a DOUBLE keeps 17
    "t > '2024-01-01'": "t > TIMESTAMP '2024-01-01 00:00:00Z'",
    "day = '2024-1-2'": "day = DATE '2024-01-02'",
    "b = 'yes'": "b = TRUE",
    "price LIKE '9%'": "CAST(price AS STRING) LIKE '9%'",
    "NOT s": "NOT CAST(s AS BOOLEAN) = TRUE",
    "n > s": "CAST(s AS BIGINT) < n",
    "lower(s) > 5": "(CAST(lower(s) AS BIGINT)) > 5",
    "device.size = '5'": "device.size = 5",
    "n = 1 OR s = 'x' AND NOT (price < '5')": "n = 1 OR s = 'x' AND NOT price < 5.0e0",
    "price = 'NaN'": "(price = CAST('NaN' AS DOUBLE)) = TRUE",
}
#: What needs no cast stays as it was written, letter by letter.
KEPT = ["price>5", "s = '5'", "price  =  5.0 /* five */", "n IS NULL", "t = DATE '2024-01-01'", "b"]


def test_constants_are_converted_to_the_types_of_attributes() -> None:
    texts = [*CONVERTED, *KEPT]
    index = index_of(*texts)
    assert not index.unknown
    assert index.texts.to_pylist() == [*CONVERTED.values(), *KEPT]
    again = index_of(*index.texts.to_pylist())
    assert again.texts == index.texts


def test_a_converted_text_means_the_same_without_the_schema(tmp_path: Path) -> None:
    """In an explanation, in a snapshot, and when changes are folded."""
    index = index_of("price > '98'", "s > 98")
    table = pa.table({"price": [99.0, 1.0], "s": ["5", "99"]})
    index.save(tmp_path / "i")
    found = [[0], [1]]
    assert bittern.Matcher(bittern.Index.open(tmp_path / "i")).match(table).to_pylist() == found
    assert "matches" in str(bittern.explain(index, {"price": 99.0, "s": "5"}, 0))
    with bittern.LiveMatcher(schema=SCHEMA) as live:
        live.subscribe(0, "price > '98'")
        live.subscribe(1, "price = 0")
        live.replace(1, "s > 98")
        assert live.expression(1) == "CAST(s AS BIGINT) > 98"
        assert live.match(table).to_pylist() == found
        live.compact()
        assert live.match(table).to_pylist() == found


def test_a_text_that_is_no_number_is_listed_with_the_event() -> None:
    matches = bittern.Matcher(index_of("s > 98")).match(pa.table({"s": ["x", "99", None]}))
    assert matches.to_pylist() == [[], [0], []]
    assert matches.mistyped == [(0, "CAST(s AS BIGINT) has no value: a STRING that is no BIGINT")]


@pytest.mark.parametrize(
    ("text", "position", "kind"),
    [
        ("price > 'abc'", 8, "DOUBLE"),
        ("n = 1 OR n = '1.5'", 13, "BIGINT"),
        ("/* a day */ day IN ('2024-01-01', 'x')", 34, "DATE"),
        ("b = 'maybe'", 4, "BOOLEAN"),
        ("t BETWEEN '2024-01-01' AND '2024-13-01'", 27, "TIMESTAMP"),
    ],
)
def test_a_constant_that_cannot_be_cast_is_refused(text: str, position: int, kind: str) -> None:
    with pytest.raises(SubscriptionError) as refused:
        index_of(text)
    [bad] = refused.value.bad
    assert bad.position == position
    assert f"is compared as {kind}, and cannot be cast to it" in bad.message
    with bittern.LiveMatcher(schema=SCHEMA) as live, pytest.raises(SubscriptionError):
        live.subscribe("s", text)
    assert len(index_of(text, on_error="skip").bad) == 1


def test_without_a_schema_kinds_that_differ_stay_unknown() -> None:
    index = bittern.Index.build({0: "price > '98'", 1: "NOT price > '98'"})
    assert bittern.Matcher(index).match(pa.table({"price": [99.0]})).to_pylist() == [[]]


WORDS = st.sampled_from(
    [
        *("price > {}", "n = {}", "s < {}", "c IN ({}, {})", "day = {}", "t > {}", "b = {}"),
        *("s BETWEEN {} AND {}", "bin = {}", "l = {}", "x > {}", "NOT device.os = {}"),
        *("lower(s) = {}", "s LIKE 'a%'", "n LIKE '1%'", "x IS NULL", "coalesce(n, 0) > {}"),
    ]
)
CONSTANTS = st.sampled_from(
    ["5", "2.5", "1e3", "'5'", "'2.5'", "'x'", "'2024-01-01'", "TRUE", "DATE '2024-01-01'", "NULL"]
)


@st.composite
def texts(draw: Any) -> str:
    words = draw(st.lists(WORDS, min_size=1, max_size=3))
    parts = [f"({word.replace('{}', draw(CONSTANTS))})" for word in words]
    return draw(st.sampled_from([" AND ", " OR "])).join(parts)


@example(["(l = 5) AND (l = '5')"])  # two mistakes with one attribute
@given(st.lists(texts(), min_size=1, max_size=12))
def test_one_text_and_many_are_judged_alike(all_texts: list[str]) -> None:
    """What is converted is converted once; what is known of a shape holds for each text of it."""
    index = index_of(*all_texts, on_error="skip")
    bad = {each.id: each.message for each in index.bad}
    told: dict[int, set[tuple[str, str]]] = {}
    for id_, attribute, reason in index.unknown:
        assert isinstance(id_, int)
        told.setdefault(id_, set()).add((attribute, reason))
    kept = dict(zip(index.ids.to_pylist(), index.texts.to_pylist(), strict=True))
    for at, text in enumerate(all_texts):
        known, shapes, mistakes = KnownSchema.of(SCHEMA), Shapes(), list[Unknown]()
        if at in bad:
            with pytest.raises(bittern.errors.ExpressionError) as wrong:
                known.read(at, text, shapes, "warn")
            assert bad[at] == wrong.value.message
            continue
        converted, _, _ = known.read(at, text, shapes, "warn", mistakes.extend)
        assert kept[at] == converted
        assert told.get(at, set()) == {each[1:] for each in mistakes}
        assert known.read(at, converted, shapes, "ignore")[0] == converted


@pytest.mark.parametrize(
    "rule",
    [rule for rules in RULES.values() for rule in rules if rule.why in TOLD_BY_SCHEMA],
    ids=lambda rule: rule.expression,
)
def test_with_a_schema_the_answer_is_that_of_spark(rule: Rule) -> None:
    """Where the language's tables list a difference that comes from types or names."""
    schema = EventSchema(RULE_SCHEMA, case_sensitive=False)
    texts = {"True": rule.expression, "False": f"NOT ({rule.expression})"}
    index = bittern.Index.build(texts, schema=schema)
    matcher = bittern.Matcher(index, case_sensitive=False)
    for case in rule.cases:
        table = pa.Table.from_pylist([dict(case.event)], schema=RULE_SCHEMA)
        expected = [] if case.spark in (None, ERROR) else [str(case.spark)]
        assert matcher.match(table).to_pylist() == [expected]


# -- what the events do not have -------------------------------------------------------------------

VAIN = {
    "prize > 5": "the events have no prize: did you mean price?",
    "PRICE > 5": "the events have no PRICE: did you mean price?",
    "device.o = 'x'": "the events have no device.o: did you mean device.os?",
    "price.x = 1": "the events have no price.x: did you mean price?",
    "zzzzzz IS NULL": "the events have no zzzzzz",
    "lower(nmae) = 'x' OR n = 1": "the events have no nmae",
    "EXISTS d (d.prise > price)": "the events have no prise: did you mean price?",
    "EXISTS d IN LAST 5 PER pirce (TRUE)": "the events have no pirce: did you mean price?",
    "t > 5": "t is TIMESTAMP, and is never compared with a number",
    "b = 3": "b is BOOLEAN, and is never compared with a number",
    "n": "n is INT, and is never compared with a boolean",
    "day IN (1, 2)": "day is DATE, and is never compared with a number",
    "n > day": "day is DATE, and is never compared with n, which is INT",
    "l LIKE 'x'": "l is ARRAY<INT>, in which no pattern is found",
    "s + t > 5": "s + t has no value: timestamp[us, tz=UTC] and string do not add up",
}
HELD = ["price > 5", "ls.i IS NULL", "device IS NULL", "l[0] = 5", "day = t", "EXISTS d (d.n = n)"]


def test_what_the_events_do_not_have_is_listed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bittern"):
        index = index_of(*VAIN, *HELD)
    told = {each.id: each.reason for each in index.unknown}
    assert told == dict(enumerate(VAIN.values()))
    [message] = said_here(caplog)
    assert message.startswith(
        f"bittern: {len(VAIN)} subscription(s) ask for what the events cannot"
    )
    assert message.endswith("; and 10 more")


def test_nothing_is_told_where_it_may_be_in_a_map_or_a_document() -> None:
    text = ["prize > 5", "t > 5"]
    for field in (
        pa.field("m", pa.map_(pa.string(), pa.int64())),
        pa.field("v", pa.json_(pa.string())),
    ):
        index = index_of(*text, schema=SCHEMA.append(field))
        assert [each.attribute for each in index.unknown] == ["t"]  # which is a column
    documents = EventSchema(SCHEMA.append(pa.field("doc", pa.string())), json="doc")
    assert [each.attribute for each in index_of(*text, schema=documents).unknown] == ["t"]
    inside = pa.schema([("m", pa.map_(pa.string(), pa.int64()))])
    assert index_of("m.x > '5'", schema=inside).expression(0) == "m.x > 5"


def test_what_the_events_do_not_have_is_refused_if_asked_for() -> None:
    with pytest.raises(SubscriptionError) as refused:
        index_of("price > 1", "price > 1 AND prize > 2", unknown="raise")
    assert [(bad.id, bad.position) for bad in refused.value.bad] == [(1, 14)]
    index = index_of("price > 1", "prize > 2", unknown="raise", on_error="skip")
    assert len(index) == 1
    assert [bad.id for bad in index.bad] == [1]
    with bittern.LiveMatcher(schema=SCHEMA, unknown="raise") as live:
        with pytest.raises(SubscriptionError, match="did you mean price"):
            live.subscribe(1, "prize > 2")
        assert len(live) == 0


def test_nothing_is_looked_for_if_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bittern"):
        assert index_of("prize > 5", unknown="ignore").unknown == []
        with bittern.LiveMatcher(schema=SCHEMA, unknown="ignore") as live:
            live.subscribe(1, "prize > 2")
    assert said_here(caplog) == []
    with bittern.LiveMatcher(schema=SCHEMA) as live, caplog.at_level(logging.WARNING, "bittern"):
        live.subscribe(1, "prize > 2")
    assert "did you mean price" in caplog.text


def test_names_in_any_case_are_there() -> None:
    schema = EventSchema(SCHEMA, case_sensitive=False)
    index = index_of("PRICE > '5'", "Device.OS = 5", "prize = 1", schema=schema)
    assert [each.attribute for each in index.unknown] == ["prize"]
    assert index.expression(0) == "PRICE > 5.0e0"
    twins = EventSchema(pa.schema([("ab", pa.int32()), ("AB", pa.string())]), case_sensitive=False)
    assert [each.id for each in index_of("ab = 1", "AB = 'x'", "Ab = 1", schema=twins).unknown] == [
        2
    ]


def test_a_schema_can_be_sent_to_other_processes() -> None:
    schema = EventSchema(SCHEMA, case_sensitive=False)
    index_of("PRICE > '5'", schema=schema)
    copy = pickle.loads(pickle.dumps(schema))
    assert copy.id == schema.id != EventSchema(SCHEMA).id
    assert copy.type_of("PRICE") == pa.float64()


@pytest.mark.parametrize("options", [{"schema": {"a": "int"}}, {"unknown": "perhaps"}])
def test_wrong_options_are_told(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        bittern.Index.build({}, **options)


# -- the command line ------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = ["id,expression", "s1,price > '98'", "s2,prize > 5", "s3,PRICE > 5"]
    Path("subs.csv").write_text("\n".join(rows))
    Path("schema.json").write_text(json.dumps({"price": "double", "device": {"os": "string"}}))
    pq.write_table(pa.table({"Price": [99.0, 1.0]}), "events.parquet")
    return tmp_path


@pytest.mark.parametrize("schema", ["schema.json", "events.parquet", "events.arrow"])
def test_build_with_a_schema(
    folder: Path, schema: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pq.read_table("events.parquet")
    with pa.ipc.new_file("events.arrow", table.schema) as file:
        file.write_table(table)
    build = ["build", "subs.csv", "--output", "x", "--quiet", "--schema", schema, "--ignore-case"]
    assert main(build) == 0
    assert "1 subscription(s)" in caplog.text
    assert "prize" in caplog.text
    assert main([*build, "--unknown", "raise"]) == 1
    assert "the events have no prize: did you mean" in capsys.readouterr().err
    assert main(["match", "x", "events.parquet"]) == 0
    assert main(["match", "x", "events.parquet", "--ignore-case"]) == 0
    lines = [json.loads(line)["subscriptions"] for line in capsys.readouterr().out.splitlines()]
    assert lines == [[], [], ["s1", "s3"], []]


def test_a_catalog_with_a_schema(
    folder: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = ["--schema", "schema.json"]
    assert main(["catalog", "add", "c.db", "a", "prize > 5", *schema]) == 0
    assert "did you mean price" in caplog.text
    assert main(["catalog", "add", "c.db", "b", "price > 'x'", *schema]) == 1
    assert "cannot be cast" in capsys.readouterr().err
    load = ["catalog", "load", "c.db", "subs.csv", "--quiet", *schema]
    assert main([*load, "--unknown", "raise"]) == 1
    assert main([*load, "--unknown", "raise", "--on-error", "skip", "--ignore-case"]) == 0
    with bittern.Catalog("c.db", create=False) as catalog:
        kept = catalog.at(catalog.version())
        assert kept["id"].to_pylist() == ["a", "s1", "s3"]
        assert kept["expression"].to_pylist()[1] == "price > '98'"  # as it was written


@pytest.mark.parametrize("told", ["{", "[1]", '{"a": 5}', '{"a": "no type"}'])
def test_a_file_that_is_no_schema_is_told(
    folder: Path, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("wrong.json").write_text(told)
    assert main(["build", "subs.csv", "--output", "x", "--schema", "wrong.json"]) == 2
    assert "wrong.json is not a schema of events" in capsys.readouterr().err
