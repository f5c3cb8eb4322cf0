"""Checking a catalog: the database's own check, then every row against what bittern writes.

::

    database    SQLite's integrity_check: pages, indexes, constraints. PostgreSQL has no such
                statement; its pages have checksums where the server keeps them.
    counter     agrees with the list of versions, which has no gaps
    rows        what the catalog would accept, in the form in which it is stored; ``since`` and
                ``until`` are versions, and forms of one subscription do not overlap
    sets        each change of a set is what it says, and its parts are what was written
    versions    as many rows begin and end in each as its numbers of changes say

Rows have no checksums. A text that was changed into another valid text is not found, nor is a
weight that became another weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from bittern.catalog.database import Database
from bittern.catalog.layout import OPEN, subscriptions, versions
from bittern.catalog.reading import counted, is_time, is_whole
from bittern.catalog.rows import FIELDS, Door
from bittern.catalog.set_rows import problems as set_problems
from bittern.errors import BadSubscription, CatalogError

_PARTS = 10_000
_row = subscriptions.c
# As it is stored: SQLAlchemy makes a truth value of whatever stands there.
_ENABLED = sa.type_coerce(_row.enabled, sa.types.NullType()).label("enabled")
_ROWS = sa.select(
    *(_ENABLED if name == "enabled" else _row[name] for name in FIELDS),
    *(_row.since, _row.until, _row.created, _row.changed),
).order_by(_row.id, _row.since)
_BEGUN = sa.select(_row.since, sa.func.count()).group_by(_row.since)
_ENDED = sa.select(_row.until, sa.func.count()).where(_row.until < OPEN).group_by(_row.until)


def problems(database: Database) -> list[str]:
    """All problems, one sentence each."""
    found: list[str] = []
    for look in (_database, _versions, _rows, _sets):
        try:
            with database.reading() as connection:
                found += look(connection)
        except CatalogError as error:
            found.append(str(error))
    return found


def _database(connection: sa.Connection) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        for (said,) in connection.exec_driver_sql("PRAGMA integrity_check(20)"):
            if said != "ok":
                yield f"SQLite says of the file: {said}"


def _versions(connection: sa.Connection) -> Iterator[str]:
    newest, oldest = counted(connection)
    begun: dict[Any, int] = dict(tuple(row) for row in connection.execute(_BEGUN))
    ended: dict[Any, int] = dict(tuple(row) for row in connection.execute(_ENDED))
    expected = max(oldest, 1)
    for version, time, *changes in connection.execute(
        sa.select(versions).order_by(versions.c.version)
    ):
        if version != expected:
            yield f"the list of versions has {version!r:.40} where {expected} is expected"
        expected += 1
        if not is_time(time):
            yield f"version {version!r:.40} has {time!r:.40} as its time"
        if not all(map(is_whole, changes)):
            yield f"version {version!r:.40} has {changes!s:.80} as its numbers of changes"
            continue
        added, changed, removed = changes
        wrong = begun.get(version, 0) != added + changed
        if version > oldest:  # rows that ended in the oldest are forgotten
            wrong = wrong or ended.get(version, 0) != changed + removed
        if wrong:
            yield (
                f"version {version!r:.40} says that it added {added}, changed {changed} and "
                f"removed {removed}, but {begun.get(version, 0)} rows begin in it and "
                f"{ended.get(version, 0)} end"
            )
    if expected != newest + 1:
        yield f"the list of versions ends before {expected}, and the newest is {newest}"


def _sets(connection: sa.Connection) -> Iterator[str]:
    newest, _ = counted(connection)
    yield from set_problems(connection, newest)


def _rows(connection: sa.Connection) -> Iterator[str]:
    newest, oldest = counted(connection)
    door = Door()
    before: tuple[Any, Any] = None, 0  # the id of the row before, and where it ended
    with _any_text(connection):
        streamed = connection.execution_options(stream_results=True, max_row_buffer=_PARTS)
        for row in streamed.execute(_ROWS):
            for wrong in _row_problems(door, row, newest, oldest):
                yield f"{_span(row)}the subscription {row.id!r:.60} {wrong}"
            if row.id == before[0] and is_whole(row.since) and row.since < before[1]:
                yield f"the subscription {row.id!r:.60} has two forms in version {row.since}"
            before = row.id, row.until if is_whole(row.until) else 0


def _span(row: Any) -> str:
    """The versions that have this form, so that it is known which to forget."""
    since, until = row.since, row.until
    if not (is_whole(since) and is_whole(until) and since < until):
        return ""
    if until == OPEN:
        return f"from version {since} on "
    last = until - 1
    return f"in version {since} " if since == last else f"in versions {since} to {last} "


def _row_problems(door: Door, row: Any, newest: int, oldest: int) -> Iterator[str]:
    since, until = row.since, row.until
    if not is_whole(since) or not 1 <= since <= newest:
        yield f"has {since!r:.40} as the version that it begins in"
    elif not is_whole(until) or not (since < until <= newest or until == OPEN) or until <= oldest:
        yield f"has {until!r:.40} as the version that it ends in"
    for name in ("created", "changed"):
        if not is_time(getattr(row, name)):
            yield f"has {getattr(row, name)!r:.40} as {name}"
    # SQLite has no truth values.
    enabled = {0: False, 1: True}.get(row.enabled) if isinstance(row.enabled, int) else None
    if enabled is None:
        yield f"has {row.enabled!r:.40} as enabled"
    checked = door.check((*row[:5], enabled))
    if isinstance(checked, BadSubscription):
        yield f"is not valid, position {checked.position}: {checked.message}"
        return
    for name, stored, said in zip(FIELDS[:5], row, checked, strict=False):
        if stored != said or type(stored) is not type(said):
            yield f"has {stored!r:.40} as {name}, and bittern writes {said!r:.40}"


@contextmanager
def _any_text(connection: sa.Connection) -> Iterator[None]:
    """While inside, bytes that are not text become half surrogates, which the check reports."""
    if connection.dialect.name != "sqlite":
        yield
        return
    plain: Any = connection.connection.dbapi_connection
    plain.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    try:
        yield
    finally:
        plain.text_factory = str
