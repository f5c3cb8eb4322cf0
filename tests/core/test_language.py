"""The language room: what is read, what is refused and where, and that nothing changes meaning."""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
import re
import string
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from bittern.errors import ExpressionError, LimitError
from bittern.language import limits
from bittern.language.literals import (
    attribute_name,
    attribute_parts,
    kind_of,
    number_value,
    string_value,
    time_value,
)
from bittern.language.normalize import normal_form
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.shapes import Shapes
from bittern.language.syntax import (
    And,
    Between,
    BooleanConstant,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Regex,
)
from bittern.language.templates import Slot
from bittern.language.trees import walk
from bittern.terms.pattern_texts import LikeForm, Wildcard, like_parts
from effort import examples

A, B, C = (Compare(name, "=", Literal(1)) for name in "abc")
TRUE, FALSE, NULL = Literal(True), Literal(False), Literal(None)


def same(left, right) -> bool:
    """Equal, and of the same types: 1, 1.0 and TRUE are equal in Python."""
    return left == right and repr(left) == repr(right)


def outcome(read, text):
    try:
        return repr(read(text))
    except ExpressionError as wrong:
        return type(wrong), wrong.position, wrong.message


#: Shared by all examples, so that later ones meet the keys of earlier ones.
SEASONED = Shapes()


def agrees(text) -> None:
    """The fast way, seasoned by every text before, says what the parser says."""

    def fast(text):
        shape_id, parameters = SEASONED.read(text)
        template = SEASONED.templates[shape_id]
        assert len(template.kinds) == len(parameters)
        return template.fill(parameters)

    assert outcome(fast, text) == outcome(lambda text: normal_form(parse(text)), text)


# What is read.

