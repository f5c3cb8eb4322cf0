"""Files of members, for named sets on the command line: ``--set vips=vips.csv:user_id``.

::

    .txt       one string a line
    .jsonl     one JSON value a line, or an object of which a column is named
    .csv       a column; numbers and times are told as in events, but 007 stays text
    .parquet   a column, with its type

The column need not be named where there is only one. O(bytes).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from bittern.catalog.files import told
from bittern.errors import BitternError, OptionError

_FORMS = (".txt", ".jsonl", ".ndjson", ".csv", ".parquet")
_INTEGER = r"^(0|-?[1-9][0-9]*)$"
_BOM = "\ufeff"


def read_sets(given: list[tuple[str, str]]) -> dict[str, Any]:
    """The members of sets by name, from (name, file) pairs; no name may come twice."""
    names = [name for name, _ in given]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"--set {name} is given {names.count(name)} times: give it once")
    return {name: read_file(file) for name, file in given}


def read_file(given: str) -> Any:
    """The members in a file, which may have ``:COLUMN`` behind its name."""
    path, column = given, None
    if not Path(given).exists() and ":" in given:
        path, _, column = given.rpartition(":")
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMS:
        raise OptionError(f"{path}: the extension must be one of {', '.join(_FORMS)}")
    Path(path).stat()  # Arrow's error about a missing file does not have its name
    with told(path):
        if suffix == ".txt":
            return _lines(path)
        if suffix == ".csv":
            return _csv(path, column)
        if suffix == ".parquet":
            file = pyarrow.parquet.ParquetFile(path)
            column = _only(path, column, file.schema_arrow.names)
            return file.read(columns=[column]).column(0)
        return _json(path, column)


def _lines(path: str) -> list[str]:
    text = Path(path).read_text(encoding="utf-8").removeprefix(_BOM)
    return [line for line in text.splitlines() if line]


def _only(path: str, column: str | None, names: list[str]) -> str:
    """The column that is named, or the only one that there is."""
    if column is None and len(names) == 1:
        return names[0]
    found = ", ".join(names)
    if column is None:
        raise OptionError(f"{path} has several columns: write {path}:COLUMN with one of {found}")
    if column not in names:
        raise OptionError(f"{path} has no column {column!r}; it has: {found}")
    if names.count(column) > 1:
        raise OptionError(f"{path} has several columns named {column!r}")
    return column


def _csv(path: str, column: str | None) -> pa.ChunkedArray:
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    with pyarrow.csv.open_csv(path, parse_options=options) as file:
        column = _only(path, column, file.schema.names)

    def read(types: dict[str, pa.DataType]) -> pa.ChunkedArray:
        convert = pyarrow.csv.ConvertOptions(
            include_columns=[column],
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        return pyarrow.csv.read_csv(path, parse_options=options, convert_options=convert).column(0)

    members = read({})
    if pa.types.is_integer(members.type):
        texts = read({column: pa.string()})
        if not pc.all(pc.match_substring_regex(texts, _INTEGER)).as_py():
            return texts
    return members


def _json(path: str, column: str | None) -> list[Any]:
    members = []
    text = Path(path).read_text(encoding="utf-8").removeprefix(_BOM)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as wrong:
            raise BitternError(f"{path}: line {number} is not JSON: {wrong}") from None
        if isinstance(value, dict):
            value = value[_only(path, column, list(value))]
        members.append(value)
    return members
