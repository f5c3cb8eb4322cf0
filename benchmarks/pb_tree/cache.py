"""An index larger than its cache: pages read and time per search.

The predicates are ``points``, so that values ask for nearly all pages. The cache is a share of the
index, from all of it down to a hundredth. A search then takes what it takes with everything cached,
and so much more for every page that it reads: a line through all points of one n, ``time = a + b *
reads``, says how far page reads explain the slowdown. All caches are measured in turns. No value
comes twice, since a cache could hold what a pass reads.

The system's own cache is warm, so that a read is a copy and a checksum; once more it is emptied
before (*cold*), so that a read goes to the disk.
"""

from __future__ import annotations

import shutil
import statistics
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.draw import Floats
from benchmarks.pb_tree import workloads
from benchmarks.pb_tree.measure import PASSES, Setting, clock
from benchmarks.pb_tree.pb_file import PBTree, forget, reads
from benchmarks.pb_tree.peers import Given
from benchmarks.pb_tree.truth import Truth
from benchmarks.pb_tree.workloads import POINTS
from benchmarks.spark.session import progress
from bittern.literature.pb_tree.frames import FEWEST
from bittern.literature.pb_tree.predicate_file import PredicateFile
from bittern.literature.pb_tree.tree import PAGE_BYTES

#: Values that are searched together first, so that an index that fits into the cache is there.
WARM = 100_000
#: Values whose pages are counted with nothing in the cache before each.
ALONE = 20
#: A read is a fifth of a search, so that medians of a few passes are not steady enough.
TURNS = 4 * PASSES
EVEN, SKEWED = "even", "skewed"


def cache(setting: Setting) -> dict[str, Any]:
    """Every size and share, values drawn evenly and skewed."""
    return {"sizes": [_size(setting, n) for n in setting.scale.cached]}


def _size(setting: Setting, n: int) -> dict[str, Any]:
    scale = setting.scale
    rows = workloads.predicates(POINTS, n)
    index = PBTree(Given(rows, rows.rows(0, 0), setting.folder("cache", n)))
    path, truth = index.path, Truth(rows)
    index.close()
    points = _in_turns(path, n, scale.cache_shares, scale.values, truth)
    some = workloads.values(POINTS, n, max(ALONE, scale.cold_values))
    told: dict[str, Any] = {
        "n": n,
        "bytes": path.stat().st_size,
        "pages_alone": _alone(path, some[:ALONE]),
        "points": points,
        "fit": fit([p["reads"] for p in points], [p["us"] for p in points]),
        "cold": [{"share": share, **_cold(path, share, some)} for share in scale.cache_shares],
    }
    progress(f"  cache at {n:,}: {told['fit']}")
    shutil.rmtree(path.parent)
    return told


def _open(path: Path, share: float) -> PredicateFile:
    """With a cache for a share of the index, and for as many pages as there have to be."""
    cache_bytes = max(int(path.stat().st_size * share), FEWEST * PAGE_BYTES)
    return PredicateFile.open(path, cache_bytes=cache_bytes)


def _in_turns(
    path: Path, n: int, shares: tuple[float, ...], count: int, truth: Truth
) -> list[dict[str, Any]]:
    """The points of all shares: one by one, and in a batch."""
    passes: dict[tuple[float, str], list[dict[str, float]]] = {}
    with ExitStack() as stack:
        files = {share: stack.enter_context(_open(path, share)) for share in shares}
        warm = workloads.values(POINTS, n, WARM)
        for index in files.values():
            index.search_batch(warm)
        for values in (EVEN, SKEWED):
            drawn = workloads.values(POINTS, n, (1 + TURNS) * count, skewed=values == SKEWED)
            first, *others = np.split(drawn, 1 + TURNS)
            for index in files.values():  # what these values like comes into the cache
                truth.judge("PB+tree", first, *index.search_batch(first))
                _each(index, first.tolist())
            for some in others:
                one_by_one, together = np.split(some, 2)
                for share, index in files.items():
                    told = passes.setdefault((share, values), [])
                    told.append(_pass(index, one_by_one) | _batch(index, together))
    return [
        {
            "share": share,
            "values": values,
            **{key: statistics.median(one[key] for one in told) for key in told[0]},
        }
        for (share, values), told in sorted(passes.items(), key=lambda of: (-of[0][0], of[0][1]))
    ]


def _pass(index: PredicateFile, values: Floats) -> dict[str, float]:
    before, each = reads(index), values.tolist()
    seconds = clock(partial(_each, index, each))
    return {"us": seconds / len(each) * 1e6, "reads": (reads(index) - before) / len(each)}


def _batch(index: PredicateFile, values: Floats) -> dict[str, float]:
    before = reads(index)
    seconds = clock(partial(index.search_batch, values))
    return {
        "batch_us": seconds / len(values) * 1e6,
        "batch_reads": (reads(index) - before) / len(values),
    }


def _each(index: PredicateFile, values: list[float]) -> None:
    for value in values:
        index.search(value)


def _alone(path: Path, values: Floats) -> float:
    """Pages that a search reads when it begins with an empty cache."""
    counts = []
    for value in values.tolist():
        with _open(path, 1.0) as index:
            before = reads(index)
            index.search(value)
            counts.append(reads(index) - before)
    return statistics.fmean(counts)


def _cold(path: Path, share: float, values: Floats) -> dict[str, float]:
    """Both caches empty at the beginning, this index's own and the system's."""
    with _open(path, share) as index:
        forget(path)
        return _pass(index, values)


def fit(read: list[float], took: list[float]) -> dict[str, float]:
    """The line through times over reads, and how much of their variance it explains.

    ``worst`` is the largest ratio between what the line says and what was measured, or its inverse.
    """
    x, y = np.array(read), np.array(took)
    slope, base = np.polyfit(x, y, 1) if np.ptp(x) else (0.0, y.mean())
    said = base + slope * x
    spread = float(np.square(y - y.mean()).sum())
    off = np.maximum(said / y, y / said)
    return {
        "base_us": float(base),
        "us_per_read": float(slope),
        "r2": 1 - float(np.square(y - said).sum()) / spread if spread else 1.0,
        "worst": float(off.max()),
    }
