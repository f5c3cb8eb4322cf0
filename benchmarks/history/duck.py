"""The same subscriptions as SQL in DuckDB, each family as one query over a batch of events.

A row for each subscription holds its constants, so that a family is one join, and the quantifier is
answered for the whole batch before it meets a subscription::

    fell    WITH held AS (SELECT e.event FROM events e SEMI JOIN documents d
                          ON d.isbn = e.isbn AND d.price > e.price)
            SELECT h.event, s.id FROM held h JOIN events e USING (event)
            JOIN fell s ON e.category = s.c0 AND e.price < s.c1

The forms are chosen by hand, the best that were found: a lone order comparison is compared with the
least or the greatest value, a constant on the document becomes a column of what is held, windows
are ranked within the groups that the batch asks for. A correlated EXISTS for each subscription, as
one would write it first, is decorrelated into a product of subscriptions and events.

All events of a batch see the documents of before the batch, which suits a database: in order of
arrival each event would be a batch of its own. Like the other engines, it gets one thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.draw import Ints
from benchmarks.history.world import LETTERS, Ask, Family, Records, Subscriptions


class Form(NamedTuple):
    """How a quantifier is answered for a batch: rows of ``event`` and what subscriptions ask for.

    ``more`` is what a subscription ``s`` and an event ``e`` must have in common with a row ``h``,
    beside the event; ``by_event`` is false if the rows are the same for all events.
    """

    held: str
    more: str = ""
    by_event: bool = True


#: A lone comparison with every document: none may lack the value, and the extreme one decides.
_ALL = "SELECT e.event FROM events e, (SELECT {extreme}({a}) AS x, count(*) = count({a}) AS every,"
_ALL += " count(*) AS n FROM documents) WHERE n = 0 OR (every AND e.{a} {operator} x)"
_SEMI = "SELECT e.event FROM events e SEMI JOIN documents d ON "
#: The documents of a group, newest first; a group that the batch does not ask for is left out.
_LAST = """
SELECT e.event FROM events e LEFT JOIN (
    SELECT {per}, min(price) AS least, count(*) = count(price) AS every FROM (
        SELECT d.{per}, d.price FROM documents d SEMI JOIN events USING ({per})
        QUALIFY row_number() OVER (PARTITION BY d.{per} ORDER BY d.number DESC) <= {last}
    ) GROUP BY {per}
) g USING ({per}) WHERE g.{per} IS NULL OR (g.every AND e.price < g.least)"""

FORMS = {
    "fell": Form(_SEMI + "d.isbn = e.isbn AND d.price > e.price"),
    "new": Form(
        "SELECT e.event FROM events e ANTI JOIN documents d ON d.isbn = e.isbn, "
        "(SELECT count(*) = count(isbn) AS every, count(*) AS n FROM documents) "
        "WHERE n = 0 OR (every AND e.isbn IS NOT NULL)"
    ),
    "lowest": Form(_LAST.format(per="shop", last=1_000)),
    "dip": Form(_LAST.format(per="isbn", last=3)),
    "earlier": Form(
        "SELECT DISTINCT e.event, d.shop FROM events e JOIN documents d "
        "ON d.author = e.author AND d.year < e.year",
        "h.shop = s.c1",
    ),
    "seller": Form(
        "SELECT seller, max(price) AS most FROM documents GROUP BY seller",
        "h.seller = s.c1 AND e.price < h.most",
        by_event=False,
    ),
    "once": Form(
        "SELECT e.event, min(d.price) AS least FROM events e JOIN documents d USING (isbn) "
        "GROUP BY e.event",
        "h.least < s.c1",
    ),
    "newest": Form(_ALL.format(a="year", extreme="max", operator=">=")),
    "dearest": Form(_ALL.format(a="price", extreme="max", operator=">")),
    "lighter": Form("SELECT event FROM events WHERE weight > (SELECT min(weight) FROM documents)"),
    "known": Form(_SEMI + "d.isbn = e.isbn"),
    "rated": Form(_SEMI + "d.isbn = e.isbn AND d.rating < e.rating"),
    "bargain": Form(_SEMI + "d.author = e.author AND d.price < e.price AND d.weight < e.weight"),
    # Of all documents of one weight, the cheapest decides: some two thousand rows, not a million.
    "either": Form(
        "SELECT e.event FROM events e SEMI JOIN (SELECT weight, min(price) AS least FROM documents"
        " GROUP BY weight) d ON d.least < e.price AND d.weight > e.weight"
    ),
}


class DuckDB:
    """An in-memory database with the documents and the subscriptions."""

    def __init__(self, subscriptions: Subscriptions, documents: Records) -> None:
        """Load both. O(subscriptions + documents)."""
        import duckdb

        self._families = subscriptions.families
        self._connection = duckdb.connect(config={"threads": 1})
        numbers = np.arange(len(documents))
        self._load("documents", documents.table().append_column("number", pa.array(numbers)))
        for number, family in enumerate(self._families):
            own = np.flatnonzero(subscriptions.family == number)
            columns = {"id": pa.array(own)}
            for column, ask in enumerate(family.asks):
                columns[f"c{column}"] = _constants(ask, subscriptions.values[own, column])
            self._load(family.name, pa.table(columns))

    def _load(self, name: str, rows: pa.Table) -> None:
        self._connection.register("incoming", rows)
        self._connection.execute(f"CREATE TABLE {name} AS FROM incoming")
        self._connection.unregister("incoming")

    def match(self, events: Records) -> Ints:
        """Give (event, subscription) of every match, in order."""
        rows = events.table().append_column("event", pa.array(np.arange(len(events))))
        self._connection.register("events", rows)
        found = [self._connection.sql(query(family)).to_arrow_table() for family in self._families]
        self._connection.unregister("events")
        pairs = pa.concat_tables(found)
        both = np.stack([pairs[name].to_numpy() for name in ("event", "id")], axis=1)
        return both[np.lexsort(both.T[::-1])]

    def close(self) -> None:
        """Let go of everything."""
        self._connection.close()


def query(family: Family) -> str:
    """The query of one family over the table ``events``."""
    form = FORMS[family.name]
    asked = [f"e.{ask.attribute} {ask.operator} s.c{k}" for k, ask in enumerate(family.event)]
    joined = ["h.event = e.event"] if form.by_event else []
    joined += [form.more] if form.more else []
    return (
        f"WITH held AS MATERIALIZED ({form.held}) SELECT e.event, s.id FROM events e "
        f"JOIN {family.name} s ON {' AND '.join(asked)} JOIN held h ON {' AND '.join(joined)}"
    )


def _constants(ask: Ask, values: np.ndarray) -> pa.Array:
    if ask.attribute in LETTERS:
        return pa.array([f"{LETTERS[ask.attribute]}{value:.0f}" for value in values.tolist()])
    return pa.array(values)
