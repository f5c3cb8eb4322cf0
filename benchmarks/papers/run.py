"""Repeat the papers' experiments: ``python -m benchmarks.papers.run [--only fig17 ...] [--small]``.

Every experiment gives points, which go into one JSON file; ``benchmarks.papers.report`` makes the
page and its plots of that file. With ``--only`` the other experiments of an earlier run stay in
the file, provided that it was made at the same scale, by the same versions, on the same machine.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.papers import peers, seed_000, seed_001, seed_004
from benchmarks.papers.measure import progress
from benchmarks.run import RESULTS, environment

EXPERIMENTS = {
    **seed_000.EXPERIMENTS,
    **seed_001.EXPERIMENTS,
    **seed_004.EXPERIMENTS,
    **peers.EXPERIMENTS,
}
OUTPUT = RESULTS / "papers.json"
PACKAGES = ("ncls", "intervaltree")


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for and write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="part of: " + ", ".join(EXPERIMENTS)
    )
    parser.add_argument("--small", action="store_true", help="the same shapes in seconds")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the JSON file to write")
    options = parser.parse_args(arguments)
    unknown = [part for part in options.only if not any(part in name for name in EXPERIMENTS)]
    if unknown:
        parser.error(f"no experiment is called {', '.join(unknown)}: {', '.join(EXPERIMENTS)}")
    chosen = [
        name
        for name in EXPERIMENTS
        if not options.only or any(part in name for part in options.only)
    ]
    result = _started(options.output, small=options.small, keep=bool(options.only))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        progress(name)
        load = list(os.getloadavg())
        start = perf_counter()
        measured = EXPERIMENTS[name](small=options.small)
        measured |= {"seconds": perf_counter() - start, "load_average": load}
        result["experiments"][name] = measured
        # After every experiment, so that a long run that stops early leaves what it has.
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    progress(f"written to {options.output}")
    return 0


def _started(output: Path, *, small: bool, keep: bool) -> dict[str, Any]:
    """Begin a result; with ``keep``, with the experiments of the file there if comparable."""
    where = environment()
    where["versions"] |= {name: importlib.metadata.version(name) for name in PACKAGES}
    result = {"environment": where, "scale": "small" if small else "full", "experiments": {}}
    if keep and output.exists():
        earlier = json.loads(output.read_text())
        for what in ("scale", "cpu", "versions"):
            if {**earlier, **earlier["environment"]}[what] != {**result, **where}[what]:
                raise SystemExit(
                    f"{output} differs in {what} from this run: give another file with --output"
                )
        result["experiments"] = earlier["experiments"]
    return result


if __name__ == "__main__":
    sys.exit(main())
