"""``value IN SET name``: whether a value is a member of a named set.

The members are no part of the term. Whoever evaluates it gives the sets to its scope, by name, and
one of them is asked once for all values of a batch::

    user_id          7  8  NULL  9        vips: 7, 9
    IN SET vips      TRUE  FALSE  NULL  TRUE

A value of another kind than the members has no answer. O(values).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

import pyarrow as pa

from bittern.terms.nodes import Call, Constant, Term, walk
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value

TABLE = FunctionTable()
#: The name of the call; its arguments are the value and the name of the set. No text can call it.
IN_SET = "in set"


class NamedSet(Protocol):
    """A set as terms ask it (``engine/sets/members.py``)."""

    def holds(self, array: pa.Array, name: str) -> pa.Array:
        """For each value whether it is a member: TRUE, FALSE, or NULL where it is NULL.

        ``MeaninglessError`` if the values are of another kind than the members.
        """

    def has(self, value: int | bytes, kind: int, name: str) -> bool:
        """The same for one integer, time or text."""


NamedSets: TypeAlias = Mapping[str, NamedSet]


@TABLE.add(IN_SET, least=2)
def _in_set(scope: Scope, _call: Call, value: Value, name: Value) -> Value:
    known = scope.sets.get(name.as_py())
    if known is None:
        raise MeaninglessError(f"there is no set {name.as_py()}")
    if isinstance(value, pa.Scalar):
        return known.holds(Scope({}, 1).array(value), name.as_py())[0]
    return known.holds(value, name.as_py())


def set_of(term: Term) -> str | None:
    """The set, if a term says that a value is in one."""
    if isinstance(term, Call) and term.function == IN_SET:
        name = term.arguments[1]
        assert isinstance(name, Constant), "the reader puts it there"
        return str(name.scalar.as_py())
    return None


def sets_in(terms: Iterable[Term]) -> list[str]:
    """The sets that terms name anywhere, each once. O(nodes)."""
    names = (set_of(node) for term in terms for node in walk(term))
    return list(dict.fromkeys(name for name in names if name is not None))