ACCEPTED = [
    ("a = 1", A),
    ("a == 1", A),
    ("a=1", A),
    ("\t(\n(a\r=\f1)\v)", A),
    ("a != 1", Compare("a", "!=", Literal(1))),
    ("a <> 1", Compare("a", "!=", Literal(1))),
    ("a < -1", Compare("a", "<", Literal(-1))),
    ("a<-1", Compare("a", "<", Literal(-1))),
    ("a<- 1", Compare("a", "<", Literal(-1))),
    ("a >= +1", Compare("a", ">=", Literal(1))),
    ("5 < a", Compare("a", ">", Literal(5))),
    ("5 <= a", Compare("a", ">=", Literal(5))),
    ("5 = a", Compare("a", "=", Literal(5))),
    ("5 != a", Compare("a", "!=", Literal(5))),
    ("NULL = a", Compare("a", "=", NULL)),
    ("TRUE = a", Compare("a", "=", TRUE)),
    ("DATE '2026-01-31' > a", Compare("a", "<", Literal(dt.date(2026, 1, 31)))),
    ("active", Compare("active", "=", TRUE)),
    ("NOT active", Not(Compare("active", "=", TRUE))),
    ("active AND a = 1", And((Compare("active", "=", TRUE), A))),
    ("a BETWEEN 1 AND 2", Between("a", Literal(1), Literal(2))),
    ("a not between NULL and 2", Not(Between("a", NULL, Literal(2)))),
    ("a BETWEEN 1 AND 2 AND b = 1", And((Between("a", Literal(1), Literal(2)), B))),
    ("NOT a BETWEEN 1 AND 2", Not(Between("a", Literal(1), Literal(2)))),
    ("a IN (1)", In("a", (Literal(1),))),
    ("a IN(NULL,1,2.5)", In("a", (NULL, Literal(1), Literal(Decimal("2.5"))))),
    ("a NOT IN ('x', \"y\")", Not(In("a", (Literal("x"), Literal("y"))))),
    ("a LIKE 'x%'", Like("a", "x%")),
    ("a LIKE '100/%' ESCAPE '/'", Like("a", "100/%", "/")),
    ("a NOT LIKE '\\_'", Not(Like("a", "\\_"))),
    ("a RLIKE '^x+$'", Regex("a", "^x+$")),
    ("a REGEXP r'\\d'", Regex("a", "\\d")),
    ("a NOT rlike 'x'", Not(Regex("a", "x"))),
    ("a IS NULL", IsNull("a")),
    ("a is not null", Not(IsNull("a"))),
    ("TRUE", BooleanConstant(True)),
    ("false OR NULL", Or((BooleanConstant(False), BooleanConstant(None)))),
    ("NOT NULL", Not(BooleanConstant(None))),
    ("date = 1", Compare("date", "=", Literal(1))),
    ("5 < Timestamp", Compare("Timestamp", ">", Literal(5))),
    ("r = r'x'", Compare("r", "=", Literal("x"))),
    ("a.b.c = 1", Compare("a.b.c", "=", Literal(1))),
    ("a.and.in = 1", Compare("a.and.in", "=", Literal(1))),
    ("`and` = 1", Compare("and", "=", Literal(1))),
    ("`a`.`b` = 1", Compare("a.b", "=", Literal(1))),
    ("`a.b` = 1", Compare("`a.b`", "=", Literal(1))),
    ("`odd name`.b = 1", Compare("odd name.b", "=", Literal(1))),
    ("`a``b` = 1", Compare("`a``b`", "=", Literal(1))),
    ("größe_1 = 1", Compare("größe_1", "=", Literal(1))),
    # precedence and flattening
    ("a = 1 OR b = 1 AND c = 1", Or((A, And((B, C))))),
    ("a = 1 AND b = 1 OR c = 1", Or((And((A, B)), C))),
    ("(a = 1 OR b = 1) AND c = 1", And((Or((A, B)), C))),
    ("NOT a = 1 AND b = 1", And((Not(A), B))),
    ("NOT (a = 1 AND b = 1)", Not(And((A, B)))),
    ("NOT NOT a = 1", Not(Not(A))),
    ("NOT(a = 1)OR(b = 1)", Or((Not(A), B))),
    ("a = 1 AND b = 1 AND c = 1", And((A, B, C))),
    ("a = 1 AND (b = 1 AND c = 1)", And((A, B, C))),
    ("((a = 1) OR b = 1) OR ((c = 1))", Or((A, B, C))),
    ("a = 1 AND NOT (b = 1 AND c = 1)", And((A, Not(And((B, C)))))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tree"), ACCEPTED)
def test_accepted(text, tree):
    assert same(parse(text), tree)


@pytest.mark.parametrize(("text", "tree"), ACCEPTED)
def test_accepted_texts_survive_printing(text, tree):
    assert same(parse(print_expression(tree)), tree), text


# Every string here was read by Spark 4 to the value beside it.
STRINGS = [
    (r"'a''b'", "a'b"),
    (r'"a""b"', 'a"b'),
    (r'''"a'b"''', "a'b"),
    (r"'a\\b'", "a\\b"),
    (r"'\q'", "q"),
    (r"'\%\_'", r"\%\_"),
    (r"'\b\0\Z\n\r\t'", "\b\0\x1a\n\r\t"),
    (r"'\101\1012\401\18\08'", "AA240118\x008"),
    (r"'\u0041'", "A"),
    (r"'\u00g1'", "u00g1"),
    (r"'\ud83d\ude00'", "😀"),
    (r"'\U0001F600'", "😀"),
    (r"r'a\nb'", r"a\nb"),
    (r"""r"a\"""", "a\\"),
    (r"'a\'\"'", "a'\""),
    ("'a\\\nb'", "a\nb"),
    ("'a\nb'", "a\nb"),
    ("''", ""),
    ("'\"\"\\n'", '""\n'),
    ("'''\\n'''", "'\n'"),
    ("'😀'", "😀"),
]


@pytest.mark.parametrize(("raw", "value"), STRINGS)
def test_strings(raw, value):
    assert string_value(raw) == value
    assert parse(f"a = {raw}") == Compare("a", "=", Literal(value))


NUMBERS = [
    ("007", 7),
    ("5.", Decimal(5)),
    (".5", Decimal("0.5")),
    ("1.50", Decimal("1.50")),
    ("5e3", 5000.0),
    ("5.e3", 5000.0),
    ("-.5E-3", -0.0005),
    ("1e-400", 0.0),
    ("9223372036854775807", 2**63 - 1),
    ("-9223372036854775808", -(2**63)),
    ("123456789012.345678", Decimal("123456789012.345678")),
    ("-00000000000000000000000000.1", Decimal("-0.1")),
    ("- 5", -5),
]


@pytest.mark.parametrize(("raw", "value"), NUMBERS)
def test_numbers(raw, value):
    assert same(number_value(raw), value)
    assert same(parse(f"a = {raw}"), Compare("a", "=", Literal(value)))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2020-01-01 10:00", dt.datetime(2020, 1, 1, 10, tzinfo=dt.UTC)),
        ("2020-01-01", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        ("2020-01-01T10:00:01Z", dt.datetime(2020, 1, 1, 10, 0, 1, tzinfo=dt.UTC)),
        ("2020-01-01 10:00:00 UTC", dt.datetime(2020, 1, 1, 10, tzinfo=dt.UTC)),
        ("2020-01-01 10:00:00.5", dt.datetime(2020, 1, 1, 10, 0, 0, 500000, tzinfo=dt.UTC)),
        (
            "2020-01-01T10:00:00.123456+05:30",
            dt.datetime(2020, 1, 1, 4, 30, 0, 123456, tzinfo=dt.UTC),
        ),
        ("2020-01-01 10:00:00-18:00", dt.datetime(2020, 1, 2, 4, tzinfo=dt.UTC)),
    ],
)
def test_timestamps(text, moment):
    assert same(parse(f"a = TIMESTAMP '{text}'"), Compare("a", "=", Literal(moment)))
    microseconds = time_value("timestamp", f"'{text}'")
    assert (
        dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=microseconds) == moment
    )


