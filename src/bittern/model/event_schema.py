"""What a schema of events tells: which attributes there are, and of which types.

::

    price: double, device: struct<os: string>, tags: map<string, int>

    price       double                     a column
    device.os   string                     a field
    tags.x      int                        a key, whichever it is
    prize       anything: a key of tags    without maps and objects there would be no such thing
    device.o    anything, likewise

Where each attribute is found is told in ``model/events/reader.py``: a column decides what it and
everything inside it is, and what has no column may come from maps and objects (JSON text and
variants). Only a schema without these is *closed*: then a name that it lacks is a mistake.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from bittern.errors import OptionError, did_you_mean
from bittern.language.literals import attribute_parts
from bittern.model.events.columns import is_list, plain
from bittern.model.events.mappings import path_part
from bittern.model.events.objects import (
    check_json,
    is_json,
    is_variant,
    is_variant_column,
    json_names,
)
from bittern.terms.nested.nested import settled_nested
from bittern.terms.spelling import place_of

#: For so many names that a schema lacks, the nearest that it has is looked for.
_MOST_HINTS = 1000


class EventSchema:
    """The attributes that events of an Arrow schema can have. Immutable, but for what it looked up.

    ``json`` names columns of JSON text; ``case_sensitive`` is that of ``Matcher``. ``not_by_bytes``
    are attributes whose texts only Spark can compare: they have a collation, or are padded.
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        json: str | Sequence[str] = (),
        case_sensitive: bool = True,
        not_by_bytes: Iterable[str] = (),
    ) -> None:
        if not isinstance(schema, pa.Schema):
            raise OptionError(
                f"schema must be a pyarrow.Schema or an EventSchema, not {type(schema).__name__}"
            )
        objects = json_names(json)
        check_json(objects, schema)
        self._case_sensitive = case_sensitive
        self._not_by_bytes = frozenset(map(self._spelled, not_by_bytes))
        self._columns = pa.struct(
            [
                field
                for field in schema
                if not (field.name in objects or is_json(field.type) or is_variant_column(field))
            ]
        )
        is_map = any(pa.types.is_map(field.type) for field in self._columns)
        #: Are there no attributes but those that it names?
        self.is_closed = len(self._columns) == len(schema) and not is_map
        self._types: dict[str, pa.DataType | None] = {}
        self._hints = 0

    @property
    def id(self) -> str:
        """A hash of what it says."""
        digest = hashlib.blake2b(digest_size=16)
        apart = sorted(self._not_by_bytes)
        for part in (self._columns, self.is_closed, self._case_sensitive, apart):
            digest.update(f"{part}\0".encode())
        return digest.hexdigest()

    @classmethod
    def of(cls, schema: Any) -> EventSchema:
        """From what a caller gave as a schema."""
        return schema if isinstance(schema, EventSchema) else cls(schema)

    def type_of(self, name: str) -> pa.DataType | None:
        """The type of an attribute, as terms see it; None if it may have any.

        An attribute that is missing is of type null.
        """
        if name not in self._types:
            try:
                kind = self._type(attribute_parts(name))
                self._types[name] = None if kind is None else _settled(kind)
            except LookupError:
                self._types[name] = pa.null() if self.is_closed else None
        return self._types[name]

    def is_compared_by_bytes(self, name: str) -> bool:
        """Whether texts of an attribute are compared as they are everywhere but in Spark."""
        return not self._not_by_bytes or self._spelled(name) not in self._not_by_bytes

    def _spelled(self, name: str) -> str:
        return name if self._case_sensitive else name.lower()

    def is_missing(self, name: str) -> bool:
        """Whether no event can have an attribute."""
        if not self.is_closed:
            return False
        try:
            self._type(attribute_parts(name))
        except LookupError:
            return True
        return False

    def missing(self, name: str) -> str:
        """What is said of an attribute that is missing."""
        self._hints += 1
        paths = _paths("", self._columns) if self._hints <= _MOST_HINTS else ()
        return f"the events have no {name}{did_you_mean(name, paths)}"

    def _type(self, parts: Sequence[str]) -> pa.DataType | None:
        """The type that a path leads to, None if any; ``LookupError`` if it leads nowhere."""
        kind, lists = self._columns, 0
        for part in parts:
            while is_list(kind):
                kind, lists = _plain(kind.value_type), lists + 1
            if is_variant(kind):
                return None
            if pa.types.is_struct(kind):
                names = [field.name for field in kind]
                place = place_of(part, names, case_sensitive=self._case_sensitive)
                if place < 0:
                    raise LookupError(part)
                kind = _plain(kind.field(place).type)
            elif pa.types.is_map(kind):
                kind = _plain(kind.item_type)
            elif pa.types.is_null(kind):
                return kind
            else:
                raise LookupError(part)
        for _ in range(lists):
            kind = pa.list_(kind)
        return kind


def _paths(before: str, kind: pa.DataType) -> Iterator[str]:
    """The attributes that a struct has, those of structs inside it included."""
    for field in kind:
        path = before + path_part(field.name)
        yield path
        inner = _plain(field.type)
        while is_list(inner):
            inner = _plain(inner.value_type)
        if pa.types.is_struct(inner) and not is_variant(inner):
            yield from _paths(f"{path}.", inner)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without dictionaries and the like."""
    return plain(pa.nulls(0, kind)).type


def _settled(kind: pa.DataType) -> pa.DataType:
    """The type that stands for Spark's."""
    return settled_nested(pa.nulls(0, kind)).type
