"""Which arrays have which constants: all that subscriptions ask for are looked up together.

``array_contains(tags, 'red')`` and 2,000 more of its kind are one question per element::

    rows   tags             constants           attributes
    0      [red, tan]       red  -> 4           (0, 4)
    1      [blue, red]      blue -> 9           (1, 9) (1, 4)
    2      NULL

An attribute is there in the rows whose array has its constant (``language/derived.py``), so rows
without it cost nothing. O(elements), one look-up in a hash table for each type of constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Int64s
from bittern.model.distinct import places_in, table_of
from bittern.model.strings import StringTable
from bittern.terms.casts.casts import widened
from bittern.terms.types import common_type


class _Constants(NamedTuple):
    """The constants of one type, and the attribute of each."""

    values: pa.Array
    attributes: npt.NDArray[np.int64]
    table: StringTable | None  # of strings: where each is


class Elements:
    """The constants that subscriptions look for in one array. Immutable."""

    def __init__(self, wanted: Sequence[tuple[int, pa.Scalar]]) -> None:
        """From attributes and their constants."""
        by_type: dict[pa.DataType, list[tuple[int, Any]]] = {}
        for attribute, constant in wanted:
            by_type.setdefault(constant.type, []).append((attribute, constant.as_py()))
        self._constants = []
        for kind, own in by_type.items():
            values = pa.array([value for _, value in own], kind)
            attributes = np.array([attribute for attribute, _ in own], dtype=np.int64)
            table = table_of(values) if pa.types.is_string(kind) else None
            self._constants.append(_Constants(values, attributes, table))

    def complaint(self, arrays: pa.Array) -> str | None:
        """Why values of this type have none of the constants; None if they may have some."""
        kind = arrays.type
        if pa.types.is_null(kind):
            return None
        if not pa.types.is_list(kind):
            return f"{kind} is not an array"
        types = [each.values.type for each in self._constants]
        if any(common_type(kind.value_type, each) is not None for each in types):
            return None
        return f"elements of type {kind.value_type} are not compared with {types[0]}"

    def found(self, arrays: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(attributes, rows): the constants that the arrays have, each pair once."""
        nothing = np.empty(0, dtype=np.int64)
        if not pa.types.is_list(arrays.type):
            return nothing, nothing
        elements, rows = arrays.flatten(), pc.list_parent_indices(arrays).to_numpy()
        pairs = [nothing]
        for values, attributes, table in self._constants:
            kind = common_type(elements.type, values.type)
            if kind is None or pa.types.is_null(elements.type):
                continue
            if table is not None and elements.type == kind:
                places = places_in(table, elements)
                there = np.flatnonzero(places >= 0)
                pairs.append(attributes[places[there]] << 32 | rows[there])
                continue
            own = _same(values, kind)
            places = pc.index_in(_same(elements, kind), value_set=own)
            there = np.flatnonzero(
                np.asarray(places.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
            )
            found = places.take(pa.array(there)).to_numpy(zero_copy_only=False)
            if own is not values:
                turns, found = _equal_ones(own, found)
                there = there[turns]
            pairs.append(attributes[found] << 32 | rows[there])
        together = np.unique(np.concatenate(pairs))
        return together >> 32, together & 0xFFFFFFFF


def _equal_ones(values: pa.Array, found: Int64s) -> tuple[Int64s, Int64s]:
    """All places of values that are equal to those found, and which of the found each equals.

    Two constants of a type may be one value in another, and only the first of them was found.
    """
    first = pc.index_in(values, value_set=values).to_numpy()
    order = np.argsort(first, kind="stable")
    begins = np.searchsorted(first, found, sorter=order)
    counts = np.searchsorted(first, found, side="right", sorter=order) - begins
    turns = np.repeat(np.arange(len(found)), counts)
    within = np.arange(len(turns)) - np.repeat(np.cumsum(counts) - counts, counts)
    return turns, order[begins[turns] + within]


def _same(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values in a type in which equal ones have equal bits; NULL stays NULL."""
    found = widened(values, kind)
    return pc.add(found, pa.scalar(0.0, kind)) if pa.types.is_floating(kind) else found
