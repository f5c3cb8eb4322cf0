"""Whatever the text: a tree comes out, or an error that points into it."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import ExpressionError
from bittern.language.normalize import normal_form
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.shapes import Shapes
from effort import examples

VALID = [
    "price <= 580 AND model = 'iphone5s' OR NOT (color IN ('silver', \"gold\") AND active)",
    "`odd name`.b NOT LIKE '%x\\_y' ESCAPE '\\\\' AND a.b.c IS NOT NULL OR 5 < a",
    "day BETWEEN DATE '2020-01-31' AND TIMESTAMP '2020-02-01 10:00:00.5+01:00' AND TRUE",
    "name RLIKE '^(a|b)+[0-9]{2,3}$' AND x != -1.50 AND y >= 1e-7 AND z IN (NULL, 1, 2)",
    "missing IS NOT MISSING OR lower(a) = 'x' AND NOT a.b is missing AND `a``.` IS MISSING",
]
WORDS = sorted({word for text in VALID for word in re.findall(r"\w+|\W", text)})
SHAPES = Shapes()


def attempt(read, text: str):
    """What reading gives, or the error that refuses it."""
    try:
        return read(text)
    except ExpressionError as wrong:
        return wrong


def check(text: str) -> None:
    tree = attempt(parse, text)
    shape = attempt(SHAPES.read, text)
    if isinstance(tree, ExpressionError):
        assert 0 <= tree.position <= len(text)
        assert tree.message in str(tree)
        assert isinstance(shape, ExpressionError)
        assert (shape.message, shape.position) == (tree.message, tree.position)
    else:
        assert parse(print_expression(tree)) == tree
        shape_id, parameters = shape
        assert SHAPES.templates[shape_id].fill(parameters) == normal_form(tree)


@examples(20)
@given(st.text(max_size=60))
def test_any_text(text):
    check(text)


@examples(6)
@given(st.text(st.characters(categories=["Cs", "Cc", "Zs", "Nd", "Po", "Sm"]), max_size=40))
def test_odd_characters(text):
    check(text)


@examples(6)
@given(st.binary(max_size=80))
def test_any_bytes(data):
    check(data.decode("latin-1"))
    check(data.decode("utf-8", "surrogateescape"))


@examples(20)
@given(
    st.sampled_from(VALID),
    st.lists(
        st.tuples(
            st.integers(0, 90),
            st.integers(0, 3),
            st.one_of(st.sampled_from(WORDS), st.sampled_from("'\"`\\().-\0"), st.text(max_size=2)),
        ),
        max_size=4,
    ),
)
def test_damaged_expressions(text, damages):
    for position, length, new in damages:
        text = text[:position] + new + text[position + length :]
    check(text)


@examples(20)
@given(st.lists(st.sampled_from(WORDS), max_size=25), st.sampled_from(["", " "]))
def test_word_salad(words, between):
    check(between.join(words))
