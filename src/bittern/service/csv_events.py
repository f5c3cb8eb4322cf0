"""Events of a CSV file, in batches that know which rows of the file they hold.

::

    price,model                    rows     events of the batch
    5,iphone5s                     0        0   {price: 5, model: iphone5s}
    7                              1            rejected: 1 field, not 2
    9,nokia                        2        1   {price: 9, model: nokia}

                                   Rows(events, numbers=[0, 2], n_rows=3)

The data rows are numbered from 0. Rejected rows count, the header and blank lines do not, so that
a result can be looked up in the file. A byte that is not UTF-8 rejects only its row. Arrow would
refuse the whole file, so such a byte is first replaced by a noncharacter, and the rows that hold
one are removed. Cost: O(bytes), memory O(one block).
"""

from __future__ import annotations

import codecs
import dataclasses
import io
import re
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bittern.model.matches import Matches

_BLOCK = 1 << 24  # bytes from which the types of the columns are told
_CHUNK = 1 << 20
_MARK = "\uffff"  # a noncharacter: no text has it


class CsvEvents(NamedTuple):
    """A batch of events, and their positions among the rows of the file that it covers."""

    events: pa.RecordBatch | pa.Array
    numbers: npt.NDArray[np.int64]
    n_rows: int

    @classmethod
    def all_of(cls, events: pa.RecordBatch | pa.Array) -> CsvEvents:
        """A batch in which every row is an event."""
        return cls(events, np.arange(len(events)), len(events))

    def spread(self, matches: Matches) -> Matches:
        """Matches of the events as matches of the rows: a rejected row has none. O(rows)."""
        counts = np.zeros(self.n_rows + 1, np.int64)
        counts[self.numbers + 1] = matches.counts
        rejects = [(int(self.numbers[event]), reason) for event, reason in matches.rejects]
        return dataclasses.replace(matches, offsets=np.cumsum(counts), rejects=rejects)


def read_csv(
    file: IO[bytes], batch_size: int, reject: Callable[[str, str], None]
) -> Iterator[CsvEvents]:
    """Batches of at most ``batch_size`` events; calls ``reject(place, reason)`` for bad rows."""
    skipped: list[int] = []  # by Arrow, ascending, not yet covered by a batch

    def wrong(row: Any) -> str:
        skipped.append(row.number - 2)  # Arrow counts from 1, and the header
        fields = f"{row.actual_columns} field{'' if row.actual_columns == 1 else 's'}"
        reject(f"row {skipped[-1]}", f"{fields}, not {row.expected_columns}")
        return "skip"

    text = _Utf8(file)
    with pyarrow.csv.open_csv(
        io.BufferedReader(text, _CHUNK),
        # Row numbers are only known when one thread reads.
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=wrong),
        convert_options=pyarrow.csv.ConvertOptions(
            null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    ) as reader:
        if any(_MARK in name for name in reader.schema.names) and text.marked:
            raise pa.ArrowInvalid("the header is not UTF-8")
        covered = following = 0  # rows before those of the next Rows, and of the next Arrow batch
        for batch in reader:
            candidates = np.arange(following, following + len(batch) + len(skipped))
            numbers = np.setdiff1d(candidates, skipped)[: len(batch)]
            following = int(numbers[-1]) + 1 if len(numbers) else following
            skipped[:] = [number for number in skipped if number >= following]
            if text.marked:
                good = ~_marked(batch)
                for number in numbers[~good]:
                    reject(f"row {number}", "it is not UTF-8")
                batch, numbers = batch.filter(pa.array(good)), numbers[good]  # noqa: PLW2901
            for start in range(0, len(batch), batch_size):
                own = numbers[start : start + batch_size]
                n_rows = int(own[-1]) + 1 - covered
                yield CsvEvents(batch.slice(start, batch_size), own - covered, n_rows)
                covered += n_rows
        last = skipped[-1] + 1 if skipped else following
        if last > covered:
            none = pa.RecordBatch.from_pylist([], schema=reader.schema)
            yield CsvEvents(none, np.empty(0, np.int64), last - covered)


def _marked(batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(batch), bool)
    for column in batch.columns:
        if pa.types.is_string(column.type):
            holds = pc.match_substring(column, _MARK).fill_null(False)
            found |= holds.to_numpy(zero_copy_only=False)
    return found


class _Utf8(io.RawIOBase):
    """A file in which each byte that is not UTF-8 is replaced by the mark."""

    def __init__(self, file: IO[bytes]) -> None:
        self.marked = False
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """True: the file can be read (and nothing else)."""
        return True

    def readinto(self, room: Any) -> int:
        """Fill ``room`` with the next bytes and return their number; 0 at the end."""
        while not self._rest:
            chunk = self._file.read(_CHUNK)
            self._rest = memoryview(self._encoded(self._decoder.decode(chunk, final=not chunk)))
            if not chunk:
                break
        size = min(len(room), len(self._rest))
        room[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def _encoded(self, text: str) -> bytes:
        try:
            return text.encode()
        except UnicodeEncodeError:
            self.marked = True
            return re.sub(r"[\udc80-\udcff]", _MARK, text).encode()
