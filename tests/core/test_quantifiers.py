"""EXISTS and FORALL: what is read, printed, named and indexed, and that nothing changes meaning."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import oracle
import semantics
import strategies
from bittern.errors import ExpressionError, LimitError, SubscriptionError
from bittern.language import limits
from bittern.language.durations import duration_value, print_duration
from bittern.language.normalize import normal_form
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.quantifiers import (
    HIDDEN,
    canonical,
    hidden_name,
    is_hidden,
    quantified_of,
)
from bittern.language.shapes import Shapes
from bittern.language.syntax import (
    And,
    Between,
    BooleanConstant,
    Compare,
    Expression,
    In,
    IsNull,
    Join,
    Like,
    Literal,
    Not,
    OfDocument,
    Or,
    Pair,
    Quantified,
    Regex,
    Window,
)
from bittern.language.trees import flat, map_leaves, unflat, walk
from effort import examples

MINUTE = 60_000_000
#: Seasoned by every text before: a key that stands for two meanings shows sooner or later.
SEASONED = Shapes()


def exists(condition: Expression, window: Window | None = None) -> Quantified:
    return Quantified(False, condition, window)


def forall(condition: Expression, window: Window | None = None) -> Quantified:
    return Quantified(True, condition, window)


def document(attribute: str, operator: str, value: Any) -> OfDocument:
    return OfDocument(Compare(attribute, operator, Literal(value)))


def as_indexed(tree: Expression) -> Expression:
    """The normal form with its quantified predicates in the form that they share."""
    return map_leaves(
        normal_form(tree),
        lambda leaf: canonical(leaf) if isinstance(leaf, Quantified) else leaf,
    )


def read(text: str, shapes: Shapes = SEASONED) -> Expression:
    """What bulk reading makes of a text."""
    shape_id, parameters = shapes.read(text)
    template = shapes.templates[shape_id]
    assert len(template.kinds) == len(parameters)
    for kind, parameter in zip(template.kinds, parameters, strict=True):
        assert (kind == "join") == parameter.startswith("`" + HIDDEN)
    return template.fill(parameters)


def outcome(reader: Any, text: str) -> Any:
    """What reading gives, or where and why it is refused."""
    try:
        return reader(text)
    except ExpressionError as wrong:
        return type(wrong), wrong.message, wrong.position, wrong.text


def agrees(text: str, shapes: Shapes = SEASONED) -> None:
    """Bulk reading says what the parser says, mistakes and all; but it may sort conjunctions."""
    found = outcome(lambda text: read(text, shapes), text)
    right = outcome(lambda text: as_indexed(parse(text)), text)
    if isinstance(right, And):
        assert isinstance(found, And)
        assert sorted(map(repr, found.operands)) == sorted(map(repr, right.operands))
    else:
        assert found == right


# ------------------------------------------------------------------ the paper's examples


def test_seed_004_example_3() -> None:
    text = 'author = "Smith" AND 10 <= price <= 30 AND ∀ d (isbn ≠ d.isbn)'
    assert parse(text) == And(
        (
            Compare("author", "=", Literal("Smith")),
            Compare("price", ">=", Literal(10)),
            Compare("price", "<=", Literal(30)),
            forall(Join("isbn", "!=", "isbn")),
        )
    )
    agrees(text)
    seen = [{"isbn": 1}, {"isbn": 2}]
    book = {"author": "Smith", "price": 30, "isbn": 3}
    assert oracle.matches(parse(text), book, seen)
    assert not oracle.matches(parse(text), book, [*seen, book])


def test_seed_004_example_5() -> None:
    profiles = ["∃ d (price < d.price)", "∀ d (year > d.year)", "∃ d (author = d.author)"]
    assert [parse(profile) for profile in profiles] == [
        exists(Join("price", ">", "price")),
        forall(Join("year", "<", "year")),
        exists(Join("author", "=", "author")),
    ]
    for profile in profiles:
        agrees(profile)
    old = [{"price": 10, "year": 2000, "author": "Smith"}, {"price": 25, "year": 1999}]
    new = {"price": 30, "year": 2001, "author": "Smith"}
    assert [oracle.matches(parse(profile), new, old) for profile in profiles] == [
        False,
        True,
        True,
    ]


def test_seed_004_example_6() -> None:
    text = "price = 10 AND ∃ d (d.price = price)"
    constant = Compare("price", "=", Literal(10))
    assert parse(text) == And((constant, exists(Join("price", "=", "price"))))
    assert parse("∃ d (d.price = 10)") == exists(document("price", "=", 10))
    agrees(text)


def test_seed_004_example_7() -> None:
    text = "price < 10 AND ∃ d (d.price = price)"
    constant = Compare("price", "<", Literal(10))
    assert parse(text) == And((constant, exists(Join("price", "=", "price"))))
    assert parse("∃ d (d.price < 10)") == exists(document("price", "<", 10))
    agrees(text)


# ------------------------------------------------------------------ what is read

X, Y = Compare("x", "=", Literal(1)), Compare("y", "=", Literal(2))
ACCEPTED: list[tuple[str, Expression]] = [
    ("EXISTS d (d.x = x)", exists(Join("x", "=", "x"))),
    ("forall D(D.x=x)", forall(Join("x", "=", "x"))),
    ("∃d(x≤d.y)", exists(Join("y", ">=", "x"))),
    ("NOT∀ old_one (x ≥ old_one.y)", Not(forall(Join("y", "<=", "x")))),
    ("EXISTS d (x < d.y)", exists(Join("y", ">", "x"))),
    ("EXISTS d (x <> d.y)", exists(Join("y", "!=", "x"))),
    ("EXISTS d (d.x < d.y)", exists(Pair(True, "x", "<", "y"))),
    ("EXISTS d (x < y)", exists(Pair(False, "x", "<", "y"))),
    ("EXISTS d (d.a.b = `d.a`.`b`)", exists(Join("a.b", "=", "`d.a`.b"))),
    ("EXISTS d (d.`a.b`.c = D.x)", exists(Join("`a.b`.c", "=", "D.x"))),
    ("EXISTS d (`d`.x = 1)", exists(document("x", "=", 1))),
    ("EXISTS d (5 > d.x)", exists(document("x", "<", 5))),
    ("EXISTS d (d.sold)", exists(document("sold", "=", True))),
    ("EXISTS d (NOT d.sold)", exists(Not(document("sold", "=", True)))),
    ("EXISTS d (x = 1)", exists(X)),
    ("EXISTS d (TRUE)", exists(BooleanConstant(True))),
    ("EXISTS d (d.x IS NULL)", exists(OfDocument(IsNull("x")))),
    ("EXISTS d (d.x IS NOT NULL)", exists(Not(OfDocument(IsNull("x"))))),
    (
        "EXISTS d (d.x NOT IN (1, 2))",
        exists(Not(OfDocument(In("x", (Literal(1), Literal(2)))))),
    ),
    (
        "EXISTS d (d.x BETWEEN 1 AND 2)",
        exists(OfDocument(Between("x", Literal(1), Literal(2)))),
    ),
    (
        "EXISTS d (d.x LIKE 'a!%%' ESCAPE '!')",
        exists(OfDocument(Like("x", "a!%%", "!"))),
    ),
    ("EXISTS d (d.x RLIKE '^a')", exists(OfDocument(Regex("x", "^a")))),
    (
        "EXISTS d (d.low <= x < d.high)",
        exists(And((Join("low", "<=", "x"), Join("high", ">", "x")))),
    ),
    (
        "EXISTS d (9 > d.x >= y)",
        exists(And((document("x", "<", 9), Join("x", ">=", "y")))),
    ),
    (
        "EXISTS d (d.x = x AND (d.y = 1 OR NOT y = 2))",
        exists(And((Join("x", "=", "x"), Or((document("y", "=", 1), Not(Y)))))),
    ),
    ("(((EXISTS d ((d.x = x)))))", exists(Join("x", "=", "x"))),
    (
        "x = 1 OR EXISTS d (d.x = 1) AND y = 2",
        Or((X, And((exists(document("x", "=", 1)), Y)))),
    ),
    ("EXISTS d (d.x = 1)AND d.x = 1", None),
    # names that are words elsewhere
    ("EXISTS exists (exists.exists = forall)", exists(Join("exists", "=", "forall"))),
    ("∃ forall (forall.x = 1)", exists(document("x", "=", 1))),
    ("EXISTS exists PER x (exists.x = 1)", exists(document("x", "=", 1), Window(per=("x",)))),
    ("EXISTS last IN LAST 1 (last.last = of)", exists(Join("last", "=", "of"), Window(1))),
    ("EXISTS per PER last (per.x = 1)", exists(document("x", "=", 1), Window(per=("last",)))),
    ("EXISTS date (date.x = DATE '2024-01-01')", None),
    ("EXISTS r (r.x = r'x')", exists(document("x", "=", "x"))),
    ("exists = 1 AND forall > 2", None),
    ("exists AND NOT forall", None),
    ("exists IN (1) OR exists IS NULL OR exists.d = 1", None),
    ("last = 1 AND of = 1 AND per = 1", None),
    # windows
    ("EXISTS d IN LAST 100 (d.x = x)", exists(Join("x", "=", "x"), Window(100))),
    ("EXISTS d in last 100(d.x = x)", exists(Join("x", "=", "x"), Window(100))),
    (
        "EXISTS d IN LAST '90 minutes' OF ts (d.x = x)",
        exists(Join("x", "=", "x"), Window(None, 90 * MINUTE, "ts")),
    ),
    (
        "FORALL d IN LAST '7 DAYS' OF a.ts PER b, `c.d`, e.f (d.x = x)",
        forall(
            Join("x", "=", "x"),
            Window(None, 7 * 24 * 60 * MINUTE, "a.ts", ("b", "`c.d`", "e.f")),
        ),
    ),
    ("EXISTS d PER a (d.x = x)", exists(Join("x", "=", "x"), Window(per=("a",)))),
    (
        "EXISTS d IN LAST 5 PER a, b (TRUE)",
        exists(BooleanConstant(True), Window(5, per=("a", "b"))),
    ),
    # chains outside
    ("1 <= x <= 5", And((Compare("x", ">=", Literal(1)), Compare("x", "<=", Literal(5))))),
    ("5 > x >= 1", And((Compare("x", "<", Literal(5)), Compare("x", ">=", Literal(1))))),
    (
        "NOT 1 < x < 5",
        Not(And((Compare("x", ">", Literal(1)), Compare("x", "<", Literal(5))))),
    ),
    ("y = 2 AND 1 < x < 5 AND x = 1", None),
    ("'a' <= x < 'b'", None),
]  # type: ignore[list-item]


@pytest.mark.parametrize(("text", "tree"), ACCEPTED)
def test_accepted(text: str, tree: Expression | None) -> None:
    parsed = parse(text)
    assert tree is None or (parsed == tree and repr(parsed) == repr(tree))
    assert parse(print_expression(parsed)) == parsed
    for _ in range(2):  # the second time by its key
        agrees(text)


REJECTED = [
    ("EXISTS d ‸= 1", "IN LAST, PER or '(' after EXISTS"),
    ("‸EXISTS (d.x = 1)", "exists takes 2 arguments"),
    ("a = ‸forall(x)", "forall takes 2 arguments"),
    ("∃ ‸(d.x = 1)", "expected a plain name for the document, as in EXISTS d (...)"),
    ("∃ ‸`d` (d.x = 1)", "expected a plain name for the document, as in EXISTS d (...)"),
    ("∃ ‸d.e (d.x = 1)", "expected a plain name for the document, as in EXISTS d (...)"),
    ("∃ ‸and (d.x = 1)", "expected a plain name for the document, as in EXISTS d (...)"),
    ("∀‸", "as in FORALL d (...), found the end"),
    ("EXISTS ‸`d` (d.x = 1)", "EXISTS needs a plain name for the document"),
    ("x AND EXISTS ‸d.e (d.x = 1)", "EXISTS needs a plain name for the document"),
    ("EXISTS d ‸", "IN LAST, PER or '(' after EXISTS d, found the end"),
    ("EXISTS d ‸d.x = 1", "IN LAST, PER or '(' after EXISTS d"),
    ("EXISTS d (‸)", "expected a condition, found ')'"),
    ("EXISTS d (d.x = 1‸", "AND, OR or ')', found the end"),
    ("EXISTS d (d.x = 1) ‸x = 1", "AND, OR or the end"),
    ("EXISTS d (d.x = 1)‸)", "AND, OR or the end, found ')'"),
    ("x = 1 ‸EXISTS d (d.x = 1)", "AND, OR or the end, found EXISTS"),
    ("x ‸∃ d (d.x = 1)", "AND, OR or the end, found '∃'"),
    ("‸x = EXISTS d (d.x = 1)", "EXISTS and FORALL stand by themselves, not inside a term"),
    ("EXISTS d (‸d = 1)", "d is the document itself: name one of its attributes"),
    ("EXISTS d (x = ‸d)", "d is the document itself"),
    ("EXISTS d (‸`d` IS NULL)", "d is the document itself"),
    ("EXISTS d (x = 1 AND ‸EXISTS e (e.x = 1))", "cannot be inside another one"),
    ("EXISTS d (x = 1 AND ‸∀ d (d.x = 1))", "cannot be inside another one"),
    ("EXISTS d (d.x BETWEEN 1 AND ‸x)", "cannot be compared by IN or BETWEEN"),
    ("EXISTS d (d.x IN (1, ‸x))", "cannot be compared by IN or BETWEEN"),
    ("EXISTS d (1 = ‸1)", "both sides are constants"),
    ("EXISTS d (d.x = ‸(x))", "expected a constant, found '('"),
    ("EXISTS d (‸lower(d.x) = x)", "functions such as lower(...)"),
    ("EXISTS d (d.x = ‸lower(x))", "functions such as lower(...)"),
    ("EXISTS d (d.x ‸+ 1 = x)", "arithmetic"),
    ("EXISTS d (d.x ‸<=> x)", "<=> is not supported"),
    ("EXISTS d (‸`\0x` = d.x)", "cannot start with U+0000"),
    ("EXISTS d (x = ‸d.`\0x`)", "cannot start with U+0000"),
    ("‸`\0x` = 1", "cannot start with U+0000"),
    ("x = 1 AND ‸`\0EXISTS d (d.x = x)` IS NOT NULL", "cannot start with U+0000"),
    ("‸`\0a`.b IS NULL", "cannot start with U+0000"),
    ("EXISTS d IN ‸5 (d.x = 1)", "expected LAST after IN, found the number 5"),
    ("EXISTS d IN LAST ‸(d.x = 1)", "a number of documents, or a duration in quotes"),
    ("EXISTS d IN LAST ‸0 (d.x = 1)", "a whole number of documents, at least 1"),
    ("EXISTS d IN LAST ‸-5 (d.x = 1)", "a whole number of documents, at least 1"),
    ("EXISTS d IN LAST ‸5.0 (d.x = 1)", "a whole number of documents, at least 1"),
    ("EXISTS d IN LAST ‸5L (d.x = 1)", "5L is not a number"),
    ("EXISTS d IN LAST ‸1000000001 (d.x = 1)", "at most 1,000,000,000 documents"),
    ("EXISTS d IN LAST 5 ‸OF t (d.x = 1)", "expected IN LAST, PER or '('"),
    ("EXISTS d IN LAST '1 hour' ‸(d.x = 1)", "expected OF"),
    ("EXISTS d IN LAST '1 hour' OF ‸(d.x = 1)", "expected an attribute after OF"),
    ("EXISTS d IN LAST '1 hour' OF ‸d.t (d.x = 1)", "without d. before it"),
    ("EXISTS d IN LAST '1 hour' OF ‸exists PER a (d.x = 1)", "write `exists`"),
    ("EXISTS d IN LAST ‸'an hour' OF t (d.x = 1)", "a duration must be written"),
    ("EXISTS d IN LAST ‸'0 days' OF t (d.x = 1)", "longer than 0"),
    ("EXISTS d IN LAST ‸'1000001 days' OF t (d.x = 1)", "at most 1,000,000 days"),
    ("EXISTS d IN LAST ‸'1 hour OF t (d.x = 1)", "no closing quote"),
    ("EXISTS d PER ‸(d.x = 1)", "expected an attribute after PER"),
    ("EXISTS d PER ‸d.a (d.x = 1)", "without d. before it"),
    ("EXISTS d PER ‸d (d.x = 1)", "d is the document itself"),
    ("EXISTS d PER a, ‸(d.x = 1)", "expected an attribute after PER"),
    ("EXISTS d PER a ‸b (d.x = 1)", "expected IN LAST, PER or '('"),
    ("EXISTS d PER a ‸IN LAST 5 (d.x = 1)", "expected IN LAST, PER or '('"),
    ("1 <= x ‸>= 5", "a chain of comparisons must go one way"),
    ("‸1 = x = 1", "a condition is TRUE or FALSE, and is not compared with a num"),
    ("‸1 < x < 5 < 9", "a condition is TRUE or FALSE, and is not compared with a num"),
    ("‸x < 5 < 9", "a condition is TRUE or FALSE, and is not compared with a num"),
]


@pytest.mark.parametrize(("marked", "message"), REJECTED)
def test_rejected(marked: str, message: str) -> None:
    text = marked.replace("‸", "")
    for reader in (parse, Shapes().read, SEASONED.read):
        with pytest.raises(ExpressionError) as caught:
            reader(text)
        assert message in caught.value.message
        assert caught.value.position == marked.index("‸")
        assert caught.value.text == text


def test_nobody_can_write_a_hidden_name() -> None:
    """Not even one that stands for a predicate which others have subscribed to."""
    shapes = Shapes()
    _, parameters = shapes.read("x = 1 AND EXISTS d (d.x = x)")
    for text in (f"{parameters[-1]} IS NOT NULL", f"EXISTS d (TRUE) AND {parameters[-1]} IS NULL"):
        with pytest.raises(ExpressionError, match="U\\+0000"):
            shapes.read(text)


# ------------------------------------------------------------------ limits


def deep(depth: int) -> str:
    return "(" * depth + "d.x = x" + ")" * depth


def alternating(depth: int) -> str:
    """A tree of the given height and half as many parentheses."""
    return "(d.x = x OR d.y = y AND " * (depth // 2) + "d.x = x" + ")" * (depth // 2)


LIMITS = [
    f"EXISTS d ({deep(200)})",
    f"EXISTS d ({'NOT ' * 200}d.x = x)",
    f"EXISTS d ({alternating(202)})",
    "(" * 100 + f"EXISTS d ({deep(100)})" + ")" * 100,
    "(" * 100 + f"EXISTS d ({alternating(100)})" + ")" * 100,
    f"EXISTS d ({' OR '.join(['d.x = x'] * 4097)})",
    f"EXISTS d (d.x IN ({','.join('1' * 4097)}))",
    " AND ".join(["EXISTS d (d.x IN (1, 2) OR TRUE)"] * 1366),
    "EXISTS d (" * 201,
    "EXISTS d (d.x = '" + "x" * limits.MAX_LENGTH + "')",
]


@pytest.mark.parametrize("text", LIMITS, ids=range(len(LIMITS)))
def test_limits_count_inside(text: str) -> None:
    shapes = Shapes()
    for known in ("EXISTS d (TRUE)", f"EXISTS d ({deep(100)})", f"EXISTS d ({alternating(100)})"):
        shapes.read(known)  # a piece that is known still counts
        for levels in (1, 50, 100):
            shapes.read("(" * levels + "EXISTS d (TRUE)" + ")" * levels)
    for reader in (parse, shapes.read):
        with pytest.raises(ExpressionError) as caught:
            reader(text)
        nests = text.startswith("EXISTS d (EXISTS")
        assert isinstance(caught.value, LimitError) != nests


def test_just_inside_the_limits() -> None:
    for text in (
        f"EXISTS d ({deep(199)})",
        f"EXISTS d ({alternating(198)})",
        "(" * 100 + f"EXISTS d ({deep(99)})" + ")" * 100,
        f"EXISTS d ({' OR '.join(['d.x = x'] * 4096)})",
    ):
        agrees(text)
        assert parse(print_expression(parse(text))) == parse(text)


def test_a_canonical_text_may_be_longer_than_any_that_is_accepted() -> None:
    """Control characters are written with an escape, so names can outgrow the limit of texts."""
    text = "x = 1 AND EXISTS d (d.x = '" + "\1" * 60_000 + "')"
    agrees(text)
    [_, quantified] = parse(text).operands  # type: ignore[union-attr]
    assert len(hidden_name(quantified)) > limits.MAX_LENGTH
    assert quantified_of(hidden_name(quantified)) == quantified


# ------------------------------------------------------------------ durations


@pytest.mark.parametrize(
    ("text", "microseconds", "shown"),
    [
        ("1 microsecond", 1, "1 microsecond"),
        ("90 minutes", 90 * MINUTE, "1 hour 30 minutes"),
        ("  1 HOUR  30 Minutes ", 90 * MINUTE, "1 hour 30 minutes"),
        ("30 minutes 1 hour", 90 * MINUTE, "1 hour 30 minutes"),
        ("2 weeks 1 day", 15 * 24 * 60 * MINUTE, "15 days"),
        ("1500 milliseconds", 1_500_000, "1 second 500 milliseconds"),
        ("1 day 1 day", 2 * 24 * 60 * MINUTE, "2 days"),
        ("1000000 days", limits.MAX_WINDOW_DAYS * 24 * 60 * MINUTE, "1000000 days"),
    ],
)
def test_durations(text: str, microseconds: int, shown: str) -> None:
    assert duration_value(text) == microseconds
    assert print_duration(microseconds) == shown


@pytest.mark.parametrize(
    "text",
    ["", " ", "5", "hour", "1 hours x", "-1 hour", "1.5 hours", "1hour", "1 hourss", "1 month",
     "1 hour, 5 minutes", "1 hour30 minutes", "٣ hours", "9" * 19 + " days", "0 days 0 hours"],
)  # fmt: skip
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration_value(text)


@given(st.integers(1, limits.MAX_WINDOW_DAYS * 24 * 60 * MINUTE))
def test_a_duration_reads_back(microseconds: int) -> None:
    assert duration_value(print_duration(microseconds)) == microseconds


# ------------------------------------------------------------------ printing and normal forms


@given(strategies.joined_expressions())
def test_print_then_parse(tree: Expression) -> None:
    parsed = parse(print_expression(tree))  # which has no AND in AND
    assert parse(print_expression(parsed)) == parsed
    assert [node for node in walk(parsed) if isinstance(node, Quantified)] == [
        parse(print_expression(node)) for node in walk(tree) if isinstance(node, Quantified)
    ]


ODD_NAMES = st.sampled_from(
    ["d", "d1", "d.x", "`d.x`", "`d`` `", "exists", "forall", "per", "last", "and", "\2", "é", "x"]
)


@given(ODD_NAMES, ODD_NAMES, ODD_NAMES, st.lists(ODD_NAMES, max_size=3).map(tuple), st.booleans())
def test_odd_names_survive_printing(
    ours: str,
    theirs: str,
    of: str,
    per: tuple[str, ...],
    universal: bool,  # noqa: FBT001
) -> None:
    leaves = (
        *(Join(theirs, "<", ours), Pair(universal, theirs, "=", ours)),
        *(OfDocument(IsNull(theirs)), Compare(ours, ">", Literal(1))),
    )
    tree = Quantified(universal, And(leaves), Window(None, 1, of, per))
    assert parse(print_expression(tree)) == tree
    assert quantified_of(hidden_name(tree)) == canonical(tree)
    assert read(print_expression(tree)) == canonical(tree)


def test_the_document_gets_a_free_name() -> None:
    tree = parse("EXISTS e PER d1.y (e.x = d.x AND e.d2 = 1)")
    assert print_expression(tree) == "EXISTS d2 PER d1.y (d2.x = d.x AND d2.d2 = 1)"


def check_normal(tree: Expression) -> None:
    """What ``normal_form`` promises of a quantifier's condition."""
    for node in walk(tree):
        assert tree is node or not isinstance(node, BooleanConstant)
        if isinstance(node, Not):
            inner = node.operand
            if isinstance(inner, OfDocument):
                inner = inner.predicate
            assert isinstance(inner, In | Between | Like | Regex | IsNull | Quantified)
        elif isinstance(node, And | Or):
            assert not any(isinstance(operand, type(node)) for operand in node.operands)


