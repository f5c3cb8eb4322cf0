"""Finding subscriptions page by page: by a piece of text, a subscriber, an attribute.

::

    find(catalog, text="price <", limit=2)             s1 s4    and there is more: after="s4"
    find(catalog, text="price <", limit=2, after="s4")    s9

A page is read by the order of ids, so that changes between two pages neither repeat nor skip what
stays. Cost: O(subscriptions looked at), which is a page where there is nothing to search for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import sqlalchemy as sa

from bittern.catalog.catalog import Catalog
from bittern.catalog.layout import subscriptions
from bittern.catalog.reading import SCHEMA, known, read_rows
from bittern.engine.known_schema import attributes_in
from bittern.errors import ExpressionError
from bittern.language.parser import parse
from bittern.language.presence import is_presence, present_path
from bittern.language.trees import walk
from bittern.terms.unknown import any_function

_row = subscriptions.c
_LOOKED_AT = 2_000  # rows whose attributes are looked up at a time


class SearchPage(NamedTuple):
    """Subscriptions, with the columns of ``Catalog.at``, and whether more follow."""

    rows: pa.Table
    more: bool


def find(
    catalog: Catalog,
    *,
    text: str | None = None,
    subscriber: str | None = None,
    attribute: str | None = None,
    after: str = "",
    limit: int = 100,
    version: int | None = None,
) -> SearchPage:
    """The first subscriptions with ids after ``after``, disabled ones too.

    ``text`` is a piece of the id or the expression, in any case; ``attribute`` is one that the
    expression mentions.
    """
    at = sa.bindparam("at", type_=sa.BigInteger)
    query = sa.select(
        *(_row.since.label("version") if name == "version" else _row[name] for name in SCHEMA.names)
    ).where(_row.since <= at, _row.until > at)
    if text:
        query = query.where(_has(_row.id, text) | _has(_row.expression, text))
    if subscriber is not None:
        query = query.where(_row.subscriber == subscriber)
    if attribute:
        query = query.where(_has(_row.expression, attribute.split(".")[-1].strip("`")))
    query = query.where(_row.id > sa.bindparam("after")).order_by(_row.id)
    database = catalog.database
    found: list[pa.Table] = []
    n_found = 0
    with database.reading() as connection:
        bound: dict[str, Any] = {"at": known(connection, version), "after": after}
        size = limit + 1 if not attribute else max(limit + 1, _LOOKED_AT)
        while n_found <= limit:
            rows = read_rows(database, connection, query.limit(size), bound)
            part = (
                rows
                if not attribute
                else rows.filter(pa.array(_mentions(rows, attribute), pa.bool_()))
            )
            found.append(part)
            n_found += part.num_rows
            if rows.num_rows < size:
                break
            bound["after"] = rows["id"][-1].as_py()
    whole = pa.concat_tables(found)
    return SearchPage(whole.slice(0, limit), n_found > limit)


def _has(column: Any, text: str) -> Any:
    """Whether a column has a piece of text; what LIKE takes for wildcards stands for itself."""
    return sa.func.lower(column).contains(text.lower(), autoescape=True)


def _mentions(rows: pa.Table, attribute: str) -> Iterator[bool]:
    """For each row whether its expression mentions an attribute."""
    for text in rows["expression"].to_pylist():
        try:
            with any_function():
                names = [str(getattr(node, "attribute", "")) for node in walk(parse(text))]
                named = [present_path(each) if is_presence(each) else each for each in names]
                yield any(attribute in attributes_in(each) for each in named if each)
        except ExpressionError:  # written without the catalog's checks
            yield False
