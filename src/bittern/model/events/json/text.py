r"""JSON texts to tagged values: one pass over each text, only attributes in use are kept.

With the names ``price``, ``car.color`` and ```a.b``` in use, the event ::

    {"price": 9, "car": {"color": "r\u0065d", "doors": 3}, "a.b": null, "tags": [1, 2]}

becomes ``price = 9`` and ``car.color = "red"``. A key is unescaped, put behind the path of the
objects around it, and looked up; the values of unknown paths are checked and forgotten. A part of a
name that has a dot or a back quote stands between back quotes, as in expressions.

What a value becomes:

- An integer that fits 64 bits is an integer (``-0`` is 0); any other number is the nearest
  float64, infinite beyond its range (as Python and Spark read ``1e999``).
- A string without escapes stays where it is in the input; others are unescaped behind it.
- An object or a list is ``OTHER``, with the payload where it starts; an object's members have paths
  of their own, a list's none. A list whose path leads to attributes is an entry of that prefix too
  (``Names.spread``).
- ``null`` makes no entry, unless nulls are asked for: then it makes one of its prefix too, as a
  list does. If a path is repeated, its last value counts:
  ``{"a": {"b": 1}, "a": {"c": 2}}`` has both ``a.b`` and ``a.c``.

A text that is not strict JSON (RFC 8259, in UTF-8, without lone surrogates) with an object on top
is rejected whole, with one of ``REJECT_REASONS``; the other texts do not notice.

Time is O(bytes) and a lookup per key. Memory is at most 8 bytes per byte of input, reserved at once
and touched only as far as there are entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bittern.jit import (
    apart,
    b1,
    b1r,
    b1w,
    i8r,
    i8w,
    i8w2,
    inline,
    kernel,
    tuple_type,
    u1r,
    u1w,
    void,
)
from bittern.model.events.json.entries import (
    ENTRIES,
    MAX_DEPTH,
    UNUSED,
    UNWRITTEN,
    TaggedRoom,
    append,
    extend_path,
    find_key,
    find_path,
    find_prefix,
    longest_name,
    place_of,
)
from bittern.model.events.json.tokens import (
    CLOSE_LIST,
    CLOSE_OBJECT,
    COLON,
    COMMA,
    DOT,
    ENDS_EARLY,
    ESCAPED,
    NOT_AN_OBJECT,
    NOT_JSON,
    NULL,
    NUMBER_TEXT,
    OPEN_LIST,
    OPEN_OBJECT,
    QUOTE,
    REJECT_REASONS,
    TOO_DEEP,
    TOO_LONG,
    TRAILING,
    needs_quotes,
    scalar,
    skip_space,
    string_end,
    unescape,
)
from bittern.model.strings import (
    FOUND,
    KEY_ROWS,
    STARTS,
    STOPS,
    STRING_TABLE,
    TOGETHER,
    StringTable,
    byte_at,
    find_together,
    gather_strings,
)
from bittern.model.tagged import FLOAT, OTHER, STRING, TaggedValues

__all__ = ["MAX_DEPTH", "REJECT_REASONS", "Workspace", "scan_json", "scan_text"]

_MAX_LENGTH = 2**31 - 1


class Workspace(NamedTuple):
    """Where a row's scan keeps its path, its depth and what it has seen."""

    path: np.ndarray  # as long as the longest name: a longer path is not in use
    latest: np.ndarray  # by attribute: the entry it had when last seen
    prefixes: np.ndarray  # by depth: length of the path before a key, or UNUSED
    objects: np.ndarray  # by depth: an object rather than a list
    unescaped: np.ndarray  # the strings of the whole batch that had escapes
    nulls: bool  # whether they make entries
    keys: np.ndarray  # those of values that wait to be looked up together


_WORKSPACE = tuple_type(Workspace, u1w, i8w, i8w, b1w, u1w, b1, i8w2)


