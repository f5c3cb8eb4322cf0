"""Functions of strings: the values and types that Spark gives, over columns of edge cases.

Spark evaluates a whole batch of expressions in one query. What makes it fail goes alone, and has
to fail here, too.
"""

from __future__ import annotations

import itertools
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bittern.language.scalars import read_term
from bittern.terms.scope import evaluate

pytestmark = pytest.mark.spark

STRINGS = [
    None,
    "",
    " ",
    "a",
    "abc",
    "abcabc",
    "aaa",
    "a.b.c",
    "a,,b",
    "  a b\t ",
    "hELLO wORLD  ßtraße ΑΣ-ΑΣΒ",
    "ΑΣ İ ǆ ŉ ǰ ﬁ \ua7dc\U00010d50",
    "a😀b😀c",
    "e\u0301a\u0302é",
    "a\nb\r\nc\u2028",
    "100%_\\x",
    "key=value; k2=v2",
    "Robert Tymczak",
    "0aF",
    "\x00a\x7f\x80",
]
PARTS = [None, "", "a", "b", "aa", "😀", ".", "é", "abcabcabc", " ", ","]
NUMBERS = [None, -(2**31), -3, -1, 0, 1, 2, 3, 7, 2**31 - 1]
SMALL = [None, -1, 0, 1, 3, 9]
BYTES = [None, b"", b"\x00", b"abc", b"\xff\xfe\x80", "é😀".encode(), b"a" * 58]
PATTERNS = [
    None,
    "",
    "%",
    "_",
    "a%",
    "%c",
    "%b%",
    "a_b%",
    "_%",
    "%%a%%",
    "%\\%\\_\\\\%",
    "%.%",
    "A%C",
    "%ß%",
    "i\u0307%",
    "__a_",
]

