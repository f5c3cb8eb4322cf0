"""Readers for the words of a command line: numbers, bytes, parameters, the release."""

from __future__ import annotations

import argparse
import json
import platform
import re
from collections.abc import Callable
from typing import Any

#: Libraries whose versions a report of a mistake should have.
_TOLD = ("numpy", "numba", "pyarrow", "google-re2", "sqlalchemy", "pyspark", "fastapi")
_GREATEST = 1_000_000_000
_UNITS: dict[str, int] = {"": 1}
_UNITS |= {unit: 1000**power for power, unit in enumerate("kmgt", 1)}
_UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate("kmgt", 1)}
_BYTES = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))? ?((?:[kmgt]i?)?)b?", re.IGNORECASE)


def positive(text: str) -> int:
    """Read a count, 1 or more."""
    number = int(text) if text.isdecimal() and len(text) <= len(str(_GREATEST)) else 0
    if not 1 <= number <= _GREATEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {_GREATEST:,}")
    return number


def n_bytes(text: str) -> int:
    """Read a number of bytes: 5000000, 5M, 5 MB, 1.5G, 2GiB."""
    form = _BYTES.fullmatch(text)
    if form:
        part, unit = form[2] or "", _UNITS[form[3].lower()]
        number, rest = divmod(int(form[1] + part) * unit, int(10 ** len(part)))
        if number and not rest:
            return number
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a number of bytes: write for example 500000000, 500M, 1.5G or 2GiB"
    )


def parameter(text: str) -> tuple[str, Any]:
    """Read a parameter's name and value; a value that is not JSON is a word."""
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not a parameter: write NAME=VALUE")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def named_file(text: str) -> tuple[str, str]:
    """Read the name of a set and the file of its members."""
    name, equals, file = text.partition("=")
    if not name or not equals or not file:
        raise argparse.ArgumentTypeError(f"{text!r} is not a set: write NAME=FILE")
    return name, file


def add_schema(add: Callable[..., Any]) -> None:
    """Add the options about the events' schema to a command (``schema_file.py`` reads it)."""
    add(
        "--schema",
        metavar="FILE",
        help="what the events are like: a Parquet or Arrow file of events, or a JSON object of "
        "names and types",
    )
    add(
        "--unknown",
        choices=("warn", "raise", "ignore"),
        default="warn",
        help="what to do if subscriptions ask for what the schema does not have (default: warn)",
    )
    add_ignore_case(add)


def add_ignore_case(add: Callable[..., Any]) -> None:
    """Add the option about the names of columns."""
    add(
        "--ignore-case",
        action="store_true",
        help="upper and lower case do not count in the names of columns",
    )


class VersionAction(argparse.Action):
    """Print the release, and those of libraries; only this option spends the time to look."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        """Print the release and exit."""
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 (cold start)

        print(f"bittern {version('bittern')}")
        print(f"python {platform.python_version()}")
        for each in _TOLD:
            try:
                print(f"{each} {version(each)}")
            except PackageNotFoundError:
                print(f"{each} is not installed")
        parser.exit()
