"""``bittern catalog set | sets | members``: the named sets of a catalog."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from bittern.errors import OptionError
from bittern.service.report import count, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bittern.catalog.catalog import Catalog
    from bittern.engine.sets.members import Members

ACTIONS = ("set", "sets", "members")


def add_parsers(command: Callable[..., Any], version: Callable[[str], int]) -> None:
    """Add the subcommands; ``command`` makes one of a name and its help."""
    at = {"metavar": "N", "type": version, "help": "as of this version (default: the newest)"}
    add = command(
        "set",
        "define a named set, or change its members, as one version",
        "set shop.db vips vips.csv:user_id",
        """FILE is .txt (one string per line), .jsonl (one JSON value per line), .csv or .parquet,
followed by :COLUMN if it has several columns. Subscriptions look values up in a set with
user_id IN SET vips; changing a set compiles none of them.
""",
    )
    add("name", metavar="NAME")
    add("file", metavar="FILE", nargs="?", help="the members (needed unless --drop is given)")
    how = {"action": "store_const", "dest": "how", "default": "put"}
    add("--add", **how, const="add", help="add these members, and keep the others")
    add("--remove", **how, const="remove", help="remove these members, and keep the others")
    add("--drop", **how, const="drop", help="remove the whole set; no subscription may name it")

    add = command("sets", "show the named sets, and how many members they have", "sets shop.db")
    add("--version", **at)
    add("--json", action="store_true", help="one JSON object per line instead of a table")

    add = command("members", "write the members of a set", "members shop.db vips vips.parquet")
    add("name", metavar="NAME")
    add(
        "file", metavar="FILE", nargs="?", default="-", help="Parquet, else one JSON value per line"
    )
    add("--version", **at)


def run(catalog: Catalog, options: argparse.Namespace) -> int:
    """Run the command that was chosen."""
    if options.action == "set":
        return _set(catalog, options)
    if options.action == "members":
        return _members(catalog, options)
    return _sets(catalog, options)


def _set(catalog: Catalog, options: argparse.Namespace) -> int:
    from bittern.service.member_files import read_file  # noqa: PLC0415 (cold start)

    if (options.file is None) != (options.how == "drop"):
        raise OptionError("give either a FILE of members or --drop")
    if options.how == "drop":
        version = catalog.sets.drop(options.name)
    else:
        version = getattr(catalog.sets, options.how)(options.name, read_file(options.file))
    say(f"version {version}")
    return 0


def _sets(catalog: Catalog, options: argparse.Namespace) -> int:
    from bittern.service.catalog_commands import print_rows  # noqa: PLC0415 (it imports this)

    columns = ("set", "members", "version")
    rows = [(name, each.members, each.version) for name, each in _at(catalog, options).items()]
    if options.json:
        for row in rows:
            print(json.dumps(dict(zip(columns, row, strict=True))))
    else:
        print_rows(columns, rows)
    return 0


def _at(catalog: Catalog, options: argparse.Namespace) -> dict[str, Any]:
    return catalog.sets.versions(options.version)


def _members(catalog: Catalog, options: argparse.Namespace) -> int:
    import pyarrow as pa  # noqa: PLC0415 (cold start)
    import pyarrow.parquet  # noqa: PLC0415

    from bittern.service.tables import replacing  # noqa: PLC0415

    members = catalog.sets.members(options.name, options.version)
    with replacing(options.file) as file:
        if options.file.endswith(".parquet"):
            pyarrow.parquet.write_table(pa.table({"member": members.to_arrow()}), file)
        else:
            file.writelines(_lines(members))
    say(f"{count(len(members), 'member')} written")
    return 0


def _lines(members: Members) -> Iterator[bytes]:
    for member in members:
        plain = isinstance(member, str | bool | int | float)
        yield (json.dumps(member) if plain else str(member)).encode() + b"\n"
