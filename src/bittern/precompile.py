"""Compile kernels ahead of their first call, several at once: ``bittern warm-up``.

A kernel is compiled where it is first called, and kept on disk. Processes that start together on an
empty cache (the workers of a Spark executor, two halves of a test run) would therefore compile the
same kernels at the same time. Here each kernel is compiled by one process, and all cores have
something to do. One process hands out what is to be compiled, a module or a kernel at a time::

    this process  ── bittern.model.strings ───────────────►  process 1  ──►  strings.….nbc
                  ◄── how many kernels it has ─────────────
                  ── bittern.matching.pivot.filing:_file ─►  process 2  ──►  filing.….nbc
                  ◄── how many kernels it has ─────────────

Those processes end when their input does, so that none is left when this one is killed.

All kernels take one to two minutes of one core, or some seconds where the cache holds them already.
"""

from __future__ import annotations

import gc
import importlib
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bittern.errors import BitternError
from bittern.first_use import FIRST_USE, compile_quietly, n_cores
from bittern.processes import start_module

if TYPE_CHECKING:
    from bittern.jit import Kernel  # which takes half a second to import

_PACKAGE = Path(__file__).parent
#: The rooms that have kernels.
_ROOMS = ("terms", "model", "stabbing", "matching", "literature", "engine", "history")
#: More processes than this do not make a first use faster.
_FIRST_USE_PROCESSES = 4


def modules() -> list[str]:
    """The modules that may hold kernels, long ones first: the last to end should be a short one."""
    files = [path for room in _ROOMS for path in (_PACKAGE / room).rglob("*.py")]
    files.sort(key=lambda path: path.stat().st_size, reverse=True)
    names = [path.relative_to(_PACKAGE).with_suffix("").parts for path in files]
    return [".".join(("bittern", *parts)) for parts in names]


def kernels(module: str) -> Iterator[Kernel]:
    """The kernels that a module defines; those that it imports are another module's."""
    from bittern.jit import Kernel  # noqa: PLC0415

    for value in vars(importlib.import_module(module)).values():
        if isinstance(value, Kernel) and value.__wrapped__.__module__ == module:
            yield value


def kernel_named(name: str) -> Kernel:
    """The kernel that ``module:function`` means."""
    module, _, function = name.partition(":")
    found: Kernel = getattr(importlib.import_module(module), function)
    return found


def compile_module(module: str) -> int:
    """Compile or load the kernels of a module; returns how many there are."""
    found = list(kernels(module))
    for each in found:
        each.prepare()
    return len(found)


def compile_all(
    processes: int | None = None, progress: Callable[[str, int, int], None] | None = None
) -> int:
    """Compile the kernels of all modules, on all cores; returns how many there are."""
    return _compile(modules(), processes or n_cores(), progress)


def compile_first_use(
    processes: int | None = None, progress: Callable[[str, int, int], None] | None = None
) -> int:
    """Compile what a build and a match by default need; returns how many kernels there are."""
    return _compile(FIRST_USE, processes or n_cores(), progress)


# The process that hands out


def _compile(
    items: Sequence[str],
    processes: int,
    progress: Callable[[str, int, int], None] | None,
    parent: IO[str] | None = None,
) -> int:
    """Have other processes compile all items; whatever happens, none of them stays.

    Stops when there is something to read from the ``parent``: it has ended.
    """
    workers: list[subprocess.Popen[str]] = []
    try:
        with selectors.DefaultSelector() as answers:
            if parent is not None:
                answers.register(parent, selectors.EVENT_READ)
            for _ in range(min(processes, len(items))):
                workers.append(_start_worker())
                answers.register(_pipe(workers[-1].stdout), selectors.EVENT_READ, workers[-1])
            return _hand_out(items, workers, answers, progress)
    finally:
        for worker in workers:
            worker.kill()
        for worker in workers:
            with worker:  # closes its pipes, and waits
                pass


def _start_worker() -> subprocess.Popen[str]:
    return start_module(
        "bittern.precompile",
        ["worker"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # what goes wrong is an answer
        text=True,
    )


def _hand_out(
    items: Sequence[str],
    workers: list[subprocess.Popen[str]],
    answers: selectors.BaseSelector,
    progress: Callable[[str, int, int], None] | None,
) -> int:
    waiting = list(reversed(items))
    for worker in workers:
        _give(worker, waiting.pop())
    n_kernels = n_done = 0
    while n_done < len(items):
        for key, _ in answers.select():
            worker = key.data
            if worker is None:
                raise BitternError("the process that wanted kernels compiled has ended")
            answer = _pipe(worker.stdout).readline().strip()
            if not answer.isdecimal():
                raise BitternError(f"cannot compile: {answer or 'a process has ended'}")
            n_kernels, n_done = n_kernels + int(answer), n_done + 1
            if progress is not None:
                progress("compiling", n_done, len(items))
            if waiting:
                _give(worker, waiting.pop())
    return n_kernels


def _give(worker: subprocess.Popen[str], item: str) -> None:
    try:
        _pipe(worker.stdin).write(f"{item}\n")
        _pipe(worker.stdin).flush()
    except BrokenPipeError:
        raise BitternError("cannot compile: a process has ended") from None


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


# The processes that compile


def _work() -> None:
    """Compile what is asked for until nothing is any more."""
    compile_quietly()
    gc.set_threshold(100_000)  # compiling makes many objects, and most of them last
    for item in iter(sys.stdin.readline, ""):
        try:
            answer: Any = _compile_item(item.strip())
        except Exception as error:  # noqa: BLE001 (whatever it is, it is told)
            answer = " ".join(f"{item.strip()}: {type(error).__name__}: {error}".split())
        print(answer, flush=True)  # noqa: T201


def _compile_item(item: str) -> int:
    if ":" not in item:
        return compile_module(item)
    kernel_named(item).prepare()
    return 1


def _main(role: str, package: str = "", *items: str) -> None:
    if role == "worker":
        _work()
    elif Path(package) == _PACKAGE.resolve():  # else this is another Bittern than the one that asks
        _compile(items, min(n_cores(), _FIRST_USE_PROCESSES), None, sys.stdin)


if __name__ == "__main__":
    _main(*sys.argv[1:])
