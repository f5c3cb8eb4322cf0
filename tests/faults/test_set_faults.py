"""An exception in the middle of a change of named sets: all of the change is there, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import bittern
from interrupts import each_fault

EVENTS = [{"x": x} for x in (1, 2, 3, "a")]
TEXTS = {"s": "x IN SET a", "t": "x NOT IN SET a", "u": "x IN SET b"}


def made() -> bittern.LiveMatcher:
    """A matcher with sets, one of which nothing names."""
    live = bittern.LiveMatcher(sets={"a": [1, 2], "b": ["a"], "unused": [7.5]})
    for id_, text in TEXTS.items():
        live.subscribe(id_, text)
    live.match(EVENTS)
    return live


def held(live: bittern.LiveMatcher) -> dict[str, list[Any]]:
    """The sets, with which matching agrees."""
    sets = {name: list(members) for name, members in live.sets.items()}
    numbers = [x for x in (1, 2, 3) if x in sets["a"]]
    right = [
        *(["s"] if x in numbers else ["t"] for x in (1, 2, 3)),
        ["u"] if "a" in sets["b"] else [],
    ]
    assert live.match(EVENTS).to_pylist() == right
    return sets


BEFORE = {"a": [1, 2], "b": ["a"], "unused": [7.5]}


def _put(live: bittern.LiveMatcher) -> None:
    live.sets["a"] = [3]


def _define(live: bittern.LiveMatcher) -> None:
    live.sets["new"] = ["n"]


def _drop(live: bittern.LiveMatcher) -> None:
    del live.sets["unused"]


CHANGES: dict[str, tuple[Callable[[bittern.LiveMatcher], Any], dict[str, list[Any]]]] = {
    "put": (_put, BEFORE | {"a": [3]}),
    "define": (_define, BEFORE | {"new": ["n"]}),
    "drop": (_drop, {name: BEFORE[name] for name in ("a", "b")}),
    "add": (lambda live: live.sets.add("a", [3]), BEFORE | {"a": [1, 2, 3]}),
    "remove": (lambda live: live.sets.remove("a", [1]), BEFORE | {"a": [2]}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_all_of_a_change_or_nothing(change: str) -> None:
    make_change, after = CHANGES[change]
    for fault in each_fault(made, make_change, unmake=lambda live: live.close()):
        found = held(fault.subject)
        assert found in (BEFORE, after), fault
        assert found == after or fault.caught is not None, fault
        if found == BEFORE:  # and the next change works
            make_change(fault.subject)
            assert held(fault.subject) == after, fault
