"""Alternatives: what is ORed at the top of an expression is filed piece by piece.

``(a = 1 AND b = 2) OR (c = 3 AND d = 4)`` holds if one of its *alternatives* does, so that each can
have its own pivot, inline test and rows, like a class: if it is found by ``c = 3``, only ``d = 4``
is left to verify. An alternative is a range of the class's tests with its own structure::

    class 5   OR (AND T T) (AND T T)      tests 40 41 42 43
    parts     40 41  and  42 43           two plain conjunctions; owners 5 5

An event may satisfy several alternatives of one class; ``once`` keeps one of them. Those that test
one channel for cells exclude each other (``IN``, ``!=``), and need no second look.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import ranges
from bittern.jit import i4w, i8, i8w, kernel, u1r
from bittern.matching.output import first_time
from bittern.model.classes.classes import Classes, StructureArrays
from bittern.model.classes.structure import AND, OR, TEST, Structure


class Alternatives(NamedTuple):
    """Classes, those with an OR at the top taken apart."""

    parts: Classes
    owners: npt.NDArray[np.int32]  # the class of each part
    repeats: npt.NDArray[np.uint8]  # of each class: may an event satisfy several parts?


def alternatives(classes: Classes) -> Alternatives | None:
    """Take all classes apart; None if none has an OR at the top. O(classes + structures)."""
    old = classes.structures
    first_nodes = old.node_starts[:-1]
    is_or = np.zeros(len(first_nodes), dtype=np.bool_)
    is_or[1:] = old.operators[first_nodes[1:]] == OR
    if not is_or[classes.structure_of].any():
        return None
    structures = [_structure(old, number) for number in range(1, len(is_or))]
    numbers = {structure.key: number for number, structure in enumerate(structures, start=1)}
    # Of each structure: its parts, as (first test, tests, structure).
    pieces: list[list[tuple[int, int, int]]] = [[(0, -1, 0)]]
    for number in range(1, len(is_or)):
        if is_or[number]:
            pieces.append(_parts(structures[number - 1], structures, numbers))
        else:
            pieces.append([(0, -1, number)])
    n_parts = np.array([len(each) for each in pieces], dtype=np.int64)
    firsts, counts, structure_of = np.array(
        [piece for each in pieces for piece in each], dtype=np.int64
    ).T
    piece = ranges(
        (np.cumsum(n_parts) - n_parts)[classes.structure_of], n_parts[classes.structure_of]
    )
    owners = np.repeat(np.arange(len(classes), dtype=np.int32), n_parts[classes.structure_of])
    whole = counts[piece] < 0
    parts = replace(
        classes,
        starts=classes.starts[owners] + firsts[piece],
        counts=np.where(whole, classes.counts[owners], counts[piece]).astype(np.int32),
        structure_of=structure_of[piece].astype(np.int32),
        structures=StructureArrays.of(structures),
    )
    return Alternatives(parts, owners, _repeats(parts, owners, len(classes)))


def _structure(arrays: StructureArrays, number: int) -> Structure:
    nodes = slice(*arrays.node_starts[number : number + 2])
    jumps = slice(*arrays.jump_starts[number : number + 2])
    return Structure(arrays.operators[nodes], arrays.sizes[nodes], arrays.jumps[jumps])


def _parts(
    whole: Structure, structures: list[Structure], numbers: dict[bytes, int]
) -> list[tuple[int, int, int]]:
    """The children of an OR; structures that are new are numbered and added."""
    parts = []
    child, test = 1, 0
    while child < len(whole.operators):
        end = child + int(whole.sizes[child])
        operators = whole.operators[child:end]
        n_tests = int(np.count_nonzero(operators == TEST))
        number = 0
        if n_tests < len(operators) and (operators[0] != AND or n_tests < len(operators) - 1):
            structure = Structure.below(whole, child)
            number = numbers.setdefault(structure.key, len(structures) + 1)
            if number > len(structures):
                structures.append(structure)
        parts.append((test, n_tests, number))
        test += n_tests
        child = end
    return parts


def _repeats(
    parts: Classes, owners: npt.NDArray[np.int32], n_classes: int
) -> npt.NDArray[np.uint8]:
    """Whether some parts of a class are not tests of one and the same channel."""
    single = parts.counts == 1
    single[single] = parts.lows[parts.starts[single]] >= 0  # "missing" may stand twice
    channels = np.full(len(owners), -1, dtype=np.int32)
    channels[single] = parts.channels[parts.starts[single]]
    first = np.searchsorted(owners, owners)  # parts of a class stand together
    differs = ~single | (channels != channels[first])
    several = np.bincount(owners, minlength=n_classes) > 1
    mixed = np.bincount(owners[differs], minlength=n_classes) > 0
    return (several & mixed).astype(np.uint8)


@kernel(i8, i4w, i4w, u1r, i4w, i4w, i8w)
def _keep_first(rows: Any, classes: Any, repeats: Any, stamps: Any, order: Any, counts: Any) -> Any:
    """Bring matches of classes that repeat into the order of events, and keep each once."""
    for i in range(len(rows)):
        if repeats[np.uint64(classes[i])]:
            counts[np.uint64(rows[i] + 1)] += 1
    for event in range(len(counts) - 1):
        counts[event + 1] += counts[event]
    for i in range(len(rows)):
        if repeats[np.uint64(classes[i])]:
            order[np.uint64(counts[np.uint64(rows[i])])] = i
            counts[np.uint64(rows[i])] += 1
    for k in range(counts[len(counts) - 1]):
        match = np.uint64(order[np.uint64(k)])
        if not first_time(stamps, classes[match], rows[match]):
            rows[match] = -1
    n = np.int64(0)
    for i in range(len(rows)):
        rows[np.uint64(n)], classes[np.uint64(n)] = rows[i], classes[i]
        n += np.int64(rows[i] >= 0)
    return n


def once(
    rows: npt.NDArray[np.int32],
    classes: npt.NDArray[np.int32],
    repeats: npt.NDArray[np.uint8],
    n_events: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Each (event, class) pair once; the arrays are rewritten. O(matches + events + classes)."""
    stamps = np.zeros(len(repeats), dtype=np.int32)
    order = np.empty(len(rows), dtype=np.int32)
    n = _keep_first(rows, classes, repeats, stamps, order, np.zeros(n_events + 1, dtype=np.int64))
    return rows[:n], classes[:n]
