"""``bittern advise``: every stabbing index on the user's own intervals, predicted and measured.

::

    structure  parameter       predicted              measured
                               storage  ns per value  storage  ns per value  build, s
    cei        segment 256     24.3 MB  98            24.3 MB  96            0.13      chosen
    dlist                       262 MB  62             262 MB  56            1.1       over 57 MB
    sci        longest 1        137 GB  75            not measured: needs 137 GB

The order is the chooser's (``stabbing/choose.py``). Structures are built and searched one after
the other, each with the parameter that is predicted to be its best, on the same values: cells
drawn evenly from the range of the intervals, searched 16,384 at a time. Kernels are compiled
before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import bittern
from bittern.errors import BitternError, OptionError
from bittern.service import tables
from bittern.service.picture import Mark, bars, figure, in_bytes, scatter
from bittern.service.progress import Progress
from bittern.service.report import say
from bittern.stabbing.choose import Choice, checked_memory, choose, ranked
from bittern.stabbing.contract import Int32s
from bittern.stabbing.estimate import Estimate
from bittern.stabbing.intervals import Intervals
from bittern.stabbing.registry import structure
from bittern.stabbing.summary import Summary

MEASURED_UP_TO = 1 << 30
"""Bytes that an index may take to be built for measuring, or the user's limit if that is more."""

_BATCH = 16_384
_PASSES = 5
_ENOUGH = 0.3  # seconds of searching after which no further pass is made
_TOO_LONG = 5.0  # seconds after which even the first pass is cut short
_SEED = 1


@dataclass(frozen=True)
class Measurement:
    """What an index that was built takes."""

    bytes: int
    nanoseconds: float
    seconds: float


@dataclass(frozen=True)
class Advice:
    """One line of the table."""

    estimate: Estimate
    fits: bool
    measured: Measurement | None
    note: str


def run(options: argparse.Namespace) -> int:
    """Read, predict, measure, print; returns the exit code."""
    form = tables.format_of(options.file, options.format)
    if options.file == "-":
        raise OptionError("bittern advise needs a file, not standard input")
    tables.standard_output()  # raises where nobody would see the advice
    progress = Progress(sys.stderr)
    try:
        lows, highs, domain = read(options.file, form, progress)
        if not len(lows):
            raise BitternError(f"{options.file} has no intervals to advise on")
        memory = checked_memory(options.memory, len(lows))
        choice = choose(lows, highs, domain, memory=memory)
        order = ranked(Summary.of(lows, highs, domain), memory)
        lines = []
        for done, estimate in enumerate(order):
            progress("measuring", done, len(order))
            lines.append(_advice(estimate, lows, highs, domain, options.values, memory))
        progress("measuring", len(order), len(order))
    finally:
        progress.close()
    title = f"{len(lows):,} intervals over {domain:,} cells"
    if options.picture:
        with tables.replacing(options.picture) as file:
            file.write(scatter(_marks(lines), title).encode())
    if options.json:
        print(json.dumps(as_json(lines, choice, len(lows), domain, memory), indent=1))
    else:
        print(as_text(lines, choice, memory), end="")
    if options.picture:
        say(f"{options.picture} is written")
    return 0


def read(name: str, form: str, progress: Callable[..., None]) -> tuple[Int32s, Int32s, int]:
    """Intervals of a file as cells, and how many cells there are; what the columns say decides."""
    columns = tables.columns_of(name, form)
    if {"low", "high"} <= set(columns):
        try:
            cells = Intervals.build(*tables.read_intervals(name, form)).cells
        except OptionError as error:
            raise BitternError(f"{name}: {error}") from error
        return cells
    if not {"id", "expression"} <= set(columns):
        found = ", ".join(columns) or "none"
        raise BitternError(
            f"{name} has neither the columns low and high nor id and expression; it has: {found}"
        )
    source = tables.read_subscriptions(name, form, "id", "expression", None)
    index = bittern.Index.build(source, progress=progress)
    filed = index.subscriptions.arrays()
    return filed["lows"], filed["highs"], max(1, index.rank.n_cells)


# Measuring


