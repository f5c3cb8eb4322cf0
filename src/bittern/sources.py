"""What a compiled function was made from: a hash of all the files that it depends on.

A kernel that is kept on disk is stale once its own file changes, or the file of any function or
constant of the same package that it uses, however deep.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def digest_of(function: Callable[..., Any]) -> bytes:
    """A hash of the files of all functions and constants that a function uses."""
    files: set[str] = set()
    seen: set[Any] = set()
    waiting: list[Any] = [function]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        files.add(each.__code__.co_filename)
        for name in each.__code__.co_names:
            value = each.__globals__.get(name)
            if hasattr(value, "py_func"):  # a function of ours, compiled into this one
                waiting.append(value.py_func)
            files.update(_origins(each.__module__, name))
    whole = hashlib.blake2b()
    for path in sorted(files):
        whole.update(_digest_of_file(path))
    return whole.digest()


def _origins(module: str, name: str) -> Iterator[str]:
    """The files of the modules of the same package that a module has a name from."""
    while origin := _imports(module).get(name):
        module = origin
        yield from _file(module)


def _file(module: str) -> list[str]:
    """The file of a module, if it has one."""
    path = getattr(sys.modules.get(module), "__file__", None)
    return [path] if path else []


@functools.cache
def _imports(module: str) -> dict[str, str]:
    """Which names a module imports from which module of its own package."""
    package = re.escape(module.partition(".")[0])
    source = "".join(Path(path).read_text(encoding="utf-8") for path in _file(module))
    lines = re.findall(rf"^from ({package}[\w.]*) import (\([^)]*\)|.*)", source, re.MULTILINE)
    return {
        name: origin
        for origin, names in lines
        for name in re.findall(r"\w+", names)
        if origin in sys.modules
    }


@functools.cache
def _digest_of_file(path: str) -> bytes:
    return hashlib.blake2b(Path(path).read_bytes()).digest()
