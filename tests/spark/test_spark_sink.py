"""Written matches: the same table as Spark's writer makes, and all of it or nothing."""

from __future__ import annotations

import contextlib
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from bittern import Index
from bittern.errors import OptionError
from bittern.spark import operator
from bittern.spark.operator import flat
from bittern.spark.sink import part_files
from bittern.spark.sink import writing as sink
from bittern.spark.sink.part_files import REPORT, Table, Task
from bittern.spark.sink.staging import Staging, local_path
from sink_parts import AS_THEY_ARE, BATCH, content, found, names, put, table_in

pytestmark = pytest.mark.smoke

# What a task writes


def run(tmp_path: Path, batches, *, explode=False, rejects=False):
    for folder in ("matches", "rejects"):
        (tmp_path / folder).mkdir(exist_ok=True)
    tables = [Table(str(tmp_path / name), "t", "zstd", {}) for name in ("matches", "rejects")]
    task = Task(AS_THEY_ARE, tables[0], tables[1] if rejects else None, explode=explode)
    report = pickle.loads(pickle.dumps(task)).run(iter(batches), 3, 17)
    assert report.schema == REPORT
    assert report.num_rows == 1
    return report.to_pylist()[0]


def test_a_task_writes_one_file_and_counts(tmp_path):
    report = run(tmp_path, [BATCH, BATCH], rejects=True)
    file = tmp_path / "matches" / report["file"]
    assert file.name == "part-00003-17-t.parquet"
    assert file.stat().st_size == report["bytes"]
    assert pq.read_table(file).to_pylist() == 2 * BATCH.select([0, 1]).to_pylist()
    rejects = pq.read_table(tmp_path / "rejects" / report["rejects_file"]).to_pylist()
    assert rejects == 2 * [{"id": 2, "rejected": "not JSON"}]
    counts = {name: report[name] for name in part_files.COUNTS}
    assert counts == {"rows": 6, "events": 6, "candidates": 24, "matches": 6, "rejects": 2}


def test_an_exploded_table_has_a_row_for_each_match(tmp_path):
    report = run(tmp_path, [BATCH], explode=True)
    rows = pq.read_table(tmp_path / "matches" / report["file"]).to_pylist()
    assert rows == [{"id": i, "subscription": s} for i, s in ((1, 7), (1, 9), (3, 7))]
    assert (report["rows"], report["events"], report["matches"]) == (3, 3, 3)


@pytest.mark.parametrize("explode", [False, True])
def test_a_partition_without_rows_makes_no_file(tmp_path, explode):
    report = run(tmp_path, [found()], explode=explode, rejects=True)
    assert report["file"] is None
    assert report["rejects_file"] is None
    assert names(tmp_path / "matches") == names(tmp_path / "rejects") == []


def test_events_without_a_match_make_no_exploded_file(tmp_path):
    report = run(tmp_path, [found((1, [], 5, None))], explode=True)
    assert report["file"] is None
    assert (report["events"], report["candidates"]) == (1, 5)


def test_batches_are_gathered_into_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(part_files, "_ROW_GROUP", 3 * BATCH.select([0, 1]).nbytes)
    report = run(tmp_path, [BATCH] * 10)
    file = pq.ParquetFile(tmp_path / "matches" / report["file"])
    groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert groups == [9, 9, 9, 3]
    assert file.read().to_pylist() == 10 * BATCH.select([0, 1]).to_pylist()


@pytest.mark.parametrize("explode", [False, True])
def test_ids_are_differences_and_keys_have_dictionaries(tmp_path, explode):
    inner = pa.struct([("a", pa.list_(pa.string())), ("b", pa.map_(pa.string(), pa.float64()))])
    keys = (pa.field("n", pa.int64()), pa.field("s", inner))
    event = {"a": ["x"], "b": [("y", 0.5)]}
    report = run(tmp_path, [found((1, event, [7, 9], 2, None), keys=keys)], explode=explode)
    group = pq.read_metadata(tmp_path / "matches" / report["file"]).row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    *others, ids = [(c.path_in_schema, c.has_dictionary_page) for c in columns]
    assert [path for path, _ in others] == [
        "n",
        "s.a.list.element",
        "s.b.key_value.key",
        "s.b.key_value.value",
    ]
    assert all(has_dictionary for _, has_dictionary in others)
    assert ids == ("subscription" if explode else "subscriptions.list.element", False)
    assert "DELTA_BINARY_PACKED" in columns[-1].encodings