def test_dates_count_from_1970():
    assert time_value("date", "'1970-01-02'") == 86_400_000_000
    assert time_value("date", "'1969-12-31'") == -86_400_000_000
    assert same(parse("a = date'0001-01-01'"), Compare("a", "=", Literal(dt.date(1, 1, 1))))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (False, "boolean"),
        (0, "number"),
        (Decimal(1), "number"),
        (1.5, "number"),
        ("", "string"),
        (dt.date(2020, 1, 1), "date"),
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "timestamp"),
    ],
)
def test_kinds(value, kind):
    assert kind_of(Literal(value)) == kind


# What is refused: ‸ marks the position.

REJECTED = [
    ("‸", "expected a condition, found the end"),
    ("  ‸", "expected a condition, found the end"),
    ("a = ‸", "expected a constant, found the end"),
    ("a = 1 ‸b = 2", "expected AND, OR or the end, found the attribute b"),
    ("a = 1 AND‸", "expected a condition, found the end"),
    ("(a = 1‸", "expected AND, OR or ')', found the end"),
    ("a = 1‸)", "expected AND, OR or the end, found ')'"),
    ("(‸)", "expected a condition, found ')'"),
    ("‸f(a)", "there is no function f: did you mean if?"),
    ("a = 1 AND ‸'x", "no closing quote"),
    ("a = ‸'x''", "no closing quote"),
    ("a = ‸'x\\'", "no closing quote"),
    ("a = ‸'x\\", "no closing quote"),
    ("a = ‸r'x", "no closing quote"),
    ("‸`a = 1", "no closing quote"),
    ("‸`a /* = 1", "no closing quote"),
    ("a = ‸'x /*", "no closing quote"),
    ("a = 1 ‸/* x", "this comment is not closed: write */ at its end"),
    ("a = 1 ‸/*", "comment is not closed"),
    ("a = 1 ‸/* x *", "comment is not closed"),
    ("a = 1 ‸/* x /* y */ AND b = 2", "comment is not closed"),
    ("a = '/*' AND b = 2 /* c */ -- /*\nAND c = 3 ‸/*/ x", "comment is not closed"),
    ("lower(a) = 'x' ‸/* x", "comment is not closed"),
    ("EXISTS d (d.a = a) ‸/* x", "comment is not closed"),
    ("‸a.`b = 1", "no closing quote"),
    ("a ‸'y'", "expected an operator, found the string 'y'"),
    ("a IN (1, ‸'x')", "IN mixes a number with a string"),
    ("a IN (NULL, 1, ‸TRUE)", "IN mixes a number with a boolean"),
    ("a BETWEEN 'x' AND ‸2", "BETWEEN mixes a string with a number"),
    ("a BETWEEN DATE '2020-01-01' AND DATE ‸'x'", "a date must be written"),
    ("a IN ‸1", "expected '(' after IN"),
    ("a IN (‸)", "at least one value"),
    ("a IN (1 ‸2)", "expected ',' or ')'"),
    ("a IN (1, ‸)", "expected a constant, found ')'"),
    ("a LIKE ‸'x\\\\'", "cannot end in its escape character"),
    ("a LIKE ‸'x\\\\y'", "only before %, _ or itself"),
    ("a LIKE ‸'x/y' ESCAPE '/'", "only before %, _ or itself"),
    ("a LIKE 'x' ESCAPE ‸'//'", "exactly one character"),
    ("a LIKE 'x' ESCAPE ‸''", "exactly one character"),
    ("a LIKE 'x' ESCAPE ‸'😀'", "exactly one character"),
    ("a RLIKE ‸'('", "not a regular expression for RE2: missing )"),
    ("a RLIKE ‸'(?<=x)y'", "not a regular expression for RE2"),
    ("a = DATE ‸'2020-02-30'", "is not a date"),
    ("a = DATE ‸'٢٠٢٠-01-01'", "a date must be written 'yyyy-mm-dd'"),
    ("a = TIMESTAMP ‸'2020-01-01 24:00'", "is not a timestamp"),
    ("a = TIMESTAMP ‸'2020-01-01 10:00+18:01'", "18 hours"),
    ("a = TIMESTAMP ‸'2020-01-01 10:00+05:60'", "18 hours"),
    ("a = TIMESTAMP ‸'0001-01-01 00:00+01:00'", "is not a timestamp"),
    ("a = TIMESTAMP ‸'yesterday'", "the present moment"),
    ("a = ‸1e400", "too large for a float"),
    ("a = ‸0x10", "0x10 is not a number"),
    ("a = ‸1_000", "1_000 is not a number"),
    ("‸5a = 1", "5a is not a number"),
    ("‸and = 1", "to use and as an attribute name, write `and`"),
    ("a = 1 AND ‸in.x = 1", "in is a keyword"),
    ("a NOT ‸= 1", "expected IN, BETWEEN, LIKE or RLIKE after NOT"),
    ("a IS NOT ‸1", "expected NULL, TRUE, FALSE, UNKNOWN, MISSING or DISTINCT FROM after IS"),
    ("a BETWEEN 1 ‸OR 2", "expected AND between"),
    ("‸5", "a condition is TRUE or FALSE, not 5"),
    ("‸a < 1 < 2", "a condition is TRUE or FALSE, and is not compared with a num"),
    ("a <--5‸", "expected a constant, found the end"),
    ("a = 1‸;", "does not end in ';'"),
    ("a = ‸\u2018x\u2019", "strings are quoted"),
    ("a‸\u00a0= 1", "U+00A0"),
    ("a ‸$ 1", "the character $"),
    ("a = ‸'\\ud800'", "half a surrogate pair"),
    ("a = ‸'\ud800'", "half a surrogate pair"),
    ("‸`\ud800` = 1", "half a surrogate pair"),
    ("a = ‸'\\UFFFFFFFF'", "not a Unicode character"),
    ("‸`` = 1", "cannot be empty"),
    ("‸a.`` = 1", "cannot be empty"),
    ("\u0131s ‸\u0131s null", "expected AND, OR or the end"),
]


