"""Variants to tagged values: the binary that Spark and Parquet keep JSON-like values in.

A variant is two byte strings. The *metadata* is a dictionary of all keys; the *value* is a tree of
headers and bytes, in which keys are numbers of the dictionary. ``{"a": 1, "b": {"c": "x"}}`` is::

    metadata  01 03 00 01 02 03 "abc"      version 1; 3 keys, which begin at 0, 1, 2 of "abc"
    value     02 02 00 01 00 02 0a         an object of 2 fields, a and b, at 0 and 2 of 10 bytes
              0c 01                          a: an integer of one byte, 1
              02 01 02 00 02                 b: an object of one field, c, at 0 of 2 bytes
                05 "x"                         c: a string of one byte

The two low bits of a header tell a primitive (0) from a short string (1), an object (2) and an
array (3); the others say which primitive, how long the string is, or how wide the numbers of the
object are. The root must be an object, whose fields are attributes, those of objects inside it by
dotted path. What a value becomes:

- integers, floats, booleans and strings are what they are; a date is its midnight; a timestamp
  with or without a zone is microseconds in UTC;
- a decimal of up to 15 digits is the float that stands for it (decision 0003), or an integer; a
  longer one is ``EXACT``, with the payload where its header is in the data;
- a time in nanoseconds is a timestamp if it is whole microseconds, else ``EXACT_TIME``;
- arrays and objects are ``OTHER``, and so are binaries, UUIDs and times of day, with the payload
  where the header is in the data; an array whose path leads to attributes is an entry of that
  prefix too (``Names.spread``);
- a null makes no entry, unless nulls are asked for: then it makes one of its prefix too.

The bytes may be anything. Every position is compared with the end of its object before it is
read; fields that would overlap, so that reading took longer than the bytes are many, are noticed by
their number. What is wrong rejects the row with a reason; but only what a path in use leads to is
looked at, and the rest costs one look-up per key.

Time is O(fields of the objects on paths in use). Memory is at most 14 bytes per byte of values,
reserved at once and touched only as far as there are entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.jit import b1, b1r, i8, i8r, i8w, inline, kernel, tuple_type, u1r, u1w
from bittern.model.events.json.entries import (
    ENTRIES,
    MAX_DEPTH,
    UNWRITTEN,
    TaggedRoom,
    append,
    extend_path,
    find_key,
    find_prefix,
    longest_name,
    place_of,
)
from bittern.model.events.json.tokens import DOT
from bittern.model.events.variant.values import (
    ARRAY,
    CORRUPT,
    FLOAT_BITS,
    NO_REASON,
    NOT_AN_OBJECT,
    NULL,
    NULL_HEADER,
    OBJECT,
    REJECT_REASONS,
    TOO_DEEP,
    TOO_LONG,
    scalar,
    unsigned,
)
from bittern.model.strings import STRING_TABLE, StringTable, byte_at
from bittern.model.tagged import FLOAT, OTHER, TaggedValues

__all__ = ["REJECT_REASONS", "scan_variants"]

_MAX_LENGTH = 2**31 - 1
_FIELD = 3  # bytes that a field takes at least: its key's number, its offset and its header
_FRAME = 4  # what is kept of an object whose field is being read


class _Workspace(NamedTuple):
    """Where a row's scan keeps its path, the objects around it and what it has seen."""

    path: np.ndarray  # as long as the longest name: a longer path is not in use
    latest: np.ndarray  # by attribute: the entry it had when last seen
    frames: np.ndarray  # by depth: the object's header, its end, its next field, its path's length
    nulls: bool  # whether they make entries


_WORKSPACE = tuple_type(_Workspace, u1w, i8w, i8w, b1)


@inline
def _dictionary(data: Any, at: Any, stop: Any) -> Any:
    """The keys of a metadata: (how many, or -1 if it is corrupt; bytes per offset; offsets)."""
    if at >= stop or byte_at(data, at) & np.uint64(15) != 1:
        return np.int64(-1), np.int64(1), at
    width = np.int64(byte_at(data, at) >> np.uint64(6)) + 1
    if at + 1 + width > stop:
        return np.int64(-1), width, at
    keys = unsigned(data, at + 1, width)
    offsets = at + 1 + width
    if offsets + (keys + 1) * width > stop:
        return np.int64(-1), width, offsets
    return keys, width, offsets


