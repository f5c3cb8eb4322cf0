"""Seed 004 (profiles of constant predicates): Fig. 7, Fig. 8 and Table 1.

A profile is a closed interval on each of 2 attributes, and a document has a value for both. What
is counted is the predicate evaluations (comparisons of values) that matching a document takes, on
average over 50 documents.

The paper tells the sizes and "Zipfian", not the rest, which is chosen here and said on the page
(``FREE`` in ``seed_004_figures``). Table 1 speaks of growth without bound. Its settings here are
intervals so sparse that each meets a few others (the distances grow with n), and intervals that
all contain the origin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.draw import Draw, Ints
from benchmarks.papers.figure import spread
from benchmarks.papers.measure import progress
from benchmarks.papers.profiles import Profiles
from benchmarks.run import DisagreementError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.papers.measure import Point

SEED = 4
ATTRIBUTES, DOCUMENTS = 2, 50
SIZE, REACH, SKEW = 10, 1_000, 0.75
OVERLAPS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98)
INDEXES = {
    "cluster": "Cluster",
    "interval": "Interval",
    "hybrid": "Hybrid",
    "segment-tree": "Segment Tree",
    "interval-tree": "Interval Tree",
}
#: Fig. 8 has the Hybrid Index with its own default, too.
AS_IT_COMES = "hybrid-default"
PARAMETERS: dict[str, dict[str, Any]] = {"hybrid": {"minimum": 1}}
PAPERS_OVERLAP = (1, 20)


def starts(draw: Draw, n: int, reach: int = REACH, skew: float = SKEW) -> Ints:
    """Zipfian distances from the origin, to both sides of it; the origin is ``reach``."""
    distance = draw.weighted(np.arange(1, reach + 1, dtype=np.float64) ** -skew, n)
    return reach + (2 * draw.below(2, n) - 1) * distance


def overlap(lows: Ints, highs: Ints) -> float:
    """Share of the pairs of intervals that have a value in common, averaged over attributes.

    Two intervals are apart when one has ended before the other begins.
    """
    pairs = lows.shape[1] * (lows.shape[1] - 1) / 2
    apart = [
        np.searchsorted(np.sort(high), low, side="left").sum()
        for low, high in zip(lows, highs, strict=True)
    ]
    return float(1 - np.mean(apart) / pairs)


def built(name: str, lows: Ints, highs: Ints, domain: int) -> Profiles:
    """The profiles under an index of this name."""
    structure = "hybrid" if name == AS_IT_COMES else name
    parameters = PARAMETERS.get(name, {})
    return Profiles.build(
        lows, highs, domains=[domain] * ATTRIBUTES, structure=structure, **parameters
    )


def evaluations(
    name: str, profiles: Profiles, lows: Ints, highs: Ints, domain: int, seed: int
) -> float:
    """Mean evaluations per document, after a look whether exactly its profiles are found."""
    documents = Draw(SEED, seed).below(domain, ATTRIBUTES * DOCUMENTS).reshape(ATTRIBUTES, -1)
    offsets, found = profiles.match(documents)
    inside = (lows[:, :, None] <= documents[:, None]) & (documents[:, None] <= highs[:, :, None])
    document, profile = np.nonzero(inside.all(axis=0).T)
    same = np.array_equal(np.repeat(np.arange(DOCUMENTS), np.diff(offsets)), document)
    if not same or not np.array_equal(found, profile):
        raise DisagreementError(f"{name} finds other profiles than comparing all of them does")
    return float(np.mean(profiles.evaluations(documents)))


def fewest(profiles: Profiles, domain: int) -> int:
    """Evaluations of the best document there is: the best value of each attribute."""
    every = np.arange(domain, dtype=np.int32)
    counts: list[Any] = [index.evaluations(every).min() for index in profiles.indexes]  # type: ignore[attr-defined]
    return int(sum(counts))


def fig_7(*, small: bool) -> dict[str, Any]:
    """Evaluations against the number of profiles."""
    points: list[Point] = []
    overlaps = {}
    for n in (50, 100) if small else range(100, 1_001, 100):
        lows = starts(Draw(SEED, 7, n), ATTRIBUTES * n).reshape(ATTRIBUTES, n)
        highs = lows + SIZE
        overlaps[n] = 100 * overlap(lows, highs)
        points += _points(INDEXES, n, lows, highs)
    return {
        "parameters": {
            "attributes": ATTRIBUTES,
            "documents": DOCUMENTS,
            "size": SIZE,
            "overlap": beside_the_papers(overlaps.values()),
        },
        "overlap": overlaps,
        "points": points,
    }


def beside_the_papers(percents: Iterable[float]) -> str:
    """The overlaps, in words, and whether they are as low as in the paper."""
    low, high = PAPERS_OVERLAP
    held = list(percents)
    lies = "within" if low <= min(held) and max(held) <= high else "not within"
    return f"{spread(held)} percent ({lies} the paper's {low} to {high})"


def fig_8(*, small: bool) -> dict[str, Any]:
    """Evaluations against the overlap, which longer intervals make higher."""
    n = 30 if small else 100
    lows = starts(Draw(SEED, 8, n), ATTRIBUTES * n).reshape(ATTRIBUTES, n)
    points: list[Point] = []
    sizes = {}
    for percent in (10, 90) if small else OVERLAPS:
        size = _size_for(percent / 100, lows)
        sizes[percent] = size
        percent_there = round(100 * overlap(lows, lows + size), 1)
        points += _points((*INDEXES, AS_IT_COMES), percent_there, lows, lows + size)
    return {
        "parameters": {"attributes": ATTRIBUTES, "documents": DOCUMENTS, "profiles": n},
        "sizes": sizes,
        "points": points,
    }


def _points(names: Iterable[str], x: float, lows: Ints, highs: Ints) -> list[Point]:
    domain = int(highs.max()) + 1
    found = []
    for name in names:
        profiles = built(name, lows, highs, domain)
        mean = evaluations(name, profiles, lows, highs, domain, 78)
        found.append({"structure": name, "x": x, "evaluations": mean})
    told = ", ".join(f"{point['structure']} {point['evaluations']:.1f}" for point in found)
    progress(f"  {x:g}: {told}")
    return found


def _size_for(share: float, lows: Ints) -> int:
    """Smallest size of intervals at which so many pairs overlap."""
    low, high = 0, int(lows.max())
    while low < high:
        middle = (low + high) // 2
        if overlap(lows, lows + middle) >= share:
            high = middle
        else:
            low = middle + 1
    return low


def table_1(*, small: bool) -> dict[str, Any]:
    """Evaluations against n where hardly any intervals overlap, and where all of them do."""
    points: list[Point] = []
    for n in (50, 100, 200) if small else tuple(100 * 2**i for i in range(6)):
        draw = Draw(SEED, 1, n)
        reach = 10 * n
        sparse = starts(draw, ATTRIBUTES * n, reach, skew=0.0).reshape(ATTRIBUTES, n)
        left, right = draw.below(reach, ATTRIBUTES * n), draw.below(reach, ATTRIBUTES * n)
        shape = (ATTRIBUTES, n)
        settings = {
            "sparse": (sparse, sparse + SIZE),
            "nested": ((reach - left).reshape(shape), (reach + right).reshape(shape)),
        }
        for name in INDEXES:
            point: Point = {"structure": name, "x": n}
            for setting, (lows, highs) in settings.items():
                domain = int(highs.max()) + 1
                profiles = built(name, lows, highs, domain)
                point[setting] = evaluations(name, profiles, lows, highs, domain, 1)
                if name == "interval" and setting == "sparse":
                    point["fewest"] = fewest(profiles, domain)
            points.append(point)
        progress(f"  {n} profiles")
    return {
        "parameters": {"attributes": ATTRIBUTES, "documents": DOCUMENTS},
        "points": points,
    }


EXPERIMENTS = {"004-fig7": fig_7, "004-fig8": fig_8, "004-table1": table_1}
