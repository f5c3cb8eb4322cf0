"""Changing a catalog: rows are staged, then merged into a new version by three statements.

::

    staged    a  price < 15  put       current   a  price < 10    closed, and a new row begins
              c  price < 30  put                                  a row begins
              d              remove              d  price < 40    closed
              e  price < 50  put                 e  price < 50    says the same: nothing happens

    close     current rows that are staged with other content, or to be removed
    sweep     when the source replaces everything: current rows that are not staged at all
    begin     staged rows that have no current row

A source need not have all fields. The bits ``absent`` of a staged row mark the fields it lacks:
these are not compared, and the new row takes them from the one that it closes.

Staging happens before the lock is taken. The merge finds staged rows by the index of current rows,
so it costs O(staged) however large the catalog is; a sweep costs O(catalog). If nothing differs,
nothing is committed and the version stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from bittern.catalog.database import DamageError, Database
from bittern.catalog.layout import (
    KEEP,
    OPEN,
    PUT,
    REMOVE,
    counter,
    settings,
    staged,
    subscriptions,
    versions,
)
from bittern.catalog.reading import FUNCTIONS, QUANTIFIER_VALUES, QUANTIFIERS, known
from bittern.catalog.rows import ABSENT_BITS, FIELDS, CatalogRow

_CHUNK = 10_000
#: From so many rows on, PostgreSQL is told how many there are before it plans the merge.
_MANY = 10_000
_COLUMNS = ", ".join([*FIELDS, "absent", "position", "kind"])
_INSERT = f"INSERT INTO {staged.name} ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_COPY = f"COPY {staged.name} ({_COLUMNS}) FROM STDIN"


class Merged(NamedTuple):
    """What a transaction did: the newest version after it, and the numbers of changes."""

    version: int
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0


def _is_current(table: Any) -> sa.ColumnElement[bool]:
    return table.c.until == sa.literal_column(str(OPEN))  # type: ignore[no-any-return]


def _is_said(name: str) -> sa.ColumnElement[bool]:
    return staged.c.absent.bitwise_and(
        sa.literal_column(str(ABSENT_BITS[name]))
    ) == sa.literal_column("0")


_other = subscriptions.alias("other")
_differs = sa.or_(
    staged.c.expression.is_distinct_from(_other.c.expression),
    *(
        sa.and_(staged.c[name].is_distinct_from(_other.c[name]), _is_said(name))
        for name in ABSENT_BITS
    ),
)
_CREATE = CreateTable(staged, if_not_exists=True)
_LAST = sa.select(sa.func.max(versions.c.version))
_TAKE = counter.update().values(version=counter.c.version + 1).returning(counter.c.version)
_CLOSE, _REMOVE = (
    subscriptions.update()
    .values(until=sa.bindparam("now"))
    .where(
        _is_current(subscriptions),
        subscriptions.c.id.in_(
            # An EXISTS, not a join: whatever the planner knows, it looks up what is staged.
            sa.select(staged.c.id).where(
                staged.c.kind == kind,
                sa.exists().where(_other.c.id == staged.c.id, _is_current(_other), *unless),
            )
        ),
    )
    for kind, unless in ((PUT, [_differs]), (REMOVE, []))
)
_SWEEP = (
    subscriptions.update()
    .values(until=sa.bindparam("now"))
    .where(
        _is_current(subscriptions),
        ~sa.exists().where(staged.c.id == subscriptions.c.id),
    )
)
_BEGIN = subscriptions.insert().from_select(
    [*FIELDS, "since", "until", "created", "changed"],
    sa.select(
        staged.c.id,
        staged.c.expression,
        *(
            sa.case(
                (sa.or_(_is_said(name), _other.c.id.is_(None)), staged.c[name]),
                else_=_other.c[name],
            )
            for name in ABSENT_BITS
        ),
        sa.bindparam("now", type_=sa.BigInteger),
        sa.literal_column(str(OPEN)),
        sa.func.coalesce(_other.c.created, sa.bindparam("time", type_=sa.BigInteger)),
        sa.bindparam("time", type_=sa.BigInteger),
    )
    .select_from(
        staged.outerjoin(
            _other, sa.and_(_other.c.id == staged.c.id, _other.c.until == sa.bindparam("now"))
        )
    )
    .where(
        staged.c.kind == PUT,
        ~sa.exists().where(subscriptions.c.id == staged.c.id, _is_current(subscriptions)),
    )
    .order_by(staged.c.id),  # indexes grow at one end after the other, not all over
)
_COUNTED = {"preserve_rowcount": True}  # PostgreSQL's driver forgets how many were inserted
_earlier = staged.alias("earlier")
_IS_REPEATED = sa.exists().where(
    _earlier.c.id == staged.c.id,
    _earlier.c.position < staged.c.position,
    _earlier.c.kind == PUT,
)


class Stage:
    """The changes that one transaction makes, in the order in which they were requested."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.puts = self.removes = 0
        self._position = 0

    def put(self, rows: Iterable[CatalogRow]) -> None:
        """Stage rows to be added or changed. O(rows)."""
        self.puts += self._add(PUT, rows)

    def remove(self, ids: Iterable[str]) -> None:
        """Stage ids to be removed."""
        self.removes += self._add(REMOVE, map(_only, ids))

    def keep(self, ids: Iterable[str]) -> None:
        """Stage ids that a sweep leaves as they are."""
        self._add(KEEP, map(_only, ids))

    def _add(self, kind: int, rows: Iterable[tuple[Any, ...]]) -> int:
        first = self._position
        rows = iter(rows)
        while chunk := list(islice(rows, _CHUNK)):
            _insert(
                self.connection,
                [(*row, position, kind) for position, row in enumerate(chunk, self._position)],
            )
            self._position += len(chunk)
        return self._position - first

    def drop_repeated(self) -> list[str]:
        """Keep only the first put of each id; returns the others' ids, in order. O(staged)."""
        repeated = staged.c.kind == PUT, _IS_REPEATED
        found = sa.select(staged.c.id).where(*repeated).order_by(staged.c.position)
        ids = list(self.connection.scalars(found))
        if ids:
            self.connection.execute(staged.delete().where(*repeated))
            self.puts -= len(ids)
        return ids