@inline
def _key(data: Any, keys: Any, width: Any, offsets: Any, stop: Any, number: Any) -> Any:
    """Where a key's text starts and ends in the metadata; it starts below 0 if that is corrupt."""
    if number >= keys:
        return np.int64(-1), np.int64(-1)
    text = offsets + (keys + 1) * width
    start = unsigned(data, offsets + number * width, width)
    end = unsigned(data, offsets + (number + 1) * width, width)
    if start > end or text + end > stop:
        return np.int64(-1), np.int64(-1)
    return text + start, text + end


@inline
def _object(data: Any, at: Any, stop: Any) -> Any:
    """An object's layout: (fields, or -1 if it is corrupt; width of ids; offsets; width; values).

    The ids end where the offsets begin. Its last offset is where the values end.
    """
    header = np.int64(byte_at(data, at)) >> 2
    width = (header & 3) + 1
    id_width = (header >> 2 & 3) + 1
    count_width = 4 if header >> 4 & 1 else 1
    if at + 1 + count_width > stop:
        return np.int64(-1), id_width, at, width, at
    fields = unsigned(data, at + 1, count_width)
    offsets = at + 1 + count_width + fields * id_width
    values = offsets + (fields + 1) * width
    if values > stop:
        return np.int64(-1), id_width, at, width, at
    return fields, id_width, offsets, width, values


@inline
def _scan_variant(
    data: Any,
    at: Any,
    stop: Any,
    metadata: Any,
    metadata_at: Any,
    metadata_stop: Any,
    names: Any,
    work: Any,
    entries: Any,
    first: Any,
) -> Any:
    """Scan one variant: (reason or 0, entries so far in the batch).

    One turn of the loop reads a field, or leaves an object whose fields are all read.
    """
    count, depth, field, prefix = first, 0, np.int64(0), np.int64(0)
    keys, key_width, keys_at = _dictionary(metadata, metadata_at, metadata_stop)
    if keys < 0 or at >= stop:
        return np.int64(CORRUPT), count
    if byte_at(data, at) & np.uint64(3) != OBJECT:
        return np.int64(NOT_AN_OBJECT), count
    budget = (stop - at) // _FIELD
    fields, id_width, offsets, width, values = _object(data, at, stop)
    while True:
        if fields < 0:
            return np.int64(CORRUPT), count
        if field == fields:
            if depth == 0:
                break
            depth -= 1
            at, stop = work.frames[_FRAME * depth], work.frames[_FRAME * depth + 1]
            field, prefix = work.frames[_FRAME * depth + 2], work.frames[_FRAME * depth + 3]
            fields, id_width, offsets, width, values = _object(data, at, stop)
            continue
        number = unsigned(data, offsets - (fields - field) * id_width, id_width)
        key, key_end = _key(metadata, keys, key_width, keys_at, metadata_stop, number)
        end = values + unsigned(data, offsets + fields * width, width)
        value = values + unsigned(data, offsets + field * width, width)
        field += 1
        budget -= 1
        if key < 0 or end > stop or value >= end or budget < 0:
            return np.int64(CORRUPT), count
        if key_end - key > len(work.path):
            continue  # longer than every name

        attribute, length = find_key(names, work.path, prefix, metadata, key, key_end)
        if byte_at(data, value) & np.uint64(3) == OBJECT:
            if attribute >= 0:
                place = place_of(entries, work.latest, first, count, attribute)
                entries.tags[place], entries.payloads[place] = OTHER, value
                entries.lengths[place] = 0
                count = max(count, place + 1)
            if length == UNWRITTEN:
                length = extend_path(work.path, np.int64(0), metadata, key, key_end)
            if find_prefix(names, work.path, length) < 0:
                continue
            work.frames[_FRAME * depth], work.frames[_FRAME * depth + 1] = at, stop
            work.frames[_FRAME * depth + 2], work.frames[_FRAME * depth + 3] = field, prefix
            depth += 1
            if depth == MAX_DEPTH:
                return np.int64(TOO_DEEP), count
            at, stop, field = value, end, np.int64(0)
            prefix = append(work.path, length, DOT)
            fields, id_width, offsets, width, values = _object(data, at, stop)
            continue
        is_null = work.nulls and byte_at(data, value) == NULL_HEADER
        if is_null or byte_at(data, value) & np.uint64(3) == ARRAY:
            if length == UNWRITTEN:
                length = extend_path(work.path, np.int64(0), metadata, key, key_end)
            below = find_prefix(names, work.path, length)
            if below >= 0:
                place = place_of(entries, work.latest, first, count, below)
                entries.tags[place], entries.payloads[place] = OTHER, value
                entries.lengths[place] = 0
                count = max(count, place + 1)
        if attribute >= 0:
            reason, tag, payload, size, real = scalar(data, value, end)
            if reason != NO_REASON:
                return np.int64(reason), count
            if tag == NULL and not work.nulls:
                continue
            place = place_of(entries, work.latest, first, count, attribute)
            entries.tags[place] = FLOAT if tag == FLOAT_BITS else tag
            entries.lengths[place] = size
            if tag == FLOAT:
                entries.reals[place] = real
            else:
                entries.payloads[place] = payload
            count = max(count, place + 1)
    return np.int64(NO_REASON), count


