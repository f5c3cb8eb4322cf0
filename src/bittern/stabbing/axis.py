"""A line that is cut by the ends of intervals; every value of one kind has a place on it.

A rank space (``model/rank/space.py``) with a single channel. Its m constants, the distinct ends,
cut the line into 2m + 1 *places*, and a value has one of them::

    ends 10, 99.5    place   0: (.. 10)   1: 10   2: (10 .. 99.5)   3: 99.5   4: (99.5 ..)

Comparisons are those of the language, exact whatever the types (``model/numbers.py``). Constants
take the cheapest of three forms that holds them exactly, and values of any form meet all of them:

int64     whole numbers, and times in their unit
float64   numbers of which each is what a float stands for
objects   everything else: integers beyond 64 bits, or beyond 2**53 beside fractions, long decimals

Values that are int64 or float64 arrays or strings are placed by compiled kernels in every form:
by one table look-up among dense integers, by a step or two (``guide``) among other numbers that
floats hold, else by a binary search. Decimals take arithmetic on whole arrays if the constants are
int64; else they go one by one, some ten microseconds each.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bittern.arrays import Int32s, prefixed, under
from bittern.jit import frozen
from bittern.model.distinct import distinct
from bittern.model.numbers import (
    BEYOND_INT64,
    INT64_MAX,
    INT64_MIN,
    WHOLE_FLOATS,
    NumberColumns,
    exact,
)
from bittern.model.rank.cells import float_pairs, integer_pairs, string_pairs
from bittern.model.rank.space import (
    COUNT,
    DIRECT,
    FINE,
    NUMBER,
    STRING,
    RankArrays,
    build_rank_space,
)
from bittern.model.strings import StringTable, arrow_strings, arrow_text
from bittern.stabbing.guide import Guide
from bittern.stabbing.values import Values, canonical, cheapest, decimals, fits, nearest_float

_CELL_SHIFT, _ROW_MASK = np.uint64(32), np.uint64(0xFFFFFFFF)
_NO_STRINGS = pa.array([], pa.large_binary())


class Axis:
    """The places of values among constants; immutable. ``kind`` None: there are no constants."""

    def __init__(
        self, kind: int | None, scale: int, constants: Any, rank: RankArrays, guide: Guide | None
    ) -> None:
        self.kind, self.scale = kind, scale
        self.constants = constants
        self._rank, self._guide = frozen(rank), guide

    @classmethod
    def build(cls, ends: Sequence[Values]) -> Self:
        """Cut the line at these ends, which are of one kind or NULL. O(n log n)."""
        told = [each for each in ends if each.kind is not None]
        kind = told[0].kind if told else None
        constants = _constants(told)
        rank = _rank_arrays(kind, constants)
        scale = told[0].scale if told else 0
        return cls(kind, scale, constants, rank, _guide(kind, constants, rank))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that ``from_arrays`` needs. O(arrays), or O(m) for objects."""
        own = self._rank._asdict()
        out = prefixed("rank.strings.", own.pop("strings")) | prefixed("rank.", own)
        if self.kind == STRING:
            out["text.data"], out["text.offsets"], _ = arrow_strings(self.constants)
        elif self.constants.dtype == object:
            texts = pa.array([str(number) for number in self.constants], pa.large_string())
            out["numbers.data"], out["numbers.offsets"], _ = arrow_strings(texts)
        else:
            out["constants"] = self.constants
        return out if self._guide is None else out | prefixed("guide.", self._guide.arrays())

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], kind: int | None, scale: int) -> Self:
        """The axis that ``arrays`` described, where they are: O(1), or O(m) for objects."""
        constants: Any
        if "text.data" in arrays:
            parts = [pa.py_buffer(arrays[f"text.{name}"]) for name in ("offsets", "data")]
            count = len(arrays["text.offsets"]) - 1
            constants = pa.Array.from_buffers(pa.large_binary(), count, [None, *parts])
        elif "numbers.data" in arrays:
            texts = arrow_text(arrays["numbers.data"], arrays["numbers.offsets"]).to_pylist()
            constants = np.empty(len(texts), object)
            constants[:] = [exact(Decimal(text)) for text in texts]
        else:
            constants = arrays["constants"]
        strings = StringTable.from_arrays(under(arrays, "rank.strings."))
        own = {name: arrays[f"rank.{name}"] for name in RankArrays._fields if name != "strings"}
        guide = under(arrays, "guide.")
        return cls(
            kind,
            scale,
            constants,
            RankArrays(**own, strings=strings.as_tuple),
            Guide.from_arrays(guide) if guide else None,
        )

    @property
    def n_places(self) -> int:
        """Two for each constant, and one."""
        return 2 * len(self.constants) + 1

    def ends(self, chosen: NDArray[Any]) -> Values:
        """Some constants as values."""
        taken = self.constants.take(pa.array(chosen) if self.kind == STRING else chosen)
        if self.kind != STRING and taken.dtype == object:
            taken = cheapest(map(canonical, taken))
        return Values(self.kind, taken, scale=self.scale)

    def places(self, values: Values) -> Int32s:
        """The place of each value of the axis's kind, -1 for NULL: O(n), or O(n log m)."""
        data = values.data
        if self.kind is None or values.kind is None:
            return np.where(values.is_valid, 0, -1).astype(np.int32)
        if self.kind == STRING:
            text, offsets, _ = arrow_strings(data)
            return _placed(string_pairs, self._rank, (text, offsets), values.valid, len(data))
        if data.dtype == np.int64 and values.scale != self.scale:
            if self.constants.dtype == np.int64:
                return self._scaled(values)
            data = decimals(values)
        if data.dtype == object:
            found = np.array([self._place(number) for number in data], np.int32)
            return np.where(values.is_valid, found, np.int32(-1))
        if self._guide is not None and (data.dtype == np.float64 or _are_floats(data)):
            return self._guide.places(data.astype(np.float64, copy=False), values.valid)
        pairs = float_pairs if data.dtype == np.float64 else integer_pairs
        return _placed(pairs, self._rank, (data,), values.valid, len(data))

    def _scaled(self, values: Values) -> Int32s:
        """Integers in another unit than the constants, which are integers too."""
        data, by = values.data, values.scale - self.scale
        factor = 10 ** min(abs(by), 18)
        if by > 0:  # finer: the whole part decides, and whether there is more
            units, rest = np.divmod(data, factor)
            if by > 18:  # nothing is left of 64 bits but the sign
                units, rest = np.where(data < 0, -1, 0), data
            places = self.places(Values(self.kind, units, values.valid, self.scale))
            beyond: Int32s = (places > 0) & (places & 1 == 1) & (rest != 0)
            return places + beyond.astype(np.int32)
        most = INT64_MAX // 10**-by
        above, below = data > most, data < -most
        units = np.where(above | below, 0, data) * factor
        places = self.places(Values(self.kind, units, values.valid, self.scale))
        places[above & (places >= 0)] = self.n_places - 1
        places[below & (places >= 0)] = 0
        return places

    def _place(self, number: Any) -> int:
        """One canonical number, by exact comparison: O(log m)."""
        if isinstance(number, float) and not math.isfinite(number):
            return 0 if number < 0 else self.n_places - 1
        number = exact(number)
        at = bisect_left(range(len(self.constants)), number, key=self._number)
        return 2 * at + int(at < len(self.constants) and self._number(at) == number)

    def _number(self, i: int) -> int | Decimal:
        found = self.constants[i]
        return exact(found.item() if isinstance(found, np.generic) else found)

    def check(self) -> None:
        """Verify that every constant is found in its own place: O(m)."""
        every = np.arange(len(self.constants))
        assert np.array_equal(self.places(self.ends(every)), 2 * every + 1), (
            "an end is not at its place"
        )


