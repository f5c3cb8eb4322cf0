"""``bittern catalog add | remove | enable | disable | show | load | export | history | ...``.

Only ``argparse`` is loaded until a command runs. Results go to standard output, and messages about
what was done go to standard error, so a script can tell them apart.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

from bittern.errors import OptionError, SubscriptionError
from bittern.service import set_commands
from bittern.service.arguments import add_schema, positive
from bittern.service.report import count, list_bad, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bittern.catalog.catalog import Catalog
    from bittern.catalog.rows import Subscription
    from bittern.service.schema_file import SchemaCheck

_SHOWN = 50
_ABOUT = """CATALOG is the path of an SQLite database or postgresql://user@host/database; put a
password into ~/.pgpass or $PGPASSWORD."""
_FORMATS = ("csv", "jsonl", "parquet")
#: Commands that create a catalog where there is none.
_CREATING = ("add", "load", "set")


def add_parsers(
    commands: Any, new: Callable[[Any, str, str, str], argparse.ArgumentParser]
) -> None:
    """Add the command and its subcommands; ``new`` makes a command of a name and its help."""
    catalog = new(
        commands,
        "catalog",
        "keep subscriptions in a database that can change while a pipeline runs",
        f"""{_ABOUT} Each change makes a new version of the
catalog, and earlier ones can be read.

example:
  bittern catalog add shop.db s1 "price <= 580"
  bittern catalog show shop.db
""",
    )
    own = catalog.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="action")

    def command(name: str, short: str, example: str, more: str = "") -> Any:
        about = f"{_ABOUT}\n{more}\nexample:\n  bittern catalog {example}\n"
        made = new(own, name, short, about)
        made.add_argument("catalog", metavar="CATALOG")
        return made.add_argument

    add = command("add", "add a subscription", 'add shop.db s1 "price <= 580" --weight 2')
    add("id", metavar="ID")
    add("expression", metavar="EXPRESSION")
    add("--subscriber", metavar="TEXT", type=_subscriber, help="who is notified")
    add("--weight", metavar="NUMBER", type=float, help="matches are ranked by it")
    add("--metadata", metavar="JSON", help="a JSON object that is stored with it")
    add("--disabled", action="store_true", help="store it without matching it yet")
    add("--replace", action="store_true", help="replace all of the subscription with this id")
    add_schema(add)

    for name, short in (
        ("remove", "remove subscriptions, as one version"),
        ("enable", "match disabled subscriptions again, as one version"),
        ("disable", "keep subscriptions without matching them, as one version"),
    ):
        command(name, short, f"{name} shop.db s1")("ids", metavar="ID", nargs="+")

    add = command("show", "show subscriptions", "show shop.db --version 3")
    add("ids", metavar="ID", nargs="*", help="default: all, in order of id")
    add(
        "--version",
        metavar="N",
        type=_version,
        help="show it as of this version (default: the newest)",
    )
    add("-n", "--limit", metavar="K", type=positive, default=_SHOWN, help=f"default: {_SHOWN}")
    add("--json", action="store_true", help="one JSON object per line instead of a table")

    add = command("load", "load subscriptions from a file", "load shop.db subs.csv --mode replace")
    add(
        "file",
        metavar="FILE",
        help="CSV, JSON lines or Parquet, or - for standard input; a column (or JSON key) that it "
        "does not have stays as it is for subscriptions that exist already; an empty value clears "
        "it",
    )
    add("-f", "--format", choices=_FORMATS, help="format of FILE (default: by its extension)")
    add(
        "--mode",
        choices=("upsert", "replace"),
        default="upsert",
        help="replace also removes subscriptions that are not in FILE (default: upsert)",
    )
    add_schema(add)
    add(
        "--on-error",
        choices=("fail", "skip"),
        default="fail",
        help="what to do with subscriptions that are not valid (default: fail)",
    )
    add("-q", "--quiet", action="store_true", help="show no progress and no summary")

    add = command("export", "write subscriptions to a file", "export shop.db subs.parquet")
    add("file", metavar="FILE", help="CSV, JSON lines or Parquet, or - for standard output")
    add("-f", "--format", choices=_FORMATS, help="format of FILE (default: by its extension)")
    add(
        "--version",
        metavar="N",
        type=_version,
        help="show it as of this version (default: the newest)",
    )

    add = command(
        "history", "show the last versions, or one subscription's past", "history shop.db"
    )
    add("id", metavar="ID", nargs="?")
    add("-n", "--limit", metavar="K", type=positive, default=_SHOWN, help=f"default: {_SHOWN}")
    add("--json", action="store_true", help="one JSON object per line instead of a table")

    command(
        "check",
        "check the database: its own integrity check, and every row",
        "check shop.db",
        """The exit code is 0 if nothing is wrong, and 1 if something is. Each line says what is
