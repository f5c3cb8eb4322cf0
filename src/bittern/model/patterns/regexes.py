"""RE2 over a batch of values: one by one, or a whole column at a time.

There are two ways to call the same engine. A ``google-re2`` object searches one value per Python
call, about 1.3 us, and stays compiled. Arrow's ``match_substring_regex`` searches a column in C++,
less than 0.1 us a value, but compiles again in every call, about 35 us. So a few values are
searched one by one and many as a column; both take the same time at about ``COLUMN_SEARCH`` values.

Memory is bounded however many regular expressions there are: Arrow keeps nothing, and the process
keeps at most ``CACHED_REGEXES`` compiled objects of about ``REGEX_MEMORY`` at most (1 GB if every
one of them were built to need it; ordinary ones take about 4 kB). An object that runs out of memory
for its states continues without them, more slowly: RE2 stays linear in the value.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import re2

#: Compiled regular expressions kept per process, and the memory that each may use.
CACHED_REGEXES = 65_536
REGEX_MEMORY = 16 << 10

#: What a regular expression may need to be compiled at all. Those that need it are not kept.
LARGE_REGEX_MEMORY = 8 << 20

#: From this many values on, one Arrow call is cheaper than a search per value.
COLUMN_SEARCH = 24


def compiled(pattern: bytes, memory: int = LARGE_REGEX_MEMORY) -> Any:
    """Compile with RE2; raises ``re2.error`` if it is not valid or needs more memory."""
    options = re2.Options()
    options.max_mem = memory
    options.never_capture = True
    options.log_errors = False
    return re2.compile(pattern, options=options)


@lru_cache(maxsize=CACHED_REGEXES)
def small(pattern: bytes) -> Any:
    """Compile and keep; None for a pattern that needs more than ``REGEX_MEMORY``."""
    try:
        return compiled(pattern, REGEX_MEMORY)
    except re2.error:
        return None


class Texts:
    """A batch of UTF-8 values to search, shared with the caller, not copied."""

    def __init__(self, data: np.ndarray, offsets: np.ndarray) -> None:
        self._view = data.data
        self._offsets = offsets
        self._column = pa.LargeStringArray.from_buffers(
            len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data)
        )

    def search_all(self, pattern: bytes) -> np.ndarray:
        """Tell for every value whether the pattern is found in it. O(bytes of the values)."""
        return self._search_column(pattern, np.arange(len(self._column)))

    def search_groups(
        self, patterns: list[bytes], starts: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """Search pattern i in the values ``rows[starts[i]:starts[i + 1]]``; a mask over rows.

        O(bytes of those values), and a Python call for each of a few rows or for many at once.
        """
        found = np.zeros(len(rows), np.bool_)
        hits: list[int] = []
        view = self._view
        value_starts = self._offsets[rows].tolist()
        value_ends = self._offsets[rows + 1].tolist()
        bounds = starts.tolist()
        for pattern, start, end in zip(patterns, bounds[:-1], bounds[1:], strict=True):
            regex = small(pattern) if end - start < COLUMN_SEARCH else None
            if regex is None:
                found[start:end] = self._search_column(pattern, rows[start:end])
                continue
            search = regex.search
            for i in range(start, end):
                if search(view[value_starts[i] : value_ends[i]]) is not None:
                    hits.append(i)  # noqa: PERF401 - the lists of many groups are one
        found[hits] = True
        return found

    def _search_column(self, pattern: bytes, rows: np.ndarray) -> np.ndarray:
        whole = len(rows) == len(self._column)
        column = self._column if whole else self._column.take(pa.array(rows))
        try:
            found = pc.match_substring_regex(column, pattern.decode())
        except pa.ArrowInvalid:  # Arrow may come with an older RE2, which knows less syntax
            search = compiled(pattern).search
            return np.array([search(value.as_buffer()) is not None for value in column], np.bool_)
        mask: np.ndarray = found.to_numpy(zero_copy_only=False)
        return mask
