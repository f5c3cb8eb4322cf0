"""FLOAT and DOUBLE as the shortest decimals that stand for them, which Java prints and rounds.

``round(1.005, 2)`` is 1.01, although the DOUBLE lies below 1.005. With m the nearest integer to
``x * 10**places``, the halves beside it are compared as the DOUBLEs that stand for them::

    (2m - 1) / (2 * 10**places)  <=  x  <  (2m + 1) / (2 * 10**places)     then m is the answer

which is exact for numbers of up to 15 digits. Rows with more are asked one by one, each distinct
value once. All O(rows).

Java before 19 prints some numbers with more digits than needed (2E23 as 1.9999999999999998E23);
here they are what later releases print.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.terms.columns import column, merged, per_distinct
from bittern.terms.numbers.decimals import quotient

#: Magnitudes of 15 digits are exact in every step.
_EXACT = 10.0**15
#: Powers of ten up to this are exact as DOUBLEs.
EXACT_POWER = 22


def rounded_units(data: npt.NDArray[np.float64], places: int, mode: str = "up") -> npt.NDArray[Any]:
    """Finite numbers in units of ``10**-places``: int64, or objects where these do not suffice."""
    size = np.abs(data)
    exact = np.full(data.shape, abs(places) <= EXACT_POWER)
    power = 10.0 ** min(abs(places), EXACT_POWER)
    with np.errstate(all="ignore"):
        near = np.rint(size * power if places >= 0 else size / power)
        exact &= (size < _EXACT) & (near < _EXACT / 10)
        near = near if exact.all() else np.where(exact, near, 0)
        low, high = _half(near - 0.5, power, places), _half(near + 0.5, power, places)
        if mode == "up":
            near = near + (size >= high) - (size < low)
        else:
            odd = near % 2 == 1
            near = near + ((size > high) | ((size == high) & odd))
            near = near - ((size < low) | ((size == low) & odd))
    units = np.where(data < 0, -near, near).astype(np.int64)
    rest = np.flatnonzero(~exact)
    if not len(rest):
        return units
    values, places_of = np.unique(data[rest], return_inverse=True)
    asked = np.empty(len(values), object)
    asked[:] = [_units(value, places, mode) for value in values.tolist()]
    wide = units.astype(object)
    wide[rest] = asked[places_of]
    return wide


def _half(number: npt.NDArray[Any], power: float, places: int) -> npt.NDArray[Any]:
    """A number and a half as the DOUBLE nearest to it; both sides of the division are whole."""
    return 2 * number / (2 * power) if places >= 0 else number * power


def _units(value: float, places: int, mode: str) -> int:
    """One number in units, by its shortest decimal."""
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    size = int("".join(map(str, digits)))
    power = exponent + places
    if power < -len(digits) - 1:
        return 0
    one = np.array([-size if sign else size], object)
    return int(one[0]) * 10**power if power >= 0 else int(quotient(one, 10**-power, mode)[0])


def float_text(array: pa.Array) -> pa.Array:
    """What Java prints: ``12.5``, ``100.0``; from ten million, or below a thousandth, ``1.0E7``."""
    size = np.abs(column(array).data)
    text = pc.cast(array, pa.string())
    text = pc.if_else(
        pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, "0", ".")
    )
    other = ~((size >= 1e-3) & (size < 1e7) | (size == 0))
    single = pa.types.is_float32(array.type)
    return merged(
        text,
        other,
        per_distinct(
            array.filter(pa.array(other)),
            lambda value: _scientific(np.float32(value) if single else np.float64(value)),
            pa.string(),
        ),
    )


def _scientific(value: np.float32 | np.float64) -> str:
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    text = np.format_float_scientific(value, trim="0", exp_digits=1)
    if text.endswith("e+0") or text.partition("e")[0].endswith(".0"):
        # Of decimals with two digits Java takes the nearest: 4.9E-324, not 5E-324.
        longer = np.format_float_scientific(value, precision=1, unique=False, exp_digits=1)
        if type(value)(longer) == value:
            text = longer
    return text.replace("e+", "E").replace("e", "E")