@pytest.mark.parametrize(("rows", "size"), [(1, 1 << 30), (2, 1 << 30), (5, 40), (1 << 20, 1)])
def test_exploding_in_pieces_gives_the_same_rows(monkeypatch, rows, size):
    monkeypatch.setattr(operator, "_MOST_ROWS", rows)
    monkeypatch.setattr(operator, "_MOST_BYTES", size)
    key = pa.field("key", pa.struct([("name", pa.string())]))
    events = [({"name": "a" * n}, list(range(n)), 0, None) for n in (4, 0, 1, 7)]
    batch = found(*events, keys=(key,)).slice(1)
    pieces = list(flat(batch))
    together = [row for piece in pieces for row in piece.to_pylist()]
    assert together == [{"key": k, "subscription": s} for k, ids, *_ in events[1:] for s in ids]
    assert all(piece.num_rows <= rows for piece in pieces)


def test_keys_that_overflow_when_repeated_are_taken_in_smaller_pieces():
    class Keys:
        def take(self, rows):
            if len(rows) > 3:
                raise pa.ArrowInvalid("Take operation overflowed binary array capacity")
            return rows.to_pylist()

    taken = list(operator._take(Keys(), list(range(10))))
    assert [row for piece in taken for row in piece] == list(range(10))
    assert all(len(piece) <= 3 for piece in taken)


def test_a_failing_task_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(part_files, "_ROW_GROUP", 1)

    def failing():
        yield BATCH
        assert names(tmp_path / "matches"), "nothing was written before the failure"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(tmp_path, failing(), rejects=True)
    assert names(tmp_path / "matches") == names(tmp_path / "rejects") == []


def test_a_host_that_does_not_see_the_folder_says_so(tmp_path):
    table = Table(str(tmp_path / "elsewhere"), "t", "none", {})
    task = Task(AS_THEY_ARE, table, None, explode=False)
    with pytest.raises(OptionError, match=r"cannot see .*elsewhere.* executors share"):
        task.run(iter([BATCH]), 0, 1)
    assert names(tmp_path) == []


# What the driver commits


def test_only_accepted_attempts_count(tmp_path):
    with Staging(tmp_path / "out") as staging:
        task = Task(AS_THEY_ARE, table_in(staging), None, explode=False)
        reports = [task.run(iter([BATCH]), 0, attempt).to_pylist()[0] for attempt in (4, 5)]
        staging.accept(reports[1]["file"], reports[1]["bytes"])
        staging.commit()
        assert content(tmp_path / "out") == [1, 2, 3]
        task.run(iter([BATCH]), 0, 6)  # still running when all is done
        assert content(tmp_path / "out") == [1, 2, 3]
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["_SUCCESS", reports[1]["file"]]
    with pytest.raises(OptionError, match="cannot see"):
        task.run(iter([BATCH]), 0, 7)
    assert names(tmp_path) == ["out"]


def test_what_is_not_committed_is_removed(tmp_path):
    put(tmp_path / "out", [1])
    for mode, name in (("error", "new"), ("overwrite", "out")):
        with contextlib.suppress(KeyboardInterrupt), Staging(tmp_path / name, mode) as staging:
            Task(AS_THEY_ARE, table_in(staging), None, explode=False).run(iter([BATCH]), 0, 1)
            raise KeyboardInterrupt
        assert names(tmp_path) == ["out"]
        assert content(tmp_path / "out") == [1]


def test_a_file_that_the_driver_does_not_find_stops_the_commit(tmp_path):
    with Staging(tmp_path / "out") as staging:
        (staging.attempts / "short").write_bytes(b"123")
        for name in ("short", "missing"):
            with pytest.raises(OptionError, match="cannot find them"):
                staging.accept(name, 4)
    assert names(tmp_path) == []


def test_a_table_is_replaced_only_when_asked_for(tmp_path):
    path = tmp_path / "deep" / "er" / "out"
    put(path, [1])
    with pytest.raises(OptionError, match=r"exists.*overwrite"), Staging(path):
        pass
    assert content(path) == [1]
    put(path, [2, 3], "overwrite")
    assert content(path) == [2, 3]
    put(path.with_name("new"), [4], "overwrite")
    assert names(path.parent) == ["new", "out"]


