"""Predicates on one attribute by brute force: what a predicate index has to answer.

Numbers are compared by exact value, and a float is the number that prints it (see
``bittern.model.numbers``); NaN equals itself and is above all; strings are their UTF-8 bytes.
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_left, bisect_right
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
PARTS = {"<=": ("=", "<"), ">=": ("=", ">")}
"""What the tree makes of an operator, if not itself alone."""


def rank(value: Any) -> Any:
    """What values of one kind are compared by."""
    if isinstance(value, np.number):
        value = value.item()
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (
            (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1) * 1000
        )
    if isinstance(value, np.datetime64):
        unit, _ = np.datetime_data(value.dtype)
        return int(value.astype(np.int64)) * {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[unit]
    if isinstance(value, Decimal) and not value.is_finite():
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return (2, 0) if math.isnan(value) else (1 if value > 0 else -1, 0)
    if isinstance(value, float) and not (abs(value) >= 2**53 and -(2**63) <= value < 2**63):
        value = Decimal(repr(value))
    return 0, Fraction(value)


class Oracle:
    """A bag of predicates, as parts that are deleted as they were inserted."""

    def __init__(self, parts: Counter[tuple[str, Any, int]] | None = None) -> None:
        self.parts = Counter(parts)
        self._arrays: Any = None

    def copy(self) -> Oracle:
        return Oracle(self.parts)

    def __len__(self) -> int:
        return self.parts.total()

    def insert(self, operator: str, constant: Any, sid: int) -> None:
        self._arrays = None
        for part in PARTS.get(operator, (operator,)):
            self.parts[part, rank(constant), sid] += 1

    def insert_many(self, predicates: Any) -> None:
        for predicate in predicates:
            self.insert(*predicate)

    def delete(self, operator: str, constant: Any, sid: int) -> bool:
        """Whether all parts were there; else they stay."""
        keys = [(part, rank(constant), sid) for part in PARTS.get(operator, (operator,))]
        if not all(self.parts[key] for key in keys):
            return False
        self._arrays = None
        for key in keys:
            self.parts[key] -= 1
        return True

    def delete_many(self, predicates: Any) -> list[bool]:
        """In the order of the constants, as the index does it."""
        predicates = list(predicates)
        found = [False] * len(predicates)
        for i in sorted(range(len(predicates)), key=lambda i: rank(predicates[i][1])):
            found[i] = self.delete(*predicates[i])
        return found

    def search(self, value: Any) -> list[int]:
        """The sids in ascending order."""
        if value is None:
            return []
        if self._arrays is None:
            items = sorted(self.parts.elements(), key=lambda item: item[2])
            ranks = sorted({item[1] for item in items})
            place = {each: at for at, each in enumerate(ranks)}
            parts = np.array(["=!<>".index(item[0][0]) for item in items], np.int64)
            places = np.array([place[item[1]] for item in items], np.int64)
            self._arrays = ranks, parts, places, np.array([item[2] for item in items], np.int64)
        ranks, parts, places, sids = self._arrays
        own = rank(value)
        low, high = bisect_left(ranks, own), bisect_right(ranks, own)
        below, above = places < low, places >= high
        true = np.choose(parts, [~below & ~above, below | above, above, below])
        right: list[int] = sids[true].tolist()
        return right


def found(file: Any, values: Any) -> list[list[int]]:
    """The sids that an index finds for each of many values, ascending."""
    offsets, sids = file.search_batch(values)
    assert len(offsets) == len(values) + 1
    assert offsets[0] == 0
    assert offsets[-1] == len(sids)
    if not len(values):
        return []
    return [sorted(part.tolist()) for part in np.split(sids, offsets[1:-1])]