#: Of s (every string), t (every part), n (every number).
OF_PAIRS = """
trim(t, s) ; ltrim(t, s) ; rtrim(t, s) ; btrim(s, t) ; replace(s, t) ; replace(s, t, 'é-') ;
replace(s, 'b', t) ; replace(s, 'abc', '') ; replace('abcab', t, s) ; replace(s, '', 'x') ;
instr(s, t) ; instr('a😀bé', t) ; locate(t, s) ; position(t, s) ; locate('c', s) ; instr(s, '😀') ;
startswith(s, t) ; endswith(s, t) ; contains(s, t) ; startswith(s, 'a') ; endswith(s, 'c') ;
contains(s, 'b') ; startswith('abc', t) ; contains('abc', t) ; endswith(s, '') ; contains(s, NULL) ;
concat(s, t) ; s || t || s ; concat_ws(t, s, NULL, 'x', t) ; concat_ws(',', s, t) ; concat_ws(t) ;
concat('x', s) ; concat(s) ;
translate(s, t, 'xy') ; translate(s, 'abc', t) ; translate(s, 'aab', 'x😀') ; find_in_set(t, s) ;
find_in_set(s, 'abc,,a,é') ; levenshtein(s, t) ; levenshtein(s, t, 3) ; levenshtein('abd', s) ;
overlay(s, t, 2) ; overlay(s, t, 0) ; s LIKE t ; split_part(s, t, 1) ; substring_index(s, t, 2) ;
s = t ; collate(s, 'UTF8_LCASE') = collate(t, 'UTF8_LCASE') ; collate(s, 'UTF8_BINARY')
"""
OF_NUMBERS = """
substr(s, n) ; substring(s, n, m) ; substr(s, m, n) ; substr(s, 2) ; substr(s, -2, 1) ; left(s, n) ;
right(s, n) ; substr('a😀bé', n) ; left(s, 2) ; right('a😀bé', n) ; substr(s, NULL) ;
substring_index(s, 'a', m) ; substring_index('aaa', 'aa', n) ; substring_index(s, '.', -2) ;
locate('b', s, n) ; locate('', s, n) ; locate('a', 'banana', n) ; repeat(s, m) ; repeat('ab', m) ;
space(m) ; lpad(s, m) ; rpad(s, m) ; lpad(s, m, 'é😀') ; rpad(s, m, 'é😀x') ; lpad('x', m, s) ;
rpad(s, 5, '') ; lpad(s, 4, '0') ; overlay(s, 'é', n) ; overlay(s, 'XY', n, m) ;
overlay(s, '', 2, m) ; overlay('abc', s, m, n) ;
levenshtein(s, 'abc', coalesce(n, 1)) ; chr(n) ; char(m) ;
hex(n) ; split_part(s, 'b', 2) ; split_part(s, '', -1) ; regexp_extract(s, '(b)(c)?', 2) ;
regexp_instr(s, 'b', n) ; overlay(s PLACING 'x' FROM m FOR 1) ; substring(s FROM 2 FOR 3)
"""
OF_ONE = r"""
lower(s) ; upper(s) ; lcase(s) ; ucase(s) ; initcap(s) ; trim(s) ; ltrim(s) ; rtrim(s) ; btrim(s) ;
TRIM(BOTH 'a' FROM s) ; TRIM(LEADING 'ab' FROM s) ; TRIM(TRAILING 'cé' FROM s) ; length(s) ;
len(s) ;
char_length(s) ; character_length(s) ; octet_length(s) ; bit_length(s) ; reverse(s) ; ascii(s) ;
hex(s) ; unhex(s) ; unhex(hex(s)) ; base64(s) ; soundex(s) ; is_valid_utf8(s) ; lower(NULL) ;
trim('', s) ; collate(s, 'utf8_lcase') = 'ας' ; regexp_like(s, 'b[a-c]') ; s RLIKE '^a' ;
s RLIKE '(?i)HELLO' ; s REGEXP NULL ; regexp_extract(s, '([a-z]+)=([a-z]+)') ;
regexp_extract(s, '([a-z]+)=([a-z]+)', 2) ; regexp_extract(s, 'a|b', 0) ;
regexp_extract(s, 'b', NULL) ;
regexp_replace(s, '[abc]', '<$0>') ; regexp_replace(s, '(a)|(b)', '[$2$1]') ;
regexp_replace(s, 'b+', '-', 2) ; regexp_replace(s, 'a', '\\$\\\\') ;
regexp_replace(s, '(a)', '$12') ;
regexp_replace(s, '^', 'X', 3) ; regexp_replace(s, 'b', s) ; regexp_replace(s, 'q', '$7') ;
regexp_count(s, 'a') ; regexp_count(s, '[a-z]+') ; regexp_instr(s, '[bc]') ; regexp_instr(s, '') ;
regexp_substr(s, 'b[a-c]') ; regexp_substr(s, 'q*') ; regexp_substr(s, NULL) ;
s LIKE 'a%' ; s LIKE '%\\%\\_\\\\%' ; s ILIKE '%HELLO%ΑΣ%' ; s LIKE 'a/_%' ESCAPE '/' ;
s ILIKE NULL ; s LIKE '_😀%' ; s ILIKE 'A_C' ; s NOT LIKE '%b%' ; s LIKE 'a%%bc' ESCAPE '%' ;
length(NULL) ; reverse(NULL) ; concat(NULL, s) ; substr(NULL, 1) ; hex(NULL) ; repeat(NULL, 2) ;
md5(s) ; sha(s) ; sha1(s) ; sha2(s, 256) ; sha2(s, 0) ; sha2(s, 224) ; sha2(s, 384) ; sha2(s, 512) ;
sha2(s, 1) ; sha2(s, NULL) ; crc32(s) ; md5(NULL) ; luhn_check(s) ; luhn_check('79927398713') ;
luhn_check('79927398714') ; luhn_check('') ; luhn_check('٧٩٩٢٧٣٩٨٧١٣') ; luhn_check(NULL) ;
concat() ; unbase64(base64(s)) ; instr(NULL, s) ; replace(s, NULL) ; translate(s, NULL, s)
"""
OF_BYTES = """
length(b) ; octet_length(b) ; bit_length(b) ; substr(b, 2) ; substr(b, n, m) ; left(b, 2) ;
reverse(b) ; concat(b, b) ; b || X'00' ; hex(b) ; base64(b) ; unbase64(base64(b)) ;
lpad(b, m) ; rpad(b, m) ; lpad(b, 5, X'0102') ; rpad(b, 3, b) ; overlay(b, X'ff', 2) ;
overlay(b, b, n) ; startswith(b, X'61') ; endswith(b, b) ; contains(b, X'62') ;
md5(b) ; sha1(b) ; sha2(b, m) ; crc32(b) ;
startswith(b, substr(b, 1, m)) ; contains(b, substr(b, 2)) ; is_valid_utf8(b) ; rpad(b, 4, X'')
"""
OF_PATTERNS = "s LIKE p ; s ILIKE p ; s NOT LIKE p ; 'aBc' ILIKE p ; s LIKE p ESCAPE '#'"

