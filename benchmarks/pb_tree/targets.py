"""What was to be reached, judged from the figures of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.pb_tree.workloads import THRESHOLDS, WIDE
from benchmarks.report import number, table

OURS = "PB+tree"
YES, NO = "yes", "**no**"
TIMES_FASTER = 3
DATABASES = {"SQLite": ("SQLite",), "LMDB": ("LMDB, cursor", "LMDB, chunks")}
"""Each with the forms of it: the faster one counts."""

WAYS = {"single_us": "one at a time", "batch_us": "in a batch"}
#: An index ten times larger than its cache is usable if a search takes no more than so many times.
USABLE = 10
EXPLAINED = 0.9
OFF = 1.25
PER_ID = 1.5


def targets(parts: Mapping[str, Any]) -> str:
    """The table, and how it is judged."""
    rows = []
    if "beside" in parts:
        rows += [*_growth(parts["beside"]), *_faster(parts["beside"])]
    if "cache" in parts:
        rows += _cached(parts["cache"]["sizes"][-1])
    told = (
        "Search is logarithmic if its cost is multiplied by no more than the logarithm of n is,"
        " with the same output, and if an id of a large output costs no more than"
        f" {PER_ID} times as much at the last n as at the first. Of the two forms of LMDB the"
        " faster one counts. An index ten times larger than its cache is called usable if a search"
        f" takes at most {USABLE} times as long. Its slowdown is explained by page reads if a line"
        f" says {EXPLAINED:.0%} of the variance of times (R²) and is nowhere more than {OFF} times"
        " above or below what was measured.\n\n"
        "The factor of 3 was set beforehand; the other bounds are this benchmark's own. Chosen only"
        " when results of trial runs had been seen: that no more than"
        f" {OFF} times off is asked beside R² (it was 1.1 then, and R² 0.38); `points` for the"
        " cache, since the values of `thresholds` asked for a fifth of the pages only; and that the"
        " caches are measured in turns, many of them, without which other load hid the reads (R²"
        " 0.56 in one run with a quarter as many)."
    )
    made = table("Targets", ["figure", "measured", "target", "reached"], rows)
    return f"{made}\n\n{told}" if made else ""


def _row(words: str, value: float, bound: float, *, at_most: bool) -> list[str]:
    reached = value <= bound if at_most else value >= bound
    sign = "≤" if at_most else "≥"
    return [words, number(value), f"{sign} {number(bound)}", YES if reached else NO]


def _growth(beside: Mapping[str, Any]) -> Iterator[list[str]]:
    first, last = beside[THRESHOLDS][0], beside[THRESHOLDS][-1]
    bound = math.log(last["n"]) / math.log(first["n"])
    for key, words in WAYS.items():
        grown = last["peers"][OURS][key] / first["peers"][OURS][key]
        what = f"search {words}: µs at {last['n']:,} / at {first['n']:,}, same output"
        yield _row(what, grown, bound, at_most=True)
    costs = [point["peers"][OURS]["batch_us"] / point["ids_per_value"] for point in beside[WIDE]]
    sizes = [point["n"] for point in beside[WIDE]]
    what = f"search in a batch: ns per id at {sizes[-1]:,} / at {sizes[0]:,}, output n / 2"
    yield _row(what, costs[-1] / costs[0], PER_ID, at_most=True)


def _faster(beside: Mapping[str, Any]) -> Iterator[list[str]]:
    for family in (THRESHOLDS, WIDE):
        for database, forms in DATABASES.items():
            for key, words in WAYS.items():
                ratios = [
                    min(point["peers"][form][key] for form in forms) / point["peers"][OURS][key]
                    for point in beside[family]
                ]
                what = f"{database} / PB+tree, {words}, `{family}`, least of all n"
                yield _row(what, min(ratios), TIMES_FASTER, at_most=False)


def _cached(size: Mapping[str, Any]) -> Iterator[list[str]]:
    even = {point["share"]: point["us"] for point in size["points"] if point["values"] == "even"}
    what = f"µs with a cache of 10 % / of 100 %, {size['n']:,} predicates"
    yield _row(what, even[0.1] / even[1.0], USABLE, at_most=True)
    yield _row(
        "R² of the line of times over pages read", size["fit"]["r2"], EXPLAINED, at_most=False
    )
    yield _row("times that this line is off at most", size["fit"]["worst"], OFF, at_most=True)
