"""What was to be reached, and whether it is, from the same points as the figures.

Against other libraries and within our own structures at n = 640,000, and in the papers' own terms:
no structure is to be slower than its paper's ordering says. An ordering holds if every structure
takes no more than the next one of the chain, at every point of the experiments::

    seed 001   ui <= cei <= lci-dt <= is-list     Fig. 17, 18 and 19: 22 points, 66 comparisons
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.papers.figure import Points
from benchmarks.papers.peers import SEGMENTS, with_segment
from benchmarks.papers.seed_004 import INDEXES
from benchmarks.report import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

DUCKDB = ("duckdb", "duckdb, one thread", "duckdb, buckets", "duckdb, buckets, one thread")
POLARS = ("polars", "polars, buckets")
FIFTH = 0.2


class Reached(NamedTuple):
    """What was measured, and whether that is enough."""

    measured: str
    met: bool


class Target(NamedTuple):
    """Something to reach; the experiments it needs, and the code that says whether it is."""

    what: str
    asked: str
    needs: tuple[str, ...]
    judge: Callable[[Mapping[str, Any]], Reached]


def measured_of(peers: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ours that did not refuse."""
    return {name: found for name, found in peers["ours"].items() if "refused" not in found}


def best(peers: Mapping[str, Any]) -> tuple[str, float]:
    """The fastest of ours, and its time."""
    times = {name: found["ns_per_event"] for name, found in measured_of(peers).items()}
    name = min(times, key=lambda each: times[each])
    return name, times[name]


def _ratio(peers: Mapping[str, Any], names: Iterable[str]) -> tuple[str, float]:
    """The fastest of these, and how many times longer than our best it takes."""
    times = {name: peers["others"][name]["ns_per_event"] for name in names}
    name = min(times, key=lambda each: times[each])
    return name, times[name] / best(peers)[1]


def _ncls(experiments: Mapping[str, Any]) -> Reached:
    _, plain = _ratio(experiments["peers"], ["ncls"])
    _, ordered = _ratio(experiments["peers"], ["ncls, events sorted"])
    return Reached(f"{number(plain)} ({number(ordered)} with its events sorted first)", plain >= 20)


def _faster(names: Sequence[str]) -> Callable[[Mapping[str, Any]], Reached]:
    def judge(experiments: Mapping[str, Any]) -> Reached:
        name, ratio = _ratio(experiments["peers"], names)
        return Reached(f"{number(ratio)} ({name})", ratio >= 5)

    return judge


def _copy(experiments: Mapping[str, Any]) -> Reached:
    ratio = 1 / _ratio(experiments["peers"], ["copy"])[1]
    return Reached(number(ratio), ratio <= 5)


def _cei_beside_ui(experiments: Mapping[str, Any]) -> Reached:
    """Judge the fastest segment that takes a fifth of the bytes or less; tell all of them."""
    ours = measured_of(experiments["peers"])
    ui = ours["ui"]
    told, fitting = [], {}
    for segment in SEGMENTS:
        cei = ours[with_segment(segment)]
        time, size = (cei[key] / ui[key] for key in ("ns_per_event", "bytes"))
        told.append(f"{segment}: {number(time)} at {number(size)}")
        if size <= FIFTH:
            fitting[segment] = time
    if not fitting:
        return Reached(f"none is small enough; segment {', '.join(told)}", False)
    chosen = min(fitting, key=lambda segment: fitting[segment])
    words = f"{number(fitting[chosen])} with segment {chosen} ({', '.join(told)} of the bytes)"
    return Reached(words, fitting[chosen] <= 1.5)


def _batch(experiments: Mapping[str, Any]) -> Reached:
    ratios = {
        name: found["ns_single"] / found["ns_batch"]
        for name, found in measured_of(experiments["peers"]).items()
        if "ns_single" in found
    }
    least = min(ratios, key=lambda name: ratios[name])
    return Reached(f"{number(ratios[least])} (`{least}`)", ratios[least] >= 1)


def _ordered(key: str, *chains: Sequence[str]) -> Callable[..., Reached]:
    """Judge whether each of a chain takes no more than the next, wherever both were measured."""

    def judge(experiments: Mapping[str, Any], needs: Sequence[str]) -> Reached:
        ratios = {
            (first, second, x, name): ratio
            for name in needs
            for chain in chains
            for first, second in pairwise(chain)
            for x, ratio in Points(experiments[name]["points"], {})
            .ratios(key, first, second)
            .items()
        }
        if not ratios:
            return Reached("not measured", False)
        worst = max(ratios, key=lambda each: ratios[each])
        first, second, x, name = worst
        held = sum(ratio <= 1 for ratio in ratios.values())
        words = (
            f"at {held} of {len(ratios)} comparisons; greatest ratio {ratios[worst]:.3g},"
            f" `{first}` / `{second}` at {x:,.10g} of {name}"
        )
        return Reached(words, held == len(ratios))

    return judge


def _in_order(what: str, key: str, needs: tuple[str, ...], *chains: Sequence[str]) -> Target:
    judge = _ordered(key, *chains)
    return Target(what, "at all", needs, lambda experiments: judge(experiments, needs))


PEERS = ("peers",)
TARGETS = (
    Target(
        "best structure, times faster than ncls on the events as they come", "≥ 20", PEERS, _ncls
    ),
    Target("best structure, times faster than the fastest DuckDB", "≥ 5", PEERS, _faster(DUCKDB)),
    Target("best structure, times faster than the fastest Polars", "≥ 5", PEERS, _faster(POLARS)),
    Target("best structure, times the time of copying the output", "≤ 5", PEERS, _copy),
    Target(
        "CEI, times the time of UI, with the fastest segment that takes at most a fifth of UI's"
        " bytes",
        "≤ 1.5",
        PEERS,
        _cei_beside_ui,
    ),
    Target("one value at a time / the same values in a batch, least of all", "≥ 1", PEERS, _batch),
    _in_order(
        "seed 000's order in finding lists: dlist ≤ lci-dt ≤ lci ≤ lci-bv (Fig. 6a)",
        "ns_to_count",
        ("000-fig6a-fig7a",),
        ("dlist", "lci-dt", "lci", "lci-bv"),
    ),
    _in_order(
        "seed 001's order in search time: ui ≤ cei ≤ lci-dt ≤ is-list (Fig. 17, 18, 19)",
        "ns_per_value",
        ("001-fig17", "001-fig18", "001-fig19"),
        ("ui", "cei", "lci-dt", "is-list"),
    ),
    _in_order(
        "seed 004's order in evaluations: interval ≤ segment-tree (Fig. 7, 8)",
        "evaluations",
        ("004-fig7", "004-fig8"),
        ("interval", "segment-tree"),
    ),
    _in_order(
        "seed 004's order in evaluations: cluster the least at a low overlap (Fig. 7)",
        "evaluations",
        ("004-fig7",),
        *(("cluster", other) for other in INDEXES if other != "cluster"),
    ),
)


def rows(experiments: Mapping[str, Any]) -> Iterable[tuple[Target, Reached]]:
    """Every target that the experiments at hand can tell about."""
    for target in TARGETS:
        if all(name in experiments for name in target.needs):
            yield target, target.judge(experiments)
