"""The plots of the page, the same bytes for the same points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from benchmarks.papers.plots import STYLE

LOOKS = (
    ("#d62728", "*"),
    ("#1f77b4", "s"),
    ("#2ca02c", "^"),
    ("#ff7f0e", "o"),
    ("#9467bd", "D"),
    ("#8c564b", "v"),
)


def draw(parts: Mapping[str, Any], folder: Path) -> None:
    """Plot whatever was measured of the parts that have a plot."""
    if "documents" in parts:
        _draw_documents(parts["documents"], folder / "history_documents.svg")
    if "distinct" in parts and "sharing" in parts:
        _draw_predicates(parts, folder / "history_predicates.svg")


def _draw_documents(part: Mapping[str, Any], path: Path) -> None:
    with mpl.rc_context(STYLE):
        canvas = Figure(figsize=(6, 3.4), layout="constrained")
        axis = canvas.subplots()
        for look, (name, one) in zip(LOOKS, part["sorts"].items(), strict=True):
            points = [point for point in one["points"] if point["documents"]]
            _line(axis, points, "documents", name, look)
        _axes(axis, "documents")
        _save(canvas, path)


def _draw_predicates(parts: Mapping[str, Any], path: Path) -> None:
    with mpl.rc_context(STYLE):
        canvas = Figure(figsize=(8.4, 3.2), layout="constrained")
        different, sharing = canvas.subplots(1, 2)
        for look, (name, points) in zip(
            LOOKS, parts["distinct"]["constants"].items(), strict=False
        ):
            _line(different, points, "distinct", f"constants on the event {name}", look)
        _line(sharing, parts["sharing"]["points"], "subscriptions", "one join predicate", LOOKS[0])
        _axes(different, f"different join predicates of {parts['distinct']['subscriptions']:,}")
        _axes(sharing, "subscriptions that share a join predicate")
        _save(canvas, path)


def _line(axis: Any, points: list[Any], x: str, label: str, look: tuple[str, str]) -> None:
    color, marker = look
    xs, ys = [p[x] for p in points], [p["microseconds_per_event"] for p in points]
    axis.plot(xs, ys, color=color, marker=marker, markersize=4, linewidth=1, label=label)


def _axes(axis: Any, label: str) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel(label)
    axis.set_ylabel("µs per event")
    axis.legend(fontsize=6)


def _save(canvas: Figure, path: Path) -> None:
    FigureCanvasSVG(canvas)
    canvas.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
