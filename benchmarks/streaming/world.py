"""The shop of the streaming benchmarks: subscriptions and price changes, drawn from their numbers.

::

    alert     product = 4711 AND price <= 180              six in ten
    wish      brand = 'b17' AND category = 'c3' AND price < 90    two
    bargain   product = 4711 AND (discount >= 0.4 OR stock = 0)   two

Some three to four matches for each price change at a million subscriptions.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

PRODUCTS, BRANDS, CATEGORIES = 100_000, 1_000, 50
SCHEMA = (
    "id bigint, file int, product bigint, brand string, category string, price double, "
    "discount double, stock int"
)


def expression(number: int, turn: int = 0) -> str:
    """The text of a subscription; ``turn`` counts how often it was changed."""
    draw = np.random.default_rng((number, turn))
    product, price = int(draw.integers(PRODUCTS)), int(draw.integers(10, 300))
    kind = int(draw.integers(10))
    if kind < 6:
        return f"product = {product} AND price <= {price}"
    if kind < 8:
        brand, category = int(draw.integers(BRANDS)), int(draw.integers(CATEGORIES))
        return f"brand = 'b{brand}' AND category = 'c{category}' AND price < {price}"
    return f"product = {product} AND (discount >= 0.{int(draw.integers(10, 60))} OR stock = 0)"


def subscriptions(n: int) -> pa.Table:
    """The catalog at its beginning, the same as ``expression`` in kind but drawn all at once."""
    draw = np.random.default_rng(0)
    product, price = draw.integers(PRODUCTS, size=n), draw.integers(10, 300, size=n)
    brand, category = draw.integers(BRANDS, size=n), draw.integers(CATEGORIES, size=n)
    discount, kind = draw.integers(10, 60, size=n), draw.integers(10, size=n)
    texts = [
        f"product = {p} AND price <= {x}"
        if k < 6
        else f"brand = 'b{b}' AND category = 'c{c}' AND price < {x}"
        if k < 8
        else f"product = {p} AND (discount >= 0.{d} OR stock = 0)"
        for p, x, b, c, d, k in zip(
            *(a.tolist() for a in (product, price, brand, category, discount, kind)), strict=True
        )
    ]
    ids = [f"s{number}" for number in range(n)]
    return pa.table({"id": ids, "expression": texts})


def events(first: int, n: int, file: int) -> pa.Table:
    """Price changes with the numbers from ``first`` on."""
    draw = np.random.default_rng((1, first))
    discounts = np.where(draw.random(n) < 0.2, np.round(draw.random(n) * 0.6, 2), np.nan)
    return pa.table(
        {
            "id": pa.array(np.arange(first, first + n)),
            "file": pa.array(np.full(n, file, dtype=np.int32)),
            "product": pa.array(draw.integers(PRODUCTS, size=n)),
            "brand": np.char.add("b", draw.integers(BRANDS, size=n).astype(str)),
            "category": np.char.add("c", draw.integers(CATEGORIES, size=n).astype(str)),
            "price": pa.array(np.round(draw.uniform(5, 400, size=n), 2)),
            "discount": pa.array(discounts, from_pandas=True),
            "stock": pa.array(draw.integers(10, size=n).astype(np.int32)),
        }
    )
