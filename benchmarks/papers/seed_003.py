"""Seed 003 (OpIndex): Fig. 1 and 7 to 14, with k-index, BE-Tree, counting and our pivot engine.

One sweep gives the points of several figures: that of N has memory (Fig. 8a), insertion (9a) and
matching (10a). Where a figure shows two kinds of subscriptions or of events side by side, they
share a point, and the keys of the second kind have its name behind them::

    {"structure": "opindex", "x": 1000000, "us_per_event": 12, "us_per_event dnf": 9}

Sizes are the paper's where memory and an hour allow; where they are smaller, the page says so. A
small run has the same shapes, of a few hundred subscriptions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.papers import seed_003_forms as forms
from benchmarks.papers import seed_003_standins as standins
from benchmarks.papers.measure import progress
from benchmarks.papers.seed_003_data import Setting, drawn, drawn_events
from benchmarks.papers.seed_003_measure import ALL, EVENTS, Pace, compare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from benchmarks.papers.measure import Point

#: The k-index has no prefixes, neither in the paper nor here.
WITHOUT_K_INDEX = tuple(name for name in ALL if name != "kindex")
#: The others take a CNF only as the DNF that it is, which may be a thousand clauses.
WITH_CNF = ("pivot", "opindex", "opindex-bs", "kindex")
PREFIX_SHARE, PREFIX_LENGTH, CLAUSES = 0.5, 3, 5
DEFAULT = Setting()


@dataclass(frozen=True)
class Scale:
    """The setting that is varied, and the values of every axis."""

    setting: Setting = DEFAULT
    n_events: int = EVENTS
    logged: int = standins.LOGGED
    n: Sequence[int] = (1_000_000, 3_000_000, 10_000_000)
    d: Sequence[int] = (20_000, 40_000, 60_000)
    largest: Sequence[int] = (4, 12, 20)
    m: Sequence[int] = (20, 40, 80, 120)
    equal: Sequence[float] = (0.2, 0.4, 0.6, 1.0)
    sigma: Sequence[int] = (50, 200, 800, 3_200, 12_800)
    zipf: Sequence[float] = (0.0, 0.4, 0.8, 1.0)
    scanned: int = 20_000
    capacities: Sequence[int] = (5, 50, 150, 250)
    standins: Sequence[int] = (1_000_000, 4_000_000)
    wishes: Sequence[int] = (4, 12, 20)
    clauses: Sequence[int] = (2, 4, 6, 10)
    many_clauses: Sequence[int] = (250_000, 1_000_000)
    clauses_of: int = 250_000
    inserted: int = 200_000
    prefix_shares: Sequence[float] = (0.0, 0.4, 0.8, 1.0)
    prefix_lengths: Sequence[int] = (1, 3, 6)


FULL = Scale()
SMALL = Scale(
    setting=Setting(n=1_500, d=100, m=12, sigma=20),
    n_events=100,
    logged=200,
    n=(1_500, 3_000),
    d=(100, 150),
    largest=(4, 8),
    m=(12, 24),
    equal=(0.4, 1.0),
    sigma=(20, 40),
    zipf=(0.0, 1.0),
    scanned=200,
    capacities=(5, 50),
    standins=(1_500, 3_000),
    wishes=(4, 8),
    clauses=(2, 3),
    many_clauses=(1_500, 3_000),
    clauses_of=1_500,
    inserted=1_500,
    prefix_shares=(0.0, 0.5),
    prefix_lengths=(2, 3),
)
SYMBOLS = {"n": "N", "largest": "Gamma_max", "equal": "theta_1", "zipf": "Zipf"}


def _scale(*, small: bool) -> Scale:
    return SMALL if small else FULL


def _told(setting: Setting, *varied: str, **others: Any) -> dict[str, Any]:
    """The setting in the paper's symbols, but for what is varied."""
    told = {SYMBOLS.get(k, k): v for k, v in vars(setting).items() if k not in varied}
    return told | others


def _against(
    axis: str, *, small: bool, insert: bool = False, fewer: bool = False
) -> dict[str, Any]:
    """All strategies on Table 3's data, with one of its parameters varied."""
    scale, pace = _scale(small=small), Pace()
    setting = replace(scale.setting, n=scale.inserted) if fewer else scale.setting
    points: list[Point] = []
    for x in getattr(scale, axis):
        progress(f"  {SYMBOLS.get(axis, axis)} = {x:,}")
        there = replace(setting, **{axis: x})
        events = {x: drawn_events(there, scale.n_events)}
        points += compare(drawn(there), events, ALL, pace, insert=insert)
    return {"parameters": _told(setting, axis), "points": points}


