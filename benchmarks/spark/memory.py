"""Resident memory of Python workers, split in what they map of an index and the rest.

Linux tells it for every mapping of a process (``/proc/<pid>/smaps``). A page that k processes map
counts 1/k in each of them as *proportional* size, so the sum over the workers of a host is what
they hold together, and an index that all of them map counts once::

    7f01..-7f02..  r--s  .../9a58f9f8/index.heads.npy     Pss: 120 kB     index 9a58f9f8
    7f03..-7f04..  rw-p                                   Pss:  88 kB     the rest

Cost: some milliseconds for each process; the kernel walks its pages.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

_HEADER = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S{4} \S+ \S+ \d+ *(.*)$")
_PSS = re.compile(r"^Pss: +(\d+) kB$")
_INDEX = re.compile(r"/([^/]+)/[^/]+\.npy$")
REST = ""


def mapped(smaps: str) -> dict[str, int]:
    """Proportional bytes by the folder of the index that they are mapped from, or ``REST``."""
    found: dict[str, int] = defaultdict(int)
    owner = REST
    for line in smaps.splitlines():
        header = _HEADER.match(line)
        if header:
            index = _INDEX.search(header[1])
            owner = index[1] if index else REST
            continue
        size = _PSS.match(line)
        if size:
            found[owner] += int(size[1]) * 1024
    return dict(found)


def descendants(pid: int) -> list[int]:
    """Processes that this one started, and those that they started, and so on."""
    children: dict[int, list[int]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in parentheses, may hold anything; the parent is the second field after it.
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            children[parent].append(int(stat.parent.name))
    found, todo = [], [pid]
    while todo:
        own = children[todo.pop()]
        found += own
        todo += own
    return found


def workers_of(driver: int) -> dict[str, Any]:
    """What the Python workers below a driver hold together; a worker is who maps an index.

    What the driver itself has touched of an index counts to the index, being the same pages.
    """
    per_worker: list[int] = []
    indexes: dict[str, int] = defaultdict(int)
    for process in (driver, *descendants(driver)):
        folder = Path("/proc") / str(process)
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if process != driver and b"pyspark" not in (folder / "cmdline").read_bytes():
                continue
            sizes = mapped((folder / "smaps").read_text())
            rest = sizes.pop(REST, 0)
            if sizes and process != driver:
                per_worker.append(rest)
            for index, size in sizes.items():
                indexes[index] += size
    return {
        "workers": len(per_worker),
        "rest_bytes": sum(per_worker),
        "index_bytes": dict(sorted(indexes.items())),
    }
