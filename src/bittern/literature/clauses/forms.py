"""Forms: how the tests of a nested expression make up the predicates of its clauses.

Which tests belong together depends only on the structure, on which of its tests share a channel and
on which are "missing". Forms are few, so that they are multiplied out one by one; classes of one
form are filled in together (``literature/clauses/normal.py``)::

    (T0 OR T1) AND (T2 OR T3), where T0 and T1 share a channel

    groups       {T0, T1}  {T2}  {T3}                what one OR asks of one channel
    disjunctive  [{T0, T1} {T2}]  [{T0, T1} {T3}]    two clauses of two predicates
    conjunctive  [{T0, T1}]  [{T2} {T3}]             fewer predicates: it is taken

Cost: for each form, what its clauses multiply out to, at most ``MOST_CLAUSES`` of
``MOST_PREDICATES`` in all, at each level of the expression.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bittern.arrays import Int32s
from bittern.jit import folded_product, i4r, i4w, i8r, kernel, u8r, u8w, void
from bittern.model.classes.classes import Classes
from bittern.model.classes.structure import OR, TEST
from bittern.model.hashing import hash_pair, secret_key

#: Clauses that one expression may multiply out to.
MOST_CLAUSES = 1024
#: Predicates of all of them together.
MOST_PREDICATES = 1 << 16
#: Clauses of one expression in conjunctive form: the bits of a word.
MOST_CNF_CLAUSES = 64

#: One channel's part of a clause: groups of test numbers, united within, intersected among them.
ClausePredicate: TypeAlias = tuple[tuple[int, ...], ...]
#: A clause while it is put together: groups of test numbers, each test in one place only.
_Clause: TypeAlias = tuple[tuple[int, ...], ...]
#: What tests share that go into one predicate: the channel, and whether they are "missing".
_Label: TypeAlias = tuple[int, bool]


class Form(NamedTuple):
    """How the tests of some classes make up clauses: predicates of test numbers."""

    conjunctive: bool
    clauses: list[list[ClausePredicate]]


@kernel(void, i4r, i4r, i8r, i4r, i4r, i4r, i4w, u8r, u8w)
def _hash_forms(
    channels: Any,
    lows: Any,
    starts: Any,
    counts: Any,
    structure_of: Any,
    own: Any,
    seen: Any,
    key: Any,
    hashes: Any,
) -> None:
    """Hash each class's structure, equalities among its channels, and which tests are "missing"."""
    for k in range(len(own)):
        c = own[k]
        start = starts[c]
        mixed = hash_pair(structure_of[c], counts[c], key)
        for i in range(counts[c]):
            channel = channels[start + i]
            first = i
            if channel >= 0:
                first = seen[channel]
                if not (0 <= first < i and channels[start + first] == channel):
                    first = i
                    seen[channel] = i
            label = np.uint64(2 * first + (1 if lows[start + i] < 0 else 0))
            mixed = folded_product(mixed ^ label, key[2])
        hashes[k] = mixed


def by_form(classes: Classes, own: Int32s) -> list[Int32s]:
    """Classes that have the same form, together, in the order of the first of each.

    Forms with equal hashes are taken to be equal: the 64 bits have a secret key, so two forms with
    the same hash cannot be made on purpose, and hardly ever occur.
    """
    if not len(own):
        return []
    hashes = np.empty(len(own), dtype=np.uint64)
    seen = np.full(int(classes.channels.max(initial=0)) + 1, -1, dtype=np.int32)
    _hash_forms(
        classes.channels,
        classes.lows,
        classes.starts,
        classes.counts,
        classes.structure_of,
        own,
        seen,
        secret_key(),
        hashes,
    )
    order = np.argsort(hashes, kind="stable")
    cuts = np.flatnonzero(np.diff(hashes[order])) + 1
    firsts = np.concatenate(([0], cuts))
    together = np.split(own[order], cuts)
    return [together[i] for i in np.argsort(order[firsts])]


