"""How a document's value compares with another: below, equal, above, or apart (not at all).

A comparison is the set of outcomes for which it is TRUE, one bit each; that it is anything but TRUE
is the set of the others: ``d.a < a`` is BELOW, its denial EQUAL, ABOVE or APART.
"""

from __future__ import annotations

BELOW, EQUAL, ABOVE, APART = 1, 2, 4, 8
ANYHOW = BELOW | EQUAL | ABOVE | APART
#: The outcomes for which a comparison is TRUE.
OUTCOMES = {
    "<": BELOW,
    "<=": BELOW | EQUAL,
    "=": EQUAL,
    ">=": ABOVE | EQUAL,
    ">": ABOVE,
    "!=": BELOW | ABOVE,
}
