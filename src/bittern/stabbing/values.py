"""Reads users' values as one kind: numbers, times or strings.

NumPy and Arrow arrays, series of pandas and polars, and lists become ``Values``: one array of the
cheapest form that is exact, and which of them are NULL (None, NaT, pandas' NA, masked, an Arrow
null)::

    [1, None, 3]                      int64      1 . 3
    [0.5, 2**53 + 1]                  objects    0.5 9007199254740993    no float is the second
    np.array(["2026-01-31"], "M8[s]") int64      in seconds: scale -6 beside microseconds
    ["b", "a"]                        Arrow      strings, ordered by their UTF-8 bytes

Arrays are read without a Python step per value, except integers beyond 64 bits, long decimals and
lists that mix types. A time without a zone is in UTC.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from decimal import Context, Decimal
from types import NoneType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bittern.errors import OptionError, brief
from bittern.model.events.columns import plain, read_column
from bittern.model.numbers import BEYOND, INT64_MAX, INT64_MIN, WHOLE_FLOATS, exact
from bittern.model.rank.space import KIND_NAMES, NUMBER, STRING, TIME

Scalar: TypeAlias = int | float | Decimal | bytes
"""One value in the form that is equal for equal values: see ``canonical``."""

NANOSECONDS = 3
"""Times count microseconds times 10**scale: the scale of an index is 0, or this."""

ALL_VALID = np.empty(0, np.uint8)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NAIVE_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  of times without a zone, which are in UTC
_MICROSECOND = dt.timedelta(microseconds=1)
_DIGITS = Context(prec=50)  # of 64 bits there are 19; the caller's own context must not matter
_SMALLEST = Decimal(10) ** (1 - BEYOND)
_REASON = 240  # characters of another library's message

_SCALES = {"s": -6, "ms": -3, "us": 0, "ns": NANOSECONDS}
_DAY = 86_400
_SECONDS = {"Y": 366 * _DAY, "M": 31 * _DAY, "W": 7 * _DAY, "D": _DAY, "h": 3_600, "m": 60}
"""NumPy's longer units, and how many seconds one has at most."""


class Values(NamedTuple):
    """Values of one kind (None: there are only NULLs).

    ``data`` is int64 (standing for ``item * 10**-scale``), float64, objects (canonical numbers) or
    an Arrow array of strings. ``valid`` is 0 where a value is NULL, and empty if none is.
    """

    kind: int | None
    data: Any
    valid: NDArray[np.uint8] = ALL_VALID
    scale: int = 0

    @property
    def is_valid(self) -> NDArray[np.bool_]:
        """Which values are not NULL, one by one."""
        if len(self.valid):
            return self.valid.view(np.bool_)
        return np.ones(len(self.data), np.bool_)

    def present(self) -> Any:
        """The data that are not NULL."""
        if not len(self.valid):
            return self.data
        if isinstance(self.data, pa.Array):
            return self.data.filter(pa.array(self.is_valid))
        return self.data[self.is_valid]

    def scalar(self, i: int) -> Scalar | None:
        """Value i in its canonical form; None if it is NULL."""
        if len(self.valid) and not self.valid[i]:
            return None
        if self.kind == STRING:
            text: bytes = self.data[i].cast(pa.large_binary()).as_py()
            return text
        item = self.data[i]
        return item if self.data.dtype == object else canonical(item)


def of_scalars(kind: int | None, scalars: list[Any], scale: int = 0) -> Values:
    """Canonical scalars, or None, as values again."""
    valid = np.array([scalar is not None for scalar in scalars], np.uint8)
    if kind == STRING:
        return Values(kind, pa.array(scalars, pa.large_binary()), valid)
    return Values(kind, cheapest(0 if n is None else n for n in scalars), valid, scale)


def kind_name(kind: int | None) -> str:
    """The name of a kind of values in messages."""
    return "values" if kind is None else f"{KIND_NAMES[kind]}s"


def fits(number: Any) -> bool:
    """Whether a number is an integer of 64 bits."""
    return isinstance(number, int) and INT64_MIN <= number <= INT64_MAX


def nearest_float(number: float | Decimal) -> float:
    """The float next to a number, infinite if it is beyond all floats."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def canonical(value: Any) -> int | float | Decimal:
    """Give a number its one form: an int if 64 bits hold it, else a float if one stands for it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError(f"{brief(value)} is not a number")
    if isinstance(value, float) and not math.isfinite(value):
        return value
    if isinstance(value, Decimal) and not value.is_finite():
        return float(value)
    number = exact(value)
    if fits(number):
        return number
    nearest = nearest_float(number)
    return nearest if math.isfinite(nearest) and exact(nearest) == number else number


