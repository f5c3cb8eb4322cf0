"""Sigma rules: what pySigma reads of them is evaluated plainly, and the expression must agree."""

from __future__ import annotations

import ipaddress
import operator
import random
import re
from pathlib import Path
from typing import Any

import pytest

import bittern
from bittern.errors import RuleError
from bittern.imports import sigma
from effort import chosen_seed, rounds
from foreign import agree

pytest.importorskip("sigma", reason="pySigma is not installed (pip install 'bittern[sigma]')")

from sigma import types as sigma_types
from sigma.conditions import ConditionAND, ConditionNOT, ConditionOR
from sigma.rule import SigmaRule

from bittern.imports.sigma_rules import BitternBackend

HEAD = {"title": "t", "logsource": {"category": "process_creation"}}
TEXTS = [
    "cmd",
    "CMD.exe",
    "a\\cmd.exe",
    "x -enc y",
    "x /enc y",
    "10.1.2.3",
    "010.1.2.3",
    "2001:DB8:0::7",
    "4688",
    "",
    "ÄÖ",
    "a%b_",
]
VALUES: dict[str, list[Any]] = {
    "Image": TEXTS,
    "Line": TEXTS,
    "Id": [1, 5, 4688, "4688", "5", 2.5],
    "Flag": [True, False, "true"],
    "Any": [*TEXTS, 1, 4688, True, None, ["cmd"], {"x": 1}],
}
TESTS: list[tuple[str, list[Any]]] = [
    ("", ["cmd", "cmd*", "*CMD*", "?md", "", "äö", "a\\*", "*%b_"]),
    ("|contains", ["cmd", "enc", "%", "\\"]),
    ("|startswith", ["a\\", "x", "C"]),
    ("|endswith", [".exe", "\\cmd.exe", "y"]),
    ("|cased", ["cmd", "CMD*"]),
    ("|contains|windash", ["-enc"]),
    ("|re", ["c.d", "^x", "[0-9]+$"]),
    ("|re|i", ["CMD"]),
    ("|cidr", ["10.0.0.0/8", "10.1.0.0/20", "2001:db8::/32"]),
    ("|fieldref", ["Line", "Id"]),
    ("|fieldref|contains", ["Line"]),
    ("|exists", [True, False]),
]


def evaluate(node: Any, event: dict[str, Any]) -> bool:
    """What a condition of pySigma says of an event."""
    if isinstance(node, ConditionAND):
        return all(evaluate(each, event) for each in node.args)
    if isinstance(node, ConditionOR):
        return any(evaluate(each, event) for each in node.args)
    if isinstance(node, ConditionNOT):
        return not evaluate(node.args[0], event)
    return holds(node.value, node.field, event)


def shown(value: Any) -> str | None:
    """A value as the text that is searched; lists and objects have none."""
    if value is None or isinstance(value, list | dict):
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def pattern_of(value: Any) -> str:
    wild = {"WILDCARD_MULTI": ".*", "WILDCARD_SINGLE": "."}
    return "".join(re.escape(p) if isinstance(p, str) else wild[p.name] for p in value.s)


def holds(value: Any, field: str, event: dict[str, Any]) -> bool:
    own = event.get(field)
    text = shown(own)
    if isinstance(value, sigma_types.SigmaExpansion):
        return any(holds(each, field, event) for each in value.values)
    if isinstance(value, sigma_types.SigmaExists):
        return bool(value) == (field in event) if hasattr(value, "__bool__") else field in event
    if isinstance(value, sigma_types.SigmaNull):
        return own is None
    if text is None:
        return False
    if isinstance(value, sigma_types.SigmaCasedString):
        return isinstance(own, str) and bool(re.fullmatch(pattern_of(value), own, re.DOTALL))
    if isinstance(value, sigma_types.SigmaString):
        return bool(re.fullmatch(pattern_of(value).lower(), text.lower(), re.DOTALL))
    if isinstance(value, sigma_types.SigmaNumber):
        if isinstance(own, bool):
            return False
        return own == value.number if isinstance(own, int | float) else own == str(value.number)
    if isinstance(value, sigma_types.SigmaBool):
        return text.lower() == str(value.boolean).lower()
    if isinstance(value, sigma_types.SigmaRegularExpression):
        flags = re.IGNORECASE if value.flags else re.NOFLAG
        return isinstance(own, str) and bool(re.search(str(value.regexp), own, flags))
    if isinstance(value, sigma_types.SigmaCIDRExpression):
        try:
            return ipaddress.ip_address(text) in value.network
        except ValueError:
            return False
    if isinstance(value, sigma_types.SigmaCompareExpression):
        compare = {"LT": operator.lt, "LTE": operator.le, "GT": operator.gt, "GTE": operator.ge}
        is_number = isinstance(own, int | float) and not isinstance(own, bool)
        return is_number and compare[value.op.name](own, value.number.number)
    assert isinstance(value, sigma_types.SigmaFieldReference)
    other = shown(event.get(value.field))
    if other is None:
        return False
    if value.starts_with and value.ends_with:
        return other.lower() in text.lower()
    return other.lower() == text.lower()


