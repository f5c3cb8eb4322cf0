"""Functions that build strings: case, trimming, joining, replacing, padding; and lengths.

::

    upper('straße')             'STRASSE'      Unicode's full case mapping
    trim('x', 'xaxbx')          'axb'          the characters come first, as Spark has it
    concat_ws('-', 1, NULL, 2)  '1-2'
    lpad('7', 3, '0')           '007'
    length('a😀')               2              characters are code points

Arguments that are no strings are cast to strings. Functions that can make values larger fail rows
whose results exceed the limits. O(bytes of arguments and results); case mapping beyond ASCII,
``initcap`` and ``translate`` call Python once per distinct value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.terms.nodes import Call
from bittern.terms.scope import FunctionTable, Scope, Value
from bittern.terms.strings.texts import (
    Characters,
    Integers,
    all_there,
    constants_once,
    each,
    integers,
    number,
    sized,
    sizes,
    text,
    text_or_bytes,
    texts,
    where,
    within_limits,
)

TABLE = FunctionTable()

#: Letters that got another case in Unicode 15 to 17, which Python may not know yet but Spark does.
_NEW_LOWER = {
    0x1C89: 0x1C8A,
    0xA7CB: 0x0264,
    0xA7CC: 0xA7CD,
    0xA7CE: 0xA7CF,
    0xA7D2: 0xA7D3,
    0xA7D4: 0xA7D5,
    0xA7DA: 0xA7DB,
    0xA7DC: 0x019B,
    **{capital: capital + 0x20 for capital in range(0x10D50, 0x10D66)},
    **{capital: capital + 0x1B for capital in range(0x16EA0, 0x16EB9)},
}
_NEW_UPPER = {small: capital for capital, small in _NEW_LOWER.items()}
_NEW = f"[{''.join(map(chr, [*_NEW_LOWER, *_NEW_UPPER]))}]"


def _new_lower(string: str) -> str:
    return string.lower().translate(_NEW_LOWER)


def _new_upper(string: str) -> str:
    return string.upper().translate(_NEW_UPPER)


def _title(string: str) -> str:
    """Capitals behind spaces; other white space ends no word."""
    return " ".join(
        word[0].title() + word.lower()[len(word[0].lower()) :] if word else ""
        for word in string.split(" ")
    )


def _new_title(string: str) -> str:
    words = _title(string).translate(_NEW_LOWER).split(" ")
    return " ".join(word[:1].translate(_NEW_UPPER) + word[1:] for word in words)


def _each_in_case(
    scope: Scope, value: Value, known: Callable[[str], str], new: Callable[[str], str]
) -> pa.Array:
    """In the case that Python knows, or with the new letters where one of them is in the column."""
    array = scope.array(value)
    has_new = pc.any(pc.match_substring_regex(array, _NEW)).as_py()
    return each(scope, pa.string(), new if has_new else known, array)


def _are_ascii(array: pa.Array) -> bool:
    """Whether all strings are ASCII, those that are NULL included, as far as their bytes go."""
    characters = Characters(array)
    return characters.starts is None


def lower(scope: Scope, value: Value) -> Value:
    """A string in lower case."""
    array = scope.array(value)
    if _are_ascii(array):
        return pc.ascii_lower(array)
    is_ascii = pc.string_is_ascii(array)
    others = _each_in_case(scope, where(pc.invert(is_ascii), array), str.lower, _new_lower)
    return pc.if_else(is_ascii, pc.ascii_lower(array), others)


@TABLE.add("lower", "lcase", least=1)
@constants_once
def _lower(scope: Scope, _call: Call, value: Value) -> Value:
    return lower(scope, text(scope, value))


@TABLE.add("upper", "ucase", least=1)
@constants_once
def _upper(scope: Scope, _call: Call, value: Value) -> Value:
    array = scope.array(text(scope, value))
    if _are_ascii(array):
        return pc.ascii_upper(array)
    is_ascii = pc.string_is_ascii(array)
    others = _each_in_case(scope, where(pc.invert(is_ascii), array), str.upper, _new_upper)
    return pc.if_else(is_ascii, pc.ascii_upper(array), others)


@TABLE.add("initcap", least=1)
@constants_once
def _initcap(scope: Scope, _call: Call, value: Value) -> Value:
    return _each_in_case(scope, text(scope, value), _title, _new_title)


def _trim(
    plain: Callable[..., Value],
    python: Callable[[str, str], str],
    scope: Scope,
    _call: Call,
    *values: Value,
) -> Value:
    *characters, value = texts(scope, *values)
    if not characters:
        return plain(scope.array(value), characters=" ")
    if isinstance(characters[0], pa.Array):
        return each(scope, pa.string(), python, value, characters[0])
    if not characters[0].is_valid:
        return pa.nulls(scope.n_rows, pa.string())
    return plain(scope.array(value), characters=characters[0].as_py())


# An empty set of characters trims nothing in Spark; Python's strip() would then trim white space.
_TRIMS: dict[str, Any] = {
    "trim": (pc.utf8_trim, lambda value, characters: value.strip(characters)),
    "ltrim": (pc.utf8_ltrim, lambda value, characters: value.lstrip(characters)),
    "rtrim": (pc.utf8_rtrim, lambda value, characters: value.rstrip(characters)),
}
for _name, _ways in _TRIMS.items():
    TABLE.add(_name, least=1, most=2)(constants_once(partial(_trim, *_ways)))


@TABLE.add("btrim", least=1, most=2)
@constants_once
def _btrim(scope: Scope, call: Call, *values: Value) -> Value:
    return _trim(*_TRIMS["trim"], scope, call, *reversed(values))


@TABLE.add("length", "len", "char_length", "character_length", least=1)
@constants_once
def _length(scope: Scope, _call: Call, value: Value) -> Value:
    value = text_or_bytes(scope, value)
    return pc.utf8_length(value) if pa.types.is_string(value.type) else pc.binary_length(value)


@TABLE.add("octet_length", least=1)
@constants_once
def _octet_length(scope: Scope, _call: Call, value: Value) -> Value:
    return pc.binary_length(text_or_bytes(scope, value))


@TABLE.add("bit_length", least=1)
@constants_once
def _bit_length(scope: Scope, _call: Call, value: Value) -> Value:
    return pc.multiply(pc.binary_length(text_or_bytes(scope, value)), pa.scalar(8, pa.int32()))


def joined(scope: Scope, *values: Value) -> pa.Array:
    """One string (or BINARY) behind the other; NULL where one of them is."""
    total = sum((sizes(scope, value) for value in values), np.zeros(scope.n_rows, dtype=np.int64))
    fits = within_limits(scope, np.where(all_there(scope, *values), total, 0))
    nothing = pa.scalar("", pa.string()).cast(values[0].type)
    first = where(fits, scope.array(values[0]))
    return pc.binary_join_element_wise(first, *values[1:], nothing)


@TABLE.add("concat", "||", least=0, most=-1)
@constants_once
def _concat(scope: Scope, _call: Call, *values: Value) -> Value:
    if not values:
        return pa.scalar("")
    if not all(pa.types.is_binary(value.type) for value in values):
        values = tuple(texts(scope, *values))
    return joined(scope, *values)


@TABLE.add("concat_ws", least=1, most=-1)
@constants_once
def _concat_ws(scope: Scope, _call: Call, separator: Value, *values: Value) -> Value:
    separator = text(scope, separator)
    total = np.zeros(scope.n_rows, dtype=np.int64)
    pieces: list[Value] = []
    for value in values:
        piece = _list_as_text(scope, value, separator) if _is_list(value) else text(scope, value)
        pieces.append(piece)
        total += sizes(scope, piece) + sizes(scope, separator)
    fits = within_limits(scope, np.where(all_there(scope, separator), total, 0))
    between = where(fits, scope.array(separator))
    if not pieces:
        return where(between.is_valid(), scope.array(pa.scalar("")))
    # Arrow leaves out rows in which all are NULL, so that no row may be one.
    nothing = np.logical_and.reduce([scope.mask(pc.is_null(piece)) for piece in pieces])
    pieces[0] = pc.if_else(pa.array(nothing), pa.scalar(""), pieces[0])
    known = scope.mask(between.is_valid())
    found = pc.binary_join_element_wise(*pieces, between.fill_null(""), null_handling="skip")
    return where(known, found)


def _is_list(value: Value) -> bool:
    return bool(pa.types.is_list(value.type) or pa.types.is_large_list(value.type))


def _list_as_text(scope: Scope, value: Value, separator: Value) -> pa.Array:
    """The elements that are not NULL, joined; NULL (which is skipped) if there are none."""
    array = scope.array(value)
    rows = pc.list_parent_indices(array).to_numpy(zero_copy_only=False)
    elements = array.flatten()
    elements = text(Scope({}, len(elements)), elements)
    there = np.asarray(elements.is_valid())
    counts = np.bincount(rows[there], minlength=scope.n_rows)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), elements.filter(pa.array(there)))
    return where(counts > 0, pc.binary_join(lists, separator))


@TABLE.add("replace", least=2, most=3)
@constants_once
def _replace(scope: Scope, _call: Call, *values: Value) -> Value:
    value, search, new = texts(scope, *values, *[pa.scalar("")] * (3 - len(values)))
    if isinstance(search, pa.Array) or isinstance(new, pa.Array):
        return each(scope, pa.string(), _replaced, value, search, new)
    array = scope.array(value)
    old, by = search.as_py(), new.as_py()
    if old is None or by is None:
        return pa.nulls(scope.n_rows, pa.string())
    if not old:
        return array
    growth = len(by.encode()) - len(old.encode())
    if growth > 0:
        lengths = sizes(scope, array) + growth * integers(scope, pc.count_substring(array, old))
        array = where(within_limits(scope, lengths), array)
    return pc.replace_substring(array, old, by)


def _replaced(value: str, search: str, new: str) -> str:
    if not search:
        return value
    sized(len(value) + value.count(search) * (len(new) - len(search)))
    return value.replace(search, new)


@TABLE.add("translate", least=3)
@constants_once
def _translate(scope: Scope, _call: Call, *values: Value) -> Value:
    return each(scope, pa.string(), _translated, *texts(scope, *values))


def _translated(value: str, old: str, new: str) -> str:
    return value.translate(_translation(old, new))


@lru_cache(maxsize=256)
def _translation(old: str, new: str) -> dict[int, int | None]:
    """Of a character that stands twice in ``old`` the first one counts."""
    table: dict[int, int | None] = {}
    for place, character in enumerate(old):
        table.setdefault(ord(character), ord(new[place]) if place < len(new) else None)
    return table


@TABLE.add("reverse", least=1)
@constants_once
def _reverse(scope: Scope, _call: Call, value: Value) -> Value:
    value = text_or_bytes(scope, value)
    return pc.utf8_reverse(value) if pa.types.is_string(value.type) else pc.binary_reverse(value)


def repeated(scope: Scope, value: Value, times: Value) -> pa.Array:
    """The value so many times, not at all where that is negative."""
    counts = np.maximum(integers(scope, times), 0)
    there = all_there(scope, value, times)
    lengths = np.where(there, sizes(scope, value) * counts, 0)
    fits = within_limits(scope, lengths) & there
    return where(fits, pc.binary_repeat(value, pa.array(np.where(fits, counts, 0))))


@TABLE.add("repeat", least=2)
@constants_once
def _repeat(scope: Scope, _call: Call, value: Value, times: Value) -> Value:
    return repeated(scope, text(scope, value), number(scope, times))


@TABLE.add("space", least=1)
@constants_once
def _space(scope: Scope, _call: Call, times: Value) -> Value:
    return repeated(scope, pa.scalar(" "), number(scope, times))


def _pad(
    scope: Scope, value: Value, length: Value, padding: Value | None
) -> tuple[pa.Array, pa.Array]:
    """The value, cut to the length, and what it lacks of it."""
    both = [value] if padding is None else [value, padding]
    if all(pa.types.is_binary(own.type) for own in both):
        own, filler = value, pa.scalar(b"\0") if padding is None else padding
    else:
        own = text(scope, value)
        filler = pa.scalar(" ") if padding is None else text(scope, padding)
    wanted = number(scope, length)
    there = all_there(scope, own, filler, wanted)
    own, filler = where(there, scope.array(own)), scope.array(filler)
    goal = np.maximum(integers(scope, wanted), 0)
    characters, fillers = Characters(own), Characters(filler)
    cut = characters.cut(np.zeros_like(goal), goal)
    missing = np.where(there & (fillers.counts > 0), np.maximum(goal - characters.counts, 0), 0)
    times: Integers = -(-missing // np.maximum(fillers.counts, 1))
    # Limits are of the whole: what is in front or behind may be long only if the rest is short.
    fits = within_limits(scope, sizes(scope, cut) + times * sizes(scope, filler))
    times[~fits] = 0
    filling = pc.binary_repeat(filler, pa.array(times))
    return where(fits, cut), Characters(filling).cut(np.zeros_like(goal), missing)


@TABLE.add("lpad", least=2, most=3)
@constants_once
def _lpad(
    scope: Scope, _call: Call, value: Value, length: Value, padding: Value | None = None
) -> Value:
    cut, filling = _pad(scope, value, length, padding)
    return joined(scope, filling, cut)


@TABLE.add("rpad", least=2, most=3)
@constants_once
def _rpad(
    scope: Scope, _call: Call, value: Value, length: Value, padding: Value | None = None
) -> Value:
    cut, filling = _pad(scope, value, length, padding)
    return joined(scope, cut, filling)
