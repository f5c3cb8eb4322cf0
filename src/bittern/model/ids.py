"""Subscription ids: any strings or 64-bit integers, by position.

``values`` is an Arrow array of int64 if all ids are integers, else of strings; ``are_integers``
then marks the strings that stand for integers (it is empty if none does), so that 1 and "1" differ.
An id of a subclass of ``str``, or of another library's integer type, counts as the plain one.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.model.numbers import INT64_MAX, INT64_MIN
from bittern.model.strings import (
    StringTable,
    arrow_integers,
    arrow_of,
    arrow_strings,
    arrow_text,
)

#: So few ids are taken one by one: a call of Arrow takes as long as some dozen of them.
_FEW = 12


class Ids:
    """Ids in the order of their subscriptions. Immutable; look-ups build a hash table once."""

    def __init__(
        self, values: pa.Array, are_integers: npt.NDArray[np.uint8], parts: Sequence[Ids] = ()
    ) -> None:
        self._values = values
        self._marked = are_integers
        self._parts = parts  # joined on first use: matching often needs no ids
        self._table: StringTable | None = None
        self._ranks: npt.NDArray[np.int64] | None = None

    @classmethod
    def of(cls, ids: Sequence[Any], *, text: bool = False) -> Ids:
        """From Python ids, which are plain strings or integers (``normal_id``).

        Where there are none, ``text`` says what they would be.
        """
        none = np.empty(0, dtype=np.uint8)
        kinds = {type(each) for each in ids}
        if kinds <= {int} and not (text and not kinds):
            return cls(arrow_integers(np.array(ids, dtype=np.int64)), none)
        if kinds <= {str}:
            return cls(arrow_of(ids), none)
        marks = np.array([isinstance(each, int) for each in ids], dtype=np.uint8)
        return cls(arrow_of([str(each) for each in ids]), marks)

    @classmethod
    def joined(cls, parts: Sequence[Ids]) -> Ids:
        """Ids of several indexes, one after the other. O(1); joined when first looked at."""
        if len(parts) == 1:
            return parts[0]
        return cls(None, np.empty(0, dtype=np.uint8), parts)

    def _join(self) -> None:
        parts = [part for part in self._parts if len(part)] or self._parts[:1]
        if all(part.is_int64 for part in parts) or not any(
            part.is_int64 or len(part.are_integers) for part in parts
        ):
            self._values = pa.concat_arrays([part.values for part in parts])
        else:
            self._marked = np.concatenate([part.marks() for part in parts])
            texts = [part.values.cast(pa.large_string()) for part in parts]
            self._values = pa.concat_arrays(texts)

    @property
    def values(self) -> pa.Array:
        """The ids as an Arrow array: integers, or text if any is a string."""
        if self._values is None:
            self._join()
        return self._values

    @property
    def are_integers(self) -> npt.NDArray[np.uint8]:
        """Where ids are text, 1 for each that stands for an integer; empty if none does."""
        if self._values is None:
            self._join()
        return self._marked

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_int64(self) -> bool:
        """Whether all ids are integers."""
        return bool(pa.types.is_integer(self.values.type))

    def marks(self) -> npt.NDArray[np.uint8]:
        """1 for each id that is an integer."""
        if self.is_int64:
            return np.ones(len(self), dtype=np.uint8)
        return self.are_integers if len(self.are_integers) else np.zeros(len(self), dtype=np.uint8)

    def take(self, positions: npt.ArrayLike) -> list[str | int]:
        """The ids at these positions. A few do not make parts be joined."""
        positions = np.asarray(positions)
        if len(positions) <= _FEW:
            return list(map(self._one, positions.tolist()))
        found: list[str | int] = self.take_arrow(positions).to_pylist()
        if len(self.are_integers):
            marks = self.are_integers[positions]
            return [int(each) if mark else each for each, mark in zip(found, marks, strict=True)]
        return found

    def _one(self, position: int) -> str | int:
        """The id at a position, which is not negative."""
        if self._values is None:
            for part in self._parts:
                if position < len(part):
                    return part._one(position)  # noqa: SLF001  another of its kind
                position -= len(part)
            raise IndexError("there is no such position")
        found: str | int = self._values[position].as_py()
        return int(found) if len(self._marked) and self._marked[position] else found

    def take_arrow(self, positions: npt.NDArray[np.int32]) -> pa.Array:
        """The ids at these positions as an Arrow array (text, if some are strings)."""
        return self.values.take(arrow_integers(positions))

    def find(self, id_: str | int) -> int:
        """The position of an id, or -1. O(1) after the first call, which is O(n)."""
        id_ = normal_id(id_)
        if id_problem(id_) is not None:
            return -1
        return self._by_text().find_one(str(id_).encode(), int(isinstance(id_, int)))

    def find_many(self, ids: Sequence[str | int]) -> npt.NDArray[np.int32]:
        """The positions of ids as ``normal_id`` returns them and without problems, or -1."""
        given = Ids.of(ids)
        data, offsets, _ = arrow_strings(given.values.cast(pa.large_string()))
        return self._by_text().find_batch(data, offsets, given.marks().astype(np.int32))

    def _by_text(self) -> StringTable:
        if self._table is None:
            data, offsets, _ = arrow_strings(self.values.cast(pa.large_string()))
            self._table = StringTable.build(data, offsets, self.marks().astype(np.int32))
        return self._table

    def ranks(self) -> npt.NDArray[np.int64]:
        """The place of each id among all ids in order: integers first, then strings by bytes."""
        if self._ranks is None:
            import pyarrow.compute as pc  # noqa: PLC0415  half of what all imports take

            if len(self.are_integers):
                marks = self.are_integers
                numbers = np.array(
                    [
                        int(t) if m else 0
                        for t, m in zip(self.values.to_pylist(), marks, strict=True)
                    ]
                )
                texts = np.asarray(pc.rank(self.values, tiebreaker="first"))
                order = np.lexsort((np.where(marks, 0, texts), numbers, 1 - marks))
            else:
                order = np.asarray(pc.sort_indices(self.values))
            ranks = np.empty(len(order), dtype=np.int64)
            ranks[order] = np.arange(len(order))
            self._ranks = ranks
        return self._ranks

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """To be saved."""
        if self.is_int64:
            return {"integers": self.values.to_numpy(zero_copy_only=False)}
        data, offsets, _ = arrow_strings(self.values)
        start = int(offsets[0])
        return {
            "data": data[start : int(offsets[-1])],
            "offsets": offsets - start,
            "are_integers": self.are_integers,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Ids:
        """The ids again, in place."""
        if "integers" in arrays:
            return cls(arrow_integers(arrays["integers"]), np.empty(0, dtype=np.uint8))
        return cls(arrow_text(arrays["data"], arrays["offsets"]), arrays["are_integers"])


def normal_id(id_: Any) -> Any:
    """An id as a plain ``str`` or ``int``, if it is one in another guise, such as NumPy's int64.

    A member of an enumeration of strings or integers is its value.
    """
    if type(id_) is str or type(id_) is int or isinstance(id_, bool):
        return id_
    if isinstance(id_, str):
        return str.__str__(id_)  # whatever the subclass prints
    try:
        return operator.index(id_)
    except TypeError:
        return id_


def id_problem(id_: Any) -> str | None:
    """What is wrong with an id that is as ``normal_id`` returns it, if anything."""
    if isinstance(id_, bool) or not isinstance(id_, str | int):
        return f"an id must be a string or an integer, not {type(id_).__name__}"
    if isinstance(id_, int) and not INT64_MIN <= id_ <= INT64_MAX:
        return "an integer id must fit in 64 bits"
    if isinstance(id_, str):
        try:
            id_.encode()
        except UnicodeEncodeError:
            return "an id holds half a surrogate pair"
    return None
