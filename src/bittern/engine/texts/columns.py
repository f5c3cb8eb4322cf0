"""Columns of texts to shapes and parameters: by kernels where a key is known, else by ``Shapes``.

What comes out is what ``Shapes.read`` gives for one text after the other, in that order: the same
templates under the same numbers, the same mistakes at the same positions. A block of texts goes
through four steps::

    cut         kernel    words of each text, and the number of its key          words.py
    resolve     Python    texts with a new key, or that are not plain, are read by ``Shapes``, in
                          order. It knows the key then: which words are parameters, which shape
    sort        kernel    once there are many keys, as ``Shapes`` does it        conjunctions.py
    collect     kernel    the parameters of all texts, as numbers of distinct ones

A key with checks (dates, patterns) is checked text by text, with what ``Shapes`` remembers.

Cost: 0.1 us for each word, and what ``Shapes`` takes for each key.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import Int32s, Int64s, starts_of, stretches
from bittern.engine.texts.conjunctions import number_pieces, sort_pieces
from bittern.engine.texts.distinct import DISTINCT, Distinct, number_of
from bittern.engine.texts.words import (
    CUT_TEXTS,
    FIRST_LETTER,
    LETTERS,
    NOT_PLAIN,
    READING_TABLES,
    CutTexts,
    cut_texts,
)
from bittern.errors import ExpressionError
from bittern.growing import GrowingColumn
from bittern.jit import frozen, i4r, i4w, i8, i8r, kernel, read_only, tuple_type, u1r
from bittern.language.shapes import KnownKey, Shapes
from bittern.model.strings import arrow_of, arrow_strings

#: A block of texts ends after so many of them, or so many bytes.
_TEXTS, _BYTES = 16_384, 1 << 20
#: More words than a text has.
_PLACES = range(1 << 20)
_LETTER = re.compile(rb"([\x80-\xff])")
#: What stands in place of a key's place: it is not known, or the text is bad.
_UNKNOWN, _BAD = -1, -2
#: Distinct parameters.
_MOST = 2**31 - 1


_NONE = np.empty(0, dtype=np.int64)
_NO_BYTES = np.empty(0, dtype=np.uint8)
_NO_TEXTS = CutTexts(read_only(_NO_BYTES), read_only(_NONE), _NONE, _NONE, _NO_BYTES, _NONE)


class _Others(NamedTuple):
    """Parameters of texts that ``Shapes`` has read, and where those of each begin."""

    data: npt.NDArray[np.uint8]
    offsets: Int64s
    firsts: Int64s


class _Parameters(NamedTuple):
    """Which words of a text are its parameters, by the place of its key."""

    starts: Int64s
    words: Int64s


_OTHERS = tuple_type(_Others, u1r, i8r, i8r)
_PARAMETERS = tuple_type(_Parameters, i8r, i8r)


@kernel(i8, CUT_TEXTS, i8r, i4r, _OTHERS, _PARAMETERS, DISTINCT, i4w)
def _collect(
    texts: Any,
    first_words: Any,
    places: Any,
    others: Any,
    parameters: Any,
    distinct: Any,
    codes: Any,
) -> Any:
    """Number the parameters of each text: those of a key from its words, else the next others."""
    n, n_others = 0, 0
    for text in range(len(places)):
        place = places[text]
        if place >= 0:
            for i in range(parameters.starts[place], parameters.starts[place + 1]):
                word = first_words[text] + parameters.words[i]
                start, stop = texts.starts[word], texts.stops[word]
                codes[n] = number_of(distinct, texts.data, start, stop, _MOST)
                n += 1
        elif place == _UNKNOWN:
            for i in range(others.firsts[n_others], others.firsts[n_others + 1]):
                start, stop = others.offsets[i], others.offsets[i + 1]
                codes[n] = number_of(distinct, others.data, start, stop, _MOST)
                n += 1
            n_others += 1
    return n


class _Keys:
    """Keys by their numbers, and the places of those that are known in ``ColumnReader``."""

    def __init__(self) -> None:
        self.strings = Distinct()
        #: The place of each key, -1 if it is not known.
        self.places = np.empty(0, dtype=np.int32)
        #: Keys that ``Shapes`` will not know any more, as it has many.
        self.strange: set[int] = set()

    def of(self, numbers: Int32s) -> Int32s:
        """The places of the keys with these numbers; a negative number has none."""
        more = len(self.strings) - len(self.places)
        if more > 0:
            none = np.full(max(more, len(self.places)), _UNKNOWN, dtype=np.int32)
            self.places = np.concatenate((self.places, none))
        if not len(self.places):
            return np.full(len(numbers), _UNKNOWN, dtype=np.int32)
        return np.where(numbers >= 0, self.places[numbers], np.int32(_UNKNOWN))


class ColumnReader:
    """Reads columns of texts, one after the other. One thread at a time."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self._words = Distinct()
        self._codes: list[Int32s] = []
        self.keys, self.sorted_keys = _Keys(), _Keys()
        self._pieces = Distinct()
        self._piece_keys: list[str] = []
        self._ranks = np.empty(0, dtype=np.int32)
        # By place: what ``Shapes`` knows of a key, its shape or -1, and which words it takes.
        self.known: list[KnownKey] = []
        self.shape_ids = GrowingColumn(np.empty(0, dtype=np.int32))
        self.parameter_words = GrowingColumn(np.empty(0, dtype=np.int64))
        self.parameter_starts = GrowingColumn(np.zeros(1, dtype=np.int64))

    def read(self, texts: pa.Array) -> tuple[Int32s, list[tuple[int, ExpressionError]]]:
        """Read texts without NULL: the shape of each, and which are bad (with shape -1).

        The parameters of all good texts so far are ``parameters``. O(total length)
        """
        data, offsets, _ = arrow_strings(texts)
        shape_ids = np.empty(len(texts), dtype=np.int32)
        bad: list[tuple[int, ExpressionError]] = []
        for begin in range(0, len(texts), _TEXTS):
            own = offsets[begin : begin + _TEXTS + 1]
            for first, last in stretches(own, _BYTES):
                cut, numbers = self._cut(data, own[first : last + 1])
                reading = _Reading(self, cut, numbers)
                reading.resolve()
                shape_ids[begin + first : begin + last] = reading.shape_ids
                bad += [(begin + first + row, wrong) for row, wrong in reading.bad]
                of_others = reading.others, reading.n_others
                self._collect(cut, reading.first_words, reading.places, *of_others)
        return shape_ids, bad

    def mark(self) -> int:
        """What ``codes_since`` and ``forget`` take."""
        return len(self._codes)

    def codes_since(self, mark: int) -> Int32s:
        """The numbers of the parameters that were read since."""
        return np.concatenate([np.empty(0, dtype=np.int32), *self._codes[mark:]])

    def forget(self, mark: int) -> None:
        """Forget the parameters that were read since."""
        del self._codes[mark:]

    def word(self, code: int) -> str:
        """The parameter of a number."""
        return self._words[code].decode()

    def parameters(self) -> pa.DictionaryArray:
        """The parameters of all good texts, one after the other."""
        codes = np.concatenate([np.empty(0, dtype=np.int32), *self._codes])
        self._codes = [codes]
        indices = pa.Array.from_buffers(pa.int32(), len(codes), [None, pa.py_buffer(codes)])
        return pa.DictionaryArray.from_arrays(indices, self._words.to_arrow())

    def take(self, parameters: list[tuple[str, ...]]) -> None:
        """The parameters of texts that ``Shapes`` has read, behind those of all texts so far."""
        places = np.full(len(parameters), _UNKNOWN, dtype=np.int32)
        first_words = np.zeros(len(parameters) + 1, dtype=np.int64)
        others = [each for own in parameters for each in own]
        self._collect(_NO_TEXTS, first_words, places, others, list(map(len, parameters)))

    def _cut(self, data: npt.NDArray[np.uint8], offsets: Int64s) -> tuple[CutTexts, Int32s]:
        """Texts cut into words, and the numbers of their keys."""
        size, n = int(offsets[-1] - offsets[0]), len(offsets) - 1
        # Each word has a byte at least; those of conjunctions are written twice.
        starts, stops = (np.empty(2 * size + n, dtype=np.int64) for _ in range(2))
        letters, first_words = np.empty(size, dtype=np.uint8), np.empty(n + 1, dtype=np.int64)
        own = read_only(data), read_only(offsets)
        texts = CutTexts(*own, starts, stops, letters, first_words)
        numbers = np.empty(n, dtype=np.int32)
        cut_texts(texts, READING_TABLES, self.keys.strings.make_room(n, size), numbers)
        return texts, numbers

    def _collect(
        self,
        texts: CutTexts,
        first_words: Int64s,
        places: Int32s,
        others: list[str],
        n_others: list[int],
    ) -> None:
        data, offsets, _ = arrow_strings(arrow_of(others))
        starts, used = self.parameter_starts.items, places[places >= 0]
        n = int((starts[used + 1] - starts[used]).sum()) + len(others)
        codes = np.empty(n, dtype=np.int32)
        _collect(
            texts,
            first_words,
            places,
            frozen(_Others(data, offsets, starts_of(n_others))),
            frozen(_Parameters(starts, self.parameter_words.items)),
            self._words.make_room(n, len(texts.letters) + len(data)),
            codes,
        )
        self._codes.append(codes)

    def learn(self, keys: _Keys, number: int, key: str) -> int:
        """The place of a key that ``Shapes`` knows; -1 if it does not."""
        known = self.shapes.known_key(key)
        if known is None:
            return _UNKNOWN
        place = len(self.known)
        self.known.append(known)
        self.shape_ids.append(np.array([known.shape_id], dtype=np.int32))
        self.parameter_words.append(np.array(known.pick(_PLACES), dtype=np.int64))
        self.parameter_starts.append(np.array([len(self.parameter_words)]))
        keys.places[number] = place
        return place

    def whole_key(self, number: int) -> str:
        """A key as ``Shapes`` writes it."""
        return "\0".join(_parts(self.keys.strings[number]))

    def sorted_key(self, number: int) -> str:
        """The key of a sorted conjunction as ``Shapes`` writes it."""
        pieces = np.frombuffer(self.sorted_keys.strings[number], dtype="<i4").tolist()
        return "\1".join([self._piece_keys[piece] for piece in pieces])

    def sort(self, texts: CutTexts, rows: Int64s) -> tuple[Int64s, Int32s]:
        """Where the sorted words of these texts begin, and the numbers of their keys."""
        n_words = int(texts.first_words[-1])
        piece_of = np.empty(n_words, dtype=np.int32)
        number_pieces(
            texts, rows, self._pieces.make_room(n_words, 2 * len(texts.letters)), piece_of
        )
        for piece in range(len(self._piece_keys), len(self._pieces)):
            self._piece_keys.append("\0".join(_parts(self._pieces[piece])[1:-1]))
        if len(self._ranks) < len(self._piece_keys):
            order = sorted(range(len(self._piece_keys)), key=self._piece_keys.__getitem__)
            self._ranks = np.empty(len(order), dtype=np.int32)
            self._ranks[order] = np.arange(len(order), dtype=np.int32)
        keys = self.sorted_keys.strings.make_room(len(rows), 4 * n_words)
        sorted_words = np.empty(len(rows) + 1, dtype=np.int64)
        sorted_words[-1] = n_words
        numbers = np.empty(len(rows), dtype=np.int32)
        sort_pieces(texts, rows, piece_of, self._ranks, keys, sorted_words, numbers)
        return sorted_words, numbers


