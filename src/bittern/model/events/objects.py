"""Objects in columns: JSON text and variants whose fields are attributes.

====================  =================================================================
column                holds objects if
====================  =================================================================
JSON text             the caller names it, or its type is Arrow's ``arrow.json``
variant               it is marked: Spark marks the struct's field ``metadata``, Arrow
                      gives the column the extension name ``parquet.variant``
====================  =================================================================

A user's own struct with the fields ``value`` and ``metadata`` is just a struct. A column of
objects is not an attribute itself; a variant inside a struct or a map is a value without a kind.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.errors import EventError, OptionError, brief
from bittern.model.events.columns import plain
from bittern.model.events.json import text as json_text
from bittern.model.events.sinks import Opener
from bittern.model.numbers import INT64_MAX, INT64_MIN
from bittern.model.strings import StringTable, arrow_strings
from bittern.model.tagged import TaggedValues

_EXTENSIONS = ("parquet.variant", "arrow.parquet.variant")


class Objects(NamedTuple):
    """What a column of objects says: values, and the rows that could not be read."""

    values: TaggedValues
    rejects: list[tuple[int, str]]
    open: Opener | None = None  # what lists and objects hold


def is_json(kind: pa.DataType) -> bool:
    """Whether it is Arrow's type of JSON text."""
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.json"


def is_variant(kind: pa.DataType) -> bool:
    """Whether the type is marked as a variant."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.extension_name in _EXTENSIONS
    return _has_parts(kind) and (kind.field("metadata").metadata or {}).get(b"variant") == b"true"


def is_variant_column(field: pa.Field) -> bool:
    """Whether it is a variant, by its type or by Arrow's mark where it knows no such type."""
    name = (field.metadata or {}).get(b"ARROW:extension:name", b"")
    return is_variant(field.type) or (_has_parts(field.type) and name.decode() in _EXTENSIONS)


def _has_parts(kind: pa.DataType) -> bool:
    """Whether it is a struct of two byte strings, value and metadata."""
    return (
        pa.types.is_struct(kind)
        and {field.name for field in kind} == {"value", "metadata"}
        and all(_is_binary(field.type) for field in kind)
    )


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    )


def json_names(json: str | Sequence[str]) -> tuple[str, ...]:
    """The columns that ``json`` names; ``OptionError`` if it is not a name or a list of names."""
    names = (json,) if isinstance(json, str) else json
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise OptionError(
            f"json must be the name of a column or a list of names, not {brief(json)}"
        )
    return tuple(names)


def check_json(names: Sequence[str], schema: pa.Schema) -> None:
    """Raise unless every named column exists and holds text."""
    for name in names:
        if name not in schema.names:
            raise OptionError(
                f"json names the column {name!r:.80}, but the events have no such column; "
                f"they have {', '.join(map(repr, schema.names)) or 'none':.200}"
            )
        kind = plain(pa.nulls(0, schema.field(name).type)).type
        if not (
            pa.types.is_string(kind)
            or pa.types.is_large_string(kind)
            or pa.types.is_null(kind)
            or _is_binary(kind)
        ):
            raise EventError(
                f"json names the column {name!r:.80}, which holds {schema.field(name).type}, "
                f"not text"
            )


def read_json(array: pa.Array, names: StringTable, *, nulls: bool = False) -> Objects:
    """The attributes in a column of JSON texts, those that are null only with ``nulls``. O(bytes).

    With ``nulls``, all attributes below a null have an entry, too.
    """
    if pa.types.is_null(array.type):
        array = array.cast(pa.string())
    data, offsets, valid = arrow_strings(array)
    found = json_text.scan_json(data, offsets, valid, names, nulls=nulls)
    objects = _objects(*found, json_text.REJECT_REASONS)
    return objects._replace(open=_json_opener(objects.values, offsets[1:] - offsets[0]))


def _json_opener(values: TaggedValues, ends: npt.NDArray[np.int64]) -> Opener:
    """Opens the JSON that starts at a payload; texts are known to be valid, and end at ``ends``."""
    decode = json.JSONDecoder(parse_int=_json_integer).raw_decode

    def opened(row: int, start: int) -> Any:
        return decode(values.data[start : ends[row]].tobytes().decode())[0]

    return opened


def _json_integer(digits: str) -> int | float:
    """As the scanner reads it: a float beyond 64 bits."""
    value = int(digits) if len(digits) <= 20 else None
    return float(digits) if value is None or not INT64_MIN <= value <= INT64_MAX else value


def read_variants(array: pa.Array, names: StringTable, *, nulls: bool = False) -> Objects:
    """The attributes in a column of variants, as ``read_json``. O(fields on paths in use)."""
    from bittern.model.events.variant import variant  # noqa: PLC0415  only for variants
    from bittern.model.events.variant.trees import TreeReader  # noqa: PLC0415  only for variants

    children = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    data, offsets, valid = arrow_strings(children["value"])
    metadata, metadata_offsets, known = arrow_strings(children["metadata"])
    if valid is not None and known is not None:
        valid = valid & known
    found = variant.scan_variants(
        (data, offsets),
        (metadata, metadata_offsets),
        valid if valid is not None else known,
        names,
        nulls=nulls,
    )
    objects = _objects(*found, variant.REJECT_REASONS)
    trees = TreeReader(objects.values.data, offsets[1:] - offsets[0], (metadata, metadata_offsets))
    return objects._replace(open=trees)


def _objects(
    values: TaggedValues,
    rows: npt.NDArray[np.int32],
    codes: npt.NDArray[np.uint8],
    reasons: Sequence[str],
) -> Objects:
    pairs: Any = zip(rows.tolist(), codes.tolist(), strict=True)
    return Objects(values, [(row, reasons[code]) for row, code in pairs])
