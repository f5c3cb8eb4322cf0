"""The file that ``bittern run`` runs: its content, checked before anything is started.

::

    pipeline.toml                                    PipelineFile
      [catalog]   url                                  .catalog.url
      [source]    kind = "kafka", topics, ...          .source    FilesSource | KafkaSource | ...
      [matching]  event_id, json, limit, store, shards .matching
      [history]   path, keep, order_by                 .history
      [after]     edge = {...}, throttle = {...}       .edge, .throttle
      [sink]      kind = "files", path, ...            .sink      FilesSink | KafkaSink | ...
      [rejects]   path                                 .rejects
      [run]       checkpoint, trigger, conf, ...       .run
      [metrics]   json_lines, prometheus_file, ...     .metrics

The keys of a source, a sink or a step after matching are the arguments of what the section
``makes``, a name in ``bittern.spark.streaming``. They are described there, and so are their
defaults. ``examples/pipeline.toml`` shows all of them. Everything that is wrong is reported at
once (``settings.py``).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bittern.errors import OptionError
from bittern.service.settings import (
    Settings,
    like,
    number,
    one_of,
    path,
    table,
    text,
    texts,
    whole,
)

AVAILABLE_NOW = "available-now"
_MANY = 1_000_000_000
_LARGEST = 1 << 20  # bytes; ample for a file written by hand
_TRIGGER = rf"{AVAILABLE_NOW}|[0-9]{{1,6}} (?:millisecond|second|minute|hour)s?"


@dataclass(frozen=True)
class CatalogSection:
    """Where the subscriptions are."""

    url: str = path("a path, sqlite:///path or postgresql://user@host/database")


@dataclass(frozen=True)
class FilesSource:
    """Files that appear in a folder."""

    makes: ClassVar = "sources.files"
    path: str = path("the folder that files appear in")
    format: str | None = one_of("format of the files", "json", "csv", "parquet", default=None)
    schema: str | None = text("columns and types as in CREATE TABLE", default=None)
    per_trigger: int | None = whole("the most files in a batch", 1, _MANY, default=None)
    keys: Mapping[str, str] = table("more columns that identify an event, as SQL")
    options: Mapping[str, str] = table("options of Spark's reader")


@dataclass(frozen=True)
class KafkaSource:
    """Topics of Kafka."""

    makes: ClassVar = "sources.kafka"
    servers: tuple[str, ...] = texts("where brokers listen, as host:port")
    topics: tuple[str, ...] = texts("names of topics")
    starting: str | None = one_of("where to begin", "earliest", "latest", default=None)
    per_trigger: int | None = whole("the most messages in a batch", 1, _MANY, default=None)
    keys: Mapping[str, str] = table("more columns that identify an event, as SQL")
    options: Mapping[str, str] = table("options of Spark's connector")


@dataclass(frozen=True)
class GeneratorSource:
    """Made-up events, the same on every run."""

    makes: ClassVar = "sources.generator"
    columns: Mapping[str, str] = table("attributes as SQL over number", needed=True)
    rows_per_batch: int | None = whole("events in a batch", 1, _MANY, default=None)
    batches: int | None = whole("how many batches there are in all", 1, _MANY, default=None)


@dataclass(frozen=True)
class MatchingSection:
    """How events are matched."""

    event_id: tuple[str, ...] = texts("columns that identify an event", default=())
    json: tuple[str, ...] = texts("columns whose text is JSON with attributes", default=())
    limit: int | None = whole("matches of highest weight to keep per event", 1, _MANY, default=None)
    payload: tuple[str, ...] = texts("more columns that travel with each match", default=())
    store: str | None = path("a folder that driver and executors share", default=None)
    shards: int | None = whole("parts to cut the catalog into", 1, _MANY, default=None)


@dataclass(frozen=True)
class BeforeAfterChanges:
    """Changes with the old and the new row in two columns."""

    makes: ClassVar = "BeforeAfter"
    before: str | None = text("the column of the old row", default=None)
    after: str | None = text("the column of the new row", default=None)
    kinds: tuple[str, ...] | None = texts("which kinds: enter, leave, stay", default=None)


@dataclass(frozen=True)
class DebeziumChanges:
    """Changes as Debezium's envelopes."""

    makes: ClassVar = "Debezium"
    envelope: str | None = text("the column of the envelope's JSON", default=None)
    kinds: tuple[str, ...] | None = texts("which kinds: enter, leave, stay", default=None)


