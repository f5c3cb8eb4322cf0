"""Is it slower than before? ``python -m benchmarks.turns OTHER [workload ...] [--small]``.

OTHER is the folder of another version of the sources, such as the ``src`` of a clone of the last
release. Two processes hold the same subscriptions and events, one with these sources and one with
those, and match in turns, so that whatever else the machine does hits both alike::

    this     match        match  match        match
    other           match               match        ...      least and median of each, and ratios

What is timed is the CPU time of the thread that matches. Both must find the same matches.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import logging
import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import thread_time
from typing import Any

DEFAULT = ("shop", "dense", "equality", "ads")
ROOT = Path(__file__).parents[1]
OWN = ROOT / "src"


def serve(scale: str, n_events: int, names: list[str]) -> None:
    """One side: a line in is the name of a workload, a line out is what matching took and found."""
    logging.disable(logging.WARNING)
    import bittern
    from benchmarks import workloads

    held = {}
    for name in names:
        work = workloads.get(name, scale)
        matcher = bittern.Matcher(bittern.Index.build(work.subscriptions()))
        held[name] = matcher, work.events(n_events)
        matcher.match(held[name][1])
    print(json.dumps(str(Path(bittern.__file__).parents[1])), flush=True)
    gc.disable()
    for line in sys.stdin:
        matcher, events = held[line.strip()]
        begin = thread_time()
        matches = matcher.match(events)
        seconds = thread_time() - begin
        found = matches.to_arrow(flat=True)
        text = b"".join(found[name].to_numpy().tobytes() for name in found.column_names)
        print(json.dumps([seconds, hashlib.blake2b(text).hexdigest()]), flush=True)


class Side:
    """A process with the sources of one folder."""

    def __init__(self, source: Path, scale: str, n_events: int, names: list[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.turns", "serve", scale, str(n_events), *names],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        loaded = self._read()
        if Path(loaded) != source:
            raise SystemExit(f"{source} was asked for, and {loaded} was loaded")

    def match(self, name: str) -> tuple[float, str]:
        """The seconds of a match, and a digest of what was found."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        seconds, digest = self._read()
        return seconds, digest

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a side has ended: see above")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


def compare(other: Path, names: list[str], *, scale: str, n_events: int, rounds: int) -> None:
    """Print a line for each workload."""
    sides = [Side(source, scale, n_events, names) for source in (other, OWN)]
    try:
        for name in names:
            seconds: tuple[list[float], list[float]] = ([], [])
            digests = set()
            for turn in range(2 * rounds):
                which = turn % 2 ^ turn // 2 % 2  # a b b a a b b a: neither always comes first
                taken, digest = sides[which].match(name)
                seconds[which].append(taken)
                digests.add(digest)
            if len(digests) != 1:
                raise SystemExit(f"{name}: the two versions find other matches")
            micro = [[1e6 * each / n_events for each in side] for side in seconds]
            told = [
                f"{what.__name__} {what(before):.3f} -> {what(after):.3f} us/event "
                f"({what(after) / what(before) - 1:+.1%})"
                for before, after in [micro]
                for what in (min, statistics.median)
            ]
            print(f"{name:10}{told[0]}   {told[1]}", flush=True)
    finally:
        for side in sides:
            side.close()


def main() -> None:
    """Read the arguments and compare, or be a side."""
    if sys.argv[1:2] == ["serve"]:
        scale, n_events, *names = sys.argv[2:]
        serve(scale, int(n_events), names)
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turns", description=__doc__)
    parser.add_argument("other", type=Path, help="the folder of the other sources")
    parser.add_argument("workloads", nargs="*", default=list(DEFAULT))
    parser.add_argument("--small", action="store_true", help="a tenth of the subscriptions or less")
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    told = parser.parse_args()
    compare(
        told.other.resolve(),
        told.workloads,
        scale="small" if told.small else "full",
        n_events=told.events,
        rounds=told.rounds,
    )


if __name__ == "__main__":
    main()
