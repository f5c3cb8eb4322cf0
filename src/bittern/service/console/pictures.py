"""Figures as pictures: bars and curves in SVG, drawn by the server.

Colours come from the style sheet by class, so that pictures are dark and light as the page is.
Every text is escaped, and there is no style and no script inside: the content policy would not let
it in. Each picture says in words what it shows, for those who cannot see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

_ROW, _NAMES, _WIDTH, _VALUES = 24, 220, 720, 130
_LONGEST = 32
_HEIGHT = 120
#: Bars of a histogram, at most: more hours are put together.
_MOST = 240


class Bar(NamedTuple):
    """A bar: its name, its value, the value in words, and a part of it that stands out."""

    name: str
    value: float
    shown: str
    part: float = 0


def bars(rows: Sequence[Bar], label: str) -> Markup:
    """Bars from left to right, with names before and values behind them."""
    if not rows:
        return Markup("")
    most = max((row.value for row in rows), default=0) or 1
    room = _WIDTH - _NAMES - _VALUES
    drawn = [
        Markup(
            '<g><title>{}: {}</title><text class="name" x="{}" y="{}">{}</text>'
            '<rect class="bar" x="{}" y="{}" width="{}" height="16" rx="2"/>'
            '<rect class="part" x="{}" y="{}" width="{}" height="16" rx="2"/>'
            '<text class="value" x="{}" y="{}">{}</text></g>'
        ).format(
            *(row.name, row.shown, _NAMES - 8, at * _ROW + 16, _short(row.name)),
            *(_NAMES, at * _ROW + 4, _length(row.value, most, room)),
            *(_NAMES, at * _ROW + 4, _length(row.part, most, room)),
            *(_NAMES + _length(row.value, most, room) + 6, at * _ROW + 16, row.shown),
        )
        for at, row in enumerate(rows)
    ]
    return _picture(drawn, label, _WIDTH, len(rows) * _ROW + 4, "bars")


def histogram(values: Sequence[tuple[str, float, float]], label: str) -> Markup:
    """Columns over time: (name, whole, part), the part filled."""
    if not values:
        return Markup("")
    step = -(-len(values) // _MOST)
    put_together = [
        (
            values[at][0],
            sum(value for _, value, _ in values[at : at + step]),
            sum(part for _, _, part in values[at : at + step]),
        )
        for at in range(0, len(values), step)
    ]
    most = max(part for _, _, part in put_together) or 1
    width = min(24.0, _WIDTH / len(put_together))
    drawn = []
    for at, (name, whole, part) in enumerate(put_together):
        height = _length(part, most, _HEIGHT)
        drawn.append(
            Markup(
                '<g><title>{}: {} of {}</title><rect class="room" x="{}" y="0" width="{}" '
                'height="{}"/><rect class="bar" x="{}" y="{}" width="{}" height="{}"/></g>'
            ).format(
                *(name, f"{part:,.0f}", f"{whole:,.0f}"),
                *(_tidy(at * width), _tidy(width - 1), _HEIGHT),
                *(_tidy(at * width), _tidy(_HEIGHT - height), _tidy(width - 1), height),
            )
        )
    ends = Markup('<text class="axis" x="0" y="{}">{}</text>').format(
        _HEIGHT + 16, put_together[0][0]
    )
    if len(put_together) > 1:
        ends += Markup('<text class="axis end" x="{}" y="{}">{}</text>').format(
            _tidy(max(240.0, len(put_together) * width)), _HEIGHT + 16, put_together[-1][0]
        )
    return _picture([*drawn, ends], label, _WIDTH, _HEIGHT + 22, "histogram")


def curve(values: Sequence[float], label: str) -> Markup:
    """A small curve over time."""
    if not values:
        return Markup("")
    most = max(values) or 1
    step = 240 / max(1, len(values) - 1)
    points = " ".join(
        f"{_tidy(at * step)},{_tidy(48 - _length(value, most, 46))}"
        for at, value in enumerate(values)
    )
    line = Markup('<polyline class="curve" points="{}"/>').format(points)
    return _picture([line], label, 240, 50, "spark")


def _picture(drawn: Sequence[Markup], label: str, width: int, height: int, kind: str) -> Markup:
    whole = Markup("").join(drawn)
    fit = Markup(' preserveAspectRatio="none"') if kind == "spark" else ""
    return Markup(
        '<svg class="picture {}" viewBox="0 0 {} {}"{} role="img" aria-label="{}">{}</svg>'
    ).format(kind, width, height, fit, label, whole)


def _length(value: float, most: float, room: float) -> float:
    return _tidy(max(0.0, min(1.0, value / most)) * room)


def _tidy(value: float) -> float:
    return round(value, 2)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
