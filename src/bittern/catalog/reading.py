"""Reading a catalog: one version, the changes between two, one subscription's past.

::

    rows of version v            since <= v < until
    changes after a, up to b     put      a < since <= b < until, and enabled
                                 removed  since <= a < until <= b, enabled then and not put

Both parts of the changes are ranges of an index, read by one query: O(changes). Reading a version
costs O(row versions), about 6 us each, most of it in the driver. All of it happens in one
transaction, and an existing version never changes, so writers may continue meanwhile.

SQLite holds any value in any column and has no checksums. So values are checked before they are
used: a value that does not have the column's type, or that a catalog would refuse, is reported with
the id of its row. Metadata of a whole version stays text here; ``catalog/checking.py`` checks that
too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from bittern.catalog.database import DamageError, Database
from bittern.catalog.layout import OPEN, counter, settings, subscriptions, versions
from bittern.catalog.rows import FIELDS, MAX_NAME, REMEDY, Subscription
from bittern.errors import CatalogError, OptionError, UnknownSubscriptionError, brief
from bittern.options import whole_number
from bittern.terms.unknown import EMBEDDED, SPARK

#: The setting that says whether EXISTS and FORALL are taken, and its values.
QUANTIFIERS = "quantifiers"
QUANTIFIER_VALUES = {True: "allow", False: "refuse"}
#: The setting that says which functions are taken.
FUNCTIONS = "functions"
_CHUNK = 20_000
_IDS_AT_A_TIME = 1_000  # parameters of a statement
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The microseconds that a time may have.
_TIMES = range(
    (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1),
    (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1) + 1,
)
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
#: Those that no row lacks.
_NEEDED = frozenset(("id", "expression", "enabled", "created", "changed", "version"))

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
    """What changed after one version up to another, ``version``; each id once.

    ``put`` has the columns of ``Catalog.at``: new subscriptions, changed ones, enabled ones.
    ``removed`` are the ids of subscriptions that were removed or disabled.
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


_LAST = sa.select(sa.func.max(versions.c.version)).scalar_subquery()
_COUNTED = sa.select(counter.c.version, counter.c.oldest, _LAST)


def counted(connection: sa.Connection) -> tuple[int, int]:
    """The newest committed version, and the oldest that can be read. O(1)."""
    found = connection.execute(_COUNTED).all()
    if len(found) == 1:
        newest, oldest, last = found[0]
        if is_whole(newest) and is_whole(oldest) and oldest <= newest == (last or 0):
            return newest, oldest
    raise DamageError(
        f"the counter of versions and the list of versions do not agree ({str(found)[1:-1]:.80})"
    )


def newest(connection: sa.Connection) -> int:
    """The newest committed version. O(1)."""
    return counted(connection)[0]


def allows_quantifiers(connection: sa.Connection) -> bool:
    """Whether the catalog allows EXISTS and FORALL; it does unless set otherwise."""
    value = _setting(connection, QUANTIFIERS, QUANTIFIER_VALUES.values())
    return value != QUANTIFIER_VALUES[False]


def functions(connection: sa.Connection) -> str:
    """Which functions the catalog allows: "embedded" unless set to "spark"."""
    return _setting(connection, FUNCTIONS, (EMBEDDED, SPARK)) or EMBEDDED


def _setting(connection: sa.Connection, name: str, known: Iterable[str]) -> str | None:
    """A setting's value, one of those that are known; None if it is not set."""
    if not sa.inspect(connection).has_table(settings.name):
        return None
    query = sa.select(settings.c.value).where(settings.c.name == name)
    value: str | None = connection.execute(query).scalar_one_or_none()
    if value not in (None, *known):
        raise DamageError(f"the setting {name} is {value!r:.40}")
    return value


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, 0 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_time(value: Any) -> bool:
    """Whether it is a time in microseconds that Python can represent."""
    return isinstance(value, int) and value in _TIMES


def known(connection: sa.Connection, version: Any) -> int:
    """A version that can be read; None stands for the newest."""
    last, oldest = counted(connection)
    if version is None:
        return last
    asked = whole_number("version", version, 0)
    if asked > last:
        raise OptionError(f"there is no version {brief(asked)} yet: the newest is {last}")
    if asked < oldest:
        raise OptionError(f"version {asked} is forgotten: the oldest that can be read is {oldest}")
    return asked


