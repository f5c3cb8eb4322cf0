"""Why an expression is refused or answered in another way, in few words that many share."""

from __future__ import annotations

import re
from typing import Any

#: Parts of what Bittern says of a refusal, and what that comes to.
_REFUSALS = (
    (r"there is no function (\w+)", r"the function {0}"),
    (r"only Spark knows the functions? (\w+)", r"the function {0} over what is no column"),
    (r"there is no collation", "collations other than UTF8_BINARY and UTF8_LCASE"),
    (r"COLLATE stands beside a comparison", "COLLATE inside of a function"),
    (r"(\w+) cannot stand in a subscription", r"{0}"),
    (r"IN mixes|BETWEEN mixes", "constants of several types in IN or BETWEEN"),
    (r"cannot be compared with|is not compared with|has no meaning for", "types that do not meet"),
    (r"found \*", "a star, which stands for all columns"),
    (r"found the string|is not a time", "literals of other types"),
    (r"is no type", "types without a counterpart in Arrow"),
    (r"invalid perl operator|look-around|back reference|RE2", "regular expressions that RE2 lacks"),
    (r"today|tomorrow|yesterday|now", "the present moment"),
)
#: What a difference comes to, by what is known of the expression.
OTHER_CASE = (
    "a name in another case than the column's: Bittern's names have one, unless schema= is given"
)
CAST = "a string beside another type, which Spark casts once it knows the column's type: schema="
COLLATED = "a column with a collation of its own: Bittern compares bytes"
PADDED = "a column of type CHAR(n), which only Spark pads: in Arrow it is a text like any other"
NO_ARROW = "a column of a type that Arrow does not have"
UNLISTED = "Spark fails for some row, and Bittern has a value there"
UNKNOWN = "not explained"


def refusal(message: str) -> str:
    """What a refusal is about."""
    for pattern, words in _REFUSALS:
        if (match := re.search(pattern, message)) is not None:
            return words.format(*match.groups())
    return " ".join(re.sub(r"'[^']*'|\(at position.*", "…", message, flags=re.DOTALL).split())[:100]


def is_alike(record: dict[str, Any], where: str) -> bool:
    """Whether an accepted expression is answered as Spark answers it.

    Rows that Spark fails for are not compared, but have to be listed.
    """
    spark, own = record["spark"], record[where]
    failed = set(spark["listed"])
    return set(spark["true"]) == set(own["true"]) - failed and failed <= set(own["listed"])


def difference(record: dict[str, Any], where: str) -> str:
    """Why an expression is answered in another way."""
    spark, own = record["spark"], record[where]
    if record["other_case"]:
        return OTHER_CASE
    if any(_has_word(name, record["text"]) for name in record["missing"]):
        return NO_ARROW
    if any("STRING" in cast for cast in record["implicit"]):
        return CAST
    if " collate " in record["schema"].lower():
        return COLLATED
    if any(_has_word(name, record["text"]) for name in record.get("padded", ())):
        return PADDED
    failed = set(spark["listed"])
    return UNLISTED if set(spark["true"]) == set(own["true"]) - failed else UNKNOWN


def _has_word(name: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE) is not None
