"""The index on disk as a peer, and what it tells of its pages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.draw import Floats, Ints
from benchmarks.pb_tree.peers import Given, Int32s, Peer
from benchmarks.pb_tree.workloads import Predicates
from bittern.literature.pb_tree.predicate_file import PredicateFile
from bittern.literature.predicates.contract import OPERATORS

#: Memory for everything: more bytes than a predicate takes, and enough for a small index.
BYTES_EACH, LEAST_BYTES = 150, 16 << 20


class PBTree(Peer):
    """A ``PredicateFile`` whose cache holds everything."""

    name = "PB+tree"
    on_disk = True

    def __init__(self, given: Given) -> None:
        self.path = given.folder / "predicates.pb"
        everything = max(LEAST_BYTES, BYTES_EACH * len(given.predicates))
        self.file = PredicateFile.create(self.path, "float", cache_bytes=everything)
        self.insert_many(given.predicates)
        self.commit()

    def search(self, value: float) -> Int32s:  # noqa: D102
        return self.file.search(value)

    def search_batch(self, values: Floats) -> tuple[Ints, Int32s]:  # noqa: D102
        return self.file.search_batch(values)

    def insert(self, operator: int, constant: float, sid: int) -> None:  # noqa: D102
        self.file.insert(OPERATORS[operator], constant, sid)

    def delete(self, operator: int, constant: float, sid: int) -> None:  # noqa: D102
        self.file.delete(OPERATORS[operator], constant, sid)

    def insert_many(self, predicates: Predicates) -> None:  # noqa: D102
        self.file.insert_many(*predicates)

    def delete_many(self, predicates: Predicates) -> None:  # noqa: D102
        self.file.delete_many(*predicates)

    def commit(self) -> None:  # noqa: D102
        self.file.commit()

    @property
    def nbytes(self) -> int:  # noqa: D102
        return self.path.stat().st_size

    def close(self) -> None:  # noqa: D102
        self.file.close()


def reads(file: Any) -> int:
    """Pages that were read from the file so far."""
    return int(file.statistics()["page_reads"])


def adjusted(file: Any) -> int:
    """Leaves that were accessed to adjust pointers, by all insertions so far."""
    return int(file.statistics()["leaves_adjusted"])


def forget(path: Path) -> None:
    """Have the system drop what it holds of a file in memory."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
