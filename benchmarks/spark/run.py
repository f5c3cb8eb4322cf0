"""Measure Bittern on Spark: ``python -m benchmarks.spark.run [--only PART ...] [--small]``.

Every part runs in a process of its own, so that it starts from nothing and what goes wrong in it is
its own: the error is then its result, and the others go on::

    stage           the match stage beside an identity stage       stage.py
    peers           what a Spark user writes today                 beside.py, peers.py
    writing         writing matches                                writing.py
    scaling-build   ten million subscriptions, whole and sharded   scaling.py
    scaling-1x1     one executor; -2x1 two; -2x2 for memory        (they need the build)
    simulate        routing on skewed data                         simulate.py

The JSON file is replaced after every part, and what it has of other parts stays, provided that it
was made at the same scale, by the same versions, on the same machine. ``--cache DIR`` keeps events
and indexes, which are otherwise made anew; ``benchmarks.spark.report`` makes the pages.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.run import RESULTS, environment
from benchmarks.spark.session import ROOT, Setting, progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OUTPUT = RESULTS / "spark.json"
PACKAGES = ("pyspark", "pandas")
#: A part that takes longer than this many seconds has failed.
PATIENCE = 900


def _stage(setting: Setting) -> dict[str, Any]:
    from benchmarks.spark import stage

    return stage.measure(setting)


def _peers(setting: Setting) -> dict[str, Any]:
    from benchmarks.spark import beside

    return beside.measure(setting)


def _writing(setting: Setting) -> dict[str, Any]:
    from benchmarks.spark import writing

    return writing.measure(setting)


def _scaling_build(setting: Setting) -> dict[str, Any]:
    from benchmarks.spark import scaling

    return scaling.measure_build(setting)


def _scaling(configuration: str, setting: Setting) -> dict[str, Any]:
    from benchmarks.spark import scaling

    return scaling.measure(setting, configuration)


def _simulate(setting: Setting) -> dict[str, Any]:
    from benchmarks.spark import simulate

    return simulate.measure(setting)


PARTS: dict[str, Callable[[Setting], dict[str, Any]]] = {
    "stage": _stage,
    "peers": _peers,
    "writing": _writing,
    "scaling-build": _scaling_build,
    "scaling-1x1": partial(_scaling, "1x1"),
    "scaling-2x1": partial(_scaling, "2x1"),
    "scaling-2x2": partial(_scaling, "2x2"),
    "simulate": _simulate,
}


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for and write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="PART", help="part of: " + ", ".join(PARTS)
    )
    parser.add_argument("--small", action="store_true", help="everything, but little of it")
    parser.add_argument("--cache", type=Path, help="folder to keep events and indexes in")
    parser.add_argument("--output", type=Path, help=f"the JSON file (results/{OUTPUT.name})")
    parser.add_argument("--inside", help=argparse.SUPPRESS)  # measure one part in this process
    options = parser.parse_args(arguments)
    if options.inside:
        return _inside(options.inside, Setting(options.cache, options.small), options.output)
    unknown = [part for part in options.only if not any(part in name for name in PARTS)]
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}: {', '.join(PARTS)}")
    chosen = [
        name for name in PARTS if not options.only or any(part in name for part in options.only)
    ]
    output = options.output or (small_of(OUTPUT) if options.small else OUTPUT)
    result = _started(output, small=options.small)
    output.parent.mkdir(parents=True, exist_ok=True)
    failed = []
    with _folder(options.cache) as folder:
        for name in chosen:
            result["parts"][name] = _isolated(name, Setting(folder, options.small))
            if "error" in result["parts"][name]:
                failed.append(name)
            output.write_text(json.dumps(result, indent=1) + "\n")
    progress(f"written to {output}")
    if failed:
        progress(f"FAILED: {', '.join(failed)}")
    return 1 if failed else 0


def small_of(path: Path) -> Path:
    """Where a small run writes, so that it replaces nothing that took long."""
    return path.with_name(f"{path.stem}-small{path.suffix}")


@contextlib.contextmanager
def _folder(cache: Path | None) -> Iterator[Path]:
    if cache is not None:
        yield cache.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="bittern-bench-data-") as folder:
        yield Path(folder)


def _started(output: Path, *, small: bool) -> dict[str, Any]:
    """Begin a result, with what the file there has, if it can be compared with this run."""
    where = environment()
    where["versions"] |= {name: importlib.metadata.version(name) for name in PACKAGES}
    where["java"] = _java()
    result: dict[str, Any] = {"environment": where, "scale": "small" if small else "full"}
    result["parts"] = {}
    if output.exists():
        earlier = json.loads(output.read_text())
        before, now = {**earlier, **earlier["environment"]}, {**result, **where}
        if all(before.get(what) == now[what] for what in ("scale", "cpu", "versions", "java")):
            result["parts"] = earlier["parts"]
    return result


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "([^"]+)"', told)
    return version[1] if version else "unknown"


def _isolated(name: str, setting: Setting) -> dict[str, Any]:
    """Measure a part in a process of its own; an error is a result too."""
    progress(f"== {name}")
    date, load = dt.datetime.now(dt.UTC).isoformat(timespec="seconds"), list(os.getloadavg())
    start = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "result.json"
        command = [sys.executable, "-m", "benchmarks.spark.run", "--inside", name]
        command += ["--cache", str(setting.folder), "--output", str(told)]
        command += ["--small"] if setting.small else []
        # One copy of each index for this run, beside its other files.
        place = {"BITTERN_CACHE_DIR": str(setting.folder / "hosts")}
        try:
            subprocess.run(command, cwd=ROOT, env=os.environ | place, timeout=PATIENCE, check=False)
            measured = json.loads(told.read_text())
        except (subprocess.TimeoutExpired, OSError, ValueError) as problem:
            measured = {"error": f"{type(problem).__name__}: {problem}"}
    seconds = perf_counter() - start
    progress(f"== {name}: {seconds:.0f} s {measured.get('error', '').strip()[-300:]}")
    return {**measured, "date": date, "seconds": seconds, "load_average": load}


def _inside(name: str, setting: Setting, output: Path) -> int:
    """Measure a part here, and write what it gives, or what went wrong."""
    setting.folder.mkdir(parents=True, exist_ok=True)
    try:
        measured = PARTS[name](setting)
    except Exception:  # noqa: BLE001  whatever it is: the run goes on and tells
        measured = {"error": traceback.format_exc()}
        print(measured["error"], file=sys.stderr)
    output.write_text(json.dumps(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
