"""The tests of one field of an EventBridge pattern: from an array of them to conditions by kind.

What a test says depends on the kind of the value, so each becomes a condition on values of one kind
(``prefix`` on strings) or on all of them (``anything-but``). NULL and absence are told apart.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bittern.errors import RuleError, brief
from bittern.imports import conditions as say
from bittern.imports.addresses import MAPPED, ipv4_patterns, ipv6_patterns, mapped
from bittern.imports.json_rules import Place, place_of, refuse

#: A condition on the value of a name.
ConditionOn: TypeAlias = Callable[[str], str]

KINDS: tuple[say.Kind, ...] = ("string", "number", "boolean")
_OPERATORS = ("<", "<=", "=", ">", ">=")


@dataclass
class Tests:
    """What the array of one field asks for: by kind, of NULL, and of absence."""

    kinds: dict[say.Kind, list[ConditionOn]] = field(default_factory=dict)
    equals: list[Any] = field(default_factory=list)
    null: bool = False
    absent: bool = False
    given: Sequence[Any] = ()

    def add(self, kind: say.Kind, condition: ConditionOn) -> None:
        """Ask for one more condition on values of a kind."""
        self.kinds.setdefault(kind, []).append(condition)


def anywhere(own: list[ConditionOn], kind: say.Kind, name: str) -> str:
    """One of the conditions holds for a value that is no list; TRUE stands for the kind itself."""
    if any(each is _anything for each in own):
        return say.is_kind(name, kind)
    return say.any_of(each(name) for each in own)


def inside(own: list[ConditionOn], variable: str) -> str:
    """The same in a list whose elements are of the kind."""
    if any(each is _anything for each in own):
        return f"{variable} IS NOT NULL"
    return say.any_of(each(variable) for each in own)


def _anything(_: str) -> str:
    return say.TRUE


# Reading


def read_tests(values: Sequence[Any], place: Place, *, is_policy: bool = False) -> Tests:
    """Read the array of tests at a place, of a pattern or of a policy of SNS."""
    if not values:
        refuse("an empty array matches nothing: leave the field out", place)
    tests = Tests(given=values)
    for number, value in enumerate(values):
        own = (*place, number)
        if value is None:
            tests.null = True
        elif isinstance(value, dict):
            _add_test(tests, value, own, is_policy=is_policy)
        elif isinstance(value, list | tuple):
            refuse("a test is a constant or an object, not an array", own)
        else:
            with _at(own):
                say.constant(value)
            tests.equals.append(value)
    return tests


@contextlib.contextmanager
def _at(place: Place) -> Iterator[None]:
    """Gives a mistake inside the place that it lacks."""
    try:
        yield
    except RuleError as wrong:
        if wrong.place:
            raise
        raise RuleError(wrong.reason, place_of(place)) from None


def _add_test(tests: Tests, value: dict[str, Any], place: Place, *, is_policy: bool) -> None:
    if len(value) != 1:
        refuse(f"a test has one key, this one has {len(value)}", place)
    ((word, operand),) = value.items()
    own = (*place, word)
    with _at(own):
        if word == "exists":
            if not isinstance(operand, bool):
                refuse("exists is true or false", own)
            if operand and is_policy:  # as SNS has it, neither NULL nor '' is a value
                tests.add("string", lambda v: say.compare(v, "!=", ""))
                _add_any(tests, ("number", "boolean"))
            elif operand:
                _add_any(tests, KINDS)
                tests.null = True
            else:
                tests.absent = True
        elif word == "anything-but":
            _add_anything_but(tests, operand, own)
        elif word == "numeric":
            tests.add("number", _numeric(operand, own))
        elif word == "cidr":
            tests.add("string", _cidr(operand, own))
        elif word in ("prefix", "suffix") and isinstance(operand, dict):
            text = operand.get("equals-ignore-case")
            if len(operand) != 1 or not isinstance(text, str):
                refuse(f"{word} takes a string, or equals-ignore-case with a string", own)
            tests.add("string", _in_any_case(text, word))
        elif word in _TEXTS:
            tests.add("string", _TEXTS[word](_text(operand, word, own)))
        else:
            refuse(f"there is no test {brief(word)}", place)


def _add_any(tests: Tests, kinds: Sequence[say.Kind]) -> None:
    for kind in kinds:
        tests.add(kind, _anything)


def _text(operand: Any, word: str, place: Place) -> str:
    if not isinstance(operand, str):
        refuse(f"{word} takes a string, not {brief(operand)}", place)
    return str(operand)


def _add_anything_but(tests: Tests, operand: Any, place: Place) -> None:
    kind: say.Kind = "string"
    if isinstance(operand, dict):
        if len(operand) != 1:
            refuse(f"anything-but has one key, not {len(operand)}", place)
        ((word, value),) = operand.items()
        if word not in _TEXTS:
            refuse(f"there is no anything-but with {brief(word)}", place)
        values = value if isinstance(value, list | tuple) else [value]
        if not values:
            refuse(f"anything-but {word} has no values", place)
        texts = [_text(each, word, place) for each in values]
        if word in ("prefix", "suffix") and "" in texts:
            refuse(f"anything-but with an empty {word} matches nothing", place)
        own = [_TEXTS[word](text) for text in texts]
        tests.add("string", lambda v: say.all_of(f"NOT ({each(v)})" for each in own))
    else:
        values = operand if isinstance(operand, list | tuple) else [operand]
        kinds = {say.kind_of(each) if each is not None else None for each in values}
        if kinds not in ({"string"}, {"number"}):
            refuse("anything-but takes strings, or numbers, or one test of strings", place)
        (kind,) = kinds  # type: ignore[assignment]
        for each in values:
            say.constant(each)
        tests.add(kind, lambda v: f"NOT ({say.is_one_of(v, values)})")
    _add_any(tests, [each for each in KINDS if each != kind])
    tests.null = True


def _numeric(operand: Any, place: Place) -> ConditionOn:
    if not isinstance(operand, list | tuple) or len(operand) not in (2, 4):
        refuse("numeric takes an operator and a number, or two of each", place)
    pairs = [(operand[at], operand[at + 1]) for at in range(0, len(operand), 2)]
    for operator, number in pairs:
        if operator not in _OPERATORS:
            refuse(
                f"numeric has the operators {', '.join(_OPERATORS)}, not {brief(operator)}", place
            )
        if isinstance(number, bool) or not isinstance(number, int | float):
            refuse(f"{operator} takes a number, not {brief(number)}", place)
    if len(pairs) == 2:
        (first, low), (second, high) = pairs
        if first not in (">", ">=") or second not in ("<", "<="):
            refuse("a numeric range is > or >=, a number, < or <=, a number", place)
        if low >= high:
            refuse("the lower end of a numeric range must be below the upper one", place)
    return lambda v: say.all_of(say.compare(v, operator, number) for operator, number in pairs)


def _wildcard(text: str) -> ConditionOn:
    pieces: list[Any] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character == "\\":
            at += 1
            if at == len(text) or text[at] not in ("*", "\\"):
                raise RuleError("in a wildcard, a backslash stands before * or another backslash")
            pieces.append(text[at])
        elif character == "*":
            if pieces and pieces[-1] is say.ANY_TEXT:
                raise RuleError("a wildcard has no two * in a row")
            pieces.append(say.ANY_TEXT)
        else:
            pieces.append(character)
        at += 1
    return lambda v: say.like(v, *pieces) if pieces else say.compare(v, "=", "")


def _in_any_case(text: str, where: str = "") -> ConditionOn:
    """Each character in upper or lower case, one by one, as Amazon's implementation has it."""
    say.constant(text)
    if text.isascii() and not where:
        # In lower case, two more letters become ASCII: the Kelvin sign, and I with a dot.
        strange = [c for c, plain in (("\u212a", "k"), ("\u0130", "i")) if plain in text.lower()]

        def same(v: str) -> str:
            lower = f"lower({v}) = {say.constant(text.lower())}"
            others = [f"NOT ({say.like(v, say.ANY_TEXT, c, say.ANY_TEXT)})" for c in strange]
            return say.all_of([lower, say.is_kind(v, "string"), *others])

        return same
    pieces = []
    for character in text:
        forms = sorted({character.upper(), character.lower()})
        pieces.append(f"(?:{'|'.join(map(_quoted, forms))})")
    start, end = ("" if where == "suffix" else r"\A"), ("" if where == "prefix" else r"\z")
    return lambda v: say.matches(v, f"{start}{''.join(pieces)}{end}")


