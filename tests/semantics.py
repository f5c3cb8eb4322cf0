"""Every rule of the language as data: expression, event, answer, and Spark's answer.

``docs/language.md`` shows these rules as tables and ``test_semantics.py`` runs each of them
against the oracle, the engine and Spark. Those of quantifiers are in ``test_quantifiers.py``, those
of named sets in ``test_sets.py``: there is nothing like them in a filter of Spark. The functions
that rules are made of are in ``docs/functions.md``. After a change here, run this file: it writes
the tables into the documents again.

    rule("NULL in a list", "n IN (1, NULL)", ({"n": 1}, True), ({"n": 2}, None))
                                              event     answer

A third item of a case is Spark's answer where it differs, ``ERROR`` where Spark fails; ``why``
then says for what reason Bittern does not follow.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from function_rules import FUNCTION_RULES
from term_rules import FAILS, TERM_RULES

#: Every event of a rule fits these columns, so that it can be an Arrow table and a DataFrame.
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("d", pa.decimal128(18, 4)),
        ("s", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("ntz", pa.timestamp("us")),
        ("day", pa.date32()),
        ("b", pa.bool_()),
        ("st", pa.struct([("i", pa.int64()), ("y.z", pa.int64())])),
        ("l", pa.list_(pa.int64())),
        ("mp", pa.map_(pa.string(), pa.int64())),
        ("ms", pa.map_(pa.string(), pa.struct([("i", pa.int64())]))),
        ("ls", pa.list_(pa.struct([("i", pa.int64())]))),
        ("bin", pa.binary()),
    ]
)

ERROR: Final = "error"


@dataclass(frozen=True)
class Case:
    """One event, what a rule's expression says of it, and what Spark says."""

    event: Mapping[str, Any]
    answer: bool | None
    spark: bool | str | None

    @property
    def differs(self) -> bool:
        return self.spark is not self.answer


@dataclass(frozen=True)
class Rule:
    """One rule: a name, an expression that shows it, and its cases."""

    name: str
    expression: str
    cases: tuple[Case, ...]
    why: str = ""


@dataclass(frozen=True)
class Refused:
    """Something that Spark's filters accept and Bittern refuses when it is subscribed."""

    name: str
    expression: str
    instead: str


@dataclass(frozen=True)
class Joined:
    """A rule of EXISTS and FORALL: what an expression says of an event after some documents."""

    name: str
    expression: str
    documents: tuple[Mapping[str, Any], ...]
    event: Mapping[str, Any]
    answer: bool


@dataclass(frozen=True)
class Looked:
    """A rule of IN SET: what an expression says of an event, where the set has these members."""

    name: str
    expression: str
    members: tuple[Any, ...]
    event: Mapping[str, Any]
    answer: bool | None


def rule(name: str, expression: str, *cases: Any, why: str = "") -> Rule:
    made = tuple(Case(case[0], case[1], case[-1]) for case in cases)
    assert any(case.differs for case in made) == bool(why), name
    return Rule(name, expression, made, why)


_DOUBLE = "Spark rounds the literal, or the value, to a double first"
_CAST = "Spark knows the column's type and casts the string; with a schema, Bittern does too"
_TYPES = "Spark knows the column's type and refuses the query; an event's value may be anything"
_CASE = "Spark's columns are not, by default; nor are columns with `case_sensitive=False`"
_TEXT = "Spark knows the column's type and casts it to a string; with a schema, Bittern does too"
#: What a schema tells, or Spark's way to find names: with both, Bittern says what Spark says.
TOLD_BY_SCHEMA = (_CAST, _CASE, _TEXT)
_REGEX = "Spark uses Java's regular expressions, which can take exponential time"

_MISSING = "Spark has no such predicate"

_NEW_YEAR = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_TICK = dt.timedelta(microseconds=1)

