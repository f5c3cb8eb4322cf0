"""The grammar of the command line: every command, its options and its help.

Only ``argparse`` is loaded here, so ``--help`` does not wait for anything else.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from bittern.service import (
    backtest,
    catalog_commands,
    completion,
    import_rules,
    serve_commands,
)
from bittern.service.arguments import (
    VersionAction,
    add_ignore_case,
    add_schema,
    n_bytes,
    named_file,
    parameter,
    positive,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FORMATS = ("csv", "jsonl", "parquet")


def _command(commands: Any, name: str, short: str, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=short,
        description=f"{short[0].upper()}{short[1:]}.\n\n{text}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return command


def parser(runs: Mapping[str, Callable[[argparse.Namespace], int]]) -> argparse.ArgumentParser:
    """All commands with their options; ``options.run`` is the entry of ``runs`` for the command."""
    whole = argparse.ArgumentParser(
        prog="bittern",
        description="Match events against millions of standing Boolean SQL subscriptions.",
        epilog="""example:
  bittern build subscriptions.csv --output shop.bittern
  bittern match shop.bittern events.jsonl --output matches.jsonl

exit codes: 0 success, 1 wrong data, 2 wrong command, 130 interrupted,
143 terminated""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument(
        "--version",
        action=VersionAction,
        nargs=0,
        help="print releases, also of what is used, and exit",
    )
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_build(commands)
    _add_match(commands)
    _add_explain(commands)
    _add_inspect(commands)
    _add_sets(backtest.add_parser(commands, _command), "")
    _add_advise(commands)
    _add_spark_match(commands)
    catalog_commands.add_parsers(commands, _command)
    import_rules.add_parser(commands, _command)
    _add_run(commands)
    _add_redeliver(commands)
    serve_commands.add_parsers(commands, _command)
    _add_warm_up(commands)
    completion.add_parser(commands, _command, whole)
    for name, command in commands.choices.items():
        command.set_defaults(run=runs[name])
    return whole


def _add_build(commands: Any) -> None:
    command = _command(
        commands,
        "build",
        "compile subscriptions into a snapshot",
        """SUBSCRIPTIONS is CSV, JSON lines or Parquet with a column for the id, one for the
expression and, to rank matches, one for the weight.

The documentation has a page on strategies with their parameters, and one on stabbing indexes. With
--schema, constants are converted to the types of attributes, and names that the events do not have
are told.

example:
  bittern build subscriptions.csv --output shop.bittern
  with subscriptions.csv:
    id,expression
    s1,"model = 'iphone5s' AND price <= 580"
""",
    )
    add = command.add_argument
    add("subscriptions", metavar="SUBSCRIPTIONS", help="a file, or - for standard input")
    add(
        "-o",
        "--output",
        metavar="DIR",
        required=True,
        help="the snapshot; an existing one is replaced",
    )
    add(
        "-f",
        "--format",
        choices=FORMATS,
        help="format of SUBSCRIPTIONS (default: by its extension)",
    )
    add("--id-column", metavar="NAME", default="id", help="default: id")
    add("--expression-column", metavar="NAME", default="expression", help="default: expression")
    add("--weight-column", metavar="NAME", help="default: weight, if there is one")
    add("--sample", metavar="EVENTS", help="a file of typical events that the index is planned for")
    add_schema(add)
    _add_sets(command, "; the snapshot keeps it")
    add(
        "--on-error",
        choices=("fail", "skip"),
        default="fail",
        help="what to do with subscriptions that are not valid (default: fail)",
    )
    add("--strategy", metavar="NAME", default="pivot", help="index strategy (default: pivot)")
    add(
        "--parameter",
        metavar="NAME=VALUE",
        type=parameter,
        action="append",
        default=[],
        help="a parameter of the strategy, such as domain=[1,50]; may be repeated",
    )
    add(
        "--stabbing", metavar="NAME", help="stabbing index under the pivots, or auto (default: cei)"
    )
    add(
        "--stabbing-memory",
        metavar="BYTES",
        type=n_bytes,
        help="memory limit for auto, such as 500M or 2GiB",
    )
    add("-q", "--quiet", action="store_true", help="show no progress and no summary")