def _advice(
    estimate: Estimate, lows: Int32s, highs: Int32s, domain: int, n_values: int, memory: int
) -> Advice:
    fits = estimate.fits(memory)
    needs = in_bytes(estimate.bytes)
    if not estimate.fits(max(memory, MEASURED_UP_TO)):
        return Advice(estimate, fits, None, f"not measured: needs {needs}")
    try:
        measured = measure(estimate, lows, highs, domain, n_values)
    except OptionError as refused:
        return Advice(estimate, fits, None, f"not measured: {refused}")
    return Advice(estimate, fits, measured, "" if fits else f"over {in_bytes(memory)}")


def measure(
    estimate: Estimate, lows: Int32s, highs: Int32s, domain: int, n_values: int
) -> Measurement:
    """Build the structure and search values in batches, the best of a few passes.

    Each pass has values of its own: those of the last one would be found in the cache.
    """
    chosen = structure(estimate.name)
    chosen.build([0], [0], [0], domain=1).stab(0)
    ids = np.arange(len(lows), dtype=np.int32)
    started = time.perf_counter()
    index = chosen.build(lows, highs, ids, domain=domain, **estimate.parameters)
    seconds = time.perf_counter() - started
    rng = np.random.default_rng(_SEED)
    best, spent = float("inf"), 0.0
    for done in range(_PASSES):
        if done and spent > _ENOUGH:
            break
        values = rng.integers(lows.min(), int(highs.max()) + 1, n_values, np.int32)
        began = time.perf_counter()
        searched = 0
        for first in range(0, len(values), _BATCH):
            batch = values[first : first + _BATCH]
            index.stab_batch(batch)
            searched += len(batch)
            if time.perf_counter() - began > _TOO_LONG:
                break
        took = time.perf_counter() - began
        spent += took
        best = min(best, took / searched * 1e9)
    return Measurement(index.nbytes, best, seconds)


# Showing


def _parameter(estimate: Estimate) -> str:
    return " ".join(f"{name} {value}" for name, value in estimate.parameters.items())


def as_text(lines: Sequence[Advice], choice: Choice, memory: int) -> str:
    """The choice and its reasons, the table, the bars."""
    rows = [
        ("structure", "parameter", "predicted", "", "measured", "", "", ""),
        ("", "", "storage", "ns/value", "storage", "ns/value", "build, s", ""),
    ]
    for line in lines:
        one, measured = line.estimate, line.measured
        chosen = (one.name, one.parameters) == (choice.name, choice.parameters)
        row = (one.name, _parameter(one), in_bytes(one.bytes), figure(one.nanoseconds))
        if measured is None:
            rows.append((*row, line.note, "", "", ""))
        else:
            size, seconds = in_bytes(measured.bytes), figure(measured.seconds)
            note = "chosen" if chosen else line.note
            rows.append((*row, size, figure(measured.nanoseconds), seconds, note))
    said = f"bittern advises {choice.name}"
    if choice.parameters:
        given = ", ".join(f"{name} = {value}" for name, value in choice.parameters.items())
        said += f" with {given}"
    reasons = "".join(f"  - {reason}\n" for reason in choice.reasons)
    limit = f"memory allowed: {in_bytes(memory)}\n"
    return f"{said}\n{reasons}\n{limit}{_aligned(rows)}\n{bars(_marks(lines))}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Columns of one width each; what is said instead of a measurement takes the room it needs."""
    said = [row for row in rows if row[4].startswith("not measured")]
    widths = [
        max(len(row[column]) for row in rows if column != 4 or row not in said)
        for column in range(len(rows[0]))
    ]
    right = (2, 3, 4, 5, 6)
    text = ""
    for row in rows:
        cells = [
            cell.rjust(width) if column in right and not cell.startswith(("not", "mea", "pre"))
            else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]  # fmt: skip
        text += "  ".join(cells).rstrip() + "\n"
    return text


def _marks(lines: Sequence[Advice]) -> list[Mark]:
    marks = []
    for position, line in enumerate(lines):
        one, measured = line.estimate, line.measured
        found = (float(measured.bytes), measured.nanoseconds) if measured else None
        marks.append(Mark(one.name, (float(one.bytes), one.nanoseconds), found, position == 0))
    return marks


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
                    "build_seconds": round(line.measured.seconds, 4),
                },
                "note": line.note,
            }
            for line in lines
        ],
    }
