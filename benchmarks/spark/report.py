"""The pages of a run: ``python -m benchmarks.spark.report [JSON] [--output DIR]``.

Every figure is taken from the JSON file, or derived from it by ``sizing.py``::

    results/spark.json --+-- benchmarks/spark.md            written whole
                         +-- benchmarks/spark_routing.svg   the simulation's plot
                         +-- scaling.md                     only between its markers

A marker of ``scaling.md`` is ``<!-- figures: NAME -->``, and ``<!-- end: NAME -->`` ends what the
script may replace. A small result does not go into the documentation: it needs a folder of its own.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.report import environment, number, read_full, table
from benchmarks.spark import derived, peers, plots
from benchmarks.spark.run import OUTPUT
from benchmarks.spark.scaling import LARGE

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCS = Path(__file__).parents[2] / "docs"
YES, NO = "yes", "**no**"
MEBI = 1 << 20


class Target(NamedTuple):
    """A ratio to reach."""

    what: str
    path: tuple[str, ...]
    bound: float


TARGETS = (
    Target("`shop`: match stage / identity stage", ("stage", "shop", "ratio"), 0.5),
    *(
        Target(
            f"`{workload}`: times faster than {kind.name}",
            ("peers", workload, "peers", kind.name, "ratio"),
            bound,
        )
        for workload in ("shop", "dense")
        for kind, bound in ((peers.NestedLoop, 1_000), (peers.Bins, 10), (peers.Udf, 1_000))
    ),
)


def main(arguments: list[str] | None = None) -> int:
    """Read the result file and write the pages."""
    result, folder = read_full(
        "benchmarks.spark.report", OUTPUT, "folder for the pages (docs)", arguments
    )
    write(result, folder or DOCS)
    return 0


def write(result: Mapping[str, Any], folder: Path) -> None:
    """Write the page and the plot, and the figures of ``scaling.md``."""
    (folder / "benchmarks").mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks" / "spark.md").write_text(page(result))
    measured = good_parts(result)
    if "simulate" in measured:
        plots.draw_routing(measured["simulate"], folder / "benchmarks" / "spark_routing.svg")
    text = (DOCS / "scaling.md").read_text()
    for name, content in derived.sections({**result, "parts": measured}).items():
        text = inserted(text, name, content)
    (folder / "scaling.md").write_text(text)


def good_parts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Those that did not fail."""
    return {name: part for name, part in result["parts"].items() if "error" not in part}


def inserted(text: str, name: str, content: str) -> str:
    """Replace what stands between the markers of that name."""
    pattern = re.compile(
        rf"(<!-- figures: {re.escape(name)} -->\n).*?(<!-- end: {re.escape(name)} -->)", re.DOTALL
    )
    if not pattern.search(text):
        raise SystemExit(f"scaling.md has no marker for {name}")
    return pattern.sub(lambda found: f"{found[1]}\n{content}\n\n{found[2]}", text)