def against_m(*, small: bool) -> dict[str, Any]:
    """All strategies, with events of several sizes."""
    scale = _scale(small=small)
    events = {m: drawn_events(replace(scale.setting, m=m), scale.n_events) for m in scale.m}
    points = compare(drawn(scale.setting), events, ALL, Pace())
    return {"parameters": _told(scale.setting, "m"), "points": points}


def capacities(*, small: bool) -> dict[str, Any]:
    """BE-Tree alone, with leaves of several capacities."""
    scale, pace = _scale(small=small), Pace()
    subscriptions = drawn(scale.setting)
    events = drawn_events(scale.setting, scale.n_events)
    points: list[Point] = []
    for capacity in scale.capacities:
        given = {"capacity": capacity}
        points += compare(subscriptions, {capacity: events}, ["betree"], pace, given=given)
    return {"parameters": _told(scale.setting), "points": points}


def scanned(*, small: bool) -> dict[str, Any]:
    """All strategies and the scan, on so few subscriptions that a scan is possible."""
    scale = _scale(small=small)
    setting = replace(scale.setting, n=scale.scanned)
    events = {setting.n: drawn_events(setting, scale.n_events)}
    points = compare(drawn(setting), events, (*ALL, "scan"), Pace())
    return {"parameters": _told(setting), "points": points}


def _named(points: Iterable[Point], kind: str) -> list[Point]:
    """The points with the name of their kind behind what was measured."""
    kept = ("structure", "x")
    return [
        {
            key if key in kept else f"{key} {kind}": value
            for key, value in point.items()
            if key != "refused"
        }
        | ({"refused": f"{point['refused']} ({kind})"} if "refused" in point else {})
        for point in points
    ]


def _together(*kinds: Sequence[Point]) -> list[Point]:
    """One point of those that share structure and x; refusals stay by themselves."""
    merged: dict[tuple[str, float], Point] = {}
    refused = []
    for points in kinds:
        for point in points:
            if "refused" in point:
                refused.append(point)
            else:
                merged.setdefault((point["structure"], point["x"]), {}).update(point)
    return [*merged.values(), *refused]


def keywords(*, small: bool) -> dict[str, Any]:
    """Stand-in for AOL queries: = and intervals, against short and long documents."""
    scale = _scale(small=small)
    points: list[Point] = []
    for intervals in (False, True):
        pace = Pace()
        events = {
            "short": standins.documents(scale.n_events, standins.SHORT, intervals=intervals),
            "long": standins.documents(scale.n_events, standins.LONG, intervals=intervals),
        }
        for n in scale.standins:
            progress(f"  N = {n:,}, {'intervals' if intervals else 'equalities'}")
            subscriptions = standins.keywords(n, intervals=intervals, logged=scale.logged)
            found = compare(subscriptions, events, ALL, pace)
            for kind in events:
                named = f"{kind} interval" if intervals else kind
                points += _named([{**p, "x": n} for p in found if p["x"] == kind], named)
    parameters = {
        "keywords": standins.KEYWORDS,
        "keywords per document": f"{standins.SHORT:g} (short), {standins.LONG:g} (long)",
    }
    return {"parameters": parameters, "points": _together(points)}


def products_n(*, small: bool) -> dict[str, Any]:
    """Stand-in for eBay products: = and sets, against N."""
    scale = _scale(small=small)
    cases = [(n, n, scale.setting.largest) for n in scale.standins]
    return _products(scale, cases, Gamma_max=scale.setting.largest)


def products_largest(*, small: bool) -> dict[str, Any]:
    """Stand-in for eBay products: = and sets, against the maximal size."""
    scale = _scale(small=small)
    cases = [(largest, scale.standins[0], largest) for largest in scale.wishes]
    return _products(scale, cases, N=scale.standins[0])


