"""How OpIndex files classes: pivots, and what goes into the lists of each pivot.

What has one entry in a pivot's counter array is a *filing*: a clause of a class in disjunctive form
(section 4.1 of seed 003), filed under its least frequent attribute, or a whole class in conjunctive
form, once under each attribute of its smallest clause (section 6.1)::

    a = 1 AND b <= 5                    pivot b, if it is rarer   needs 2 hits
    a = 1 AND (b <= 5 OR c = 2)         pivot a                   needs bits 0 and 1
    (a BETWEEN 1 AND 3 OR b = 2)        pivots a and b            needs bits 0 and 1:
                                        (a >= 1 OR b = 2) AND (a <= 3 OR b = 2)

Of equally frequent attributes, the pivot is the one whose predicate covers the least part of its
cells, since fewest events will touch the clause there; then the one of the lowest channel.

A basic predicate of a conjunction adds one hit. One of a conjunctive form sets the bit of its
clause; a clause in which a predicate has several counts is multiplied out, one bit for each choice
of counts, and what belongs to several bits is filed several times. Where that takes more than 64
bits, or all pivots together more than ``MOST_ENTRIES`` entries, the class is taken in disjunctive
form; where that takes more entries as well, it is refused.

All of this depends on the frequencies and the class alone, so that deleting finds what inserting
has filed.

Cost: O(basic predicates), times the pivots and choices of conjunctive forms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s, starts_of
from bittern.jit import (
    f8r,
    frozen,
    i4r,
    i4w,
    i8r,
    i8w,
    inline,
    kernel,
    tuple_type,
    u1w,
    void,
)
from bittern.literature.clauses.forms import MOST_PREDICATES
from bittern.literature.clauses.normal import CLAUSES, Clauses, forms_and_refusals, take
from bittern.literature.opindex.operators import BASIC, Basic, rewrite
from bittern.literature.opindex.space import Space
from bittern.matching.contract import Refused
from bittern.model.classes.classes import Classes

#: Bits of a class in conjunctive form: a word.
MOST_BITS = 64
#: Basic predicates of all filings of one class.
MOST_ENTRIES = MOST_PREDICATES
_TOO_MANY = (
    f"OpIndex would file more than {MOST_ENTRIES:,} basic predicates for it; "
    "the strategy pivot indexes it as it is"
)


class Filings(NamedTuple):
    """What is filed, those of one class next to each other."""

    owners: Int32s  # the class of each
    pivots: Int32s  # the channel that it is filed under
    needs: Int32s  # hits, or bits, that make it hold
    starts: Int64s  # where its basic predicates begin, and the end
    operators: npt.NDArray[np.uint8]  # of each basic predicate
    channels: Int32s
    keys: Int32s
    bits: Int32s  # the bit that it sets, or -1: it adds a hit

    @property
    def sizes(self) -> Int64s:
        """How many basic predicates each has."""
        return np.diff(self.starts)

    def entry_counts(self, n_classes: int) -> Int32s:
        """How many basic predicates all filings of each class have."""
        counts = np.bincount(self.owners, weights=self.sizes, minlength=n_classes)
        return counts.astype(np.int32)

    def n_several(self) -> int:
        """How many classes have several filings."""
        return int(np.count_nonzero(np.bincount(self.owners) > 1))


_FILED = tuple_type(Filings, i4w, i4w, i4w, i8w, u1w, i4w, i4w, i4w)


@inline
def _n_covered(clauses: Any, p: Any) -> Any:
    """How many cells a predicate covers."""
    n = np.int64(0)
    for i in range(clauses.interval_starts[p], clauses.interval_starts[p + 1]):
        n += np.int64(clauses.highs[i]) - clauses.lows[i] + 1
    return n


@kernel(void, CLAUSES, i4r, i4r, f8r, i4w, i4w)
def _choose_pivots(
    clauses: Any, n_counts: Any, bases: Any, frequencies: Any, pivots: Any, needs: Any
) -> None:
    """The channel that each conjunction is filed under, and the hits that it needs."""
    starts, channels = clauses.starts, clauses.channels
    for clause in range(len(pivots)):
        best = -1
        need = np.int32(0)
        for p in range(starts[clause], starts[clause + 1]):
            if n_counts[p] == 0:  # "missing"
                continue
            need += n_counts[p]
            if best < 0:
                best = p
                continue
            one, other = channels[p], channels[best]
            if frequencies[one] == frequencies[other]:
                cells_of_one = np.int64(bases[one + 1]) - bases[one]
                cells_of_other = np.int64(bases[other + 1]) - bases[other]
                part_of_one = _n_covered(clauses, p) * cells_of_other
                part_of_other = _n_covered(clauses, best) * cells_of_one
                if part_of_one < part_of_other or (part_of_one == part_of_other and one < other):
                    best = p
            elif frequencies[one] < frequencies[other]:
                best = p
        pivots[clause], needs[clause] = channels[best], need


def _file_conjunctions(clauses: Clauses, space: Space) -> Filings:
    """One filing for each clause in disjunctive form."""
    n, basic = len(clauses), _rewritten(clauses, space)
    pivots, needs = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    _choose_pivots(frozen(clauses), basic.n_counts, space.bases, space.frequencies, pivots, needs)
    return Filings(
        clauses.owners,
        pivots,
        needs,
        basic.starts[clauses.starts],
        basic.operators,
        np.repeat(clauses.channels, np.diff(basic.starts)),
        basic.keys,
        np.full(len(basic.keys), -1, dtype=np.int32),
    )


@kernel(void, i8r, CLAUSES, BASIC, f8r, i8w, i8w, i8w)
def _measure(
    class_starts: Any,
    clauses: Any,
    basic: Any,
    frequencies: Any,
    smallest: Any,
    bits: Any,
    sizes: Any,
) -> None:
    """Of each class its smallest clause, and how many bits and basic predicates it takes."""
    starts, channels, n_counts = clauses.starts, clauses.channels, basic.n_counts
    for c in range(len(class_starts) - 1):
        fewest, least = np.int64(-1), 0.0
        bits[c] = 0
        sizes[c] = 0
        for clause in range(class_starts[c], class_starts[c + 1]):
            size = starts[clause + 1] - starts[clause]
            total = 0.0
            choices = 1
            for p in range(starts[clause], starts[clause + 1]):
                total += frequencies[channels[p]]
                choices = min(choices * n_counts[p], MOST_BITS + 1)
            if fewest < 0 or size < fewest or (size == fewest and total < least):
                fewest, least = size, total
                smallest[c] = clause
            bits[c] += choices
            for p in range(starts[clause], starts[clause + 1]):
                sizes[c] += (basic.starts[p + 1] - basic.starts[p]) * (choices // n_counts[p])


@kernel(void, i8r, CLAUSES, BASIC, i8r, _FILED)
def _file_bits(class_starts: Any, clauses: Any, basic: Any, smallest: Any, filed: Any) -> None:
    """File each class under each channel of its smallest clause; owners and needs are there."""
    starts, channels, n_counts = clauses.starts, clauses.channels, basic.n_counts
    filing, n = 0, 0
    for c in range(len(class_starts) - 1):
        for pivot in range(starts[smallest[c]], starts[smallest[c] + 1]):
            filed.pivots[filing] = channels[pivot]
            filed.starts[filing] = n
            filing += 1
            first_bit = 0
            for clause in range(class_starts[c], class_starts[c + 1]):
                choices = 1
                for p in range(starts[clause], starts[clause + 1]):
                    choices *= n_counts[p]
                # A choice is a number whose digits are counts, one digit for each predicate.
                below = 1
                for p in range(starts[clause], starts[clause + 1]):
                    for i in range(basic.starts[p], basic.starts[p + 1]):
                        for choice in range(choices):
                            if choice // below % n_counts[p] == basic.counts[i]:
                                filed.operators[n] = basic.operators[i]
                                filed.channels[n] = channels[p]
                                filed.keys[n] = basic.keys[i]
                                filed.bits[n] = first_bit + choice
                                n += 1
                    below *= n_counts[p]
                first_bit += choices
    filed.starts[filing] = n


def _file_disjunctions(clauses: Clauses, space: Space) -> tuple[Filings, Int32s]:
    """One filing for each pivot of each class in conjunctive form.

    Classes that take too many bits or entries are left out, and named.
    """
    if not len(clauses):
        return _joined([]), clauses.owners
    basic = _rewritten(clauses, space)
    firsts = np.flatnonzero(np.diff(clauses.owners, prepend=-1))
    class_starts = np.append(firsts, len(clauses)).astype(np.int64)
    owners = clauses.owners[firsts]
    smallest, bits, sizes = (np.empty(len(owners), dtype=np.int64) for _ in range(3))
    own = frozen(clauses)
    _measure(class_starts, own, basic, space.frequencies, smallest, bits, sizes)
    n_pivots = np.diff(clauses.starts)[smallest]
    large = (bits > MOST_BITS) | (sizes * n_pivots > MOST_ENTRIES)
    if large.any():
        others = np.flatnonzero(~np.repeat(large, np.diff(class_starts)))
        filings, _ = _file_disjunctions(take(clauses, others), space)
        return filings, owners[large]
    n, n_filings = int((sizes * n_pivots).sum()), int(n_pivots.sum())
    filed = Filings(
        np.repeat(owners, n_pivots),
        np.empty(n_filings, dtype=np.int32),
        np.repeat(bits, n_pivots).astype(np.int32),
        np.empty(n_filings + 1, dtype=np.int64),
        np.empty(n, dtype=np.uint8),
        *(np.empty(n, dtype=np.int32) for _ in range(3)),
    )
    _file_bits(class_starts, own, basic, smallest, filed)
    return filed, owners[:0]


def _joined(parts: list[Filings]) -> Filings:
    """Filings of all parts, one part after the other."""
    none = np.empty(0, dtype=np.int32)
    empty = Filings(
        none, none, none, np.zeros(1, np.int64), np.empty(0, np.uint8), none, none, none
    )
    parts = [part for part in parts if len(part.owners)]
    if len(parts) <= 1:
        return parts[0] if parts else empty
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    sizes = np.concatenate([np.diff(part.starts) for part in parts])
    columns[Filings._fields.index("starts")] = starts_of(sizes)
    return Filings(*columns)


def file_classes(classes: Classes, space: Space) -> tuple[Filings, Int32s]:
    """All filings of classes, and the classes that no index can look up.

    ``Refused`` names all classes whose normal form is too large, or takes too many entries.
    """
    forms, refused = forms_and_refusals(classes, cnf=True)
    bits, large = _file_disjunctions(forms.cnf, space)
    hits = [_file_conjunctions(forms.dnf, space)]
    if len(large):
        others, reasons = forms_and_refusals(classes.take(large), cnf=False)
        refused |= {int(large[c]): reason for c, reason in reasons.items()}
        clauses = Clauses(large[others.dnf.owners], *others.dnf[1:])
        hits.append(_file_conjunctions(clauses, space))
    filings = _joined([*hits, bits])
    too_many = np.flatnonzero(filings.entry_counts(len(classes)) > MOST_ENTRIES)
    refused |= dict.fromkeys(too_many.tolist(), _TOO_MANY)
    if refused:
        raise Refused(refused)
    return filings, forms.always


def _rewritten(clauses: Clauses, space: Space) -> Basic:
    nodes = space.trie.nodes_of(clauses.lows, clauses.highs)
    return rewrite(clauses, nodes, space.bases, space.kinds)
