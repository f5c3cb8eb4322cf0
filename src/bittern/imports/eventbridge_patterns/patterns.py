"""Event patterns of Amazon EventBridge and filter policies of Amazon SNS.

A pattern is an object of fields. A field has an object again, or an array of tests of which one
must hold; all fields must hold, and of ``$or`` one object. A field tries the tests for each kind of
value (``field_tests.py``)::

    {"state": ["on", {"prefix": "o"}, 5]}    string   state = 'on' OR state LIKE 'o%'
                                             number   state = 5

**Lists.** A value may be a list, of which one element must do. The elements of a list of objects
are taken one by one: two fields of one object must hold for one element. Where a pattern has only
one field below an object, the path that leads into the list says it; else ``exists(items, e ->
...)``. The top, and ``detail`` in EventBridge, are objects always. ``lists`` names the paths that
may be lists, for rules that are shorter and faster.

**Absence.** ``{"exists": false}`` holds where there is no value: no such key, an object, or an
empty list. Beside others in a list of objects it is about the element if a field that comes before
it in order of names has chosen one, and else about all of them, as in Amazon's own implementation.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from bittern.errors import RuleError, brief
from bittern.imports import conditions as say
from bittern.imports.constructs import said
from bittern.imports.eventbridge_patterns.field_tests import (
    KINDS,
    ConditionOn,
    Tests,
    anywhere,
    inside,
    read_tests,
)
from bittern.imports.formats import Wrapped
from bittern.imports.json_rules import Place, read_json, refuse
from bittern.language.limits import MAX_PARTS

_Path: TypeAlias = tuple[str, ...]

#: Ways in which the fields of one element of a list can hold, each an ``exists``.
MAX_ALTERNATIVES = 64
#: Levels of objects.
MAX_LEVELS = 20
#: What a list has and an object has not: a path into a list always leads somewhere.
_INSIDE = "[]"

_SPECIAL = ("prefix", "suffix", "anything-but", "numeric", "exists", "cidr", "wildcard")
_RESERVED = {*_SPECIAL, "equals-ignore-case"}


def eventbridge(pattern: Any, *, lists: Collection[str] | None = None) -> str:
    """The expression of an event pattern, given as JSON text or as its object.

    ``lists`` are the dotted paths that may hold a list; without it any may.
    """
    read = read_json(pattern)
    objects = {(), ("detail",)}
    return _Translation(objects, lists).expression(read)


def sns(
    policy: Any, *, scope: str = "MessageAttributes", lists: Collection[str] | None = None
) -> str:
    """The expression of a filter policy; ``scope`` is what SNS calls FilterPolicyScope.

    Of ``MessageAttributes`` the event has one attribute each, by its whole name, dots and all; of
    ``MessageBody`` the event is the body.
    """
    if scope not in ("MessageAttributes", "MessageBody"):
        raise RuleError(f"the scope is MessageAttributes or MessageBody, not {brief(scope)}")
    read = read_json(policy)
    are_attributes = scope == "MessageAttributes"
    return _Translation({()}, lists, is_policy=True, are_names=are_attributes).expression(read)


def rules_in(document: Any) -> Iterator[Wrapped]:
    """Patterns inside what the services and their tools write: ``Rules``, ``EventPattern``."""
    if isinstance(document, dict):
        found = document.get("Rules")
        if isinstance(found, list):
            for place, each in enumerate(found):
                for name, rule, path, _ in rules_in(each):
                    yield Wrapped(name, rule, ("Rules", place, *path))
            return
        for key in ("EventPattern", "FilterPolicy"):
            if isinstance(document.get(key), str | dict) and not isinstance(
                document.get("Name", ""), dict | list
            ):
                name = document.get("Name") or document.get("SubscriptionArn")
                yield Wrapped(name if isinstance(name, str) else None, document[key], (key,))
                return
    yield Wrapped(None, document)


# Patterns


@dataclass
class _Node:
    """An object of a pattern: its fields, and the alternatives of ``$or``."""

    fields: dict[str, _Node | Tests]
    either: list[_Node]
    place: Place


class _Translation:
    """One pattern, or a policy. If fields ``are_names``, each is one name, with none inside."""

    def __init__(
        self,
        objects: Collection[_Path],
        lists: Collection[str] | None,
        *,
        is_policy: bool = False,
        are_names: bool = False,
    ) -> None:
        self.objects = objects
        self.is_policy = is_policy
        self.are_names = are_names
        self.lists = None if lists is None else {tuple(self._parts(each)) for each in lists}

    def _parts(self, name: str) -> Sequence[str]:
        return [name] if self.are_names else say.parts_of(name)

    def expression(self, pattern: Any) -> str:
        if not isinstance(pattern, dict):
            refuse(f"a pattern is an object, not {brief(pattern)}")
        return say.printed(self._holds(self._node(pattern, (), 1), ()), "$")

    # Reading

    def _node(self, pattern: dict[str, Any], place: Place, level: int) -> _Node:
        if not pattern:
            refuse("an empty object matches nothing: leave the field out", place)
        if level > 1 and self.are_names:
            refuse("message attributes have no fields inside: use the scope MessageBody", place)
        if level > MAX_LEVELS:
            refuse(f"a pattern has at most {MAX_LEVELS} levels", place)
        node = _Node({}, [], place)
        for name, value in pattern.items():
            own = (*place, name)
            if name == "$or" and _is_either(value):
                node.either = [
                    self._node(each, (*own, number), level) for number, each in enumerate(value)
                ]
            elif isinstance(value, dict):
                self._put(node, name, self._node(value, own, level + 1), own)
            elif isinstance(value, list | tuple):
                self._put(node, name, read_tests(value, own, is_policy=self.is_policy), own)
            else:
                refuse(f"a field has an object or an array of tests, not {brief(value)}", own)
        for branch in node.either:
            twice = set(_paths(branch)) & {
                path for name, each in node.fields.items() for path in _below(name, each)
            }
            if twice:
                refuse(
                    f"the field {'.'.join(min(twice))} is beside $or and inside it: "
                    "write it into every alternative",
                    branch.place,
                )
        return node

    def _put(self, node: _Node, name: str, value: _Node | Tests, place: Place) -> None:
        """Add a field; a name with dots is a path, unless fields are names."""
        first, *rest = [name] if self.are_names else name.split(".")
        if len(rest) >= MAX_PARTS:
            refuse(f"a path has at most {MAX_PARTS} parts, this one has {len(rest) + 1}", place)
        if not first or not all(rest):
            refuse(
                f"the name {brief(name)} is empty, or a part of it: Bittern has none such", place
            )
        for part in rest:
            inner = node.fields.setdefault(first, _Node({}, [], place))
            if not isinstance(inner, _Node):
                refuse(f"the field {brief(first)} is there twice", place)
            node, first = inner, part
        if first in node.fields:
            refuse(f"the field {brief(name)} is there twice", place)
        node.fields[first] = value

    # Objects

    def _holds(self, node: _Node, path: _Path) -> str:
        """The condition of an object at a path of objects."""
        if path and (ways := self._in_element(node, path)) is not None:
            apart = f"{say.path(*path, _INSIDE)} IS MISSING"
            return say.any_of([say.all_of([apart, self._as_object(node, path)]), ways])
        return self._as_object(node, path)

    def _as_object(self, node: _Node, path: _Path) -> str:
        wanted = [self._field(each, (*path, name)) for name, each in sorted(node.fields.items())]
        if node.either:
            wanted.append(say.any_of(self._as_object(each, path) for each in node.either))
        return say.all_of(wanted)

    def _field(self, value: _Node | Tests, path: _Path) -> str:
        return self._holds(value, path) if isinstance(value, _Node) else self._value(value, path)

    def _may_be_list(self, path: _Path) -> bool:
        return path not in self.objects and (self.lists is None or path in self.lists)

    # Values

    def _value(self, tests: Tests, path: _Path) -> str:
        """One field outside of the elements of lists, or the only one inside."""
        name = say.path(*path)
        above = [path[:length] for length in range(1, len(path))]
        in_list = [each for each in above if self._may_be_list(each)]
        listed = bool(in_list) or self._may_be_list(path)
        found: list[str] = []
        if tests.equals:
            found.append(say.is_one_of(name, tests.equals))
            if listed:
                found.extend(say.has_element(name, each) for each in tests.equals)
        for kind, own in tests.kinds.items():
            found.append(anywhere(own, kind, name))
            if listed:
                found.append(say.some_element(name, kind, lambda v, own=own: inside(own, v)))  # type: ignore[misc]
        if tests.null:
            found.append(_is_given_null(path))
            if listed:
                apart = [f"{say.path(*each, _INSIDE)} IS MISSING" for each in in_list]
                found.append(say.all_of([*apart, f"exists({name}, v -> v IS NULL)"]))
        if tests.absent:
            found.append(self._absent(path))
        return said(say.any_of(found), _construct({path: tests}))

    def _absent(self, path: _Path) -> str:
        """There is no value: TRUE or FALSE."""
        name = say.path(*path)
        above = [path[:length] for length in range(1, len(path))]
        found = [say.is_missing(name), *(say.is_null(say.path(*each)) for each in above)]
        inside = say.path(*path, _INSIDE)
        found += [f"size({name}) = 0", f"({inside} IS MISSING AND size({name}) >= 0)"]
        in_list = [each for each in above if self._may_be_list(each)]
        if in_list or self._may_be_list(path):
            no_values = [f"({say.has_elements_of(name, kind)}) IS NULL" for kind in KINDS]
            found.append(
                say.all_of([f"{inside} IS NOT MISSING", f"{name} IS NOT NULL", *no_values])
            )
        for each in in_list:
            parent = say.path(*each)
            found.append(
                say.all_of(
                    [
                        f"{say.path(*each, _INSIDE)} IS NOT MISSING",
                        f"{parent} IS NOT NULL",
                        f"NOT exists({name}, v -> v IS NOT NULL)",
                    ]
                )
            )
        return say.any_of(found)

    # Elements of a list of objects

    def _in_element(self, node: _Node, path: _Path) -> str | None:
        """The object is an element of a list; None where the path into the list says the same."""
        if not self._may_be_list(path):
            return None
        variants = list(itertools.islice(_variants(node), MAX_ALTERNATIVES + 1))
        if all(len(each) == 1 for each in variants):
            return None
        found: list[str] = []
        for variant in variants:
            if all(_only_absent(tests) for tests in variant.values()):
                continue  # about all elements: said already
            fields = {(*path, *own): tests for own, tests in variant.items()}
            for way in self._ways(variant, path):
                found.append(said(way, _construct(fields)))
                if len(found) > MAX_ALTERNATIVES:
                    refuse(
                        f"the fields of one element can hold in more than {MAX_ALTERNATIVES} "
                        "ways: say with lists= which paths may be lists",
                        node.place,
                    )
        return say.any_of(found)

    def _ways(self, variant: dict[_Path, Tests], path: _Path) -> Iterator[str]:
        """For each choice of a kind per field: some element of the list has all of them."""
        names = sorted(variant)
        choices: list[list[tuple[str | None, list[ConditionOn]]]] = []
        for name in names:
            tests = variant[name]
            own: list[tuple[str | None, list[ConditionOn]]] = []
            for kind in KINDS:
                ways = list(tests.kinds.get(kind, ()))
                equals = [each for each in tests.equals if say.kind_of(each) == kind]
                if equals:
                    ways.append(lambda v, equals=equals: say.is_one_of(v, equals))  # type: ignore[misc]
                if ways:
                    own.append((kind, ways))
            if tests.absent:
                own.append((None, []))
            choices.append(own)
        for number, choice in enumerate(itertools.product(*choices)):
            if number > MAX_ALTERNATIVES:
                return
            yield from self._way(list(zip(names, choice, strict=True)), path)

    def _way(
        self, chosen: list[tuple[_Path, tuple[Any, list[ConditionOn]]]], path: _Path
    ) -> Iterator[str]:
        outside: list[str] = []
        within: list[str] = []
        absent: list[_Path] = []
        for name, (kind, own) in chosen:
            if kind is not None:
                outside.append(say.has_elements_of(say.path(*path, *name), kind))
                within.append(inside(own, f"e.{say.path(*name)}"))
            elif within:
                absent.append(name)
            else:
                outside.append(self._absent((*path, *name)))
        if not within:
            return
        # An absent field is NULL in the element, or no element has it: then it cannot be asked for.
        for gone in itertools.product((True, False), repeat=len(absent)):
            nowhere = [self._absent((*path, *n)) for n, no in zip(absent, gone, strict=True) if no]
            here = [
                f"e.{say.path(*n)} IS NULL" for n, no in zip(absent, gone, strict=True) if not no
            ]
            body = say.all_of([*within, *here])
            yield say.all_of([*outside, *nowhere, f"exists({say.path(*path)}, e -> {body})"])


def _construct(fields: dict[_Path, Tests]) -> dict[str, Any]:
    return {".".join(path): list(tests.given) for path, tests in fields.items()}


def _is_either(value: Any) -> bool:
    """Whether ``$or`` is alternatives rather than a field of that name."""
    return (
        isinstance(value, list | tuple)
        and len(value) > 1
        and all(isinstance(each, dict) and each and not _RESERVED & set(each) for each in value)
    )


def _paths(node: _Node) -> Iterator[_Path]:
    for name, value in node.fields.items():
        yield from _below(name, value)
    for each in node.either:
        yield from _paths(each)


def _below(name: str, value: _Node | Tests) -> Iterator[_Path]:
    if isinstance(value, Tests):
        yield (name,)
    else:
        for rest in _paths(value):
            yield (name, *rest)


def _variants(node: _Node) -> Iterator[dict[_Path, Tests]]:
    """The object without ``$or``: in each variant, one alternative is chosen everywhere."""
    parts: list[list[dict[_Path, Tests]]] = []
    for name, value in node.fields.items():
        if isinstance(value, Tests):
            parts.append([{(name,): value}])
        else:
            below = itertools.islice(_variants(value), MAX_ALTERNATIVES + 1)
            parts.append([{(name, *p): t for p, t in each.items()} for each in below])
    if node.either:
        parts.append(
            [v for n in node.either for v in itertools.islice(_variants(n), MAX_ALTERNATIVES + 1)]
        )
    for chosen in itertools.product(*parts):
        yield {p: t for each in chosen for p, t in each.items()}


def _only_absent(tests: Tests) -> bool:
    return not (tests.kinds or tests.equals)


def _is_given_null(path: _Path) -> str:
    """The attribute is there and NULL; what is inside of NULL is not there."""
    above = [f"{say.path(*path[:length])} IS NOT NULL" for length in range(1, len(path))]
    name = say.path(*path)
    return say.all_of([say.is_null(name), f"{name} IS NOT MISSING", *above])
