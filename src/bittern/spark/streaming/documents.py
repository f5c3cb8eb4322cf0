"""The documents of a pipeline: the events of all batches before one, as folders of Parquet files.

::

    history/
      _bittern                     which query writes here
      _begin.0.json                {"documents": 0}: batch 0 is the first, and nothing was before it
      batches=0-511/               folders of old batches were made one ...
      batches=512-575/
      batch=576/                   ... those of the last ones are as tasks wrote them
      batch=577/
      .batch=578.<token>.writing/

A batch is matched with the documents of earlier batches. Its own events are written before it is
matched, so that the next batch finds them whatever happens to this one. A folder takes its name in
one rename when all of it is on disk (``spark/sink/staging.py``), and is never written again. Events
that cannot be read do not become documents. The order of documents is that of batches, then of
files by name, then of rows; it is fixed once the folder has its name.

Reading thousands of small folders would be slow, so folders are folded: eight that are neighbours,
by number of the batch, become one, and eight of those, until it has ``_FULL`` bytes. A folder of a
range is complete when it appears, and only then those that it stands for are removed; where both
are found, the larger one counts. So which folders make up the documents before batch n is told by
what is there and by n alone, and a document has the same number ever after::

    before(577)    batches=0-511   batches=512-575   batch=576
    documents      0 ... 51,199    51,200 ... 57,599  57,600 ... 57,699

The batch before the current one is not folded: only these two can be run again. With ``keep``,
folders whose documents are no longer used are removed; a new ``_begin`` records that first.

Cost for each batch: its events are written once, and O(log batches) times again later on; there are
seven folders for each power of eight of batches, besides full ones.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bittern.errors import HistoryError, PipelineError
from bittern.model.events.objects import is_json
from bittern.model.events.typed.typed import TypedReader
from bittern.spark.arrow_types import report_schema
from bittern.spark.attributes import can_cross, placed, quoted
from bittern.spark.history.remembered import Remembered, part_files
from bittern.spark.operator import Batches, Named
from bittern.spark.sink.part_files import PartFile, Table, row_of
from bittern.spark.sink.staging import Staging
from bittern.spark.streaming.outbox import BATCH, Outbox
from bittern.spark.streaming.pins import create_once
from bittern.spark.told import NUMBER, read_told, whole

_FOLDER = re.compile(rf"{BATCH}=({NUMBER})|{BATCH}es=({NUMBER})-({NUMBER})")
_BEGIN = re.compile(rf"_begin\.({NUMBER})\.json")
#: So many folders become one, as long as it has no more bytes than these.
_FAN, _FULL = 8, 128 << 20
_CODEC = "zstd"
#: What a task tells of the file that it wrote.
_STORED = pa.schema([("file", pa.string()), ("bytes", pa.int64())])


class DocumentPart(NamedTuple):
    """A folder of documents, of the batches from ``first`` to ``last``."""

    path: str
    first: int
    last: int
    #: Of its first document.
    number: int
    n_documents: int
    n_bytes: int

    @property
    def end(self) -> int:
        """The number of the document after its last one."""
        return self.number + self.n_documents


class _Begin(NamedTuple):
    """The first batch that has documents, and how many there were in those before it."""

    batch: int
    documents: int


class StreamHistory:
    """The documents of one pipeline. For its driver alone, which holds the checkpoint's lock."""

    def __init__(self, path: Path, keep: int | None = None) -> None:
        self.path = path
        self.keep = keep
        self._outbox = Outbox(path)
        self._query = ""
        self._known: dict[str, tuple[int, int]] = {}  # documents and bytes, by folder

    def claim(self, query_id: str) -> None:
        """Claim the folder for this query, and remove what killed drivers left there."""
        self._outbox.claim(query_id)
        self._outbox.tidy()
        self._query = query_id

    def open(self, batch_id: int) -> None:
        """Prepare for a batch; the very first one starts a history without documents.

        ``PipelineError`` unless each batch before it is there exactly once.
        """
        if self._begin() is None:
            create_once(self._note(batch_id), {"documents": 0})
        self._parts(batch_id)

    def store(self, events: DataFrame, batch_id: int, json: Sequence[str]) -> None:
        """Store the events of a batch, unless they were stored before.

        ``json`` names columns of JSON text; all columns for which Arrow has a type are kept.
        """
        if self._outbox.has(batch_id):
            return
        names = [field.name for field in events.schema if can_cross(field.dataType)]
        frame = events.select(*(F.col(quoted(name)) for name in names))
        with self._outbox.staging(batch_id) as staging:
            task = Named(tuple(names), _Store(_table(staging), tuple(json)))
            reports = placed(frame).mapInArrow(task, report_schema(_STORED)).collect()
            for report in reports:
                if report["file"] is not None:
                    staging.accept(report["file"], report["bytes"])
            staging.commit()

    def before(self, batch_id: int) -> list[DocumentPart]:
        """The folders of all documents before a batch that may be used, the oldest first."""
        parts = self._parts(batch_id)
        if self.keep is None or not parts:
            return parts
        return [part for part in parts if part.end > parts[-1].end - self.keep]

    def count(self, batch_id: int) -> int:
        """The number of documents before a batch that are used."""
        there = sum(part.n_documents for part in self.before(batch_id))
        return there if self.keep is None else min(there, self.keep)

    def remembered(self, batch_id: int) -> Remembered:
        """The documents before a batch, as its tasks carry them."""
        begin, parts = self._begin(), self.before(batch_id)
        assert begin is not None
        numbers = [part.number for part in parts]
        numbers.append(parts[-1].end if parts else begin.documents)
        stamp = f"{self._query} {self.path}"
        paths = tuple(part.path for part in parts)
        return Remembered(paths, self.keep, stamp=stamp, numbers=tuple(numbers))

    def tidy(self, batch_id: int) -> None:
        """Fold folders, and remove what no batch needs, not even one that is run again."""
        parts = [part for part in self._parts(batch_id) if part.last < batch_id - 1]
        if not parts:
            return
        parts = self._without_expired(parts)
        for group in _groups(parts, batch_id - 1):
            self._fold(group)
        self._remove_covered(self._parts(batch_id))

    # -- what is there -------------------------------------------------------------------------

    def _note(self, batch_id: int) -> Path:
        return self.path / f"_begin.{batch_id}.json"

    def _begin(self) -> _Begin | None:
        found = [_BEGIN.fullmatch(entry.name) for entry in self.path.iterdir()]
        batches = [int(match[1]) for match in found if match is not None]
        if not batches:
            return None
        place = self._note(max(batches))
        try:
            return _Begin(max(batches), whole(read_told(place.read_bytes())["documents"]))
        except (OSError, ValueError, KeyError) as error:
            raise PipelineError(f"{place} cannot be read ({error}): restore it") from error

    def _folders(self) -> dict[int, list[tuple[int, str]]]:
        """The last batch and the name of each folder, by its first batch; the largest first."""
        folders: dict[int, list[tuple[int, str]]] = {}
        for entry in self.path.iterdir():
            found = _FOLDER.fullmatch(entry.name)
            if found is not None:
                first = int(found[1] or found[2])
                last = int(found[3] or first)
                if last >= first:
                    folders.setdefault(first, []).append((last, entry.name))
        return {first: sorted(found, reverse=True) for first, found in folders.items()}

    def _parts(self, batch_id: int) -> list[DocumentPart]:
        """Folders that hold each batch before this one, from the first that has documents."""
        begin = self._begin()
        folders = self._folders()
        newest = max((last for found in folders.values() for last, _ in found), default=-1)
        if newest > batch_id or begin is None or begin.batch > batch_id:
            raise PipelineError(
                f"the history in {self.path} does not belong to this state of the checkpoint: the "
                f"stream is at batch {batch_id}, the history at "
                f"{max(newest, begin.batch if begin else -1)}; restore both from the same moment"
            )
        parts, at, number = [], begin.batch, begin.documents
        while at < batch_id:
            last, name = next(
                ((last, name) for last, name in folders.get(at, ()) if last < batch_id), (-1, "")
            )
            if not name:
                raise PipelineError(
                    f"the history in {self.path} lacks batch {at}, and the stream is at {batch_id}:"
                    f" the folder was removed, or the pipeline has run without history; restore it,"
                    f" or remove the whole folder to start with an empty history"
                )
            count, n_bytes = self._counted(name)
            parts.append(DocumentPart(str(self.path / name), at, last, number, count, n_bytes))
            at, number = last + 1, number + count
        return parts

    def _counted(self, name: str) -> tuple[int, int]:
        """Documents and bytes of a folder. O(files) the first time."""
        if name not in self._known:
            files = _files(self.path / name)
            with _reading(self.path / name):
                count = sum(pq.read_metadata(file).num_rows for file in files)
                self._known[name] = count, sum(file.stat().st_size for file in files)
        return self._known[name]

    # -- folding and removing ------------------------------------------------------------------

    def _without_expired(self, parts: list[DocumentPart]) -> list[DocumentPart]:
        """The parts still in use. The others are removed once they are as many as are kept."""
        if self.keep is None:
            return parts
        expired = [part for part in parts if part.end <= parts[-1].end - self.keep]
        if sum(part.n_documents for part in expired) < self.keep:
            return parts
        begin = _Begin(expired[-1].last + 1, expired[-1].end)
        create_once(self._note(begin.batch), {"documents": begin.documents})
        return parts[len(expired) :]

    def _fold(self, parts: Sequence[DocumentPart]) -> None:
        """Make one folder of several that follow each other. O(bytes)."""
        target = self.path / f"{BATCH}es={parts[0].first}-{parts[-1].last}"
        files = [file for part in parts for file in _files(Path(part.path))]
        with Staging(target, "overwrite", recover=False) as staging:
            table = _table(staging)
            # Columns may have come or gone in between: a file for each set of them.
            for number, (_, same) in enumerate(groupby(files, _schema_of)):
                written = table.part(number, 0)
                _copy(list(same), written)
                name, size = written.close()
                if name is not None:
                    staging.accept(name, size)
            staging.commit()

    def _remove_covered(self, parts: Sequence[DocumentPart]) -> None:
        """Remove folders of batches that another folder holds, or that are too old to count."""
        begin = self._begin()
        assert begin is not None
        in_use = {Path(part.path).name for part in parts}
        end = parts[-1].last if parts else begin.batch - 1
        for found in self._folders().values():
            for last, name in found:
                if last <= end and name not in in_use:
                    shutil.rmtree(self.path / name, ignore_errors=True)
                    self._known.pop(name, None)
        for entry in self.path.iterdir():
            note = _BEGIN.fullmatch(entry.name)
            if note is not None and int(note[1]) < begin.batch:
                entry.unlink(missing_ok=True)


