"""Debezium's envelopes: the texts of the old and the new row in the text of a change.

::

    {"op": "u", "before": {"price": 8}, "after": {"price": 12}}   {"price": 8}   {"price": 12}
    {"payload": {"op": "c", "after": {"price": 5}}, ...}          -              {"price": 5}
    {"op": "d", "before": {"price": 8}, "after": null}            {"price": 8}   -
    nothing (a tombstone), {"op": "t", ...} (a truncation)        -              -

Rows are cut out of the text, digit by digit as they stand there. Where a row is itself a string of
JSON, as the connector of MongoDB has it, it is what the string holds. O(bytes).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Int64s, Mask
from bittern.jit import i8r, i8w, kernel, u1r, void
from bittern.model.events.attributes import Attributes
from bittern.model.events.json.tokens import (
    CLOSE_LIST,
    CLOSE_OBJECT,
    OPEN_LIST,
    OPEN_OBJECT,
    QUOTE,
    string_end,
)
from bittern.model.events.objects import read_json
from bittern.model.strings import byte_at, gather_strings
from bittern.model.tagged import OTHER, STRING

_FIELDS = ("op", "before", "after")
_ATTRIBUTES = Attributes([*_FIELDS, *(f"payload.{name}" for name in _FIELDS)])
_INSERTS, _UPDATE, _DELETE, _OTHERS = (ord("c"), ord("r")), ord("u"), ord("d"), (ord("t"), ord("m"))
_NO_BEFORE = "the change has no before: let the database log old rows (REPLICA IDENTITY FULL)"
_NO_AFTER = "the change has no after"


class Envelopes(NamedTuple):
    """The rows of some changes, NULL where one is missing, and (change, reason) of bad texts."""

    before: pa.Array
    after: pa.Array
    wrong: list[tuple[int, str]]


@kernel(void, u1r, i8r, i8w)
def _find_ends(data: Any, starts: Any, ends: Any) -> None:
    """Where objects and lists end, which are known to be valid."""
    for i in range(len(starts)):
        at, depth = starts[i], 0
        while at < len(data):
            byte = byte_at(data, at)
            if byte == QUOTE:
                at, _ = string_end(data, at + 1, len(data))
                if at < 0:
                    break
            elif byte in (OPEN_OBJECT, OPEN_LIST):
                depth += 1
            elif byte in (CLOSE_OBJECT, CLOSE_LIST):
                depth -= 1
            at += 1
            if depth == 0:
                break
        ends[i] = max(at, starts[i])


def open_envelopes(texts: pa.Array) -> Envelopes:
    """Take the rows out of envelopes; NULL and the empty text are tombstones. O(bytes)."""
    n = len(texts)
    there = np.asarray(texts.is_valid().to_numpy(zero_copy_only=False))
    is_text = there & (pc.binary_length(texts).fill_null(0).to_numpy() > 0)
    if not is_text.all():
        texts = pc.if_else(pa.array(is_text), texts, pa.scalar(None, texts.type))
    values, rejects, _ = read_json(texts, _ATTRIBUTES.table)
    values = values.at(values.attributes < len(_ATTRIBUTES.numbers))
    places = np.full((len(_ATTRIBUTES.numbers), n), -1, dtype=np.int64)
    places[values.attributes, values.rows] = np.arange(len(values.rows))
    wrapped = places[len(_FIELDS)] >= 0  # Kafka Connect's own envelope, with a schema
    op, before, after = np.where(wrapped, places[len(_FIELDS) :], places[: len(_FIELDS)])

    letters = np.zeros(n, dtype=np.uint8)
    named = np.flatnonzero(op >= 0)
    single = (values.tags[op[named]] == STRING) & (values.lengths[op[named]] == 1)
    letters[named[single]] = values.data[values.payloads[op[named[single]]]]
    inserts, others = np.isin(letters, _INSERTS), np.isin(letters, _OTHERS)
    updates, deletes = letters == _UPDATE, letters == _DELETE
    known = inserts | others | updates | deletes
    before = np.where(inserts | others, -1, before)
    after = np.where(deletes | others, -1, after)

    reasons: dict[int, str] = {}
    for mask, why in (
        (is_text & (op < 0), "it is no envelope of Debezium: it has no op"),
        (is_text & (op >= 0) & ~known, "its op is none of Debezium's: c, r, u, d, t and m"),
        ((updates | deletes) & (before < 0), _NO_BEFORE),
        ((updates | inserts) & (after < 0), _NO_AFTER),
    ):
        for row in np.flatnonzero(mask).tolist():
            reasons.setdefault(row, why)
    reasons |= dict(rejects)
    sound = np.ones(n, dtype=np.bool_)
    sound[list(reasons)] = False
    old, new = (_texts(values, np.where(sound, side, -1)) for side in (before, after))
    return Envelopes(old, new, sorted(reasons.items()))


def _texts(values: Any, places: Int64s) -> pa.Array:
    """The texts of the values at these places, NULL where there is none."""
    found: Mask = places >= 0
    own = values.at(places[found])
    starts, lengths = own.payloads.copy(), own.lengths.copy()
    nested = own.tags == OTHER
    ends = np.empty(int(nested.sum()), dtype=np.int64)
    _find_ends(values.data, starts[nested], ends)
    lengths[nested] = ends - starts[nested]
    lengths[~nested & (own.tags != STRING)] = 0  # no row: the empty text is rejected
    sizes = np.zeros(len(places), dtype=np.int64)
    sizes[found] = lengths
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    out = np.empty(int(offsets[-1]), dtype=np.uint8)
    gather_strings(values.data, starts, lengths, offsets[:-1][found], out)
    mask = np.packbits(found, bitorder="little").tobytes()
    buffers = [pa.py_buffer(mask), pa.py_buffer(offsets.tobytes()), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.large_string(), len(places), buffers)
