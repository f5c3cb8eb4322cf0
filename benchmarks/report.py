r"""Tables from result files: ``python -m benchmarks.report FILE.json ... [--output FILE.md]``.

``benchmarks.run`` writes the figures, this writes the words around them; nobody types a figure::

    results/a.json  --\
    results/b.json  ---+-- the newest measurement of each workload --> Markdown tables
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Measured: TypeAlias = dict[str, Any]


class Target(NamedTuple):
    """A figure to reach: ``figure`` reads it, ``bound`` limits it from above or below."""

    workload: str
    what: str
    figure: Callable[[Measured], float]
    bound: float
    at_most: bool

    def met(self, value: float) -> bool:
        """Whether the measured value reaches it."""
        return value <= self.bound if self.at_most else value >= self.bound


def _microseconds(measured: Measured) -> float:
    return float(measured["batch"]["microseconds_per_event"])


def _events_per_second(measured: Measured) -> float:
    return float(measured["batch"]["events_per_second"])


def _subscriptions_built_per_second(measured: Measured) -> float:
    return float(measured["subscriptions"] / measured["build_stages"]["build"])


def _churned(name: str) -> Callable[[Measured], float]:
    return lambda measured: float(measured["churn"][name])


TARGETS = (
    Target("shop", "µs per event", _microseconds, 4, at_most=True),
    Target(
        "shop", "bytes per subscription", lambda m: m["bytes_per_subscription"], 100, at_most=True
    ),
    Target(
        "shop",
        "subscriptions/s built from parsed arrays",
        _subscriptions_built_per_second,
        500_000,
        at_most=False,
    ),
    Target("shop-10m", "µs per event", _microseconds, 25, at_most=True),
    Target("dense", "events/s", _events_per_second, 100_000, at_most=False),
    Target("optional", "events/s", _events_per_second, 100_000, at_most=False),
    Target("ranges", "events/s", _events_per_second, 20_000, at_most=False),
    Target("equality", "events/s", _events_per_second, 500_000, at_most=False),
    Target("ads", "µs per event", _microseconds, 100, at_most=True),
    Target(
        "churn",
        "live subscribes/s, nobody matching",
        _churned("subscribes_per_second_alone"),
        20_000,
        at_most=False,
    ),
    Target(
        "churn",
        "changes/s through subscribe_many, nobody matching",
        _churned("changes_per_second_many"),
        100_000,
        at_most=False,
    ),
    Target(
        "churn",
        "share of matching lost to 20,000 subscribes/s and as many unsubscribes",
        _churned("slowdown_20000"),
        1 / 3,
        at_most=True,
    ),
    Target(
        "churn",
        "share of matching lost to 1,000 subscribes/s and as many unsubscribes",
        _churned("slowdown_1000"),
        0.05,
        at_most=True,
    ),
    Target(
        "churn",
        "longest pause of match at 20,000 subscribes/s, ms",
        _churned("pause_longest_20000"),
        5,
        at_most=True,
    ),
)


def main(arguments: list[str] | None = None) -> int:
    """Read the result files and write one page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report")
    parser.add_argument("results", nargs="+", type=Path, help="JSON files of benchmarks.run")
    parser.add_argument("--output", type=Path, help="Markdown file; default: the screen")
    options = parser.parse_args(arguments)
    page = tables(merge([json.loads(path.read_text()) for path in options.results]))
    if options.output:
        options.output.write_text(page)
    else:
        print(page, end="")
    return 0


def read_full(
    program: str, default: Path, output_help: str, arguments: list[str] | None
) -> tuple[dict[str, Any], Path | None]:
    """A report's command line: the result it names, and the folder, if one is given.

    Only whole runs go to the documentation's folder.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}")
    parser.add_argument("result", nargs="?", type=Path, default=default, help="the JSON file")
    parser.add_argument("--output", type=Path, help=output_help)
    options = parser.parse_args(arguments)
    result: dict[str, Any] = json.loads(options.result.read_text())
    if result["scale"] != "full" and options.output is None:
        raise SystemExit(
            f"{options.result} is of a small run, whose figures mean nothing:"
            " give a folder other than the documentation's with --output"
        )
    return result, options.output


def merge(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Newest measurement of each workload; only runs that can be compared share a table."""
    for what in ("scale", "cpu", "versions"):
        first, *others = [{**result, **result["environment"]}[what] for result in results]
        if any(other != first for other in others):
            raise SystemExit(f"these results differ in {what} and cannot share a table")
    ordered = sorted(results, key=lambda result: str(result["environment"]["date"]))
    merged = dict(ordered[-1])
    merged["workloads"] = {}
    for result in ordered:
        merged["workloads"] |= result["workloads"]
    return merged


