"""The rules of terms, as data (``semantics.py`` has the others): what is computed, and compared.

Answers are Spark's own, so the plain evaluator of ``oracle.py`` is not asked: each rule runs
against the engine, with events as mappings and as columns, and against Spark.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

FAILS = "Spark in ANSI mode fails the query; here the term is NULL, and the event is listed"
_NOON = dt.datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=dt.UTC)
_LEAP = dt.date(2024, 2, 29)

#: By section: name, expression, cases (event, answer[, Spark's answer]), why Spark differs.
TERM_RULES: dict[str, tuple[tuple[Any, ...], ...]] = {
    "Two terms": (
        (
            "two attributes",
            "n < x",
            [({"n": 1, "x": 1.5}, True), ({"n": 2, "x": 1.5}, False), ({"n": 1}, None)],
        ),
        (
            "equal attributes",
            "n = d",
            [({"n": 2, "d": Decimal("2.0")}, True), ({"n": 2, "d": Decimal("2.1")}, False)],
        ),
        ("NaN is above all, here too", "x > f", [({"x": float("nan"), "f": 1.0}, True)]),
        (
            "a text beside a number is cast",
            "s = n",
            [
                ({"s": "5", "n": 5}, True),
                ({"s": "6", "n": 5}, False),
                ({"s": "x", "n": 5}, None, "error"),
            ],
            FAILS,
        ),
        (
            "a term and an attribute",
            "n * 2 = x",
            [({"n": 2, "x": 4.0}, True), ({"n": 2, "x": 5.0}, False)],
        ),
        (
            "conditions are compared",
            "(n = 5) = b",
            [
                ({"n": 5, "b": True}, True),
                ({"n": 4, "b": False}, True),
                ({"n": 4, "b": True}, False),
                ({"n": 5}, None),
            ],
        ),
        (
            "between attributes",
            "n BETWEEN x AND f",
            [
                ({"n": 2, "x": 1.0, "f": 3.0}, True),
                ({"n": 4, "x": 1.0, "f": 3.0}, False),
                ({"n": 4, "f": 3.0}, False),
            ],
        ),
        (
            "a list with attributes",
            "n IN (1, x)",
            [({"n": 2, "x": 2.0}, True), ({"n": 1}, True), ({"n": 3}, None)],
        ),
    ),
    "Never unknown": (
        ("null-safe equality", "n <=> 5", [({"n": 5}, True), ({"n": 6}, False), ({}, False)]),
        ("with NULL", "n <=> NULL", [({"n": 5}, False), ({}, True)]),
        (
            "of two attributes",
            "n <=> x",
            [({"n": 1, "x": 1.0}, True), ({"n": 1}, False), ({}, True)],
        ),
        (
            "distinct from",
            "n IS DISTINCT FROM 5",
            [({"n": 5}, False), ({"n": 6}, True), ({}, True)],
        ),
        ("is true", "b IS TRUE", [({"b": True}, True), ({"b": False}, False), ({}, False)]),
        ("is not false", "(n > 5) IS NOT FALSE", [({"n": 6}, True), ({"n": 5}, False), ({}, True)]),
        ("is unknown", "(n > 5) IS UNKNOWN", [({"n": 6}, False), ({}, True)]),
    ),
    "Arithmetic": (
        ("sum", "n + 1 = 6", [({"n": 5}, True), ({"n": 6}, False), ({}, None)]),
        ("a sign or a difference", "n -1 = 4", [({"n": 5}, True), ({"n": 6}, False)]),
        ("product of a float", "x * 3 > 1", [({"x": 0.5}, True), ({"x": 0.1}, False)]),
        ("a quotient is no integer", "n / 2 = 2.5", [({"n": 5}, True), ({"n": 4}, False)]),
        ("an integer quotient", "n DIV 2 = 2", [({"n": 5}, True), ({"n": 6}, False)]),
        ("the remainder has the sign of n", "n % 3 = -2", [({"n": -5}, True), ({"n": 5}, False)]),
        ("a remainder above zero", "pmod(n, 3) = 1", [({"n": -5}, True), ({"n": 5}, False)]),
        (
            "decimals stay exact",
            "d + 0.1 = 0.3",
            [({"d": Decimal("0.2")}, True), ({"d": Decimal("0.3")}, False)],
        ),
        ("absolute value", "abs(n) = 5", [({"n": -5}, True), ({"n": 4}, False)]),
        (
            "halves round away from zero",
            "round(x) = -3",
            [({"x": -2.5}, True), ({"x": -2.4}, False)],
        ),
        (
            "floor and ceiling",
            "floor(x) = -3 AND ceil(x) = -2",
            [({"x": -2.5}, True), ({"x": -3.5}, False)],
        ),
        (
            "greatest skips NULL",
            "greatest(n, x) = 5",
            [({"n": 5}, True), ({"n": 5, "x": 6.0}, False), ({}, None)],
        ),
        ("a power", "power(n, 2) = 25", [({"n": -5}, True), ({"n": 4}, False)]),
        ("bits", "n & 4 = 4", [({"n": 5}, True), ({"n": 3}, False)]),
        ("division by zero", "1 / n = 1", [({"n": 1}, True), ({"n": 0}, None, "error")], FAILS),
        ("try_divide agrees", "try_divide(1, n) IS NULL", [({"n": 0}, True), ({"n": 1}, False)]),
        ("overflow", "n + 9223372036854775807 = 0", [({"n": 1}, None, "error")], FAILS),
    ),
    "Texts": (
        ("lower case", "lower(s) = 'äb'", [({"s": "ÄB"}, True), ({"s": "AB"}, False), ({}, None)]),
        ("upper case may be longer", "upper(s) = 'SS'", [({"s": "ß"}, True), ({"s": "s"}, False)]),
        ("length counts characters", "length(s) = 2", [({"s": "a🦆"}, True), ({"s": "a"}, False)]),
        (
            "spaces are trimmed, tabs are not",
            "trim(s) = 'a'",
            [({"s": "  a "}, True), ({"s": "\ta"}, False)],
        ),
        (
            "trimmed characters",
            "TRIM(LEADING 'x' FROM s) = 'ax'",
            [({"s": "xxax"}, True), ({"s": "ax"}, True), ({"s": "a"}, False)],
        ),
        (
            "a part, from 1 on",
            "substring(s, 2, 2) = 'bc'",
            [({"s": "abcd"}, True), ({"s": "ab"}, False)],
        ),
        (
            "counted from the end",
            "substring(s FROM -2) = 'cd'",
            [({"s": "abcd"}, True), ({"s": "abc"}, False)],
        ),
        ("joined texts", "s || '-' || n = 'a-5'", [({"s": "a", "n": 5}, True), ({"s": "a"}, None)]),
        ("replaced", "replace(s, 'a', '') = 'b'", [({"s": "aba"}, True), ({"s": "bb"}, False)]),
        ("a position", "instr(s, 'b') = 2", [({"s": "abb"}, True), ({"s": "a"}, False)]),
        ("contains", "contains(s, '%')", [({"s": "5%"}, True), ({"s": "5"}, False), ({}, None)]),
        (
            "starts and ends",
            "startswith(s, 'a_') AND endswith(s, 'z')",
            [({"s": "a_z"}, True), ({"s": "abz"}, False)],
        ),
        (
            "a piece between separators",
            "split_part(s, ',', 2) = 'b'",
            [({"s": "a,b"}, True), ({"s": "a"}, False)],
        ),
        ("padded", "lpad(s, 3, '0') = '007'", [({"s": "7"}, True), ({"s": "77"}, False)]),
        (
            "an extracted group",
            "regexp_extract(s, '([0-9]+)-', 1) = '12'",
            [({"s": "a12-"}, True), ({"s": "a"}, False)],
        ),
        ("a pattern from an attribute", "s LIKE concat(s, '%')", [({"s": "a"}, True), ({}, None)]),
        ("adjacent strings are one", "s = 'a' 'b'", [({"s": "ab"}, True), ({"s": "a"}, False)]),
        ("a number is a text of digits", "length(n) = 2", [({"n": -5}, True), ({"n": 5}, False)]),
    ),
    "Patterns without case": (
        ("ILIKE", "s ILIKE 'Ab%'", [({"s": "aBc"}, True), ({"s": "b"}, False), ({}, None)]),
        (
            "any of several patterns",
            "s LIKE ANY ('a%', '%z')",
            [({"s": "xz"}, True), ({"s": "x"}, False)],
        ),
        (
            "all of several patterns",
            "s LIKE ALL ('a%', '%z')",
            [({"s": "az"}, True), ({"s": "a"}, False)],
        ),
        (
            "any of several, without case",
            "s ILIKE ANY ('A%', '%Z')",
            [({"s": "xz"}, True), ({"s": "x"}, False)],
        ),
        (
            "not like one of them",
            "s NOT LIKE ANY ('a%', '%z')",
            [({"s": "a"}, True), ({"s": "az"}, False)],
        ),
        (
            "a collation that ignores case",
            "s COLLATE UTF8_LCASE = 'Ab'",
            [({"s": "aB"}, True), ({"s": "b"}, False)],
        ),
    ),
    "Choices": (
        (
            "the first that is not NULL",
            "coalesce(n, x, 0) = 0",
            [({}, True), ({"n": 5}, False), ({"x": 0.0}, True)],
        ),
        (
            "CASE",
            "CASE WHEN n > 5 THEN s WHEN n > 0 THEN 'low' END = 'low'",
            [({"n": 1, "s": "x"}, True), ({"n": 6, "s": "x"}, False), ({"n": 0}, None)],
        ),
        (
            "CASE of a value",
            "CASE n WHEN 1 THEN TRUE WHEN 2 THEN FALSE ELSE b END",
            [({"n": 1}, True), ({"n": 2}, False), ({"n": 3, "b": True}, True), ({"n": 3}, None)],
        ),
        ("if", "if(n > 5, n, -n) = 6", [({"n": 6}, True), ({"n": -6}, True), ({"n": 5}, False)]),
        (
            "what is not chosen is not computed",
            "CASE WHEN n = 0 THEN 0 ELSE 10 / n END = 0",
            [({"n": 0}, True), ({"n": 5}, False)],
        ),
        (
            "NULL for a value",
            "nullif(n, 0) IS NULL",
            [({"n": 0}, True), ({"n": 1}, False), ({}, True)],
        ),
        (
            "is not a number",
            "isnan(x)",
            [({"x": float("nan")}, True), ({"x": 1.0}, False), ({}, False)],
        ),
    ),
    "Casts": (
        (
            "a text as a number",
            "CAST(s AS INT) = 5",
            [({"s": " 5 "}, True), ({"s": "6"}, False), ({"s": "x"}, None, "error")],
            FAILS,
        ),
        ("or not at all", "TRY_CAST(s AS INT) IS NULL", [({"s": "x"}, True), ({"s": "5"}, False)]),
        ("a short form", "s::double > 1.5", [({"s": "1e1"}, True), ({"s": "1"}, False)]),
        (
            "a number as text",
            "CAST(n AS STRING) LIKE '1%'",
            [({"n": 12}, True), ({"n": 21}, False)],
        ),
        ("a float is cut", "CAST(x AS INT) = -2", [({"x": -2.9}, True), ({"x": -3.0}, False)]),
        (
            "a text as a time",
            "CAST(s AS DATE) = DATE '2024-02-29'",
            [({"s": "2024-2-29"}, True), ({"s": "2024-02-28"}, False)],
        ),
        (
            "a truth from a text",
            "CAST(s AS BOOLEAN)",
            [({"s": "yes"}, True), ({"s": "off"}, None, "error"), ({"s": "no"}, False)],
            FAILS,
        ),
    ),
    "Moments": (
        (
            "fields of a time",
            "year(t) = 2024 AND month(t) = 2 AND day(t) = 29 AND hour(t) = 12",
            [({"t": _NOON}, True), ({"t": _NOON + dt.timedelta(days=1)}, False)],
        ),
        ("a field by name", "EXTRACT(quarter FROM t) = 1", [({"t": _NOON}, True)]),
        ("Sunday is 1", "dayofweek(t) = 5", [({"t": _NOON}, True)]),
        (
            "an interval before",
            "t - INTERVAL '1' DAY < TIMESTAMP '2024-02-28 12:30:16'",
            [({"t": _NOON}, True), ({"t": _NOON + dt.timedelta(seconds=1)}, False)],
        ),
        (
            "a month later",
            "day + INTERVAL 1 MONTH = DATE '2024-03-29'",
            [({"day": _LEAP}, True), ({"day": dt.date(2024, 2, 28)}, False)],
        ),
        (
            "cut to the hour",
            "date_trunc('HOUR', t) = TIMESTAMP '2024-02-29 12:00:00'",
            [({"t": _NOON}, True)],
        ),
        (
            "days between",
            "datediff(day, DATE '2024-02-01') = 28",
            [({"day": _LEAP}, True), ({"day": dt.date(2024, 3, 1)}, False)],
        ),
        ("seconds since 1970", "unix_timestamp(t) = 1709209815", [({"t": _NOON}, True)]),
        (
            "a time from a text",
            "to_date(s, 'dd.MM.yyyy') = DATE '2024-02-29'",
            [({"s": "29.02.2024"}, True), ({"s": "28.02.2024"}, False)],
        ),
        ("a short date", "day = DATE '2024-2-29'", [({"day": _LEAP}, True)]),
        (
            "a zone by name",
            "t < TIMESTAMP '2024-02-29 08:00:00 America/New_York'",
            [({"t": _NOON}, True), ({"t": _NOON + dt.timedelta(hours=1)}, False)],
        ),
    ),
    "Arrays and maps": (
        (
            "an array holds",
            "array_contains(l, 5)",
            [({"l": [4, 5]}, True), ({"l": [4]}, False), ({}, None)],
        ),
        (
            "arrays overlap",
            "arrays_overlap(l, array(1, 5))",
            [({"l": [4, 5]}, True), ({"l": [4]}, False)],
        ),
        ("size", "size(l) > 1", [({"l": [4, 5]}, True), ({"l": []}, False), ({}, None)]),
        ("an element, from 0 on", "l[1] = 5", [({"l": [4, 5]}, True), ({"l": [5, 4]}, False)]),
        (
            "an element, from 1 on",
            "element_at(l, -1) = 5",
            [({"l": [4, 5]}, True), ({"l": [5, 4]}, False)],
        ),
        (
            "some element",
            "exists(l, v -> v > 4)",
            [({"l": [4, 5]}, True), ({"l": [4]}, False), ({"l": []}, False), ({}, None)],
        ),
        (
            "every element",
            "forall(l, v -> v > 4)",
            [({"l": [4, 5]}, False), ({"l": [5]}, True), ({"l": []}, True)],
        ),
        (
            "a field of some element",
            "exists(ls, v -> v.i = 5)",
            [({"ls": [{"i": 4}, {"i": 5}]}, True), ({"ls": [{"i": 4}]}, False)],
        ),
        (
            "a key of a map, in brackets",
            "mp['k'] = 1",
            [({"mp": {"k": 1}}, True), ({"mp": {"k": 2}}, False), ({"mp": {}}, None)],
        ),
        (
            "a map has a key",
            "map_contains_key(mp, 'k')",
            [({"mp": {"k": 1}}, True), ({"mp": {}}, False), ({}, None)],
        ),
    ),
    "Constants": (
        ("computed when subscribed", "n = 2 + 3", [({"n": 5}, True), ({"n": 4}, False)]),
        ("both sides constant", "1.0 < 1.1", [({}, True)]),
        (
            "suffixes of types",
            "n = 5L AND x < 1.5D",
            [({"n": 5, "x": 1.0}, True), ({"n": 5, "x": 2.0}, False)],
        ),
        ("parentheses", "(n) = (5)", [({"n": 5}, True), ({"n": 4}, False)]),
        ("comments", "n = 5 /* the answer */", [({"n": 5}, True), ({"n": 4}, False)]),
        ("not less", "n !< 5", [({"n": 5}, True), ({"n": 4}, False)]),
        ("not, as a sign", "!b", [({"b": False}, True), ({"b": True}, False), ({}, None)]),
        ("long decimals", "n < 9223372036854775808", [({"n": 9223372036854775807}, True)]),
        ("not more", "n !> 5", [({"n": 5}, True), ({"n": 6}, False)]),
        ("comments in comments", "n = /* a /* b */ */ 5", [({"n": 5}, True), ({"n": 4}, False)]),
        ("binary", "bin = X'6162'", [({"bin": b"ab"}, True), ({"bin": b"a"}, False)]),
        ("an odd number of digits", "bin = X'1AF'", [({"bin": b"\x01\xaf"}, True)]),
        (
            "bytes that are no text",
            "CAST(bin AS STRING) = 'a'",
            [({"bin": b"\xff"}, None, False), ({"bin": b"a"}, True)],
            "Spark makes a string of any bytes; here the term is NULL, and the event is listed",
        ),
        (
            "a text beside binary is its bytes",
            "bin = s",
            [({"bin": b"ab", "s": "ab"}, True), ({"bin": b"a", "s": "b"}, False), ({}, None)],
        ),
    ),
}
