"""Subscriptions in files: CSV, JSON lines and Parquet, read in parts and written as a whole.

::

    subs.csv      id,expression,weight       ('s1', 'price < 10', ABSENT, 2.0, ABSENT, ABSENT)
                  s1,price < 10,2       ->
    subs.jsonl    {"id": 1, ...}             one line at a time; a line that is not an object is bad
    subs.parquet  row groups                 only the columns that say something are read

Columns are found by name: id and expression, and optionally subscriber, weight, metadata (a JSON
object, in CSV as text) and enabled. Other columns are ignored. A missing column is ``ABSENT`` in
all rows, and a missing key of a line of JSON is ``ABSENT`` in that row (``rows.py``). In CSV an
empty field has no value, and ids are text as written: 007 stays 007.

Memory: a few parts. Cost: O(bytes), JSON lines about 3 us a row.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from bittern.catalog.rows import ABSENT, FIELDS, REMEDY, values_of
from bittern.errors import BadSubscription, BitternError, CatalogError, OptionError
from bittern.files import whole_file
from bittern.model.events.columns import plain

#: Formats by the extensions of files.
SUFFIXES = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_BLOCK = 1 << 22  # bytes of CSV read at a time
_PART = 20_000  # rows of Parquet read at a time
_BOM = b"\xef\xbb\xbf"
_TRUTH = {"true": True, "false": False}


class Incoming(NamedTuple):
    """Rows that are read: about how many (0: not known), and the values of FIELDS of each.

    What is not even a row becomes a ``BadSubscription`` in its place.
    """

    total: int
    values: Iterator[tuple[Any, ...] | BadSubscription]


def format_of(name: str) -> str:
    """csv, jsonl or parquet, by the extension."""
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(sorted(SUFFIXES))
        raise OptionError(f"{name}: the extension must be one of {known}")
    return SUFFIXES[suffix]


def read_file(name: str | os.PathLike[str], form: str | None = None) -> Incoming:
    """The rows of a file; the extension tells its format if none is given."""
    name = os.fspath(name)
    form = form or format_of(name)
    try:
        if form == "parquet":
            with told(name):
                total = pyarrow.parquet.read_metadata(name).num_rows
        else:
            total = _lines(name)
    except OSError as error:
        raise OptionError(f"{name}: {error.strerror or error}") from error
    return Incoming(total, read_rows(name, form))


def read_rows(source: str | IO[bytes], form: str) -> Iterator[tuple[Any, ...] | BadSubscription]:
    """The rows of a file, or of an open stream."""
    name = source if isinstance(source, str) else "standard input"
    with told(name):
        if form == "csv":
            yield from _csv_rows(source)
        elif form == "parquet":
            file = pyarrow.parquet.ParquetFile(
                source if isinstance(source, str) else pa.BufferReader(source.read())
            )
            columns = present(file.schema_arrow.names, name)
            for batch in file.iter_batches(_PART, columns=columns):
                yield from batch_rows(batch)
        elif isinstance(source, str):
            with Path(source).open("rb") as lines:
                yield from _json_rows(lines)
        else:
            yield from _json_rows(source)


@contextmanager
def told(name: str) -> Iterator[None]:
    """Turn Arrow's error about a file into one sentence that names the file."""
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise BitternError(f"{name}: {reason}") from error


def present(names: list[str], what: str) -> list[str]:
    """The FIELDS that a table has, in its order; ``OptionError`` if required ones are missing."""
    columns = [name for name in names if name in FIELDS]
    twins = [name for name in columns if columns.count(name) > 1]
    if twins:
        raise OptionError(f"{what} has several columns named {twins[0]!r}")
    missing = [name for name in FIELDS[:2] if name not in columns]
    if missing:
        raise OptionError(
            f"{what} has no column {' and no column '.join(map(repr, missing))}; it has: "
            f"{', '.join(names) or 'none'}"
        )
    return columns


