"""Values by numbers that have Spark's order: what cannot be compared in one step becomes so.

::

    2.0  NaN  -0.0  NULL             ranks   1  2  0  -1        NaN above all, -0.0 is 0.0
    [1, 2]  [1]  [1, NULL]           ranks   2  0  1            a NULL inside is below all values

A list or a struct is first written as the ranks of its elements, eight bytes each, the highest
first: bytes are then ordered as the lists are. O(elements x log elements).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.terms.nested.nested import Offsets, parts_of
from bittern.terms.scope import MeaninglessError
from bittern.terms.types import ANY, type_name


def ranks(values: pa.Array) -> Offsets:
    """A number for each value, in Spark's order, equal where values are; -1 for NULL."""
    kind, types = values.type, pa.types
    valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    if types.is_null(kind):
        return np.full(len(values), -1, dtype=np.int64)
    if types.is_floating(kind):
        values = pc.add(values, pa.scalar(0.0, kind))  # -0.0 becomes 0.0
        values = pc.if_else(pc.is_nan(values), pa.scalar(np.nan, kind), values)
    elif types.is_list(kind):
        lists = parts_of(values)
        values = _written(ranks(lists.values), 8 * lists.offsets)
    elif types.is_struct(kind):
        fields = np.empty((len(values), len(kind)), dtype=np.int64)
        for place, field in enumerate(values.flatten()):
            fields[:, place] = ranks(field)
        values = _written(fields.ravel(), 8 * len(kind) * np.arange(len(values) + 1))
    elif types.is_interval(kind) or types.is_nested(kind) or kind == ANY:
        raise MeaninglessError(f"values of type {type_name(kind)} are not compared")
    encoded = values.dictionary_encode()
    order = np.asarray(pc.sort_indices(encoded.dictionary))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    codes = np.asarray(encoded.indices.fill_null(0).to_numpy(zero_copy_only=False))
    return np.where(valid, rank[codes] if len(rank) else -1, -1)


def _written(numbers: Offsets, offsets: npt.NDArray[np.int64]) -> pa.Array:
    """Numbers as bytes that have their order, in values that end at these bytes."""
    data = (numbers + 1).astype(">u8")
    buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(data.tobytes())]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
