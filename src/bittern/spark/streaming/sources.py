r"""Where events come from: files that are put into a folder, Kafka's topics, a generator.

A source is a streaming DataFrame, the columns that identify an event, and those that hold JSON::

    files, JSON lines    file_path           line_hash   value
                         file:/in/a.jsonl    -72057…     {"price": 9, "colour": "red"}
    files, Parquet       file_path           row_index   price  colour
                         file:/in/a.parquet  17          9      red
    kafka                topic   partition   offset      value
                         shop    0           17          {"price": 9, "colour": "red"}
    generator            number  price       colour
                         17      9           red

The key is where the event stands, so it is the same whenever a batch is read again, and a reject
tells where to look. Spark knows no line numbers: a line of text is known by its file and its hash,
``xxhash64(value)``, and lines of one file that are equal have one key, as they have one answer.

Keys are attributes like all columns: they hide what the JSON says under their names.

JSON stays text up to the engine, so a text that cannot be read becomes a reject instead of an
error or an event without attributes. Two things would look like something else there, and the
JVM settles them: no value at all (Kafka's tombstones) becomes the empty text, and bytes that are
no UTF-8 become ``{"\xff``, the shortest text that is rejected for that reason.

Cost: what Spark's own sources cost, and one pass over each text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from bittern.errors import OptionError, brief
from bittern.options import one_of, whole_number
from bittern.spark.attributes import quoted
from bittern.spark.session import is_case_sensitive
from bittern.spark.versions import condition, is_valid_utf8

FORMATS = ("json", "csv", "parquet")
STARTS = ("earliest", "latest")

_TEXT, _FILE, _LINE, _ROW, _NUMBER = "value", "file_path", "line_hash", "row_index", "number"
_PLACE = ("topic", "partition", "offset")
#: A string that is no UTF-8, in a JSON text.
_NOT_UTF8 = "CAST(X'7B22FF' AS STRING)"
#: What Spark says where it knows Kafka by name only.
NO_CONNECTOR = "KAFKA_DATA_SOURCE_NOT_ENABLED"
#: Options of Spark's that arguments of ours set.
_OWN_KAFKA = {
    "kafka.bootstrap.servers": "servers",
    "subscribe": "topics",
    "subscribepattern": "topics",
    "assign": "topics",
    "startingoffsets": "starting",
    "maxoffsetspertrigger": "per_trigger",
}
_OWN_FILES = {"path": "path", "maxfilespertrigger": "per_trigger", "wholetext": "format"}


class Source(NamedTuple):
    """Events, and what ``Pipeline`` and ``match`` must be told about them."""

    events: DataFrame
    event_id: tuple[str, ...]
    json: tuple[str, ...] = ()


def files(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    format: str = "json",  # noqa: A002  as Spark calls it
    schema: str | StructType | None = None,
    per_trigger: int | None = None,
    keys: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> Source:
    """Files that appear in a folder, each read once. Put them there by renaming them.

    Parameters
    ----------
    format
        "json": one object per line, whatever attributes it has; a line that is no JSON is a reject,
        a blank line is no event. "csv" with a header line, "parquet": a column for each attribute.
        In CSV a value that does not fit its column's type is missing.
    schema
        The columns of CSV or Parquet, as Spark's DDL or a StructType. Without it they are those of
        the files that are there already.
    per_trigger
        The most files in one micro-batch.
    keys
        More columns that identify an event in the output, as SQL over those that there are:
        ``{"order": "get_json_object(value, '$.order.id')"}``.
    options
        Of Spark's reader of that format, such as ``{"sep": ";"}``.
    """
    one_of("format", format, FORMATS)
    folder, given = os.fspath(path), checked_options(options, _OWN_FILES)
    if format == "csv":
        # CSV in its usual form: quotes inside quotes are doubled.
        given = {"header": "true", "escape": '"'} | given
    if format == "json" and schema is not None:
        raise OptionError(
            "schema is for csv and parquet only: a line of JSON names its attributes itself"
        )
    try:
        if format != "json" and schema is None:
            schema = _inferred(spark, folder, format, given)
        reader = spark.readStream.format("text" if format == "json" else format).options(**given)
        if schema is not None:
            reader = reader.schema(schema)
        events = _limited(reader, "maxFilesPerTrigger", per_trigger).load(folder)
    except AnalysisException as error:
        raise _unreadable(folder, error) from error
    names = list(events.columns)
    place = _ROW if format == "parquet" else _LINE
    _check_free(events, (_FILE, place))
    identity: Column = F.col(f"_metadata.{_ROW}")
    if format == "json":
        events = events.filter(F.trim(_TEXT) != "")
        identity = F.xxhash64(_TEXT)
    elif format == "csv":
        # A hash of the columns would pass over NULLs: (NULL, 1) and (1, NULL) were the same.
        row = F.struct(*map(F.col, map(quoted, names)))
        identity = F.xxhash64(F.to_json(row, {"ignoreNullFields": "false"}))
    events = events.select(
        F.col("_metadata.file_path").alias(_FILE), identity.alias(place), *map(quoted, names)
    )
    return _source(events, (_FILE, place), keys, json=format == "json")


def kafka(
    spark: SparkSession,
    servers: str | Sequence[str],
    topics: str | Sequence[str],
    *,
    starting: str = "earliest",
    per_trigger: int | None = None,
    keys: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> Source:
    """Messages of Kafka's topics, each a JSON object in UTF-8, through Spark's own connector.

    A message that is something else is a reject, tombstones among them.

    Parameters
    ----------
    servers
        Where brokers listen, as "host:port".
    starting
        Where a new checkpoint begins, "earliest" or "latest"; an old one goes on where it was.
    per_trigger
        The most messages in one micro-batch.
    keys
        More columns that identify an event in the output, as SQL over topic, partition, offset and
        value: ``{"order": "get_json_object(value, '$.order.id')"}``.
    options
        Of Spark's connector; with the prefix ``kafka.`` of Kafka's consumer, for example
        ``{"kafka.security.protocol": "SSL"}``.
    """
    one_of("starting", starting, STARTS)
    reader = (
        spark.readStream.format("kafka")
        .options(**checked_options(options, _OWN_KAFKA))
        .option("kafka.bootstrap.servers", listed(servers, "servers"))
        .option("subscribe", listed(topics, "topics"))
        .option("startingOffsets", starting)
    )
    reader = _limited(reader, "maxOffsetsPerTrigger", per_trigger)
    try:
        messages = reader.load()
    except AnalysisException as error:
        if condition(error) != NO_CONNECTOR:
            raise OptionError(f"Kafka cannot be read: {said(error)}") from error
        raise missing_connector(spark) from error
    return _source(messages.select(*_PLACE, _TEXT), _PLACE, keys, json=True)


def generator(
    spark: SparkSession,
    columns: Mapping[str, str],
    *,
    rows_per_batch: int = 1_000,
    batches: int | None = None,
) -> Source:
    """Events that are drawn from their number, for tests and demos: batch n always has the same.

    Every trigger has the next ``rows_per_batch`` numbers, from 0 on; after ``batches`` of them come
    empty ones. With ``available_now`` each start of the query has one new batch.

    Parameters
    ----------
    columns
        The attributes, as SQL over ``number`` that gives the same each time::

            {"price": "10 + pmod(xxhash64(number, 'price'), 90)",
             "colour": "array('red', 'tan')[int(pmod(xxhash64(number, 'colour'), 2))]"}
    """
    whole_number("rows_per_batch", rows_per_batch)
    # Numbers do not depend on how many cores there are, only on which task has which.
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows_per_batch)
    events = reader.load().select(F.col("value").alias(_NUMBER))
    if batches is not None:
        whole_number("batches", batches)
        events = events.filter(F.col(_NUMBER) < rows_per_batch * batches)
    return Source(_with(events, columns, "columns"), (_NUMBER,))


def _source(
    events: DataFrame, place: tuple[str, ...], keys: Mapping[str, str] | None, *, json: bool
) -> Source:
    events = _with(events, keys or {}, "keys")
    if json:
        events = events.withColumn(_TEXT, _document(F.col(_TEXT)))
    return Source(events, (*place, *(keys or {})), (_TEXT,) if json else ())


def _document(raw: Column) -> Column:
    """A JSON text as the engine is to judge it; ``raw`` are bytes, or text that may be any."""
    text = raw.cast("string")
    sound = F.when(is_valid_utf8(text), text).otherwise(F.expr(_NOT_UTF8))
    return F.when(raw.isNull(), F.lit("")).otherwise(sound)


def _with(events: DataFrame, columns: Mapping[str, str], what: str) -> DataFrame:
    """The events and more columns, each SQL over those that there were."""
    if not isinstance(columns, Mapping):
        raise OptionError(f"{what} must be names, each with SQL, not {brief(columns)}")
    _check_free(events, tuple(columns))
    for name, sql in columns.items():
        try:
            # A frame of its own, so that the error is that of this column.
            drawn = events.select(F.expr(sql).alias(name))
        except AnalysisException as error:
            raise OptionError(f"{what}: {name!r} is {sql!r}: {said(error)}") from error
        if not _is_repeatable(events, drawn):
            raise OptionError(
                f"{what}: {name!r} is {sql!r}, which does not give the same value each time: a "
                f"batch that is read again must have the same rows; hash a number or a key, as "
                f"xxhash64(...) does"
            )
    return events.select("*", *(F.expr(sql).alias(name) for name, sql in columns.items()))


def _is_repeatable(events: DataFrame, drawn: DataFrame) -> bool:
    """Is ``drawn`` one value for each event, row by row, and that the same each time?"""
    # PySpark cannot be asked: the plan is a projection of the events, and nothing is between.
    before, plan = (f._jdf.queryExecution().analyzed() for f in (events, drawn))  # noqa: SLF001
    is_projection = plan.nodeName() == "Project" and plan.child().equals(before)
    return is_projection and bool(plan.deterministic())


def _inferred(
    spark: SparkSession, folder: str, form: str, options: Mapping[str, str]
) -> StructType:
    """The columns of the files that are there."""
    reader = spark.read.format(form).options(**options)
    return reader.options(inferSchema="true").load(folder).schema


def _unreadable(folder: str, error: AnalysisException) -> OptionError:
    name = condition(error)
    if name == "PATH_NOT_FOUND":
        return OptionError(f"there is no folder {folder}: create it before the stream starts")
    if name == "UNABLE_TO_INFER_SCHEMA":
        return OptionError(
            f"{folder} has no file to take the columns from: put one there first, or name them in "
            f"schema, as in schema='price double, colour string'"
        )
    return OptionError(f"{folder} cannot be read: {said(error)}")


def missing_connector(spark: SparkSession) -> OptionError:
    """What to raise where Spark has no Kafka connector."""
    return OptionError(
        "Spark's Kafka connector is missing: start Spark with spark.jars.packages="
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}, or with the jars that "
        "make kafka-jars puts into .kafka/connector as spark.jars"
    )


def _limited(reader: DataStreamReader, option: str, per_trigger: int | None) -> DataStreamReader:
    if per_trigger is None:
        return reader
    whole_number("per_trigger", per_trigger)
    return reader.option(option, per_trigger)


def _check_free(events: DataFrame, names: tuple[str, ...]) -> None:
    """None of the columns has one of these names."""
    same = str if is_case_sensitive(events.sparkSession) else str.lower
    taken = {same(name) for name in events.columns}
    for name in names:
        if same(name) in taken:
            raise OptionError(
                f"there is a column {name!r} already, and the source needs this name: choose "
                f"another one"
            )


def checked_options(given: Mapping[str, str] | None, own: Mapping[str, str]) -> dict[str, str]:
    """Spark's options, if none is set by an argument of ours."""
    for name in given or {}:
        if name.lower() in own:
            raise OptionError(f"options has {name!r}: give {own[name.lower()]} instead")
    return dict(given or {})


def listed(given: str | Sequence[str], what: str) -> str:
    """One name or several as Kafka writes them, with commas."""
    names = given.split(",") if isinstance(given, str) else given
    if isinstance(names, Sequence) and all(isinstance(name, str) for name in names):
        stripped = [name.strip() for name in names]
        if stripped and all(stripped):
            return ",".join(stripped)
    raise OptionError(f"{what} must be a name or a list of names, not {brief(given)}")


def said(error: AnalysisException) -> str:
    """What Spark says first."""
    return str(error).strip().splitlines()[0]
