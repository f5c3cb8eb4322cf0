"""The page from the figures: ``python -m benchmarks.serve.report [FILE.json] [--output FOLDER]``.

``benchmarks.serve.run`` writes the figures, this the words around them; nobody types a figure.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.report import environment, number, read_full, table
from benchmarks.serve.run import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path("docs/benchmarks/service.md")
HEAD = """# The service

`make bench-serve` starts `bittern serve` as it comes, its log in a file, on SQLite unless said
otherwise; asks it from a client on the same cores; and writes this page
([how](README.md#the-service)). Subscriptions and events are a shop's wishes and price changes.
Answers are compared with the embedded engine's before anything is timed.

Times are what a clock says, and so depend on what else the machine does: see its load. CPU time
depends on that less. It is that of the whole process, kernel included.
"""
_MS = ["median ms", "99 % ms", "longest ms"]


def _ms(told: dict[str, float]) -> list[str]:
    return [number(told[name]) for name in ("p50", "p99", "max")]


def page(result: dict[str, Any]) -> str:
    """The whole page."""
    parts = result["parts"]
    own = {
        "single": _single,
        "batches": _batches,
        "streams": _streams,
        "fresh": _fresh,
        "processes": _processes,
        "monitor": _monitor,
    }
    about = environment(result) + f" Load at the end {result['load_after'][0]:.2f}."
    if result["nice"]:
        about += f" All of its processes ran at nice {result['nice']}."
    told = [HEAD, about, targets(result)]
    if "service" in parts:
        told.append(_start(result["subscriptions"], parts["service"]))
    told += [make(parts[name]) for name, make in own.items() if parts.get(name)]
    return "\n\n".join(part.strip("\n") for part in told if part) + "\n"


def targets(result: dict[str, Any]) -> str:
    """What was to be reached, and what was."""
    head = ["what", "target", "by the clock", "", "by CPU time", ""]
    return table("Targets", head, [list(row) for row in _targets(result["parts"])])


def _targets(parts: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    def verdict(is_met: bool) -> str:  # noqa: FBT001
        return "reached" if is_met else "**missed**"

    if "single" in parts:
        best = max(parts["single"].values(), key=lambda each: each["rate"])
        cpu = best["cpu_us"]
        both = 2e6 / (cpu["service"] + cpu["client"])
        alone = 1e6 / cpu["service"]
        most = min(alone, both)
        yield (
            "single events, requests/s, client included, 2 cores",
            "2,000",
            *(number(best["rate"]), verdict(best["rate"] >= 2_000)),
            *(number(most), verdict(most >= 2_000)),
        )
        paced = next(own for name, own in parts["single"].items() if name.endswith("a second"))
        yield (
            "99 % of them at 2,000 requests/s, ms",
            "10",
            *(number(paced["ms"]["p99"]), verdict(paced["ms"]["p99"] < 10), "n/a", ""),
        )
    for way, own in parts.get("batches", {}).items():
        ratios = [own[by]["embedded"] / own[by]["service"] for by in ("seconds", "cpu")]
        clock, by_cpu = ((number(ratio), verdict(ratio >= 0.5)) for ratio in ratios)
        yield (f"batches as {way}, rate relative to the engine's", "0.5", *clock, *by_cpu)
    if "streams" in parts:
        n = parts["streams"]["streams"]
        yield ("open streams", "1,000", f"{n:,}", verdict(n >= 1_000), "n/a", "")
    if "fresh" in parts:
        worst = parts["fresh"]["matched"]["p99"]
        yield (
            "acknowledged to first match, one process, 99 %, ms",
            *("50", number(worst), verdict(worst < 50), "n/a", ""),
        )
    if parts.get("processes"):
        worst = parts["processes"]["matched"]["max"]
        yield (
            "acknowledged to first match, two processes, longest, ms",
            *("1,000", number(worst), verdict(worst < 1_000), "n/a", ""),
        )


def _start(subscriptions: int, told: dict[str, float]) -> str:
    rows = [
        ["load them into SQLite, s", number(told["load_seconds"])],
        ["start the service until it answers, s", number(told["start_seconds"])],
        ["memory of the process, MB", number(told["memory_bytes"] / 1e6)],
    ]
    return table(f"Start, {subscriptions:,} subscriptions", ["what", "measured"], rows)


def _single(told: dict[str, Any]) -> str:
    rows = [
        [
            name,
            number(own["rate"]),
            *_ms(own["ms"]),
            number(own["cpu_us"]["service"]),
            number(own["cpu_us"]["client"]),
        ]
        for name, own in told.items()
    ]
    head = ["asked by", "requests/s", *_MS, "CPU µs of the service", "CPU µs of the client"]
    after = (
        "Over connections the client asks again when it is answered. At a steady rate a request's "
        "time counts from when it was due, so a pause counts for all requests that fall into it."
    )
    return table("One event a request", head, rows) + f"\n\n{after}\n"


def _batches(told: dict[str, Any]) -> str:
    rows = []
    for way, own in told.items():
        rates = {
            by: {side: own["events"] / own[by][side] for side in ("service", "embedded")}
            for by in ("seconds", "cpu")
        }
        rows.append(
            [
                way,
                f"{own['events']:,}",
                *(number(rates[by][side]) for by in rates for side in rates[by]),
            ]
        )
    head = ["as", "events", "events/s", "embedded events/s"]
    head += ["events per CPU second", "embedded events per CPU second"]
    after = (
        "The embedded engine matches the same batch in the client's process, in turns with the "
        "service, and makes a table of ids. CPU time of the service is that of both processes."
    )
    return table("Batches", head, rows) + f"\n\n{after}\n"


def _streams(told: dict[str, Any]) -> str:
    rows = [
        ["a published event is acknowledged", *_ms(told["acknowledged"])],
        ["its match is in a stream", *_ms(told["came"])],
        ["its match is in the last of all streams", *_ms(told["last"])],
    ]
    kilobytes = number(told["bytes_per_stream"] / 1e3)
    after = (
        f"{told['published']:,} events, one after the other, each with a match for every one of "
        f"{told['streams']:,} subscribers, who listen on a connection each. Each event takes "
        f"{number(told['cpu_ms_per_event'])} ms of the service's CPU time, and an open stream "
        f"{kilobytes} kB of memory."
    )
    return table("Streams, from sending an event", ["until", *_MS], rows) + f"\n\n{after}\n"


def _freshness(told: dict[str, Any]) -> list[list[str]]:
    return [
        ["sending a subscription", "it is acknowledged", *_ms(told["acknowledged"])],
        ["its acknowledgement", "an answer to match has it", *_ms(told["matched"])],
        [
            "its acknowledgement",
            "a published event that it matches is on disk",
            *_ms(told["published"]),
        ],
    ]


def _fresh(told: dict[str, Any]) -> str:
    head = ["from", "until", *_MS]
    return table("Freshness, one process", head, _freshness(told), words=2)


def _processes(told: dict[str, Any]) -> str:
    head = ["from", "until, at the other process", *_MS]
    title = f"Freshness, two processes over one PostgreSQL, {told['subscriptions']:,} subscriptions"
    return table(title, head, _freshness(told), words=2)


def _monitor(told: dict[str, Any]) -> str:
    names = {"bittern": "`bittern serve`", "monitor": "Lucene's Monitor, JDK's HTTP server"}
    rows = [
        [
            name,
            number(told[key]["load_seconds"]),
            number(told[key]["rate"]),
            *_ms(told[key]["ms"]),
            number(told[key]["cpu_us"]),
            number(told[key]["memory_bytes"] / 1e6),
        ]
        for key, name in names.items()
    ]
    head = ["service", "load and start s", "requests/s", *_MS, "CPU µs", "memory MB"]
    after = (
        f"The same requests over 8 connections, in turns, with the same answers: "
        f"{number(told['matches'])} matches an event. The Monitor has its subscriptions in memory "
        "and checks nobody's token; the service has them in its catalog on disk, reads them from "
        "there, checks who asks, and writes a line of its log for each request."
    )
    title = f"Beside Lucene's Monitor, {told['subscriptions']:,} subscriptions"
    return table(title, head, rows) + f"\n\n{after}\n"


def main(arguments: list[str] | None = None) -> int:
    """Read the figures and write the page."""
    result, folder = read_full("benchmarks.serve.report", OUTPUT, "default: the docs", arguments)
    place = PAGE if folder is None else folder / PAGE.name
    place.write_text(page(result))
    print(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
