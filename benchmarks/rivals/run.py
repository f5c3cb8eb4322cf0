"""Bittern beside other engines: ``python -m benchmarks.rivals.run [--small]``; see the package.

For each workload and number of subscriptions, all that can express them match the same events in
turns::

    equality  100,000  event-ruler      one JSON text at a time
                       quamina          one JSON text at a time
                       bittern          JSON texts and mappings one at a time, and in lists

The answers are compared before anything is timed. Then come patterns (``benchmarks.patterns``,
beside RE2's set and Hyperscan) and wide ranges (``benchmarks.strategies``). The figures go to a
JSON file, from which ``benchmarks.rivals.report`` writes the page. ``make rivals`` does all of it.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import json
import logging
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import process_time, thread_time_ns
from typing import TYPE_CHECKING, Any

import bittern
from benchmarks import workloads
from benchmarks.rivals.engines import ENGINES, Running, patterns_of
from benchmarks.run import environment
from benchmarks.single import mappings, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WORKLOADS = ("equality", "shop", "dense", "optional")
SUBSCRIPTIONS = {"full": (10_000, 100_000, 1_000_000, 10_000_000), "small": (200, 1_000)}
#: Above so many, other engines take too long to load, or too much memory.
MOST_ELSEWHERE = 100_000
SIZES = (1, 2, 8, 32, 64, 128, 200, 256, 1_024)
OUTPUT = Path("benchmarks/results/rivals.json")


def timed(match: Callable[[Any], Any], given: Sequence[Any], n_events: int) -> float:
    """Microseconds of CPU time for each event."""
    begin = thread_time_ns()
    for each in given:
        match(each)
    return (thread_time_ns() - begin) / 1e3 / n_events


def compare(name: str, size: int, options: argparse.Namespace, *, curve: bool) -> dict[str, Any]:
    """All engines on so many subscriptions of a workload."""
    workload = dataclasses.replace(workloads.get(name, "full"), n_subscriptions=size)
    made = workload.conjunctions()
    assert made is not None, "rivals know conjunctions only"
    events = mappings(workload, options.events)
    lines = texts(workload, events)
    begin = process_time()
    index = bittern.Index.build(workload.subscriptions(), sample=workload.sample())
    found: dict[str, Any] = {"bittern": {"load_seconds": process_time() - begin}}
    match = bittern.Matcher(index).match
    ours = [match(line).subscriptions.tolist() for line in lines]
    running: list[Running] = []
    with contextlib.ExitStack() as ends, tempfile.TemporaryDirectory() as folder:
        for engine in ENGINES:
            can = name in engine.workloads and size <= options.most_elsewhere
            if can and engine.place.exists():
                running.append(Running(engine, patterns_of(made), lines, Path(folder)))
                ends.callback(running[-1].close)
        for each in running:
            if each.answers != [sorted(own) for own in ours]:
                raise SystemExit(f"{each.name} answers otherwise than Bittern on {name}")
            found[each.name] = {"load_seconds": each.load_seconds}
        taken = in_turns(running, ways_of(match, lines, events, curve=curve), options.rounds)
    for each in running:
        found[each.name]["microseconds"] = taken.pop(each.name)
    found["bittern"]["microseconds"] = taken
    matches = sum(map(len, ours)) / len(ours)
    print(f"{name:10}{size:>12,}  {json.dumps(found)}", flush=True)
    return {"workload": name, "subscriptions": size, "matches": matches, "engines": found}


def ways_of(
    match: Callable[[Any], Any], lines: Sequence[str], events: Sequence[Any], *, curve: bool
) -> dict[str, Callable[[], float]]:
    """What measures each of our ways: single events, and with ``curve`` lists of each size."""
    ways: dict[str, Callable[[], float]] = {}
    for form, given in (("json", lines), ("mapping", events)):
        ways[f"{form} 1"] = partial(timed, match, given, len(given))
        for n in SIZES[1:] if curve else ():
            lists = [given[i : i + n] for i in range(0, len(given) - n + 1, n)]
            if lists:
                ways[f"{form} {n}"] = partial(timed, match, lists, n * len(lists))
    return ways


def in_turns(
    running: Sequence[Running], ways: dict[str, Callable[[], float]], rounds: int
) -> dict[str, float]:
    """The median of each engine and each of our ways."""
    taken: dict[str, list[float]] = {}
    gc.disable()
    for _ in range(rounds):
        for each in running:
            taken.setdefault(each.name, []).append(each.match()[0])
        for way, measure in ways.items():
            taken.setdefault(way, []).append(measure())
    gc.enable()
    return {name: statistics.median(own) for name, own in taken.items()}


def told_by(module: str, *arguments: str) -> list[str]:
    """What another benchmark prints."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=True
    )
    print(done.stdout, flush=True)
    return done.stdout.splitlines()


def main(arguments: list[str] | None = None) -> int:
    """Measure everything that is asked for and write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--small", action="store_true", help="few subscriptions: does it run?")
    parser.add_argument("--events", type=int, default=4_096)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--subscriptions", help="numbers of them, with commas between")
    parser.add_argument("--most-elsewhere", type=int, default=MOST_ELSEWHERE)
    parser.add_argument("--patterns", action="store_true", help="patterns, too: minutes")
    parser.add_argument("--ranges", action="store_true", help="wide ranges, too: minutes")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    scale = "small" if options.small else "full"
    sizes = SUBSCRIPTIONS[scale]
    if options.subscriptions:
        sizes = tuple(int(each) for each in options.subscriptions.split(","))
    absent = [engine.name for engine in ENGINES if not engine.place.exists()]
    if absent:
        print(f"left out, as scripts/rivals.sh did not build them: {', '.join(absent)}")
    result: dict[str, Any] = {
        "scale": scale,
        "environment": environment(),
        "events": options.events,
    }
    # Batches of each size are measured once: where the others are, or at the largest number.
    shown = max((size for size in sizes if size <= options.most_elsewhere), default=sizes[-1])
    result["engines"] = [
        compare(name, size, options, curve=size == shown)
        for name in options.workloads
        for size in sizes
    ]
    if options.patterns:
        result["patterns"] = told_by("benchmarks.patterns", "--rivals")
    if options.ranges:
        result["ranges"] = told_by("benchmarks.strategies", *(["--small"] * options.small))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
