"""Checks whether the strings of a column are UTF-8. Arrow and Spark accept any bytes as a string.

Most columns are ASCII, which one pass over all bytes tells, at some 20 GB a second. Others are
checked as if they were one string: they are UTF-8 if that is, and no string begins inside a
character. Only columns that fail are checked string by string.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.jit import i8, i8r, i8w, kernel, u1r
from bittern.model.events.columns import is_list, plain, validity
from bittern.model.events.json.tokens import is_utf8
from bittern.model.strings import arrow_strings, byte_at

_FIRST_NOT_ASCII = 128
#: The two highest bits of a byte, and what they are in all bytes of a character but the first.
_TOP_BITS, _INSIDE = np.uint64(0xC0), np.uint64(0x80)


@kernel(i8, u1r, i8r)
def _is_one_string(data: Any, offsets: Any) -> Any:
    """Whether everything between the offsets is UTF-8, and no offset is inside a character."""
    for i in range(len(offsets) - 1):
        at = offsets[i]
        if at < len(data) and byte_at(data, at) & _TOP_BITS == _INSIDE:
            return 0
    return np.int64(is_utf8(data, offsets[0], offsets[-1]))


@kernel(i8, u1r, i8r, i8r, u1r, i8w)
def _find_broken(data: Any, offsets: Any, places: Any, valid: Any, broken: Any) -> Any:
    """Write which of the strings at some places are not UTF-8; returns how many."""
    n = 0
    for i in range(len(places)):
        place = places[i]
        if len(valid) and not valid[place]:
            continue
        if not is_utf8(data, offsets[place], offsets[place + 1]):
            broken[n] = i
            n += 1
    return n


def broken_strings(
    strings: pa.Array, places: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.int64]:
    """Which strings, or which of those at some places, are not UTF-8. O(bytes)."""
    data, offsets, _ = arrow_strings(strings)
    used = data[offsets[0] : offsets[-1]]
    if not len(used) or used.max() < _FIRST_NOT_ASCII or _is_one_string(data, offsets):
        return np.empty(0, dtype=np.int64)
    places = np.arange(len(strings)) if places is None else places
    broken = np.empty(len(places), dtype=np.int64)
    return broken[: _find_broken(data, offsets, places, validity(strings), broken)]


def broken_rows(values: pa.Array) -> npt.NDArray[np.int64]:
    """Which lists, maps and structs hold a string that is not UTF-8. O(bytes), calls itself."""
    from bittern.terms.nested.nested import parts_of  # noqa: PLC0415  only for terms

    values = plain(values)
    kind, types = values.type, pa.types
    if types.is_string(kind) or types.is_large_string(kind):
        return broken_strings(values)
    if types.is_struct(kind):
        found = [broken_rows(field) for field in values.flatten()]
        return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *found]))
    if types.is_map(kind) or is_list(kind):
        lists = parts_of(values)
        return np.unique(lists.parents[broken_rows(lists.values)])
    return np.empty(0, dtype=np.int64)
