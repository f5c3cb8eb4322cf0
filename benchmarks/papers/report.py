"""The page and the plots of a run: ``python -m benchmarks.papers.report [JSON] [--output DIR]``.

Every figure, verdict and sentence with a number in it is made from the JSON file::

    results/papers.json --+-- papers.md          what the paper found, whether we see the same
                          +-- seed_001_fig_17.svg and one more for each other figure
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.papers import plots, seed_000, seed_001, seed_004
from benchmarks.papers.measure import BATCH
from benchmarks.papers.run import OUTPUT
from benchmarks.report import environment, number, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.papers.figure import Figure, Points

PAGES = Path(__file__).parents[2] / "docs" / "benchmarks"
FIGURES = (*seed_000.FIGURES, *seed_001.FIGURES, *seed_004.FIGURES)
YES, NO = "yes", "**no**"


def main(arguments: list[str] | None = None) -> int:
    """Read the result file and write the page and the plots."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.report")
    parser.add_argument("result", nargs="?", type=Path, default=OUTPUT, help="the JSON file")
    parser.add_argument("--output", type=Path, default=PAGES, help="folder of page and plots")
    options = parser.parse_args(arguments)
    write(json.loads(options.result.read_text()), options.output)
    return 0


def write(result: dict[str, Any], folder: Path) -> None:
    """Write papers.md and one SVG per figure that was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    measured = result["experiments"]
    for figure in _measured(result):
        points = figure.points(measured[figure.experiment])
        plots.draw(figure, points, folder / f"{figure.name}.svg")
    if "peers" in measured:
        plots.draw_peers(measured["peers"], folder / "peers.svg")
    (folder / "papers.md").write_text(page(result))


def _measured(result: dict[str, Any]) -> list[Figure]:
    return [figure for figure in FIGURES if figure.experiment in result["experiments"]]


def page(result: dict[str, Any]) -> str:
    """Write the whole page."""
    measured, figures = result["experiments"], _measured(result)
    sections = [
        "# The papers' experiments again",
        environment(result),
        _INTRODUCTION.format(batch=f"{BATCH:,}", sizes=_sizes(result)),
        _summary(figures, measured),
    ]
    if "peers" in measured:
        sections.append(_peers(measured["peers"]))
    sections += [_figure(figure, measured[figure.experiment]) for figure in figures]
    return "\n\n".join(section for section in sections if section) + "\n"


_INTRODUCTION = """\
Written by `python -m benchmarks.papers.report` from the results of a run; whether a finding of a
paper is seen here is decided by code, from the same points as the plots. Seed 000 has the virtual
construct intervals, seed 001 CEI, seed 004 the profiles.{sizes}

A time is that of a batch of at most {batch} values, divided by the values: one thread, ids
included unless the axis says otherwise, median of the passes, compiling not included. The papers
searched one value at a time; what that costs here, a call from Python for each value, is said below
each figure. Every structure must find the ids that a count without any index says, in every
figure; a difference ends the run."""


def _sizes(result: dict[str, Any]) -> str:
    """Say whether the sizes are the papers'."""
    if result["scale"] != "full":
        return " The sizes are small ones, to see that everything runs: the figures mean nothing."
    refused = any(
        "refused" in point
        for measured in result["experiments"].values()
        for point in measured.get("points", ())
    )
    return " The sizes are the papers' own" + (
        ", except where a structure refuses them, which is said there." if refused else "."
    )


def _summary(figures: list[Figure], measured: Mapping[str, Any]) -> str:
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


def _figure(figure: Figure, measured: Mapping[str, Any]) -> str:
    points = figure.points(measured)
    rows = []
    for claim in figure.claims:
        verdict = claim.judge(points)
        rows.append([claim.paper, YES if verdict.holds else NO, verdict.seen])
    parts = [
        table(figure.title, ["the paper", "seen here", "measured"], rows, words=3),
        f"![{figure.title}]({figure.name}.svg)",
        _parameters(measured["parameters"]) + (f" {figure.note}" if figure.note else ""),
        _singles(points) if any(panel.key == "ns_per_value" for panel in figure.panels) else "",
        *(f"Not measured at {p['x']:g}: {p['refused']}." for p in points.refused),
        *(_values(figure, points, panel) for panel in figure.panels),
    ]
    return "\n\n".join(part for part in parts if part)


