"""The page of seed 003: what was to be reached, where our engine is not ahead, and every figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.papers import plots
from benchmarks.papers.figure import LITTLE, MUCH, Points
from benchmarks.papers.sections import dates, figure_section, summary, target_table
from benchmarks.papers.seed_003 import FULL
from benchmarks.papers.seed_003_figures import FIGURES
from benchmarks.papers.seed_003_measure import EVENTS, LABELS, MOST_BYTES, MOST_SECONDS
from benchmarks.papers.seed_003_synthetic import BUILDING, MATCHING
from benchmarks.papers.targets import Reached, Target
from benchmarks.report import environment, number, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

AHEAD, FLAT, TIMES = 10, LITTLE, 5


def write(result: dict[str, Any], folder: Path) -> None:
    """Write seed_003.md and one SVG per figure that was measured."""
    measured = result["experiments"]
    for figure in FIGURES:
        if figure.experiment in measured:
            points = figure.points(measured[figure.experiment])
            plots.draw(figure, points, folder / f"{figure.name}.svg")
    (folder / "seed_003.md").write_text(page(result))


def page(result: dict[str, Any]) -> str:
    """Write the whole page."""
    measured = result["experiments"]
    figures = [figure for figure in FIGURES if figure.experiment in measured]
    small = " The sizes are small ones, to see that everything runs: the figures mean nothing."
    sections = [
        "# Seed 003 again: OpIndex, k-index, BE-Tree, counting and our engine",
        environment(result),
        _INTRODUCTION.format(
            small=small if result["scale"] != "full" else "",
            dates=dates(measured),
            much=MUCH,
            little=LITTLE,
            events=f"{EVENTS:,}",
            most_n=f"{FULL.n[-1]:,}",
            standins=f"{FULL.standins[-1]:,}",
            clauses=f"{FULL.many_clauses[-1]:,}",
            clauses_of=f"{FULL.clauses_of:,}",
            inserted=f"{FULL.inserted:,}",
            gigabytes=f"{MOST_BYTES / 1e9:g}",
            build=f"{MOST_SECONDS['build']:g}",
            insert=f"{MOST_SECONDS['insert']:g}",
        ),
        target_table(rows(measured)),
        _not_ahead(measured),
        _WHY,
        summary(figures, measured),
        _scan(measured),
        *(figure_section(figure, measured[figure.experiment]) for figure in figures),
        _work(measured),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


_INTRODUCTION = """\
Written by `python -m benchmarks.papers.report` from the results of a run.{small}{dates} All indexes
are ours, written after the papers; none is the authors' program.

Synthetic data follow the paper's Table 3, with some of the values that it lists for each
parameter; an event has exactly m attributes. Smaller than the paper's are: N, which ends at
{most_n} and not at 40 million; the stand-ins, at {standins} and not at 5 million; CNF and DNF, at
{clauses} and not at 20 million. Insertion against Gamma_max is
measured with {inserted} subscriptions, CNF and DNF against the number of clauses with
{clauses_of}. Sizes of subscriptions are drawn evenly from 1 to Gamma_max, so that their mean is
(Gamma_max + 1) / 2, not Gamma_max / 2 as the paper's analysis says.

The real data sets cannot be had. Their **stand-ins are made up** and keep what the paper tells of
them: keyword queries, 50,000 keywords, documents of 5.4 and of 123 keywords; products with 10,204
attributes of which the most frequent two stand in 31 and 17 percent, asked for in proportion to the
logarithm of their frequency. Attributes' frequencies come from the subscriptions, in the stand-ins
from a log of other events.

A time is that of `match` on a batch of events that are already in rank space, divided by the
events: one thread, median of the passes, compiling not included. A batch has {events} events, fewer
where that would take long or find more than 20 million matches. Subscriptions that say the same are
one class, in every index; what is found are classes. Memory is that of the index's arrays. Every
strategy must find the same classes for every event, else the run ends.

Not tried is what does not fit: a k-index of more than {gigabytes} GB, and what would take more than
{build} seconds to build or {insert} to insert one by one, by the strategy's pace before.

Whether a finding of the paper is seen here is decided by code, from the same points as the plots,
and the criterion stands beside it, in the words of that code. A ratio is asked for at every point
unless it says where; growth is that from the first to the last x. "Much", "dramatically" and the
like ask for {much} times, "a little" and "steady" allow {little}; "about" allows {much} times
either way."""


_WHY = """\
## Why some findings differ

- **k-index.** The paper times a program that counts in an array with an entry for each
  subscription, and loses by going to it at random. Ours merges the lists of the event's values, as
  the k-index's own authors describe it: lists are sorted, the shorter ones are skipped through, and
  nothing is counted. It therefore loses far less in matching. What rewriting ranges into equalities
  costs in memory and insertion is as the paper says; where every whole number is a constant, ours
  has twice the postings, because fractions between two of them need a place too. An event reads one
  list of a gap between constants, whichever value it has there.
- **OpIndex** looks at every pair of the event's attributes for each operator, whether or not there
  is anything to find: 1,200 signatures at the default setting, most of them a cache miss that only
  fetching ahead hides. That is where its time goes while lists are short; its lead over the k-index
  grows as they get longer.
- **BE-Tree.** The paper's takes very long to build and to cut leaves. Ours lives in flat arrays and
  cuts a leaf only where that is expected to pay, so that it builds about as fast as OpIndex, and
  the capacity decides how many expressions are looked at but hardly the time.
- **pivot** visits the list of a value once for all events of the batch that have it, and verifies a
  candidate by its most selective further predicate first. OpIndex, k-index, BE-Tree and counting go
  event by event, as in the papers.
