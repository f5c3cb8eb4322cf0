"""Building a sharded index: no process ever holds the whole catalog.

::

    rows ──► chunks ──► points           where pivots lie      chunks.py, on the executors
                          │ shuffle by attribute, combined
                          ▼
                         cut             ruler, parts          cutting.py, on the driver
                          │
    rows ──► chunks ──► (part, row)      and the regions of each part, as rows of it
                          │ shuffle by part, sorted by id
                          ▼
                       a task a part     Index.build, written to the store
                          │
                          ▼
                     router, Shards      on the driver, from some runs of cells for each part

``spark/sharded/tasks.py`` has the tasks. Rows are read twice before the shuffle and once after it:
reading takes a core some 6 us for each, and nothing has to be kept in between. If the DataFrame is
not deterministic, the second reading may see other rows than the first; parts and regions come
from the second alone, so only their sizes suffer.

A part's rows are sorted by id, so a retried or speculative task builds the same snapshot, with the
same id in the store. Repeated ids are resolved before all this, as in ``Index.build``: the first
good row stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from bittern.engine.sharding.cutting import POINTS, cut
from bittern.engine.sharding.regions import CellRuns, RulerKey, build_router, presence, visits
from bittern.errors import BadSubscription, OptionError
from bittern.language.derived import is_derived
from bittern.spark.arrow_tables import to_arrow
from bittern.spark.history.past import refuse_quantifiers
from bittern.spark.sharded.shards import Shards
from bittern.spark.sharded.tasks import BUILT, Assign, BuildParts, Settle, Survey, task_sample
from bittern.spark.snapshots.node_cache import SnapshotRef, keep
from bittern.spark.snapshots.store import ARTIFACTS, CACHE, CONF, destination, publish
from bittern.spark.subscriptions.reading import Reading
from bittern.spark.versions import in_partition

_NO_HISTORY = "shards cannot be matched with a history: build a whole index, with shards=None"
#: Points that the driver makes a ruler of, about, if there are not more attributes.
_POINTS = 1 << 18
#: Subscriptions whose points one task combines.
_COMBINED_ROWS = 1 << 20
#: Rows of repeated ids that one task settles.
_SETTLED_ROWS = 100_000

_SQL = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
    pa.list_(pa.string()): "array<string>",
    pa.list_(pa.int64()): "array<bigint>",
}


def build_shards(
    subscriptions: DataFrame,
    n_shards: int,
    *,
    sample: pa.Table | None,
    store: str | None,
    stabbing: str,
    total: int,
    history: bool,
    reading: Reading,
    on_bad: Callable[[list[BadSubscription]], None],
) -> tuple[Shards, list[BadSubscription]]:
    """Cut subscriptions (id, expression and optionally weight) into parts and build each.

    ``on_bad`` gets the bad subscriptions as soon as all are known, and may raise.

    Without a ``history``, subscriptions that need one are bad; with one, they raise an error.

    There are at most ``n_shards`` shards; empty ones are left out. ``total`` is the approximate
    number of subscriptions.
    """
    spark = subscriptions.sparkSession
    where = destination(spark, store)
    if where == ARTIFACTS:
        raise OptionError(
            "executors write the shards, so they need a folder or URI that all of them and the "
            f"driver share: give store=, or set {CONF}"
        )
    rows, bad = _settled(subscriptions, reading)
    id_type = _id_type(subscriptions)
    sample = sample or None  # an empty one says nothing
    # Cut by every other event, so that the rest can tell what to expect of events not seen yet.
    seen = None if sample is None else _every_other(sample, 0)
    unseen = sample if sample is None or len(sample) == 1 else _every_other(sample, 1)
    events = task_sample(seen)

    survey = Survey(events, max(1, total) / _POINTS, id_type, reading, history)
    schema = _ddl(survey.schema)
    found = to_arrow(
        rows.mapInArrow(survey, schema)
        .repartition(1 + total // _COMBINED_ROWS, "attribute")
        .mapInArrow(survey.combine, schema)
    )
    is_bad = found["message"].is_valid()
    bad += _bad(found.filter(is_bad))
    on_bad(bad)
    points = found.filter(pc.invert(is_bad)).select(POINTS.names)
    # Here most often; a quantifier that no pivot can be made of is seen only in the parts.
    refuse_quantifiers(points["attribute"].unique().to_pylist(), _NO_HISTORY)
    plan = cut(points, n_shards, None if seen is None else lambda names: presence(names, seen))

    assign = Assign(events, plan, id_type, reading, history)
    build = BuildParts(events, where, stabbing)
    assigned = rows.mapInArrow(assign, _ddl(assign.schema))
    parts = in_partition(assigned, n_shards + 1, F.col("part")).sortWithinPartitions("part", "id")
    built = to_arrow(parts.mapInArrow(build, _ddl(BUILT))).sort_by("part").to_pylist()
    if where == CACHE:
        for row in built:
            keep(row["id"])  # for as long as the driver lives, whatever becomes of the workers
    home = [row for row in built if row["part"] == n_shards]
    shards = [row for row in built if row["part"] < n_shards]
    regions = [CellRuns(np.array(row["firsts"]), np.array(row["lasts"])) for row in shards]
    keys = {
        RulerKey(*key) for row in built for key in zip(row["attributes"], row["kinds"], strict=True)
    }
    refuse_quantifiers([key.attribute for key in keys], _NO_HISTORY)
    router = build_router(plan.ruler, regions, sample, keys)
    if unseen is not None:
        traffic = (visits(router, len(shards), unseen) / len(unseen)).tolist()
    else:
        traffic = [plan.traffic[row["part"]] for row in shards]
    # What a router reads in the text of a region may be another term than the part's.
    known = {key.attribute for key in keys}
    own = {name for name in router.rank.attribute_names() if is_derived(name)} - known
    ref = publish(spark, router, store)
    ids = [ref.id, *(f"{row['part'] == n_shards}:{row['id']}" for row in built)]
    return (
        Shards(
            id=hashlib.blake2b("\n".join(ids).encode(), digest_size=16).hexdigest(),
            router=ref,
            home=_ref(home[0], ref) if home else None,
            shards=tuple(_ref(row, ref) for row in shards),
            subscriptions=tuple(row["subscriptions"] for row in shards),
            nbytes=tuple(row["nbytes"] for row in shards),
            traffic=tuple(traffic),
            integer_ids=id_type == pa.int64(),
            attributes=tuple(sorted({*known, *own})),
        ),
        bad,
    )


def _every_other(sample: pa.Table, first: int) -> pa.Table:
    return sample.take(np.arange(first, len(sample), 2))


def _id_type(subscriptions: DataFrame) -> pa.DataType:
    is_integer = isinstance(subscriptions.schema["id"].dataType, LongType)
    return pa.int64() if is_integer else pa.string()


def _ref(row: dict[str, Any], router: SnapshotRef) -> SnapshotRef:
    return SnapshotRef(row["id"], row["uri"], kernels=router.kernels)


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {_SQL[field.type]}" for field in schema)


def _bad(rows: pa.Table) -> list[BadSubscription]:
    columns = (rows[name].to_pylist() for name in ("id", "position", "message"))
    return [BadSubscription(*row) for row in zip(*columns, strict=True)]


def _settled(subscriptions: DataFrame, reading: Reading) -> tuple[DataFrame, list[BadSubscription]]:
    """The rows without repeated ids, and those left out. One job over the ids, if none repeats."""
    twice = (
        subscriptions.filter(F.col("id").isNotNull())
        .groupBy("id")
        .agg(F.count(F.lit(1)).alias("n"))
        .filter(F.col("n") > 1)
    )
    found = twice.agg(F.coalesce(F.sum("n"), F.lit(0))).first()
    assert found is not None
    if not found[0]:
        return subscriptions, []
    n_tasks = -(-int(found[0]) // _SETTLED_ROWS)
    settle = Settle(_id_type(subscriptions), reading)
    settled = (
        subscriptions.withColumn("row", F.monotonically_increasing_id())
        .join(twice, "id", "left_semi")
        .repartition(n_tasks, "id")
        .sortWithinPartitions("id", "row")
        .drop("row")
        .mapInArrow(settle, _ddl(settle.schema))
    )
    is_good = F.col("message").isNull()
    good = settled.filter(is_good).select(*subscriptions.columns)
    once = subscriptions.join(twice, "id", "left_anti").unionByName(good)
    return once, _bad(to_arrow(settled.filter(~is_good)))
