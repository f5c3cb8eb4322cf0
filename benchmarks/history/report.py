"""The page of a run: ``python -m benchmarks.history.report [JSON] [--output DIR]``.

Every figure is taken from the JSON file that ``benchmarks.history.run`` wrote::

    results/history.json --+-- benchmarks/history.md
                           +-- benchmarks/history_documents.svg, history_predicates.svg
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.history import plots
from benchmarks.history.run import OUTPUT
from benchmarks.history.sweeps import LOGARITHMIC, PHASES
from benchmarks.report import environment, number, read_full, table

DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"
YES, NO = "yes", "**no**"
TIMES_BELOW_NAIVE = 1_000
_INTRODUCTION = """\
Written by `make bench-history` (`python -m benchmarks.history.run`, then `.report`): subscriptions
that compare an offer of a book shop with the offers that came before it. `benchmarks/history/`
has the world that is drawn, the nested loops and the SQL. Compare figures of one table with each
other; ratios are within this run."""


def main(arguments: list[str] | None = None) -> int:
    """Read the result file and write the page and its plots."""
    result, folder = read_full(
        "benchmarks.history.report", OUTPUT, "folder for the page (docs/benchmarks)", arguments
    )
    target = folder or DOCS
    target.mkdir(parents=True, exist_ok=True)
    (target / "history.md").write_text(page(result))
    plots.draw(result["parts"], target)
    return 0


def page(result: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = result["parts"]
    made = {
        "whole": (_mix, _naive, _duckdb),
        "documents": (_documents,),
        "distinct": (_distinct,),
        "sharing": (_sharing,),
        "phases": (_orders, _prefilter),
        "append": (_append,),
    }
    sections = ["# History, measured", environment(dict(result)), _INTRODUCTION, _targets(parts)]
    for name, makers in made.items():
        if name in parts:
            sections += [make(parts[name]) for make in makers]
    sections.append(_verified(parts))
    return "\n\n".join(section for section in sections if section) + "\n"


def _targets(parts: Mapping[str, Any]) -> str:
    rows = []
    if "documents" in parts:
        for name in LOGARITHMIC:
            growth, bound, words = _growth(parts["documents"]["sorts"][name]["points"])
            reached = YES if growth <= bound else NO
            rows.append([f"{name}: {words}", number(growth), f"≤ {number(bound)}", reached])
    if "whole" in parts:
        for name, words in _PLANS.items():
            times = _times_below(parts["whole"], name)
            reached = YES if times >= TIMES_BELOW_NAIVE else NO
            asked = f"≥ {TIMES_BELOW_NAIVE:,}"
            rows.append([f"times below {words}", number(times), asked, reached])
    told = (
        "Growth is logarithmic if the cost of an event is multiplied by no more than the logarithm"
        " of the number of documents is."
    )
    made = table("Targets", ["figure", "measured", "target", "reached"], rows)
    return f"{made}\n\n{told}" if made else ""


_PLANS = {
    "paper": "the plan without an index, as the paper has it",
    "once": "that plan, the event's constants asked before the documents",
}


def _times_below(whole: Mapping[str, Any], plan: str) -> float:
    ours = whole["batch"]["microseconds_per_event"] / 1e6
    return float(whole["naive"][plan]["seconds_per_event"] / ours)


def _growth(points: list[Mapping[str, Any]]) -> tuple[float, float, str]:
    """How many times the cost of the first history that last one's is, and its logarithm's."""
    there = [point for point in points if point["documents"] > 1]
    first, last = there[0], there[-1]
    growth = last["microseconds_per_event"] / first["microseconds_per_event"]
    bound = math.log(last["documents"]) / math.log(first["documents"])
    return growth, bound, f"µs at {last['documents']:,} documents / at {first['documents']:,}"


def _mix(whole: Mapping[str, Any]) -> str:
    mix = table(
        f"The mix: {whole['subscriptions']:,} subscriptions, {whole['documents']:,} documents",
        ["family", "one of them", "subscriptions", "matches per event"],
        [
            [
                name,
                f"`{one['example']}`",
                f"{one['subscriptions']:,}",
                number(one["matches_per_event"]),
            ]
            for name, one in whole["families"].items()
        ],
        words=2,
    )
    batch, kept = whole["batch"], whole["remembered"]
    rows = [
        ["different join predicates", f"{whole['distinct']:,}"],
        ["build the index, s", number(whole["build_seconds"])],
        ["read the documents for it, s", number(whole["attach_seconds"])],
        ["matched: µs per event", number(batch["microseconds_per_event"])],
        ["matched: events/s", number(1e6 / batch["microseconds_per_event"])],
        ["matches per event", number(batch["matches_per_event"])],
        ["join predicates evaluated per event", number(batch["evaluations_per_event"])],
        [f"{kept['events']:,} matched: µs per event", _us(kept, "without_microseconds_per_event")],
        ["the same matched and remembered: µs per event", _us(kept)],
        ["matched and remembered one at a time, µs", _us(kept, "one_at_a_time_microseconds")],
    ]
    return f"{mix}\n\n{table('', ['figure', 'measured'], rows)}"


def _naive(whole: Mapping[str, Any]) -> str:
    n, ours = whole["subscriptions"], whole["batch"]["microseconds_per_event"]
    rows = []
    for name, words in _PLANS.items():
        one = whole["naive"][name]
        timed = f"{one['subscriptions']:,} subscriptions, {one['events']:,} events"
        factor = n / one["subscriptions"]
        per_event = one["seconds_per_event"]
        row = [words, timed, number(factor), number(per_event), number(ours)]
        rows.append([*row, number(_times_below(whole, name))])
    head = ["plan", "timed", "multiplied by", "s per event", "ours, µs", "ratio"]
    told = (
        "For each profile, for each document: does it match? A compiled loop that ends a"
        " conjunction with the first predicate that fails, and the documents with the first that"
        " decides. Where only a part of the subscriptions was timed, the seconds are multiplied"
        " by how many times as many there are."
    )
    return f"{table('Beside the plan without an index', head, rows, words=2)}\n\n{told}"


def _duckdb(whole: Mapping[str, Any]) -> str:
    rows = []
    for one in whole["duckdb"]["batches"]:
        theirs, ours = (one[key] / one["events"] * 1e6 for key in ("seconds", "ours"))
        row = [f"{one['events']:,}", f"{one['matches']:,}", number(theirs), number(ours)]
        rows.append([*row, number(theirs / ours)])
    head = ["events in a batch", "matches", "DuckDB, µs per event", "ours, µs per event", "ratio"]
    told = (
        "Every family is one query that answers the quantifier for the whole batch and joins the"
        " answer with a table of the subscriptions' constants (`benchmarks/history/duck.py`); one"
        " thread. All events of a batch see the documents of before the batch. Where each event"
        " must see the one before it, the database has batches of one; ours has not. Both found"
        " the same matches."
    )
    return f"{table('Beside DuckDB', head, rows, words=0)}\n\n{told}"


def _documents(part: Mapping[str, Any]) -> str:
    sorts = part["sorts"]
    sizes = [point["documents"] for point in next(iter(sorts.values()))["points"]]
    rows, counts = [], []
    for name, one in sorts.items():
        growth, bound, _ = _growth(one["points"])
        row = [f"{name} ({', '.join(one['families'])})", *map(_us, one["points"])]
        rows.append([*row, f"{number(growth)} (log: {number(bound)})"])
        told = [
            f"{number(point['matches_per_event'])} / {number(point['evaluations_per_event'])}"
            for point in one["points"]
        ]
        counts.append([name, *told])
    title = f"Documents: µs per event, {part['subscriptions']:,} subscriptions of each sort"
    head = [f"{size:,}" for size in sizes]
    return "\n\n".join(
        [
            table(title, ["join predicates", *head, "last / first"], rows),
            (
                "An empty history shows what everything but the joins costs; the ratio leaves it "
                "out. Targets are set for lone orders and equalities. Where a key is joined or a "
                "document compared with a constant, more documents are more groups, which leave "
                "the caches, and longer lists; two orders without a key intersect sets, which is "
                "linear at worst."
            ),
            "![Cost against documents](history_documents.svg)",
            "Matches per event / join predicates evaluated per event:",
            table("", ["join predicates", *head], counts),
        ]
    )


def _distinct(part: Mapping[str, Any]) -> str:
    rows = [
        [
            f"constants {name}",
            f"{point['distinct']:,}",
            _us(point),
            number(point["evaluations_per_event"]),
            number(point["matches_per_event"]),
            point["phase"],
        ]
        for name, points in part["constants"].items()
        for point in points
    ]
    title = f"Different join predicates, {part['subscriptions']:,} subscriptions"
    head = ["predicates on the event", "different", "µs per event", "evaluated per event"]
    made = table(title, [*head, "matches per event", "phases"], rows)
    return f"{made}\n\n![Cost against join predicates](history_predicates.svg)"


def _sharing(part: Mapping[str, Any]) -> str:
    rows = [
        [
            f"{point['subscriptions']:,}",
            _us(point),
            number(point["evaluations_per_event"]),
            number(point["matches_per_event"]),
            point["phase"],
        ]
        for point in part["points"]
    ]
    head = ["subscriptions", "µs per event", "evaluated per event", "matches per event", "phases"]
    return table("Subscriptions that share one join predicate", head, rows, words=0)


def _orders(part: Mapping[str, Any]) -> str:
    rows = []
    for name, one in part["orders"].items():
        slower = max(one[order]["microseconds_per_event"] for order in PHASES[1:])
        row = [name, *(_us(one[order]) for order in PHASES), one["auto"]["phase"]]
        rows.append([*row, number(slower / one["auto"]["microseconds_per_event"])])
    head = ["subscriptions", *(f"{order}, µs per event" for order in PHASES)]
    title = f"Order of the phases, {part['subscriptions']:,} subscriptions"
    return table(title, [*head, "chosen", "slower order / auto"], rows)


def _prefilter(part: Mapping[str, Any]) -> str:
    rows = []
    for one in part["prefilter"]:
        off, on = one["off"], one["on"]
        row = [f"{one['in_vain']:.0%}", _us(off), _us(on)]
        row += [number(each["evaluations_per_event"]) for each in (off, on)]
        ratio = off["microseconds_per_event"] / on["microseconds_per_event"]
        rows.append([*row, number(ratio)])
    head = ["asking for what no document has", "without, µs per event", "with, µs per event"]
    head += ["evaluated without", "evaluated with", "without / with"]
    told = (
        "A third each: an attribute, a value and a range that no document has, the last one implied"
        " by a predicate on the event together with the join. The predicates on the event hold."
    )
    title = f"The pre-filter, {part['subscriptions']:,} subscriptions"
    return f"{table(title, head, rows, words=0)}\n\n{told}"


def _append(part: Mapping[str, Any]) -> str:
    costs = [
        [f"{one['at_a_time']:,}", f"{one['documents']:,}", _us(one, "memory"), _us(one, "disk")]
        for one in part["costs"]
    ]
    head = ["at a time", "documents", "in memory, µs per document", "on disk, µs per document"]
    rows = [
        ["bytes per document", number(part["bytes_per_document"])],
        ["open, s", number(part["open_seconds"])],
        ["read the documents for the mix, s", number(part["attach_seconds"])],
        ["µs per event", _us(part["match"])],
    ]
    title = f"A history of {part['documents']:,} documents on disk, opened again"
    return "\n\n".join(
        [
            table("Appending documents", head, costs, words=0),
            table(title, ["figure", "measured"], rows),
            "On disk, a document is there after a crash as soon as the call has returned.",
        ]
    )


def _verified(parts: Mapping[str, Any]) -> str:
    judged = list(_judged(parts))
    batches = parts.get("whole", {}).get("duckdb", {}).get("batches", [])
    matching = sum(one["matching"] for one in judged)
    pairs = sum(one["judged"] for one in judged)
    compared = sum(one["matches"] for one in batches)
    return (
        "## Verified\n\n"
        f"After {len(judged)} measurements, {pairs:,} pairs of event and subscription whose"
        f" constants hold were judged by nested loops over all documents, {matching:,} of them"
        f" matches; {compared:,} matches were compared with DuckDB's, all there are for these"
        " events. None differed: a difference would have ended the run."
    )


def _judged(told: Any) -> Iterator[Mapping[str, int]]:
    """Every ``verified`` in a result, wherever it stands."""
    if isinstance(told, Mapping):
        for name, value in told.items():
            if name == "verified":
                yield value
            else:
                yield from _judged(value)
    elif isinstance(told, list):
        for value in told:
            yield from _judged(value)


def _us(one: Mapping[str, Any], key: str = "microseconds_per_event") -> str:
    return number(one[key])


if __name__ == "__main__":
    sys.exit(main())
