"""Were all matches of a run right? Each batch again, against the catalog's version it is pinned to.

For every batch an index is built anew of ``catalog.at(version)`` and matched with the batch's
events: the matches must be the same, each once. That index is the same engine; so of each batch
some pairs of event and subscription are also judged by ``tests/oracle.py``, one by one: pairs that
matched, pairs of any two, and pairs with the subscriptions that changed last.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import bittern

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

#: Pairs of each batch that the oracle judges, of each sort.
PAIRS = 200


def verify(
    catalog: bittern.Catalog, incoming: Path, matches: Path, checkpoint: Path
) -> dict[str, int]:
    """Check every batch; returns what was counted, ``wrong`` among it, which should be 0."""
    import oracle

    counts = dict.fromkeys(
        ("batches", "events", "matches", "wrong", "judged", "misjudged", "unread"), 0
    )
    batches, draw = files_of(checkpoint), random.Random(3)
    for batch, files in sorted(batches.items()):
        pin = json.loads((checkpoint / "bittern" / "pins" / f"{batch:020d}.json").read_text())
        own = pa.concat_tables(pq.read_table(incoming / file) for file in files)
        found = pq.read_table(matches / f"batch={batch}")
        counts["wrong"] += pc.sum(
            pc.not_equal(found["version"], pin["version"]), min_count=0
        ).as_py()
        table = catalog.at(pin["version"])
        matcher = bittern.Matcher(bittern.Index.build(table.select(["id", "expression"])))
        again = matcher.match(own).to_arrow(flat=True)
        numbers = own["id"].take(again["event"])
        expected = pa.table({"id": numbers, "subscription": again["subscription"]})
        counts["wrong"] += different(expected, found)
        counts["batches"] += 1
        counts["events"] += own.num_rows
        counts["matches"] += found.num_rows
        _judge(oracle, table, own, found, draw, counts)
    read = [file for files in batches.values() for file in files]
    there = [file.name for file in incoming.glob("*.parquet")]
    counts["unread"] = len(set(there) - set(read)) + len(read) - len(set(read))
    counts["wrong"] += len(set(matches.glob("batch=*")) - {matches / f"batch={b}" for b in batches})
    return counts


def files_of(checkpoint: Path) -> dict[int, list[str]]:
    """Which files each batch has read, as Spark has noted it."""
    noted: set[tuple[int, str]] = set()
    for log in (checkpoint / "sources" / "0").iterdir():
        if not log.name.startswith("."):
            for line in log.read_text().splitlines()[1:]:
                told = json.loads(line)
                noted.add((told["batchId"], Path(told["path"]).name))
    batches: dict[int, list[str]] = {}
    for batch, file in sorted(noted):
        batches.setdefault(batch, []).append(file)
    return batches


def different(one: pa.Table, other: pa.Table) -> int:
    """In how many rows do they differ, in whatever order?"""
    order = [("id", "ascending"), ("subscription", "ascending")]
    columns = ["id", "subscription"]
    types = pa.schema([("id", pa.int64()), ("subscription", pa.string())])
    one, other = (t.select(columns).cast(types).sort_by(order) for t in (one, other))
    if one.equals(other):
        return 0
    left = set(zip(*(one[c].to_pylist() for c in columns), strict=True))
    right = set(zip(*(other[c].to_pylist() for c in columns), strict=True))
    return len(left ^ right) or abs(one.num_rows - other.num_rows)


def _judge(
    oracle: Any,
    table: pa.Table,
    own: pa.Table,
    found: pa.Table,
    draw: random.Random,
    counts: dict[str, int],
) -> None:
    texts = dict(zip(table["id"].to_pylist(), table["expression"].to_pylist(), strict=True))
    held = set(zip(found["id"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    newest = table.sort_by([("version", "descending")])["id"].slice(0, PAIRS).to_pylist()
    numbers = own["id"].to_pylist()
    place = {number: row for row, number in enumerate(numbers)}
    pairs = draw.sample(sorted(held), min(PAIRS, len(held)))
    pairs += [(draw.choice(numbers), draw.choice(newest)) for _ in range(PAIRS)]
    pairs += [(draw.choice(numbers), draw.choice(table["id"]).as_py()) for _ in range(PAIRS)]
    for number, name in pairs:
        event = own.slice(place[number], 1).to_pylist()[0]
        counts["judged"] += 1
        counts["misjudged"] += oracle.matches(bittern.parse(texts[name]), event) != (
            (number, name) in held
        )
