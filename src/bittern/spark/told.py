"""Checks of what files and databases hold, before it becomes a path or a number.

A checkpoint, a store, a cache or a catalog may have been damaged, or written by another program.
What we write there is small: names that this package has made up itself, and whole numbers.
Anything else is a ``ValueError``; the caller adds the name of the file::

    told = read_told(place.read_bytes())          a JSON object
    whole(told["version"])                        4711, and neither True nor 4711.0 nor "4711"
    component(told["query"])                      5f0e2a7c-..., and neither ../x nor an empty text
"""

from __future__ import annotations

import json
import re
from typing import Any

#: Ids of snapshots, catalogs and queries, and the fixed names beside them.
_COMPONENT = re.compile(r"[0-9a-z](?:[0-9a-z-]{0,126}[0-9a-z])?")
#: Names of files that tasks tell of, Spark's own among them.
_FILE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,253}")
#: A number as a folder's name has it: each has one form.
NUMBER = r"(?:0|[1-9][0-9]{0,18})"


def read_told(text: str | bytes) -> dict[str, Any]:
    """The JSON object of a small file."""
    try:
        told = json.loads(text)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    if not isinstance(told, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 (of what was read, as the others)
    return told


def whole(value: Any) -> int:
    """A whole number of at least 0, which is an ``int`` and not a ``bool``."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r:.40} is not a whole number of at least 0")
    return value


def words(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} is not text")  # noqa: TRY004
    return value


def component(value: Any) -> str:
    """A name that may become one part of a path: digits, small letters and dashes."""
    if not isinstance(value, str) or not _COMPONENT.fullmatch(value):
        raise ValueError(f"{value!r:.60} is not a name of digits, small letters and dashes")
    return value


def file_name(value: Any) -> str:
    """The name of a file in a known folder."""
    if not isinstance(value, str) or not _FILE.fullmatch(value):
        raise ValueError(f"{value!r:.60} is not the name of a file")
    return value
