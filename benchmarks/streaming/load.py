"""What works on a running pipeline from outside, in processes of its own.

::

    python -m benchmarks.streaming.load produce FOLDER LOG RATE SECONDS   events, a file at a time
    python -m benchmarks.streaming.load change URL LOG RATE SECONDS N     subscriptions

Both keep to the clock: what is late is made up for. A log has a line of JSON for each file or
transaction, with the time at which it was there.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import bittern
from benchmarks.streaming import world

#: Files, and transactions, in a second.
PER_SECOND = 4


def produce(folder: Path, log: Path, rate: int, seconds: float, first: int = 0) -> None:
    """Write files of events into a folder, each by renaming it."""
    size = rate // PER_SECOND
    ahead = [world.events(first + size * at, size, at) for at in range(int(seconds * PER_SECOND))]
    with log.open("a") as out:
        began = time.monotonic()
        for at, events in enumerate(ahead):
            time.sleep(max(0.0, began + at / PER_SECOND - time.monotonic()))
            partial = folder / f".{at}.tmp"
            pq.write_table(events, partial)
            partial.rename(folder / f"{at:06d}.parquet")
            out.write(json.dumps({"file": at, "time": time.time(), "events": size}) + "\n")
            out.flush()


def change(url: str, log: Path, rate: int, seconds: float, n: int) -> None:
    """Add, replace, remove and disable subscriptions, a third of the changes each way."""
    size, draw = rate // PER_SECOND, random.Random(5)
    alive, added, turn = [f"s{number}" for number in range(n)], 0, 0
    with bittern.Catalog(url) as catalog, log.open("a") as out:
        began = time.monotonic()
        for at in range(int(seconds * PER_SECOND)):
            time.sleep(max(0.0, began + at / PER_SECOND - time.monotonic()))
            puts: dict[str, dict[str, Any]] = {}
            removes: set[str] = set()
            for _ in range(size):
                turn += 1
                kind = turn % 3
                if kind == 0:
                    added += 1
                    name = f"n{added}"
                    alive.append(name)
                else:
                    place = draw.randrange(len(alive))
                    name = alive[place]
                    if name in puts or name in removes:
                        continue
                    if kind == 2:
                        alive[place] = alive[-1]
                        alive.pop()
                        removes.add(name)
                        continue
                puts[name] = {"id": name, "expression": world.expression(turn, 1)}
            version = catalog.apply(puts=list(puts.values()), removes=sorted(removes))
            made = len(puts) + len(removes)
            out.write(json.dumps({"version": version, "time": time.time(), "changes": made}) + "\n")
            out.flush()


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    what, place, log, rate, seconds, *rest = arguments
    if what == "produce":
        produce(Path(place), Path(log), int(rate), float(seconds))
    else:
        change(place, Path(log), int(rate), float(seconds), int(rest[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
