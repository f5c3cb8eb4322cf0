"""Rules of JSON Logic: against json-logic-js, the implementation that the others follow."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bittern
from bittern.errors import RuleError
from bittern.imports import json_logic
from effort import examples
from foreign import agree
from foreign_events import lists_of
from node_judge import node_judge

__all__ = ["node_judge"]

NUMBERS = st.sampled_from([-1, 0, 1, 2, 1.5, 2.0, 10, 0.1, 100])
TEXTS = st.sampled_from(
    [
        *["", "a", "ab", "b", "5", "1", "1.0", "1a", "-1", ".5", "5.", "1e1", "1,2", ",", "true"],
        *["null", "Infinity", "+1", "0.1", "1,b", "a,b", "%", "é", "0", " 1 ", " -Infinity", "\n"],
        *["\u00a01", "[object Object]", "NaN", "inf", "1_0", "1d", "-0"],
    ]
)
BOOLEANS = st.booleans()
CONSTANTS = st.one_of(NUMBERS, TEXTS, BOOLEANS, st.none())
VALUES = st.one_of(
    CONSTANTS,
    lists_of(NUMBERS),
    lists_of(TEXTS),
    lists_of(BOOLEANS),
    st.sampled_from([{}, {"x": 1}]),
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "a": VALUES,
        "b": VALUES,
        "c": st.one_of(
            st.fixed_dictionaries({}, optional={"d": VALUES}),
            st.sampled_from([None, 5, "a", [1]]),
        ),
    },
)
NAMES = st.sampled_from(["a", "a", "b", "c.d"])
VARIABLES = st.one_of(
    NAMES.map(lambda name: {"var": name}),
    NAMES.map(lambda name: {"var": name}),
    st.builds(lambda name, default: {"var": [name, default]}, NAMES, CONSTANTS),
)
COMPARISONS = st.sampled_from(["==", "===", "!=", "!==", "<", "<=", ">", ">="])


def _call(name: str, *arguments: Any) -> dict[str, Any]:
    return {name: list(arguments)}


def _leaves(variables: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        variables,
        st.builds(_call, COMPARISONS, variables, CONSTANTS),
        st.builds(_call, COMPARISONS, variables, CONSTANTS),
        st.builds(_call, COMPARISONS, CONSTANTS, variables),
        st.builds(_call, st.just("in"), variables, st.lists(CONSTANTS, max_size=3)),
        st.builds(_call, st.just("in"), CONSTANTS, variables),
    )


def _joined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(
            lambda name, found: {name: found},
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(_call, st.sampled_from(["!", "!!"]), inner),
        inner.map(lambda found: {"!": found}),
    )


BODIES = st.recursive(_leaves(st.just({"var": ""})), _joined, max_leaves=3)
LEAVES = st.one_of(
    _leaves(VARIABLES),
    _leaves(VARIABLES),
    st.builds(_call, COMPARISONS, CONSTANTS, CONSTANTS),
    st.builds(_call, st.sampled_from(["<", "<="]), CONSTANTS, VARIABLES, CONSTANTS),
    st.builds(
        _call,
        st.sampled_from(["some", "all", "none"]),
        NAMES.map(lambda name: {"var": name}),
        BODIES,
    ),
    st.lists(NAMES, max_size=3).map(lambda found: {"missing": found}),
    st.lists(NAMES, max_size=3).map(lambda found: {"missing": [found]}),
    st.builds(_call, st.just("missing_some"), st.integers(0, 3), st.lists(NAMES, max_size=4)),
    st.one_of(CONSTANTS, st.sampled_from([[], [0], {}, {"a": 1, "b": 2}])),
)
RULES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        _joined(inner),
        st.lists(inner, max_size=5).map(lambda found: {"if": found}),
        st.lists(inner, min_size=3, max_size=3).map(lambda found: {"?:": found}),
    ),
    max_leaves=4,
).filter(lambda rule: not isinstance(rule, str))


@given(
    st.lists(RULES, min_size=1, max_size=15),
    st.lists(EVENTS, min_size=1, max_size=20),
)
@examples()
def test_rules_match_what_json_logic_js_takes_for_true(node_judge, rules, events):
    agree(json_logic, node_judge.json_logic, rules, events)


# Arithmetic


def _is_exact(given: Any) -> bool:
    """What docs/imports.md says has no answer is left out: infinite texts, and the sign of zero."""
    return not any(text in str(given) for text in ("Infinity", "'-0'"))


OPERANDS = st.one_of(VARIABLES, VARIABLES, CONSTANTS).filter(_is_exact)
NUMERIC = st.recursive(
    OPERANDS,
    lambda inner: st.one_of(
        st.builds(_call, st.sampled_from(["+", "-", "*", "%", "min", "max"]), inner, inner),
        st.builds(_call, st.just("/"), inner, OPERANDS),
        st.builds(_call, st.sampled_from(["-", "+"]), inner),
    ),
    max_leaves=3,
).filter(lambda rule: isinstance(rule, dict) and "var" not in rule)
SCALAR_EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "a": CONSTANTS,
        "b": NUMBERS | st.just({"x": 1}),
        "c": st.one_of(st.none(), st.fixed_dictionaries({}, optional={"d": NUMBERS | TEXTS})),
    },
).filter(_is_exact)


def _is_translated(rule: Any) -> bool:
    try:
        json_logic(rule)
    except RuleError as wrong:
        assert "so many variables" in wrong.reason or "characters" in wrong.reason  # noqa: PT017
        return False
    return True


@given(
    st.lists(
        st.one_of(
            NUMERIC,
            st.builds(_call, COMPARISONS, NUMERIC, CONSTANTS),
            st.builds(_call, COMPARISONS, VARIABLES, NUMERIC),
            NUMERIC.map(lambda found: {"!": [found]}),
        ).filter(_is_exact),
        min_size=1,
        max_size=10,
    ),
    st.lists(SCALAR_EVENTS, min_size=1, max_size=20),
)
@example(
    [{"!": [{"min": [{"/": [None, {"var": "b"}]}, {"/": [{"var": "b"}, {"var": "a"}]}]}]}],
    [{"b": 1}],
)
@example(
    [
        {"<": [{name: [{"/": [{"var": "b"}, 2]}, {"/": [1, {"var": "a"}]}]}, 5]}
        for name in ("+", "-", "*", "/", "%", "min", "max")
    ],
    [{"b": 1}, {"b": 0}, {"b": -1e308}, {"b": 1e308, "a": 1e-300}, {"a": -1e-320, "b": 3}],
)
@examples(0.4)
def test_arithmetic_is_javascripts(node_judge, rules, events):
    rules = [rule for rule in rules if _is_translated(rule)]
    agree(json_logic, node_judge.json_logic, rules, events)


# Lists of objects

OBJECTS = st.lists(
    st.one_of(
        st.fixed_dictionaries({}, optional={"p": NUMBERS | st.none(), "q": TEXTS | st.none()}),
        st.none(),
    ),
    max_size=3,
)
OF_FIELD = st.one_of(
    st.recursive(_leaves(st.just({"var": name})), _joined, max_leaves=3) for name in ("p", "q")
)
QUANTIFIED = st.builds(
    _call, st.sampled_from(["some", "all", "none"]), st.just({"var": "a"}), OF_FIELD
)


@given(
    st.lists(QUANTIFIED | QUANTIFIED.map(lambda found: {"!": found}), min_size=1, max_size=15),
    st.lists(
        st.one_of(OBJECTS, lists_of(NUMBERS), NUMBERS, st.fixed_dictionaries({"p": OBJECTS})).map(
            lambda found: {"a": found}
        ),
        min_size=1,
        max_size=20,
    ),
)
@examples()
def test_a_field_of_objects_in_lists(node_judge, rules, events):
    agree(json_logic, node_judge.json_logic, rules, events)


@pytest.mark.parametrize(
    "rule", [{"in": [5, {"var": "a"}]}, {"some": [{"var": "a"}, {"==": [{"var": ""}, 5]}]}]
)
def test_a_list_of_several_kinds_has_no_answer_and_is_listed(rule):
    rules = {"yes": json_logic(rule), "no": json_logic({"!": rule})}
    found = bittern.Matcher(bittern.Index.build(rules)).match([{"a": [5, "x"]}])
    assert found.to_pylist() == [[]]
    assert found.mistyped


A = {"var": "a"}


@pytest.mark.parametrize(
    ("rule", "place", "reason"),
    [
        ("{", "line 1, column 2", "not JSON"),
        (" ", "", "the text is empty"),
        ({"*": [A]}, "$['*']", "numbers of arguments"),
        ({"<": [{"+": [A, [1]]}, 5]}, "$['<'][0]['+'][1]", "constant"),
        ({"in": [{"+": [A, 1]}, [5]]}, "$.in[0]", "constant"),
        ({"max": [{"/": [{"var": n}, A]} for n in "abcdefg"]}, "$.max", "too long"),
        ({"<": [A, {"var": "b"}]}, "", "constant"),
        ({"==": [A, [1]]}, "", "constant"),
        ({"<": [A]}, "$['<']", "two arguments"),
        ({"and": []}, "$.and", "without arguments"),
        ({"and": [A, {"map": [A, 1]}]}, "$.and[1].map", "not supported"),
        ({"var": "a.length"}, "$.var", "JavaScript"),
        ({"var": "a.0"}, "$.var", "JavaScript"),
        ({"var": "constructor"}, "$.var", "JavaScript"),
        ({"var": ""}, "$.var", "name"),
        ({"var": 1}, "$.var", "name"),
        ({"var": "a..b"}, "$.var", "empty"),
        ({"in": [A, "abc"]}, "$.in[1]", "list of constants"),
        ({"<": [A, "\U0001f986"]}, "$['<']", "U+D7FF"),
        ({"in": [1e300, A]}, "$.in", "as a text"),
        ({"some": [A, {"<": [{"var": "p"}, {"var": "q"}]}]}, "$.some[1]", "one field"),
        ({"some": [A, {"some": [{"var": ""}, A]}]}, "", "one field"),
        ({"some": [[1], A]}, "$.some[0]", "variable"),
        ({"missing": [1]}, "$.missing", "names"),
        ({"missing_some": ["x", ["a"]]}, "$.missing_some", "number"),
        ({"in": [A, list(range(20_000))]}, "", ""),
        ({"or": [{"==": [{"var": f"a{n}"}, n]} for n in range(2_000)]}, "", ""),
        ({"missing_some": [10, [f"a{n}" for n in range(20)]]}, "$.missing_some", "choices"),
    ],
)
def test_refused_with_its_place(rule, place, reason):
    with pytest.raises(RuleError) as wrong:
        json_logic(rule)
    assert wrong.value.place == place or not place
    assert reason in wrong.value.reason


@pytest.mark.parametrize("name", ["and", "!", "if"])
def test_nesting_is_limited(name):
    rule: Any = {"var": "a"}
    for _ in range(70):
        rule = {name: [rule]}
    with pytest.raises(RuleError):
        json_logic(rule)
    with pytest.raises(RuleError):
        json_logic('{"!": ' * 100_000)


def test_ifs_inside_each_other_stay_within_limits():
    rule: Any = {"var": "a"}
    for _ in range(30):
        rule = {"if": [rule, rule, {"!": rule}]}  # shared: written out, it has 3**30 parts
    with pytest.raises(RuleError):
        json_logic(rule)
    rule = {"var": "a"}
    for _ in range(25):
        rule = {"if": [rule, {"var": "b"}, {"var": "c"}]}
    with pytest.raises(RuleError):
        json_logic(rule)
