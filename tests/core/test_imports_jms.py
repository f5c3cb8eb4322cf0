"""Selectors of JMS: ActiveMQ's own parser and evaluator, asked about the same messages."""

from __future__ import annotations

import random
from typing import Any

import pytest

from bittern.errors import RuleError
from bittern.imports import jms
from effort import chosen_seed, rounds
from foreign import agree
from judges import Judges

#: A message's properties: ``n`` and ``x`` are numbers, ``s`` a string, ``b`` a Boolean, ``a`` any;
#: ``p`` and ``q`` are always there.
VALUES: dict[str, list[Any]] = {
    "n": [0, 1, 2, 5, -3],
    "x": [0.5, 1.5, 2.0, -0.25],
    "s": ["a", "ab", "a_b", "A", "a%b", "a\nb", "", "x.y", "ü", "5", "true"],
    "b": [True, False],
}
ANY = [each for values in VALUES.values() for each in values]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
PATTERNS = ["a%", "%b", "a_b", "%", "", "a.b", "_", "a!_b", "x.y"]


class World:
    """Random selectors and messages.

    Left out is what docs/imports.md says differs: properties compared with each other where one is
    missing, arithmetic with what is no number, division by zero, and NOT before a comparison
    without parentheses, which ActiveMQ binds to its first operand.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def message(self) -> dict[str, Any]:
        choose = self.random.choice
        found = {k: choose(own) for k, own in VALUES.items() if self.random.random() < 0.7}
        if self.random.random() < 0.8:
            found["a"] = choose(ANY)
        return {**found, "p": choose(ANY), "q": choose(ANY)}

    def number(self, depth: int = 0) -> str:
        if depth == 2 or self.random.random() < 0.5:
            return self.random.choice(["n", "x", "1", "2", "0.5", "2.5e-1", "0x2", "-3", "1L"])
        operator = self.random.choice(["+", "-", "*"])
        return f"({self.number(depth + 1)} {operator} {self.number(depth + 1)})"

    def leaf(self) -> str:
        choose = self.random.choice
        negation = choose(["", "NOT "])
        return choose(
            [
                lambda: (
                    f"{self.number()} {choose(COMPARISONS)} {choose(['1', '0x2', '-0.5', '2L'])}"
                ),
                lambda: f"1.5 {choose(COMPARISONS)} p",
                lambda: f"a {choose(['=', '<>'])} {choose(['1', '0.5', repr('a'), 'TRUE'])}",
                lambda: f"a {choose(['<', '>='])} 1",
                lambda: f"p {choose(['=', '<>', '<', '>'])} q",
                lambda: f"{choose('nxa')} {negation}BETWEEN -1 AND 2",
                lambda: f"{choose('sa')} {negation}LIKE '{choose(PATTERNS)}'",
                lambda: f"s {negation}LIKE '{choose(PATTERNS)}' ESCAPE '!'",
                lambda: f"{choose('sa')} {negation}IN ('a', 'A', 'x')",
                lambda: f"{choose('nxsba')} IS {negation}NULL",
                lambda: choose(["b", "a", "TRUE", "FALSE"]),
            ]
        )()

    def selector(self, depth: int = 0) -> str:
        chance = self.random.random()
        if depth == 3 or chance < 0.4:
            return self.leaf()
        if chance < 0.6:
            return f"NOT ({self.selector(depth + 1)})"
        joined = f" {self.random.choice(['AND', 'OR', 'or'])} "
        return f"({joined.join(self.selector(depth + 1) for _ in range(2))})"


def test_selectors_answer_as_activemq_does(judges: Judges) -> None:
    world = World(chosen_seed())
    for _ in range(rounds()):
        selectors = [world.selector() for _ in range(60)]
        messages = [world.message() for _ in range(25)]
        agree(jms, judges.selector, selectors, messages)


@pytest.mark.parametrize(
    ("selector", "place"),
    [
        ("", "line 1, column 1"),
        ("n = 5 AND", "line 1, column 10"),
        ("(n = 5", "line 1, column 7"),
        ("n == 5", "line 1, column 4"),
        ("n != 5", "line 1, column 3"),
        ("n =\n  'x", "line 2, column 3"),
        ("n IN ()", "line 1, column 7"),
        ("n IN (5)", "line 1, column 7"),
        ("s LIKE t", "line 1, column 8"),
        ("s LIKE 'a' ESCAPE 'xx'", "line 1, column 23"),
        ("s > 'a'", "line 1, column 8"),
        ("n = NULL", "line 1, column 5"),
        ("n > 4 > 3", "line 1, column 9"),
        ('s = "a"', "line 1, column 5"),
        ("a.b = 1", "line 1, column 2"),
    ],
)
def test_what_activemq_refuses_is_refused(judges: Judges, selector: str, place: str) -> None:
    assert not selector or not judges.accepts_selector(selector)
    with pytest.raises(RuleError) as caught:
        jms(selector)
    assert caught.value.place == place


@pytest.mark.parametrize(
    "selector", ["(" * 10_000, "-" * 10_000 + "1 = 1", "NOT " * 9_999 + "b", 5]
)
def test_bombs_are_refused_or_read(selector: Any) -> None:
    try:
        assert jms(selector)
    except RuleError as wrong:
        assert wrong.reason  # noqa: PT017


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("n = 0x" + "f" * 60_000, "too large"),
        ("n = 1e" + "9" * 50_000, "infinite"),
        ("n = 0" + "7" * 60_000, "too large"),
        ("+".join(["n"] * 20_000) + " > 1", "65,536 characters"),
        ("n IN (" + ", ".join(f"'{each}'" for each in range(9_000)) + ")", "65,536 characters"),
        (" OR ".join(f"n = {each}" for each in range(5_000)), "65,536 characters"),
        ("s LIKE '" + "%a" * 4_000 + "'", "1,000 characters"),
        ("/*" * 30_000 + "n = 1", "is expected"),
        ("s = '" + "x" * 70_000 + "'", "65,536 characters"),
        ("s = '\ud800'", "surrogate"),
        (b"\xff", "text"),
    ],
)
def test_hostile_selectors_are_refused(selector: Any, said: str) -> None:
    with pytest.raises(RuleError, match=said):
        jms(selector)


def test_a_selector_reads_like_what_it_was() -> None:
    assert jms("JMSType = 'car' AND color = 'blue' AND weight > 2500") == (
        "JMSType = 'car' AND color = 'blue' AND weight > 2500"
    )
    assert jms("price * 2 >= 10.5") == "(price < 0 OR price >= 0) AND (price * 2) >= 10.5e0"