"""


# What was to be reached


def matching_keys(measured: Mapping[str, Any]) -> Iterable[tuple[str, str, Points]]:
    """Every figure's panels of matching time, once per experiment and key."""
    seen = set()
    for figure in FIGURES:
        if figure.experiment not in measured:
            continue
        points = figure.points(measured[figure.experiment])
        for panel in figure.panels:
            if panel.key.startswith(MATCHING) and (figure.experiment, panel.key) not in seen:
                seen.add((figure.experiment, panel.key))
                yield figure.experiment, panel.key, points


def comparisons(measured: Mapping[str, Any]) -> list[tuple[float, str, str]]:
    """How many times longer than the pivot engine each other strategy takes, and where."""
    found = []
    for experiment, key, points in matching_keys(measured):
        kind = key.removeprefix(MATCHING).strip()
        for name in points.labels:
            if name != "pivot":
                for x, ratio in points.ratios(key, name, "pivot").items():
                    where = f"{experiment}{f', {kind}' if kind else ''} at {x:,.10g}"
                    found.append((ratio, name, where))
    return sorted(found)


def _default(measured: Mapping[str, Any], slow: str, fast: str) -> float | None:
    """How many times longer one strategy takes than another, at the default setting."""
    points = Points(measured["003-n"]["points"], LABELS)
    ratios = points.ratios(MATCHING, slow, fast)
    return ratios[min(ratios)] if ratios else None


def _times(slow: str, fast: str, least: float) -> Any:
    def judge(measured: Mapping[str, Any]) -> Reached:
        ratio = _default(measured, slow, fast)
        if ratio is None:
            return Reached("not measured", False)
        return Reached(number(ratio), ratio >= least)

    return judge


def _flat(measured: Mapping[str, Any]) -> Reached:
    sizes = Points(measured["003-sigma"]["points"], LABELS).of("opindex", "bytes")
    if len(sizes) < 2:
        return Reached("not measured", False)
    ratio = max(sizes.values()) / min(sizes.values())
    return Reached(number(ratio), ratio <= FLAT)


def _everywhere(measured: Mapping[str, Any]) -> Reached:
    found = comparisons(measured)
    if not found:
        return Reached("not measured", False)
    ahead = sum(ratio > 1 for ratio, _, _ in found)
    ratio, name, where = found[0]
    words = f"at {ahead} of {len(found)} points; closest: {LABELS[name]}, {ratio:.3g} in {where}"
    return Reached(words, ahead == len(found))


TARGETS = (
    Target(
        "matching time k-index / OpIndex at the paper's default",
        f"≥ {AHEAD}",
        ("003-n",),
        _times("kindex", "opindex", AHEAD),
    ),
    Target(
        "OpIndex's memory over the value space, greatest / smallest",
        f"≤ {FLAT}",
        ("003-sigma",),
        _flat,
    ),
    Target(
        "matching time OpIndex / pivot at the paper's default",
        f"≥ {TIMES}",
        ("003-n",),
        _times("opindex", "pivot", TIMES),
    ),
    Target(
        "matching time of every other strategy / pivot, in every figure",
        "> 1 at all",
        ("003-n",),
        _everywhere,
    ),
)


def rows(measured: Mapping[str, Any]) -> Iterable[tuple[Target, Reached]]:
    """Every target that the experiments at hand can tell about."""
    for target in TARGETS:
        if all(name in measured for name in target.needs):
            yield target, target.judge(measured)


def _not_ahead(measured: Mapping[str, Any]) -> str:
    """Where another strategy is faster than the pivot engine."""
    found = [
        [where, LABELS[name], number(ratio)]
        for ratio, name, where in comparisons(measured)
        if ratio <= 1
    ]
    head = ["experiment", "strategy", "its time / pivot's"]
    return table("Where the pivot engine is not ahead", head, found, words=2)


# Other tables


def _scan(measured: Mapping[str, Any]) -> str:
    """All strategies beside the scan, where that is possible."""
    if "003-scan" not in measured:
        return ""
    found = measured["003-scan"]
    points = [point for point in found["points"] if "refused" not in point]
    lines = [
        [
            LABELS[point["structure"]],
            number(point[MATCHING]),
            number(point["candidates"]),
            number(point["matches"]),
            number(point["bytes"] / 1e6),
            number(point[BUILDING]),
        ]
        for point in sorted(points, key=lambda point: float(point[MATCHING]))
    ]
    head = ["strategy", "µs per event", "candidates", "matches", "MB", "build s"]
    n = found["parameters"]["N"]
    return table(f"Beside a scan, {n:,} subscriptions", head, lines)


def _work(measured: Mapping[str, Any]) -> str:
    """How much was measured with: events, classes, candidates and matches of every point."""
    lines = []
    for experiment, key, points in matching_keys(measured):
        kind = key.removeprefix(MATCHING)
        for name, label in points.labels.items():
            events = points.of(name, f"events{kind}")
            for x, n in events.items():
                lines.append(
                    [
                        f"{experiment}{kind}",
                        label,
                        f"{x:,.10g}",
                        f"{n:,}",
                        f"{points.of(name, f'classes{kind}')[x]:,}",
                        number(points.of(name, f"candidates{kind}")[x]),
                        number(points.of(name, f"matches{kind}")[x]),
                    ]
                )
    head = ["experiment", "strategy", "x", "events", "classes", "candidates", "matches"]
    return table("Events, classes, and candidates and matches per event", head, lines, words=2)
