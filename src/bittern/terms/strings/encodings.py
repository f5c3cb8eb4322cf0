"""Strings as codes and bytes, and how far they are apart: chr, hex, base64, soundex, levenshtein.

::

    ascii('é')  233            chr(65)   'A'         hex('aé')  '61C3A9'    unhex('A')   X'0A'
    base64('abc')  'YWJj'      unbase64('YWJj')  X'616263'
    levenshtein('kitten', 'sitting')  3

O(bytes); levenshtein O(characters x characters) of each row, within limits.
"""

from __future__ import annotations

import binascii
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.jit import i4r, i4w, i8r, kernel, void
from bittern.terms.limits import MAX_COLUMN_PAIRS, MAX_ROW_PAIRS
from bittern.terms.nodes import Call
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value
from bittern.terms.strings.texts import (
    Characters,
    all_there,
    assembled,
    constants_once,
    each,
    integers,
    number,
    sizes,
    text,
    text_or_bytes,
    texts,
    where,
    within_limits,
)
from bittern.terms.types import is_number, type_name

TABLE = FunctionTable()


@TABLE.add("ascii", least=1)
@constants_once
def _ascii(scope: Scope, _call: Call, value: Value) -> Value:
    """The code point of the first character, whatever the name says; 0 if there is none."""
    first = pc.utf8_slice_codeunits(text(scope, value), 0, 1)
    return each(scope, pa.int32(), lambda own: ord(own) if own else 0, first)


_CHARACTERS = pa.array([*map(chr, range(256)), ""])


@TABLE.add("chr", "char", least=1)
@constants_once
def _chr(scope: Scope, _call: Call, value: Value) -> Value:
    codes = scope.array(number(scope, value, pa.int64()))
    own = integers(scope, codes)
    found = _CHARACTERS.take(pa.array(np.where(own < 0, 256, own & 0xFF)))
    return where(codes.is_valid(), found)


#: The two digits of each byte, as one number.
_DIGITS = np.frombuffer(b"".join(b"%02X" % byte for byte in range(256)), dtype=np.uint16)


@TABLE.add("hex", least=1)
@constants_once
def _hex(scope: Scope, _call: Call, value: Value) -> Value:
    if is_number(value.type):
        whole = number(scope, value, pa.int64())
        return each(scope, pa.string(), lambda own: f"{own & (1 << 64) - 1:X}", whole)
    array = scope.array(text_or_bytes(scope, value))
    array = where(within_limits(scope, 2 * sizes(scope, array)), array)
    characters = Characters(array)
    low, high = characters.offsets[0], characters.offsets[-1]
    digits = _DIGITS[characters.data[low:high]].view(np.uint8)
    return assembled(array, 2 * (characters.offsets - low), digits).cast(pa.string())


_HEX = re.compile("[0-9a-fA-F]*")


@TABLE.add("unhex", least=1)
@constants_once
def _unhex(scope: Scope, _call: Call, value: Value) -> Value:
    return each(scope, pa.binary(), _from_hex, text(scope, value))


def _from_hex(value: str) -> bytes | None:
    if not _HEX.fullmatch(value):
        return None
    return bytes.fromhex(value if len(value) % 2 == 0 else f"0{value}")


#: Bytes that make a line of 76 characters, as MIME has them.
_LINE = 57


@TABLE.add("base64", least=1)
@constants_once
def _base64(scope: Scope, _call: Call, value: Value) -> Value:
    if not (pa.types.is_binary(value.type) or pa.types.is_string(value.type)):
        if not pa.types.is_null(value.type):
            raise MeaninglessError(f"base64 takes BINARY or a string, not {type_name(value.type)}")
        value = text(scope, value)
    return each(scope, pa.string(), _to_base64, value.cast(pa.binary()))


def _to_base64(value: bytes) -> str:
    lines = (value[start : start + _LINE] for start in range(0, len(value), _LINE))
    return "\r\n".join(binascii.b2a_base64(line, newline=False).decode() for line in lines)


_NOT_BASE64 = re.compile("[^A-Za-z0-9+/]")


@TABLE.add("unbase64", least=1)
@constants_once
def _unbase64(scope: Scope, _call: Call, value: Value) -> Value:
    return each(scope, pa.binary(), _from_base64, text(scope, value))