@dataclass(frozen=True)
class FeedChanges:
    """Changes as rows of Delta's change feed."""

    makes: ClassVar = "ChangeFeed"
    key: tuple[str, ...] = texts("the columns that identify a row of the table")
    kinds: tuple[str, ...] | None = texts("which kinds: enter, leave, stay", default=None)


@dataclass(frozen=True)
class HistorySection:
    """Which events are remembered for EXISTS and FORALL; without the section, none are."""

    path: str | None = path("a folder; without it, one in the checkpoint", default=None)
    keep: int | None = whole("how many of the newest documents are used", 1, _MANY, default=None)
    order_by: tuple[str, ...] | None = texts("columns that tell the order", default=None)


@dataclass(frozen=True)
class EdgeStep:
    """Passes only matches that newly hold."""

    makes: ClassVar = "Edge"
    entity: tuple[str, ...] = texts("the keys that identify what an event is about")
    order: tuple[str, ...] = texts("keys by which events follow each other", default=())


@dataclass(frozen=True)
class ThrottleStep:
    """Limits the number of matches per window of time."""

    makes: ClassVar = "Throttle"
    most: int = whole("how many matches may pass", 1, _MANY)
    per: str = text("how long a window is, such as '1 hour'")
    by: str | None = one_of(
        "what the limit is counted by", "subscriber", "subscription", default=None
    )
    order: tuple[str, ...] | None = texts("keys by which matches are chosen", default=None)


@dataclass(frozen=True)
class FilesSink:
    """A table of Parquet files."""

    makes: ClassVar = "Files"
    path: str = path("a folder for the table of matches")


@dataclass(frozen=True)
class KafkaSink:
    """A topic of Kafka."""

    makes: ClassVar = "Kafka"
    servers: tuple[str, ...] = texts("brokers as host:port")
    topic: str = text("the name of a topic")
    options: Mapping[str, str] = table("options of Spark's connector")


@dataclass(frozen=True)
class FormatSink:
    """Any format that Spark writes."""

    makes: ClassVar = "Format"
    name: str = text("the name of a Spark format, such as delta")
    mode: str | None = one_of("of writing", "append", "overwrite", default=None)
    partition_by: tuple[str, ...] | None = texts("columns to partition by", default=None)
    options: Mapping[str, str] = table("options of the format", paths=("path",))


@dataclass(frozen=True)
class WebhookSink:
    """Requests to the URLs that subscriptions name."""

    makes: ClassVar = "Webhook"
    dead_letters: str = path("a folder for what could not be delivered")
    entry: str | None = text(
        "the entry of a subscription's metadata that holds its URL", default=None
    )
    attempts: int | None = whole("how often to try", 1, _MANY, default=None)
    first_wait: float | None = number("seconds before the second attempt", 0, _MANY, default=None)
    longest_wait: float | None = number("seconds between two attempts", 0, _MANY, default=None)
    timeout: float | None = number("seconds that an attempt may take", 0, _MANY, default=None)
    within: float | None = number("seconds that all of them may take", 0, _MANY, default=None)
    concurrency: int | None = whole("connections of each task", 1, _MANY, default=None)
    most_matches: int | None = whole("matches in one request", 1, _MANY, default=None)
    private: tuple[str, ...] = texts("private networks that are allowed", default=())
    headers: Mapping[str, str] = table("sent with every request")
    secret: str | None = text("what signs every request", default=None)


@dataclass(frozen=True)
class RejectsSection:
    """Where events that cannot be read go."""

    path: str = path("a folder for the table of rejects")


@dataclass(frozen=True)
class RunSection:
    """How the pipeline runs."""

    checkpoint: str = path("a folder that the pipeline keeps its progress in")
    name: str | None = text("what the pipeline is called in metrics", default=None)
    trigger: str = like(
        "how often a batch is started",
        f"'1 second', '500 milliseconds', ... or '{AVAILABLE_NOW}'",
        _TRIGGER,
        default="1 second",
    )
    master: str | None = text(
        "master of Spark, such as local[4] or spark://host:7077", default=None
    )
    conf: Mapping[str, str] = table("settings of Spark")