def _quoted(text: str) -> str:
    return "".join(c if c.isalnum() or not c.isascii() else f"\\x{{{ord(c):x}}}" for c in text)


def _cidr(operand: Any, place: Place) -> ConditionOn:
    """A range of addresses in all their spellings; ``::ffff:a00:1`` is one of IPv4, as in Java."""
    if not isinstance(operand, str) or operand.count("/") != 1:
        refuse("cidr takes an address, a slash and a number of bits", place)
    address, bits = operand.split("/")
    if not (bits.isascii() and bits.isdecimal()):
        refuse(f"{brief(operand)} is not a range of addresses: the bits are a number", place)
    parts = address.split("." if ":" not in address else ":")
    plain = [part.lstrip("0") or "0" if part else "" for part in parts]
    try:
        found = ipaddress.ip_network(
            f"{(':' if ':' in address else '.').join(plain)}/{int(bits[-9:])}", strict=False
        )
    except ValueError as wrong:
        refuse(f"{brief(operand)} is not a range of addresses: {wrong}", place)
    if found.prefixlen == found.max_prefixlen:
        most = found.max_prefixlen
        refuse(f"the bits of this cidr are fewer than {most}: test for the address itself", place)
    if isinstance(found, ipaddress.IPv4Network):
        return _one_of(ipv4_patterns(found, zeros=True) + _ipv6(mapped(found)))
    if found.subnet_of(MAPPED):
        refuse(f"{brief(operand)} has addresses of IPv4: write them so", place)
    own, others = _one_of(_ipv6(found)), _one_of(_ipv6(MAPPED))
    if not MAPPED.subnet_of(found):
        return own
    return lambda v: say.all_of([own(v), f"NOT ({others(v)})"])


def _ipv6(network: ipaddress.IPv6Network) -> list[str]:
    return ipv6_patterns(network, dotted=False, zeros=True)


def _one_of(patterns: list[str]) -> ConditionOn:
    return lambda v: say.any_of(say.matches(v, each) for each in patterns)


_TEXTS: dict[str, Callable[[str], ConditionOn]] = {
    "prefix": lambda text: lambda v: say.like(v, text, say.ANY_TEXT),
    "suffix": lambda text: lambda v: say.like(v, say.ANY_TEXT, text),
    "wildcard": _wildcard,
    "equals-ignore-case": _in_any_case,
}
