"""The tree of a term: frozen dataclasses, nothing else.

``price * 2 > length(title)`` is::

    Call(">", (Call("*", (Attribute("price"), Constant(2))),
               Call("length", (Attribute("title"),))))

Everything that computes is a ``Call``: operators and keywords have the names that they are written
with, in lower case (``+``, ``and``, ``is null``, ``case``, ``cast``). Walking is O(nodes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Attribute:
    """The value that an event has under a canonical name (``language/literals.py``)."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of Spark's type for it: ``5`` is an INT, ``5.0`` a DECIMAL(2, 1)."""

    scalar: pa.Scalar

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[pa.DataType, str]:
        return self.scalar.type, repr(self.scalar.as_py())  # NaN is equal to itself here


@dataclass(frozen=True, slots=True)
class Call:
    """A function, an operator or a keyword, and what it is applied to.

    ``to`` is the type that a cast leads to, else None.
    """

    function: str
    arguments: tuple[Term, ...]
    to: pa.DataType | None = None


@dataclass(frozen=True, slots=True)
class Lambda:
    """``x -> body``: inside, the parameters are attributes of these names."""

    parameters: tuple[str, ...]
    body: Term


Term: TypeAlias = Attribute | Constant | Call | Lambda


def walk(term: Term) -> Iterator[Term]:
    """Every node, parents first."""
    waiting = [term]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Call):
            waiting.extend(reversed(node.arguments))
        elif isinstance(node, Lambda):
            waiting.append(node.body)


def attributes_of(term: Term) -> list[str]:
    """The attributes of the event that a term reads, each once, as they come."""
    found: dict[str, None] = {}
    waiting: list[tuple[Term, frozenset[str]]] = [(term, frozenset())]
    while waiting:
        node, bound = waiting.pop()
        if isinstance(node, Attribute):
            # A parameter hides what is inside it, too: ``i.price`` belongs to ``i``.
            if node.name.split(".", 1)[0] not in bound:
                found[node.name] = None
        elif isinstance(node, Call):
            waiting.extend((argument, bound) for argument in reversed(node.arguments))
        elif isinstance(node, Lambda):
            waiting.append((node.body, bound | set(node.parameters)))
    return list(found)


def shared(terms: Sequence[Term]) -> tuple[list[Term], frozenset[int]]:
    """The terms with one node for equal calls, and the ids of those that have several parents.

    O(nodes).
    """
    known: dict[Term, Term] = {}
    parents: dict[int, set[int]] = {}

    def one(term: Term) -> Term:
        below: tuple[Term, ...]
        if isinstance(term, Call):
            below = tuple(map(one, term.arguments))
            replaced: Term = Call(term.function, below, term.to)
        elif isinstance(term, Lambda):
            below = (one(term.body),)
            replaced = Lambda(term.parameters, *below)
        else:
            return term
        node = known.setdefault(replaced, replaced)
        for each in below:
            if isinstance(each, Call):
                parents.setdefault(id(each), set()).add(id(node))
        return node

    found = [one(term) for term in terms]
    whole = {id(term) for term in found}
    repeated = {node for node, above in parents.items() if len(above) > 1 or node in whole}
    return found, frozenset(repeated)
