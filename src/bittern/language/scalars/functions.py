"""Calls of functions: ``name(arguments)``, and those that have words between their arguments.

============================================  ==========================
text                                          call
============================================  ==========================
``CAST(a AS INT)``                            ``cast`` to INT of a
``EXTRACT(year FROM a)``                      ``extract('year', a)``
``TRIM(LEADING 'x' FROM a)``                  ``ltrim('x', a)``
``SUBSTRING(a FROM 2 FOR 3)``                 ``substring(a, 2, 3)``
``POSITION('b' IN a)``                        ``position('b', a)``
``exists(tags, t -> t > 'x')``                a ``Lambda`` is an argument
============================================  ==========================
"""

from __future__ import annotations

import pyarrow as pa

from bittern.errors import did_you_mean
from bittern.language.lexer import Token
from bittern.language.scalars.refused import REFUSED
from bittern.language.scalars.tokens import COLLATE, FunctionCallError, TokenReader
from bittern.terms.nodes import Call, Constant, Lambda, Term
from bittern.terms.scope import Meaning, functions
from bittern.terms.types import type_of
from bittern.terms.unknown import is_any_function_allowed

_OPENING = frozenset(("(", "<"))
#: How many levels of brackets each token of a type goes in or out.
_DEPTHS = {"(": 1, "<": 1, ")": -1, ">": -1, ">>": -2, ">>>": -3}


class FunctionReader(TokenReader):
    """Reads calls of functions."""

    def _with_collation(self, term: Term, token: Token) -> Term:
        """Read the name of a collation."""
        raise NotImplementedError

    def _value(self, least: int) -> Term:
        """Read a value of operators that bind more tightly than ``least``."""
        raise NotImplementedError

    def _function(self, token: Token) -> Term:
        name = token.text.lower()
        opening = self._take()
        if name in ("cast", "try_cast"):
            term = self._condition()
            if not self._word("as"):
                self._fail(self._peek(), f"AS and a type in {name.upper()}")
            kind = self._type()
            self._expect(")", "')'")
            return self._fold(Call(name, (term,), kind))
        if name == "extract":
            field = self._take().text
            if not self._word("from"):
                self._fail(self._peek(), "FROM in EXTRACT")
            arguments: list[Term] = [Constant(pa.scalar(field)), self._condition()]
            self._expect(")", "')'")
        elif name == COLLATE:
            term = self._condition()
            self._expect(",", "',' and the name of a collation")
            collation = self._take()
            self._expect(")", "')'")
            return self._with_collation(term, collation)
        elif name == "trim" and self._peek().kind != ")":
            name, arguments = self._trim()
        elif self._accept(")"):
            arguments = []
        else:
            first = self._value(0) if name == "position" else self._argument()
            arguments = self._arguments(name, first)
        if name in ("date_part", "datepart"):
            name = "extract"
        if name == "position" and len(arguments) == 1:
            self._error("position takes two arguments, as in position('b' IN a)", opening)
        self._check_function(name, len(arguments), token)
        if name == "extract":
            arguments[0] = self._field(arguments[0], token)
        return self._call(name, arguments)

    def _field(self, term: Term, token: Token) -> Term:
        """The name of a field, which is a word that stands for itself."""
        name = term.scalar.as_py() if isinstance(term, Constant) else None
        if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
            raise FunctionCallError(
                "extract and date_part take the name of a field, such as year",
                self.text,
                token.position,
            )
        return Constant(pa.scalar(name.lower()))

    def _trim(self) -> tuple[str, list[Term]]:
        """TRIM([BOTH | LEADING | TRAILING] [characters] FROM text), or a call like any other."""
        sides = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}
        side = self._peek().text.lower()
        is_sided = side in sides and self._peek(1).kind not in (")", ",")
        if is_sided:
            self._take()
        characters = [] if self._is_word("from") else [self._condition()]
        if not self._word("from"):
            if is_sided:
                self._fail(self._peek(), "FROM in TRIM")
            return "trim", self._arguments("trim", characters[0])  # and nothing is read twice
        text = self._condition()
        self._expect(")", "')'")
        return sides[side] if is_sided else "trim", [*characters, text]

    def _arguments(self, name: str, first: Term) -> list[Term]:
        """The arguments up to ``)``; SUBSTRING has FROM and FOR, POSITION IN, OVERLAY PLACING."""
        between = {
            "substring": ("from", "for"),
            "substr": ("from", "for"),
            "overlay": ("placing", "from", "for"),
        }.get(name, ())
        arguments = [first]
        while True:
            token = self._take()
            if token.kind == ")":
                return arguments
            is_word = token.kind == "attribute" and token.text.lower() in between
            if (
                token.kind != ","
                and not is_word
                and not (name == "position" and token.kind == "IN")
            ):
                self._fail(token, "',' or ')'")
            arguments.append(self._argument())

    def _argument(self) -> Term:
        """An argument, which may be a function itself: ``x -> ...`` or ``(x, y) -> ...``."""
        if self._peek().kind == "(":
            at = self._next + 1
            names = []
            while self._tokens[at].kind == "attribute" and self._tokens[at + 1].kind in (",", ")"):
                names.append(self._tokens[at])
                at += 2
                if self._tokens[at - 1].kind == ")":
                    break
            if names and self._tokens[at].kind == "->":
                self._next = at + 1
                return Lambda(tuple(map(self._parameter, names)), self._condition())
        return self._condition()

    def _parameter(self, token: Token) -> str:
        name = self._name(token)
        if "." in name or "`" in name:
            self._error("the parameter of -> is a plain name", token)
        return name

    def _check_function(self, name: str, count: int, token: Token) -> None:
        known = functions()
        meaning = known.get(name)
        if meaning is None or not name.isidentifier():
            if name in REFUSED:
                raise FunctionCallError(
                    f"{name} cannot stand in a subscription: {REFUSED[name]}",
                    self.text,
                    token.position,
                )
            if is_any_function_allowed():
                return
            hint = did_you_mean(name, filter(str.isidentifier, known))
            hint = hint or ' here; functions="spark" allows more'
            message = f"there is no function {name[:40]}{hint}"
            raise FunctionCallError(message, self.text, token.position)
        if count < meaning.least or 0 <= meaning.most < count:
            message = f"{name} takes {_how_many(meaning)}, not {count}"
            raise FunctionCallError(message, self.text, token.position)

    def _type(self) -> pa.DataType:
        """A name, with what is in brackets behind it: DECIMAL(10, 2), ARRAY<STRUCT<a: INT>>."""
        token = self._take()
        pieces, depth = [token.text], 0
        while self._peek().kind in _OPENING or depth > 0:
            piece = self._take()
            if piece.kind in ("end", "other"):
                self._fail(piece, "the end of the type")
            depth += _DEPTHS.get(piece.kind, 0)
            pieces.append(piece.text)
        try:
            return type_of(" ".join(pieces))
        except ValueError as wrong:
            self._error(str(wrong), token)

    def _list(self, closing: str) -> list[Term]:
        """Terms with commas between them, up to a closing parenthesis."""
        found = [self._condition()]
        while self._accept(","):
            found.append(self._condition())
        self._expect(closing, f"',' or '{closing}'")
        return found


def _how_many(meaning: Meaning) -> str:
    least, most = meaning.least, meaning.most
    if most < 0:
        return f"at least {least} argument{'s' * (least != 1)}"
    if least == most:
        return f"{least} argument{'s' * (least != 1)}"
    return f"{least} to {most} arguments"
