"""Reading and writing files: CSV, JSON lines and Parquet as Arrow, in batches.

::

    subs.csv      id,expression           ->  one table (id, expression, weight)
                  s1,price < 10
    events.jsonl  {"price": 5}            ->  arrays of JSON text: the matcher parses, not Python
    events.csv    price,model             ->  record batches; an empty field is a missing attribute
                  5,iphone5s                  (service/csv_events.py)
    matches       event 0: s1, s7         ->  {"event": 0, "subscriptions": ["s1", "s7"]}

Output text is put together by Arrow's string kernels, one call per batch: nothing here loops over
events or matches in Python. Cost: O(bytes) for everything, memory O(one batch) for events.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from bittern.catalog.files import SUFFIXES, told
from bittern.errors import BitternError, OptionError
from bittern.files import whole_file
from bittern.model.distinct import encoded
from bittern.model.events.json.lines import json_texts
from bittern.service.csv_events import CsvEvents, read_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BLOCK = 1 << 24  # bytes from which the types of a file's columns are told
_TEXT = pa.large_string()
_BOM = b"\xef\xbb\xbf"  # some editors begin a file with it; Arrow skips it in CSV


def format_of(name: str, given: str | None, option: str = "--format") -> str:
    """The format of a file: the one given, else by its extension; '-' is JSON lines."""
    if given:
        return given
    if name == "-":
        return "jsonl"
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(sorted(SUFFIXES))
        raise OptionError(f"{name}: the extension must be one of {known}; or use {option}")
    return SUFFIXES[suffix]


def _shown(name: str) -> str:
    return "standard input" if name == "-" else name


def standard_input() -> IO[bytes]:
    """Return standard input; raises if the parent process closed it."""
    if sys.stdin is None:
        raise BitternError("standard input is closed")
    return sys.stdin.buffer


def standard_output() -> IO[bytes]:
    """Return standard output; raises if the parent process closed it."""
    if sys.stdout is None:
        raise BitternError("standard output is closed")
    return sys.stdout.buffer


@contextlib.contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    if name == "-":
        yield standard_input()
    else:
        with Path(name).open("rb") as file:
            yield file


def _read_all(name: str) -> bytes:
    with _opened(name) as file:
        return file.read()


# Subscriptions


def read_subscriptions(
    name: str, form: str, id_column: str, expression_column: str, weight_column: str | None
) -> pa.Table:
    """Read the columns ``id``, ``expression`` and, if it exists, ``weight``. O(bytes)."""
    wanted = (id_column, expression_column, weight_column or "weight")
    if len(set(wanted)) < len(wanted):
        raise OptionError("id, expression and weight must be three different columns")
    with told(_shown(name)):
        if form == "csv":
            table = _subscriptions_csv(_read_all(name), wanted)
        elif form == "jsonl":
            table = _subscriptions_json(_read_all(name), wanted)
        else:
            table = pyarrow.parquet.ParquetFile(pa.BufferReader(_read_all(name))).read()
    required = wanted if weight_column else wanted[:2]
    for column in required:
        if column not in table.column_names:
            found = ", ".join(table.column_names) or "none"
            raise BitternError(f"{_shown(name)} has no column {column!r}; it has: {found}")
    for column in wanted:
        if table.column_names.count(column) > 1:
            raise BitternError(f"{_shown(name)} has several columns named {column!r}")
    present = [column for column in wanted if column in table.column_names]
    return table.select(present).rename_columns(["id", "expression", "weight"][: len(present)])


def _subscriptions_csv(data: bytes, wanted: tuple[str, str, str]) -> pa.Table:
    types = dict(zip(wanted, (pa.string(), pa.string(), pa.float64()), strict=True))
    table = pyarrow.csv.read_csv(
        pa.BufferReader(data),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(column_types=types, null_values=[""]),
    )
    if table.column_names.count(wanted[0]) != 1:
        return table
    # Text that is an integer's only spelling is that integer; "007" stays what it is.
    where = table.column_names.index(wanted[0])
    ids = table.column(where)
    if pc.all(pc.match_substring_regex(ids, r"^(0|-?[1-9][0-9]{0,17})$"), min_count=1).as_py():
        return table.set_column(where, wanted[0], ids.cast(pa.int64()))
    return table


def _subscriptions_json(data: bytes, wanted: tuple[str, str, str]) -> pa.Table:
    def read(id_type: pa.DataType) -> pa.Table:
        types = zip(wanted, (id_type, pa.string(), pa.float64()), strict=True)
        return pyarrow.json.read_json(
            pa.BufferReader(data),
            read_options=pyarrow.json.ReadOptions(block_size=_BLOCK),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=pa.schema(types), unexpected_field_behavior="ignore"
            ),
        )

    data = data.removeprefix(_BOM)
    if not data or data.isspace():
        return pa.table({column: pa.array([], pa.string()) for column in wanted[:2]})
    about_id = f"(/{wanted[0]})", "JSON to int64"
    try:
        table = read(pa.int64())
    except pa.ArrowInvalid as error:
        if not any(words in str(error) for words in about_id):
            raise
        try:
            table = read(pa.string())
        except pa.ArrowInvalid as second:
            if about_id[0] not in str(second):
                raise
            message = f"column {wanted[0]!r} must hold only integers or only strings"
            raise pa.ArrowInvalid(message) from second
    for column in wanted:  # Arrow gives a column of nulls to a key that no line has
        if len(table) and table.column(column).null_count == len(table):
            table = table.drop_columns(column)
    return table


# Intervals


def columns_of(name: str, form: str, *enough: set[str]) -> list[str]:
    """Names of a file's columns; JSON lines are read until one set of ``enough`` is complete.

    O(1), but O(bytes) for JSON lines that never complete a set.
    """
    with told(_shown(name)), _opened(name) as file:
        if form == "parquet":
            names: list[str] = pyarrow.parquet.ParquetFile(file).schema_arrow.names
            return names
        if form == "csv":
            options = pyarrow.csv.ParseOptions(newlines_in_values=True)
            return list(pyarrow.csv.open_csv(file, parse_options=options).schema.names)
        found: dict[str, None] = {}
        for number, line in enumerate(file, 1):
            row = _json_row(name, number, line.removeprefix(_BOM) if number == 1 else line)
            found.update(dict.fromkeys(row))
            if any(names <= found.keys() for names in enough):
                break
        return list(found)


def _json_row(name: str, number: int, line: bytes) -> dict[str, Any]:
    if not line or line.isspace():
        return {}
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BitternError(f"{_shown(name)}: line {number} is not JSON: {error}") from error
    return row if isinstance(row, dict) else {}


def read_intervals(name: str, form: str) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Read the columns ``low`` and ``high``, of any ordered type. O(bytes).

    In CSV, an empty cell means no bound; a word is that word, even if it is ``NA``.
    """
    wanted = ["low", "high"]
    with told(_shown(name)):
        data = pa.BufferReader(_read_all(name))
        if form == "csv":
            table = pyarrow.csv.read_csv(
                data,
                parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
                convert_options=pyarrow.csv.ConvertOptions(
                    include_columns=wanted, null_values=[""], strings_can_be_null=True
                ),
            )
        elif form == "jsonl":
            table = pyarrow.json.read_json(
                data, read_options=pyarrow.json.ReadOptions(block_size=_BLOCK)
            )
        else:
            table = pyarrow.parquet.ParquetFile(data).read(columns=wanted)
        return table.column("low"), table.column("high")


