"""One SVG per figure, the same bytes for the same points.

Text stays text and ids come from a fixed salt, so that a file is small and changes only when a
figure does. A structure has the same colour and marker wherever it appears.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogFormatter, NullLocator

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.papers.figure import Figure, Panel, Points

STYLE: Any = {"svg.hashsalt": "bittern", "svg.fonttype": "none", "font.size": 8, "axes.grid": True}
STYLE |= {"grid.alpha": 0.3, "font.family": "sans-serif", "axes.axisbelow": True}
LOOKS = {
    "sci": ("#8c564b", "v"),
    "sci-bc": ("#e377c2", "^"),
    "lci": ("#bcbd22", "<"),
    "lci-bc": ("#17becf", ">"),
    "lci-bv": ("#9467bd", "D"),
    "lci-dt": ("#1f77b4", "s"),
    "dlist": ("#7f7f7f", "x"),
    "ui": ("#7f7f7f", "x"),
    "is-list": ("#ff7f0e", "o"),
    "cei": ("#d62728", "*"),
    "cluster": ("#1f77b4", "s"),
    "interval": ("#d62728", "*"),
    "hybrid": ("#9467bd", "D"),
    "hybrid-default": ("#c5b0d5", "d"),
    "segment-tree": ("#2ca02c", "^"),
    "interval-tree": ("#ff7f0e", "o"),
    "opindex": ("#1f77b4", "s"),
    "opindex-bs": ("#17becf", "D"),
    "kindex": ("#ff7f0e", "o"),
    "betree": ("#2ca02c", "^"),
    "counting": ("#9467bd", "v"),
    "pivot": ("#d62728", "*"),
    "scan": ("#7f7f7f", "x"),
}
BOUNDS = {"lower bound": ":", "upper bound": "--"}
OURS, THEIRS = "#d62728", "#7f7f7f"
PANELS_PER_ROW = 3


def draw(figure: Figure, points: Points, path: Path) -> None:
    """Plot the panels side by side, three to a row."""
    rows = -(-len(figure.panels) // PANELS_PER_ROW)
    columns = -(-len(figure.panels) // rows)
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(4.2 * columns, 3.0 * rows), layout="constrained")
        axes = canvas.subplots(rows, columns, squeeze=False).ravel()
        for axis, panel in zip(axes, figure.panels, strict=True):
            _draw_panel(axis, figure, panel, points)
        axes[0].legend(fontsize=7)
        _save(canvas, path)


def _draw_panel(axis: Any, figure: Figure, panel: Panel, points: Points) -> None:
    for name, label in figure.labels.items():
        values = sorted(points.of(name, panel.key).items())
        x, y = [each for each, _ in values], [value * panel.scale for _, value in values]
        if name in LOOKS:
            color, marker = LOOKS[name]
            axis.plot(x, y, color=color, marker=marker, markersize=4, linewidth=1, label=label)
        else:
            axis.plot(x, y, color="#555555", linestyle=BOUNDS[label], linewidth=1, label=label)
    axis.set_xlabel(figure.x_label)
    axis.set_ylabel(panel.label)
    xs = sorted({x for name in figure.labels for x in points.of(name, panel.key)})
    if not xs:  # all refused: nothing that a logarithm could be taken of
        return
    if figure.log_x:
        axis.set_xscale("log")
        axis.set_xticks(xs, [_short(x) for x in xs], rotation=45 if len(xs) > 8 else 0)
        axis.xaxis.set_minor_locator(NullLocator())
    if panel.log:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(_plain)
        axis.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))
    else:
        axis.set_ylim(bottom=0)


def _plain(value: float, _: float) -> str:
    return f"{value:,.10g}"


def _short(x: float) -> str:
    if x >= 1_000_000 and x % 1_000_000 == 0:
        return f"{x / 1_000_000:g}M"
    return f"{x / 1_000:g}k" if x >= 1_000 else f"{x:g}"


def draw_peers(measured: Mapping[str, Any], path: Path) -> None:
    """Plot the time per event of everybody, the fastest on top."""
    rows = [
        (found["ns_per_event"] / 1e3, name if kind == "others" else f"Bittern {name}", kind)
        for kind in ("ours", "others")
        for name, found in measured[kind].items()
        if "refused" not in found
    ]
    rows.sort(reverse=True)
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(7, 0.6 + 0.2 * len(rows)), layout="constrained")
        axis = canvas.subplots()
        colors = [OURS if kind == "ours" else THEIRS for _, _, kind in rows]
        bars = axis.barh([name for _, name, _ in rows], [time for time, _, _ in rows], color=colors)
        axis.bar_label(bars, labels=[f"{time:.3g}" for time, _, _ in rows], padding=2, fontsize=7)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(_plain)
        axis.set_xlabel("µs per event, all ids included")
        axis.grid(visible=False, axis="y")
        axis.margins(x=0.1)
        _save(canvas, path)


def _save(canvas: Canvas, path: Path) -> None:
    FigureCanvasSVG(canvas)
    canvas.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