@inline
def _key(data: Any, at: Any, stop: Any) -> Any:
    """Read a key and its colon: (where its value is or -reason, key's start, end, escaped?)."""
    if at == stop or byte_at(data, at) != QUOTE:
        return np.int64(-ENDS_EARLY if at == stop else -NOT_JSON), at, at, False
    end, escaped = string_end(data, at + 1, stop)
    if end < 0:
        return end, at, at, escaped
    colon = skip_space(data, end + 1, stop)
    if colon == stop or byte_at(data, colon) != COLON:
        return np.int64(-ENDS_EARLY if colon == stop else -NOT_JSON), at, at, escaped
    return skip_space(data, colon + 1, stop), at + 1, end, escaped


@inline
def _attribute_of(
    names: Any,
    path: Any,
    prefix: Any,
    data: Any,
    start: Any,
    end: Any,
    escaped: Any,
    spare: Any,
    to: Any,
) -> Any:
    """The attribute that a key stands for, or -1, and its path's length.

    ``spare[to:]`` is room for the key without its escapes.
    """
    if not escaped:
        return find_key(names, path, prefix, data, start, end)
    length = np.int64(UNUSED)
    if prefix >= 0:
        length = extend_path(path, prefix, spare, to, unescape(data, start, end, spare, to))
    return find_path(names, path, length), length


@inline
def _store(entries: Any, latest: Any, first: Any, count: Any, attribute: Any, value: Any) -> Any:
    """Store a value in the row whose entries so far are first .. count; returns the new count."""
    _, tag, payload, length, real = value
    at = place_of(entries, latest, first, count, attribute)
    entries.tags[at] = tag
    entries.lengths[at] = length
    if tag == FLOAT:
        entries.reals[at] = real
    else:
        entries.payloads[at] = payload
    return max(count, at + 1)


@inline
def _wait(entries: Any, keys: Any, count: Any, waiting: Any, key: Any, value: Any) -> None:
    """Keep a value behind all entries until its key, given by where it is, is looked up."""
    _, tag, payload, length, real = value
    keys[STARTS, waiting], keys[STOPS, waiting] = key
    at = count + waiting
    entries.tags[at], entries.lengths[at] = tag, length
    if tag == FLOAT:
        entries.reals[at] = real
    else:
        entries.payloads[at] = payload


@apart
def _settle_keys(
    data: Any, names: Any, work: Any, entries: Any, first: Any, count: Any, used: Any, waiting: Any
) -> Any:
    """Look the keys of waiting values up: (entries, bytes unescaped, a null among them?)."""
    find_together(names, data, work.keys, waiting, 0)
    nulls, begin = False, count
    for i in range(begin, begin + waiting):
        attribute = np.int32(work.keys[FOUND, i - begin])
        if attribute < 0:
            continue
        tag, payload, size = entries.tags[i], entries.payloads[i], np.int64(entries.lengths[i])
        if tag == ESCAPED:
            tag, string_start = np.uint8(STRING), used
            used = unescape(data, payload, payload + size, work.unescaped, used)
            payload, size = len(data) + string_start, used - string_start
        nulls |= tag == NULL
        at = place_of(entries, work.latest, first, count, attribute)
        entries.tags[at], entries.payloads[at], entries.lengths[at] = tag, payload, size
        count = max(count, at + 1)
    return count, used, nulls


@inline
def _drop_nulls(entries: Any, first: Any, count: Any) -> Any:
    """Take the nulls out of a row's entries; returns the new count."""
    kept = first
    for at in range(first, count):
        if entries.tags[at] != NULL:
            entries.attributes[kept] = entries.attributes[at]
            entries.tags[kept] = entries.tags[at]
            entries.payloads[kept] = entries.payloads[at]
            entries.lengths[kept] = entries.lengths[at]
            kept += 1
    return kept


