"""A figure of a paper: which points it shows, and what the paper reads off it.

An experiment gives points, one per structure and x. A ``Figure`` names the panels to plot and the
claims to judge, and a claim is judged by code, from the points::

    points   lci-dt  16  {"bytes": 4.1e6, "ns_per_value": 310}
             cei     16  {"bytes": 1.9e6, "ns_per_value": 120}
    claim    below("ns_per_value", "cei", "lci-dt")   ->   holds, "time CEI / LCI 0.387"
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.papers.measure import Point


class Verdict(NamedTuple):
    """Whether a claim holds here, and the figures that say so."""

    holds: bool
    seen: str


class Panel(NamedTuple):
    """One pair of axes: a figure of every point against x."""

    key: str
    label: str
    scale: float = 1.0
    log: bool = True


class Claim(NamedTuple):
    """What the paper found, and how to see whether it is so here."""

    paper: str
    judge: Callable[[Points], Verdict]


@dataclass(frozen=True)
class Figure:
    """A figure: where its points come from, how it is drawn, what it is said to show."""

    name: str
    title: str
    experiment: str
    x_label: str
    labels: Mapping[str, str]
    panels: Sequence[Panel]
    claims: Sequence[Claim]
    note: str = ""
    log_x: bool = True

    def points(self, measured: Mapping[str, Any]) -> Points:
        """The points of its structures in an experiment's result."""
        kept = [point for point in measured["points"] if point["structure"] in self.labels]
        return Points(kept, self.labels)


class Points:
    """Points of an experiment, by structure and key."""

    def __init__(self, points: Sequence[Point], labels: Mapping[str, str]) -> None:
        self.labels = labels
        self.refused = [point for point in points if "refused" in point]
        self._points = [point for point in points if "refused" not in point]

    def of(self, name: str, key: str) -> dict[float, float]:
        """Value of every x that the structure was measured at."""
        return {
            point["x"]: point[key]
            for point in self._points
            if point["structure"] == name and key in point
        }

    def ratios(self, key: str, name: str, other: str) -> dict[float, float]:
        """One structure's value divided by another's, where both were measured."""
        mine, theirs = self.of(name, key), self.of(other, key)
        return {x: mine[x] / theirs[x] for x in mine if x in theirs}

    def ratios_of_keys(self, name: str, key: str, other: str) -> list[float]:
        """One value of a structure divided by another of its values, at every x."""
        mine, theirs = self.of(name, key), self.of(name, other)
        return [mine[x] / theirs[x] for x in mine if x in theirs]


Judge: TypeAlias = "Callable[[Points], Verdict]"

WORDS = {
    "bytes": "storage",
    "entries": "constructs",
    "evaluations": "evaluations",
    "ns_per_value": "time",
    "ns_to_count": "time to find lists",
}
"""What a key of a point is called in a verdict."""


def below(
    key: str,
    name: str,
    other: str,
    factor: float = 1.0,
    only: Callable[[float], bool] = lambda _: True,
) -> Judge:
    """Claim that a structure takes at most ``factor`` times what another does, at every x."""

    def judge(points: Points) -> Verdict:
        ratios = [ratio for x, ratio in points.ratios(key, name, other).items() if only(x)]
        what = f"{WORDS[key]} {points.labels[name]} / {points.labels[other]}"
        return bounded(what, ratios, factor)

    return judge


def bounded(what: str, ratios: Sequence[float], factor: float) -> Verdict:
    """Judge ratios that should be at most ``factor``, none of them being a failure too."""
    if not ratios:
        return Verdict(False, f"{what}: not measured")
    fit = sum(ratio <= factor for ratio in ratios)
    spread = " to ".join(dict.fromkeys(f"{ratio:.3g}" for ratio in (min(ratios), max(ratios))))
    where = "" if fit == len(ratios) else f", at most {factor:g} at {fit} of {len(ratios)} points"
    return Verdict(fit == len(ratios), f"{what} {spread}{where}")


def all_of(*judges: Judge) -> Judge:
    """Claim that several things hold together."""

    def judge(points: Points) -> Verdict:
        verdicts = [each(points) for each in judges]
        holds = all(verdict.holds for verdict in verdicts)
        return Verdict(holds, "; ".join(verdict.seen for verdict in verdicts))

    return judge


def crosses(key: str, name: str, other: str, paper: float) -> Judge:
    """Claim that a structure overtakes another at about the paper's x, give or take a doubling."""

    def judge(points: Points) -> Verdict:
        ratios = points.ratios(key, name, other)
        what = f"{points.labels[name]} above {points.labels[other]}"
        above = [x for x in sorted(ratios) if ratios[x] > 1]
        if not above:
            return Verdict(False, f"{what}: nowhere")
        if len(above) == len(ratios):
            return Verdict(False, f"{what}: everywhere")
        return Verdict(paper / 2 <= above[0] <= paper * 2, f"{what} from {above[0]:,.0f} on")

    return judge


def grows(key: str, name: str, factor: float) -> Judge:
    """Claim that a structure's value at the last x is at least ``factor`` times the first."""

    def judge(points: Points) -> Verdict:
        values = points.of(name, key)
        if not values:
            return Verdict(False, f"{points.labels[name]}: not measured")
        grown = values[max(values)] / values[min(values)]
        return Verdict(grown >= factor, f"{points.labels[name]} grows {grown:.3g} times")

    return judge
