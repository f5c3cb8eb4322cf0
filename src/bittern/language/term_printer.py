"""Terms to text: the canonical form, which reads back as the same term, here and in Spark.

``Call("*", (Attribute("price"), Constant(2)))`` becomes ``price * 2``. Operators inside others
stand in parentheses. O(nodes), one call per level.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from bittern.language.lexer import is_quantifier, is_type
from bittern.language.literals import attribute_of, attribute_parts
from bittern.language.printer import attribute_word, print_text
from bittern.language.scalars.tokens import NO_OPERANDS
from bittern.terms.logic.members import IN_SET
from bittern.terms.nodes import Attribute, Call, Constant, Lambda, Term
from bittern.terms.types import DAY_TIME, TIMESTAMP, type_name

_INFIX = frozenset(
    "= != < <= > >= <=> + - * / % div | & ^ || and or like ilike rlike".split()  # noqa: SIM905
)
#: Operators that bind equally: on the left of each other they need no parentheses.
_CHAINS = (frozenset(("+", "-", "||")), frozenset(("*", "/", "%", "div")))
#: Names that mean something else where an operand starts.
_STARTS = NO_OPERANDS | {"both", "leading", "trailing"}
_PREFIX = {"not": "NOT ", "negative": "-", "positive": "+", "~": "~"}
_SUFFIX = {"is null": "IS NULL", "is true": "IS TRUE", "is false": "IS FALSE"}
_INTEGERS = {pa.int8(): "Y", pa.int16(): "S", pa.int32(): "", pa.int64(): "L"}


def print_term(term: Term) -> str:
    """Write a term as text."""
    if isinstance(term, Attribute):
        return _attribute(term.name)
    if isinstance(term, Constant):
        return print_constant(term.scalar)
    if isinstance(term, Lambda):
        names = ", ".join(map(_word, term.parameters))
        head = names if len(term.parameters) == 1 else f"({names})"
        return f"{head} -> {_inner(term.body)}"
    return _call(term)


def _attribute(name: str) -> str:
    """Write an attribute, in back-quotes if its name has a meaning of its own in a term."""
    if name.lower() in _STARTS or is_type(name) or is_quantifier(name):
        return f"`{name}`"
    return _word(name)


def _word(name: str) -> str:
    """Write a name: for Spark, letters beyond ASCII need back-quotes."""
    if name.isascii():
        return attribute_word(name)
    return ".".join("`" + part.replace("`", "``") + "`" for part in attribute_parts(name))


def _call(term: Call) -> str:
    name, arguments = term.function, term.arguments
    if name in _INFIX and len(arguments) > 1:
        if name in ("like", "ilike") and len(arguments) > 2:
            text, pattern, escape = map(_inner, arguments)
            return f"{text} {name.upper()} {pattern} ESCAPE {escape}"
        first, *others = arguments
        return f" {name.upper()} ".join([_first(name, first), *map(_inner, others)])
    if name in _PREFIX and not isinstance(arguments[0], Constant):  # -5 is a constant itself
        return _PREFIX[name] + _inner(arguments[0])
    if name in _SUFFIX:
        return f"{_inner(arguments[0])} {_SUFFIX[name]}"
    if name in ("cast", "try_cast"):
        assert term.to is not None
        return f"{name.upper()}({print_term(arguments[0])} AS {type_name(term.to)})"
    if name == "case":
        *branches, otherwise = map(print_term, arguments)
        whens = zip(branches[::2], branches[1::2], strict=True)
        body = " ".join(f"WHEN {condition} THEN {result}" for condition, result in whens)
        return f"CASE {body} ELSE {otherwise} END"
    if name == "in":
        first, *others = arguments
        return f"{_inner(first)} IN ({', '.join(map(print_term, others))})"
    if name == IN_SET:
        value, named = arguments
        assert isinstance(named, Constant), "the reader puts it there"
        return f"{_inner(value)} IN SET {attribute_word(attribute_of([named.scalar.as_py()]))}"
    if name == "between":
        middle, low, high = map(_inner, arguments)
        return f"{middle} BETWEEN {low} AND {high}"
    if name == "[]":
        return f"{_inner(arguments[0])}[{print_term(arguments[1])}]"
    if name == ".":
        field: Any = arguments[1]
        whole = _inner(arguments[0])
        if whole[-1] not in ")]" and not _is_field(arguments[0]):
            whole = f"({whole})"  # END.a is a name
        return f"{whole}.{_attribute(attribute_of([field.scalar.as_py()]))}"
    if name == "extract":
        part: Any = arguments[0]
        return f"EXTRACT({part.scalar.as_py()} FROM {print_term(arguments[1])})"
    return f"{name}({', '.join(map(print_term, arguments))})"


def _is_field(term: Term) -> bool:
    return isinstance(term, Call) and term.function == "."


def _first(operator: str, term: Term) -> str:
    """Write the operand in front of an operator: ``a - b - c`` is ``(a - b) - c``."""
    if isinstance(term, Call) and any(each >= {operator, term.function} for each in _CHAINS):
        return print_term(term)
    return _inner(term)


def _inner(term: Term) -> str:
    """Write a term inside another: operators need parentheses."""
    text = print_term(term)
    if isinstance(term, Call) and (
        term.function in _INFIX
        or term.function in _PREFIX
        or term.function in _SUFFIX
        or term.function in ("in", "between", IN_SET)
    ):
        return f"({text})"
    if isinstance(term, Constant) and text.startswith("-"):
        return f"({text})"
    return text


def print_constant(scalar: pa.Scalar) -> str:
    """Write a constant so that it reads back with the same type and value."""
    kind, value = scalar.type, scalar.as_py()
    if pa.types.is_list(kind) and value is not None:
        # An element that is not NULL says the type of all.
        typed = any(each.is_valid for each in scalar.values)
        elements = [
            "NULL" if typed and not each.is_valid else print_constant(each)
            for each in scalar.values
        ]
        return f"array({', '.join(elements)})"
    if value is None:
        return "NULL" if pa.types.is_null(kind) else f"CAST(NULL AS {type_name(kind)})"
    if pa.types.is_map(kind):
        if pa.types.is_null(kind.key_type):
            return "map()"
        entries = (print_constant(each) for entry in scalar.values for each in entry.values())
        return f"CAST(map({', '.join(entries)}) AS {type_name(kind)})"
    if pa.types.is_struct(kind):
        fields = (f"{print_text(own.name)}, {print_constant(scalar[own.name])}" for own in kind)
        return f"named_struct({', '.join(fields)})"
    if isinstance(value, bool):
        return str(value).upper()
    if pa.types.is_integer(kind):
        text = str(value)
        fits = kind != pa.int64() or not -(1 << 31) <= value < 1 << 31
        return text if kind == pa.int64() and fits else text + _INTEGERS[kind]
    if isinstance(value, float):
        return _float(value, kind)
    if isinstance(value, Decimal):
        text = f"{value:f}"
        digits = len(text.lstrip("-0.").replace(".", "")) or 1
        is_own = kind.precision == max(digits, kind.scale) and kind.scale > 0
        return text if is_own else f"CAST('{text}' AS {type_name(kind)})"
    if isinstance(value, str):
        return print_text(value)
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, dt.datetime):
        moment = value.replace(tzinfo=None).isoformat(" ")
        return f"TIMESTAMP '{moment}Z'" if kind == TIMESTAMP else f"TIMESTAMP_NTZ '{moment}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return print_interval(scalar)


def _float(value: float, kind: pa.DataType) -> str:
    text = repr(value).replace("inf", "Infinity").replace("nan", "NaN")
    if text.lstrip("-") in ("Infinity", "NaN"):
        return f"CAST('{text}' AS {type_name(kind)})"
    text = text if "e" in text else text + "e0"  # -0.0 is a decimal, which has no such zero
    return f"CAST({text} AS FLOAT)" if kind == pa.float32() else text


def print_interval(scalar: pa.Scalar) -> str:
    """Write an interval of days and times."""
    if scalar.type != DAY_TIME:
        from bittern.terms.times.times import print_months  # noqa: PLC0415

        return str(print_months(scalar))
    total = scalar.cast(pa.int64()).as_py()
    sign, total = ("-", -total) if total < 0 else ("", total)
    seconds, micros = divmod(total, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    clock = f"{hour:02}:{minute:02}:{second:02}.{micros:06}"
    return f"INTERVAL '{sign}{day} {clock}' DAY TO SECOND"
