"""A history on the command line: it lasts from one command to the next, and can be looked at."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from bittern.history import History
from bittern.service.cli import main
from table_files import save

SUBSCRIPTIONS = [
    {"id": "new", "expression": "NOT EXISTS d (d.isbn = isbn)"},
    {"id": "cheaper", "expression": "EXISTS d (d.isbn = isbn AND d.price > price)"},
    {"id": "plain", "expression": "price < 10"},
]
MONDAY = [
    {"isbn": "a", "price": 20},
    {"isbn": "b", "price": 30},
    {"isbn": "a", "price": 15},
]
TUESDAY = [{"isbn": "b", "price": 9}, {"isbn": "c", "price": 40}]


@pytest.fixture
def run(bittern_command):
    return bittern_command


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Snapshots of subscriptions with and without quantifiers."""
    folder = tmp_path_factory.mktemp("books")
    for name, rows in (("books", SUBSCRIPTIONS), ("plain", SUBSCRIPTIONS[2:])):
        source = str(save(folder / f"{name}.jsonl", rows))
        assert main(["build", source, "--output", str(folder / name), "--quiet"]) == 0
    return folder


@pytest.fixture
def books(built):
    return built / "books"


@pytest.fixture
def seen(tmp_path):
    return tmp_path / "seen"


def matched(out):
    return [sorted(json.loads(line)["subscriptions"]) for line in out.splitlines()]


def text(events):
    return "".join(f"{json.dumps(event)}\n" for event in events).encode()


def length(folder):
    with History(folder) as history:
        return len(history)


# match


@pytest.mark.parametrize("batch_size", [1, 2, 10_000])
def test_a_history_lasts_from_one_command_to_the_next(run, books, seen, batch_size):
    arguments = ["match", books, "--history", seen, "--batch-size", batch_size]
    code, out, err = run(*arguments, stdin=text(MONDAY))
    assert (code, matched(out)) == (0, [["new"], ["new"], ["cheaper"]])
    assert err == "bittern: 3 events, 3 matches\n"
    code, out, _ = run(*arguments, stdin=text(TUESDAY))
    assert (code, matched(out)) == (0, [["cheaper", "plain"], ["new"]])
    assert length(seen) == 5


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_events_of_every_format_become_documents(run, books, seen, tmp_path, suffix):
    for events, right in (
        (MONDAY, [["new"], ["new"], ["cheaper"]]),
        (TUESDAY, [["cheaper", "plain"], ["new"]]),
    ):
        source = save(tmp_path / f"events{suffix}", events)
        code, out, _ = run("match", books, source, "--history", seen)
        assert (code, matched(out)) == (0, right)


def test_events_of_a_batch_may_come_at_once(run, books, seen):
    """The third event does not see the first one, unless it comes in a batch of its own."""
    arguments = ["match", books, "--history", seen, "--batch-at-once"]
    _, out, _ = run(*arguments, stdin=text(MONDAY))
    assert matched(out) == [["new"], ["new"], ["new"]]
    _, out, _ = run(*arguments, "--batch-size", 1, stdin=text(TUESDAY + TUESDAY[1:]))
    assert matched(out) == [["cheaper", "plain"], ["new"], []]


def test_events_need_not_be_remembered(run, books, seen):
    arguments = ["match", books, "--history", seen]
    run(*arguments, stdin=text(MONDAY))
    for _ in range(2):
        _, out, _ = run(*arguments, "--no-remember", stdin=text(TUESDAY[1:]))
        assert matched(out) == [["new"]]
    assert length(seen) == 3


def test_only_the_newest_documents_count(run, books, seen):
    arguments = ["match", books, "--history", seen, "--no-remember"]
    run("match", books, "--history", seen, stdin=text(MONDAY[:2]))
    _, out, _ = run(*arguments, "--keep", 1, stdin=text(MONDAY[2:]))
    assert matched(out) == [["new"]]
    _, out, _ = run(*arguments, stdin=text(MONDAY[2:]))
    assert matched(out) == [["cheaper"]]  # how many count is said each time


def test_events_that_cannot_be_read_become_no_documents(run, books, seen):
    code, out, err = run("match", books, "--history", seen, stdin=b"{oops\n" + text(MONDAY[:1]))
    assert (code, matched(out)) == (0, [[], ["new"]])
    assert "row 0 rejected" in err
    assert length(seen) == 1


