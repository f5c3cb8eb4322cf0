"""Members of any form, each in its one form, so that what is equal in the language is equal here.

::

    kind                 integers                   floats (their bits)    texts
    numbers              whole ones of 64 bits      1.5, 1e300, NaN, inf   0.1234567890123456789
    times, booleans      microseconds; 0 and 1
    strings                                                                all of them

A number is an integer if 64 bits hold it, else a float if it is what one stands for, else its own
digits (docs/decisions/0003-numbers.md). Arrays are read without a Python step for each member,
except decimals of more than 15 digits and lists that mix types of numbers. O(members x log members)
for the sorting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from decimal import Context, Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Int64s, Mask
from bittern.errors import OptionError, brief
from bittern.model.events.columns import plain, read_column
from bittern.model.events.utf8 import broken_strings
from bittern.model.numbers import BEYOND_INT64, INT64_MAX
from bittern.model.rank.space import BOOLEAN, KIND_NAMES, STRING, TIME
from bittern.stabbing.values import Values, canonical, fits, read

#: A number has at most so many digits, which is what decimals of Spark have.
MAX_DIGITS = 38
#: Integers of more bits are no members, and have one text for all: that of each would take hours.
_LONG_BITS, _LONG = 1 << 16, "long"
#: A set has at most so many members: positions in its tables are of 32 bits.
MAX_MEMBERS = 2**30
_NO_WORDS = np.empty(0, np.int64)
_NO_TEXTS = pa.array([], pa.large_string())
#: Up to these, a mantissa and a power of ten are floats, and their quotient is the nearest one.
_EXACT_MANTISSA, _EXACT_POWER = 10**15, 22
_POWER_IN_INT64 = 18
_DIGITS = Context(prec=50)  # the caller's own context must not matter


class Words(NamedTuple):
    """64-bit words, and the rows that they are the values of."""

    words: Int64s
    rows: npt.NDArray[np.int64]


class Parts(NamedTuple):
    """Values by the form that each of them has; a row that is in none has no value."""

    integers: Words
    floats: Words
    texts: pa.Array
    text_rows: npt.NDArray[np.int64]


class Content(NamedTuple):
    """What a set holds: a kind (None: it is empty), and the members, ascending, in their forms."""

    kind: int | None = None
    integers: Int64s = _NO_WORDS
    floats: Int64s = _NO_WORDS
    texts: pa.Array = _NO_TEXTS

    def __len__(self) -> int:
        return len(self.integers) + len(self.floats) + len(self.texts)

    def equals(self, other: Content) -> bool:
        """Whether both have the same members."""
        words = zip((self.integers, self.floats), (other.integers, other.floats), strict=True)
        same = all(np.array_equal(*each) for each in words)
        return same and self.kind == other.kind and self.texts.equals(other.texts)

    def with_added(self, other: Content) -> Content:
        """All members of both; ``OptionError`` if they are of different kinds. O(members)."""
        if not len(self) or not len(other):
            return self if len(self) else other
        self._check_kind(other)
        texts = pa.concat_arrays([self.texts, other.texts])
        return Content(
            self.kind,
            _ascending(np.concatenate((self.integers, other.integers))),
            _ascending(np.concatenate((self.floats, other.floats))),
            _sorted(texts),
        )

    def without(self, other: Content) -> Content:
        """Those that are not members of the other; ``OptionError`` if kinds differ. O(members)."""
        if not len(self) or not len(other):
            return self
        self._check_kind(other)
        gone = pc.is_in(self.texts, value_set=other.texts)
        return _of_kind(
            self.kind,
            np.setdiff1d(self.integers, other.integers, assume_unique=True),
            np.setdiff1d(self.floats, other.floats, assume_unique=True),
            self.texts.filter(pc.invert(gone)),
        )

    def _check_kind(self, other: Content) -> None:
        if self.kind != other.kind:
            raise OptionError(
                f"the set has {plural(self.kind)}, not {plural(other.kind)}: a set has members of "
                f"one kind"
            )


def plural(kind: int | None) -> str:
    """What the members of a kind are called in messages."""
    return "no members" if kind is None else f"{KIND_NAMES[kind]}s"


def _of_kind(kind: int | None, integers: Int64s, floats: Int64s, texts: pa.Array) -> Content:
    found = Content(kind, integers, floats, texts)
    return found if len(found) else Content()


def _ascending(words: Int64s) -> Int64s:
    """Each word once, in order; NumPy's own ``unique`` hashes first, which takes longer."""
    words = np.sort(words)
    kept = np.ones(len(words), np.bool_)
    np.not_equal(words[1:], words[:-1], out=kept[1:])
    return words[kept]


