"""Seed 000 (virtual construct intervals): Fig. 5, 6(a), 6(b), 7(a) and 7(b).

Integers 1 .. R are cells 0 .. R - 1. A predicate [x, y] holds both ends, so that a length of w
is w + 1 cells. 10,000 random searches of integers.

The paper's matching times cannot include reading the ids: at n = 1,024,000 and R = 5,000 an event
matches 20,000 predicates, and LCI is said to take less than 10 microseconds. So both are measured:
finding the lists, which is what the paper's figure shows, and having the ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.draw import Draw
from benchmarks.papers.figure import (
    LITTLE,
    MUCH,
    Claim,
    Figure,
    Panel,
    Points,
    Verdict,
    Where,
    all_of,
    below,
    below_all,
    crosses,
    from_x,
    grows,
    up_to_x,
)
from benchmarks.papers.measure import as_cells, closed_integers, measure, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.papers.measure import Point

SEED = 0
SEARCHES = 10_000
#: Fig. 5 is about storage: enough searches to see that all structures agree.
STORAGE_SEARCHES = 200
CONSTRUCTS = {
    "sci": "SCI",
    "sci-bc": "SCI-BC",
    "lci": "LCI",
    "lci-bc": "LCI-BC",
    "lci-bv": "LCI-BV",
}
SCHEMES = {
    "lci": "LCI",
    "lci-bc": "LCI-BC",
    "lci-bv": "LCI-BV",
    "lci-dt": "LCI-BV(DT)",
    "dlist": "Dlist",
    "is-list": "IS-lists",
}
#: Without LCI and Dlist, which the paper leaves out at a large R.
SCALING_SCHEMES = {name: SCHEMES[name] for name in ("lci-bc", "lci-bv", "lci-dt", "is-list")}
LARGE_N = from_x("n", 100_000)
SMALL_N = up_to_x("n", 10_000)
LARGEST_N = from_x("n", 512_000)
BEYOND_TWO = Where(" for L > 2", lambda longest: longest > 2)


def fig_5(*, small: bool) -> dict[str, Any]:
    """Storage against L."""
    domain, widest, n = (200, 50, 300) if small else (5_000, 500, 10_000)
    lengths = (2, 8) if small else tuple(2**k for k in range(1, 9))
    intervals = closed_integers(Draw(SEED, 5), n, domain, widest)
    values = as_cells(Draw(SEED, 5, 1).below(domain, STORAGE_SEARCHES))
    points = [
        measure(name, intervals, values, longest, longest=longest)
        for longest in lengths
        for name in CONSTRUCTS
    ]
    return {"parameters": {"R": domain, "W": widest, "n": n}, "points": points}


def fig_6a_7a(*, small: bool) -> dict[str, Any]:
    """Time and storage against n over few values."""
    return _against_n(SCHEMES, 200 if small else 5_000, small=small)


def fig_6b_7b(*, small: bool) -> dict[str, Any]:
    """Time and storage against n over many values."""
    return _against_n(SCALING_SCHEMES, 2_000 if small else 250_000, small=small)


def _against_n(schemes: Sequence[str] | Any, domain: int, *, small: bool) -> dict[str, Any]:
    widest, longest = (20, 16) if small else (200, 128)
    sizes = (100, 400) if small else tuple(1_000 * 2**i for i in range(11))
    intervals = closed_integers(Draw(SEED, 6, domain), sizes[-1], domain, widest)
    searches = 100 if small else SEARCHES
    values = as_cells(Draw(SEED, 6, domain, 1).below(domain, searches))
    points: list[Point] = []
    for n in sizes:
        progress(f"  n = {n:,}")
        for name in schemes:
            construct = {} if name in ("dlist", "is-list") else {"longest": longest}
            points.append(measure(name, intervals.first(n), values, n, **construct))
    parameters = {"R": domain, "W": widest, "L": longest, "searches": searches}
    return {"parameters": parameters, "points": points}


EXPERIMENTS = {
    "000-fig5": fig_5,
    "000-fig6a-fig7a": fig_6a_7a,
    "000-fig6b-fig7b": fig_6b_7b,
}

STORAGE = Panel("bytes", "storage, MB", 1e-6)
FINDING = Panel("ns_to_count", "finding the lists, ns per value")
TIME = Panel("ns_per_value", "ids included, ns per value")


def _below_ten(points: Points) -> Verdict:
    """Claim that finding lists takes LCI and LCI-BC less than 10 µs at every n."""
    slowest = {
        points.labels[name]: max(points.of(name, "ns_to_count").values()) / 1e3
        for name in ("lci", "lci-bc")
    }
    seen = ", ".join(f"{label} at most {time:.3g} µs" for label, time in slowest.items())
    criterion = "time to find lists < 10 µs at every n, both"
    return Verdict(all(time < 10 for time in slowest.values()), criterion, seen)


def _hardly_apart(points: Points) -> Verdict:
    """Claim that two curves lie on each other in a plot that has all five, from 0 up."""
    tallest = max(max(points.of(name, "bytes").values()) for name in points.labels)
    clipped, virtual = points.of("lci-bc", "bytes"), points.of("lci-bv", "bytes")
    apart = max(abs(clipped[x] - virtual[x]) for x in clipped) / tallest
    ratio = max(points.ratios("bytes", "lci-bc", "lci-bv").values())
    seen = f"at most {apart:.2%} of the plot's height apart, which is up to {ratio:.3g} times"
    criterion = "LCI-BC and LCI-BV within 1% of the height of a plot of all five from 0 up"
    return Verdict(apart <= 0.01, criterion, seen)


FIGURES = (
    Figure(
        "seed_000_fig_5",
        "Seed 000, Fig. 5: storage against L",
        "000-fig5",
        "longest construct L",
        CONSTRUCTS,
        [STORAGE],
        [
            Claim(
                "Clipping bitmaps is critical for the storage of both SCI and LCI.",
                all_of(
                    below("bytes", "sci-bc", "sci", 1 / MUCH),
                    below("bytes", "lci-bc", "lci", 1 / MUCH),
                ),
            ),
            Claim(
                "LCI generally needs less than SCI.",
                all_of(
                    below("bytes", "lci", "sci", where=BEYOND_TWO),
                    below("bytes", "lci-bc", "sci-bc", where=BEYOND_TWO),
                ),
            ),
            Claim(
                "SCI-BC needs less than LCI up to L = 128.",
                below("bytes", "sci-bc", "lci", where=up_to_x("L", 128)),
            ),
            Claim(
                "LCI-BC and LCI-BV are hardly distinguishable.",
                _hardly_apart,
                afterwards="that a distance in the plot counts and not the ratio of the two",
            ),
            Claim(
                "LCI-BC and LCI-BV are both the best of the five.",
                all_of(
                    below_all("bytes", "lci-bc", ("sci", "sci-bc", "lci"), BEYOND_TWO),
                    below_all("bytes", "lci-bv", ("sci", "sci-bc", "lci"), BEYOND_TWO),
                ),
                afterwards="that L = 2 does not count, where LCI-BC and SCI-BC are the same",
            ),
        ],
        note="With L = 2, SCI and LCI have the same constructs. The storage axis here is"
        " logarithmic and tells LCI-BC and LCI-BV apart.",
    ),
    Figure(
        "seed_000_fig_6a",
        "Seed 000, Fig. 6(a): matching time against n, R = 5,000",
        "000-fig6a-fig7a",
        "intervals n",
        SCHEMES,
        [FINDING, TIME],
        [
            Claim(
                "Dlist is the fastest.",
                below_all("ns_to_count", "dlist", SCHEMES),
            ),
            Claim(
                "The time of IS-lists degrades quickly with n.",
                grows("ns_to_count", "is-list", 10),
            ),
            Claim("LCI and LCI-BC stay below 10 µs up to a million.", _below_ten),
            Claim(
                "LCI-BC takes only a little more than LCI.",
                below("ns_to_count", "lci-bc", "lci", LITTLE),
            ),
            Claim(
                "LCI-BV can take much more than LCI when n is large.",
                below("ns_to_count", "lci", "lci-bv", 1 / MUCH, LARGE_N),
            ),
            Claim(
                "With the distance table LCI-BV(DT) is even better than LCI.",
                below("ns_to_count", "lci-dt", "lci"),
            ),
        ],
        note="The paper's times are those of finding lists: they cannot hold the ids.",
    ),
    Figure(
        "seed_000_fig_6b",
        "Seed 000, Fig. 6(b): matching time against n, R = 250,000",
        "000-fig6b-fig7b",
        "intervals n",
        SCALING_SCHEMES,
        [FINDING, TIME],
        [
            Claim(
                "The time of IS-lists degrades with n here too.",
                grows("ns_to_count", "is-list", 2),
            ),
            Claim(
                "LCI-BV(DT) is substantially faster than LCI-BV, above all for a large n.",
                below("ns_to_count", "lci-dt", "lci-bv", 1 / MUCH, LARGE_N),
            ),
            Claim(
                "LCI-BV(DT) is faster than IS-lists for a large n.",
                all_of(
                    below("ns_to_count", "lci-dt", "is-list", where=LARGE_N),
                    below("ns_per_value", "lci-dt", "is-list", where=LARGE_N),
                ),
            ),
        ],
    ),
    Figure(
        "seed_000_fig_7a",
        "Seed 000, Fig. 7(a): storage against n, R = 5,000",
        "000-fig6a-fig7a",
        "intervals n",
        SCHEMES,
        [STORAGE],
        [
            Claim(
                "Dlist needs more than LCI from n of about 32,000 on.",
                crosses("bytes", "dlist", "lci", 32_000),
            ),
            Claim(
                "IS-lists need more than LCI from n of about 128,000 on.",
                crosses("bytes", "is-list", "lci", 128_000),
            ),
            Claim(
                "LCI-BC and LCI-BV(DT) need less than IS-lists even for a small n.",
                all_of(below("bytes", "lci-bc", "is-list"), below("bytes", "lci-dt", "is-list")),
            ),
        ],
        note="The paper ran out of memory with Dlist above n = 128,000 and with IS-lists above"
        " 512,000; here all sizes fit.",
    ),
    Figure(
        "seed_000_fig_7b",
        "Seed 000, Fig. 7(b): storage against n, R = 250,000",
        "000-fig6b-fig7b",
        "intervals n",
        SCALING_SCHEMES,
        [STORAGE],
        [
            Claim(
                "For a small n IS-lists need less than LCI-BC and LCI-BV(DT).",
                all_of(
                    below("bytes", "is-list", "lci-bc", where=SMALL_N),
                    below("bytes", "is-list", "lci-dt", where=SMALL_N),
                ),
            ),
            Claim(
                "For a large n they need more.",
                all_of(
                    below("bytes", "lci-bc", "is-list", where=LARGEST_N),
                    below("bytes", "lci-dt", "is-list", where=LARGEST_N),
                ),
            ),
            Claim(
                "LCI-BV(DT) is the most effective of the schemes: less time than both others, less"
                " storage than LCI-BC, and similar to that of LCI-BV.",
                all_of(
                    below("ns_to_count", "lci-dt", "lci-bc", where=LARGE_N),
                    below("ns_to_count", "lci-dt", "lci-bv", where=LARGE_N),
                    below("bytes", "lci-dt", "lci-bc"),
                    below("bytes", "lci-dt", "lci-bv", 1.01),
                ),
            ),
        ],
    ),
)