wrong, and with which subscription. Only what cannot be right is found: SQLite has no checksums, so
a text in which one letter has become another passes.
""",
    )

    add = command(
        "quantifiers",
        "allow or refuse EXISTS and FORALL; without them nothing needs a history",
        "quantifiers shop.db refuse",
    )
    add(
        "answer",
        metavar="allow|refuse",
        choices=("allow", "refuse"),
        nargs="?",
        help="from now on; existing subscriptions stay (default: print the setting)",
    )

    set_commands.add_parsers(command, _version)

    add = command("forget", "drop rows that only early versions need", "forget shop.db 1000")
    add(
        "version",
        metavar="VERSION",
        type=_version,
        help="the oldest version that can still be read",
    )


def _subscriber(text: str) -> str:
    if not text.strip():  # such as "$WHO" where it is not set
        raise argparse.ArgumentTypeError("it is empty: name a subscriber, or leave the option out")
    return text


def _version(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a version: give a whole number, 0 or more"
        )
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Run the command that was chosen."""
    import bittern  # noqa: PLC0415 (cold start)

    with bittern.Catalog(options.catalog, create=options.action in _CREATING) as catalog:
        try:
            if options.action in set_commands.ACTIONS:
                return set_commands.run(catalog, options)
            return _ACTIONS[options.action](catalog, options)
        except BaseException:
            catalog.discard()  # what fails leaves no file that was not there
            raise


def _add(catalog: Catalog, options: argparse.Namespace) -> int:
    from bittern.catalog.catalog import TAKEN  # noqa: PLC0415 (cold start)

    check = _check_of(options)
    if check is not None and (wrong := check.problem(options.id, options.expression)) is not None:
        raise SubscriptionError([wrong])
    try:
        version = catalog.add(
            options.id,
            options.expression,
            subscriber=options.subscriber,
            weight=options.weight,
            metadata=options.metadata,
            enabled=not options.disabled,
            replace=options.replace,
        )
    except SubscriptionError as error:
        (bad,) = error.bad
        if bad.message != TAKEN:
            raise
        said = TAKEN.replace("replace=True", "--replace")
        raise SubscriptionError([dataclasses.replace(bad, message=said)]) from None
    _tell(check)
    return _done(version)


def _check_of(options: argparse.Namespace) -> SchemaCheck | None:
    """What checks subscriptions against the schema that the options name, if they name one."""
    if options.schema is None:
        return None
    from bittern.service.schema_file import SchemaCheck, read_schema  # noqa: PLC0415 (cold start)

    return SchemaCheck(read_schema(options), options.unknown)


def _tell(check: SchemaCheck | None) -> None:
    if check is not None:
        check.tell()


def _remove(catalog: Catalog, options: argparse.Namespace) -> int:
    return _done(catalog.remove(options.ids))


def _switch(catalog: Catalog, options: argparse.Namespace) -> int:
    return _done(catalog.set_enabled(options.ids, options.action == "enable"))


def _done(version: int) -> int:
    say(f"version {version}")
    return 0


def _show(catalog: Catalog, options: argparse.Namespace) -> int:
    from bittern.catalog.files import json_line  # noqa: PLC0415 (cold start)

    if options.ids:
        rows = [_as_row(catalog.get(id_, options.version)) for id_ in options.ids]
        more = 0
    else:
        # One more than is shown tells whether there are more; counting all takes longer.
        rows = catalog.at(options.version, all=True, limit=options.limit + 1).to_pylist()
        more = len(rows) > options.limit
        rows = rows[: options.limit]
    if options.json:
        for row in rows:
            print(json_line(row, catalog).decode(), end="")
    else:
        columns = ("id", "enabled", "weight", "subscriber", "version", "expression")
        print_rows(columns, ([row[name] for name in columns] for row in rows))
    if more:
        total = catalog.count(options.version, all=True)
        say(f"{len(rows):,} of {count(total, 'subscription')} shown: use --limit to see more")
    return 0


def _as_row(subscription: Subscription) -> dict[str, Any]:
    """A subscription as a row of ``Catalog.at``."""
    row = dict(vars(subscription))
    del row["until"]
    if row["metadata"] is not None:
        row["metadata"] = json.dumps(row["metadata"])
    return row


