"""Arrays that have constants: looked up together, the same as one by one."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bittern
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.terms.nested.nested import parts_of

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


#: Values of an attribute that goes by several types, some without any value inside.
VALUES = st.one_of(
    st.none(),
    st.sampled_from([5, "s", {}, [], [None], [[]], [[], []], [1, "a"]]),
    st.lists(st.none() | st.integers(0, 2), max_size=3),
    st.lists(st.none() | st.sampled_from(["", "x"]), max_size=3),
    st.lists(st.lists(st.none() | st.integers(0, 2), max_size=2), max_size=2),
    st.dictionaries(
        st.sampled_from("bk"),
        st.one_of(st.none(), st.just("x"), st.integers(0, 1), st.lists(st.none(), max_size=2)),
    ),
)
ASKED = (
    "array_position(a, '') >= 0",
    "array_position(a, 0) >= 0",
    "array_position(a.b, 0) >= 0",
    "coalesce(a[0], 'x') = 'x'",
    "coalesce(a['k'], 'x') = 'x'",
    "array_contains(a, 'x') IS NULL",
    "array_size(a) >= 0",
    "exists(a, i -> i IS NULL)",
    "map_contains_key(a, 'k')",
)


@given(st.lists(VALUES, min_size=2, max_size=6))
@example([[5, 1], [], [None]])
@example([{"d": " -Infinity"}, {"d": [None, None]}, {"d": ["+1", None, None]}])
@example([[["", None]], [], "s", [[1]], {"b": []}])
def test_an_event_matches_the_same_in_any_batch(values: list[Any]) -> None:
    """Lists without values inside can be asked for any type, whatever stands in other events."""
    matcher = bittern.Matcher(bittern.Index.build(dict(enumerate(ASKED))))
    events = [{"a": value} for value in values]
    alone = [set(matcher.match([event]).ids(0)) for event in events]
    for form in (events, [json.dumps(event) for event in events]):
        assert list(map(set, matcher.match(form).to_pylist())) == alone


def test_the_entries_of_maps_are_those_of_their_rows() -> None:
    """In slices, below NULL, and where items are lists of nothing but NULL."""
    rows = [None, [("k", [None, None])], [], [("k", []), ("l", None)], None, [("m", [None])]]
    items = pa.list_(pa.null())
    maps = pa.array(rows, pa.map_(pa.string(), items))
    hidden = pa.MapArray.from_arrays(
        maps.offsets, maps.keys, maps.items, mask=pa.array([False, True] * 3)
    )
    for first in range(len(rows)):
        for array in (maps[first:], maps[first : first + 2], hidden[first:]):
            parts = parts_of(array)
            entries = parts.values.to_pylist()
            found = [
                [(each["key"], each["value"]) for each in entries[begin:end]] if valid else None
                for begin, end, valid in zip(
                    parts.offsets[:-1], parts.offsets[1:], parts.valid, strict=True
                )
            ]
            assert found == array.to_pylist()
