"""Subscriptions and ids as callers give them: mappings, pairs and tables, a chunk at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from bittern.errors import OptionError, brief
from bittern.model.events.columns import from_frame, plain

#: So many subscriptions are read at a time.
CHUNK = 50_000


class HasArrowStream(Protocol):
    """A table of Arrow, pandas or polars."""

    def __arrow_c_stream__(self, requested_schema: Any = None, /) -> Any:
        """Its rows, as libraries hand them to each other."""
        ...


#: What subscriptions may be given as: id to expression, (id, expression[, weight]), or a table.
GivenSubscriptions = (
    Mapping[str, str]
    | Mapping[int, str]
    | Iterable[tuple[str | int, str] | tuple[str | int, str, float | None]]
    | HasArrowStream
)

GivenRows = Iterator[tuple[Any, Any, Any]]


class GivenChunk(NamedTuple):
    """Some subscriptions: ids, texts (of a table an Arrow array if all are text), weights."""

    ids: list[Any]
    texts: list[Any] | pa.Array
    weights: list[Any] | None


def given_rows(source: Any) -> tuple[int, GivenRows]:
    """How many subscriptions there are (0: not known), and (id, expression, weight) of each."""
    total, chunks = given_chunks(source)
    return total, itertools.chain.from_iterable(map(rows_of, chunks))


def rows_of(chunk: GivenChunk) -> GivenRows:
    """(id, expression, weight) of each subscription of a chunk."""
    ids, texts, weights = chunk
    texts = _values(texts) if isinstance(texts, pa.Array) else texts
    return zip(ids, texts, itertools.repeat(None) if weights is None else weights, strict=False)


def given_chunks(source: Any) -> tuple[int, Iterator[GivenChunk]]:
    """How many subscriptions there are (0: not known), and chunks of them."""
    if isinstance(source, Mapping):
        return len(source), _pair_chunks((k, v, None) for k, v in source.items())
    if hasattr(source, "__dataframe__") and not isinstance(source, pa.Table | pa.RecordBatch):
        try:
            source = from_frame(source)
        except ValueError as wrong:
            raise OptionError(str(wrong)) from None
    if isinstance(source, pa.Table | pa.RecordBatch):
        check_columns(source.schema.names, "table")
        return source.num_rows, _table_chunks(source)
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        raise OptionError(
            "subscriptions must be a mapping from id to expression, pairs (id, expression), or a "
            f"table with the columns id and expression, not {type(source).__name__}"
        )
    total = len(source) if isinstance(source, Sized) else 0
    return total, _pair_chunks(_pair_rows(source))


def check_columns(names: list[str], what: str) -> None:
    """Raise unless a table (or ``what`` it is) with these columns can hold subscriptions."""
    twins = [name for name in ("id", "expression", "weight") if names.count(name) > 1]
    if twins:
        raise OptionError(f"the {what} of subscriptions has two columns named {twins[0]!r}")
    missing = [name for name in ("id", "expression") if name not in names]
    if missing:
        raise OptionError(
            f"a {what} of subscriptions needs the columns id, expression and optionally weight; "
            f"{' and '.join(missing)} missing from {', '.join(names) or 'no columns'}"
        )


def _table_chunks(table: pa.Table | pa.RecordBatch) -> Iterator[GivenChunk]:
    weighted = "weight" in table.schema.names
    for start in range(0, table.num_rows, CHUNK):
        part = table.slice(start, CHUNK)
        weights = part["weight"].to_pylist() if weighted else None
        yield GivenChunk(_values(part["id"]), _texts(part["expression"]), weights)


def _texts(column: pa.Array | pa.ChunkedArray) -> list[Any] | pa.Array:
    """A column as one array if it holds nothing but text, else its values."""
    texts = plain(column)
    is_text = pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)
    if is_text and not texts.null_count:
        return texts.cast(pa.large_string())
    return _values(column)


def _pair_chunks(rows: GivenRows) -> Iterator[GivenChunk]:
    """Chunks of rows, the last of them smaller."""
    while chunk := list(itertools.islice(rows, CHUNK)):
        ids, texts, weights = map(list, zip(*chunk, strict=True))
        yield GivenChunk(ids, texts, weights if set(map(type, weights)) != {type(None)} else None)


def _values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The column's values. Bytes that are not UTF-8 become half surrogates, which are refused."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        raws = plain(column).cast(pa.large_binary()).to_pylist()
        return [raw if raw is None else raw.decode(errors="surrogateescape") for raw in raws]


def given_ids(source: Any) -> list[Any]:
    """Ids from any iterable, or from an Arrow or pandas column."""
    if isinstance(source, pa.Array | pa.ChunkedArray):
        return _values(source)
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        raise OptionError(f"ids must be a list or a column, not {type(source).__name__}")
    return list(source)


def _pair_rows(pairs: Iterable[Any]) -> GivenRows:
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) not in (2, 3):
            raise OptionError(
                f"each subscription must be (id, expression) or (id, expression, weight), "
                f"not {brief(pair)}"
            )
        yield (*pair, None) if len(pair) == 2 else tuple(pair)