def test_of_two_writers_the_second_fails(tmp_path):
    with Staging(tmp_path / "out") as staging:
        put(tmp_path / "out", [1])
        with pytest.raises(OptionError, match="exists"):
            staging.commit()
    assert content(tmp_path / "out") == [1]
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("foreign", ["file", "text", "folder"])
def test_what_is_no_table_is_not_overwritten(tmp_path, foreign):
    path = tmp_path / "out"
    if foreign == "file":
        path.write_text("mine")
    else:
        put(path, [1])
        (path / "notes.txt").write_text("mine") if foreign == "text" else (path / "d").mkdir()
    before = sorted(map(str, tmp_path.rglob("*")))
    with pytest.raises(OptionError, match="not overwritten"), Staging(path, "overwrite"):
        pass
    assert sorted(map(str, tmp_path.rglob("*"))) == before


@pytest.mark.parametrize(
    ("files", "is_table"),
    [
        ([], True),
        (["part-0.parquet", ".part-0.parquet.crc", "_SUCCESS", "._SUCCESS.crc"], True),
        (["_SUCCESS"], True),
        (["a.parquet", "_metadata", "_common_metadata"], True),
        ([".bashrc"], False),
        (["part-0.parquet", ".bashrc"], False),
        (["part-0.parquet", "_notes"], False),
        (["_metadata", ".a.crc"], False),
        (["a.parquet.txt"], False),
    ],
)
def test_overwriting_spares_all_that_spark_did_not_put_there(tmp_path, files, *, is_table):
    path = tmp_path / "home"
    path.mkdir()
    for file in files:
        (path / file).write_text("mine")
    if is_table:
        put(path, [1], "overwrite")
        assert content(path) == [1]
        return
    with pytest.raises(OptionError, match="not overwritten"):
        put(path, [1], "overwrite")
    assert names(path) == sorted(files)
    assert names(tmp_path) == ["home"]


def test_modes_and_places_that_make_no_sense(tmp_path):
    with pytest.raises(OptionError, match=r"not 'append'.*write\.mode\('append'\)"):
        Staging(tmp_path / "out", "append")
    with pytest.raises(OptionError, match="'error' or 'overwrite', not 'replace'"):
        Staging(tmp_path / "out", "replace")
    for uri in ("s3a://bucket/x", "hdfs:/x", "dbfs:/x"):
        with pytest.raises(OptionError, match=r"write\.parquet\('" + uri):
            Staging(uri)
    with pytest.raises(OptionError, match="names a host, server"):
        Staging("file://server/x")
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match="cannot write to"), Staging(tmp_path / "file" / "out"):
        pass


def test_paths_and_uris_are_the_same_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    place = tmp_path / "real" / "out"
    absolute = str(place)
    for path in (absolute, f"file:{absolute}", f"file://{absolute}", f"file://localhost{absolute}"):
        assert local_path(path) == place
    assert local_path("real/out") == local_path("link/out") == place
    assert local_path("file:///a%20b") == Path("/a%20b"), "Spark reads it from there"


# Killed drivers, of which there is more in faults/test_killed_drivers.py


def test_a_killed_driver_leaves_what_the_next_one_removes_and_no_living_one(tmp_path):
    left = tmp_path / ".out.0123456789abcdef.writing" / "attempts"
    left.mkdir(parents=True)
    (left / "part-00000-1.parquet").write_bytes(b"half")
    other = tmp_path / ".others.0123456789abcdef.writing"
    other.mkdir()
    with Staging(tmp_path / "out") as living:
        put(tmp_path / "out", [1])
        assert living.attempts.is_dir()
        assert not left.exists()
    assert names(tmp_path) == [other.name, "out"]


# On Spark

