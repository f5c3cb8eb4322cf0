"""``bittern backtest``: files and histories, text and JSON, progress and mistakes."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from bittern.history import History
from table_files import save

ROWS = [
    {"price": price, "who": who, "at": f"2026-01-31T{hour:02}:30:00"}
    for hour, (price, who) in enumerate([(5, "ada"), (50, "ada"), (5, "bob"), (60, "bob")])
]
DRAFT = "price < 10 AND who IN ('ada', 'eve')"


@pytest.fixture
def run(bittern_command):
    return bittern_command


@pytest.fixture(params=["e.jsonl", "e.parquet"])
def events(request, tmp_path):
    return save(tmp_path / request.param, ROWS)


def test_text(run, events):
    code, out, err = run("backtest", events, DRAFT, "--time", "at")
    assert code == 0
    assert out.splitlines() == [
        "would have matched 1 of 4 events (25.00%)",
        "",
        "          true       rejects         alone  predicate",
        "             2             2             1  price < 10  <- rejects most",
        "             2             2             1  who IN ('ada', 'eve')",
        "",
        "matches per hour (UTC)",
        f"  2026-01-31 00:00  {'#' * 30}  1 of 1",
        f"  2026-01-31 01:00  {' ' * 30}  0 of 1",
        f"  2026-01-31 02:00  {' ' * 30}  0 of 1",
        f"  2026-01-31 03:00  {' ' * 30}  0 of 1",
        "",
        "samples",
        "  event 0: {'price': 5, 'who': 'ada', 'at': '2026-01-31T00:30:00'}",
    ]
    assert err in ("", "backtest: 4 of 4\n")
    assert run("backtest", events, DRAFT, "--quiet")[2] == ""


def test_json(run, events):
    code, out, _ = run("backtest", events, "-", "--json", "--samples", 1, stdin=DRAFT.encode())
    found = json.loads(out)
    assert code == 0
    assert (found["events"], found["matches"], found["rejects_most"]) == (4, 1, "price < 10")
    assert found["samples"] == [{"event": 0, "values": ROWS[0]}]
    assert found["hours"] == []


def test_a_history_and_its_newest_documents(run, tmp_path):
    seen = tmp_path / "seen"
    with History(seen) as history:
        history.append(ROWS)
    assert run("backtest", seen, "price < 10")[1].startswith("would have matched 2 of 4 ")
    newest = run("backtest", seen, "price < 10", "--keep", 2)[1]
    assert newest.startswith("would have matched 1 of 2 ")
    again = run("backtest", seen, "EXISTS d (d.who = who)", "--samples", 0)[1]
    assert again.startswith("would have matched 2 of 4 ")
    with History(seen) as history:
        assert len(history) == 4


def test_sets_columns_of_json_and_case(run, tmp_path):
    (tmp_path / "staff.txt").write_text("ada\n")
    rows = [{"PRICE": 5, "doc": '{"who": "ada"}'}, {"PRICE": 5, "doc": '{"who": "bob"}'}]
    path = tmp_path / "e.parquet"
    pa.parquet.write_table(pa.Table.from_pylist(rows), path)
    options = ("--set", f"staff={tmp_path}/staff.txt", "--json-columns", "doc", "--ignore-case")
    code, out, _ = run("backtest", path, "price < 10 AND who IN SET staff", *options)
    assert (code, out.splitlines()[0]) == (0, "would have matched 1 of 2 events (50.00%)")


def test_mistakes(run, events, tmp_path):
    def said(*arguments):
        code, out, err = run("backtest", *arguments)
        assert (code, out) in ((1, ""), (2, ""))
        return err

    assert "the draft is not valid" in said(events, "price <")
    assert "No such file" in said(tmp_path / "none.jsonl", DRAFT)
    assert "--keep needs a history" in said(tmp_path, DRAFT, "--keep", 5)
    assert "time must be" in said(events, DRAFT, "--time", "a b")
    assert "samples must be" in said(events, DRAFT, "--samples", "-1")
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{\n")
    code, out, err = run("backtest", broken, DRAFT, "--quiet")
    assert code == 1
    assert out.splitlines()[1] == "1 more could not be read"
    assert err == "bittern: all events were rejected: none could be read\n"
