"""How OpIndex files classes: pivots, and what goes into the lists of each pivot.

What has one entry in a pivot's counter array is a *filing*: a clause of a class in disjunctive form
(section 4.1 of seed 003), filed under its least frequent attribute, or a whole class in conjunctive
form, once under each attribute of its smallest clause (section 6.1)::

    a = 1 AND b <= 5                    pivot b, if it is rarer   needs 2 hits
    a = 1 AND (b <= 5 OR c = 2)         pivot a                   needs bits 0 and 1
    (a BETWEEN 1 AND 3 OR b = 2)        pivots a and b            needs bits 0 and 1:
                                        (a >= 1 OR b = 2) AND (a <= 3 OR b = 2)

A basic predicate of a conjunction adds one hit. One of a conjunctive form sets the bit of its
clause; a clause in which a predicate has several counts is multiplied out, one bit for each choice
of counts, and what belongs to several bits is filed several times. Where that takes more than 64
bits, the class is taken in disjunctive form.

The choice depends on the frequencies alone, so that deleting finds what inserting has filed.

Cost: O(basic predicates), times the pivots and choices of conjunctive forms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.engine.jit import f8r, i4r, i4w, i8r, i8w, kernel, u1r, u1w, void
from bittern.matching.classes import Classes
from bittern.matching.contract import Refused
from bittern.matching.normal import Clauses, normal_forms, take
from bittern.matching.opindex_operators import Basic, Int32s, Int64s, rewrite
from bittern.matching.opindex_space import Space

#: Bits of a class in conjunctive form: a word.
MOST_BITS = 64


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


@kernel(void, i8r, i4r, i4r, f8r, i4w, i4w)
def _choose_pivots(
    starts: Any, channels: Any, n_counts: Any, frequencies: Any, pivots: Any, needs: Any
) -> None:
    """The least frequent channel of each conjunction that is not "missing"; the lowest if equal."""
    for clause in range(len(pivots)):
        pivot = np.int32(-1)
        need = np.int32(0)
        for p in range(starts[clause], starts[clause + 1]):
            if n_counts[p] == 0:
                continue
            need += n_counts[p]
            channel = channels[p]
            if (
                pivot < 0
                or frequencies[channel] < frequencies[pivot]
                or (frequencies[channel] == frequencies[pivot] and channel < pivot)
            ):
                pivot = channel
        pivots[clause], needs[clause] = pivot, need


def _file_conjunctions(clauses: Clauses, space: Space) -> Filings:
    """One filing for each clause in disjunctive form."""
    n, basic = len(clauses), _rewritten(clauses, space)
    pivots, needs = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    _choose_pivots(
        clauses.starts, clauses.channels, basic.n_counts, space.frequencies, pivots, needs
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

    Nothing is filed, but the classes are named, where some take more than ``MOST_BITS`` bits.
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
    if (bits > MOST_BITS).any():
        return _joined([]), owners[bits > MOST_BITS]
    n_pivots = np.diff(clauses.starts)[smallest]
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
    columns[Filings._fields.index("starts")] = np.concatenate(([0], np.cumsum(sizes)))
    return Filings(*columns)


def file_classes(classes: Classes, space: Space) -> tuple[Filings, Int32s]:
    """All filings of classes, and the classes that no index can look up.

    ``Refused`` names the classes whose normal form is too large.
    """
    forms = normal_forms(classes, cnf=True)
    disjunctive = [forms.dnf]
    bits, wide = _file_disjunctions(forms.cnf, space)
    if len(wide):
        disjunctive.append(_in_disjunctive_form(classes, wide))
        narrow = np.flatnonzero(~np.isin(forms.cnf.owners, wide))
        bits, _ = _file_disjunctions(take(forms.cnf, narrow), space)
    hits = [_file_conjunctions(clauses, space) for clauses in disjunctive]
    return _joined([*hits, bits]), forms.always


def _rewritten(clauses: Clauses, space: Space) -> Basic:
    nodes = space.trie.nodes_of(clauses.lows, clauses.highs)
    return rewrite(clauses, nodes, space.bases, space.kinds)


def _in_disjunctive_form(classes: Classes, which: Int32s) -> Clauses:
    """The clauses of some classes, under the numbers that they have among all."""
    some = replace(
        classes,
        starts=classes.starts[which],
        counts=classes.counts[which],
        structure_of=classes.structure_of[which],
    )
    try:
        clauses = normal_forms(some, cnf=False).dnf
    except Refused as refused:
        raise Refused({int(which[c]): why for c, why in refused.reasons.items()}) from None
    return clauses._replace(owners=which[clauses.owners])