KEYS = """
    id, cast(id as tinyint) tiny, cast(id as smallint) small, cast(id as int) plain,
    cast(id as float) single, id / 3D double, id % 2 = 0 truth,
    cast(id / 7 as decimal(9, 3)) cents, cast(id / 7 as decimal(18, 6)) money,
    cast(id / 7 as decimal(38, 10)) wealth,
    date'1500-01-01' + cast(id as int) day,
    timestamp'1400-01-01 00:00:00.123456' + make_dt_interval(cast(id as int)) moment,
    timestamp_ntz'2020-03-29 02:30:00.5' + make_dt_interval(cast(id as int)) clock,
    make_dt_interval(cast(id as int)) lasts,
    cast(concat('b', id) as binary) bytes, if(id = 2, null, concat('é', id)) text,
    cast(id as varchar(5)) short, cast(null as string) nothing,
    array(id, null) list, if(id = 3, null, cast(array() as array<int>)) empty,
    named_struct('a', id, 'b', array(named_struct(
        'c', date'1970-01-01', 'd', timestamp'2020-07-01 00:00:00.5'))) nested,
    map(cast(id as string), named_struct('x', if(id = 1, null, id))) entries,
    parse_json(concat('{"a":', id, '}')) anything,
    named_struct('a', id) `odd name, {(of a)} struct;`
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    built = Index.build({i: f"id < {i}" for i in range(1, 9)})
    built.save(tmp_path_factory.mktemp("index") / "index")
    return built


def same_table(spark, one: Path, other: Path) -> None:
    first, second = spark.read.parquet(str(one)), spark.read.parquet(str(other))
    assert first.schema.json() == second.schema.json()
    rows = [sorted(map(repr, frame.collect())) for frame in (first, second)]
    assert rows[0] == rows[1]
    assert rows[0]


@pytest.mark.spark
@pytest.mark.parametrize(("explode", "zone"), [(False, "UTC"), (True, "America/New_York")])
def test_the_table_is_the_one_that_spark_writes(spark, tmp_path, index, explode, zone):
    from bittern.spark import match, write

    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        events = spark.sql(f"SELECT {KEYS} FROM range(0, 9, 1, 4)")
        match(events, index, explode=explode).write.parquet(str(tmp_path / "theirs"))
        written = write(events, index, tmp_path / "ours", explode=explode)
        same_table(spark, tmp_path / "theirs", tmp_path / "ours")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert (written.events, written.matches) == (9, 36)
    assert written.rows == (36 if explode else 9)
    assert written.files == len(list((tmp_path / "ours").glob("part-*.parquet")))
    assert written.bytes == sum(f.stat().st_size for f in (tmp_path / "ours").glob("part-*"))
    assert written.snapshot == index.id
    assert "36 matches of 9 events" in str(written)


#: NULL, though their fields are NOT NULL.
NULLS = """
    id, if(id = 1, null, named_struct('p', id, 'q', named_struct('r', id))) parent,
    if(id = 1, null, parse_json('{"b": 1}')) anything,
    array(if(id = 1, null, named_struct('p', id))) list,
    map('k', if(id = 1, null, named_struct('p', parse_json('1')))) entries
"""
#: Arrow has no collations, and one kind of day-time interval.
LOST = """
    id, interval '1' day days, cast(id as string) collate UTF8_LCASE folded,
    named_struct('p', interval '1:02' minute to second, 'q', array('x' collate UNICODE)) nested