@given(strategies.joined_expressions(), strategies.joined_events(), strategies.documents())
def test_normal_form_is_true_for_the_same_events(
    tree: Expression, event: dict[str, Any], documents: list[dict[str, Any]]
) -> None:
    normal = normal_form(tree)
    check_normal(normal)
    assert oracle.matches(normal, event, documents) == oracle.matches(tree, event, documents)
    assert unflat(flat(normal)) == normal


@given(strategies.quantified(), strategies.joined_events(), strategies.documents())
def test_canonical_form_says_the_same(
    quantified: Quantified, event: dict[str, Any], documents: list[dict[str, Any]]
) -> None:
    shared = canonical(quantified)
    check_normal(shared.condition)
    assert canonical(shared) == shared
    assert oracle.truth(shared, event, documents) is oracle.truth(quantified, event, documents)
    name = hidden_name(quantified)
    assert is_hidden(name)
    assert quantified_of(name) == shared
    assert hidden_name(shared) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("EXISTS d (d.price > price)", "EXISTS d (d.price > price)"),
        ("∃ e ((price < e.price))", "EXISTS d (d.price > price)"),
        ("exists d (NOT NOT price < d.price)", "EXISTS d (d.price > price)"),
        ("FORALL d (d.b = 1 AND d.a = a)", "FORALL d (d.a = a AND d.b = 1)"),
        ("FORALL d (a = d.a AND d.b = 1 AND d.a = a)", "FORALL d (d.a = a AND d.b = 1)"),
        ("FORALL d (NOT (d.b != 1 OR d.a != a))", "FORALL d (d.a = a AND d.b = 1)"),
        ("EXISTS d ((d.b OR d.a) AND TRUE)", "EXISTS d (d.a = TRUE OR d.b = TRUE)"),
        (
            "EXISTS d (d.c = c AND (d.b = b AND d.a = a OR d.a = a AND d.b = b))",
            "EXISTS d (d.a = a AND d.b = b AND d.c = c)",
        ),
        ("EXISTS d (y > x AND d.b >= d.a)", "EXISTS d (d.a <= d.b AND x < y)"),
        ("EXISTS d (d.a IN (2, 1, 2))", "EXISTS d (d.a IN (1, 2))"),
        ("EXISTS d (d.a NOT IN (1, 1))", "EXISTS d (d.a != 1)"),
        ("EXISTS d PER b, a, b (TRUE)", "EXISTS d PER a, b (TRUE)"),
        (
            "EXISTS d IN LAST '3600 seconds' OF t (TRUE)",
            "EXISTS d IN LAST '1 hour' OF t (TRUE)",
        ),
        ("EXISTS e (e.x = d.x AND FALSE)", "EXISTS d (FALSE)"),
        ("EXISTS e (e.x = d.x)", "EXISTS d1 (d1.x = d.x)"),
        ("EXISTS d (d.`a.b` = `q```)", "EXISTS d (d.`a.b` = `q```)"),
    ],
)
def test_names_of_quantified_predicates(text: str, name: str) -> None:
    quantified = parse(text)
    assert isinstance(quantified, Quantified)
    assert hidden_name(quantified) == HIDDEN + name
    _, [word] = Shapes().read(text)
    assert bittern.Index.build({"s": text}).rank.attribute_names() == [HIDDEN + name]
    assert word == "`" + HIDDEN + name.replace("`", "``") + "`"


