"""Changes of one subscription that depend on what it is: fields of it, or all of it unless changed.

::

    change(catalog, "s1", {"weight": 3})                 the other fields stay as they are
    change(catalog, "s1", {"weight": 3}, expected=17)    only if version 17 gave it its form

Both look at the subscription behind the lock that writers take, so that of two who change the same
form one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from bittern.catalog import reading, set_rows, writing
from bittern.catalog.catalog import Catalog
from bittern.catalog.layout import OPEN, subscriptions
from bittern.catalog.rows import FIELDS, CatalogRow, Door, all_valid, asked_id
from bittern.catalog.writing import Stage
from bittern.errors import BitternError, OptionError, UnknownSubscriptionError

#: Expected of a subscription that must not be there yet.
ABSENT_YET = 0


class ChangedMeanwhileError(BitternError):
    """A subscription is not in the form that a change was meant for; nothing was changed."""


def change(
    catalog: Catalog, id_: str, fields: Mapping[str, Any], expected: int | None = None
) -> int:
    """Change some fields of a subscription, None clears one; returns the version that has it."""
    wrong = [name for name in fields if name not in FIELDS[1:]]
    if wrong:
        raise OptionError(f"{wrong[0]!r:.60} is no field that can be changed: {FIELDS[1:]}")

    def changed(row: CatalogRow | None) -> tuple[Any, ...]:
        if row is None:
            raise UnknownSubscriptionError(f"no subscription has the id {id_!r}")
        return tuple(fields.get(name, own) for name, own in zip(FIELDS, row, strict=False))

    return _write(catalog, id_, changed, expected)


def put(
    catalog: Catalog, subscription: Mapping[str, Any], expected: int | None = None
) -> tuple[int, bool]:
    """Add a subscription, or replace all of it; returns the version, and whether it is new."""
    id_ = asked_id(subscription.get("id"))
    was_there: list[bool] = []

    def changed(row: CatalogRow | None) -> tuple[Any, ...]:
        was_there.append(row is not None)
        return tuple(subscription.get(name) for name in FIELDS)

    return _write(catalog, id_, changed, expected), not was_there[-1]


def remove(catalog: Catalog, id_: str, expected: int | None = None) -> int:
    """Remove a subscription; returns the version that no longer has it."""

    def changed(row: CatalogRow | None) -> None:
        if row is None:
            raise UnknownSubscriptionError(f"no subscription has the id {id_!r}")

    return _write(catalog, id_, changed, expected)


def _write(
    catalog: Catalog,
    id_: str,
    changed: Callable[[CatalogRow | None], tuple[Any, ...] | None],
    expected: int | None,
) -> int:
    id_ = asked_id(id_)

    def under_lock(stage: Stage) -> None:
        connection = stage.connection
        if expected is not None:
            current = subscriptions.c.id == id_, subscriptions.c.until == OPEN
            since = connection.execute(sa.select(subscriptions.c.since).where(*current)).scalar()
            if (since or ABSENT_YET) != expected:
                is_now = "is not there" if since is None else f"is that of version {since}"
                raise ChangedMeanwhileError(
                    f"the subscription {id_!r} {is_now}, not that of version {expected}: read it "
                    f"again, and change that"
                )
        row = changed(writing.current(connection, id_))
        if row is None:
            stage.remove([id_])
            return
        door = Door(
            lambda: reading.allows_quantifiers(connection),
            lambda: reading.functions(connection),
            lambda: set_rows.current(connection),
        )
        stage.put(all_valid([door.check(row)]))

    return writing.write(catalog.database, lambda _: None, under_lock=under_lock).version
