"""Search, insert and delete against n, everybody beside each other, everything cached."""

from __future__ import annotations

from typing import Any

from benchmarks.pb_tree.databases import LMDBChunks, LMDBCursor, SQLite
from benchmarks.pb_tree.measure import Held, Scale, Setting, change, holders, search_in_turns
from benchmarks.pb_tree.pb_file import PBTree
from benchmarks.pb_tree.peers import GroupedFilter, Intervals, PBInMemory, Peer, RedBlack
from benchmarks.pb_tree.workloads import THRESHOLDS, WIDE
from benchmarks.spark.session import progress

ON_DISK: tuple[type[Peer], ...] = (PBTree, SQLite, LMDBCursor, LMDBChunks)
IN_MEMORY: tuple[type[Peer], ...] = (PBInMemory, GroupedFilter, Intervals)


def beside(setting: Setting) -> dict[str, Any]:
    """Every family and size."""
    scale = setting.scale
    return {
        family: [_measure(setting, family, n) for n in sizes]
        for family, sizes in ((THRESHOLDS, scale.thresholds), (WIDE, scale.wide))
    }


def kinds(scale: Scale, n: int) -> tuple[type[Peer], ...]:
    """Who is measured at this size."""
    found = ON_DISK
    if n <= scale.in_memory:
        found += IN_MEMORY
    if n <= scale.slow_search:
        found += (RedBlack,)
    return found


def _measure(setting: Setting, family: str, n: int) -> dict[str, Any]:
    held = Held(family, n, setting.scale)
    with holders(kinds(setting.scale, n), held, setting.folder(family, n)) as found:
        search_in_turns(found, held, setting.scale.seconds)
        for name, one in found.items():
            if "peer" in one:
                one["told"] |= change(one["peer"], held, setting.scale)
                told = one["told"]
                progress(
                    f"  {family} {n:,} {name}: built in {told['build_seconds']:.1f} s,"
                    f" search {told['single_us']:,.1f} and {told['batch_us']:,.2f} µs,"
                    f" insert {told['insert_us']:,.1f}, delete {told['delete_us']:,.1f} µs"
                )
        peers = {name: one.get("told", one) for name, one in found.items()}
    return {"n": n, "ids_per_value": held.ids_per_value, "peers": peers}