def test_subscriptions_without_quantifiers_fill_a_history_too(run, built, books, seen):
    _, out, _ = run("match", built / "plain", "--history", seen, stdin=text(MONDAY))
    assert matched(out) == [[], [], []]
    _, out, _ = run("match", books, "--history", seen, stdin=text(TUESDAY))
    assert matched(out) == [["cheaper", "plain"], ["new"]]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full disk to try")
def test_what_was_remembered_before_a_failure_is_said(run, books, seen):
    arguments = ["match", books, "--history", seen, "--output", "/dev/full"]
    code, _, err = run(*arguments, "--output-format", "jsonl", stdin=text(MONDAY))
    assert code == 1
    assert err.splitlines()[0] == (
        f"bittern: 3 events remembered in {seen}, from document 0 on, but "
        "not all of their matches were written"
    )
    assert length(seen) == 3


@pytest.mark.parametrize(
    "arguments",
    [["--keep", "3"], ["--batch-at-once"], ["--no-remember"]],
)
def test_what_is_said_of_a_history_needs_one(run, books, arguments):
    code, out, err = run("match", books, *arguments)
    assert (code, out) == (2, "")
    assert f"{arguments[0]} needs a history" in err


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "many"])
def test_how_many_documents_count_is_a_number(run, books, seen, number):
    code, out, err = run("match", books, "--history", seen, "--keep", number)
    assert (code, out) == (2, "")
    assert "--keep" in err
    assert not seen.exists()


def test_quantifiers_need_a_history(run, books):
    code, out, err = run("match", books, stdin=text(MONDAY))
    assert (code, out) == (2, "")
    assert "--history" in err


def test_a_folder_that_cannot_be_a_history_is_told(run, books, tmp_path, seen):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "other", tmp_path / "file"):
        code, out, err = run("match", books, "--history", folder, stdin=text(MONDAY))
        assert (code, out) == (1, "")
        assert str(folder) in err
        assert err.count("\n") == 1
    with History(seen):
        code, out, err = run("match", books, "--history", seen, stdin=text(MONDAY))
    assert (code, out) == (1, "")
    assert "in use" in err


# explain


def test_explaining_looks_at_the_documents_that_are_there(run, books, seen):
    run("match", books, "--history", seen, stdin=text(MONDAY))
    event = json.dumps({"isbn": "b", "price": 9})
    code, out, _ = run("explain", books, "cheaper", event, "--history", seen)
    assert code == 0
    assert out.splitlines()[0] == "'cheaper' matches"
    assert "among 3 documents" in out
    _, out, _ = run("explain", books, "cheaper", event, "--history", seen, "--keep", 1)
    assert out.splitlines()[0] == "'cheaper' does not match"
    assert length(seen) == 3
    _, out, _ = run("explain", books, "cheaper", event)
    assert "there is no history to look in" in out


def test_explaining_makes_no_history(run, books, seen):
    code, out, err = run("explain", books, "new", "{}", "--history", seen)
    assert (code, out) == (1, "")
    assert f"there are no documents in {seen}" in err
    assert not seen.exists()
    code, _, err = run("explain", books, "new", "{}", "--keep", 3)
    assert code == 2
    assert "--history" in err


# inspect


def test_a_history_is_inspected(run, books, seen):
    run("match", books, "--history", seen, stdin=text(MONDAY))
    code, out, _ = run("inspect", seen, "--check")
    assert code == 0
    shown = dict(line.split() for line in out.splitlines()[:6])
    assert shown["documents"] == "3"
    assert shown["segments"] == "1"
    assert "checked" in out
    code, out, _ = run("inspect", seen, "--json")
    assert code == 0
    about = json.loads(out)
    assert (about["first"], about["end"], about["documents"]) == (0, 3, 3)
    assert about["file_bytes"] >= about["segment_bytes"] > 0


def test_a_damaged_history_is_told(run, books, seen):
    run("match", books, "--history", seen, stdin=text(MONDAY))
    database = sqlite3.connect(seen / "documents.sqlite")
    with database:
        database.execute("UPDATE segments SET data = zeroblob(length(data))")
    database.close()
    assert run("inspect", seen)[0] == 0
    code, out, err = run("inspect", seen, "--check")
    assert (code, out) == (1, "")
    assert "damaged" in err
    code, out, err = run("match", books, "--history", seen, stdin=text(TUESDAY))
    assert (code, out) == (1, "")
    assert "damaged" in err
