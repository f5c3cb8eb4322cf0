"""Columns as NumPy sees them, and back.

::

    pa.array([3, None, 5])   ->   data  [3 0 5]   valid  [1 0 1]
    pa.scalar(7)             ->   data  [7]       valid  [1]       meets any column by broadcasting

Behind NULL stands 0, so that nothing computed there can overflow or warn. All O(rows).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import Mask
from bittern.terms.scope import MeaninglessError, Value
from bittern.terms.types import type_name


class NumPyColumn(NamedTuple):
    """Numbers, and where they are not NULL; one of each stands for all rows."""

    data: npt.NDArray[Any]
    valid: Mask


def as_array(value: Value) -> pa.Array:
    """A value as an array; a scalar's has one element."""
    if isinstance(value, pa.Array):
        return value
    if not value.is_valid:
        return pa.nulls(1, value.type)
    return pa.repeat(value, 1)


def as_given(array: pa.Array, *values: Value) -> Value:
    """The array, or its only element if it was computed from scalars alone."""
    return array[0] if all(isinstance(value, pa.Scalar) for value in values) else array


def column(value: Value) -> NumPyColumn:
    """Booleans, integers, floats, or the units of dates and times."""
    array = as_array(value)
    if pa.types.is_date(array.type):
        array = array.view(pa.int32())
    elif pa.types.is_temporal(array.type):
        array = array.view(pa.int64())
    if not array.null_count:
        return NumPyColumn(
            array.to_numpy(zero_copy_only=False), np.ones(len(array), dtype=np.bool_)
        )
    valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    array = array.fill_null(pa.scalar(0).cast(array.type))
    return NumPyColumn(array.to_numpy(zero_copy_only=False), valid)


def arrow(data: npt.NDArray[Any], valid: Any, kind: pa.DataType) -> pa.Array:
    """The way back, into a type of the same bits as the data's."""
    missing = None if np.all(valid) else ~np.broadcast_to(valid, data.shape)
    array = pa.array(data, mask=missing, from_pandas=False)
    return array if array.type == kind else array.view(kind)


def given(data: npt.NDArray[Any], valid: Any, kind: pa.DataType, *values: Value) -> Value:
    """``arrow``, as a scalar if the values that it was computed from are."""
    return as_given(arrow(data, valid, kind), *values)


def per_distinct(array: pa.Array, answer: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
    """Ask for each distinct value once; for what neither Arrow nor NumPy can do."""
    encoded = array.dictionary_encode()
    answers = [answer(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(answers, kind).take(encoded.indices)


def merged(array: pa.Array, mask: Mask, other: pa.Array) -> pa.Array:
    """The array, but in the rows of the mask the elements of the other, one after the other."""
    places = np.arange(len(array))
    places[mask] = np.arange(len(array), len(array) + len(other))
    return pa.concat_arrays([array, other]).take(pa.array(places)) if mask.any() else array


def meaningless(what: str, *kinds: pa.DataType) -> MeaninglessError:
    """The error of a function that is not defined on these types."""
    return MeaninglessError(f"{what} has no meaning for {', '.join(map(type_name, kinds))}")