def tables(result: dict[str, Any]) -> str:
    """Write the whole page: where, targets, every workload, peers, changes."""
    measured: dict[str, Measured] = result["workloads"]
    sections = [environment(result), _overview(measured)]
    if result["scale"] == "full":
        sections.append(_targets(measured))
    sections += [_build(measured), _ways(measured), _peers(measured), _churn(measured)]
    return "\n\n".join(section for section in sections if section) + "\n"


def table(title: str, head: list[str], rows: list[list[str]], *, words: int = 1) -> str:
    """Write a Markdown table below its title, if it has one; nothing without rows.

    The first columns, as many as ``words`` says, hold words, the others numbers.
    """
    if not rows:
        return ""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    lines = [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]
    return "\n".join([*([f"## {title}", ""] if title else []), *lines])


def number(value: float | None) -> str:
    """Three significant digits below a hundred, whole thousands apart above."""
    if value is None:
        return "n/a"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def environment(result: dict[str, Any]) -> str:
    """Say when, where and with which versions a result was measured."""
    where = result["environment"]
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    load = " ".join(f"{value:.2f}" for value in where["load_average"])
    return (
        f"Measured {where['date']} on {where['cpu']} ({where['cores']} cores,"
        f" {where['system']}, load {load}); {versions}; scale: {result['scale']}."
        " One thread unless said otherwise; median of the passes."
    )


def _overview(measured: dict[str, Measured]) -> str:
    head = ["workload", "subscriptions", "events/s", "µs per event", "best µs"]
    head += ["candidates per event", "matches per event"]
    rows = [
        [
            name,
            f"{one['subscriptions']:,}",
            number(one["batch"]["events_per_second"]),
            number(one["batch"]["microseconds_per_event"]),
            number(one["batch"]["best_microseconds_per_event"]),
            number(one["statistics"].get("candidates")),
            number(one["statistics"]["matches"]),
        ]
        for name, one in measured.items()
    ]
    return table("Matching", head, rows)


def _targets(measured: dict[str, Measured]) -> str:
    rows = []
    for target in TARGETS:
        try:
            value = target.figure(measured[target.workload])
        except KeyError:  # not run, or a stage that the index did not time
            continue
        sign = "≤" if target.at_most else "≥"
        reached = "yes" if target.met(value) else "no"
        rows.append(
            [
                f"{target.workload}: {target.what}",
                number(value),
                f"{sign} {number(target.bound)}",
                reached,
            ]
        )
    return table("Targets", ["figure", "measured", "target", "reached"], rows)


def _build(measured: dict[str, Measured]) -> str:
    head = ["workload", "build s", "reading s", "from arrays s", "save s"]
    head += ["bytes per subscription", "bytes on disk"]
    rows = [
        [
            name,
            number(one["build_seconds"]),
            number(one["build_stages"].get("read")),
            number(one["build_stages"].get("build")),
            number(one["save_seconds"]),
            number(one["bytes_per_subscription"]),
            number(one["snapshot_bytes_per_subscription"]),
        ]
        for name, one in measured.items()
    ]
    return table("Building", head, rows)


def _ways(measured: dict[str, Measured]) -> str:
    """Batch, one at a time, JSON; scan and pivot on the part that scan can manage."""
    head = ["workload", "batch µs", "one at a time µs", "JSON text µs"]
    head += ["part", "scan µs on the part", "pivot µs on the part"]
    rows = []
    for name, one in measured.items():
        scan = one["scan"]
        timings = [one["batch"], one["single"], one.get("json")]
        rows.append(
            [
                name,
                *[number(t and t["microseconds_per_event"]) for t in timings],
                f"{scan['subscriptions']:,}",
                number(scan["scan"]["microseconds_per_event"]),
                number(scan["pivot"]["microseconds_per_event"]),
            ]
        )
    return table("Ways to match, µs per event", head, rows)


def _peers(measured: dict[str, Measured]) -> str:
    head = ["workload", "engine", "as", "load s", "events", "events/s", "ours", "ratio"]
    rows = []
    for name, one in measured.items():
        ours = one["batch"]["events_per_second"]
        for peer, found in one.get("peers", {}).items():
            theirs = found["events_per_second"]
            row = [name, peer, found["form"], number(found["load_seconds"])]
            row += [f"{found['events']:,}", number(theirs), number(ours), number(ours / theirs)]
            rows.append(row)
    return table("Beside join engines", head, rows)


def _churn(measured: dict[str, Measured]) -> str:
    rows = [
        [f"{name}: {what.replace('_', ' ')}", number(value)]
        for name, one in measured.items()
        for what, value in one.get("churn", {}).items()
    ]
    return table("Changes while matching", ["figure", "measured"], rows)


if __name__ == "__main__":
    sys.exit(main())
