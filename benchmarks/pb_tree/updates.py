"""The paper's Number_update: leaves that an insertion accesses to adjust pointers.

Against n in both families; against the share of operators that go into a list; and at the ends.
Pointers lead to nodes of a list, and move when a node is cut. At best no predicate goes into a
list. At worst a list has all its keys before those of the leaves, so that most leaf items point to
its last node, and each cut of that node moves all of these pointers::

    leaves           |5 6 7|8 9 10|11 12 13| ...
    GreaterThan list  Head 1 2 | 3 4          insert > 4.5: the node is cut, and every leaf
                                              item points to the second half from now on
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pb_tree import workloads
from benchmarks.pb_tree.measure import Setting
from benchmarks.pb_tree.pb_file import PBTree, adjusted
from benchmarks.pb_tree.peers import Given
from benchmarks.pb_tree.workloads import THRESHOLDS, WIDE, Predicates
from benchmarks.spark.session import progress
from bittern.literature.predicates.contract import EQUAL, GREATER

#: Of the predicates, how many have an operator other than ``=``.
SHARES = (0.0, 0.001, 0.01, 0.1, 0.5, 1.0)
#: Insertions that are looked at one by one.
INSERTED = 1_000


def updates(setting: Setting) -> dict[str, Any]:
    """Mean and most of many insertions, by n, by share, and at the ends."""
    scale = setting.scale
    sizes = scale.update_sizes
    of_shares = []
    for share in SHARES:
        parts = _shares(share)
        rows = workloads.predicates(WIDE, scale.update_n, shares=parts)
        more = workloads.predicates(WIDE, scale.update_n, INSERTED, shares=parts)
        folder = setting.folder("share", share)
        of_shares.append({"share": share, "n": len(rows), **_count(rows, more, folder)})
    result: dict[str, Any] = {"shares": of_shares}
    for family in (THRESHOLDS, WIDE):
        result[family] = [
            {"n": n, **_count(workloads.predicates(family, n), _more(family, n), folder)}
            for n in sizes
            for folder in (setting.folder("update", family, n),)
        ]
    result["best"] = [
        {"n": n, **_count(_equals(n), _rising(n, EQUAL), setting.folder("best", n))} for n in sizes
    ]
    result["worst"] = [
        {"n": n, **_count(_equals(n), _rising(n, GREATER), setting.folder("worst", n))}
        for n in sizes
    ]
    progress(f"  Number_update at n = {sizes[-1]:,}: {result['worst'][-1]} at worst")
    return result


def _more(family: str, n: int) -> Predicates:
    return workloads.predicates(family, n, INSERTED)


def _shares(share: float) -> tuple[float, ...]:
    return (1 - share, *[share / 5] * 5)


def _equals(n: int) -> Predicates:
    """Equalities only, a constant each, in no order."""
    constants = 1 + np.arange(n) * 7_919 % n / n if n % 7_919 else 1 + np.arange(n) / n
    return Predicates(np.full(n, EQUAL, np.uint8), constants, np.arange(n, dtype=np.int32))


def _rising(n: int, operator: int) -> Predicates:
    """Predicates with ascending constants before all others."""
    return Predicates(
        np.full(INSERTED, operator, np.uint8),
        np.arange(INSERTED) / INSERTED,
        n + np.arange(INSERTED, dtype=np.int32),
    )


def _count(predicates: Predicates, more: Predicates, folder: Path) -> dict[str, float]:
    """Leaves that were accessed to adjust pointers, when ``more`` came one by one."""
    index = PBTree(Given(predicates, more, folder))
    counts = [adjusted(index.file)]
    for one in more.triples():
        index.insert(*one)
        counts.append(adjusted(index.file))
    index.close()
    steps = np.diff(counts)
    return {"mean": float(steps.mean()), "most": int(steps.max())}
