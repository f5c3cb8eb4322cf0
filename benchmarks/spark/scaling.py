"""One executor and two, a million subscriptions and ten, whole and sharded, and their memory.

First the indexes are built, by ``bittern.spark.build`` in a session of two cores, unless they are
in the folder already. Then each configuration is a ``local-cluster`` in a process of its own, with
executors that are JVMs of their own and Python workers that belong to them::

    1 executor  of 1 core    1 worker     rates, memory
    2 executors of 1 core    2 workers    rates, memory
    2 executors of 2 cores   4 workers    memory

Memory is read after matching, when all workers have mapped the index and touched what they use of
it (``memory.py``). Driver and executors share the machine's cores, so two executors on two cores
cannot be twice as fast as one: the driver and the JVMs' own threads have no core of their own.
"""

from __future__ import annotations

import os
import pickle
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import bittern.spark
from benchmarks import workloads
from benchmarks.spark import memory
from benchmarks.spark.frames import EVENT, read_events, saved_index, write_events
from benchmarks.spark.session import (
    Setting,
    drain,
    in_turns,
    progress,
    rates,
    session,
)

if TYPE_CHECKING:
    from pathlib import Path

LARGE = "shop-10m"
SHARDS = 4
EVENTS, SMALL_EVENTS = 240_000, 8_000
#: Executors and cores of each; those that are measured for memory only do one pass.
CONFIGURATIONS = {"1x1": (1, 1), "2x1": (2, 1), "2x2": (2, 2)}
MEMORY_ONLY = ("2x2",)


def measure_build(setting: Setting) -> dict[str, Any]:
    """Build the large index, whole and sharded, on Spark; leave both in the folder."""
    workload = workloads.get(LARGE, setting.scale)
    written = _described(setting)
    if written.exists():
        progress(f"{LARGE}: indexes are there already")
        return dict(pickle.loads(written.read_bytes())["figures"])
    texts = _texts(workload, setting.folder)
    figures: dict[str, Any] = {"subscriptions": workload.n_subscriptions}
    refs: dict[str, Any] = {}
    store = str(setting.folder / "store")
    with session() as spark:
        subscriptions = spark.read.parquet(str(texts))
        for name, shards in (("whole", None), ("sharded", SHARDS)):
            progress(f"{LARGE}: building {workload.n_subscriptions:,} subscriptions, {name}")
            start = perf_counter()
            built = bittern.spark.build(
                subscriptions, sample=workload.sample(), store=store, shards=shards
            )
            seconds = perf_counter() - start
            progress(f"  {seconds:.1f} s")
            refs[name] = built.ref
            figures[name] = {"seconds": seconds, "stages": dict(built.seconds)}
        figures["whole"] |= _sizes(setting.folder, [refs["whole"]])
        figures["sharded"] |= _sizes(setting.folder, refs["sharded"].shards)
        figures["sharded"] |= {
            "router": _sizes(setting.folder, [refs["sharded"].router]),
            "home": _sizes(setting.folder, [refs["sharded"].home] if refs["sharded"].home else []),
            "traffic": list(refs["sharded"].traffic),
            "subscriptions": list(refs["sharded"].subscriptions),
        }
    written.write_bytes(pickle.dumps({"refs": refs, "figures": figures}))
    return figures


def measure(setting: Setting, configuration: str) -> dict[str, Any]:
    """One configuration: rates and memory of every index."""
    executors, cores = CONFIGURATIONS[configuration]
    refs = pickle.loads(_described(setting).read_bytes())["refs"]
    small_index = str(saved_index(workloads.get("shop", setting.scale), setting.folder))
    n = setting.size(EVENTS, SMALL_EVENTS)
    paths = {
        name: write_events(workloads.get(name, setting.scale), n, setting.folder)
        for name in ("shop", LARGE)
    }
    result: dict[str, Any] = {"executors": executors, "cores": cores, "rates": {}, "memory": {}}
    alone = configuration in MEMORY_ONLY
    with session(f"local-cluster[{executors},{cores},1536]", spark__driver__memory="2g") as spark:
        for name, data, subscriptions in (
            ("shop", "shop", small_index),
            (LARGE, LARGE, refs["whole"]),
            (f"{LARGE}, sharded", LARGE, refs["sharded"]),
        ):
            if alone and name == "shop":
                continue
            progress(f"{configuration} {name}: {n:,} events")
            events = read_events(spark, paths[data])
            matched = bittern.spark.match(events, _given(subscriptions), event_id=EVENT)
            job = {name: lambda matched=matched: drain(matched)}
            taken = in_turns(job, passes=0 if alone else setting.size(2, 1))[name]
            if taken:
                result["rates"][name] = rates(taken, n)
            result["memory"][name] = memory.workers_of(os.getpid())
    result["indexes"] = {
        LARGE: [refs["whole"].id],
        f"{LARGE}, sharded": [ref.id for ref in refs["sharded"].shards],
    }
    return result


def _given(subscriptions: Any) -> Any:
    """A whole index is given by its path, a sharded one by its references."""
    return getattr(subscriptions, "uri", subscriptions)


def _described(setting: Setting) -> Path:
    return setting.folder / f"{LARGE}-{setting.scale}.refs"


def _texts(workload: workloads.Workload, folder: Path) -> Path:
    path = folder / f"{workload.name}-{workload.scale}-texts.parquet"
    if not path.exists():
        progress(f"{workload.name}: writing {workload.n_subscriptions:,} subscriptions")
        folder.mkdir(parents=True, exist_ok=True)
        building = path.with_suffix(".part")
        # Row groups small enough for Spark to read in parallel.
        pq.write_table(workload.subscriptions(), building, row_group_size=500_000)
        building.rename(path)
    return path


def _sizes(folder: Path, refs: Any) -> dict[str, Any]:
    """Bytes that matching maps, and bytes on disk, of some snapshots."""
    from bittern.spark.snapshots.node_cache import attach

    disk = [sum(f.stat().st_size for f in (folder / "store" / r.id).iterdir()) for r in refs]
    return {"matching_bytes": [attach(ref).nbytes for ref in refs], "disk_bytes": disk}
