"""The parts that pages of the papers' experiments are made of.

Tables of targets, of findings and of values, all from the points that are plotted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.report import number, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from benchmarks.papers.figure import Figure, Points
    from benchmarks.papers.targets import Reached, Target

YES, NO = "yes", "**no**"
AFTERWARDS = "†"


def dates(measured: Mapping[str, Any]) -> str:
    """Say when the experiments were run, if at several times."""
    begun = sorted(str(each["date"]) for each in measured.values())
    if not begun or begun[0] == begun[-1]:
        return ""
    return f" The experiments began between {begun[0]} and {begun[-1]}."


def target_table(found: Iterable[tuple[Target, Reached]]) -> str:
    """What was to be reached, what was measured, and whether it is."""
    rows = [
        [target.what, reached.measured, target.asked, YES if reached.met else NO]
        for target, reached in found
    ]
    return table("Targets", ["figure", "measured", "target", "reached"], rows, words=4)


def summary(figures: list[Figure], measured: Mapping[str, Any]) -> str:
    """Count, per figure, the findings that are seen here too."""
    rows = []
    for figure in figures:
        points = figure.points(measured[figure.experiment])
        held = sum(claim.judge(points).holds for claim in figure.claims)
        rows.append([_link(figure.title), f"{held} of {len(figure.claims)}"])
    return table("Findings seen here too", ["figure", "findings"], rows)


def _link(title: str) -> str:
    anchor = "".join(c for c in title.lower() if c.isalnum() or c in " -_").replace(" ", "-")
    return f"[{title}](#{anchor})"


def figure_section(figure: Figure, measured: Mapping[str, Any]) -> str:
    """A figure's findings and verdicts, its plot, its setting and the numbers behind it."""
    points = figure.points(measured)
    rows, afterwards = [], []
    for claim in figure.claims:
        verdict = claim.judge(points)
        mark = ""
        if claim.afterwards:
            mark = f" {AFTERWARDS}"
            afterwards.append(claim.afterwards)
        criterion = verdict.criterion + mark
        rows.append([claim.paper, criterion, YES if verdict.holds else NO, verdict.seen])
    told = "; ".join(dict.fromkeys(afterwards))
    parts = [
        table(figure.title, ["the paper", "criterion", "seen here", "measured"], rows, words=4),
        f"{AFTERWARDS} Chosen when a result had been seen: {told}." if told else "",
        f"![{figure.title}]({figure.name}.svg)",
        parameters(measured["parameters"]) + (f" {figure.note}" if figure.note else ""),
        _singles(points) if any(panel.key == "ns_per_value" for panel in figure.panels) else "",
        *(f"Not measured at {p['x']:,.10g}: {p['refused']}." for p in points.refused),
        *(_values(figure, points, panel) for panel in figure.panels),
    ]
    return "\n\n".join(part for part in parts if part)


def parameters(given: Mapping[str, Any]) -> str:
    """Say the setting of an experiment."""
    told = ", ".join(
        f"{name} = {value:,}" if isinstance(value, int) else f"{name} = {value}"
        for name, value in given.items()
    )
    return f"Setting: {told}."


def _singles(points: Points) -> str:
    """Say what one value at a time costs, where that was measured."""
    told = []
    for name, label in points.labels.items():
        times = [time / 1e3 for time in points.of(name, "ns_single").values()]
        if times:
            ratios = points.ratios_of_keys(name, "ns_single", "ns_per_value")
            told.append(
                f"{label} {number(min(times))} to {number(max(times))} µs"
                f" ({number(min(ratios))} to {number(max(ratios))} times the batch)"
            )
    return f"One value at a time: {', '.join(told)}." if told else ""


def _values(figure: Figure, points: Points, panel: Any) -> str:
    """The numbers behind one panel: a row per structure, a column per x."""
    xs = sorted({x for name in figure.labels for x in points.of(name, panel.key)})
    rows = []
    for name, label in figure.labels.items():
        values = points.of(name, panel.key)
        cells = [number(values[x] * panel.scale) if x in values else "" for x in xs]
        rows.append([label, *cells])
    return table("", [panel.label, *(f"{x:,.10g}" for x in xs)], rows)
