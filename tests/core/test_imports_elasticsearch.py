"""Queries of Elasticsearch: against a plain evaluator of what its reference says."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
from bittern.errors import RuleError
from bittern.imports import elasticsearch
from effort import examples
from foreign import agree
from foreign_events import EVENT_LISTS, FIELDS, NUMBERS, TEXTS, VALUES, plain

# The plain evaluator: a field is the list of its values.


def values_of(event: Any, field: str) -> list[Any]:
    """All values of a field that are not null; lists are flattened."""
    if field.endswith(".keyword"):
        field = field.removesuffix(".keyword")
    found = [event]
    for part in field.split("."):
        found = [each[part] for each in flat(found) if isinstance(each, dict) and part in each]
    return [each for each in flat(found) if each is not None]


def flat(values: list[Any]) -> list[Any]:
    return [one for each in values for one in (flat(each) if isinstance(each, list) else [each])]


def kind(value: Any) -> type:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def equal(one: Any, other: Any) -> bool:
    return kind(one) is kind(other) and one == other


def upper(text: str) -> str:
    return "".join(each.upper() if each.isascii() else each for each in text)


def glob(text: str, pattern: str) -> bool:
    """Whether a text is like a wildcard pattern, by trying every way."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(glob(text[at:], pattern[1:]) for at in range(len(text) + 1))
    if pattern[0] == "\\" and len(pattern) > 1:
        return text[:1] == pattern[1] and glob(text[1:], pattern[2:])
    return bool(text) and pattern[0] in ("?", text[0]) and glob(text[1:], pattern[1:])


def number_to_match(spec: Any, count: int) -> int:
    """The table of ``minimum_should_match`` in the reference."""
    if isinstance(spec, str) and spec.endswith("%"):
        share = int(spec[:-1])
        part = math.floor(count * abs(share) / 100)
        return part if share >= 0 else count - part
    return int(spec) if int(spec) >= 0 else max(0, count + int(spec))


def holds(query: Any, event: dict[str, Any]) -> bool:
    ((name, body),) = query.items()
    if name == "query":
        return holds(body, event)
    if name == "match_all":
        return True
    if name == "match_none":
        return False
    if name == "bool":
        return holds_bool(body, event)
    if name == "constant_score":
        return holds(body["filter"], event)
    if name == "dis_max":
        return any(holds(each, event) for each in body["queries"])
    if name == "boosting":
        return holds(body["positive"], event)
    if name == "exists":
        return bool(values_of(event, body["field"]))
    if name == "ids":
        return any(each in body["values"] for each in values_of(event, "_id"))
    ((field, options),) = body.items()
    values = values_of(event, field)
    if name == "terms":
        return any(equal(each, value) for each in values for value in options)
    if name == "range":
        return any(within(each, options) for each in values)
    if not isinstance(options, dict):
        options = {"value": options}
    wanted = next(options[each] for each in ("value", "wildcard", "query") if each in options)
    if options.get("case_insensitive"):
        values = [upper(each) if isinstance(each, str) else each for each in values]
        wanted = upper(wanted) if isinstance(wanted, str) and name != "regexp" else wanted
    texts = [each for each in values if isinstance(each, str)]
    if name in ("term", "match"):
        return any(equal(each, wanted) for each in values)
    if name == "prefix":
        return any(each.startswith(wanted) for each in texts)
    if name == "wildcard":
        return any(glob(each, wanted) for each in texts)
    assert name == "regexp"
    return any(re.fullmatch(PATTERNS[wanted], each) for each in texts)


def holds_bool(body: dict[str, Any], event: dict[str, Any]) -> bool:
    def answers(kind: str) -> list[bool]:
        clauses = body.get(kind, [])
        return [
            holds(each, event) for each in (clauses if isinstance(clauses, list) else [clauses])
        ]

    needed, should = answers("must") + answers("filter"), answers("should")
    if not all(needed) or any(answers("must_not")):
        return False
    least = number_to_match(body.get("minimum_should_match", 0), len(should)) if should else 0
    if should and not needed:
        least = max(least, 1)
    return sum(should) >= least