def decimals(values: Values) -> NDArray[Any]:
    """Scaled integers as what they stand for, in the cheapest form that is exact."""
    return cheapest(
        canonical(Decimal(item).scaleb(-values.scale, _DIGITS)) for item in values.data.tolist()
    )


def read(values: Any, what: str) -> Values:
    """Read values in any form; OptionError says what cannot be read. O(n)."""
    shape = getattr(values, "shape", (0,))
    if len(shape) != 1:
        raise OptionError(f"{what} must be one-dimensional, not of shape {shape}")
    if isinstance(values, np.ma.MaskedArray):
        return _read_masked(values, what)
    if isinstance(values, np.ndarray):
        kind, size = values.dtype.kind, values.dtype.itemsize
        if kind == "i" or (kind == "u" and size < 8):
            return Values(NUMBER, np.ascontiguousarray(values, np.int64))
        if kind == "f" and size <= 8:
            return Values(NUMBER, np.ascontiguousarray(values, np.float64))
        if not values.dtype.isnative:  # Arrow does not take these
            values = values.astype(values.dtype.newbyteorder("="))
        if kind == "M":
            return _read_datetimes(values, what)
    if isinstance(values, str | bytes | Mapping | AbstractSet):
        raise OptionError(f"{what} must be a list or an array, not {type(values).__name__}")
    try:
        if hasattr(values, "to_arrow"):  # a polars series
            values = values.to_arrow()
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return _read_arrow(plain(values), what)
        if getattr(values, "dtype", None) in (None, np.dtype(object)):
            return _read_objects(list(values), what)
        return _read_arrow(plain(pa.array(values, from_pandas=False)), what)
    except OptionError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as wrong:
        raise OptionError(f"{what} cannot be read: {str(wrong)[:_REASON]}") from None


def _read_masked(values: np.ma.MaskedArray[Any, Any], what: str) -> Values:
    mask, data = np.ma.getmaskarray(values), values.data
    if data.dtype.kind in "OM":  # under a mask may be what cannot be read
        data = data.copy()
        data[mask] = None
    column = read(data, what)
    return column._replace(valid=_as_valid(column.is_valid & ~mask))