def _add_match(commands: Any) -> None:
    command = _command(
        commands,
        "match",
        "find the subscriptions that each event satisfies",
        """EVENTS is JSON lines, CSV or Parquet, one event per line or row. The output has one JSON
line per event; CSV output is always flat. Events are numbered by their rows, from 0: blank lines
and the header of CSV do not count, rows that cannot be read do. Such a row is reported with its
number and matches nothing; the other rows are not affected.

A snapshot of less than 256 MB is checked for damage first. For a larger snapshot, or after copying
one, use bittern inspect --check.

Subscriptions with EXISTS or FORALL compare events with earlier events. The folder that --history
names keeps those from one command to the next.

example:
  echo '{"model": "iphone5s", "price": 550}' | bittern match shop.bittern
  {"event": 0, "subscriptions": ["s1"]}
""",
    )
    add = command.add_argument
    add("snapshot", metavar="SNAPSHOT")
    add("events", metavar="EVENTS", nargs="?", default="-", help="default: -, standard input")
    add("-o", "--output", metavar="FILE", default="-", help="default: -, standard output")
    add("-f", "--format", choices=FORMATS, help="format of EVENTS (default: by its extension)")
    add("--output-format", choices=FORMATS, help="format of FILE (default: by its extension)")
    add("--flat", action="store_true", help="one line per match instead of one per event")
    _add_limit(add)
    add_ignore_case(add)
    add(
        "--batch-size",
        metavar="N",
        type=positive,
        default=10_000,
        help="events matched at a time (default: 10000)",
    )
    add("-q", "--quiet", action="store_true", help="show no progress and no summary")
    _add_sets(command, ", in place of the snapshot's")
    _add_history(command, "folder of the earlier documents; created if it does not exist")
    add("--batch-at-once", action="store_true", help="events of a batch do not see each other")
    add(
        "--no-remember",
        dest="remember",
        action="store_false",
        help="do not add the events to the history",
    )


def _add_limit(add: Callable[..., Any]) -> None:
    add("-n", "--limit", metavar="K", type=positive, help="only the K matches of highest weight")


def _add_sets(command: argparse.ArgumentParser, more: str) -> None:
    command.add_argument(
        "--set",
        metavar="NAME=FILE",
        dest="sets",
        type=named_file,
        action="append",
        default=[],
        help="a set that subscriptions name with IN SET: .txt or .jsonl with a member a line, or "
        f".csv or .parquet, with :COLUMN behind if there are several{more}; may be repeated",
    )


def _add_history(command: argparse.ArgumentParser, what: str) -> None:
    add = command.add_argument
    add("--history", metavar="FOLDER", help=what)
    add("--keep", metavar="N", type=positive, help="use only the N newest documents of the history")


def _add_explain(commands: Any) -> None:
    command = _command(
        commands,
        "explain",
        "explain why a subscription matches an event, or why it does not",
        """With --history, EXISTS and FORALL look at the documents in the folder; the event is not
added to them.

example:
  bittern explain shop.bittern s1 '{"model": "iphone5s", "price": 600}'
""",
    )
    command.add_argument("snapshot", metavar="SNAPSHOT")
    command.add_argument("id", metavar="ID", help="id of the subscription")
    command.add_argument(
        "event",
        metavar="EVENT_JSON",
        nargs="?",
        default="-",
        help="the event as a JSON object (default: -, standard input)",
    )
    command.add_argument(
        "--catalog",
        metavar="CATALOG",
        help="of a subscription that was imported into this catalog, show what its rule says",
    )
    _add_sets(command, ", in place of the snapshot's")
    _add_history(command, "folder of the earlier documents")


def _add_inspect(commands: Any) -> None:
    command = _command(
        commands,
        "inspect",
        "show what is in a snapshot, a history or a predicate index, and whether it is sound",
        """A predicate index is a file. It is read from end to end, at its newest version, even
while another process writes to it.

example:
  bittern inspect shop.bittern --check
""",
    )
    command.add_argument(
        "snapshot", metavar="PATH", help="a snapshot, a history's folder, or a predicate index"
    )
    command.add_argument(
        "--check", action="store_true", help="verify digests and structure; exit with 1 if damaged"
    )
    command.add_argument("--json", action="store_true", help="print JSON instead of tables")
    command.add_argument(
        "-a", "--all", action="store_true", help="list all arrays with their bytes"
    )


def _add_advise(commands: Any) -> None:
    command = _command(
        commands,
        "advise",
        "advise which stabbing index suits intervals or subscriptions",
        """FILE is CSV, JSON lines or Parquet, with the columns low and high (one interval per row,
an empty end means no bound) or id and expression (as for bittern build; the intervals are those
that it would index). Every index is predicted, built and searched.

example:
  bittern advise intervals.csv --memory 100M --picture advice.svg
""",
    )
    add = command.add_argument
    add("file", metavar="FILE")
    add("-f", "--format", choices=FORMATS, help="format of FILE (default: by its extension)")
    add("--id-column", metavar="NAME", help="default: id")
    add("--expression-column", metavar="NAME", help="default: expression")
    add(
        "--memory",
        metavar="BYTES",
        type=n_bytes,
        help="memory limit of the index, such as 500M or 2GiB",
    )
    add(
        "--values",
        metavar="N",
        type=positive,
        default=50_000,
        help="number of values to search (default: 50000)",
    )
    add("--picture", metavar="FILE.svg", help="draw storage against search time")
    add("--json", action="store_true", help="print JSON instead of tables")


