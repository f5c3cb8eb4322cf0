"""The operators of OpIndex: what a predicate is rewritten to, and which operands a value satisfies.

A predicate is a union of disjoint intervals of one channel (``literature/clauses/normal.py``). As
in section 4.2 of seed 003 it is rewritten to *basic predicates*: an operator and an operand, which
is a cell, or a node of the trie for prefixes (section 6.2). They are grouped into *counts*: of the
basic predicates of one count an event satisfies at most one, and the predicate holds if each of its
counts is satisfied::

    a IN (3, 6, 9)         = 3  = 6  = 9                     one count
    a <= 8   a < 8         <= 8      <= (the cell below 8)
    a BETWEEN 3 AND 12     >= 3 | <= 12                      two counts
    a NOT BETWEEN 3 AND 5  <= (below 3)  >= (above 5)        one count: they exclude each other
    a NOT IN (3, 6)        != 3 | != 6
    s LIKE 'ab%'           prefix of node 'ab'; a suffix is a prefix of the reversed string
    s RLIKE '...'          pattern; so is s LIKE '%m%'
    a IS NULL              missing: not a count; a value forbids what the predicate belongs to

How a value reaches the keys of an operator's sorted list, as ranges of keys (``reach``)::

    =  missing  pattern    the value's own cell
    <=                     the value's cell and all above it in the channel
    >=                     the value's cell and all below it
    !=                     all below it, and all above it: two ranges
    prefix  suffix         each node of the value's path in the trie: as many ranges as nodes

A pattern is an attribute of its own, of one cell, which the encoder of events gives to an event
whose value satisfies it: all patterns of a string are found at once (``model/patterns/sets.py``),
and each of those that hold reaches its key like an equality. So a regular expression costs the
index what ``=`` costs, in the same lists, counters and signatures.

**To add an operator** (the extension point of section 6.2), all in this module:

1. its code, its name in ``OPERATORS``, and in ``POINT`` whether a value satisfies single keys of
   it: then signatures are of keys, else of attributes;
2. in ``_rewrite``, which intervals of cells it stands for, and the key that is filed for them: a
   cell of its channel, or a node of the trie (``NODES``), so that the key tells the attribute;
3. in ``n_reaches`` and ``reach``, the ranges of keys that a value satisfies.

Lists, directory, counters and matching know operators by nothing else, but for ``MISSING``, whose
hits forbid. ``checking`` takes the operands of an operator in one channel for one count, and
has to be told where they are not. An operator whose values are found outside, as patterns are,
needs a channel of one cell for each operand, and the first two steps.

Cost: O(intervals) to rewrite; at most two basic predicates for each interval.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s
from bittern.jit import (
    frozen,
    i4r,
    i4w,
    i8r,
    i8w,
    inline,
    kernel,
    tuple_type,
    u1r,
    u1w,
    void,
)
from bittern.literature.clauses.normal import CLAUSES, Clauses
from bittern.model.rank.space import PATTERN, STRING

#: ``MISSING`` is first, so that matching forbids clauses before it counts.
MISSING, EQUAL, AT_MOST, AT_LEAST, NOT_EQUAL, PREFIX, SUFFIX, SATISFIES = range(8)
OPERATORS = ("missing", "=", "<=", ">=", "!=", "prefix", "suffix", "pattern")
N_OPERATORS = len(OPERATORS)

_RANGES = 1 << AT_MOST | 1 << AT_LEAST | 1 << NOT_EQUAL
#: Bit o is set if a value satisfies single keys of operator o, whatever the others are.
POINT = ((1 << N_OPERATORS) - 1) & ~_RANGES
#: Bit o is set if the keys of operator o are nodes of the trie.
NODES = 1 << PREFIX | 1 << SUFFIX


class Basic(NamedTuple):
    """Predicates, rewritten."""

    starts: Int64s  # where the basic predicates of each predicate begin, and the end
    n_counts: Int32s  # of each predicate; 0 is "missing"
    operators: npt.NDArray[np.uint8]  # of each basic predicate
    keys: Int32s
    counts: Int32s  # which count of its predicate it belongs to


BASIC = tuple_type(Basic, i8r, i4r, u1r, i4r, i4r)
_REWRITTEN = tuple_type(Basic, i8w, i4w, u1w, i4w, i4w)


@inline
def n_reaches(operator: Any, n_nodes: Any) -> Any:
    """How many ranges of keys a value satisfies whose path in the trie has ``n_nodes``."""
    if operator == NOT_EQUAL:
        return 2
    if NODES >> operator & 1:
        return n_nodes
    return 1


@inline
def reach(
    operator: Any, k: Any, cell: Any, base: Any, last: Any, path: Any, first_node: Any
) -> Any:
    """The k-th range of keys that a value satisfies, in a channel of cells ``base`` to ``last``.

    Its path in the trie starts at ``path[first_node]``.
    """
    if operator == AT_MOST:
        return cell, last
    if operator == AT_LEAST:
        return base, cell
    if operator == NOT_EQUAL:
        if k == 0:
            return base, cell - 1
        return cell + 1, last
    if NODES >> operator & 1:
        node = np.int64(path[first_node + k])
        return node, node
    return cell, cell


@kernel(void, CLAUSES, i4r, i4r, u1r, _REWRITTEN)
def _rewrite(clauses: Any, nodes: Any, bases: Any, kinds: Any, basic: Any) -> None:
    _, _, channels, interval_starts, lows, highs = clauses
    starts, n_counts, operators, keys, counts = basic
    n = 0
    for p in range(len(channels)):
        starts[p] = n
        channel = channels[p]
        base, last = bases[channel], bases[channel + 1] - 1
        first, end = interval_starts[p], interval_starts[p + 1]
        counts[n] = 0
        n_counts[p] = 1
        if lows[first] < 0:
            operators[n], keys[n] = MISSING, base
            n_counts[p] = 0
            n += 1
            continue
        if base == last:
            operators[n], keys[n] = SATISFIES if kinds[channel] == PATTERN else EQUAL, base
            n += 1
            continue
        if end == first + 1 and lows[first] == base and highs[first] == last:
            operators[n], keys[n] = AT_LEAST, base
            n += 1
            continue
        # A constant has an odd place in its channel; between two there is an open range.
        single = 0
        for i in range(first, end):
            single += nodes[i] >= 0 or (lows[i] == highs[i] and (lows[i] - base) & 1)
        if single == end - first:
            for i in range(first, end):
                operators[n], keys[n], counts[n] = EQUAL, lows[i], 0
                if nodes[i] >= 0:
                    operators[n] = PREFIX if kinds[channel] == STRING else SUFFIX
                    keys[n] = nodes[i]
                n += 1
            continue
        count = 0
        if lows[first] > base:
            operators[n], keys[n], counts[n] = AT_LEAST, lows[first], count
            count += 1
            n += 1
        if highs[end - 1] < last:
            operators[n], keys[n], counts[n] = AT_MOST, highs[end - 1], count
            count += 1
            n += 1
        for i in range(first + 1, end):
            if highs[i - 1] + 2 == lows[i]:
                operators[n], keys[n], counts[n] = NOT_EQUAL, highs[i - 1] + 1, count
                n += 1
            else:
                operators[n], keys[n], counts[n] = AT_MOST, highs[i - 1], count
                operators[n + 1], keys[n + 1], counts[n + 1] = AT_LEAST, lows[i], count
                n += 2
            count += 1
        n_counts[p] = count
    starts[len(channels)] = n


def rewrite(clauses: Clauses, nodes: Int32s, bases: Int32s, kinds: npt.NDArray[np.uint8]) -> Basic:
    """The basic predicates of all predicates; ``nodes`` are of intervals that are prefixes, or -1.

    ``kinds`` are those of the channels.
    """
    n_predicates, most = len(clauses.channels), 2 * len(clauses.lows) + 1
    made = Basic(
        np.empty(n_predicates + 1, dtype=np.int64),
        np.empty(n_predicates, dtype=np.int32),
        np.empty(most, dtype=np.uint8),
        np.empty(most, dtype=np.int32),
        np.empty(most, dtype=np.int32),
    )
    _rewrite(frozen(clauses), nodes, bases, kinds, made)
    starts, n_counts, operators, keys, counts = made
    n = int(starts[-1])
    return frozen(Basic(starts, n_counts, operators[:n], keys[:n], counts[:n]))
