"""The page of a run: ``python -m benchmarks.streaming.report [JSON] [--output DIR]``.

Every figure is taken from the JSON file that ``benchmarks.streaming.run`` wrote.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.report import environment, number, read_full, table
from benchmarks.streaming.run import FULL, OUTPUT
from benchmarks.streaming.world import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"
_INTRODUCTION = """# Streams

Written by `make bench-streaming` (`python -m benchmarks.streaming.run`, then `.report`). A shop's
price changes come as Parquet files that one process puts into a folder, subscriptions change in a
SQLite catalog by another, and a pipeline on `local[2]` writes matches with the `Files` sink: all of
it, the two other processes included, on the same cores. End to end is from the moment an event can
be read (its file is renamed into the folder) to the moment its matches can (their folder is).
"""


def main(arguments: list[str] | None = None) -> int:
    """Read the result file and write the page."""
    result, folder = read_full(
        "benchmarks.streaming.report", OUTPUT, "folder for the page (docs/benchmarks)", arguments
    )
    target = (folder or DOCS) / "streaming.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(result))
    return 0


def page(result: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = result["parts"]
    made = {
        "catalog": _catalog,
        "backlog": _backlog,
        "paced": _paced,
        "fresh": _fresh,
        "soak": _soak,
    }
    sections = [make(parts[name]) for name, make in made.items() if name in parts]
    return "\n".join([_INTRODUCTION, environment(dict(result)), "", *sections])


def _catalog(told: Mapping[str, Any]) -> str:
    rows = [
        [f"load {told['subscriptions']:,} subscriptions, one version", _s(told["load"])],
        ["read them all (`catalog.at`)", _s(told["read"])],
        ["ask for the version", _s(told["version"])],
        ["add the first subscription, with its commit", _s(told["add"])],
        ["first view: read, compile, write the base", _s(told["first_view"])],
        *(
            [f"{int(n):,} changed: commit", _s(each["commit"])]
            for n, each in told["deltas"].items()
        ),
        *(
            [f"{int(n):,} changed: the next view (delta)", _s(each["view"])]
            for n, each in told["deltas"].items()
        ),
        ["compaction, in a process of its own", _s(told["compaction"])],
    ]
    return table("The catalog and its views", ["what", "seconds"], rows) + "\n"


def _backlog(told: Mapping[str, Any]) -> str:
    rows = [
        [
            name,
            f"{one['events']:,}",
            number(one["events_per_second"]),
            number(one["matches"] / one["events"]),
            number(one.get("changes_per_second")),
            str(one["versions"]),
            *_stages(one),
        ]
        for name, one in told.items()
    ]
    head = ["case", "events", "events/s", "matches per event", "changes/s", "versions"]
    title = f"Sustained, {FULL.subscriptions:,} subscriptions, all events there at the start"
    return (
        table(title, [*head, *_STAGES], rows)
        + "\n\nSeconds of each stage are medians over the batches (two files of "
        f"{FULL.rate:,} events each). `changing`: while subscriptions change. `edge`, `throttle`: "
        "with these steps after matching, an entity being one of "
        f"{PRODUCTS:,} products, a window an hour.\n"
    )


def _paced(told: Mapping[str, Any]) -> str:
    rows = [_pace(name, one) for name, one in told.items()]
    title = f"Paced, {FULL.subscriptions:,} subscriptions, {FULL.seconds} s at a steady rate"
    return table(title, _PACED, rows) + "\n"


def _fresh(told: Mapping[str, Any]) -> str:
    rows = [[str(told["samples"]), *(_s(told[name]) for name in ("p50", "p99", "max"))]]
    title = "Freshness: from a subscription's commit to its first match on disk"
    return (
        table(title, ["samples", "median s", "99 % s", "longest s"], rows)
        + f"\n\nWith {told['rate']:,} events/s, a file every quarter of a second.\n"
    )


def _soak(told: Mapping[str, Any]) -> str:
    counts = told["verified"]
    rows = [_pace("changing", told)]
    wrong = counts["wrong"] + counts["misjudged"] + counts["unread"]
    return (
        table(f"Verified, {told['subscriptions']:,} subscriptions", _PACED, rows)
        + f"\n\nEach of {counts['batches']} batches was matched again with an index built of the "
        f"catalog's version it was pinned to: {counts['matches']:,} matches of "
        f"{counts['events']:,} events, {counts['wrong']:,} different. The oracle judged "
        f"{counts['judged']:,} pairs of event and subscription: {counts['misjudged']:,} otherwise. "
        f"Files that no batch, or two, have read: {counts['unread']:,}. "
        f"{'All matches are right.' if not wrong else '**Some are wrong.**'}\n"
    )


_STAGES = ["pin s", "view s", "match s", "after and sink s", "Spark's commit s"]
_PACED = [
    "catalog",
    "events/s",
    "changes/s",
    "batches",
    "versions",
    "end to end median s",
    "99 % s",
    "batch median s",
    *_STAGES,
]


def _pace(name: str, one: Mapping[str, Any]) -> list[str]:
    return [
        name,
        number(one["sent_per_second"]),
        number(one.get("changes_per_second")),
        str(one["batches"]),
        str(one["versions"]),
        _s(one["end_to_end"]["p50"]),
        _s(one["end_to_end"]["p99"]),
        _s(one["latency"]["p50"]),
        *_stages(one),
    ]


def _stages(one: Mapping[str, Any]) -> list[str]:
    return [_s(one["seconds"][name]) for name in ("pin", "view", "match", "deliver", "commit")]


def _s(seconds: float) -> str:
    return f"{seconds:.3g}" if seconds < 100 else f"{seconds:,.0f}"


if __name__ == "__main__":
    sys.exit(main())