@inline
def scan_text(
    data: Any, at: Any, stop: Any, names: Any, work: Any, entries: Any, first: Any, used: Any
) -> Any:
    """Scan one text: (reason or 0, entries, bytes unescaped), the last two so far in the batch.

    One turn of the loop reads a closing bracket, or a member: a comma unless it is the first, in an
    object its key, and its value, of which an object or list is only the opening bracket. A plain
    value whose key is its whole path waits, and such keys are looked up together.
    """
    count, depth, nulls, waiting = first, 0, False, np.int64(0)
    prefix, in_object, fresh = np.int64(0), True, True
    at = skip_space(data, at, stop)
    if at == stop or byte_at(data, at) != OPEN_OBJECT:
        return np.int64(ENDS_EARLY if at == stop else NOT_AN_OBJECT), count, used
    at += 1
    while True:
        at = skip_space(data, at, stop)
        if at == stop:
            return np.int64(ENDS_EARLY), count, used
        byte = byte_at(data, at)
        if byte == (CLOSE_OBJECT if in_object else CLOSE_LIST):
            at += 1
            if depth == 0:
                break
            depth -= 1
            prefix, in_object, fresh = work.prefixes[depth], work.objects[depth], False
            continue
        if not fresh:
            if byte != COMMA:
                return np.int64(NOT_JSON), count, used
            at = skip_space(data, at + 1, stop)
        fresh = False

        key, key_end, escaped = at, at, False
        if in_object:
            at, key, key_end, escaped = _key(data, at, stop)
            if at < 0:
                return -at, count, used
        if at == stop:
            return np.int64(ENDS_EARLY), count, used
        byte = byte_at(data, at)
        opens = byte in (OPEN_OBJECT, OPEN_LIST)
        waits = depth == 0 and not (opens or escaped or work.nulls)
        waits = waits and not needs_quotes(data, key, key_end)
        if waiting == TOGETHER or (waiting > 0 and not waits):
            count, used, any_null = _settle_keys(
                data, names, work, entries, first, count, used, waiting
            )
            nulls, waiting = nulls or any_null, np.int64(0)
        attribute, length = np.int32(-1), np.int64(UNUSED)
        if in_object and not waits:
            attribute, length = _attribute_of(
                names, work.path, prefix, data, key, key_end, escaped, work.unescaped, used
            )

        if opens:
            if attribute >= 0:
                other = (at, OTHER, at, np.int64(0), 0.0)
                count = _store(entries, work.latest, first, count, attribute, other)
            work.prefixes[depth], work.objects[depth] = prefix, in_object
            depth += 1
            if depth == MAX_DEPTH:
                return np.int64(TOO_DEEP), count, used
            if length == UNWRITTEN:
                length = extend_path(work.path, np.int64(0), data, key, key_end)
            in_object, fresh = byte == OPEN_OBJECT, True
            if in_object:
                prefix = append(work.path, length, DOT)
            else:
                prefix = np.int64(UNUSED)
                below = find_prefix(names, work.path, length)
                if below >= 0:
                    other = (at, OTHER, at, np.int64(0), 0.0)
                    count = _store(entries, work.latest, first, count, below, other)
            at += 1
            continue

        at, tag, payload, size, real = scalar(data, at, stop)
        if at < 0:
            return -at, count, used
        if waits:
            value = (at, tag, payload, size, real)
            _wait(entries, work.keys, count, waiting, (key, key_end), value)
            waiting += 1
            continue
        if tag == NULL and work.nulls:
            if length == UNWRITTEN:
                length = extend_path(work.path, np.int64(0), data, key, key_end)
            below = find_prefix(names, work.path, length)
            if below >= 0:
                nothing = (at, NULL, np.int64(0), np.int64(0), 0.0)
                count = _store(entries, work.latest, first, count, below, nothing)
        if attribute >= 0:
            if tag == ESCAPED:
                tag, string_start = STRING, used
                used = unescape(data, payload, payload + size, work.unescaped, used)
                payload, size = len(data) + string_start, used - string_start
            nulls |= tag == NULL
            value = (at, tag, payload, size, real)
            count = _store(entries, work.latest, first, count, attribute, value)

    if skip_space(data, at, stop) != stop:
        return np.int64(TRAILING), count, used
    if waiting > 0:
        count, used, any_null = _settle_keys(
            data, names, work, entries, first, count, used, waiting
        )
        nulls = nulls or any_null
    if nulls and not work.nulls:
        count = _drop_nulls(entries, first, count)
    return np.int64(0), count, used


