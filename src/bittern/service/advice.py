"""What ``bittern advise`` found, as text for people and as JSON for machines.

::

                                    predicted         measured
      structure      parameter      storage ns/value  storage ns/value  build ms
    * cei            segment 256    24.3 MB       98  24.3 MB       96       130
      interval-tree                 13.1 MB      594  13.2 MB      410       101
    over 57 MB:
      dlist                          262 MB       62   262 MB       56     1,100
      sci            longest 1       137 GB       75  not measured: too large

Every line has at most 80 characters.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bittern.service.picture import Mark, bars
from bittern.stabbing.choose import SLACK, Choice, shown
from bittern.stabbing.estimate import Estimate, figure, in_bytes

_WIDTH = 80
_LARGE = 1 << 20  # from here on a power of two is shown as one
_NOTE = (
    "The ends of the intervals cut the line into cells: each end is a cell, and so is each gap "
    "between two neighbouring ends. Values are drawn evenly over the cells, not as in your data, "
    "and are searched in batches. * marks the choice."
)


@dataclass(frozen=True)
class Measurement:
    """What an index takes, as measured on one that was built."""

    bytes: int
    nanoseconds: float
    seconds: float


@dataclass(frozen=True)
class Advice:
    """One line of the table; the first line is the choice."""

    estimate: Estimate
    fits: bool
    measured: Measurement | None
    refusal: str = ""
    """Why the structure refused to be built."""

    @property
    def why_not(self) -> str | None:
        """Why it was not measured, if it was not."""
        if self.measured:
            return None
        return "refused" if self.refusal else "too large"


def disagreement(lines: Sequence[Advice]) -> Iterator[str]:
    """A sentence if the same rule would choose another structure by what was measured."""
    tried = [(line, line.measured) for line in lines if line.fits and line.measured]
    if not tried or tried[0][0] is not lines[0]:
        return
    ours = tried[0][1]
    line, best = min(tried, key=lambda one: one[1].nanoseconds)
    said = "was the fastest"
    if ours.nanoseconds <= SLACK * best.nanoseconds:
        fast = [one for one in tried if one[1].nanoseconds <= SLACK * best.nanoseconds]
        line, best = min(fast, key=lambda one: one[1].bytes)
        said = "was fast enough and smaller"
        if best.bytes >= ours.bytes:
            return
    yield (
        f"measured here, {shown(line.estimate)} {said}: "
        f"{figure(best.nanoseconds)} ns per value and {in_bytes(best.bytes)}, "
        f"not {figure(ours.nanoseconds)} ns and {in_bytes(ours.bytes)}"
    )


# Text


def as_text(lines: Sequence[Advice], choice: Choice, memory: int) -> str:
    """The choice and its reasons, the table, the bars."""
    said = f"bittern advises {choice.name}"
    if choice.parameters:
        given = ", ".join(f"{name} = {value}" for name, value in choice.parameters.items())
        said += f" with {given}"
    reasons = "\n".join(_wrapped(reason, "  - ") for reason in choice.reasons)
    parts = [
        f"{said}\n{reasons}",
        f"memory allowed: {in_bytes(memory)}",
        _wrapped(_NOTE),
        "\n".join(_table(lines, memory)),
        bars(marks(lines)),
    ]
    return "\n\n".join(parts)


def _wrapped(text: str, begin: str = "") -> str:
    indent = " " * len(begin)
    return textwrap.fill(
        text, _WIDTH, initial_indent=begin, subsequent_indent=indent, break_on_hyphens=False
    )


def _table(lines: Sequence[Advice], memory: int) -> Iterator[str]:
    """Rows of aligned columns; structures over the memory limit get a heading of their own."""
    titles = ("structure", "parameter", "storage", "ns/value", "storage", "ns/value", "build ms")
    rows = [_row(line) for line in lines]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    names, figures = widths[0] + widths[1] + 6, widths[2] + widths[3] + 1
    yield f"{'':{names}}{'predicted':{figures}}  measured"
    yield _aligned("", titles, widths)
    fitting = True
    for position, (line, row) in enumerate(zip(lines, rows, strict=True)):
        if fitting and not line.fits:
            yield f"over {in_bytes(memory)}:"
        fitting = line.fits
        text = _aligned("" if position else "*", row, widths)
        yield text if line.measured else f"{text}  not measured: {line.why_not}"
    for line in lines:
        if line.refusal:
            yield _wrapped(f"{line.estimate.name}: {line.refusal}")


def _row(line: Advice) -> tuple[str, ...]:
    one, measured = line.estimate, line.measured
    row = one.name, _parameter(one), in_bytes(one.bytes), figure(one.nanoseconds)
    if measured is None:
        return (*row, "", "", "")
    size, time = in_bytes(measured.bytes), figure(measured.nanoseconds)
    return (*row, size, time, figure(measured.seconds * 1e3))


def _parameter(estimate: Estimate) -> str:
    return " ".join(f"{name} {_power(value)}" for name, value in estimate.parameters.items())


def _power(value: int) -> str:
    """A large power of two in few characters, in Python's notation."""
    large = value >= _LARGE and value.bit_count() == 1
    return f"2**{value.bit_length() - 1}" if large else str(value)


def _aligned(begin: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    """Names aligned left, figures aligned right; storage and time stand next to each other."""
    name, parameter, *figures = (
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    predicted, measured, build = " ".join(figures[:2]), " ".join(figures[2:4]), figures[4]
    return f"{begin:<2}{name}  {parameter}  {predicted}  {measured}  {build}".rstrip()


def marks(lines: Sequence[Advice]) -> list[Mark]:
    """The marks that are drawn, one for each structure."""
    found = []
    for position, line in enumerate(lines):
        one, measured = line.estimate, line.measured
        place = (float(measured.bytes), measured.nanoseconds) if measured else None
        found.append(Mark(one.name, (float(one.bytes), one.nanoseconds), place, position == 0))
    return found


# JSON


def as_json(
    lines: Sequence[Advice], choice: Choice, n: int, domain: int, memory: int
) -> dict[str, Any]:
    """The same for machines."""
    return {
        "intervals": n,
        "cells": domain,
        "memory": memory,
        "choice": {
            "structure": choice.name,
            "parameters": choice.parameters,
            "reasons": list(choice.reasons),
        },
        "structures": [
            {
                "structure": line.estimate.name,
                "parameters": line.estimate.parameters,
                "fits": line.fits,
                "predicted": {
                    "bytes": line.estimate.bytes,
                    "nanoseconds": round(line.estimate.nanoseconds, 1),
                },
                "measured": None
                if line.measured is None
                else {
                    "bytes": line.measured.bytes,
                    "nanoseconds": round(line.measured.nanoseconds, 1),
                    "build_seconds": round(line.measured.seconds, 6),
                },
                "not_measured": line.refusal or line.why_not,
            }
            for line in lines
        ],
    }