def _placed(pairs: Any, rank: RankArrays, data: tuple[Any, ...], valid: Any, n: int) -> Int32s:
    """Run a kernel of ``model/rank/cells.py`` and put its (cell, row) pairs back in order."""
    packed = np.empty(n, np.uint64)
    written = int(pairs(rank, 0, *data, valid, packed, 0))
    if written == n:
        return (packed >> _CELL_SHIFT).astype(np.int32)
    places = np.full(n, -1, np.int32)
    packed = packed[:written]
    places[(packed & _ROW_MASK).astype(np.int64)] = (packed >> _CELL_SHIFT).astype(np.int32)
    return places


def _constants(columns: Sequence[Values]) -> Any:
    """The distinct values of columns of one kind, ascending, in the cheapest form that is exact."""
    if not columns:
        return np.empty(0, np.int64)
    if columns[0].kind == STRING:
        whole_column = pa.concat_arrays(
            [column.present().cast(pa.large_binary()) for column in columns]
        )
        constants = whole_column.take(pa.array(distinct(whole_column).firsts))
        return constants.take(pc.array_sort_indices(constants))
    whole: list[NDArray[np.int64]] = []
    floats = [np.empty(0)]
    others: list[int | Decimal] = []
    for column in columns:
        data = column.present()
        if data.dtype == object:
            whole.append(np.array([n for n in data if fits(n)], np.int64))
            floats.append(np.array([n for n in data if isinstance(n, float)], np.float64))
            others += [n for n in data if not (isinstance(n, float) or fits(n))]
        elif data.dtype == np.float64:
            inside = (data == np.floor(data)) & (data >= -BEYOND_INT64) & (data < BEYOND_INT64)
            whole.append(data[inside].astype(np.int64))
            floats.append(data[~inside])
        else:
            whole.append(data)
    integers, fractions = np.concatenate(whole), np.concatenate(floats)
    if not len(fractions) and not others:
        return _distinct(integers)
    if not others and _are_floats(integers):
        return _distinct(np.concatenate((integers.astype(np.float64), fractions)))
    every = sorted({*integers.tolist(), *map(exact, fractions.tolist()), *others})
    out = np.empty(len(every), object)
    out[:] = every
    return out


