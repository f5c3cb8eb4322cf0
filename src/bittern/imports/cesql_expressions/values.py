"""What an expression of CloudEvents SQL is worth: by types, with the conditions under which it is.

A value of CESQL is a String, an Integer or a Boolean, and which one may only be told by the event.
A ``CesqlValue`` is therefore a few *cases*, of which at most one applies to an event; where none
does, CESQL has an error, and no rule matches by that::

    sequence        String   sequence >= ''                       sequence
                    Integer  (sequence < 0 OR sequence >= 0)      sequence
                    Boolean  sequence = TRUE                      TRUE
                             sequence = FALSE                     FALSE

A Boolean has a case for TRUE and one for FALSE, so what the cases say are constants or terms of
text and numbers, and every operator is a walk over the cases of its operands. No NOT is left
around anything: what is FALSE is a case of its own. What the operators make of values is in
``operators.py`` and ``functions.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from bittern.errors import RuleError
from bittern.imports import conditions as say
from bittern.language.limits import MAX_LENGTH

Type: TypeAlias = Literal["String", "Integer", "Boolean"]

#: Cases of one value.
MAX_CASES = 64
INTEGERS = range(-(1 << 31), 1 << 31)
#: Attributes that every CloudEvent has, and those that are text wherever they are.
REQUIRED = frozenset({"id", "source", "specversion", "type"})
TEXTS = REQUIRED | {"datacontenttype", "dataschema", "subject", "time"}

_DIGITS = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True)
class Case:
    """Where ``when`` is TRUE, the value is of a type, and either a constant or a term.

    Of an attribute's own value (``plain``), comparing it with a constant already says ``when``.
    ``number`` is the case of an Integer that this is the text of.
    """

    type: Type
    when: str
    constant: Any = None
    term: str = ""
    plain: bool = False
    number: Case | None = None

    def written(self) -> str:
        """The constant or the term."""
        return self.term or say.constant(self.constant)


@dataclass(frozen=True)
class CesqlValue:
    """The cases, and which attributes they hang on.

    Without an attribute of ``needs`` there is always an error. If ``lacks`` is no ``None``, there
    is one only where an attribute of it is missing.
    """

    cases: tuple[Case, ...]
    needs: frozenset[str] = frozenset()
    lacks: frozenset[str] | None = None
    attribute: str = ""  # its quoted name, if that is all

    def when(self, truth: bool) -> str:  # noqa: FBT001
        """When it is TRUE, or FALSE, as a Boolean."""
        wanted = (case for each in self.cases for case in to_boolean(each))
        return say.any_of(each.when for each in wanted if each.constant is truth)


NOTHING: frozenset[str] = frozenset()


def value_of(
    cases: Iterable[Case],
    *parts: CesqlValue,
    lacks: frozenset[str] | None = None,
    attribute: str = "",
) -> CesqlValue:
    """A value of these cases, which needs all that its parts do; bounded."""
    found = tuple(each for each in cases if each.when != say.FALSE)
    if len(found) > MAX_CASES:
        raise RuleError(f"an expression can be of more than {MAX_CASES} kinds: use fewer operands")
    if sum(len(each.when) + len(each.term) for each in found) > MAX_LENGTH:
        raise RuleError(f"the expression that it becomes has more than {MAX_LENGTH:,} characters")
    needs = frozenset[str]().union(*(part.needs for part in parts))
    return CesqlValue(found, needs, lacks, attribute)


def literal(constant: str | int | bool) -> CesqlValue:  # noqa: FBT001
    """A constant."""
    return CesqlValue((Case(_type_of(constant), say.TRUE, constant),), lacks=NOTHING)


def attribute(name: str) -> CesqlValue:
    """An attribute of the event: a text, or for an extension any of the three types."""
    quoted, own = say.path(name), frozenset({name})
    cases = [Case("String", say.is_kind(quoted, "string"), term=quoted, plain=True)]
    if name not in TEXTS:
        number = Case("Integer", say.is_kind(quoted, "number"), term=quoted, plain=True)
        cases += [number, *(Case("Boolean", f"{quoted} = {each}", each) for each in (True, False))]
    required = name in REQUIRED
    return CesqlValue(
        tuple(cases),
        NOTHING if required else own,
        NOTHING if required else own,
        "" if name in TEXTS else quoted,
    )


def exists(name: str) -> CesqlValue:
    """Whether the event has an attribute."""
    if name in REQUIRED:
        return literal(True)
    quoted = say.path(name)
    return truth(f"{quoted} IS NOT NULL", say.is_null(quoted), lacks=NOTHING)


def truth(
    holds: str, fails: str, *parts: CesqlValue, lacks: frozenset[str] | None = None
) -> CesqlValue:
    """A Boolean: when it is TRUE, and when it is FALSE."""
    cases = (Case("Boolean", holds, True), Case("Boolean", fails, False))
    return value_of(cases, *parts, lacks=lacks)


def _type_of(constant: Any) -> Type:
    if isinstance(constant, bool):
        return "Boolean"
    return "String" if isinstance(constant, str) else "Integer"


# Casts: what cannot be cast is an error, and gives no case


def to_text(case: Case) -> Iterator[Case]:
    """A case as a String; never an error."""
    if case.type == "String":
        yield case
    elif case.term:
        text = f"CAST({case.term} AS STRING)"
        yield Case("String", case.when, term=text, number=case)
    else:
        shown = str(case.constant)
        yield Case("String", case.when, shown.lower() if case.type == "Boolean" else shown)


def to_integer(case: Case) -> Iterator[Case]:
    """A case as an Integer, in 32 bits."""
    if case.type == "Integer":
        yield case
    elif case.type == "Boolean":
        yield Case("Integer", case.when, int(case.constant))
    elif case.term:
        number = f"try_cast({case.term} AS INT)"
        when = [case.when, say.matches(case.term, r"\A[+-]?[0-9]+\z"), f"{number} IS NOT NULL"]
        yield Case("Integer", say.all_of(when[1:] if case.plain else when), term=number)
    elif _DIGITS.fullmatch(case.constant) and len(case.constant) < MAX_DIGITS:
        number_ = int(case.constant)
        if number_ in INTEGERS:
            yield Case("Integer", case.when, number_)


#: Digits of a text that is cast to an Integer when the rule is read.
MAX_DIGITS = 4_000


def to_boolean(case: Case) -> Iterator[Case]:
    """A case as a Boolean: one that is TRUE, and one that is FALSE."""
    if case.type == "Boolean":
        yield case
    elif case.term:
        for each in (True, False):
            if case.type == "Integer":
                same = f"{case.term} {'!=' if each else '='} 0"
            else:
                same = f"lower({case.term}) = '{str(each).lower()}'"
            implied = case.plain and case.type == "Integer"
            yield Case("Boolean", same if implied else say.all_of([case.when, same]), each)
    elif case.type == "Integer":
        yield Case("Boolean", case.when, case.constant != 0)
    elif case.constant.lower() in ("true", "false"):
        yield Case("Boolean", case.when, case.constant.lower() == "true")


CASTS: dict[Type, Callable[[Case], Iterator[Case]]] = {
    "String": to_text,
    "Integer": to_integer,
    "Boolean": to_boolean,
}


def cast(value: CesqlValue, to: Type) -> Iterator[Case]:
    """The cases of a value as one type."""
    for each in value.cases:
        yield from CASTS[to](each)


def joined(value: CesqlValue, to: Type) -> list[Case]:
    """The same, with one case for all types of an attribute, where a function takes it."""
    name = value.attribute
    if not name or to == "Boolean":
        return list(cast(value, to))
    if to == "String":
        return [Case("String", f"{name} IS NOT NULL", term=f"CAST({name} AS STRING)")]
    digits = say.matches(name, r"\A[+-]?[0-9]+\z")
    kinds = say.any_of([say.is_kind(name, "number"), say.is_kind(name, "boolean"), digits])
    number = f"try_cast({name} AS INT)"
    return [Case("Integer", say.all_of([kinds, f"{number} IS NOT NULL"]), term=number)]
