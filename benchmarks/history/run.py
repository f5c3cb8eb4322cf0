"""Measure subscriptions that look back: ``python -m benchmarks.history.run [--only P] [--small]``.

::

    whole       the book shop's mix beside the plan without an index and DuckDB; remembering
    documents   cost against the number of documents, for each sort of join predicate
    distinct    cost against the number of different join predicates, subscriptions fixed
    sharing     cost against the number of subscriptions that share one join predicate
    phases      joins first or constants first, and what is chosen; the pre-filter on and off
    append      documents on disk: keeping them, opening them again

One thread. Whatever is timed is also verified: pairs of event and subscription by nested loops over
all documents (``naive.py``), every match of the first part by DuckDB; a difference ends the run.
The JSON file is replaced after every part; ``benchmarks.history.report`` makes the page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.history import sweeps
from benchmarks.history.measure import (
    Scale,
    Setting,
    filled,
    load_kernels,
    pairs_of,
    ready,
    same_pairs,
)
from benchmarks.history.whole import whole
from benchmarks.run import RESULTS, environment, timed
from benchmarks.spark.session import progress
from bittern.history.history import History

OUTPUT = RESULTS / "history.json"
FULL = Scale(
    thin=1,
    subscriptions=100_000,
    documents=1_000_000,
    events=10_000,
    sizes=(0, 1_000, 10_000, 100_000, 1_000_000),
    of_a_sort=10_000,
    distinct=(10, 1_000, 100_000),
    sharing=(100, 1_000, 10_000, 100_000),
    phased=30_000,
    in_vain=(0.0, 0.5, 0.9, 0.99),
    seconds=0.5,
    pairs=100,
    paper=(200, 3),
    constants_once=20,
    duck_seconds=10.0,
    singles=200,
)
SMALL = Scale(
    thin=100,
    subscriptions=1_000,
    documents=5_000,
    events=200,
    sizes=(0, 100, 5_000),
    of_a_sort=300,
    distinct=(1_000, 50_000),
    sharing=(100, 1_000),
    phased=1_000,
    in_vain=(0.0, 0.9),
    seconds=0.01,
    pairs=100,
    paper=(50, 2),
    constants_once=5,
    duck_seconds=5.0,
    singles=20,
)
#: How many documents are appended at a time, and how often; first one by one.
APPENDS = ((1_000, 20), (100_000, 3))


def append(setting: Setting) -> dict[str, Any]:
    """Documents in memory and on disk; a history of all of them opened again, and matched with."""
    scale, path = setting.scale, setting.folder / "all"
    costs = []
    for size, times in ((1, scale.singles), *APPENDS):
        n = min(len(setting.documents), size * times)
        tables = [setting.documents.slice(at, at + size).table() for at in range(0, n, size)]
        cost: dict[str, float] = {"at_a_time": min(size, n), "documents": n}
        for place in ("memory", "disk"):
            with History(setting.folder / f"of {size}" if place == "disk" else None) as history:
                _, seconds = timed(lambda h=history, t=tables: [h.append(each) for each in t])  # type: ignore[misc]
            cost[place] = seconds / n * 1e6
        costs.append(cost)
    subscriptions, index = setting.mix, setting.index
    one = setting.warm.slice(0, 1)
    with filled(setting.documents, path) as history, ready(index, history, one) as live:
        measured, found = setting.measure(live)
    n = measured["events"]
    batch = setting.events.slice(0, n).table()
    judged = setting.judge(subscriptions, found, n, "a history on disk")
    history, opening = timed(lambda: History(path))
    live, attaching = timed(lambda: ready(index, history, one))
    with history, live:
        again = pairs_of(live.match(batch, remember=False))
    same_pairs("a history opened again", again, found)
    return {
        "documents": len(setting.documents),
        "costs": costs,
        "bytes_per_document": _bytes(path) / len(setting.documents),
        "open_seconds": opening,
        "attach_seconds": attaching,
        "match": measured | {"verified": judged},
    }


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


PARTS: dict[str, Callable[[Setting], dict[str, Any]]] = {
    "whole": whole,
    "documents": sweeps.documents,
    "distinct": sweeps.distinct,
    "sharing": sweeps.sharing,
    "phases": sweeps.phases,
    "append": append,
}


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for and write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--small", action="store_true", help="everything, but little of it")
    parser.add_argument("--output", type=Path, help=f"the JSON file (results/{OUTPUT.name})")
    options = parser.parse_args(arguments)
    small = OUTPUT.with_name("history-small.json")
    output = options.output or (small if options.small else OUTPUT)
    output.parent.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {
        "environment": environment(),
        "scale": "small" if options.small else "full",
        "parts": {},
    }
    load_kernels()
    with tempfile.TemporaryDirectory(prefix="bittern-history-") as folder:
        setting = Setting(SMALL if options.small else FULL, Path(folder))
        for name in options.only:
            progress(f"{name} ...")
            began = perf_counter()
            result["parts"][name] = PARTS[name](setting)
            progress(f"{name}: {perf_counter() - began:.1f} s")
            output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
