"""Writing matches: our sink, which writes from the tasks, beside Spark's own Parquet writer.

Three jobs with the same matches, in turns, as arrays (a row for each event) and exploded (a row for
each match)::

    noop    match, every row to the JVM, and nothing written     what matching costs by itself
    spark   match, every row to the JVM, written there           match(...).write.parquet(...)
    ours    match, written by the task that found it             bittern.spark.write(...)

Both writers use the session's codec, and both replace the table of the pass before. The two tables
are then compared, row by row: as many rows, and the same sum of their hashes.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bittern.spark
from benchmarks import workloads
from benchmarks.run import DisagreementError
from benchmarks.spark.frames import EVENT, read_events, saved_index, write_events
from benchmarks.spark.session import Setting, drain, in_turns, progress, rates, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Many matches for each event, and hardly any.
EVENTS = {"shop": 500_000, "dense": 2_000_000}
SMALL_EVENTS = 5_000
PASSES = 3


def measure(setting: Setting) -> dict[str, Any]:
    """Both forms of output on both workloads."""
    with session() as spark:
        return {name: run(spark, setting, name) for name in EVENTS}


def run(spark: SparkSession, setting: Setting, name: str) -> list[dict[str, Any]]:
    """Measure one workload; an entry for each form of output."""
    workload = workloads.get(name, setting.scale)
    n = setting.size(EVENTS[name], SMALL_EVENTS)
    progress(f"{name}: {workload.n_subscriptions:,} subscriptions, {n:,} events")
    index = str(saved_index(workload, setting.folder))
    events = read_events(spark, write_events(workload, n, setting.folder))
    folder = setting.folder / "written"
    try:
        return [_form(events, index, folder, n, setting, explode=e) for e in (False, True)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _form(
    events: DataFrame, index: str, folder: Path, n: int, setting: Setting, *, explode: bool
) -> dict[str, Any]:
    progress(f"  {'exploded' if explode else 'arrays'}")
    options: dict[str, Any] = {"event_id": EVENT, "explode": explode}
    matched = bittern.spark.match(events, index, **options)
    theirs, ours = str(folder / "theirs"), str(folder / "ours")
    jobs = {
        "noop": lambda: drain(matched),
        "spark": lambda: matched.write.mode("overwrite").parquet(theirs),
        "ours": lambda: bittern.spark.write(events, index, ours, mode="overwrite", **options),
    }
    taken = in_turns(jobs, passes=setting.size(PASSES, 1))
    result: dict[str, Any] = {
        "form": "exploded" if explode else "arrays",
        **{job: rates(passes, n) for job, passes in taken.items()},
        "matches_per_event": _compare(events.sparkSession, theirs, ours) / n,
        "spark_bytes": _size(theirs),
        "ours_bytes": _size(ours),
    }
    speeds = {job: result[job]["events_per_second"] for job in jobs}
    result["ratio"] = speeds["ours"] / speeds["spark"]
    result["of_noop"] = speeds["ours"] / speeds["noop"]
    progress(f"    ours / spark: {result['ratio']:.2f}, ours / noop: {result['of_noop']:.2f}")
    return result


def _compare(spark: SparkSession, theirs: str, ours: str) -> int:
    """Raise unless both tables have the same rows; gives the number of matches in them."""
    found = []
    for path in (theirs, ours):
        table = spark.read.parquet(path)
        matches = "size(subscriptions)" if "subscriptions" in table.columns else "1"
        row_hash = "cast(xxhash64(*) as decimal(38))"
        sums = (f"sum({matches}) matches", "count(*) rows", f"sum({row_hash}) hash")
        found.append(table.selectExpr(*sums).first())
    if found[0] != found[1]:
        raise DisagreementError(f"Spark's writer and ours wrote other rows: {found}")
    assert found[0] is not None
    return int(found[0]["matches"])


def _size(folder: str) -> int:
    return sum(file.stat().st_size for file in Path(folder).glob("*.parquet"))
