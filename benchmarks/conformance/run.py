"""Measure it: ``python -m benchmarks.conformance.run [--inputs FOLDER] [--files NAME ...]``.

Some ten minutes on two cores, most of them for running Spark's files. The JSON file has every
expression with the three answers; ``benchmarks.conformance.report`` writes the page from it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pickle
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.conformance import answering
from benchmarks.conformance.catalyst import Catalyst
from benchmarks.conformance.collecting import ROW, Collector, Relation
from benchmarks.conformance.inputs import ARTIFACT, fetch, files
from benchmarks.run import RESULTS, environment

OUTPUT = RESULTS / "conformance.json"
PACKAGES = ("pyspark",)


def session(folder: Path) -> SparkSession:
    """A session with Spark's own defaults, in UTC, that writes into a folder alone."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
        # Each query is run once: nothing is gained by compiling it.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def measure(
    spark: SparkSession, source: Path, only: list[str], keep: Path | None
) -> dict[str, Any]:
    """All expressions of the files, with the answers."""
    catalyst = Catalyst(spark)
    collector = Collector(catalyst, spark)
    found: list[dict[str, Any]] = []
    kept: list[Any] = []
    n_files = 0
    for file in files(source):
        if only and not any(name in file.name for name in only):
            continue
        n_files += 1
        begin = time.monotonic()
        relations = collector.collect(file)
        for relation in relations:
            rows, records = _answered(relation)
            found += records
            kept.append((rows.table, records))
        n = sum(len(relation.expressions) for relation in relations)
        print(f"{file.name}: {n} in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
        _forget(spark)
    rows, records = _answered(collector.one_row)
    found += records
    kept.append((rows.table, records))
    if keep is not None:
        keep.write_bytes(pickle.dumps(kept))
    return {
        "environment": environment(),
        "artifact": ARTIFACT,
        "files": n_files,
        "left_out": dict(collector.left_out.most_common()),
        "expressions": found,
    }


def _answered(relation: Relation) -> tuple[answering.Rows, list[dict[str, Any]]]:
    rows = answering.rows_of(relation)
    texts = list(relation.expressions)
    known = answering.of_spark(rows, texts)
    answers = {
        "spark": known,
        "embedded": answering.embedded(rows, texts, known),
        "on_spark": answering.on_spark(rows, texts),
    }
    records = []
    for at, text in enumerate(texts):
        own = relation.expressions[text]
        record: dict[str, Any] = {
            "text": text,
            "file": own.file,
            "relation": relation.name,
            "schema": rows.frame.drop(ROW).schema.simpleString(),
            "is_condition": own.is_condition,
            "other_case": own.other_case,
            "implicit": own.implicit,
            "missing": rows.missing,
            "padded": rows.padded,
            "rows": len(rows.numbers),
        }
        for name, each in answers.items():
            record[name] = {
                "true": sorted(each[at].true),
                "listed": sorted(each[at].listed),
                "refused": each[at].refused,
            }
        records.append(record)
    return rows, records


def _forget(spark: SparkSession) -> None:
    """Drop what a file has made."""
    for table in spark.catalog.listTables():
        kind = "TABLE" if table.tableType in ("MANAGED", "EXTERNAL") else "VIEW"
        try:
            spark.sql(f"DROP {kind} IF EXISTS `{table.name}`")
        except Exception as wrong:  # noqa: BLE001
            print(f"{table.name} stays: {str(wrong)[:80]}", file=sys.stderr)


def main() -> None:
    """Measure and write the JSON file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--inputs", type=Path, help="a folder or jar with the files; else Maven's")
    parser.add_argument(
        "--files", nargs="*", default=[], help="only files with these in their name"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--keep", type=Path, help="also keep rows and answers, to try expressions")
    given = parser.parse_args()
    given.output.parent.mkdir(parents=True, exist_ok=True)
    source = given.inputs or fetch(given.output.parent)
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder))
        logging.getLogger("SQLQueryContextLogger").disabled = True
        logging.disable(logging.CRITICAL)
        result = measure(spark, source, given.files, given.keep)
        spark.stop()
    given.output.write_text(json.dumps(result, indent=1))
    counts = Counter(left for left in result["left_out"])
    print(len(result["expressions"]), counts)


if __name__ == "__main__":
    main()