def form_of(classes: Classes, c: int, *, cnf: bool) -> Form | None:
    """The form of one class and of all like it; None if it is too large."""
    start, count = int(classes.starts[c]), int(classes.counts[c])
    channels = classes.channels[start : start + count].tolist()
    missing = (classes.lows[start : start + count] < 0).tolist()
    # A test that never holds may have no channel, and shares it with none.
    labels = [
        (channel if channel >= 0 else ~i, absent)
        for i, (channel, absent) in enumerate(zip(channels, missing, strict=True))
    ]
    disjunctive = _expanded(classes, c, labels, conjunctive=False)
    conjunctive = None
    if cnf and not any(missing):
        conjunctive = _expanded(classes, c, labels, conjunctive=True)
        if conjunctive is not None and len(conjunctive.clauses) > MOST_CNF_CLAUSES:
            conjunctive = None
    forms = [form for form in (disjunctive, conjunctive) if form is not None]
    return min(forms, key=lambda form: sum(map(len, form.clauses)), default=None)


def _expanded(classes: Classes, c: int, labels: list[_Label], *, conjunctive: bool) -> Form | None:
    """Multiply the structure of a class out; None if there are too many clauses.

    A clause is a set of groups; a group is the tests that one OR has in one channel, and so one
    literal. A disjunctive form adds clauses up at an OR and multiplies at an AND, a conjunctive
    one the other way round.
    """
    structures = classes.structures
    structure = int(classes.structure_of[c])
    first, last = (int(structures.node_starts[structure + k]) for k in (0, 1))
    operators = structures.operators[first:last].tolist()
    sizes = structures.sizes[first:last].tolist()
    test = len(labels)
    below: list[list[_Clause]] = [[] for _ in operators]
    for i in range(len(operators) - 1, -1, -1):  # children come after their parent
        if operators[i] == TEST:
            test -= 1
            below[i] = [((test,),)]
            continue
        children = []
        child = i + 1
        while child < i + sizes[i]:
            children.append(child)
            child += sizes[child]
        if operators[i] == OR:
            parts = _grouped([below[child] for child in children], operators, children, labels)
        else:
            parts = [below[child] for child in children]
        adds = (operators[i] == OR) != conjunctive
        combined = _added(parts) if adds else _multiplied(parts)
        if combined is None:
            return None
        below[i] = combined
    clauses = [
        _predicates(clause, labels, conjunctive=conjunctive)
        for clause in below[0]
        if conjunctive or not _contradicts(clause, labels)
    ]
    return Form(conjunctive, clauses)


def _grouped(
    parts: list[list[_Clause]],
    operators: list[int],
    children: list[int],
    labels: list[_Label],
) -> list[list[_Clause]]:
    """The children of an OR, those tests of it that share a channel as one group."""
    groups: dict[_Label, list[int]] = {}
    others = []
    for part, child in zip(parts, children, strict=True):
        if operators[child] == TEST:
            ((number,),) = part[0]
            groups.setdefault(labels[number], []).append(number)
        else:
            others.append(part)
    united: list[list[_Clause]] = [[(tuple(group),)] for group in groups.values()]
    return united + others


def _added(parts: list[list[_Clause]]) -> list[_Clause] | None:
    clauses = [clause for part in parts for clause in part]
    return clauses if _fits(len(clauses), sum(map(len, clauses))) else None


def _multiplied(parts: list[list[_Clause]]) -> list[_Clause] | None:
    """Each clause of a part joined with each of all others; those of one clause are joined once."""
    alone = [part[0] for part in parts if len(part) == 1]
    clauses: list[_Clause] = [tuple(group for clause in alone for group in clause)]
    for part in parts:
        if len(part) == 1:
            continue
        predicates = sum(map(len, clauses)) * len(part) + sum(map(len, part)) * len(clauses)
        if not _fits(len(clauses) * len(part), predicates):
            return None
        clauses = [one + other for one in clauses for other in part]
    return clauses


def _fits(clauses: int, predicates: int) -> bool:
    return clauses <= MOST_CLAUSES and predicates <= MOST_PREDICATES


def _contradicts(clause: _Clause, labels: list[_Label]) -> bool:
    """Whether a conjunction asks one channel both for a value and for none."""
    asked = {labels[group[0]] for group in clause}
    return any((channel, not missing) in asked for channel, missing in asked)


def _predicates(
    clause: _Clause, labels: list[_Label], *, conjunctive: bool
) -> list[ClausePredicate]:
    """The groups of a clause by channel: intersected in a conjunction, united in a disjunction."""
    by_channel: dict[_Label, list[tuple[int, ...]]] = {}
    for group in sorted(clause):
        by_channel.setdefault(labels[group[0]], []).append(group)
    if conjunctive:
        return [(tuple(test for g in groups for test in g),) for groups in by_channel.values()]
    return [tuple(groups) for groups in by_channel.values()]