def within(value: Any, bounds: dict[str, Any]) -> bool:
    ends = {key: end for key, end in bounds.items() if end is not None}
    if any(kind(end) is not kind(value) for end in ends.values()):
        return False
    checks = {
        "gt": lambda end: value > end,
        "gte": lambda end: value >= end,
        "lt": lambda end: value < end,
        "lte": lambda end: value <= end,
    }
    return all(checks[key](end) for key, end in ends.items())


#: Patterns of Lucene, and what they are for Python.
PATTERNS = {
    "a": "a",
    "a.*": r"a[\s\S]*",
    "ab?c*": "ab?c*",
    "(a|b)+": "(a|b)+",
    "[a-c]{1,2}": "[a-c]{1,2}",
    "[^a]": "[^a]",
    '"a*b"': r"a\*b",
    "a\\*b": r"a\*b",
    "@": r"[\s\S]*",
    "^a$": r"\^a\$",
    "\\d+": "[0-9]+",
    "a(b|c()){0,2}": "a(b|c){0,2}",
    "[aA][b\\-B]": r"[aA][b\-B]",
    "": "",
    "a.b": r"a[\s\S]b",
    ".": r"[\s\S]",
}


# Random queries


def _object(field: str, body: Any) -> dict[str, Any]:
    return {field: body}