RULES: dict[str, tuple[Rule, ...]] = {
    "NULL and missing attributes": (
        rule(
            "a missing attribute is NULL",
            "n = 5",
            ({"n": 5}, True),
            ({"n": 6}, False),
            ({"n": None}, None),
            ({}, None),
        ),
        rule("unequal to a missing attribute", "n != 5", ({"n": 6}, True), ({}, None)),
        rule(
            "an attribute that no event has",
            "unheard_of = 5",
            ({"n": 5}, None, ERROR),
            why="Spark knows all columns and refuses the query",
        ),
        rule("is NULL", "n IS NULL", ({"n": 5}, False), ({"n": None}, True), ({}, True)),
        rule("is not NULL", "n IS NOT NULL", ({"n": 5}, True), ({}, False)),
        rule(
            "is missing",
            "unheard_of IS MISSING",
            ({"n": 5}, True, ERROR),
            ({}, True, ERROR),
            why=_MISSING,
        ),
        rule(
            "what is NULL is not missing",
            "n IS MISSING",
            ({"n": 5}, False, ERROR),
            ({"n": None}, False, ERROR),
            why=_MISSING,
        ),
        rule(
            "a key that a map lacks is missing",
            "mp.k IS MISSING",
            ({"mp": {}}, True, ERROR),
            ({"mp": {"k": None}}, False, ERROR),
            ({"mp": {"k": 5}}, False, ERROR),
            ({"mp": None}, False, ERROR),
            why=_MISSING,
        ),
        rule(
            "what is inside NULL is NULL, not missing",
            "st.i IS NOT MISSING",
            ({"st": None}, True, ERROR),
            ({"st": {"i": None}}, True, ERROR),
            why=_MISSING,
        ),
        rule(
            "what is inside a number is missing",
            "n.i IS MISSING",
            ({"n": 5}, True, ERROR),
            why=_MISSING,
        ),
        rule("NaN is not NULL", "x IS NULL", ({"x": math.nan}, False)),
        rule("an empty string is not NULL", "s IS NULL", ({"s": ""}, False)),
        rule("nothing equals NULL", "n = NULL", ({"n": 5}, None), ({}, None)),
        rule("nothing differs from NULL", "n != NULL", ({"n": 5}, None), ({}, None)),
        rule("a dotted path", "st.i = 1", ({"st": {"i": 1}}, True), ({"st": {"i": 2}}, False)),
        rule("a quoted part of a path", "st.`y.z` = 2", ({"st": {"y.z": 2}}, True)),
        rule(
            "missing on the way",
            "st.i IS NULL",
            ({"st": {"i": 1}}, False),
            ({"st": {"i": None}}, True),
            ({"st": None}, True),
            ({}, True),
        ),
        rule("a struct is there", "st IS NULL", ({"st": {"i": None}}, False), ({}, True)),
        rule("a list is there", "l IS NULL", ({"l": []}, False), ({}, True)),
        rule(
            "a key of a map",
            "mp.k = 1",
            ({"mp": {"k": 1}}, True),
            ({"mp": {"k": 2}}, False),
            ({"mp": {}}, None),
            ({}, None),
        ),
        rule("a field behind a key", "ms.k.i = 1", ({"ms": {"k": {"i": 1}}}, True)),
        rule(
            "what lies inside a list is a list",
            "ls.i IS NULL",
            ({"ls": [{"i": 1}]}, False),
            ({"ls": [None]}, False),
            ({"ls": []}, False),
            ({}, True),
        ),
        rule("and has no kind", "ls.i = 1", ({"ls": [{"i": 1}]}, None, ERROR), why=_TYPES),
        rule(
            "whatever the list holds",
            "l.x IS NULL",
            ({"l": [5]}, False, ERROR),
            ({}, True, ERROR),
            why="Spark knows that there are no structs in it and refuses the query",
        ),
        rule("a list has no kind", "l = 5", ({"l": [5]}, None, ERROR), why=_TYPES),
        rule("a struct has no kind", "st = 5", ({"st": {"i": 5}}, None, ERROR), why=_TYPES),
        rule(
            "names are case-sensitive",
            "N = 5",
            ({"n": 5}, None, True),
            why=_CASE,
        ),
    ),
    "AND, OR, NOT": (
        rule(
            "three-valued AND",
            "n = 5 AND b = TRUE",
            ({"n": 5, "b": True}, True),
            ({"n": 5}, None),
            ({"n": 6}, False),
            ({"b": False}, False),
            ({}, None),
        ),
        rule(
            "a chain of comparisons",
            "1 <= n < 5",
            ({"n": 1}, True, ERROR),
            ({"n": 5}, False, ERROR),
            ({}, None, ERROR),
            why="Spark compares the answer to the first comparison with the second number",
        ),
        rule(
            "signs for operators",
            "n ≥ 1 AND n ≠ 5",
            ({"n": 1}, True, ERROR),
            ({"n": 5}, False, ERROR),
            why="Spark does not know ≠, ≤ and ≥",
        ),
        rule(
            "three-valued OR",
            "n = 5 OR b = TRUE",
            ({"n": 5}, True),
            ({"b": True}, True),
            ({"n": 6}, None),
            ({"n": 6, "b": False}, False),
        ),
        rule("three-valued NOT", "NOT n = 5", ({"n": 6}, True), ({"n": 5}, False), ({}, None)),
        rule(
            "NOT of a conjunction",
            "NOT (n = 5 AND b = TRUE)",
            ({"n": 6}, True),
            ({"n": 5}, None),
            ({"n": 5, "b": True}, False),
        ),
        rule(
            "AND binds more than OR",
            "n = 1 OR n = 5 AND b = TRUE",
            ({"n": 1, "b": False}, True),
            ({"n": 5, "b": False}, False),
        ),
        rule("a contradiction", "n < 3 AND n > 7", ({"n": 5}, False), ({}, None)),
        rule("not quite a tautology", "n < 5 OR n >= 5", ({"n": 5}, True), ({}, None)),
        rule("TRUE", "TRUE", ({}, True)),
        rule("FALSE", "FALSE", ({}, False)),
        rule("NULL", "NULL", ({}, None, ERROR), why="Spark wants to know that it is a boolean"),
        rule("NOT NULL", "NOT NULL", ({}, None)),
        rule("OR TRUE", "n = 5 OR TRUE", ({}, True)),
        rule("AND NULL", "n = 5 AND NULL", ({"n": 5}, None), ({"n": 6}, False)),
        rule("the literal on the left", "5 < n", ({"n": 6}, True), ({"n": 5}, False)),
    ),
    "Numbers": (
        rule("an integer and a decimal", "n < 5.5", ({"n": 5}, True), ({"n": 6}, False)),
        rule("trailing zeros", "d = 0.10", ({"d": Decimal("0.1")}, True)),
        rule(
            "integers beyond 2^53",
            "n = 9007199254740993",
            ({"n": 2**53 + 1}, True),
            ({"n": 2**53}, False),
        ),
        rule("the largest int64", "n >= 9223372036854775807", ({"n": 2**63 - 1}, True)),
        rule("the smallest int64", "n = -9223372036854775808", ({"n": -(2**63)}, True)),
        rule(
            "decimals are exact to 18 digits",
            "d = 12345678901234.5678",
            ({"d": Decimal("12345678901234.5678")}, True),
            ({"d": Decimal("12345678901234.5679")}, False),
        ),
        rule(
            "a long decimal between two integers",
            "n > 12345678901234567.5",
            ({"n": 12345678901234567}, False),
            ({"n": 12345678901234568}, True),
        ),
        rule(
            "a float is the number it prints as",
            "x = 0.1",
            ({"x": 0.1}, True),
            ({"x": math.nextafter(0.1, 1)}, False),
        ),
        rule("0.1 + 0.2 is not 0.3", "x = 0.3", ({"x": 0.1 + 0.2}, False), ({"x": 0.3}, True)),
        rule("an exponent", "x = 1e-1", ({"x": 0.1}, True)),
        rule("an exponent and a decimal", "d = 1e-1", ({"d": Decimal("0.1")}, True)),
        rule(
            "a float32 is the float64 it widens to",
            "f = 0.1",
            ({"f": 0.10000000149011612}, False),
        ),
        rule(
            "a literal longer than a float",
            "x = 0.100000000000000005",
            ({"x": 0.1}, False, True),
            why=_DOUBLE,
        ),
        rule(
            "a float from 2^53 on is an integer",
            "x = 9007199254740993",
            ({"x": 9007199254740992.0}, False, True),
            ({"x": 9007199254740994.0}, False),
            why=_DOUBLE,
        ),
        rule(
            "an integer and an exponent",
            "n = 9007199254740992e0",
            ({"n": 2**53}, True),
            ({"n": 2**53 + 1}, False, True),
            why=_DOUBLE,
        ),
        rule(
            "a long decimal and an exponent",
            "d = 1.23456789012345678e13",
            ({"d": Decimal("12345678901234.5678")}, False, True),
            why=_DOUBLE,
        ),
        rule(
            "a list of several types of number",
            "n IN (9007199254740992, 5e-1)",
            ({"n": 2**53}, True),
            ({"n": 2**53 + 1}, False, True),
            why="Spark casts the whole list to one type, here to double",
        ),
        rule("minus zero is zero", "x = 0", ({"x": -0.0}, True), ({"x": 0.0}, True)),
        rule("minus zero is not below zero", "x < 0", ({"x": -0.0}, False)),
        rule("minus zero as a literal", "x >= -0.0", ({"x": 0.0}, True), ({"x": -0.0}, True)),
        rule("NaN equals no literal", "x = 5", ({"x": math.nan}, False)),
        rule("NaN differs from every literal", "x != 5", ({"x": math.nan}, True)),
        rule("NaN is above every number", "x > 1e308", ({"x": math.nan}, True)),
        rule("NaN is below no number", "x <= 1e308", ({"x": math.nan}, False)),
        rule("infinity", "x > 1e308", ({"x": math.inf}, True), ({"x": -math.inf}, False)),
        rule("minus infinity", "x < -1e308", ({"x": -math.inf}, True)),
    ),
    "IN and BETWEEN": (
        rule("IN", "n IN (1, 5, 5)", ({"n": 5}, True), ({"n": 2}, False), ({}, None)),
        rule("IN of strings", "s IN ('a', 'b')", ({"s": "b"}, True), ({"s": "ab"}, False)),
        rule("NOT IN", "n NOT IN (1, 5)", ({"n": 2}, True), ({"n": 5}, False), ({}, None)),
        rule("NULL in a list", "n IN (1, NULL)", ({"n": 1}, True), ({"n": 2}, None)),
        rule("NULL in a NOT IN list", "n NOT IN (1, NULL)", ({"n": 1}, False), ({"n": 2}, None)),
        rule("IN and NaN", "x IN (0, 1)", ({"x": math.nan}, False), ({"x": -0.0}, True)),
        rule("NOT IN and NaN", "x NOT IN (0, 1)", ({"x": math.nan}, True)),
        rule(
            "BETWEEN includes both ends",
            "n BETWEEN 1 AND 5",
            ({"n": 1}, True),
            ({"n": 5}, True),
            ({"n": 6}, False),
            ({}, None),
        ),
        rule("BETWEEN reversed", "n BETWEEN 5 AND 1", ({"n": 3}, False), ({}, None)),
        rule("NOT BETWEEN", "n NOT BETWEEN 1 AND 5", ({"n": 6}, True), ({"n": 1}, False)),
        rule("NOT BETWEEN reversed", "n NOT BETWEEN 5 AND 1", ({"n": 3}, True), ({}, None)),
        rule("BETWEEN and NaN", "x BETWEEN 0 AND 1", ({"x": math.nan}, False)),
        rule("NOT BETWEEN and NaN", "x NOT BETWEEN 0 AND 1", ({"x": math.nan}, True)),
        rule("BETWEEN from NULL", "n BETWEEN NULL AND 3", ({"n": 5}, False), ({"n": 1}, None)),
        rule(
            "NOT BETWEEN from NULL",
            "n NOT BETWEEN NULL AND 3",
            ({"n": 5}, True),
            ({"n": 1}, None),
        ),
    ),
    "Strings": (
        rule(
            "equality is exact",
            "s = 'a'",
            ({"s": "a"}, True),
            ({"s": "A"}, False),
            ({"s": "a "}, False),
        ),
        rule("the empty string", "s = ''", ({"s": ""}, True), ({"s": " "}, False)),
        rule("a quote is doubled", "s = 'it''s'", ({"s": "it's"}, True)),
        rule(
            "order of UTF-8 bytes",
            "s > 'a'",
            ({"s": "a"}, False),
            ({"s": "ab"}, True),
            ({"s": "B"}, False),
            ({"s": "é"}, True),
        ),
        rule(
            "order of code points, not UTF-16 units",
            "s < '\U0001f600'",
            ({"s": "\uff5e"}, True),
            ({"s": "\U0001f601"}, False),
        ),
        rule("LIKE, prefix", "s LIKE 'ab%'", ({"s": "ab"}, True), ({"s": "aab"}, False)),
        rule("LIKE, suffix", "s LIKE '%bc'", ({"s": "abc"}, True), ({"s": "bcd"}, False)),
        rule("LIKE, contains", "s LIKE '%b%'", ({"s": "abc"}, True), ({"s": "ac"}, False)),
        rule("LIKE, the whole value", "s LIKE 'b'", ({"s": "b"}, True), ({"s": "abc"}, False)),
        rule("LIKE, general", "s LIKE 'a%b_d'", ({"s": "aXbcd"}, True), ({"s": "abd"}, False)),
        rule("LIKE nothing", "s LIKE ''", ({"s": ""}, True), ({"s": "a"}, False)),
        rule("LIKE anything", "s LIKE '%'", ({"s": ""}, True), ({"s": "a\nb"}, True), ({}, None)),
        rule(
            "_ is one code point",
            "s LIKE '_'",
            ({"s": "\U0001f600"}, True),
            ({"s": "\n"}, True),
            ({"s": ""}, False),
            ({"s": "ab"}, False),
        ),
        rule("LIKE is case-sensitive", "s LIKE 'A%'", ({"s": "ab"}, False)),
        rule("NOT LIKE", "s NOT LIKE 'a%'", ({"s": "b"}, True), ({"s": "ab"}, False), ({}, None)),
        rule(
            "backslash escapes",
            r"s LIKE 'a\_b%'",
            ({"s": "a_b"}, True),
            ({"s": "aXb"}, False),
        ),
        rule(
            "another escape character",
            "s LIKE '100!%' ESCAPE '!'",
            ({"s": "100%"}, True),
            ({"s": "100!"}, False),
        ),
        rule(
            "bytes are no string",
            "bin = 'abc'",
            ({"bin": b"abc"}, None, True),
            why=_CAST,
        ),
        rule("LIKE on bytes", "bin LIKE 'a%'", ({"bin": b"abc"}, None, True), why=_TEXT),
        rule("LIKE on a number", "n LIKE '5%'", ({"n": 5}, None, True), why=_TEXT),
    ),
    "Regular expressions": (
        rule("found anywhere", "s RLIKE 'b'", ({"s": "abc"}, True), ({"s": "ac"}, False)),
        rule("anchored", "s REGEXP '^b$'", ({"s": "b"}, True), ({"s": "abc"}, False)),
        rule("NOT RLIKE", "s NOT RLIKE 'b'", ({"s": "a"}, True), ({"s": "b"}, False), ({}, None)),
        rule("the empty pattern", "s RLIKE ''", ({"s": ""}, True), ({"s": "a"}, True)),
        rule("a dot is one code point", "s RLIKE '^.$'", ({"s": "\U0001f600"}, True)),
        rule("a dot is no newline", "s RLIKE 'a.b'", ({"s": "a\nb"}, False)),
        rule(
            "a dot may be another line end",
            "s RLIKE 'a.b'",
            ({"s": "a\rb"}, True, False),
            ({"s": "a\u2028b"}, True, False),
            why=_REGEX,
        ),
        rule(
            "$ is the very end",
            "s RLIKE 'b$'",
            ({"s": "ab"}, True),
            ({"s": "ab\n"}, False, True),
            why=_REGEX,
        ),
        rule("flags", "s RLIKE '(?i)AB'", ({"s": "xaby"}, True), ({"s": "ac"}, False)),
        rule(
            "ignoring case is for all of Unicode",
            "s RLIKE '(?i)é'",
            ({"s": "É"}, True, False),
            why=_REGEX,
        ),
        rule(
            "POSIX classes",
            "s RLIKE '^[[:alpha:]]$'",
            ({"s": "z"}, True, False),
            why=_REGEX,
        ),
        rule("RLIKE on a number", "n RLIKE '5'", ({"n": 5}, None, True), why=_TEXT),
    ),
    "Booleans": (
        rule("an attribute alone", "b", ({"b": True}, True), ({"b": False}, False), ({}, None)),
        rule("NOT an attribute", "NOT b", ({"b": True}, False), ({"b": False}, True), ({}, None)),
        rule("a boolean literal", "b = FALSE", ({"b": False}, True), ({"b": True}, False)),
        rule("false is below true", "b < TRUE", ({"b": False}, True), ({"b": True}, False)),
        rule("booleans in a list", "b IN (TRUE, NULL)", ({"b": True}, True), ({"b": False}, None)),
        rule("a number alone", "n", ({"n": 1}, None, ERROR), why=_TYPES),
    ),
    "Times": (
        rule("a date", "day = DATE '2024-01-01'", ({"day": dt.date(2024, 1, 1)}, True)),
        rule(
            "a date literal is midnight UTC",
            "t = DATE '2024-01-01'",
            ({"t": _NEW_YEAR}, True),
            ({"t": _NEW_YEAR + _TICK}, False),
        ),
        rule(
            "a date value is midnight UTC",
            "day < TIMESTAMP '2024-01-01 00:00:01'",
            ({"day": dt.date(2024, 1, 1)}, True),
            ({"day": dt.date(2024, 1, 2)}, False),
        ),
        rule(
            "microseconds count",
            "t >= TIMESTAMP '2024-01-01 00:00:00.000001'",
            ({"t": _NEW_YEAR}, False),
            ({"t": _NEW_YEAR + _TICK}, True),
        ),
        rule(
            "a literal with an offset",
            "t = TIMESTAMP '2024-01-01 01:00:00+01:00'",
            ({"t": _NEW_YEAR}, True),
        ),
        rule(
            "a value without a zone is UTC",
            "ntz = TIMESTAMP '2024-01-01 00:00:00'",
            ({"ntz": _NEW_YEAR.replace(tzinfo=None)}, True),
        ),
        rule(
            "before 1970",
            "t < TIMESTAMP '1969-12-31 23:59:59.999999'",
            ({"t": dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC)}, True),
            ({"t": dt.datetime(1970, 1, 1, tzinfo=dt.UTC)}, False),
        ),
        rule(
            "dates and timestamps in a list",
            "t IN (DATE '2024-01-01', TIMESTAMP '2024-06-01 12:00:00')",
            ({"t": _NEW_YEAR}, True),
            ({"t": dt.datetime(2024, 6, 1, 12, tzinfo=dt.UTC)}, True),
        ),
        rule(
            "BETWEEN dates",
            "t BETWEEN DATE '2024-01-01' AND DATE '2024-01-02'",
            ({"t": _NEW_YEAR + dt.timedelta(days=1)}, True),
            ({"t": _NEW_YEAR + dt.timedelta(days=1) + _TICK}, False),
        ),
    ),
    "Kinds never mix without a schema": (
        rule("a number and a string", "n = '5'", ({"n": 5}, None, True), why=_CAST),
        rule(
            "a string and a number",
            "s = 5",
            ({"s": "5"}, None, True),
            ({"s": "five"}, None, ERROR),
            why=_CAST,
        ),
        rule("nor unequal", "s != 5", ({"s": "6"}, None, True), why=_CAST),
        rule("nor under NOT", "NOT (s = 5)", ({"s": "6"}, None, True), why=_CAST),
        rule("a boolean and a string", "b = 'true'", ({"b": True}, None, True), why=_CAST),
        rule("a boolean and a number", "b = 1", ({"b": True}, None, ERROR), why=_TYPES),
        rule("a number and a boolean", "n = TRUE", ({"n": 1}, None, ERROR), why=_TYPES),
        rule(
            "a date and a string",
            "day = '2024-01-01'",
            ({"day": dt.date(2024, 1, 1)}, None, True),
            why=_CAST,
        ),
        rule(
            "a string and a date",
            "s < DATE '2024-01-01'",
            ({"s": "2023-01-01"}, None, True),
            why=_CAST,
        ),
        rule("a time and a number", "t > 5", ({"t": _NEW_YEAR}, None, ERROR), why=_TYPES),
    ),
}