def _distinct(numbers: NDArray[Any]) -> NDArray[Any]:
    """Sort and drop repetitions; NumPy's own ``unique`` hashes first, which takes longer."""
    numbers = np.sort(numbers)
    kept = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=kept[1:])
    return numbers[kept]


def _are_floats(integers: NDArray[np.int64]) -> bool:
    """Whether floats stand for exactly these integers."""
    far = int(WHOLE_FLOATS)
    return not len(integers) or bool(-far <= integers.min() and integers.max() <= far)


def _guide(kind: int | None, constants: Any, rank: RankArrays) -> Guide | None:
    """A guide to numbers that floats hold, unless a table of integers is better still."""
    if kind == STRING or not len(constants) or rank.heads[0, DIRECT] >= 0:
        return None
    if constants.dtype == np.float64:
        return Guide.build(constants)
    if constants.dtype == np.int64 and _are_floats(constants):
        return Guide.build(constants.astype(np.float64))
    return None


def _rank_arrays(kind: int | None, constants: Any) -> RankArrays:
    """A rank space with one attribute that has one channel; its strings are ordered."""
    is_text = kind == STRING
    columns = NumberColumns.of_integers(np.empty(0, np.int64))
    if not is_text and constants.dtype == np.int64:
        columns = NumberColumns.of_integers(constants)
    strings = _table(constants if is_text else _NO_STRINGS)
    arrays = build_rank_space(
        _table(pa.array([b"value"], pa.large_binary())),
        np.zeros(1, np.int32),
        np.array([STRING if is_text else NUMBER], np.uint8),
        np.array([len(columns.floors) + len(strings)]),
        columns,
        strings,
        np.ones(1, np.uint8),
    ).arrays
    if is_text or constants.dtype == np.int64:
        return arrays
    return _with_fractions(arrays, constants)


def _table(strings: pa.Array) -> StringTable:
    data, offsets, _ = arrow_strings(strings)
    return StringTable.build(data, offsets, 0)


def _with_fractions(arrays: RankArrays, constants: NDArray[Any]) -> RankArrays:
    """The same channel with these constants, which are not all integers of 64 bits.

    ``NumberColumns.of`` would not do: it holds up to 18 digits, and goes number by number.
    """
    cells = np.arange(len(constants), dtype=np.int32) * 2 + 1
    if constants.dtype == np.float64:
        doubles, down = constants, np.floor(constants)
        inside = (down >= -BEYOND_INT64) & (down < BEYOND_INT64)
        clamped = np.where(down < 0, INT64_MIN, INT64_MAX)
        floors = np.where(inside, np.where(inside, down, 0).astype(np.int64), clamped)
        whole = inside & (down == constants)
    else:
        doubles = np.array([nearest_float(number) for number in constants])
        whole_parts = [math.floor(number) for number in constants]
        floors = np.array([max(INT64_MIN, min(INT64_MAX, n)) for n in whole_parts], np.int64)
        whole = np.array([fits(number) for number in constants], np.bool_)
        # A float may lie beside the constant whose nearest float it is.
        numbers = [exact(double) for double in doubles.tolist()]
        at = [bisect_left(constants, number) for number in numbers]
        equal = [i < len(constants) and constants[i] == n for i, n in zip(at, numbers, strict=True)]
        cells = np.array(at, np.int32) * 2 + np.array(equal, np.int32)
    heads = arrays.heads.copy()
    heads[0, COUNT], heads[0, FINE] = len(constants), 0
    return arrays._replace(
        bases=np.array([0, 2 * len(constants) + 1], np.int32),
        heads=heads,
        floors=floors,
        fine_whole=whole.astype(np.uint8),
        fine_doubles=doubles,
        fine_cells=cells,
    )
