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
from bittern.jit import f8r, i4r, i4w, i8r, i8w, inline, kernel, u1r, u1w, void
from bittern.literature.clauses.forms import MOST_PREDICATES
from bittern.literature.clauses.normal import Clauses, forms_and_refusals, take
from bittern.literature.opindex.operators import Basic, rewrite
from bittern.literature.opindex.space import Space
from bittern.matching.classes import Classes
from bittern.matching.contract import Refused

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


@inline
def _n_covered(interval_starts: Any, lows: Any, highs: Any, p: Any) -> Any:
    """How many cells a predicate covers."""
    n = np.int64(0)
    for i in range(interval_starts[p], interval_starts[p + 1]):
        n += np.int64(highs[i]) - lows[i] + 1
    return n


@kernel(void, i8r, i4r, i8r, i4r, i4r, i4r, i4r, f8r, i4w, i4w)
def _choose_pivots(
    starts: Any,
    channels: Any,
    interval_starts: Any,
    lows: Any,
    highs: Any,
    n_counts: Any,
    bases: Any,
    frequencies: Any,
    pivots: Any,
    needs: Any,
) -> None:
    """The channel that each conjunction is filed under, and the hits that it needs."""
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
                part_of_one = _n_covered(interval_starts, lows, highs, p) * cells_of_other
                part_of_other = _n_covered(interval_starts, lows, highs, best) * cells_of_one
                if part_of_one < part_of_other or (part_of_one == part_of_other and one < other):
                    best = p
            elif frequencies[one] < frequencies[other]:
                best = p
        pivots[clause], needs[clause] = channels[best], need


def _file_conjunctions(clauses: Clauses, space: Space) -> Filings:
    """One filing for each clause in disjunctive form."""
    n, basic = len(clauses), _rewritten(clauses, space)
    pivots, needs = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    _choose_pivots(
        clauses.starts,
        clauses.channels,
        clauses.interval_starts,
        clauses.lows,
        clauses.highs,
        basic.n_counts,
        space.bases,
        space.frequencies,
        pivots,
        needs,
    )
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


@kernel(void, i8r, i8r, i4r, i4r, f8r, i8r, i8w, i8w, i8w)
def _measure(
    class_starts: Any,
    starts: Any,
    channels: Any,
    n_counts: Any,
    frequencies: Any,
    basic_starts: Any,
    smallest: Any,
    bits: Any,
    sizes: Any,
) -> None:
    """Of each class its smallest clause, and how many bits and basic predicates it takes."""
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
                sizes[c] += (basic_starts[p + 1] - basic_starts[p]) * (choices // n_counts[p])


@kernel(void, i8r, i8r, i4r, i4r, i8r, u1r, i4r, i4r, i8r, i4w, i8w, u1w, i4w, i4w, i4w)
def _file_bits(
    class_starts: Any,
    starts: Any,
    channels: Any,
    n_counts: Any,
    basic_starts: Any,
    operators: Any,
    keys: Any,
    counts: Any,
    smallest: Any,
    pivots: Any,
    out_starts: Any,
    out_operators: Any,
    out_channels: Any,
    out_keys: Any,
    out_bits: Any,
) -> None:
    """File each class under each channel of its smallest clause."""
    filing, n = 0, 0
    for c in range(len(class_starts) - 1):
        for pivot in range(starts[smallest[c]], starts[smallest[c] + 1]):
            pivots[filing] = channels[pivot]
            out_starts[filing] = n
            filing += 1
            first_bit = 0
            for clause in range(class_starts[c], class_starts[c + 1]):
                choices = 1
                for p in range(starts[clause], starts[clause + 1]):
                    choices *= n_counts[p]
                # A choice is a number whose digits are counts, one digit for each predicate.
                below = 1
                for p in range(starts[clause], starts[clause + 1]):
                    for i in range(basic_starts[p], basic_starts[p + 1]):
                        for choice in range(choices):
                            if choice // below % n_counts[p] == counts[i]:
                                out_operators[n] = operators[i]
                                out_channels[n] = channels[p]
                                out_keys[n] = keys[i]
                                out_bits[n] = first_bit + choice
                                n += 1
                    below *= n_counts[p]
                first_bit += choices
    out_starts[filing] = n


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
    _measure(
        class_starts,
        clauses.starts,
        clauses.channels,
        basic.n_counts,
        space.frequencies,
        basic.starts,
        smallest,
        bits,
        sizes,
    )
    n_pivots = np.diff(clauses.starts)[smallest]
    large = (bits > MOST_BITS) | (sizes * n_pivots > MOST_ENTRIES)
    if large.any():
        others = np.flatnonzero(~np.repeat(large, np.diff(class_starts)))
        filings, _ = _file_disjunctions(take(clauses, others), space)
        return filings, owners[large]
    n, n_filings = int((sizes * n_pivots).sum()), int(n_pivots.sum())
    pivots, starts = np.empty(n_filings, dtype=np.int32), np.empty(n_filings + 1, dtype=np.int64)
    operators = np.empty(n, dtype=np.uint8)
    channels, keys, set_bits = (np.empty(n, dtype=np.int32) for _ in range(3))
    _file_bits(
        class_starts,
        clauses.starts,
        clauses.channels,
        basic.n_counts,
        basic.starts,
        basic.operators,
        basic.keys,
        basic.counts,
        smallest,
        pivots,
        starts,
        operators,
        channels,
        keys,
        set_bits,
    )
    needs = np.repeat(bits, n_pivots).astype(np.int32)
    owners = np.repeat(owners, n_pivots)
    return Filings(owners, pivots, needs, starts, operators, channels, keys, set_bits), owners[:0]


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