def _products(scale: Scale, cases: Sequence[tuple[float, int, int]], **told: Any) -> dict[str, Any]:
    products = standins.products(scale.n_events)
    kinds = []
    for kind, sets in (("equal", False), ("set", True)):
        pace = Pace()
        points: list[Point] = []
        for x, n, largest in cases:
            progress(f"  {x:,}, {kind}")
            subscriptions = standins.shop(n, largest, sets=sets, logged=scale.logged)
            points += compare(subscriptions, {x: products}, ALL, pace)
        kinds.append(_named(points, kind))
    parameters = {"attributes": standins.ATTRIBUTES, **told}
    return {"parameters": parameters, "points": _together(*kinds)}


def clauses_n(*, small: bool) -> dict[str, Any]:
    """CNF and DNF against N."""
    scale = _scale(small=small)
    cases = [(n, replace(scale.setting, n=n), CLAUSES) for n in scale.many_clauses]
    return _clauses(scale, cases, clauses=f"1 to {CLAUSES}")


def clauses_k(*, small: bool) -> dict[str, Any]:
    """CNF and DNF against the maximal number of clauses."""
    scale = _scale(small=small)
    setting = replace(scale.setting, n=scale.clauses_of)
    return _clauses(scale, [(most, setting, most) for most in scale.clauses], N=setting.n)


def _clauses(
    scale: Scale, cases: Sequence[tuple[float, Setting, int]], **told: Any
) -> dict[str, Any]:
    events = drawn_events(scale.setting, scale.n_events)
    kinds = []
    for kind, cnf, names in (("cnf", True, WITH_CNF), ("dnf", False, ALL)):
        pace = Pace()
        points: list[Point] = []
        for x, setting, most in cases:
            progress(f"  {x:,}, {kind}")
            subscriptions = forms.clauses(setting, most, cnf=cnf)
            points += compare(subscriptions, {x: events}, names, pace)
        kinds.append(_named(points, kind))
    parameters = _told(scale.setting, "n", "largest", **told)
    parameters["predicates per clause"] = f"1 to {forms.CLAUSE_SIZE}"
    return {"parameters": parameters, "points": _together(*kinds)}


def prefix_shares(*, small: bool) -> dict[str, Any]:
    """Prefixes and equalities, against the share of prefixes."""
    scale = _scale(small=small)
    cases = [(100 * share, share, PREFIX_LENGTH) for share in scale.prefix_shares]
    return _prefixes(scale, cases, **{"prefix length": PREFIX_LENGTH})


def prefix_lengths(*, small: bool) -> dict[str, Any]:
    """Prefixes and equalities, against the length of prefixes."""
    scale = _scale(small=small)
    cases = [(length, PREFIX_SHARE, length) for length in scale.prefix_lengths]
    return _prefixes(scale, cases, **{"share of prefixes": PREFIX_SHARE})


def _prefixes(
    scale: Scale, cases: Sequence[tuple[float, float, int]], **told: Any
) -> dict[str, Any]:
    points: list[Point] = []
    pace = Pace()
    for x, share, length in cases:
        progress(f"  {x:g}")
        subscriptions, strings = forms.prefixed(scale.setting, share, length)
        events = {x: forms.prefix_events(scale.setting, strings, scale.n_events)}
        points += compare(subscriptions, events, WITHOUT_K_INDEX, pace)
    parameters = {
        "N": scale.setting.n,
        "Gamma_max": scale.setting.largest,
        "sigma": scale.setting.sigma,
        "numeric attributes": forms.NUMERIC,
        "string attributes": forms.STRINGS,
        "an event's": f"{forms.EVENT_NUMBERS} and {forms.EVENT_STRINGS} of them",
    }
    return {"parameters": parameters | told, "points": points}


EXPERIMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "003-d": partial(_against, "d"),
    "003-capacity": capacities,
    "003-scan": scanned,
    "003-n": partial(_against, "n", insert=True),
    "003-largest": partial(_against, "largest"),
    "003-insert-largest": partial(_against, "largest", insert=True, fewer=True),
    "003-m": against_m,
    "003-equal": partial(_against, "equal"),
    "003-sigma": partial(_against, "sigma"),
    "003-zipf": partial(_against, "zipf"),
    "003-keywords": keywords,
    "003-products-n": products_n,
    "003-products-largest": products_largest,
    "003-clauses-n": clauses_n,
    "003-clauses": clauses_k,
    "003-prefix-share": prefix_shares,
    "003-prefix-length": prefix_lengths,
}