@pytest.mark.parametrize(("marked", "message"), REJECTED)
def test_rejected(marked, message):
    position = marked.index("‸")
    text = marked.replace("‸", "")
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert message in caught.value.message
    assert caught.value.position == position
    assert not isinstance(caught.value, LimitError)


def test_an_error_points_with_a_caret():
    with pytest.raises(ExpressionError) as caught:
        parse("price < 5 AND size = large small")
    _, line, caret = str(caught.value).split("\n")
    assert line[caret.index("^") :] == "small"


@pytest.mark.parametrize("thing", [None, 5, b"a = 1", ["a = 1"]])
def test_only_texts_are_expressions(thing):
    for read in (parse, Shapes().read):
        with pytest.raises(ExpressionError, match="an expression must be a string"):
            read(thing)


# Limits.


def nested(depth: int) -> str:
    """A tree of the given depth: AND and OR in turns."""
    words = ["a = 1 AND (", "b = 1 OR ("]
    opening = "".join(words[level % 2] for level in range(depth - 1))
    last = " AND " if depth % 2 else " OR "
    return opening + f"a = 1{last}b = 1" + ")" * (depth - 1)


LIMITS = [
    ("a = 1 AND " * 7000 + "b = 1", limits.MAX_LENGTH),
    ("(" * 60_000, limits.MAX_DEPTH),
    ("NOT " * 16_000 + "a", limits.MAX_DEPTH * 4),
    ("(" * 300 + "a = 1" + ")" * 300, limits.MAX_DEPTH),
    (nested(limits.MAX_DEPTH + 1), None),
    ("(a OR b AND " * 101 + "c" + ")" * 101, None),
    (" OR ".join(["a"] * 4097), 4096 * 5),
    (f"a IN ({','.join(['1'] * 4097)})", 6 + 4096 * 2),
    (f"a RLIKE '{'x' * 1001}'", 8),
    (r"a RLIKE r'\pL{500}'", 8),
]


@pytest.mark.parametrize(("text", "position"), LIMITS)
def test_limits(text, position):
    for read in (parse, Shapes().read):
        with pytest.raises(LimitError) as caught:
            read(text)
        assert position is None or caught.value.position == position


def test_just_inside_the_limits():
    deep = parse(nested(limits.MAX_DEPTH))
    assert parse(print_expression(deep)) == deep
    assert normal_form(Not(Not(deep))) == deep
    parse("NOT " * limits.MAX_DEPTH + "a")
    parse("(" * limits.MAX_DEPTH + "a" + ")" * limits.MAX_DEPTH)
    parse(" OR ".join(["a"] * 4096))
    parse(f"a IN ({','.join(['1'] * 4096)})")
    parse(f"a RLIKE '{'x' * 1000}'")
    parse("a = 1" + " " * (limits.MAX_LENGTH - 5))
    assert pickle.loads(pickle.dumps(deep)) == deep


# Texts that a careless reader needs quadratic time for.
LONG = {
    "and": lambda n: " AND ".join(["a = 1"] * n),
    "in": lambda n: f"a IN ({', '.join(['1'] * n)})",
    "open left": lambda n: "(" * 150 + " AND ".join(["a = 1)"] * 150 + ["a = 1"] * n),
    "open right": lambda n: "a = 1 AND (" * 150 + " AND ".join(["a = 1"] * n) + ")" * 150,
    "not": lambda n: " OR ".join(["NOT NOT NOT a = 1"] * n),
    "never": lambda n: "(FALSE OR (a = 1 AND " * 90 + " AND ".join(["b = 1"] * n) + "))" * 90,
}


@pytest.mark.parametrize("kind", LONG)
def test_work_grows_linearly(kind):
    def calls(n: int) -> int:
        text = LONG[kind](n)
        count = 0

        def see(_frame, event, _argument):
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(see)
        try:
            print_expression(normal_form(parse(text)))
        finally:
            sys.setprofile(None)
        return count

    # twice the growth costs twice the calls, not four times
    small, middle, large = calls(500), calls(1000), calls(2000)
    assert large - middle <= 2.2 * (middle - small)


