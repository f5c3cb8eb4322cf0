"""What ``docs/scaling.md`` shows: tables of constants, of the simulation, and of what is derived.

The words are the page's; every number comes from a result through ``sizing.py``. A section whose
parts were not measured says so instead of showing an old figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.report import number, table
from benchmarks.spark import sizing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.spark.sizing import Constants

SUBSCRIPTIONS = (10_000_000, 100_000_000, 1_000_000_000)
RATE = 1_000_000
NEEDED = ("stage", "scaling-build", "scaling-2x1", "scaling-2x2", "simulate")
GIB = 1 << 30
MEBI = 1 << 20


def sections(result: Mapping[str, Any]) -> dict[str, str]:
    """The content of every marker of the page."""
    parts = result["parts"]
    missing = [name for name in NEEDED if name not in parts]
    simulated = "Not simulated yet."
    if "simulate" in parts:
        simulated = simulation_table(parts["simulate"])
    if missing:
        told = f"Not measured yet: {', '.join(missing)}."
        return {"constants": told, "simulation": simulated, "alike": told, "growing": told}
    known = sizing.constants(result)
    return {
        "constants": constants_table(known),
        "simulation": simulated,
        "alike": needs_table(known, alike=True),
        "growing": needs_table(known, alike=False),
    }


def constants_table(known: Constants) -> str:
    """Constants with their units."""
    rows = [
        ["`base`", "core-µs per event, the subscriptions aside", number(known.base_seconds * 1e6)],
        [
            "`slope`",
            "core-µs per event and million subscriptions",
            number(known.slope_seconds * 1e6 * sizing.MILLION),
        ],
        ["`visit`", "core-µs per shard that an event visits", number(known.visit_seconds * 1e6)],
        ["`mapped`", "bytes that matching reads, per subscription", number(known.mapped_bytes)],
        ["`disk`", "bytes of a snapshot, per subscription", number(known.disk_bytes)],
        ["`event`", "bytes of an event in Arrow", number(known.event_bytes)],
        [
            "`matches`",
            "matches per event and million subscriptions",
            number(known.matches * sizing.MILLION),
        ],
        ["`worker`", "MiB of a Python worker, the index aside", number(known.worker_bytes / MEBI)],
    ]
    return table("", ["constant", "meaning", "measured"], rows, words=2)


def simulation_table(measured: Mapping[str, Any]) -> str:
    """Fan-out and balance by skew and number of shards."""
    head = ["skew", "shards", "home", "home holds", "shards per event", "99 of 100 at most"]
    head += ["largest shard", "busiest shard", "busiest task, with salt"]
    rows = []
    for point in measured["points"]:
        row = [f"{point['skew']:g}", f"{point['shards']:,}", "yes" if point["home"] else "no"]
        row += [f"{point['home_share']:.2%}", f"{point['fan_out']:.2f}"]
        row += [f"{point['fan_out_p99']:.0f}", f"{point['largest_shard']:.2f}"]
        rows.append([*row, f"{point['busiest_shard']:.2f}", f"{point['busiest_task']:.2f}"])
    return table("", head, rows)


def needs_table(known: Constants, *, alike: bool) -> str:
    """What each number of subscriptions needs, a column each."""
    needs = [sizing.need(known, n, RATE, alike=alike) for n in SUBSCRIPTIONS]
    lines: list[tuple[str, list[str]]] = [
        ("shards", [f"{each.shards:,}" for each in needs]),
        ("shards that an event visits", [number(each.fan_out) for each in needs]),
        ("matches per event", [number(each.matches_per_event) for each in needs]),
        ("core-µs per event", [number(each.core_seconds * 1e6) for each in needs]),
        ("cores", [f"{each.cores:,}" for each in needs]),
        (f"hosts of {sizing.HOST_CORES} cores", [f"{each.hosts:,}" for each in needs]),
        ("GiB of memory per host", [number(each.host_bytes / GIB) for each in needs]),
        ("GiB of snapshots", [number(each.disk_bytes / GIB) for each in needs]),
        ("GB/s between hosts", [number(each.network_bytes / 1e9) for each in needs]),
        (
            "Gbit/s per host",
            [number(8 * each.network_bytes / each.hosts / 1e9) for each in needs],
        ),
    ]
    head = ["subscriptions", *(f"{n:,}" for n in SUBSCRIPTIONS)]
    return table("", head, [[what, *values] for what, values in lines])
