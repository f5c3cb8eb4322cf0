"""Building indexes: ``python -m benchmarks.building [--subscriptions N] [NAME ...]``.

What it takes to read the texts of a workload and to compile them, in CPU time of one thread, for
each subscription; and the most memory that this took above what the table of texts occupies::

    workload   subscriptions   read us   one by one us   compile us   peak bytes

"One by one" is how few subscriptions are read; the same answers come out of both.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import threading
from pathlib import Path
from time import sleep, thread_time
from typing import TYPE_CHECKING, Any

import bittern
from benchmarks import workloads
from bittern.engine import subscriptions
from bittern.language.shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

NAMES = ("shop", "equality", "wide", "strings", "ads", "nested")
#: Of some, fewer tell as much: their texts are long, or almost each has a shape of its own.
SHARE = {"ads": 4, "nested": 10, "strings": 10, "wide": 4}
_PAGE = 4096


class Peak(threading.Thread):
    """Looks at the memory of this process until it is told to stop."""

    def __init__(self) -> None:
        super().__init__(name="peak", daemon=True)
        self.start_bytes = self.most_bytes = resident()
        self._is_asked = threading.Event()

    def run(self) -> None:
        """Every few milliseconds, which the steps of a large build are longer than."""
        while not self._is_asked.is_set():
            self.most_bytes = max(self.most_bytes, resident())
            sleep(0.003)

    def stop(self) -> int:
        """The most memory above that of the start."""
        self._is_asked.set()
        self.join()
        return self.most_bytes - self.start_bytes


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def read(texts: pa.Table, *, by_columns: bool) -> float:
    """CPU seconds to read."""
    usual = subscriptions.MANY
    subscriptions.MANY = usual if by_columns else sys.maxsize
    try:
        start = thread_time()
        subscriptions.read_subscriptions(texts, Shapes(), on_error="raise", progress=None)
        return thread_time() - start
    finally:
        subscriptions.MANY = usual


def measure(name: str, n: int) -> dict[str, Any]:
    """All figures of one workload."""
    workload = dataclasses.replace(workloads.get(name), n_subscriptions=n)
    warm = dataclasses.replace(workload, n_subscriptions=3000)
    bittern.Index.build(warm.subscriptions())  # kernels, and what is loaded once
    texts = workload.subscriptions()
    peak = Peak()
    peak.start()
    start = thread_time()
    index = bittern.Index.build(texts)
    built = thread_time() - start
    most = peak.stop()
    del index
    by_columns = min(read(texts, by_columns=True) for _ in range(2))
    one_by_one = read(texts.slice(0, max(3000, n // 10)), by_columns=False)
    return {
        "read": by_columns / n * 1e6,
        "one_by_one": one_by_one / max(3000, n // 10) * 1e6,
        "compile": max(0.0, built - by_columns) / n * 1e6,
        "peak": most / n,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.building", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", default=list(NAMES), metavar="NAME")
    parser.add_argument("--subscriptions", type=int, default=200_000)
    options = parser.parse_args(arguments)
    print("workload   subscriptions   read us   one by one us   compile us   peak bytes")
    for name in options.names:
        n = options.subscriptions // SHARE.get(name, 1)
        found = measure(name, n)
        line = f"{name:<10} {n:>13,} {found['read']:>9.2f} {found['one_by_one']:>15.2f}"
        print(f"{line} {found['compile']:>12.2f} {found['peak']:>12.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
