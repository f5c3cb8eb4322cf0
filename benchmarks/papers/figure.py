"""A figure of a paper: which points it shows, and what the paper reads off it.

An experiment gives points, one per structure and x. A ``Figure`` names the panels to plot and the
claims to judge, and a claim is judged by code, from the points::

    points   lci-dt  16  {"bytes": 4.1e6, "ns_per_value": 310}
             cei     16  {"bytes": 1.9e6, "ns_per_value": 120}
    claim    below("ns_per_value", "cei", "lci-dt")
    verdict  holds, by "time CEI / LCI < 1", seen "time CEI / LCI 0.387"

The words of a criterion come from the code that judges, so that they cannot differ from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from benchmarks.papers.measure import Point


MUCH = 1.5
"""What the papers' "much", "substantially" and "critical" have to be at least."""

LITTLE = 1.25
"""What their "a little", "very close" and "steady" may be at most."""


class Verdict(NamedTuple):
    """Whether a claim holds here, by which criterion, and the figures that say so."""

    holds: bool
    criterion: str
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
    afterwards: str = ""
    """What of the criterion was chosen only when a result had been seen."""


class Where(NamedTuple):
    """A part of the x axis, in words and in code."""

    words: str
    holds: Callable[[float], bool]


EVERYWHERE = Where("", lambda _: True)


def from_x(name: str, least: float) -> Where:
    """The part from an x on."""
    return Where(f" for {name} ≥ {least:,}", lambda x: x >= least)


def up_to_x(name: str, most: float) -> Where:
    """The part up to an x."""
    return Where(f" for {name} ≤ {most:,}", lambda x: x <= most)


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
    "us_per_event": "matching time",
    "us_per_insertion": "insertion time",
    "build_seconds": "building time",
}


def called(key: str) -> str:
    """What a key of a point is called in a verdict; a kind may stand behind it."""
    name, _, kind = key.partition(" ")
    return f"{WORDS[name]} ({kind})" if kind else WORDS[name]


def below(key: str, name: str, other: str, factor: float = 1.0, where: Where = EVERYWHERE) -> Judge:
    """Claim that a structure takes less than another, or at most ``factor`` times it, at every x.

    A factor of 1 means less, as "faster" and "less" do; equality is not enough.
    """

    def judge(points: Points) -> Verdict:
        ratios = [r for x, r in points.ratios(key, name, other).items() if where.holds(x)]
        what = f"{called(key)} {points.labels[name]} / {points.labels[other]}"
        return bounded(what, ratios, factor, where.words)

    return judge


def below_all(key: str, name: str, others: Iterable[str], where: Where = EVERYWHERE) -> Judge:
    """Claim that of several structures one takes the least, at every x."""
    return all_of(*(below(key, name, other, where=where) for other in others if other != name))


def bounded(what: str, ratios: Sequence[float], factor: float, where: str = "") -> Verdict:
    """Judge ratios that are to be less than 1, or at most another factor; none is a failure too."""
    asked = "< 1" if factor == 1 else f"≤ {factor:.3g}"
    criterion = f"{what} {asked}{where}"
    if not ratios:
        return Verdict(False, criterion, f"{what}: not measured")
    fit = sum(ratio < 1 if factor == 1 else ratio <= factor for ratio in ratios)
    missed = "" if fit == len(ratios) else f", {asked} at {fit} of {len(ratios)} points"
    return Verdict(fit == len(ratios), criterion, f"{what} {spread(ratios)}{missed}")


def spread(values: Iterable[float]) -> str:
    """The least and the greatest of them, once if they are the same."""
    held = list(values)
    return " to ".join(dict.fromkeys(f"{value:.3g}" for value in (min(held), max(held))))


def all_of(*judges: Judge) -> Judge:
    """Claim that several things hold together."""
    return lambda points: together([each(points) for each in judges])


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict of several: all of them have to hold."""
    return Verdict(
        all(verdict.holds for verdict in verdicts),
        "; ".join(verdict.criterion for verdict in verdicts),
        "; ".join(verdict.seen for verdict in verdicts),
    )


def crosses(key: str, name: str, other: str, paper: float) -> Judge:
    """Claim that a structure overtakes another at about the paper's x, give or take a doubling."""

    def judge(points: Points) -> Verdict:
        ratios = points.ratios(key, name, other)
        what = f"{called(key)} {points.labels[name]} / {points.labels[other]}"
        criterion = f"{what} > 1 at and after a first x of {paper / 2:,.0f} to {paper * 2:,.0f}"
        above = [x for x in sorted(ratios) if ratios[x] > 1]
        if not above:
            return Verdict(False, criterion, f"{what}: above 1 nowhere")
        if len(above) == len(ratios):
            return Verdict(False, criterion, f"{what}: above 1 everywhere")
        stays = all(ratios[x] > 1 for x in ratios if x >= above[0])
        holds = stays and paper / 2 <= above[0] <= paper * 2
        after = "on" if stays else "but not always after"
        return Verdict(holds, criterion, f"{what}: above 1 from {above[0]:,.0f} {after}")

    return judge


def grows(key: str, name: str, factor: float) -> Judge:
    """Claim that a structure's value at the last x is at least ``factor`` times the first."""

    def judge(points: Points) -> Verdict:
        label = points.labels[name]
        criterion = f"{called(key)} of {label} at the last x / at the first ≥ {factor:g}"
        values = points.of(name, key)
        if not values:
            return Verdict(False, criterion, f"{label}: not measured")
        grown = values[max(values)] / values[min(values)]
        return Verdict(grown >= factor, criterion, f"{label} grows {grown:.3g} times")

    return judge
