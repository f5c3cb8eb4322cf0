"""Whatever is given as a rule becomes an expression or a ``RuleError``, in bounded time."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern.imports
from bittern.errors import RuleError
from bittern.imports import eventbridge, jms, json_logic
from bittern.imports.formats import FORMATS
from bittern.language.parser import parse

NAMES = [name for name in FORMATS if name != "sigma" or find_spec("sigma")]
#: Words that have a meaning in some format, beside any text.
WORDS = st.sampled_from(
    [
        *("$or", "prefix", "anything-but", "exists", "numeric", "cidr", "and", "var", "$and"),
        *("$in", "$gt", "bool", "must", "term", "terms", "range", "query", "detection"),
        *("condition", "a.b", ""),
    ]
)
TEXTS = st.one_of(WORDS, st.text(max_size=6))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=12,
)
TOKENS = st.lists(
    st.sampled_from(
        "a b 1 .5 'x' ( ) , = <> < >= + - * / AND OR NOT IN LIKE IS NULL BETWEEN".split()  # noqa: SIM905
    ),
    max_size=12,
).map(" ".join)


def is_translated_or_refused(name: str, rule: Any) -> None:
    try:
        text = getattr(bittern.imports, name)(rule)
    except RuleError as wrong:
        assert wrong.reason  # noqa: PT017
    else:
        parse(text)


@pytest.mark.parametrize("name", NAMES)
@given(rule=st.one_of(JSON, TOKENS, st.text(max_size=30), st.binary(max_size=10)))
def test_anything_is_translated_or_refused(name: str, rule: Any) -> None:
    is_translated_or_refused(name, rule)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "(" * 60_000, "x" * 2_000_000])
def test_bombs_are_refused(name: str, text: str) -> None:
    with pytest.raises(RuleError):
        getattr(bittern.imports, name)(text)


def test_what_multiplies_is_refused() -> None:
    with pytest.raises(RuleError, match="compared"):
        jms(" = ".join(["b"] * 60))
    gone = {f"z{n}": [{"exists": False}] for n in range(40)}
    with pytest.raises(RuleError, match="ways"):
        eventbridge({"a": {"a": [1], **gone}})
    either = {"$or": [{"x": [1]}, {"y": [1]}]}
    nested: dict[str, Any] = {"a": {"b": {**either, "c": {**either, "d": [1]}}, "e": {**either}}}
    is_translated_or_refused("eventbridge", nested)


def test_many_keys_twice_are_found_fast() -> None:
    keys = ", ".join(f'"{n}": [1]' for n in range(60_000))
    with pytest.raises(RuleError, match="comes twice"):
        eventbridge(f'{{{keys}, "59999": [1]}}')


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("jms", "a < 1e400"),
        ("jms", "a = " + "9" * 400),
        ("mongo", '{"a": {"$lt": {"$numberDouble": "Infinity"}}}'),
        ("mongo", '{"a": {"$numberDouble": "NaN"}}'),
        ("mongo", '{"a": {"$size": {"$numberDouble": "-Infinity"}}}'),
        ("mongo", '{"a": {"$numberInt": 5.7}}'),
        ("mongo", '{"a": {"$numberLong": "1_000"}}'),
        ("json_logic", {"<": [{"var": "a"}, 10**400]}),
        ("json_logic", {"in": [10**400, {"var": "a"}]}),
        ("elasticsearch", {"bool": {"should": {"term": {"a": 1}}, "minimum_should_match": "+-5"}}),
    ],
)
def test_numbers_that_no_expression_has_are_refused(name: str, rule: Any) -> None:
    with pytest.raises(RuleError, match="number"):
        getattr(bittern.imports, name)(rule)


def test_a_text_that_spells_a_huge_number_is_infinite_in_javascript() -> None:
    assert json_logic({"<": [1, "0x" + "f" * 400]}) == "TRUE"
