"""The two sides of changes, what rows were before and are after, as batches of events.

::

    before  [{"price": 5}, None]             batch   [{"price": 5}, {"price": 50}, {"price": 7}]
    after   [{"price": 50}, {"price": 7}]    before  0  -1          after  1  2

A side has one of the forms of ``model/events/reader.py``, and None or NULL where a row is missing:
before an insert, after a delete. Both become one batch where their forms and types allow it, since
many rows that are matched together cost less than twice half of them. O(rows).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bittern.arrays import Int64s, Mask
from bittern.errors import EventError
from bittern.model.events.columns import from_frame, plain


def sides(before: Any, after: Any) -> tuple[list[Any], Int64s, Int64s]:
    """The rows of both sides in one batch or two, and which of them each change has, or -1.

    A side that is None itself is missing in all changes. ``EventError`` if the sides have not as
    many rows.
    """
    listed = [_listed(side) for side in (before, after)]
    masks = [None if side is None else _there(side) for side in listed]
    sizes = [len(mask) for mask in masks if mask is not None]
    if len(set(sizes)) != 1:
        said = f"{sizes[0]:,} and {sizes[1]:,} rows" if sizes else "no rows"
        raise EventError(
            f"before and after must have a row for each change, and have {said}: where a row is "
            f"missing put None"
        )
    rows, batches, total = [], [], 0
    for side, mask in zip(listed, masks, strict=True):
        if mask is None:
            rows.append(np.full(sizes[0], -1, dtype=np.int64))
            continue
        rows.append(np.where(mask, np.cumsum(mask) - 1 + total, -1))
        count = int(np.count_nonzero(mask))
        total += count
        batches.append(side if count == len(mask) else _present(side))
    return _joined(batches), rows[0], rows[1]


def _listed(side: Any) -> Any:
    """A side as a list, an array or a table, or None."""
    if isinstance(side, str | Mapping):
        return [side]
    if isinstance(side, tuple):
        return list(side)
    if isinstance(side, pa.ChunkedArray):
        return plain(side)
    if isinstance(side, pa.RecordBatch):
        return pa.Table.from_batches([side])
    if side is None or isinstance(side, list | pa.Array | pa.Table):
        return side
    if hasattr(side, "__dataframe__"):
        try:
            return from_frame(side)
        except ValueError as wrong:
            raise EventError(str(wrong)) from None
    raise EventError(
        f"before and after must be Arrow tables or arrays, lists of mappings, mappings or None, "
        f"not {type(side).__name__}"
    )


def _there(side: Any) -> Mask:
    """Which rows are not missing; those of a table never are."""
    if isinstance(side, pa.Table):
        return np.ones(len(side), dtype=np.bool_)
    if isinstance(side, pa.Array):
        return np.asarray(side.is_valid().to_numpy(zero_copy_only=False))
    return np.array([row is not None for row in side], dtype=np.bool_)


def _present(side: Any) -> Any:
    return side.drop_null() if isinstance(side, pa.Array) else [x for x in side if x is not None]


def _joined(batches: list[Any]) -> list[Any]:
    """Batches as one, if they have the same form and types."""
    if len(batches) == 1:
        return batches
    one, other = batches
    if isinstance(one, list) and isinstance(other, list):
        return [one + other]
    if isinstance(one, pa.Table) and isinstance(other, pa.Table) and one.schema == other.schema:
        return [pa.concat_tables(batches)]
    if isinstance(one, pa.Array) and isinstance(other, pa.Array) and one.type == other.type:
        return [pa.concat_arrays(batches)]
    return batches