#: The rules of terms, which only the engine and Spark answer.
TERMS: dict[str, tuple[Rule, ...]] = {
    section: tuple(rule(name, text, *cases, why="".join(why)) for name, text, cases, *why in rules)
    for section, rules in TERM_RULES.items()
}


def _called(
    names: str, call: str, event: Mapping[str, Any], answer: str, *fails: str
) -> list[Rule]:
    """What a row of ``function_rules.py`` says, of each name of the function."""
    first, *others = names.split(", ")
    assert first.removesuffix("]").lower() in call.lower(), call  # for [] the first half will do
    return [
        rule(
            f"{written} = {answer} of {event_text(event)}",
            f"({written}) IS NULL" if answer == "NULL" else f"({written}) <=> ({answer})",
            (event, True, *fails),
            why=FAILS if fails else "",
        )
        for written in (call, *(call.replace(first, other, 1) for other in others))
    ]


def function_rules() -> dict[str, tuple[Rule, ...]]:
    """Every function, operator and cast, by topic."""
    return {
        topic: tuple(made for row in rows for made in _called(*row))
        for topic, rows in FUNCTION_RULES.items()
    }


def names_of_functions() -> set[str]:
    """All that have a row, in lower case."""
    rows = itertools.chain(*FUNCTION_RULES.values())
    return {name.lower() for names, *_ in rows for name in names.split(", ")}


