"""``bittern spark-match``: files of events and subscriptions to files of matches, on Spark.

JSON lines are matched as text, without a guess at their schema; their fields can still be keys
(``--event-id``), as text. CSV gets its types from Spark, which reads it twice for that. The tasks
themselves write Parquet (``spark/sink/writing.py``). Spark's own writers write the other formats
to a temporary place beside OUT, which is then renamed: if anything fails, OUT is as it was. Where
OUT is a URI of Hadoop, such as ``s3a://...``, Spark's writers write all formats, in place.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from bittern import spark as bittern_spark
from bittern.engine.snapshot.manifest import MANIFEST
from bittern.errors import BadSubscription, BitternError, OptionError, SnapshotError
from bittern.files import new_temporary, only_writer, put_in_place, remove_temporary
from bittern.service.member_files import read_sets
from bittern.service.progress import Progress
from bittern.service.report import SHOWN_BAD, count, list_bad, print_table, say
from bittern.service.tables import format_of
from bittern.spark import session
from bittern.spark.snapshots.transport import local_path, read_id

_LINE = "event"  # the column that holds a line of JSON
_COUNTED = ("events", "candidates", "matches", "rejects", "snapshot")


def run(options: argparse.Namespace) -> int:
    """Read, match, write; report the counts."""
    form = format_of(options.events, options.format)
    output_form = format_of(options.output, options.output_format, "--output-format")
    _check_paths(options)
    settings = _settings(options.conf)
    _check_rejects(options, output_form)
    if not options.quiet:
        say("starting Spark")
    started = time.monotonic()
    progress = None if options.quiet else Progress(sys.stderr)
    try:
        # Spark ends first: its tasks may still write while an interrupted job is given up.
        with (
            _renamed(options.output, output_form) as folder,
            session.running(options.master, settings) as spark,
        ):
            table = _match(spark, options, form, (folder, output_form), progress)
    except Exception as failure:
        if session.is_sparks(failure):
            raise BitternError(f"Spark: {session.reason(failure)}") from failure
        raise
    if not options.quiet:
        print_table({**table, "seconds": round(time.monotonic() - started, 2)})
    if table["events"] and table["rejects"] == table["events"] and not table["matches"]:
        say("all events were rejected, so none matched")
        return 1
    return 0


def _check_rejects(options: argparse.Namespace, output_form: str) -> None:
    """Raise unless the tasks can write rejects beside the matches."""
    if options.rejects is None:
        return
    if output_form != "parquet":
        raise OptionError("--rejects needs Parquet output")
    for name in (options.output, options.rejects):
        if local_path(name) is None:
            raise OptionError(
                f"with --rejects, OUT and DIR must be paths of a file system, but {name} is a URI"
            )


def _check_paths(options: argparse.Namespace) -> None:
    names = options.events, options.subscriptions, options.history
    inputs = [local_path(name) for name in names if name is not None]
    for path in inputs:
        if path is not None and not any(c in path.name for c in "*?[{") and not path.exists():
            raise BitternError(f"{path}: there is no such file or folder")
    for name in filter(None, (options.output, options.rejects)):
        target = local_path(name)
        if target is None or not os.path.lexists(target):
            continue
        if not options.overwrite:
            raise _exists(name)
        if any(path and path.resolve().is_relative_to(target.resolve()) for path in inputs):
            raise OptionError(f"{name} is an input, or holds one: choose another name")


def _exists(name: str) -> OptionError:
    return OptionError(f"{name} exists: choose another name or give --overwrite")


def _settings(conf: list[str]) -> dict[str, str]:
    settings = {}
    for each in conf:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"--conf must be NAME=VALUE, not {each!r}")
        settings[name.strip()] = value.strip()
    return settings


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",")] if text else []


def _match(
    spark: Any,
    options: argparse.Namespace,
    form: str,
    output: tuple[str, str],
    progress: Progress | None,
) -> dict[str, Any]:
    keys, json = _names(options.event_id), _names(options.json)
    payload = "*" if options.payload == "*" else _names(options.payload)
    # Spark's writer looks at the end, and only then whether it can reach the place at all.
    is_there = local_path(options.output) is None and session.exists(spark, options.output)
    if is_there and not options.overwrite:
        raise _exists(options.output)
    with session.watched(spark, progress, "reading"):
        events = _read(spark, options.events, form, keys)
    if form == "jsonl" and options.order_by:
        raise OptionError("--order-by needs columns, and JSON lines have none: use Parquet or CSV")
    if form == "jsonl" and payload not in ("*", []):
        raise OptionError("JSON lines have no columns: --payload '*' keeps the whole line as text")
    if form == "jsonl":
        events, json = session.with_fields(events, events.columns[0], keys), events.columns
    with session.watched(spark, progress, "building"):
        built, bad = _subscriptions(spark, options, events, json)
    arguments: dict[str, Any] = {
        "event_id": keys or None,
        "payload": payload,
        "json": json,
        "explode": options.explode or output[1] == "csv",
        "limit": options.limit,
        "store": options.store,
        "history": options.history,
        "order_by": _names(options.order_by) or None,
        "sets": read_sets(options.sets) if options.sets else None,
    }
    with session.watched(spark, progress, "matching"):
        found = _write(events, built, options, output, arguments)
    return {**found, "bad subscriptions": bad}


def _write(
    events: Any,
    built: Any,
    options: argparse.Namespace,
    output: tuple[str, str],
    arguments: dict[str, Any],
) -> dict[str, Any]:
    """Write matches to a folder in the chosen format; returns the counts."""
    folder, form = output
    mode = "overwrite" if options.overwrite else "error"
    if form == "parquet" and local_path(folder) is not None:
        written = bittern_spark.write(
            events, built, folder, mode=mode, rejects=options.rejects, **arguments
        )
        return {name: getattr(written, name) for name in _COUNTED}
    observation = session.observation()
    frame = bittern_spark.match(events, built, observe=observation, **arguments)
    writer = frame.write.mode(mode)
    if form == "csv":
        writer.option("header", "true").option("escape", '"').csv(folder)
    elif form == "parquet":
        writer.parquet(folder)
    else:
        writer.json(folder)
    counted = observation.get
    return {name: counted[name] for name in _COUNTED}


@contextlib.contextmanager
def _renamed(name: str, form: str) -> Iterator[str]:
    """A temporary folder that is renamed at the end; the sink for Parquet does that itself."""
    target = local_path(name)
    if target is None or form == "parquet":
        yield name
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with only_writer(target):
        temporary, lock = new_temporary(target)
    try:
        yield str(temporary / "complete")
        with only_writer(target) as parent:
            put_in_place(temporary / "complete", target, parent)
    finally:
        remove_temporary(temporary, lock)


def _read(spark: Any, name: str, form: str, keys: list[str]) -> Any:
    """The events; JSON lines become one column of text, named unlike any key."""
    if form == "parquet":
        return spark.read.parquet(name)
    if form == "csv":
        return _csv(spark).option("inferSchema", "true").csv(name)  # by line: a file has many tasks
    # As bittern match reads them: a blank line is no event.
    lines = spark.read.text(name).filter("trim(value) != ''")
    return lines.withColumnRenamed("value", _LINE if _LINE not in keys else f"{_LINE} as text")


def _csv(spark: Any) -> Any:
    """A reader of CSV in its usual form: quotes inside quotes are doubled."""
    return spark.read.option("header", "true").option("escape", '"')


def _is_snapshot(name: str) -> bool:
    path = local_path(name)
    if path is not None:
        return (path / MANIFEST).exists()
    try:
        return bool(read_id(name))
    except SnapshotError:
        return False


def _subscriptions(
    spark: Any, options: argparse.Namespace, events: Any, json: list[str]
) -> tuple[Any, int]:
    """The subscriptions to match, and how many were skipped."""
    name = options.subscriptions
    if _is_snapshot(name):
        return name, 0
    form = format_of(name, options.subscriptions_format, "--subscriptions-format")
    if form == "jsonl":
        frame = spark.read.json(name)
    elif form == "csv":
        frame = _csv(spark).option("multiLine", "true").csv(name)
        if "weight" in frame.columns:
            frame = frame.withColumn("weight", frame["weight"].cast("double"))
    else:
        frame = spark.read.parquet(name)
    built = bittern_spark.build(
        frame,
        sample=events,
        json=json,
        store=options.store,
        shards=options.shards or "auto",
        on_error="raise" if options.on_error == "fail" else "skip",
    )
    if built.n_bad:
        say(f"{count(built.n_bad, 'subscription')} not valid and skipped")
        list_bad([BadSubscription(*row) for row in built.bad.limit(SHOWN_BAD).collect()])
    if built.n_bad and not built.subscriptions:
        raise BitternError("no subscription is valid; nothing was written")
    return built, built.n_bad
