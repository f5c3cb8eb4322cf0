"""Measure what the units of search work cost: the constants of ``stabbing/measured.py``.

    python -m benchmarks.constants

Every structure is built, with a few of its parameters, over sets of intervals that differ in
number, domain and lengths; batches of 16,384 random values are searched, each once, and the
fastest counts. The work that ``stabbing/predict.py`` expects for each is known, so that the times
are a system of equations in the price of each unit: it is solved by least squares of logarithms,
twice as long being as wrong as half as long, for several sizes of the caches, of which the best
are taken. The script prints what to write down, and how far off predictions are.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from bittern.errors import OptionError
from bittern.stabbing import measured
from bittern.stabbing.estimate import Estimate, Work
from bittern.stabbing.predict import estimates
from bittern.stabbing.registry import STRUCTURES, structure
from bittern.stabbing.summary import Summary

SEED = 20040901
BATCH = 16_384
RUNS = 8
MOST_BYTES = 3 * 10**8
MOST_NANOSECONDS = 20_000
UNITS = [field.name for field in fields(Work)]
#: Intervals, domain and longest length (lengths are uniform from 1 on).
WORKLOADS = (
    (640_000, 1 << 20, 200),
    (640_000, 1 << 20, 1),
    (200_000, 1 << 20, 2000),
    (100_000, 1 << 16, 200),
    (100_000, 1 << 16, 10),
    (20_000, 1 << 18, 100),
    (10_000, 5_000, 100),
    (2_000, 2_000, 20),
)
PARAMETERS = (4, 16, 64, 256)


class Measured(NamedTuple):
    """One structure over one workload: its estimate and the nanoseconds per value it took."""

    workload: int
    estimate: Estimate
    nanoseconds: float


def intervals(n: int, domain: int, widest: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw intervals that begin anywhere and are 1 to ``widest`` cells long."""
    rng = np.random.default_rng(SEED)
    lows = rng.integers(0, domain, n, dtype=np.int32)
    highs = np.minimum(lows + rng.integers(0, widest, n, dtype=np.int32), domain - 1)
    return lows, highs.astype(np.int32)


def measure() -> list[Measured]:
    """Build and search everything that is neither too large nor too slow."""
    found = []
    for number, workload in enumerate(WORKLOADS):
        lows, highs = intervals(*workload)
        summary = Summary.of(lows, highs, workload[1])
        rng = np.random.default_rng(SEED)
        values = rng.integers(0, workload[1], (RUNS, BATCH), dtype=np.int32)
        for name in STRUCTURES:
            for each in estimates(name, summary):
                tried = {value for name, value in each.parameters.items() if name != "minimum"}
                wanted = tried <= set(PARAMETERS)
                small = each.bytes < MOST_BYTES and each.nanoseconds < MOST_NANOSECONDS
                if wanted and small:
                    found += measure_one(number, each, lows, highs, workload[1], values)
    return found


def measure_one(
    number: int,
    estimate: Estimate,
    lows: np.ndarray,
    highs: np.ndarray,
    domain: int,
    values: np.ndarray,
) -> list[Measured]:
    """Measure one structure; nothing if it refuses to be built."""
    ids = np.arange(len(lows), dtype=np.int32)
    try:
        index = structure(estimate.name).build(
            lows, highs, ids, domain=domain, **estimate.parameters
        )
    except OptionError:
        return []
    seconds = []
    for batch in values:
        started = time.perf_counter()
        index.stab_batch(batch)
        seconds.append(time.perf_counter() - started)
    return [Measured(number, estimate, min(seconds) / BATCH * 1e9)]


def work_again(found: list[Measured], summaries: list[Summary]) -> np.ndarray:
    """The work of everything measured, as estimated with the caches that are assumed now."""
    again = {
        (number, name, *each.parameters.values()): each.work
        for number, summary in enumerate(summaries)
        for name in STRUCTURES
        for each in estimates(name, summary)
    }
    keys = [(one.workload, one.estimate.name, *one.estimate.parameters.values()) for one in found]
    return np.array([[getattr(again[key], unit) for unit in UNITS] for key in keys])


def prices(work: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, float]:
    """Prices with the least sum of squared logarithms of predicted / measured, and that sum.

    Levenberg and Marquardt's steps in the logarithms of the prices, so that none gets below 0.
    """
    logs, damping = np.zeros(len(UNITS)), 1.0
    errors = np.log(work @ np.exp(logs) / times)
    for _ in range(300):
        costs = work * np.exp(logs)
        slopes = costs / costs.sum(axis=1)[:, None]
        square = slopes.T @ slopes + damping * np.eye(len(UNITS))
        tried = np.clip(logs - np.linalg.solve(square, slopes.T @ errors), -8, 8)
        found = np.log(work @ np.exp(tried) / times)
        if found @ found < errors @ errors:
            logs, errors, damping = tried, found, damping / 2
        else:
            damping *= 3
    return np.exp(logs), float(errors @ errors)


def main() -> None:
    """Measure, solve, and print the constants and how good they are."""
    found = measure()
    summaries = [Summary.of(*intervals(*workload), workload[1]) for workload in WORKLOADS]
    times = np.array([one.nanoseconds for one in found])
    solutions = []
    for cache, near in itertools.product(range(18, 25), range(14, 22)):
        measured.CACHE_BYTES, measured.NEAR_BYTES = 1 << cache, 1 << near
        work = work_again(found, summaries)
        solutions.append((prices(work, times), cache, near, work))
    (price, error), cache, near, work = min(solutions, key=lambda solution: solution[0][1])
    print(
        f"{len(found)} measurements, typically off by a factor of "
        f"{np.exp(np.sqrt(error / len(found))):.2f}\n"
    )
    print(f"CACHE_BYTES = 2**{cache}\nNEAR_BYTES = 2**{near}")
    for unit, nanoseconds in zip(UNITS, price, strict=True):
        print(f'    "{unit}": {nanoseconds:.2f},')
    print(f"\n{'structure':<15}{'measured':>9}{'predicted / measured':>34}")
    ratios = work @ price / times
    for name in STRUCTURES:
        own = ratios[[i for i, one in enumerate(found) if one.estimate.name == name]]
        if len(own):
            middle = np.exp(np.log(own).mean())
            print(f"{name:<15}{len(own):>9}{middle:>12.2f} ({own.min():.2f} to {own.max():.2f})")


if __name__ == "__main__":
    main()
