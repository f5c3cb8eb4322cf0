"""``bittern.Catalog``: subscriptions in a database; every change makes a new version.

::

    catalog.add("s1", "price < 10")          version 1      at(1)          s1
    catalog.add("s2", "price < 20")          version 2      at(2)          s1 s2
    catalog.remove("s1")                     version 3      at(3)          s2
                                                            changes(1, 3)  put s2, removed s1

This is the public interface. It checks arguments and calls ``catalog/writing.py`` and
``catalog/reading.py``. ``catalog/layout.py`` shows how a catalog is stored in the database.
SQLAlchemy is imported only when a catalog is opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow as pa

from bittern.catalog import files
from bittern.catalog.rows import (
    CatalogRow,
    Door,
    Subscription,
    all_valid,
    asked_id,
    asked_ids,
    is_id,
)
from bittern.catalog.sources import row_of, rows_of
from bittern.engine.subscriptions import REPEATED, OnProgress
from bittern.errors import (
    BadSubscription,
    OptionError,
    SubscriptionError,
    UnknownSubscriptionError,
    brief,
)
from bittern.notebooks import facts
from bittern.options import one_of, true_or_false, whole_number
from bittern.terms.unknown import EMBEDDED, SPARK

if TYPE_CHECKING:
    from bittern.catalog.database import Database
    from bittern.catalog.reading import Changes, Version
    from bittern.catalog.writing import Merged, Stage

_REPORT_EVERY = 10_000
_FUNCTIONS = (EMBEDDED, SPARK)
#: What is said of an id that is taken.
TAKEN = "this id is taken: choose another, or use replace=True"


class Loaded(NamedTuple):
    """What a load did: the newest version after it, the numbers of changes, and the bad rows."""

    version: int
    added: int
    changed: int
    removed: int
    unchanged: int
    bad: list[BadSubscription]


class Catalog:
    """Subscriptions in SQLite or PostgreSQL; each change is one transaction and one version.

    ``url`` is a path (or ``sqlite:///path``), or ``postgresql://user@host/database``. If there is
    no catalog yet, it is created, unless ``create`` is false. A writer waits ``timeout`` seconds
    for others. Any number of threads and processes may use one catalog; it pickles as its URL.

    ``functions`` says which functions subscriptions may call: those of "embedded" matching, or all
    that "spark" knows, user functions included, if the catalog is only matched there. A catalog
    keeps what it was created with (``set_functions`` changes it); None takes it as it is.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        create: bool = True,
        timeout: float = 60.0,
        functions: str | None = None,
    ) -> None:
        try:
            from bittern.catalog import checking, reading, set_rows, writing  # noqa: PLC0415 (only needed with a catalog)
            from bittern.catalog.database import Database, database_url  # noqa: PLC0415
            from bittern.catalog.sets import CatalogSets  # noqa: PLC0415
        except ModuleNotFoundError as missing:
            if (missing.name or "").split(".")[0] != "sqlalchemy":
                raise
            raise OptionError(
                "a catalog needs SQLAlchemy: pip install 'bittern[catalog]'"
            ) from None
        if not isinstance(timeout, int | float) or not 0 < timeout <= 86_400:
            raise OptionError(
                f"timeout must be a number of seconds up to a day, not {brief(timeout)}"
            )
        self._database = Database(database_url(url), float(timeout), create=create)
        self._checking, self._reading, self._writing = checking, reading, writing
        self._set_rows = set_rows
        #: The named sets: ``catalog.sets["vips"] = [7, 9]`` (``catalog/sets.py``).
        self.sets = CatalogSets(self._database)
        if functions is not None and one_of("functions", functions, _FUNCTIONS) != self.functions():
            if self.version():
                raise OptionError(
                    f"{self} was created with functions={self.functions()!r}, not {functions!r}: "
                    f"set_functions changes that"
                )
            self.set_functions(functions)

    @property
    def url(self) -> str:
        """The URL that opens this catalog again; with the password, if the URL has one."""
        if self._database.is_sqlite:
            return f"sqlite:///{self._database}"
        return self._database.url.render_as_string(hide_password=False)

    @property
    def uid(self) -> str:
        """A random identifier that the catalog got when it was created."""
        return self._database.uid

    @property
    def database(self) -> Database:
        """Its database, for other modules of this room."""
        return self._database

    def __repr__(self) -> str:
        return f"<bittern.Catalog {self}>"

    def _repr_html_(self) -> str:
        """Where it is and what is in it, for notebooks."""
        held = {"version": self.version(), "subscriptions": self.count()}
        return facts(repr(self).strip("<>"), held)

    def __str__(self) -> str:
        return str(self._database)  # for messages: without a password

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.url, self._database.timeout)

    # -- changing ------------------------------------------------------------------------------

    def add(
        self,
        id: str | int,  # noqa: A002 (as it is called everywhere)
        expression: str,
        *,
        subscriber: str | None = None,
        weight: float | None = None,
        metadata: Any = None,
        enabled: bool = True,
        replace: bool = False,
    ) -> int:
        """Add a subscription; returns the version that has it. O(log rows) and a commit.

        ``SubscriptionError`` if it is not valid, or if the id is taken and ``replace`` is false.
        """
        door = self._door()
        row = all_valid([door.check((id, expression, subscriber, weight, metadata, enabled))])

        def check_free(stage: Stage) -> None:
            self._check_sets(stage, door)
            if not replace and self._writing.is_there(stage.connection, row[0][0]):
                raise SubscriptionError([BadSubscription(row[0][0], 0, TAKEN)])

        return self._write(lambda stage: stage.put(row), under_lock=check_free).version

    def remove(self, id: str | int | Iterable[str | int]) -> int:  # noqa: A002
        """Remove a subscription, or several in one version: all of them or none.

        Returns the version that no longer has them.
        """
        names = asked_ids(id)

        def check_there(stage: Stage) -> None:
            for name in names:
                if not self._writing.is_there(stage.connection, name):
                    raise UnknownSubscriptionError(f"no subscription has the id {name!r}")

        return self._write(lambda stage: stage.remove(names), under_lock=check_there).version

    def set_enabled(
        self,
        id: str | int | Iterable[str | int],  # noqa: A002
        enabled: bool,  # noqa: FBT001
    ) -> int:
        """Enable or disable a subscription, or several in one version: all of them or none.

        A disabled subscription is kept but not matched.
        """
        names = asked_ids(id)
        true_or_false("enabled", enabled)

        def change(stage: Stage) -> None:
            # Asks the connection that it has: writers that wait may hold all others.
            door = Door(
                lambda: self._reading.allows_quantifiers(stage.connection),
                lambda: self._reading.functions(stage.connection),
                lambda: self._set_rows.current(stage.connection),
            )
            rows = []
            for name in names:
                row = self._writing.current(stage.connection, name)
                if row is None:
                    raise UnknownSubscriptionError(f"no subscription has the id {name!r}")
                changed = (*row[:5], enabled)
                rows.append(door.check(changed) if enabled else (*changed, 0))
            stage.put(all_valid(rows))

        return self._write(lambda _: None, under_lock=change).version

    def apply(self, puts: Iterable[Any] = (), removes: Iterable[str | int] = ()) -> int:
        """Make many changes in one version: all of them or none; returns that version.

        ``puts`` are mappings or ``Subscription``s, which replace those of the same id as a whole.
        Removing one that is not there changes nothing, so an ``apply`` may be repeated.
        """
        door = self._door()
        rows = [row_of(each, number, strict=True) for number, each in enumerate(puts)]
        checked = [row if isinstance(row, BadSubscription) else door.check(row) for row in rows]
        ids = list(dict.fromkeys(map(asked_id, removes)))
        seen = set(ids)
        for place, row in enumerate(checked):
            if not isinstance(row, BadSubscription):
                if row[0] in seen:
                    said = "this id is put twice, or both put and removed"
                    checked[place] = BadSubscription(row[0], 0, said)
                seen.add(row[0])
        good = all_valid(checked)

        def stage(stage: Stage) -> None:
            stage.put(good)
            stage.remove(ids)

        return self._write(stage, under_lock=partial(self._check_sets, door=door)).version

    def load(
        self,
        source: Any,
        *,
        mode: str = "upsert",
        on_error: str = "raise",
        progress: OnProgress | None = None,
    ) -> Loaded:
        """Load many subscriptions as one version, all or nothing. O(source).

        ``source`` is a file's path (CSV, JSON lines, Parquet), a table, a DataFrame of pandas or
        Spark, a mapping from id to expression, or mappings. A row changes the given fields of the
        subscription with the same id. A field without a column, or without a key in a mapping or a
        line of JSON, stays as it is; an empty value clears it. Rows that change nothing have no
        effect. ``mode="replace"`` also removes subscriptions that are not in the source. The source
        must have some then: an export that failed does not empty a catalog.
        ``on_error="skip"`` loads the valid rows and returns the others as ``bad``; subscriptions
        with their ids stay as they are. ``progress`` is called with (stage, done, total).
        """
        one_of("mode", mode, ("upsert", "replace"))
        one_of("on_error", on_error, ("raise", "skip"))
        rows = rows_of(source)
        report = progress or (lambda *_: None)
        bad: list[BadSubscription] = []
        # Asked before there is a transaction. One that has read may not be able to write later,
        # and one that asks through a second connection waits for others that do the same.
        allowed, functions, sets = self.allows_quantifiers(), self.functions(), set(self.sets)
        door = Door(lambda: allowed, lambda: functions, lambda: sets)

        def stage(stage: Stage) -> None:
            stage.put(_good(door, rows, bad, report))
            bad.extend(BadSubscription(id_, 0, REPEATED) for id_ in stage.drop_repeated())
            if bad and on_error == "raise":
                raise SubscriptionError(bad)
            if mode == "replace" and not stage.puts:
                raise OptionError(
                    f"the source has no {'valid ' if bad else ''}subscription, so replacing would "
                    f"remove all of them: if you mean that, remove them by their ids"
                )
            stage.keep({each.id for each in bad if isinstance(each.id, str) and is_id(each.id)})

        check = partial(self._check_sets, door=door)
        merged = self._write(stage, under_lock=check, sweep=mode == "replace", progress=report)
        return Loaded(**merged._asdict(), bad=bad)

    def forget(self, before: int) -> int:
        """Drop what only versions before this one need; returns how many row versions were dropped.

        Earlier versions cannot be read any more. O(row versions dropped).
        """
        return self._writing.forget(self._database, before, self._set_rows.forget)

    def set_quantifiers(self, allowed: bool) -> None:  # noqa: FBT001
        """Allow EXISTS and FORALL, as a new catalog does, or refuse them from now on.

        They cannot be matched without a history. Existing subscriptions stay.
        """
        true_or_false("allowed", allowed)
        self._writing.set_quantifiers(self._database, allowed=allowed)

    def set_functions(self, functions: str) -> None:
        """Allow the functions of "embedded" matching only, or any that "spark" knows, from now on.

        Existing subscriptions stay. Embedded matching leaves those out whose functions only Spark
        knows, and says so.
        """
        one_of("functions", functions, _FUNCTIONS)
        self._writing.set_functions(self._database, functions)

    def _door(self) -> Door:
        return Door(self.allows_quantifiers, self.functions, lambda: set(self.sets))

    def _check_sets(self, stage: Stage, door: Door) -> None:
        self._set_rows.check_there(stage.connection, door.named)

    def _write(self, stage: Callable[[Stage], None], **options: Any) -> Merged:
        return self._writing.write(self._database, stage, **options)

    # -- reading -------------------------------------------------------------------------------

    def version(self) -> int:
        """The newest version; 0 until something is added. O(1)."""
        with self._database.reading() as connection:
            return self._reading.newest(connection)

    def allows_quantifiers(self) -> bool:
        """Whether it allows EXISTS and FORALL; see ``set_quantifiers``."""
        with self._database.reading() as connection:
            return self._reading.allows_quantifiers(connection)

    def functions(self) -> str:
        """Which functions it allows; see ``set_functions``."""
        with self._database.reading() as connection:
            return self._reading.functions(connection)

    def get(self, id: str | int, version: int | None = None) -> Subscription:  # noqa: A002
        """One subscription, of the newest version if none is given. O(log rows)."""
        return self._reading.read_one(self._database, asked_id(id), version)

    def count(self, version: int | None = None, *, all: bool = False) -> int:  # noqa: A002
        """The number of enabled subscriptions, or with ``all`` of all subscriptions. O(rows)."""
        return self._reading.count(self._database, version, only_enabled=not all)

    def at(
        self,
        version: int | None = None,
        *,
        all: bool = False,  # noqa: A002
        limit: int | None = None,
    ) -> pa.Table:
        """The subscriptions of a version, by id: only enabled ones unless ``all``. O(rows).

        Columns: id, expression, weight, subscriber, metadata (JSON text), enabled, created,
        changed, version (the one that brought it into this form). ``limit`` returns the first ones.
        """
        return self._reading.read_version(
            self._database, version, only_enabled=not all, limit=_limit(limit)
        )

    def changes(self, since: int, until: int | None = None) -> Changes:
        """What changed after ``since`` up to and including ``until``, each id once. O(changes).

        ``at(since)`` without ``removed`` and updated by ``put`` is ``at(until)``.
        """
        return self._reading.read_changes(self._database, since, until)

    def details(self, ids: Iterable[str | int], version: int | None = None) -> pa.Table:
        """Columns id, subscriber, weight and metadata of those ids that the version has. O(ids)."""
        return self._reading.read_details(self._database, map(asked_id, ids), version)

    def history(self, id: str | int) -> list[Subscription]:  # noqa: A002
        """Every form of one subscription that is not forgotten, oldest first."""
        return self._reading.read_history(self._database, asked_id(id))

    def versions(self, limit: int = 20) -> list[Version]:
        """The last versions with their times and numbers of changes, newest first."""
        return self._reading.read_versions(self._database, _limit(limit))

    def export(
        self, path: str | os.PathLike[str] | None = None, version: int | None = None
    ) -> pa.Table:
        """Write a version, disabled subscriptions too, to a CSV, JSON lines or Parquet file.

        Returns the table. ``load`` reads the file. Without a path, nothing is written.
        """
        form = None if path is None else files.format_of(os.fspath(path))
        table = self.at(version, all=True)
        if path is not None:
            files.save_table(table, path, form, self)
        return table

    def check(self) -> list[str]:
        """Problems of the catalog, one sentence each; none if it is sound. O(row versions).

        Runs the database's own check, and looks in every row for what bittern would not write.
        """
        return self._checking.problems(self._database)

    # -- the end -------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called: every other call is refused then."""
        return self._database.is_closed

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def discard(self) -> None:
        """Close it, and remove its file again if opening created it and it is still empty.

        A file that has a version or is open elsewhere stays, and so do tables in PostgreSQL.
        """
        self._database.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reopened(url: str, timeout: float) -> Catalog:
    """A catalog from its pickle."""
    return Catalog(url, create=False, timeout=timeout)


def _limit(limit: Any) -> Any:
    return None if limit is None else whole_number("limit", limit, 0, 2**63 - 1)


def _good(
    door: Door, rows: files.Incoming, bad: list[BadSubscription], report: OnProgress
) -> Iterator[CatalogRow]:
    """The rows that are valid; the others go to ``bad``."""
    done = 0
    for done, row in enumerate(rows.values, 1):
        checked = row if isinstance(row, BadSubscription) else door.check(row)
        if isinstance(checked, BadSubscription):
            bad.append(checked)
        else:
            yield checked
        if done % _REPORT_EVERY == 0:
            report("read", done, max(done, rows.total) if rows.total else 0)
    report("read", done, done)
