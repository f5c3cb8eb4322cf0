"""Measure workloads: ``python -m benchmarks.run [workload ...] [--small] [--peers]``.

For every workload, in this order::

    texts --build--> index --save--> snapshot          seconds, bytes per subscription
    10,000 events --match-->                           median and best of the passes, one thread
    the same events as JSON text, one by one (200)     where the workload has them / always
    a part of the subscriptions --scan-->              our vectorised brute force
    the same events --DuckDB, Polars-->                with --peers

Every other way of matching must count the same matches per event as the batch did; a difference
ends the run. The result is a JSON file, from which ``benchmarks.report`` writes the tables, and
a summary on the screen. Garbage collection is off while the clock runs.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import bittern
from benchmarks import churn, report, workloads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from benchmarks.draw import Ints
    from benchmarks.peers import Peer

RESULTS = Path(__file__).parent / "results"
SINGLES = 200
SCAN_SUBSCRIPTIONS, SCAN_EVENTS = 20_000, 200
PEER_SECONDS = 10.0
PACKAGES = ("bittern", "numpy", "numba", "pyarrow", "duckdb", "polars")


class DisagreementError(Exception):
    """Two ways of matching the same events gave different matches."""


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for and write the JSON file."""
    options = _parser().parse_args(arguments)
    unknown = set(options.workloads) - set(workloads.NAMES)
    if unknown:
        _parser().error(f"no workload {', '.join(sorted(unknown))}: {', '.join(workloads.NAMES)}")
    scale: workloads.Scale = "small" if options.small else "full"
    result: dict[str, Any] = {"environment": environment(), "scale": scale, "workloads": {}}
    output = options.output or RESULTS / f"{result['environment']['date'].replace(':', '')}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    _load_kernels()
    for name in options.workloads or workloads.NAMES:
        workload = workloads.get(name, scale)
        print(f"{name}: {workload.n_subscriptions:,} subscriptions", file=sys.stderr, flush=True)
        result["workloads"][name] = measure(
            workload, batch=options.batches, repeat=options.repeat, peers=options.peers
        )
        # After every workload, so that a long run that stops early leaves what it has measured.
        output.write_text(json.dumps(result, indent=2) + "\n")
    print(report.tables(result))
    print(f"written to {output}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("workloads", nargs="*", metavar="workload", help="default: all of them")
    parser.add_argument("--small", action="store_true", help="the same shapes, small")
    parser.add_argument("--batches", type=int, default=10_000, help="events per batch")
    parser.add_argument("--repeat", type=int, default=5, help="passes over the batch")
    parser.add_argument("--peers", action="store_true", help="run DuckDB and Polars too")
    parser.add_argument("--output", type=Path, help="the JSON file to write")
    return parser


def environment() -> dict[str, Any]:
    """Everything that a figure depends on and the workload does not say."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_average": list(os.getloadavg()),
        "versions": versions,
    }


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _load_kernels() -> None:
    """Build and match something small, so that the first workload does not time the loading."""
    small = workloads.get("shop", "small")
    index = bittern.Index.build(small.subscriptions().slice(0, 100), sample=small.sample(10))
    bittern.Matcher(index).match(small.events(10))


def measure(
    workload: workloads.Workload, *, batch: int, repeat: int, peers: bool
) -> dict[str, Any]:
    """Every measurement of one workload, as it goes into the JSON file."""
    subscriptions = workload.subscriptions()
    index, build_seconds = timed(
        lambda: bittern.Index.build(subscriptions, sample=workload.sample())
    )
    events = workload.events(batch)
    matcher = bittern.Matcher(index)
    # Other events than the timed ones: it compiles and touches, and answers nothing in advance.
    matcher.match(workload.events(min(batch, 1_000), seed=2))
    counts, passes = match_passes(matcher, events, repeat)
    result: dict[str, Any] = {
        "notes": workload.notes,
        "subscriptions": workload.n_subscriptions,
        "events": batch,
        "build_seconds": build_seconds,
        "build_stages": dict(getattr(index, "timings", {})),
        "bytes_per_subscription": index.nbytes / max(len(index), 1),
        **_snapshot(index),
        "batch": _rates(passes, batch),
        "statistics": _per_event(getattr(matcher, "last_statistics", {}), counts),
        "single": _rates([_singles(matcher, events, counts)], min(SINGLES, batch)),
        "load_average": list(os.getloadavg()),
    }
    texts = workload.events_json(batch)
    if texts is not None:
        json_counts, json_passes = match_passes(matcher, texts, repeat)
        agree("JSON text", json_counts, counts)
        result["json"] = _rates(json_passes, batch)
    result["scan"] = _scan(subscriptions, events)
    if workload.name == "churn":
        result["churn"] = churn.measure(index, workload, events)
    if peers:
        result["peers"] = _peers(workload, events, counts)
    return result


def match_passes(matcher: Any, events: Any, repeat: int) -> tuple[Ints, list[float]]:
    """Give matches per event, and the seconds of every pass over the same batch."""
    passes = []
    for _ in range(repeat):
        matches, seconds = timed(lambda: matcher.match(events))
        passes.append(seconds)
    return np.asarray(matches.counts), passes


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Give result and seconds of one call."""
    with _collection_off():
        start = perf_counter()
        result = work()
        return result, perf_counter() - start


@contextlib.contextmanager
def _collection_off() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def agree(what: str, found: Ints, expected: Ints) -> None:
    """Raise unless both counted the same matches for every event."""
    if np.array_equal(found, expected):
        return
    event = int(np.flatnonzero(found != expected)[0])
    raise DisagreementError(
        f"{what} counts {found[event]} matches for event {event}, the batch {expected[event]};"
        f" {found.sum()} against {expected.sum()} in all"
    )


def _rates(passes: list[float], events: int) -> dict[str, Any]:
    median = statistics.median(passes)
    return {
        "events": events,
        "passes_seconds": passes,
        "microseconds_per_event": median / events * 1e6,
        "best_microseconds_per_event": min(passes) / events * 1e6,
        "events_per_second": events / median,
    }


def _per_event(last: dict[str, Any], counts: Ints) -> dict[str, float]:
    """Per event, whatever totals the matcher keeps of its last batch."""
    events = max(len(counts), 1)
    totals = {name: value for name, value in last.items() if isinstance(value, int | float)}
    return {**{name: value / events for name, value in totals.items()}, "matches": counts.mean()}


def _snapshot(index: Any) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot"
        _, seconds = timed(lambda: index.save(path))
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files)
    return {
        "save_seconds": seconds,
        "snapshot_bytes_per_subscription": size / max(len(index), 1),
    }