REFUSED: tuple[Refused, ...] = (
    Refused("a list of several kinds", "n IN (5, '6')", "values of one kind: `n IN (5, 6)`"),
    Refused("ends of different kinds", "n BETWEEN 5 AND '6'", "ends of one kind"),
    Refused("functions beyond the list", "hash(s) = 5", "[functions](functions.md)"),
    Refused("chance and the present moment", "rand() < n", "an attribute of the event"),
    Refused("other collations", "s COLLATE UNICODE = 'a'", "`UTF8_LCASE`, or `lower(s)`"),
    Refused("look-around", "s RLIKE 'a(?=b)'", "RE2 has none; use two predicates"),
    Refused("back references", r"s RLIKE '(a)\\1'", "RE2 has none"),
)

_TEN, _NINE = ({"n": 10},), ({"n": 9},)
_HOUR = dt.timedelta(hours=1)

JOINED: tuple[Joined, ...] = (
    Joined("EXISTS: some document", "EXISTS d (d.n > n)", ({"n": 1}, {"n": 10}), {"n": 9}, True),
    Joined("", "EXISTS d (d.n > n)", ({"n": 1}, {"n": 10}), {"n": 10}, False),
    Joined("FORALL: every document", "FORALL d (d.n < n)", ({"n": 1}, {"n": 10}), {"n": 11}, True),
    Joined("", "FORALL d (d.n < n)", ({"n": 1}, {"n": 10}), {"n": 10}, False),
    Joined("EXISTS without documents", "EXISTS d (TRUE)", (), {"n": 5}, False),
    Joined("FORALL without documents", "FORALL d (FALSE)", (), {"n": 5}, True),
    Joined("unknown is not satisfied", "EXISTS d (d.n != n)", ({},), {"n": 5}, False),
    Joined("", "FORALL d (d.n != n)", ({},), {"n": 5}, False),
    Joined("", "NOT EXISTS d (d.n = n)", ({},), {"n": 5}, True),
    Joined("the event lacks the attribute", "EXISTS d (d.n = n)", _TEN, {}, False),
    Joined("", "NOT EXISTS d (d.n = n)", _TEN, {}, True),
    Joined("kinds never mix", "EXISTS d (d.n != n)", ({"n": "10"},), {"n": 5}, False),
    Joined("different names", "EXISTS d (d.old = new)", ({"old": 1},), {"new": 1}, True),
    Joined("one document satisfies all", "EXISTS d (d.n = n AND d.s = s)",
           ({"n": 1, "s": "a"}, {"n": 2, "s": "b"}), {"n": 1, "s": "b"}, False),
    Joined("two quantifiers, two documents", "EXISTS d (d.n = n) AND EXISTS d (d.s = s)",
           ({"n": 1, "s": "a"}, {"n": 2, "s": "b"}), {"n": 1, "s": "b"}, True),
    Joined("constants on the document", "EXISTS d (d.n = n AND d.s LIKE 'a%')",
           ({"n": 1, "s": "ab"},), {"n": 1}, True),
    Joined("a bare attribute of it", "FORALL d (NOT d.sold)", ({"sold": False},), {}, True),
    Joined("two attributes of it", "EXISTS d (d.low < d.high)", ({"low": 1, "high": 2},), {}, True),
    Joined("a chain", "EXISTS d (d.low <= n < d.high)", ({"low": 1, "high": 5},), {"n": 1}, True),
    Joined("IN LAST n: the newest", "EXISTS d IN LAST 1 (d.n = n)", _TEN + _NINE, {"n": 9}, True),
    Joined("", "EXISTS d IN LAST 1 (d.n = n)", _TEN + _NINE, {"n": 10}, False),
    Joined("IN LAST of a time", "EXISTS d IN LAST '1 hour' OF t (TRUE)",
           ({"t": _NEW_YEAR},), {"t": _NEW_YEAR + _HOUR}, True),
    Joined("", "EXISTS d IN LAST '1 hour' OF t (TRUE)",
           ({"t": _NEW_YEAR},), {"t": _NEW_YEAR + _HOUR + _TICK}, False),
    Joined("an event without the time", "EXISTS d IN LAST '1 hour' OF t (TRUE)",
           ({"t": _NEW_YEAR},), {}, False),
    Joined("", "FORALL d IN LAST '1 hour' OF t (FALSE)", ({"t": _NEW_YEAR},), {}, True),
    Joined("what arrived before is before", "EXISTS d IN LAST '1 hour' OF t (TRUE)",
           ({"t": _NEW_YEAR + _HOUR},), {"t": _NEW_YEAR}, True),
    Joined("PER: the same group", "FORALL d PER s (d.n < n)",
           ({"s": "a", "n": 1}, {"s": "b", "n": 10}), {"s": "a", "n": 5}, True),
    Joined("the newest of the group", "EXISTS d IN LAST 1 PER s (d.n = n)",
           ({"s": "a", "n": 1}, {"s": "b", "n": 10}), {"s": "a", "n": 1}, True),
    Joined("an event without a group", "FORALL d PER s (FALSE)", ({"s": "a"}, {}), {}, True),
)  # fmt: skip