@dataclass(frozen=True)
class MetricsSection:
    """Where figures are written."""

    json_lines: str | None = path("a file that gets a line per batch", default=None)
    prometheus_file: str | None = path("a file for node_exporter, FILE.prom", default=None)
    prometheus_port: int | None = whole("a port of this machine", 1, 65_535, default=None)
    prometheus_address: str | None = text("an address of this machine, or 0.0.0.0", default=None)


CHANGES = {
    "columns": BeforeAfterChanges,
    "debezium": DebeziumChanges,
    "delta-feed": FeedChanges,
}
SOURCES = {"files": FilesSource, "kafka": KafkaSource, "generator": GeneratorSource}
SINKS = {"files": FilesSink, "kafka": KafkaSink, "format": FormatSink, "webhook": WebhookSink}
_SECTIONS = (
    "catalog", "source", "changes", "matching", "history", "after", "sink", "rejects", "run",
    "metrics",
)  # fmt: skip
_STEPS = {"edge": EdgeStep, "throttle": ThrottleStep}


@dataclass(frozen=True)
class PipelineFile:
    """The whole file; every value has its type, and nothing is missing."""

    catalog: CatalogSection
    source: FilesSource | KafkaSource | GeneratorSource
    matching: MatchingSection
    history: HistorySection | None
    edge: EdgeStep | None
    throttle: ThrottleStep | None
    sink: FilesSink | KafkaSink | FormatSink | WebhookSink
    rejects: RejectsSection | None
    run: RunSection
    metrics: MetricsSection
    name: str
    changes: BeforeAfterChanges | DebeziumChanges | FeedChanges | None = None


def read(file: str | os.PathLike[str], environment: Mapping[str, str]) -> PipelineFile:
    """Read a file; raises one OptionError for everything that is wrong with it."""
    place = Path(file)
    tables = _parsed(place)
    settings = Settings(place, environment)
    settings.known(tables, _SECTIONS)
    parts: dict[str, Any] = {}
    plain: dict[str, type] = {"catalog": CatalogSection, "run": RunSection}
    plain |= {"matching": MatchingSection, "metrics": MetricsSection}
    for name, kind in plain.items():
        parts[name] = settings.section(kind, tables.get(name, {}), name)
    choices: dict[str, Mapping[str, type]] = {"source": SOURCES, "sink": SINKS}
    for name, kinds in choices.items():
        if name in tables:
            parts[name] = settings.choice(kinds, tables[name], name)
        else:
            settings.wrong(f"[{name}] is missing: its kind must be one of {', '.join(kinds)}")
    if "changes" in tables:
        parts["changes"] = settings.choice(CHANGES, tables["changes"], "changes")
    optional: dict[str, type] = {"history": HistorySection, "rejects": RejectsSection}
    for name, kind in optional.items():
        parts[name] = settings.section(kind, tables[name], name) if name in tables else None
    parts |= _steps(settings, tables.get("after", {}))
    settings.finish()
    return PipelineFile(**parts, name=parts["run"].name or place.stem)


def _steps(settings: Settings, after: Any) -> dict[str, Any]:
    if not isinstance(after, dict):
        settings.wrong("after must be a table of keys: edge = {...}, throttle = {...}")
        return {}
    settings.known(after, _STEPS, "after")
    return {
        name: settings.section(kind, after[name], f"after.{name}") if name in after else None
        for name, kind in _STEPS.items()
    }


def _parsed(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except OSError as error:
        raise OptionError(f"{file}: {error.strerror or error}") from error
    if len(data) > _LARGEST:
        raise OptionError(f"{file} is larger than {_LARGEST:,} bytes: it is not a pipeline file")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise OptionError(f"{file} is not UTF-8: {error}") from error
    except ValueError as error:  # of TOML; of Python, for a number of thousands of digits
        raise OptionError(f"{file} is not TOML: {error}") from error
    except RecursionError as error:
        raise OptionError(f"{file} is not TOML: it is nested too deeply") from error
