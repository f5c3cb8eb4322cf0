"""One set: immutable tables that values are looked up in, one look-up for each value.

Integers, times and booleans are found in one word table, the bits of floats in another
(``model/words.py``), strings in a string table (``model/strings.py``), which also has the digits of
numbers that neither of the others holds. Threads may share a set, and its arrays may be mapped.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import prefixed, under
from bittern.engine.sets.content import Content, content_of, parts_of, plural
from bittern.errors import OptionError, SnapshotError
from bittern.model.events.columns import plain, read_column
from bittern.model.rank.space import BOOLEAN, NUMBER, STRING, TIME
from bittern.model.strings import StringTable, arrow_strings, arrow_text
from bittern.model.words import WordTable
from bittern.stabbing.values import Values, canonical, cheapest
from bittern.terms.scope import MeaninglessError

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_KINDS = (NUMBER, TIME, BOOLEAN, STRING)
#: As saved: what an empty set has in place of a kind.
_NO_KIND = 255


class Members:
    """The members of a set: ``len``, ``in`` and iteration see Python values."""

    def __init__(
        self, kind: int | None, integers: WordTable, floats: WordTable, texts: StringTable
    ) -> None:
        self.kind = kind
        self._integers = integers
        self._floats = floats
        self._texts = texts
        self._count = len(integers) + len(floats) + len(texts)

    @classmethod
    def of(cls, members: Any) -> Members:
        """From a list, a set, or an array of NumPy, Arrow, pandas or polars. O(n log n).

        Members are numbers, strings, booleans or times, all of one kind; None is refused.
        """
        return members if isinstance(members, Members) else cls.of_content(content_of(members))

    @classmethod
    def of_content(cls, content: Content) -> Members:
        """From members that have been read already. O(members)."""
        data, offsets, _ = arrow_strings(content.texts)
        start = int(offsets[0])
        texts = StringTable.build(data[start : int(offsets[-1])], offsets - start, 0)
        return cls(
            content.kind, WordTable.build(content.integers), WordTable.build(content.floats), texts
        )

    def content(self) -> Content:
        """The members again. O(members x log members)."""
        table = self._texts.as_tuple
        texts = arrow_text(table.data, table.offsets)
        return Content(self.kind, self._integers.words(), self._floats.words(), texts)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<bittern set of {len(self):,} {plural(self.kind)}>"

    def __iter__(self) -> Iterator[Any]:
        """The members as Python values, of each form in ascending order."""
        content = self.content()
        whole = content.integers.tolist()
        if self.kind == BOOLEAN:
            yield from map(bool, whole)
        elif self.kind == TIME:
            yield from (_EPOCH + dt.timedelta(microseconds=each) for each in whole)
        else:
            yield from whole
        yield from content.floats.view(np.float64).tolist()
        texts = content.texts.to_pylist()
        yield from texts if self.kind == STRING else map(Decimal, texts)

    def to_arrow(self) -> pa.Array:
        """The members as an array of one type; ``OptionError`` if no type holds all of them."""
        content = self.content()
        if self.kind == TIME:
            return pa.array(content.integers).view(pa.timestamp("us", "UTC"))
        if self.kind == BOOLEAN:
            return pa.array(content.integers != 0)
        if self.kind != NUMBER:
            return content.texts
        if not len(content.floats) and not len(content.texts):
            return pa.array(content.integers)
        doubles = content.integers.astype(np.float64)
        if len(content.texts) or not np.array_equal(doubles.astype(np.int64), content.integers):
            raise OptionError(
                "no column type holds all numbers of this set exactly: write JSON lines"
            )
        return pa.array(np.concatenate((doubles, content.floats.view(np.float64))))

    def __contains__(self, value: Any) -> bool:
        """Whether one Python value is a member; of another kind than the members, it is not."""
        if value is None:
            return False
        try:
            kind, *asked = content_of([value])
            if kind != self.kind:
                return False
        except OptionError:  # it could not be a member of any set
            return False
        integers, floats, texts = asked
        data, offsets, _ = arrow_strings(texts)
        found = (
            *self._integers.find_batch(integers),
            *self._floats.find_batch(floats),
            *(self._texts.find_batch(data, offsets, 0) >= 0),
        )
        return bool(found[0])

    def holds(self, array: pa.Array, name: str) -> pa.Array:
        """For each value of an Arrow array whether it is a member: TRUE, FALSE or NULL. O(values).

        ``MeaninglessError`` if the values are of another kind than the members of this set, which
        goes by this ``name``.
        """
        array = plain(array)
        if array.null_count == len(array):
            return pa.nulls(len(array), pa.bool_())
        column = read_column(array)
        if column.kind < 0:
            raise MeaninglessError(f"{name} has {plural(self.kind)}, not {array.type}")
        if self.kind is None:
            return pa.array(np.zeros(len(array), np.bool_), mask=_nulls(column.valid))
        if column.kind != self.kind:
            raise MeaninglessError(f"{name} has {plural(self.kind)}, not {plural(column.kind)}")
        if column.exact:
            numbers = (0 if each is None else canonical(each) for each in array.to_pylist())
            values = Values(NUMBER, cheapest(numbers), column.valid)
        else:
            data = array if column.kind == STRING else np.ascontiguousarray(column.values)
            values = Values(column.kind, data, column.valid, column.scale)
        return pa.array(self._found(values, len(array)), mask=_nulls(column.valid))

    def has(self, value: int | bytes, kind: int, name: str) -> bool:
        """Whether one integer, time in microseconds or UTF-8 text is a member, as ``holds`` says.

        ``kind`` is its kind. O(1).
        """
        if self.kind is None:
            return False
        if kind != self.kind:
            raise MeaninglessError(f"{name} has {plural(self.kind)}, not {plural(kind)}")
        if isinstance(value, bytes):
            return self._texts.find_one(value, 0) >= 0
        return self._integers.find_one(value)

    def _found(self, values: Values, n: int) -> npt.NDArray[np.bool_]:
        found = np.zeros(n, np.bool_)
        only_integers = not len(self._floats) and not len(self._texts)
        parts = parts_of(values, only_integers=only_integers)
        found[parts.integers.rows] = self._integers.find_batch(parts.integers.words)
        if only_integers:
            return found
        found[parts.floats.rows] = self._floats.find_batch(parts.floats.words)
        if len(parts.text_rows):
            data, offsets, _ = arrow_strings(parts.texts)
            found[parts.text_rows] = self._texts.find_batch(data, offsets, 0) >= 0
        return found

    # -- snapshots -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """To be saved."""
        out = prefixed("integers.", self._integers.arrays())
        out |= prefixed("floats.", self._floats.arrays())
        out |= prefixed("texts.", self._texts.arrays())
        out["kind"] = np.array([_NO_KIND if self.kind is None else self.kind], np.uint8)
        return out

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Members:
        """The set again, in place."""
        kinds = arrays["kind"]
        if len(kinds) != 1 or (kind := int(kinds[0])) not in (*_KINDS, _NO_KIND):
            raise SnapshotError("damaged set: it has no kind")
        return cls(
            None if kind == _NO_KIND else kind,
            WordTable.from_arrays(under(arrays, "integers.")),
            WordTable.from_arrays(under(arrays, "floats.")),
            StringTable.from_arrays(under(arrays, "texts.")),
        )

    @property
    def nbytes(self) -> int:
        """What the arrays occupy."""
        return sum(array.nbytes for array in self.arrays().values())

    def check(self) -> None:
        """Verify all that look-ups trust; AssertionError or SnapshotError. O(bytes)."""
        self._integers.check()
        self._floats.check()
        self._texts.check()
        assert (self.kind is None) == (len(self) == 0), "an empty set has a kind, or another none"
        assert self.kind == NUMBER or not len(self._floats), "floats are in a set of another kind"
        own = {NUMBER: True, STRING: not len(self._integers)}
        assert own.get(self.kind or 0, not len(self._texts)), "a set has members of another kind"


def _nulls(valid: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_] | None:
    return valid == 0 if len(valid) else None
