"""The durable catalog: versions, what they hold, what lies between them; in both databases."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import bittern
from bittern.catalog.rows import Subscription
from bittern.errors import (
    BadSubscription,
    BitternError,
    CatalogError,
    OptionError,
    SubscriptionError,
    UnknownSubscriptionError,
)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "shop.db")
    return request.getfixturevalue("postgres").new_url()


@pytest.fixture
def catalog(url):
    with bittern.Catalog(url) as catalog:
        yield catalog


def ids(table):
    return table.column("id").to_pylist()


def texts(table):
    return dict(zip(ids(table), table.column("expression").to_pylist(), strict=True))


def test_each_change_is_a_version_that_stays(catalog):
    assert catalog.version() == 0
    assert ids(catalog.at()) == ids(catalog.at(0)) == []
    assert catalog.add("a", "price < 10") == 1
    assert catalog.add("b", "price < 20", enabled=False) == 2
    assert catalog.set_enabled("b", True) == 3
    assert catalog.add("a", "price < 15", replace=True) == 4
    assert catalog.remove("b") == 5
    assert catalog.version() == 5
    assert [texts(catalog.at(v)) for v in range(6)] == [
        {},
        {"a": "price < 10"},
        {"a": "price < 10"},
        {"a": "price < 10", "b": "price < 20"},
        {"a": "price < 15", "b": "price < 20"},
        {"a": "price < 15"},
    ]
    assert texts(catalog.at()) == texts(catalog.at(5))
    assert ids(catalog.at(2, all=True)) == ["a", "b"]
    assert [catalog.count(v) for v in range(6)] == [0, 1, 1, 2, 2, 1]
    assert catalog.count(2, all=True) == 2


def test_columns_and_their_values(catalog):
    before = datetime.now(UTC)
    catalog.add(
        7, "price < 10", subscriber=12, weight=3, metadata={"to": "x", "n": [1, None]}, enabled=True
    )
    catalog.add("8", "price < 11")
    table = catalog.at()
    assert table.schema == pa.schema(
        [
            ("id", pa.string()),
            ("expression", pa.string()),
            ("weight", pa.float64()),
            ("subscriber", pa.string()),
            ("metadata", pa.string()),
            ("enabled", pa.bool_()),
            ("created", pa.timestamp("us", "UTC")),
            ("changed", pa.timestamp("us", "UTC")),
            ("version", pa.int64()),
        ]
    )
    seven, eight = table.to_pylist()
    assert json.loads(seven["metadata"]) == {"to": "x", "n": [1, None]}
    assert (seven["id"], seven["weight"], seven["subscriber"]) == ("7", 3.0, "12")
    assert (eight["weight"], eight["subscriber"], eight["metadata"]) == (None, None, None)
    assert before <= seven["created"] <= eight["created"] <= datetime.now(UTC)
    assert seven["created"] == seven["changed"]
    assert [seven["version"], eight["version"]] == [1, 2]


def test_one_subscription_and_its_past(catalog):
    catalog.add("a", "x = 1", metadata={"k": 1}, weight=1.5)
    catalog.set_enabled("a", False)
    catalog.remove("a")
    catalog.add("a", "x = 2")
    one = catalog.get("a", 2)
    assert (one.expression, one.metadata, one.weight) == ("x = 1", {"k": 1}, 1.5)
    assert (one.enabled, one.version, one.until) == (False, 2, 3)
    past = catalog.history("a")
    assert [(each.version, each.until, each.enabled) for each in past] == [
        (1, 2, True),
        (2, 3, False),
        (4, None, True),
    ]
    assert past[0].created == past[1].created < past[1].changed < past[2].created
    assert catalog.get("a") == past[2]
    assert catalog.history("b") == []
    with pytest.raises(UnknownSubscriptionError, match="version 3 has the id 'a'"):
        catalog.get("a", 3)


def test_versions_tell_when_and_how_many(catalog):
    catalog.apply([{"id": i, "expression": "x = 1"} for i in range(3)])
    catalog.apply([{"id": 0, "expression": "x = 2"}, {"id": 9, "expression": "x = 2"}], [1, 2])
    catalog.remove(9)
    told = catalog.versions()
    assert [(v.version, v.added, v.changed, v.removed) for v in told] == [
        (3, 0, 0, 1),
        (2, 1, 1, 2),
        (1, 3, 0, 0),
    ]
    assert told[0].time >= told[1].time >= told[2].time
    assert [v.version for v in catalog.versions(limit=1)] == [3]


def test_changes_are_the_net_effect(catalog):
    catalog.apply([{"id": c, "expression": "x = 1"} for c in "abcde"])  # 1
    catalog.add("a", "x = 2", replace=True)  # 2
    catalog.add("a", "x = 3", replace=True)  # 3
    catalog.remove("b")  # 4
    catalog.set_enabled("c", False)  # 5
    catalog.add("f", "x = 6")  # 6
    catalog.remove("f")  # 7
    catalog.remove("d")  # 8
    catalog.add("d", "x = 9")  # 9
    changes = catalog.changes(1)
    assert changes.version == 9
    assert texts(changes.put) == {"a": "x = 3", "d": "x = 9"}
    assert changes.removed == ["b", "c"]
    assert changes.put.schema == catalog.at().schema
    assert texts(catalog.changes(5, 6).put) == {"f": "x = 6"}
    assert catalog.changes(6, 7).removed == ["f"]
    assert catalog.changes(5, 7).removed == []
    assert len(catalog.changes(5, 7).put) == 0
    assert catalog.changes(9).removed == []
    assert ids(catalog.changes(0).put) == ids(catalog.at())
    assert catalog.changes(0).removed == []
    catalog.remove("c")  # it was disabled: nobody saw it, nobody misses it
    assert catalog.changes(9).removed == []


def test_what_changes_nothing_is_no_version(catalog):
    row = {"id": "a", "expression": "x = 1", "metadata": {"b": 1, "a": 2}, "weight": 1}
    assert catalog.apply([row]) == 1
    assert catalog.apply([row | {"metadata": {"a": 2, "b": 1}, "weight": 1.0}]) == 1
    assert catalog.add("a", "x = 1", metadata='{"a": 2, "b": 1}', weight=1, replace=True) == 1
    assert catalog.set_enabled("a", True) == 1
    assert catalog.apply() == catalog.apply(removes=["zz"]) == 1
    assert catalog.load([row], mode="replace") == (1, 0, 0, 0, 1, [])
    assert catalog.version() == 1
    assert len(catalog.versions()) == 1


def test_apply_is_all_or_nothing(catalog):
    catalog.apply([Subscription("a", "x = 1", subscriber="me"), {"id": "b", "expression": "x = 2"}])
    with pytest.raises(SubscriptionError) as wrong:
        catalog.apply(
            [
                {"id": "c", "expression": "x = 3"},
                {"id": "d", "expression": "x = ("},
                {"id": "e", "expression": "x = 1", "wieght": 1},
                {"id": "c", "expression": "x = 4"},
                {"id": "a", "expression": "x = 4"},
                "f",
            ],
            ["a"],
        )
    assert [(bad.id, bad.position) for bad in wrong.value.bad] == [
        ("d", 5),
        ("e", 0),
        ("c", 0),
        ("a", 0),
        ("row 5", 0),
    ]
    assert "'wieght'" in wrong.value.bad[1].message
    assert catalog.version() == 1
    assert catalog.apply([catalog.get("a")]) == 1  # as it is


def test_ids_that_are_taken_or_unknown(catalog):
    catalog.add("1", "x = 1")
    with pytest.raises(SubscriptionError) as taken:
        catalog.add(1, "x = 2")
    assert taken.value.bad == [
        BadSubscription("1", 0, "this id is taken: choose another, or use replace=True")
    ]
    for call in (catalog.remove, lambda id_: catalog.set_enabled(id_, True), catalog.get):
        with pytest.raises(UnknownSubscriptionError, match="'2'"):
            call(2)
    assert catalog.version() == 1
    assert catalog.remove(np.int64(1)) == 2


@pytest.mark.parametrize("version", [-1, 3, 2**70, True, 1.0, "1"])
def test_versions_that_are_not_there(catalog, version):
    catalog.add("a", "x = 1")
    catalog.add("b", "x = 1")
    for call in (
        catalog.at,
        catalog.count,
        catalog.changes,
        catalog.forget,
        lambda v: catalog.changes(0, v),
        lambda v: catalog.get("a", v),
        lambda v: catalog.details(["a"], v),
    ):
        with pytest.raises(OptionError, match="version"):
            call(version)
    with pytest.raises(OptionError, match="changes go forward"):
        catalog.changes(2, 1)


def test_forgetting(catalog):
    for expression in ("x = 1", "x = 2", "x = 3"):
        catalog.add("a", expression, replace=True)
    catalog.add("b", "x = 1")
    catalog.remove("b")  # 5
    kept = {v: catalog.at(v) for v in (3, 4, 5)}
    assert catalog.forget(3) == 2
    assert {v: catalog.at(v) for v in (3, 4, 5)} == kept
    assert catalog.changes(3).removed == []
    assert [v.version for v in catalog.versions()] == [5, 4, 3]
    for call in (catalog.at, catalog.changes):
        with pytest.raises(OptionError, match=r"version 2 is forgotten: .* 3"):
            call(2)
    assert catalog.forget(5) == 1
    assert catalog.history("b") == []
    assert catalog.add("b", "x = 2") == 6


def test_details_for_sinks(catalog):
    catalog.apply(
        [{"id": i, "expression": "x = 1", "subscriber": f"u{i}", "weight": i} for i in range(2_500)]
    )
    catalog.apply(removes=[3])
    wanted = [9, "2400", 3, "nobody", 9, *range(2_499, -1, -1)]
    table = catalog.details(wanted, 1)
    assert table.column_names == ["id", "subscriber", "weight", "metadata"]
    assert ids(table) == list(dict.fromkeys(str(i) for i in wanted if i != "nobody"))
    assert table.column("subscriber").to_pylist() == [f"u{i}" for i in ids(table)]
    assert "3" not in ids(catalog.details(wanted))
    assert catalog.details([], 1).num_rows == 0


# Loading


def frame_of_spark(rows):
    class Row(tuple):
        __slots__ = ()

        def asDict(self, *, recursive):  # noqa: N802
            assert recursive
            return {"k": self[0]}

    class Frame:
        columns = ("other", "id", "expression", "metadata")

        def select(self, *columns):
            assert columns == ("`id`", "`expression`", "`metadata`")
            return self

        def toLocalIterator(self):  # noqa: N802
            return iter([(each["id"], each["expression"], Row([1])) for each in rows])

    return Frame()


ROWS = [{"id": f"s{i}", "expression": f"x = {i}", "other": i} for i in range(5)]

ROWS_BY_ID = {row["id"]: row["expression"] for row in ROWS}


def sources(tmp_path):
    import pandas as pd

    table = pa.Table.from_pylist(ROWS)
    pa.parquet.write_table(table, tmp_path / "s.parquet")
    (tmp_path / "s.csv").write_text(
        "other,id,expression\n" + "".join(f"1,s{i},x = {i}\n" for i in range(5))
    )
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    return {
        "mapping": ROWS_BY_ID,
        "mappings": ROWS,
        "generator": (row for row in ROWS),
        "subscriptions": [Subscription(row["id"], row["expression"]) for row in ROWS],
        "table": table,
        "batch": table.to_batches()[0],
        "batches": iter(table.to_batches(max_chunksize=2)),
        "reader": table.to_reader(),
        "dictionary": table.set_column(1, "expression", table["expression"].dictionary_encode()),
        "pandas": pd.DataFrame(ROWS),
        "spark": frame_of_spark(ROWS),
        "parquet": tmp_path / "s.parquet",
        "csv": tmp_path / "s.csv",
        "jsonl": str(tmp_path / "s.jsonl"),
    }


def test_everything_that_can_be_loaded(catalog, tmp_path):
    for name, source in sources(tmp_path).items():
        catalog.apply(removes=ids(catalog.at()))
        seen = []
        loaded = catalog.load(source, progress=lambda *told: seen.append(told))  # noqa: B023
        assert loaded == (catalog.version(), 5, 0, 0, 0, []), name
        assert texts(catalog.at()) == {f"s{i}": f"x = {i}" for i in range(5)}, name
        assert ("read", 5, 5) in seen, name
        assert seen[-1] == ("merge", 3, 3), name


@pytest.mark.spark
def test_a_dataframe_of_spark(spark, tmp_path):
    frame = spark.createDataFrame(
        [(1, "x = 1", 2.5, {"k": "v"}, True), (2, "x = (", None, None, False)],
        "id long, expression string, weight double, metadata map<string, string>, enabled boolean",
    )
    with bittern.Catalog(tmp_path / "c.db") as catalog:
        loaded = catalog.load(frame, on_error="skip")
        assert (loaded.added, [bad.id for bad in loaded.bad]) == (1, ["2"])
        one = catalog.get(1)
        assert (one.weight, one.metadata, one.enabled) == (2.5, {"k": "v"}, True)
        nested = frame.selectExpr("id", "expression", "struct(weight, id) AS metadata")
        catalog.load(nested, on_error="skip")
        assert catalog.get(1).metadata == {"weight": 2.5, "id": 1}


@pytest.mark.parametrize("limit", [-1, True, "1", 1.5, 2**70])
def test_limits_that_are_none(catalog, limit):
    with pytest.raises(OptionError, match="limit"):
        catalog.at(limit=limit)
    with pytest.raises(OptionError, match="limit"):
        catalog.versions(limit)


def test_metadata_in_the_forms_that_sources_have(catalog):
    rows = [{"id": "a", "expression": "x = 1", "metadata": {"k": 1}}]
    catalog.load(pa.Table.from_pylist(rows))  # a struct
    catalog.load(frame_of_spark([{"id": "b", "expression": "x = 1"}]))
    pairs = pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))
    catalog.load(pa.table({"id": ["c"], "expression": ["x = 1"], "metadata": pairs}))
    assert {catalog.get(id_).metadata["k"] for id_ in "abc"} == {1}


def test_loading_tells_what_it_did(catalog):
    catalog.apply([{"id": c, "expression": "x = 1", "weight": 1} for c in "abcd"], removes=())
    created = catalog.get("a").created
    source = [
        {"id": "a", "expression": "x = 1", "weight": None},  # that is a change
        {"id": "b", "expression": "x = 1", "weight": 1},
        {"id": "e", "expression": "x = 1"},
    ]
    assert catalog.load(source) == (2, 1, 1, 0, 1, [])
    assert ids(catalog.at()) == list("abcde")
    assert catalog.get("a").created == created
    assert catalog.load(source, mode="replace") == (3, 0, 0, 2, 3, [])
    assert ids(catalog.at()) == list("abe")
    assert catalog.get("b").version == 1
    assert catalog.load([]) == (3, 0, 0, 0, 0, [])


FULL = {"subscriber": "me", "weight": 2.5, "metadata": {"k": [1]}, "enabled": False}


def said(catalog, id_):
    one = catalog.get(id_)
    return {name: getattr(one, name) for name in FULL}


@pytest.mark.parametrize("mode", ["upsert", "replace"])
def test_what_a_source_does_not_say_is_left_alone(catalog, tmp_path, mode):
    """An id and an expression change the expression; a new one gets what is usual."""
    old = [{"id": f"s{i}", "expression": "x = 0"} | FULL for i in range(4)]
    for name, source in sources(tmp_path).items():
        if name in ("subscriptions", "spark"):  # which say more
            continue
        catalog.apply(old, ["s4"])
        version = catalog.version()
        # s0 says what it said: the only one that is left alone as a whole.
        assert catalog.load(source, mode=mode) == (version + 1, 1, 3, 0, 1, []), name
        assert texts(catalog.at(all=True)) == ROWS_BY_ID, name
        for i in range(4):
            assert said(catalog, f"s{i}") == FULL, name
        assert said(catalog, "s4") == dict.fromkeys(FULL) | {"enabled": True}, name
        assert catalog.load(ROWS_BY_ID, mode=mode) == (version + 1, 0, 0, 0, 5, []), name


def test_one_that_is_whole_replaces_as_a_whole(catalog):
    catalog.add("a", "x = 1", **FULL)
    assert catalog.load([Subscription("a", "x = 1")]).changed == 1
    assert said(catalog, "a") == dict.fromkeys(FULL) | {"enabled": True}
    catalog.apply([{"id": "a", "expression": "x = 1"} | FULL])
    catalog.apply([{"id": "a", "expression": "x = 1"}])
    assert said(catalog, "a") == dict.fromkeys(FULL) | {"enabled": True}
    catalog.add("a", "x = 1", **FULL, replace=True)
    catalog.add("a", "x = 1", replace=True)
    assert said(catalog, "a") == dict.fromkeys(FULL) | {"enabled": True}


def sources_with_one_field(tmp_path, name, kind):
    """Sources that say nothing of one field of a, but say it: there is a column or a key."""
    import pandas as pd

    columns = {"id": ["a", "b"], "expression": ["x = 1"] * 2, name: pa.nulls(2, kind)}
    table = pa.table(columns)
    rows = table.to_pylist()
    pa.parquet.write_table(table, tmp_path / "f.parquet")
    (tmp_path / "f.csv").write_text(f"id,{name},expression\na,,x = 1\nb,,x = 1\n")
    (tmp_path / "f.jsonl").write_text("\n".join(map(json.dumps, rows)))
    frame = pd.DataFrame(rows)
    frame[name] = frame[name].astype(object if kind == pa.string() else "Float64")
    return [table, rows, frame, tmp_path / "f.parquet", tmp_path / "f.csv", tmp_path / "f.jsonl"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("subscriber", pa.string()), ("weight", pa.float64()), ("metadata", pa.string())],
)
def test_an_empty_value_of_a_column_that_is_there_clears(catalog, tmp_path, name, kind):
    for source in sources_with_one_field(tmp_path, name, kind):
        catalog.apply([{"id": "a", "expression": "x = 1"} | FULL], ["b"])
        assert catalog.load(source)[1:] == (1, 1, 0, 0, []), source
        assert said(catalog, "a") == FULL | {name: None}, source
        assert catalog.load(source)[1:] == (0, 0, 0, 2, []), source


def test_keys_tell_row_by_row_what_is_left_alone(catalog, tmp_path):
    catalog.apply([{"id": id_, "expression": "x = 1"} | FULL for id_ in "abcd"])
    rows = [
        {"id": "a", "expression": "x = 1", "weight": None},
        {"id": "b", "expression": "x = 1", "metadata": None, "subscriber": "you"},
        {"id": "c", "expression": "x = 1", "enabled": None},
        {"id": "d", "expression": "x = 1"},
        {"id": "e", "expression": "x = 1", "weight": 1},
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for source in (tmp_path / "s.jsonl", rows):
        catalog.apply([{"id": id_, "expression": "x = 1"} | FULL for id_ in "abcd"], ["e"])
        assert catalog.load(source)[1:] == (1, 3, 0, 1, [])
        assert said(catalog, "a") == FULL | {"weight": None}
        assert said(catalog, "b") == FULL | {"metadata": None, "subscriber": "you"}
        assert said(catalog, "c") == FULL | {"enabled": True}
        assert said(catalog, "d") == FULL
        assert said(catalog, "e") == dict.fromkeys(FULL) | {"weight": 1.0, "enabled": True}


def test_replacing_by_nothing_removes_nothing(catalog, tmp_path):
    catalog.add("a", "x = 1")
    (tmp_path / "s.csv").write_text("id,expression\n")
    for source in ([], {}, tmp_path / "s.csv", pa.table({"id": [], "expression": []})):
        with pytest.raises(OptionError, match=r"the source has no subscription, .* remove all"):
            catalog.load(source, mode="replace")
    with pytest.raises(OptionError, match="has no valid subscription"):
        catalog.load({"b": "x ="}, mode="replace", on_error="skip")
    assert (catalog.version(), ids(catalog.at())) == (1, ["a"])


def test_several_are_switched_in_one_version(catalog):
    catalog.load(dict.fromkeys("abc", "x = 1"))
    assert catalog.set_enabled(["a", "c", "a"], False) == 2
    assert ids(catalog.at()) == ["b"]
    assert catalog.versions(1)[0].changed == 2
    with pytest.raises(UnknownSubscriptionError, match="'zz'"):
        catalog.set_enabled(["a", "zz"], True)
    assert catalog.set_enabled([], True) == 2
    assert catalog.set_enabled((c for c in "abc"), True) == 3
    assert ids(catalog.at()) == ["a", "b", "c"]
    for wrong in (b"a", None, [None], [["a"]]):
        with pytest.raises(OptionError, match="an id"):
            catalog.set_enabled(wrong, True)


BAD_ROWS = [
    {"id": "a", "expression": "x = 1"},
    {"id": "a", "expression": "x = 2"},
    {"id": "b", "expression": "x = = 1"},
    {"id": "c", "expression": None},
    {"id": None, "expression": "x = 1"},
    {"id": "d", "expression": "x = 1", "weight": float("nan")},
    {"id": "e", "expression": "x = 1", "metadata": [1]},
    {"id": "f", "expression": "x = 1", "enabled": 1},
    ["g", "x = 1"],
    {"id": "h", "expression": "x = 1"},
]


def test_a_load_with_bad_rows_changes_nothing_and_tells_all(catalog):
    catalog.add("b", "x = 0")
    with pytest.raises(SubscriptionError) as wrong:
        catalog.load(BAD_ROWS)
    assert [bad.id for bad in wrong.value.bad] == [*"bc", "None", *"def", "row 8", "a"]
    assert (catalog.version(), ids(catalog.at())) == (1, ["b"])


def test_bad_rows_can_be_skipped_and_what_they_name_stays(catalog):
    catalog.apply([{"id": c, "expression": "x = 0"} for c in "bz"])
    loaded = catalog.load(BAD_ROWS, mode="replace", on_error="skip")
    assert loaded[:5] == (2, 2, 0, 1, 0)
    assert len(loaded.bad) == 8
    assert texts(catalog.at()) == {"a": "x = 1", "b": "x = 0", "h": "x = 1"}


def test_sources_that_are_none(catalog, tmp_path):
    (tmp_path / "s.csv").write_text("id,text\n1,x = 1\n")
    (tmp_path / "ragged.csv").write_text("id,expression\n1\n")
    (tmp_path / "twice.csv").write_text("id,expression,id\n1,x = 1,1\n")
    (tmp_path / "s.parquet").write_bytes(b"PAR1")
    (tmp_path / "latin.csv").write_bytes(b"id,expression\n1,x = '\xe9'\n")
    wrong = {
        5: "not int",
        b"s.csv": "not bytes",
        "s.xlsx": "extension",
        tmp_path / "none.csv": "No such file",
        tmp_path / "s.csv": "no column 'expression'",
        tmp_path / "ragged.csv": "ragged.csv",
        tmp_path / "twice.csv": "several columns named 'id'",
        tmp_path / "s.parquet": "s.parquet",
        tmp_path / "latin.csv": "latin.csv",
    }
    for source, said in wrong.items():
        with pytest.raises(BitternError, match=said):
            catalog.load(source)
    with pytest.raises(OptionError, match="no column 'id'"):
        catalog.load(pa.table({"expression": ["x = 1"]}))
    with pytest.raises(OptionError, match="mode"):
        catalog.load([], mode="append")
    with pytest.raises(OptionError, match="on_error"):
        catalog.load([], on_error="ignore")
    assert catalog.version() == 0


def test_lines_and_fields_that_are_bad_are_single(catalog, tmp_path):
    (tmp_path / "s.jsonl").write_text(
        '\ufeff{"id": 1, "expression": "x = 1"}\n\nnope\n[1]\n' + "[" * 99_999 + "\n"
        '{"id": 2, "expression": "x = 1", "metadata": {"k": 1}}\n'
    )
    loaded = catalog.load(tmp_path / "s.jsonl", on_error="skip")
    assert [bad.id for bad in loaded.bad] == ["line 3", "line 4", "line 5"]
    (tmp_path / "s.csv").write_text(
        "id,expression,weight,enabled,metadata,subscriber\n"
        '007,"x = \'a,\nb\'",2.5,FALSE,"{""k"": [1]}",""\n3,x = 1,much,,,\n4,x = 1,,maybe,,\n'
    )
    loaded = catalog.load(tmp_path / "s.csv", on_error="skip")
    assert [bad.id for bad in loaded.bad] == ["3", "4"]
    one = catalog.get("007")
    assert (one.expression, one.weight, one.enabled) == ("x = 'a,\nb'", 2.5, False)
    assert (one.metadata, one.subscriber) == ({"k": [1]}, "")


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet"])
def test_what_is_exported_can_be_loaded(catalog, tmp_path, name):
    odd = 'q"\n,\u2028 \U0001f98a'
    catalog.apply(
        [
            {"id": odd, "expression": "x = 'a\n\"b\"'", "subscriber": "", "weight": 0.1},
            {"id": 2, "expression": "x = 1", "enabled": False, "metadata": {odd: [odd, None]}},
        ]
    )
    catalog.remove(2)
    table = catalog.export(tmp_path / name, 1)
    assert table == catalog.at(1, all=True)
    assert [each.name for each in tmp_path.iterdir() if "out" in each.name] == [name]
    loaded = catalog.load(tmp_path / name)
    assert loaded == (3, 1, 0, 0, 1, [])
    for id_ in (odd, 2):
        then, now = catalog.get(id_, 1), catalog.get(id_)
        assert [getattr(then, n) for n in ("expression", "subscriber", "weight", "metadata")] == [
            getattr(now, n) for n in ("expression", "subscriber", "weight", "metadata")
        ]
    with pytest.raises(OptionError, match="extension"):
        catalog.export(tmp_path / "out.xls")
    with pytest.raises(OptionError, match="cannot write"):
        catalog.export(tmp_path / "no" / name)


# Where it is


def test_a_catalog_is_found_again(catalog, url):
    catalog.add("a", "x = 1")
    again = pickle.loads(pickle.dumps(catalog))
    other = bittern.Catalog(catalog.url, create=False)
    assert again.uid == other.uid == catalog.uid
    assert len(catalog.uid) == 32
    assert ids(again.at()) == ids(other.at()) == ["a"]
    other.add("b", "x = 1")
    assert again.version() == 2
    password = url.split("@")[0].split(":")[-1]
    assert "@" not in url or password not in repr(catalog)
    again.close()
    other.close()
    with pytest.raises(OptionError, match="closed"):
        again.version()


@pytest.mark.parametrize(
    "place",
    [
        *("", ":memory:", "sqlite:///", "sqlite://", "x.db?mode=ro", "a\0b", None, 5),
        *("mysql://root@localhost/x", "postgresql://u:p@[::1"),
    ],
)
def test_places_that_are_none(place):
    with pytest.raises(OptionError, match=r"catalog|URL"):
        bittern.Catalog(place)


def test_an_odd_path_is_the_same_path_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with bittern.Catalog("50% of #1 & ä.db") as one:
        one.add("a", "x = 1")
        assert one.url == f"sqlite:///{tmp_path}/50% of #1 & ä.db"
        monkeypatch.chdir("/")
        with pickle.loads(pickle.dumps(one)) as again:
            assert again.uid == one.uid


def test_files_that_are_no_catalog(tmp_path):
    (tmp_path / "text.db").write_text("id,expression\n" * 100)
    (tmp_path / "folder").mkdir()
    for place in ("text.db", "folder", "no/such.db"):
        with pytest.raises(CatalogError, match=place):
            bittern.Catalog(tmp_path / place)
    with pytest.raises(CatalogError, match="there is no catalog"):
        bittern.Catalog(tmp_path / "new.db", create=False)
    assert not (tmp_path / "new.db").exists()


def test_no_catalog_is_made_where_none_is_wanted(url):
    with pytest.raises(CatalogError, match="there is no catalog"):
        bittern.Catalog(url, create=False)


def test_another_layout_is_refused(catalog, url):
    with catalog._database.writing() as connection:
        connection.exec_driver_sql("UPDATE bittern_catalog SET schema = 99")
    with pytest.raises(CatalogError, match="layout 99"):
        bittern.Catalog(url)
    with catalog._database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM bittern_catalog")
    with pytest.raises(CatalogError, match="is empty"):
        bittern.Catalog(url)


def test_a_server_that_is_not_there(postgres):
    from steady import free_port

    for place, said in (
        (f"postgresql://u@127.0.0.1:{free_port()}/x", "refused"),
        (postgres.url("nowhere"), "nowhere"),
        (postgres.url().replace("bittern:", "bittern:x"), "password"),
    ):
        with pytest.raises(CatalogError, match=said) as wrong:
            bittern.Catalog(place)
        assert postgres._password not in str(wrong.value)


def test_without_sqlalchemy_it_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "import bittern\n"
        "from bittern import *\n"
        "try:\n    Catalog(sys.argv[1])\n"
        "except bittern.errors.OptionError as wrong:\n    print(wrong)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "a catalog needs SQLAlchemy: pip install 'bittern[catalog]'\n"


# EXISTS and FORALL where nothing has a history


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("price < 1 AND EXISTS d IN LAST 5 (d.price > price)", 14),
        ("forall d (d.price > price)", 0),
        ("a = 1 OR ∃ d (d.price > price)", 9),
    ],
)
def test_quantifiers_can_be_refused_at_the_door(catalog, url, text, position):
    catalog.add("old", text, enabled=False)  # a new catalog takes them
    assert catalog.allows_quantifiers()
    catalog.set_quantifiers(False)
    with bittern.Catalog(url) as other:  # it holds for all that write
        assert not other.allows_quantifiers()
        for call in (
            lambda: other.add("a", text),
            lambda: other.apply([{"id": "a", "expression": text}]),
            lambda: other.load({"a": text}),
            lambda: other.set_enabled("old", True),
        ):
            with pytest.raises(SubscriptionError) as wrong:
                call()
            (bad,) = wrong.value.bad
            assert bad.position == position
            assert "refuses EXISTS and FORALL" in bad.message
            assert "catalog quantifiers CATALOG allow" in bad.message
        assert (other.version(), other.get("old").expression) == (1, text)
        loaded = other.load({"a": text, "b": "`exists` = 1"}, on_error="skip")
        assert (loaded.added, [bad.id for bad in loaded.bad]) == (1, ["a"])
    assert catalog.check() == []
    catalog.set_quantifiers(True)
    assert catalog.add("a", text) == 3
    assert catalog.set_enabled("old", True) == 4
    with pytest.raises(OptionError, match="True or False"):
        catalog.set_quantifiers("no")
