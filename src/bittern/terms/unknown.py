"""Functions that only Spark knows.

With ``functions="spark"`` a subscription may call any function of Spark, user functions included:
the JVM computes such terms as columns of their own. Here they are only names: ``any_function`` lets
the reader pass them, ``unknown_functions`` finds them in a term. O(nodes).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bittern.terms.nodes import Term

#: What ``functions=`` may be: those that are known here, or any that Spark knows.
EMBEDDED, SPARK = "embedded", "spark"

_allowed: ContextVar[bool] = ContextVar("any_function", default=False)


@contextmanager
def any_function(*, allowed: bool = True) -> Iterator[None]:
    """While inside, texts may call functions that are not in the tables here."""
    token = _allowed.set(allowed)
    try:
        yield
    finally:
        _allowed.reset(token)


def is_any_function_allowed() -> bool:
    """Whether texts may call functions that are not in the tables here."""
    return _allowed.get()


def unknown_functions(term: Term) -> list[str]:
    """The functions of a term that cannot be evaluated here, each once."""
    from bittern.terms.nodes import Call, walk  # noqa: PLC0415  only for terms
    from bittern.terms.scope import functions  # noqa: PLC0415

    known = functions()
    calls = (node.function for node in walk(term) if isinstance(node, Call))
    return list(dict.fromkeys(name for name in calls if name not in known))