def _as_valid(valid: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return ALL_VALID if valid.all() else valid.view(np.uint8)


def _read_datetimes(values: NDArray[np.datetime64], what: str) -> Values:
    """NumPy's times: what is longer than seconds in seconds, else as they are."""
    unit, step = np.datetime_data(values.dtype)
    if unit in ("ps", "fs", "as"):
        raise OptionError(f"{what} are {values.dtype}, which is finer than nanoseconds")
    target = unit if unit in _SCALES else "s"
    known = ~np.isnat(values)
    most = INT64_MAX // (_SECONDS.get(unit, 1) * step)
    if most < INT64_MAX:  # or NumPy would wrap around
        ticks = values.view(np.int64)
        wrong = known & ((ticks > most) | (ticks < -most))
        if wrong.any():
            far = int(ticks[np.argmax(wrong)])
            raise OptionError(
                f"{what} are {values.dtype}, and {far} of these since 1970 do not fit into 64 bits "
                f"of {target}"
            )
    data = np.ascontiguousarray(values.astype(f"M8[{target}]").view(np.int64))
    return Values(TIME, data, _as_valid(known), _SCALES[target])


def _read_arrow(array: pa.Array, what: str) -> Values:
    if pa.types.is_null(array.type):
        return Values(None, np.zeros(len(array), np.int64), np.zeros(len(array), np.uint8))
    column = read_column(array)
    if column.kind == STRING:
        return Values(STRING, array, column.valid)
    if column.kind not in (NUMBER, TIME):
        raise OptionError(f"{what} are {array.type}: give numbers, times or strings")
    if column.exact:
        numbers = (0 if n is None else canonical(n) for n in array.to_pylist())
        return Values(NUMBER, cheapest(numbers), column.valid)
    return Values(column.kind, np.ascontiguousarray(column.values), column.valid, column.scale)


def _read_objects(values: list[Any], what: str) -> Values:
    """Python objects: Arrow reads them if they are of one type, and exactly."""
    types = set(map(type, values)) - {NoneType}
    missing = {each for each in types if each.__name__ in ("NAType", "MaskedConstant")}
    if missing:  # of pandas and of NumPy
        types -= missing
        values = [None if type(value) in missing else value for value in values]
    is_time = [issubclass(each, dt.date | np.datetime64) for each in types]
    if any(is_time) and types != {dt.datetime}:
        if not all(is_time):
            raise OptionError(f"{what} mix times with other values")
        return _read_times(values, what)
    try:
        return _read_arrow(pa.array(values, from_pandas=False), what)
    except (pa.ArrowException, OverflowError, TypeError):
        if str in types:
            raise OptionError(f"{what} mix strings with other values") from None
    valid = np.array([value is not None for value in values], np.uint8)
    return Values(NUMBER, cheapest(0 if n is None else canonical(n) for n in values), valid)


def _read_times(values: list[Any], what: str) -> Values:
    """Times of any classes, in the first unit that is exact and holds all.

    That is nanoseconds if one is in these, else microseconds, else a longer one.
    """
    moments, scales = zip(*(_nanoseconds(value, what) for value in values), strict=True)
    valid = np.array([moment is not None for moment in moments], np.uint8)
    known = [0 if moment is None else moment for moment in moments]
    finest = max(0, *scales)
    for scale in (finest, 0, -3, -6):
        unit = 10 ** (NANOSECONDS - scale)
        if all(moment % unit == 0 and fits(moment // unit) for moment in known):
            units = np.array([moment // unit for moment in known], np.int64)
            return Values(TIME, units, valid, scale)
    raise OptionError(f"{what} hold times too far apart: no unit fits all of them into 64 bits")


def cheapest(numbers: Iterable[Any]) -> NDArray[Any]:
    """Canonical numbers in the cheapest form that is exact."""
    every = list(numbers)
    if all(map(fits, every)):
        return np.array(every, np.int64)
    if all(isinstance(n, float) or (fits(n) and abs(n) < WHOLE_FLOATS) for n in every):
        return np.array(every, np.float64)
    out = np.empty(len(every), object)
    out[:] = every
    return out


def _nanoseconds(value: Any, what: str) -> tuple[int | None, int]:
    """Nanoseconds since 1970 of one time of any class, and the scale that it came in."""
    if value is None or value != value:  # noqa: PLR0124  NaT differs from itself
        return None, 0
    if hasattr(value, "to_datetime64"):  # pandas' Timestamp, which has nanoseconds
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        one = _read_datetimes(np.array([value]), what)
        return int(one.data[0]) * 10 ** (NANOSECONDS - one.scale), one.scale
    if isinstance(value, dt.datetime):
        return microseconds(value) * 1000, 0
    return (value - _EPOCH.date()) // _MICROSECOND * 1000, 0


def microseconds(moment: dt.datetime) -> int:
    """Microseconds since 1970; a time without a zone is in UTC."""
    since = moment - (_NAIVE_EPOCH if moment.tzinfo is None else _EPOCH)
    return (since.days * _DAY + since.seconds) * 1_000_000 + since.microseconds


def as_ends(values: Values, *, low: bool, scale: int, alone: bool = False) -> Values:
    """Values as low or high ends: infinite ones as NULL (no end), times in the index's unit.

    OptionError names the first row that cannot be an end, unless it is ``alone``.
    """
    side, outward = ("low", -math.inf) if low else ("high", math.inf)
    if values.kind == TIME:
        return values._replace(data=_in_unit(values, scale, side, alone=alone), scale=scale)
    if values.kind != NUMBER:
        return values
    data = decimals(values) if values.scale else values.data
    if data.dtype == np.int64:
        return Values(NUMBER, data, values.valid)
    if data.dtype == np.float64:
        none, usable = data == outward, np.isfinite(data)
    else:
        none = np.array([isinstance(n, float) and n == outward for n in data], np.bool_)
        usable = np.array([_usable(n) for n in data], np.bool_)
    wrong = values.is_valid & ~none & ~usable
    if wrong.any():
        row = int(np.argmax(wrong))
        raise OptionError(
            f"{_which(row, alone=alone)} has the {side} end {brief(data[row])}: an end is a finite "
            f"number within the range of floats, or None or {outward} where there is none"
        )
    return Values(NUMBER, data, _as_valid(values.is_valid & ~none))


def _which(row: int, *, alone: bool) -> str:
    return "the interval" if alone else f"interval {row}"


def _usable(number: float | Decimal) -> bool:
    far = math.isfinite(nearest_float(number))
    return far and (not isinstance(number, Decimal) or number == 0 or abs(number) >= _SMALLEST)


def _in_unit(values: Values, scale: int, side: str, *, alone: bool) -> NDArray[np.int64]:
    """Times in the unit of the index; OptionError if one is finer or does not fit."""
    data: NDArray[np.int64] = values.data
    by = scale - values.scale
    if by == 0:
        return data
    factor = 10 ** abs(by)
    if by > 0:
        most = INT64_MAX // factor
        wrong = values.is_valid & ((data > most) | (data < -most))
        units: NDArray[np.int64] = np.where(wrong, 0, data) * factor
    else:
        units, rest = np.divmod(data, factor)
        wrong = values.is_valid & (rest != 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        unit = "nanoseconds" if scale == NANOSECONDS else "microseconds"
        raise OptionError(
            f"the {side} end of {_which(row, alone=alone)} is not a whole number of {unit} in 64 "
            f"bits, the unit of the index"
        )
    return units
