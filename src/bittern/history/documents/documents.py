"""Earlier documents, complete and durable, in order of arrival.

Documents are numbered as they arrive, from 0. The living ones are ``[first, end)``. They are stored
in segments (``history/documents/segments.py``), which are rows of a table in SQLite::

    history/documents.sqlite     start  count  data
                                 0      8192   blocks ...    full: not written again
        first 5000               8192   512    blocks ...
        end   8777               8704   64     blocks ...
                                 8768   8      blocks ...
                                 8776   1      blocks ...    the last append

An append adds a segment. Eight in a row that are alike in size become one, in the same
transaction, and smaller ones before a larger one become part of it. So there are O(log n) segments
besides the full ones, and a document is written O(log n) times until it is in a full one. Expiring
moves ``first`` and deletes segments that are all below it; the file reuses their room, and gives it
back when half of the file is empty.

``append`` is durable when it returns, and what a killed process had begun is undone when the folder
is next opened (``history/documents/file.py``). A change that ended with an exception happened
completely or not at all, and only the file knows which: an interrupt may come just after its
COMMIT. So the file is read again before anything else is done. A document that cannot be read as it
was written is reported, never skipped: bytes have checksums, and numbers must be consecutive.

Why SQLite and not a folder of Parquet files: appends of one event and of many take about half as
long, although there are four syncs to each instead of two, and reading two of nine attributes takes
less time too; only in room is Parquet better, with little more than half of it. Merging and
expiring are one transaction with the append, where files would have to be put right after a crash,
tables of different columns share a segment, and Arrow's types stay exactly what they were. A row
for each document instead of each append is faster for appends of one event, and many times slower
and larger in all else. Figures: ``python -m benchmarks.history.store``.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bittern.errors import HistoryError, OptionError, brief
from bittern.history.documents.arrivals import Arrivals
from bittern.history.documents.file import (
    Claimed,
    checksum,
    claim,
    connect,
    create,
    take,
    translated,
)
from bittern.history.documents.segments import StoredEvents, merge, pack, unpack
from bittern.model.events.typed.typed import Typed, TypedReader
from bittern.processes import follow_forks

#: So many segments of one level become one of the next: a level is so many bits of documents.
_FAN, _LEVEL_BITS = 8, 3
#: With as many documents, or bytes, a segment is full, and of this level.
_FULL, _FULL_BYTES, _FULL_LEVEL = 1 << 13, 1 << 24, 5
#: A longer append makes several segments, and so does a larger one: SQLite's rows have 10**9 bytes.
_MOST, _MOST_BYTES = 1 << 16, 1 << 29


class _Segment(NamedTuple):
    start: int
    n_documents: int
    n_bytes: int

    @property
    def stop(self) -> int:
        return self.start + self.n_documents

    @property
    def level(self) -> int:
        if self.n_documents >= _FULL or self.n_bytes >= _FULL_BYTES:
            return _FULL_LEVEL
        return (self.n_documents.bit_length() - 1) // _LEVEL_BITS


class _State(NamedTuple):
    """The state of the documents between two changes."""

    first: int
    end: int
    segments: list[_Segment]


class _Walk:
    """A reader that goes from segment to segment, as long as this object lives."""


class Documents:
    """The documents of a history. Threads may share it."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Open or create the documents in their own folder; without a path, in memory.

        ``HistoryError`` if the folder holds something else, is in use, or is damaged.
        """
        #: Only this one uses the file; documents in memory are a child's own.
        self._process = None if path is None else os.getpid()
        self._lock = threading.RLock()
        self._walks: weakref.WeakSet[_Walk] = weakref.WeakSet()
        self._in_doubt = False
        self._is_closed = False
        self._is_torn = False
        self._claimed = Claimed()
        weakref.finalize(self, self._claimed.close)  # if it is never closed
        try:
            self._file = ":memory:" if path is None else claim(path, self._claimed)
            with translated(self._file):
                self._db = self._claimed.db = connect(self._file).cursor()
                if path is None:
                    create(self._db)
                take(self._db, self._file)
                self._known = self._stored_state()
            follow_forks(self)
        except BaseException:
            self._claimed.close()
            raise

    @property
    def _state(self) -> _State:
        """The present state; read from the file if a change ended with an exception."""
        if self._in_doubt:
            with self._lock, self._using():
                pass
        return self._known

    @property
    def first(self) -> int:
        """The number of the oldest living document."""
        return self._state.first

    @property
    def end(self) -> int:
        """The number that the next document gets."""
        return self._state.end

    def __len__(self) -> int:
        first, end, _ = self._state
        return end - first

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder; everything is on disk already."""
        self._is_closed = True
        with self._lock:
            self._claimed.close()

    @property
    def _is_inherited(self) -> bool:
        return self._process not in (None, os.getpid())

    def after_fork(self) -> None:
        """In a forked child: a thread that held the lock is not here to finish what it began."""
        self._is_torn |= not self._lock.acquire(blocking=False)
        self._lock = threading.RLock()

    def append(
        self, events: Any, json: str | Sequence[str] = (), keep: npt.ArrayLike | None = None
    ) -> int:
        """Add events of any form that can be matched; returns the number of the first. O(bytes).

        ``json`` names columns of a table that hold JSON objects as text. ``keep`` says for each
        event whether it becomes a document. They are on disk when this returns. If it raises,
        either all were added or none, and ``end`` tells which.
        """
        arrivals = Arrivals(events, json, keep)
        packed = []
        for start in range(0, len(arrivals), _MOST):
            packed += self._packed(arrivals, start, min(len(arrivals), start + _MOST))
        with self._lock:
            end = self._state.end
            if packed:
                self._write(lambda: self._added(packed))
        return end

    def _added(self, packed: list[tuple[int, bytes]]) -> _State:
        first, at, known = self._state
        segments = known.copy()
        for n_documents, data in packed:
            segments.append(self._insert(at, n_documents, data))
            at = segments[-1].stop
            self._merge(segments)
        return _State(first, at, segments)

    def expire(self, before: int) -> None:
        """Remove all documents with lower numbers."""
        with self._lock:
            first, end, segments = self._state
            if before > end:
                raise OptionError(
                    f"documents before {brief(before)} cannot expire: there are none from {end} on"
                )
            if before <= first:
                return
            gone = bisect_right(segments, before, key=lambda segment: segment.stop)
            at = segments[gone].start if gone < len(segments) else end
            left = _State(before, end, segments[gone:])

            def expired() -> _State:
                self._db.execute("DELETE FROM segments WHERE start < ?", (at,))
                return left

            self._write(expired)
            with self._using():
                if self._pragma("freelist_count") > self._pragma("page_count") // 2:
                    self._db.executescript("PRAGMA incremental_vacuum")  # execute: one page

    def scan(
        self, attributes: Sequence[str], start: int | None = None, stop: int | None = None
    ) -> Iterator[tuple[int, Typed]]:
        """Values in order of arrival, as (number of the first document, values of it and more).

        Reads the documents that live now, from ``start`` up to ``stop``; those that expire before
        they are reached are left out. O(bytes + values).
        """
        reader = TypedReader(attributes)
        first, end, _ = self._state
        start = first if start is None else start
        return self._scan(reader, start, end if stop is None else min(stop, end))

    def stored(self) -> Iterator[tuple[int, StoredEvents]]:
        """The documents that live now, in order of arrival: (number of the first, events).

        The first events may have expired: numbers tell.
        """
        first, end, _ = self._state
        for _, start, events in self._walk(first, end):
            yield start, events

    def statistics(self) -> dict[str, Any]:
        """Documents, segments, their bytes, and those of the file."""
        with self._lock, self._using():
            segments = self._state.segments
            return {
                "documents": len(self),
                "segments": len(segments),
                "segment_bytes": sum(segment.n_bytes for segment in segments),
                "file_bytes": self._pragma("page_count") * self._pragma("page_size"),
            }

    def check(self) -> None:
        """Read everything; ``HistoryError`` says what is damaged."""
        with self._lock, self._using():
            (found,) = self._db.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise self._damaged(found)
            if self._stored_state() != self._state:
                raise self._damaged("another process has written to it")
            for segment in self._state.segments:
                for block in unpack(self._data(segment)):
                    block.rows.validate()
                    places = block.explicit(0)
                    if not 0 <= places.min() <= places.max() < segment.n_documents:
                        raise self._damaged(f"documents from {segment.start} on have no place")

    # ------------------------------------------------------------------ segments

    def _packed(self, arrivals: Arrivals, start: int, stop: int) -> list[tuple[int, bytes]]:
        """Documents as segments, (documents, bytes) each; in halves where one is too large."""
        data = pack(arrivals.blocks(start, stop))
        if len(data) <= _MOST_BYTES:
            return [(stop - start, data)]
        if stop - start == 1:
            raise HistoryError(
                f"a document of {len(data)} bytes is too large for a history, which holds at most "
                f"{_MOST_BYTES} in one"
            )
        middle = (start + stop) // 2
        return self._packed(arrivals, start, middle) + self._packed(arrivals, middle, stop)

    def _insert(self, start: int, n_documents: int, data: bytes) -> _Segment:
        row = start, n_documents, checksum(start, n_documents, data), data
        self._db.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", row)
        return _Segment(start, n_documents, len(data))

    def _merge(self, segments: list[_Segment]) -> None:
        """Merge segments at the end, as often as it is due, unless there are readers."""
        while n_last := 0 if self._walks else _to_merge(segments):
            last = segments[-n_last:]
            data = merge((segment.n_documents, self._data(segment)) for segment in last)
            start, stop = last[0].start, last[-1].stop
            self._db.execute("DELETE FROM segments WHERE start >= ?", (start,))
            segments[-n_last:] = [self._insert(start, stop - start, data)]

    def _data(self, segment: _Segment) -> bytes:
        """The bytes of a segment, just as they were written."""
        query = "SELECT count, checksum, data FROM segments WHERE start = ?"
        count, expected, data = self._db.execute(query, (segment.start,)).fetchone() or (0, 0, None)
        if (
            not isinstance(data, bytes)
            or count != segment.n_documents
            or expected != checksum(segment.start, segment.n_documents, data)
        ):
            raise self._damaged(f"documents {segment.start} to {segment.stop - 1} are unreadable")
        return data

    def _walk(self, at: int, stop: int) -> Iterator[tuple[int, int, StoredEvents]]:
        """Segments from document ``at`` on: (its number, that of the segment's first, events)."""
        walk = _Walk()
        with self._lock:
            self._walks.add(walk)  # so that segments do not merge with those that were passed
        try:
            while True:
                with self._lock, self._using():
                    at = max(at, self._state.first)
                    if at >= stop:
                        return
                    segments = self._state.segments
                    segment = segments[bisect_right(segments, at, key=lambda each: each.start) - 1]
                    data = self._data(segment)
                yield at, segment.start, StoredEvents(data, segment.n_documents)
                at = segment.stop
        finally:
            with self._lock:
                self._walks.discard(walk)

    def _scan(self, reader: TypedReader, at: int, stop: int) -> Iterator[tuple[int, Typed]]:
        for begin, start, events in self._walk(at, stop):
            typed = reader.read(events).typed
            end = min(stop, start + events.n_documents)
            if end - begin < events.n_documents:
                typed = typed.take(np.arange(begin - start, end - start))
            yield begin, typed

    # ------------------------------------------------------------------ the database

    def _stored_state(self) -> _State:
        """The two numbers and the list of segments, which must agree."""
        states = self._db.execute("SELECT * FROM state").fetchall()
        query = "SELECT start, count, length(data) FROM segments ORDER BY start"
        rows = self._db.execute(query).fetchall()
        if len(states) != 1 or not all(type(n) is int for row in (*states, *rows) for n in row):
            raise self._damaged("its numbers are unreadable")
        first, end, expected = states[0]
        if expected != checksum(first, end):
            raise self._damaged("its numbers are not those that were written")
        segments = list(map(_Segment._make, rows))
        # The first one may begin with documents that have expired.
        at = min(first, segments[0].start) if segments else first
        if segments and segments[0].stop <= first:
            raise self._damaged(f"documents before {first} have not expired")
        for segment in segments:
            if segment.start != at or segment.n_documents < 1:
                raise self._damaged(f"documents from {at} on are missing")
            at = segment.stop
        if at != end:
            raise self._damaged(f"documents from {at} to {end - 1} are missing")
        return _State(first, end, segments)

    def _write(self, change: Callable[[], _State]) -> None:
        """Write a change to disk in one transaction, and only then update the state here.

        An exception may come before or after the COMMIT. This is not a context manager: a second
        exception could come before its ``__exit__`` runs, and the change would stay in doubt.
        """
        with self._using():
            try:
                self._db.execute("BEGIN IMMEDIATE")
                state = change()
                numbers = state.first, state.end, checksum(state.first, state.end)
                self._db.execute('UPDATE state SET first = ?, "end" = ?, checksum = ?', numbers)
                self._db.execute("COMMIT")
                self._known = state
            except BaseException:
                self._in_doubt = True
                self._settle()
                raise

    def _settle(self) -> None:
        """Undo what was begun and not committed, and read the state from the file."""
        if self._db.connection.in_transaction:
            self._db.execute("ROLLBACK")
        self._known = self._stored_state()
        self._in_doubt = False

    @contextlib.contextmanager
    def _using(self) -> Iterator[None]:
        if self._is_inherited:
            raise HistoryError(
                f"the documents in {self._file} were opened before a fork: use them in the parent "
                "process, or close them there and open them here"
            )
        if self._is_torn:
            raise HistoryError(
                "these documents cannot be used here: another thread was using them when this "
                "process was forked; fork at another time, or make a history in this process"
            )
        if self._is_closed:
            raise HistoryError(f"the documents in {self._file} were closed: open them again")
        with translated(self._file):
            if self._in_doubt:
                self._settle()
            yield

    def _pragma(self, name: str) -> int:
        (value,) = self._db.execute(f"PRAGMA {name}").fetchone()
        return int(value)

    def _damaged(self, why: str) -> HistoryError:
        return HistoryError(f"{self._file} is damaged: {why}; restore it from a backup")


def _to_merge(segments: Sequence[_Segment]) -> int:
    """How many segments at the end should become one; 0 if none.

    A run of one level should be merged once it is long enough. So should smaller segments before a
    larger one, which would never be part of such a run.
    """
    level = segments[-1].level
    n_run = n_joining = 0
    for segment in reversed(segments):
        if segment.level > level or (n_run and segment.level == _FULL_LEVEL):
            break
        n_run += 1
        if segment.level < level:
            n_joining = n_run
    return n_joining or (n_run if n_run >= _FAN else 0)