#: Values that are no strings: as text, and as numbers of characters.
OF_OTHERS = """
length(i) ; upper(g) ; lower(x) ; concat(i, d, x, y, z, c) ; i || '-' || c ; reverse(c) ; trim(i) ;
concat_ws(',', i, x, y, b) ; substr(z, 1, 10) ; left(y, i) ; right(c, 2) ; repeat(x, w) ;
replace(i, 1, x) ; instr(c, 1) ; startswith(y, i) ; contains(i, '1') ; split_part(c, '.', 1) ;
lpad(i, 5, 0) ; rpad(b, 4, i) ; translate(i, 1, 2) ; ascii(d) ; hex(i) ; hex(c) ; hex(x) ; hex(y) ;
unhex(i) ; levenshtein(i, d) ; i LIKE '1%' ; x ILIKE 'T%' ; c RLIKE '[.]5' ; c LIKE i ;
regexp_replace(i, 1, d) ; regexp_extract(y, '([0-9]+)-', 1) ; lower(b) ; length(b) ; right(b, 1) ;
b || 'x' ; startswith(b, 'a') ; replace(b, 'a', 'c') ; trim(b) ; repeat(b, 2) ; instr(b, 'a') ;
unbase64(b) ; find_in_set(i, '1,2') ; octet_length(c) ; bit_length(x) ; is_valid_utf8(i) ;
repeat('a', c) ; substr('abcdef', d) ; substr('abcdef', '2', '3') ; left('abc', w) ; chr(c) ;
space(w) ; chr('65') ; substring_index('a.b.c', '.', c) ; locate('b', 'abcb', d) ;
overlay(i, x, w) ; initcap(y) ; concat(NULL, b) ; concat(b, NULL) ;
lpad('a', w, b) ; base64(upper(x)) ; split_part(y, '-', w) ; initcap(lower(g))
"""
OTHERS = {
    "i": pa.array([None, 1, -12, 0, 2**31 - 1], pa.int32()),
    "w": pa.array([None, 1, 2, -1, 3], pa.int64()),
    "d": pa.array([None, 1.0, 2.75, -0.0, 1e7]),
    "g": pa.array([None, float("nan"), float("-inf"), 1e-5, 0.1], pa.float32()),
    "c": pa.array([None, Decimal("1.50"), Decimal("2.99"), Decimal("-0.50"), Decimal("9.00")]),
    "x": pa.array([None, True, False, True, False]),
    "y": pa.array([None, date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1969, 7, 20)]),
    "z": pa.array(
        [None, *[datetime(2024, 2, 29, 1, 2, 3, 400_000)] * 4], pa.timestamp("us", "UTC")
    ),
    "b": pa.array([None, b"abc", b"YWJj", "é😀".encode(), b""], pa.binary()),
}

#: Fail in Spark. The first string of each is in a column, so that Spark does not fold it.
FAILING = [
    ("split_part(s, 'b', 0)", "abc"),
    ("unbase64(s)", "Y"),
    ("unbase64(s)", "Y!"),
    ("unbase64(s)", "YW="),
    ("unbase64(s)", "YW=J"),
    ("unbase64(s)", "YW= ="),
    ("unbase64(s)", "="),
    ("unbase64(s)", "YWJj="),
    ("unbase64(s)", "YW==Y"),
    ("unbase64(s)", "YWJjZ==="),
    ("s LIKE 'a/b' ESCAPE '/'", "ab"),
    ("s LIKE 'ab/' ESCAPE '/'", "ab"),
    ("'ab' LIKE s", "a\\b"),
    ("regexp_extract(s, 'a')", "a"),
    ("regexp_extract(s, '(a)', 2)", "a"),
    ("regexp_extract(s, '(a)', -1)", "a"),
    ("regexp_replace('a', '(a)', s)", "$2"),
    ("regexp_replace('a', '(a)', s)", "$"),
    ("regexp_replace('a', '(a)', s)", "x\\"),
    ("regexp_replace('a', '(a)', s)", "${n}"),
    ("repeat('a', s)", "x"),
    ("left('abc', s)", "3000000000"),
    ("substr('abc', cast(s AS DOUBLE))", "3e9"),
]
#: Look as if they would fail, and do not.
PASSING = [
    ("split_part(s, 'b', 0)", None),
    ("unbase64(s)", "YW Jj!é\r\n"),
    ("unbase64(s)", "YW"),
    ("unbase64(s)", "YWJ="),
    ("unbase64(s)", "YW==!!="),
    ("unbase64(s)", "é"),
    ("s LIKE 'ab/' ESCAPE '/'", None),
    ("regexp_extract(s, '(a)', 2)", "b"),
    ("regexp_replace('b', '(a)', s)", "$2"),
    ("regexp_replace('ab', '(?<n>a)', s)", "<${n}${n}>"),
    ("regexp_replace('ab', '(a)', s)", "$10\\x"),
    ("regexp_replace(s, 'a*', '-')", "baac"),
    ("regexp_replace(s, '|a', '-', 2)", "baac"),
    ("regexp_replace(s, '', 'é')", "éa"),
    ("regexp_count(s, 'a*')", "baacé"),
    ("concat_ws('-', l, s)", "x"),
    ("concat_ws('-', s, l)", None),
    ("concat_ws(s, l)", None),
    ("concat_ws(s, l, 'z', l)", "é"),
]


