"""What objects show of themselves: sequences, tables, short texts, HTML for notebooks."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from html.parser import HTMLParser

import pyarrow as pa
import pytest

import bittern

#: How a colour begins. What resets colours may be written at the end by libraries of others.
COLOUR = b"\x1b[3"
HOSTILE = "<script>alert('x')</script>&"


def index_of(**expressions: str) -> bittern.Index:
    return bittern.Index.build(expressions)


@pytest.fixture
def matches() -> bittern.Matches:
    matcher = bittern.Matcher(index_of(a="x > 1", b="x > 2"))
    return matcher.match(['{"x": 5}', '{"x": 2}', "{", '{"x": 0}'])


class Reader(HTMLParser):
    """Texts of cells by row; raises for a tag that was not closed, or that is unknown here."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {"table", "caption", "thead", "tbody", "tr", "th", "td"}
        assert tag in known | {"div", "span", "code", "strong"}
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)
        if tag in ("tr", "caption", "div"):
            self.rows.append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.rows[-1].append(data)


def test_matches_are_a_sequence(matches: bittern.Matches) -> None:
    assert len(matches) == 4
    assert matches[0] == ["a", "b"]
    assert matches[-3] == ["a"]
    assert list(matches) == matches.to_pylist() == [["a", "b"], ["a"], [], []]
    assert [len(found) for found in matches] == matches.counts.tolist()
    with pytest.raises(IndexError, match="there is no event 4"):
        matches[4]
    assert matches == matches  # noqa: PLR0124  arrays are not compared item by item
    assert len({matches}) == 1


@pytest.mark.parametrize("flat", [False, True])
def test_matches_become_frames(matches: bittern.Matches, *, flat: bool) -> None:
    table = matches.to_arrow(flat=flat)
    assert isinstance(table, pa.Table)
    assert pa.Table.from_pandas(matches.to_pandas(flat=flat)).to_pylist() == table.to_pylist()
    pytest.importorskip("polars")
    assert matches.to_polars(flat=flat).to_dicts() == table.to_pylist()


def test_what_is_shown_is_short(matches: bittern.Matches) -> None:
    assert repr(matches) == "<bittern.Matches: 4 events, 3 matches, 1 rejected>"
    one = bittern.Matcher(index_of(a="x > 1")).match({"x": 2})
    assert repr(one) == "<bittern.Matches: 1 event, 1 match>"


def test_matches_in_a_notebook(matches: bittern.Matches) -> None:
    rows = Reader(matches._repr_html_()).rows
    assert rows[0] == ["4 events, 3 matches, 1 rejected"]
    assert rows[2:4] == [["0", "2", "a, b"], ["1", "1", "a"]]
    assert rows[4][2] == dict(matches.rejects)[2]
    many = bittern.Matcher(bittern.Index.build(dict.fromkeys(range(1000), "x > 0")))
    rows = Reader(many.match([{"x": 1}] * 50)._repr_html_()).rows
    assert rows[0] == ["50 events, 50,000 matches; these are the first 10"]
    assert len(rows) == 2 + 10
    assert rows[2] == ["0", "1,000", "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 990 more"]


def test_notebooks_run_nothing_that_stands_in_an_id() -> None:
    index = bittern.Index.build({HOSTILE: f"x = '{HOSTILE.replace(chr(39), chr(39) * 2)}'"})
    matcher = bittern.Matcher(index)
    matches = matcher.match([{"x": HOSTILE}])
    assert Reader(matches._repr_html_()).rows[2][2] == HOSTILE
    explained = bittern.explain(index, {"x": HOSTILE}, HOSTILE)
    assert HOSTILE in "".join(map("".join, Reader(explained._repr_html_()).rows))
    assert HOSTILE not in explained._repr_html_()


def test_what_there_is_in_a_notebook(tmp_path) -> None:
    index = index_of(a="x > 1", b="y = 'p' OR x < 0")
    shown = dict(row for row in Reader(index._repr_html_()).rows if len(row) == 2)
    assert (shown["subscriptions"], shown["attributes"], shown["strategy"]) == ("2", "2", "pivot")
    ranges = bittern.Intervals.build([1, 2], [3, 4])
    shown = dict(row for row in Reader(ranges._repr_html_()).rows if len(row) == 2)
    assert shown["intervals"] == "2"
    with bittern.Catalog(tmp_path / "shop.db") as catalog:
        catalog.add("s1", "price < 10")
        shown = dict(row for row in Reader(catalog._repr_html_()).rows if len(row) == 2)
        assert shown == {"version": "1", "subscriptions": "1"}


def test_an_explanation_is_a_tree() -> None:
    index = index_of(s1="model = 'm' AND price <= 580 AND color = 'red'")
    explained = bittern.explain(index, {"model": "m", "price": 600}, "s1")
    plain = str(explained)
    assert re.sub(r"\x1b\[\d+m", "", explained.coloured()) == plain
    assert "\x1b[32mtrue, model is 'm'\x1b[0m" in explained.coloured()
    assert "\x1b[31mfalse, price is 600\x1b[0m" in explained.coloured()
    assert "\x1b[33munknown, color is missing\x1b[0m" in explained.coloured()
    rows = ["".join(row) for row in Reader(explained._repr_html_()).rows]
    assert [row.lstrip("✓✗? ") for row in rows] == [line.strip() for line in plain.splitlines()]
    assert [row[0] for row in rows[1:]] == ["✗", "✓", "✗", "?"]


def test_only_a_terminal_gets_colours(tmp_path) -> None:
    index_of(s1="x > 1").save(tmp_path / "snapshot")
    command = [sys.executable, "-m", "bittern.service.cli", "explain", "snapshot", "s1", '{"x": 2}']

    def shown(**environment: str) -> bytes:
        ours, theirs = pty.openpty()
        told = {**os.environ, "TERM": "xterm", **environment}
        subprocess.run(command, cwd=tmp_path, stdout=theirs, env=told, check=True)
        os.close(theirs)
        try:
            return os.read(ours, 10_000)
        finally:
            os.close(ours)

    assert b"\x1b[32mtrue" in shown()
    assert COLOUR not in shown(NO_COLOR="1")
    assert COLOUR not in shown(TERM="dumb")
    piped = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert COLOUR not in piped.stdout


def test_the_facade_lists_what_it_has() -> None:
    listed = dir(bittern)
    assert {"errors", "imports", "backtest", "PredicateFile", "Index"} <= set(listed)
    for name in listed:
        assert getattr(bittern, name) is not None
    assert set(bittern.__all__) < set(listed)
