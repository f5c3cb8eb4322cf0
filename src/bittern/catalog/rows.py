"""Checks of subscriptions before they enter a catalog.

::

    id          text or an integer, which becomes its digits: 7 and "7" are one id
    expression  text that the language reads (docs/language.md)
    subscriber  text or an integer, for sinks: who is notified
    weight      a finite number; matches are ranked by it
    metadata    a mapping that JSON can hold, or the text of a JSON object; kept with sorted keys
    enabled     true or false

A field that a source does not have is ``ABSENT``, which is not the same as None::

    source              said of a weight     stored if the id is new     if it is there already
    {"weight": 2}       2                    2.0                         2.0
    {"weight": null}    nothing              nothing                     nothing
    {}                  ABSENT               nothing                     what was there stays

A subscription that passes can be stored in both databases and built into every index of the engine.
Texts have no U+0000 and no half surrogate pairs, which PostgreSQL cannot hold. Cost: about 6 us for
each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from bittern.engine.subscriptions import weight_problem
from bittern.engine.unanswered import first_quantifier, needs_history
from bittern.errors import BadSubscription, ExpressionError, OptionError, SubscriptionError, brief
from bittern.language.shapes import Shapes
from bittern.model.ids import id_problem, normal_id
from bittern.terms.unknown import EMBEDDED, SPARK, any_function

#: What a subscription says, in the order of a ``Row``.
FIELDS = ("id", "expression", "subscriber", "weight", "metadata", "enabled")
#: Characters of an id or a subscriber: an index entry of PostgreSQL holds 2,700 bytes.
MAX_NAME = 500
#: Characters of the metadata as JSON.
MAX_METADATA = 65_536
#: Stands for a value that a source does not speak of.
ABSENT: Any = object()
#: Each field that a source need not have, as a bit.
ABSENT_BITS = {name: 1 << place for place, name in enumerate(FIELDS[2:])}
_SUBSCRIBER, _WEIGHT, _METADATA, _ENABLED = ABSENT_BITS.values()
#: What is said of a quantifier where the catalog takes none.
REFUSED = (
    "this catalog refuses EXISTS and FORALL: they need a pipeline or matcher with a history; if "
    "every reader of this catalog has one, run 'bittern catalog quantifiers CATALOG allow'"
)
#: What to do about a subscription that is damaged: ``check`` looks at its old forms too.
REMEDY = "remove it, add it again, and forget earlier versions"
#: Somewhere in a parameter that names a set.
IN_SET = " IN SET "
#: Shapes are remembered for so many texts, so that memory stays bounded.
_SHAPES_FOR = 200_000

#: The values of FIELDS, checked, and the bits of those that are absent: metadata is JSON text here.
CatalogRow = tuple[str, str, str | None, float | None, str | None, bool, int]


@dataclass(frozen=True)
class Subscription:
    """A subscription as one version of the catalog has it.

    ``version`` is the one that brought it into this form. ``until`` is the one that ended this
    form, or None while it is current. The catalog sets all fields from ``created`` on: they are
    ignored when a subscription is put.
    """

    id: str
    expression: str
    subscriber: str | None = None
    weight: float | None = None
    metadata: Mapping[str, Any] | None = None
    enabled: bool = True
    created: datetime | None = None
    changed: datetime | None = None
    version: int | None = None
    until: int | None = None


def values_of(given: Mapping[str, Any], default: Any = ABSENT) -> tuple[Any, ...]:
    """The values of FIELDS in a mapping, with ``default`` for optional ones that are missing."""
    optional = (given.get(name, default) for name in ABSENT_BITS)
    return given.get("id"), given.get("expression"), *optional


class Door:
    """Checks rows one after the other. One thread at a time.

    When a row has EXISTS or FORALL, ``quantifiers`` tells whether the catalog allows them; when it
    has an unknown function, ``functions`` tells which are allowed; when it names a set, ``sets``
    tells which there are, None: any.
    """

    def __init__(
        self,
        quantifiers: Callable[[], bool] = lambda: True,
        functions: Callable[[], str] = lambda: EMBEDDED,
        sets: Callable[[], Container[str] | None] = lambda: None,
    ) -> None:
        self._quantifiers = cache(quantifiers)
        self._functions = cache(functions)
        self._sets = cache(sets)
        #: The sets that rows named so far.
        self.named: set[str] = set()
        self._shapes = Shapes()
        self._read = 0

    def check(self, row: tuple[Any, ...]) -> CatalogRow | BadSubscription:
        """The row as it is stored, or what is wrong with it. O(length)."""
        id_, expression, subscriber, weight, metadata, enabled = row
        absent = 0
        if subscriber is ABSENT:
            subscriber, absent = None, absent | _SUBSCRIBER
        if weight is ABSENT:
            weight, absent = None, absent | _WEIGHT
        if metadata is ABSENT:
            metadata, absent = None, absent | _METADATA
        if enabled is ABSENT:
            enabled, absent = None, absent | _ENABLED
        try:
            name = checked_id(id_)
        except ValueError as wrong:
            shown = id_ if isinstance(id_, str | int) else brief(id_)
            return BadSubscription(shown, 0, str(wrong))
        try:
            return (
                name,
                self._expression(expression),
                None if subscriber is None else _name(subscriber, "a subscriber"),
                None if weight is None else _weight(weight),
                None if metadata is None else _metadata(metadata),
                True if enabled is None else _enabled(enabled),
                absent,
            )
        except ExpressionError as wrong:
            return BadSubscription(name, wrong.position, wrong.message)
        except ValueError as wrong:
            return BadSubscription(name, 0, str(wrong))

    def _expression(self, given: Any) -> str:
        if given is None:
            raise ValueError("a subscription needs an expression")
        if not isinstance(given, str):
            raise ValueError(f"an expression must be text, not {type(given).__name__}")  # noqa: TRY004
        text = given if type(given) is str else str.__str__(given)
        self._read += 1
        if self._read % _SHAPES_FOR == 0:
            self._shapes = Shapes()
        try:
            shape_id, parameters = self._shapes.read(text)
        except ExpressionError:
            if self._functions() != SPARK:
                raise
            with any_function():
                shape_id, parameters = self._shapes.read(text)
        if needs_history(self._shapes.templates[shape_id]) and not self._quantifiers():
            raise ExpressionError(REFUSED, text, first_quantifier(text))
        if IN_SET in "".join(parameters):
            self._check_sets(text, parameters)
        if "\0" in text:  # which a string of the language may hold
            raise ExpressionError("a catalog cannot hold U+0000", text, text.index("\0"))
        return text

    def _check_sets(self, text: str, parameters: Iterable[str]) -> None:
        from bittern.engine.sets.named import position_of, sets_named  # noqa: PLC0415  only then

        names = sets_named(parameters)
        if not names:
            return
        known = self._sets()
        for name in names:
            if known is not None and name not in known:
                said = f"there is no set {name!r}: define it first, even if it has no members yet"
                raise ExpressionError(said, text, position_of(text, name))
        self.named.update(names)


def checked_id(id_: Any) -> str:
    """An id as the catalog stores it; ``ValueError`` says what is wrong with it."""
    name = _name(id_, "an id")
    if not name:
        raise ValueError("an id cannot be empty")
    return name


def is_id(id_: str) -> bool:
    """Whether a catalog may have a subscription with this id."""
    try:
        return bool(checked_id(id_))
    except ValueError:
        return False


def asked_id(id_: Any) -> str:
    """An id that a caller asks for; ``OptionError`` says what is wrong with it."""
    try:
        return checked_id(id_)
    except ValueError as wrong:
        raise OptionError(str(wrong)) from None


def asked_ids(given: Any) -> list[str]:
    """One id or several, each once."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    return list(dict.fromkeys(map(asked_id, given if several else [given])))


