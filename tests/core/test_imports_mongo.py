"""Filters of MongoDB: against a plain evaluator of its manual, and that against mongomock.

mongomock is Python underneath: to it, TRUE equals 1. It also differs from MongoDB in ``$size``, in
what ``$all`` of nothing or of null means, and in what is missing inside of a value that is no
object; and it does not know ``$options`` below ``$not``. Such filters are asked of the evaluator
only.
"""

from __future__ import annotations

import json
import math
import re
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mongomock.filtering import filter_applies

import bittern
from bittern.errors import RuleError
from bittern.imports import mongo
from effort import examples
from foreign import agree
from foreign_events import EVENT_LISTS, FIELDS, NUMBERS, TEXTS, VALUES, plain

MISSING = object()
ORDER = {
    "$lt": lambda one, other: one < other,
    "$lte": lambda one, other: one <= other,
    "$gt": lambda one, other: one > other,
    "$gte": lambda one, other: one >= other,
}
TYPES = {"number": float, "string": str, "bool": bool, "array": list, 2: str}


def kind(value: Any) -> Any:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def equal(one: Any, other: Any) -> bool:
    if other is None:
        return one is None or one is MISSING
    return kind(one) is kind(other) and one == other


def find(value: Any, parts: list[str]) -> list[Any]:
    if not parts:
        return [value]
    if isinstance(value, list):
        return [each for item in value if isinstance(item, dict) for each in find(item, parts)]
    if not isinstance(value, dict) or parts[0] not in value:
        return [MISSING]
    return find(value[parts[0]], parts[1:])


def holds(query: dict[str, Any], event: Any) -> bool:
    return all(_entry(key, test, event) for key, test in query.items())


def _entry(key: str, test: Any, event: Any) -> bool:
    if key == "$and":
        return all(holds(each, event) for each in test)
    if key in ("$or", "$nor"):
        return any(holds(each, event) for each in test) is (key == "$or")
    if key == "$comment":
        return True
    return _field(find(event, key.split(".")), test)


def _field(found: list[Any], test: Any) -> bool:
    if not isinstance(test, dict):
        test = {"$eq": test}
    return all(_operator(found, name, value, test) for name, value in test.items())


def _operator(found: list[Any], name: str, wanted: Any, test: dict[str, Any]) -> bool:
    opposite = {"$ne": "$eq", "$nin": "$in"}
    if name in opposite:
        return not _operator(found, opposite[name], wanted, test)
    if name == "$not":
        return not _field(found, wanted)
    if name == "$exists":
        return any(each is not MISSING for each in found) is wanted
    if name == "$all":
        return bool(wanted) and all(
            _field(found, each if isinstance(each, dict) else {"$eq": each}) for each in wanted
        )
    if name == "$size":
        return any(isinstance(each, list) and len(each) == wanted for each in found)
    if name == "$options":
        return True
    if name == "$elemMatch":
        lists = [each for each in found if isinstance(each, list)]
        if all(key.startswith("$") for key in wanted):
            return any(_one(item, wanted) for each in lists for item in each)
        return any(isinstance(i, dict) and holds(wanted, i) for each in lists for i in each)
    both = [*found, *(item for each in found if isinstance(each, list) for item in each)]
    return any(_single(each, name, wanted, test) for each in both)


def _one(value: Any, test: dict[str, Any]) -> bool:
    """What operators say of an element, which is not a list."""
    return _field([value], test)


def _single(value: Any, name: str, wanted: Any, test: dict[str, Any]) -> bool:
    if name == "$eq":
        return equal(value, wanted)
    if name == "$in":
        return any(equal(value, each) for each in wanted)
    if name in ORDER:
        return kind(value) is kind(wanted) and ORDER[name](value, wanted)
    if name == "$mod":
        divisor, remainder = wanted
        return kind(value) is float and math.fmod(int(value), divisor) == remainder
    if name == "$type":
        types = wanted if isinstance(wanted, list) else [wanted]
        return any(kind(value) is TYPES[each] for each in types)
    assert name == "$regex"
    flags = {"i": re.IGNORECASE, "s": re.DOTALL}
    options = sum((flags[each] for each in test.get("$options", "")), re.RegexFlag(0))
    return isinstance(value, str) and re.search(wanted, value, options) is not None


# Random filters

CONSTANTS = st.one_of(VALUES, VALUES, VALUES, st.none())
PATTERNS = st.sampled_from(
    ["a", "^a", "b$", "a.b", "^$", "a|b$", r"\w\s", "[^a-z]", r"a\*", "(?:ab)?c", r"\\", "^[aé]+$"]
)
OPTIONS = st.sampled_from(["", "i", "s", "is"])


