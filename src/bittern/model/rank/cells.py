"""Values to cells: the kernels between Arrow buffers and rank space.

Each writes packed pairs ``cell << 32 | event`` from ``at`` on and returns where it stopped; the
caller has made room. A null value, or one in a channel that no subscription uses, writes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import f8r, i4r, i8, i8r, i8w, inline, kernel, u1r, u1w, u8w
from bittern.model.rank.space import (
    ANY,
    BASE,
    BOOLEAN,
    NUMBER,
    RANK,
    REVERSED,
    STRING,
    TIME,
    float_cell,
    integer_cell,
    string_cell,
)
from bittern.model.strings import STRING_TABLE, find
from bittern.model.tagged import BOOLEAN as BOOLEAN_TAG
from bittern.model.tagged import FLOAT, INTEGER, TIMESTAMP
from bittern.model.tagged import STRING as STRING_TAG

_SHIFT = np.uint64(32)


@inline
def _pack(base: Any, cell: Any, row: Any) -> Any:
    return np.uint64(base + cell) << _SHIFT | np.uint64(row)


@kernel(i8, RANK, i8, i8r, u1r, u8w, i8)
def integer_pairs(rank: Any, channel: Any, values: Any, valid: Any, pairs: Any, at: Any) -> Any:
    """Integers, booleans (0 and 1) or microseconds. ``valid`` is empty if all are."""
    base = rank.heads[channel, BASE]
    for row in range(len(values)):
        if len(valid) == 0 or valid[row]:
            pairs[at] = _pack(base, integer_cell(rank, channel, values[row]), row)
            at += 1
    return at


@kernel(i8, RANK, i8, f8r, u1r, u8w, i8)
def float_pairs(rank: Any, channel: Any, values: Any, valid: Any, pairs: Any, at: Any) -> Any:
    """Floats, NaN included."""
    base = rank.heads[channel, BASE]
    for row in range(len(values)):
        if len(valid) == 0 or valid[row]:
            pairs[at] = _pack(base, float_cell(rank, channel, values[row]), row)
            at += 1
    return at


@kernel(i8, RANK, i8, u1r, i8r, u1r, u8w, i8)
def string_pairs(
    rank: Any, channel: Any, data: Any, offsets: Any, valid: Any, pairs: Any, at: Any
) -> Any:
    """Strings (reversed already, for a channel of reversed ones)."""
    base = rank.heads[channel, BASE]
    for row in range(len(offsets) - 1):
        if len(valid) == 0 or valid[row]:
            cell = string_cell(rank, channel, data, offsets[row], offsets[row + 1])
            pairs[at] = _pack(base, cell, row)
            at += 1
    return at


@inline
def _reverse(data: Any, start: Any, stop: Any, out: Any) -> None:
    for i in range(stop - start):
        out[i] = data[stop - 1 - i]


@kernel(i8, RANK, i4r, i4r, u1r, i8r, i4r, u1r, u1w, u1r, u8w)
def tagged_pairs(
    rank: Any,
    rows: Any,
    attributes: Any,
    tags: Any,
    payloads: Any,
    lengths: Any,
    data: Any,
    scratch: Any,
    backwards: Any,
    pairs: Any,
) -> Any:
    """Values of any kind (``model/tagged.py``); up to three pairs for each of them.

    ``scratch`` has room for the longest string, and ``backwards`` is the same bytes again,
    read-only as ``data``: so that what reads strings is compiled once.
    """
    floats = payloads.view(np.float64)
    at = 0
    for i in range(len(rows)):
        attribute, tag = np.uint64(attributes[i]), tags[i]  # unsigned indices cost less
        any_channel = rank.channels[attribute, ANY]
        if any_channel >= 0:
            pairs[at] = _pack(rank.heads[any_channel, BASE], 0, rows[i])
            at += 1
        if tag in (INTEGER, FLOAT):
            channel = rank.channels[attribute, NUMBER]
            if channel < 0:
                continue
            if tag == INTEGER:
                cell = integer_cell(rank, channel, payloads[i])
            else:
                cell = float_cell(rank, channel, floats[i])
        elif tag in (BOOLEAN_TAG, TIMESTAMP):
            channel = rank.channels[attribute, BOOLEAN if tag == BOOLEAN_TAG else TIME]
            if channel < 0:
                continue
            cell = integer_cell(rank, channel, payloads[i])
        elif tag == STRING_TAG:
            start = payloads[i]
            stop = start + lengths[i]
            channel = rank.channels[attribute, REVERSED]
            if channel >= 0:
                _reverse(data, start, stop, scratch)
                cell = string_cell(rank, channel, backwards, 0, stop - start)
                pairs[at] = _pack(rank.heads[channel, BASE], cell, rows[i])
                at += 1
            channel = rank.channels[attribute, STRING]
            if channel < 0:
                continue
            cell = string_cell(rank, channel, data, start, stop)
        else:
            continue
        pairs[at] = _pack(rank.heads[channel, BASE], cell, rows[i])
        at += 1
    return at


@kernel(i8, STRING_TABLE, u1r, i8r, i8r, u1r, u1r, i8w, i8w, i8w)
def used_entries(
    names: Any,
    key_data: Any,
    key_offsets: Any,
    map_offsets: Any,
    valid_maps: Any,
    valid_values: Any,
    out_rows: Any,
    out_names: Any,
    last_of: Any,
) -> Any:
    """Entries of maps whose key is among the names: writes (row, name << 32 | entry).

    A key that comes twice in a map counts once, with its last value.
    """
    n = 0
    for row in range(len(map_offsets) - 1):
        if len(valid_maps) and not valid_maps[row]:
            continue
        first = n
        for entry in range(map_offsets[row], map_offsets[row + 1]):
            name = find(names, key_data, key_offsets[entry], key_offsets[entry + 1], 0)
            if name < 0:
                continue
            earlier = last_of[name]
            packed = np.int64(name) << 32 | entry
            if first <= earlier < n and out_names[earlier] >> 32 == name:
                out_names[earlier] = packed
                continue
            last_of[name] = n
            out_rows[n] = row
            out_names[n] = packed
            n += 1
    if len(valid_values) == 0:
        return n
    kept = 0
    for i in range(n):
        entry = out_names[i] & 0xFFFFFFFF
        if valid_values[entry]:
            out_rows[kept] = out_rows[i]
            out_names[kept] = out_names[i]
            kept += 1
    return kept
