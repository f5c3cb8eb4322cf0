"""``bittern import``: rules of other systems into a catalog, or shown with ``--dry-run``.

What each rule became goes to standard output, what cannot be said to standard error with its file
and place. One rule that is refused does not stop the others.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from bittern.errors import OptionError
from bittern.imports.formats import FORMATS
from bittern.service.report import SHOWN_BAD, count, list_bad, say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bittern.imports.rule_files import TranslatedRule

#: Options that only some formats have, and which these are.
_OWN = {
    "lists": ("eventbridge", "sns", "mongo", "elasticsearch"),
    "scope": ("sns",),
    "pipeline": ("sigma",),
    "fields": ("sigma",),
}
#: Those that are several, with commas between.
_MANY = ("lists", "fields")


def add_parser(commands: Any, new: Callable[[Any, str, str, str], argparse.ArgumentParser]) -> None:
    """Add the command; ``new`` makes a command of a name and its help."""
    titles = "\n".join(f"  {name:<14}{form.title}" for name, form in FORMATS.items())
    command = new(
        commands,
        "import",
        "turn rules of other systems into subscriptions of a catalog",
        f"""formats:
{titles}

A file is one rule, an array of rules, or a rule in each line; of a folder, all files with the
format's extensions are read. The id of a rule is its name, or its file and line. A rule that is
malformed, or that cannot be said, is listed with its place, and the others are imported. The exit
code is 1 if none is left. --dry-run shows what each rule becomes.

example:
  bittern import eventbridge rules/ --dry-run
  bittern import eventbridge rules/ --catalog shop.db
""",
    )
    add = command.add_argument
    add("format", metavar="FORMAT", choices=tuple(FORMATS), help="one of those above")
    add("files", metavar="FILE", nargs="+", help="files and folders, or - for standard input")
    add("--catalog", metavar="CATALOG", help="an SQLite file or postgresql://user@host/database")
    add("--dry-run", action="store_true", help="show what each rule becomes, and change nothing")
    add("--json", action="store_true", help="with --dry-run: one JSON object per line")
    add(
        "--lists",
        metavar="PATH,...",
        help="attributes that may hold lists (default: all may); an empty text for none: rules "
        "become shorter and faster",
    )
    add(
        "--scope",
        choices=("MessageAttributes", "MessageBody"),
        help="what a policy of SNS is about (default: MessageAttributes)",
    )
    add("--pipeline", metavar="FILE", help="a processing pipeline of Sigma, for names of fields")
    add("--fields", metavar="NAME,...", help="attributes in which keywords of Sigma are searched")
    add("-q", "--quiet", action="store_true", help="show no progress and no summary")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from bittern.imports.rule_files import read_rules  # noqa: PLC0415 (cold start)
    from bittern.service.progress import Progress  # noqa: PLC0415

    if options.dry_run == (options.catalog is not None):
        raise OptionError("give either --catalog CATALOG or --dry-run")
    if options.json and not options.dry_run:
        raise OptionError("--json is for --dry-run")
    started = time.monotonic()
    progress = None if options.quiet or options.dry_run else Progress(sys.stderr)
    found: dict[str, TranslatedRule] = {}
    refused: list[TranslatedRule] = []
    try:
        rules = read_rules(
            options.format,
            options.files,
            progress=None if progress is None else lambda done: progress("reading", done, 0),
            **rule_options(options.format, {name: getattr(options, name) for name in _OWN}),
        )
        for each in rules:
            if each.expression is None:
                refused.append(each)
            else:
                found[each.id] = each
            if options.dry_run:
                _show(each, as_json=options.json)
        n_loaded = 0 if options.dry_run else _load(options, found, progress, refused)
    finally:
        if progress is not None:
            progress.close()
    if not (options.dry_run and options.json):
        _list_refused(refused)
    if not options.quiet:
        _summarise(options, found, refused, n_loaded, time.monotonic() - started)
    return 0 if found or not refused else 1


def rule_options(format_: str, given: Mapping[str, str | None]) -> dict[str, Any]:
    """Options of a format, as ``read_rules`` takes them, from their texts."""
    own: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if format_ not in _OWN[name]:
            raise OptionError(f"{name} is for {', '.join(_OWN[name])}, not for {format_}")
        own[name] = [each for each in value.split(",") if each] if name in _MANY else value
    return own


def _show(outcome: TranslatedRule, *, as_json: bool) -> None:
    if as_json:
        row: dict[str, Any] = {"id": outcome.id, "source": outcome.source}
        if outcome.error is None:
            row["expression"] = outcome.expression
        else:
            row |= {"place": outcome.error.place, "refused": outcome.error.reason}
        print(json.dumps(row, ensure_ascii=False))
    elif outcome.expression is not None:
        print(f"{_plain(outcome.id)}\t{_plain(outcome.expression)}")


def _plain(text: str) -> str:
    """A text on one line, without control characters for the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def subscription_of(format_: str, outcome: TranslatedRule) -> dict[str, Any]:
    """A subscription with what it was, as far as a catalog has room for that."""
    from bittern.catalog.rows import MAX_METADATA  # noqa: PLC0415 (cold start)

    kept = {"rule": outcome.rule, "constructs": dict(outcome.constructs)}
    imported = {"format": format_, "source": outcome.source} | {
        name: value for name, value in kept.items() if len(json.dumps(value)) < MAX_METADATA // 3
    }
    return {
        "id": outcome.id,
        "expression": outcome.expression,
        "metadata": {"imported": imported},
    }


def _load(
    options: argparse.Namespace,
    found: dict[str, TranslatedRule],
    progress: Any,
    refused: list[TranslatedRule],
) -> int:
    import bittern  # noqa: PLC0415 (cold start)

    if not found:
        if not refused:
            raise OptionError("there is no rule in these files")
        return 0
    with bittern.Catalog(options.catalog, create=True) as catalog:
        try:
            rows = [subscription_of(options.format, each) for each in found.values()]
            loaded = catalog.load(rows, on_error="skip", progress=progress)
        except BaseException:
            catalog.discard()  # what fails leaves no file that was not there
            raise
    if loaded.bad:
        say(f"{count(len(loaded.bad), 'subscription')} not valid and skipped")
        list_bad(loaded.bad)
        for each in loaded.bad:
            found.pop(str(each.id), None)
    if not options.quiet:
        say(
            f"version {loaded.version}: {loaded.added:,} added, {loaded.changed:,} changed, "
            f"{loaded.unchanged:,} unchanged"
        )
    return loaded.added + loaded.changed + loaded.unchanged


def _list_refused(refused: list[TranslatedRule]) -> None:
    for each in refused[:SHOWN_BAD]:
        print(f"  {_plain(each.id)}: {_plain(str(each.error))}", file=sys.stderr)
    if len(refused) > SHOWN_BAD:
        print(f"  ... and {len(refused) - SHOWN_BAD:,} more", file=sys.stderr)


def _summarise(
    options: argparse.Namespace,
    found: dict[str, TranslatedRule],
    refused: list[TranslatedRule],
    n_loaded: int,
    seconds: float,
) -> None:
    done = (
        f"{count(len(found), 'rule')} can be said"
        if options.dry_run
        else f"{count(n_loaded, 'rule')} imported"
    )
    say(f"{done}, {len(refused):,} refused, in {seconds:.1f} s")