@pytest.mark.parametrize(
    "unit",
    ["'\\", "'", "\"'", "`", "5", "5a", "- ", ".5", "date ", "r'", "''", "a.", "\\'", "1e", "+"],
)
@pytest.mark.parametrize("tail", ["", "x", "\\", "'"])
def test_no_text_of_full_length_is_slow(unit, tail):
    # One pass is milliseconds; one pass per character would be minutes.
    text = (unit * limits.MAX_LENGTH)[: limits.MAX_LENGTH - len(tail)] + tail
    agrees(text)


# Printing.

#: No name may start with U+0000.
NAMED = st.characters(exclude_categories=["Cs"], exclude_characters="\0\1\3")
PARTS = st.one_of(
    st.sampled_from(["a", "b_1", "and", "NULL", "odd name", "a.b", "`", "``x.", "date", "r", "5"]),
    st.text(NAMED, min_size=1, max_size=5),
)
NAMES = st.lists(PARTS, min_size=1, max_size=3).map(
    lambda parts: ".".join(
        "`" + part.replace("`", "``") + "`" if "." in part or "`" in part else part
        for part in parts
    )
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
DECIMALS = st.builds(
    lambda unscaled, scale: Decimal(unscaled).scaleb(-scale),
    st.integers(-(10**18) + 1, 10**18 - 1),
    st.integers(0, 18),
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
MOMENTS = st.datetimes(timezones=st.just(dt.UTC)).map(lambda moment: moment.replace(fold=0))
TIMES = st.one_of(st.dates(), MOMENTS)
FAMILIES = (
    st.one_of(INTEGERS, DECIMALS, FLOATS),
    TEXTS,
    st.booleans(),
    TIMES,
)


def literals(values):
    return st.one_of(st.just(NULL), values.map(Literal), values.map(Literal), values.map(Literal))


def predicates(names=NAMES, families=FAMILIES, texts=TEXTS):
    any_literal = st.one_of(*map(literals, families))
    operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    plain = texts.map(lambda text: re.sub(r"[\\%_/]", "x", text))
    patterns = st.tuples(plain, st.sampled_from(["", "%", "\\%", "\\\\", "_", "%%"]), plain)
    return st.one_of(
        st.builds(Compare, names, operators, any_literal),
        st.one_of(*(st.builds(Between, names, literals(f), literals(f)) for f in families)),
        st.one_of(
            *(
                st.builds(In, names, st.lists(literals(f), min_size=1, max_size=4).map(tuple))
                for f in families
            )
        ),
        st.builds(Like, names, patterns.map("".join)),
        st.builds(
            lambda name, pattern: Like(name, "".join(pattern).replace("\\", "/"), "/"),
            names,
            patterns,
        ),
        # In brackets, "^" alone would deny.
        st.builds(Regex, names, plain.map(lambda text: re.sub(r"([^\w\s^])", r"[\1]", text))),
        st.builds(IsNull, names),
        names.map(strategies.is_missing),
        st.builds(BooleanConstant, st.sampled_from([True, False, None])),
    )  # fmt: skip


def trees(leaves, size=12):
    """Trees as the parser builds them: no AND directly in AND, no OR in OR."""

    def grow(children):
        some = st.lists(children, min_size=2, max_size=4)

        def join(kind):
            return lambda nodes: kind(
                tuple(
                    itertools.chain.from_iterable(
                        node.operands if isinstance(node, kind) else (node,) for node in nodes
                    )
                )
            )

        return st.one_of(children.map(Not), some.map(join(And)), some.map(join(Or)))

    return st.recursive(leaves, grow, max_leaves=size)


@examples(6)
@given(trees(predicates()))
def test_print_then_parse(tree):
    text = print_expression(tree)
    assert same(parse(text), tree)
    assert print_expression(parse(text)) == text


@given(st.lists(st.text(NAMED, min_size=1), min_size=1))
def test_attribute_names_and_their_parts(parts):
    raw = ".".join("`" + part.replace("`", "``") + "`" for part in parts)
    assert attribute_parts(attribute_name(raw)) == tuple(parts)


# Normal form.

SMALL = (
    trees(
        predicates(
            names=st.sampled_from("ab"),
            families=(st.sampled_from([1, 2, 3]),),
            texts=st.just("1"),
        ).filter(lambda node: not isinstance(node, Like | Regex)),
        size=8,
    )
)  # fmt: skip


def holds(tree, event):
    """Evaluate in three-valued logic, straight from the definition."""
    if isinstance(tree, BooleanConstant):
        return tree.value
    if isinstance(tree, Not):
        inner = holds(tree.operand, event)
        return None if inner is None else not inner
    if isinstance(tree, And | Or):
        values = [holds(operand, event) for operand in tree.operands]
        decisive = isinstance(tree, Or)
        return decisive if decisive in values else None if None in values else not decisive
    if tree == strategies.is_missing(getattr(tree, "attribute", "?")[1:]):
        return tree.attribute[1:] not in event
    if isinstance(tree, IsNull):
        return event[tree.attribute] is None
    if isinstance(tree, Between):
        low = Compare(tree.attribute, ">=", tree.low)
        return holds(And((low, Compare(tree.attribute, "<=", tree.high))), event)
    if isinstance(tree, In):
        equal = tuple(Compare(tree.attribute, "=", value) for value in tree.values)
        return holds(Or(equal), event)
    if event[tree.attribute] is None:
        return None
    if isinstance(tree, Like):
        parts = like_parts(tree.pattern, tree.escape).pieces
        pattern = "".join(
            re.escape(p) if isinstance(p, str) else ".*" if p is Wildcard.ANY else "."
            for p in parts
        )
        return re.fullmatch(pattern, event[tree.attribute], re.DOTALL) is not None
    left, right = event[tree.attribute], tree.operand.value
    if right is None:
        return None
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[tree.operator]


def check_normal(tree) -> None:
    if isinstance(tree, BooleanConstant):
        assert tree.value is not None
        return
    for node in walk(tree):
        assert not isinstance(node, BooleanConstant)
        if isinstance(node, Not):
            assert isinstance(node.operand, In | Between | Like | Regex | IsNull)
        elif isinstance(node, And | Or):
            assert len(node.operands) > 1
            assert not any(isinstance(operand, type(node)) for operand in node.operands)
        elif isinstance(node, In):
            assert len(node.values) > 1
            assert NULL not in node.values
        elif isinstance(node, Compare):
            assert node.operand != NULL
        elif isinstance(node, Between):
            assert NULL not in (node.low, node.high)


@examples(6)
@given(SMALL)
def test_normal_form_is_true_for_the_same_events(tree):
    normal = normal_form(tree)
    check_normal(normal)
    for a, b in itertools.product([None, 0, 1, 2, 3, 4], repeat=2):
        event = {"a": a, "b": b}
        assert (holds(tree, event) is True) == (holds(normal, event) is True)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("a = NULL", "FALSE"),
        ("NOT a = NULL", "FALSE"),
        ("a IN (1, NULL)", "a = 1"),
        ("a IN (1, NULL, 2)", "a IN (1, 2)"),
        ("a IN (NULL)", "FALSE"),
        ("a NOT IN (1, NULL)", "FALSE"),
        ("a NOT IN (1)", "a != 1"),
        ("a BETWEEN NULL AND 5", "FALSE"),
        ("a NOT BETWEEN NULL AND 5", "a > 5"),
        ("a NOT BETWEEN 5 AND NULL", "a < 5"),
        ("a NOT BETWEEN NULL AND NULL", "FALSE"),
        ("NOT a < 5", "a >= 5"),
        ("NOT (a > 5 OR b != 1)", "a <= 5 AND b = 1"),
        ("NOT NOT NOT active", "active != TRUE"),
        ("NOT (a LIKE 'x' AND a IS NULL)", "a NOT LIKE 'x' OR a IS NOT NULL"),
        ("a = 1 AND (TRUE OR b = 1)", "a = 1"),
        ("a = 1 OR NOT NULL", "a = 1"),
        ("a = 1 AND (FALSE OR (b = 1 AND c = 1))", "a = 1 AND b = 1 AND c = 1"),
        ("NOT (a = 1 AND NOT (b = 1 OR c = 1))", "a != 1 OR b = 1 OR c = 1"),
        ("NOT FALSE", "TRUE"),
        # no value but NULL is looked at
        ("a BETWEEN 5 AND 1", "a BETWEEN 5 AND 1"),
        ("a IN (1, 1)", "a IN (1, 1)"),
    ],
)
def test_normal_forms(text, normal):
    assert print_expression(normal_form(parse(text))) == normal


