"""Closed forms of seeds 000 and 001: how many constructs, entries, bits and bytes an index takes.

The papers cut an interval into *constructs*, predefined pieces with an id list each, so sizes can
be told before anything is built. Here is every such formula as a function, exact, in integers or
fractions, and compared with enumeration by the tests. ``k`` is log2 L and ``L`` the longest
construct, called ``longest`` for SCI and LCI and ``segment`` for CEI, as in the structures. Each
cell of the axis, or integer of the paper's, begins::

    SCI   L constructs, of 1, 2, 3 .. L cells         coordinate  start * L + length - 1
    LCI   k + 1 constructs, of 1, 2, 4 .. L cells                 start * (k + 1) + log2(length)
    CEI   those of 1, 2, 4 .. L cells that are aligned            2 * iL + local id, segment i

A construct *covers* a value that lies in it. Two models count that differently:

*closed*, seed 000: the construct [a, a + m] covers the m + 1 integers from a to a + m, and the
constructs of one interval share their joints::

    p: [0, 6], L = 4   =   [0, 4] and [4, 6]          value 4 is covered twice: p is found twice

*cells*, seed 001 and all structures here: [a, a + m) covers the m cells a .. a + m - 1, and every
cell of an interval is in exactly one of its constructs. Functions for the closed model say so.

A value near the left end has fewer constructs that begin before it; the papers leave that out and
the ``..._bits`` here do not. Predictions for a concrete set of intervals are in
``stabbing/predict.py``, what the papers get wrong in ``docs/stabbing.md``.
"""

from __future__ import annotations

from fractions import Fraction

from bittern.errors import OptionError


def log2(longest: int) -> int:
    """Return k for L = 2**k; OptionError for any other L."""
    k = int(longest).bit_length() - 1
    if k < 0 or longest != 1 << k:
        raise OptionError(f"the longest construct has {longest} cells: give a power of two")
    return k


# Constructs: how many there are (N), and how many one interval is cut into


def ui_constructs(domain: int) -> int:
    """N of UI: a construct per cell (seed 001, Table 1)."""
    return domain


def sci_constructs(domain: int, longest: int) -> int:
    """N of SCI: RL, those that reach past the last cell included (seed 000, section 2.2)."""
    return domain * longest


def lci_constructs(domain: int, longest: int) -> int:
    """N of LCI: R(k + 1), those that reach past the last cell included (Table 1)."""
    return domain * (log2(longest) + 1)


