"""Sources in one classic session: what is read, what identifies it, what is refused at the door.

Kafka itself is in ``test_kafka.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import bittern
import bittern.spark
from bittern.errors import OptionError
from bittern.spark.streaming import sources
from steady import PATIENCE

pytestmark = pytest.mark.spark

WISHES = {"cheap": "price < 10", "red": "colour = 'red'", "none": "price IS NULL"}
GOOD = [
    b'{"price": 9, "colour": "red"}',
    b'{"price": 70}',
    b'{"price": 3, "colour": "tan", "order": {"id": 17}}',
]
BAD = {
    b"price: 9": "the top level is not an object",
    b'{"price": 9': "the text ends too early",
    b"[1, 2]": "the top level is not an object",
    b'{"price": "\xff"}': "a string is not valid UTF-8",
    b"\xfe\xff\x00{": "a string is not valid UTF-8",
}


@pytest.fixture(scope="module")
def index() -> bittern.Index:
    return bittern.Index.build(WISHES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


class Reading:
    """A source read to its end, again and again from one checkpoint, by ``foreachBatch``."""

    def __init__(self, tmp_path: Path) -> None:
        self._checkpoint = tmp_path / "checkpoint"

    def rows(self, frame: Any, *, fail: bool = False) -> list[list[dict[str, Any]]]:
        """The batches that are new; with ``fail`` the last is not committed, so it comes again."""
        batches: list[list[dict[str, Any]]] = []

        def take(rows: Any, _: int) -> None:
            batches.append([row.asDict(recursive=True) for row in rows.collect()])
            if fail:
                raise RuntimeError("after the batch")

        query = (
            frame.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination(PATIENCE)
        except Exception as error:
            if "after the batch" not in str(error):
                raise
        finally:
            query.stop()
        return batches


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    return Reading(tmp_path)


def matches(source: sources.Source, index: bittern.Index) -> Any:
    return bittern.spark.match(
        source.events, index, event_id=source.event_id, json=source.json, rejects=True
    )


def found(rows: list[dict[str, Any]]) -> list[tuple[list[str], str | None]]:
    return sorted(((sorted(row["subscriptions"]), row["rejected"]) for row in rows), key=str)


# ------------------------------------------------------------------ files


def test_json_lines_match_or_are_rejected_and_none_is_lost(
    spark: Any, folder: Path, reading: Reading, index: bittern.Index
) -> None:
    lines = [*GOOD, b"", b"   ", *BAD]
    (folder / "a.jsonl").write_bytes(b"\r\n".join(lines) + b"\n")
    source = sources.files(spark, folder)
    assert source.event_id == ("file_path", "line_hash")
    assert source.json == ("value",)
    (rows,) = reading.rows(matches(source, index))
    assert {row["file_path"] for row in rows} == {f"file:{folder}/a.jsonl"}
    assert len({row["line_hash"] for row in rows}) == len(GOOD) + len(BAD)
    answers = [(["cheap", "red"], None), ([], None), (["cheap"], None)]
    assert found(rows) == sorted([*answers, *(([], reason) for reason in BAD.values())], key=str)


def test_a_lines_hash_finds_it(spark: Any, folder: Path, reading: Reading) -> None:
    (folder / "a.jsonl").write_bytes(b"\n".join([*GOOD, b"\xff"]))
    (rows,) = reading.rows(sources.files(spark, folder).events)
    lines = spark.read.text(str(folder)).selectExpr("value", "xxhash64(value) AS hash").collect()
    by_hash = {row["hash"]: row["value"] for row in lines}
    assert [by_hash[row["line_hash"]] for row in rows[:3]] == [line.decode() for line in GOOD]
    assert rows[3]["line_hash"] in by_hash


def test_a_batch_that_is_read_again_is_the_same(spark: Any, folder: Path, reading: Reading) -> None:
    (folder / "a.jsonl").write_bytes(b"\n".join([*GOOD, GOOD[0]]))
    source = sources.files(spark, folder)
    (first,) = reading.rows(source.events, fail=True)
    (folder / "b.jsonl").write_bytes(GOOD[1])
    again, new = reading.rows(source.events)
    assert sorted(again, key=str) == sorted(first, key=str)
    assert len(first) == 4  # equal lines share a key, and are both there
    assert [row["value"] for row in new] == [GOOD[1].decode()]


def test_more_keys_and_few_files_at_once(spark: Any, folder: Path, reading: Reading) -> None:
    for number, line in enumerate(GOOD):
        (folder / f"{number}.jsonl").write_bytes(line)
    keys = {"order": "get_json_object(value, '$.order.id')"}
    source = sources.files(spark, folder, per_trigger=2, keys=keys)
    assert source.event_id == ("file_path", "line_hash", "order")
    batches = reading.rows(source.events)
    assert [len(batch) for batch in batches] == [2, 1]
    assert {row["order"] for batch in batches for row in batch} == {None, "17"}


def test_parquet_rows_are_known_by_their_place(
    spark: Any, folder: Path, reading: Reading, index: bittern.Index
) -> None:
    rows = [(9.0, "red"), (70.0, None), (3.0, "tan")]
    path = str(folder)
    spark.createDataFrame(rows, "price double, colour string").coalesce(1).write.mode(
        "overwrite"
    ).parquet(path)
    source = sources.files(spark, folder, format="parquet")
    assert source.event_id == ("file_path", "row_index")
    assert source.json == ()
    (batch,) = reading.rows(matches(source, index))
    found = {row["row_index"]: sorted(row["subscriptions"]) for row in batch}
    assert found == {0: ["cheap", "red"], 1: [], 2: ["cheap"]}


@pytest.mark.parametrize("schema", [None, "price double, colour string"])
def test_csv_with_a_header(
    spark: Any, folder: Path, reading: Reading, index: bittern.Index, schema: str | None
) -> None:
    (folder / "a.csv").write_text('price,colour\n9,red\n70,"a ""b"""\n3,\n', encoding="utf-8")
    source = sources.files(spark, folder, format="csv", schema=schema)
    assert source.event_id == ("file_path", "line_hash")
    (batch,) = reading.rows(matches(source, index))
    assert found(batch) == [(["cheap", "red"], None), (["cheap"], None), ([], None)]


