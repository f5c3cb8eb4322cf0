"""The tables of a journal, which the first use of ``catalog.journal`` creates.

After two events, of which the first matched subscriptions of ann and bob::

    bittern_journal       one  last  first               the only row: the lock of publishers

    bittern_events        number  time  version  event
                          1       ...   4711     {"price": 5}
                          2       ...   4711     {"price": 800}

    bittern_matches       subscriber  number  subscriptions
                          ann         1       ["s1","s7"]
                          bob         1       ["s2"]

    bittern_letters       number  url                 subscriber  subscriptions   to be posted
    bittern_dead_letters  the same, with time, attempts, status and reason        given up on

    bittern_publications  key     first  last            so that a repeated request adds nothing
    bittern_tokens        id      hash   roles  ...
    bittern_audit         number  time   actor  action  target  version  outcome

Matches of subscriptions without a subscriber stand under the empty name. Times are microseconds
since 1970, UTC.
"""

from __future__ import annotations

import sqlalchemy as sa

_metadata = sa.MetaData()
_BYTES = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # which counts by itself


def _matched() -> list[sa.Column]:
    """Which subscriptions of a subscriber an event matched, for one address."""
    return [
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("url", _BYTES, primary_key=True),
        sa.Column("subscriber", _BYTES, primary_key=True),
        sa.Column("subscriptions", sa.Text, nullable=False),  # a JSON list of ids
    ]


head = sa.Table(
    "bittern_journal",
    _metadata,
    sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("last", sa.BigInteger, nullable=False),
    sa.Column("first", sa.BigInteger, nullable=False),  # events before it are forgotten
    sa.CheckConstraint("one = 1"),
)

events = sa.Table(
    "bittern_events",
    _metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
)

matches = sa.Table(
    "bittern_matches",
    _metadata,
    sa.Column("subscriber", _BYTES, primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("subscriptions", sa.Text, nullable=False),  # a JSON list of ids
    sa.Index("bittern_matches_number", "number"),
    sqlite_with_rowid=False,
)

letters = sa.Table("bittern_letters", _metadata, *_matched(), sqlite_with_rowid=False)

dead_letters = sa.Table(
    "bittern_dead_letters",
    _metadata,
    *_matched(),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("reason", sa.Text, nullable=False),
)

publications = sa.Table(
    "bittern_publications",
    _metadata,
    sa.Column("key", _BYTES, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),  # of what was published under the key
    sa.Column("answer", sa.Text, nullable=False),  # what was acknowledged, as JSON
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Index("bittern_publications_time", "time"),
)

tokens = sa.Table(
    "bittern_tokens",
    _metadata,
    sa.Column("id", _BYTES, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("roles", sa.Text, nullable=False),  # words with spaces between them
    sa.Column("limits", sa.Text, nullable=False),  # a JSON object
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.BigInteger),
)

audit = sa.Table(
    "bittern_audit",
    _metadata,
    sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("version", sa.BigInteger),
    sa.Column("outcome", sa.Text),  # null: it was begun, and its end is not known
)

create_all = _metadata.create_all