def page(result: Mapping[str, Any]) -> str:
    """Write the whole page."""
    parts = good_parts(result)
    sections = [
        "# Bittern on Spark, measured",
        environment(dict(result)).replace(" One thread unless said otherwise;", " Two cores;")
        + f" Java {result['environment'].get('java', 'unknown')}.",
        _INTRODUCTION,
        _failures(result),
        _targets(parts),
        _stage(parts),
        _peers(parts),
        _writing(parts),
        _build(parts),
        _scaling(parts),
        _memory(parts),
        _simulation(parts),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


_INTRODUCTION = """\
Written by `python -m benchmarks.spark.report` from the results of `make bench-spark`. Events are
Parquet files, matches go to Spark's `noop` sink unless a section says otherwise, and a rate is the
median of passes after a warm-up. Compare figures of one table with each other: they come from one
session, while driver, JVM and Python workers share the cores. [scaling.md](../scaling.md) derives
from these figures what larger catalogs would need.

```console
$ make bench-spark                                    # everything: 25 minutes on 2 cores
$ python -m benchmarks.spark.run --only stage         # one part of it, the others stay
$ python -m benchmarks.spark.run --cache /tmp/bench   # keeps events and indexes for the next run
$ python -m benchmarks.spark.run --small              # does it run? its figures mean nothing
```"""


def _failures(result: Mapping[str, Any]) -> str:
    failed = {n: part["error"] for n, part in result["parts"].items() if "error" in part}
    lines = [f"- `{name}`: {error.strip().splitlines()[-1]}" for name, error in failed.items()]
    return "Parts that failed, and have no figures here:\n\n" + "\n".join(lines) if failed else ""


def _targets(parts: Mapping[str, Any]) -> str:
    rows = []
    for target in TARGETS:
        value: Any = parts
        for key in target.path:
            value = value.get(key) if value else None
        if value is not None:
            reached = YES if value >= target.bound else NO
            rows.append([target.what, number(value), f"≥ {number(target.bound)}", reached])
    return table("Targets", ["figure", "measured", "target", "reached"], rows)


def _stage(parts: Mapping[str, Any]) -> str:
    head = ["workload", "subscriptions", "events", "JVM only", "identity", "match"]
    head += ["match / identity", "matches per event", "embedded, one thread"]
    rows = []
    for name, one in _workloads(parts.get("stage", {})).items():
        row = [name, f"{one['subscriptions']:,}", f"{one['match']['events']:,}"]
        row += [number(one[job]["events_per_second"]) for job in ("jvm", "identity", "match")]
        row += [number(one["ratio"]), number(one["matches_per_event"])]
        rows.append([*row, number(one["embedded"]["events_per_second"])])
    told = (
        "`identity` sends the same columns to Python and back unchanged, `match` is"
        " `bittern.spark.match` with one array of subscriptions per event, `JVM only` reads and"
        " sends nothing. The last column is the engine without Spark."
    )
    made = table("The match stage, events/s", head, rows)
    return f"{made}\n\n{told}" if made else ""


def _workloads(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in part.items() if isinstance(one, dict)}


def _peers(parts: Mapping[str, Any]) -> str:
    head = ["workload", "subscriptions", "what a user writes", "load s", "events"]
    head += ["events/s", "ours", "ratio"]
    rows = []
    for name, one in _workloads(parts.get("peers", {})).items():
        for peer, found in one["peers"].items():
            row = [name, f"{one['subscriptions']:,}", peer, number(found["load_seconds"])]
            row += [f"{found['events']:,}", number(found["events_per_second"])]
            rows.append([*row, number(one["ours"]["events_per_second"]), number(found["ratio"])])
    made = table("Beside what a Spark user writes today", head, rows, words=3)
    told = (
        "Same events and subscriptions, and all must find the same matches, which are compared row"
        " by row. Each peer gets as many events as some seconds allow. The join by bins is the best"
        " that was found: bins on the narrowest predicate of each subscription, which is a pivot"
        " chosen by hand. `benchmarks/spark/peers.py` has the forms."
    )
    return f"{made}\n\n{told}" if made else ""


def _writing(parts: Mapping[str, Any]) -> str:
    head = ["workload", "output", "matches per event", "not written", "Spark's writer", "ours"]
    head += ["ours / Spark's", "ours / not written", "bytes, ours / Spark's"]
    rows = []
    for name, forms in parts.get("writing", {}).items():
        for one in forms if isinstance(forms, list) and isinstance(forms[0], dict) else ():
            row = [name, one["form"], number(one["matches_per_event"])]
            row += [number(one[job]["events_per_second"]) for job in ("noop", "spark", "ours")]
            row += [number(one["ratio"]), number(one["of_noop"])]
            rows.append([*row, number(one["ours_bytes"] / one["spark_bytes"])])
    made = table("Writing matches as Parquet, events/s", head, rows, words=2)
    told = (
        "`bittern.spark.write` writes from the tasks and commits on the driver; Spark's writer is"
        " `match(...).write.parquet(...)`. Both tables were compared and hold the same rows."
    )
    return f"{made}\n\n{told}" if made else ""


def _build(parts: Mapping[str, Any]) -> str:
    measured = parts.get("scaling-build")
    if not measured:
        return ""
    rows = []
    for name in ("whole", "sharded"):
        one = measured[name]
        stages = ", ".join(f"{stage} {number(s)}" for stage, s in one["stages"].items())
        row = [name, f"{len(one['matching_bytes'])}", number(one["seconds"]), stages]
        row.append(number(measured["subscriptions"] / one["seconds"]))
        row.append(number(sum(one["matching_bytes"]) / measured["subscriptions"]))
        rows.append([*row, number(sum(one["disk_bytes"]) / measured["subscriptions"])])
    head = ["index", "parts", "seconds", "stages, s", "subscriptions/s", "bytes mapped"]
    title = f"Building {measured['subscriptions']:,} subscriptions on Spark, bytes per subscription"
    return table(title, [*head, "bytes on disk"], rows)


def _scaling(parts: Mapping[str, Any]) -> str:
    found = {n: parts[n] for n in parts if re.fullmatch(r"scaling-\dx\d", n) and parts[n]["rates"]}
    names = list(dict.fromkeys(index for one in found.values() for index in one["rates"]))
    rows = []
    for index in names:
        measured = [one["rates"][index]["events_per_second"] for one in found.values()]
        rows.append([index, *map(number, measured), number(measured[-1] / measured[0])])
    head = ["index", *(f"{o['executors']} of {o['cores']} core" for o in found.values())]
    made = table("Executors, events/s", [*head, "last / first"], rows)
    told = (
        "Executors of a `local-cluster` are JVMs of their own with their own Python workers, on the"
        " cores that the driver uses too; an executor's JVM and its Python worker already overlap."
    )
    return f"{made}\n\n{told}" if made else ""


def _memory(parts: Mapping[str, Any]) -> str:
    rows = []
    for name, one in parts.items():
        if not re.fullmatch(r"scaling-\dx\d", name):
            continue
        for index, ids in one["indexes"].items():
            held = one["memory"].get(index)
            if not held:
                continue
            own = sum(held["index_bytes"].get(each, 0) for each in ids)
            workers = held["workers"]
            row = [index, str(workers), number(own / MEBI), number(held["rest_bytes"] / MEBI)]
            rows.append([*row, number(held["rest_bytes"] / max(1, workers) / MEBI)])
    rows.sort(key=lambda row: row[0])
    head = ["index", "workers", "index MiB", "the rest MiB", "the rest per worker MiB"]
    made = table("Resident memory of the Python workers of one host", head, rows)
    told = (
        f"Proportional set sizes after matching `{LARGE}`, summed over the workers: a page of the"
        " index that all of them map counts once, so the index column is what the host holds of it,"
        " however many workers there are. `the rest` is each worker's own: interpreter, libraries,"
        " compiled kernels, batches."
    )
    return f"{made}\n\n{told}" if made else ""


def _simulation(parts: Mapping[str, Any]) -> str:
    if "simulate" not in parts:
        return ""
    return "\n\n".join(
        [
            "## Routing on skewed data, simulated",
            "![Fan-out and balance](spark_routing.svg)",
            derived.simulation_table(parts["simulate"]),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
