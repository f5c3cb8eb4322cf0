"""Conjunctions of unknown shape, as if their predicates were written in sorted order.

``Shapes._read_sorted`` says why. A *piece* is the key of one predicate; its rank is its place among
all pieces, in the order in which ``Shapes`` sorts them::

    words    b = 7 AND a BETWEEN 1 AND 3 AND c = 5
    pieces   a`=`n     a`BETWEEN n AND n     a`=`n        numbers 0 1 0, ranks 1 0 1
    sorted   a BETWEEN 1 AND 3 AND b = 7 AND c = 5        the words in this order
    key      1 0 0                                        numbers of pieces
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.engine.texts.distinct import DISTINCT, number_of
from bittern.engine.texts.words import AND, CUT_TEXTS, FIRST_LETTER, NAME, OR
from bittern.jit import i4r, i4w, i8r, i8w, inline, kernel, void
from bittern.language.limits import MAX_LENGTH
from bittern.model.strings import byte_at

#: Conjunctions of more predicates are left to the plain reader.
_MOST_PREDICATES = 256
#: So many pieces are kept, and so many keys.
_MOST_PIECES, _MOST_KEYS = 4096, 1 << 20
_BLANK = np.uint64(32)


@inline
def _is_blank(texts: Any, word: Any) -> Any:
    """Whether just a blank stands before a word."""
    before = texts.stops[word - 1]
    return texts.starts[word] - before == 1 and byte_at(texts.data, before) == _BLANK


@inline
def _is_conjunction(texts: Any, text: Any) -> Any:
    """Whether a text is nothing but predicates with a plain AND between them."""
    letters = texts.letters
    first, last = texts.first_words[text], texts.first_words[text + 1]
    if (
        first == last
        or texts.starts[first] != texts.offsets[text]
        or texts.stops[last - 1] != texts.offsets[text + 1]
        or letters[first] != NAME
    ):
        return False
    n = 0
    for word in range(first, last):
        if letters[word] == OR:
            return False
        if letters[word] == NAME:
            n += 1
            if word > first and (
                word < first + 2
                or letters[word - 1] != AND
                or not _is_blank(texts, word)
                or not _is_blank(texts, word - 1)
            ):
                return False
    return n <= _MOST_PREDICATES


@kernel(void, CUT_TEXTS, i8r, DISTINCT, i4w)
def number_pieces(texts: Any, chosen: Any, pieces: Any, piece_of: Any) -> None:
    """Number the pieces of some texts: each at its first word; -1 there if it is none."""
    data, letters = texts.data, texts.letters
    starts, stops = texts.starts, texts.stops
    scratch = np.empty(MAX_LENGTH, dtype=np.uint8)
    for text in chosen:
        first, last = texts.first_words[text], texts.first_words[text + 1]
        if not _is_conjunction(texts, text):
            if first < last:
                piece_of[first] = -1
            continue
        begin = first
        while begin < last:
            length, word = 0, begin
            while True:
                scratch[length] = FIRST_LETTER + letters[word]
                length += 1
                word += 1
                if word == last or (word + 1 < last and letters[word + 1] == NAME):
                    break
                for at in range(stops[word - 1], starts[word]):
                    scratch[length] = byte_at(data, at)
                    length += 1
            number = number_of(pieces, scratch, 0, length, _MOST_PIECES)
            piece_of[begin] = number
            if number < 0:
                piece_of[first] = -1
                break
            begin = word + 1


@kernel(void, CUT_TEXTS, i8r, i4r, i4r, DISTINCT, i8w, i4w)
def sort_pieces(
    texts: Any,
    chosen: Any,
    piece_of: Any,
    ranks: Any,
    keys: Any,
    sorted_words: Any,
    key_of: Any,
) -> None:
    """Write the words of some texts again, in sorted order, from ``sorted_words[-1]`` on.

    ``sorted_words`` says where those of each begin, ``key_of`` its key's number, or -1.
    """
    letters, starts, stops = texts.letters, texts.starts, texts.stops
    order = np.empty(_MOST_PREDICATES, dtype=np.int64)
    scratch = np.empty(4 * _MOST_PREDICATES, dtype=np.uint8)
    out = sorted_words[len(chosen)]
    for i in range(len(chosen)):
        first, last = texts.first_words[chosen[i]], texts.first_words[chosen[i] + 1]
        sorted_words[i] = out
        key_of[i] = -1
        if first == last or piece_of[first] < 0:
            continue
        n = 0
        for word in range(first, last):
            if letters[word] != NAME:
                continue
            rank = ranks[piece_of[word]]
            at = n
            while at > 0 and ranks[piece_of[order[at - 1]]] > rank:
                order[at] = order[at - 1]
                at -= 1
            order[at] = word
            n += 1
        for k in range(n):
            piece = piece_of[order[k]]
            for byte in range(4):
                scratch[4 * k + byte] = piece >> 8 * byte & 255
        key_of[i] = number_of(keys, scratch, 0, 4 * n, _MOST_KEYS)
        for k in range(n):
            word = order[k]
            while True:
                starts[out], stops[out] = starts[word], stops[word]
                out += 1
                word += 1
                if word == last or (word + 1 < last and letters[word + 1] == NAME):
                    break
            out += 1  # in place of the AND between two predicates
    sorted_words[len(chosen)] = out
