"""Closed forms against enumeration: each formula is compared with counting what it speaks of.

``enumerated`` counts constructs one by one from their definition. Every function of
``benchmarks/papers/cost.py`` is compared with such a count over ranges of L, W, beta and the
domain; the formulas that the papers print wrong, or claim too widely, are shown to fail, with the
smallest case in which they do.
"""

from __future__ import annotations

from fractions import Fraction
from math import log2

import pytest
from benchmarks.papers import cost

from bittern.errors import OptionError
from bittern.stabbing.blocks import decompose_one

POWERS = [1, 2, 4, 8, 16, 32]
ANY_LONGEST = [1, 2, 3, 4, 5, 8]
DOMAINS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 40]


def lengths(family: str, longest: int) -> list[int]:
    """Lengths of the constructs that begin at each value."""
    if family == "sci":
        return list(range(1, longest + 1))
    return [1 << k for k in range(longest.bit_length())]


def coordinates(family: str, longest: int, value: int, *, closed: bool) -> list[int]:
    """Coordinates of the constructs that cover a value, from their definition."""
    offered = lengths(family, longest)
    return [
        start * len(offered) + position
        for start in range(value + 1)
        for position, length in enumerate(offered)
        if value <= start + length - (0 if closed else 1)
    ]


def cei_count(low: int, length: int, segment: int) -> int:
    """Constructs of an interval by the decomposition that the index uses."""
    return len(decompose_one(low, low + length - 1, segment.bit_length() - 1)[0]) if length else 0


def cei_sum(first: int, last: int, segment: int) -> int:
    """T(first, last] of seed 001: all starts of a segment, all lengths from first + 1 to last."""
    return sum(
        cei_count(start, length, segment)
        for start in range(segment)
        for length in range(first + 1, last + 1)
    )


def lci_count(length: int, longest: int) -> int:
    """Constructs of an interval, always taking the longest that fits."""
    n = 0
    while length:
        length -= max(m for m in lengths("lci", longest) if m <= length)
        n += 1
    return n