def all_valid(checked: list[CatalogRow | BadSubscription]) -> list[CatalogRow]:
    """The rows, if none is bad; ``SubscriptionError`` has all that are."""
    bad = [row for row in checked if isinstance(row, BadSubscription)]
    if bad:
        raise SubscriptionError(bad)
    return [row for row in checked if not isinstance(row, BadSubscription)]


def _name(value: Any, what: str) -> str:
    name = normal_id(value)
    problem = id_problem(name)
    if problem is not None:
        raise ValueError(problem.replace("an id", what).replace("integer id", "integer"))
    name = str(name)
    if len(name) > MAX_NAME:
        raise ValueError(f"{what} has at most {MAX_NAME} characters, not {len(name):,}")
    if "\0" in name:
        raise ValueError(f"{what} cannot hold U+0000")
    return name


def _weight(weight: Any) -> float:
    problem = weight_problem(weight)
    if problem is not None:
        raise ValueError(problem)
    return float(weight)


def _enabled(enabled: Any) -> bool:
    if not isinstance(enabled, bool):
        raise ValueError(f"enabled must be true or false, not {brief(enabled)}")  # noqa: TRY004
    return enabled


def _metadata(metadata: Any) -> str:
    """Canonical JSON, so that equal metadata has equal texts."""
    try:
        if isinstance(metadata, str):
            metadata = json.loads(metadata, parse_constant=_no_constant)
        if not isinstance(metadata, Mapping):
            raise ValueError(f"metadata must be a JSON object, not {type(metadata).__name__}")  # noqa: TRY004
        text = json.dumps(
            metadata if isinstance(metadata, dict) else dict(metadata),
            allow_nan=False,
            sort_keys=True,
            separators=(",", ":"),
        )
    except (TypeError, RecursionError, json.JSONDecodeError) as wrong:
        raise ValueError(f"metadata is not JSON: {wrong}") from None
    if len(text) > MAX_METADATA:
        raise ValueError(f"metadata has at most {MAX_METADATA:,} characters as JSON")
    return text


def _no_constant(name: str) -> Any:
    raise ValueError(f"metadata is not JSON: {name}")