# LIKE patterns.

ANY, ANY_ONE = Wildcard.ANY, Wildcard.ANY_ONE


@pytest.mark.parametrize(
    ("pattern", "escape", "form", "text", "pieces"),
    [
        ("", "\\", LikeForm.EXACT, "", ()),
        ("abc", "\\", LikeForm.EXACT, "abc", ("abc",)),
        (r"a\%\_\\", "\\", LikeForm.EXACT, "a%_\\", ("a%_\\",)),
        ("abc%", "\\", LikeForm.PREFIX, "abc", ("abc", ANY)),
        ("abc%%", "\\", LikeForm.PREFIX, "abc", ("abc", ANY)),
        (r"abc\%%", "\\", LikeForm.PREFIX, "abc%", ("abc%", ANY)),
        ("%abc", "\\", LikeForm.SUFFIX, "abc", (ANY, "abc")),
        ("%abc%", "\\", LikeForm.CONTAINS, "abc", (ANY, "abc", ANY)),
        ("%", "\\", LikeForm.ANY, "", (ANY,)),
        ("%%%", "\\", LikeForm.ANY, "", (ANY,)),
        ("_", "\\", LikeForm.GENERAL, "", (ANY_ONE,)),
        ("a%b", "\\", LikeForm.GENERAL, "", ("a", ANY, "b")),
        ("%a%b%", "\\", LikeForm.GENERAL, "", (ANY, "a", ANY, "b", ANY)),
        ("a__%", "\\", LikeForm.GENERAL, "", ("a", ANY_ONE, ANY_ONE, ANY)),
        ("a/%%", "/", LikeForm.PREFIX, "a%", ("a%", ANY)),
        ("a\\%", "/", LikeForm.PREFIX, "a\\", ("a\\", ANY)),
        ("a%%c", "%", LikeForm.EXACT, "a%c", ("a%c",)),
        ("a__c%", "_", LikeForm.PREFIX, "a_c", ("a_c", ANY)),
        ("a^^]", "^", LikeForm.EXACT, "a^]", ("a^]",)),
    ],
)
def test_like_parts(pattern, escape, form, text, pieces):
    parts = like_parts(pattern, escape)
    assert (parts.form, parts.text, parts.pieces) == (form, text, pieces)


