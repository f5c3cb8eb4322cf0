"""The members of a set as bytes in rows of a database, and back, with everything checked.

A set is cut into parts of some megabytes, each with a digest: SQLite has no checksums::

    form 0, integers   64-bit words, little-endian, ascending        (times and booleans, too)
    form 1, floats     the bits of floats, likewise
    form 2, texts      how many (8 bytes), where each ends (8 bytes each), then all bytes

What is read must be what a set writes: whole, ascending, each member once, UTF-8. O(bytes).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Int64s
from bittern.catalog.database import DamageError
from bittern.engine.sets.content import Content
from bittern.model.events.utf8 import broken_strings
from bittern.model.rank.space import BOOLEAN, NUMBER, STRING, TIME
from bittern.model.strings import arrow_strings

INTEGERS, FLOATS, TEXTS = range(3)
#: A part has about so many bytes at most, unless one member is longer.
PART_BYTES = 4 << 20
_WORD = 8
#: Which forms the members of a kind have.
_FORMS = {
    NUMBER: {INTEGERS, FLOATS, TEXTS},
    TIME: {INTEGERS},
    BOOLEAN: {INTEGERS},
    STRING: {TEXTS},
}


class Part(NamedTuple):
    """A part as it is stored."""

    form: int
    digest: str
    data: bytes


def parts_of(content: Content) -> Iterator[Part]:
    """The parts of a set, in order; none if it is empty."""
    for form, words in ((INTEGERS, content.integers), (FLOATS, content.floats)):
        step = PART_BYTES // _WORD
        for start in range(0, len(words), step):
            yield _part(form, words[start : start + step].astype("<i8").tobytes())
    for texts in _stretches(content.texts):
        yield _part(TEXTS, _packed(texts))


def _part(form: int, data: bytes) -> Part:
    return Part(form, _digest(form, data), data)


def _digest(form: int, data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16, salt=bytes([form])).hexdigest()


def _stretches(texts: pa.Array) -> Iterator[pa.Array]:
    _, offsets, _ = arrow_strings(texts)
    sizes = offsets - offsets[0] + _WORD * np.arange(len(offsets))
    start = 0
    while start < len(texts):
        stop = int(np.searchsorted(sizes, sizes[start] + PART_BYTES, "right")) - 1
        stop = max(stop, start + 1)
        yield texts[start:stop]
        start = stop


def _packed(texts: pa.Array) -> bytes:
    data, offsets, _ = arrow_strings(texts)
    ends = (offsets[1:] - offsets[0]).astype("<i8")
    count = np.array([len(texts)], "<i8")
    return b"".join((count.tobytes(), ends.tobytes(), data[offsets[0] : offsets[-1]].tobytes()))


def content_of_parts(kind: Any, parts: Iterable[Any]) -> Content:
    """The set of these parts, in order; ``DamageError`` says what no catalog writes. O(bytes)."""
    if kind is not None and kind not in _FORMS:
        raise DamageError(f"a set has the unknown kind {kind!r:.20}")
    words: dict[int, list[Int64s]] = {INTEGERS: [], FLOATS: []}
    texts = [pa.array([], pa.large_string())]
    for form, digest, data in parts:
        if not isinstance(data, bytes) or form not in (INTEGERS, FLOATS, TEXTS):
            raise DamageError(f"a part of a set has the form {form!r:.20}")
        if _digest(form, data) != digest:
            raise DamageError("a part of a set is not what was written: its digest differs")
        if kind is None or form not in _FORMS[kind]:
            raise DamageError("a part of a set is of another kind than the set")
        if form == TEXTS:
            texts.append(_unpacked(data))
        elif len(data) % _WORD:
            raise DamageError("a part of a set is cut off")
        else:
            words[form].append(np.frombuffer(data, "<i8").astype(np.int64))
    content = Content(
        kind, _joined(words[INTEGERS]), _joined(words[FLOATS]), pa.concat_arrays(texts)
    )
    if not _ascends(content) or (kind is None) != (len(content) == 0):
        raise DamageError("the members of a set are missing or not in order")
    return content if len(content) else Content()


def _joined(words: list[Int64s]) -> Int64s:
    return np.concatenate([np.empty(0, np.int64), *words])


def _ascends(content: Content) -> bool:
    words = (content.integers, content.floats)
    texts = content.texts
    rising = pc.all(pc.less(texts[:-1], texts[1:]), min_count=0).as_py() if len(texts) else True
    return bool(rising) and all(bool((each[1:] > each[:-1]).all()) for each in words)


def _unpacked(data: bytes) -> pa.Array:
    count = int.from_bytes(data[:_WORD], "little")
    start = _WORD + _WORD * count
    if len(data) < start:
        raise DamageError("a part of a set is cut off")
    ends = np.frombuffer(data, "<i8", count, _WORD).astype(np.int64)
    offsets = np.concatenate((np.zeros(1, np.int64), ends))
    if (np.diff(offsets) < 0).any() or offsets[-1] != len(data) - start:
        raise DamageError("a part of a set is cut off")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[start:])]
    texts = pa.Array.from_buffers(pa.large_string(), count, buffers)
    if len(broken_strings(texts)):
        raise DamageError("a member of a set is not UTF-8")
    return texts
