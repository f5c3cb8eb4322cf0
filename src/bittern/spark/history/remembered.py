"""The documents that a task compares events with, and the process that keeps them.

A closure carries the names of files, in order of arrival. A worker process reads them the first
time, and keeps what the join phase (``history/joins/joins.py``) knows of their documents for the
tasks to come, which most often ask for the same, or for some more::

    parts of a task   what the process has   what it does
    p0 p1             -                      reads p0 and p1
    p0 p1             p0 p1                  nothing
    p0 p1 p2          p0 p1                  reads p2
    p1 p2             p0 p1 p2               reads p1 and p2 into a new history
    p01 p2            p0 p1                  reads p2, if numbers say that p01 is p0 and p1
    p0 p1             p0 p1, then 3 events   reads p0 and p1 into a new history

The last line is a task that matched events in order, each of which became a document: the next
task, even if it is the same task again, must not see them. So the answer of a task depends only on
what its closure carries, wherever and however often it runs. ``moved_on`` is for callers that put
these same events into a part.

Only columns that can say something about the attributes that quantified predicates ask documents
for are read; where a later task asks for more, everything is read again. Spark gives a process one
task at a time, so there is one history in it. O(documents) to read, then as ``LiveMatcher``.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from bittern.engine.index import Index
from bittern.engine.live.delta import State
from bittern.engine.matcher import StateMatcher
from bittern.errors import HistoryError, SnapshotError
from bittern.history.documents.segments import can_say
from bittern.history.history import History
from bittern.history.joins.joins import Joins
from bittern.language.quantifiers import is_hidden, quantified_of, sides_of_quantified
from bittern.model.events.mappings import Names
from bittern.model.matches import Matches
from bittern.spark.snapshots import transport
from bittern.terms.spelling import does_case_count

_NO_SETS: Mapping[str, Any] = {}
#: Documents that are read at once.
_ROWS = 1 << 15


@dataclass(frozen=True)
class Remembered:
    """Documents that came before all events of a task, as a closure carries them."""

    #: Paths or URIs of Parquet files, or of folders of them, in order of arrival; in a folder files
    #: come by name, and in a file rows as they stand. What is under a name never changes.
    parts: tuple[str, ...] = ()
    #: How many of the newest documents count; None: all.
    keep: int | None = None
    #: Columns whose text is JSON.
    json: tuple[str, ...] = ()
    #: Tells histories apart whose parts have the same names, or whose documents the same numbers.
    stamp: str = ""
    #: Where documents are numbered for good: the number of each part's first row, and of the next
    #: to come. Then parts may be made of others and yet not be read again.
    numbers: tuple[int, ...] = ()

    def beyond(self, other: Remembered) -> list[tuple[str, int]] | None:
        """What came after the other's documents: parts, each with how many of its rows to skip.

        None if the other has documents that are not among these.
        """
        if (self.keep, self.json, self.stamp) != (other.keep, other.json, other.stamp):
            return None
        if not (self.numbers and other.numbers):
            n = len(other.parts)
            same = self.parts[:n] == other.parts
            return [(part, 0) for part in self.parts[n:]] if same else None
        begin, end = other.numbers[0], other.numbers[-1]
        # What is older than all of these does no harm where only the newest count.
        begins = begin == self.numbers[0] or (begin < self.numbers[0] and self.keep is not None)
        if not begins or not self.numbers[0] <= end <= self.numbers[-1]:
            return None
        parts = zip(self.parts, self.numbers, self.numbers[1:], strict=False)
        return [(part, max(0, end - first)) for part, first, last in parts if last > end]


@dataclass
class _Held:
    """What this process has in memory."""

    remembered: Remembered
    attributes: frozenset[str]  # of documents, that were read
    joins: Joins
    end: int  # of the history when it had the documents of the parts and no others
    case_counts: bool  # in the names of what was read

    def missing(
        self, remembered: Remembered, attributes: frozenset[str]
    ) -> list[tuple[str, int]] | None:
        """What to read to have these documents, as ``beyond``; None if that is not enough."""
        if self.joins.history.end != self.end or not self.attributes >= attributes:
            return None
        if self.case_counts != does_case_count():
            return None
        return remembered.beyond(self.remembered)


_held: _Held | None = None
_asked: WeakKeyDictionary[Index, frozenset[str]] = WeakKeyDictionary()


def joins_at(remembered: Remembered, indexes: Sequence[Index]) -> Joins:
    """Joins of this process whose history has exactly these documents, for use with the indexes.

    A caller that lets events become documents owns the joins from then on. ``HistoryError`` if a
    part cannot be read. O(documents of the parts that are new here).
    """
    global _held
    attributes = _asked_together(indexes)
    held, _held = _held, None  # or a part that cannot be read to its end would leave half of it
    parts = None if held is None else held.missing(remembered, attributes)
    if held is None or parts is None:
        if held is not None:
            held.joins.close()
            held = None  # its memory is free before the next is filled
        parts = [(part, 0) for part in remembered.parts]
        joins = Joins(History(keep=remembered.keep))
        held = _Held(remembered, attributes, joins, 0, does_case_count())
    history, names = held.joins.history, Names(sorted(held.attributes))
    for part, start in parts:
        for events, json in _documents(part, start, remembered.json, names):
            history.append(events, json=json)
    held.remembered, held.end = remembered, history.end
    _held = held
    return held.joins


def moved_on(joins: Joins, remembered: Remembered, indexes: Sequence[Index]) -> None:
    """Let the documents that a task added to these joins count as the last of ``remembered``.

    Its new parts must hold what was matched in order with the indexes, all of it, in that order.
    Nothing happens if the process has other documents by now.
    """
    if _held is None or _held.joins is not joins or not remembered.beyond(_held.remembered):
        return
    _held.remembered, _held.end = remembered, joins.history.end
    _held.attributes = _asked_together(indexes)  # events of a task say nothing of others


class Subscribed(Protocol):
    """Subscriptions as a closure carries them: a snapshot, a view of a catalog's version."""

    @property
    def id(self) -> str:
        """Of the content."""

    def state(self) -> State:
        """What events are matched against, in any process."""

    def sets(self) -> Mapping[str, Any]:
        """The named sets that values are looked up in."""


