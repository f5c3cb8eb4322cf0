"""Processes that die at a point of their own choosing, for tests of what they leave behind."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol


def die_before(last: int, operations: Sequence[str]) -> None:
    """From now on, kill this process just before the ``last``-th of these functions of ``os``."""
    seen = 0

    def counting(real: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return call

    for name in operations:
        setattr(os, name, counting(getattr(os, name)))


class Call(Protocol):
    """A function that is called in a process of its own; gives how that ended."""

    def __call__(self, *arguments: str | int) -> int: ...


@contextlib.contextmanager
def forks_of(function: Callable[..., None]) -> Iterator[Call]:
    """Call a test module's function in forks of a process that has imported it and done no more.

    A test that kills at any point does so a hundred times, and what takes long is the importing.
    """
    with subprocess.Popen(
        [sys.executable, __file__, inspect.getfile(function), function.__name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        asked, told = server.stdin, server.stdout

        def call(*arguments: str | int) -> int:
            asked.write(json.dumps(arguments) + "\n")
            asked.flush()
            return int(told.readline())

        yield call


def _serve(file: str, name: str) -> None:
    sys.path.insert(0, str(Path(file).parent))
    call = getattr(importlib.import_module(Path(file).stem), name)
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            call(*json.loads(line))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
