"""``bittern spark-match``: files of events and subscriptions to files of matches, on Spark.

JSON lines are matched as text, without a guess at their schema; their fields are still there to be
keys (``--event-id``). CSV gets its types from Spark, which reads it twice for that. Parquet is
written by the tasks themselves (``spark/sink.py``), the rest by Spark's own writers.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from bittern import spark as bittern_spark
from bittern.engine.manifest import MANIFEST
from bittern.errors import BadSubscription, BitternError, OptionError
from bittern.service.progress import Progress
from bittern.service.report import SHOWN_BAD, count, list_bad, print_table, say
from bittern.service.tables import format_of
from bittern.spark import session

_LINE = "event"  # the column that holds a line of JSON


def run(options: argparse.Namespace) -> int:
    """Read, match, write; say what was counted."""
    form = format_of(options.events, options.format)
    output_form = format_of(options.output, options.output_format, "--output-format")
    _check_paths(options)
    settings = _settings(options.conf)
    if options.rejects and output_form != "parquet":
        raise OptionError("--rejects needs Parquet output")
    if not options.quiet:
        say("starting Spark")
    started = time.monotonic()
    spark = session.start(options.master, settings)
    progress = None if options.quiet else Progress(sys.stderr)
    try:
        with session.watched(spark, progress):
            table = _match(spark, options, form, output_form)
    except Exception as failure:
        if type(failure).__module__.startswith("pyspark"):
            raise BitternError(f"Spark: {str(failure).strip().splitlines()[0]}") from failure
        raise
    finally:
        if progress is not None:
            progress.close()
        spark.stop()
    if not options.quiet:
        print_table({**table, "seconds": round(time.monotonic() - started, 2)})
    return 0


def _check_paths(options: argparse.Namespace) -> None:
    for name in (options.events, options.subscriptions):
        if "://" not in name and not any(c in name for c in "*?[") and not Path(name).exists():
            raise BitternError(f"{name}: there is no such file or folder")
    for name in filter(None, (options.output, options.rejects)):
        if not options.overwrite and "://" not in name and os.path.lexists(name):
            raise OptionError(f"{name} exists: choose another name or say --overwrite")


def _settings(conf: list[str]) -> dict[str, str]:
    settings = {}
    for each in conf:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"--conf is NAME=VALUE, not {each!r}")
        settings[name.strip()] = value.strip()
    return settings


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",")] if text else []


def _match(spark: Any, options: argparse.Namespace, form: str, output_form: str) -> dict[str, Any]:
    events = _read(spark, options.events, form)
    keys, json = _names(options.event_id), _names(options.json)
    if form == "jsonl":
        fields = [f"get_json_object({_LINE}, '$.{key}') AS `{key}`" for key in keys]
        events = events.selectExpr(*fields, _LINE)
        json = [_LINE]
    built, bad = _subscriptions(spark, options, events, json)
    arguments: dict[str, Any] = {
        "event_id": keys or None,
        "json": json,
        "explode": options.explode or output_form == "csv",
        "limit": options.limit,
        "store": options.store,
    }
    mode = "overwrite" if options.overwrite else "error"
    if output_form == "parquet":
        written = bittern_spark.write(
            events, built, options.output, mode=mode, rejects=options.rejects, **arguments
        )
        found = {
            name: getattr(written, name) for name in ("events", "candidates", "matches", "rejects")
        }
        return {**found, "snapshot": written.snapshot, "bad subscriptions": bad}
    observation = session.observation()
    frame = bittern_spark.match(events, built, observe=observation, **arguments)
    writer = frame.write.mode("overwrite" if options.overwrite else "errorifexists")
    if output_form == "csv":
        writer.option("header", "true").csv(options.output)
    else:
        writer.json(options.output)
    return {**observation.get, "bad subscriptions": bad}


def _read(spark: Any, name: str, form: str) -> Any:
    if form == "parquet":
        return spark.read.parquet(name)
    if form == "csv":
        return spark.read.option("header", "true").option("inferSchema", "true").csv(name)
    return spark.read.text(name).withColumnRenamed("value", _LINE)


def _subscriptions(
    spark: Any, options: argparse.Namespace, events: Any, json: list[str]
) -> tuple[Any, int]:
    """What to match, and how many subscriptions were skipped."""
    name = options.subscriptions
    if (Path(name) / MANIFEST).exists():
        return name, 0
    form = format_of(name, options.subscriptions_format, "--subscriptions-format")
    if form == "jsonl":
        frame = spark.read.json(name)
    elif form == "csv":  # as bittern build reads it: quotes inside quotes are doubled
        reader = (
            spark.read.option("header", "true").option("escape", '"').option("multiLine", "true")
        )
        frame = reader.csv(name)
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
    return built, built.n_bad