def _only(id_: str) -> tuple[Any, ...]:
    """A staged row of which only the id matters."""
    return (id_, None, None, None, None, True, 0)


def _insert(connection: sa.Connection, rows: list[tuple[Any, ...]]) -> None:
    """Stage rows in the driver's fastest way: with PostgreSQL an eighth of the usual time."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_INSERT, rows)
        return
    try:
        with connection.connection.cursor() as cursor, cursor.copy(_COPY) as copy:  # type: ignore[attr-defined]
            for row in rows:
                copy.write_row(row)
    except connection.dialect.loaded_dbapi.Error as error:  # as SQLAlchemy would tell it
        raise sa.exc.DBAPIError(_COPY, None, error) from error


def write(
    database: Database,
    stage: Callable[[Stage], None],
    *,
    under_lock: Callable[[Stage], None] | None = None,
    sweep: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Merged:
    """One transaction: stage, take the next version, merge.

    ``under_lock`` may read current rows, raise, and stage more.
    """
    with database.writing() as connection:
        connection.execute(_CREATE)
        connection.execute(staged.delete())  # SQLite keeps what the last transaction staged
        asked = Stage(connection)
        stage(asked)
        now = take_version(connection)
        if under_lock is not None:
            under_lock(asked)
        merged = _merge(asked, now, sweep=sweep, progress=progress or (lambda *_: None))
        if not merged.added + merged.changed + merged.removed:
            connection.rollback()
            return merged._replace(version=now - 1)
    return merged


def take_version(connection: sa.Connection) -> int:
    """The next version; other writers wait from here on until this one commits."""
    now: int = connection.execute(_TAKE).scalar_one()
    if now != (connection.execute(_LAST).scalar() or 0) + 1:
        raise DamageError(f"version {now} does not follow the last one in the list of versions")
    return now


def _merge(
    asked: Stage, now: int, *, sweep: bool, progress: Callable[[str, int, int], None]
) -> Merged:
    connection = asked.connection
    at = {"now": now, "time": time.time_ns() // 1000}
    if asked.puts > _MANY and connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"ANALYZE {staged.name}")
    closed = removed = begun = 0
    progress("merge", 0, 3)
    if asked.puts:
        closed = connection.execute(_CLOSE, {"now": now}).rowcount
    progress("merge", 1, 3)
    if asked.removes:
        removed = connection.execute(_REMOVE, {"now": now}).rowcount
    if sweep:
        removed += connection.execute(_SWEEP, {"now": now}).rowcount
    progress("merge", 2, 3)
    if asked.puts:
        begun = connection.execute(_BEGIN, at, execution_options=_COUNTED).rowcount
    progress("merge", 3, 3)
    # Each closed row is replaced by one that begins.
    merged = Merged(now, begun - closed, closed, removed, asked.puts - begun)
    log = merged._asdict() | {"time": at["time"]}
    del log["unchanged"]
    connection.execute(versions.insert(), log)
    return merged


def is_there(connection: sa.Connection, id_: str) -> bool:
    """Whether this id is taken."""
    taken = subscriptions.c.id == id_, _is_current(subscriptions)
    # Nothing but the id is read, so that a row can be removed of which the rest is damaged.
    return connection.execute(sa.select(subscriptions.c.id).where(*taken)).first() is not None


def current(connection: sa.Connection, id_: str) -> CatalogRow | None:
    """The current row of a subscription, in the form of a staged one. O(log rows)."""
    query = sa.select(*(subscriptions.c[name] for name in FIELDS)).where(
        subscriptions.c.id == id_, _is_current(subscriptions)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else (*row, 0)


def set_quantifiers(database: Database, *, allowed: bool) -> None:
    """Allow or refuse EXISTS and FORALL from now on; this makes no new version."""
    _set(database, QUANTIFIERS, QUANTIFIER_VALUES[allowed])


def set_functions(database: Database, functions: str) -> None:
    """Allow these functions from now on; this makes no new version."""
    _set(database, FUNCTIONS, functions)


def _set(database: Database, name: str, value: str) -> None:
    with database.writing(locked=True) as connection:
        connection.execute(CreateTable(settings, if_not_exists=True))
        connection.execute(settings.delete().where(settings.c.name == name))
        connection.execute(settings.insert(), {"name": name, "value": value})


def forget(database: Database, before: int, also: Callable[[sa.Connection, int], None]) -> int:
    """Drop the row versions that only versions before this one need; ``also`` drops more."""
    with database.writing() as connection:
        # Takes the lock, and changes nothing yet.
        connection.execute(counter.update().values(oldest=counter.c.oldest))
        before = known(connection, before)
        connection.execute(counter.update().values(oldest=before))
        connection.execute(versions.delete().where(versions.c.version < before))
        also(connection, before)
        gone = subscriptions.delete().where(subscriptions.c.until <= before)
        return connection.execute(gone).rowcount
