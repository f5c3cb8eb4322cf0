"""Arrow columns as typed buffers: which kind of channel a column feeds, and its raw values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.model.rank.space import BOOLEAN, NUMBER, STRING, TIME

_DAY = 86_400_000_000
_LAST_DAY = (2**63 - 1) // _DAY  # later days are beyond all literals anyway
_ALL_VALID = np.empty(0, dtype=np.uint8)
#: How many of a timestamp's units make a microsecond, as a power of ten.
_TIME_SCALES = {"s": -6, "ms": -3, "us": 0, "ns": 3}


class Column(NamedTuple):
    """A column of one kind.

    ``values`` are int64 or float64, or None for strings (``array`` has them) and for types that
    no predicate compares (``kind`` -1). An integer stands for ``value * 10**-scale``. ``exact``
    columns hold numbers too large for int64; they are read one by one.
    """

    kind: int
    array: pa.Array
    valid: npt.NDArray[np.uint8]
    values: npt.NDArray[Any] | None = None
    scale: int = 0
    exact: bool = False

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The rows that have a value."""
        return np.flatnonzero(self.valid) if len(self.valid) else np.arange(len(self.array))


def plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One contiguous array without dictionary, run-end, view or extension encoding."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):  # no chunk at all
            array = pa.array([], type=array.type)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        # not dictionary_decode: it cannot decode string views
        array = plain(array.dictionary).take(array.indices)
    if pa.types.is_run_end_encoded(array.type):
        import pyarrow.compute as pc  # noqa: PLC0415  half of what all imports take

        array = pc.run_end_decode(array)
    if pa.types.is_string_view(array.type):  # Arrow can neither filter nor encode them
        array = array.cast(pa.large_string())
    return array


def is_list(kind: pa.DataType) -> bool:
    """Whether it is one of Arrow's types of lists."""
    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


def is_nested(kind: pa.DataType) -> bool:
    """Whether a path can lead into it."""
    return bool(pa.types.is_struct(kind) or pa.types.is_map(kind) or is_list(kind))


def from_frame(frame: Any) -> pa.Table:
    """A pandas data frame as a table; ``ValueError`` says what Arrow cannot hold."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as wrong:
        raise ValueError(f"the data frame cannot become an Arrow table: {wrong}") from None


def validity(array: pa.Array) -> npt.NDArray[np.uint8]:
    """One byte per value, 1 where it is not null; empty if none is null."""
    if not array.null_count:
        return _ALL_VALID
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False)).view(np.uint8)


def read_column(array: pa.Array) -> Column:
    """Classify a plain array and give its values without copying where possible. O(n)."""
    kind, valid = array.type, validity(array)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Column(STRING, array, valid)
    if pa.types.is_uint64(kind) and len(array):
        import pyarrow.compute as pc  # noqa: PLC0415  half of what all imports take

        greatest = pc.max(array).as_py()
        if greatest is not None and greatest >= 2**63:
            return Column(NUMBER, array, valid, exact=True)
    if pa.types.is_integer(kind):
        return Column(NUMBER, array, valid, _numpy(array, pa.int64()))
    if pa.types.is_floating(kind):
        return Column(NUMBER, array, valid, _numpy(array, pa.float64()))
    if pa.types.is_boolean(kind):
        return Column(BOOLEAN, array, valid, _numpy(array, pa.int64()))
    if pa.types.is_decimal(kind):
        return _decimal(array, valid)
    if pa.types.is_date32(kind):
        days = _numpy(array.view(pa.int32()), pa.int64())
        return Column(TIME, array, valid, np.clip(days, -_LAST_DAY, _LAST_DAY) * _DAY)
    if pa.types.is_date64(kind):
        return Column(TIME, array, valid, _numpy(array.view(pa.int64()), pa.int64()), -3)
    if pa.types.is_timestamp(kind):
        units = _numpy(array.view(pa.int64()), pa.int64())
        return Column(TIME, array, valid, units, _TIME_SCALES[kind.unit])
    return Column(-1, array, valid)


def _numpy(array: pa.Array, target: pa.DataType) -> npt.NDArray[Any]:
    if array.type != target:
        array = array.cast(target)
    dtype = np.dtype(target.to_pandas_dtype())
    end = array.offset + len(array)  # the buffer may be longer, and not by whole values
    values: npt.NDArray[Any] = np.frombuffer(array.buffers()[1] or b"", dtype=dtype, count=end)
    return values[array.offset :]


def _decimal(array: pa.Array, valid: npt.NDArray[np.uint8]) -> Column:
    """Decimals that fit in int64 as they are stored; wider ones exactly, one by one."""
    if array.type.bit_width < 128:
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    words = array.type.bit_width // 64
    end = words * (array.offset + len(array))
    raw = np.frombuffer(array.buffers()[1] or b"", dtype=np.int64, count=end)
    raw = raw.reshape(-1, words)[array.offset :]
    fits = (raw[:, 1:] == raw[:, :1] >> 63).all(axis=1)
    if len(valid):
        fits |= valid == 0
    if not fits.all():
        return Column(NUMBER, array, valid, exact=True)
    return Column(NUMBER, array, valid, np.ascontiguousarray(raw[:, 0]), array.type.scale)