def test_different_predicates_have_different_names() -> None:
    texts = [
        "EXISTS d (d.x = 1)", "EXISTS d (x = 1)", "FORALL d (d.x = 1)", "EXISTS d (d.x = '1')",
        "EXISTS d (d.x = x)", "EXISTS d (d.x = d.x)", "EXISTS d (x = x)", "EXISTS d (d.x = y)",
        "EXISTS d (d.y = x)", "EXISTS d IN LAST 1 (d.x = 1)", "EXISTS d PER x (d.x = 1)",
        "EXISTS d PER x, y (d.x = 1)", "EXISTS d IN LAST '1 day' OF x (d.x = 1)",
        "EXISTS d IN LAST '1 day' OF y (d.x = 1)", "EXISTS e (d.x = 1)", "EXISTS d (d.d.x = 1)",
        "EXISTS d (d.x = 1 OR d.y = 1)", "EXISTS d (d.x = 1 AND d.y = 1)",
    ]  # fmt: skip
    names = [hidden_name(parse(text)) for text in texts]  # type: ignore[arg-type]
    assert len(set(names)) == len(texts)


# ------------------------------------------------------------------ reading in bulk


def test_texts_with_quantifiers_share_shapes() -> None:
    shapes = Shapes()
    first, parameters = shapes.read("x = 1 AND EXISTS d (d.price > price)")
    assert parameters == ("x", "1", "`\0EXISTS d (d.price > price)`")
    assert shapes.templates[first].kinds == ("attribute", "number", "join")
    for text in (
        "y = 2 AND FORALL d PER a, b (d.s LIKE ')' OR NOT (d.x < x))",
        "x = 1 AND ∃ d (d.price > price)",
        "x=1 AND (exists d(d.`)`='(' ))",
    ):
        assert shapes.read(text)[0] == first
    assert shapes.read("x = 1 AND y IS NOT NULL")[0] != first
    assert shapes.read("x = 1 AND NOT EXISTS d (d.price > price)")[0] != first


