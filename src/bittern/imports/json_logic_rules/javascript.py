r"""Values as JavaScript compares them: what constants of a rule are as numbers and texts.

::

    number_of("5")   5       number_of("")    0       number_of(None)  0     number_of("x")  NaN
    text_of(5.0)     "5"     text_of(True)    "true"  text_of(None)    "null"

The patterns, in RE2's syntax, tell which texts are numbers in JavaScript. None of them has texts
with a prefix such as ``0x``, ``PREFIXED``, which are numbers that no pattern can compute.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from bittern.errors import RuleError

_SPACE = r"[\s\x0b\pZ\x{feff}]*"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
BLANK = f"^{_SPACE}$"
DECIMAL = f"^{_SPACE}({_NUMBER}){_SPACE}$"
#: What ``parseFloat`` reads of a text.
LEADING = f"^{_SPACE}({_NUMBER})"
INFINITE = (f"^{_SPACE}\\+?Infinity{_SPACE}$", f"^{_SPACE}-Infinity{_SPACE}$")
PREFIXED = f"^{_SPACE}0[xXoObB][0-9a-fA-F]+{_SPACE}$"
_IS_DECIMAL = re.compile(_NUMBER)
_PLAIN = (1e-6, 1e21)
#: Integers of more bits are beyond all floats.
_FLOAT_BITS = 1023
_SPACES = "\t\n\x0b\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def number_of(value: Any) -> float:
    """A constant as a number: ``Number(value)``."""
    if value is None:
        return 0
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return float(value) if isinstance(value, Decimal) else value
    text = value.strip(_SPACES)
    if not text:
        return 0
    if text in ("Infinity", "+Infinity", "-Infinity"):
        return -math.inf if text.startswith("-") else math.inf
    if re.fullmatch("0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+", text):
        number = int(text, 0)
        return float(number) if number.bit_length() <= _FLOAT_BITS else math.inf
    return float(text) if _IS_DECIMAL.fullmatch(text) else math.nan


def parsed_number(value: Any) -> float:
    """A constant as ``parseFloat`` has it: what a text begins with."""
    if not isinstance(value, str):
        return math.nan if value is None or isinstance(value, bool) else float(value)
    text = value.lstrip(_SPACES)
    if infinite := re.match(r"([+-]?)Infinity", text):
        return -math.inf if infinite[1] == "-" else math.inf
    found = _IS_DECIMAL.match(text)
    return float(found[0]) if found else math.nan


def text_of(value: Any) -> str:
    """A constant as a text: ``String(value)``."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    number = float(value)
    if number == 0:
        return "0"
    if not _PLAIN[0] <= abs(number) < _PLAIN[1]:
        raise RuleError(f"{value} as a text is not supported")
    text = format(Decimal(repr(number)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def truthy(value: Any) -> bool:
    """Whether JSON Logic takes a value for true: an empty list is not, unlike in JavaScript."""
    return value not in (None, False, 0, "") and value != []


def is_strictly_equal(one: Any, other: Any) -> bool:
    """``one === other``, of numbers, texts, Booleans and None."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return type(one) is type(other) and one == other if isinstance(one, str) else one == other


def compared(operator: str, one: Any, other: Any) -> bool:
    """``==`` or an order, of numbers, texts, Booleans and None."""
    if operator == "==" and (one is None or other is None):
        return one is other
    if not (isinstance(one, str) and isinstance(other, str)):
        one, other = number_of(one), number_of(other)
    if operator == "==":
        return bool(one == other)
    if operator in ("<", "<="):
        return bool(one < other if operator == "<" else one <= other)
    return bool(one > other if operator == ">" else one >= other)
