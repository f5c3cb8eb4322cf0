"""How the cost grows: with documents, with join predicates, with those who share one; the phases.

Every point is measured and judged as ``measure.py`` says. Subscriptions of one sweep are of few
families (``world.py``), so that what grows is the only thing that does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.draw import Ints
from benchmarks.history import world
from benchmarks.history.measure import Setting, append, live_matcher, same_pairs
from benchmarks.history.world import Family, Records, Subscriptions
from benchmarks.spark.session import progress
from bittern.history.history import History

#: Sorts of join predicates, each of some families.
SORTS: dict[str, tuple[Family, ...]] = {
    "order": (world.NEWEST, world.DEAREST, world.LIGHTER),
    "equality": (world.KNOWN, world.NEW),
    "equality and order": (world.FELL, world.RATED),
    "constant on the document": (world.EARLIER, world.SELLER, world.ONCE),
    "window": (world.LOWEST, world.DIP),
    "two orders": (world.BARGAIN, world.EITHER),
}
#: Of these the cost may grow no faster than the logarithm of the documents.
LOGARITHMIC = ("order", "equality")
PHASES = ("auto", "joins first", "constants first")


def documents(setting: Setting) -> dict[str, Any]:
    """Histories that grow, each sort of join predicate by itself."""
    scale, out = setting.scale, {}
    for name, families in SORTS.items():
        subscriptions = setting.world.subscriptions(scale.of_a_sort, dict.fromkeys(families, 1.0))
        points, there = [], 0
        with History() as history, live_matcher(subscriptions, history) as live:
            for size in scale.sizes:
                append(history, setting.documents.slice(there, size))
                there = size
                measured, found = setting.measure(live)
                judged = setting.judge(
                    subscriptions,
                    found,
                    measured["events"],
                    f"{name}, {size:,} documents",
                    documents=setting.documents.slice(0, size),
                )
                points.append({"documents": size, **measured, "verified": judged})
        out[name] = {"families": [family.name for family in families], "points": points}
        progress(f"  {name}")
    return {"subscriptions": scale.of_a_sort, "sorts": out}


def distinct(setting: Setting) -> dict[str, Any]:
    """As many subscriptions, of fewer or more different join predicates."""
    n, out = setting.scale.subscriptions, {}
    for name, selective in (("hold rarely", True), ("always hold", False)):
        points = []
        for different in setting.scale.distinct:
            family = world.with_distinct(different, selective=selective)
            subscriptions = setting.world.subscriptions(n, {family: 1.0})
            what = f"{different:,} different, constants {name}"
            points.append(
                {"distinct": subscriptions.distinct(), **setting.static(subscriptions, what)}
            )
            progress(f"  {what}")
        out[name] = points
    return {"subscriptions": n, "constants": out}


def sharing(setting: Setting) -> dict[str, Any]:
    """More and more subscriptions, all with the same join predicate."""
    points = []
    for n in setting.scale.sharing:
        subscriptions = setting.world.subscriptions(n, {world.FELL: 1.0})
        points.append({"subscriptions": n, **setting.static(subscriptions, f"{n:,} sharing")})
        progress(f"  {n:,}")
    return {"points": points}


def phases(setting: Setting) -> dict[str, Any]:
    """Both orders where the constants decide and where the joins do; the pre-filter on and off."""
    n = setting.scale.phased
    out: dict[str, Any] = {"subscriptions": n, "orders": {}, "prefilter": []}
    for name, family in (
        ("constants hold rarely", world.with_distinct(20_000, selective=True)),
        ("constants always hold", world.with_distinct(200, selective=False)),
    ):
        subscriptions = setting.world.subscriptions(n, {family: 1.0})
        out["orders"][name] = _settings(
            setting, subscriptions, setting.events, PHASES, _choose_phases, name
        )
    for share in setting.scale.in_vain:
        subscriptions = setting.world.subscriptions(n, world.in_vain(share))
        measured = _settings(
            setting,
            subscriptions,
            setting.events.later(),
            ("on", "off"),
            _choose_prefilter,
            f"pre-filter, {share:.0%} in vain",
        )
        out["prefilter"].append({"in_vain": share, **measured})
    return out


def _choose_phases(live: Any, phase: str) -> None:
    live.joins.phases = phase


def _choose_prefilter(live: Any, word: str) -> None:
    live.joins.prefilter = word == "on"


def _settings(
    setting: Setting,
    subscriptions: Subscriptions,
    events: Records,
    choices: tuple[str, ...],
    choose: Callable[[Any, str], None],
    what: str,
) -> dict[str, Any]:
    """The same matcher with each choice; all must find the same."""
    out: dict[str, Any] = {}
    first: Ints | None = None
    with live_matcher(subscriptions, setting.history) as live:
        for choice in choices:
            choose(live, choice)
            measured, found = setting.measure(live, events)
            n = measured["events"]
            verified = setting.judge(subscriptions, found, n, f"{what}, {choice}", events=events)
            out[choice] = measured | {"verified": verified}
            if first is None:
                first = found
            common = min(n, out[choices[0]]["events"])  # as many events as both have seen
            same_pairs(f"{what}, {choice}", *(_until(each, common) for each in (found, first)))
    progress(f"  {what}")
    return out


def _until(pairs: Ints, n: int) -> Ints:
    return pairs[: np.searchsorted(pairs[:, 0], n)]
