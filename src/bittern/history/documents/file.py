"""The file under a history's documents: a database of SQLite in a folder of its own.

::

    history/
      documents.sqlite           the file
      documents.sqlite-journal   what undoes an append that was not finished
      .documents.sqlite.new      a file being made; gone, or renamed, when the folder is next opened

The process that opens the folder holds a lock on it while it lives. A file takes its name when it
is complete and on disk, so a file that is empty or cut off has lost its content. SQLite itself
notices a file that is shorter than it should be; the numbers and bytes in it have checksums.

The journal is a rollback journal that stays: a transaction is durable when its header is cleared,
with the fourth sync. A write-ahead log would need only one. But if a log that a killed writer left
is cut off, the lost part would count as never written.
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

from bittern.errors import HistoryError, OptionError, brief
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
    """A checksum that tells whether two numbers, and bytes, are still those that were written."""
    return zlib.crc32(data, zlib.crc32(struct.pack("<qq", first, second)))


@contextlib.contextmanager
def translated(file: str) -> Iterator[None]:
    """Errors of SQLite become a ``HistoryError`` that names the file."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # a complaint may quote garbage
        raise HistoryError(f"the documents in {file} cannot be used: {error}") from error


def holds_documents(path: str | os.PathLike[str]) -> bool:
    """Whether this is the folder of a history. Nothing is opened or created."""
    return (Path(path) / _FILE).is_file()


def connect(file: str) -> sqlite3.Connection:
    """Open the file, or create an empty one. Callers with several threads need a lock.

    One cursor, closed with it, is used for everything: a cursor with rows to fetch that is alive
    somewhere, if only in the traceback of an interrupt, would keep SQLite from closing the file.
    """
    return sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)


class Claimed:
    """What an open history holds: a lock on its folder, and the connection to its file."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self.folder: Opened | None = None
        self.db: sqlite3.Cursor | None = None

    def close(self) -> None:
        """Release both, in the process that opened them; may be repeated after an interrupt.

        In a child forked meanwhile, SQLite would take its parent's transaction for its own and roll
        it back in the file. So the child never closes it, not even when all objects are freed.
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
    """Become the only user of the file, and undo what a killed writer had begun."""
    for pragma in _PRAGMAS:
        db.execute(pragma)
    db.execute("BEGIN EXCLUSIVE")
    db.execute("COMMIT")
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise HistoryError(f"{file} is damaged, or is not a file of a history")
    if version != _VERSION:
        raise HistoryError(f"{file} has version {version}; this release reads version {_VERSION}")


def claim(path: str | os.PathLike[str], claimed: Claimed) -> str:
    """Claim the file in a folder that is not in use; both are created if they do not exist.

    The folder belongs to this writer until ``claimed`` is closed.
    """
    if not isinstance(path, str | os.PathLike):
        raise OptionError(f"a history needs the path of a folder, not {brief(path)}")
    folder = Path(path)
    file = folder / _FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = claimed.folder = Opened(folder, os.O_RDONLY | os.O_DIRECTORY)
        if not try_hold(lock.number):  # without locks here, SQLite may have some of its own
            raise HistoryError(
                f"the documents in {folder} are in use, by this or another process: close them "
                f"there first"
            )
        for name in _NEW:
            (folder / name).unlink(missing_ok=True)
        if not file.exists():
            _make(file)
    except (OSError, ValueError) as error:
        raise HistoryError(f"cannot keep documents in {folder}: {error}") from error
    return str(file)


def _make(file: Path) -> None:
    """An empty history in a folder that holds nothing else, there for good when this returns."""
    other = next(file.parent.iterdir(), None)
    if other is not None:
        raise HistoryError(
            f"{file.parent} holds {other.name!r} and no documents: give the history its own folder"
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
    new.rename(file)  # last: once the file exists, the rest would not be done after an interrupt
    sync(folder)
