"""Stabbing indexes on the intervals that an engine files: build, bytes, search, change.

    python benchmarks/stabbing.py [--small]

All attributes share one axis of cells. ``shop`` has 20,000 attributes of 101 cells, 70 % points
and 30 % one-sided ranges; ``points`` has equalities alone; ``wide`` has 2 attributes of 1,000,000
cells with few ranges. A batch is 150,000 different values in ascending order. Best of several
runs, one thread.

``target`` is 60 ns per value and 1 per id. ``all levels`` repeats a search with masks that hide
nothing, to show what they save; ``copy`` is the cost of merely copying as many ids.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.stabbing.cei import CEI

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 20240229


def intervals(
    attributes: int, cells: int, n: int, ranges: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Points, and a share of ranges from the attribute's first cell or up to its last."""
    rng = np.random.default_rng(SEED)
    base = rng.integers(0, attributes, n) * cells
    cell = base + rng.integers(0, cells, n)
    kind = rng.random(n)
    lows = np.where(kind < ranges / 2, base, cell)
    highs = np.where((kind >= ranges / 2) & (kind < ranges), base + cells - 1, cell)
    return lows.astype(np.int32), highs.astype(np.int32), attributes * cells


def best(runs: int, call: Callable[[], Any]) -> float:
    """Seconds of the fastest of several runs."""
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def search_row(name: str, index: CEI, values: np.ndarray) -> None:
    """One line: what a batch costs, counting apart, sorted and not, with masks and without."""
    n = len(values)
    offsets, ids = index.stab_batch(values)
    shuffled = np.random.default_rng(SEED).permutation(values)
    masks = index.masks
    times = [
        best(7, lambda: index.locate_batch(values)),
        best(7, lambda: index.stab_batch(values)),
        best(3, lambda: index.stab_batch(shuffled)),
    ]
    index.masks = np.full_like(masks, (2 << index.bits) - 1)
    times.append(best(7, lambda: index.stab_batch(values)))
    index.masks = masks
    times.append(best(7, ids.copy))
    target = 60 + offsets[-1] / n
    cells = "".join(f"{seconds / n * 1e9:11.1f}" for seconds in times)
    print(f"{name:<22}{index.segment:>9}{offsets[-1] / n:>10.1f}{cells}{target:>11.1f}")


def build_row(name: str, lows: np.ndarray, highs: np.ndarray, domain: int) -> CEI:
    """One line: what building costs and what it leaves."""
    ids = np.arange(len(lows), dtype=np.int32)
    seconds = best(3, lambda: CEI.build(lows, highs, ids, domain=domain))
    index = CEI.build(lows, highs, ids, domain=domain)
    entries = index.statistics()["entries"] / len(lows)
    print(
        f"{name:<22}{index.segment:>9}{seconds:>10.3f}{entries:>18.2f}"
        f"{index.nbytes / len(lows):>16.1f}"
    )
    return index


def change_row(name: str, index: CEI, changes: list[tuple[int, int, int]]) -> None:
    """One line: the first insert, which copies the lists, then many, and their deletion."""

    def each(change: Callable[[int, int, int], None]) -> None:
        for low, high, number in changes:
            change(low, high, number)

    first = best(1, lambda: index.insert(0, 0, 0))
    inserted = best(1, lambda: each(index.insert)) / len(changes)
    deleted = best(1, lambda: each(index.delete)) / len(changes)
    times = "".join(f"{seconds * 1e6:>11.1f}" for seconds in (first, inserted, deleted))
    print(f"{name:<22}{times}{index.nbytes / 1e6:>11.1f}")


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description="Stabbing indexes: build, bytes, search, change")
    parser.add_argument("--small", action="store_true", help="a hundredth of the intervals")
    scale = 100 if parser.parse_args().small else 1
    workloads = {
        "shop 3,000,000": intervals(20_000 // scale, 101, 3_000_000 // scale, 0.3),
        "shop 750,000": intervals(20_000 // scale, 101, 750_000 // scale, 0.3),
        "points 3,000,000": intervals(20_000 // scale, 101, 3_000_000 // scale, 0.0),
        "wide 3,000,000": intervals(2, 1_000_000 // scale, 3_000_000 // scale, 0.00001 * scale),
    }
    compiled = CEI.build([0], [0], [0], domain=1)  # so that no row pays for compiling
    compiled.insert(0, 0, 1)
    compiled.delete(0, 0, 1)
    compiled.stab(0)
    rng = np.random.default_rng(SEED)

    print(
        f"{'build':<22}{'segment':>9}{'seconds':>10}{'entries/interval':>18}{'bytes/interval':>16}"
    )
    built = {name: build_row(name, *workload) for name, workload in workloads.items()}

    titles = ("count", "stab", "shuffled", "all levels", "copy", "target")
    print(f"\n{'search, ns per value':<22}{'segment':>9}{'ids/value':>10}", end="")
    print("".join(f"{title:>11}" for title in titles))
    for name, index in built.items():
        values = rng.choice(index.domain, min(150_000, index.domain // 2), replace=False)
        search_row(name, index, np.sort(values).astype(np.int32))
    lows, highs, domain = workloads["shop 750,000"]
    for segment in (1, 16, 128, 4096, 2**21):
        index = CEI.build(lows, highs, np.arange(len(lows)), domain=domain, segment=segment)
        values = rng.choice(domain, min(150_000, domain // 2), replace=False)
        search_row("shop 750,000", index, np.sort(values).astype(np.int32))

    print(f"\n{'changes, µs each':<22}{'first':>11}{'insert':>11}{'delete':>11}{'MB after':>11}")
    changes = [(int(lows[i]), int(highs[i]), i + len(lows)) for i in range(20_000 // scale)]
    change_row("empty", CEI.build([], [], [], domain=domain, segment=64), changes)
    change_row("shop 750,000", built["shop 750,000"], changes)


if __name__ == "__main__":
    main()
