"""From a template to tests: every predicate becomes intervals of cells.

A test's two bounds are written in terms of a parameter's rank among its channel's constants. With
``i`` the rank of the constant, its own cell is 2i + 1, the cells around it 2i and 2i + 2::

    a = c    [2i+1, 2i+1]           a != c   [start, 2i]  or  [2i+2, end]
    a < c    [start, 2i]            a >= c   [2i+1, end]
    a IS NULL            [-1, -1] in the channel "any"        (missing has no cell)
    a LIKE 'p%'          [2i+1, 2j] with i the rank of 'p' and j of its successor 'q'
    a LIKE '%s'          the same on reversed strings
    a LIKE '%m%'         [start, end] in the pattern's own channel; NOT: is a string, and [-1, -1]

Expanding is done once per template, so it costs nothing per subscription.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.language.literals import number_value, string_value, time_value
from bittern.language.syntax import (
    And,
    Between,
    BooleanConstant,
    Compare,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    Regex,
)
from bittern.language.templates import Slot, Template
from bittern.model.classes.structure import AND, OR, TEST, Nested, Structure
from bittern.model.numbers import exact
from bittern.model.patterns import CONTAINS, LIKE, REGEX
from bittern.model.rank.space import ANY, BOOLEAN, NUMBER, PATTERN, REVERSED, STRING, TIME
from bittern.terms.pattern_texts import LikeForm, Wildcard, like_parts

#: Bounds that need no constant.
START, END, ABSENT = 0, 1, 2
#: Bounds from here on name a reader: ``READERS[bound]``.
FIRST_READER = 3


class Bound(NamedTuple):
    """One end of an interval: ``2 * rank + add`` of what ``reader`` makes of parameter ``slot``."""

    reader: int
    slot: int = 0
    add: int = 0


_START, _END, _ABSENT = Bound(START), Bound(END), Bound(ABSENT)


class TestTemplate(NamedTuple):
    """A test before its parameters are known."""

    attribute: int  # slot
    kind: int
    low: Bound
    high: Bound
    pattern: Bound = _START  # what names the channel, for kind PATTERN
    ordered: bool = False  # needs the order of its channel's strings, not only equality


def _successor(prefix: bytes) -> bytes:
    """The least string above all that begin with a (non-empty, UTF-8) prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _read_number(raw: str) -> Any:
    return exact(number_value(raw))


def _read_string(raw: str) -> Any:
    return string_value(raw).encode()


#: What turns a parameter's raw text into a constant, by what a bound says. There are few, and they
#: stay, so that what was expanded at one time can be compiled with what was expanded at another.
READERS: dict[int, Callable[[str], Any]] = {}
_reader_ids: dict[Any, int] = {}
_next_reader = itertools.count(FIRST_READER)


class ShapePlan(NamedTuple):
    """A template expanded, once for all texts that have it: tests and their Boolean structure."""

    template: Template
    #: A row for each test, with columns as ``PLAN_COLUMNS`` names them.
    tests: npt.NDArray[np.int32]
    #: None if it is a plain conjunction.
    structure: Structure | None
    #: What each predicate is called in statistics.
    operators: tuple[str, ...]
    #: Whether it cannot match anything.
    is_never: bool

    @classmethod
    def of(cls, template: Template) -> ShapePlan:
        """Expand a template: tests in the order of the structure. O(nodes), no recursion."""
        if isinstance(template.tree, BooleanConstant):
            return cls(template, _NO_TESTS, None, (), not template.tree.value)
        tests: list[npt.NDArray[np.int32]] = []
        operators: list[str] = []
        root: list[Nested] = []
        stack: list[tuple[Expression, int, list[Nested]]] = [(template.tree, TEST, root)]
        while stack:
            node, parent, siblings = stack.pop()
            if isinstance(node, And | Or):
                children: list[Nested] = []
                operator = AND if isinstance(node, And) else OR
                siblings.append((operator, children))
                stack.extend([(operand, operator, children) for operand in node.operands[::-1]])
                continue
            name, nested, own = _leaf_plan(node)
            operators.append(name)
            if isinstance(nested, tuple) and nested[0] == parent:
                siblings.extend(nested[1])
            else:
                siblings.append(nested)
            tests.append(own)
        whole = root[0]
        plain = whole == TEST or (
            isinstance(whole, tuple) and whole[0] == AND and all(c == TEST for c in whole[1])
        )
        structure = None if plain else Structure.of(whole)
        return cls(template, np.concatenate(tests), structure, tuple(operators), False)


