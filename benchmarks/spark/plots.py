"""The simulation's plot, the same bytes for the same points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks.papers.plots import STYLE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

COLORS = ("#1f77b4", "#ff7f0e", "#d62728")


def draw_routing(measured: Mapping[str, Any], path: Path) -> None:
    """Plot the shards that an event visits, and the load of the busiest shard and task."""
    points = measured["points"]
    skews = sorted({point["skew"] for point in points})
    with mpl.rc_context(STYLE):
        canvas = Figure(figsize=(8.4, 3.2), layout="constrained")
        visited, busiest = canvas.subplots(1, 2)
        for skew, color in zip(skews, COLORS, strict=True):
            for home, line in ((True, "-"), (False, ":")):
                own = [p for p in points if p["skew"] == skew and p["home"] == home]
                shards = [point["shards"] for point in own]
                label = f"skew {skew:g}, {'with' if home else 'no'} home"
                fan_out = [point["fan_out"] for point in own]
                visited.plot(shards, fan_out, line, color=color, marker=".", label=label)
                if home:
                    for key, look, words in (
                        ("busiest_shard", "--", "one task per shard"),
                        ("busiest_task", "-", "salt"),
                    ):
                        loads = [point[key] for point in own]
                        label = f"skew {skew:g}, {words}"
                        busiest.plot(shards, loads, look, color=color, marker=".", label=label)
        all_shards = sorted({point["shards"] for point in points})
        visited.plot(all_shards, all_shards, color="#555555", linewidth=1, label="all shards")
        for axis, label in (
            (visited, "shards that an event visits"),
            (busiest, "visits of the busiest task / mean"),
        ):
            axis.set_xscale("log")
            axis.set_xticks(all_shards, [str(n) for n in all_shards])
            axis.xaxis.set_minor_locator(NullLocator())
            axis.set_xlabel("shards")
            axis.set_ylabel(label)
            axis.legend(fontsize=6)
        visited.set_yscale("log")
        busiest.set_ylim(bottom=0)
        FigureCanvasSVG(canvas)
        canvas.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
