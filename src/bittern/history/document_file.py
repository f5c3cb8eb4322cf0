"""The file under a history's documents: a database of SQLite in a folder of its own.

::

    history/
      documents.sqlite           the file
      documents.sqlite-journal   what undoes an append that was not finished
      .documents.sqlite.new      a file being made; gone, or renamed, when the folder is next opened

Who opens the folder holds a lock on it as long as it lives. A file takes its name when it is whole
and on disk, so that one which is empty or cut off has lost what it held. SQLite itself notices
a file that is shorter than it should be; of what stands in it, numbers and bytes have checksums.

The journal is a rollback journal that stays: a transaction is durable when its header is cleared,
with the fourth sync. A write-ahead log would need only one, but if one that a killed writer left is
cut off, what stood behind is taken for never written.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from bittern.errors import HistoryError, OptionError
from bittern.files import Opened, sync, try_hold

_FILE = "documents.sqlite"
#: The file while it is made, and SQLite's journal of it.
_NEW = (f".{_FILE}.new", f".{_FILE}.new-journal")
_APPLICATION = 0x6274_726E
_VERSION = 1
_TABLES = """
    CREATE TABLE state (first INTEGER, "end" INTEGER, checksum INTEGER);
    CREATE TABLE segments (start INTEGER PRIMARY KEY, count INTEGER, checksum INTEGER, data BLOB);
"""
_PRAGMAS = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = PERSIST",
    "PRAGMA synchronous = FULL",  # what was committed survives a loss of power
    "PRAGMA journal_size_limit = 16777216",  # a large append does not leave a large journal
    "PRAGMA trusted_schema = OFF",  # a file from elsewhere runs no functions
    "PRAGMA cell_size_check = ON",  # damage is told early
)


def checksum(first: int, second: int, data: bytes = b"") -> int:
    """What tells whether two numbers, and bytes, are still those that were written."""
    return zlib.crc32(data, zlib.crc32(struct.pack("<qq", first, second)))


@contextlib.contextmanager
def translated(file: str) -> Iterator[None]:
    """What SQLite complains of becomes a ``HistoryError`` that names the file."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # a complaint may quote garbage
        raise HistoryError(f"the documents in {file} cannot be used: {error}") from error


def holds_documents(path: str | os.PathLike[str]) -> bool:
    """Is this the folder of a history? Nothing is opened or made."""
    return (Path(path) / _FILE).is_file()


def connect(file: str) -> sqlite3.Connection:
    """Open the file, or make an empty one. Whoever uses it from several threads has a lock.

    One cursor, closed with it, is used for all: one with rows to fetch that is alive somewhere, if
    only in the traceback of an interrupt, would keep SQLite from closing the file.
    """
    return sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)


class Claimed:
    """What an open history holds: a lock on its folder, and the connection to its file."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self.folder: Opened | None = None
        self.db: sqlite3.Cursor | None = None

    def close(self) -> None:
        """Let go of both, in the process that opened them; again if that was interrupted.

        In a child forked meanwhile SQLite would take what its parent is writing for its own, and
        undo it in the file. So there it is never closed, not even when all objects go.
        """
        if self.db is not None:
            if self._process == os.getpid():
                connection = self.db.connection
                with contextlib.suppress(sqlite3.ProgrammingError):  # it was closed before
                    self.db.close()
                connection.close()
            else:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.db))
        if self.folder is not None:
            self.folder.close()


def create(db: sqlite3.Cursor) -> None:
    """Make an empty history of an empty file."""
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.executescript(_TABLES)
    db.execute("INSERT INTO state VALUES (0, 0, ?)", (checksum(0, 0),))
    db.execute(f"PRAGMA application_id = {_APPLICATION}")
    db.execute(f"PRAGMA user_version = {_VERSION}")


def take(db: sqlite3.Cursor, file: str) -> None:
    """Be the one who uses the file, and undo what a killed writer had begun."""
    for pragma in _PRAGMAS:
        db.execute(pragma)
    db.execute("BEGIN EXCLUSIVE")
    db.execute("COMMIT")
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise HistoryError(f"{file} is damaged, or no file of a history")
    if version != _VERSION:
        raise HistoryError(f"{file} is of version {version}; this release reads version {_VERSION}")


def claim(path: str | os.PathLike[str], claimed: Claimed) -> str:
    """The file in a folder that nobody else uses now; both are made if there are none.

    The folder is this writer's until ``claimed`` is closed.
    """
    if not isinstance(path, str | os.PathLike):
        raise OptionError(f"a history is kept in a folder, given by its path, not in {path!r:.80}")
    folder = Path(path)
    file = folder / _FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = claimed.folder = Opened(folder, os.O_RDONLY | os.O_DIRECTORY)
        if not try_hold(lock.number):  # without locks here, SQLite may have some of its own
            raise HistoryError(
                f"the documents in {folder} are in use: close them there, in this or another "
                f"process"
            )
        for name in _NEW:
            (folder / name).unlink(missing_ok=True)
        if not file.exists():
            _make(file)
    except (OSError, ValueError) as error:
        raise HistoryError(f"documents cannot be kept in {folder}: {error}") from error
    return str(file)


def _make(file: Path) -> None:
    """An empty history in a folder that holds nothing else, there for good when this returns."""
    other = next(file.parent.iterdir(), None)
    if other is not None:
        raise HistoryError(
            f"{file.parent} holds {other.name!r} and no documents: give them a folder of their own"
        )
    new = file.with_name(_NEW[0])
    with (
        translated(str(new)),
        contextlib.closing(connect(str(new))) as connection,
        contextlib.closing(connection.cursor()) as db,
    ):
        create(db)
    sync(new)
    folder, *above = file.absolute().parents
    for each in above:
        with contextlib.suppress(PermissionError):  # above one's own folders
            sync(each)
    new.rename(file)  # last: nobody does the rest if the file is there and this is interrupted
    sync(folder)