@kernel(void, u1r, i8r, b1r, STRING_TABLE, _WORKSPACE, ENTRIES, u1w, i8w)
def _scan_texts(
    data: Any,
    offsets: Any,
    valid: Any,
    names: Any,
    work: Any,
    entries: Any,
    reasons: Any,
    totals: Any,
) -> None:
    """Scan all texts; an empty ``valid`` means that all are. Writes entries and unescaped bytes."""
    count, used = np.int64(0), np.int64(0)
    for row in range(len(reasons)):
        start, stop = offsets[row], offsets[row + 1]
        reasons[row] = 0
        if len(valid) and not valid[row]:
            continue
        if stop - start > _MAX_LENGTH:
            reasons[row] = TOO_LONG
            continue
        first = count
        reason, end, use = scan_text(data, start, stop, names, work, entries, first, used)
        reasons[row] = reason
        if reason == 0:  # what a rejected text left behind is written over
            count, used = end, use
            for entry in range(first, count):
                entries.rows[entry] = row
    totals[0], totals[1] = count, used


def scan_json(
    data: np.ndarray,
    offsets: np.ndarray,
    valid: np.ndarray | None,
    names: StringTable,
    *,
    nulls: bool = False,
) -> tuple[TaggedValues, np.ndarray, np.ndarray]:
    """Tagged values of a batch of JSON texts, the rows rejected (int32) and why (uint8 codes).

    Text i is ``data[offsets[i]:offsets[i+1]]``; one that is not valid is an event without
    attributes. ``names`` has the attributes' canonical names in group 0, and in group 1 the paths
    that lead to one. With ``nulls``, these have entries too. O(bytes).
    """
    data, offsets = data[offsets[0] : offsets[-1]], offsets - offsets[0]
    reasons = np.empty(len(offsets) - 1, np.uint8)
    totals = np.zeros(2, np.int64)
    entries, work = _room(len(data), names, nulls=nulls)
    if valid is None:
        valid = np.empty(0, np.bool_)
    _scan_texts(data, offsets, valid, names.as_tuple, work, entries, reasons, totals)
    count, used = int(totals[0]), int(totals[1])
    _settle_numbers(data, entries, count)
    if used:
        data = np.concatenate([data, work.unescaped[:used]])
    rows, attributes, tags, payloads, _, lengths = (column[:count] for column in entries)
    rejected = np.flatnonzero(reasons)
    values = TaggedValues(rows, attributes, tags, payloads, lengths, data)
    return values, rejected.astype(np.int32), reasons[rejected]


def _room(size: int, names: StringTable, *, nulls: bool) -> tuple[TaggedRoom, Workspace]:
    """Arrays for the entries of ``size`` bytes of texts: one takes 3 bytes at least.

    A number takes 5 with what separates it, as in ``"":1,``. A list takes 6 and has two entries
    where there is an attribute of its path and one below; so may a null, which takes 8.
    """
    work = Workspace(
        path=np.empty(longest_name(names), np.uint8),
        latest=np.zeros(len(names), np.int64),
        prefixes=np.empty(MAX_DEPTH, np.int64),
        objects=np.empty(MAX_DEPTH, np.bool_),
        unescaped=np.empty(size, np.uint8),
        nulls=nulls,
        keys=np.empty((KEY_ROWS, TOGETHER), np.int64),
    )
    return TaggedRoom.room(size // 3), work


def _settle_numbers(data: np.ndarray, entries: TaggedRoom, count: int) -> None:
    """Round the numbers left as text; Arrow does it correctly, and for all of them at once."""
    where = np.flatnonzero(entries.tags[:count] == NUMBER_TEXT)
    if not len(where):
        return
    lengths = entries.lengths[where]
    offsets = np.zeros(len(where) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    text = np.empty(offsets[-1], np.uint8)
    gather_strings(data, entries.payloads[where], lengths, offsets, text)
    numbers = pa.LargeStringArray.from_buffers(
        len(where), pa.py_buffer(offsets), pa.py_buffer(text)
    )
    entries.reals[where] = numbers.cast(pa.float64()).to_numpy()
    entries.tags[where] = FLOAT
    entries.lengths[where] = 0