_VIPS = (7, 9)

LOOKED: tuple[Looked, ...] = (
    Looked("IN SET", "n IN SET vips", _VIPS, {"n": 7}, True),
    Looked("", "n IN SET vips", _VIPS, {"n": 8}, False),
    Looked("", "n IN SET vips", _VIPS, {"n": None}, None),
    Looked("", "n IN SET vips", _VIPS, {}, None),
    Looked("NOT IN SET", "n NOT IN SET vips", _VIPS, {"n": 8}, True),
    Looked("", "n NOT IN SET vips", _VIPS, {"n": 7}, False),
    Looked("", "n NOT IN SET vips", _VIPS, {}, None),
    Looked("a term", "lower(s) IN SET vips", ("ann",), {"s": "Ann"}, True),
    Looked("", "lower(s) IN SET vips", ("ann",), {"s": "Bob"}, False),
    Looked("inside a term", "coalesce(n IN SET vips, FALSE)", _VIPS, {}, False),
    Looked("", "CASE WHEN n IN SET vips THEN n ELSE 0 END = 7", _VIPS, {"n": 7}, True),
    Looked("is unknown", "(n IN SET vips) IS NULL", _VIPS, {}, True),
    Looked("", "(n IN SET vips) IS NULL", _VIPS, {"n": 8}, False),
    Looked("an empty set", "n IN SET vips", (), {"n": 7}, False),
    Looked("", "n NOT IN SET vips", (), {"n": 7}, True),
    Looked("", "n NOT IN SET vips", (), {}, None),
    Looked("numbers are compared by value", "x IN SET vips", _VIPS, {"x": 7.0}, True),
    Looked("", "d IN SET vips", _VIPS, {"d": Decimal("9.0000")}, True),
    Looked("", "d IN SET vips", (0.1,), {"d": Decimal("0.1")}, True),
    Looked("", "n IN SET vips", (2.0**53,), {"n": 2**53 + 1}, False),
    Looked("", "x IN SET vips", (Decimal("0.100000000000000005"),), {"x": 0.1}, False),
    Looked("minus zero", "x IN SET vips", (0,), {"x": -0.0}, True),
    Looked("NaN equals itself", "x IN SET vips", (math.nan,), {"x": math.nan}, True),
    Looked("", "x IN SET vips", _VIPS, {"x": math.nan}, False),
    Looked("infinity", "x IN SET vips", (math.inf,), {"x": math.inf}, True),
    Looked("", "x IN SET vips", (math.inf,), {"x": -math.inf}, False),
    Looked("times", "t IN SET vips", (dt.date(2024, 1, 1),), {"t": _NEW_YEAR}, True),
    Looked("", "t IN SET vips", (_NEW_YEAR,), {"t": _NEW_YEAR + _TICK}, False),
    Looked("", "day IN SET vips", (_NEW_YEAR,), {"day": dt.date(2024, 1, 1)}, True),
    Looked("booleans", "b IN SET vips", (True,), {"b": True}, True),
    Looked("", "b IN SET vips", (True,), {"b": False}, False),
    Looked("strings, by their bytes", "s IN SET vips", ("a", "b"), {"s": "a"}, True),
    Looked("", "s IN SET vips", ("a", "b"), {"s": "a "}, False),
    Looked("kinds never mix", "s IN SET vips", _VIPS, {"s": "7"}, None),
    Looked("", "s NOT IN SET vips", _VIPS, {"s": "7"}, None),
    Looked("a list has no kind", "l IN SET vips", _VIPS, {"l": [7]}, None),
    Looked("elements of a list", "exists(l, v -> v IN SET vips)", _VIPS, {"l": [1, 7]}, True),
    Looked("", "exists(l, v -> v IN SET vips)", _VIPS, {"l": [1]}, False),
    Looked("the name in back quotes", "n IN SET `vips`", _VIPS, {"n": 7}, True),
)

