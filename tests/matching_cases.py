"""Subscriptions for every strategy: small shapes, and large worlds judged column by column."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any, TypeAlias
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import bittern
from bittern.engine import matcher as matcher_module
from bittern.matching.pivot import index as pivot_module
from bittern.model.rank import encoded as encoded_module


@contextlib.contextmanager
def limits(
    *, sparse: bool = False, chunk: int | None = None, block: int | None = None
) -> Iterator[None]:
    """Force the sparse view, cut lists of postings into chunks, or batches into blocks."""
    with contextlib.ExitStack() as stack:
        if sparse:
            stack.enter_context(mock.patch.object(encoded_module, "SMALL_MATRIX", 0))
            stack.enter_context(mock.patch.object(encoded_module, "LARGE_MATRIX", 0))
        if chunk is not None:
            stack.enter_context(mock.patch.object(pivot_module, "CHUNK", chunk))
            stack.enter_context(mock.patch.object(pivot_module, "ROOM", 0))
        if block is not None:
            stack.enter_context(mock.patch.object(matcher_module, "BLOCK", block))
        yield


SHAPES = {
    "in": "a IN (1, 2, 2, 3, 1)",
    "in twice": "a IN (1, 2, 3) OR a IN (2, 3, 4)",
    "in and range": "a IN (1, 2, 3) OR a >= 2",
    "not in": "a NOT IN (1, 2, 2)",
    "same again": "a = 2 OR a = 2 OR a BETWEEN 2 AND 2",
    "overlap": "a BETWEEN 1 AND 3 OR a BETWEEN 2 AND 4 OR b BETWEEN 1 AND 3",
    "two attributes": "(a = 1 OR b = 2) AND (a = 2 OR b = 2 OR c = 3)",
    "null": "a IS NULL",
    "null and": "a IS NULL AND b = 2",
    "and null": "b = 2 AND c = 3 AND a IS NULL",
    "or null": "a = 1 OR b IS NULL",
    "both null": "a IS NULL AND b IS NULL",
    "null or null": "a IS NULL OR b IS NULL",
    "not null": "a IS NOT NULL AND NOT b IS NULL",
    "true": "TRUE",
    "false": "FALSE",
    "unknown": "NULL",
    "or true": "a = 1 OR TRUE",
    "and false": "a = 1 AND FALSE",
    "contradiction": "a > 5 AND a < 3",
    "hidden contradiction": "b = 2 AND (a > 5 AND a < 3 OR a = 1 AND a = 2)",
    "null contradiction": "a IS NULL AND a = 1",
    "half contradiction": "(a > 5 AND a < 3) OR b = 2",
    "narrow": "a >= 3 AND a <= 5 AND a != 4 AND a > 1",
    "point": "a >= 3 AND a <= 3",
    "nested": "NOT (a = 1 AND (b = 2 OR NOT (c = 3 AND a < 5)))",
    "text": "s LIKE 'x%' AND s NOT LIKE '%y' AND s NOT LIKE '%z%'",
    "no text": "s NOT LIKE '%z%' OR s NOT RLIKE 'q'",
    "text and null": "a = 1 AND s NOT LIKE '%z_%'",
    "wide": " AND ".join(f"w{i} = 1" for i in range(70)),
    "wide or": " OR ".join(f"w{i} = 1" for i in range(70)),
}


def small_events() -> list[dict[str, Any]]:
    values = (None, 0, 1, 2, 3, 4, 5, 6)
    grid = [
        {"a": a, "b": b, "c": c} for a, b, c in itertools.product(values, (None, 2, 4), (None, 3))
    ]
    texts = [{"a": a, "s": s} for s in ("x", "xy", "xz1", "xyq", "") for a in (None, 1)]
    wide = {f"w{i}": 1 for i in range(70)}
    return [*grid, *texts, wide, wide | {"w69": 2}, {"w3": 1}]


Marks: TypeAlias = npt.NDArray[np.bool_]


class World:
    """Integer events in columns, and conjunctions over them evaluated a column at a time."""

    def __init__(self, seed: int, n_attributes: int, n_events: int, per_event: int) -> None:
        self.random = np.random.default_rng(seed)
        self.names = [f"a{i}" for i in range(n_attributes)]
        self.values = self.random.integers(0, 20, (n_attributes, n_events))
        ranks = self.random.random((n_events, n_attributes)).argsort(axis=1)
        self.present = (ranks < per_event).T.copy()

    def events(self) -> pa.Table:
        columns = {
            name: pa.array(self.values[i], mask=~self.present[i])
            for i, name in enumerate(self.names)
        }
        return pa.table(columns)

    def predicate(self, attribute: int) -> tuple[str, Marks, Marks]:
        """One predicate's text, where it holds, and where it is false."""
        values, present = self.values[attribute], self.present[attribute]
        low, width = self.random.integers(-2, 22, 2).tolist()
        name, high = self.names[attribute], low + abs(width) // 4
        operator = int(self.random.choice(7, p=[0.3, 0.15, 0.15, 0.15, 0.1, 0.1, 0.05]))
        if operator == 0:
            text, holds = f"{name} = {low}", values == low
        elif operator == 1:
            text, holds = f"{name} <= {low}", values <= low
        elif operator == 2:
            text, holds = f"{name} > {low}", values > low
        elif operator == 3:
            text = f"{name} BETWEEN {low} AND {high}"
            holds = (values >= low) & (values <= high)
        elif operator == 4:
            text = f"{name} IN ({low}, {high}, {low})"
            holds = (values == low) | (values == high)
        elif operator == 5:
            text, holds = f"{name} != {low}", values != low
        else:
            return f"{name} IS NULL", ~present, present
        return text, present & holds, present & ~holds

    def conjunction(self) -> tuple[str, Marks]:
        chosen = self.random.choice(len(self.names), self.random.integers(1, 5), replace=False)
        texts, holds, _ = zip(*map(self.predicate, chosen.tolist()), strict=True)
        return " AND ".join(texts), np.logical_and.reduce(holds)

    def nested(self, depth: int) -> tuple[str, Marks, Marks]:
        """A tree of AND, OR and NOT in three-valued logic."""
        if depth == 0 or self.random.random() < 0.2:
            text, holds, fails = self.predicate(int(self.random.integers(len(self.names))))
        else:
            parts = [self.nested(depth - 1) for _ in range(self.random.integers(2, 4))]
            texts, true, false = zip(*parts, strict=True)
            every, some = np.logical_and.reduce, np.logical_or.reduce
            if self.random.random() < 0.5:
                text, holds, fails = "(" + " AND ".join(texts) + ")", every(true), some(false)
            else:
                text, holds, fails = "(" + " OR ".join(texts) + ")", some(true), every(false)
        if self.random.random() < 0.15:
            return f"NOT ({text})", fails, holds
        return text, holds, fails


def pairs(matches: bittern.Matches) -> npt.NDArray[np.int64]:
    """(event, subscription) pairs in order, as one sorted array of numbers."""
    events = np.repeat(np.arange(len(matches)), matches.counts)
    return np.sort(events << 32 | matches.subscriptions)


def right_pairs(holds: list[npt.NDArray[np.bool_]]) -> npt.NDArray[np.int64]:
    subscriptions, events = np.nonzero(np.array(holds))
    return np.sort(events << 32 | subscriptions)