def texts_of(batch: str) -> list[str]:
    return [text.strip() for text in batch.split(" ;") for text in text.split(" ;\n")]


def crossed(**columns: list[Any]) -> dict[str, pa.Array]:
    """Every value with every other."""
    types = {"s": pa.string(), "t": pa.string(), "p": pa.string(), "b": pa.binary()}
    rows = list(itertools.product(*columns.values()))
    return {
        name: pa.array([row[place] for row in rows], types.get(name, pa.int32()))
        for place, name in enumerate(columns)
    }


def plain(column: Any) -> pa.Array:
    found = column.combine_chunks()
    if pa.types.is_large_string(found.type):
        return found.cast(pa.string())
    return found.cast(pa.binary()) if pa.types.is_large_binary(found.type) else found


def differences(spark: Any, columns: dict[str, pa.Array], texts: list[str]) -> list[Any]:
    frame = spark.createDataFrame(pa.table(columns))
    theirs = frame.selectExpr(*(f"{text} AS c{at}" for at, text in enumerate(texts))).toArrow()
    found = []
    count = len(next(iter(columns.values())))
    for at, text in enumerate(texts):
        ours, failures = evaluate(read_term(text), columns, count)
        spark_s = plain(theirs.column(at))
        ours.validate(full=True)
        if failures:
            found.append((text, failures[0].reason))
        if ours.type != spark_s.type:
            found.append((text, ours.type, spark_s.type))
        for row, (own, their) in enumerate(zip(ours.to_pylist(), spark_s.to_pylist(), strict=True)):
            if own != their:
                values = {name: column[row].as_py() for name, column in columns.items()}
                found.append((text, values, f"ours {own!r}", f"Spark {their!r}"))
                break
    return found


@pytest.mark.parametrize(
    ("batch", "columns"),
    [
        (OF_PAIRS, {"s": STRINGS, "t": PARTS}),
        (OF_NUMBERS, {"s": STRINGS, "n": NUMBERS, "m": SMALL}),
        (OF_ONE, {"s": STRINGS}),
        (OF_BYTES, {"b": BYTES, "n": NUMBERS, "m": SMALL}),
        (OF_PATTERNS, {"s": STRINGS, "p": PATTERNS}),
    ],
    ids=["pairs", "numbers", "one", "bytes", "patterns"],
)
def test_values_and_types_are_spark_s(
    spark: Any, batch: str, columns: dict[str, list[Any]]
) -> None:
    wrong = differences(spark, crossed(**columns), texts_of(batch))
    assert not wrong, "\n".join(map(str, wrong))


def test_arguments_are_cast_as_in_spark(spark: Any) -> None:
    wrong = differences(spark, OTHERS, texts_of(OF_OTHERS))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize(("text", "value"), FAILING)
def test_what_fails_in_spark_fails_here(spark: Any, text: str, value: str) -> None:
    columns = {"s": pa.array([value], pa.string())}
    with pytest.raises(Exception, match=r"."):
        spark.createDataFrame(pa.table(columns)).selectExpr(text).collect()
    ours, failures = evaluate(read_term(text), columns, 1)
    assert ours.to_pylist() == [None]
    assert [failure.rows.tolist() for failure in failures] == [[0]]


def test_what_looks_as_if_it_failed(spark: Any) -> None:
    wrong = []
    for text, value in PASSING:
        lists = pa.array([["a", None, "b"], [], None, [None]], pa.list_(pa.string()))
        columns = {"s": pa.array([value] * 4, pa.string()), "l": lists}
        wrong += differences(spark, columns, [text])
    assert not wrong, "\n".join(map(str, wrong))


def test_every_letter_changes_case_as_in_spark(spark: Any) -> None:
    letters = [chr(code) for code in range(0x20000) if chr(code).isalpha() or code > 0x16E00]
    cased = [letter for letter in letters if not 0x3400 <= ord(letter) < 0xA000]
    columns = {"s": pa.array([letter for letter in cased if not 0xD800 <= ord(letter) < 0xE000])}
    wrong = differences(spark, columns, ["lower(s)", "upper(s)", "initcap(s)"])
    assert not wrong, "\n".join(map(str, wrong))
