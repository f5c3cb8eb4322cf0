"""The plots of the page, the same bytes for the same points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from benchmarks.papers.plots import STYLE

LOOKS = {
    "PB+tree": ("#d62728", "*"),
    "PB+tree, memory": ("#ff9896", "P"),
    "Grouped Filter": ("#1f77b4", "s"),
    "red-black": ("#2ca02c", "^"),
    "IS-list": ("#ff7f0e", "o"),
    "interval tree": ("#bcbd22", "<"),
    "Dlist": ("#7f7f7f", "x"),
    "Intervals": ("#9467bd", "D"),
    "SQLite": ("#8c564b", "v"),
    "LMDB, cursor": ("#17becf", ">"),
    "LMDB, chunks": ("#aec7e8", "p"),
}
GROWTH = {
    "bytes": ("space", "bytes"),
    "batch_us": ("search", "µs per value, in a batch"),
    "insert_us": ("insert", "µs per insertion"),
    "delete_us": ("delete", "µs per deletion"),
}
"""Figures of Table 1: the plot's name and its axis."""

BESIDE = {
    "single_us": "search, one at a time: µs",
    "batch_us": "search, in a batch: µs per value",
    "insert_us": "insert: µs",
    "delete_us": "delete: µs",
}


def draw(parts: Mapping[str, Any], folder: Path) -> None:
    """Plot whatever was measured."""
    if "beside" in parts:
        for family, points in parts["beside"].items():
            _draw_beside(points, folder / f"pb_tree_{family}.svg")
    if "growth" in parts:
        for key, (name, label) in GROWTH.items():
            _draw_growth(parts["growth"], key, label, folder / f"pb_tree_growth_{name}.svg")
    if "updates" in parts:
        _draw_updates(parts["updates"], folder / "pb_tree_updates.svg")
    if "cache" in parts:
        _draw_cache(parts["cache"]["sizes"], folder / "pb_tree_cache.svg")


def _draw_beside(points: list[Mapping[str, Any]], path: Path) -> None:
    def plot(axes: list[Any]) -> None:
        for axis, (key, label) in zip(axes, BESIDE.items(), strict=True):
            for name in points[0]["peers"]:
                of = [(p["n"], p["peers"][name]) for p in points if name in p["peers"]]
                _line(axis, [(n, told[key]) for n, told in of if key in told], name)
            _log_log(axis, "predicates", label)
        axes[0].legend(fontsize=6)

    _plotted(4, path, plot)


def _draw_growth(growth: Mapping[str, Any], key: str, label: str, path: Path) -> None:
    def plot(axes: list[Any]) -> None:
        for name, points in growth["points"].items():
            fitted = growth["fits"][name].get(key)
            told = "" if fitted is None else f": n^{fitted:.2f}"
            _line(axes[0], [(p["n"], p[key]) for p in points if key in p], name, f"{name}{told}")
        _log_log(axes[0], "predicates", label)
        axes[0].legend(fontsize=6)

    _plotted(1, path, plot)


def _draw_updates(updates: Mapping[str, Any], path: Path) -> None:
    def plot(axes: list[Any]) -> None:
        looks = {"thresholds": "PB+tree", "wide": "Grouped Filter", "worst": "SQLite"}
        for name, look in looks.items():
            for key, style in (("mean", "-"), ("most", ":")):
                line = [(p["n"], p[key]) for p in updates[name] if p[key]]
                _line(axes[0], line, look, f"{name}, {key}", style)
        _log_log(axes[0], "predicates", "leaves adjusted per insertion")
        shares = [p for p in updates["shares"] if p["share"]]
        for key, style in (("mean", "-"), ("most", ":")):
            line = [(p["share"], p[key]) for p in shares if p[key]]
            _line(axes[1], line, "PB+tree", key, style)
        _log_log(axes[1], "share of operators other than =", "leaves adjusted per insertion")
        for axis in axes:
            if axis.lines:  # where nothing was adjusted there is nothing that has a logarithm
                axis.legend(fontsize=6)

    _plotted(2, path, plot)


def _draw_cache(sizes: list[Mapping[str, Any]], path: Path) -> None:
    def plot(axes: list[Any]) -> None:
        for axis, size in zip(axes, sizes, strict=True):
            for name, (color, marker) in (("even", LOOKS["PB+tree"]), ("skewed", LOOKS["SQLite"])):
                of = [p for p in size["points"] if p["values"] == name]
                x, y = ([p[key] for p in of] for key in ("reads", "us"))
                axis.plot(x, y, color=color, marker=marker, linestyle="", label=f"values {name}")
            line, most = size["fit"], max(p["reads"] for p in size["points"])
            ends = [line["base_us"], line["base_us"] + line["us_per_read"] * most]
            told = f"{line['base_us']:.3g} + {line['us_per_read']:.3g} · reads"
            axis.plot([0, most], ends, color="#555555", linewidth=1, label=told)
            axis.set_title(f"{size['n']:,} predicates", fontsize=8)
            axis.set_xlabel("pages read per search")
            axis.set_ylabel("µs per search")
            axis.set_ylim(bottom=0)
            axis.legend(fontsize=6)

    _plotted(len(sizes), path, plot)


def _line(
    axis: Any,
    points: Iterable[tuple[float, float]],
    look: str,
    label: str | None = None,
    style: str = "-",
) -> None:
    pairs = list(points)
    if pairs:
        color, marker = LOOKS[look]
        x, y = zip(*pairs, strict=True)
        axis.plot(
            x, y, style, color=color, marker=marker, markersize=4, linewidth=1, label=label or look
        )


def _log_log(axis: Any, x_label: str, y_label: str) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)


def _plotted(panels: int, path: Path, plot: Callable[[list[Any]], None]) -> None:
    rows = -(-panels // 2)
    columns = min(panels, 2)
    with mpl.rc_context(STYLE):
        canvas = Figure(figsize=(4.2 * columns, 3.2 * rows), layout="constrained")
        plot(list(canvas.subplots(rows, columns, squeeze=False).ravel()))
        FigureCanvasSVG(canvas)
        canvas.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