def _load(catalog: Catalog, options: argparse.Namespace) -> int:
    from bittern.catalog import files  # noqa: PLC0415 (cold start)
    from bittern.service.progress import Progress  # noqa: PLC0415
    from bittern.service.tables import standard_input  # noqa: PLC0415

    started = time.monotonic()
    if options.file == "-":
        source = files.Incoming(0, files.read_rows(standard_input(), options.format or "jsonl"))
    else:
        source = files.read_file(options.file, options.format)
    check = _check_of(options)
    if check is not None:
        source = source._replace(values=check.checked(source.values))
    progress = None if options.quiet else Progress(sys.stderr)
    try:
        loaded = catalog.load(
            source,
            mode=options.mode,
            on_error="raise" if options.on_error == "fail" else "skip",
            progress=progress,
        )
    finally:
        if progress is not None:
            progress.close()
    _tell(check)
    if loaded.bad:
        say(f"{count(len(loaded.bad), 'subscription')} not valid and skipped")
        list_bad(loaded.bad)
    if not options.quiet:
        say(
            f"version {loaded.version}: {loaded.added:,} added, {loaded.changed:,} changed, "
            f"{loaded.removed:,} removed, {loaded.unchanged:,} unchanged "
            f"in {time.monotonic() - started:.1f} s"
        )
    return 0


def _export(catalog: Catalog, options: argparse.Namespace) -> int:
    from bittern.catalog import files  # noqa: PLC0415 (cold start)
    from bittern.service.tables import standard_output  # noqa: PLC0415

    if options.file == "-":
        form = options.format or "jsonl"
        if form == "parquet":
            raise OptionError("Parquet needs a file: give FILE instead of -")
        table = catalog.export(version=options.version)
        files.write_table(table, standard_output(), form, catalog)
        return 0
    form = options.format or files.format_of(options.file)
    table = catalog.export(version=options.version)
    files.save_table(table, options.file, form, catalog)
    say(f"{count(len(table), 'subscription')} written to {options.file}")
    return 0


def _history(catalog: Catalog, options: argparse.Namespace) -> int:
    if options.id is None:
        columns: tuple[str, ...] = ("version", "time", "added", "changed", "removed")
        rows = [tuple(version) for version in catalog.versions(options.limit)]
    else:
        columns = ("version", "until", "changed", "enabled", "weight", "subscriber", "expression")
        past = catalog.history(options.id)[-options.limit :]
        rows = [tuple(getattr(each, name) for name in columns) for each in reversed(past)]
        if not past:
            say(f"the catalog has never had the id {options.id!r}")
            return 1
    if options.json:
        for row in rows:
            print(json.dumps(dict(zip(columns, row, strict=True)), default=str))
    else:
        print_rows(columns, rows)
    return 0


def _check(catalog: Catalog, _: argparse.Namespace) -> int:
    problems = catalog.check()
    for problem in problems:
        print(_cell(problem))
    if problems:
        say(
            f"{count(len(problems), 'problem')}: remove these subscriptions, add them again, and "
            f"forget earlier versions ('bittern catalog forget'); if the database itself is "
            f"damaged, restore a backup"
        )
        return 1
    say(
        f"version {catalog.version()}, {count(catalog.count(all=True), 'subscription')}: "
        f"nothing is wrong"
    )
    return 0


def _quantifiers(catalog: Catalog, options: argparse.Namespace) -> int:
    if options.answer is None:
        print("allow" if catalog.allows_quantifiers() else "refuse")
        return 0
    catalog.set_quantifiers(options.answer == "allow")
    say(f"EXISTS and FORALL are {'allowed' if options.answer == 'allow' else 'refused'}")
    return 0


def _forget(catalog: Catalog, options: argparse.Namespace) -> int:
    gone = catalog.forget(options.version)
    say(f"{count(gone, 'row')} dropped; version {options.version} is the oldest that can be read")
    return 0


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table; the last column takes the room that is left."""
    cells = [list(columns), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1 << 30
    for row in cells:
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        line = line.rstrip()
        print(line if len(line) <= room else f"{line[: room - 3]}...")


def _cell(value: Any) -> str:
    """A value on one line, without control characters for the terminal."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if hasattr(value, "isoformat"):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_ACTIONS: dict[str, Callable[[Catalog, argparse.Namespace], int]] = {
    "add": _add,
    "remove": _remove,
    "enable": _switch,
    "disable": _switch,
    "show": _show,
    "load": _load,
    "export": _export,
    "history": _history,
    "check": _check,
    "quantifiers": _quantifiers,
    "forget": _forget,
}
