r"""Typed values: events attribute by attribute, in a form in which values can be compared.

Rank space (``model/rank/space.py``) knows a value only by its place among constants. Where values
of events meet values of other events there are no constants, and a value is a kind, a word and a
tie::

    value             kind     word                            tie
    9.5, 9.50         NUMBER   the bits of 9.5, ordered        0
    2**53 + 1         NUMBER   those of 2.0**53                2**61: half a step to the next float
    'red'             STRING   "red\0\0\0\0\0" as an integer   4, and heap[4:] is 3 and "red"
    TRUE              BOOLEAN  1                               0
    1970-01-01 00:01  TIME     60,000,000                      0
    [1, 2]            OTHER    0                               0, it compares with nothing

Inside a kind the words decide, as signed integers, and mostly that is all there is to it. Where
they are equal the ties do; of strings the bytes, which stand in a *heap*, each behind its length in
8 bytes. Values of different kinds do not compare, nor do ``MISSING`` and ``OTHER`` ones.

A number's word is that of the nearest float, its tie how far it is from what that float stands for
(``model/numbers.py``), in units of 2**-62 of the distance between floats. So all numbers that
a column of a machine type holds are told apart, and so are others unless they agree in 34 digits or
are larger than every float. NaN is above all numbers, -0.0 is 0.0. A time's word is microseconds
since 1970 in UTC, its tie the nanoseconds behind them; times some 290,000 years away are one.

``TypedReader`` reads the events, in every form that ``model/events/reader.py`` knows. 17 bytes per
attribute and event, plus the strings. Some 15 ns per value, of a short string 30, of a number that
no machine type holds 10 microseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import Int64s
from bittern.errors import OptionError
from bittern.jit import i4r, i8, i8r, i8w, inline, kernel, read_only, tuple_type, u1r, u1w
from bittern.model import tagged
from bittern.model.events.attributes import Attributes
from bittern.model.events.batch import EventRows
from bittern.model.events.columns import Column
from bittern.model.events.maps import MapEntries, tag_entries
from bittern.model.events.reader import EventReader
from bittern.model.events.reads import Rejects
from bittern.model.events.typed.numbers import (
    put_float,
    put_integer,
    words_of_decimals,
    words_of_numbers,
)
from bittern.model.events.variant.values import LongDecimals
from bittern.model.hashing import hash_last, hash_pair
from bittern.model.numbers import INT64_MAX, Number
from bittern.model.rank import space as rank
from bittern.model.strings import big_endian_prefix, compare_bytes, hash_bytes, word_at
from bittern.model.tagged import TaggedValues

MISSING, NUMBER, STRING, BOOLEAN, TIME, OTHER = range(6)
#: What stands before the bytes of a string: their number.
HEADER = 8

_SIGN = np.uint64(1 << 63)


class Typed(NamedTuple):
    """The values of k attributes in n events: row a of each array is attribute a."""

    kinds: npt.NDArray[np.uint8]
    words: npt.NDArray[np.int64]
    ties: npt.NDArray[np.int64]
    heap: npt.NDArray[np.uint8]

    def take(self, events: npt.NDArray[Any]) -> Typed:
        """Some events, by mask or by number, on the same heap."""
        if events.dtype == np.bool_:
            events = np.flatnonzero(events)
        kinds, words, ties, heap = self
        return Typed(
            kinds.take(events, axis=1), words.take(events, axis=1), ties.take(events, axis=1), heap
        )


class TypedValue(NamedTuple):
    """One value of ``Typed``."""

    kind: int
    word: int
    tie: int
    heap: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, typed: Typed, attribute: int, event: int) -> TypedValue:
        """The value of an attribute, by its row, in one event."""
        kind, word, tie = (
            column[attribute, event] for column in (typed.kinds, typed.words, typed.ties)
        )
        return cls(int(kind), int(word), int(tie), read_only(typed.heap))

    @property
    def compares(self) -> bool:
        """Can it be compared with anything? A missing value and a list cannot."""
        return self.kind not in (MISSING, OTHER)


class TypedReading(NamedTuple):
    """Events that were read, and those that could not be: (row, reason); they have no values."""

    typed: Typed
    n_events: int
    rejects: Rejects


# ------------------------------------------------------------------ for kernels


@inline
def string_stop(heap: Any, tie: Any) -> Any:
    """Where the string whose header is at ``tie`` ends; it starts behind the header."""
    return tie + HEADER + np.int64(word_at(heap, tie))


@inline
def compare(
    kind: Any, word_a: Any, tie_a: Any, heap_a: Any, word_b: Any, tie_b: Any, heap_b: Any
) -> Any:
    """-1, 0 or 1 as a is below, equal to or above b; both are of this kind, which has an order."""
    if word_a != word_b:
        return np.int64(-1) if word_a < word_b else np.int64(1)
    if kind != STRING:
        return np.int64(tie_a > tie_b) - np.int64(tie_a < tie_b)
    return compare_bytes(
        heap_a,
        tie_a + HEADER,
        string_stop(heap_a, tie_a),
        heap_b,
        tie_b + HEADER,
        string_stop(heap_b, tie_b),
    )


@inline
def order_of(a: Any, b: Any) -> Any:
    """-1, 0 or 1 as one ``TypedValue`` is below, equal to or above another of its kind."""
    return compare(a.kind, a.word, a.tie, a.heap, b.word, b.tie, b.heap)


@inline
def hash_value(kind: Any, word: Any, tie: Any, heap: Any, salt: Any, key: Any) -> Any:
    """64 well-mixed bits, the same for equal values."""
    if kind == STRING:
        return hash_bytes(heap, tie + HEADER, string_stop(heap, tie), salt, key)
    # What no string has as its length.
    return hash_last(hash_pair(word, tie, key), salt, ~np.uint64(kind), key)


@inline
def _put_bytes(data: Any, start: Any, length: Any, heap: Any, at: Any) -> Any:
    """Write a string and its header at ``at``; returns where it ends."""
    for i in range(HEADER):
        heap[np.uint64(at + i)] = np.uint8(length >> 8 * i & 255)
    at += HEADER
    for i in range(length):
        heap[np.uint64(at + i)] = data[np.uint64(start + i)]
    return at + length


@inline
def put_string(heap: Any, tie: Any, target: Any, at: Any) -> Any:
    """Copy the string at ``tie`` to ``target[at]``, which has room; returns where it ends.

    The room it takes is ``string_stop(heap, tie) - tie``; its tie in the target is ``at``.
    """
    return _put_bytes(heap, tie + HEADER, string_stop(heap, tie) - tie - HEADER, target, at)


# ------------------------------------------------------------------ reading


#: Flat, while it is filled: attribute after attribute.
_FILLED = tuple_type(Typed, u1w, i8w, i8w, u1w)


@kernel(i8, i4r, i4r, u1r, i8r, i4r, u1r, i8, _FILLED, i8)
def _put_tagged(
    rows: Any,
    attributes: Any,
    tags: Any,
    payloads: Any,
    lengths: Any,
    data: Any,
    n_events: Any,
    typed: Any,
    at: Any,
) -> Any:
    """Put tagged values where they belong, strings in the heap from ``at`` on; returns its end.

    Values that no payload holds are left out.
    """
    kinds, words, ties, heap = typed
    floats, reals = payloads.view(np.float64), words.view(np.float64)
    for i in range(len(rows)):
        place = np.uint64(attributes[i] * n_events + rows[i])
        tag = tags[i]
        if tag == tagged.INTEGER:
            kinds[place] = NUMBER
            put_integer(payloads[i], words, reals, ties, place)
        elif tag == tagged.FLOAT:
            kinds[place] = NUMBER
            put_float(floats[i], words, reals, place)
        elif tag == tagged.STRING:
            start, length = payloads[i], np.int64(lengths[i])
            kinds[place] = STRING
            words[place] = np.int64(big_endian_prefix(data, start, start + length) ^ _SIGN)
            ties[place] = at
            at = _put_bytes(data, start, length, heap, at)
        elif tag == tagged.BOOLEAN:
            kinds[place] = BOOLEAN
            words[place] = payloads[i]
        elif tag == tagged.TIMESTAMP:
            kinds[place] = TIME
            words[place] = payloads[i]
        elif tag == tagged.OTHER:
            kinds[place] = OTHER
    return at


class _Settled(NamedTuple):
    """Numbers or times of one attribute or several that have their words and ties already."""

    rows: EventRows
    attributes: EventRows | int
    kind: int
    words: Int64s
    ties: Int64s


class _Pieces:
    """The sink of a reader: the pieces that a batch came in, until it is known how long it is."""

    def __init__(self) -> None:
        self._pieces: list[TaggedValues | _Settled] = []

    def mark(self) -> int:
        """Where the next piece will be, for ``move_rows``."""
        return len(self._pieces)

    def move_rows(self, mark: int, rows: EventRows) -> None:
        """Values since ``mark`` that are in row i belong in ``rows[i]``."""
        for i in range(mark, len(self._pieces)):
            moved = rows[self._pieces[i].rows].astype(np.int32)
            self._pieces[i] = self._pieces[i]._replace(rows=moved)

    def add_column(self, attribute: int, column: Column) -> None:
        """A column of one type."""
        if not (column.exact or column.scale):
            entries = MapEntries(column.rows, np.full(len(column.rows), attribute), column.rows)
            self._pieces.append(tag_entries(column, entries))
        elif column.kind == rank.TIME:
            assert column.values is not None
            self._add_times(column.rows, attribute, column.values[column.rows], column.scale)
        else:
            words, ties = _words_of_column(column)
            self._pieces.append(_Settled(column.rows, attribute, NUMBER, words, ties))

    def add_present(self, attributes: EventRows, rows: EventRows) -> None:
        """Attributes that are there: they are TRUE."""
        there, nothing = np.ones(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        self._pieces.append(_Settled(rows, attributes, BOOLEAN, there, nothing))

    def add_tagged(self, values: TaggedValues) -> None:
        """Values of any kind, except those that no payload holds."""
        self._pieces.append(values)

    def add_exact_numbers(self, numbers: list[tuple[int, int, Number]]) -> None:
        """(row, attribute, number), one by one."""
        if numbers:
            rows, attributes, values = zip(*numbers, strict=True)
            words, ties = words_of_numbers(values)
            piece = _Settled(np.array(rows), np.array(attributes), NUMBER, words, ties)
            self._pieces.append(piece)

    def add_variant_numbers(self, values: TaggedValues) -> None:
        """Long decimals and nanoseconds among the values of variants."""
        own = values.at(values.tags == tagged.EXACT)
        if len(own.rows):
            words, ties = words_of_decimals(LongDecimals.read(own.data, own.payloads))
            self._pieces.append(_Settled(own.rows, own.attributes, NUMBER, words, ties))
        own = values.at(values.tags == tagged.EXACT_TIME)
        if len(own.rows):
            self._add_times(own.rows, own.attributes, own.payloads, 3)

    def _add_times(
        self, rows: EventRows, attributes: EventRows | int, units: Int64s, scale: int
    ) -> None:
        """Times in units of ``10**-scale`` microseconds."""
        unit = 10 ** abs(scale)
        if scale > 0:
            words = units // unit
            ties = units - words * unit
        else:
            most = INT64_MAX // unit
            words, ties = np.clip(units, -most, most) * unit, np.zeros_like(units)
        self._pieces.append(_Settled(rows, attributes, TIME, words, ties))

    def typed(self, n_attributes: int, n_events: int) -> Typed:
        """All of them put together."""
        shape = (n_attributes, n_events)
        kinds = np.zeros(n_attributes * n_events, dtype=np.uint8)
        words, ties = np.zeros(len(kinds), dtype=np.int64), np.zeros(len(kinds), dtype=np.int64)
        heap = np.empty(sum(map(_heap_size, self._pieces)), dtype=np.uint8)
        at = 0
        for piece in self._pieces:
            if isinstance(piece, _Settled):
                places = np.int64(n_events) * piece.attributes + piece.rows
                kinds[places], words[places], ties[places] = piece[2:]
                continue
            at = _put_tagged(*piece, n_events, Typed(kinds, words, ties, heap), at)
        return Typed(kinds.reshape(shape), words.reshape(shape), ties.reshape(shape), heap[:at])


def _heap_size(piece: TaggedValues | _Settled) -> int:
    if isinstance(piece, _Settled):
        return 0
    strings = np.count_nonzero(piece.tags == tagged.STRING)
    return int(piece.lengths.sum(dtype=np.int64)) + HEADER * int(strings)


def _words_of_column(column: Column) -> tuple[Int64s, Int64s]:
    """Words and ties of a column of decimals or of large unsigned integers, where not null."""
    array, kind = column.array.drop_null(), column.array.type
    if column.values is not None and column.scale > 0:
        mantissas = column.values[column.rows]
        lows, highs = mantissas.copy().view(np.uint64), (mantissas >> 63).view(np.uint64)
    elif pa.types.is_uint64(kind):
        lows = array.to_numpy(zero_copy_only=False).copy()
        highs = np.zeros_like(lows)
    elif pa.types.is_decimal128(kind) and kind.scale >= 0:
        halves = np.frombuffer(array.buffers()[1], np.uint64, 2 * (array.offset + len(array)))
        lows, highs = (halves[2 * array.offset + half :: 2].copy() for half in (0, 1))
    else:
        return words_of_numbers(array.to_pylist())
    places = np.full(len(lows), 0 if pa.types.is_uint64(kind) else kind.scale, dtype=np.uint8)
    return words_of_decimals(LongDecimals.of_words(lows, highs, places))


class TypedReader:
    """Reads the values of some attributes from events. Immutable; threads may share it."""

    def __init__(self, attributes: Sequence[str]) -> None:
        """From canonical names: dotted paths, with back-quotes where a part needs them."""
        if len(set(attributes)) < len(attributes):
            twice = next(name for name, count in Counter(attributes).items() if count > 1)
            raise OptionError(f"the attribute {twice!r:.80} is asked for twice: name it once")
        self.attributes = tuple(attributes)
        self._found_as = Attributes(self.attributes)

    def read(self, events: Any, json: str | Sequence[str] = ()) -> TypedReading:
        """Read a batch in any of the forms of ``model/events/reader.py``. O(values).

        ``json`` names columns of a table whose text is JSON objects.
        """
        pieces = _Pieces()
        reader = EventReader(self._found_as, pieces, json)
        n_events = reader.read(events)
        typed, rejects = pieces.typed(len(self.attributes), n_events), reader.rejected()
        if rejects:
            rows = [row for row, _ in rejects]
            for array in typed[:3]:
                array[:, rows] = 0
        return TypedReading(typed, n_events, rejects)