@examples(3)
@given(strategies.joined_expressions(), st.sampled_from(["EXISTS", "exists", "∃", "∃ "]))
def test_shapes_agree_with_the_parser(tree: Expression, word: str) -> None:
    text = print_expression(tree)
    agrees(text)
    agrees(re.sub(r"EXISTS (?=d1? )", word if word[0] == "∃" else word + " ", text))


VALID = [
    "x = 1 AND EXISTS d IN LAST 5 PER a, b (d.x > x OR d.s = ')' AND NOT d.`(` IN (1, 2)) OR y",
    "NOT FORALL d IN LAST '1 hour' OF t (isbn != d.isbn)AND exists = 1 AND(∃ e (e.x <= 5 < 6))",
    "10 <= price <= 30 AND ∀ d (isbn ≠ d.isbn) OR exists exists(exists.x = forall)",
]
WORDS = sorted({word for text in VALID for word in re.findall(r"\w+|\W", text)})


@examples(20)
@given(
    st.sampled_from(VALID),
    st.lists(
        st.tuples(
            st.integers(0, 95),
            st.integers(0, 4),
            st.one_of(st.sampled_from(WORDS), st.sampled_from("'\"`().\0∃"), st.text(max_size=2)),
        ),
        max_size=3,
    ),
)
def test_damaged_expressions(text: str, damages: list[tuple[int, int, str]]) -> None:
    for position, length, new in damages:
        text = text[:position] + new + text[position + length :]
    agrees(text)


