"""``catalog.sets``: named sets, of which every change is a version of the catalog.

::

    catalog.sets["vips"] = [7, 9]        version 1      at(1)    vips: 7, 9
    catalog.sets.add("vips", [11])       version 2      at(2)    vips: 7, 9, 11
    catalog.add("s1", "u IN SET vips")   version 3      at(3)    the same
    del catalog.sets["vips"]             refused: s1 names it

Subscriptions and sets share the numbers of versions, so that one number says what both were. But a
change of a set changes no subscription: ``catalog.changes`` is empty for it.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from bittern.catalog import set_rows
from bittern.catalog.database import Database
from bittern.catalog.reading import known
from bittern.engine.sets.members import Members
from bittern.engine.sets.named import checked_name, read_members


class CatalogSets(MutableMapping[str, Members]):
    """The sets of a catalog by name; without a version, as they are now."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __getitem__(self, name: str) -> Members:
        return self.members(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.versions())

    def __len__(self) -> int:
        return len(self.versions())

    def __contains__(self, name: object) -> bool:
        return name in self.versions()

    def __repr__(self) -> str:
        return f"<sets of the catalog {self._database}>"

    def __setitem__(self, name: str, members: Any) -> None:
        self.put(name, members)

    def __delitem__(self, name: str) -> None:
        self.drop(name)

    # -- changing ------------------------------------------------------------------------------

    def put(self, name: str, members: Any) -> int:
        """Define a set, or replace all its members; returns the version that has them.

        ``members`` is a list, a set or an array: numbers, strings, booleans or times of one kind.
        If they are what the set has already, there is no new version. O(members).
        """
        content = read_members(checked_name(name), members).content()
        return set_rows.put(self._database, name, content)

    def add(self, name: str, members: Any) -> int:
        """Add members to a set; returns the version that has them. O(members of the set)."""
        return self._change(name, set_rows.ADD, members)

    def remove(self, name: str, members: Any) -> int:
        """Remove members from a set; those that it does not have are ignored."""
        return self._change(name, set_rows.REMOVE, members)

    def _change(self, name: str, action: int, members: Any) -> int:
        content = read_members(checked_name(name), members).content()
        return set_rows.change(self._database, name, action, content)

    def drop(self, name: str) -> int:
        """Remove a set; ``OptionError`` if a subscription names it. O(subscriptions)."""
        return set_rows.drop(self._database, checked_name(name))

    # -- reading -------------------------------------------------------------------------------

    def members(self, name: str, version: int | None = None) -> Members:
        """A set as a version of the catalog has it; ``UnknownSetError`` if it has none."""
        with self._database.reading() as connection:
            content = set_rows.read_set(connection, name, known(connection, version))
        return Members.of_content(content)

    def at(self, version: int | None = None) -> dict[str, Members]:
        """All sets of a version of the catalog. O(members)."""
        with self._database.reading() as connection:
            at = known(connection, version)
            names = set_rows.read_versions(connection, at)
            found = {name: set_rows.read_set(connection, name, at) for name in names}
        return {name: Members.of_content(each) for name, each in found.items()}

    def versions(self, version: int | None = None) -> dict[str, set_rows.SetVersion]:
        """By name, in which version each set took its form, and how many members it has."""
        with self._database.reading() as connection:
            return set_rows.read_versions(connection, known(connection, version))
