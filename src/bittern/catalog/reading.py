"""Reading a catalog: one version, what changed between two, one subscription's past.

::

    rows of version v            since <= v < until
    changes after a, up to b     put      a < since <= b < until, and enabled
                                 removed  since <= a < until <= b, enabled then and not put

Both parts of the changes are ranges of an index, read by one query: O(changes). A version costs
O(row versions), about 6 us each, most of it the driver's. All of it happens in one transaction, and
a version that is there never changes, so writers may go on meanwhile.

SQLite holds any value in any column. What somebody wrote there by other means, and what is not of
the column's type, is told with the id of its row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
import sqlalchemy as sa

from bittern.catalog.database import Database
from bittern.catalog.layout import OPEN, counter, subscriptions, versions
from bittern.catalog.rows import FIELDS, Subscription
from bittern.errors import CatalogError, OptionError, UnknownSubscriptionError

_CHUNK = 20_000
_IDS_AT_A_TIME = 1_000  # parameters of a statement
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = pa.timestamp("us", "UTC")
#: The columns of a version.
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("expression", pa.string()),
        ("weight", pa.float64()),
        ("subscriber", pa.string()),
        ("metadata", pa.string()),
        ("enabled", pa.bool_()),
        ("created", _TIME),
        ("changed", _TIME),
        ("version", pa.int64()),
    ]
)
#: The columns of what sinks want to know.
DETAILS = pa.schema([SCHEMA.field(name) for name in ("id", "subscriber", "weight", "metadata")])

_row = subscriptions.c
_COLUMNS = [_row.since.label("version") if n == "version" else _row[n] for n in SCHEMA.names]
_AT = sa.bindparam("at", type_=sa.BigInteger)
_FROM = sa.bindparam("from", type_=sa.BigInteger)
_holds = sa.and_(_row.since <= _AT, _row.until > _AT)
_CHANGES = sa.union_all(
    sa.select(*_COLUMNS).where(
        _row.since > _FROM, _row.since <= _AT, _row.until > _AT, _row.enabled
    ),
    # The unique index has the id, and nothing else of these is wanted.
    sa.select(
        _row.id,
        *(sa.null().label(column.name) for column in _COLUMNS[1:]),
    ).where(_row.until > _FROM, _row.until <= _AT, _row.since <= _FROM, _row.enabled),
)


class Changes(NamedTuple):
    """What happened after one version up to another, ``version``; each id once.

    ``put`` has the columns of ``Catalog.at``: new subscriptions, changed ones, enabled ones.
    ``removed`` are the ids of those that are gone or disabled.
    """

    version: int
    removed: list[str]
    put: pa.Table


class Version(NamedTuple):
    """One version: when it was committed, and how many subscriptions it changed."""

    version: int
    time: datetime
    added: int
    changed: int
    removed: int


def newest(connection: sa.Connection) -> int:
    """The newest version that is committed. O(1)."""
    return int(connection.execute(sa.select(counter.c.version)).scalar_one())


def known(connection: sa.Connection, version: Any) -> int:
    """A version that can be read; None stands for the newest."""
    last, oldest = connection.execute(sa.select(counter.c.version, counter.c.oldest)).one()
    if version is None:
        return int(last)
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise OptionError(f"a version is a whole number from 0 on, not {version!r:.40}")
    if version > last:
        raise OptionError(f"there is no version {version} yet: the newest is {last}")
    if version < oldest:
        raise OptionError(f"version {version} is forgotten: the oldest that is kept is {oldest}")
    return version


def read_version(
    database: Database, version: int | None, *, only_enabled: bool, limit: int | None
) -> pa.Table:
    """The rows of a version, by id."""
    query = sa.select(*_COLUMNS).where(_holds).order_by(_row.id).limit(limit)
    if only_enabled:
        query = query.where(_row.enabled)
    with database.reading() as connection:
        at = known(connection, version)
        return _table(database, connection, query, {"at": at})


def count(database: Database, version: int | None, *, only_enabled: bool) -> int:
    """How many rows a version has."""
    query = sa.select(sa.func.count()).select_from(subscriptions).where(_holds)
    if only_enabled:
        query = query.where(_row.enabled)
    with database.reading() as connection:
        return int(connection.execute(query, {"at": known(connection, version)}).scalar_one())


def read_changes(database: Database, since: int, until: int | None) -> Changes:
    """The net effect of the versions after ``since`` up to ``until``."""
    with database.reading() as connection:
        first, last = known(connection, since), known(connection, until)
        if first > last:
            raise OptionError(f"changes go forward: there are none after {first} up to {last}")
        rows = connection.execute(_CHANGES, {"from": first, "at": last}).all()
    put = sorted(row for row in rows if row.expression is not None)
    stay = {row.id for row in put}
    removed = sorted(row.id for row in rows if row.expression is None and row.id not in stay)
    batches = [_batch(database, put, SCHEMA)] if put else []
    return Changes(last, removed, pa.Table.from_batches(batches, SCHEMA))


def read_details(database: Database, ids: Iterable[str], version: int | None) -> pa.Table:
    """Subscriber, weight and metadata of these, each once, in the order in which they come."""
    wanted = iter(dict.fromkeys(ids))
    columns = [_row[name] for name in DETAILS.names]
    some: Any = sa.bindparam("ids", expanding=True)
    query = sa.select(*columns).where(_row.id.in_(some), _holds)
    batches = []
    with database.reading() as connection:
        at = known(connection, version)
        while chunk := list(islice(wanted, _IDS_AT_A_TIME)):
            rows = connection.execute(query, {"ids": chunk, "at": at}).all()
            order = {id_: place for place, id_ in enumerate(chunk)}
            if rows:
                rows = sorted(rows, key=lambda row: order[row.id])
                batches.append(_batch(database, rows, DETAILS))
    return pa.Table.from_batches(batches, DETAILS)


def read_one(database: Database, id_: str, version: int | None) -> Subscription:
    """One subscription as a version has it. O(log rows)."""
    query = sa.select(subscriptions).where(_row.id == sa.bindparam("id"), _holds)
    with database.reading() as connection:
        at = known(connection, version)
        row = connection.execute(query, {"id": id_, "at": at}).one_or_none()
    if row is None:
        raise UnknownSubscriptionError(f"no subscription of version {at} has the id {id_!r}")
    return _subscription(database, row)


def read_history(database: Database, id_: str) -> list[Subscription]:
    """All that is kept of one subscription, the oldest first."""
    query = sa.select(subscriptions).where(_row.id == id_).order_by(_row.since)
    with database.reading() as connection:
        return [_subscription(database, row) for row in connection.execute(query)]


def read_versions(database: Database, limit: int | None) -> list[Version]:
    """The last versions, the newest first."""
    query = sa.select(versions).order_by(versions.c.version.desc()).limit(limit)
    with database.reading() as connection:
        rows = connection.execute(query).all()
    return [Version(row.version, _time(row.time), *row[2:]) for row in rows]


def _subscription(database: Database, row: Any) -> Subscription:
    told = [row.since if name == "version" else getattr(row, name) for name in SCHEMA.names]
    _batch(database, [told], SCHEMA)  # says what is of no type that it may have
    content = {name: getattr(row, name) for name in FIELDS}
    if row.metadata is not None:
        try:
            content["metadata"] = json.loads(row.metadata)
        except ValueError as wrong:
            raise _foreign(database, row.id, f"metadata that are no JSON: {wrong}") from None
    return Subscription(
        **content,
        created=_time(row.created),
        changed=_time(row.changed),
        version=row.since,
        until=None if row.until == OPEN else row.until,
    )


def _time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _table(
    database: Database, connection: sa.Connection, query: Any, parameters: dict[str, Any]
) -> pa.Table:
    """All rows of a version, fetched and put into columns part by part."""
    streamed = connection.execution_options(stream_results=True, max_row_buffer=_CHUNK)
    parts = streamed.execute(query, parameters).partitions(_CHUNK)
    return pa.Table.from_batches([_batch(database, part, SCHEMA) for part in parts], SCHEMA)


def _batch(database: Database, rows: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of these columns, the id first."""
    arrays = []
    for field, values in zip(schema, zip(*rows, strict=True), strict=True):
        try:
            arrays.append(pa.array(values, type=field.type))
        except (ValueError, TypeError, OverflowError):  # as all that Arrow raises here is
            wrong = next(n for n, value in enumerate(values) if not _is_of(value, field.type))
            said = f"{values[wrong]!r:.40} as {field.name}"
            raise _foreign(database, rows[wrong][0], said) from None
    return pa.record_batch(arrays, schema=schema)


def _is_of(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([value], type=kind)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def _foreign(database: Database, id_: Any, what: str) -> CatalogError:
    return CatalogError(
        f"catalog {database}: the subscription {id_!r:.60} has {what}, which something other than "
        f"bittern wrote: remove it and add it again"
    )
