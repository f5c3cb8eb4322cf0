"""Casts between types, with Spark's meaning.

``widened`` never fails: it leads to a type that holds every value. ``cast`` is ``CAST``: in ANSI
mode a value that does not fit fails the row, with ``strict=False`` (``TRY_CAST``) it is just NULL.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from bittern.terms.nodes import Call
from bittern.terms.scope import Scope, Table, Value

TABLE = Table()


def widened(value: Value, kind: pa.DataType) -> Value:
    """The value in a type that ``common_type`` found."""
    return value if value.type == kind else pc.cast(value, kind, safe=False)


def cast(scope: Scope, value: Value, kind: pa.DataType, *, strict: bool = True) -> Value:
    """The value as another type; rows that cannot be cast are NULL, and fail if it is strict."""
    raise NotImplementedError


@TABLE.add("cast", least=1)
def _cast(scope: Scope, call: Call, value: Value) -> Value:
    assert call.to is not None
    return cast(scope, value, call.to)


@TABLE.add("try_cast", least=1)
def _try_cast(scope: Scope, call: Call, value: Value) -> Value:
    assert call.to is not None
    return cast(scope, value, call.to, strict=False)