def read_version(
    database: Database, version: int | None, *, only_enabled: bool, limit: int | None
) -> pa.Table:
    """The rows of a version, by id."""
    query = sa.select(*_COLUMNS).where(_holds).order_by(_row.id).limit(limit)
    if only_enabled:
        query = query.where(_row.enabled)
    with database.reading() as connection:
        at = known(connection, version)
        return read_rows(database, connection, query, {"at": at})


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
            raise OptionError(
                f"changes go forward: until ({last}) must not be before since ({first})"
            )
        rows = connection.execute(_CHANGES, {"from": first, "at": last}).all()
        for row in rows:
            if not isinstance(row.id, str):
                raise DamageError(f"{row.id!r:.60} is in the place of an id")
    put = sorted((row for row in rows if row.version is not None), key=lambda row: row.id)
    stay = {row.id for row in put}
    removed = sorted(row.id for row in rows if row.version is None and row.id not in stay)
    batches = [_batch(database, put, SCHEMA)] if put else []
    return Changes(last, removed, pa.Table.from_batches(batches, SCHEMA))


def read_details(database: Database, ids: Iterable[str], version: int | None) -> pa.Table:
    """Subscriber, weight and metadata of these ids, each once, in their order."""
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
            for row in rows:
                if row.id not in order:
                    raise DamageError(
                        f"{row.id!r:.60} is found under the id of another subscription"
                    )
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
    """All forms of one subscription that are kept, the oldest first."""
    query = sa.select(subscriptions).where(_row.id == id_).order_by(_row.since)
    with database.reading() as connection:
        return [_subscription(database, row) for row in connection.execute(query)]


def read_versions(database: Database, limit: int | None) -> list[Version]:
    """The last versions, the newest first."""
    query = sa.select(versions).order_by(versions.c.version.desc()).limit(limit)
    with database.reading() as connection:
        rows = connection.execute(query).all()
        for row in rows:
            if not is_time(row.time) or not all(map(is_whole, (row.version, *row[2:]))):
                raise DamageError(
                    f"{tuple(row)!s:.80} is in the place of a version and its numbers of changes"
                )
    return [Version(row.version, _time(row.time), *row[2:]) for row in rows]


def _subscription(database: Database, row: Any) -> Subscription:
    told = [row.since if name == "version" else getattr(row, name) for name in SCHEMA.names]
    (whole,) = _batch(database, [told], SCHEMA).to_pylist()  # says what is not as it may be
    content = {name: whole[name] for name in FIELDS}
    if row.metadata is not None:
        try:
            content["metadata"] = json.loads(row.metadata)
        except (ValueError, RecursionError) as wrong:
            raise _foreign(database, row.id, f"metadata that is not JSON: {wrong}") from None
        if not isinstance(content["metadata"], dict):
            raise _foreign(database, row.id, f"{row.metadata!r:.40} as metadata")
    if not (is_whole(row.until) and row.since < row.until <= OPEN):
        raise _foreign(database, row.id, f"{row.until!r:.40} as until")
    return Subscription(
        **content,
        created=_time(row.created),
        changed=_time(row.changed),
        version=row.since,
        until=None if row.until == OPEN else row.until,
    )


def _time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def read_rows(
    database: Database, connection: sa.Connection, query: Any, parameters: dict[str, Any]
) -> pa.Table:
    """All rows that a query of the columns of SCHEMA finds, fetched part by part."""
    streamed = connection.execution_options(stream_results=True, max_row_buffer=_CHUNK)
    parts = streamed.execute(query, parameters).partitions(_CHUNK)
    return pa.Table.from_batches([_batch(database, part, SCHEMA) for part in parts], SCHEMA)


def _batch(database: Database, rows: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of these columns, the id first."""
    arrays = []
    for field, values in zip(schema, zip(*rows, strict=True), strict=True):
        array = _array(values, field)
        if array is None:
            wrong = next(n for n, value in enumerate(values) if _array([value], field) is None)
            said = f"{values[wrong]!r:.40} as {field.name}"
            raise _foreign(database, rows[wrong][0], said)
        arrays.append(array)
    return pa.record_batch(arrays, schema=schema)


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array | None:
    """The values of a column, or None if the column cannot hold one of them."""
    try:
        array = pa.array(values, type=field.type)
    except (ValueError, TypeError, OverflowError):  # as all that Arrow raises here is
        return None
    if field.name in _NEEDED and array.null_count:
        return None
    if field.name == "id":
        lengths = pc.min_max(pc.utf8_length(array)).as_py()
        fine = lengths["min"] > 0 and lengths["max"] <= MAX_NAME
    elif field.type == _TIME:
        times = pc.min_max(array.cast(pa.int64())).as_py()
        fine = is_time(times["min"]) and is_time(times["max"])
    elif field.name == "version":
        fine = pc.min(array).as_py() > 0
    else:  # an infinite weight, like a wrong expression, spoils one subscription: readers say so
        fine = True
    return array if fine else None


def _foreign(database: Database, id_: Any, what: str) -> CatalogError:
    return CatalogError(
        f"catalog {database}: the subscription {id_!r:.60} has {what}, which bittern did not "
        f"write: {REMEDY}; 'bittern catalog check' looks for more"
    )
