"""Mappings as rows of a table, one for each value, and reading tagged values from them.

A mapping holds values of any type under any name, and types differ from one mapping to the next, so
they do not fit into columns. ``{"isbn": "c", "user": {"age": 30}}`` and ``{"isbn": 10**40}`` are::

    places  path      tag      payload  text
    0       isbn      STRING            c
    0       user      OTHER                                 there is a value, which compares not
    0       user.age  INTEGER  30
    1       isbn      EXACT             0x1d6329f1c35c...   a number that no machine type holds

A list under ``tags`` has a second row, whose path is ``tags.` ``: whatever is asked for below it is
there (``Names.spread``). No attribute has such a name.

Paths are numbered once for all rows, so finding the requested ones does not compare strings. All
attributes are in use here, so a mapping may hold values that cannot be read and that no
subscription uses, such as half a surrogate pair: such a value is kept as one that compares with
nothing.

One Python loop over the values on the way in, none on the way out but for ``EXACT`` numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import starts_of
from bittern.errors import EventError
from bittern.model.distinct import places_in, table_of
from bittern.model.events.mappings import (
    LISTS,
    MAX_DEPTH,
    Collector,
    Flattened,
    Heads,
    Names,
    collect,
    flatten,
    path_part,
)
from bittern.model.events.sinks import ValueSink
from bittern.model.numbers import Number
from bittern.model.strings import arrow_of, arrow_strings, gather_strings
from bittern.model.tagged import EXACT, STRING, TaggedValues

#: Mappings with as many different attributes are refused; so many only a mapping within itself has.
MOST_ATTRIBUTES = 1 << 20
#: What stands behind the path of a list, in the name of all that is below it.
BELOW = ".`"
#: What stands for a value that cannot be read: one without a kind.
_UNREADABLE = object()


def rows_of(events: Sequence[Any]) -> tuple[pa.Table, npt.NDArray[np.int32]]:
    """The rows of mappings, and the place of each row's mapping among them."""
    flattened, paths = _flatten(events)
    if flattened.rejected:
        flattened, paths = _flatten(readable(list(events), flattened.rejected))
    values = flattened.values
    text = _texts(values, [_text(number).encode() for _, _, number in flattened.exact])
    columns = {
        "path": pa.DictionaryArray.from_arrays(
            values.attributes, pa.array(paths, type=pa.large_string())
        ),
        "tag": values.tags,
        "payload": np.where((values.tags == STRING) | (values.tags == EXACT), 0, values.payloads),
        "text": text,
    }
    return pa.table(columns), values.rows


def add_values(
    rows: pa.Table, places: npt.NDArray[np.int32], names: Names, sink: ValueSink
) -> None:
    """Add what the rows say about these attributes. O(rows)."""
    path, tag, payload, text = (column.combine_chunks() for column in rows.columns)
    paths = [*names.numbers, *(prefix + BELOW for prefix in names.prefixes)]
    asked = places_in(table_of(arrow_of(paths)), path.dictionary)
    attributes = asked[path.indices.to_numpy()]
    own = np.flatnonzero(attributes >= 0)
    tags = tag.to_numpy()[own]
    data, offsets, _ = arrow_strings(text)
    is_string = tags == STRING
    values = TaggedValues(
        places[own],
        attributes[own].astype(np.int32),
        tags,
        np.where(is_string, offsets[own], payload.to_numpy()[own]),
        np.where(is_string, np.diff(offsets)[own], 0).astype(np.int32),
        data,
    )
    sink.add_tagged(names.spread(values))
    exact = np.flatnonzero(tags == EXACT)
    numbers = map(number_of, text.take(pa.array(own[exact])).to_pylist())
    where = values.rows[exact].tolist(), values.attributes[exact].tolist()
    sink.add_exact_numbers(list(zip(*where, numbers, strict=True)))


