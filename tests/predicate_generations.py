"""A predicate index whose version says what it holds, for writers that are killed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from bittern.literature.pb_tree.predicate_file import PredicateFile
from predicate_oracle import OPERATORS, Oracle

PAGE_BYTES = 512


CACHE_BYTES = 128 * PAGE_BYTES


def create(path: Path, kind: str = "integer") -> PredicateFile:
    return PredicateFile.create(path, kind, page_bytes=PAGE_BYTES, cache_bytes=CACHE_BYTES)


def reopen(path: Path, *, writable: bool = True) -> PredicateFile:
    return PredicateFile.open(path, writable=writable, cache_bytes=CACHE_BYTES)


def insert(file: PredicateFile, predicates: Any) -> None:
    file.insert_many(*zip(*predicates, strict=True))


VALUES = [value / 2 for value in range(-3, 130)]
"""Every constant of the scenario, what lies in between, and beyond."""


GENERATIONS = 4


def generation(number: int) -> list[tuple[str, int, int]]:
    """The predicates that commit ``number`` adds, and GENERATIONS commits later takes out.

    One constant has so many sids that they take several pages, below a fork.
    """
    chance = random.Random(number)
    several = [
        (chance.choice(OPERATORS), chance.randrange(60 if number % 2 else 4), number % 997)
        for _ in range(70)
    ]
    return several + [(">=", 30, chance.randrange(10_000)) for _ in range(50)]


def found_at(version: int) -> list[list[int]]:
    """What version finds for VALUES; the first version of an index has nothing."""
    oracle = Oracle()
    for number in range(max(3, version - GENERATIONS + 1), version + 1):
        oracle.insert_many(generation(number))
    return [oracle.search(value) for value in VALUES]


def next_generation(file: PredicateFile) -> None:
    """What a writer does again and again: one step from a version to the next."""
    number = file.version + 1
    insert(file, generation(number))
    if number - GENERATIONS >= 3:
        assert file.delete_many(*zip(*generation(number - GENERATIONS), strict=True)).all()
    file.commit()
    assert file.version == number