class _Reading:
    """One block of texts, as far as it has been read."""

    def __init__(self, reader: ColumnReader, texts: CutTexts, numbers: Int32s) -> None:
        self._reader = reader
        self._texts = texts
        self._numbers = numbers
        #: Where the words of each text begin.
        self.first_words = texts.first_words
        #: The place of each text's key; -1 if ``Shapes`` has read it, -2 if it is bad.
        self.places = reader.keys.of(numbers)
        self.shape_ids = np.empty(len(numbers), dtype=np.int32)
        self.bad: list[tuple[int, ExpressionError]] = []
        #: The parameters of texts that ``Shapes`` has read, and how many each has.
        self.others: list[str] = []
        self.n_others: list[int] = []
        self._sorted: dict[int, tuple[int, int]] = {}

    def resolve(self) -> None:
        """Find the shape of every text."""
        reader = self._reader
        of_places = np.append(reader.shape_ids.items, np.int32(_UNKNOWN))
        self.shape_ids[:] = of_places[self.places]  # the last for those that are not known
        waiting = np.flatnonzero(self.shape_ids < 0).tolist()
        numbers = self._numbers.tolist()
        many = False
        for i, row in enumerate(waiting):
            number, place = numbers[row], int(self.places[row])
            if number == NOT_PLAIN:
                self._read(row)
                continue
            if place < 0 and number >= 0:
                place = self._place_of(reader.keys, number)
            if place < 0 and not many and reader.shapes.has_many_keys:
                many = True
                self._sort(np.array(waiting[i:], dtype=np.int64))
            if place < 0 and many:
                first_word, number = self._sorted.get(row, (0, -1))
                if number >= 0:
                    self.first_words[row] = first_word
                    place = self._place_of(reader.sorted_keys, number)
            if place < 0 or not self._choose(row, place):
                self._read(row)

    def _place_of(self, keys: _Keys, number: int) -> int:
        place = int(keys.places[number])
        if place >= 0 or number in keys.strange:
            return place
        reader = self._reader
        is_whole = keys is reader.keys
        key = reader.whole_key(number) if is_whole else reader.sorted_key(number)
        place = reader.learn(keys, number, key)
        if place < 0 and is_whole and reader.shapes.has_many_keys:
            keys.strange.add(number)
        return place

    def _sort(self, rows: Int64s) -> None:
        """Sort those of the rows that are conjunctions."""
        rows = rows[(self._numbers[rows] != NOT_PLAIN) & (self.places[rows] < 0)]
        first_words, numbers = self._reader.sort(self._texts, rows)
        self._reader.sorted_keys.of(numbers)
        self.first_words = self.first_words.copy()
        found = zip(first_words.tolist(), numbers.tolist(), strict=False)
        self._sorted = dict(zip(rows.tolist(), found, strict=True))

    def _choose(self, row: int, place: int) -> bool:
        """Give a text the shape of its key, if its parameters are fine."""
        reader = self._reader
        shape_id = int(reader.shape_ids.items[place])
        if shape_id < 0:
            texts, first = self._texts, int(self.first_words[row])
            begin, end = reader.parameter_starts.items[place : place + 2].tolist()
            words = reader.parameter_words.items[begin:end] + first
            raws = tuple(
                texts.data[start:stop].tobytes().decode()
                for start, stop in zip(
                    texts.starts[words].tolist(), texts.stops[words].tolist(), strict=True
                )
            )
            shape_id = reader.shapes.choose(reader.known[place], raws)
            if shape_id < 0:
                return False
        self.places[row], self.shape_ids[row] = place, shape_id
        return True

    def _read(self, row: int) -> None:
        """Read a text that only ``Shapes`` can read."""
        first, last = self._texts.offsets[row : row + 2].tolist()
        raw = self._texts.data[first:last].tobytes()
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = raw.decode(errors="surrogateescape")  # which is refused
        try:
            shape_id, parameters = self._reader.shapes.read(text)
        except ExpressionError as wrong:
            self.places[row], self.shape_ids[row] = _BAD, -1
            self.bad.append((row, wrong))
            return
        self.places[row], self.shape_ids[row] = _UNKNOWN, shape_id
        self.others += parameters
        self.n_others.append(len(parameters))


def _parts(key: bytes) -> list[str]:
    """What stands between words, and the letters of words, in turn."""
    parts = [part.decode() for part in _LETTER.split(key)[::2]]
    letters = [LETTERS[byte - FIRST_LETTER] for byte in key if byte >= FIRST_LETTER]
    out = [*parts, *letters]
    out[::2], out[1::2] = parts, letters
    return out