@pytest.mark.parametrize(("pattern", "escape"), [("a\\", "\\"), ("a\\b", "\\"), ("a%", "%")])
def test_bad_like_patterns(pattern, escape):
    with pytest.raises(ValueError, match="escape character"):
        like_parts(pattern, escape)


# Shapes.


def test_a_shape_is_shared():
    shapes = Shapes()
    first, parameters = shapes.read("price <= 580 AND model = 'iphone5s'")
    assert parameters == ("price", "580", "model", "'iphone5s'")
    template = shapes.templates[first]
    assert template.kinds == ("attribute", "number", "attribute", "string")
    assert template.tree == And(
        (
            Compare(Slot(0, "attribute"), "<=", Slot(1, "number")),
            Compare(Slot(2, "attribute"), "=", Slot(3, "string")),
        )
    )
    for text in (
        'size <= -1.5e3 AND `odd name`.x = "y"',
        "a<=- 7   and b=='it''s'",
        "(price <= 1) AND price = r'x'",
    ):
        assert shapes.read(text)[0] == first
    for text in (
        "price < 580 AND model = 'x'",
        "price <= '580' AND model = 'x'",
        "price <= 580 OR model = 'x'",
        "price <= 580 AND model = DATE '2020-01-01'",
        "price <= 580 AND model = TRUE",
    ):
        assert shapes.read(text)[0] != first


def test_like_forms_are_different_shapes():
    shapes = Shapes()
    patterns = ["'x'", "'x%'", "'%x'", "'%x%'", "'%'", "'x_'", r"'x\%'", r"'x\\%'", r"'x\\\\%'"]
    ids = [shapes.read(f"a LIKE {pattern}")[0] for pattern in patterns]
    assert [shapes.templates[i].tree.pattern.form for i in ids] == [
        LikeForm.EXACT, LikeForm.PREFIX, LikeForm.SUFFIX, LikeForm.CONTAINS, LikeForm.ANY,
        LikeForm.GENERAL, LikeForm.EXACT, LikeForm.EXACT, LikeForm.PREFIX,
    ]  # fmt: skip
    assert shapes.read("b LIKE 'other%'")[0] == ids[1]
    slash = shapes.read("a LIKE 'x/%' ESCAPE '/'")[0]
    assert shapes.templates[slash].tree.escape == "/"
    assert shapes.templates[slash].tree.pattern.form is LikeForm.EXACT
    dash = shapes.read("a LIKE 'x/%' ESCAPE '-'")[0]
    assert shapes.templates[dash].tree.escape == "-"
    assert shapes.templates[dash].tree.pattern.form is LikeForm.PREFIX


def test_shapes_stay_as_they_are_where_a_text_is_wrong():
    shapes = Shapes()
    assert shapes.read("a = 1") == (0, ("a", "1"))
    for text, position in (("a = ", 4), (5, 0), ("c LIKE 'x\\\\'", 7)):
        with pytest.raises(ExpressionError) as caught:
            shapes.read(text)
        assert caught.value.position == position
    assert shapes.read("b > 'x' AND TRUE") == (1, ("b", "'x'"))


def test_forgetting_words_changes_nothing(monkeypatch):
    monkeypatch.setattr("bittern.language.shapes._MAX_REMEMBERED", 3)
    shapes = Shapes()
    texts = [f"a{i} = '{i}' AND b LIKE 'x{i}%'" for i in range(10)] * 2
    read = [shapes.read(text) for text in texts]
    assert {shape for shape, _ in read} == {0}
    assert read[1] == read[11] == (0, ("a1", "'1'", "b", "'x1%'"))


