"""Pictures of storage against search time: bars for a terminal, a scatter plot as SVG.

Both axes are logarithmic, because structures differ by factors::

    structure     search, ns per value          storage
    cei           ######                 41.0   #########           28.1 MB
    lci-dt        ################      310     #############       61.2 MB

In the plot, every structure has a hollow mark where it was predicted. If it was measured, it also
has a filled mark, and a line joins the two. Filled marks lie on top and are smaller, so both can be
seen where they meet. Labels are placed around the marks one after the other, each at the nearest
place where it touches no mark and no label, and preferably no line. A label that is far from its
mark gets a hair line to it. Only the standard library is used here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain

from bittern.stabbing.estimate import figure, in_bytes

_WIDTH, _HEIGHT = 900, 620
_LEFT, _RIGHT, _TOP, _BOTTOM = 110, 30, 50, 60
_FONT = 13
_LETTER = 0.62 * _FONT  # a letter's width, of the widest fonts that a browser may take
_MARK = 5
_RING = 7  # radius of a hollow mark
_BAR = 16

_Point = tuple[float, float]
_At = Callable[[_Point], _Point]


@dataclass(frozen=True)
class Mark:
    """One structure: (bytes, ns per value) predicted, the same measured if it was, and its rank."""

    name: str
    predicted: tuple[float, float]
    measured: tuple[float, float] | None
    chosen: bool = False

    @property
    def shown(self) -> tuple[float, float]:
        """Where the label belongs: at the measured point, else at the predicted one."""
        return self.measured or self.predicted


def bars(marks: Sequence[Mark]) -> str:
    """Two bars per structure, search and storage, on logarithmic scales: a text for a terminal."""
    names = max(len(mark.name) for mark in marks)
    title = f"{'structure':<{names}}  {'search, ns per value':<{_BAR + 10}}  storage"
    lines = [title.rstrip()]
    stored = [mark.shown[0] for mark in marks]
    times = [mark.shown[1] for mark in marks]
    for mark, size, time in zip(marks, stored, times, strict=True):
        search = f"{_bar(time, times):<{_BAR}} {figure(time):>9}"
        line = f"{mark.name:<{names}}  {search}  {_bar(size, stored):<{_BAR}} {in_bytes(size):>7}"
        lines.append(line if mark.measured else f"{line}  predicted")
    return "\n".join(lines) + "\n"


def _bar(value: float, values: Sequence[float]) -> str:
    """Length by the logarithm: 1 for the least of the values, full for the greatest."""
    least, greatest = (math.log(max(edge(values), 1e-9)) for edge in (min, max))
    share = (math.log(max(value, 1e-9)) - least) / (greatest - least) if greatest > least else 1
    return "#" * (1 + round(share * (_BAR - 1)))


def scatter(marks: Sequence[Mark], title: str) -> str:
    """Draw storage (right) against search time (up) as an SVG document."""
    points = [point for mark in marks for point in (mark.predicted, mark.measured) if point]
    across = _Axis([p[0] for p in points], _LEFT, _WIDTH - _RIGHT)
    up = _Axis([p[1] for p in points], _HEIGHT - _BOTTOM, _TOP)

    def at(point: tuple[float, float]) -> tuple[float, float]:
        return across.at(point[0]), up.at(point[1])

    taken = [_Box.around(*at(point)) for point in points]
    joined = [(at(mark.predicted), at(mark.measured)) for mark in marks if mark.measured]
    lines = list(chain.from_iterable(_along(*ends) for ends in joined))
    drawn = sorted(marks, key=lambda mark: mark.chosen)
    placed = [_placed(mark, at(mark.shown), taken, lines) for mark in reversed(drawn)]
    hairs = chain.from_iterable(hair for hair, _ in placed)
    parts = [*_frame(title), *_grid(across, up), *hairs]
    for draw in (_joint, _hollow, _filled):
        parts += chain.from_iterable(draw(mark, at) for mark in drawn)
    return "\n".join([*parts, *(label for _, label in placed), "</svg>"]) + "\n"


class _Axis:
    """A logarithmic scale from just below the least to just above the greatest value."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        logs = [math.log10(max(value, 1e-9)) for value in values]
        self.low, self.high = min(logs) - 0.15, max(logs) + 0.15
        self.first, self.last = first, last

    def at(self, value: float) -> float:
        """Where a value is, in pixels."""
        share = (math.log10(max(value, 1e-9)) - self.low) / (self.high - self.low)
        return self.first + share * (self.last - self.first)

    def ticks(self) -> list[float]:
        """Powers of ten, with twos and fives between them where there are few."""
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        steps = (1,) if self.high - self.low > 3 else (1, 2, 5)
        values = [step * 10.0**power for power in powers for step in steps]
        return [value for value in values if self.low <= math.log10(value) <= self.high]


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, x: float, y: float) -> _Box:
        """The box around a mark."""
        return cls(x - _RING - 1, y - _RING - 1, x + _RING + 1, y + _RING + 1)

    def free(self, others: Sequence[_Box]) -> bool:
        """Whether the box is inside the frame and touches none of the others."""
        inside = self.left >= _LEFT and self.right <= _WIDTH - _RIGHT
        inside = inside and self.top >= _TOP and self.bottom <= _HEIGHT - _BOTTOM
        return inside and not any(
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
            for other in others
        )


