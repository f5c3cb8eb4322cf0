"""Table 1 of the paper as measured growth: space, search, insert, delete against n.

Thresholds, so that the output L is the same at every n. Searches are one batch, so that what is
seen is the structure and not the call; an insertion or deletion is one call.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from benchmarks.pb_tree.measure import Held, Setting, change, holders, search_in_turns
from benchmarks.pb_tree.pb_file import PBTree
from benchmarks.pb_tree.peers import Dlist, GroupedFilter, IntervalTree, ISList, Peer, RedBlack
from benchmarks.pb_tree.workloads import THRESHOLDS
from benchmarks.spark.session import progress

STRUCTURES: tuple[type[Peer], ...] = (
    PBTree,
    GroupedFilter,
    RedBlack,
    ISList,
    IntervalTree,
    Dlist,
)
FIGURES = ("bytes", "batch_us", "insert_us", "delete_us")


def growth(setting: Setting) -> dict[str, Any]:
    """The points of every structure, as far as it can go."""
    scale = dataclasses.replace(setting.scale, changes=setting.scale.growth_changes)
    points: dict[str, list[dict[str, Any]]] = {kind.name: [] for kind in STRUCTURES}
    for n in scale.growth:
        held = Held(THRESHOLDS, n, scale)
        there = [kind for kind in STRUCTURES if n <= scale.growth_limits.get(kind.name, n)]
        with holders(there, held, setting.folder("growth", n)) as found:
            search_in_turns(found, held, scale.seconds)
            for name, one in found.items():
                if "peer" in one:
                    one["told"] |= change(one["peer"], held, scale)
                    told = one["told"]
                    points[name].append({"n": n, **{key: told[key] for key in FIGURES}})
                else:
                    points[name].append({"n": n, **one})
        progress(f"  growth {n:,}")
    return {"points": points, "fits": {name: _fits(of) for name, of in points.items()}}


def _fits(points: list[dict[str, Any]]) -> dict[str, float]:
    there = [point for point in points if "refused" not in point]
    if len(there) < 2:
        return {}
    return {
        key: exponent([point["n"] for point in there], [point[key] for point in there])
        for key in FIGURES
    }


def exponent(sizes: list[int], costs: list[float]) -> float:
    """The power of n that fits the costs best: the slope between their logarithms."""
    x, y = ([math.log(each) for each in numbers] for numbers in (sizes, costs))
    return float(np.polyfit(x, y, 1)[0])