def batch_rows(
    batch: pa.RecordBatch, convert: dict[str, Callable[[Any], Any]] | None = None
) -> Iterator[tuple[Any, ...]]:
    """The rows of a batch whose columns are among FIELDS, each once."""
    absent = [ABSENT] * batch.num_rows
    columns = []
    for name in FIELDS:
        values = _values(batch.column(name)) if name in batch.schema.names else absent
        if convert and name in convert and values is not absent:
            values = [None if value is None else convert[name](value) for value in values]
        columns.append(values)
    return zip(*columns, strict=True)


def _values(column: pa.Array) -> list[Any]:
    """The column's values. Bytes that are not UTF-8 become half surrogates, which are refused."""
    try:
        values = plain(column).to_pylist()
    except UnicodeDecodeError:
        raws = plain(column).cast(pa.large_binary()).to_pylist()
        return [raw if raw is None else raw.decode(errors="surrogateescape") for raw in raws]
    if pa.types.is_map(column.type):
        return [value if value is None else dict(value) for value in values]
    return values  # type: ignore[no-any-return]


def _csv_rows(source: str | IO[bytes]) -> Iterator[tuple[Any, ...]]:
    # All as text: one weight that is no number is one bad row and not a bad file.
    types = dict.fromkeys(FIELDS, pa.string())
    with pyarrow.csv.open_csv(
        source,
        read_options=pyarrow.csv.ReadOptions(block_size=_BLOCK),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    ) as reader:
        columns = present(reader.schema.names, source if isinstance(source, str) else "the file")
        for batch in reader:
            yield from batch_rows(
                batch.select(columns),
                {"weight": _number, "enabled": lambda text: _TRUTH.get(text.lower(), text)},
            )


def _number(text: str) -> Any:
    """A field of CSV as a number; anything else stays as it is, to be refused later."""
    try:
        return float(text)
    except ValueError:
        return text


def _json_rows(lines: IO[bytes]) -> Iterator[tuple[Any, ...] | BadSubscription]:
    for number, raw in enumerate(lines, 1):
        line = raw.removeprefix(_BOM) if number == 1 else raw
        if line.isspace() or not line:
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as wrong:
            yield BadSubscription(f"line {number}", 0, f"this is not JSON: {wrong}")
            continue
        if isinstance(row, dict):
            yield values_of(row)
        else:
            yield BadSubscription(f"line {number}", 0, "a subscription must be a JSON object")


def _lines(name: str) -> int:
    """Count line feeds, which is about the number of rows."""
    with Path(name).open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def write_table(table: pa.Table, file: IO[bytes], form: str, catalog: object) -> None:
    """Write the rows of a version in a form that can be read again. O(rows).

    Messages name the catalog that the rows come from.
    """
    if form == "csv":
        pyarrow.csv.write_csv(table, file)
    elif form == "parquet":
        pyarrow.parquet.write_table(table, file)
    else:
        for batch in table.to_batches(_PART):
            file.writelines(json_line(row, catalog) for row in batch.to_pylist())


def json_line(row: dict[str, Any], catalog: object) -> bytes:
    """A row of a version as JSON; its metadata is an object, not text."""
    if row["metadata"] is not None:
        try:
            row["metadata"] = json.loads(row["metadata"])
        except (ValueError, RecursionError) as wrong:
            raise CatalogError(
                f"catalog {catalog}: the subscription {row['id']!r:.60} has metadata that is not "
                f"JSON: {wrong}: {REMEDY}; 'bittern catalog check' looks for more"
            ) from None
    return (json.dumps(row, default=_iso) + "\n").encode()


def _iso(time: Any) -> str:
    return str(time.isoformat())


def save_table(
    table: pa.Table, name: str | os.PathLike[str], form: str | None, catalog: object
) -> None:
    """Write a file that appears under its name when it is complete."""
    path = Path(name)
    form = form or format_of(str(path))
    try:
        with whole_file(path) as file:
            write_table(table, file, form, catalog)
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from error
