"""The page of a run: ``python -m benchmarks.pb_tree.report [JSON] [--output DIR]``.

Every figure is taken from the JSON file that ``benchmarks.pb_tree.run`` wrote::

    results/pb_tree.json --+-- benchmarks/pb_tree.md
                           +-- benchmarks/pb_tree_*.svg
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.pb_tree import plots
from benchmarks.pb_tree.run import OUTPUT
from benchmarks.pb_tree.targets import OURS, targets
from benchmarks.pb_tree.workloads import THRESHOLDS, WIDE
from benchmarks.report import environment, number, read_full, table

DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"
_INTRODUCTION = """\
Written by `make bench-pb-tree` (`python -m benchmarks.pb_tree.run`, then `.report`): predicates of
one attribute on disk, in `PredicateFile`, beside the structures of the paper's Table 1, our own in
memory, SQLite and LMDB with the same predicates. `benchmarks/pb_tree/` has the predicates, the
structures and the SQL. Everybody is measured in turns, and ratios are within this run."""

_FAMILIES = """\
## Who is measured, and how

Predicates and values are floats. `thresholds` are alerts: half `=` with skewed constants over the
middle, where the values are, the others beyond it, the farther the more there are, so that a value
satisfies about a hundred whatever n is. `wide` has the six operators evenly, constants over the
middle, and half of all predicates hold for a value. `points`, for the cache, are nine tenths `=`,
two to a constant, so that values ask for nearly all pages."""

_FORMS_BEHIND = """\
All ids of a search come back as one NumPy array of int32. Whatever is on disk is in memory as well
for these figures, and commits reach the disk."""


_FORMS = {
    "PB+tree": "`PredicateFile`, pages of 4,096 bytes, a cache larger than the index",
    "PB+tree, memory": "the same pages and kernels without a file",
    "Grouped Filter": "two ordered trees and two hash tables, in memory",
    "red-black": "one ordered tree, a list of ids for each operator at every node, in memory",
    "Intervals": (
        '`bittern.Intervals`, structure "auto", in memory: a predicate is an interval of floats,'
        " `!=` two"
    ),
    "SQLite": (
        "rows (side, constant, strict or not, sid), all of it the primary key of a table WITHOUT"
        " ROWID; a search is one prepared statement, UNION ALL of five range scans, its ids read"
        " from one `group_concat`, which takes half the time of fetching rows; WAL, `synchronous ="
        " FULL`, cache and memory map larger than the database; a batch is one search after the"
        " other, since joining a table of the values was no faster"
    ),
    "LMDB, cursor": (
        "DUPSORT and DUPFIXED, one value of 12 bytes for each predicate, big-endian (constant,"
        " strict or not, sid) under one key for each of `!=`, less and greater; a search joins"
        " what `iterprev_dup` and `iternext_dup` yield from the value to the end; `=` has a key"
        " for each constant, read by `getmulti`; one read transaction for all searches"
    ),
    "LMDB, chunks": (
        "the same predicates in chunks of 256 under a key each, whose bounds are an array in"
        " memory; `getmulti` copies whole chunks in C, NumPy drops what does not hold"
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Read the result file and write the page and its plots."""
    result, folder = read_full(
        "benchmarks.pb_tree.report", OUTPUT, "folder for the page (docs/benchmarks)", arguments
    )
    target = folder or DOCS
    target.mkdir(parents=True, exist_ok=True)
    (target / "pb_tree.md").write_text(page(result))
    plots.draw(result["parts"], target)
    return 0