def _sorted(texts: pa.Array) -> pa.Array:
    """Each text once, in the order of their bytes."""
    texts = texts.take(pc.array_sort_indices(texts))
    kept = np.ones(len(texts), np.bool_)
    kept[1:] = pc.not_equal(texts[1:], texts[:-1]).to_numpy(zero_copy_only=False)
    return texts.filter(pa.array(kept))


def content_of(members: Any) -> Content:
    """Read members of any form; ``OptionError`` says what cannot be one. O(n log n)."""
    values = _read(members)
    if len(values.data) > MAX_MEMBERS:
        raise OptionError(f"a set has at most {MAX_MEMBERS:,} members, not {len(values.data):,}")
    if len(values.valid) and not values.valid.all():
        raise OptionError(
            f"members of a set cannot be NULL, but member {int(np.argmin(values.valid))} is: "
            f"leave it out"
        )
    if not len(values.data) or values.kind is None:
        return Content()
    parts = parts_of(values)
    if values.kind == TIME and len(parts.integers.rows) < len(values.data):
        raise OptionError("a member is a time whose microseconds do not fit in 64 bits: round it")
    _check_texts(values.kind, parts.texts)
    return _of_kind(
        values.kind,
        _ascending(parts.integers.words),
        _ascending(parts.floats.words),
        _sorted(parts.texts),
    )


def _check_texts(kind: int, texts: pa.Array) -> None:
    if kind == STRING:
        broken = broken_strings(texts)
        if len(broken):
            raise OptionError(f"member {broken[0]} is a string that is not valid UTF-8")
        return
    for text in texts.to_pylist():  # numbers that neither 64 bits nor a float hold: few
        if text == _LONG:
            raise OptionError(
                f"a member has more than {_LONG_BITS // 4:,} digits: at most {MAX_DIGITS} are held"
            )
        digits = text.lstrip("-").partition("e")[0]
        if len(digits) > MAX_DIGITS:
            raise OptionError(
                f"a member has {len(digits)} digits; at most {MAX_DIGITS} are possible"
            )


def _read(members: Any) -> Values:
    """Members as values of one kind."""
    if isinstance(members, str | bytes | Mapping) or not isinstance(members, Iterable):
        raise OptionError(
            f"the members of a set are a list, a set or an array, not {brief(members)}"
        )
    if not hasattr(members, "__len__") or isinstance(members, AbstractSet):
        members = list(members)
    if isinstance(members, list | tuple) and (bools := [isinstance(m, bool) for m in members]):
        if any(bools) and not all(bools):
            raise OptionError(
                "the members mix booleans with other values; give members of one kind"
            )
        members = pa.array(members, pa.bool_()) if all(bools) else members
    elif getattr(members, "dtype", None) == np.dtype(bool):
        members = pa.array(members)
    if isinstance(members, pa.Array | pa.ChunkedArray) and pa.types.is_boolean(members.type):
        column = read_column(plain(members))
        assert column.values is not None, "booleans have values"
        return Values(BOOLEAN, column.values, column.valid)
    values = read(members, "the members")
    if values.kind == STRING:
        return values._replace(data=values.data.cast(pa.large_string()))
    return values