def _parameters(parameters: Mapping[str, Any]) -> str:
    told = ", ".join(
        f"{name} = {value:,}" if isinstance(value, int) else f"{name} = {value}"
        for name, value in parameters.items()
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


class Target(NamedTuple):
    """A ratio to reach in the comparison with peers."""

    what: str
    ratio: Callable[[Mapping[str, Any]], float]
    bound: float
    at_most: bool


def _best(measured: Mapping[str, Any]) -> tuple[str, float]:
    times = {
        name: found["ns_per_event"]
        for name, found in measured["ours"].items()
        if "refused" not in found
    }
    name = min(times, key=lambda each: times[each])
    return name, times[name]


def _times_faster(*names: str) -> Callable[[Mapping[str, Any]], float]:
    """How many times our best structure is faster than the fastest of these."""

    def ratio(measured: Mapping[str, Any]) -> float:
        theirs = min(measured["others"][name]["ns_per_event"] for name in names)
        return float(theirs / _best(measured)[1])

    return ratio


def _cei_by_ui(key: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda measured: float(measured["ours"]["cei"][key] / measured["ours"]["ui"][key])


TARGETS = (
    Target("best structure, times faster than ncls", _times_faster("ncls"), 20, at_most=False),
    Target(
        "best structure, times faster than ncls with sorted events",
        _times_faster("ncls, events sorted"),
        20,
        at_most=False,
    ),
    Target(
        "best structure, times faster than DuckDB",
        _times_faster("duckdb", "duckdb, one thread"),
        5,
        at_most=False,
    ),
    Target("best structure, times faster than Polars", _times_faster("polars"), 5, at_most=False),
    Target(
        "best structure, times the time of copying the output",
        lambda measured: 1 / _times_faster("copy")(measured),
        5,
        at_most=True,
    ),
    Target("CEI, times the time of UI", _cei_by_ui("ns_per_event"), 1.5, at_most=True),
    Target("CEI, share of the bytes of UI", _cei_by_ui("bytes"), 0.2, at_most=True),
)


_FAIRNESS = """\
The same intervals and events for all, and all must find the same ids. Events are floats, and
turning them into cells is in our time. `copy` copies the output, batch by batch, out of an array of
all ids. Ours, `copy`, ncls, intervaltree and NumPy use one thread, `duckdb` and `polars` as many as
they like. Of the batch sizes tried for each, the fastest counts. Who is slow got as many events
as ten seconds allow."""


def _peers(measured: Mapping[str, Any]) -> str:
    name, best = _best(measured)
    targets = []
    for target in TARGETS:
        value = target.ratio(measured)
        met = value <= target.bound if target.at_most else value >= target.bound
        sign = "≤" if target.at_most else "≥"
        targets.append([target.what, number(value), f"{sign} {target.bound:g}", YES if met else NO])
    rows, refused = [], []
    for kind in ("ours", "others"):
        for who, found in measured[kind].items():
            label = f"Bittern `{who}`" if kind == "ours" else who
            if "refused" in found:
                refused.append(f"`{who}`: {found['refused']}.")
                continue
            rows.append(
                (
                    found["ns_per_event"],
                    [
                        label,
                        number(found["ns_per_event"]),
                        number(found["ns_per_event"] / best),
                        number(found["bytes"] and found["bytes"] / 1e6),
                        number(found["build_seconds"]),
                        f"{found['batch']:,}",
                        f"{found['events']:,}",
                    ],
                )
            )
    head = ["who", "ns per event", f"times `{name}`", "MB", "build s", "batch", "events"]
    setting = (
        f"{_parameters(measured['parameters'])} An event matches"
        f" {measured['ids_per_event']:.1f} intervals. {_FAIRNESS}"
    )
    parts = [
        table("Beside other libraries", ["figure", "measured", "target", "reached"], targets),
        "![Time per event](peers.svg)",
        setting,
        table("", head, [row for _, row in sorted(rows)]),
        "Not measured, because they refuse:\n\n" + "\n".join(f"- {each}" for each in refused)
        if refused
        else "",
    ]
    return "\n\n".join(part for part in parts if part)


if __name__ == "__main__":
    sys.exit(main())
