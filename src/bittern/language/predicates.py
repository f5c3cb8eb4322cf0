"""Predicates from tokens: one after the other, each read in one go.

::

    price <= 30             Compare(price, <=, 30)
    10 <= price <= 30       two of them: Compare(price, >=, 10) AND Compare(price, <=, 30)

Inside ``EXISTS d ( ... )`` an attribute belongs to the document if its path starts with the name
``d``, else to the event. The two sides decide what a comparison becomes::

    d.price < 5             OfDocument(Compare(price, <, 5))
    price > d.price         Join(d.price, <, price)           the document first, always
    d.low <= d.high         Pair(of the document, low, <=, high)

Reading is O(length), and nothing here calls itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bittern.errors import LimitError
from bittern.language.complaints import AFTER_IS, explain_token, incomplete, no_function
from bittern.language.lexer import MISSING, Token, TokenCursor, is_complete, tokens
from bittern.language.limits import MAX_PARTS, MAX_PREDICATES
from bittern.language.literals import (
    MARKS,
    READERS,
    attribute_of,
    attribute_parts,
    has_too_many_parts,
    string_value,
)
from bittern.language.presence import presence_of
from bittern.language.syntax import (
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
    Pair,
    Predicate,
    Regex,
)
from bittern.terms.pattern_texts import LikeParts, RegexTooLargeError, compile_regex, like_parts

#: The operator that says the same of the operands in the other order.
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: Comparisons that can follow each other: from small to large, or from large to small.
_CHAINS = (frozenset(("<", "<=")), frozenset((">", ">=")))
_KEYWORD_VALUES = {"TRUE": True, "FALSE": False, "NULL": None}
_LITERAL_STARTS = frozenset(("number", "string", "DATE", "TIMESTAMP", *_KEYWORD_VALUES))
#: Kinds that may stand together in one IN or BETWEEN share a family.
_FAMILIES = {"date": "time", "timestamp": "time"}


class NamedAttribute(NamedTuple):
    """What stands for an attribute's name in the tree, and whether it is the document's."""

    name: Any
    of_document: bool


def too_many_predicates(text: str, position: int) -> LimitError:
    """What is said of a text with more predicates than allowed."""
    return LimitError(
        f"an expression has at most {MAX_PREDICATES:,} predicates, "
        "and every value of IN counts as one",
        text,
        position,
    )


class PredicateParser(TokenCursor):
    """The tokens of one text, and how predicates are read from them.

    Subclasses may change what stands for names, values and patterns.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text, tokens(text))
        self._n_predicates = 0
        #: What the quantifier around calls the document; None outside.
        self._alias: str | None = None

    # What stands in the tree for an attribute, a literal, a pattern.

    def _name(self, token: Token, name: str) -> Any:
        if name.startswith(MARKS):
            self._error(f"an attribute name cannot start with U+{ord(name[0]):04X}", token)
        return name

    def _presence(self, token: Token, name: Any) -> Any:
        if self._alias is not None:
            self._error("IS MISSING cannot stand inside EXISTS or FORALL: use IS NULL", token)
        return presence_of(name)

    def _value(self, token: Token, kind: str, value: Any) -> Any:  # noqa: ARG002
        return Literal(value)

    def _like(self, token: Token, escape: Token | None, parts: LikeParts) -> Any:  # noqa: ARG002
        return string_value(token.text)

    def _regex(self, token: Token, pattern: str) -> Any:  # noqa: ARG002
        return pattern

    # Predicates.

    def _predicate(self, token: Token) -> list[Expression]:
        """Read a predicate, or the two that a chain of comparisons is."""
        self._count(token)
        following = self._tokens[self._next]
        if token.kind == "attribute":
            if following.kind == "string":
                # most likely an operator that does not exist here: say so before anything else
                self._fail(following, "an operator")
            attribute = self._attribute(token)
            if following.kind not in FLIPPED:
                return [self._on_attribute(attribute)]
            left: Any = attribute
        elif token.kind in _LITERAL_STARTS:
            if token.kind in _KEYWORD_VALUES and following.kind not in FLIPPED:
                return [BooleanConstant(_KEYWORD_VALUES[token.kind])]
            left, _ = self._literal(token)
        else:
            self._fail(token, "a condition")
        operator = self._take()
        if operator.kind not in FLIPPED:
            self._fail(operator, "a comparison with an attribute after the constant")
        middle = self._operand(left)
        first = self._comparison(left, operator.kind, middle)
        following = self._tokens[self._next]
        if following.kind not in FLIPPED or not isinstance(middle, NamedAttribute):
            return [first]
        self._next += 1
        if not any(chain >= {operator.kind, following.kind} for chain in _CHAINS):
            self._error("a chain of comparisons must go one way, such as 10 <= a < 30", following)
        self._count(self._tokens[self._next])
        return [first, self._comparison(middle, following.kind, self._operand(middle))]

    def _operand(self, left: Any) -> Any:
        """Read what an attribute or a constant is compared with."""
        token = self._take()
        if isinstance(left, NamedAttribute):
            if token.kind == "attribute" and self._alias is not None:
                return self._attribute(token)
            return self._literal(token)[0]
        if token.kind in _LITERAL_STARTS:
            self._error("both sides are constants: one of them must be an attribute", token)
        return self._attribute(token)

    def _comparison(self, left: Any, operator: str, right: Any) -> Expression:
        if not isinstance(left, NamedAttribute):
            left, operator, right = right, FLIPPED[operator], left
        if not isinstance(right, NamedAttribute):
            return self._sided(left, Compare(left.name, operator, right))
        if left.of_document == right.of_document:
            return Pair(left.of_document, left.name, operator, right.name)
        if left.of_document:
            return Join(left.name, operator, right.name)
        return Join(right.name, FLIPPED[operator], left.name)

    def _sided(self, attribute: NamedAttribute, predicate: Predicate) -> Expression:
        return OfDocument(predicate) if attribute.of_document else predicate

    def _on_attribute(self, attribute: NamedAttribute) -> Expression:
        """Read a predicate on an attribute that is not a comparison."""
        if self._accept("IS"):
            negated = self._accept("NOT")
            token = self._tokens[self._next]
            if self._accept(MISSING):
                positive: Predicate = IsNull(self._presence(token, attribute.name))
            else:
                of_documents = "NULL after IS" if negated else "NULL or NOT NULL after IS"
                self._expect("NULL", AFTER_IS if self._alias is None else of_documents)
                positive = IsNull(attribute.name)
        else:
            negated = self._accept("NOT")
            operator = self._tokens[self._next]
            if operator.kind == "BETWEEN":
                self._next += 1
                positive = self._between(attribute.name)
            elif operator.kind == "IN":
                self._next += 1
                positive = self._in(attribute.name)
            elif operator.kind == "LIKE":
                self._next += 1
                positive = self._like_predicate(attribute.name)
            elif operator.kind in ("RLIKE", "REGEXP"):
                self._next += 1
                positive = self._regex_predicate(attribute.name)
            elif negated:
                self._fail(operator, "IN, BETWEEN, LIKE or RLIKE after NOT")
            else:
                positive = Compare(attribute.name, "=", Literal(True))
        found = self._sided(attribute, positive)
        return Not(found) if negated else found

    def _between(self, attribute: str) -> Between:
        low, low_kind = self._literal(self._take())
        self._expect("AND", "AND between the two ends of BETWEEN")
        token = self._take()
        high, high_kind = self._literal(token)
        self._same_family(low_kind, high_kind, token, "BETWEEN")
        return Between(attribute, low, high)

    def _in(self, attribute: str) -> In:
        following = self._tokens[self._next]
        if self._alias is not None and following.text.upper() == "SET":
            self._error("IN SET stands outside of EXISTS and FORALL, not inside", following)
        self._expect("(", "'(' after IN")
        token = self._take()
        if token.kind == ")":
            self._error("IN needs at least one value", token)
        literal, known = self._literal(token)
        values = [literal]
        while (separator := self._take()).kind == ",":
            token = self._take()
            self._count(token)
            literal, kind = self._literal(token)
            self._same_family(known, kind, token, "IN")
            known = kind if known == "null" else known
            values.append(literal)
        if separator.kind != ")":
            self._fail(separator, "',' or ')' in the list of IN")
        return In(attribute, tuple(values))

    def _same_family(self, first: str, second: str, token: Token, where: str) -> None:
        families = {_FAMILIES.get(kind, kind) for kind in (first, second) if kind != "null"}
        if len(families) > 1:
            self._error(f"{where} mixes a {first} with a {second}", token)

    def _like_predicate(self, attribute: str) -> Like:
        pattern = self._string("a string as the pattern of LIKE")
        text = self._read(pattern, "string")
        escape_token, escape = None, "\\"
        if self._accept("ESCAPE"):
            escape_token = self._string("a string of one character after ESCAPE")
            escape = self._read(escape_token, "string")
            if len(escape) != 1 or escape > "\uffff":
                self._error("ESCAPE needs a string of exactly one character", escape_token)
        try:
            parts = like_parts(text, escape)
        except ValueError as wrong:
            self._error(str(wrong), pattern)
        return Like(attribute, self._like(pattern, escape_token, parts), escape)

    def _regex_predicate(self, attribute: str) -> Regex:
        token = self._string("a string as the regular expression")
        pattern = self._read(token, "string")
        try:
            compile_regex(pattern)
        except RegexTooLargeError as wrong:
            raise LimitError(str(wrong), self.text, token.position) from None
        except ValueError as wrong:
            self._error(str(wrong), token)
        return Regex(attribute, self._regex(token, pattern))

    # Attributes and literals.

    def _attribute(self, token: Token) -> NamedAttribute:
        if token.kind != "attribute":
            self._fail(token, "an attribute")
        if self._tokens[self._next].kind == "(":
            self._error(no_function(token), token)
        return self._attribute_of(token)

    def _attribute_of(self, token: Token) -> NamedAttribute:
        """The attribute of a path, which tells whether it is the document's."""
        name = self._read(token, "attribute")
        if self._alias is not None:
            first, *rest = attribute_parts(name)
            if first == self._alias:
                if not rest:
                    self._error(
                        f"{first} is the document itself: name one of its attributes, "
                        f"such as {first}.price",
                        token,
                    )
                own = self._limited(attribute_of(rest), token)
                return NamedAttribute(self._name(token, own), of_document=True)
        return NamedAttribute(self._name(token, self._limited(name, token)), of_document=False)

    def _limited(self, name: str, token: Token) -> str:
        if has_too_many_parts(name):
            raise LimitError(
                f"an attribute has at most {MAX_PARTS} parts, separated by dots",
                self.text,
                token.position,
            )
        return name

    def _literal(self, token: Token) -> tuple[Any, str]:
        """Read the literal that starts with a token; returns its kind too."""
        kind = token.kind
        if kind in _KEYWORD_VALUES:
            return Literal(_KEYWORD_VALUES[kind]), "null" if kind == "NULL" else "boolean"
        if kind in ("DATE", "TIMESTAMP"):
            kind, token = kind.lower(), self._take()
        elif kind not in ("number", "string"):
            self._fail(token, "a constant")
        return self._value(token, kind, self._read(token, kind)), kind

    def _string(self, expected: str) -> Token:
        token = self._take()
        if token.kind != "string":
            self._fail(token, expected)
        return token

    def _read(self, token: Token, kind: str) -> Any:
        if not is_complete(token.text):
            self._error(incomplete(token), token)
        try:
            return READERS[kind](token.text)
        except ValueError as wrong:
            self._error(str(wrong), token)

    # Tokens.

    def _count(self, token: Token) -> None:
        self._n_predicates += 1
        if self._n_predicates > MAX_PREDICATES:
            raise too_many_predicates(self.text, token.position)

    def _fail(self, token: Token, expected: str) -> Any:
        quantified = self._alias is not None
        self._error(explain_token(self._tokens, token, expected, quantified=quantified), token)