@examples(6)
@given(trees(predicates()), st.randoms(use_true_random=False))
def test_shapes_agree_with_the_parser(tree, random):
    text = print_expression(tree)
    for _ in range(2):
        agrees(text)
        text = re.sub("[0-9]", lambda _: random.choice(string.digits), text)


#: Words that are easily taken for one another.
WORDS = [
    "a", "b.c", "`a b`", "``", "`a", "and", "AND", "or", "NOT", "IN", "is", "null", "TRUE",
    "between", "like", "rlike", "escape", "date", "DATE", "timestamp", "and.b", "a.and", "\u0131s",
    "r", "r'x'", "R'x'", "'x'", "'x%'", "'%x'", "'x''y'", '"x"', "'\\\\'", "'\\\\x'", "'/'",
    "'2020-01-01'", "'2020-02-30'", "'('", "'", '"', "\\", "5", "-5", "- 5", "+5", "5.", ".5",
    "5e3", "5e", "5L", "1e999", "99999999999999999999", "٣", "--", "/*", ".", ",", "(", ")",
    "=", "==", "<", "<=", "<>", "<=>", "!", "-", "\0", "\u00a0", "\ud800", "é",
]  # fmt: skip
FRAMES = [
    "{} = {}",
    "{}={}AND{}<{}",
    "{} = {} AND {} LIKE {}",
    "{} = {} {}",
    "{} {} {}",
    "{} IN ({}, {})",
    "{} IN({},{}){}",
    "{} BETWEEN {} AND {}",
    "{} NOT LIKE {} ESCAPE {}",
    "{} LIKE {} OR {}",
    "{}RLIKE{}",
    "{} < DATE {}",
    "{} < DATE{} AND date = {}",
    "{} {} < TIMESTAMP {}",
    "{} is {}",
    "NOT{} OR{}",
    "({}{}{})",
]


@examples(20)
@given(st.sampled_from(FRAMES), st.lists(st.sampled_from(WORDS), min_size=4, max_size=4))
def test_no_key_stands_for_two_meanings(frame, words):
    agrees(frame.format(*words))


# ------------------------------------------------------------------ sorted conjunctions


CONJUNCTIONS = [
    "b = 2 AND a < 1 AND c BETWEEN 3 AND 4",
    "c BETWEEN 3 AND 4 AND a < 1 AND b = 2",
    "a LIKE 'x%' AND d = DATE '2024-01-02' AND a = 'y' AND a LIKE '%z'",
    "a NOT LIKE 'x_' AND active AND b NOT BETWEEN 1 AND 2",
    "a = 1",
    "a = 1 AND a = 1",
    "`odd name` = 'it''s' AND b.c <= -1.5",
]
NO_PLAIN_CONJUNCTIONS = [
    "a = 1 OR TRUE AND b = 2",
    "a = 1 AND NOT b = 2",
    "5 > a AND b = 1",
    "b = 1 AND 5 > a",
    "a IN (1, 2) AND b = 1",
    "(a = 1) AND b = 2",
    "a = 1 AND b IS NULL",
    "a = 1 AND\nb = 2",
    "a = 1 AND TRUE",
    "a BETWEEN 1 AND b AND c IS NULL",
    "a IN (CASE WHEN TRUE AND b THEN 1 ELSE 2 END) AND c IS NULL",
    "lower(a) = 'x' AND b BETWEEN 1 AND c AND d ILIKE 'y'",
]


@pytest.mark.parametrize("text", CONJUNCTIONS + NO_PLAIN_CONJUNCTIONS)
def test_conjunctions_may_be_read_in_sorted_order(monkeypatch, text: str) -> None:
    monkeypatch.setattr("bittern.language.shapes._MANY_KEYS", 0)
    shapes = Shapes()
    for _ in range(2):  # the first time by the parser, then by its sorted key
        shape_id, parameters = shapes.read(text)
        read = shapes.templates[shape_id].fill(parameters)
        right = normal_form(parse(text))
        if isinstance(right, And):
            assert isinstance(read, And)
            assert sorted(map(repr, read.operands)) == sorted(map(repr, right.operands))
        else:
            assert read == right


def test_sorted_conjunctions_share_one_shape(monkeypatch) -> None:
    monkeypatch.setattr("bittern.language.shapes._MANY_KEYS", 0)
    shapes = Shapes()
    ids = {shapes.read(text)[0] for text in CONJUNCTIONS[:2]}
    assert len(ids) == 1


@pytest.mark.parametrize(
    "text", ["b = 2 AND a <", "b = 2 AND a = x y AND c < 3", "b = 'x' AND a LIKE 5 6"]
)
def test_mistakes_in_sorted_conjunctions_are_where_they_were_made(monkeypatch, text: str) -> None:
    with pytest.raises(ExpressionError) as expected:
        parse(text)
    monkeypatch.setattr("bittern.language.shapes._MANY_KEYS", 0)
    with pytest.raises(ExpressionError) as caught:
        Shapes().read(text)
    assert (caught.value.message, caught.value.position) == (
        expected.value.message,
        expected.value.position,
    )
