"""Attributes by every name that a form of events has for them.

Two attributes, ``price`` and ``user.`home.town```, are looked for under these names::

    names      price   user.`home.town`    columns, fields of structs, keys of mappings: by path
    table      the same, as bytes          keys of JSON objects and variants
    map_names  price                       keys of map columns, which are one part of a path
    prefixes   user                        structs and objects that lead to an attribute

O(1) per look-up, whatever the number of attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.errors import EventError
from bittern.model.columns import plain
from bittern.model.documents import is_variant
from bittern.model.mappings import Names, path_part
from bittern.model.maps import map_names
from bittern.model.strings import StringTable, arrow_strings

Taken = npt.NDArray[np.uint8]  # by attribute: 1 if it has a column of its own


class Attributes:
    """Attributes by every name that a form of events has for them. Immutable."""

    def __init__(self, names: Sequence[str]) -> None:
        """From canonical names: dotted paths, with back-quotes where a part needs them."""
        self.names = Names(names)
        self.table = _table(names)
        self.map_names = map_names(list(names))
        self.prefixes = _table(sorted(self.names.prefixes))

    def none_taken(self) -> Taken:
        """No attribute has a column of its own yet."""
        return np.zeros(max(1, len(self.names.numbers)), dtype=np.uint8)

    def columns(
        self, path: str, array: pa.Array, taken: Taken
    ) -> Iterator[tuple[int, str, pa.Array]]:
        """The attributes in a column and in its fields, which are ``taken`` from now on."""
        attribute = self.names.numbers.get(path)
        if attribute is not None and not taken[attribute]:
            taken[attribute] = 1
            yield attribute, path, array
        opaque = not pa.types.is_struct(array.type) or is_variant(array.type)
        if opaque or path not in self.names.prefixes:
            return
        refuse_twins([field.name for field in array.type], f"in {path!r}")
        for field, inner in zip(array.type, array.flatten(), strict=True):
            inner_path = f"{path}.{path_part(field.name)}"
            if inner_path in self.names.numbers or inner_path in self.names.prefixes:
                yield from self.columns(inner_path, plain(inner), taken)


def _table(names: Sequence[str]) -> StringTable:
    return StringTable.build(*arrow_strings(pa.array(names, type=pa.large_string()))[:2], 0)


def refuse_twins(names: list[str], where: str) -> None:
    """``EventError`` if two columns have one name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise EventError(f"two columns {where} are named {twice!r}")
