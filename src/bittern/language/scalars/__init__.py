"""Text to terms, by Spark's grammar and precedence.

``lower(brand) = 'acme' AND price * 2 > 10`` is::

    Call("and", (Call("=", (Call("lower", (Attribute("brand"),)), Constant("acme"))),
                 Call(">", (Call("*", (Attribute("price"), Constant(2))), Constant(10)))))

Operators bind, from the loosest::

    OR   AND   NOT !   [NOT] IN, BETWEEN, LIKE, IS   = < ...   |   ^   &   << >>   + - ||
    * / % DIV   unary + - ~   ::type   [element]   .field

A call whose arguments are all constant is evaluated at once, unless that fails: then every event
fails on it, and only where it is needed. The parser calls itself once per level of parentheses, and
levels are limited. O(length).

::

    tokens.py       the tokens of a text, errors, calls that are constant
    values.py       operators, constants, casts, CASE
    functions.py    calls of functions, and those that have words between their arguments
    refused.py      functions that no subscription can have
    conditions.py   AND, OR, NOT, IN, BETWEEN, LIKE, IS; ``read_term``
"""

from bittern.language.scalars.conditions import operands_of, read_term
from bittern.language.scalars.tokens import FunctionCallError

__all__ = ["FunctionCallError", "operands_of", "read_term"]
