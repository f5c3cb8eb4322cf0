"""The page and the plots of a run: ``python -m benchmarks.papers.report [JSON] [--output DIR]``.

Every figure, verdict and sentence with a number in it is made from the JSON file::

    results/papers.json --+-- papers.md          what the paper found, whether we see the same
                          +-- seed_001_fig_17.svg and one more for each other figure

A result of seed 003 (``results/seed_003.json``) becomes ``seed_003.md`` and its plots. A small
result does not go into the documentation: it needs a folder of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.papers import (
    plots,
    seed_000,
    seed_001,
    seed_003,
    seed_003_report,
    seed_004_figures,
    targets,
)
from benchmarks.papers.figure import LITTLE, MUCH
from benchmarks.papers.measure import BATCH
from benchmarks.papers.others import BUCKET_BITS
from benchmarks.papers.run import OUTPUT
from benchmarks.papers.sections import (
    AFTERWARDS,
    dates,
    figure_section,
    parameters,
    summary,
    target_table,
)
from benchmarks.report import environment, number, read_full, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.papers.figure import Figure

PAGES = Path(__file__).parents[2] / "docs" / "benchmarks"
FIGURES = (*seed_000.FIGURES, *seed_001.FIGURES, *seed_004_figures.FIGURES)


def main(arguments: list[str] | None = None) -> int:
    """Read the result file and write the page and the plots."""
    result, folder = read_full(
        "benchmarks.papers.report", OUTPUT, "folder of page and plots (docs/benchmarks)", arguments
    )
    write(result, folder or PAGES)
    return 0


def write(result: dict[str, Any], folder: Path) -> None:
    """Write papers.md, or seed_003.md, and one SVG per figure that was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    measured = result["experiments"]
    if any(name in seed_003.EXPERIMENTS for name in measured):
        seed_003_report.write(result, folder)
        return
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
        _INTRODUCTION.format(
            batch=f"{BATCH:,}",
            sizes=_sizes(result),
            dates=dates(measured),
            much=MUCH,
            little=LITTLE,
            mark=AFTERWARDS,
        ),
        target_table(targets.rows(measured)),
        summary(figures, measured),
    ]
    if "peers" in measured:
        sections.append(_peers(measured["peers"]))
    sections += [figure_section(figure, measured[figure.experiment]) for figure in figures]
    return "\n\n".join(section for section in sections if section) + "\n"


_INTRODUCTION = """\
Written by `python -m benchmarks.papers.report` from the results of a run. Seed 000 has the virtual
construct intervals, seed 001 CEI, seed 004 the profiles; seed 003 has a page of its own,
[seed_003.md](seed_003.md).{sizes}{dates}

Whether a finding of a paper is seen here is decided by code, from the same points as the plots, and
the criterion stands beside it, in the words of that code. A ratio is asked for at every point
unless it says where. Where a paper says "much", "substantially" or "critical", {much} times are
asked for; "a little", "very close" and "steady" may be {little} times. The criteria were not all
there before the first result: what is marked {mark} was chosen when a result had been seen, and is
told below the table. The others were revised once when results of a first run were known, so that
none is weaker than the sentence that it judges.

A time is that of a batch of at most {batch} values, divided by the values: one thread, ids
included unless the axis says otherwise, median of the passes, compiling not included. The papers
searched one value at a time; what that costs here, a call from Python for each value, is said below
the figures that have times.

What is found is checked, and a difference ends the run. Seed 000 and Fig. 15 to 19 of seed 001: for
every value as many ids as counting without an index says, and their sum for every batch. Fig. 14 of
seed 001 counts constructs and searches nothing. Seed 004: for every document exactly the profiles
that comparing all of them finds. Beside other libraries: the number of ids in every pass, and
their sum in as many batches as two seconds allow."""


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


_FAIRNESS = """\
The same intervals and events for all, and all must find the same ids. Events are floats, and
turning them into cells is in our time; `Intervals` is `bittern.Intervals`, which gets floats only
and encodes them inside its time. `copy` copies the output, offsets and ids of each batch into fresh
arrays, out of arrays that hold those of the whole run. Ours, `copy`, ncls, intervaltree and NumPy
use one thread, DuckDB (unless said) and Polars as many as they like. DuckDB and Polars join on the
inequalities, and with `buckets` on buckets of {bucket} cells, each interval standing in all that it
meets, with the inequalities as a filter. Of the batch sizes tried for each, the fastest counts. Who
is slow got as many events as ten seconds allow. `ncls, events sorted` has every batch sorted inside
its time; our structures get the events as they come. Direct lists, CEI with given segments and
`copy` were measured in turns, pass by pass, because their ratios are judged closely."""


def _peers(measured: Mapping[str, Any]) -> str:
    name, best = targets.best(measured)
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
        f"{parameters(measured['parameters'])} An event matches"
        f" {measured['ids_per_event']:.1f} intervals. {_FAIRNESS.format(bucket=1 << BUCKET_BITS)}"
    )
    parts = [
        "## Beside other libraries",
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
