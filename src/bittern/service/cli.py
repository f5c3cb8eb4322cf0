"""The command line: ``bittern build | match | explain | inspect | advise``.

``main`` parses, runs one command and turns every way a user can be wrong into one sentence on
standard error and an exit code: 0 fine, 1 the data is wrong, 2 the command is, 130 interrupted.
Results go to standard output, everything said about them to standard error.

Cold start counts: nothing here imports NumPy, Arrow or Numba before a command needs them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import bittern
from bittern.errors import BitternError, OptionError, SubscriptionError
from bittern.service.arguments import Version, n_bytes, positive
from bittern.service.report import Rejects, count, list_bad, print_table, say

if TYPE_CHECKING:
    from collections.abc import Sequence

_FORMATS = ("csv", "jsonl", "parquet")
_SAMPLE_EVENTS = 100_000
_VERIFIED_UP_TO = 1 << 28  # bytes of a snapshot: what can be read in a fraction of a second


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if sys.stderr is None:  # closed by whoever started the process: nobody listens
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Who reads has read enough. Nothing may be flushed to the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SubscriptionError as error:
        written = "; nothing was written" if options.run is _build else ""
        say(f"{count(len(error.bad), 'subscription')} not valid{written}")
        list_bad(error.bad)
        return 1
    except BitternError as error:
        say(str(error))
        return 2 if isinstance(error, OptionError) else 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        say(f"{place}{error.strerror or error}")
        return 1
    return code


# Commands


def _build(options: argparse.Namespace) -> int:
    from bittern.engine import snapshot  # noqa: PLC0415 (cold start)
    from bittern.service import tables  # noqa: PLC0415
    from bittern.service.progress import Progress  # noqa: PLC0415

    form = tables.format_of(options.subscriptions, options.format)
    snapshot.check_target(options.output)  # before the work, not after it
    started = time.monotonic()
    source = tables.read_subscriptions(
        options.subscriptions,
        form,
        options.id_column,
        options.expression_column,
        options.weight_column,
    )
    progress = None if options.quiet else Progress(sys.stderr)
    try:
        index = bittern.Index.build(
            source,
            on_error="raise" if options.on_error == "fail" else "skip",
            sample=_sample(options.sample),
            stabbing=options.stabbing,
            stabbing_memory=options.stabbing_memory,
            progress=progress,
        )
        identity = index.save(options.output)
    finally:
        if progress is not None:
            progress.close()
    if options.on_error == "skip" and index.bad:
        say(f"{count(len(index.bad), 'subscription')} not valid and skipped")
        list_bad(index.bad)
    if not options.quiet:
        print_table(
            {
                "subscriptions": len(index),
                "classes": index.statistics()["classes"],
                "seconds": round(time.monotonic() - started, 2),
                "bytes": index.nbytes,
                "snapshot": identity,
            }
        )
    return 0


def _sample(name: str | None) -> Any:
    """Read the first events of a file, from which selectivities are estimated."""
    from bittern.service import tables  # noqa: PLC0415 (cold start)

    if name is None:
        return None
    form = tables.format_of(name, None)
    batch = next(tables.read_events(name, form, _SAMPLE_EVENTS, lambda *_: None), None)
    return None if batch is None else batch.events


def _match(options: argparse.Namespace) -> int:
    from bittern.service import tables  # noqa: PLC0415 (cold start)

    form = tables.format_of(options.events, options.format)
    output_form = tables.format_of(options.output, options.output_format, "--output-format")
    if options.output == "-" and output_form == "parquet":
        raise OptionError("Parquet needs a file: say --output FILE")
    index = _open(options.snapshot)
    matcher = bittern.Matcher(index)
    rejects = Rejects()
    n_rows = n_matches = 0
    with tables.replacing(options.output) as file:
        writer = tables.MatchWriter(file, output_form, index.ids.type, flat=options.flat)
        for batch in tables.read_events(options.events, form, options.batch_size, rejects):
            matches = batch.spread(matcher.match(batch.events, limit=options.limit))
            for row, reason in matches.rejects:
                rejects(f"row {n_rows + row}", reason)
            writer.write(matches.to_arrow(flat=writer.flat), batch.n_rows)
            n_rows += batch.n_rows
            n_matches += int(matches.counts.sum())
        writer.close()
    rejects.summarise()
    said = f"{count(n_rows, 'event')}, {count(n_matches, 'match')}"
    say(f"{said}, {rejects.number:,} rejected" if rejects.number else said)
    return 0


def _open(path: str) -> bittern.Index:
    """Open an index for use; unless it is large, look for damage first. O(bytes) up to 256 MB."""
    try:
        with os.scandir(path) as files:
            small = sum(file.stat().st_size for file in files) < _VERIFIED_UP_TO
    except OSError:  # opening says what is wrong
        small = False
    return bittern.Index.open(path, verify=small)


def _explain(options: argparse.Namespace) -> int:
    from bittern.service import tables  # noqa: PLC0415 (cold start)

    tables.standard_output()  # raises where nobody would see the reason
    text = options.event
    if text == "-":
        try:
            text = tables.standard_input().read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BitternError(f"the event is not UTF-8: {error}") from error
    index = _open(options.snapshot)
    try:
        print(bittern.explain(index, text, _as_id(options.id, index)))
    except RecursionError as error:
        raise BitternError("the event is nested too deeply") from error
    return 0


def _as_id(text: str, index: Any) -> str | int:
    """Return what the command line says as the kind of id that this index has."""
    import pyarrow as pa  # noqa: PLC0415 (cold start)

    if pa.types.is_integer(index.ids.type):
        try:
            return int(text)
        except ValueError as error:
            raise BitternError(f"{text!r}: the ids of this index are integers") from error
    return text


def _inspect(options: argparse.Namespace) -> int:
    from bittern.engine import snapshot  # noqa: PLC0415 (cold start)
    from bittern.service import tables  # noqa: PLC0415

    tables.standard_output()  # raises where nobody would see the report
    if options.check:
        problems = snapshot.verify_snapshot(options.snapshot)
        for problem in problems:
            say(problem)
        if problems:
            return 1
    opened = snapshot.read_snapshot(options.snapshot)
    index = bittern.Index.open(options.snapshot)
    if options.check:
        try:
            index.check()
        except AssertionError as broken:
            say(f"snapshot {options.snapshot} is not sound: {broken}")
            return 1
    about = {"snapshot": opened.id, "release": opened.release, "bytes": opened.nbytes}
    sizes = {name: array.nbytes for name, array in opened.arrays.items()}
    if options.json:
        report = {**about, "statistics": index.statistics(), "arrays": sizes}
        print(json.dumps(report, indent=1, default=_plain))
        return 0
    print_table({**about, **index.statistics()})
    print("\nbytes per array")
    print_table(dict(sorted(sizes.items(), key=lambda item: -item[1])), indent=2)
    if options.check:
        print("\nchecked: digests and structure are right")
    return 0


def _advise(options: argparse.Namespace) -> int:
    from bittern.service import advise  # noqa: PLC0415 (cold start)

    return advise.run(options)


def _plain(value: Any) -> Any:
    """Turn a NumPy scalar or array into what JSON has."""
    return value.tolist()


# The parser


def _command(commands: Any, name: str, run: Any, short: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=short,
        description=f"{short[0].upper()}{short[1:]}.\n\n{text}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bittern",
        description="Match events against millions of standing Boolean SQL subscriptions.",
        epilog="""example:
  bittern build subscriptions.csv --output shop.bittern
  bittern match shop.bittern events.jsonl --output matches.jsonl

