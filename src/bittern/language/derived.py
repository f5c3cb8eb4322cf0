r"""Terms under a name: in an index each is an attribute, derived from others.

``lower(brand) = 'acme'`` is a predicate on an attribute whose name is the term's own text, after a
character that no name in an expression starts with. Comparing two terms is one attribute that is
-1, 0 or 1, shared by all six operators; its name has the two texts::

    lower(brand) = 'acme'        `\1lower(brand)` = 'acme'
    price * 2 <= cost            `\1price * 2\1cost` <= 0
    name ILIKE 'Ab%'             `\1lower(name)` LIKE 'ab%'
    array_contains(tags, 'x')    `\1array_contains(tags, 'x')\1` IS NOT NULL
    a <=> 5                      a = 5 AND a IS NOT NULL
    isnan(a)                     `\1isnan(a)` = TRUE
    user IN SET vips             `\1user IN SET vips` = TRUE

A name with U+0001 at its end stands for an attribute that is there if the term is TRUE. It is taken
where only that counts (not below NOT) and many such terms can be found at once: all elements that
some subscription asks for are looked up together (``model/events/derived/elements.py``).

``condition_of`` makes the syntax tree of a condition, in which only predicates on attributes are
left. O(nodes), and each distinct name is read back once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from bittern.errors import LimitError
from bittern.language import syntax
from bittern.language.constants import literal_of, literals_of
from bittern.language.limits import MAX_TERM_COPIES, MAX_TERM_DEPTH, MAX_TERM_LENGTH
from bittern.language.literals import TERM, kind_of
from bittern.language.predicates import FLIPPED
from bittern.language.presence import is_presence
from bittern.language.printer import attribute_word
from bittern.language.quantifiers import is_hidden, quantified_of
from bittern.language.scalars import read_term
from bittern.language.scalars.tokens import COLLATE
from bittern.language.term_printer import print_term
from bittern.language.trees import Branch, Draft, flatten
from bittern.language.trees import walk as walk_tree
from bittern.terms.logic.members import IN_SET, set_of, sets_in
from bittern.terms.nodes import Attribute, Call, Constant, Term, attributes_of, walk
from bittern.terms.pattern_texts import compile_regex, like_parts
from bittern.terms.scope import folded
from bittern.terms.unknown import any_function, unknown_functions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">="))
_FAMILIES = {"date": "time", "timestamp": "time"}
_TRUTHS = ("boolean", "null")
_FALSE = Constant(pa.scalar(False))
#: What makes levels in the text of a term.
_LEVELS = ("(", "[", "CASE", "->")
#: Somewhere in every term that names a set.
_IN_SET = " IN SET "
#: Names that are read back; an encoder asks for each once.
_REMEMBERED = 1 << 14


class TermTooLargeError(ValueError):
    """A term is nested too deeply, or repeated too often."""


def is_derived(name: str) -> bool:
    """Whether an attribute stands for a term. O(1)."""
    return name.startswith(TERM)


def term_of(name: str) -> Term:
    """The term that a derived attribute stands for, with any functions. O(length)."""
    left, *right = _sides(name)
    if stands_for_truth(name):
        return Call("nullif", (left, _FALSE))
    return Call("compare", (left, *right)) if right else left


def stands_for_truth(name: str) -> bool:
    """Whether an attribute is there if its term is TRUE. O(1)."""
    return name.startswith(TERM) and name.endswith(TERM)


def element_of(name: str) -> tuple[Term, pa.Scalar] | None:
    """The array and the constant, if an attribute says that the one has the other."""
    if not stands_for_truth(name):
        return None
    (term,) = _sides(name)
    assert isinstance(term, Call), "only calls have such a name"
    array, element = term.arguments
    assert isinstance(element, Constant), "else it has another name"
    return array, element.scalar


def sides_of(name: str) -> list[str]:
    """The attributes that are compared or looked up in a set, if an attribute stands for that.

    O(length).
    """
    if not is_derived(name):
        return []
    if TERM in name[1:-1]:
        return [_name(side) for side in _sides(name)]
    term = _sides(name)[0] if _IN_SET in name else None
    if not isinstance(term, Call) or set_of(term) is None:
        return []
    value = term.arguments[0]
    return [] if isinstance(value, Constant) else [_name(value)]


def sets_of(names: Iterable[str]) -> list[str]:
    """The named sets that these attributes look values up in, each once. O(length)."""
    asking = [name for name in names if _IN_SET in name and is_derived(name)]
    return sets_in(term for name in asking for term in _sides(name))


def has_unknown_functions(names: Iterable[str]) -> bool:
    """Whether some of these attributes stand for terms with functions that only Spark knows."""
    return any(unknown_functions(term_of(name)) for name in names if is_derived(name))


@lru_cache(maxsize=_REMEMBERED)
def _sides(name: str) -> tuple[Term, ...]:
    with any_function():
        return tuple(read_term(text) for text in name[1:].split(TERM) if text)


def condition_of(term: Term) -> syntax.Expression:
    """The tree of a condition, without terms; ``ValueError`` says what has no meaning. O(nodes)."""
    return flatten(_condition(term))


def count_terms(tree: syntax.Expression) -> int:
    """How many distinct terms a tree has; what elements an array has is looked up together."""
    names = {getattr(node, "attribute", "") for node in walk_tree(tree)}
    return sum(is_derived(name) and not stands_for_truth(name) for name in names)


def operand_word(text: str) -> str | None:
    """The word of the attribute that a term's text stands for.

    None if it is a constant or a condition, which are not compared with everything, or if it is
    compared in a way of its own. ``user NOT IN SET vips`` is the negation of one, and an array that
    has a constant is an attribute that is there.
    """
    term = read_term(text, hidden=True)
    if isinstance(term, Call) and term.function == "not" and set_of(term.arguments[0]) is not None:
        return f"(NOT {attribute_word(_name(term.arguments[0]))})"  # as it is indexed
    if isinstance(term, Constant) or _is_condition(term) or _is_collated(term):
        return None
    if (name := _name_of_element(term)) is not None:
        return f"{attribute_word(name)} IS NOT NULL"
    return attribute_word(_name(term))


def _name(term: Term) -> str:
    """The attribute that a term is, or that stands for it."""
    if isinstance(term, Attribute):
        return term.name
    if isinstance(term, Call) and term.function == "compare":
        return "".join(TERM + _text(side) for side in term.arguments)  # as it is printed
    return TERM + _text(term)


def _text(term: Term) -> str:
    """The text of a term as part of a name."""
    if any(is_hidden(name) for name in attributes_of(term)):
        raise ValueError("EXISTS and FORALL stand by themselves, not inside a term")
    if any(is_presence(name) for name in attributes_of(term)):
        raise ValueError("IS MISSING stands by itself, not inside a term")
    text = print_term(term)
    if len(text) > MAX_TERM_LENGTH:
        raise ValueError(f"a term has at most {MAX_TERM_LENGTH:,} characters once it is computed")
    if TERM in text:
        raise ValueError("an attribute name in a term cannot have U+0001 in it")
    # It will be read back, and may have more levels than what was written: --a is -(-a).
    if sum(map(text.count, _LEVELS)) >= MAX_TERM_DEPTH:
        try:
            with any_function():
                read_term(text)
        except LimitError as wrong:
            raise TermTooLargeError(wrong.message) from None
    if _IN_SET in text and sets_in([term]) and (unknown := unknown_functions(term)):
        raise ValueError(f"IN SET cannot look up what only Spark can compute: {', '.join(unknown)}")
    return text


def _condition(term: Term, *, positive: bool = True) -> Draft:
    """The condition that a term is, as a tree.

    If it is positive, it only matters whether it is TRUE.
    """
    if isinstance(term, Constant):
        value = term.scalar.as_py()
        if value is not None and not isinstance(value, bool):
            raise ValueError(f"a condition is TRUE or FALSE, not {print_term(term)[:40]}")
        return syntax.BooleanConstant(value)
    if isinstance(term, Call):
        if term.function in _JUNCTIONS:
            return _JUNCTIONS[term.function](term, positive=positive)
        special = None if _is_collated(term) else _CONDITIONS.get(term.function)
        if positive and special is None:
            special = _PRESENCES.get(term.function)
        found = special(term) if special is not None else None
        if found is not None:
            return found
    return syntax.Compare(_name(term), "=", syntax.Literal(True))


def _junction(term: Call, *, positive: bool) -> Draft:
    operator = syntax.And if term.function == "and" else syntax.Or
    return Branch(operator, [_condition(each, positive=positive) for each in term.arguments])


def _not(term: Call, *, positive: bool) -> Draft:
    return Branch(syntax.Not, [_condition(term.arguments[0], positive=not positive)])


def _has_element(term: Call) -> Draft | None:
    name = _name_of_element(term)
    return None if name is None else syntax.Not(syntax.IsNull(name))


def _name_of_element(term: Term) -> str | None:
    """The attribute that is there if an array has a constant."""
    if not isinstance(term, Call) or term.function != "array_contains":
        return None
    array, element = term.arguments
    if isinstance(array, Constant) or not isinstance(element, Constant):
        return None
    if not element.scalar.is_valid or pa.types.is_nested(element.scalar.type):
        return None
    return f"{TERM}{_text(term)}{TERM}"


def _overlaps(term: Call) -> Draft | None:
    """Arrays that overlap, where one of them is constant: it has one of the elements."""
    one, other = term.arguments
    if isinstance(one, Constant):
        one, other = other, one
    if isinstance(one, Constant) or not isinstance(other, Constant) or not other.scalar.is_valid:
        return None
    elements = [Constant(each) for each in other.scalar.values if each.is_valid]
    drafts = [_has_element(Call("array_contains", (one, each))) for each in elements]
    found = [each for each in drafts if each is not None]
    if not found or len(found) < len(elements):
        return None
    return _joined(syntax.Or, found)


def _comparison(term: Call) -> Draft | None:
    left, right = term.arguments
    operator = term.function
    if isinstance(left, Constant):
        left, right, operator = right, left, FLIPPED[operator]
    if isinstance(right, Constant):
        if isinstance(left, Constant):
            return None
        literal = literal_of(right.scalar)
        if _is_condition(left) and literal is not None and kind_of(literal) not in _TRUTHS:
            raise ValueError(
                f"a condition is TRUE or FALSE, and is not compared with a {kind_of(literal)}"
            )
        return None if literal is None else syntax.Compare(_name(left), operator, literal)
    one, other = _text(left), _text(right)
    if one > other:
        one, other, operator = other, one, FLIPPED[operator]
    return syntax.Compare(TERM + one + TERM + other, operator, syntax.Literal(0))


def _between(term: Call) -> Draft | None:
    value, low, high = term.arguments
    literals = literals_of((low, high))
    if literals is not None and len(families := _families(literals)) > 1:
        raise ValueError(f"BETWEEN mixes a {' with a '.join(families)}")
    if literals is not None and not isinstance(value, Constant):
        return syntax.Between(_name(value), *literals)
    ends = [Call(">=", (value, low)), Call("<=", (value, high))]
    return Branch(syntax.And, [_condition(_folded(end)) for end in ends])


def _in(term: Call) -> Draft | None:
    value, *others = term.arguments
    if isinstance(value, Constant):
        equal = [Call("=", (value, each)) for each in others]
        return _joined(syntax.Or, [_condition(_folded(each)) for each in equal])
    families: dict[str, list[syntax.Literal]] = {}
    drafts: list[Draft] = []
    size, copies = sum(1 for _ in walk(value)), 0
    for each in others:
        literal = literal_of(each.scalar) if isinstance(each, Constant) else None
        if literal is None:
            copies += size
            if copies > MAX_TERM_COPIES:
                raise TermTooLargeError("an operand of IN that is not constant is too long")
            drafts.append(_condition(Call("=", (value, each))))
        else:
            kind = kind_of(literal)
            families.setdefault(_FAMILIES.get(kind, kind), []).append(literal)
    nulls = families.pop("null", [])
    if len(families) > 1:
        raise ValueError(f"IN mixes a {' with a '.join(families)}")
    drafts += [syntax.In(_name(value), tuple(literals)) for literals in families.values()]
    drafts += [syntax.BooleanConstant(None)] if nulls else []
    return _joined(syntax.Or, drafts)


def _is_null(term: Call) -> Draft:
    there = _is_not_null(term)
    return there.operand if isinstance(there, syntax.Not) else Branch(syntax.Not, [there])


def _is_not_null(term: Call) -> Draft:
    return _quantified(term) or syntax.Not(syntax.IsNull(_name(term.arguments[0])))


def _quantified(term: Call) -> syntax.Quantified | None:
    """The quantified predicate whose hidden attribute is or is not NULL."""
    (value,) = term.arguments
    if isinstance(value, Attribute) and is_hidden(value.name):
        return quantified_of(value.name)
    return None


def _same(term: Call) -> Draft:
    """Two values that are equal, or both NULL."""
    nulls: list[Draft] = []
    there: list[Draft] = []
    for each in term.arguments:
        if not isinstance(each, Constant):
            nulls.append(syntax.IsNull(_name(each)))
            there.append(syntax.Not(syntax.IsNull(_name(each))))
        elif each.scalar.as_py() is None:
            other = next(o for o in term.arguments if o is not each)
            return syntax.IsNull(_name(other))
    equal = _joined(syntax.And, [_condition(Call("=", term.arguments)), *there])
    if len(nulls) < len(term.arguments):
        return equal
    return Branch(syntax.Or, [equal, Branch(syntax.And, nulls)])


def _is_truth(term: Call) -> Draft:
    """``x IS TRUE``: never unknown, so that NOT of it is TRUE where x is unknown."""
    name = _name(term.arguments[0])
    is_value = syntax.Compare(name, "=", syntax.Literal(term.function == "is true"))
    return Branch(syntax.And, [is_value, syntax.Not(syntax.IsNull(name))])


def _like(term: Call) -> Draft | None:
    value, *patterns = term.arguments
    texts = [_text_of(each) for each in patterns if isinstance(each, Constant)]
    if isinstance(value, Constant) or len(texts) < len(patterns):
        return None
    pattern, escape = texts[0], texts[1] if len(texts) > 1 else "\\"
    if pattern is None or escape is None:
        return syntax.BooleanConstant(None)
    if len(escape) != 1 or escape > "\uffff":
        raise ValueError("ESCAPE needs a string of exactly one character")
    if term.function == "ilike":
        value = Call("lower", (value,))
        if pattern.isascii():  # as nearly all are; Arrow takes a millisecond for each
            pattern = pattern.lower()
        else:
            pattern = folded(Call("lower", (Constant(pa.scalar(pattern)),))).as_py()
    like_parts(pattern, escape)
    return syntax.Like(_name(value), pattern, escape)


def _regex(term: Call) -> Draft | None:
    value, pattern = term.arguments
    if isinstance(value, Constant) or not isinstance(pattern, Constant):
        return None
    text = _text_of(pattern)
    if text is None:
        return syntax.BooleanConstant(None)
    compile_regex(text)
    return syntax.Regex(_name(value), text)


def _search(term: Call) -> Draft | None:
    """startswith, endswith and contains of a constant are LIKE."""
    value, text = term.arguments
    if isinstance(value, Constant) or not isinstance(text, Constant):
        return None
    escaped = _text_of(text)
    if escaped is None or pa.types.is_binary(text.scalar.type):
        return None
    for special in "\\%_":
        escaped = escaped.replace(special, "\\" + special)
    before = "" if term.function == "startswith" else "%"
    after = "" if term.function == "endswith" else "%"
    return syntax.Like(_name(value), before + escaped + after)


def _joined(operator: type[syntax.And | syntax.Or], drafts: list[Draft]) -> Draft:
    return drafts[0] if len(drafts) == 1 else Branch(operator, drafts)


def _text_of(constant: Constant) -> str | None:
    """A constant as a string, which Spark makes it where a pattern stands."""
    text = folded(Call("cast", (constant,), pa.string())).as_py()
    return None if text is None else str(text)


def _folded(call: Call) -> Term:
    """A call, evaluated if all its arguments are constant."""
    if all(isinstance(each, Constant) for each in call.arguments):
        return Constant(folded(call))
    return call


def _is_collated(term: Term) -> bool:
    """Whether a term has a collation that only Spark knows, so that only Spark can compare it."""
    return any(isinstance(node, Call) and node.function == COLLATE for node in walk(term))


def _is_condition(term: Term) -> bool:
    """Whether a term is plainly a Boolean."""
    return isinstance(term, Call) and (
        term.function in _CONDITIONS or term.function in _JUNCTIONS or term.function == IN_SET
    )


def _families(literals: Sequence[syntax.Literal]) -> list[str]:
    kinds = [kind_of(each) for each in literals if each.value is not None]
    return list(dict.fromkeys(_FAMILIES.get(kind, kind) for kind in kinds))


_CONDITIONS = {
    **dict.fromkeys(_COMPARISONS, _comparison),
    "between": _between,
    "in": _in,
    "is null": _is_null,
    "isnull": _is_null,
    "isnotnull": _is_not_null,
    "<=>": _same,
    "equal_null": _same,
    "is true": _is_truth,
    "is false": _is_truth,
    "like": _like,
    "ilike": _like,
    **dict.fromkeys(("rlike", "regexp", "regexp_like"), _regex),
    **dict.fromkeys(("startswith", "endswith", "contains"), _search),
}
_JUNCTIONS = {"and": _junction, "or": _junction, "not": _not}
#: Conditions that are found for many constants at once, where only TRUE counts.
_PRESENCES = {"array_contains": _has_element, "arrays_overlap": _overlaps}
