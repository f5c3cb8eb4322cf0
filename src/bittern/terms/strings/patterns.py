r"""Patterns: LIKE and ILIKE, and regular expressions.

::

    like('a%c', 'a/%_', '/')                        TRUE
    regexp_extract('k=v', '(\\w)=(\\w)', 2)         'v'
    regexp_replace('a1b2', '([a-z])', '<$1>')       '<a>1<b>2'
    regexp_count('baac', 'a*')                      4: '' 'aa' '' ''

The pattern of LIKE may be a column; each distinct one is looked for in its rows at once. Regular
expressions are constants, and RE2's, as those of RLIKE are everywhere in Bittern: linear in the
value, and in corners not Java's (docs/language.md). Matches follow each other as Java finds them:
behind an empty one the search goes on one character later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import re2

from bittern.terms.nodes import Call
from bittern.terms.pattern_texts import LikeForm, Wildcard, compile_regex, like_parts
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value
from bittern.terms.strings.strings import lower
from bittern.terms.strings.texts import (
    Integers,
    all_there,
    constants_once,
    each,
    number,
    one,
    sized,
    text,
    texts,
    where,
)

TABLE = FunctionTable()


@TABLE.add("like", least=2, most=3)
@constants_once
def _like(scope: Scope, _call: Call, value: Value, pattern: Value, *escape: Value) -> Value:
    return _alike(scope, *texts(scope, value, pattern), *escape)


@TABLE.add("ilike", least=2, most=3)
@constants_once
def _ilike(scope: Scope, _call: Call, value: Value, pattern: Value, *escape: Value) -> Value:
    value, pattern = texts(scope, value, pattern)
    if isinstance(pattern, pa.Scalar):
        pattern = lower(Scope({}, 1), pattern)[0]
    else:
        pattern = lower(scope, pattern)
    return _alike(scope, lower(scope, value), pattern, *escape)


def _alike(scope: Scope, value: Value, pattern: Value, escape: Value | None = None) -> Value:
    mark = "\\" if escape is None else one(escape, "the escape character")
    if not isinstance(mark, str) or len(mark) != 1:
        raise MeaninglessError("the escape character of LIKE is a string of one character")
    array = scope.array(value)
    if isinstance(pattern, pa.Scalar) and not pattern.is_valid:
        return pa.nulls(scope.n_rows, pa.bool_())
    present = np.flatnonzero(all_there(scope, value, pattern))
    if isinstance(pattern, pa.Scalar):
        groups = [(pattern.as_py(), present)]
    else:
        groups = _grouped(pattern, present)
    found, known = np.zeros((2, scope.n_rows), dtype=np.bool_)
    for own, rows in groups:
        try:
            ask, wanted = _taken_apart(own, mark)
        except ValueError as wrong:
            failed = np.zeros(scope.n_rows, dtype=np.bool_)
            failed[rows] = True
            scope.fail(failed, str(wrong))
            continue
        known[rows] = True
        own_values = array if len(rows) == len(array) else array.take(pa.array(rows))
        found[rows] = ask(own_values, wanted).to_numpy(zero_copy_only=False)
    return where(known, pa.array(found))


def _grouped(pattern: pa.Array, rows: Integers) -> list[tuple[str, Integers]]:
    """Each distinct pattern of these rows, and the rows that have it."""
    encoded = pattern.take(pa.array(rows)).dictionary_encode()
    codes = encoded.indices.to_numpy()
    in_order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[in_order], np.arange(1, len(encoded.dictionary)))
    parts = np.split(rows[in_order], bounds)
    return list(zip(encoded.dictionary.to_pylist(), parts, strict=False))


def _equal(array: pa.Array, parts: str) -> pa.Array:
    return pc.equal(array, pa.scalar(parts))


#: How values are asked for the text of a pattern, by its form.
_ASKED: dict[LikeForm, Callable[[pa.Array, str], pa.Array]] = {
    LikeForm.EXACT: _equal,
    LikeForm.PREFIX: pc.starts_with,
    LikeForm.ANY: pc.starts_with,
    LikeForm.SUFFIX: pc.ends_with,
    LikeForm.CONTAINS: pc.match_substring,
}
_WILD = {Wildcard.ANY: "(?s:.*)", Wildcard.ANY_ONE: "(?s:.)"}


@lru_cache(maxsize=4096)
def _taken_apart(pattern: str, escape: str) -> tuple[Callable[[pa.Array, str], pa.Array], str]:
    """What to ask of a value, and with which text; ``ValueError`` if the pattern is none."""
    parts = like_parts(pattern, escape)
    if parts.form in _ASKED:
        return _ASKED[parts.form], parts.text
    regex = [re2.escape(each) if isinstance(each, str) else _WILD[each] for each in parts.pieces]
    return pc.match_substring_regex, rf"\A{''.join(regex)}\z"


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    """A regular expression of RE2."""
    try:
        return compile_regex(pattern, of_bytes=True)
    except ValueError as wrong:
        raise MeaninglessError(str(wrong)) from None


def _regex(scope: Scope, pattern: Value) -> Any:
    """The regular expression of a constant; None for NULL."""
    own = one(text(scope, pattern), "a regular expression")
    return None if own is None else _compiled(own)


def _matches(regex: Any, value: bytes) -> Iterator[Any]:
    """The matches, one behind the other, as Java's ``find`` gives them."""
    start = 0
    while start <= len(value):
        match = regex.search(value, start)
        if match is None:
            return
        yield match
        start = match.end()
        if match.start() == start:
            start += 1
            while start < len(value) and value[start] & 0xC0 == 0x80:
                start += 1