def _singles(matcher: Any, events: pa.Table, counts: Ints) -> float:
    """Seconds for the first events as batches of one."""
    singles = [events.slice(i, 1).combine_chunks() for i in range(min(SINGLES, len(events)))]
    matcher.match(singles[0])
    found, seconds = timed(lambda: [matcher.match(single) for single in singles])
    together = np.concatenate([np.asarray(matches.counts) for matches in found])
    agree("event at a time", together, counts[: len(singles)])
    return seconds


def _scan(subscriptions: pa.Table, events: pa.Table) -> dict[str, Any]:
    """Brute force over a part that it can manage, beside the pivot index of the same part."""
    part, few = subscriptions.slice(0, SCAN_SUBSCRIPTIONS), events.slice(0, SCAN_EVENTS)
    rates = {}
    expected: Ints | None = None
    for strategy in ("pivot", "scan"):
        matcher = bittern.Matcher(bittern.Index.build(part, strategy=strategy))
        matcher.match(few.slice(0, 1))
        counts, passes = match_passes(matcher, few, 3)
        if expected is not None:
            agree(strategy, counts, expected)
        expected = counts
        rates[strategy] = _rates(passes, len(few))
    return {"subscriptions": len(part), **rates}


def _peers(workload: workloads.Workload, events: pa.Table, counts: Ints) -> dict[str, Any]:
    from benchmarks import peers

    conjunctions = workload.conjunctions()
    if conjunctions is None or workload.name not in peers.FORMS:
        return {}
    form, result = peers.FORMS[workload.name], {}
    for kind in peers.PEERS:
        peer, load_seconds = timed(lambda kind=kind: kind(form, conjunctions))  # type: ignore[misc]
        measured = _as_many_as_fit(peer, events, counts)
        result[kind.name] = {"form": form, "load_seconds": load_seconds, **measured}
    return result


def _as_many_as_fit(peer: Peer, events: pa.Table, counts: Ints) -> dict[str, Any]:
    """Four times as many events each time, while the next step fits into the seconds allowed."""
    n = min(1, len(events))
    while True:
        found, seconds = timed(lambda n=n: peer.counts(events.slice(0, n)))  # type: ignore[misc]
        agree(peer.name, found, counts[:n])
        if n == len(events) or seconds * 5 > PEER_SECONDS:
            return _rates([seconds], n)
        n = min(4 * n, len(events))


if __name__ == "__main__":
    sys.exit(main())