def _operators(
    constants: st.SearchStrategy[Any], values: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    lists = st.lists(constants, max_size=3)
    return st.one_of(
        constants,
        constants.map(lambda value: {"$eq": value}),
        constants.map(lambda value: {"$ne": value}),
        st.dictionaries(st.sampled_from(sorted(ORDER)), values, min_size=1, max_size=2),
        lists.map(lambda found: {"$in": found}),
        lists.map(lambda found: {"$nin": found}),
        lists.map(lambda found: {"$all": found}),
        st.booleans().map(lambda found: {"$exists": found}),
        st.builds(lambda one, other: {"$regex": one, "$options": other}, PATTERNS, OPTIONS),
    )


def _element(constants: st.SearchStrategy[Any], values: st.SearchStrategy[Any]) -> Any:
    names = {
        "$eq": constants,
        "$ne": constants,
        "$in": st.lists(constants, max_size=2),
        "$nin": st.lists(constants, max_size=2),
        **dict.fromkeys(ORDER, values),
    }
    tests = st.fixed_dictionaries({}, optional=names).filter(bool)
    return tests.map(lambda found: {"$elemMatch": found})


def _filters(
    tests: st.SearchStrategy[Any], fields: st.SearchStrategy[str]
) -> st.SearchStrategy[Any]:
    operators = tests.filter(lambda found: isinstance(found, dict))
    leaves = st.one_of(
        st.dictionaries(fields, tests, min_size=1, max_size=2),
        st.dictionaries(fields, operators.map(lambda found: {"$not": found}), min_size=1),
    )
    return st.recursive(
        leaves,
        lambda inner: st.builds(
            lambda name, found: {name: found},
            st.sampled_from(["$and", "$or", "$nor"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        max_leaves=4,
    )


TESTS = st.one_of(
    _operators(CONSTANTS, VALUES),
    _element(CONSTANTS, VALUES),
    st.integers(0, 3).map(lambda found: {"$size": found}),
    st.sampled_from([[2, 0], [2, 1], [-3, -1], [4, 2.0]]).map(lambda found: {"$mod": found}),
    st.lists(st.sampled_from(sorted(TYPES, key=str)), min_size=1, max_size=2).map(
        lambda found: {"$type": found}
    ),
    _element(CONSTANTS, VALUES).map(lambda found: {"$all": [found, 1]}),
)
FILTERS = _filters(TESTS, FIELDS)


@given(st.lists(FILTERS, min_size=1, max_size=15), EVENT_LISTS)
@examples()
def test_filters_match_what_mongodb_would_find(filters, events):
    agree(mongo, holds, filters, events)


def _has_no_boolean(value: Any) -> bool:
    return not re.search(r"\b(true|false)\b", re.sub(r'"[^"]*"', "", json.dumps(value)))


def _is_judged(query: Any) -> bool:
    text = json.dumps(query)
    odd = re.search(r'"\$all": \[(\]|[^\]]*null)', text)
    return not odd and not ("$not" in text and "$options" in text)


NO_BOOLEANS = st.one_of(NUMBERS, TEXTS)
JUDGED = _filters(
    _operators(st.one_of(NO_BOOLEANS, NO_BOOLEANS, st.none()), NO_BOOLEANS)
    | _element(NO_BOOLEANS, NO_BOOLEANS),
    st.sampled_from(["a", "b"]),
)


@given(st.lists(JUDGED, min_size=1, max_size=15), EVENT_LISTS)
@examples(4)
def test_the_evaluator_agrees_with_mongomock(filters, events):
    for event in filter(_has_no_boolean, events):
        for each in filter(_is_judged, filters):
            expected = bool(filter_applies(each, event))
            assert holds(each, event) == expected, (each, event)


@given(st.lists(FILTERS, min_size=1, max_size=15), EVENT_LISTS)
@examples(0.5)
def test_paths_that_may_be_lists_are_told(rules, events):
    some = [
        {key: plain(value, may_be_list=key == "a") for key, value in each.items()}
        for each in events
    ]
    agree(partial(mongo, lists=["a"]), holds, rules, some)


# What stands in the middle, what has no answer, what is refused

OBJECTS = st.fixed_dictionaries(
    {}, optional={"p": st.one_of(NUMBERS, st.none()), "q": st.one_of(TEXTS, st.none())}
)
OF_OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "p": st.one_of(
            NUMBERS, st.dictionaries(st.sampled_from(sorted(ORDER)), NUMBERS, min_size=1)
        ),
        "q": st.one_of(TEXTS, TEXTS.map(lambda value: {"$gt": value})),
    },
).filter(bool)


@given(
    st.lists(
        st.one_of(
            OF_OBJECTS.map(lambda found: {"a": {"$elemMatch": found}}),
            OF_OBJECTS.map(lambda found: {"a": {"$not": {"$elemMatch": found}}}),
            _operators(VALUES, VALUES)
            .filter(lambda found: "$exists" not in str(found))
            .map(lambda found: {"a.p": found}),
        ),
        min_size=1,
        max_size=15,
    ),
    st.lists(
        st.one_of(st.lists(OBJECTS, max_size=3), OBJECTS, NUMBERS, st.none()).map(
            lambda found: {"a": found}
        ),
        min_size=1,
        max_size=20,
    ),
)
@examples()
def test_objects_in_lists(filters, events):
    agree(mongo, holds, filters, events)


@pytest.mark.parametrize("test", [5, {"$gt": 3}, {"$regex": "x"}, {"$elemMatch": {"$gt": 3}}])
def test_a_list_of_several_kinds_has_no_answer_and_is_listed(test):
    rules = {"yes": mongo({"a": test}), "no": mongo({"$nor": [{"a": test}]})}
    found = bittern.Matcher(bittern.Index.build(rules)).match([{"a": [5, "x"]}])
    assert found.to_pylist() == [[]]
    assert found.mistyped


@pytest.mark.parametrize(
    ("rule", "place", "reason"),
    [
        ("[]", "$", "an object"),
        ("{", "line 1, column 2", "not JSON"),
        ({"$where": "x"}, "$['$where']", "not supported"),
        ({"a": {"$near": 1}}, "$.a['$near']", "not supported"),
        ({"a": {"$or": [1]}}, "$.a['$or']", "not supported"),
        ({"a": {"b": 1}}, "$.a", "equality with an object"),
        ({"a": {"$gt": 1, "b": 1}}, "$.a", "equality with an object"),
        ({"a": {}}, "$.a", "equality with an object"),
        ({"a": [1]}, "$.a", "is expected"),
        ({"a": {"$in": 5}}, "$.a['$in']", "a list"),
        ({"a": {"$in": [[5]]}}, "$.a['$in'][0]", "is expected"),
        ({"a": {"$gt": None}}, "$.a['$gt']", "null has no order"),
        ({"a.0": 5}, "$['a.0']", "one element"),
        ({"a..b": 5}, "$['a..b']", "empty"),
        ({"$and": []}, "$['$and']", "one at least"),
        ({"$or": [{"a": 1}, {"b": {"$x": 1}}]}, "$['$or'][1].b['$x']", "not supported"),
        ({"a": {"$regex": "(?=a)"}}, "$.a", "RE2"),
        ({"a": {"$regex": "a$b"}}, "$.a", "before the end"),
        ({"a": {"$regex": "a", "$options": "m"}}, "$.a", "options"),
        ({"a": {"$regex": "(a"}}, "", ""),
        ({"a": {"$size": 1.5}}, "$.a['$size']", "number of elements"),
        ({"a": {"$mod": [0, 1]}}, "$.a['$mod']", "divisor"),
        ({"a": {"$mod": [2, None]}}, "$.a['$mod']", "divisor"),
        ({"a": {"$type": "date"}}, "$.a['$type']", "not supported"),
        ({"a": {"$elemMatch": {"b.c": 1}}}, "$.a['$elemMatch']['b.c']", "not supported"),
        ({"a": {"$elemMatch": {"b": {"$ne": 1}}}}, "$.a['$elemMatch'].b['$ne']", "only"),
        ({"a": {"$in": list(range(20_000))}}, "", ""),
        ({"a": {"$regex": "a" * 2_000}}, "", ""),
        ({"$nor": [{f"a{n}": n} for n in range(2_000)]}, "", ""),
    ],
)
def test_refused_with_its_place(rule, place, reason):
    with pytest.raises(RuleError) as wrong:
        mongo(rule)
    assert wrong.value.place == place or not place
    assert reason in wrong.value.reason


def test_nesting_is_limited():
    rule: Any = {"a": 1}
    for _ in range(40):
        rule = {"$and": [rule]}
    with pytest.raises(RuleError, match="levels"):
        mongo(rule)
    with pytest.raises(RuleError):
        mongo('{"$and": [' * 100_000)


def test_rules_are_short_where_nothing_may_be_a_list():
    query = {"price": {"$lt": 10}, "color": {"$in": ["red", None]}}
    assert mongo(query, lists=()) == "price < 10 AND (color = 'red' OR color IS NULL)"


def test_numbers_in_extended_json():
    assert mongo({"a": {"$gt": {"$numberLong": "9007199254740993"}}}) == mongo(
        {"a": {"$gt": 9007199254740993}}
    )
