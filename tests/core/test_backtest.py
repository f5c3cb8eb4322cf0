"""Backtests: a draft over remembered events of every form, beside the oracle."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import bittern
import oracle
from bittern.engine.backtest import counting
from bittern.engine.backtest.result import json_value
from bittern.errors import BitternError, ExpressionError, HistoryError, OptionError
from bittern.history import History
from bittern.language.normalize import normal_form
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.syntax import And, BooleanConstant, Expression, Or
from bittern.model.event_schema import EventSchema
from effort import examples
from strategies import free_events, free_expressions, joined_events, joined_expressions

DRAFT = "price < 10 AND (color = 'red' OR color = 'blue') AND NOT used"
OFFERS = [
    {"price": 5, "color": "red", "used": False, "at": "2026-01-31T08:10:00Z"},
    {"price": 50, "color": "red", "used": False, "at": "2026-01-31T08:20:00Z"},
    {"price": 5, "color": "green", "used": False, "at": "2026-01-31T09:10:00Z"},
    {"price": 7, "color": "blue", "used": False, "at": "2026-01-31T09:59:59.999999Z"},
    {"price": 50, "color": "green", "used": True, "at": "2026-01-31T11:00:00Z"},
    {"price": 5, "color": "red", "at": "never"},
    {"price": 5, "color": "red", "used": True},
]
MATCHED = [0, 3]


def leaves(tree: Expression) -> list[str]:
    """The leaves of a normal form, each once."""
    if isinstance(tree, And | Or):
        return list(dict.fromkeys(leaf for each in tree.operands for leaf in leaves(each)))
    return [] if isinstance(tree, BooleanConstant) else [print_expression(tree)]


def holds(tree: Expression, true: set[str]) -> bool:
    if isinstance(tree, And):
        return all(holds(each, true) for each in tree.operands)
    if isinstance(tree, Or):
        return any(holds(each, true) for each in tree.operands)
    return print_expression(tree) in true


def blamed(tree: Expression, true: set[str]) -> set[str]:
    """Leaves that reject an event: neither true nor part of something that is."""
    if holds(tree, true):
        return set()
    if isinstance(tree, And | Or):
        return set().union(*(blamed(each, true) for each in tree.operands))
    return {print_expression(tree)}


def expected(
    draft: Expression, given_events: list[Mapping[str, Any]], before: Any = None
) -> tuple[list[int], dict[str, list[int]]]:
    """Events that match, and of each predicate (true, rejects, alone), by the oracle."""
    tree, matched = normal_form(draft), []
    counts = {leaf: [0, 0, 0] for leaf in leaves(tree)}
    truths = {leaf: parse(leaf) for leaf in counts}
    for number, event in enumerate(given_events):
        seen = given_events[:number] if before is not None else ()
        true = {leaf for leaf in counts if oracle.matches(truths[leaf], event, seen)}
        if oracle.matches(draft, event, seen):
            matched.append(number)
            assert not counts or holds(tree, true)
        rejecting = blamed(tree, true) if counts else set()
        for leaf, count in counts.items():
            count[0] += leaf in true
            count[1] += leaf in rejecting
            count[2] += leaf in rejecting and holds(tree, true | {leaf})
    return matched, counts


def told(found: Any) -> tuple[list[int], dict[str, list[int]]]:
    predicates = {each.text: [each.true, each.rejects, each.alone] for each in found.predicates}
    return [each.event for each in found.samples], predicates


@given(free_expressions(), st.lists(free_events(), max_size=12), st.sampled_from([1, 5, 1 << 24]))
@examples(2)
def test_it_counts_what_the_oracle_counts(draft, given_events, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "MOST_TRUTHS", most)
        found = bittern.backtest(given_events, print_expression(draft), samples=100)
    assert told(found) == expected(draft, given_events)
    assert (found.events, found.unreadable) == (len(given_events), 0)
    assert found.matches == len(found.samples)
    json.dumps(found.as_json(), allow_nan=False)
    assert str(found).startswith(f"would have matched {found.matches} of ")


@given(joined_expressions(), st.lists(joined_events(), max_size=6), st.booleans())
@examples(0.5)
def test_quantifiers_see_the_events_before(draft, given_events, one_by_one):
    source = iter([each] for each in given_events) if one_by_one else given_events
    found = bittern.backtest(source, print_expression(draft), samples=100)
    assert found.matches == len(expected(draft, given_events, before=True)[0])
    assert told(found)[0] == expected(draft, given_events, before=True)[0]


# Forms


def as_files(folder: Path, *, parquet: bool) -> Path:
    """The offers in files of a folder, beside what does not count."""
    (folder / "later").mkdir(parents=True)
    if parquet:
        pq.write_table(pa.Table.from_pylist(OFFERS[:4]), folder / "a.parquet")
        pq.write_table(pa.Table.from_pylist(OFFERS[4:]), folder / "later" / "b.pq")
    else:
        lines = [json.dumps(offer) for offer in OFFERS]
        (folder / "a.jsonl").write_text("\ufeff" + "\n\n".join(lines[:4]), "utf-8")
        (folder / "later" / "b.ndjson").write_text("\n".join(lines[4:]), "utf-8")
    (folder / "_SUCCESS.json").write_text("no JSON")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "c.jsonl").write_text("no JSON")
    (folder / "notes.txt").write_text("no events")
    return folder


def remembered(folder: Path, *batches: Any) -> Path:
    with History(folder) as history:
        for batch in batches:
            history.append(batch)
    return folder


def newest(*batches: Any) -> History:
    """A history that uses as many documents as there are offers."""
    history = History(keep=len(OFFERS))
    for batch in batches:
        history.append(batch)
    return history


TABLE = pa.Table.from_pylist(OFFERS)
TEXTS = [json.dumps(offer) for offer in OFFERS]
FORMS = {
    "list": lambda _: OFFERS,
    "texts": lambda _: TEXTS,
    "table": lambda _: TABLE,
    "array": lambda _: pa.array(TEXTS),
    "frame": lambda _: TABLE.to_pandas(),
    "reader": lambda _: TABLE.to_reader(max_chunksize=3),
    "iterator": lambda _: iter([OFFERS[0], TEXTS[1:3], TABLE.slice(3)]),
    "parquet": lambda folder: str(as_files(folder / "e", parquet=True)),
    "json lines": lambda folder: as_files(folder / "e", parquet=False),
    "documents, mappings": lambda folder: remembered(folder / "h", OFFERS),
    "documents, texts": lambda folder: remembered(folder / "h", TEXTS),
    "documents, tables": lambda folder: remembered(folder / "h", TABLE.slice(0, 2), TABLE.slice(2)),
    "documents, all sorts": lambda folder: remembered(
        folder / "h", [OFFERS[0], TEXTS[1]], TABLE.slice(2, 2), OFFERS[4:6], TEXTS[6]
    ),
    "an open history": lambda _: newest([{"price": 1}], OFFERS[:2], TABLE.slice(2)),
}


@pytest.mark.parametrize("form", FORMS)
def test_events_of_every_form(form: str, tmp_path: Path) -> None:
    found = bittern.backtest(FORMS[form](tmp_path), DRAFT, time="at")
    assert told(found) == expected(parse(DRAFT), OFFERS)
    assert told(found)[0] == MATCHED
    assert [each.values["price"] for each in found.samples] == [5, 7]
    hours = [(each.start.hour, each.events, each.matches) for each in found.hours]
    assert hours == [(8, 2, 1), (9, 2, 1), (11, 1, 0)]
    assert found.untimed == 2
    assert found.rejects_most is not None
    assert found.rejects_most.text == "used != TRUE"


def test_documents_with_lists_and_odd_values_match_as_they_did() -> None:
    odd = [
        {"tags": ["x"], "n": 10**40, "f": math.nan, "t": dt.datetime(2026, 1, 1), "u": {"v": 1}},
        {"u": {}, "o": object(), "tags": {"a": 1}, "a.b": 1, "far": np.datetime64(2**60, "us")},
        {},
    ]
    drafts = (
        *("tags IS NOT NULL", "tags.a IS NULL", "n > 1e39 AND n < 1e41", "n IS NULL", "f > 1"),
        *("u.v = 1", "u IS NOT NULL", "o IS NULL", "`a.b` = 1"),
        *("t >= DATE '2026-01-01'", "far > DATE '2026-01-01'"),
    )
    with History() as history:
        history.append(odd)
        for draft in drafts:
            found = bittern.backtest(history, draft)
            assert told(found) == told(bittern.backtest(odd, draft)), draft
            json.dumps(found.as_json(), allow_nan=False)


def test_what_cannot_be_read_is_counted_apart(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": \n[]\n{"a": "\xff"}\n{"a": 2}\n{}\n')
    found = bittern.backtest(path, "a IS NULL OR a > 1", time="a")
    assert (found.events, found.matches, found.unreadable) == (3, 2, 3)
    assert [each.event for each in found.samples] == [4, 5]
    assert {each.text: each.rejects for each in found.predicates} == {"a IS NULL": 1, "a > 1": 1}
    assert (found.untimed, len(found.hours)) == (1, 1)
    assert "3 more could not be read" in str(found)


def test_samples_are_the_same_each_time_and_come_from_everywhere() -> None:
    many = pa.table({"n": np.arange(100_000)})
    first, second = (bittern.backtest(many, "n % 2 = 0", samples=20) for _ in range(2))
    assert first == second
    numbers = [each.event for each in first.samples]
    assert len(set(numbers)) == 20
    assert numbers == sorted(numbers)
    assert all(each.values == {"n": each.event} for each in first.samples)
    assert numbers[0] < 50_000 < numbers[-1]
    assert bittern.backtest(many, "n >= 0", samples=0).samples == ()


def test_hours_of_any_term_and_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"ms": hour * 3_600_000 + 5} for hour in range(-2, 60)] + [{"ms": 2**62}, {}]
    found = bittern.backtest(rows, "ms > 0", time="timestamp_millis(ms)")
    assert found.hours[0].start == dt.datetime(1969, 12, 31, 22, tzinfo=dt.UTC)
    assert [each.events for each in found.hours] == [1] * 62
    assert [each.matches for each in found.hours] == [0] * 2 + [1] * 60
    assert found.untimed == 2
    assert "matches per day" in str(found)
    monkeypatch.setattr(counting, "MOST_HOURS", 10)
    few = bittern.backtest(rows, "ms > 0", time="timestamp_millis(ms)")
    assert (len(few.hours), few.untimed) == (10, 54)


def test_sets_schemas_json_columns_and_case() -> None:
    table = pa.table({"Price": [5, 50], "doc": ['{"who": "ada"}', '{"who": "eve"}']})
    found = bittern.backtest(
        table,
        "price > '9' OR who IN SET staff",
        json="doc",
        sets={"staff": ["ada"]},
        schema=EventSchema(table.schema, json=("doc",), case_sensitive=False),
        case_sensitive=False,
    )
    assert told(found)[0] == [0, 1]
    assert bittern.backtest(table, "price > 9 OR who IS NULL", json="doc").matches == 0


@pytest.mark.parametrize("draft", ["TRUE", "1 = 1", "FALSE", "a = NULL"])
def test_a_draft_without_predicates(draft: str) -> None:
    found = bittern.backtest([{"a": 1}], draft)
    assert found.matches == (draft in ("TRUE", "1 = 1"))
    assert found.rejects_most is None


def test_no_events(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.touch()
    for none in ([], path, pa.table({"a": pa.array([], pa.int64())}), iter([])):
        found = bittern.backtest(none, "a > 1", time="a")
        assert (found.events, found.matches, found.samples) == (0, 0, ())
        assert str(found).startswith("would have matched 0 of 0 events\n")


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(ExpressionError, match="price <") as caught:
        bittern.backtest([], "price <")
    assert caught.value.position == 7
    for time in ("at)", "", "at) IS NULL OR (TRUE", "nosuchfunction(at)"):
        with pytest.raises(OptionError, match="time must be"):
            bittern.backtest([], "a > 1", time=time)
    with pytest.raises(BitternError, match="vips"):
        bittern.backtest([{}], "a IN SET vips")
    with pytest.raises(ExpressionError, match="nosuch"):
        bittern.backtest([{}], "nosuch(a) > 1")
    with pytest.raises(OptionError, match="samples"):
        bittern.backtest([], "a > 1", samples=-1)
    with pytest.raises(BitternError, match="int"):
        bittern.backtest(7, "a > 1")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    (tmp_path / "empty").mkdir()
    for name, said in {
        "broken.parquet": "broken.parquet: ",
        "none.jsonl": "none.jsonl: No such file",
        "e.csv": "ends in",
        "empty": "has no events",
    }.items():
        with pytest.raises(BitternError, match=said):
            bittern.backtest(tmp_path / name, "a > 1")
    with History(tmp_path / "h"), pytest.raises(HistoryError):
        bittern.backtest(tmp_path / "h", "a > 1")


def test_progress_and_all_values_as_json() -> None:
    told_ = []
    bittern.backtest(TABLE, "price > 1", progress=lambda *step: told_.append(step))
    assert told_ == [("backtest", 7, 7)]
    odd = {"b": b"x", "f": math.inf, "t": dt.date(2026, 1, 1), "l": (1, None), 3: object}
    text = json.dumps(json_value(odd), allow_nan=False)
    assert json.loads(text)["f"] == "inf"
