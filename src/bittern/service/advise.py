"""``bittern advise``: every stabbing index on the user's own intervals, predicted and measured.

The order is the chooser's (``stabbing/choose.py``); ``service/advice.py`` shows what is found.
Structures are built and searched one after the other, each with the parameter that is predicted to
be its best, on the same values: cells drawn evenly from the range of the intervals. Kernels are
compiled before anything is timed.

Values are searched 16,384 at a time, or fewer where these would find more than four million ids: a
value finds half of a million subscriptions ``price >= x``, and a batch of all its ids would not
fit into memory::

    ids of each value   3M  2M  1M  1M  1M  2M       batches   3M | 2M 1M 1M | 1M 2M
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

import bittern
from bittern.arrays import Int32s, starts_of, stretches
from bittern.engine.intervals import Intervals
from bittern.errors import BitternError, OptionError
from bittern.service import tables
from bittern.service.advice import Advice, Measurement, as_json, as_text, disagreement, marks
from bittern.service.picture import scatter
from bittern.service.progress import Progress
from bittern.service.report import count, say
from bittern.stabbing.choose import choose, ranked
from bittern.stabbing.estimate import Estimate
from bittern.stabbing.registry import checked_memory, structure
from bittern.stabbing.summary import Summary

MEASURED_UP_TO = 1 << 28
"""An index is built and measured if it takes at most this many bytes, or at most the user's limit
if that is more. At 5 to 20 nanoseconds per byte, building takes a few seconds."""

_BATCH = 16_384
_BATCH_IDS = 1 << 22
_PASSES = 5
_ENOUGH = 0.3  # seconds of searching after which no further pass is made
_TOO_LONG = 5.0  # seconds after which even the first pass is cut short
_SEED = 1


def run(options: argparse.Namespace) -> int:
    """Read, predict, measure, print; returns the exit code."""
    form = tables.format_of(options.file, options.format)
    if options.file == "-":
        raise OptionError("bittern advise needs a file, not standard input")
    if options.picture == "-":
        raise OptionError("--picture needs a file, not standard output")
    tables.standard_output()  # raises if it is closed: the advice would be lost
    if options.picture is not None:
        tables.check_target(options.picture)
    progress = Progress(sys.stderr)
    try:
        lows, highs, domain = read(options, form, progress)
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
    choice = replace(choice, reasons=(*choice.reasons, *disagreement(lines)))
    if options.json:
        print(json.dumps(as_json(lines, choice, len(lows), domain, memory), indent=1))
    else:
        print(as_text(lines, choice, memory), end="")
    if options.picture is not None:
        title = f"{count(len(lows), 'interval')} over {count(domain, 'cell')}"
        with tables.replacing(options.picture) as file:
            file.write(scatter(marks(lines), title).encode())
        say(f"{options.picture} was written")
    return 0


def read(
    options: argparse.Namespace, form: str, progress: Callable[..., None]
) -> tuple[Int32s, Int32s, int]:
    """Intervals of a file as cells, and the number of cells; the columns decide how it is read."""
    name = options.file
    ends = ["low", "high"]
    texts = id_column, text_column = (
        options.id_column or "id",
        options.expression_column or "expression",
    )
    named = options.id_column is not None or options.expression_column is not None
    columns = tables.columns_of(name, form, set(ends), set(texts))
    if not named and set(ends) <= set(columns):
        for end in ends:
            if columns.count(end) > 1:
                raise BitternError(f"{name} has several columns named {end!r}")
        if set(texts) <= set(columns):
            say(f"{name} has intervals and subscriptions: low and high are used, expression is not")
        try:
            return Intervals.build(*tables.read_intervals(name, form)).cells
        except OptionError as error:
            raise BitternError(f"{name}: {error}") from error
    if not named and not set(texts) <= set(columns):
        found = ", ".join(columns) or "none"
        raise BitternError(
            f"{name} needs the columns low and high, or id and expression; it has: {found}"
        )
    source = tables.read_subscriptions(name, form, id_column, text_column, None)
    index = bittern.Index.build(source, progress=progress, parameters={"bits": False})
    filed = index.subscriptions.arrays()
    return filed["lows"], filed["highs"], max(1, index.rank.n_cells)


# Measuring


def _advice(
    estimate: Estimate, lows: Int32s, highs: Int32s, domain: int, n_values: int, memory: int
) -> Advice:
    fits = estimate.fits(memory)
    if not estimate.fits(max(memory, MEASURED_UP_TO)):
        return Advice(estimate, fits, None)
    try:
        return Advice(estimate, fits, measure(estimate, lows, highs, domain, n_values))
    except OptionError as refused:
        return Advice(estimate, fits, None, str(refused))


def measure(
    estimate: Estimate, lows: Int32s, highs: Int32s, domain: int, n_values: int
) -> Measurement:
    """Build the structure and search values in batches, the best of a few passes.

    Each pass has its own values: those of the last pass would still be in the cache.
    """
    chosen = structure(estimate.name)
    chosen.build([0], [0], [0], domain=1).stab(0)
    ids = np.arange(len(lows), dtype=np.int32)
    started = time.perf_counter()
    index = chosen.build(lows, highs, ids, domain=domain, **estimate.parameters)
    seconds = time.perf_counter() - started
    rng = np.random.default_rng(_SEED)
    edges = np.sort(lows), np.sort(highs)
    best, spent = float("inf"), 0.0
    for done in range(_PASSES):
        if done and spent > _ENOUGH:
            break
        took, searched = 0.0, 0
        for batch in batches(*edges, n_values, rng):
            began = time.perf_counter()
            index.stab_batch(batch)
            took += time.perf_counter() - began
            searched += len(batch)
            if spent + took > _TOO_LONG:
                break
        spent += took
        best = min(best, took / searched * 1e9)
    return Measurement(index.nbytes, best, seconds)


def batches(
    lows: Int32s, highs: Int32s, n_values: int, rng: np.random.Generator
) -> Iterator[Int32s]:
    """Cut values into batches that each find few enough ids; the ends ascend."""
    for first in range(0, n_values, _BATCH):
        size = min(_BATCH, n_values - first)
        values = rng.integers(lows[0], int(highs[-1]) + 1, size, np.int32)
        # In as many intervals as begin up to the value and do not end before it.
        found = np.searchsorted(lows, values, "right") - np.searchsorted(highs, values, "left")
        for at, end in stretches(starts_of(found), _BATCH_IDS):
            yield values[at:end]
