"""Named sets in a catalog's database: changes that are kept, never overwritten.

Each change of a set is one version of the catalog, in which no subscription changes. It says what
is done with the members that belong to it::

    bittern_set_changes   name  version  action  kind    members     bittern_set_parts
                          vips  3        put     number  1,000,000   the whole set
                          vips  5        add     number  1,000,002   two members
                          vips  6        remove  number  1,000,001   one member
                          vips  9        drop    -       0           none

The set of version v is the last ``put`` up to v, and what was added and removed since. A small
change is stored as such; after some of them the whole set is stored again. ``members`` is how many
there are after the change. The tables are created by the first set.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from bittern.catalog.database import DamageError, Database
from bittern.catalog.layout import OPEN, set_changes, set_parts, subscriptions, versions
from bittern.catalog.reading import is_whole
from bittern.catalog.set_parts import content_of_parts, parts_of
from bittern.catalog.writing import take_version
from bittern.engine.sets.content import Content
from bittern.engine.sets.named import unknown_set, uses
from bittern.errors import OptionError

PUT, ADD, REMOVE, DROP = range(4)
#: The whole set is stored again after so many small changes, ...
MOST_CHANGES = 64
#: ... or when they have this share of its members, and more than a few.
_SHARE, _FEW = 4, 1_000
#: Subscriptions that are looked at together.
_ROWS = 10_000

_change, _part = set_changes.c, set_parts.c


class SetVersion(NamedTuple):
    """A set as one version of the catalog has it: since which version, and its size."""

    version: int
    members: int


def _has_tables(connection: sa.Connection) -> bool:
    return bool(sa.inspect(connection).has_table(set_changes.name))


def read_versions(connection: sa.Connection, at: int) -> dict[str, SetVersion]:
    """The sets of a version by name, in order of their names. O(changes of sets)."""
    if not _has_tables(connection):
        return {}
    query = sa.select(_change.name, _change.version, _change.action, _change.members)
    query = query.where(_change.version <= at).order_by(_change.name, _change.version)
    found: dict[str, SetVersion] = {}
    for name, version, action, members in connection.execute(query):
        if not isinstance(name, str) or not is_whole(version) or not is_whole(members):
            raise DamageError(f"a change of the set {name!r:.60} is not what a catalog writes")
        if action == DROP:
            found.pop(name, None)
        else:
            found[name] = SetVersion(version, members)
    return found


def current(connection: sa.Connection) -> dict[str, SetVersion]:
    """The sets as this transaction sees them."""
    return read_versions(connection, OPEN)


def check_there(connection: sa.Connection, names: set[str]) -> None:
    """Under the lock: ``OptionError`` unless sets that were there before still are."""
    gone = sorted(names.difference(current(connection))) if names else []
    if gone:
        raise OptionError(f"the set {gone[0]!r} was removed meanwhile: nothing was changed")


class _Chain(NamedTuple):
    """A ``put`` and the changes since, as rows."""

    rows: list[Any]

    @property
    def should_fold(self) -> bool:
        """Whether the next change should store the whole set."""
        changed = sum(row.moved for row in self.rows[1:])
        return len(self.rows) > MOST_CHANGES or changed * _SHARE > self.rows[0].members + _FEW


def _chain(connection: sa.Connection, name: str, at: int) -> _Chain | None:
    """The changes that make the set of a version; None if it has no such set."""
    if not _has_tables(connection):
        return None
    query = sa.select(set_changes).where(_change.name == name, _change.version <= at)
    rows: list[Any] = []
    for row in connection.execute(query.order_by(_change.version)):
        whole = (row.version, row.members, row.moved)
        if row.action not in (PUT, ADD, REMOVE, DROP) or not all(map(is_whole, whole)):
            raise DamageError(f"a change of the set {name!r:.60} is not what a catalog writes")
        if row.action in (PUT, DROP):
            rows = []
        elif not rows:
            raise DamageError(f"the set {name!r:.60} has a change that comes before its members")
        if row.action != DROP:
            rows.append(row)
    return _Chain(rows) if rows else None


def _content(connection: sa.Connection, chain: _Chain) -> Content:
    """What the changes come to. O(bytes)."""
    content = Content()
    for row in chain.rows:
        query = sa.select(_part.form, _part.digest, _part.data).where(
            _part.name == row.name, _part.version == row.version
        )
        parts = connection.execute(query.order_by(_part.part)).all()
        own = content_of_parts(row.kind, parts)
        try:
            if row.action == PUT:
                content = own
            else:
                change = content.with_added if row.action == ADD else content.without
                content = change(own)
        except OptionError as wrong:
            raise DamageError(
                f"the set {row.name!r:.60} of version {row.version}: {wrong}"
            ) from None
        if len(content) != row.members or len(own) != row.moved:
            raise DamageError(
                f"the set {row.name!r:.60} of version {row.version} has {len(content):,} members, "
                f"not {row.members:,}"
            )
    return content


def read_set(connection: sa.Connection, name: str, at: int) -> Content:
    """The members of a set in a version; ``UnknownSetError`` if it has none. O(members)."""
    chain = _chain(connection, name, at)
    if chain is None:
        raise unknown_set(name, read_versions(connection, at), f" in version {at}")
    return _content(connection, chain)


def put(database: Database, name: str, content: Content) -> int:
    """Define a set or replace its members; returns the version that has them."""
    with _writing(database) as (connection, now):
        chain = _chain(connection, name, now)
        if chain is not None and _content(connection, chain).equals(content):
            connection.rollback()
            return now - 1
        _store(connection, name, now, PUT, content, len(content))
    return now


def change(database: Database, name: str, action: int, content: Content) -> int:
    """Add members to a set, or remove some; returns the version that has the result."""
    with _writing(database) as (connection, now):
        chain = _chain(connection, name, now)
        if chain is None:
            raise unknown_set(name, current(connection))
        before = _content(connection, chain)
        after = before.with_added(content) if action == ADD else before.without(content)
        if len(after) == len(before):
            connection.rollback()
            return now - 1
        if chain.should_fold or not len(after):
            _store(connection, name, now, PUT, after, len(after))
        else:
            moved = after.without(before) if action == ADD else before.without(after)
            _store(connection, name, now, action, moved, len(after))
    return now


def drop(database: Database, name: str) -> int:
    """Remove a set; ``OptionError`` if a subscription names it."""
    with _writing(database) as (connection, now):
        if _chain(connection, name, now) is None:
            raise unknown_set(name, current(connection))
        user = _user(connection, name)
        if user is not None:
            raise OptionError(
                f"the subscription {user!r} names the set {name!r}: remove it first, or give it "
                f"another expression"
            )
        _store(connection, name, now, DROP, Content(), 0)
    return now


def _user(connection: sa.Connection, name: str) -> str | None:
    """A current subscription that names a set. O(subscriptions)."""
    row = subscriptions.c
    query = sa.select(row.id, row.expression).where(
        row.until == OPEN, sa.func.upper(row.expression).like("%SET%")
    )
    streamed = {"stream_results": True, "max_row_buffer": _ROWS}
    with connection.execute(query, execution_options=streamed) as found:
        for rows in found.partitions(_ROWS):
            texts = pa.array([each.expression for each in rows], pa.large_string())
            for use in uses(texts, [name]):
                return str(rows[use.row].id)
    return None


@contextmanager
def _writing(database: Database) -> Iterator[tuple[sa.Connection, int]]:
    """A transaction that makes one version, in which no subscription changes."""
    with database.writing(locked=True) as connection:
        for table in (set_changes, set_parts):
            connection.execute(CreateTable(table, if_not_exists=True))
        yield connection, take_version(connection)


def _store(
    connection: sa.Connection, name: str, now: int, action: int, content: Content, members: int
) -> None:
    row = {"name": name, "version": now, "action": action, "kind": content.kind}
    connection.execute(set_changes.insert(), {**row, "members": members, "moved": len(content)})
    for number, part in enumerate(parts_of(content)):
        own = {"name": name, "version": now, "part": number}
        connection.execute(set_parts.insert(), {**own, **part._asdict()})
    log = {"version": now, "time": time.time_ns() // 1000}
    connection.execute(versions.insert(), {**log, "added": 0, "changed": 0, "removed": 0})


def forget(connection: sa.Connection, before: int) -> None:
    """Drop the changes of sets that only versions before this one need."""
    if not _has_tables(connection):
        return
    query = (
        sa.select(_change.name, sa.func.max(_change.version))
        .where(_change.version <= before, _change.action.in_((PUT, DROP)))
        .group_by(_change.name)
    )
    for name, last in connection.execute(query).all():
        row = sa.select(_change.action).where(_change.name == name, _change.version == last)
        is_dropped = connection.execute(row).scalar_one() == DROP
        for table in (set_changes, set_parts):
            own = table.c.name == name, table.c.version < last + is_dropped
            connection.execute(table.delete().where(*own))


def problems(connection: sa.Connection, at: int) -> list[str]:
    """What is wrong with the sets of a version and of those before it, one sentence each."""
    if not _has_tables(connection):
        return []
    query = sa.select(_change.name, _change.version, _change.action)
    rows = connection.execute(query.order_by(_change.name, _change.version)).all()
    found: list[str] = []
    for row, following in itertools.zip_longest(rows, rows[1:]):
        if not is_whole(row.version) or not 0 < row.version <= at:
            found.append(
                f"the set {row.name!r:.60} has {row.version!r:.40}, which is not a version"
            )
            continue
        # Reading what the last of a chain of changes comes to looks at all of them.
        ends = following is None or following.name != row.name or following.action in (PUT, DROP)
        if ends and row.action != DROP:
            try:
                read_set(connection, row.name, row.version)
            except DamageError as wrong:
                found.append(f"the set {row.name!r:.60} up to version {row.version}: {wrong}")
    return found