def _leaf(name: str, body: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.one_of(FIELDS, FIELDS, st.just("a.keyword"))
    return st.builds(_object, fields, body).map(lambda found: {name: found})


GLOBS = st.lists(st.sampled_from("ab*?A%_") | st.just("\\*"), max_size=4).map("".join)
WITHOUT_CASE = st.booleans()
BOUNDS = st.one_of(
    *(
        st.dictionaries(st.sampled_from(["gt", "gte", "lt", "lte"]), own | st.none(), min_size=1)
        for own in (NUMBERS, TEXTS)
    )
)
LEAVES = st.one_of(
    _leaf("term", VALUES),
    _leaf("term", st.fixed_dictionaries({"value": VALUES, "case_insensitive": WITHOUT_CASE})),
    _leaf("terms", st.lists(VALUES, max_size=4)),
    _leaf("range", BOUNDS),
    _leaf("prefix", TEXTS),
    _leaf("prefix", st.fixed_dictionaries({"value": TEXTS, "case_insensitive": WITHOUT_CASE})),
    _leaf("wildcard", st.fixed_dictionaries({"value": GLOBS, "case_insensitive": WITHOUT_CASE})),
    _leaf("wildcard", GLOBS.map(lambda found: {"wildcard": found})),
    _leaf("regexp", st.sampled_from(sorted(PATTERNS))),
    FIELDS.map(lambda field: {"exists": {"field": field}}),
    st.sampled_from([{"match_all": {}}, {"match_none": {}}, {"match": {"b.keyword": "a"}}]),
    _leaf("match", st.one_of(NUMBERS, st.booleans())),
)


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.one_of(inner, st.lists(inner, max_size=3))
    least = st.sampled_from([0, 1, 2, 3, -1, "50%", "-40%", "100%", "2"])
    optional = {"must": some, "filter": some, "should": some, "must_not": some}
    return st.one_of(
        st.fixed_dictionaries({}, optional={**optional, "minimum_should_match": least}).map(
            lambda found: {"bool": found}
        ),
        inner.map(lambda found: {"bool": {"must_not": found}}),
        inner.map(lambda found: {"constant_score": {"filter": found, "boost": 2}}),
        st.lists(inner, max_size=3).map(lambda found: {"dis_max": {"queries": found}}),
        st.builds(
            lambda one, other: {
                "boosting": {"positive": one, "negative": other, "negative_boost": 0.5}
            },
            inner,
            inner,
        ),
    )


QUERIES = st.recursive(LEAVES, _compound, max_leaves=5)


@given(st.lists(QUERIES, min_size=1, max_size=15), EVENT_LISTS)
@examples(1)
def test_queries_match_what_elasticsearch_would_find(queries, events):
    agree(elasticsearch, holds, queries, events)


@given(st.lists(LEAVES, min_size=1, max_size=15), EVENT_LISTS)
@examples(1)
def test_must_not_is_the_opposite(leaves, events):
    agree(elasticsearch, holds, [{"bool": {"must_not": each}} for each in leaves], events)


@given(st.lists(QUERIES, min_size=1, max_size=15), EVENT_LISTS)
@examples(0.5)
def test_paths_that_may_be_lists_are_told(rules, events):
    some = [
        {key: plain(value, may_be_list=key == "a") for key, value in each.items()}
        for each in events
    ]
    agree(partial(elasticsearch, lists=["a"]), holds, rules, some)


# What has no answer, what is refused


@pytest.mark.parametrize(
    "query",
    [
        {"term": {"a": 5}},
        {"prefix": {"a": "x"}},
        {"range": {"a": {"gt": 3}}},
        {"terms": {"a": [5]}},
    ],
)
@pytest.mark.parametrize("value", [[5, "x"], [[5], ["x"]], [["x"]]])
def test_what_has_no_kind_has_no_answer(query, value):
    rules = {
        "yes": elasticsearch(query),
        "no": elasticsearch({"bool": {"must_not": query}}),
    }
    found = bittern.Matcher(bittern.Index.build(rules)).match([{"a": value}])
    assert found.to_pylist() == [[]]
    assert found.mistyped


@pytest.mark.parametrize(
    ("rule", "place", "reason"),
    [
        ("[]", "$", "one key"),
        ("{", "line 1, column 2", "not JSON"),
        ({"match": {"title": "red shoes"}}, "$.match.title", "analyzes text"),
        ({"query": {"match_phrase": {"t": "x"}}}, "$.query.match_phrase", "analyzes text"),
        ({"bool": {"must": [{"fuzzy": {"a": "b"}}]}}, "$.bool.must[0].fuzzy", "analyzes text"),
        ({"nested": {"path": "a"}}, "$.nested", "not supported"),
        ({"bool": {"musst": []}}, "$.bool.musst", "not supported"),
        (
            {"bool": {"should": [], "minimum_should_match": "2<75%"}},
            "$.bool.minimum_should_match",
            "combinations",
        ),
        ({"term": {"a": None}}, "$.term.a", "null"),
        ({"term": {"a": [1]}}, "$.term.a", "is expected"),
        ({"term": {"a": 1, "b": 2}}, "$.term", "one field"),
        ({"terms": {"a": {"index": "i"}}}, "$.terms.a", "another document"),
        ({"range": {"a": {"gte": "now-1d"}}}, "$.range.a.gte", "clock"),
        ({"range": {"a": {"gte": 1, "lt": "x"}}}, "$.range.a", "several kinds"),
        ({"range": {"a": {"from": 1}}}, "$.range.a.from", "not supported"),
        ({"regexp": {"a": "~a"}}, "$.regexp", "not supported"),
        ({"regexp": {"a": "(a"}}, "$.regexp", "not closed"),
        ({"regexp": {"a": "a)"}}, "$.regexp", "too many"),
        ({"regexp": {"a": "a{3,1}"}}, "$.regexp", "not a count"),
        ({"regexp": {"a": "a{1,1000}{1,1000}"}}, "", ""),
        ({"regexp": {"a": "(" * 900 + "a" + ")" * 900}}, "$.regexp", "inside each other"),
        ({"wildcard": {"a": "*?" * 600}}, "", ""),
        ({"term": {"a*": 1}}, "$.term", "several fields"),
        ({"terms": {"a": list(range(20_000))}}, "", ""),
        (
            {
                "bool": {
                    "should": [{"term": {"a": n}} for n in range(40)],
                    "minimum_should_match": 20,
                }
            },
            "$.bool",
            "choices",
        ),
    ],
)
def test_refused_with_its_place(rule, place, reason):
    with pytest.raises(RuleError) as wrong:
        elasticsearch(rule)
    assert wrong.value.place == place or not place
    assert reason in wrong.value.reason


def test_nesting_is_limited():
    rule: Any = {"match_all": {}}
    for _ in range(40):
        rule = {"bool": {"must": rule}}
    with pytest.raises(RuleError, match="levels"):
        elasticsearch(rule)
