"""The database under a catalog: where it is, its connections, its transactions, its errors.

SQLite and PostgreSQL differ here only in the settings of a connection::

                   SQLite                                 PostgreSQL
    writing        BEGIN; the first write takes the lock  READ COMMITTED; the counter's row lock
    reading        BEGIN; the snapshot of the first read  REPEATABLE READ, READ ONLY
    waiting        busy timeout                           lock_timeout
    durable        write-ahead log, synchronous=FULL      as the server is set
    creating       BEGIN IMMEDIATE                        an advisory lock

A writing transaction first touches the catalog's tables when it increments the version. So it never
has to turn a read lock into a write lock, which could fail half way.

SQLite keeps working in a file that has lost its name, and what is written there is lost. So each
transaction checks whether the path still leads to the file that was opened, which takes
microseconds, and a writing transaction checks once more before it commits.

Errors of a driver become a ``CatalogError`` with the first sentence of the database's message. So
does ``DamageError``: what was read is not what a catalog holds. SQLite has no checksums, so a
change by a disk or another program is noticed when the file is read, or not at all.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bittern.catalog import layout
from bittern.errors import CatalogError, OptionError, brief

_SQLITE = "sqlite:///"
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")
_FORMS = "a path, sqlite:///path or postgresql://user@host/database"
#: Any number that other programs are unlikely to take for a lock of theirs.
_CREATING = 0x6269_7474_6572_6E
_CONNECT_SECONDS = 10
_POOL_SECONDS = 30
_UID = re.compile("[0-9a-f]{32}")
_DAMAGED = (
    ": the database is damaged, or another program wrote to it; 'bittern catalog check' lists what "
    "is wrong; restore a backup or load an export"
)
_LOCKED = ("database is locked", "database table is locked")
_PRAGMAS = (
    "PRAGMA synchronous = FULL",  # what was committed survives a loss of power
    "PRAGMA cache_size = -65536",  # 64 MiB
    "PRAGMA journal_size_limit = 67108864",  # a large load does not leave a large log
    "PRAGMA trusted_schema = OFF",  # a file from elsewhere runs no functions
)


class DamageError(Exception):
    """The database holds something that no catalog writes; the message says what."""


def database_url(place: str | os.PathLike[str]) -> sa.URL:
    """Where a catalog is, as a URL of SQLAlchemy. A path becomes absolute."""
    if isinstance(place, os.PathLike):
        place = os.fspath(place)
    if not isinstance(place, str) or not place or "\0" in place:
        raise OptionError(f"give a catalog as {_FORMS}, not {brief(place)}")
    if "://" not in place or place.startswith(_SQLITE):
        path = place.removeprefix(_SQLITE)
        if path in ("", ":memory:") or "?" in path:
            raise OptionError(
                f"a catalog in SQLite must be a file that other processes can open too, without "
                f"options or question marks in its name, not {place!r:.60}"
            )
        return sa.URL.create("sqlite", database=str(Path(path).absolute()))
    scheme = place.split("://", 1)[0]
    if scheme not in _POSTGRESQL:
        raise OptionError(f"give a catalog as {_FORMS}, not as {scheme}://")
    try:
        url = sa.make_url(place)
    except (sa.exc.ArgumentError, ValueError):  # which would show the password
        raise OptionError(
            "this is not a URL of PostgreSQL: write postgresql://user@host/database"
        ) from None
    return url.set(drivername="postgresql+psycopg")


class Database:
    """Connections to one database, for any number of threads; forked processes get their own."""

    def __init__(self, url: sa.URL, timeout: float, *, create: bool) -> None:
        self.url = url
        self.timeout = timeout
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._closed = False
        self._file: tuple[int, int] | None = None  # while it is being opened
        if self.is_sqlite and not create and not Path(url.database or "").is_file():
            raise CatalogError(f"there is no catalog at {url.database}")
        folder = Path(url.database or "").parent
        if self.is_sqlite and not folder.is_dir():
            raise CatalogError(f"catalog {self}: there is no folder {folder}: make it first")
        self._made_file = self.is_sqlite and not Path(url.database or "").exists()
        try:
            self._engine = _engine(url, timeout)
        except ModuleNotFoundError as missing:
            raise OptionError(
                f"PostgreSQL needs {missing.name}: pip install 'bittern[postgresql]'"
            ) from None
        self._owner = [os.getpid()]
        weakref.finalize(self, _dispose, self._engine, self._owner)
        try:
            self.uid = self._open(create=create)
            if self.is_sqlite:
                # Where it is gone already, the first transaction tells.
                self._file = self._file_there() or (0, 0)
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        """For messages: the path, or the URL without its password."""
        return str(self.url.database if self.is_sqlite else self.url)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees one committed state throughout."""
        with self._connected() as connection:
            if not self.is_sqlite:
                connection.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self, *, locked: bool = False) -> Iterator[sa.Connection]:
        """A transaction that commits at the end, or rolls back if anything is raised.

        ``locked`` takes a lock at once, for when there may be no counter to lock yet.
        """
        with self._connected() as connection:
            if self.is_sqlite:
                connection.execution_options(bittern_begin="BEGIN IMMEDIATE" if locked else "BEGIN")
            with connection.begin():
                if locked and not self.is_sqlite:
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATING)))
                yield connection
                self._check_file()

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        if self._closed:
            raise OptionError("this catalog is closed: open it again with bittern.Catalog(url)")
        self._check_file()
        if self._owner[0] != os.getpid():  # in a forked process: these are the parent's
            if self.is_sqlite and self._engine.pool.checkedout():  # type: ignore[attr-defined]
                # SQLite still has their locks here, and nothing will ever release them.
                raise CatalogError(
                    f"catalog {self}: this process was forked while the catalog was in use, and "
                    f"its locks belong to the parent: fork at another time, or start the process "
                    f"by spawn"
                )
            self._engine.dispose(close=False)
            self._owner[0] = os.getpid()
        try:
            with self._engine.connect() as connection:
                yield connection
        except sa.exc.DBAPIError as error:
            raise CatalogError(f"catalog {self}: {self._sentence(error)}") from error
        except sa.exc.StatementError as error:  # around what was raised before the driver was asked
            raise error.orig or error from None
        except sa.exc.TimeoutError as error:  # of the pool: more threads than connections
            raise CatalogError(f"catalog {self}: all connections are in use: {error}") from error
        except (DamageError, sa.exc.NoResultFound, sa.exc.MultipleResultsFound) as error:
            raise self.damaged(str(error)) from error
        except UnicodeDecodeError as error:  # of SQLite's own message, which quotes the file
            raise self.damaged("it has names that are not UTF-8") from error

    def damaged(self, what: str) -> CatalogError:
        """The error for a database that holds what no catalog writes."""
        return CatalogError(f"catalog {self}: {what}{_DAMAGED}")

    def _check_file(self) -> None:
        # The inode cannot be another file's meanwhile: connections keep it open.
        if self._file is not None and self._file_there() != self._file:
            raise CatalogError(
                f"the catalog {self} was moved, removed or replaced since it was opened: open it "
                f"again with bittern.Catalog(url)"
            )

    def _file_there(self) -> tuple[int, int] | None:
        try:
            found = Path(str(self)).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _sentence(self, error: sa.exc.DBAPIError) -> str:
        said = _first_line(error.orig)
        # 55P03 is PostgreSQL's lock_not_available.
        if said in _LOCKED or getattr(error.orig, "sqlstate", None) == "55P03":
            return f"another writer has held it for {self.timeout:g} s; nothing was changed"
        if error.connection_invalidated:
            return f"the connection was lost, and the last commit may have succeeded: {said}"
        if said.startswith("Could not decode"):
            return f"{self._bad_text()}{_DAMAGED}"
        if type(error.orig) is sqlite3.DatabaseError:  # of its subclasses none is about the file
            return f"{said}{_DAMAGED}"
        return said

    def _bad_text(self) -> str:
        """Which subscription has a text that is not UTF-8. O(rows), only after one was found."""
        names = ("id", "expression", "subscriber", "metadata")
        texts = f"SELECT {', '.join(f'CAST({name} AS BLOB)' for name in names)}"
        texts += f" FROM {layout.subscriptions.name}"
        with suppress(sqlite3.Error), closing(sqlite3.connect(str(self))) as connection:
            connection.text_factory = bytes
            for row in connection.execute(texts):
                for text in filter(None, row):
                    if text.decode(errors="ignore").encode() != text:
                        id_ = row[0].decode(errors="replace")
                        return f"the subscription {id_!r:.60} has a text that is not UTF-8"
        return "there is a text that is not UTF-8"

    def _open(self, *, create: bool) -> str:
        """Create the tables if there are none; returns the uid of the catalog."""
        with self.reading() as connection:
            found = self._look(connection)
        if found is None and not create:
            raise CatalogError(f"there is no catalog at {self}")
        if found is None:
            if self.is_sqlite:
                self._keep_log()
            with self.writing(locked=True) as connection:
                found = self._look(connection)  # another process may have been faster
                if found is None:
                    found = layout.SCHEMA, secrets.token_hex(16)
                    layout.create_all(connection)
                    zero = {"one": 1, "version": 0, "oldest": 0}
                    told = {"schema": found[0], "uid": found[1]}
                    connection.execute(layout.counter.insert(), {**zero, **told})
        schema, uid = found
        if schema != layout.SCHEMA or not isinstance(schema, int):
            raise CatalogError(
                f"the catalog {self} has layout {schema!r:.40}, but this release reads layout "
                f"{layout.SCHEMA}: open it with the release that created it"
            )
        if not isinstance(uid, str) or not _UID.fullmatch(uid):  # it becomes a part of paths
            raise self.damaged(f"its uid is {uid!r:.60} and not 32 hexadecimal digits")
        return uid

    def _look(self, connection: sa.Connection) -> tuple[int, str] | None:
        look = sa.inspect(connection)
        tables = [name for name in layout.TABLES if look.has_table(name)]
        if not tables:
            return None
        if len(tables) < len(layout.TABLES):
            raise DamageError(f"it has only some tables of a catalog: {', '.join(tables)}")
        counter = layout.counter.c
        row = connection.execute(sa.select(counter.schema, counter.uid)).one_or_none()
        if row is None:
            raise CatalogError(f"{self} is not a catalog: its table {layout.counter.name} is empty")
        return row.schema, row.uid

    def _keep_log(self) -> None:
        """Switch SQLite to a write-ahead log for good, so that readers and a writer do not wait.

        SQLite does not wait for other connections here, so this does.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                with _plain(str(self)) as run:
                    mode = run("PRAGMA journal_mode = WAL")
            except sqlite3.Error as error:
                if str(error) not in _LOCKED or time.monotonic() > deadline:
                    raise CatalogError(f"catalog {self}: {error}") from error
                time.sleep(0.01)
                continue
            if mode != "wal":
                raise CatalogError(
                    f"SQLite cannot keep a write-ahead log at {self}: use a folder on a local disk"
                )
            return

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def close(self) -> None:
        """Close all connections; the catalog cannot be used any more."""
        self._closed = True
        _dispose(self._engine, self._owner)

    def discard(self) -> None:
        """Close, and remove the file if this created it, it has no version and is not in use."""
        self.close()
        if not self._made_file or self._file_there() != self._file:
            return
        with (
            suppress(sqlite3.Error),  # others have it open, or it is no catalog any more
            _plain(str(self), timeout=0) as run,
        ):
            # From the first transaction on no other process can even read; without the log no file
            # but this one is left.
            run("PRAGMA locking_mode = EXCLUSIVE")
            run("BEGIN IMMEDIATE")
            version = run("SELECT version FROM bittern_catalog")
            run("COMMIT")
            if version == 0:
                run("PRAGMA journal_mode = DELETE")
                Path(str(self)).unlink(missing_ok=True)


@contextmanager
def _plain(path: str, timeout: float = 5.0) -> Iterator[Callable[[str], Any]]:
    """A connection to SQLite without SQLAlchemy: runs a statement and returns its first value.

    The cursor is closed first. A closed connection keeps its locks as long as one of its statements
    is open, and an exception that the caller holds would keep it open.
    """
    with (
        closing(sqlite3.connect(path, timeout=timeout, isolation_level=None)) as connection,
        closing(connection.cursor()) as cursor,
    ):

        def run(statement: str) -> Any:
            return (cursor.execute(statement).fetchone() or (None,))[0]

        yield run


def _engine(url: sa.URL, timeout: float) -> sa.Engine:
    milliseconds = int(timeout * 1000)
    # Writers that wait hold their connections, so others wait for one as long.
    pool = {"pool_timeout": max(timeout, _POOL_SECONDS)}
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, connect_args={"timeout": timeout}, **pool)

        @sa.event.listens_for(engine, "connect")
        def _(connection: Any, _record: Any) -> None:
            connection.isolation_level = None  # transactions begin where we say so
            for pragma in _PRAGMAS:
                connection.execute(pragma)

        @sa.event.listens_for(engine, "invalidate")
        def _(connection: Any, _record: Any, _error: BaseException | None) -> None:
            # Closing leaves its locks to cursors that an exception still refers to.
            connection.rollback()

        @sa.event.listens_for(engine, "begin")
        def _(connection: sa.Connection) -> None:
            connection.exec_driver_sql(
                connection.get_execution_options().get("bittern_begin", "BEGIN")
            )

        return engine
    waiting = {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_SECONDS}
    engine = sa.create_engine(
        url, connect_args=waiting, isolation_level="READ COMMITTED", pool_pre_ping=True, **pool
    )

    @sa.event.listens_for(engine, "connect")
    def _(connection: Any, _record: Any) -> None:
        connection.execute(f"SET lock_timeout = {milliseconds}")
        connection.commit()

    return engine


def _first_line(error: BaseException | None) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__


def _dispose(engine: sa.Engine, owner: list[int]) -> None:
    engine.dispose(close=owner[0] == os.getpid())
