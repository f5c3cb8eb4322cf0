"""Named, seeded, frozen workloads: subscriptions as SQL text, events as Arrow tables.

``get("shop")`` is a million subscriptions, ``get("shop", "small")`` the same shape in a fraction
of a second::

    workload = get("shop")
    workload.subscriptions()   id 0, "a17 = 4 AND a905 <= 33"; id 1, "a4 >= 12"; ...
    workload.events(10_000)    attributes {a17: 4, a211: 50, ...}; ...
    workload.sample()          other events, for the statistics of an index

The same name, scale and seed always give the same bytes: a test holds their hashes.

Cost: O(predicates); a second or two for a million subscriptions of ``shop``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from benchmarks.draw import Draw
from benchmarks.generators import (
    NESTED_ATTRIBUTES,
    NESTED_EVENT,
    SHOP_EVENT,
    Conjunctions,
    ads_events,
    ads_subscriptions,
    dense_subscriptions,
    equality_events,
    equality_json,
    equality_subscriptions,
    nested_subscriptions,
    present_events,
    shop_events,
    shop_subscriptions,
    strings_events,
    strings_subscriptions,
    wide_subscriptions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Scale: TypeAlias = Literal["full", "small"]

SAMPLE_SEED = 10_001  # the statistics' events are never the events that are timed


@dataclass(frozen=True)
class Workload:
    """A frozen set of subscriptions and an endless, seeded supply of events."""

    name: str
    scale: Scale
    n_subscriptions: int
    seed: int
    notes: str
    expressions: Callable[[Draw, int], pa.Array | Conjunctions]
    make_events: Callable[[Draw, int], pa.Table]
    make_json: Callable[[Draw, int], pa.Array] | None = None

    def subscriptions(self) -> pa.Table:
        """``id`` int64 and ``expression`` string. O(predicates)."""
        return _subscription_table(self.expressions(Draw(self.seed, 0), self.n_subscriptions), 0)

    def conjunctions(self) -> Conjunctions | None:
        """Give the same subscriptions as codes, where every one is a plain conjunction."""
        made = self.expressions(Draw(self.seed, 0), self.n_subscriptions)
        return made if isinstance(made, Conjunctions) else None

    def changes(self, n: int, seed: int = 1) -> pa.Table:
        """``n`` further subscriptions of the same kind, with ids after the last one."""
        made = self.expressions(Draw(self.seed, 1, seed), n)
        return _subscription_table(made, self.n_subscriptions)

    def events(self, n: int, seed: int = 1) -> pa.Table:
        """``n`` events: one column per attribute, or one map column ``attributes``."""
        return self.make_events(Draw(self.seed, 2, seed), n)

    def events_json(self, n: int, seed: int = 1) -> pa.Array | None:
        """Give the same events as JSON text, for the workload that is also measured so."""
        return self.make_json(Draw(self.seed, 2, seed), n) if self.make_json else None

    def sample(self, n: int = 10_000) -> pa.Table:
        """Events for the index's statistics, drawn with a seed of their own."""
        return self.events(n, SAMPLE_SEED)


def _subscription_table(made: pa.Array | Conjunctions, first_id: int) -> pa.Table:
    texts = made.texts() if isinstance(made, Conjunctions) else made
    ids = np.arange(first_id, first_id + len(texts), dtype=np.int64)
    return pa.table({"id": ids, "expression": texts})


def _shop(name: str, size: int, attributes: int, seed: int) -> dict[str, Any]:
    return {
        "name": name,
        "n_subscriptions": size,
        "seed": seed,
        "notes": f"{attributes:,} attributes, 1-4 predicates (40 % =, 30 % <=, 30 % >=), values"
        f" 1-50; {SHOP_EVENT} attributes per event, as a map",
        "expressions": partial(shop_subscriptions, attributes),
        "make_events": partial(shop_events, attributes),
    }


def _dense(name: str, size: int, seed: int, shape: tuple[int, int, float]) -> dict[str, Any]:
    attributes, present, equal = shape
    return {
        "name": name,
        "n_subscriptions": size,
        "seed": seed,
        "notes": f"{attributes} attributes of which {present} are present, 5 predicates:"
        f" {equal:.0%} = over 1,000 values, the others ranges 10 % wide",
        "expressions": partial(dense_subscriptions, attributes, equal),
        "make_events": partial(present_events, attributes, present),
    }


def _wide(name: str, size: int, seed: int) -> dict[str, Any]:
    return {
        "name": name,
        "n_subscriptions": size,
        "seed": seed,
        "notes": "20 attributes, all present, 10 predicates: ranges 40 % wide over 1,000 values",
        "expressions": partial(wide_subscriptions, 20, 400),
        "make_events": partial(present_events, 20, 20),
    }


def _recipe(name: str, *, small: bool) -> dict[str, Any]:
    """Parameters of one workload; sizes are the only thing that ``small`` changes."""
    match name:
        case "shop":
            return _shop(name, *((10_000, 400) if small else (1_000_000, 20_000)), 1)
        case "shop-10m":
            return _shop(name, *((20_000, 400) if small else (10_000_000, 20_000)), 2)
        case "churn":
            return _shop(name, *((10_000, 400) if small else (1_000_000, 20_000)), 3)
        case "dense":
            return _dense(name, 2_000 if small else 100_000, 4, (20, 20, 0.5))
        case "optional":
            return _dense(name, 2_000 if small else 100_000, 5, (100, 30, 0.5))
        case "ranges":
            return _dense(name, 2_000 if small else 100_000, 6, (20, 20, 0.0))
        case "wide":
            return _wide(name, 2_000 if small else 100_000, 11)
        case "wide-1m":
            return _wide(name, 4_000 if small else 1_000_000, 12)
        case "equality":
            return {
                "name": name,
                "n_subscriptions": 20_000 if small else 1_000_000,
                "seed": 7,
                "notes": "street (2,000 values) and block (4,000), both =, on strings; 9 columns"
                " per event, or about 830 bytes of JSON",
                "expressions": equality_subscriptions,
                "make_events": equality_events,
                "make_json": equality_json,
            }
        case "ads":
            return {
                "name": name,
                "n_subscriptions": 5_000 if small else 3_000_000,
                "seed": 8,
                "notes": "122 attributes, 1-56 predicates (mean 8; 60 % =, 36 % ranges, 4 % one"
                " sided), 20 attributes per event as a map; attributes and values follow Zipf",
                "expressions": ads_subscriptions,
                "make_events": ads_events,
            }
        case "strings":
            return {
                "name": name,
                "n_subscriptions": 1_000 if small else 100_000,
                "seed": 9,
                "notes": "a quarter each of prefix, suffix, contains and regex on two attributes;"
                " values of 14-60 letters",
                "expressions": strings_subscriptions,
                "make_events": strings_events,
            }
        case "nested":
            return {
                "name": name,
                "n_subscriptions": 1_000 if small else 200_000,
                "seed": 10,
                "notes": "AND/OR/NOT trees of depth 2-6 over 50 attributes of which 30 are present;"
                " =, BETWEEN and IN",
                "expressions": nested_subscriptions,
                "make_events": partial(present_events, NESTED_ATTRIBUTES, NESTED_EVENT),
            }
    raise KeyError(name)


NAMES = (
    "shop",
    "shop-10m",
    "dense",
    "optional",
    "ranges",
    "wide",
    "wide-1m",
    "equality",
    "ads",
    "strings",
    "nested",
    "churn",
)


def get(name: str, scale: Scale = "full") -> Workload:
    """Return the workload of that name. O(1): nothing is generated yet."""
    return Workload(scale=scale, **_recipe(name, small=scale == "small"))