@examples(20)
@given(
    st.lists(
        st.sampled_from(
            ["EXISTS", "exists", "∃", "∀", "d", "(", ")", "d.x", "x", "=", "<", "1", "AND", "NOT"]
        ),
        max_size=14,
    ),
    st.sampled_from(["", " "]),
)
def test_word_salad(words: list[str], between: str) -> None:
    agrees(between.join(words))


@pytest.mark.parametrize(
    "text",
    [
        "b = 2 AND EXISTS d (d.x = x) AND a < 1",
        "EXISTS d (d.x = x) AND FORALL d (d.y = y) AND a < 1",
        "FORALL d (d.y = y) AND a < 1 AND EXISTS d (d.x = x)",
        "exists = 1 AND EXISTS d (d.x = x)",
        "b = 2 AND EXISTS d (d.x = 5 AND) AND a < 1",
        "b = 2 AND EXISTS d (d.x = x) AND a <",
    ],
)
def test_conjunctions_may_be_read_in_sorted_order(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("bittern.language.shapes._MANY_KEYS", 0)
    shapes = Shapes()
    for _ in range(2):  # the first time by the parser, then by its sorted key
        agrees(text, shapes)


def test_forgetting_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bittern.language.shapes._MAX_REMEMBERED", 2)
    texts = [f"x = {i} AND EXISTS d (d.x = {i})" for i in range(5)] * 2
    shapes = Shapes()
    read = [shapes.read(text) for text in texts]
    assert {shape for shape, _ in read} == {0}
    assert [own[2] for _, own in read] == [f"`\0EXISTS d (d.x = {i})`" for i in range(5)] * 2


def test_mistakes_are_where_the_user_made_them() -> None:
    bad = ["x = 1 AND EXISTS d (d.x = y AND d) OR x", "EXISTS d (d.x = x) AND EXISTS d (d.x = x) x"]
    with pytest.raises(SubscriptionError) as caught:
        bittern.Index.build(dict(enumerate(bad)))
    assert [each.position for each in caught.value.bad] == [32, 42]


# ------------------------------------------------------------------ relaxed templates


@pytest.mark.parametrize(
    ("text", "relaxed"),
    [
        ("x = 1 AND EXISTS d (d.x = x)", "x = 1"),
        ("x = 1 AND NOT EXISTS d (d.x = x)", "x = 1"),
        ("x = 1 OR EXISTS d (d.x = x)", "TRUE"),
        ("EXISTS d (d.x = x)", "TRUE"),
        ("NOT (x = 1 OR EXISTS d (d.x = x) AND y = 2)", "x != 1"),
        ("(x = 1 OR FORALL d (d.x = x)) AND y NOT IN (1, 2)", "y NOT IN (1, 2)"),
        ("x IS NULL AND y IS NOT NULL", "x IS NULL AND y IS NOT NULL"),
        ("FALSE AND EXISTS d (d.x = x)", "FALSE"),
    ],
)
def test_relaxed(text: str, relaxed: str) -> None:
    shapes = Shapes()
    shape_id, parameters = shapes.read(text)
    template = shapes.templates[shape_id]
    assert template.relaxed().kinds == template.kinds
    assert print_expression(template.relaxed().fill(parameters)) == relaxed


@given(strategies.joined_expressions(), strategies.joined_events(), strategies.documents())
def test_what_matches_matches_relaxed(
    tree: Expression, event: dict[str, Any], documents: list[dict[str, Any]]
) -> None:
    for either in (tree, Not(tree)):
        shape_id, parameters = SEASONED.read(print_expression(either))
        relaxed = SEASONED.templates[shape_id].relaxed().fill(parameters)
        assert not any(isinstance(node, Quantified) for node in walk(relaxed))
        assert oracle.matches(relaxed, event) >= oracle.matches(either, event, documents)


# ------------------------------------------------------------------ semantics


@pytest.mark.parametrize("rule", semantics.JOINED, ids=lambda rule: rule.expression)
def test_rules(rule: semantics.Joined) -> None:
    assert oracle.truth(parse(rule.expression), rule.event, rule.documents) is rule.answer


def test_an_index_has_a_hidden_attribute_for_each_predicate() -> None:
    index = bittern.Index.build(
        {
            "s": "x = 1 AND EXISTS d (d.price > price)",
            "t": "y = 1 OR NOT ∃ e (price < e.price)",
            "u": "FORALL d (FALSE)",
        }
    )
    names = index.rank.attribute_names()
    hidden = {name for name in names if is_hidden(name)}
    assert set(names) - hidden == {"x", "y"}
    assert hidden == {HIDDEN + "EXISTS d (d.price > price)", HIDDEN + "FORALL d (FALSE)"}