@TABLE.add("regexp_like", "rlike", "regexp", least=2)
@constants_once
def _regexp_like(scope: Scope, _call: Call, value: Value, pattern: Value) -> Value:
    value, regex = text(scope, value), _regex(scope, pattern)
    if regex is None:
        return pa.nulls(scope.n_rows, pa.bool_())
    try:
        return pc.match_substring_regex(scope.array(value), regex.pattern.decode())
    except pa.ArrowInvalid:  # Arrow may come with an older RE2, which knows less syntax
        return each(scope, pa.bool_(), lambda own: regex.search(own.encode()) is not None, value)


@TABLE.add("regexp_extract", least=2, most=3)
@constants_once
def _regexp_extract(
    scope: Scope, _call: Call, value: Value, pattern: Value, group: Value | None = None
) -> Value:
    index = pa.scalar(1, pa.int32()) if group is None else number(scope, group)
    return _extracted(scope, value, pattern, index)


def _extracted(scope: Scope, value: Value, pattern: Value, index: Value) -> Value:
    value, regex = text(scope, value), _regex(scope, pattern)
    if regex is None:
        return pa.nulls(scope.n_rows, pa.string())

    def of_one(own: str, number_of: int) -> str:
        match = regex.search(own.encode())
        if match is None:
            return ""
        if not 0 <= number_of <= regex.groups:
            raise ValueError(f"the regular expression has {regex.groups} groups")
        return (match.group(number_of) or b"").decode()

    return each(scope, pa.string(), of_one, value, index)


@TABLE.add("regexp_substr", least=2)
@constants_once
def _regexp_substr(scope: Scope, _call: Call, value: Value, pattern: Value) -> Value:
    found = _extracted(scope, value, pattern, pa.scalar(0, pa.int32()))
    return where(pc.not_equal(found, pa.scalar("")), found)


@TABLE.add("regexp_count", least=2)
@constants_once
def _regexp_count(scope: Scope, _call: Call, value: Value, pattern: Value) -> Value:
    value, regex = text(scope, value), _regex(scope, pattern)
    if regex is None:
        return pa.nulls(scope.n_rows, pa.int32())

    def of_one(own: str) -> int:
        return sum(1 for _ in _matches(regex, own.encode()))

    return each(scope, pa.int32(), of_one, value)


@TABLE.add("regexp_instr", least=2, most=3)
@constants_once
def _regexp_instr(scope: Scope, _call: Call, value: Value, pattern: Value, *group: Value) -> Value:
    """Where the first match begins, from 1; Spark does not look at the group, unless it is NULL."""
    value, regex = text(scope, value), _regex(scope, pattern)
    if regex is None:
        return pa.nulls(scope.n_rows, pa.int32())

    def of_one(own: str, *_: int) -> int:
        encoded = own.encode()
        match = regex.search(encoded)
        return 0 if match is None else len(encoded[: match.start()].decode()) + 1

    return each(scope, pa.int32(), of_one, value, *(number(scope, own) for own in group))


@TABLE.add("regexp_replace", least=3, most=4)
@constants_once
def _regexp_replace(
    scope: Scope, _call: Call, value: Value, pattern: Value, new: Value, start: Value | None = None
) -> Value:
    value, new, regex = text(scope, value), text(scope, new), _regex(scope, pattern)
    first = 1 if start is None else one(number(scope, start), "the position")
    if first is None or regex is None:
        return pa.nulls(scope.n_rows, pa.string())
    if first < 1:
        raise MeaninglessError("the position of regexp_replace is at least 1")

    def of_one(own: str, replacement: str) -> str:
        skipped = first - 1
        if skipped and skipped >= len(own):
            return own
        return own[:skipped] + _replaced(regex, own[skipped:].encode(), replacement).decode()

    return each(scope, pa.string(), of_one, value, new)


def _replaced(regex: Any, value: bytes, replacement: str) -> bytes:
    parts: list[bytes] = []
    size = end = 0
    for match in _matches(regex, value):
        parts.append(value[end : match.start()])
        for piece in _template(regex, replacement):
            parts.append(piece if isinstance(piece, bytes) else match.group(piece) or b"")
            size += len(parts[-1])
        sized(size)
        end = match.end()
    parts.append(value[end:])
    return b"".join(parts)


_REFERENCE = re.compile(r"(?s)\\(.)|\$(?:\{([a-zA-Z][a-zA-Z0-9]*)\}|([0-9]+))|[^\\$]+|(.)")


@lru_cache(maxsize=1024)
def _template(regex: Any, replacement: str) -> tuple[bytes | int, ...]:
    r"""Java's replacement: texts and groups, ``$1`` or ``${name}``; ``\`` takes what is next."""
    found: list[bytes | int] = []
    for match in _REFERENCE.finditer(replacement):
        escaped, name, digits, wrong = match.groups()
        if wrong:
            raise ValueError("in a replacement, write \\$ and \\\\ for the characters themselves")
        if name:
            group = regex.groupindex.get(name.encode())
            if group is None:
                raise ValueError(f"the regular expression has no group {name[:40]}")
            found.append(group)
        elif digits:
            # As many digits as are the number of a group; the first one has to be.
            group, count = int(digits[0]), 1
            if group > regex.groups:
                raise ValueError(f"the regular expression has {regex.groups} groups")
            while count < len(digits) and 10 * group + int(digits[count]) <= regex.groups:
                group, count = 10 * group + int(digits[count]), count + 1
            found += [group, digits[count:].encode()]
        else:
            found.append((escaped or match[0]).encode())
    return tuple(found)