def _frame(title: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="{_FONT}">'
    )
    yield f"<title>{escape(title)}</title>"
    yield f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>'
    yield _text(_LEFT, 22, title, "font-weight='bold'")
    yield _text(_LEFT, 40, "hollow: predicted, filled: measured, red: chosen", "fill='#666'")
    yield _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 15, "storage", "text-anchor='middle'")
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    turned = f"text-anchor='middle' transform='rotate(-90 18 {middle})'"
    yield _text(18, middle, "search, ns per value", turned)


def _grid(across: _Axis, up: _Axis) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for value in across.ticks():
        x = across.at(value)
        yield _line(x, _TOP, x, bottom, "#ddd")
        yield _text(x, bottom + 18, in_bytes(value), "text-anchor='middle' fill='#666'")
    for value in up.ticks():
        y = up.at(value)
        yield _line(_LEFT, y, right, y, "#ddd")
        yield _text(_LEFT - 8, y + 4, figure(value), "text-anchor='end' fill='#666'")
    yield (
        f'<rect x="{_LEFT}" y="{_TOP}" width="{right - _LEFT}" height="{bottom - _TOP}" '
        'fill="none" stroke="#999"/>'
    )


def _colour(mark: Mark) -> str:
    return "#c00" if mark.chosen else "#246"


def _joint(mark: Mark, at: _At) -> Iterator[str]:
    if mark.measured:
        yield _line(*at(mark.predicted), *at(mark.measured), _colour(mark))


def _hollow(mark: Mark, at: _At) -> Iterator[str]:
    x, y = at(mark.predicted)
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RING}" fill="white" stroke="{_colour(mark)}"/>'


def _filled(mark: Mark, at: _At) -> Iterator[str]:
    if mark.measured:
        x, y = at(mark.measured)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_MARK}" fill="{_colour(mark)}"/>'


def _along(start: _Point, end: _Point) -> Iterator[_Box]:
    """Small boxes that cover a line."""
    steps = 1 + int(math.dist(start, end) / _MARK)
    for step in range(steps + 1):
        x, y = (a + (b - a) * step / steps for a, b in zip(start, end, strict=True))
        yield _Box(x - 2, y - 2, x + 2, y + 2)


def _placed(mark: Mark, at: _Point, taken: list[_Box], lines: list[_Box]) -> tuple[list[str], str]:
    """Put the name at the nearest free place, and mark that place as taken.

    Returns the drawn hair line, if there is one, and the drawn name.
    """
    x, y = at
    wide = _LETTER * len(mark.name)
    free = [box for box in _places(x, y, wide) if box.free(taken)]
    off_lines = (box for box in free if box.free(lines))
    # A picture where nothing is free is unreadable anyway.
    box = next(off_lines, free[0] if free else next(_places(x, y, wide)))
    taken.append(box)
    style = "font-weight='bold' fill='#c00'" if mark.chosen else "fill='#222'"
    near_x, near_y = min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
    hair = []
    if math.dist((x, y), (near_x, near_y)) > 3 * _MARK:
        lines += _along((x, y), (near_x, near_y))
        hair.append(_line(x, y, near_x, near_y, "#bbb"))
    return hair, _text(box.left, box.bottom - 4, mark.name, style)


def _places(x: float, y: float, wide: float) -> Iterator[_Box]:
    """Boxes for a label around a mark, the nearest first."""
    gap = _MARK + 2
    for ring in range(40):
        away = gap + ring * 6
        for turn in range(8 + 4 * ring):
            angle = 2 * math.pi * turn / (8 + 4 * ring)
            across, up = math.cos(angle), math.sin(angle)
            left = x + away * across - wide * (1 - across) / 2
            middle = y - up * (away + _FONT / 2)
            yield _Box(left, middle - _FONT / 2 - 2, left + wide, middle + _FONT / 2 + 2)


def _text(x: float, y: float, text: str, style: str) -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' {style}>{escape(text)}</text>"


def _line(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"'
    return f'<line {ends} stroke="{colour}"/>'
