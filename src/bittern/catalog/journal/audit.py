"""Who changed what: an entry is written before a change is made, and completed after it.

A process that dies between the two leaves an entry without an outcome: the change may have been
made. The versions of the catalog then tell whether it was.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import sqlalchemy as sa

from bittern.catalog.database import Database
from bittern.catalog.journal.tables import audit


class AuditEntry(NamedTuple):
    """One change, or an attempt at one; the outcome is None while it is not known."""

    number: int
    time: int
    actor: str
    action: str
    target: str
    version: int | None
    outcome: str | None


class AuditLog:
    """The audit log in the database of one catalog, whose journal has been opened."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, actor: str, action: str, target: str) -> int:
        """Write down what is about to be done; returns the entry's number."""
        row = {"time": time.time_ns() // 1000, "actor": actor, "action": action, "target": target}
        query = audit.insert().returning(audit.c.number)
        with self._database.writing() as connection:
            return int(connection.execute(query, row).scalar_one())

    def end(self, number: int, outcome: str, version: int | None) -> None:
        """Write down what became of it."""
        query = audit.update().where(audit.c.number == number)
        with self._database.writing() as connection:
            connection.execute(query.values(outcome=outcome, version=version))

    def entries(self, before: int | None, limit: int) -> list[AuditEntry]:
        """The newest entries with lower numbers, the newest first."""
        query = sa.select(audit).order_by(audit.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(audit.c.number < before)
        with self._database.reading() as connection:
            return [AuditEntry(*row) for row in connection.execute(query)]
