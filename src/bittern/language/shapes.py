r"""Reading subscriptions in bulk: millions of texts, few shapes.

Subscriptions come from forms and programs, so most differ only in names and constants. One regular
expression cuts a text into words and what stands between them::

    text     price <= 580 AND model = 'iphone5s'
    words    price     580    AND    model    'iphone5s'
    between        <=                       =
    key      a     <=  n      AND    a      = s               letters for kinds, all else as written

The first text with a key is parsed in full and becomes a ``Template``: the normal form, with a
``Slot`` for each parameter (name, number or string). Every later text with that key costs one
split and a dictionary lookup per word, whatever its constants are. Different keys may lead to one
template: ``a=1`` and ``a  =  1`` do. Once there are many keys, conjunctions are sorted first.

Why a key never stands for two meanings: the regular expression is the lexer's own, so it finds
the words that the lexer finds, and what stands between them is in the key letter by letter. So
two texts with one key have the same tokens, parameters apart; and what the parser does with a
parameter beyond its kind depends on that parameter alone (and on its ESCAPE). Those checks are
done here once for each distinct text: numbers in range, escapes, dates, regular expressions; and
the form of a LIKE pattern chooses among the shapes of a key. Whatever is not plainly fine goes to
the parser, which alone decides, and alone raises errors.

``a IS MISSING`` is looked up as ``IS NULL`` of an attribute of its own (``presence.py``).
A quantified predicate is one parameter: before a text is looked up, it becomes ``IS NOT NULL`` of
an attribute that stands for it (``quantifiers.py``), of kind *join* and letter j.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bittern.errors import ExpressionError, LimitError
from bittern.language.cuts import OperandCut, cuts_of, put_words
from bittern.language.lexer import (
    MISSING,
    QUANTIFIERS,
    TERM_WORDS,
    WORD,
    is_complete,
    is_missing,
    is_quantifier,
    is_type,
    plain_kind,
    without_comments,
    word_kind,
)
from bittern.language.limits import MAX_DEPTH, MAX_LENGTH, MAX_PREDICATES
from bittern.language.literals import (
    MARKED_WORDS,
    READERS,
    date_literal,
    has_too_many_parts,
    string_value,
    timestamp_literal,
)
from bittern.language.normalize import normal_form
from bittern.language.parser import check_text, parse, parse_with_terms
from bittern.language.presence import name_presences
from bittern.language.quantifiers import HIDDEN_WORD, hidden_word, hide
from bittern.language.slot_parser import SlotParser, picker
from bittern.language.templates import SlotMaker, Template
from bittern.language.trees import flat, map_leaves
from bittern.terms.pattern_texts import compile_regex, like_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bittern.language.conditions import KnownPredicates

#: Parameter texts remembered as fine; beyond it the memory starts anew.
_MAX_REMEMBERED = 4_000_000
#: From so many keys on, the predicates of a conjunction are read in sorted order.
_MANY_KEYS = 1000

#: What must be checked of a string because of where it stands.
_CHECKS: dict[str, Callable[[str], Any]] = {
    "date": date_literal,
    "timestamp": timestamp_literal,
    "regex": lambda raw: compile_regex(string_value(raw)),
}
#: The escape character of a LIKE without ESCAPE, as it would be written.
_BACKSLASH = r"r'\'"


_Value = TypeVar("_Value")


class KnownKey(NamedTuple):
    """What a key stands for: which of its words are parameters, and its shape.

    There is one shape per combination of forms of LIKE patterns, most often the empty one.
    ``checks`` lists the parameters whose text matters beyond being of its kind.
    """

    pick: Callable[[Sequence[Any]], tuple[Any, ...]]
    shape_id: int  # -1 if it takes checks to tell
    checks: tuple[tuple[int, str], ...]  # (slot, date or timestamp or regex)
    likes: tuple[tuple[int, int], ...]  # (slot of the pattern, slot of the escape or -1)
    shape_ids: dict[tuple[Any, ...], int]  # by the forms and escapes of the likes


class Shapes:
    """The shapes seen so far. Grows with new shapes only; one thread at a time."""

    def __init__(self) -> None:
        #: The templates, by shape id.
        self.templates: list[Template] = []
        self._ids: dict[tuple[Any, ...], int] = {}
        self._keys: dict[str, KnownKey] = {}
        # Word -> letter of its kind or keyword; quantified predicate -> word that stands for it;
        # (check, parameter) -> what it found. Only what is fine is remembered.
        self._letters: dict[str, str] = {}
        self._joins: dict[str, str] = {}
        self._passed: dict[tuple[str, str], Any] = {}
        # Key -> where the terms are, if that is all that is not plain, else nowhere; term -> word.
        self._cuts: dict[str, tuple[OperandCut, ...]] = {}
        self._words: dict[str, str] = {}
        self._predicates: KnownPredicates | None = None

    def add(self, template: Template) -> int:
        """The shape id of a template, a new one if there is no equal template. O(nodes)."""
        # By its nodes in order, not by the tree: comparing deep trees recurses.
        key = template.kinds, flat(template.tree)
        shape_id = self._ids.get(key)
        if shape_id is None:
            # In this order: an interrupt then leaves only a template that is never used.
            shape_id = len(self.templates)
            self.templates.append(template)
            self._ids[key] = shape_id
        return shape_id

    def read(self, text: str) -> tuple[int, tuple[str, ...]]:
        """Read one text: its shape id and its raw parameters in slot order. O(length)."""
        if not isinstance(text, str) or len(text) > MAX_LENGTH:
            check_text(text)  # which says what is wrong
        if "--" in text or "/*" in text:
            text = without_comments(text)
        parts = WORD.split(text)
        words = parts[1::2]
        letters = list(map(self._letters.get, words))
        if None in letters:
            letters = [
                letter or self._letter(word) for letter, word in zip(letters, words, strict=True)
            ]
            if None in letters:
                parse(text)
                return self._parse(text, None)
            if MISSING in letters:
                return self._read_missing(text, parts, letters)
            if not QUANTIFIERS.isdisjoint(letters):
                return self._read_quantified(text, parts)
        if not text.isascii() and ("∃" in text or "∀" in text):
            return self._read_quantified(text, parts)
        return self._look_up(text, parts, words, letters)

    @property
    def has_many_keys(self) -> bool:
        """Whether conjunctions of new keys are read in sorted order."""
        return len(self._keys) >= _MANY_KEYS

    def known_key(self, key: str) -> KnownKey | None:
        """What a key stands for, if a text has been read with it."""
        return self._keys.get(key)

    def _look_up(
        self, text: str, parts: list[str], words: list[str], letters: list[Any]
    ) -> tuple[int, tuple[str, ...]]:
        """Find the shape of a text by its key."""
        # Letters stand only for words, never in the skeleton, so a key can be read in one way.
        parts[1::2] = letters
        key = "\0".join(parts)
        known = self._keys.get(key)
        if known is None:
            cuts = self._cuts.get(key)
            if cuts and (plain := self._cut(text, cuts)) is not None:
                try:
                    return self._read_plain(plain)
                except ExpressionError:
                    # It has more than terms that is not plain, or a mistake, which is then found
                    # where the user made it.
                    return self._parse(text, None)
            if not self.has_many_keys:
                return self._parse(text, key)
            return self._read_sorted(text, parts, words, letters)
        parameters = known.pick(words)
        shape_id = known.shape_id
        if shape_id < 0 and (shape_id := self.choose(known, parameters)) < 0:
            return self._parse(text, key)
        return shape_id, parameters

    def _read_quantified(self, text: str, parts: list[str]) -> tuple[int, tuple[str, ...]]:
        """Read a text that has quantifiers, or attributes of that name, in plain words."""
        if _may_exceed(text):
            parse(text)  # which counts inside of quantifiers, too
        try:
            hidden = hide(parts, self._join)
            words = hidden[1::2]
            letters = [self._letters.get(word) or self._letter_of_name(word) for word in words]
            return self._look_up("".join(hidden), hidden, words, letters)
        except ExpressionError:
            parse(text)  # the same mistake, where the user made it
            raise

    def _read_missing(
        self, text: str, parts: list[str], letters: list[Any]
    ) -> tuple[int, tuple[str, ...]]:
        """Read a text that has IS MISSING, or an attribute of that name, in plain words."""
        named = name_presences(parts)
        plain = "".join(named)
        try:
            if not QUANTIFIERS.isdisjoint(letters) or "∃" in text or "∀" in text:
                return self._read_quantified(plain, named)
            return self._read_plain(plain)
        except ExpressionError:
            parse(text)  # the same mistake, where the user made it
            return self._parse(text, None)  # or a path that is not one word, such as "a . b"

    def _join(self, piece: str) -> str:
        """The word that stands for a quantified predicate."""
        word = self._joins.get(piece)
        if word is None:
            word = _remembered(self._joins, piece, hidden_word(piece))
        return word

    def _letter_of_name(self, word: str) -> str | None:
        """The letter of a name of ours, or of EXISTS as the name of an attribute."""
        if word.startswith(HIDDEN_WORD):
            return "j"
        if word.startswith(MARKED_WORDS):
            return "a"
        return "a" if is_quantifier(word) else self._letter(word)

    def _read_sorted(
        self, text: str, parts: list[str], words: list[str], letters: list[Any]
    ) -> tuple[int, tuple[str, ...]]:
        """Read a text of a new shape as if its conjunction were written in sorted order.

        Where long conjunctions mix their predicates freely, almost every text has a shape of its
        own; sorted, they share a few. A new sorted shape is put together from known predicates, or
        parsed. (Own keys are no longer remembered by then.)
        """
        from bittern.language.conjuncts import conjuncts  # noqa: PLC0415  only for many shapes

        pieces = conjuncts(parts, letters)
        if pieces is None:
            return self._read_condition(text, parts, words, letters)
        pieces.sort()
        key = "\1".join([piece for piece, _, _ in pieces])
        ordered: list[str] = []
        for _, first, last in pieces:
            ordered += words[first:last]
            ordered.append("AND")
        ordered.pop()
        known = self._keys.get(key)
        if known is not None:
            parameters = known.pick(ordered)
            shape_id = known.shape_id
            if shape_id < 0:
                shape_id = self.choose(known, parameters)
            if shape_id >= 0:
                return shape_id, parameters
        again = [""]
        for _, first, last in pieces:
            again += [*parts[2 * first + 1 : 2 * last], " ", "AND", " "]
        again[-3:] = [""]
        found = self._put_together(again, ordered, again[1::2])
        if found is not None:
            shape_id, places = found
            pick = picker(places)
            self._keys[key] = KnownKey(pick, shape_id, (), (), {})
            return shape_id, pick(ordered)
        parts[1::2] = words
        joined = " AND ".join(
            ["".join(parts[2 * first + 1 : 2 * last]) for _, first, last in pieces]
        )
        try:
            return self._parse_plain(joined, key)
        except ExpressionError:
            # A mistake, which is then found where the user made it, or terms, whose order counts:
            # in ``a BETWEEN 1 AND b AND c IS NULL`` there is no predicate b.
            return self._parse(text, None)

    def _read_condition(
        self, text: str, parts: list[str], words: list[str], letters: list[Any]
    ) -> tuple[int, tuple[str, ...]]:
        """Read a text of a new shape from predicates that were read in other texts."""
        found = self._put_together(parts, words, letters)
        if found is None:
            return self._parse(text, None)
        shape_id, places = found
        return shape_id, tuple([words[place] for place in places])

    def _put_together(
        self, parts: list[str], words: list[str], letters: list[Any]
    ) -> tuple[int, list[int]] | None:
        """The shape of a text of known predicates, and which of its words are parameters."""
        if self._predicates is None:
            from bittern.language.conditions import KnownPredicates  # noqa: PLC0415  only for many

            self._predicates = KnownPredicates()
        found = self._predicates.read(parts, words, letters)
        return None if found is None else (self.add(found[0]), found[1])

    def _letter(self, word: str) -> str | None:
        """The letter of a word's kind, or a keyword itself, if its text is valid."""
        plain = plain_kind(word)
        if plain is not None:
            return _remembered(self._letters, word, plain[0])
        if is_quantifier(word):
            return word.upper()  # not remembered, so that every text with it is looked at
        if is_missing(word):
            return MISSING  # nor this one
        kind = letter = word_kind(word)
        if kind == "other" or word.startswith(MARKED_WORDS):
            return None
        if kind in READERS:
            if not is_complete(word):
                return None
            try:
                value = READERS[kind](word)
            except ValueError:
                return None
            if kind == "attribute" and has_too_many_parts(value):
                return None
            # DATE before a string is no attribute, so it cannot share a letter with one; and what
            # CASE and the like mean depends on where they stand.
            special = kind == "attribute" and (is_type(word) or word.upper() in TERM_WORDS)
            letter = word.upper() if special else kind[0]
        return _remembered(self._letters, word, letter)

    def choose(self, known: KnownKey, parameters: tuple[str, ...]) -> int:
        """Find the shape of a text among those of its key, -1 if only the parser can tell."""
        for slot, check in known.checks:
            if self._passes(check, parameters[slot]) is None:
                return -1
        return known.shape_ids.get(self._forms(known.likes, parameters), -1)

    def _forms(
        self, likes: Iterable[tuple[int, int]], parameters: Sequence[str]
    ) -> tuple[Any, ...]:
        """The form and the escape character of every LIKE pattern."""
        return tuple(
            self._passes(parameters[escape] if escape >= 0 else _BACKSLASH, parameters[pattern])
            for pattern, escape in likes
        )

    def _passes(self, check: str, parameter: str) -> Any:
        """Check each distinct parameter once; None if it fails.

        A check that is not in ``_CHECKS`` is an escape character as written, in quotes.
        """
        found = self._passed.get((check, parameter))
        if found is None:
            try:
                if check in _CHECKS:
                    _CHECKS[check](parameter)
                    found = True
                else:
                    parts = like_parts(string_value(parameter), string_value(check))
                    found = parts.form, check
            except ValueError:
                return None
            _remembered(self._passed, (check, parameter), found)
        return found

    def _parse(self, text: str, key: str | None) -> tuple[int, tuple[str, ...]]:
        """Read a text with the parser, and remember its key if it has one."""
        try:
            return self._parse_plain(text, key)
        except LimitError:
            raise
        except ExpressionError as wrong:
            return self._derive(text, key, wrong)

    def _parse_plain(self, text: str, key: str | None) -> tuple[int, tuple[str, ...]]:
        """The same for a text without terms."""
        parser = SlotParser(text)
        tree = normal_form(parser.parse())
        kinds, parameters = tuple(parser.kinds), tuple(parser.parameters)
        shape_id = self.add(Template(tree, kinds))
        if key is not None:
            checks, likes = tuple(parser.checks), tuple(parser.likes)
            first = KnownKey(
                parser.picker(), -1 if checks or likes else shape_id, checks, likes, {}
            )
            known = self._keys.setdefault(key, first)
            known.shape_ids[self._forms(likes, parameters)] = shape_id
        return shape_id, parameters

    def _derive(
        self, text: str, key: str | None, wrong: ExpressionError
    ) -> tuple[int, tuple[str, ...]]:
        """Read a text that has terms, which the parser of plain predicates finds wrong.

        If it is enough to put names in place of the operands that are terms, then so it is for
        every text with this key: it is remembered where they are.
        """
        slots = SlotMaker()
        tree = map_leaves(normal_form(parse_with_terms(text, wrong, hidden=True)), slots.leaf)
        found = self.add(Template(tree, tuple(slots.kinds))), tuple(slots.parameters)
        if key is not None and key not in self._cuts and len(self._cuts) < _MANY_KEYS:
            # No cuts: it has more than terms as operands, and each such text is read in full.
            self._cuts[key] = ()
            cuts = cuts_of(text)
            with contextlib.suppress(ExpressionError):
                plain = self._cut(text, cuts) if cuts else None
                if plain is not None and self._read_plain(plain) == found:
                    self._cuts[key] = cuts
        return found

    def _cut(self, text: str, cuts: tuple[OperandCut, ...]) -> str | None:
        """The text with names in place of its terms; None if it has to be read in full."""
        if len(self._words) >= _MAX_REMEMBERED:
            self._words.clear()
        return put_words(WORD.split(text), cuts, self._words)

    def _read_plain(self, text: str) -> tuple[int, tuple[str, ...]]:
        """Read a text in which names stand for terms and for the presence of attributes."""
        parts = WORD.split(text)
        words = parts[1::2]
        letters = [self._letters.get(word) or self._letter_of_name(word) for word in words]
        return self._look_up(text, parts, words, letters)


def _may_exceed(text: str) -> bool:
    """Whether a text may have more predicates or levels than allowed, those inside counted."""
    if len(text) <= MAX_DEPTH:
        return False
    levels = 2 * text.count("(") + text.upper().count("NOT") + 4
    return len(text) > 2 * MAX_PREDICATES or levels > MAX_DEPTH


def _remembered(memory: dict[Any, _Value], key: Any, value: _Value) -> _Value:
    """The value, which is found by its key from now on."""
    if len(memory) >= _MAX_REMEMBERED:
        memory.clear()
    memory[key] = value
    return value
