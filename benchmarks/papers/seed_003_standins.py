"""Stand-ins for the two real data sets of seed 003, which cannot be had.

They are made up. What the paper tells of its data is kept, everything else is chosen here:

- *Keywords* for the AOL query log: 50,000 keywords with Zipf's probabilities (exponent 1), queries
  of 1 to 7 keywords, 2.5 on average; short documents of 5.4 keywords on average for tweets, long
  ones of 123 for Wikipedia articles (the length is 1 + Poisson). A query asks ``keyword = 1`` of
  every keyword, or ``keyword BETWEEN lo AND hi`` of how often it occurs.
- *Products* for eBay: 10,204 attributes, the r-th of which 0.31 r^-0.867 of all products have, so
  that it is 31 and 17 percent of the first two; 5.8 attributes per product. Of an attribute's
  values 1 to 100 the v-th has a weight of 1/v. A subscription asks for attributes in proportion to
  the logarithm of how many of 296,846 products have them, with ``=`` or a set of three values.
"""

from __future__ import annotations

from math import lgamma, log, log2

import numpy as np

from benchmarks.draw import Draw, Floats, Ints
from benchmarks.papers.seed_003_data import (
    SEED,
    Subscriptions,
    Tests,
    Values,
    compiled,
    distinct,
    picker,
    sizes,
    zipf,
)
from bittern.model.classes.structure import AND, OR, TEST, Nested

KEYWORDS = 50_000
QUERY_LENGTHS = np.array([0.28, 0.30, 0.20, 0.12, 0.06, 0.03, 0.01])
SHORT, LONG = 5.4, 123.0
#: How often a keyword is asked to occur at least, and how much more at most; and it does occur.
LEAST_OFTEN = np.array([0.4, 0.25, 0.15, 0.1, 0.1])
WIDEST, OFTEN = 15, 50
OCCURRENCES = 2.0

ATTRIBUTES, PRODUCTS = 10_204, 296_846
FIRST_SHARE, SECOND_SHARE = 0.31, 0.17
PRODUCT_VALUES, SET_SIZE = 100, 3
#: Events of the log that tells which attributes are frequent; others than those that are matched.
LOGGED = 10_000


def poisson(draw: Draw, mean: float, n: int) -> Ints:
    """Poisson numbers, by the inverse of their distribution."""
    largest = int(mean + 12 * mean**0.5 + 12)
    weights = [np.exp(k * log(mean) - mean - lgamma(k + 1)) for k in range(largest)]
    return draw.weighted(np.array(weights), n)


def queries(n: int, *, intervals: bool) -> Tests:
    """Keyword queries as conjunctions."""
    draw = Draw(SEED, 11)
    counts = (1 + draw.weighted(QUERY_LENGTHS, n)).astype(np.int32)
    channels = distinct(counts, picker(draw, KEYWORDS, 1.0))
    lows = highs = np.full(len(channels), 2, dtype=np.int64)
    if intervals:
        least = 1 + draw.weighted(LEAST_OFTEN, len(channels))
        lows, highs = 2 * least, 2 * (least + 1 + draw.below(WIDEST, len(channels)))
    return Tests(channels, lows, highs, counts, np.zeros(n, np.int32), ())


def documents(n: int, length: float, *, intervals: bool, seed: int = 12) -> Values:
    """Documents: which keywords, and how often, or just that they do."""
    draw = Draw(SEED, seed)
    lengths = 1 + poisson(draw, length - 1, n)
    channels = distinct(lengths, picker(draw, KEYWORDS, 1.0))
    values = np.ones(len(channels), dtype=np.int64)
    if intervals:
        values += draw.weighted(zipf(OFTEN, OCCURRENCES), len(channels))
    return Values(np.repeat(np.arange(n, dtype=np.int32), lengths), channels, values, n)


def keywords(n: int, *, intervals: bool, logged: int = LOGGED) -> Subscriptions:
    """Keyword queries in rank space; a log of short and long documents tells frequencies."""
    log_of = [
        documents(logged, length, intervals=intervals, seed=seed)
        for length, seed in ((SHORT, 13), (LONG, 14))
    ]
    both = Values(
        np.concatenate([log_of[0].rows, log_of[1].rows + np.int32(logged)]),
        np.concatenate([each.channels for each in log_of]),
        np.concatenate([each.values for each in log_of]),
        2 * logged,
    )
    return compiled(queries(n, intervals=intervals), KEYWORDS, OFTEN + 2, log=both)


def shares() -> Floats:
    """The share of products that have each attribute."""
    return FIRST_SHARE * zipf(ATTRIBUTES, log2(FIRST_SHARE / SECOND_SHARE))


def products(n: int, *, seed: int = 22) -> Values:
    """Products: each has every attribute with the attribute's share, independently.

    As many points as a Poisson number says fall on the attributes by weights of -log(1 - share);
    an attribute without a point is one that the product has not.
    """
    draw = Draw(SEED, seed)
    weights = -np.log1p(-shares())
    counts = poisson(draw, float(weights.sum()), n)
    points = draw.weighted(weights, int(counts.sum()))
    keys = np.unique(np.repeat(np.arange(n), counts) * ATTRIBUTES + points)
    values = 1 + picker(draw, PRODUCT_VALUES, 1.0)(len(keys))
    return Values(
        (keys // ATTRIBUTES).astype(np.int32), (keys % ATTRIBUTES).astype(np.int32), values, n
    )


def wishes(n: int, largest: int, *, sets: bool) -> Tests:
    """Subscriptions to products: of each attribute one value, or one of a set."""
    draw = Draw(SEED, 21)
    counts = sizes(draw, n, largest)
    weights = np.log(shares() * PRODUCTS)
    channels = distinct(counts, lambda count: draw.weighted(weights, count))
    each = picker(draw, PRODUCT_VALUES, 1.0)
    if not sets:
        positions = 2 * (1 + each(len(channels)))
        return Tests(channels, positions, positions, counts, np.zeros(n, np.int32), ())
    members = distinct(np.full(len(channels), SET_SIZE), each)
    positions = 2 * (1 + members.astype(np.int64))
    return Tests(
        np.repeat(channels, SET_SIZE),
        positions,
        positions,
        (SET_SIZE * counts).astype(np.int32),
        counts,
        [_all_of_sets(size) for size in range(1, largest + 1)],
    )


def _all_of_sets(n: int) -> Nested:
    one: Nested = (OR, [TEST] * SET_SIZE)
    return one if n == 1 else (AND, [one] * n)


def shop(n: int, largest: int, *, sets: bool, logged: int = LOGGED) -> Subscriptions:
    """Subscriptions to products in rank space; a log of products tells frequencies."""
    tests = wishes(n, largest, sets=sets)
    return compiled(tests, ATTRIBUTES, PRODUCT_VALUES + 1, log=products(logged, seed=23))
