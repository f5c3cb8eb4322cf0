"""Files of foreign rules, and ``bittern import``."""

from __future__ import annotations

import io
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bittern
import bittern.imports
from bittern.errors import OptionError
from bittern.imports.constructs import with_constructs
from bittern.imports.formats import FORMATS
from bittern.imports.rule_files import read_rules
from bittern.service.cli import main

GOOD = '{"a": ["x"]}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Rules in every form, three of them bad."""
    rules = tmp_path / "rules"
    (rules / "deep").mkdir(parents=True)
    (rules / "one.json").write_text(GOOD)
    (rules / "deep" / "two.json").write_text(f"[{GOOD}, {{}}]")
    (rules / "lines.ndjson").write_text('{"a": ["x"]}\n\n{"a": \n{"a": [5]}\n')
    listed = [
        {"Name": "named", "EventPattern": GOOD},
        {"Name": "wrong", "EventPattern": {"a": [{"b": 1}]}},
    ]
    (rules / "rules.json").write_text(json.dumps({"Rules": listed}))
    (rules / "notes.txt").write_text("no rules at all")
    return rules


def test_a_bad_rule_does_not_stop_the_others(folder: Path) -> None:
    found = list(read_rules("eventbridge", [str(folder)], lists=()))
    assert {each.id: each.expression for each in found if each.error is None} == {
        "one": "a = 'x'",
        "deep/two:0": "a = 'x'",
        "lines:1": "a = 'x'",
        "lines:4": "a = 5",
        "named": "a = 'x'",
    }
    refused = {each.id: each.error for each in found if each.error is not None}
    assert {id_: error.place for id_, error in refused.items()} == {
        "deep/two:1": "$[1]",
        "lines:3": "line 1, column 7",
        "wrong": "$.Rules[1].EventPattern.a[0]",
    }
    assert refused["lines:3"].file == f"{folder / 'lines.ndjson'}, line 3"
    assert str(refused["wrong"]).startswith(f"{folder / 'rules.json'}: $.Rules[1]")


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": ["x"], "a": ["y"]}, {"a": ["x"]}]',
        '{"a": ["x"], "a": ["y"]}\n{"a": ["x"]}',
        """{"Rules": [{"Name": "1", "EventPattern": {"b": {"a": ["x"], "a": ["y"]}}},
        {"Name": "2", "EventPattern": {"a": ["x"]}}]}""",
    ],
)
def test_keys_that_come_twice_are_seen_in_any_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    first, second = read_rules("eventbridge", [str(tmp_path / "r.json")], lists=())
    assert "the key 'a' comes twice" in str(first.error)
    assert second.expression == "a = 'x'"


def test_ids_are_not_given_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "r.json").write_text(GOOD)
    found = list(read_rules("eventbridge", [str(tmp_path / "a"), str(tmp_path / "b")]))
    assert [each.error is None for each in found] == [True, False]
    assert "another rule has the id 'r'" in str(found[1].error)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 100_000, b"5", b'"x"', b"\0"])
def test_any_bytes_are_a_rule_that_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.json").write_bytes(content)
    (found,) = read_rules("eventbridge", [str(tmp_path / "r.json")])
    assert found.error is not None
    assert found.error.file == str(tmp_path / "r.json")


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no files that end in"):
        list(read_rules("eventbridge", [str(tmp_path)]))
    with pytest.raises(OptionError, match="there is no format 'sql'"):
        list(read_rules("sql", [str(tmp_path)]))
    assert main(["import", "eventbridge", str(tmp_path / "no.json"), "--dry-run"]) == 1