def _groups(parts: Sequence[DocumentPart], end: int) -> Iterator[list[DocumentPart]]:
    """Parts to be made one, all of batches before ``end``; the largest groups that may be."""
    width = _FAN
    while width * _FAN <= end:
        width *= _FAN
    while width >= _FAN:
        rest = []
        for place, members in groupby(parts, partial(_place, width)):
            group = list(members)
            is_small = sum(part.n_bytes for part in group) <= _FULL
            if len(group) > 1 and (place + 1) * width <= end and is_small:
                yield group
            else:
                rest += group
        parts, width = rest, width // _FAN


def _place(width: int, part: DocumentPart) -> int:
    return part.first // width


def _files(folder: Path) -> list[Path]:
    """The files of a folder, in the order of their documents."""
    with _reading(folder):
        return [Path(file) for file in part_files(str(folder))]


def _table(staging: Staging) -> Table:
    return Table(str(staging.attempts), staging.token, _CODEC, {}, for_arrow=True)


def _schema_of(file: Path) -> bytes:
    with _reading(file):
        return bytes(pq.read_schema(file).serialize())


def _copy(files: Sequence[Path], to: PartFile) -> None:
    try:
        for file in files:
            with _reading(file), pq.ParquetFile(file) as opened:
                for batch in opened.iter_batches():
                    to.add(batch)
    except BaseException:
        to.discard()
        raise


@contextmanager
def _reading(place: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException, HistoryError) as error:
        raise PipelineError(
            f"the history in {place} cannot be read ({error}): restore it"
        ) from error


# -- in tasks ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Store:
    """What runs on each partition: the events that can be read go to a file."""

    table: Table
    json: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        context = TaskContext.get()
        assert context is not None
        part = self.table.part(context.partitionId(), context.taskAttemptId())
        try:
            for batch in batches:
                for rows in readable(batch, self.json):
                    part.add(rows)
            file, size = part.close()
        except BaseException:
            part.discard()
            raise
        yield row_of(_STORED, [file, size])


def readable(batch: pa.RecordBatch, json: Sequence[str]) -> Batches:
    """The events that can be read, in runs; their columns say themselves which of them are JSON."""
    rejects = {row for row, _ in TypedReader(()).read(batch, json).rejects}
    for name in json:
        at = batch.schema.get_field_index(name)
        column: Any = batch.column(at)
        if not is_json(column.type):
            marked = pa.ExtensionArray.from_storage(pa.json_(column.type), column)
            batch = batch.set_column(at, name, marked)
    start = 0
    for row in (*sorted(rejects), batch.num_rows):
        if row > start:
            yield batch.slice(start, row - start)
        start = row + 1