# Events


def read_events(
    name: str, form: str, batch_size: int, reject: Callable[[str, str], None]
) -> Iterator[CsvEvents]:
    """Batches of events; calls ``reject(place, reason)`` for rows that cannot be read."""
    with told(_shown(name)):
        if form == "parquet":
            source = pa.BufferReader(_read_all(name)) if name == "-" else name
            yield from map(
                CsvEvents.all_of, pyarrow.parquet.ParquetFile(source).iter_batches(batch_size)
            )
            return
        with _opened(name) as file:
            if form == "csv":
                yield from read_csv(file, batch_size, reject)
            else:
                yield from map(CsvEvents.all_of, json_texts(file, batch_size))


# Matches


def check_target(name: str) -> None:
    """Raise now what writing a file of this name would raise later, after all the work."""
    path = Path(name)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)


@contextlib.contextmanager
def replacing(name: str) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name only when it is complete; '-' is standard output."""
    path = Path(name)
    if name == "-":
        output = standard_output()
        yield output
        output.flush()
    elif path.exists() and not path.is_file():  # a pipe or a device has no half-written state
        with path.open("wb") as file:
            yield file
    else:
        with whole_file(path) as file:
            yield file


class MatchWriter:
    """Writes the matches of one batch after another; events are numbered consecutively."""

    def __init__(self, file: IO[bytes], form: str, id_type: pa.DataType, *, flat: bool) -> None:
        self.flat = flat or form == "csv"  # CSV has no lists
        self._file = file
        self._events = 0
        column = ("subscription", id_type) if self.flat else ("subscriptions", pa.list_(id_type))
        self._schema = pa.schema([("event", pa.int64()), column])
        self._writer: Any = None
        if form == "csv":
            self._writer = pyarrow.csv.CSVWriter(file, self._schema)
        elif form == "parquet":
            self._writer = pyarrow.parquet.ParquetWriter(file, self._schema)

    def write(self, table: pa.Table, n_events: int) -> None:
        """Append a batch's matches: a table of ``event`` and ids, flat or as lists. O(matches)."""
        event = pc.add(table.column(0).cast(pa.int64()), self._events)
        self._events += n_events
        if self._writer is None:
            self._file.write(json_lines(event, table.column(1), flat=self.flat))
        else:
            columns = [event, table.column(1).cast(self._schema.field(1).type)]
            self._writer.write_table(pa.table(columns, schema=self._schema))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Finish the file's format; the file itself stays open.

        After a failure too, or Arrow would try it later, when the file is closed, and complain.
        """
        if self._writer is not None:
            with contextlib.suppress(*(() if kind is None else (Exception,))):
                self._writer.close()


def json_lines(event: pa.ChunkedArray, ids: pa.ChunkedArray, *, flat: bool) -> memoryview:
    """One JSON object per event, or per match when ``flat``, as UTF-8 lines. O(matches)."""
    (event, ids) = (_one(event), _one(ids))
    if flat:
        shown, middle, end = _json_ids(ids), ', "subscription": ', "}\n"
    else:
        values = _json_ids(ids.flatten())
        offsets = pc.subtract(ids.offsets, ids.offsets[0]).cast(pa.int64())
        lists = pa.LargeListArray.from_arrays(offsets, values)
        shown, middle, end = pc.binary_join(lists, _scalar(", ")), ', "subscriptions": [', "]}\n"
    lines = pc.binary_join_element_wise(
        _scalar('{"event": '), event.cast(_TEXT), _scalar(middle), shown, _scalar(end), _scalar("")
    )
    if not len(lines):
        return memoryview(b"")
    offsets = memoryview(lines.buffers()[1]).cast("q")
    first, last = offsets[lines.offset], offsets[lines.offset + len(lines)]
    return memoryview(lines.buffers()[2])[first:last]


def _one(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, _TEXT)


def _json_ids(ids: pa.Array) -> pa.Array:
    """Each id as JSON. Strings are escaped only if one has quotes or backslashes, which is rare."""
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    if pa.types.is_integer(ids.type):
        return ids.cast(_TEXT)
    ids = ids.cast(_TEXT)
    if pc.any(pc.match_substring_regex(ids, r'[\x00-\x1f"\\]')).as_py():
        coded = encoded(ids)
        escaped = [json.dumps(text, ensure_ascii=False) for text in coded.dictionary.to_pylist()]
        return pa.array(escaped, _TEXT).take(coded.indices)
    return pc.binary_join_element_wise(_scalar('"'), ids, _scalar('"'), _scalar(""))
