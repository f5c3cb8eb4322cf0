"""Attributes by every name that a form of events has for them.

Three attributes, ``price``, ``user.age`` and ``user.`home.town```, are looked for under these
names::

    names      price   user.age   user.`home.town`    columns, fields of structs, keys of mappings
    table      the same as bytes, and user            keys of JSON objects and variants
    keys("")      price   user                        keys of maps whose entries are attributes
    keys("user")  age   home.town                     keys of maps in the column ``user``

O(1) per look-up, whatever the number of attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.errors import EventError
from bittern.language.literals import attribute_of, attribute_parts
from bittern.model.events.columns import is_list, plain
from bittern.model.events.mappings import Names
from bittern.model.events.objects import is_variant
from bittern.model.strings import StringTable

Taken = npt.NDArray[np.uint8]  # by attribute: 1 if it has a column of its own


class PathKeys(NamedTuple):
    """The keys that lead to attributes from some path: number by key, and by number the rest."""

    table: StringTable
    paths: list[str]
    attributes: npt.NDArray[np.int64]  # -1: the path only leads to some


class Attributes:
    """Attributes by every name that a form of events has for them. Immutable."""

    def __init__(self, names: Sequence[str]) -> None:
        """From canonical names: dotted paths, with back-quotes where a part needs them."""
        #: The attributes by canonical name, numbered in order.
        self.numbers = {name: i for i, name in enumerate(names)}
        # The others are made when first asked for: most deltas are never read for by themselves.
        self._names: Names | None = None
        self._table: StringTable | None = None
        self._keys: dict[str, PathKeys] = {}

    @property
    def names(self) -> Names:
        """The names as columns, fields and keys of mappings have them."""
        if self._names is None:
            self._names = Names(list(self.numbers))
        return self._names

    @property
    def table(self) -> StringTable:
        """The names as keys of JSON objects and variants, and the paths to them (group 1)."""
        if self._table is None:
            names, prefixes = list(self.numbers), self.names.prefixes
            groups = np.repeat(np.array([0, 1], dtype=np.int32), [len(names), len(prefixes)])
            self._table = _table([*names, *prefixes], groups)
        return self._table

    def none_taken(self) -> Taken:
        """No attribute has a column of its own yet."""
        return np.zeros(max(1, len(self.numbers)), dtype=np.uint8)

    def keys(self, prefix: str) -> PathKeys:
        """The keys that lead on from a prefix; from "" those of whole events."""
        keys = self._keys.get(prefix)
        if keys is None:
            names, start = list(self.names.numbers), attribute_parts(prefix) if prefix else ()
            if prefix:
                names = [names[i] for i in self.names.below(prefix)]
            found = list(dict.fromkeys(attribute_parts(name)[len(start)] for name in names))
            paths = [attribute_of([*start, key]) for key in found]
            attributes = [self.names.numbers.get(path, -1) for path in paths]
            keys = PathKeys(_table(found, 0), paths, np.array(attributes, dtype=np.int64))
            self._keys[prefix] = keys
        return keys

    def types(self, path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
        """The attributes in a column of a type, each with its own."""
        kind = plain(pa.nulls(0, kind)).type
        if path in self.names.numbers:
            yield path, kind
        if path not in self.names.prefixes or is_variant(kind):
            return
        if pa.types.is_struct(kind):
            in_use = self.names.paths(path, [field.name for field in kind])
            for field, paths in zip(kind, in_use, strict=True):
                for each in paths:
                    yield from self.types(each, field.type)
        elif pa.types.is_map(kind):
            for inner in self.keys(path).paths:
                yield from self.types(inner, kind.item_type)
        elif is_list(kind):
            names = list(self.names.numbers)
            yield from ((names[attribute], kind) for attribute in self.names.below(path))


def _table(names: Sequence[str], groups: npt.NDArray[np.int32] | int) -> StringTable:
    return StringTable.of([name.encode() for name in names], groups)


def refuse_twins(names: list[str], where: str) -> None:
    """``EventError`` if two columns have the same name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise EventError(f"two columns {where} are named {twice!r}: rename one")
