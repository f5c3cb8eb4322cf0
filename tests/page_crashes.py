"""Losses of power: what a writer does to its file, and what a crash may leave of it.

What the disk has after a loss of power: everything up to the last fsync, and of what was written
after it any part, in sectors of 512 bytes or torn anywhere.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bittern.literature.pb_tree.disk import Disk

SECTOR = 512


Operation = tuple[str, int, bytes]


class Recorder:
    """What a writer does to its file, in order; nothing waits for the disk."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.operations: list[Operation] = []
        write, cut = Disk.write, Disk.cut

        def recorded_write(disk: Disk, offset: int, data: bytes) -> None:
            self.operations.append(("write", offset, data))
            write(disk, offset, data)

        def recorded_cut(disk: Disk, size: int) -> None:
            self.operations.append(("cut", size, b""))
            cut(disk, size)

        patch.setattr(Disk, "write", recorded_write)
        patch.setattr(Disk, "cut", recorded_cut)
        patch.setattr(Disk, "sync", lambda _: self.operations.append(("sync", 0, b"")))

    def start(self) -> None:
        self.operations.clear()


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(monkeypatch)


def apply(image: bytearray, operation: Operation) -> None:
    kind, offset, data = operation
    if kind == "cut":
        del image[offset:]
    elif kind == "write":
        image.extend(bytes(max(0, offset + len(data) - len(image))))
        image[offset : offset + len(data)] = data


def torn(operation: Operation, chance: random.Random) -> list[Operation]:
    """Parts of a write that may be all that reached the disk."""
    kind, offset, data = operation
    if kind != "write":
        return [] if chance.random() < 0.5 else [operation]
    if chance.random() < 0.5:
        end = chance.randrange(len(data) + 1)
        return [("write", offset, data[:end])]
    sectors = range(0, len(data), SECTOR)
    kept = [start for start in sectors if chance.random() < 0.5]
    return [("write", offset + start, data[start : start + SECTOR]) for start in kept]


def after_crash(
    before: bytes, operations: list[Operation], last: int, chance: random.Random, style: str
) -> bytes:
    """The file if the power goes just after the ``last`` operations; the next may have begun."""
    image = bytearray(before)
    syncs = [i for i in range(last) if operations[i][0] == "sync"]
    safe = syncs[-1] + 1 if syncs else 0
    for operation in operations[:safe]:
        apply(image, operation)
    for operation in operations[safe:last]:
        choice = chance.random() if style == "dropped" else 0.0
        parts = [operation] if choice < 0.4 else torn(operation, chance) if choice < 0.7 else []
        for part in parts:
            apply(image, part)
    if last < len(operations):
        for part in torn(operations[last], chance):
            apply(image, part)
    return bytes(image)


def meta_version(operation: Operation) -> int | None:
    kind, offset, data = operation
    return int.from_bytes(data[8:16], "little") if kind == "write" and offset < 8192 else None


def possible(operations: list[Operation], last: int, version: int) -> set[int]:
    """The versions that may be the newest after such a crash: the one on disk, one in writing."""
    on_disk = written = version
    for operation in operations[:last]:
        written = meta_version(operation) or written
        if operation[0] == "sync":
            on_disk = written
    for operation in operations[last : last + 1]:
        written = meta_version(operation) or written
    return {on_disk, written}


def start(script: str, path: Path) -> Any:
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise AssertionError(process.communicate()[1])
    return process
