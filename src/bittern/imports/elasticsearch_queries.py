r"""Queries of Elasticsearch and OpenSearch, as a percolator keeps them.

::

    {"bool": {"filter": [{"term": {"color": "red"}}], "must_not": {"range": {"price": {"gt": 9}}}}}

    (color = 'red' OR array_contains(color, 'red')) AND (price IS NULL OR NOT price > 9 OR ...)

A field holds any number of values: a list is the same as its values, and ``exists`` asks for one
that is not null. There is no mapping here, so a field is of the kind of the constant that it is
compared with: a text is a ``keyword``, a number a number of any type, and values of other kinds are
not converted, they do not match. A field that ends in ``.keyword`` is the field in front of it, as
in Elasticsearch's dynamic mappings.

Scores do not exist here, so ``boost`` changes nothing. Whatever analyzes text is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from bittern.errors import RuleError, brief
from bittern.imports.answers import (
    ALWAYS,
    NEVER,
    Answer,
    ListPaths,
    any_value,
    at_least,
    both,
    either,
    is_not_true,
    negated,
    told,
    written,
)
from bittern.imports.conditions import (
    ANY_CHARACTER,
    ANY_TEXT,
    all_of,
    any_of,
    compare,
    constant,
    has_element,
    is_null,
    is_one_of,
    kind_of,
    like,
    matches,
    parts_of,
    path,
)
from bittern.imports.json_rules import Place, place_of, read_json, refuse
from bittern.imports.regexes import from_lucene, literal

#: Said of every clause; it changes scores and reports only.
_IGNORED = ("boost", "_name")
_ANALYZED = frozenset(
    "match_phrase match_phrase_prefix match_bool_prefix multi_match query_string "  # noqa: SIM905
    "simple_query_string intervals combined_fields common fuzzy more_like_this "
    "span_term span_near span_or span_not span_first span_containing span_within span_multi".split()
)
#: Queries of other queries.
_COMPOUND = frozenset(("bool", "boosting", "constant_score", "dis_max"))
_BOUNDS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def elasticsearch(rule: Any, *, lists: Collection[str] | None = None) -> str:
    """The expression of a query, in text or as the object; ``{"query": ...}`` may be around it.

    ``lists`` are the dotted paths that may hold a list; without it any may.
    """
    query = read_json(rule)
    at: Place = ()
    if isinstance(query, dict) and list(query) == ["query"]:
        query, at = query["query"], ("query",)
    return written(_query(query, at, ListPaths(lists)), place_of(at))


def _query(query: Any, at: Place, lists: ListPaths) -> Answer:
    if not isinstance(query, dict) or len(query) != 1:
        refuse("a query is an object with one key, its type", at)
    ((name, body),) = query.items()
    at = (*at, name)
    if name in _ANALYZED:
        refuse(f"{name} analyzes text or compares it loosely, which an expression cannot say", at)
    reader = _QUERIES.get(name)
    if reader is None:
        refuse(f"the query {brief(name)} is not supported: {', '.join(sorted(_QUERIES))} are", at)
    try:
        found = reader(body, at, lists)
        return found if name in _COMPOUND else told(found, query)
    except RuleError as wrong:
        if wrong.place:
            raise
        raise RuleError(wrong.reason, place_of(at)) from None


def _options(body: Any, allowed: Sequence[str], at: Place) -> dict[str, Any]:
    if not isinstance(body, dict):
        refuse("an object is expected", at)
    for key in body:
        if key not in allowed and key not in _IGNORED:
            refuse(f"{brief(key)} is not supported here", (*at, key))
    return body


def _clauses(body: Any, at: Place, lists: ListPaths) -> list[Answer]:
    if isinstance(body, list):
        return [_query(each, (*at, place), lists) for place, each in enumerate(body)]
    return [_query(body, at, lists)]


# Compound queries


def _bool(body: Any, at: Place, lists: ListPaths) -> Answer:
    kinds = ("must", "filter", "should", "must_not")
    body = _options(body, (*kinds, "minimum_should_match"), at)
    found = {
        kind: _clauses(body[kind], (*at, kind), lists) if body.get(kind) is not None else []
        for kind in kinds
    }
    needed = found["must"] + found["filter"]
    count = len(found["should"])
    least = _least(body.get("minimum_should_match"), count, (*at, "minimum_should_match"))
    if not count:
        least = 0
    elif not needed:
        least = max(least, 1)
    needed += [negated(each) for each in found["must_not"]]
    return both([*needed, at_least(least, found["should"])])


def _least(spec: Any, count: int, at: Place) -> int:
    """How many of so many clauses must match: a number, or a share, negative ones may be left."""
    if spec is None:
        return 0
    text = str(spec).strip()
    share = text.endswith("%")
    digits = text[:-1] if share else text
    unsigned = digits[1:] if digits.startswith(("+", "-")) else digits
    if isinstance(spec, bool) or not unsigned.isdecimal() or len(digits) > 9:
        refuse("it is a number or a percentage; combinations of them are not supported", at)
    number = int(digits)
    if share:
        number = count * number // 100 if number >= 0 else -(count * -number // 100)
    return max(0, number if number >= 0 and not digits.startswith("-") else count + number)


def _constant_score(body: Any, at: Place, lists: ListPaths) -> Answer:
    body = _options(body, ("filter",), at)
    return _query(body.get("filter"), (*at, "filter"), lists)


def _dis_max(body: Any, at: Place, lists: ListPaths) -> Answer:
    body = _options(body, ("queries", "tie_breaker"), at)
    return either(_clauses(body.get("queries", []), (*at, "queries"), lists))


def _boosting(body: Any, at: Place, lists: ListPaths) -> Answer:
    body = _options(body, ("positive", "negative", "negative_boost"), at)
    _query(body.get("negative"), (*at, "negative"), lists)
    return _query(body.get("positive"), (*at, "positive"), lists)


def _match_all(body: Any, at: Place, _lists: ListPaths) -> Answer:
    _options(body, (), at)
    return ALWAYS


def _match_none(body: Any, at: Place, _lists: ListPaths) -> Answer:
    _options(body, (), at)
    return NEVER


# Queries on one field


def _field(field: str, lists: ListPaths) -> tuple[str, bool]:
    """The attribute of a field, and whether it may be a list."""
    parts = list(parts_of(field))
    if len(parts) > 1 and parts[-1] == "keyword":
        parts.pop()
    if any("*" in part for part in parts):
        raise RuleError(f"{brief(field)} stands for several fields, which is not supported")
    return path(*parts), lists.may_hold(parts)


def _only_field(body: Any, at: Place) -> tuple[str, Any, Place]:
    """The one field that a query names, what it says of it, and where that stands."""
    body = _options(body, list(body) if isinstance(body, dict) else (), at)
    fields = [each for each in body if each not in _IGNORED]
    if len(fields) != 1:
        refuse("one field is expected", at)
    (field,) = fields
    return field, body[field], (*at, field)


def _one_field(
    body: Any, key: str | tuple[str, ...], allowed: Sequence[str], at: Place
) -> tuple[str, dict[str, Any], Place]:
    """The field, its options, and where they stand; a value alone is the option ``key``."""
    field, options, at = _only_field(body, at)
    keys = (key,) if isinstance(key, str) else key
    if not isinstance(options, dict):
        options = {keys[0]: options}
    options = _options(options, (*keys, *allowed), at)
    if sum(each in options for each in keys) != 1:
        refuse(f"{' or '.join(keys)} is expected", at)
    return field, options, at


def _value(value: Any, at: Place) -> Any:
    if value is None:
        refuse("null is no value: a query finds values, and exists finds whether there are any", at)
    if kind_of(value) == "container":
        refuse("a number, a text or a Boolean is expected", at)
    return value


def _equals(field: str, values: Sequence[Any], lists: ListPaths) -> Answer:
    """Some value of the field is one of these."""
    name, may_be_list = _field(field, lists)
    by_kind: dict[Any, list[Any]] = {}
    for value in values:
        by_kind.setdefault(kind_of(value), []).append(value)
    return either(
        any_value(
            name,
            kind,
            lambda each, own=own: is_one_of(each, own),  # type: ignore[misc]
            element=_has_one_of(name, own),
            may_be_list=may_be_list,
        )
        for kind, own in by_kind.items()
    )


def _has_one_of(name: str, values: Sequence[Any]) -> str:
    if len(values) == 1:
        return has_element(name, values[0])
    written = dict.fromkeys(map(constant, values))
    return f"arrays_overlap({name}, array({', '.join(written)}))"


def _patterns(field: str, condition: Callable[[str], str], lists: ListPaths) -> Answer:
    name, may_be_list = _field(field, lists)
    return any_value(name, "string", condition, may_be_list=may_be_list)


def _is_without_case(options: dict[str, Any], at: Place) -> bool:
    found = options.get("case_insensitive", False)
    if found not in (True, False, "true", "false"):
        refuse("it is true or false", (*at, "case_insensitive"))
    return found in (True, "true")


def _text(options: dict[str, Any], keys: Sequence[str], at: Place) -> str:
    key = next(each for each in keys if each in options)
    if not isinstance(options[key], str):
        refuse("a text is expected: patterns are for keywords", at)
    return str(options[key])


def _term(body: Any, at: Place, lists: ListPaths) -> Answer:
    field, options, at = _one_field(body, "value", ("case_insensitive",), at)
    value = _value(options["value"], at)
    if _is_without_case(options, at) and isinstance(value, str):
        pattern = f"^{literal(value, ignoring_case=True)}$"
        return _patterns(field, lambda name: matches(name, pattern), lists)
    return _equals(field, [value], lists)


def _terms(body: Any, at: Place, lists: ListPaths) -> Answer:
    field, given, at = _only_field(body, at)
    if not isinstance(given, list):
        refuse("a list of values is expected; values from another document are not supported", at)
    values = [_value(each, (*at, place)) for place, each in enumerate(given)]
    _field(field, lists)
    return _equals(field, values, lists)


def _match(body: Any, at: Place, lists: ListPaths) -> Answer:
    field, options, at = _one_field(body, "query", (), at)
    value = _value(options["query"], at)
    if isinstance(value, str) and not field.endswith(".keyword"):
        refuse(
            "match analyzes text, which an expression cannot say; for the whole value, "
            f"take term, or the field {brief(field + '.keyword')}",
            at,
        )
    return _equals(field, [value], lists)


def _range(body: Any, at: Place, lists: ListPaths) -> Answer:
    field, given, at = _only_field(body, at)
    bounds = _options(given, tuple(_BOUNDS), at)
    ends = [
        (_BOUNDS[key], _bound(value, (*at, key)))
        for key, value in bounds.items()
        if key in _BOUNDS and value is not None
    ]
    if not ends:
        return _exists_in(_field(field, lists)[0])
    kinds = {kind_of(value) for _, value in ends}
    if len(kinds) > 1:
        refuse("the ends are of several kinds", at)
    name, may_be_list = _field(field, lists)
    return any_value(
        name,
        kinds.pop(),
        lambda each: all_of(compare(each, operator, value) for operator, value in ends),
        may_be_list=may_be_list,
    )


def _bound(value: Any, at: Place) -> Any:
    value = _value(value, at)
    if isinstance(value, bool):
        refuse("a Boolean has no order", at)
    if isinstance(value, str) and (value.startswith("now") or "||" in value):
        refuse("date arithmetic is not supported: what it means changes with the clock", at)
    return value


def _prefix(body: Any, at: Place, lists: ListPaths) -> Answer:
    field, options, at = _one_field(body, "value", ("case_insensitive", "rewrite"), at)
    value = _text(options, ("value",), at)
    if _is_without_case(options, at):
        pattern = f"^{literal(value, ignoring_case=True)}"
        return _patterns(field, lambda name: matches(name, pattern), lists)
    return _patterns(field, lambda name: like(name, value, ANY_TEXT), lists)


def _wildcard(body: Any, at: Place, lists: ListPaths) -> Answer:
    keys = ("value", "wildcard")
    field, options, at = _one_field(body, keys, ("case_insensitive", "rewrite"), at)
    pieces = _wild_pieces(_text(options, keys, at))
    if _is_without_case(options, at):
        wild = {ANY_TEXT: "(?s:.*)", ANY_CHARACTER: "(?s:.)"}
        pattern = "".join(wild.get(each) or literal(each, ignoring_case=True) for each in pieces)
        return _patterns(field, lambda name: matches(name, f"^{pattern}$"), lists)
    return _patterns(field, lambda name: like(name, *pieces), lists)


def _wild_pieces(pattern: str) -> list[Any]:
    pieces: list[Any] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\" and at + 1 < len(pattern):
            at += 1
            pieces.append(pattern[at])
        elif character == "*":
            if pieces[-1:] != [ANY_TEXT]:
                pieces.append(ANY_TEXT)
        else:
            pieces.append(ANY_CHARACTER if character == "?" else character)
        at += 1
    return pieces


def _regexp(body: Any, at: Place, lists: ListPaths) -> Answer:
    allowed = ("flags", "case_insensitive", "max_determinized_states", "rewrite")
    field, options, at = _one_field(body, "value", allowed, at)
    flags = options.get("flags", "ALL")
    if flags not in ("ALL", "NONE"):
        refuse("the flags ALL and NONE are supported", (*at, "flags"))
    pattern = from_lucene(
        _text(options, ("value",), at),
        optional=flags == "ALL",
        ignoring_case=_is_without_case(options, at),
    )
    return _patterns(field, lambda name: matches(name, pattern), lists)


def _exists(body: Any, at: Place, lists: ListPaths) -> Answer:
    body = _options(body, ("field",), at)
    if not isinstance(body.get("field"), str):
        refuse("field is expected, a text", at)
    return _exists_in(_field(body["field"], lists)[0])


def _exists_in(name: str) -> Answer:
    """There is a value that is not null: of a list some element, of an object some field."""
    each = (
        f"exists({name}, v -> v IS NOT NULL)",
        f"exists(map_values({name}), v -> v IS NOT NULL)",
    )
    return Answer(
        all_of([f"{name} IS NOT NULL", any_of([f"size({name}) IS NULL", *each])]),
        any_of(
            [is_null(name), all_of([f"size({name}) IS NOT NULL", *map(is_not_true, each)])],
        ),
    )


def _ids(body: Any, at: Place, lists: ListPaths) -> Answer:
    body = _options(body, ("values",), at)
    values = body.get("values")
    values = values if isinstance(values, list) else [values]
    if not all(isinstance(each, str) for each in values):
        refuse("values is expected, a list of texts", at)
    return _equals("_id", values, lists)


_QUERIES: dict[str, Callable[[Any, Place, ListPaths], Answer]] = {
    "bool": _bool,
    "boosting": _boosting,
    "constant_score": _constant_score,
    "dis_max": _dis_max,
    "exists": _exists,
    "ids": _ids,
    "match": _match,
    "match_all": _match_all,
    "match_none": _match_none,
    "prefix": _prefix,
    "range": _range,
    "regexp": _regexp,
    "term": _term,
    "terms": _terms,
    "wildcard": _wildcard,
}