"""


@pytest.mark.spark
@pytest.mark.parametrize("explode", [False, True])
@pytest.mark.parametrize("keys", [NULLS, LOST])
def test_null_parents_and_types_that_arrow_lacks_are_those_that_spark_writes(
    spark, tmp_path, index, keys, explode
):
    from bittern.spark import match, write

    events = spark.sql(f"SELECT {keys} FROM range(0, 3, 1, 2)")
    match(events, index, explode=explode).write.parquet(str(tmp_path / "theirs"))
    write(events, index, tmp_path / "ours", explode=explode)
    same_table(spark, tmp_path / "theirs", tmp_path / "ours")
    written = spark.read.parquet(str(tmp_path / "ours"))
    assert [field.dataType.simpleString() for field in written.schema][:-1] == [
        field.dataType.simpleString() for field in events.schema
    ]
    if keys is NULLS:
        assert {row.id for row in written.where("parent IS NULL").collect()} == {1}
        assert {row.id for row in written.where("anything IS NULL").collect()} == {1}


def test_what_is_nested_may_be_null_at_no_cost():
    mark = {b"variant": b"true"}
    variant = pa.struct(
        [
            pa.field("value", pa.binary(), nullable=False),
            pa.field("metadata", pa.binary(), nullable=False, metadata=mark),
        ]
    )
    fields = [
        pa.field("v", variant, nullable=False),
        pa.field("l", pa.list_(pa.field("element", variant, nullable=False))),
        pa.field("m", pa.map_(pa.string(), pa.field("value", variant, nullable=False))),
    ]
    value = {"value": b"1", "metadata": b"2"}
    rows = [{"v": value, "l": [value], "m": [("k", value)]}]
    batch = pa.RecordBatch.from_pylist(rows, pa.schema(fields))
    cast = batch.cast(part_files.nullable_inside(batch.schema))
    for before, after in zip(batch.columns, cast.columns, strict=True):
        places = [[b and b.address for b in column.buffers()] for column in (before, after)]
        assert places[0] == places[1], "values were copied"
    assert [field.nullable for field in cast.schema] == [False, True, True]
    found = [cast.schema.types[0], cast.schema.types[1].value_type, cast.schema.types[2].item_type]
    for type_ in found:
        assert [field.nullable for field in type_] == [True, True]
        assert type_.field("metadata").metadata == mark
    assert cast.schema.types[1].value_field.nullable
    assert not cast.schema.types[2].key_field.nullable


@pytest.mark.spark
def test_fields_that_spark_could_not_read_again_are_told(spark, tmp_path, index):
    from bittern.spark import write

    events = spark.sql("SELECT 1 AS id, array(named_struct('b', 1, 'B', 2)) AS s")
    with pytest.raises(OptionError, match=r"two fields in 's' are named 'b' and 'B'.* rename"):
        write(events, index, tmp_path / "out")
    assert names(tmp_path) == []


@pytest.mark.spark
def test_text_ids_rejects_and_gathered_matches(spark, tmp_path):
    from bittern.spark import match, write

    index = Index.build({"cheap": "price < 3", "néw": "isnew"})
    events = spark.range(0, 6, 1, 3).selectExpr(
        "id",
        "if(id = 4, '{', concat('{\"price\":', id, ', \"isnew\": true}')) text",
    )
    options = {"event_id": "id", "json": "text"}
    match(events, index, **options).write.parquet(str(tmp_path / "theirs"))
    rejects = match(events, index, payload="text", rejects=True, **options)
    rejects = rejects.where("rejected is not null")
    rejects.drop("subscriptions").write.parquet(str(tmp_path / "their rejects"))
    ours, our_rejects = tmp_path / "ours", tmp_path / "our rejects"
    written = write(events, index, ours, rejects=our_rejects, **options)
    same_table(spark, tmp_path / "theirs", ours)
    same_table(spark, tmp_path / "their rejects", our_rejects)
    assert (written.events, written.matches, written.rejects) == (6, 3 + 5, 1)
    assert len(list(our_rejects.glob("part-*"))) == 1
    # The same rows from a frame that was matched before, as that of an index in shards is.
    frame = match(events, index, rejects=True, **options).selectExpr(
        "id", "subscriptions", "0L as candidates", "rejected"
    )
    path = f"file://{tmp_path}/gathered"
    with sink._staged(path, None, "error") as (staging, _):
        again = sink.fill(frame, None, frame.schema, staging, None, explode=False)
    same_table(spark, ours, tmp_path / "gathered")
    assert (again["rows"], again["rejects"]) == (6, 1)
    assert staging.target == tmp_path / "gathered"


@pytest.mark.spark
@pytest.mark.parametrize("explode", [False, True])
def test_an_empty_result_is_a_table_too(spark, tmp_path, index, explode):
    from bittern.spark import match, write

    events = spark.sql(f"SELECT {KEYS} FROM range(100, 109, 1, 4) WHERE id < 0")
    match(events, index, explode=explode).write.parquet(str(tmp_path / "theirs"))
    written = write(events, index, tmp_path / "ours", explode=explode, rejects=tmp_path / "bad")
    theirs, ours = (spark.read.parquet(str(tmp_path / name)) for name in ("theirs", "ours"))
    assert ours.schema.json() == theirs.schema.json()
    assert ours.collect() == []
    assert spark.read.parquet(str(tmp_path / "bad")).columns == [*events.columns, "rejected"]
    assert (written.files, written.rows, written.events) == (1, 0, 0)


@pytest.mark.spark
def test_the_session_says_how_files_are_compressed(spark, tmp_path, index):
    from bittern.spark import write

    setting = "spark.sql.parquet.compression.codec"
    before = spark.conf.get(setting)
    try:
        for codec, expected in (("uncompressed", "UNCOMPRESSED"), ("zstd", "ZSTD")):
            spark.conf.set(setting, codec)
            write(spark.range(9), index, tmp_path / codec)
            file = next((tmp_path / codec).glob("part-*"))
            assert pq.read_metadata(file).row_group(0).column(0).compression == expected
        spark.conf.set(setting, "lzo")
        with pytest.raises(OptionError, match="is 'lzo', but write supports only brotli"):
            write(spark.range(9), index, tmp_path / "lzo")
    finally:
        spark.conf.set(setting, before)
    assert names(tmp_path) == ["uncompressed", "zstd"]


@pytest.mark.spark
def test_a_failed_job_changes_nothing(spark, tmp_path):
    from pyspark.errors import PythonException

    def failing(batches):
        """Fail in one partition, when the others had something to write."""
        for batch in batches:
            yield batch
            if 5 in batch.column(0).to_pylist():
                raise ZeroDivisionError("partition of 5")

    frame = spark.range(0, 6, 1, 3).selectExpr(
        "id", "array(id) subscriptions", "id candidates", "string(id) rejected"
    )
    put(tmp_path / "old", [1, 2])
    for name, mode in (("new", "error"), ("old", "overwrite")):
        with (
            pytest.raises(PythonException, match="partition of 5"),
            sink._staged(tmp_path / name, None, mode) as (staging, _),
        ):
            sink.fill(frame, failing, frame.schema, staging, None, explode=False)
        assert names(tmp_path) == ["old"]
        assert content(tmp_path / "old") == [1, 2]


@pytest.mark.spark
def test_what_is_wrong_is_said_before_any_work(spark, tmp_path):
    from bittern.spark import write

    put(tmp_path / "old", [1])
    for arguments, message in (
        ({"path": tmp_path / "old"}, "exists"),
        ({"path": "s3a://bucket/x"}, r"match\(...\)\.write\.parquet"),
        ({"path": tmp_path / "new", "rejects": tmp_path / "new"}, "two separate folders"),
        (
            {"path": tmp_path / "new", "rejects": tmp_path / "new" / "rejects"},
            "two separate folders",
        ),
        ({"path": tmp_path / "new", "mode": "append"}, "not 'append'"),
        ({"path": tmp_path / "new", "rejects": tmp_path / "old"}, "exists"),
    ):
        with pytest.raises(OptionError, match=message):
            write(spark.range(3), "no such index", **arguments)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(OptionError, match="batch of events"):
        write(stream, "no such index", tmp_path / "new")
    assert names(tmp_path) == ["old"]


@pytest.mark.spark
def test_an_index_in_shards_writes_the_same_tables(spark, tmp_path):
    from bittern.spark import build, match, write

    rows = [(f"s{i}", f"id < {i} AND color = '{c}'") for i in range(12) for c in ("red", "blue")]
    rows = [(f"{name}{at}", text) for at, (name, text) in enumerate(rows)]
    subscriptions = spark.createDataFrame(rows, "id string, expression string")
    events = spark.range(0, 8, 1, 2).selectExpr("id", "if(id % 2 = 0, 'red', 'blue') color")
    built = build(subscriptions, sample=events, shards=2)
    index = Index.build(dict(rows))
    for explode in (False, True):
        path = tmp_path / f"ours {explode}"
        written = write(events, built, path, event_id="id", explode=explode)
        ours = spark.read.parquet(str(path))
        whole = match(events, index, event_id="id", explode=explode)
        assert ours.dtypes == whole.dtypes
        own, expected = (
            sorted((key, ids if explode else sorted(ids)) for key, ids in frame.collect())
            for frame in (ours, whole)
        )
        assert own == expected
        n_matches = len(expected) if explode else sum(len(ids) for _, ids in expected)
        assert n_matches > 0
        assert (written.events, written.matches, written.rows) == (8, n_matches, len(expected))
