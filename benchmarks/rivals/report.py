"""The page from the figures: ``python -m benchmarks.rivals.report [FILE.json] [--output FOLDER]``.

``benchmarks.rivals.run`` writes the figures, this the words around them; nobody types a figure.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.report import environment, number, read_full, table
from benchmarks.rivals.run import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path("docs/benchmarks/rivals.md")
HEAD = """# Beside other engines

The same subscriptions and events in one run, in turns, with the same answers: `make rivals` builds
event-ruler and Quamina, runs all, and writes this page ([how](README.md#beside-other-engines)). All
times are CPU time of the thread that matches, medians of the rounds.
"""
ONE, MAPPING = "json 1", "mapping 1"


def single(entries: list[dict[str, Any]]) -> str:
    """One event at a time: a line for each engine where there are several."""
    rows = []
    for entry in entries:
        engines = entry["engines"]
        if len(engines) == 1:
            continue
        ours = engines["bittern"]["microseconds"]
        lines = {
            "Bittern, JSON text": (engines["bittern"]["load_seconds"], ours[ONE]),
            "Bittern, mapping": (engines["bittern"]["load_seconds"], ours[MAPPING]),
        }
        for name, own in engines.items():
            if name != "bittern":
                lines[f"{name}, JSON text"] = own["load_seconds"], own["microseconds"]
        rows += [
            [
                entry["workload"],
                name,
                f"{entry['subscriptions']:,}",
                number(load),
                number(taken),
                number(1e6 / taken),
                number(entry["matches"]),
            ]
            for name, (load, taken) in lines.items()
        ]
    head = ["workload", "engine", "subscriptions", "load s", "µs per event", "events/s", "matches"]
    return table("One event at a time", head, rows, words=2)


def by_size(entries: list[dict[str, Any]]) -> str:
    """Cost against the size of a batch."""
    rows, sizes = [], []
    for entry in entries:
        ours = entry["engines"]["bittern"]["microseconds"]
        if len(ours) <= 2:
            continue
        sizes = [int(way.split()[1]) for way in ours if way.startswith("json ")]
        for form in ("json", "mapping"):
            taken = (number(ours[f"{form} {n}"]) for n in sizes)
            rows.append([entry["workload"], form, f"{entry['subscriptions']:,}", *taken])
    head = ["workload", "events as", "subscriptions", *(f"{n:,}" for n in sizes)]
    return table("µs per event against the size of a batch", head, rows, words=2)


def by_subscriptions(entries: list[dict[str, Any]]) -> str:
    """Cost of one JSON text against the number of subscriptions."""
    sizes = list(dict.fromkeys(entry["subscriptions"] for entry in entries))
    taken: dict[tuple[str, str], dict[int, float]] = {}
    for entry in entries:
        for name, own in entry["engines"].items():
            one = own["microseconds"][ONE] if name == "bittern" else own["microseconds"]
            taken.setdefault((entry["workload"], name), {})[entry["subscriptions"]] = one
    rows = [
        [*key, *(number(own[n]) if n in own else "" for n in sizes)] for key, own in taken.items()
    ]
    head = ["workload", "engine", *(f"{n:,}" for n in sizes)]
    return table("µs per JSON text against the number of subscriptions", head, rows, words=2)


def printed(result: dict[str, Any]) -> Iterator[str]:
    """What other benchmarks printed in the same run."""
    if "patterns" in result:
        yield "## Patterns\n\nAs `python -m benchmarks.patterns --rivals` prints it:\n"
        yield "\n".join(result["patterns"])
    if "ranges" in result:
        yield "## Wide ranges\n\nAs `python -m benchmarks.strategies` prints it:\n"
        yield "\n".join(["```", *result["ranges"], "```"])


def page(result: dict[str, Any]) -> str:
    """The whole page."""
    entries = result["engines"]
    about = [HEAD, environment(result) + f" {result['events']:,} events."]
    parts = [*about, single(entries), by_size(entries), by_subscriptions(entries)]
    return "\n\n".join(part.strip("\n") for part in [*parts, *printed(result)] if part) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Read the figures and write the page."""
    result, folder = read_full("benchmarks.rivals.report", OUTPUT, "default: the docs", arguments)
    place = PAGE if folder is None else folder / PAGE.name
    place.write_text(page(result))
    print(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