def _from_base64(value: str) -> bytes:
    """Java's decoder for MIME: skips what is no digit, and is strict about what ends the digits."""
    head, padding, tail = value.partition("=")
    digits = _NOT_BASE64.sub("", head)
    rest = len(digits) % 4
    if padding and rest == 2:
        if not tail.startswith("="):
            raise ValueError("not base64: one = is missing")
        tail = tail[1:]
    if rest == 1 or (padding and rest == 0):
        raise ValueError("not base64: it ends within a byte")
    if _NOT_BASE64.sub("", tail):
        raise ValueError("not base64: it goes on behind its end")
    return binascii.a2b_base64(digits + "=" * (-rest % 4))


@TABLE.add("is_valid_utf8", least=1)
@constants_once
def _is_valid_utf8(scope: Scope, _call: Call, value: Value) -> Value:
    """Strings always are; BINARY may be."""
    if pa.types.is_binary(value.type):
        return each(scope, pa.bool_(), _is_utf8, value)
    array = scope.array(text(scope, value))
    return where(array.is_valid(), pa.repeat(pa.scalar(True), len(array)))


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


#: The digit of each letter from A on; 0 parts equal digits, 7 is passed over.
_SOUNDS = "01230127022455012623017202"


@TABLE.add("soundex", least=1)
@constants_once
def _soundex(scope: Scope, _call: Call, value: Value) -> Value:
    if not (pa.types.is_string(value.type) or pa.types.is_null(value.type)):
        raise MeaninglessError(f"soundex takes a string, not {type_name(value.type)}")
    return each(scope, pa.string(), _sound, text(scope, value))


def _sound(value: str) -> str:
    capitals = "".join(chr(ord(own) - 32) if "a" <= own <= "z" else own for own in value)
    if not "A" <= capitals[:1] <= "Z":
        return value
    found, last = capitals[0], _SOUNDS[ord(capitals[0]) - 65]
    for own in capitals[1:]:
        code = _SOUNDS[ord(own) - 65] if "A" <= own <= "Z" else "0"
        if code == "7":
            continue
        if code not in ("0", last):
            found += code
        last = code
        if len(found) == 4:
            break
    return found.ljust(4, "0")


@TABLE.add("levenshtein", least=2, most=3)
@constants_once
def _levenshtein(
    scope: Scope, _call: Call, left: Value, right: Value, most: Value | None = None
) -> Value:
    """How many characters to insert, delete or change; -1 if those are more than ``most``."""
    limits = [] if most is None else [number(scope, most)]
    left, right = map(scope.array, texts(scope, left, right))
    there = all_there(scope, left, right, *limits)
    pairs = np.where(there, integers(scope, pc.utf8_length(left)), 0)
    pairs *= integers(scope, pc.utf8_length(right))
    fits = pairs <= MAX_ROW_PAIRS
    fits &= np.cumsum(np.where(fits, pairs, 0)) <= MAX_COLUMN_PAIRS
    scope.fail(~fits, "the strings are too long to compare each character with each")
    there &= fits
    found = np.zeros(scope.n_rows, dtype=np.int32)
    _distances(*_code_points(where(there, left)), *_code_points(where(there, right)), found)
    if limits:
        found = np.where(found > integers(scope, limits[0]), -1, found).astype(np.int32)
    return where(there, pa.array(found))


def _code_points(array: pa.Array) -> tuple[Any, Any]:
    """All characters as numbers, and where each value begins."""
    array = array.fill_null("")
    counts = pc.utf8_length(array).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    bounds = Characters(array)
    data = bounds.data[bounds.offsets[0] : bounds.offsets[-1]].tobytes()
    return np.frombuffer(data.decode().encode("utf-32-le"), dtype=np.int32), offsets


@kernel(void, i4r, i8r, i4r, i8r, i4w)
def _distances(left: Any, left_offsets: Any, right: Any, right_offsets: Any, found: Any) -> None:
    """The usual table of distances between prefixes, of which two rows in one are kept."""
    for row in range(len(found)):
        start, count = right_offsets[row], right_offsets[row + 1] - right_offsets[row]
        line = np.arange(count + 1)
        for i in range(left_offsets[row], left_offsets[row + 1]):
            diagonal = line[0]
            line[0] += 1
            for j in range(count):
                changed = diagonal + (left[i] != right[start + j])
                diagonal = line[j + 1]
                line[j + 1] = min(changed, min(line[j], diagonal) + 1)
        found[row] = line[count]
