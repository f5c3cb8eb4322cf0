"""Predicates of one attribute, and the values to search, the same on every machine.

Three families::

    thresholds   alerts. = over the middle, < and <= below it, > and >= above it, few !=

                     < <=  <= <  <=<<=<= = == = = === = = == >>= >=>> >= >   >  >=
                 -15 ............... 0 |values: the middle| 1 .............. 16

    points       nine tenths are =, few of them to a constant: values ask for nearly all pages

    wide         the six operators evenly, constants over the middle: half of all hold

In the first two, the more predicates there are, the farther out their constants lie, so that each
goes off more rarely: of m ``>`` and ``>=``, about ``NEAR * v**4`` hold for a value v, and of the
``<`` and ``<=`` about ``NEAR * (1 - v)**4``, whatever m is. With ``UNEQUALS`` predicates ``!=`` and
what equals the value that comes to a hundred ids. In the last the output grows with n.

Constants of the middle are points of a grid, some predicates to each on average, of which the
r-th most popular has a share in proportion to 1 / sqrt(r); popular points lie scattered. Values are
drawn evenly, every other one a point of the grid, or *skewed*: points of the grid by Zipf's law
with exponent 1, where popular values are other points than those of popular constants, so that the
output remains the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.draw import Draw, Floats, Ints
from bittern.literature.predicates.contract import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    GREATER,
    LESS,
    OPERATORS,
    UNEQUAL,
)

THRESHOLDS, WIDE, POINTS = "thresholds", "wide", "points"
FAMILIES = (THRESHOLDS, WIDE, POINTS)
NEAR = 150
UNEQUALS = 30
#: Predicates to a point of the grid, on average.
SHARE = {THRESHOLDS: 8, WIDE: 8, POINTS: 2}
#: Of these operators; ``!=`` takes what its number asks for.
PARTS = {
    THRESHOLDS: {EQUAL: 0.5, LESS: 0.15, AT_MOST: 0.1, GREATER: 0.15, AT_LEAST: 0.1},
    POINTS: {EQUAL: 0.9, LESS: 0.03, AT_MOST: 0.02, GREATER: 0.03, AT_LEAST: 0.02},
}
#: Primes above every number of points: no two ranks share a point.
_CONSTANTS_APART, _VALUES_APART = 15_485_863, 32_452_843


class Predicates(NamedTuple):
    """Predicates, one per row."""

    operators: NDArray[np.uint8]
    constants: Floats
    sids: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.sids)

    def rows(self, first: int, last: int | None = None) -> Predicates:
        """Some of them, as they stand."""
        return self.taken(slice(first, last))

    def taken(self, places: NDArray[np.bool_] | Ints | slice) -> Predicates:
        """Those at these places."""
        return Predicates(self.operators[places], self.constants[places], self.sids[places])

    def joined(self, more: Predicates) -> Predicates:
        """These and others."""
        return Predicates(
            np.concatenate([self.operators, more.operators]),
            np.concatenate([self.constants, more.constants]),
            np.concatenate([self.sids, more.sids]),
        )

    def triples(self) -> list[tuple[int, float, int]]:
        """Operator, constant and sid of each."""
        return list(zip(*(column.tolist() for column in self), strict=True))


def predicates(
    family: str, n: int, count: int | None = None, *, shares: tuple[float, ...] | None = None
) -> Predicates:
    """The ``n`` predicates of a family, or as many as ``count`` more that could be among them.

    Those have sids from ``n`` on. ``shares`` are of the six operators, instead of the family's.
    """
    again = count is not None
    draw = Draw(8, FAMILIES.index(family), n, int(again))
    m = count if count is not None else n
    shares = shares if shares is not None else shares_of(family, n)
    operators = draw.weighted(np.array(shares), m).astype(np.uint8)
    rank = (points(family, n) * np.square(draw.unit(m))).astype(np.int64)
    constants = _point(rank * _CONSTANTS_APART, points(family, n))
    if family != WIDE:
        below = np.isin(operators, (LESS, AT_MOST))
        above = np.isin(operators, (GREATER, AT_LEAST))
        for side, parts in ((below, (LESS, AT_MOST)), (above, (GREATER, AT_LEAST))):
            of_side = n * sum(shares[operator] for operator in parts)
            # Roots that are rounded alike everywhere, unlike powers.
            far = np.sqrt(np.sqrt(draw.unit(m) * max(1.0, of_side / NEAR)))
            constants = np.where(side, 1 - far if side is below else far, constants)
    return Predicates(operators, constants, np.arange(m, dtype=np.int32) + (n if again else 0))


def shares_of(family: str, n: int) -> tuple[float, ...]:
    """How many of all predicates have each of the six operators."""
    if family == WIDE:
        return (1 / len(OPERATORS),) * len(OPERATORS)
    few = min(0.1, UNEQUALS / n)
    return tuple(few if code == UNEQUAL else PARTS[family][code] * (1 - few) for code in range(6))


def points(family: str, n: int) -> int:
    """Points of the grid that constants of the middle lie on."""
    on_grid = n if family == WIDE else int(n * PARTS[family][EQUAL])
    return max(1, on_grid // SHARE[family])


def values(family: str, n: int, count: int, *, skewed: bool = False) -> Floats:
    """Values to search among ``n`` predicates of a family."""
    draw = Draw(9, FAMILIES.index(family), n, int(skewed))
    grid = points(family, n)
    if skewed:
        rank = np.power(grid + 1.0, draw.unit(count)).astype(np.int64) - 1
        return _point(rank * _VALUES_APART, grid)
    anywhere = draw.unit(count)
    on_grid = _point((anywhere * grid).astype(np.int64), grid)
    return np.where(np.arange(count) % 2, on_grid, anywhere)


def _point(numbers: Ints, grid: int) -> Floats:
    return (numbers % grid + 0.5) / grid


def ordered_keys(floats: Floats) -> Ints:
    """Whole numbers in the order of the floats: the bits, those of negative ones turned round."""
    bits = np.ascontiguousarray(floats).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(2**63 - 1))
