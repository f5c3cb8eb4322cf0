"""Delta and Iceberg tables by name: each match once, though drivers die before and after a commit.

Neither runs on every version of Spark, so ``make test-spark-versions`` runs these tests on those
for which there are jars; elsewhere they are skipped, and say so.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

import bittern
from bittern.errors import OptionError
from bittern.spark.streaming import NamedTable
from spark_jobs import streams
from spark_sessions import RemoteError, Session, why_no_spark

#: Names of jars, and settings of Spark.
FORMATS: dict[str, tuple[str, dict[str, str]]] = {
    "delta": (
        "delta-*.jar",
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    "iceberg": (
        "iceberg-*.jar",
        {
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            ),
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
        },
    ),
}
TABLES = {"delta": "alerts", "iceberg": "lake.shop.alerts"}


class Lake:
    """A folder with events, a catalog and a warehouse, and drivers that may die."""

    def __init__(self, path: Path, form: str, jars: list[Path]) -> None:
        self.path, self.form, self.table = path, form, TABLES[form]
        self.folder = path / "warehouse" / self.table.removeprefix("lake.").replace(".", "/")
        own = {"spark.sql.catalog.lake.warehouse": str(path / "warehouse")}
        self._conf = streams.CONF | FORMATS[form][1] | (own if form == "iceberg" else {})
        self._conf |= {
            "spark.jars": ",".join(map(str, jars)),
            "spark.sql.warehouse.dir": str(path / "warehouse"),
        }
        self._drivers = 0
        (path / "events").mkdir(parents=True)
        catalog = bittern.Catalog(path / "catalog.db")
        catalog.add("cheap", "price < 5")
        catalog.add("all", "id >= 0")

    def driver(self) -> Session:
        self._drivers += 1
        return Session("classic", self.path / f"session-{self._drivers}", self._conf)

    def arrive(self, batch: int) -> None:
        """The two files of a batch come."""
        for file in range(2):
            ids = [20 * batch + 10 * file + at for at in range(10)]
            rows = pa.table({"id": ids, "price": [float(id_ % 10) for id_ in ids]})
            partial = self.path / f"events/.{batch}-{file}"
            pq.write_table(rows, partial)
            partial.rename(self.path / f"events/{batch}-{file}.parquet")

    def asked(self, **more: Any) -> dict[str, Any]:
        own = {"place": str(self.path), "table": self.table, "format": self.form}
        return own | {"folder": str(self.folder)} | more


@pytest.fixture(params=sorted(FORMATS))
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    if (reason := why_no_spark()) is not None:
        pytest.skip(f"NO SPARK: {reason}")
    form = request.param
    folder = os.environ.get("BITTERN_TABLE_JARS")
    jars = sorted(Path(folder).glob(FORMATS[form][0])) if folder else []
    if not jars:
        pytest.skip(
            f"NO TABLES OF {form.upper()}: no jars of it; make test-spark-versions has some"
        )
    return Lake(tmp_path / "lake", form, jars)


def expected(batches: int) -> list[tuple[int, str, int, int]]:
    return sorted(
        (id_, name, 2, id_ // 20)
        for id_ in range(20 * batches)
        for name in ("all", "cheap")
        if name == "all" or id_ % 10 < 5
    )


@pytest.mark.spark
def test_each_match_is_in_the_table_once_whenever_drivers_die(lake: Lake) -> None:
    """Killed with one of two files of batch 1 written, then with the batch committed; and on."""
    lake.arrive(0)
    lake.arrive(1)
    for die_at in ("half written", "written"):
        with lake.driver() as driver, pytest.raises(RemoteError, match="the session ended"):
            driver.call("spark_jobs.tables:run", **lake.asked(die_at=die_at, batch=1))
    with lake.driver() as driver:
        found = driver.call("spark_jobs.tables:rows", table=lake.table)
        assert [tuple(row[:4]) for row in found] == expected(2)
        lake.arrive(2)
        assert driver.call("spark_jobs.tables:run", **lake.asked(format=None)) is None
        found = driver.call("spark_jobs.tables:rows", table=lake.table)
        assert [tuple(row[:4]) for row in found] == expected(3)
        assert len({row[4] for row in found}) == 1
        again = {"place": str(lake.path), "table": lake.table, "batch": 2}
        driver.call("spark_jobs.tables:deliver_again", **again)
        if lake.form == "iceberg":  # when no snapshot tells of the query any more
            expire = f"CALL lake.system.expire_snapshots(table => '{lake.table}', retain_last => 1"
            remove = f"DELETE FROM {lake.table} WHERE id < 0"
            statements = [
                f"INSERT INTO {lake.table} VALUES (-1, 'x', 1, 1, 'other')",
                f"{expire}, older_than => TIMESTAMP '2999-01-01 00:00:00')",
            ]
            driver.call("spark_jobs.tables:sql", statements=statements)
            driver.call("spark_jobs.tables:deliver_again", **again)
            driver.call("spark_jobs.tables:sql", statements=[remove])
        assert driver.call("spark_jobs.tables:rows", table=lake.table) == found
        # Another query has batches of its own numbers.
        assert driver.call("spark_jobs.tables:run", **lake.asked(checkpoint="second")) is None
        both = driver.call("spark_jobs.tables:rows", table=lake.table)
        assert sorted(tuple(row[:4]) for row in both) == sorted(2 * expected(3))
        why = {
            name: driver.call("spark_jobs.tables:refused", table=name, format=form)
            for name, form in {"missing": None, lake.table: "delta"}.items()
        }
        assert "there is no table missing: create it, or say format='delta'" in why["missing"]
        assert bool(why[lake.table]) == (lake.form == "iceberg")


@pytest.mark.spark
def test_a_table_of_another_format_is_refused(spark: Any) -> None:
    spark.sql("CREATE TABLE IF NOT EXISTS plain_alerts (id BIGINT) USING parquet")
    try:
        with pytest.raises(OptionError, match=r"plain_alerts is of format parquet, which cannot"):
            NamedTable("plain_alerts").check(spark)
        with pytest.raises(OptionError, match="there is no table no_alerts: create it, or say"):
            NamedTable("no_alerts").check(spark)
        NamedTable("no_alerts", format="delta").check(spark)
    finally:
        spark.sql("DROP TABLE plain_alerts")


@pytest.mark.parametrize("name", ["", "a b", "a;DROP TABLE b", "a.b.", "`a", 7, None])
def test_a_name_is_one_of_sql(name: Any) -> None:
    with pytest.raises(OptionError, match="name must be that of a table"):
        NamedTable(name)


@pytest.mark.parametrize("name", ["a", "a.b", "lake.`odd name`.c_1", "`a``b`"])
def test_names_of_tables(name: str) -> None:
    assert NamedTable(name, options={"target-file-size-bytes": 9}).name == name


@pytest.mark.parametrize("key", ["txnVersion", "snapshot-property.bittern.batch"])
def test_what_is_set_for_each_batch_cannot_be_given(key: str) -> None:
    with pytest.raises(OptionError, match="set for each batch"):
        NamedTable("a", options={key: 1})
    with pytest.raises(OptionError, match="format must be"):
        NamedTable("a", format="parquet")