def _add_spark_match(commands: Any) -> None:
    command = _command(
        commands,
        "spark-match",
        "match files of events on Spark, from this machine's cores to a cluster",
        """EVENTS are Parquet, JSON lines or CSV with a header: a file, a folder of them, or a
pattern such as 'logs/*.jsonl'. SUBSCRIPTIONS are such files with the columns id, expression and
optionally weight, or a snapshot that bittern build wrote. OUT is a folder for the result, which is
written as a whole or not at all: Parquet, JSON lines or CSV by its extension; CSV has one row per
match.

It needs pyspark and Java 17.

example:
  bittern spark-match events.parquet subscriptions.csv matches.parquet --event-id id
""",
    )
    add = command.add_argument
    add("events", metavar="EVENTS")
    add("subscriptions", metavar="SUBSCRIPTIONS")
    add("output", metavar="OUT")
    add("-f", "--format", choices=FORMATS, help="format of EVENTS (default: by the extension)")
    add("--subscriptions-format", choices=FORMATS, help="default: by the extension")
    add("--output-format", choices=FORMATS, help="format of OUT (default: by the extension)")
    add("--event-id", metavar="NAMES", help="columns to keep, separated by commas (default: all)")
    add("--payload", metavar="NAMES", help="more columns to keep; * is all (default: none)")
    add("--json", metavar="NAMES", help="columns that hold attributes as JSON text")
    add("--explode", action="store_true", help="one row per match instead of one per event")
    _add_limit(add)
    add("--rejects", metavar="DIR", help="write events that cannot be read here, as Parquet")
    _add_sets(command, ", in place of the snapshot's")
    add("--history", metavar="PARQUET", help="documents that precede all events")
    add(
        "--order-by",
        metavar="NAMES",
        help="columns that give the order of events: each sees the earlier ones, in one task",
    )
    add("--overwrite", action="store_true", help="replace OUT if it exists")
    add(
        "--on-error",
        choices=("fail", "skip"),
        default="fail",
        help="what to do with subscriptions that are not valid (default: fail)",
    )
    add(
        "--master",
        metavar="URL",
        help="master of Spark (default: $MASTER, else all cores of this machine)",
    )
    add("--conf", metavar="NAME=VALUE", action="append", default=[], help="a setting of Spark")
    add("--store", metavar="URI", help="folder for the snapshot that driver and executors share")
    add(
        "--shards",
        metavar="N",
        type=positive,
        help="cut the index into N shards (default: by its size)",
    )
    add("-q", "--quiet", action="store_true", help="show no progress and no summary")


def _add_run(commands: Any) -> None:
    command = _command(
        commands,
        "run",
        "match a stream of events against a catalog that may change meanwhile",
        """PIPELINE is a TOML file that says where the events come from, where the catalog is and
where matches go; examples/pipeline.toml shows every key with a comment.

SIGTERM or Ctrl-C finishes the current micro-batch and then stops; a second one stops at once.
Either way, and after a failure too, the next run continues where this one stopped.

It needs pyspark and Java 17.

example:
  bittern run pipeline.toml --check
  bittern run pipeline.toml
""",
    )
    add = command.add_argument
    add("pipeline", metavar="PIPELINE")
    add("--once", action="store_true", help="match what is there now, then end")
    add("--check", action="store_true", help="only check whether it could run")
    add("-q", "--quiet", action="store_true", help="show no figures, only problems")


def _add_redeliver(commands: Any) -> None:
    command = _command(
        commands,
        "redeliver",
        "send again what a pipeline could not deliver to webhooks",
        """PIPELINE is the TOML file of a pipeline whose sink is a webhook. Its dead letters are
sent once more, each with the key that it had, and those that arrive are noted beside them and not
sent another time. The pipeline may run meanwhile. A table says what became of them; the exit code
is 1 if some could not be delivered.

TIME is that at which a letter died, in ISO 8601, in UTC unless it has a zone.

example:
  bittern redeliver pipeline.toml --dry-run
  bittern redeliver pipeline.toml --subscriber ann --since 2026-03-01T09:00
""",
    )
    add = command.add_argument
    add("pipeline", metavar="PIPELINE")
    add("--subscriber", metavar="NAME", action="append", help="only this one's; may be repeated")
    add("--since", metavar="TIME", help="only letters that died at this time or later")
    add("--until", metavar="TIME", help="only letters that died before this time")
    add("--dry-run", action="store_true", help="count the letters and send none")


def _add_warm_up(commands: Any) -> None:
    command = _command(
        commands,
        "warm-up",
        "compile all kernels now, so that no later process waits for it",
        """Kernels are compiled when they are first used and kept on disk: beside the package, or
else in the user's folder for caches, or else in a private folder below the temporary one;
$NUMBA_CACHE_DIR comes first. Run this once when you build a container image, or with the Python of
Spark's executors, as the user who installed Bittern.

All kernels take about a minute on two cores; with --defaults only those of a build and a match
with default options, some seconds. What is compiled already is left as it is.

example:
  bittern warm-up
""",
    )
    add = command.add_argument
    add("--defaults", action="store_true", help="only what a build and a match by default need")
    add(
        "--processes",
        metavar="N",
        type=positive,
        help="processes at once (default: one per core)",
    )
    add("-q", "--quiet", action="store_true", help="show no progress and no summary")
