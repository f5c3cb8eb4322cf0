"""Subscriptions on their way in: whatever their form, read, checked and put into columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.errors import BadSubscription, ExpressionError, OptionError, SubscriptionError
from bittern.language.shapes import Shapes
from bittern.model.columns import from_frame
from bittern.model.ids import id_problem, normal_id

#: Called with (stage, done, total); total is 0 where it is not known.
Progress = Callable[[str, int, int], None]
_CHUNK = 50_000


class Catalog(NamedTuple):
    """Good subscriptions in columns, and the bad ones."""

    ids: list[str | int]
    texts: pa.Array
    weights: npt.NDArray[np.float64] | None
    shape_ids: npt.NDArray[np.int32]
    parameters: pa.DictionaryArray
    bad: list[BadSubscription]


_Rows = Iterator[tuple[Any, Any, Any]]


def _rows(source: Any) -> tuple[int, _Rows]:
    """How many subscriptions there are (0: not known), and (id, expression, weight) of each."""
    if isinstance(source, Mapping):
        return len(source), ((k, v, None) for k, v in source.items())
    if hasattr(source, "__dataframe__") and not isinstance(source, pa.Table | pa.RecordBatch):
        try:
            source = from_frame(source)
        except ValueError as wrong:
            raise OptionError(str(wrong)) from None
    if isinstance(source, pa.Table | pa.RecordBatch):
        names = source.schema.names
        twins = [name for name in ("id", "expression", "weight") if names.count(name) > 1]
        if twins:
            raise OptionError(f"the table of subscriptions has two columns named {twins[0]!r}")
        missing = [name for name in ("id", "expression") if name not in names]
        if missing:
            raise OptionError(
                f"a table of subscriptions has the columns id, expression and optionally weight; "
                f"{' and '.join(missing)} missing from {', '.join(names) or 'no columns'}"
            )
        return source.num_rows, _table_rows(source)
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        raise OptionError(
            "subscriptions are a mapping from id to expression, pairs (id, expression), or a table "
            f"with the columns id and expression, not {type(source).__name__}"
        )
    total = len(source) if isinstance(source, Sized) else 0
    return total, _pair_rows(source)


def _table_rows(table: pa.Table | pa.RecordBatch) -> _Rows:
    weighted = "weight" in table.schema.names
    for start in range(0, table.num_rows, _CHUNK):
        part = table.slice(start, _CHUNK)
        weights = part["weight"].to_pylist() if weighted else [None] * part.num_rows
        yield from zip(part["id"].to_pylist(), part["expression"].to_pylist(), weights, strict=True)


def _pair_rows(pairs: Iterable[Any]) -> _Rows:
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) not in (2, 3):
            raise OptionError(
                f"each subscription is (id, expression) or (id, expression, weight), "
                f"not {repr(pair)[:60]}"
            )
        yield (*pair, None) if len(pair) == 2 else tuple(pair)


def read_catalog(
    source: Any, shapes: Shapes, *, on_error: str, progress: Progress | None
) -> Catalog:
    """Read everything; all bad subscriptions are collected. O(total text)."""
    if on_error not in ("raise", "skip"):
        raise OptionError(f"on_error is 'raise' or 'skip', not {on_error!r}")
    total, rows = _rows(source)
    reader = _Reader(shapes)
    for n, (id_, text, weight) in enumerate(rows, start=1):
        reader.add(id_, text, weight)
        if n % _CHUNK == 0:
            reader.flush()
            if progress:
                progress("read", n, total)
    reader.flush()
    if progress:
        progress("read", len(reader.ids) + len(reader.bad), total)
    if reader.bad and on_error == "raise":
        raise SubscriptionError(reader.bad)
    return reader.catalog()


class _Reader:
    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self.ids: list[str | int] = []
        self.bad: list[BadSubscription] = []
        self._seen: set[str | int] = set()
        self._chunk_texts: list[str] = []
        self._chunk_parameters: list[str] = []
        self._texts: list[pa.Array] = []
        self._parameters: list[pa.Array] = []
        self._shape_ids: list[int] = []
        self._weights: list[float] = []
        self._weighted = False

    def add(self, id_: Any, text: Any, weight: Any) -> None:
        id_ = normal_id(id_)
        problem = id_problem(id_)
        if problem is None and id_ in self._seen:
            problem = "this id was given before; ids are unique"
        if problem is None and not isinstance(text, str):
            problem = f"an expression is text, not {type(text).__name__}"
        if problem is None and weight is not None and not is_weight(weight):
            problem = f"a weight is a finite number, not {weight!r:.40}"
        if problem is not None:
            self.bad.append(BadSubscription(id_, 0, problem))
            return
        try:
            shape_id, parameters = self._shapes.read(text)
        except ExpressionError as wrong:
            self.bad.append(BadSubscription(id_, wrong.position, wrong.message))
            return
        self._seen.add(id_)
        self.ids.append(id_)
        self._chunk_texts.append(text)
        self._chunk_parameters += parameters
        self._shape_ids.append(shape_id)
        self._weights.append(1.0 if weight is None else float(weight))
        self._weighted |= weight is not None

    def flush(self) -> None:
        """Put the chunk into columns, so that the parameters' many strings can go."""
        self._texts.append(pa.array(self._chunk_texts, type=pa.large_string()))
        parameters = pa.array(self._chunk_parameters, type=pa.large_string())
        self._parameters.append(parameters.dictionary_encode())
        self._chunk_texts, self._chunk_parameters = [], []

    def catalog(self) -> Catalog:
        parameters = pa.chunked_array(self._parameters).unify_dictionaries().combine_chunks()
        if isinstance(parameters, pa.ChunkedArray):
            parameters = parameters.chunk(0)
        return Catalog(
            self.ids,
            pa.concat_arrays(self._texts),
            np.array(self._weights) if self._weighted else None,
            np.array(self._shape_ids, dtype=np.int32),
            parameters,
            self.bad,
        )


def is_weight(weight: Any) -> bool:
    """Is this a number that subscriptions can be ranked by?"""
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        return False
    try:
        return math.isfinite(weight)
    except OverflowError:  # an integer that no float can hold
        return False
