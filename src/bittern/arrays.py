"""Arrays: types by what they hold, the names that they are saved under, stretches, and bytes.

The fields of a NamedTuple of arrays are the one declaration of what a structure consists of. It is
saved as ``prefixed("lists.", arrays)``, ``{"lists.offsets": ..., "lists.items": ...}``, and opened
as ``record_of(Lists, under(saved, "lists."))``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]
Float64s: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]

_PACKAGE = __name__.removesuffix("arrays")
_Record = TypeVar("_Record", bound=tuple[Any, ...])


def prefixed(prefix: str, arrays: Mapping[str, Any] | NamedTuple) -> dict[str, NDArray[Any]]:
    """Arrays by name, or those of a NamedTuple, under names that begin with ``prefix``."""
    named = arrays if isinstance(arrays, Mapping) else arrays._asdict()
    return {prefix + name: array for name, array in named.items()}


def under(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with ``prefix``, named without it."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def record_of(record: type[_Record], arrays: Mapping[str, NDArray[Any]]) -> _Record:
    """The NamedTuple of the arrays that are named as its fields are."""
    fields: tuple[str, ...] = getattr(record, "_fields")  # noqa: B009  a bound cannot say so
    return record(*(arrays[name] for name in fields))


def starts_of(counts: NDArray[Any] | Sequence[int], dtype: Any = np.int64) -> NDArray[Any]:
    """Where each of things that lie one behind the other begins, and the end of the last."""
    starts = np.zeros(len(counts) + 1, dtype)
    np.cumsum(counts, out=starts[1:])
    return starts


def ranges(firsts: NDArray[Any], counts: NDArray[Any]) -> Int64s:
    """The numbers ``firsts[i], firsts[i] + 1, ...`` (``counts[i]`` of them), for all i."""
    return np.repeat(firsts - starts_of(counts)[:-1], counts) + np.arange(counts.sum())


def stretches(starts: Int64s, most: int) -> Iterator[tuple[int, int]]:
    """Cut things, of which each begins at ``starts``, into (first, last + 1) for bounded memory.

    A stretch is as long as ``most``, or it is one thing that is longer.
    """
    first, end = 0, len(starts) - 1
    while first < end:
        last = max(first + 1, int(starts.searchsorted(starts[first] + most, "right")) - 1)
        yield first, last
        first = last


def occupied(*things: Any) -> int:
    """Bytes of the arrays that these objects and their parts hold, each byte once: O(arrays).

    A part is an attribute of a class of this package, or made from one, or a tuple.
    """
    spans, seen, waiting = [], set(), list(things)
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            begin = int(each.ctypes.data)
            spans.append((begin, begin + each.nbytes))
        elif isinstance(each, tuple):
            waiting += each
        elif any(base.__module__.startswith(_PACKAGE) for base in type(each).__mro__):
            waiting += vars(each).values()
    total = end = 0
    for begin, stop in sorted(spans):
        total += max(0, stop - max(begin, end))
        end = max(end, stop)
    return total
