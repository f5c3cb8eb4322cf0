"""Lists, maps and structs: what they are made of, and how one type stands for all of Arrow's.

A column of lists is its elements, one after the other, and where each row's begin::

    row 0  [a, b]         values   a b c
    row 1  NULL           offsets  0 2 2 2 3
    row 2  []             valid    1 0 1 1
    row 3  [c]            parents  0 0 3

A map is a list of entries, keys and items. Nothing lies under a NULL list here, whatever Arrow's
buffers hold. All O(rows + elements).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import ranges, starts_of
from bittern.terms.scope import MeaninglessError, Scope, Value
from bittern.terms.spelling import place_of
from bittern.terms.types import settled

Offsets = npt.NDArray[np.int64]
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


class Lists(NamedTuple):
    """Lists by row: elements, where each row's begin and the last end, and which are not NULL."""

    offsets: Offsets
    values: pa.Array
    valid: npt.NDArray[np.bool_]

    @property
    def lengths(self) -> Offsets:
        """How many elements each row has; none where it is NULL."""
        return np.diff(self.offsets)

    @property
    def parents(self) -> Offsets:
        """The row of each element."""
        return np.repeat(np.arange(len(self.valid)), self.lengths)

    @property
    def positions(self) -> Offsets:
        """The place of each element in its list, from 0."""
        return np.arange(len(self.values)) - np.repeat(self.offsets[:-1], self.lengths)

    def array(self, values: pa.Array | None = None) -> pa.Array:
        """As a column again, maybe of other elements."""
        return lists_of(self.offsets, self.values if values is None else values, self.valid)

    def kept(self, kept: npt.NDArray[np.bool_]) -> Lists:
        """Some elements of each list, which are marked."""
        ends = np.concatenate(([0], np.cumsum(kept)))
        return Lists(ends[self.offsets], self.values.filter(pa.array(kept)), self.valid)

    def any(self, marked: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """The rows of which some element is marked."""
        ends = np.concatenate(([0], np.cumsum(marked)))
        counts: Offsets = np.diff(ends[self.offsets])
        return counts > 0

    def first(self, marked: npt.NDArray[np.bool_]) -> Offsets:
        """By row which element is the first that is marked; one behind all if none is."""
        found = np.full(len(self.valid), len(self.values), dtype=np.int64)
        places = np.flatnonzero(marked)[::-1]
        found[self.parents[places]] = places  # of several for one row the last written counts
        return found


def is_listed(kind: pa.DataType) -> bool:
    """Whether it is a list, in the one form that settled columns have."""
    return bool(pa.types.is_list(kind))


def lists_of(offsets: Offsets, values: pa.Array, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """A column of lists."""
    mask = None if valid.all() else pa.array(~valid)
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), values, type=pa.list_(values.type), mask=mask
    )


def parts_of(array: pa.Array) -> Lists:
    """The parts of a column of lists, or of a map, whose elements are structs of key and value."""
    if pa.types.is_map(array.type):
        return _entries_of(array)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(array), 0))
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    return Lists(offsets, array.flatten(), valid)


def _entries_of(maps: pa.MapArray) -> Lists:
    """The parts of a column of maps. Casting to lists of structs would lose lists of NULLs."""
    kind = maps.type
    valid = np.asarray(maps.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    begins = np.asarray(maps.offsets, dtype=np.int64)
    lengths = np.where(valid, np.diff(begins), 0)
    offsets = starts_of(lengths)
    keys, items = maps.keys, maps.items
    if offsets[-1] != len(keys):  # a slice, or something lies under a NULL
        places = pa.array(ranges(begins[:-1], lengths))
        keys, items = keys.take(places), items.take(places)
    key = pa.field("key", kind.key_type, nullable=pa.types.is_null(kind.key_type))
    fields = [key, pa.field("value", kind.item_type)]
    return Lists(offsets, pa.StructArray.from_arrays([keys, items], fields=fields), valid)


def list_parts(scope: Scope, value: Value, name: str) -> Lists:
    """The parts of a value that must be a list; NULL is one without elements."""
    if pa.types.is_null(value.type):
        return _nothing(scope.n_rows)
    if not is_listed(value.type):
        raise MeaninglessError(f"{name} takes an array, not {value.type}")
    return parts_of(scope.array(value))


def map_parts(scope: Scope, value: Value, name: str) -> tuple[Lists, Lists]:
    """The keys and the items of a value that must be a map."""
    if pa.types.is_null(value.type):
        return _nothing(scope.n_rows), _nothing(scope.n_rows)
    if not pa.types.is_map(value.type):
        raise MeaninglessError(f"{name} takes a map, not {value.type}")
    entries = parts_of(scope.array(value))
    keys, items = entries.values.flatten()
    return entries._replace(values=keys), entries._replace(values=items)


def _nothing(n_rows: int) -> Lists:
    nobody = np.zeros(n_rows, dtype=np.bool_)
    return Lists(np.zeros(n_rows + 1, dtype=np.int64), pa.nulls(0), nobody)


def path_parts(name: str) -> list[str]:
    """The parts of an attribute's canonical name."""
    return [bare or quoted.replace("``", "`") for quoted, bare in _PART.findall(name)]


def field_of(array: pa.Array, name: str) -> pa.Array:
    """A field of structs, or what maps have under a key; of lists, a list of these.

    What is not there is NULL, as an attribute that an event lacks.
    """
    kind = array.type
    if pa.types.is_null(kind):
        return array
    if pa.types.is_struct(kind):
        place = place_of(name, [field.name for field in kind])
        return pa.nulls(len(array)) if place < 0 else pc.struct_field(array, place)
    if is_listed(kind):
        lists = parts_of(array)
        return lists.array(field_of(lists.values, name))
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        entries = parts_of(array)
        keys, items = entries.values.flatten()
        places = np.full(len(array), -1, dtype=np.int64)
        found = np.flatnonzero(pc.equal(keys, name).to_numpy(zero_copy_only=False))
        places[entries.parents[found]] = found
        return items.take(pa.array(places, mask=places < 0))
    raise MeaninglessError(f"there is no field {name[:40]} in {kind}")


def settled_nested(array: pa.Array) -> pa.Array:
    """A column in the type that stands for Spark's, however its values are nested and encoded."""
    kind, types = array.type, pa.types
    if isinstance(array, pa.ExtensionArray):
        return settled_nested(array.storage)
    if types.is_dictionary(kind):
        return settled_nested(array.dictionary.take(array.indices))
    if types.is_run_end_encoded(kind):
        return settled_nested(pc.run_end_decode(array))
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return array.cast(pa.string() if types.is_string_view(kind) else pa.binary())
    if types.is_struct(kind):
        fields = [settled_nested(field) for field in array.flatten()]
        names = [pa.field(own.name, field.type) for own, field in zip(kind, fields, strict=True)]
        mask = pc.is_null(array) if array.null_count else None
        if not fields:
            return array
        return pa.StructArray.from_arrays(fields, fields=names, mask=mask)
    if types.is_map(kind):
        entries = parts_of(array)
        keys, items = map(settled_nested, entries.values.flatten())
        offsets = pa.array(entries.offsets, pa.int32(), mask=_null_offsets(entries.valid))
        return pa.MapArray.from_arrays(offsets, keys, items)
    if types.is_nested(kind) and not types.is_union(kind):
        lists = parts_of(array)
        return lists.array(settled_nested(lists.values))
    return settled(array)


def _null_offsets(valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Arrow marks a NULL map by the offset where it begins."""
    return np.concatenate((~valid, [False]))
