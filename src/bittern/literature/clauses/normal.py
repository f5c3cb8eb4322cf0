"""Normal forms: classes as clauses of predicates, the form that the papers' indexes are made for.

A *predicate* is what an expression asks of one channel: a union of disjoint intervals of cells, or
"missing". ``IN``, ``!=`` and ``NOT BETWEEN`` are one predicate each. In *disjunctive* form a clause
is a conjunction of predicates in distinct channels, and a class holds if any of its clauses does;
in *conjunctive* form a clause is a disjunction, and all of them have to hold::

    (a = 1 OR a = 4) AND (b < 3 OR c = 2)

    DNF   {a: [1,1] [4,4]   b: [..2]}            CNF   {a: [1,1] [4,4]}
          {a: [1,1] [4,4]   c: [2,2]}                  {b: [..2]   c: [2,2]}

Classes are filled in by form (``literature/clauses/forms.py``). An expression goes where it has
fewer predicates; one with too many clauses in either form is refused: ``pivot`` needs no normal
form.

Cost: O(predicates), and for each form the product of what its clauses multiply out to.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s, ranges, starts_of
from bittern.jit import i4r, i4w, i8r, i8w, inline, kernel, tuple_type, void
from bittern.literature.clauses.forms import MOST_CLAUSES, MOST_PREDICATES, Form, by_form, form_of
from bittern.matching.contract import Refused
from bittern.model.classes.classes import Classes

_TOO_LARGE = (
    f"in normal form it has more than {MOST_CLAUSES:,} clauses "
    f"or more than {MOST_PREDICATES:,} predicates; "
    'strategy="pivot" indexes it as it is'
)


class Clauses(NamedTuple):
    """Clauses of predicates; those of one class stand together, classes ascending."""

    owners: Int32s  # the class of each clause
    starts: Int64s  # where its predicates begin, and the end
    channels: Int32s  # of each predicate
    interval_starts: Int64s  # where its intervals begin, and the end
    lows: Int32s  # disjoint and ascending within a predicate; -1 alone is "missing"
    highs: Int32s

    def __len__(self) -> int:
        return len(self.owners)


CLAUSES = tuple_type(Clauses, i4r, i8r, i4r, i8r, i4r, i4r)


class NormalForms(NamedTuple):
    """Each class is in one of the three, or in none if it can never hold."""

    dnf: Clauses
    cnf: Clauses
    always: Int32s  # classes that hold where something is missing, and nothing else says where


def normal_forms(classes: Classes, *, cnf: bool) -> NormalForms:
    """All classes in normal form, in conjunctive form only if ``cnf`` says that it may be.

    ``Refused`` names the classes whose normal form is too large.
    """
    forms, refused = forms_and_refusals(classes, cnf=cnf)
    if refused:
        raise Refused(refused)
    return forms


def forms_and_refusals(classes: Classes, *, cnf: bool) -> tuple[NormalForms, dict[int, str]]:
    """The same of all classes that have a normal form, and why the others have none.

    For a strategy that has more reasons to refuse classes, and names them all at once.
    """
    plain = np.flatnonzero(classes.structure_of == 0).astype(np.int32)
    parts = [_plain_conjunctions(classes, plain)]
    conjunctive: list[Clauses] = []
    nested = np.flatnonzero(classes.structure_of != 0).astype(np.int32)
    refused: dict[int, str] = {}
    for own in by_form(classes, nested):
        form = form_of(classes, int(own[0]), cnf=cnf)
        if form is None:
            refused |= dict.fromkeys(own.tolist(), _TOO_LARGE)
        else:
            filled = _filled(classes, own, form)
            (conjunctive if form.conjunctive else parts).append(filled)
    dnf, always = _without_always(_without_never(_joined(parts), conjunctive=False))
    forms = NormalForms(dnf, _without_never(_joined(conjunctive), conjunctive=True), always)
    return forms, refused


def _plain_conjunctions(classes: Classes, own: Int32s) -> Clauses:
    """One clause per class, one interval per predicate, as the tests stand."""
    counts = classes.counts[own].astype(np.int64)
    tests = ranges(classes.starts[own], counts)
    starts = starts_of(counts)
    lows, highs = classes.lows[tests], classes.highs[tests]
    full = (lows <= highs).astype(np.int64)  # an empty test has no interval
    interval_starts = starts_of(full)
    kept = full.astype(np.bool_)
    return Clauses(own, starts, classes.channels[tests], interval_starts, lows[kept], highs[kept])


@inline
def _unite(tests: Any, first: Any, last: Any, base: Any, lows: Any, highs: Any, out: Any) -> Any:
    """The intervals of some tests of one channel into ``out`` (rows of low, high), ascending."""
    n = 0
    for t in range(first, last):
        low, high = lows[base + tests[t]], highs[base + tests[t]]
        if low > high:
            continue
        at = n
        while at > 0 and out[2 * (at - 1)] > low:
            out[2 * at], out[2 * at + 1] = out[2 * (at - 1)], out[2 * (at - 1) + 1]
            at -= 1
        out[2 * at], out[2 * at + 1] = low, high
        n += 1
    kept = 0
    for i in range(n):
        if kept and out[2 * i] <= out[2 * kept - 1] + 1:
            out[2 * kept - 1] = max(out[2 * kept - 1], out[2 * i + 1])
        else:
            out[2 * kept], out[2 * kept + 1] = out[2 * i], out[2 * i + 1]
            kept += 1
    return kept


@inline
def _intersect(one: Any, n_one: Any, other: Any, n_other: Any, out: Any) -> Any:
    """What two ascending lists of intervals have in common."""
    i, k, n = 0, 0, 0
    while i < n_one and k < n_other:
        low, high = max(one[2 * i], other[2 * k]), min(one[2 * i + 1], other[2 * k + 1])
        if low <= high:
            out[2 * n], out[2 * n + 1] = low, high
            n += 1
        if one[2 * i + 1] < other[2 * k + 1]:
            i += 1
        else:
            k += 1
    return n


@kernel(void, i4r, i4r, i8r, i4r, i4r, i8r, i8r, i4w, i4w, i8w)
def _fill(
    lows: Any,
    highs: Any,
    starts: Any,
    own: Any,
    tests: Any,
    group_starts: Any,
    predicate_starts: Any,
    out_lows: Any,
    out_highs: Any,
    interval_counts: Any,
) -> None:
    """The intervals of each predicate of each class, one after the other."""
    room = 2 * len(tests) + 2
    held = np.empty(room, dtype=np.int32)
    group = np.empty(room, dtype=np.int32)
    spare = np.empty(room, dtype=np.int32)
    n_predicates = len(predicate_starts) - 1
    at = 0
    for k in range(len(own)):
        base = starts[own[k]]
        for p in range(n_predicates):
            n = 0
            for g in range(predicate_starts[p], predicate_starts[p + 1]):
                if g == predicate_starts[p]:
                    n = _unite(tests, group_starts[g], group_starts[g + 1], base, lows, highs, held)
                    continue
                n_group = _unite(
                    tests, group_starts[g], group_starts[g + 1], base, lows, highs, group
                )
                n = _intersect(held, n, group, n_group, spare)
                held[: 2 * n] = spare[: 2 * n]
            for i in range(n):
                out_lows[at], out_highs[at] = held[2 * i], held[2 * i + 1]
                at += 1
            interval_counts[k * n_predicates + p] = n


def _filled(classes: Classes, own: Int32s, form: Form) -> Clauses:
    """The clauses of all classes of one form."""
    predicates = [predicate for clause in form.clauses for predicate in clause]
    groups = [group for predicate in predicates for group in predicate]
    tests = np.array([test for group in groups for test in group], dtype=np.int32)
    group_starts = np.cumsum([0, *map(len, groups)], dtype=np.int64)
    predicate_starts = np.cumsum([0, *map(len, predicates)], dtype=np.int64)
    out = np.empty((2, len(own) * len(tests)), dtype=np.int32)
    counts = np.zeros(len(own) * len(predicates), dtype=np.int64)
    _fill(
        classes.lows,
        classes.highs,
        classes.starts,
        own,
        tests,
        group_starts,
        predicate_starts,
        out[0],
        out[1],
        counts,
    )
    n = int(counts.sum())
    first_tests = np.array([predicate[0][0] for predicate in predicates], dtype=np.int64)
    channels = classes.channels[(classes.starts[own][:, None] + first_tests).reshape(-1)]
    sizes = np.array([len(clause) for clause in form.clauses], dtype=np.int64)
    return Clauses(
        np.repeat(own, len(sizes)),
        np.cumsum(np.concatenate(([0], np.tile(sizes, len(own)))), dtype=np.int64),
        channels,
        np.cumsum(np.concatenate(([0], counts)), dtype=np.int64),
        out[0, :n].copy(),
        out[1, :n].copy(),
    )


def _joined(parts: list[Clauses]) -> Clauses:
    """Clauses of all parts, in order of their classes."""
    none32, zero = np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    if not parts:
        return Clauses(none32, zero, none32, zero, none32, none32)
    if len(parts) == 1:
        return parts[0]
    owners = np.concatenate([part.owners for part in parts])
    sizes = np.concatenate([np.diff(part.starts) for part in parts])
    counts = np.concatenate([np.diff(part.interval_starts) for part in parts])
    whole = Clauses(
        owners,
        np.cumsum(np.concatenate((zero, sizes))),
        np.concatenate([part.channels for part in parts]),
        np.cumsum(np.concatenate((zero, counts))),
        np.concatenate([part.lows for part in parts]),
        np.concatenate([part.highs for part in parts]),
    )
    return take(whole, np.argsort(owners, kind="stable"))


def take(clauses: Clauses, which: npt.NDArray[Any]) -> Clauses:
    """Some clauses, in this order. O(intervals taken)."""
    sizes = np.diff(clauses.starts)[which]
    predicates = ranges(clauses.starts[:-1][which], sizes)
    return _take_predicates(clauses, clauses.owners[which], sizes, predicates)


def _take_predicates(
    clauses: Clauses, owners: Int32s, sizes: Int64s, predicates: Int64s
) -> Clauses:
    """Clauses of these sizes, of these predicates."""
    zero = np.zeros(1, dtype=np.int64)
    counts = np.diff(clauses.interval_starts)[predicates]
    intervals = ranges(clauses.interval_starts[:-1][predicates], counts)
    return Clauses(
        owners,
        np.cumsum(np.concatenate((zero, sizes))),
        clauses.channels[predicates],
        np.cumsum(np.concatenate((zero, counts))),
        clauses.lows[intervals],
        clauses.highs[intervals],
    )


def _without_never(clauses: Clauses, *, conjunctive: bool) -> Clauses:
    """Leave out what cannot hold: a predicate without an interval never does.

    One of them makes a conjunction false; a disjunction does without it, but if nothing is left
    of a disjunction, its class is false.
    """
    empty = np.diff(clauses.interval_starts) == 0
    if not empty.any():
        return clauses
    clause_of = np.repeat(np.arange(len(clauses)), np.diff(clauses.starts))
    if not conjunctive:
        dead = np.bincount(clause_of[empty], minlength=len(clauses)) > 0
        return take(clauses, np.flatnonzero(~dead))
    left = np.bincount(clause_of[~empty], minlength=len(clauses))
    clauses = _take_predicates(clauses, clauses.owners, left, np.flatnonzero(~empty))
    false = np.unique(clauses.owners[left == 0])
    return take(clauses, np.flatnonzero(~np.isin(clauses.owners, false)))


def _without_always(clauses: Clauses) -> tuple[Clauses, Int32s]:
    """Take the classes out that have a clause of nothing but "missing"."""
    clause_of = np.repeat(np.arange(len(clauses)), np.diff(clauses.starts))
    lookup = clauses.lows[clauses.interval_starts[:-1]] >= 0
    found = np.bincount(clause_of[lookup], minlength=len(clauses)) > 0
    if found.all():
        return clauses, np.empty(0, dtype=np.int32)
    always = np.unique(clauses.owners[~found])
    return take(clauses, np.flatnonzero(~np.isin(clauses.owners, always))), always