exit codes: 0 fine, 1 the data is wrong, 2 the command is wrong""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="print the release and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_build(commands)
    _add_match(commands)
    _add_explain(commands)
    _add_inspect(commands)
    _add_advise(commands)
    return parser


def _add_build(commands: Any) -> None:
    command = _command(
        commands,
        "build",
        _build,
        "compile subscriptions into a snapshot",
        """SUBSCRIPTIONS is CSV, JSON lines or Parquet with a column for the id, one for the
expression and, if matches are to be ranked, one for the weight.

example:
  bittern build subscriptions.csv --output shop.bittern
  with subscriptions.csv:
    id,expression
    s1,"model = 'iphone5s' AND price <= 580"
""",
    )
    add = command.add_argument
    add("subscriptions", metavar="SUBSCRIPTIONS", help="a file, or - for standard input")
    add("--output", metavar="DIR", required=True, help="the snapshot; one there is replaced")
    add("--format", choices=_FORMATS, help="of SUBSCRIPTIONS (default: by its extension)")
    add("--id-column", metavar="NAME", default="id", help="default: id")
    add("--expression-column", metavar="NAME", default="expression", help="default: expression")
    add("--weight-column", metavar="NAME", help="default: weight, if there is one")
    add("--sample", metavar="EVENTS", help="a file of typical events, to plan the index for")
    add(
        "--on-error",
        choices=("fail", "skip"),
        default="fail",
        help="what to do when subscriptions are not valid (default: fail)",
    )
    add("--stabbing", metavar="NAME", default="cei", help="index under the pivots, or auto")
    add("--stabbing-memory", metavar="BYTES", type=n_bytes, help="for auto, such as 500M or 2GiB")
    add("--quiet", action="store_true", help="no progress and no summary")