def judge(rule: dict[str, Any], event: dict[str, Any]) -> bool:
    parsed = SigmaRule.from_dict(rule)
    return any(evaluate(each.parsed, event) for each in parsed.detection.parsed_condition)


class World:
    """Random rules and events."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def event(self) -> dict[str, Any]:
        choose = self.random.choice
        return {k: choose(own) for k, own in VALUES.items() if self.random.random() < 0.75}

    def item(self) -> tuple[str, Any]:
        choose = self.random.choice
        if self.random.random() < 0.35:
            return choose(
                [
                    ("Id", choose([1, 4688, [5, 4688], 2.5, "4688"])),
                    ("Id|gte", 5),
                    ("Id|lt", 5),
                    ("Flag", choose([True, False])),
                    ("Any", None),
                    ("Any", [1, "cmd", True]),
                ]
            )
        modifier, values = choose(TESTS)
        many = "exists" not in modifier and self.random.random() < 0.4
        found = self.random.sample(values, min(2, len(values))) if many else choose(values)
        all_of = "|all" if many and modifier in ("|contains", "|re") else ""
        return choose(["Image", "Line", "Any"]) + modifier + all_of, found

    def rule(self) -> dict[str, Any]:
        detection: dict[str, Any] = {
            name: dict(self.item() for _ in range(self.random.randrange(1, 3)))
            for name in ("sel_a", "sel_b", "filter")
        }
        detection["condition"] = self.random.choice(
            [
                "sel_a and not filter",
                "1 of sel_* and not filter",
                "all of sel_*",
                "not 1 of them",
                "sel_a or (sel_b and not (filter or sel_a))",
                "not all of sel_*",
            ]
        )
        return {**HEAD, "detection": detection}


def test_rules_answer_as_a_plain_evaluator_does() -> None:
    world = World(chosen_seed())
    for _ in range(rounds()):
        agree(sigma, judge, [world.rule() for _ in range(80)], [world.event() for _ in range(30)])


def rule(selection: str, condition: str = "s") -> str:
    return (
        "title: t\nlogsource: {category: c}\n"
        f"detection:\n  s:\n    {selection}\n  condition: {condition}\n"
    )


@pytest.mark.parametrize(
    ("selection", "expression"),
    [
        ("A|endswith: '\\cmd.exe'", r"lower(A) LIKE '%\\\\cmd.exe'"),
        ("A: [x, Y]", "lower(A) IN ('x', 'y')"),
        ("A|cased: X", "A = 'X'"),
        ("A|re|i: 'a+'", "A RLIKE '(?i)a+'"),
        ("A|base64: foo", "lower(A) = 'zm9v'"),
        ("A.B: null", "A.B IS NULL"),
        ("A|exists: false", "A IS MISSING"),
        ("A|gt: 5", "A > 5"),
    ],
)
def test_what_items_become(selection: str, expression: str) -> None:
    assert sigma(rule(selection)) == expression


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (rule("A|nonsense: x"), "nonsense"),
        (rule("A|re: '(?=x)'"), "invalid"),
        (rule("A|cidr: '300.0.0.0/8'"), "CIDR"),
        (rule("A|expand: '%p%'"), "placeholder"),
        (rule("A|hour: 5"), "part of the time"),
        (rule("A|hour|gt: 5"), "part of the time"),
        (rule("- null"), "no keyword"),
        (rule("A: x", "5"), "a condition is text"),
        (rule("A|lt: x"), "$.detection.s['A|lt']"),
        (rule("A: x", "s and"), "$.detection.condition"),
        (rule("A: x\n    A: y"), "line 6, column 5: this is not YAML: the key 'A' comes twice"),
        (rule("<<: {A: x}"), "write the fields out"),
        (rule("- keyword"), "keyword"),
        (rule("A: x", "s and nothing"), "nothing"),
        (rule("A: x", "s | count() > 5"), "pipe syntax"),
        ("title: [", "line 2"),
        ("[" * 50_000, "deeply"),
        ("- 5", "a rule is a mapping"),
        ("", "no rule"),
        ("a: &a [x, x]\na: &a [*a]\n", "line 2"),
        (rule("A: x") + "---\n" + rule("A: y"), "2 rules"),
        (
            "".join(f"{n}: &x{n} [{f'*x{n - 1},' * 9}]\n" for n in range(1, 30)).replace(
                "*x0,", "1,"
            ),
            "alias",
        ),
        (5, "YAML text or a mapping"),
    ],
)
def test_what_cannot_be_said_is_refused_with_a_reason(text: Any, said: str) -> None:
    with pytest.raises(RuleError) as caught:
        sigma(text)
    assert said.lower() in str(caught.value).lower()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (rule("A: x", " or ".join(["s"] * 6_000)), "16,384 characters"),
        (rule(f"A: [{'x, ' * 9_000}]", "s or s or s"), "16,384 values"),
        (rule(f"A: [{'x, ' * 20_000}]"), "16,384 values"),
        (
            rule("A: x", " or ".join(["all of them"] * 300)).replace(
                "  s:", "".join(f"  s{n}: {{A: x}}\n" for n in range(300)) + "  s:"
            ),
            "16,384 values",
        ),
        (rule("A: " + ":".join(["1"] * 300_000)), "100 characters"),
        (rule("A: " + "9" * 900_000), "100 characters"),
        (rule("A: " + "[" * 70), "levels"),
        (rule("A|windash: '" + " -a" * 30 + "'"), "three dash"),
        (rule("A|re: '(a{1000}){1000}'"), "repetition"),
        (rule(f"A: '{'*a' * 5_000}'"), "1,000 characters"),
        (rule(f"A|contains: [{', '.join(f'w{n}' for n in range(9_000))}]"), "65,536 characters"),
        (rule("A: x", "not " * 3_000 + "s"), "deeply"),
    ],
)
def test_what_takes_for_ever_is_refused(text: str, said: str) -> None:
    with pytest.raises(RuleError, match=said):
        sigma(text)


def test_a_filter_alone_is_refused() -> None:
    text = (
        "title: f\nlogsource: {category: c}\nfilter: {rules: [base], x: {A: y}, condition: not x}\n"
    )
    with pytest.raises(RuleError, match="with the rules"):
        sigma(text)


def test_correlations_are_refused() -> None:
    text = rule("A: x") + "name: base\n"
    correlation = (
        "title: c\ncorrelation:\n  type: event_count\n  rules: [base]\n"
        "  group-by: [A]\n  timespan: 1h\n  condition: {gte: 5}\n"
    )
    with pytest.raises(RuleError, match="rules"):
        sigma(text + "---\n" + correlation)


def test_keywords_are_searched_in_the_fields_that_are_named() -> None:
    text = "title: t\nlogsource: {category: c}\ndetection: {k: [Foo, 'b*r'], condition: k}\n"
    assert sigma(text, fields=["A", "B"]) == (
        "lower(A) LIKE '%foo%' OR lower(B) LIKE '%foo%' OR "
        "lower(A) LIKE '%b%r%' OR lower(B) LIKE '%b%r%'"
    )


@pytest.mark.parametrize(
    ("keywords", "expression"),
    [
        ("'|cased': Foo", "A LIKE '%Foo%'"),
        ("'|all': [x, y]", "lower(A) LIKE '%x%' AND lower(A) LIKE '%y%'"),
        ("'|re|i': x.y", "A RLIKE '(?i)x.y'"),
        ("'|contains': x", "lower(A) LIKE '%x%'"),
        ("'|base64': foo", "lower(A) LIKE '%zm9v%'"),
        (
            "'|base64offset|contains': foo",
            "lower(A) LIKE '%zm9v%' OR lower(A) LIKE '%zvb%' OR lower(A) LIKE '%mb2%'",
        ),
    ],
)
def test_keywords_with_modifiers(keywords: str, expression: str) -> None:
    assert sigma(rule(keywords), fields=["A"]) == expression


def test_pipelines_name_fields(tmp_path: Path) -> None:
    pipeline = tmp_path / "p.yml"
    pipeline.write_text(
        "name: p\npriority: 1\ntransformations:\n"
        "- {id: m, type: field_name_mapping, mapping: {A: process.command}}\n"
    )
    assert sigma(rule("A: x"), pipeline=pipeline) == "lower(process.command) = 'x'"
    pipeline.write_text("- 5")
    with pytest.raises(RuleError, match="pipeline"):
        sigma(rule("A: x"), pipeline=pipeline)


def test_the_backend_is_one_of_pysigmas() -> None:
    from sigma.collection import SigmaCollection

    assert BitternBackend().convert(SigmaCollection.from_yaml(rule("A: x"))) == ["lower(A) = 'x'"]


def test_files_of_several_rules(tmp_path: Path) -> None:
    from bittern.imports.rule_files import read_rules

    (tmp_path / "two.yml").write_text(
        rule("A: x").replace("title: t", "title: good") + "---\n" + rule("A|nonsense: x")
    )
    (tmp_path / "bad.yml").write_text("title: [")
    found = {each.id: each for each in read_rules("sigma", [str(tmp_path)])}
    assert found["good"].expression == "lower(A) = 'x'"
    wrong = found["t"].error
    assert wrong is not None
    assert (wrong.file, wrong.place) == (
        f"{tmp_path / 'two.yml'}, line 8",
        "$.detection.s['A|nonsense']",
    )
    assert found["bad"].error is not None
    assert sum(each.error is not None for each in found.values()) == 2


def test_explain_answers_in_the_names_of_the_rule() -> None:
    index = bittern.Index.build({"r": sigma(rule("CommandLine|contains: ENC"))})
    said = str(bittern.explain(index, {"CommandLine": "x"}, "r"))
    assert "lower(CommandLine) LIKE '%enc%'" in said