def cei_constructs(domain: int, segment: int) -> int:
    """N of CEI: 2r - r/L, with r made a multiple of L first as seed 001 says (Table 1)."""
    log2(segment)
    segments = -(-domain // segment)
    return segments * (2 * segment - 1)


def sci_pieces(length: int, longest: int) -> int:
    """Constructs of an interval under SCI: all but the last are L long (seed 000, Fig. 2)."""
    return -(-length // longest)


def lci_pieces(length: int, longest: int) -> int:
    """Constructs of an interval under LCI: whole L, then one for each 1 bit of the rest."""
    log2(longest)
    return length // longest + (length % longest).bit_count()


def cei_pieces(low: int, length: int, segment: int) -> int:
    """Constructs of [low, low + length) under CEI: t(p, w) of seed 001, by its lemmas. O(1).

    Whole segments, and 1 bits of what is left of the first and right of the last guiding post
    (Lemma 3). Between two posts, the highest bit in which the two ends differ is a post as well.
    """
    k = log2(segment)
    first, stop = low, low + length
    if first >= stop:
        return 0
    if first >> k == stop >> k:
        post = 1 << ((first ^ stop).bit_length() - 1)
        left, right = -first & (post - 1), stop & (post - 1)
        whole = (stop - right - first - left) // post
        return left.bit_count() + whole + right.bit_count()
    left, right = -first & (segment - 1), stop & (segment - 1)
    whole = (stop - right - first - left) // segment
    return left.bit_count() + whole + right.bit_count()


# Covering constructs (C), and the covering segments and distance tables of seed 000


def ui_covering() -> int:
    """C of UI: its own cell (Table 1)."""
    return 1


def sci_covering(longest: int, *, closed: bool = False) -> int:
    """Size of SCI's distance table: the constructs that cover a value not left of L.

    L(L + 1)/2 over cells; L(L + 3)/2 in the closed model (seed 000, Eq. 3).
    """
    return longest * (longest + (3 if closed else 1)) // 2


def lci_covering(longest: int, *, closed: bool = False) -> int:
    """Size of LCI's distance table: the constructs that cover a value not left of L.

    2L - 1 over cells (seed 001, Table 1); 2L + k in the closed model (seed 000, Eq. 3).
    """
    k = log2(longest)
    return 2 * longest + k if closed else 2 * longest - 1


def cei_covering(segment: int) -> int:
    """C of CEI: one construct of each level, k + 1 (Table 1 and Property 6)."""
    return log2(segment) + 1


def sci_segment(longest: int, *, closed: bool = False) -> int:
    """Size of SCI's covering segment, for a value not left of L: the coordinates to look at.

    L(L - 1) + 1 over cells; L * L + 1 in the closed model (seed 000, section 3).
    """
    return (longest - (0 if closed else 1)) * longest + 1


def lci_segment(longest: int, *, closed: bool = False) -> int:
    """Size of LCI's covering segment, for a value not left of L: the coordinates to look at.

    (L - 1)(k + 1) + 1 over cells; L(k + 1) + 1 in the closed model (seed 000, section 3).
    """
    return (longest - (0 if closed else 1)) * (log2(longest) + 1) + 1


# Bits of bitmap vectors, all of them together


def sci_bitmap_bits(domain: int, longest: int) -> int:
    """Bits of full vectors: N = RL for each of R values (seed 000, section 2.2)."""
    return domain * sci_constructs(domain, longest)


def lci_bitmap_bits(domain: int, longest: int) -> int:
    """Bits of full vectors: N = R(k + 1) for each of R values."""
    return domain * lci_constructs(domain, longest)


def sci_clipped_bits(domain: int, longest: int, *, closed: bool = False) -> int:
    """Bits of clipped vectors: a covering segment for each value, shorter ones at the left end.

    Left of L a segment begins at the shortest construct from value 0 that still reaches.
    """
    early = min(domain, longest if closed else longest - 1)
    n = max(early - 1, 0) if closed else early
    whole = (domain - early) * sci_segment(longest, closed=closed)
    return whole + longest * early * (early + 1) // 2 - n * (n - 1) // 2


def lci_clipped_bits(domain: int, longest: int, *, closed: bool = False) -> int:
    """Bits of clipped vectors: a covering segment for each value, shorter ones at the left end."""
    early = min(domain, longest if closed else longest - 1)
    unused = _ceil_log2_sum(early - 1 if closed else early)
    whole = (domain - early) * lci_segment(longest, closed=closed)
    return whole + (log2(longest) + 1) * early * (early + 1) // 2 - unused


def _ceil_log2_sum(n: int) -> int:
    """Sum of log2(j), rounded up, for j = 1 .. n."""
    levels = max(n - 1, 0).bit_length()
    return n * levels - (1 << levels) + 1 if n > 0 else 0


# The perfect binary tree of a segment (seed 001, Properties 1 to 8)


def cei_in_segment(segment: int) -> int:
    """Property 1: 2L - 1 constructs in a segment."""
    log2(segment)
    return 2 * segment - 1


def cei_levels(segment: int) -> list[range]:
    """Property 2: local ids 2**i .. 2**(i+1) - 1 on level i, each of L / 2**i cells."""
    return [range(1 << i, 2 << i) for i in range(log2(segment) + 1)]


def cei_parent(local: int) -> int:
    """Properties 3 and 4: the local id of the construct that contains this one; not for 1."""
    return local >> 1


def cei_children(local: int) -> tuple[int, int]:
    """Property 5: the local ids of the halves of a construct longer than one cell."""
    return 2 * local, 2 * local + 1


def cei_of_cell(cell: int, segment: int) -> int:
    """Property 7: the global id of the construct that is this cell alone."""
    before = cell // segment * segment
    return 2 * before + cell - before + segment


def cei_mergeable(local: int) -> bool:
    """Property 8: whether local and local + 1 together are a construct: only if local is even."""
    return local % 2 == 0


# Entries: constructs of all intervals of 1 .. W cells, from every start (seed 001, section 4)


def ones(d: int) -> int:
    """Lemma 4: how many 1 bits the numbers 1 .. 2**d - 1 have together, d * 2**(d-1)."""
    return d << d >> 1


def ones_up_to(n: int) -> int:
    """Lemma 4 for any n: how many 1 bits the numbers 1 .. n have together. O(log n)."""
    total, above = 0, 0
    for d in reversed(range((n + 1).bit_length())):
        if (n + 1) >> d & 1:
            total += ones(d) + (above << d)
            above += 1
    return total


def cei_row(i: int, segment: int) -> int:
    """T(iL, (i+1)L] of Lemmas 5 and 6 (i >= 1) and of Theorem 2's first line (i = 0).

    The constructs of all intervals of iL + 1 .. (i+1)L cells from the L starts of a segment.
    """
    size, k = segment, log2(segment)
    if i == 0:
        return (2 * size * size * k + 3 * size * k - 3 * size * size + 3 * size + 2) // 2
    return (size * size + 3 * size) // 2 + size * size * k + (i - 1) * size * size


def cei_octave(j: int, segment: int) -> int:
    """T(L/2**j, L/2**(j-1)] of Lemma 7, for j = 1 .. k: lengths in one octave, all L starts."""
    size, k = segment, log2(segment)
    if not 1 <= j <= k:
        raise OptionError(f"octave {j} is not one of 1 to {k}")
    part = size >> j
    return (part * size + 3 * size - (1 << j)) // 2 + (k - j) * part * size


def cei_rows(beta: int, segment: int) -> int:
    """Theorem 2: the constructs of all intervals of 1 .. beta * L cells, L starts."""
    size, k = segment, log2(segment)
    start = 2 * size * size * k + 3 * size * k - 3 * size * size + 3 * size + 2
    rest = (beta - 1) * (3 * size + 2 * size * size * k - size * size)
    return (start + rest + size * size * beta * (beta - 1)) // 2 if beta else 0


def lci_row(i: int, longest: int) -> int:
    """T'(iL, (i+1)L] of Lemmas 8 and 9: lengths iL + 1 .. (i+1)L, one start."""
    return 1 + ones(log2(longest)) + i * longest


def lci_rows(beta: int, longest: int) -> int:
    """Theorem 3: the constructs of all intervals of 1 .. beta * L cells, one start."""
    return beta + beta * ones(log2(longest)) + beta * (beta - 1) // 2 * longest


def cei_mean(length: int, segment: int) -> Fraction:
    """Mean constructs of an interval of w cells over all starts: b - 1 + (w + 1) / 2**b.

    b = min(k, floor(log2(w + 1))). Aligned blocks of m cells fit into w in w - m + 1 of m ways,
    and one that fits is used unless its parent fits too: each level below b adds 1, level b the
    rest. This is exact for every w and L, where the papers have sums over all w.
    """
    b = min(log2(segment), (length + 1).bit_length() - 1)
    return b - 1 + Fraction(length + 1, 1 << b)


def cei_total(widest: int, segment: int) -> int:
    """Theorem 2 for any W: the constructs of all intervals of 1 .. W cells, L starts. O(1).

    The sum of L * ``cei_mean``, with x = w + 1, octave by octave and then in whole: in octave
    b < k there are 2**b lengths and their x add up to 2**b * (3 * 2**b - 1) / 2.
    """
    size, k = segment, log2(segment)
    last = widest + 1
    b = min(k, last.bit_length() - 1)
    full = (1 << b) - 1  # lengths below octave b, from x = 1 (no cells, no constructs)
    octaves = ((b - 2) << b) + 2 + Fraction(full - b, 2)
    rest = (b - 1) * (last - full) + Fraction((last - full) * (last + full + 1), 2 << b)
    return int(size * (octaves + rest))


def lci_total(widest: int, longest: int) -> int:
    """Theorem 3 for any W: the constructs of all intervals of 1 .. W cells, one start."""
    beta, rest = divmod(widest, longest)
    return lci_rows(beta, longest) + rest * beta + ones_up_to(rest)


# Averages (mu) and storage


def ui_mu(widest: int) -> Fraction:
    """Table 2: mean constructs of an interval of 1 .. W cells, (1 + W) / 2."""
    return Fraction(1 + widest, 2)


def lci_mu(widest: int, longest: int) -> Fraction:
    """Mean constructs of an interval of 1 .. W cells: what Table 2 gives bounds for."""
    return Fraction(lci_total(widest, longest), widest)


def cei_mu(widest: int, segment: int) -> Fraction:
    """Mean constructs of an interval of 1 .. W cells: what Table 2 gives bounds for."""
    return Fraction(cei_total(widest, segment), widest * segment)


def lci_mu_bounds(widest: int, longest: int) -> tuple[Fraction, Fraction]:
    """Table 2: bounds of mu under LCI, from the whole multiples of L around W."""
    beta = widest // longest
    low, high = lci_rows(beta, longest), lci_rows(beta + 1, longest)
    return Fraction(low, widest), Fraction(high, widest)


def cei_mu_bounds(widest: int, segment: int) -> tuple[Fraction, Fraction]:
    """Table 2: bounds of mu under CEI, from the whole multiples of L around W."""
    beta, size, k = widest // segment, segment, log2(segment)

    def bound(b: int, square: int) -> Fraction:
        twice = 2 * b * size * size * k + square * size * size + 3 * size * (k + b) + 2
        return Fraction(twice, 2 * widest * size)

    return bound(beta, beta**2 - 2 * beta - 2), bound(beta + 1, beta**2 - 3)


def paper_bytes(constructs: int, intervals: int, mu: Fraction) -> Fraction:
    """Storage of seed 001: 4N + 8 n mu, a pointer per construct, an id and a pointer per entry.

    The structures here have no pointers between entries: 4N + 4 n mu, and what they add to find
    lists faster.
    """
    return 4 * constructs + 8 * intervals * mu