# ------------------------------------------------------------------ as Markdown

DOCUMENT = Path(__file__).parent.parent / "docs" / "language.md"
FUNCTIONS_DOCUMENT = DOCUMENT.with_name("functions.md")
MARKS: Final = ("<!-- rules: written by tests/semantics.py -->\n", "<!-- end of rules -->\n")


def tables() -> str:
    """Write all rules as Markdown tables, one per section."""
    return "\n".join([*_rule_tables(), *_joined_table(), *_looked_table(), *_refused_table(), ""])


def documented(page: Path = DOCUMENT) -> str:
    """Read the tables that a document shows."""
    return page.read_text(encoding="utf-8").partition(MARKS[0])[2].partition(MARKS[1])[0]


def _rule_tables() -> Iterator[str]:
    for section, rules in (RULES | TERMS).items():
        yield f"### {section}\n"
        yield "| rule | expression | event | answer | in Spark |"
        yield "|---|---|---|---|---|"
        for one in rules:
            name, expression = one.name, _code(one.expression)
            for case in one.cases:
                spark = f"**{_answer(case.spark)}**: {one.why}" if case.differs else "same"
                shown = [
                    name,
                    expression,
                    _code(event_text(case.event)),
                    _answer(case.answer),
                    spark,
                ]
                yield "| " + " | ".join(shown) + " |"
                name = expression = ""
        yield ""


