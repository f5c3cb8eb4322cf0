"""Routing on skewed data, simulated: how many shards an event visits, and how evenly.

Only the data is made up. Cutting, regions, router, routes and salt are the ones of
``bittern.spark``, run in this process without Spark::

    skewed shop --> pivots --> cut into S shards (and home) --> router --> routes of events
                                                                 fan-out   shards per event
                                                                 visits    per shard, and per task

The catalog is ``shop`` with attributes and values that follow Zipf: the r-th most popular has a
weight of ``r ** -skew``, in subscriptions and in events. "Without home" is the same cut, told that
no attribute is frequent, which keeps the order of everything else.

Cost: some seconds for each skew; everything is seeded.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.draw import Draw, Floats, Ints
from benchmarks.generators import SHOP_EVENT, SHOP_VALUES, shop_events, shop_subscriptions
from benchmarks.spark.session import Setting, progress
from bittern.engine.matcher import Matcher
from bittern.engine.sharding.chunks import Chunk
from bittern.engine.sharding.cutting import cut
from bittern.engine.sharding.regions import CellRuns, build_router, presence
from bittern.engine.subscriptions import read_subscriptions
from bittern.language.shapes import Shapes
from bittern.spark.sharded.routing import routes, salts

if TYPE_CHECKING:
    from bittern.engine.sharding.chunks import Assigned
    from bittern.engine.sharding.cutting import Cut

SKEWS = (0.0, 0.5, 1.0)
SHARDS = (4, 16, 64, 256)
#: Attributes, subscriptions, and events to route: of a whole run, and of a small one.
FULL, SMALL = (2_000, 200_000, 20_000), (200, 5_000, 1_000)
SAMPLE = 5_000
POINTS = 1 << 16  # that the cut is made of, more or less
TASKS_PER_SHARD = 2  # what ``bittern.spark.match`` starts at least
SEED = 11


class SkewedDraw(Draw):
    """The draws of ``shop``, with popular attributes and values."""

    def __init__(self, skew: float, *key: int) -> None:
        super().__init__(*key)
        self.skew = skew

    def distinct(self, rows: int, count: int, of: int) -> Ints:
        """Different numbers in each row, small ones more often."""
        weights = self._weights(of)
        chosen = self.weighted(weights, rows * count).reshape(rows, count)
        while True:  # numbers that a row has twice are drawn again
            ordered = np.argsort(chosen, axis=1, kind="stable")
            ascending = np.take_along_axis(chosen, ordered, axis=1)
            again = np.zeros((rows, count), np.bool_)
            np.put_along_axis(again, ordered[:, 1:], ascending[:, 1:] == ascending[:, :-1], axis=1)
            if not again.any():
                return chosen
            chosen[again] = self.weighted(weights, int(again.sum()))

    def below(self, bound: int | Ints, n: int) -> Ints:
        """Values are skewed, and popular ones scattered; other numbers are uniform."""
        if not (np.isscalar(bound) and bound == SHOP_VALUES):
            return super().below(bound, n)
        return self.weighted(self._weights(SHOP_VALUES), n) * 7_919 % SHOP_VALUES

    def _weights(self, n: int) -> Floats:
        return np.asarray(np.arange(1.0, n + 1.0) ** -self.skew)


def measure(setting: Setting) -> dict[str, Any]:
    """Simulate every skew and number of shards, with and without home."""
    attributes, n_subscriptions, n_events = SMALL if setting.small else FULL
    points = []
    for skew in SKEWS:
        progress(f"simulating skew {skew:g}")
        world = World(skew, attributes, n_subscriptions, n_events)
        points += [
            world.route(n_shards, home=home) for n_shards in SHARDS for home in (True, False)
        ]
    return {
        "attributes": attributes,
        "subscriptions": n_subscriptions,
        "events": n_events,
        "attributes_per_event": SHOP_EVENT,
        "tasks_per_shard": TASKS_PER_SHARD,
        "points": points,
    }


class World:
    """A catalog with its pivots, and events to route."""

    def __init__(self, skew: float, attributes: int, subscriptions: int, events: int) -> None:
        self.skew = skew
        drawn = partial(SkewedDraw, skew, SEED)
        texts = shop_subscriptions(attributes, drawn(0), subscriptions).texts()
        table = pa.table({"id": np.arange(len(texts), dtype=np.int64), "expression": texts})
        self.sample = shop_events(attributes, drawn(1), SAMPLE)
        self.events = shop_events(attributes, drawn(2), events)
        shapes = Shapes()
        catalog = read_subscriptions(table, shapes, on_error="raise", progress=None)
        self.chunk = Chunk(catalog, shapes.templates, self.sample)
        self.points = self.chunk.points(max(1.0, subscriptions / POINTS))

    def route(self, n_shards: int, *, home: bool) -> dict[str, Any]:
        """Cut into so many shards, and send every event where it has to go."""
        # Nothing is frequent for a cut that hears of a thousandth of all events.
        share = 1.0 if home else 1e-3
        plan = cut(self.points, n_shards, lambda names: share * presence(names, self.sample))
        assigned = self.chunk.assign(plan)
        router = Matcher(build_router(plan.ruler, regions_of(plan, assigned), self.sample))
        expected = _visits(routes(router.match(self.sample))[1], n_shards) / SAMPLE
        rows, shards = routes(router.match(self.events))
        fan_out = np.bincount(rows, minlength=len(self.events))
        visits = _visits(shards, n_shards)
        salted = visits / salts(expected.tolist(), TASKS_PER_SHARD * n_shards)
        sizes = np.bincount(assigned.parts, minlength=n_shards + 1)
        return {
            "skew": self.skew,
            "shards": n_shards,
            "home": home,
            "fan_out": float(fan_out.mean()),
            "fan_out_p99": float(np.percentile(fan_out, 99)),
            "fan_out_most": int(fan_out.max()),
            "home_share": float(sizes[n_shards] / sizes.sum()),
            "largest_shard": float(sizes[:n_shards].max() / sizes[:n_shards].mean()),
            "busiest_shard": float(visits.max() / visits.mean()),
            "busiest_task": float(salted.max() / (visits.sum() / (TASKS_PER_SHARD * n_shards))),
        }


def regions_of(plan: Cut, assigned: Assigned) -> list[CellRuns]:
    """The regions of each shard; home has none."""
    owners = assigned.region_parts
    return [
        CellRuns(assigned.regions.firsts[owners == shard], assigned.regions.lasts[owners == shard])
        for shard in range(plan.n_shards)
    ]


def _visits(shards: Ints, n_shards: int) -> Ints:
    return np.bincount(shards, minlength=n_shards)
