"""Measure the predicate index on disk: ``python -m benchmarks.pb_tree.run [--only P] [--small]``.

::

    beside    search, insert, delete against n: SQLite, LMDB, Grouped Filter, red-black, Intervals
    growth    Table 1 of the paper: space, search, insert and delete as powers of n
    updates   Number_update: leaves that an insertion accesses to adjust pointers
    cache     an index larger than its cache: pages read and time per search

One thread. Whatever is timed is also verified: the number of ids of every value, their sum, and for
some values the ids, without an index (``truth.py``); a difference ends the run. The JSON file is
replaced after every part; ``benchmarks.pb_tree.report`` makes the page.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.pb_tree.beside import beside
from benchmarks.pb_tree.cache import cache
from benchmarks.pb_tree.growth import growth
from benchmarks.pb_tree.measure import Scale, Setting
from benchmarks.pb_tree.peers import Dlist, ISList, RedBlack
from benchmarks.pb_tree.updates import updates
from benchmarks.run import RESULTS, environment
from benchmarks.spark.session import progress

OUTPUT = RESULTS / "pb_tree.json"
FULL = Scale(
    thresholds=(10_000, 100_000, 1_000_000, 10_000_000),
    wide=(10_000, 100_000, 1_000_000),
    in_memory=1_000_000,
    slow_search=1_000_000,
    values=10_000,
    seconds=0.3,
    changes=2_000,
    commits=20,
    growth=(1_000, 4_000, 16_000, 64_000, 256_000, 1_024_000),
    growth_changes=100,
    growth_limits={ISList.name: 64_000, Dlist.name: 16_000, RedBlack.name: 256_000},
    update_sizes=(1_000, 10_000, 100_000, 1_000_000),
    update_n=100_000,
    cached=(1_000_000, 10_000_000),
    cache_shares=(1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01),
    cold_values=2_000,
)
SMALL = Scale(
    thresholds=(300, 1_000),
    wide=(300, 1_000),
    in_memory=1_000,
    slow_search=300,
    values=200,
    seconds=0.01,
    changes=40,
    commits=2,
    growth=(100, 300, 1_000),
    growth_changes=20,
    growth_limits={ISList.name: 300, Dlist.name: 300},
    update_sizes=(100, 1_000),
    update_n=1_000,
    cached=(100_000,),
    cache_shares=(1.0, 0.5, 0.1),
    cold_values=20,
)

PARTS: dict[str, Callable[[Setting], dict[str, Any]]] = {
    "beside": beside,
    "growth": growth,
    "updates": updates,
    "cache": cache,
}


def load_kernels(folder: Path) -> None:
    """Do everything once with little, so that no measurement includes loading or compiling."""
    few = dataclasses.replace(
        SMALL, thresholds=(100,), wide=(100,), in_memory=100, slow_search=100, growth=(100,)
    )
    setting = Setting(few, folder)
    beside(setting)
    growth(setting)


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for and write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pb_tree.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--small", action="store_true", help="everything, but little of it")
    parser.add_argument("--most", type=int, help="this n instead of every larger one")
    parser.add_argument("--output", type=Path, help=f"the JSON file (results/{OUTPUT.name})")
    options = parser.parse_args(arguments)
    whole = not options.small and options.most is None
    small = OUTPUT.with_name("pb_tree-small.json")
    output = options.output or (OUTPUT if whole else small)
    output.parent.mkdir(parents=True, exist_ok=True)
    scale = SMALL if options.small else FULL
    if options.most is not None:
        scale = up_to(scale, options.most)
    where = environment()
    where["versions"] |= {
        "lmdb": importlib.metadata.version("lmdb"),
        "sqlite": sqlite3.sqlite_version,
    }
    result: dict[str, Any] = {
        "environment": where,
        "scale": "full" if whole else "small",
        "sizes": dataclasses.asdict(scale),
        "parts": {},
    }
    with tempfile.TemporaryDirectory(prefix="bittern-pb-tree-") as folder:
        first = Path(folder) / "kernels"
        first.mkdir()
        load_kernels(first)
        setting = Setting(scale, Path(folder))
        for name in options.only:
            progress(f"{name} ...")
            began = perf_counter()
            result["parts"][name] = PARTS[name](setting)
            progress(f"{name}: {perf_counter() - began:.1f} s")
            output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def up_to(scale: Scale, most: int) -> Scale:
    """The same with no size above this one, which takes the place of larger ones."""
    names = ("thresholds", "wide", "growth", "update_sizes", "cached")
    kept = {
        name: tuple(dict.fromkeys(min(n, most) for n in getattr(scale, name))) for name in names
    }
    return dataclasses.replace(scale, **kept, update_n=min(most, scale.update_n))  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main())
