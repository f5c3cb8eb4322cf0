"""Casts that Spark's analyzer adds where values of different types are compared.

What a comparison means depends on the types of its sides, which only a schema tells::

    price DOUBLE, code STRING        becomes
    price > '98'                     price > 98.0
    code > 98                        CAST(code AS BIGINT) > 98
    code IN (5, 6.5)                 CAST(code AS DECIMAL(21, 1)) IN (5.0, 6.5)
    price LIKE '9%'                  CAST(price AS STRING) LIKE '9%'

A string is cast, never the other side: beside integers to BIGINT, beside other numbers to DOUBLE,
beside a Boolean, a time or binary to that type. Other types that differ have nothing in common, and
Spark refuses to compare them. The two ends of BETWEEN are compared one by one, all values of IN in
one type. A constant is cast at once. A cast that changes no value is left out. O(nodes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from bittern.terms.nodes import Attribute, Call, Constant, Lambda, Term, attributes_of
from bittern.terms.scope import MeaninglessError, evaluate, folded
from bittern.terms.types import common_type, is_number, type_name
from bittern.terms.unknown import unknown_functions

_COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">=", "<=>", "equal_null", "compare", "in"))
_PATTERNS = frozenset(("like", "ilike", "rlike", "regexp", "regexp_like"))
#: Decimals of so many digits differ as DOUBLE just as they differ themselves.
_DIGITS_OF_DOUBLE = 15


class CastError(ValueError):
    """A constant that cannot be cast to the type that it is compared in."""

    def __init__(self, constant: Constant, kind: pa.DataType) -> None:
        self.constant = constant
        super().__init__(
            f"{repr(constant.scalar.as_py())[:40]} is compared as {type_name(kind)}, and cannot be "
            f"cast to it"
        )


class ColumnTypes:
    """The types of attributes, as empty columns; an attribute that is not there is not known."""

    def __init__(
        self, columns: Mapping[str, pa.Array], is_of_spark: Callable[[str], bool] | None = None
    ) -> None:
        """``is_of_spark`` says of an attribute whether only Spark can compare its texts."""
        self._columns = columns
        self._is_of_spark = is_of_spark

    def has_texts_of_spark(self, term: Term) -> bool:
        """Whether a comparison is of texts that only Spark can compare."""
        if self._is_of_spark is None or not isinstance(term, Call) or term.function == "is null":
            return False
        return any(
            any(map(self._is_of_spark, attributes_of(each)))
            and pa.types.is_string(self.find(each) or pa.null())
            for each in term.arguments
        )

    def of(self, term: Term) -> pa.DataType | None:
        """The type of a term; None if it is not known. ``MeaninglessError`` if it has none."""
        if isinstance(term, Constant):
            return term.scalar.type
        if isinstance(term, Lambda) or unknown_functions(term):
            return None
        names = attributes_of(term)
        if any(name not in self._columns for name in names):
            return None
        if isinstance(term, Attribute):
            return self._columns[term.name].type
        columns = {name: self._columns[name] for name in names}
        return evaluate(term, columns, 0)[0].type

    def find(self, term: Term) -> pa.DataType | None:
        """The type of a term; None if it is not known or there is none."""
        try:
            return self.of(term)
        except MeaninglessError:
            return None


def compared_as(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type in which Spark compares values of these types; None: it refuses to."""
    found = pa.null()
    for kind in sorted(kinds, key=lambda each: not pa.types.is_string(each)):
        wider = _beside_string(kind) if pa.types.is_string(found) else common_type(found, kind)
        if wider is None:
            return None
        found = wider
    return found


def _beside_string(kind: pa.DataType) -> pa.DataType | None:
    """The type in which a string is compared with another type."""
    types = pa.types
    if types.is_null(kind) or types.is_string(kind):
        return pa.string()
    if types.is_integer(kind):
        return pa.int64()
    if is_number(kind):
        return pa.float64()
    is_atomic = types.is_boolean(kind) or types.is_binary(kind) or types.is_date(kind)
    return kind if is_atomic or types.is_timestamp(kind) else None


def can_be_text(kind: pa.DataType) -> bool:
    """Whether Spark casts a type to STRING where a pattern is looked for."""
    return _beside_string(kind) is not None


def coerced(term: Term, types: ColumnTypes) -> Term:
    """The term with the casts that Spark adds, as far as types are known.

    Raises ``CastError``. What cannot be compared stays as it is.
    """
    if not isinstance(term, Call):
        return term  # inside of a lambda the types of parameters are not known
    arguments = tuple(coerced(argument, types) for argument in term.arguments)
    if arguments != term.arguments:
        term = replace(term, arguments=arguments)
    if term.function in _COMPARISONS:
        return replace(term, arguments=_alike(arguments, types))
    if term.function == "between":
        value, low, high = arguments
        above, low = _alike((value, low), types)
        below, high = _alike((value, high), types)
        if above == below:
            return replace(term, arguments=(above, low, high))
        return Call("and", (Call(">=", (above, low)), Call("<=", (below, high))))
    if term.function in _PATTERNS:
        kind = types.find(arguments[0])
        if kind is not None and not pa.types.is_string(kind) and can_be_text(kind):
            return replace(term, arguments=(_cast(arguments[0], pa.string()), *arguments[1:]))
    return term


def _alike(arguments: tuple[Term, ...], types: ColumnTypes) -> tuple[Term, ...]:
    """What is compared, in one type where some of it is a string and some is not."""
    kinds = [types.find(argument) for argument in arguments]
    known = [kind for kind in kinds if kind is not None]
    is_text = {pa.types.is_string(kind) for kind in known if not pa.types.is_null(kind)}
    if len(known) < len(kinds) or len(is_text) < 2:
        return arguments
    together = compared_as(known)
    if together is None:
        return arguments
    return tuple(
        argument if _holds(kind, together) else _cast(argument, together)
        for argument, kind in zip(arguments, known, strict=True)
    )


def _holds(kind: pa.DataType, wider: pa.DataType) -> bool:
    """Whether values of a type are compared in a wider one just as they are."""
    types = pa.types
    if types.is_null(kind) or kind == wider:
        return True
    if types.is_integer(wider):
        return bool(types.is_integer(kind))
    if types.is_floating(wider):
        few = types.is_decimal(kind) and kind.precision <= _DIGITS_OF_DOUBLE
        return bool(few or types.is_floating(kind))
    return bool(types.is_decimal(wider) and (types.is_integer(kind) or types.is_decimal(kind)))


def _cast(term: Term, kind: pa.DataType) -> Term:
    call = Call("cast", (term,), kind)
    if not isinstance(term, Constant):
        return call
    try:
        return Constant(folded(call))
    except ValueError:
        raise CastError(term, kind) from None
