"""How a catalog is stored in its database: row versions that are closed, never overwritten.

One change of the catalog is one transaction and one version. A subscription's row is valid from
version ``since`` until just before ``until``; a current row has the greatest possible ``until``.
After ``add(a)``, ``add(b)``, a change of ``a`` and ``remove(b)``::

    bittern_subscriptions    id  expression  ...  since  until
                             a   price < 10          1      3     the first text of a
                             b   price < 20          2      4     removed by version 4
                             a   price < 15          3      -     current

    bittern_versions         version  time  added  changed  removed
                             1        ...   1      0        0          ... one row per version

    bittern_catalog          schema 1   uid 5f0c...   version 4   oldest 0          the only row

So a version never changes once it exists: closing a row at a later version does not affect what
earlier versions see. The rows of version v are those with ``since <= v < until``. Rows that changed
after v up to w began or ended in between, and each of the two is a range of an index: reading
changes costs O(changes), whatever the size of the catalog.

A writer first increments ``bittern_catalog.version``. That takes the write lock of SQLite and the
row's lock in PostgreSQL until it commits, so writers take turns, versions have no gaps, and they
become visible in order.

Rows to be written are first put into ``bittern_staged``, a temporary table that only this
connection sees: a million rows are read and checked while other writers go on, and then merged by
three statements (``catalog/writing.py``).

Settings of a catalog are in ``bittern_settings``, which the first setting creates. Named sets are
in two more tables, which the first set creates (``catalog/set_rows.py``).

Times are microseconds since 1970, UTC. Ids are compared by their bytes.
"""

from __future__ import annotations

import sqlalchemy as sa

#: What this release writes and reads; another number is another layout.
SCHEMA = 1
#: ``until`` of a row that is current.
OPEN = 2**63 - 1
#: What a staged row asks for: to be there, not to be there, to stay as it is.
PUT, REMOVE, KEEP = 0, 1, 2

_metadata = sa.MetaData()
_BYTES = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _content() -> list[sa.Column]:
    """The columns of a subscription, apart from its id."""
    return [
        sa.Column("subscriber", sa.Text),
        sa.Column("weight", sa.Double),
        sa.Column("metadata", sa.Text),  # a JSON object
        sa.Column("enabled", sa.Boolean, nullable=False),
    ]


subscriptions = sa.Table(
    "bittern_subscriptions",
    _metadata,
    sa.Column("id", _BYTES, primary_key=True),
    sa.Column("since", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("until", sa.BigInteger, nullable=False),
    sa.Column("expression", sa.Text, nullable=False),
    *_content(),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("changed", sa.BigInteger, nullable=False),
    # Unique, since rows of one id do not overlap: so at most one is current.
    sa.Index("bittern_subscriptions_until", "until", "id", unique=True),
    sa.Index("bittern_subscriptions_since", "since"),
    sqlite_with_rowid=False,  # rows lie in the order of their ids, which is how they are read
)

versions = sa.Table(
    "bittern_versions",
    _metadata,
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("added", sa.BigInteger, nullable=False),
    sa.Column("changed", sa.BigInteger, nullable=False),
    sa.Column("removed", sa.BigInteger, nullable=False),
)

counter = sa.Table(
    "bittern_catalog",
    _metadata,
    sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("schema", sa.Integer, nullable=False),
    sa.Column("uid", sa.Text, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("oldest", sa.BigInteger, nullable=False),  # earlier versions are forgotten
    sa.CheckConstraint("one = 1"),
)

#: Not among the tables that every catalog has.
settings = sa.Table(
    "bittern_settings",
    sa.MetaData(),
    sa.Column("name", _BYTES, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

set_changes = sa.Table(
    "bittern_set_changes",
    sa.MetaData(),  # likewise
    sa.Column("name", _BYTES, primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("action", sa.SmallInteger, nullable=False),
    sa.Column("kind", sa.SmallInteger),  # of the members of this change; null if there are none
    sa.Column("moved", sa.BigInteger, nullable=False),  # how many these are
    sa.Column("members", sa.BigInteger, nullable=False),  # how many the set has after it
)

set_parts = sa.Table(
    "bittern_set_parts",
    sa.MetaData(),  # likewise
    sa.Column("name", _BYTES, primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("form", sa.SmallInteger, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

staged = sa.Table(
    "bittern_staged",
    sa.MetaData(),  # not among the tables of a catalog
    sa.Column("id", _BYTES, primary_key=True),
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.SmallInteger, nullable=False),
    sa.Column("expression", sa.Text),  # null unless the row is to be there
    *_content(),
    sa.Column("absent", sa.SmallInteger, nullable=False),  # bits of rows.ABSENT_BITS
    prefixes=["TEMPORARY"],
    postgresql_on_commit="DELETE ROWS",
    sqlite_with_rowid=False,
)

create_all = _metadata.create_all
#: The names of the tables of a catalog.
TABLES = tuple(_metadata.tables)