def test_a_dry_run_shows_what_becomes_of_each(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["import", "eventbridge", str(folder), "--lists", "", "--dry-run"]
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert "one\ta = 'x'\n" in said.out
    assert "$.Rules[1].EventPattern.a[0]: there is no test 'b'" in said.err
    assert "5 rules can be said, 3 refused" in said.err
    assert main([*arguments, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 8
    (wrong,) = [row for row in rows if row["id"] == "wrong"]
    assert wrong["refused"] == "there is no test 'b'"
    assert wrong["place"] == "$.Rules[1].EventPattern.a[0]"


def test_rules_become_subscriptions_of_a_catalog(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = str(tmp_path / "shop.db")
    assert main(["import", "eventbridge", str(folder), "--catalog", catalog]) == 0
    assert "5 rules imported, 3 refused" in capsys.readouterr().err
    table = bittern.Catalog(catalog).at()
    assert set(table["id"].to_pylist()) == {"one", "deep/two:0", "lines:1", "lines:4", "named"}
    matcher = bittern.Matcher(bittern.Index.build(table))
    assert set(matcher.match({"a": ["x", "y"]}).to_pylist()[0]) == {
        "one",
        "deep/two:0",
        "lines:1",
        "named",
    }


def test_nothing_but_bad_rules_is_wrong_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.json").write_text("{}")
    catalog = tmp_path / "shop.db"
    assert main(["import", "sns", str(tmp_path / "r.json"), "--catalog", str(catalog)]) == 1
    assert not catalog.exists()
    assert "an empty object matches nothing" in capsys.readouterr().err


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = SimpleNamespace(buffer=io.BytesIO(GOOD.encode()))
    monkeypatch.setattr("sys.stdin", given)
    assert main(["import", "eventbridge", "-", "--dry-run", "--lists", ""]) == 0
    assert capsys.readouterr().out == "stdin\ta = 'x'\n"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "--catalog CATALOG or --dry-run"),
        (["--dry-run", "--catalog", "x.db"], "--catalog CATALOG or --dry-run"),
        (["--catalog", "x.db", "--json"], "--json is for --dry-run"),
        (["--dry-run", "--scope", "MessageBody"], "scope is for sns"),
    ],
)
def test_options_that_make_no_sense(
    folder: Path, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "eventbridge", str(folder), *more]) == 2
    assert said in capsys.readouterr().err


def test_terminals_are_safe_from_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule: dict[str, Any] = {"Name": "a\x1b[2J\nb", "EventPattern": {"a": ["\x1b[31m"]}}
    (tmp_path / "r.json").write_text(json.dumps(rule))
    assert main(["import", "eventbridge", str(tmp_path / "r.json"), "--dry-run"]) == 0
    assert "\x1b" not in capsys.readouterr().out


RULES: dict[str, Any] = {
    "eventbridge": {"a": ["x", {"prefix": "y"}], "b": {"c": [{"numeric": ["<", 5]}]}},
    "sns": {"a": [{"anything-but": "x"}]},
    "jms": "NOT (price * 2 > 5 AND b) OR name LIKE 'a%'",
    "cesql": "type = 'x' AND NOT (sequence > 5)",
    "sigma": "title: t\nlogsource: {category: c}\ndetection:\n  s: {A|endswith: [x, y], B: 5}\n"
    "  condition: not s\n",
    "json_logic": {"and": [{"===": [{"var": "a"}, 5]}, {"!": {"var": "b"}}]},
    "mongo": {"a": {"$ne": 5}, "$or": [{"b": "x"}, {"c": {"$exists": True}}]},
    "elasticsearch": {"bool": {"must": [{"term": {"a": "x"}}], "must_not": [{"term": {"b": 5}}]}},
}


@pytest.mark.parametrize(
    "name", [name for name in FORMATS if name != "sigma" or find_spec("sigma")]
)
def test_every_predicate_says_what_it_was_in_the_rule(name: str) -> None:
    options = {"lists": ()} if name in ("eventbridge", "sns", "mongo", "elasticsearch") else {}
    translate = getattr(bittern.imports, name)
    expression, constructs = with_constructs(translate, RULES[name], **options)
    assert expression == translate(RULES[name], **options)
    index = bittern.Index.build({"r": expression})
    metadata = {"imported": {"constructs": constructs}}
    steps = bittern.explain(index, {}, "r", metadata=metadata).predicates()
    assert all(step.construct for step in steps), constructs
    assert not any(step.construct for step in bittern.explain(index, {}, "r").predicates())


def test_what_was_imported_is_kept_and_explained(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog, snapshot = str(tmp_path / "shop.db"), str(tmp_path / "shop.bittern")
    arguments = ["import", "eventbridge", str(folder), "--lists=", "--catalog", catalog, "--quiet"]
    assert main(arguments) == 0
    with bittern.Catalog(catalog) as opened:
        assert opened.get("lines:4").metadata == {
            "imported": {
                "format": "eventbridge",
                "source": f"{folder / 'lines.ndjson'}, line 4",
                "rule": '{"a": [5]}',
                "constructs": {"a = 5": '{"a": [5]}'},
            }
        }
        bittern.Index.build(opened.at()).write(snapshot)
    capsys.readouterr()
    assert main(["explain", snapshot, "lines:4", '{"a": 6}', "--catalog", catalog]) == 0
    assert 'a = 5: false, a is 6  <- {"a": [5]}' in capsys.readouterr().out
    assert main(arguments) == 0
    assert bittern.Catalog(catalog).version() == 1


def test_without_pysigma_the_message_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "bittern.imports.sigma_rules", raising=False)
    monkeypatch.delattr(bittern.imports, "sigma", raising=False)
    assert main(["import", "sigma", str(folder), "--dry-run"]) == 2
    told = "bittern: rules of Sigma need pySigma: pip install 'bittern[sigma]'\n"
    assert capsys.readouterr().err == told