PLAN_COLUMNS = (
    "attribute",
    "kind",
    "ordered",
    *(f"{end}.{part}" for end in ("low", "high", "pattern") for part in Bound._fields),
)


_NO_TESTS = np.empty((0, len(PLAN_COLUMNS)), dtype=np.int32)


@lru_cache(maxsize=1 << 16)
def _leaf_plan(node: Expression) -> tuple[str, Nested, npt.NDArray[np.int32]]:
    """A predicate's name, structure and tests; templates share the few that there are."""
    negated = isinstance(node, Not)
    leaf: Any = node.operand if isinstance(node, Not) else node
    nested, tests = _Expander().expand(leaf, negated=negated)
    rows = [
        (test.attribute, test.kind, test.ordered, *test.low, *test.high, *test.pattern)
        for test in tests
    ]
    return _operator_name(leaf, negated=negated), nested, np.array(rows, dtype=np.int32)


class _Expander:
    """Expands predicates."""

    def _reader(self, key: Any, read: Callable[[str], Any]) -> int:
        found = _reader_ids.get(key)
        if found is None:
            number = next(_next_reader)
            READERS[number] = read  # before it can be found; of two threads, one gives the number
            found = _reader_ids.setdefault(key, number)
        return found

    def expand(self, leaf: Predicate, *, negated: bool) -> tuple[Nested, list[TestTemplate]]:
        """Tests in the order of their structure."""
        slot: Any = leaf.attribute
        attribute = slot.number
        if isinstance(leaf, IsNull):
            bounds = (_START, _END) if negated else (_ABSENT, _ABSENT)
            return TEST, [TestTemplate(attribute, ANY, *bounds)]
        if isinstance(leaf, Compare):
            return self._compare(attribute, leaf.operator, leaf.operand)
        if isinstance(leaf, Between):
            low, kind = self._constant(leaf.low)
            high, _ = self._constant(leaf.high)
            if negated:
                return _two(attribute, kind, _at(low, 0), _at(high, 2), ordered=True)
            return TEST, [TestTemplate(attribute, kind, _at(low, 1), _at(high, 1), ordered=True)]
        if isinstance(leaf, In):
            operator = "!=" if negated else "="
            parts = [self._compare(attribute, operator, value) for value in leaf.values]
            tests = [test for _, own in parts for test in own]
            return (AND if negated else OR, [nested for nested, _ in parts]), tests
        if isinstance(leaf, Like):
            return self._like(attribute, leaf, negated=negated)
        assert isinstance(leaf, Regex)
        pattern: Any = leaf.pattern
        reader = self._reader("regex", lambda raw: (REGEX, string_value(raw)))
        return _pattern(attribute, Bound(reader, pattern.number), negated=negated)

    def _constant(self, operand: Any) -> tuple[Bound, int]:
        """A bound at a literal's constant, and the kind of channel it lives in."""
        if isinstance(operand, Literal):  # TRUE or FALSE: part of the shape
            value = int(bool(operand.value))
            return Bound(self._reader(value, lambda _: value)), BOOLEAN
        if operand.kind == "number":
            return Bound(self._reader("number", _read_number), operand.number), NUMBER
        if operand.kind == "string":
            return Bound(self._reader("string", _read_string), operand.number), STRING
        kind = operand.kind
        reader = self._reader(kind, lambda raw: time_value(kind, raw))
        return Bound(reader, operand.number), TIME

    def _compare(
        self, attribute: int, operator: str, operand: Any
    ) -> tuple[Nested, list[TestTemplate]]:
        at, kind = self._constant(operand)
        return _intervals(attribute, kind, operator, at)

    def _like(
        self, attribute: int, leaf: Like, *, negated: bool
    ) -> tuple[Nested, list[TestTemplate]]:
        pattern: Any = leaf.pattern
        assert isinstance(pattern, Slot)
        escape, form = leaf.escape, pattern.form

        def text(raw: str) -> bytes:
            return like_parts(string_value(raw), escape).text.encode()

        if form is LikeForm.ANY:
            # NOT LIKE '%' holds for no string: an interval that ends before it starts.
            return TEST, [TestTemplate(attribute, STRING, _START, _ABSENT if negated else _END)]
        if form is LikeForm.EXACT:
            at = Bound(self._reader(("exact", escape), text), pattern.number)
            return _intervals(attribute, STRING, "!=" if negated else "=", at)
        if form in (LikeForm.PREFIX, LikeForm.SUFFIX):
            step = 1 if form is LikeForm.PREFIX else -1
            kind = STRING if form is LikeForm.PREFIX else REVERSED
            first = self._reader((form, escape), lambda raw: text(raw)[::step])
            after = self._reader((form, escape, "after"), lambda raw: _successor(text(raw)[::step]))
            low, high = Bound(first, pattern.number), Bound(after, pattern.number)
            if negated:
                return _two(attribute, kind, _at(low, 0), _at(high, 1), ordered=True)
            return TEST, [TestTemplate(attribute, kind, _at(low, 1), _at(high, 0), ordered=True)]
        if form is LikeForm.CONTAINS:
            reader = self._reader(
                ("contains", escape),
                lambda raw: (CONTAINS, like_parts(string_value(raw), escape).text),
            )
        else:
            reader = self._reader(
                ("like", escape), lambda raw: (LIKE, _canonical_like(string_value(raw), escape))
            )
        return _pattern(attribute, Bound(reader, pattern.number), negated=negated)


