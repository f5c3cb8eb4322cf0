"""What larger catalogs and rates would need, derived from measured constants.

Every quantity is one line of arithmetic (``docs/scaling.md`` says why), so that a reader can put in
constants of another machine and workload::

    N subscriptions, R events/s
    S = ceil(N * bytes on disk / bytes of a shard)             1: whole, nothing is routed
    F = fan-out(S)                                             0 where S = 1
    t = base + F * visit + slope * N_effective                 core-seconds per event
    cores = R * t / utilisation
    memory of a host = min(S, cores of a host) * mapped bytes of a shard + workers * rest
    network = R * (F * event + matches * id)                   0 where S = 1

Nothing here reads a clock: constants come from a result of ``benchmarks.spark.run``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MILLION = 1_000_000
ID_BYTES = 8
#: Assumptions, which a reader may replace: hosts, and how busy they may be.
SHARD_BYTES = 4 << 30
HOST_CORES = 16
UTILISATION = 0.7
#: Of the simulation whose fan-out counts: the most skewed.
SKEW = 1.0


@dataclass(frozen=True)
class Constants:
    """What was measured, per subscription, event, visit and worker."""

    base_seconds: float  # core-seconds per event that do not depend on the subscriptions
    slope_seconds: float  # more for each subscription
    visit_seconds: float  # more for each shard that an event visits
    mapped_bytes: float  # that matching reads, per subscription
    disk_bytes: float  # of a snapshot, per subscription
    event_bytes: float  # of an event in Arrow
    matches: float  # per event and subscription
    worker_bytes: float  # of a Python worker, the index aside
    fan_out: tuple[tuple[int, float], ...]  # shards, shards that an event visits


@dataclass(frozen=True)
class Need:
    """What so many subscriptions and events per second would take."""

    subscriptions: int
    events_per_second: float
    shards: int
    fan_out: float
    matches_per_event: float
    core_seconds: float  # per event
    cores: int
    hosts: int
    host_bytes: float
    disk_bytes: float
    network_bytes: float  # per second, of all hosts together


def constants(result: Mapping[str, Any]) -> Constants:
    """Read the constants off a result."""
    parts = result["parts"]
    build, two = parts["scaling-build"], parts["scaling-2x1"]
    small, large = parts["stage"]["shop"]["subscriptions"], build["subscriptions"]
    cores = two["executors"] * two["cores"]
    times = {name: cores / each["events_per_second"] for name, each in two["rates"].items()}
    slope = max(0.0, (times["shop-10m"] - times["shop"]) / (large - small))
    visits = sum(build["sharded"]["traffic"])
    return Constants(
        base_seconds=times["shop"] - slope * small,
        slope_seconds=slope,
        visit_seconds=max(0.0, times["shop-10m, sharded"] - times["shop-10m"]) / visits,
        mapped_bytes=sum(build["whole"]["matching_bytes"]) / large,
        disk_bytes=sum(build["whole"]["disk_bytes"]) / large,
        event_bytes=parts["stage"]["shop"]["event_bytes"],
        matches=parts["stage"]["shop"]["matches_per_event"] / small,
        worker_bytes=_worker_bytes(parts["scaling-2x2"]),
        fan_out=tuple(
            (point["shards"], point["fan_out"])
            for point in parts["simulate"]["points"]
            if point["home"] and point["skew"] == SKEW
        ),
    )


def _worker_bytes(measured: Mapping[str, Any]) -> float:
    found = measured["memory"]["shop-10m"]
    return float(found["rest_bytes"] / max(1, found["workers"]))


def fan_out(points: tuple[tuple[int, float], ...], shards: int) -> float:
    """Shards that an event visits, between simulated points on a logarithmic scale.

    Beyond the last point it is that one's share of all shards; one shard is not routed to.
    """
    if shards <= 1:
        return 0.0
    known = sorted({1: 1.0, **dict(points)}.items())
    for (low, fewer), (high, more) in pairwise(known):
        if shards <= high:
            part = math.log(shards / low) / math.log(high / low)
            return float(fewer ** (1 - part) * more**part)
    most, visited = known[-1]
    return shards * visited / most


def need(known: Constants, subscriptions: int, events_per_second: float, *, alike: bool) -> Need:
    """Derive what it takes.

    ``alike``: further subscriptions are as likely to match an event as those that were measured,
    so that candidates and matches grow with them. Otherwise the vocabulary grows with the
    subscriptions, and an event has as many candidates and matches as among the first million.
    """
    counted = subscriptions if alike else min(subscriptions, MILLION)
    shards = max(1, math.ceil(subscriptions * known.disk_bytes / SHARD_BYTES))
    visits = fan_out(known.fan_out, shards)
    seconds = known.base_seconds + visits * known.visit_seconds + known.slope_seconds * counted
    cores = math.ceil(events_per_second * seconds / UTILISATION)
    hosts = max(1, math.ceil(cores / HOST_CORES))
    own = min(shards, HOST_CORES) * subscriptions / shards * known.mapped_bytes
    matches = known.matches * counted
    crossing = visits * known.event_bytes + matches * ID_BYTES if shards > 1 else 0.0
    return Need(
        subscriptions=subscriptions,
        events_per_second=events_per_second,
        shards=shards,
        fan_out=visits,
        matches_per_event=matches,
        core_seconds=seconds,
        cores=cores,
        hosts=hosts,
        host_bytes=own + HOST_CORES * known.worker_bytes,
        disk_bytes=subscriptions * known.disk_bytes,
        network_bytes=events_per_second * crossing,
    )