@kernel(i8, u1r, i8r, u1r, i8r, b1r, STRING_TABLE, _WORKSPACE, ENTRIES, u1w)
def _scan_values(
    data: Any,
    offsets: Any,
    metadata: Any,
    metadata_offsets: Any,
    valid: Any,
    names: Any,
    work: Any,
    entries: Any,
    reasons: Any,
) -> Any:
    """Scan all variants; an empty ``valid`` means that all are. Returns the number of entries."""
    count = np.int64(0)
    for row in range(len(reasons)):
        start, stop = offsets[row], offsets[row + 1]
        reasons[row] = NO_REASON
        if len(valid) and not valid[row]:
            continue
        if stop - start > _MAX_LENGTH:
            reasons[row] = TOO_LONG
            continue
        first = count
        reason, end = _scan_variant(
            data,
            start,
            stop,
            metadata,
            metadata_offsets[row],
            metadata_offsets[row + 1],
            names,
            work,
            entries,
            first,
        )
        reasons[row] = reason
        if reason == NO_REASON:  # what a rejected variant left behind is written over
            count = end
            for entry in range(first, count):
                entries.rows[entry] = row
    return count


def scan_variants(
    values: tuple[np.ndarray, np.ndarray],
    metadata: tuple[np.ndarray, np.ndarray],
    valid: np.ndarray | None,
    names: StringTable,
    *,
    nulls: bool = False,
) -> tuple[TaggedValues, np.ndarray, np.ndarray]:
    """Tagged values of a batch of variants, the rows rejected (int32) and why (uint8 codes).

    ``values`` and ``metadata`` are bytes and int64 offsets; a row that is not valid is an event
    without attributes. ``names`` has the attributes' canonical names in group 0, and in group 1
    the paths that lead to one. With ``nulls``, these have entries too.
    """
    data, offsets = values
    data, offsets = data[offsets[0] : offsets[-1]], offsets - offsets[0]
    reasons = np.empty(len(offsets) - 1, np.uint8)
    entries = TaggedRoom.room(2 * (len(data) // _FIELD))  # an array or a null may be two
    work = _Workspace(
        path=np.empty(longest_name(names), np.uint8),
        latest=np.zeros(len(names), np.int64),
        frames=np.empty(_FRAME * MAX_DEPTH, np.int64),
        nulls=nulls,
    )
    count = _scan_values(
        data,
        offsets,
        *metadata,
        np.empty(0, np.bool_) if valid is None else valid,
        names.as_tuple,
        work,
        entries,
        reasons,
    )
    rows, attributes, tags, payloads, _, lengths = (column[:count] for column in entries)
    rejected = np.flatnonzero(reasons)
    tagged = TaggedValues(rows, attributes, tags, payloads, lengths, data)
    return tagged, rejected.astype(np.int32), reasons[rejected]