class TestConstructs:
    @pytest.mark.parametrize("longest", POWERS)
    @pytest.mark.parametrize("domain", DOMAINS)
    def test_how_many_there_are(self, domain, longest):
        for family, constructs in (("sci", cost.sci_constructs), ("lci", cost.lci_constructs)):
            ids = {(start, m) for start in range(domain) for m in lengths(family, longest)}
            assert constructs(domain, longest) == len(ids)
        assert cost.ui_constructs(domain) == domain == cost.cei_constructs(domain, 1)
        blocks = {
            (start // m * m, m)
            for start in range(-(-domain // longest) * longest)
            for m in lengths("lci", longest)
        }
        assert cost.cei_constructs(domain, longest) == len(blocks)
        if domain % longest == 0:  # as printed
            assert len(blocks) == 2 * domain - domain // longest

    @pytest.mark.parametrize("longest", ANY_LONGEST)
    def test_an_interval_under_sci(self, longest):
        for length in range(60):
            assert cost.sci_pieces(length, longest) == len(range(0, length, longest))
            if length:  # as printed: m of length L and a remnant
                assert cost.sci_pieces(length, longest) == (length - 1) // longest + 1

    @pytest.mark.parametrize("longest", POWERS)
    def test_an_interval_under_lci(self, longest):
        for length in range(100):
            assert cost.lci_pieces(length, longest) == lci_count(length, longest)

    def test_seed_000_section_2_3_seven_is_four_and_two_and_one(self):
        assert cost.lci_pieces(7, 16) == 3

    @pytest.mark.parametrize("segment", POWERS)
    def test_an_interval_under_cei(self, segment):
        for low in range(2 * segment + 1):
            for length in range(3 * segment + 2):
                assert cost.cei_pieces(low, length, segment) == cei_count(low, length, segment)

    def test_seed_001_figure_7(self):
        assert cost.cei_pieces(8, 6, 8) == 2  # [8, 14)
        assert cost.cei_pieces(11, 4, 8) == 3  # [11, 15)

    @pytest.mark.parametrize("longest", [0, -4, 3, 6])
    def test_a_longest_construct_that_is_no_power_of_two_is_refused(self, longest):
        for call in (cost.lci_covering, cost.lci_segment, cost.cei_covering, cost.cei_in_segment):
            with pytest.raises(OptionError, match="power of two"):
                call(longest)


class TestCovering:
    @pytest.mark.parametrize("closed", [False, True])
    @pytest.mark.parametrize("longest", ANY_LONGEST)
    def test_sci_table_and_segment(self, longest, closed):
        for value in (longest, longest + 1, longest + 5):
            covering = coordinates("sci", longest, value, closed=closed)
            assert cost.sci_covering(longest, closed=closed) == len(covering)
            size = max(covering) - min(covering) + 1
            assert cost.sci_segment(longest, closed=closed) == size

    @pytest.mark.parametrize("closed", [False, True])
    @pytest.mark.parametrize("longest", POWERS)
    def test_lci_table_and_segment(self, longest, closed):
        for value in (longest, longest + 1, longest + 5):
            covering = coordinates("lci", longest, value, closed=closed)
            assert cost.lci_covering(longest, closed=closed) == len(covering)
            size = max(covering) - min(covering) + 1
            assert cost.lci_segment(longest, closed=closed) == size

    @pytest.mark.parametrize("longest", POWERS)
    def test_seed_000_formulas_as_printed(self, longest):
        k = int(log2(longest))
        assert cost.sci_segment(longest, closed=True) == longest**2 + 1
        assert cost.lci_segment(longest, closed=True) == longest * (k + 1) + 1
        assert cost.sci_covering(longest, closed=True) == longest * (longest + 3) // 2
        assert cost.lci_covering(longest, closed=True) == 2 * longest + k
        between = sum(i * 2 ** (k - i) for i in range(1, k + 1)) + 2 * (k + 1)
        assert between == 2 * longest + k

    @pytest.mark.parametrize("segment", POWERS)
    def test_ui_and_cei(self, segment):
        for value in range(3 * segment):
            blocks = {(value // m * m, m) for m in lengths("lci", segment)}
            assert cost.cei_covering(segment) == len(blocks)
        assert cost.ui_covering() == cost.cei_covering(1) == 1

    @pytest.mark.parametrize("closed", [False, True])
    @pytest.mark.parametrize("longest", POWERS)
    @pytest.mark.parametrize("domain", DOMAINS)
    def test_bits_of_vectors(self, domain, longest, closed):
        families = {
            "sci": (cost.sci_bitmap_bits, cost.sci_clipped_bits),
            "lci": (cost.lci_bitmap_bits, cost.lci_clipped_bits),
        }
        for family, (full, clipped) in families.items():
            covering = [coordinates(family, longest, v, closed=closed) for v in range(domain)]
            bits = sum(max(each) - min(each) + 1 for each in covering)
            assert clipped(domain, longest, closed=closed) == bits
            assert full(domain, longest) == domain * domain * len(lengths(family, longest))


class TestTree:
    """Properties 1 to 8 of seed 001."""

    @pytest.mark.parametrize("segment", POWERS)
    def test_properties_1_to_5_and_8(self, segment):
        extent = {
            local: (position * m, position * m + m)
            for i, m in enumerate(reversed(lengths("lci", segment)))
            for position, local in enumerate(cost.cei_levels(segment)[i])
        }
        assert len(extent) == cost.cei_in_segment(segment)
        assert sorted(extent) == list(range(1, 2 * segment))
        for local, (low, stop) in extent.items():
            if local > 1:
                above = extent[cost.cei_parent(local)]
                assert above[0] <= low < stop <= above[1]
            if stop - low > 1:
                left, right = cost.cei_children(local)
                middle = (low + stop) // 2
                assert (extent[left], extent[right]) == ((low, middle), (middle, stop))
            beside = extent.get(local + 1, (-1, -1))
            if beside[0] == stop and beside[1] - stop == stop - low:
                assert cost.cei_mergeable(local) == ((low, beside[1]) in extent.values())

    @pytest.mark.parametrize("segment", POWERS)
    def test_property_7(self, segment):
        found = [cost.cei_of_cell(cell, segment) for cell in range(3 * segment)]
        assert found == [
            2 * i * segment + segment + local for i in range(3) for local in range(segment)
        ]


class TestEntries:
    def test_lemma_3(self):
        for segment in POWERS:
            for length in range(segment):
                for post in (segment, 2 * segment):
                    assert cei_count(post, length, segment) == length.bit_count()
                    assert cei_count(post - length, length, segment) == length.bit_count()

    def test_lemma_4(self):
        for d in range(12):
            assert cost.ones(d) == sum(w.bit_count() for w in range(1 << d))
        for n in range(300):
            assert cost.ones_up_to(n) == sum(w.bit_count() for w in range(n + 1))

    @pytest.mark.parametrize("segment", POWERS)
    def test_lemmas_5_and_6(self, segment):
        k = int(log2(segment))
        assert 2 * cost.cei_row(1, segment) == segment**2 + 3 * segment + 2 * segment**2 * k
        for i in range(4):
            assert cost.cei_row(i, segment) == cei_sum(i * segment, (i + 1) * segment, segment)

    @pytest.mark.parametrize("segment", POWERS[1:])
    def test_lemma_7(self, segment):
        for j in range(1, int(log2(segment)) + 1):
            counted = cei_sum(segment >> j, segment >> (j - 1), segment)
            assert cost.cei_octave(j, segment) == counted
        with pytest.raises(OptionError, match="octave"):
            cost.cei_octave(0, segment)

    @pytest.mark.parametrize("longest", POWERS)
    def test_lemmas_8_and_9(self, longest):
        for i in range(4):
            widths = range(i * longest + 1, (i + 1) * longest + 1)
            assert cost.lci_row(i, longest) == sum(lci_count(w, longest) for w in widths)

    @pytest.mark.parametrize("beta", range(5))
    @pytest.mark.parametrize("longest", POWERS[:5])
    def test_theorems_2_and_3(self, longest, beta):
        assert cost.cei_rows(beta, longest) == cei_sum(0, beta * longest, longest)
        widths = range(1, beta * longest + 1)
        assert cost.lci_rows(beta, longest) == sum(lci_count(w, longest) for w in widths)

    @pytest.mark.parametrize("segment", POWERS[:5])
    def test_any_width_not_only_multiples_of_l(self, segment):
        cei = lci = 0
        for width in range(1, 4 * segment + 3):
            here = cei_sum(width - 1, width, segment)
            assert cost.cei_mean(width, segment) == Fraction(here, segment)
            cei, lci = cei + here, lci + lci_count(width, segment)
            assert cost.cei_total(width, segment) == cei
            assert cost.lci_total(width, segment) == lci
            assert cost.cei_mu(width, segment) == Fraction(cei, segment * width)
            assert cost.lci_mu(width, segment) == Fraction(lci, width)
            assert cost.ui_mu(width) == Fraction(sum(range(width + 1)), width)
        assert cost.cei_total(0, segment) == cost.lci_total(0, segment) == 0

    @pytest.mark.parametrize("segment", POWERS)
    def test_table_2(self, segment):
        for width in range(segment, 5 * segment):
            for mu, bounds in (
                (cost.cei_mu, cost.cei_mu_bounds),
                (cost.lci_mu, cost.lci_mu_bounds),
            ):
                low, high = bounds(width, segment)
                assert low <= mu(width, segment) <= high
                assert (low == mu(width, segment)) == (width % segment == 0)
                assert high * width == mu(width // segment * segment + segment, segment) * (
                    width // segment * segment + segment
                )

    def test_table_2_as_printed(self):
        for segment in POWERS:
            k = int(log2(segment))
            for width in range(segment, 4 * segment):
                b, size = width // segment, segment
                low = b * size**2 * k + Fraction(b * b - 2 * b - 2, 2) * size**2
                low += Fraction(3, 2) * size * k + Fraction(3, 2) * b * size + 1
                high = (b + 1) * size**2 * k + Fraction(b * b - 3, 2) * size**2
                high += Fraction(3, 2) * size * k + Fraction(3, 2) * (b + 1) * size + 1
                bounds = low / (width * size), high / (width * size)
                assert cost.cei_mu_bounds(width, segment) == bounds
                low = b + Fraction(b * size * k, 2) + Fraction(b * (b - 1) * size, 2)
                high = b + 1 + Fraction((b + 1) * size * k, 2) + Fraction((b + 1) * b * size, 2)
                assert cost.lci_mu_bounds(width, segment) == (low / width, high / width)

    def test_storage(self):
        assert cost.paper_bytes(1000, 10, Fraction(5, 2)) == 4000 + 200


class TestWhereThePapersAndTheTruthDiffer:
    """One test for each entry of the section of that name in docs/stabbing.md."""

    def test_seed_000_an_interval_is_found_twice_at_the_joint_of_its_constructs(self):
        """[0, 2] with L = 1 is [0, 1] and [1, 2]: both cover 1. Figure 3(a): p at value 4."""
        for low, high, longest, joint in ((0, 2, 1, 1), (0, 6, 4, 4)):
            pieces = [(a, min(a + longest, high)) for a in range(low, high, longest)]
            assert sum(a <= joint <= b for a, b in pieces) == 2

    def test_seed_000_an_unused_construct_ends_where_it_says(self):
        """[4, 10] 'will never cover any value less than 3 or greater than 11': 3 and 11 too."""
        covered = [value for value in range(20) if 4 <= value <= 10]
        assert (min(covered) - 1, max(covered) + 1) == (3, 11)

    def test_seeds_000_and_001_the_mean_length_is_not_half_of_w(self):
        """'Chosen between 1 and W, namely w = W/2': (W + 1)/2. Smallest: W = 1, 1 cell not 1/2."""
        for width in range(1, 50):
            assert cost.ui_mu(width) == Fraction(width, 2) + Fraction(1, 2)

    def test_seed_001_fewer_lci_cover_a_point_near_the_left_end(self):
        """2L - 1 'for any point': for those from L - 1 on. Smallest: L = 2, point 0 has 2."""
        assert len(coordinates("lci", 2, 0, closed=False)) == 2
        assert cost.lci_covering(2) == 3
        for longest in POWERS:
            full = [
                len(coordinates("lci", longest, value, closed=False)) == 2 * longest - 1
                for value in range(2 * longest)
            ]
            assert full == [value >= longest - 1 for value in range(2 * longest)]

    def test_seed_001_headers_of_unused_ids_take_room_too(self):
        """4N with N = 2r - r/L: global ids go up to 2r. Smallest: r = L = 1, two headers."""
        for segment in POWERS:
            for domain in (segment, 4 * segment):
                headers = cost.cei_of_cell(domain - 1, segment) + 1
                assert headers == 2 * domain
                assert headers - cost.cei_constructs(domain, segment) == domain // segment

    def test_seed_001_over_counts_of_lemma_7(self):
        """The proof's 'there are 2**j CEIs of length L/2**(j-1)': there are half as many.

        The lemma has the right number all the same. Smallest: L = 2, j = 1, one of length 2.
        """
        for segment in POWERS[1:]:
            for j in range(1, int(log2(segment)) + 1):
                of_length = len(cost.cei_levels(segment)[j - 1])
                assert of_length == 2**j // 2

    def test_seed_001_storage_does_not_always_decrease_as_l_increases(self):
        """'Under all cases': only while intervals are longer than L. Smallest: W = 1, L 1 to 2."""

        def stored(n: int, domain: int, width: int, segment: int) -> Fraction:
            mu = cost.cei_mu(width, segment)
            return cost.paper_bytes(cost.cei_constructs(domain, segment), n, mu)

        assert stored(1, 2, 1, 2) > stored(1, 2, 1, 1)
        series = [stored(100_000, 1 << 20, 200, 1 << k) for k in range(21)]
        assert min(series) == series[7]  # L = 128, for the paper's W = 200
        assert series[7:] == sorted(series[7:])

    def test_seed_001_cei_does_not_always_store_less_than_lci(self):
        """'Under all cases, CEI performs better than LCI in storage': not by the paper's 4N + 8nu.

        In its own case of a small r, n = 100,000 and W = 200, LCI takes less for every L.
        Smallest: r = 2, L = 2, W = 2, from n = 3 on.
        """

        def difference(n: int, domain: int, width: int, longest: int) -> Fraction:
            cei = cost.paper_bytes(
                cost.cei_constructs(domain, longest), n, cost.cei_mu(width, longest)
            )
            lci = cost.paper_bytes(
                cost.lci_constructs(domain, longest), n, cost.lci_mu(width, longest)
            )
            return cei - lci

        for longest in (2, 4, 8, 16, 32, 64, 128):
            assert difference(100_000, 1 << 20, 200, longest) < 0  # the large r: as the paper says
            assert difference(100_000, 1 << 16, 200, longest) > 0  # the small one
        assert [difference(n, 2, 2, 2) > 0 for n in range(1, 6)] == [False, False, True, True, True]