#: Which cell a comparison ends or begins at: 2i + this, with i the rank of its constant.
_EDGES = {"=": 1, "<": 0, "<=": 1, ">": 2, ">=": 1}


def _at(bound: Bound, add: int) -> Bound:
    return Bound(bound.reader, bound.slot, add)


def _two(
    attribute: int, kind: int, below: Bound, above: Bound, *, ordered: bool
) -> tuple[Nested, list[TestTemplate]]:
    """Up to ``below``, or from ``above`` on."""
    tests = [
        TestTemplate(attribute, kind, _START, below, ordered=ordered),
        TestTemplate(attribute, kind, above, _END, ordered=ordered),
    ]
    return (OR, [TEST, TEST]), tests


def _intervals(
    attribute: int, kind: int, operator: str, at: Bound
) -> tuple[Nested, list[TestTemplate]]:
    if operator == "!=":
        return _two(attribute, kind, _at(at, 0), _at(at, 2), ordered=False)
    edge = _at(at, _EDGES[operator])
    low, high = edge if operator[0] != "<" else _START, edge if operator[0] != ">" else _END
    return TEST, [TestTemplate(attribute, kind, low, high, ordered=operator != "=")]


def _pattern(attribute: int, pattern: Bound, *, negated: bool) -> tuple[Nested, list[TestTemplate]]:
    if not negated:
        return TEST, [TestTemplate(attribute, PATTERN, _START, _END, pattern)]
    is_string = TestTemplate(attribute, STRING, _START, _END)
    return (AND, [TEST, TEST]), [
        is_string,
        TestTemplate(attribute, PATTERN, _ABSENT, _ABSENT, pattern),
    ]


def _canonical_like(pattern: str, escape: str) -> str:
    """The pattern with backslash as its escape character."""
    out = []
    for piece in like_parts(pattern, escape).pieces:
        if isinstance(piece, Wildcard):
            out.append(piece.value)
        else:
            escaped = piece.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            out.append(escaped)
    return "".join(out)


def _operator_name(leaf: Predicate, *, negated: bool) -> str:
    if isinstance(leaf, Compare):
        return leaf.operator
    name = {Between: "BETWEEN", In: "IN", Like: "LIKE", Regex: "RLIKE", IsNull: "IS NULL"}[
        type(leaf)
    ]
    if not negated:
        return name
    return "IS NOT NULL" if name == "IS NULL" else f"NOT {name}"