def parts_of(values: Values, *, only_integers: bool = False) -> Parts:
    """The values, each in its one form; those that are NULL are in none. O(n).

    ``only_integers`` leaves out what takes another form, where it does not matter.
    """
    rows, data = np.flatnonzero(values.is_valid), values.present()
    none = Words(_NO_WORDS, _NO_WORDS)
    if values.kind is None:
        return Parts(none, none, _NO_TEXTS, _NO_WORDS)
    if values.kind == STRING:
        return Parts(none, none, data, rows)
    if values.kind == TIME:
        return Parts(_microseconds(data, values.scale, rows), none, _NO_TEXTS, _NO_WORDS)
    if data.dtype == np.int64 and values.scale:
        return _of_decimals(data, values.scale, rows, only_integers=only_integers)
    if data.dtype == np.int64:
        return Parts(Words(data, rows), none, _NO_TEXTS, _NO_WORDS)
    if data.dtype == np.float64:
        whole = _are_whole(data)
        integers = Words(data[whole].astype(np.int64), rows[whole])
        return Parts(integers, Words(_bits(data[~whole]), rows[~whole]), _NO_TEXTS, _NO_WORDS)
    return _one_by_one(data.tolist(), rows)


def _are_whole(data: npt.NDArray[np.float64]) -> Mask:
    """Which floats stand for integers of 64 bits."""
    inside = (data >= -BEYOND_INT64) & (data < BEYOND_INT64)
    return np.asarray(inside & (data == np.floor(data)))


def _bits(data: npt.NDArray[np.float64]) -> Int64s:
    """The bits of floats; of NaN, which has many, always the same."""
    return np.where(np.isnan(data), np.nan, data).view(np.int64)


def _microseconds(data: Int64s, scale: int, rows: npt.NDArray[np.int64]) -> Words:
    """Times in microseconds, as far as these hold them."""
    factor = 10 ** abs(scale)
    if scale > 0:
        words, rest = np.divmod(data, factor)
        kept = rest == 0
    else:
        most = INT64_MAX // factor
        kept = (data <= most) & (data >= -most)
        words = np.where(kept, data, 0) * factor
    return Words(words[kept], rows[kept])


def _of_decimals(
    data: Int64s, scale: int, rows: npt.NDArray[np.int64], *, only_integers: bool
) -> Parts:
    """Numbers ``data * 10**-scale``."""
    none = Words(_NO_WORDS, _NO_WORDS)
    if 0 < scale <= _POWER_IN_INT64:
        units, rest = np.divmod(data, 10**scale)
        whole = rest == 0
    else:
        units, whole = data, data == 0
    integers = Words(units[whole], rows[whole])
    if only_integers and scale > 0:
        return Parts(integers, none, _NO_TEXTS, _NO_WORDS)
    short = (data > -_EXACT_MANTISSA) & (data < _EXACT_MANTISSA) & (0 < scale <= _EXACT_POWER)
    short &= ~whole
    floats = Words(_bits(data[short] / 10.0**scale), rows[short]) if short.any() else none
    others = ~whole & ~short
    long = [Decimal(each).scaleb(-scale, _DIGITS) for each in data[others].tolist()]
    slow = _one_by_one([canonical(each) for each in long], rows[others])
    return Parts(
        _joined(integers, slow.integers), _joined(floats, slow.floats), slow.texts, slow.text_rows
    )


def _joined(one: Words, other: Words) -> Words:
    return Words(*map(np.concatenate, zip(one, other, strict=True)))


def _one_by_one(numbers: list[Any], rows: npt.NDArray[np.int64]) -> Parts:
    """Canonical numbers (``stabbing/values.py``) of any form."""

    def which(is_it: Callable[[Any], bool]) -> tuple[list[Any], npt.NDArray[np.int64]]:
        places = [place for place, number in enumerate(numbers) if is_it(number)]
        return [numbers[place] for place in places], rows[places]

    integers, integer_rows = which(fits)
    floats, float_rows = which(lambda number: isinstance(number, float))
    others, text_rows = which(lambda number: not (isinstance(number, float) or fits(number)))
    return Parts(
        Words(np.array(integers, np.int64), integer_rows),
        Words(_bits(np.array(floats, np.float64)), float_rows),
        pa.array(map(_digits, others), pa.large_string()),
        text_rows,
    )


def _digits(number: int | Decimal) -> str:
    """The one text of a number that neither 64 bits nor a float hold."""
    if isinstance(number, int) and number.bit_length() > _LONG_BITS:
        return _LONG
    sign, digits, exponent = Decimal(number).as_tuple()
    assert isinstance(exponent, int), "it is finite"
    text = "".join(map(str, digits))
    short = text.rstrip("0")
    return f"{'-' if sign else ''}{short}e{exponent + len(text) - len(short)}"