@dataclass(frozen=True)
class AfterDocuments:
    """Subscriptions together with the documents before all events, as a closure carries them.

    With ``in_order`` a task's events have come one after the other, and each sees those before it.
    Otherwise no event sees another.
    """

    subscribed: Subscribed
    remembered: Remembered
    in_order: bool
    #: What the documents are when the one task of events in order has become some of them.
    then: Remembered | None = None

    @property
    def id(self) -> str:
        """Of the subscriptions."""
        return self.subscribed.id

    def matcher(self) -> HistoryMatcher:
        """A matcher for the events of one run of a task, in any process."""
        return HistoryMatcher(
            self.subscribed.state(),
            self.remembered,
            in_order=self.in_order,
            then=self.then,
            sets=self.subscribed.sets(),
        )


class HistoryMatcher:
    """Matches the events of one run of a task, batch after batch."""

    def __init__(
        self,
        state: State,
        remembered: Remembered,
        *,
        in_order: bool,
        then: Remembered | None = None,
        sets: Mapping[str, Any] = _NO_SETS,
    ) -> None:
        self._state = state
        self._sets = sets
        self._indexes = [segment.index for segment in state.segments]
        self._remembered = remembered
        self._in_order = in_order
        self._then = then
        #: What the last batch was matched with; None before the first.
        self.joins: Joins | None = None

    def match(self, events: Any, *, limit: int | None, json: Sequence[str]) -> Matches:
        """Find the subscriptions that each event satisfies; see ``Matcher.match``."""
        if self.joins is None or not self._in_order:
            self.joins = joins_at(self._remembered, self._indexes)
        return StateMatcher(self._state, self.joins, self._sets).match(
            events,
            limit=limit,
            json=json,
            remember=self._in_order,
            at_once=not self._in_order,
        )

    def finish(self) -> None:
        """All events of the task were matched."""
        if self.joins is not None and self._then is not None:
            moved_on(self.joins, self._then, self._indexes)


# Attributes


def attributes_of_events(names: Iterable[str]) -> list[str]:
    """Names as an index has them, with the attributes of events that hidden ones stand for."""
    found: dict[str, None] = {}
    for name in names:
        own = sides_of_quantified(quantified_of(name))[0] if is_hidden(name) else [name]
        found |= dict.fromkeys(own)
    return list(found)


def attributes_of_documents(names: Iterable[str]) -> list[str]:
    """The attributes of documents that the hidden ones among some names ask for."""
    found: dict[str, None] = {}
    for name in names:
        if is_hidden(name):
            found |= dict.fromkeys(sides_of_quantified(quantified_of(name))[1])
    return list(found)


def _asked_together(indexes: Sequence[Index]) -> frozenset[str]:
    return frozenset[str]().union(*map(_asked_of_documents, indexes))


def _asked_of_documents(index: Index) -> frozenset[str]:
    if index not in _asked:
        _asked[index] = frozenset(attributes_of_documents(index.rank.attribute_names()))
    return _asked[index]


# Files


def part_files(part: str) -> dict[str, fs.FileInfo]:
    """The Parquet files of a part by path or URI, in order of arrival; ``HistoryError`` if odd."""
    filesystem, path = transport.filesystem(part)
    is_local = transport.local_path(part) is not None
    info = filesystem.get_file_info(path)
    if info.type == fs.FileType.File:
        return {path if is_local else part: info}
    if info.type == fs.FileType.NotFound:
        raise HistoryError(f"there is nothing at {part}")
    found = {}
    for each in sorted(
        filesystem.get_file_info(fs.FileSelector(path)), key=lambda each: each.base_name
    ):
        if each.base_name.startswith(("_", ".")):
            continue  # as Spark has it: no data
        if each.type != fs.FileType.File:
            raise HistoryError(
                f"{part} has subfolders: give history= a folder of Parquet files, or a DataFrame "
                f"from spark.read"
            )
        found[each.path if is_local else transport.child(part, each.base_name)] = each
    return found


def _documents(
    part: str, start: int, json: Sequence[str], names: Names
) -> Iterator[tuple[pa.RecordBatch, list[str]]]:
    """Documents of a part with the columns of JSON text among theirs, some at a time.

    The first ``start`` of them are passed over.
    """
    try:
        filesystem, _ = transport.filesystem(part)
        for file in part_files(part).values():
            with (
                filesystem.open_input_file(file.path) as source,
                # Spark's times have microseconds, whatever it stores them as.
                pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as rows,
            ):
                schema = rows.schema_arrow
                saying = [field.name for field in schema if can_say(field, json, names)]
                # One column, if it says nothing: there are as many documents.
                columns = saying or schema.names[:1]
                own = [name for name in json if name in columns]
                for events in rows.iter_batches(_ROWS, columns=columns):
                    passed = min(start, events.num_rows)
                    start -= passed
                    yield events.slice(passed), own
    except (OSError, pa.ArrowException, HistoryError, SnapshotError) as error:
        raise HistoryError(
            f"host {socket.gethostname()} cannot read the documents in {part}: {error}; put the "
            f"history where the driver and all executors can reach it"
        ) from error
