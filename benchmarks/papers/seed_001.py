"""Seed 001 (containment-encoded intervals): Fig. 14 to 19.

[x, x + w) over integers is cells x .. x + w - 1, and a float falls into the cell that it has
without its fraction. 50,000 random searches of floats, the ids included as in the paper. Its LCI
is our ``lci-dt``: the covering constructs are enumerated, not looked for.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from benchmarks.draw import Draw, Floats
from benchmarks.papers import cost
from benchmarks.papers.figure import (
    LITTLE,
    MUCH,
    WORDS,
    Claim,
    Figure,
    Panel,
    Points,
    Verdict,
    all_of,
    below,
    below_all,
    bounded,
    from_x,
    together,
    up_to_x,
)
from benchmarks.papers.measure import half_open, load_kernels, measure, progress
from bittern.stabbing.registry import structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.papers.measure import Point

SEED = 1
LARGE_R, SMALL_R = 1_048_576, 65_536
SEARCHES = 50_000
CONSTRUCTS = {"ui": "UI", "lci-dt": "LCI", "cei": "CEI"}
ALL = {**CONSTRUCTS, "is-list": "IS-lists"}
#: What each structure calls the papers' L; the others have none.
LENGTH = {"lci-dt": "longest", "cei": "segment"}
BOUNDS = {"cei": cost.cei_mu_bounds, "lci-dt": cost.lci_mu_bounds}

SAMPLE_ERROR = 1.01
SAMPLE_NOTE = (
    "The lengths of 100,000 intervals have a mean that is uncertain by 0.2 percent, and where L"
    " divides W the lower bound is the exact mean: so a point may leave the bounds by one percent."
)
TOLERANCE = "the tolerance of one percent"
TWENTY = 20


def _length(name: str, longest: int) -> dict[str, int]:
    return {LENGTH[name]: longest} if name in LENGTH else {}


def _values(figure: int, domain: int, *, small: bool) -> Floats:
    """Floats between 1 and r."""
    return 1 + Draw(SEED, figure, 1).unit(500 if small else SEARCHES) * (domain - 1)


def _domain(domain: int, *, small: bool) -> int:
    return domain // 512 if small else domain


def fig_14(*, small: bool) -> dict[str, Any]:
    """Entries of all lists against L, and what Table 2 says of them."""
    domain, widest, n = _domain(LARGE_R, small=small), 200, 500 if small else 100_000
    intervals = half_open(Draw(SEED, 14), n, domain, widest)
    points: list[Point] = []
    for longest in _powers(7, small=small):
        for name in CONSTRUCTS:
            load_kernels(name)
            index = structure(name).build(
                intervals.lows,
                intervals.highs,
                intervals.ids,
                domain=domain,
                **_length(name, longest),
            )
            entries = int(index.statistics()["entries"])
            progress(f"  {name} at {longest}: {entries:,} entries")
            points.append({"structure": name, "x": longest, "entries": entries})
            if name in BOUNDS:
                for side, bound in zip(
                    ("lower", "upper"), BOUNDS[name](widest, longest), strict=True
                ):
                    points.append(
                        {"structure": f"{name} {side}", "x": longest, "entries": float(bound * n)}
                    )
    return {"parameters": {"r": domain, "W": widest, "n": n}, "points": points}


def fig_15(*, small: bool) -> dict[str, Any]:
    """Storage and time against L over many values."""
    return _against_length(15, LARGE_R, small=small)


def fig_16(*, small: bool) -> dict[str, Any]:
    """Storage and time against L over few values."""
    return _against_length(16, SMALL_R, small=small)


def _powers(largest: int, *, small: bool) -> Sequence[int]:
    return (4, 16) if small else [2**k for k in range(1, largest + 1)]


def _against_length(figure: int, full: int, *, small: bool) -> dict[str, Any]:
    domain, widest, n = _domain(full, small=small), 200, 500 if small else 100_000
    intervals = half_open(Draw(SEED, figure), n, domain, widest)
    values = _values(figure, domain, small=small)
    points = [
        measure(name, intervals, values, longest, **_length(name, longest))
        for longest in _powers(8, small=small)
        for name in CONSTRUCTS
    ]
    return {
        "parameters": {"r": domain, "W": widest, "n": n, "searches": len(values)},
        "points": points,
    }


def fig_17(*, small: bool) -> dict[str, Any]:
    """Storage and time against W."""
    domain, n, longest = _domain(SMALL_R, small=small), 500 if small else 50_000, 16
    values = _values(17, domain, small=small)
    points: list[Point] = []
    for widest in (10, 40) if small else (10, 20, 40, 80, 160, 320):
        intervals = half_open(Draw(SEED, 17, widest), n, domain, widest)
        points += [
            measure(name, intervals, values, widest, **_length(name, longest)) for name in ALL
        ]
    return {
        "parameters": {"r": domain, "L": longest, "n": n, "searches": len(values)},
        "points": points,
    }


def fig_18(*, small: bool) -> dict[str, Any]:
    """Storage and time against n over many values."""
    return _against_n(18, LARGE_R, small=small)


def fig_19(*, small: bool) -> dict[str, Any]:
    """Storage and time against n over few values."""
    return _against_n(19, SMALL_R, small=small)


def _against_n(figure: int, full: int, *, small: bool) -> dict[str, Any]:
    domain, widest, longest = _domain(full, small=small), 200, 16
    sizes = (100, 400) if small else tuple(5_000 * 2**i for i in range(8))
    intervals = half_open(Draw(SEED, figure), sizes[-1], domain, widest)
    values = _values(figure, domain, small=small)
    points = [
        measure(name, intervals.first(n), values, n, **_length(name, longest))
        for n in sizes
        for name in ALL
    ]
    return {
        "parameters": {"r": domain, "W": widest, "L": longest, "searches": len(values)},
        "points": points,
    }


EXPERIMENTS = {
    "001-fig14": fig_14,
    "001-fig15": fig_15,
    "001-fig16": fig_16,
    "001-fig17": fig_17,
    "001-fig18": fig_18,
    "001-fig19": fig_19,
}

STORAGE = Panel("bytes", "storage, MB", 1e-6)
TIME = Panel("ns_per_value", "search, ids included, ns per value")
ENTRIES = Panel("entries", "constructs of all intervals, thousands", 1e-3)


def _within_bounds(name: str) -> Callable[[Points], Verdict]:
    """Claim that the entries lie between the bounds, give or take the error of the sample."""

    def judge(points: Points) -> Verdict:
        over = points.ratios("entries", name, f"{name} upper")
        under = points.ratios("entries", f"{name} lower", name)
        label = points.labels[name]
        return together(
            [
                bounded(f"{label} / upper bound", list(over.values()), SAMPLE_ERROR),
                bounded(f"lower bound / {label}", list(under.values()), SAMPLE_ERROR),
            ]
        )

    return judge


def _falls(name: str, key: str) -> Callable[[Points], Verdict]:
    """Claim that a value falls from every x to the next."""

    def judge(points: Points) -> Verdict:
        values = [value for _, value in sorted(points.of(name, key).items())]
        falls = sum(later < earlier for earlier, later in pairwise(values))
        criterion = f"{WORDS[key]} of {points.labels[name]} falls at every step"
        if not values:
            return Verdict(False, criterion, f"{points.labels[name]}: not measured")
        whole = f"from {values[0]:,.0f} to {values[-1]:,.0f}"
        seen = f"{points.labels[name]} {whole}, falling at {falls} of {len(values) - 1} steps"
        return Verdict(falls == len(values) - 1, criterion, seen)

    return judge


def _faster_growth(points: Points) -> Verdict:
    """Claim that LCI's time grows by a much larger factor than CEI's, from first to last x."""
    grown = {}
    for name in ("lci-dt", "cei"):
        times = points.of(name, "ns_per_value")
        grown[name] = times[max(times)] / times[min(times)]
    seen = ", ".join(f"{points.labels[name]} grows {by:.3g} times" for name, by in grown.items())
    criterion = f"growth of LCI's time from the first to the last L / CEI's ≥ {MUCH:g}"
    return Verdict(grown["lci-dt"] >= MUCH * grown["cei"], criterion, seen)


def _twenty_times(points: Points) -> Verdict:
    """Claim that CEI takes a twentieth of the time of IS-lists, or less, at the smallest W."""
    criterion = f"time IS-lists / CEI ≥ {TWENTY} at the smallest W, in batches"
    ratios = points.ratios("ns_per_value", "is-list", "cei")
    if not ratios:
        return Verdict(False, criterion, "not measured")
    smallest = min(ratios)
    single = points.ratios("ns_single", "is-list", "cei")[smallest]
    seen = (
        f"CEI is {ratios[smallest]:.3g} times faster at W = {smallest:g}"
        f" ({single:.3g} times when searched one value at a time)"
    )
    return Verdict(ratios[smallest] >= TWENTY, criterion, seen)


def _bounds_labels(name: str, label: str) -> Mapping[str, str]:
    return {name: label, f"{name} lower": "lower bound", f"{name} upper": "upper bound"}


def _length_figure(number: int, words: str) -> Figure:
    return Figure(
        f"seed_001_fig_{number}",
        f"Seed 001, Fig. {number}: storage and search time against L, {words}",
        f"001-fig{number}",
        "longest construct L",
        CONSTRUCTS,
        [STORAGE, TIME],
        [
            Claim(
                "CEI is better than LCI in both storage and search time, at every L.",
                all_of(below("bytes", "cei", "lci-dt"), below("ns_per_value", "cei", "lci-dt")),
            ),
            Claim("The storage of CEI falls as L grows.", _falls("cei", "bytes")),
            Claim("The search time of LCI grows much faster with L than CEI's.", _faster_growth),
            Claim(
                "UI has a fast search and a high storage cost: the least time of the three, and"
                " more storage than CEI.",
                all_of(
                    below_all("ns_per_value", "ui", CONSTRUCTS),
                    below("bytes", "cei", "ui"),
                ),
            ),
        ],
        note="At the smallest L, what CEI saves in constructs is spent on the list numbers that the"
        " paper's numbering leaves unused, one in 2L, and on our masks.",
    )


def _n_figure(number: int, words: str, storage: Claim) -> Figure:
    return Figure(
        f"seed_001_fig_{number}",
        f"Seed 001, Fig. {number}: storage and search time against n, {words}",
        f"001-fig{number}",
        "intervals n",
        ALL,
        [STORAGE, TIME],
        [
            Claim(
                "CEI is faster than LCI and IS-lists.",
                all_of(
                    below("ns_per_value", "cei", "lci-dt"), below("ns_per_value", "cei", "is-list")
                ),
            ),
            Claim(
                "CEI is very close to UI, the fastest.",
                all_of(
                    below("ns_per_value", "cei", "ui", LITTLE),
                    below_all("ns_per_value", "ui", ALL),
                ),
            ),
            Claim(
                "IS-lists are the slowest.",
                all_of(*(below("ns_per_value", name, "is-list") for name in CONSTRUCTS)),
            ),
            storage,
        ],
    )


FIGURES = (
    Figure(
        "seed_001_fig_14a",
        "Seed 001, Fig. 14(a): constructs of CEI and their bounds",
        "001-fig14",
        "longest construct L",
        _bounds_labels("cei", "CEI"),
        [ENTRIES],
        [Claim("The bounds of Table 2 are accurate for CEI.", _within_bounds("cei"), TOLERANCE)],
        note=SAMPLE_NOTE,
    ),
    Figure(
        "seed_001_fig_14b",
        "Seed 001, Fig. 14(b): constructs of LCI and their bounds",
        "001-fig14",
        "longest construct L",
        _bounds_labels("lci-dt", "LCI"),
        [ENTRIES],
        [Claim("The bounds of Table 2 are accurate for LCI.", _within_bounds("lci-dt"), TOLERANCE)],
        note=SAMPLE_NOTE,
    ),
    Figure(
        "seed_001_fig_14c",
        "Seed 001, Fig. 14(c): constructs of all three",
        "001-fig14",
        "longest construct L",
        CONSTRUCTS,
        [ENTRIES],
        [
            Claim(
                "UI has significantly more constructs than the other two.",
                all_of(
                    below("entries", "cei", "ui", 0.6),
                    below("entries", "lci-dt", "ui", 0.6),
                ),
            ),
            Claim("CEI uses more than LCI.", below("entries", "lci-dt", "cei")),
        ],
    ),
    _length_figure(15, "r = 1,048,576"),
    _length_figure(16, "r = 65,536"),
    Figure(
        "seed_001_fig_17",
        "Seed 001, Fig. 17: storage and search time against W",
        "001-fig17",
        "widest interval W",
        ALL,
        [STORAGE, TIME],
        [
            Claim(
                "All three are faster than IS-lists at every W.",
                all_of(*(below("ns_per_value", name, "is-list") for name in CONSTRUCTS)),
            ),
            Claim("CEI takes 1/20 of the time of IS-lists at W = 10.", _twenty_times),
            Claim(
                "IS-lists need more storage than LCI and CEI.",
                all_of(below("bytes", "lci-dt", "is-list"), below("bytes", "cei", "is-list")),
            ),
            Claim(
                "IS-lists need less storage than UI when W is large.",
                below("bytes", "is-list", "ui", where=from_x("W", 160)),
            ),
        ],
    ),
    _n_figure(
        18,
        "r = 1,048,576",
        Claim(
            "IS-lists need the least storage for a small n, and lose this as n grows.",
            all_of(
                *(
                    below("bytes", "is-list", name, where=up_to_x("n", 5_000))
                    for name in CONSTRUCTS
                ),
                below("bytes", "cei", "is-list", where=from_x("n", 640_000)),
            ),
        ),
    ),
    _n_figure(
        19,
        "r = 65,536",
        Claim(
            "IS-lists have no advantage in storage: CEI needs less.",
            below("bytes", "cei", "is-list"),
        ),
    ),
)
