"""Compile every kernel ahead of its first call: ``python -m bittern.precompile``.

A kernel is compiled where it is first called, and kept on disk. Processes that start together on an
empty cache (the workers of a Spark executor, two halves of a test run) therefore compile the same
kernels at the same time, and none of them gains from there being several. Here each module is
compiled by one process and all cores have something to do::

    literature/sorted_lists/lists.py ──►  process 1 ──►  __pycache__/sorted_lists._insert-….nbc
    stabbing/interval_nodes.py ─►  process 2 ──►  __pycache__/interval_nodes.put-….nbc

All kernels take two minutes of one core, or two seconds where the cache holds them already. An
image for executors runs this once after installing Bittern, so that its workers compile nothing.
"""

from __future__ import annotations

import importlib
import logging
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bittern.jit import Kernel

_PACKAGE = Path(__file__).parent
#: The rooms that have kernels.
_ROOMS = ("model", "stabbing", "matching", "literature", "engine", "history")


def modules() -> list[str]:
    """The modules that may hold kernels, long ones first: the last to end should be a short one."""
    files = [path for room in _ROOMS for path in (_PACKAGE / room).rglob("*.py")]
    files.sort(key=lambda path: path.stat().st_size, reverse=True)
    names = [path.relative_to(_PACKAGE).with_suffix("").parts for path in files]
    return [".".join(("bittern", *parts)) for parts in names]


def kernels(module: str) -> Iterator[Kernel]:
    """The kernels that a module defines; those that it imports are another module's."""
    for value in vars(importlib.import_module(module)).values():
        if isinstance(value, Kernel) and value.__wrapped__.__module__ == module:
            yield value


def compile_module(module: str) -> int:
    """Compile or load the kernels of a module; returns how many there are."""
    found = list(kernels(module))
    for each in found:
        each.prepare()
    return len(found)


def _be_quiet() -> None:
    logging.getLogger("bittern").setLevel(logging.ERROR)  # who asks to compile need not be told


def compile_all(processes: int | None = None) -> int:
    """Compile the kernels of all modules, on all cores; returns how many there are."""
    context = multiprocessing.get_context("spawn")
    # Or a process looks for modules in the working directory first, where anybody may write.
    before, os.environ["PYTHONSAFEPATH"] = os.environ.get("PYTHONSAFEPATH"), "1"
    try:
        with ProcessPoolExecutor(processes or os.cpu_count(), context, _be_quiet) as pool:
            return sum(pool.map(compile_module, modules()))
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


if __name__ == "__main__":
    print(f"bittern: {compile_all()} kernels are compiled")  # noqa: T201
