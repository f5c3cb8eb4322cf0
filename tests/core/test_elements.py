"""Arrays that have constants: looked up together, the same as one by one."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
from bittern.language.parser import parse
from bittern.language.printer import print_expression

ELEMENTS = st.one_of(st.none(), st.integers(0, 4))
EVENTS = st.lists(
    st.one_of(st.just({}), st.lists(ELEMENTS, max_size=4).map(lambda found: {"l": found})),
    max_size=6,
)


def has(elements: list[Any] | None, wanted: Any) -> bool | None:
    """What array_contains says, by Spark's definition."""
    if elements is None:
        return None
    if wanted in [each for each in elements if each is not None]:
        return True
    return None if None in elements else False


@given(EVENTS, st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True))
def test_an_array_has_an_element_or_not_or_nobody_knows(
    events: list[dict[str, Any]], wanted: list[int]
) -> None:
    texts = {f"+{n}": f"array_contains(l, {n})" for n in wanted}
    texts |= {f"-{n}": f"NOT array_contains(l, {n})" for n in wanted}
    listed = ", ".join(map(str, wanted))
    texts["any"] = f"arrays_overlap(l, array({listed})) AND NOT (l IS NULL)"
    expected = []
    for event in events:
        elements = event.get("l")
        found = {f"+{n}" for n in wanted if has(elements, n) is True}
        found |= {f"-{n}" for n in wanted if has(elements, n) is False}
        found |= {"any"} if any(has(elements, n) for n in wanted) else set()
        expected.append(found)
    matcher = bittern.Matcher(bittern.Index.build(texts))
    columns = pa.table({"l": pa.array([event.get("l") for event in events], pa.list_(pa.int32()))})
    for form in (events, [json.dumps(event) for event in events], columns):
        assert list(map(set, matcher.match(form).to_pylist())) == expected


@pytest.mark.parametrize(
    ("text", "event", "matches"),
    [
        ("array_contains(l, 5)", {"l": [5.0]}, True),
        ("array_contains(l, 5.0)", {"l": [5]}, True),
        ("array_contains(l, 0)", {"l": [-0.0]}, True),
        ("array_contains(l, 'NaN'::double)", {"l": [float("nan")]}, True),
        ("array_contains(l, '5')", {"l": [5]}, False),
        ("array_contains(l, 5)", {"l": 5}, False),
        ("array_contains(transform(l, v -> v * 2), 10)", {"l": [5]}, True),
        ("array_contains(l, n)", {"l": [5], "n": 5}, True),
    ],
)
def test_elements_are_equal_as_values_are(text: str, event: Any, matches: Any) -> None:
    found = bittern.Matcher(bittern.Index.build({"s": text})).match([event]).to_pylist()
    assert found == [["s"] if matches else []]


def test_constants_that_are_one_value_are_all_found() -> None:
    texts = ["0e0", "-0e0", "9007199254740992L", "9007199254740993L", "1L", "1.0", "1.00"]
    subscriptions = {text: f"array_contains(l, {text})" for text in texts}
    matcher = bittern.Matcher(bittern.Index.build(subscriptions))
    events = [{"l": [-0.0, 2.0**53, 0.0]}, {"l": [2**53 + 1]}, {"l": [1.0]}]
    assert list(map(set, matcher.match(events).to_pylist())) == [
        set(texts[:4]),
        {"9007199254740993L"},
        set(texts[4:]),
    ]


@pytest.mark.parametrize("text", ["array_contains(l, 'x')", "NOT array_contains(l, 'x')"])
def test_what_is_written_reads_back(text: str) -> None:
    written = print_expression(parse(text))
    assert written.startswith(text)
    assert parse(written) == parse(text)


def test_explain_says_whether_it_is_there() -> None:
    index = bittern.Index.build({"s": "array_contains(tags, 'x')"})
    assert bittern.explain(index, {"tags": ["x"]}, "s").matched
    assert "array_contains(tags, 'x'): false" in str(bittern.explain(index, {"tags": ["y"]}, "s"))
