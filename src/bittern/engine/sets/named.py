"""Sets by name: what a matcher is given, and which sets subscriptions name.

A subscription may only name sets that there are: a set that will be filled later is given without
members. Which sets an index needs is told by the names of its derived attributes, so looking at
its texts is only needed to say who is wrong. O(sets), or O(texts) for that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.engine.sets.members import Members
from bittern.engine.subscriptions import Subscriptions
from bittern.errors import (
    BadSubscription,
    BitternError,
    OptionError,
    SubscriptionError,
    UnknownSetError,
    brief,
    did_you_mean,
)
from bittern.language.derived import sets_of
from bittern.language.lexer import tokens
from bittern.language.literals import attribute_name, attribute_parts
from bittern.language.shapes import Shapes
from bittern.terms.unknown import any_function

#: A name has at most so many characters.
MAX_NAME = 200
#: Every text that names a set has this somewhere; reading it tells whether it means one.
SUSPECT = r"(?i)\bset\b"
_FIRST_PRINTABLE = " "


class Use(NamedTuple):
    """A text that names a set: its row, the name, and where in the text it stands."""

    row: int
    name: str
    position: int


def checked_name(name: Any) -> str:
    """A name that a set can have; ``OptionError`` says what is wrong with another."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise OptionError(
            f"the name of a set must be a string of 1 to {MAX_NAME} characters, not {brief(name)}"
        )
    if any(char < _FIRST_PRINTABLE for char in name) or not name.isprintable():
        raise OptionError(f"the name of a set must be printable, not {brief(name)}")
    return str(name)


def read_sets(given: Any) -> dict[str, Members]:
    """Sets by name from a mapping of names to members. O(members x log members)."""
    if not isinstance(given, Mapping):
        raise OptionError(
            f"sets must be a mapping from names to members, as in {{'vips': [7, 9]}}, not "
            f"{brief(given)}"
        )
    return {checked_name(name): read_members(name, members) for name, members in given.items()}


def read_members(name: str, members: Any) -> Members:
    """The members of a set; ``OptionError`` names the set."""
    try:
        return Members.of(members)
    except OptionError as wrong:
        raise OptionError(f"the set {name!r}: {wrong}") from None


def check_there(needed: Iterable[str], sets: Mapping[str, Any], remedy: str) -> None:
    """``OptionError`` if sets that are needed are not there."""
    missing = [repr(name) for name in needed if name not in sets]
    if missing:
        several = "s" * (len(missing) > 1)
        raise OptionError(f"subscriptions name the set{several} {', '.join(missing)}: {remedy}")


def unknown_set(name: Any, sets: Iterable[str], of: str = "") -> UnknownSetError:
    """The error that there is no such set among these, ``of`` something."""
    return UnknownSetError(f"there is no set {brief(name)}{of}{did_you_mean(name, sets)}")


def sets_named(parameters: Iterable[str]) -> list[str]:
    """The sets that the parameters of a text name (``language/templates.py``), each once."""
    return sets_of(attribute_name(word) for word in parameters if word.startswith("`"))


def _missing(id_: str | int, use: Use) -> BadSubscription:
    """The refusal of a subscription that names a set which is not there."""
    message = f"there is no set {use.name!r}: define it first, even if it has no members yet"
    return BadSubscription(id_, use.position, message)


def check_subscription(
    id_: str | int, text: str, parameters: Iterable[str], sets: Mapping[str, Any]
) -> None:
    """``SubscriptionError`` if a text, which has these parameters, names other sets than these."""
    for name in sets_named(parameters):
        if name not in sets:
            raise SubscriptionError([_missing(id_, Use(0, name, position_of(text, name)))])


def check_subscriptions(
    attributes: Iterable[str], subscriptions: Subscriptions, sets: Mapping[str, Any]
) -> None:
    """``SubscriptionError`` if subscriptions, which have these attributes, name other sets.

    It lists all of them. O(attributes), and O(texts) if there are some.
    """
    others = [name for name in sets_of(attributes) if name not in sets]
    if others:
        found = {use.row: use for use in reversed(list(uses(subscriptions.texts, others)))}
        raise SubscriptionError(
            [_missing(subscriptions.ids[row], found[row]) for row in sorted(found)]
        )


def uses(texts: pa.Array, names: Sequence[str] | None = None) -> Iterator[Use]:
    """Texts that name sets, or one of these ``names``, in order; a text once for each set.

    Texts that are not expressions name none. O(texts).
    """
    suspects = pc.match_substring_regex(texts, SUSPECT).to_numpy(zero_copy_only=False)
    shapes = Shapes()
    for row in np.flatnonzero(suspects).tolist():
        text = texts[row].as_py()
        try:
            with any_function():
                _, parameters = shapes.read(text)
        except BitternError:
            continue
        for name in sets_named(parameters):
            if names is None or name in names:
                yield Use(row, name, position_of(text, name))


def position_of(text: str, name: str) -> int:
    """Where a text that names a set does so."""
    for before, token in itertools.pairwise(tokens(text)):
        is_named = before.text.upper() == "SET" and token.kind == "attribute"
        if is_named and list(attribute_parts(attribute_name(token.text))) == [name]:
            return token.position
    return 0