class _AllValues(Collector):
    """Collects every value: the number of its attribute is given when its path is first met."""

    def __init__(self) -> None:
        super().__init__(Heads({}, []))
        #: Numbers by path.
        self.numbers: dict[str, int] = {}

    def event(self, row: int, event: Mapping[Any, Any]) -> None:
        """Add the values of an event."""
        stack: list[tuple[str, int, Mapping[Any, Any]]] = [("", 0, event)]
        while stack:
            before, depth, mapping = stack.pop()
            for key, value in mapping.items():
                if value is None or not isinstance(key, str):
                    continue
                path = before + path_part(key)
                if not (path.isascii() or is_utf8(path)):  # no expression can name it
                    continue
                self.value(row, self._head(path), value)
                if isinstance(value, Mapping) and depth < MAX_DEPTH:
                    stack.append((path + ".", depth + 1, value))
                elif isinstance(value, LISTS):
                    self.value(row, self._head(path + BELOW), value)

    def _head(self, path: str) -> int:
        number = self.numbers.get(path)
        if number is None:
            if len(self.numbers) == MOST_ATTRIBUTES:
                raise OverflowError
            number = self.numbers[path] = len(self.numbers)
        return number << 8


def _flatten(events: Sequence[Any]) -> tuple[Flattened, list[str]]:
    """Tagged values of all attributes, and the attributes' paths."""
    values = _AllValues()
    flattened = collect(events, values)
    if len(values.numbers) == MOST_ATTRIBUTES:
        raise EventError(
            f"mappings with {MOST_ATTRIBUTES:,} or more different attributes cannot become "
            f"documents: append fewer at once, and no mapping that contains itself"
        )
    return flattened, list(values.numbers)


def readable(events: Any, rejects: Sequence[tuple[int, str]]) -> Any:
    """The events with something that has no kind in the place of values that cannot be read.

    What a document is must not depend on which of its attributes are asked for; in mappings, each
    value stands for itself. Events of other forms are what they are.
    """
    if not rejects or not isinstance(events, list | tuple):
        return events
    changed = list(events)
    for place, _ in rejects:
        if isinstance(changed[place], Mapping):
            changed[place] = _readable(changed[place], 0)
    return changed


def _readable(event: Any, depth: int) -> dict[Any, Any]:
    """A mapping with something that has no kind in the place of what cannot be read."""
    readable: dict[Any, Any] = {}
    try:
        for key, value in event.items():
            if isinstance(value, Mapping) and depth < MAX_DEPTH:
                readable[key] = _readable(value, depth + 1)
            else:
                wrong = flatten([{"value": value}], Names(["value"])).rejected
                readable[key] = _UNREADABLE if wrong else value
    except MemoryError:  # of this process, not of the event
        raise
    except Exception:  # noqa: BLE001  what is no mapping, or one that fails, has no more values
        return readable
    return readable


def _texts(values: TaggedValues, numbers: list[bytes]) -> pa.Array:
    """The strings among the values, the texts of the exact numbers, and nothing for the others."""
    starts, lengths = values.payloads.copy(), values.lengths.copy()
    exact = np.flatnonzero(values.tags == EXACT)
    lengths[exact] = list(map(len, numbers))
    starts[exact] = len(values.data) + np.cumsum(lengths[exact]) - lengths[exact]
    offsets = starts_of(lengths)
    text = np.empty(int(offsets[-1]), dtype=np.uint8)
    data = np.frombuffer(b"".join([values.data.tobytes(), *numbers]), dtype=np.uint8)
    gather_strings(data, starts, lengths, offsets, text)
    buffers = pa.py_buffer(offsets), pa.py_buffer(text)
    return pa.LargeStringArray.from_buffers(len(lengths), *buffers)


def _text(number: Number) -> str:
    # In hexadecimal, since Python refuses to write long integers as decimals.
    return hex(number) if isinstance(number, int) else str(number)


def number_of(text: str) -> Number:
    """The number that a text of ``EXACT`` stands for."""
    return int(text, 16) if "x" in text else Decimal(text)


def is_utf8(text: str) -> bool:
    """Whether the text can be written as UTF-8; half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
