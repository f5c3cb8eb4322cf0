"""Repeat the papers' experiments: ``python -m benchmarks.papers.run [--only fig17 ...] [--small]``.

Every experiment gives points, which go into one JSON file; ``benchmarks.papers.report`` makes the
page and its plots of that file. A small run has a file of its own. Seed 003 takes half an hour and
up to 20 GB: it is run by itself, ``--seed 003``, into ``results/seed_003.json``.

The file is replaced after every experiment, and what it has of other experiments stays, provided
that it was made at the same scale, by the same versions, on the same machine. Otherwise, ``--only``
is refused, and a run of everything replaces the file when it is complete, not before.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.metadata
import json
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.papers import peers, seed_000, seed_001, seed_003, seed_004
from benchmarks.papers.measure import progress
from benchmarks.run import RESULTS, environment

EXPERIMENTS = {
    **seed_000.EXPERIMENTS,
    **seed_001.EXPERIMENTS,
    **seed_004.EXPERIMENTS,
    **peers.EXPERIMENTS,
}
OUTPUT, OUTPUT_003 = RESULTS / "papers.json", RESULTS / "seed_003.json"
PACKAGES = ("ncls", "intervaltree")


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for and write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seed", choices=["003"], help="this seed by itself")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help="part of: " + ", ".join([*EXPERIMENTS, *seed_003.EXPERIMENTS]),
    )
    parser.add_argument("--small", action="store_true", help="the same shapes in seconds")
    parser.add_argument(
        "--output", type=Path, help=f"the JSON file to write (results/{OUTPUT.name}, or its -small)"
    )
    options = parser.parse_args(arguments)
    experiments = seed_003.EXPERIMENTS if options.seed else EXPERIMENTS
    unknown = [part for part in options.only if not any(part in name for name in experiments)]
    if unknown:
        parser.error(f"no experiment is called {', '.join(unknown)}: {', '.join(experiments)}")
    chosen = [
        name
        for name in experiments
        if not options.only or any(part in name for part in options.only)
    ]
    usual = OUTPUT_003 if options.seed else OUTPUT
    output = options.output or (small_of(usual) if options.small else usual)
    result, at_once = _started(output, small=options.small, everything=not options.only)
    output.parent.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        progress(name)
        load, date = list(os.getloadavg()), dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        start = perf_counter()
        measured = experiments[name](small=options.small)
        measured |= {"date": date, "seconds": perf_counter() - start, "load_average": load}
        result["experiments"][name] = measured
        # After every experiment, so that a long run that stops early leaves what it has.
        part = output.with_name(f"{output.name}.part")
        part.write_text(json.dumps(result, indent=1) + "\n")
        if at_once or name == chosen[-1]:
            part.replace(output)
    progress(f"written to {output}")
    return 0


def small_of(path: Path) -> Path:
    """Where a small run writes, so that it replaces nothing that took long."""
    return path.with_name(f"{path.stem}-small{path.suffix}")


def _started(output: Path, *, small: bool, everything: bool) -> tuple[dict[str, Any], bool]:
    """Begin a result, with what the file there has, and say whether it may be replaced at once."""
    where = environment()
    where["versions"] |= {name: importlib.metadata.version(name) for name in PACKAGES}
    result: dict[str, Any] = {"environment": where, "scale": "small" if small else "full"}
    result["experiments"] = {}
    if not output.exists():
        return result, True
    earlier = json.loads(output.read_text())
    before, now = {**earlier, **earlier["environment"]}, {**result, **where}
    differing = [what for what in ("scale", "cpu", "versions") if before[what] != now[what]]
    if differing and not (everything and "scale" not in differing):
        raise SystemExit(
            f"{output} differs in {' and '.join(differing)} from this run:"
            " give another file with --output"
        )
    if not differing:
        result["experiments"] = earlier["experiments"]
    return result, not differing


if __name__ == "__main__":
    sys.exit(main())