def _joined_table() -> Iterator[str]:
    yield "### Quantifiers\n"
    yield "| rule | expression | documents, oldest first | event | answer |"
    yield "|---|---|---|---|---|"
    for one in JOINED:
        documents = _code(", ".join(map(event_text, one.documents))) if one.documents else "none"
        shown = [
            one.name,
            _code(one.expression),
            documents,
            _code(event_text(one.event)),
            _answer(one.answer),
        ]
        yield "| " + " | ".join(shown) + " |"
    yield ""


def _looked_table() -> Iterator[str]:
    yield "### Named sets\n"
    yield "| rule | expression | members of the set | event | answer |"
    yield "|---|---|---|---|---|"
    for one in LOOKED:
        members = _code(", ".join(map(_value, one.members))) if one.members else "none"
        shown = [
            one.name,
            _code(one.expression),
            members,
            _code(event_text(one.event)),
            _answer(one.answer),
        ]
        yield "| " + " | ".join(shown) + " |"
    yield ""


def _refused_table() -> Iterator[str]:
    yield "### Accepted by Spark, refused by Bittern\n"
    yield "| what | for example | instead |"
    yield "|---|---|---|"
    for one in REFUSED:
        yield f"| {one.name} | {_code(one.expression)} | {one.instead} |"


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}".replace("|", "\\|")


