"""The plan: what matching would do, shown beforehand.

::

    sharded: 2 shards and home; 60,000 subscriptions, 12.4 MiB
    because it was built in 2 shards

    part     subscriptions     bytes  events  tasks  snapshot
    router              31  12.5 KiB   100 %      -  c2f9d01f0c2d
    home               120  40.1 KiB   100 %      -  1f0c2d7a9b33
    shard 0         30,004   6.1 MiB    31 %      1  77aa01c2f9d0
    shard 1         29,876   6.2 MiB    62 %      3  0b1f6f0e2c55

    an event visits 0.93 shards on average, 99 of 100 at most 2, ...

Nothing is built, published or matched. Subscriptions that are still a DataFrame are counted in one
job in the JVM, and their size is estimated by the rule that ``build`` uses; a built index gives
exact figures. If events are given, the first 10,000 of them are routed on the executors to see how
many shards an event visits; without them, only the shares that the build expected are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from bittern.engine.index import Index
from bittern.language.printer import print_attribute
from bittern.spark.arrow_tables import to_arrow
from bittern.spark.attributes import names_of, project
from bittern.spark.frames import mistyped, names_in
from bittern.spark.sharded.matching import routed
from bittern.spark.sharded.routing import n_tasks, salts
from bittern.spark.sharded.shards import Shards
from bittern.spark.snapshots.node_cache import SnapshotRef, attach
from bittern.spark.snapshots.store import ARTIFACTS, CACHE, destination
from bittern.spark.snapshots.transport import read_id
from bittern.spark.subscriptions.building import (
    SHARD_BYTES_CONF,
    Built,
    check_shards,
    estimated_bytes,
    measure,
    rows_of,
    shard_bytes,
    shard_count,
)
from bittern.spark.subscriptions.handed_over import as_frame, is_handed_over
from bittern.spark.subscriptions.resolving import refusal
from bittern.spark.subscriptions.samples import ROWS
from bittern.spark.workers import able

_SHOWN_SHARDS, _SHOWN_NAMES = 12, 20
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_DESTINATIONS = {CACHE: "from this host", ARTIFACTS: "with the session's artifacts"}


@dataclass(frozen=True)
class PlannedIndex:
    """One index: the whole, home, the router or a shard; None means not known yet."""

    name: str
    subscriptions: int | None
    nbytes: int | None  # that matching touches; estimates count ids and texts as well
    traffic: float | None  # the share of events that visit it
    tasks: int | None  # that visit it; None: wherever events are
    snapshot: str | None
    place: str | None


@dataclass(frozen=True)
class FanOut:
    """How many shards an event visits; ``p99`` and ``most`` only if ``events`` were looked at."""

    mean: float
    p99: int | None
    most: int | None
    events: int


@dataclass(frozen=True)
class Plan:
    """What ``bittern.spark.match`` would do; ``print`` it."""

    sharded: bool
    built: bool  # else figures are estimates
    reason: str
    subscriptions: int
    nbytes: int
    n_shards: int  # 0: whole
    tasks: int | None  # that visit shards
    parts: tuple[PlannedIndex, ...]
    fan_out: FanOut | None
    attributes: tuple[str, ...] | None  # canonical names; None: not known before the build
    columns: tuple[str, ...] | None  # of the events, that cross into Python; None: no events given
    left_out: tuple[str, ...] | None  # that do not
    mistyped: tuple[str, ...]  # columns whose type no subscription compares, and why

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join([*self._head(), "", *self._table(), "", *self._tail()])

    def _head(self) -> list[str]:
        about = "" if self.built else "about "
        what = "whole"
        if self.sharded:
            home = " and home" if any(part.name == "home" for part in self.parts) else ""
            what = f"sharded: {self.n_shards} shards{home}"
        size = f"{self.subscriptions:,} subscriptions, {about}{_bytes(self.nbytes)}"
        return [f"{what}; {size}", f"because {self.reason}"]

    def _table(self) -> list[str]:
        shown = self.parts[: len(self.parts) - self.n_shards + _SHOWN_SHARDS]
        rows = [("part", "subscriptions", "bytes", "events", "tasks", "snapshot")]
        rows += [
            (
                part.name,
                _shown(part.subscriptions),
                "?" if part.nbytes is None else _bytes(part.nbytes),
                "?" if part.traffic is None else f"{100 * part.traffic:.0f} %",
                "-" if part.tasks is None else str(part.tasks),
                "not built" if part.snapshot is None else part.snapshot[:12],
            )
            for part in shown
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if at in (0, 5) else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        more = len(self.parts) - len(shown)
        return lines + ([f"... and {more} more shards"] if more else [])

    def _tail(self) -> list[str]:
        lines = []
        sizes = [p.nbytes for p in self.parts[-self.n_shards :] if p.nbytes is not None]
        if self.sharded and sizes:
            mean = sum(sizes) // len(sizes)
            spread = (_bytes(min(sizes)), _bytes(mean), _bytes(max(sizes)))
            lines.append(
                f"a shard has {spread[0]} at least, {spread[1]} on average, {spread[2]} at most"
            )
        if self.fan_out is not None:
            text = f"an event visits {self.fan_out.mean:.2f} shards on average"
            if self.fan_out.p99 is not None:
                text += (
                    f", 99 of 100 at most {self.fan_out.p99}, all at most {self.fan_out.most} "
                    f"(of {self.fan_out.events:,} events)"
                )
            else:
                text += " (as the build expected; give events to see more)"
            lines.append(text)
        places = sorted({part.place for part in self.parts if part.place is not None})
        lines += [f"snapshots come {place}, through each host's cache" for place in places]
        if self.attributes is None:
            lines.append("the attributes in use are known once subscriptions are built")
        else:
            names = [print_attribute(name) for name in self.attributes]
            lines.append(f"attributes in use: {_some(names)}")
        if self.columns is not None:
            lines.append(f"columns that cross into Python: {_some(self.columns)}")
            lines.append(f"columns that do not: {_some(self.left_out or ())}")
        lines += [f"never true: {reason}" for reason in self.mistyped]
        return lines


@able()
def plan(
    subscriptions: Any,
    *,
    events: DataFrame | None = None,
    event_id: str | Sequence[str] | None = None,
    json: str | Sequence[str] = (),
    shards: str | int | None = "auto",
    store: str | None = None,
) -> Plan:
    """What ``bittern.spark.match`` would do with these subscriptions and events.

    The arguments are those of ``match``. ``events`` may be left out; of a stream only the columns
    are looked at. Print the plan, or read its fields.
    """
    check_shards(shards)
    if events is None:
        keys, documents = names_of(event_id, "event_id"), names_of(json, "json")
    else:
        keys, documents = names_in(events, event_id, json)
    view = _View(events, tuple(keys), tuple(documents), store)
    if is_handed_over(subscriptions):
        spark = SparkSession.active() if events is None else events.sparkSession
        subscriptions = as_frame(spark, subscriptions)
    if isinstance(subscriptions, DataFrame):
        return _of_rows(subscriptions, shards, view)
    if isinstance(subscriptions, str | Path):
        place = str(subscriptions)
        return _of_index(attach(SnapshotRef(read_id(place), place)), f"from {place}", view)
    if isinstance(subscriptions, Index):
        return _of_index(subscriptions, view.destination(), view)
    if isinstance(subscriptions, Built):
        subscriptions = subscriptions.ref
    if isinstance(subscriptions, SnapshotRef):
        return _of_index(attach(subscriptions), _place(subscriptions), view)
    if isinstance(subscriptions, Shards):
        return _of_shards(subscriptions, view)
    raise refusal(subscriptions, catalog=False)


@dataclass(frozen=True)
class _View:
    """The events, if there are any, and the names that matter."""

    events: DataFrame | None
    keys: tuple[str, ...]
    json: tuple[str, ...]
    store: str | None

    @property
    def schema(self) -> StructType:
        """Of the events; empty if there are none."""
        return StructType() if self.events is None else self.events.schema

    def columns(self, attributes: Sequence[str]) -> dict[str, tuple[str, ...] | None]:
        """Which columns cross into Python, and which do not, as fields of a plan."""
        if self.events is None:
            return {"columns": None, "left_out": None}
        crossing = project(self.events, self.keys, attributes, self.json).columns
        names = self.events.columns
        return {
            "columns": tuple(name for name in names if name in crossing),
            "left_out": tuple(name for name in names if name not in crossing),
        }

    def session(self) -> SparkSession | None:
        """The session of the events, or the active one."""
        return SparkSession.getActiveSession() if self.events is None else self.events.sparkSession

    def destination(self, spark: SparkSession | None = None) -> str | None:
        """Where a snapshot would be published, if a session tells."""
        spark = spark or self.session()
        if spark is None:
            return None
        return _DESTINATIONS.get(where := destination(spark, self.store), f"from {where}")


def _of_rows(subscriptions: DataFrame, shards: str | int | None, view: _View) -> Plan:
    """The plan for subscriptions that are not built yet."""
    spark = subscriptions.sparkSession
    limit = shard_bytes(spark.conf.get(SHARD_BYTES_CONF, None))
    total, text_bytes, _ = measure(rows_of(subscriptions))
    nbytes = estimated_bytes(total, text_bytes)
    n = shard_count(shards, nbytes, limit)
    if shards == "auto":
        than = "more than" if n > 1 else "within"
        reason = f"that is {than} the {_bytes(limit)} that one index may have ({SHARD_BYTES_CONF})"
    else:
        reason = f"shards={shards} was asked for"
    names = [f"shard {at}" for at in range(n)] if n > 1 else ["index"]
    place = view.destination(spark)
    parts = [PlannedIndex(name, total // n, nbytes // n, None, None, None, place) for name in names]
    return Plan(
        sharded=n > 1,
        built=False,
        reason=reason,
        subscriptions=total,
        nbytes=nbytes,
        n_shards=n if n > 1 else 0,
        tasks=n_tasks(spark, n) if n > 1 else None,
        parts=tuple(parts),
        fan_out=None,
        attributes=None,
        columns=None,
        left_out=None,
        mistyped=(),
    )


def _of_index(index: Index, place: str | None, view: _View) -> Plan:
    """The plan for one index."""
    attributes = tuple(index.rank.attribute_names())
    part = PlannedIndex("index", len(index), index.nbytes, 1.0, None, index.id, place)
    return Plan(
        sharded=False,
        built=True,
        reason="it was built whole",
        subscriptions=len(index),
        nbytes=index.nbytes,
        n_shards=0,
        tasks=None,
        parts=(part,),
        fan_out=None,
        attributes=attributes,
        **view.columns(attributes),
        mistyped=tuple(mistyped(index, view.schema, view.json)),
    )


def _of_shards(shards: Shards, view: _View) -> Plan:
    """The plan for a sharded index."""
    spark = view.session()
    tasks = salts(shards.traffic, n_tasks(spark, len(shards.shards)))
    fan_out = FanOut(sum(shards.traffic), None, None, 0)
    traffic = list(shards.traffic)
    if view.events is not None and not view.events.isStreaming:
        fan_out, traffic = _measured(view.events, shards, view.json) or (fan_out, traffic)
    parts = [_replicated("router", shards.router)]
    if shards.home is not None:
        parts.append(_replicated("home", shards.home))
    held = sum(part.subscriptions or 0 for part in parts[1:])
    for at, ref in enumerate(shards.shards):
        parts.append(
            PlannedIndex(
                f"shard {at}",
                shards.subscriptions[at],
                shards.nbytes[at],
                traffic[at],
                tasks[at],
                ref.id,
                _place(ref),
            )
        )
    return Plan(
        sharded=True,
        built=True,
        reason=f"it was built in {len(shards.shards)} shards",
        subscriptions=held + sum(shards.subscriptions),
        nbytes=sum(part.nbytes or 0 for part in parts),
        n_shards=len(shards.shards),
        tasks=sum(tasks),
        parts=tuple(parts),
        fan_out=fan_out,
        attributes=shards.attributes,
        **view.columns(shards.attributes),
        mistyped=tuple(mistyped(attach(shards.router), view.schema, view.json)),
    )


def _replicated(name: str, ref: SnapshotRef) -> PlannedIndex:
    """A part that all tasks hold, and so may the driver."""
    index = attach(ref)
    return PlannedIndex(name, len(index), index.nbytes, 1.0, None, ref.id, _place(ref))


def _measured(
    events: DataFrame, shards: Shards, json: Sequence[str]
) -> tuple[FanOut, list[float]] | None:
    """How many shards the first events visit, and the share of them that visits each shard."""
    first = project(events.limit(ROWS), (), shards.attributes, json)
    routes = to_arrow(routed(first, shards, json))
    lists = routes["shards"].combine_chunks()
    n = len(lists)
    if n == 0:
        return None
    sizes = pc.list_value_length(lists).to_numpy()
    visits = np.bincount(lists.flatten().to_numpy(), minlength=len(shards.shards))
    p99 = int(np.percentile(sizes, 99, method="higher"))
    return FanOut(float(sizes.mean()), p99, int(sizes.max()), n), (visits / n).tolist()


def _place(ref: SnapshotRef) -> str:
    if ref.uri is None:
        return _DESTINATIONS[ARTIFACTS]
    return f"from {ref.uri.removesuffix(f'/{ref.id}')}"


def _shown(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _some(names: Sequence[str]) -> str:
    """Names in a line, the first of many."""
    more = f" and {len(names) - _SHOWN_NAMES:,} more" if len(names) > _SHOWN_NAMES else ""
    return (", ".join(names[:_SHOWN_NAMES]) or "none") + more


def _bytes(n: float) -> str:
    """A size for people."""
    unit = 0
    while n >= 1024 and unit < len(_UNITS) - 1:
        n, unit = n / 1024, unit + 1
    return f"{n:.1f} {_UNITS[unit]}" if unit else f"{n:.0f} B"