def test_csv_values_that_do_not_fit_are_missing(
    spark: Any, folder: Path, reading: Reading, index: bittern.Index
) -> None:
    (folder / "a.csv").write_bytes(b"price,colour\ndear,red\n1,tan,more\n,\n1\n\xff,\xff\n")
    source = sources.files(spark, folder, format="csv", schema="price double, colour string")
    (batch,) = reading.rows(matches(source, index))
    cheap, none = (["cheap"], None), (["none"], None)
    assert found(batch) == [cheap, cheap, (["none", "red"], None), none, none]


def test_csv_keys_tell_where_a_value_is_missing(spark: Any, folder: Path, reading: Reading) -> None:
    (folder / "a.csv").write_text("a,b\n1,\n,1\n", encoding="utf-8")
    source = sources.files(spark, folder, format="csv", schema="a int, b int")
    (batch,) = reading.rows(source.events)
    assert len({row["line_hash"] for row in batch}) == 2


def test_names_with_dots_and_options(spark: Any, folder: Path, reading: Reading) -> None:
    (folder / "a.csv").write_text("a.b;`c\n1;2\n", encoding="utf-8")
    source = sources.files(spark, folder, format="csv", options={"sep": ";"})
    (batch,) = reading.rows(source.events)
    assert [batch[0]["a.b"], batch[0]["`c"]] == [1, 2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"format": "xml"}, "format must be 'json', 'csv' or 'parquet', not 'xml'"),
        ({"format": "csv"}, "no file to take the columns from"),
        ({"format": "parquet"}, "no file to take the columns from"),
        ({"schema": "a int"}, "a line of JSON names its attributes itself"),
        ({"format": "csv", "schema": "a nonsense"}, "cannot be read: .*NONSENSE"),
        ({"format": "csv", "schema": "File_Path string"}, "a column 'file_path' already"),
        ({"format": "parquet", "schema": "row_index int"}, "a column 'row_index' already"),
        ({"per_trigger": 0}, "per_trigger must be a whole number of at least 1, not 0"),
        ({"per_trigger": True}, "per_trigger must be a whole number of at least 1, not True"),
        ({"options": {"maxFilesPerTrigger": "2"}}, "give per_trigger instead"),
        ({"options": {"wholeText": "true"}}, "give format instead"),
        ({"keys": {"value": "1"}}, "a column 'value' already"),
        ({"keys": {"k": "rand()"}}, "does not give the same value each time"),
        ({"keys": {"k": "nope"}}, "keys: 'k' is 'nope': .*UNRESOLVED_COLUMN"),
        ({"keys": {"k": "1 +"}}, "keys: 'k' is '1 [+]': .*PARSE_SYNTAX_ERROR"),
    ],
)
def test_what_files_cannot_be(spark: Any, folder: Path, options: Any, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        sources.files(spark, folder, **options)


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_a_folder_that_is_not_there(spark: Any, tmp_path: Path, format_: str) -> None:
    with pytest.raises(OptionError, match=f"there is no folder {tmp_path}/nowhere: create it"):
        sources.files(spark, tmp_path / "nowhere", format=format_)


# ------------------------------------------------------------------ the generator

DRAWN = {
    "price": "10 + pmod(xxhash64(number, 'price'), 90)",
    "colour": "array('red', 'tan')[int(pmod(xxhash64(number, 'colour'), 2))]",
}


def test_generated_batches_are_the_same_each_time(
    spark: Any, reading: Reading, tmp_path: Path
) -> None:
    def source() -> Any:
        return sources.generator(spark, DRAWN, rows_per_batch=50, batches=2).events

    assert sources.generator(spark, DRAWN).event_id == ("number",)
    (first,) = reading.rows(source(), fail=True)
    batches = [first]
    for _ in range(2):  # the batch that was not committed and a new one, then a new one
        batches += reading.rows(source())
    by_number = [sorted(batch, key=lambda row: row["number"]) for batch in batches]
    assert by_number[0] == by_number[1]
    numbers = [[row["number"] for row in batch] for batch in by_number]
    assert numbers == [[*range(50)], [*range(50)], [*range(50, 100)], []]
    other = Reading(tmp_path / "other").rows(source())
    assert sorted(other[0], key=lambda row: row["number"]) == by_number[0]
    assert {row["colour"] for row in first} == {"red", "tan"}
    assert all(10 <= row["price"] < 100 for row in first)


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({"a": "rand()"}, {}, "does not give the same value each time"),
        ({"a": "uuid()"}, {}, "does not give the same value each time"),
        ({"a": "sum(number)"}, {}, "does not give the same value each time"),
        ({"a": "explode(array(1, 2))"}, {}, "does not give the same value each time"),
        ({"a": "*"}, {}, "columns: 'a' is '[*]'"),
        ({"a": "nope"}, {}, "columns: 'a' is 'nope': .*UNRESOLVED_COLUMN"),
        ({"Number": "1"}, {}, "a column 'Number' already"),
        (["price"], {}, "columns must be names, each with SQL"),
        ({}, {"rows_per_batch": 0}, "rows_per_batch must be a whole number of at least 1"),
        ({}, {"batches": 1.5}, "batches must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_generated(spark: Any, columns: Any, options: Any, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        sources.generator(spark, columns, **options)


# ------------------------------------------------------------------ Kafka, without its connector


def test_a_missing_connector_is_told(spark: Any) -> None:
    with pytest.raises(OptionError, match=r"connector is missing: .*make kafka-jars"):
        sources.kafka(spark, "127.0.0.1:9", "events")


@pytest.mark.parametrize(
    ("servers", "topics", "options", "said"),
    [
        ("", "events", {}, "servers must be a name or a list of names, not ''"),
        ("h:1", [], {}, r"topics must be a name or a list of names, not \[\]"),
        ("h:1", "a, ,b", {}, "topics must be a name or a list of names"),
        ("h:1", None, {}, "topics must be a name or a list of names, not None"),
        ("h:1", "a", {"starting": "yesterday"}, "starting must be 'earliest' or 'latest'"),
        ("h:1", "a", {"per_trigger": -1}, "per_trigger must be a whole number of at least 1"),
        ("h:1", "a", {"options": {"startingOffsets": "latest"}}, "give starting instead"),
        ("h:1", "a", {"options": {"Subscribe": "b"}}, "give topics instead"),
    ],
)
def test_what_kafka_cannot_be(
    spark: Any, servers: Any, topics: Any, options: Any, said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        sources.kafka(spark, servers, topics, **options)
