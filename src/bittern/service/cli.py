"""The command line: ``bittern build | match | explain | inspect | advise | catalog | ...``.

``main`` parses. ``run`` runs one command and turns every mistake of a user into one sentence on
standard error and an exit code: 0 success, 1 wrong data, 2 wrong command, 130 interrupted, 143
terminated. Data is wrong if none of it can be read; it is not wrong if some of it can. Results go
to standard output, everything said about them to standard error.

Start-up time matters: nothing here imports NumPy, Arrow or Numba before a command needs them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import bittern
from bittern.errors import BitternError, OptionError, SubscriptionError
from bittern.service.parser import parser
from bittern.service.report import (
    RejectReport,
    count,
    list_bad,
    print_table,
    say,
    takes_colours,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

_SHOWN_ARRAYS = 8
_SAMPLE_EVENTS = 100_000
_ONE_REQUEST = 1.0  # seconds: timeout(1), for one, sends SIGTERM twice at once
_VERIFIED_UP_TO = 1 << 28  # bytes of a snapshot: what can be read in a fraction of a second


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if sys.stderr is None:  # closed by the parent process: messages go nowhere
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    return run(parser(_COMMANDS).parse_args(arguments))


@contextlib.contextmanager
def _terminable() -> Iterator[list[float]]:
    """While inside, SIGTERM does what Ctrl-C does; yields the list of times at which it came.

    By default it would end the process at once and leave half-written files behind.
    """
    came: list[float] = []

    def terminate(_number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if came and now - came[-1] < _ONE_REQUEST:
            return
        came.append(now)
        interrupt = signal.getsignal(signal.SIGINT)  # Spark's session, for one, has its own
        if not callable(interrupt):  # Ctrl-C is ignored, as by what a script starts with &
            raise KeyboardInterrupt
        interrupt(signal.SIGINT, frame)

    in_charge = threading.current_thread() is threading.main_thread()
    if not in_charge or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield came  # a program that calls us has its own way to end
        return
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def run(options: argparse.Namespace) -> int:
    """Run ``options.run``; whatever goes wrong becomes a sentence and an exit code."""
    with _terminable() as came:
        code = _run_command(options)
    return 143 if came and code == 130 else code


def _run_command(options: argparse.Namespace) -> int:
    try:
        code: int = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe. Nothing may be flushed to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SubscriptionError as error:
        written = "; nothing was written" if options.run in (_build, _spark_match, _catalog) else ""
        say(f"{count(len(error.bad), 'subscription')} not valid{written}")
        list_bad(error.bad)
        return 1
    except BitternError as error:
        say(str(error))
        return 2 if isinstance(error, OptionError) else 1
    except ModuleNotFoundError as missing:  # what only some commands need
        say(f"{missing.name} is not installed: pip install 'bittern[spark]'")
        return 2
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        say(f"{place}{error.strerror or error}")
        return 1
    return code


# Commands


def _of(module: str, function: str = "run") -> Callable[[argparse.Namespace], int]:
    """A command that a module of this room runs; it is loaded when it is called (cold start)."""

    def command(options: argparse.Namespace) -> int:
        run: Callable[[argparse.Namespace], int]
        run = getattr(importlib.import_module(f"bittern.service.{module}"), function)
        return run(options)

    return command


_spark_match, _catalog = _of("spark_match"), _of("catalog_commands")


def _build(options: argparse.Namespace) -> int:
    from bittern.engine.snapshot import folder as snapshot  # noqa: PLC0415 (cold start)
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
    schema = _schema(options)
    progress = None if options.quiet else Progress(sys.stderr)
    try:
        index = bittern.Index.build(
            source,
            on_error="raise" if options.on_error == "fail" else "skip",
            sample=_sample(options.sample),
            strategy=options.strategy,
            parameters=_once(options.parameter),
            stabbing=options.stabbing,
            stabbing_memory=options.stabbing_memory,
            progress=progress,
            sets=_sets(options),
            schema=schema,
            unknown=options.unknown,
        )
        nothing_left = bool(index.bad) and not len(index)
        identity = None if nothing_left else index.save(options.output)
    finally:
        if progress is not None:
            progress.close()
    if nothing_left:
        say("no subscription is valid; nothing was written")
        list_bad(index.bad)
        return 1
    if index.bad:
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


def _schema(options: argparse.Namespace) -> Any:
    """The schema that the options name, if they name one."""
    if options.schema is None:
        return None
    from bittern.service.schema_file import read_schema  # noqa: PLC0415 (cold start)

    return read_schema(options)


def _once(given: list[tuple[str, Any]]) -> dict[str, Any]:
    """Parameters by name; none may be given twice."""
    names = [name for name, _ in given]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(
                f"--parameter {name} is given {names.count(name)} times: give it once"
            )
    return dict(given)


def _sets(options: argparse.Namespace) -> dict[str, Any] | None:
    """The sets of ``--set``; None if there are none."""
    if not options.sets:
        return None
    from bittern.service import member_files  # noqa: PLC0415 (cold start)

    return member_files.read_sets(options.sets)


def _sample(name: str | None) -> Any:
    """Read the first events of a file, to estimate selectivities from them."""
    from bittern.service import tables  # noqa: PLC0415 (cold start)

    if name is None:
        return None
    form = tables.format_of(name, None)
    batch = next(tables.read_events(name, form, _SAMPLE_EVENTS, lambda *_: None), None)
    return None if batch is None else batch.events


def _match(options: argparse.Namespace) -> int:
    from bittern.service import history_commands, tables  # noqa: PLC0415 (cold start)
    from bittern.service.progress import Progress  # noqa: PLC0415

    form = tables.format_of(options.events, options.format)
    output_form = tables.format_of(options.output, options.output_format, "--output-format")
    if options.output == "-" and output_form == "parquet":
        raise OptionError("Parquet needs a file: use --output FILE")
    history_commands.check_options(options)
    index = _with_sets(_open(options.snapshot), options)
    rejects = RejectReport()
    n_rows = n_matches = 0
    # Results may go to the same terminal, line by line: then those are the progress.
    shown = sys.stderr.isatty() and not options.quiet and options.output != "-"
    progress = Progress(sys.stderr) if shown else None
    with (
        history_commands.matching(index, options) as match,
        tables.replacing(options.output) as file,
        tables.MatchWriter(file, output_form, index.ids.type, flat=options.flat) as writer,
    ):
        for batch in tables.read_events(options.events, form, options.batch_size, rejects):
            matches = batch.spread(match(batch.events))
            for row, reason in matches.rejects:
                rejects(f"row {n_rows + row}", reason)
            writer.write(matches.to_arrow(flat=writer.flat), batch.n_rows)
            n_rows += batch.n_rows
            n_matches += int(matches.counts.sum())
            if progress is not None:
                progress("match", n_rows, 0)
    if progress is not None:
        progress.close()
    rejects.summarise()
    said = f"{count(n_rows, 'event')}, {count(n_matches, 'match')}"
    if not options.quiet:
        say(f"{said}, {rejects.number:,} rejected" if rejects.number else said)
    if n_rows and rejects.number == n_rows:
        say("all events were rejected: none could be read")
        return 1
    return 0


def _with_sets(index: bittern.Index, options: argparse.Namespace) -> bittern.Index:
    sets = _sets(options)
    return index if sets is None else index.with_sets(sets)


def _open(path: str) -> bittern.Index:
    """Open an index; unless it is large, check it for damage first. O(bytes) up to 256 MB."""
    try:
        with os.scandir(path) as files:
            small = sum(file.stat().st_size for file in files) < _VERIFIED_UP_TO
    except OSError:  # opening says what is wrong
        small = False
    return bittern.Index.open(path, verify=small)


def _explain(options: argparse.Namespace) -> int:
    from bittern.service import history_commands, tables  # noqa: PLC0415 (cold start)

    tables.standard_output()  # raises if it is closed: the reason would be lost
    history_commands.check_options(options)
    text = options.event
    if text == "-":
        try:
            text = tables.standard_input().read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BitternError(f"the event is not UTF-8: {error}") from error
    index = _with_sets(_open(options.snapshot), options)
    try:
        with history_commands.after_history(index, options) as known:
            metadata = _metadata(options.catalog, options.id) if options.catalog else None
            id_ = _as_id(options.id, index)
            explained = bittern.explain(known, text, id_, metadata=metadata)
            print(explained.coloured() if takes_colours(sys.stdout) else explained)
    except RecursionError as error:
        raise BitternError("the event is nested too deeply") from error
    return 0


def _metadata(location: str, id_: str) -> Any:
    """What a catalog has of a subscription."""
    with bittern.Catalog(location) as catalog:
        return catalog.get(id_).metadata


def _as_id(text: str, index: Any) -> str | int:
    """The id on the command line, as the kind of id that this index has."""
    import pyarrow as pa  # noqa: PLC0415 (cold start)

    if pa.types.is_integer(index.ids.type):
        try:
            return int(text)
        except ValueError as error:
            raise BitternError(
                f"{text!r} is not an id of this index: its ids are integers"
            ) from error
    return text


def _inspect(options: argparse.Namespace) -> int:
    from bittern.engine.snapshot import folder as snapshot  # noqa: PLC0415 (cold start)
    from bittern.history.documents import file as document_file  # noqa: PLC0415
    from bittern.literature.pb_tree.page_table import is_page_file  # noqa: PLC0415
    from bittern.service import history_commands, predicate_commands, tables  # noqa: PLC0415

    tables.standard_output()  # raises if it is closed: the report would be lost
    if document_file.holds_documents(options.snapshot):
        return history_commands.inspect(options)
    if is_page_file(options.snapshot):
        return predicate_commands.inspect(options)
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
    statistics = index.statistics()
    del statistics["arrays"]  # those that matching touches; all of them follow
    print_table({**about, **statistics})
    print("\nbytes per array")
    largest = sorted(sizes.items(), key=lambda item: -item[1])
    print_table(dict(largest[: None if options.all else _SHOWN_ARRAYS]), indent=2)
    left = [size for _, size in largest[_SHOWN_ARRAYS:]]
    if left and not options.all:
        print(f"  and {len(left)} more of {sum(left):,} bytes: --all lists them")
    if options.check:
        print("\nchecked: digests and structure are correct")
    return 0


def _backtest(options: argparse.Namespace) -> int:
    from bittern.service import backtest  # noqa: PLC0415 (cold start)

    return backtest.run(options, _sets(options))


def _plain(value: Any) -> Any:
    """Turn a NumPy scalar or array into what JSON has."""
    return value.tolist()


_COMMANDS = {
    "build": _build,
    "match": _match,
    "explain": _explain,
    "inspect": _inspect,
    "backtest": _backtest,
    "advise": _of("advise"),
    "spark-match": _spark_match,
    "catalog": _catalog,
    "import": _of("import_rules"),
    "run": _of("run"),
    "redeliver": _of("redelivery"),
    "serve": _of("serve_commands", "serve"),
    "token": _of("serve_commands", "token"),
    "warm-up": _of("warm_up"),
    "completion": _of("completion"),
}

if __name__ == "__main__":
    sys.exit(main())