def _add_match(commands: Any) -> None:
    command = _command(
        commands,
        "match",
        _match,
        "tell which subscriptions each event satisfies",
        """EVENTS is JSON lines, CSV or Parquet, one event per line or row. The output has one JSON
line per event; CSV output is always flat. Events are numbered from 0 by their rows: blank lines
and the header of CSV do not count, rows that cannot be read do. Such a row is reported by that
number and matches nothing; the others are not affected.

A snapshot of less than 256 MB is checked for damage first; for a larger one, and after
copying one, there is bittern inspect --check.

example:
  echo '{"model": "iphone5s", "price": 550}' | bittern match shop.bittern
  {"event": 0, "subscriptions": ["s1"]}
""",
    )
    add = command.add_argument
    add("snapshot", metavar="SNAPSHOT")
    add("events", metavar="EVENTS", nargs="?", default="-", help="default: -, standard input")
    add("--output", metavar="FILE", default="-", help="default: -, standard output")
    add("--format", choices=_FORMATS, help="of EVENTS (default: by its extension)")
    add("--output-format", choices=_FORMATS, help="of FILE (default: by its extension)")
    add("--flat", action="store_true", help="one line per match instead of one per event")
    add("--limit", metavar="K", type=positive, help="only the K matches of highest weight")
    add(
        "--batch-size",
        metavar="N",
        type=positive,
        default=10_000,
        help="events matched at a time (default: 10000)",
    )


def _add_explain(commands: Any) -> None:
    command = _command(
        commands,
        "explain",
        _explain,
        "tell why a subscription matches an event, or why not",
        """example:
  bittern explain shop.bittern s1 '{"model": "iphone5s", "price": 600}'
""",
    )
    command.add_argument("snapshot", metavar="SNAPSHOT")
    command.add_argument("id", metavar="ID", help="of the subscription")
    command.add_argument(
        "event",
        metavar="EVENT_JSON",
        nargs="?",
        default="-",
        help="the event as a JSON object (default: -, standard input)",
    )


def _add_inspect(commands: Any) -> None:
    command = _command(
        commands,
        "inspect",
        _inspect,
        "show what is in a snapshot, and whether it is sound",
        """example:
  bittern inspect shop.bittern --check
""",
    )
    command.add_argument("snapshot", metavar="SNAPSHOT")
    command.add_argument(
        "--check", action="store_true", help="verify digests and structure; exit 1 when damaged"
    )
    command.add_argument("--json", action="store_true", help="print JSON instead of tables")


def _add_advise(commands: Any) -> None:
    command = _command(
        commands,
        "advise",
        _advise,
        "tell which stabbing index suits intervals or subscriptions",
        """FILE is CSV, JSON lines or Parquet, with the columns low and high (one interval per row,
an empty end means none) or id and expression (as bittern build reads it; the intervals are those
that it would file). Every index is predicted, built and searched; docs/stabbing.md describes them.

example:
  bittern advise intervals.csv --memory 100M --picture advice.svg
""",
    )
    add = command.add_argument
    add("file", metavar="FILE")
    add("--format", choices=_FORMATS, help="of FILE (default: by its extension)")
    add("--id-column", metavar="NAME", help="default: id")
    add("--expression-column", metavar="NAME", help="default: expression")
    add("--memory", metavar="BYTES", type=n_bytes, help="for the index, such as 500M or 2GiB")
    add("--values", metavar="N", type=positive, default=50_000, help="to search (default: 50000)")
    add("--picture", metavar="FILE.svg", help="storage against search time, drawn")
    add("--json", action="store_true", help="print JSON instead of tables")


if __name__ == "__main__":
    sys.exit(main())
