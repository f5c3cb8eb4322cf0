"""Lines of JSON as arrays of text, batch by batch: the encoder parses them, not Python.

O(bytes), memory O(one batch).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import IO

import numpy as np
import pyarrow as pa

from bittern.model.strings import arrow_text

_BATCH_BYTES = 1 << 26  # a batch ends here even when it has few events
_LINE_FEED = 10
_BOM = b"\xef\xbb\xbf"  # some editors begin a file with it


def json_texts(file: IO[bytes], batch_size: int) -> Iterator[pa.Array]:
    """Lines that are not blank, as arrays of text."""
    lines: list[bytes] = []
    size = 0
    start = file.readline().removeprefix(_BOM)
    for line in itertools.chain([start], file):
        if not line or line.isspace():
            continue
        lines.append(line)
        size += len(line)
        if len(lines) == batch_size or size >= _BATCH_BYTES:
            yield _as_text(lines)
            lines, size = [], 0
    if lines:
        yield _as_text(lines)


def texts_of(body: bytes) -> pa.Array:
    """The lines of a whole UTF-8 text that are not blank. Each keeps its line feed: no copy."""
    import pyarrow.compute as pc  # noqa: PLC0415  half of what all imports take

    body = body.removeprefix(_BOM)
    data = np.frombuffer(body, np.uint8)
    ends = np.flatnonzero(data == _LINE_FEED) + 1
    last = [] if not len(data) or data[-1] == _LINE_FEED else [len(data)]
    lines = arrow_text(data, np.concatenate(([0], ends, last)).astype(np.int64))
    blank = pc.ascii_is_space(lines)
    return lines.filter(pc.invert(blank)) if pc.any(blank).as_py() else lines


def _as_text(lines: list[bytes]) -> pa.Array:
    try:
        return pa.array(lines, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        # Bytes that are not UTF-8 become \xNN, which is no JSON: only their events are rejected.
        return pa.array([line.decode("utf-8", "backslashreplace") for line in lines], pa.string())