def _answer(answer: bool | str | None) -> str:  # noqa: FBT001
    return {True: "TRUE", False: "FALSE", None: "NULL", ERROR: "error"}[answer]


def event_text(event: Mapping[str, Any]) -> str:
    """Write an event the way the tables show it."""
    return "{" + ", ".join(f"{name}: {_value(value)}" for name, value in event.items()) + "}"


def _value(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool() | int():
            return str(value).lower()
        case str():
            escaped = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\u2028": "\\u2028"}
            return "'" + "".join(escaped.get(c, c) for c in value) + "'"
        case dt.datetime():
            written = str(value.replace(tzinfo=None))
            written = written.rstrip("0") if value.microsecond else written
            return f"{written}{'' if value.tzinfo is None else ' UTC'}"
        case Mapping():
            return event_text(value)
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
    return str(value)


def function_tables() -> str:
    """Write all functions as Markdown tables, one per topic, each sorted by name."""
    lines = [f"- [{topic}](#{topic.lower().replace(' ', '-')})" for topic in FUNCTION_RULES]
    for topic, rows in FUNCTION_RULES.items():
        lines += ["", f"## {topic}", ""]
        lines += ["| function | example | event | answer | in Spark |", "|---|---|---|---|---|"]
        before = ""
        for names, call, event, answer, *fails in sorted(rows, key=_place):
            shown = [
                "" if names == before else ", ".join(map(_code, names.split(", "))),
                _code(call),
                _code(event_text(event)),
                _code(answer),
                "**fails**" if fails else "same",
            ]
            lines.append("| " + " | ".join(shown) + " |")
            before = names
    return "\n".join([*lines, ""])


def _place(row: tuple[Any, ...]) -> tuple[bool, str]:
    """Where a row stands: signs first, and upper and lower case together."""
    return row[0][0].isalpha(), row[0].lower()


def _written(text: str, marks: tuple[str, str], between: str) -> str:
    before, _, rest = text.partition(marks[0])
    return before + marks[0] + between + marks[1] + rest.partition(marks[1])[2]


if __name__ == "__main__":
    for document, between in ((DOCUMENT, tables()), (FUNCTIONS_DOCUMENT, function_tables())):
        page = document.read_text(encoding="utf-8")
        document.write_text(_written(page, MARKS, between), encoding="utf-8")