def page(result: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = result["parts"]
    made = {
        "beside": (_searches, _changes),
        "growth": (_growth,),
        "updates": (_updates,),
        "cache": (_cache,),
    }
    sections = ["# The predicate index on disk, measured", environment(dict(result))]
    forms = table("", ["name", "form"], [list(form) for form in _FORMS.items()], words=2)
    sections += [_INTRODUCTION, targets(parts), _FAMILIES, forms, _FORMS_BEHIND]
    sections.append(_left_out(result["sizes"]))
    for name, makers in made.items():
        if name in parts:
            sections += [make(parts[name]) for make in makers]
    sections.append(_VERIFIED)
    return "\n\n".join(section for section in sections if section) + "\n"


_VERIFIED = """\
## Verified

Before anybody was timed, and again after insertions and after deletions, the ids of every value
were counted and added up, and for some values compared one by one, with what binary searches in
sorted arrays of the constants find. A difference would have ended the run."""


def _left_out(sizes: Mapping[str, Any]) -> str:
    limits = ", ".join(f"{name} above {n:,}" for name, n in sizes["growth_limits"].items())
    return (
        f"Left out: structures in memory above {sizes['in_memory']:,} predicates, and `wide` above"
        f" {max(sizes['wide']):,}, where one search finds millions of ids, to keep the run short;"
        f" in the growth of Table 1 {limits}, which take too much time or memory there."
    )


# -- everybody beside each other -------------------------------------------------------------------


def _searches(part: Mapping[str, Any]) -> str:
    made = []
    for family in (THRESHOLDS, WIDE):
        points = part[family]
        for key, words in (
            ("single_us", "one at a time, µs per search"),
            ("batch_us", "in a batch, µs per value"),
        ):
            made.append(_by_size(f"Search, `{family}`: {words}", points, key))
        told = ", ".join(f"{number(p['ids_per_value'])} at {p['n']:,}" for p in points)
        made.append(f"Ids per value: {told}.")
        if family == WIDE:
            made.append(_per_id(points))
        made.append(f"![{family}](pb_tree_{family}.svg)")
    return "\n\n".join(made)


def _by_size(title: str, points: list[Mapping[str, Any]], key: str, scale: float = 1) -> str:
    """A row for each peer, a column for each n, and how many times ours it is at the last one."""
    names = list(dict.fromkeys(name for point in points for name in point["peers"]))
    rows = []
    for name in names:
        row, ratio = [name], ""
        for point in points:
            value = point["peers"].get(name, {}).get(key)
            row.append("" if value is None else number(value * scale))
            ours = point["peers"].get(OURS, {}).get(key)
            if value is not None and ours:
                ratio = number(value / ours)
        if any(row[1:]):
            rows.append([*row, ratio])
    head = ["", *(f"{point['n']:,}" for point in points), "of ours, at the last n"]
    return table(title, head, rows)


def _per_id(points: list[Mapping[str, Any]]) -> str:
    rows = []
    for name in points[0]["peers"]:
        costs = [
            (point["peers"].get(name, {}).get("batch_us"), point["ids_per_value"])
            for point in points
        ]
        rows.append([name, *("" if us is None else number(us / ids * 1e3) for us, ids in costs)])
    head = ["", *(f"{point['n']:,}" for point in points)]
    return "In a batch, nanoseconds per id:\n\n" + table("", head, rows)


def _changes(part: Mapping[str, Any]) -> str:
    made = []
    for family in (THRESHOLDS, WIDE):
        points = part[family]
        for key, words in (
            ("insert_us", "Insert"),
            ("delete_us", "Delete what came last"),
            ("delete_old_us", "Delete what was there from the beginning"),
        ):
            made.append(_by_size(f"{words}, `{family}`: one by one, µs", points, key))
        if family == THRESHOLDS:
            for key, words, scale in (
                ("insert_committed_us", "One by one, with a share of the commit of all, µs", 1),
                ("insert_many_us", "Inserted by one call and committed, µs for each", 1),
                ("delete_many_us", "Deleted by one call and committed, µs for each", 1),
                ("alone_ms", "One insertion and its commit, µs", 1e3),
                ("build_seconds", "Built, s", 1),
                ("bytes", "Bytes per predicate", 0),
            ):
                of = [_per_predicate(point) for point in points] if not scale else points
                made.append(f"{words}:\n\n{_by_size('', of, key, scale or 1)}")
    return "\n\n".join(made)


def _per_predicate(point: Mapping[str, Any]) -> Mapping[str, Any]:
    peers = {
        name: {"bytes": told["bytes"] / point["n"]}
        for name, told in point["peers"].items()
        if "bytes" in told
    }
    return {"n": point["n"], "peers": peers}


# -- the paper's own -------------------------------------------------------------------------------

_TABLE_1 = {
    "PB+tree": ("PB+tree", "n", "log n + L", "log n to n", "log n to n"),
    "Grouped Filter": ("Grouped Filter", "n", "log n + L", "log n", "log n"),
    "red-black": ("Red-Black tree based", "n", "n", "log n", "log n"),
    "IS-list": ("IBS-Tree", "", "", "", "log² n"),
    "Dlist": ("Time Index", "n²", "log n + L", "log n to n", "log n to n"),
    "interval tree": ("none", "", "", "", ""),
}
"""For each structure the row of Table 1, and what the paper says as far as it can be read."""


def _growth(part: Mapping[str, Any]) -> str:
    rows = []
    for name, fits in part["fits"].items():
        row, *said = _TABLE_1[name]
        measured = [
            f"{_power(fits.get(key))} ({paper})" if paper else _power(fits.get(key))
            for key, paper in zip(plots.GROWTH, said, strict=True)
        ]
        points = [point["n"] for point in part["points"][name] if "refused" not in point]
        rows.append([name, row, f"{min(points):,} to {max(points):,}", *measured])
    head = ["measured", "row of Table 1", "n", "space", "search", "insert", "delete"]
    made = table("Table 1 as measured growth", head, rows, words=3)
    told = (
        "A figure is the power of n that fits best, in brackets what the paper says, O(...). A"
        " logarithm looks like a power of 0 to 0.2 here, caches of the processor included. What is"
        " asked of all is `thresholds`, whose output L is the same at every n; insertions and"
        " deletions are single calls, which cost a microsecond or two by themselves, and deletions"
        " take back what was inserted last. They are few here, since the structures over numbered"
        " constants number those to come as well: with many, a trial run had Dlist's space grow too"
        " slowly. The file of a PB+tree has pages that every file has, which lowers its power of"
        " space where small n are among the points.\n\n"
        "Not every row was built. The IBS-tree is represented by the interval skip list, the same"
        " markers on a skip list. A Time Index keeps at every point all intervals that contain it:"
        " Dlist does so for every cell between the constants, without the B+tree above them. The"
        " Interval B+tree was not built and is not measured; the interval tree is no row of the"
        " table, and shows what another tree of intervals does with one-sided ranges. For these"
        " three a predicate is one or two intervals of numbered constants, those to come included;"
        " all one-sided intervals of one direction share an end, which is what the paper warns of."
    )
    shown = "\n\n".join(
        f"![{name} against n](pb_tree_growth_{name}.svg)" for name, _ in plots.GROWTH.values()
    )
    return f"{made}\n\n{told}\n\n{shown}"


def _power(fitted: float | None) -> str:
    return "" if fitted is None else f"n^{fitted:.2f}"


def _updates(part: Mapping[str, Any]) -> str:
    sizes = [point["n"] for point in part[THRESHOLDS]]
    rows = [
        [words, *(f"{number(p['mean'])} / {p['most']:,}" for p in part[name])]
        for name, words in (
            (THRESHOLDS, "`thresholds`"),
            (WIDE, "`wide`"),
            ("best", "best: `=` only"),
            ("worst", "worst: `>` before all constants of `=`"),
        )
    ]
    by_size = table(
        "Number_update: leaves that an insertion adjusts, mean / most",
        ["predicates", *(f"{n:,}" for n in sizes)],
        rows,
    )
    shares = part["shares"]
    by_share = table(
        "",
        [
            f"operators other than `=`, of {shares[0]['n']:,}",
            *(f"{p['share']:.1%}" for p in shares),
        ],
        [["`wide`", *(f"{number(p['mean'])} / {p['most']:,}" for p in shares)]],
    )
    told = (
        "Pointers lead to pages of a list, so that only the cut of such a page moves them: most"
        " insertions adjust nothing, and some of them many leaves. The fewer predicates a list has,"
        " the more leaves point to one of its pages, and the more rarely it is cut."
    )
    return f"{by_size}\n\n{by_share}\n\n{told}\n\n![Number_update](pb_tree_updates.svg)"


def _cache(part: Mapping[str, Any]) -> str:
    return "\n\n".join(
        [*map(_cache_of, part["sizes"]), "![Time over pages read](pb_tree_cache.svg)"]
    )


def _cache_of(size: Mapping[str, Any]) -> str:
    line = size["fit"]
    rows = []
    for share in dict.fromkeys(point["share"] for point in size["points"]):
        even, skewed = (
            next(p for p in size["points"] if (p["share"], p["values"]) == (share, name))
            for name in ("even", "skewed")
        )
        cold = next(p for p in size["cold"] if p["share"] == share)
        rows.append(
            [
                f"{share:.0%}",
                *(number(even[key]) for key in ("reads", "us", "batch_reads", "batch_us")),
                *(number(skewed[key]) for key in ("reads", "us")),
                *(number(cold[key]) for key in ("reads", "us")),
            ]
        )
    head = ["cache", "reads", "µs", "reads, batch", "µs, batch", "reads, skewed", "µs, skewed"]
    head += ["reads, cold", "µs, cold"]
    title = (
        f"The cache: {size['n']:,} `points`, an index of {size['bytes'] / 2**20:,.0f} MiB;"
        " per search"
    )
    cold_cost = _cold_read(size)
    told = (
        f"A search that begins with an empty cache reads {number(size['pages_alone'])} pages. The"
        f" line through the points of both sorts of values: {number(line['base_us'])} µs and"
        f" {number(line['us_per_read'])} µs for each page read; R² {line['r2']:.3f}, at worst"
        f" {number(line['worst'])} times off. The system's cache holds the file, so that a read is"
        " a copy and a checksum; the cold columns began without it, values drawn evenly"
        f" (posix_fadvise), {number(cold_cost)} µs for each read."
    )
    return f"{table(title, head, rows, words=0)}\n\n{told}"


def _cold_read(size: Mapping[str, Any]) -> float | None:
    """Microseconds of a read from the disk: what is left of all times, divided by all reads."""
    base = size["fit"]["base_us"]
    read = sum(point["reads"] for point in size["cold"])
    return sum(point["us"] - base for point in size["cold"]) / read if read else None


if __name__ == "__main__":
    sys.exit(main())
