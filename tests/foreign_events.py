"""Random events for the rules of other systems: few values, so that rules often match.

A field is a number, a text, a Boolean, NULL, a list of values of one kind or NULL, or missing.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NUMBERS = st.sampled_from([-1, 0, 1, 2, 1.5, 2.0, 10, 9007199254740993, 0.1])
TEXTS = st.sampled_from(
    ["", "a", "ab", "abc", "b", "A", "aB", "5", "1", "a*b", "%", "a_b", "é", "a\nb", "\\", "true"]
)
BOOLEANS = st.booleans()
VALUES = st.one_of(NUMBERS, TEXTS, BOOLEANS)


def lists_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Short lists of these values, with NULL among them."""
    return st.lists(st.one_of(values, values, values, st.none()), max_size=3)


FIELD_VALUES = st.one_of(
    NUMBERS,
    TEXTS,
    BOOLEANS,
    st.none(),
    lists_of(NUMBERS),
    lists_of(TEXTS),
    lists_of(BOOLEANS),
)


#: ``c`` holds an object most of the time, so that ``c.d`` is a path.
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "a": FIELD_VALUES,
        "b": FIELD_VALUES,
        "c": st.one_of(
            st.fixed_dictionaries({}, optional={"d": FIELD_VALUES}),
            st.sampled_from([None, 5, "a"]),
        ),
    },
)
FIELDS = st.sampled_from(["a", "a", "b", "c.d"])
EVENT_LISTS = st.lists(EVENTS, min_size=1, max_size=20)


def plain(value: Any, *, may_be_list: bool = False) -> Any:
    """A value with the first element instead of a list, unless it may be one."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if may_be_list or not isinstance(value, list):
        return value
    return value[0] if value else None
