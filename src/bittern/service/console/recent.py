"""The last events of a tenant's journal: samples, attributes, what matches none or all of them.

The journal is read in a thread, and what was read is kept for a moment: pages ask again and again
while somebody types.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from bittern.model.events.mappings import path_part

if TYPE_CHECKING:
    from bittern.service.http.tenants import Tenant

#: Events that a draft is judged by while it is written.
SAMPLE = 1_000
#: Events by which it is told which subscriptions never match.
JUDGED = 10_000
_SECONDS = 2.0
_SHOWN = 200
_DEPTH = 8


class _Known(NamedTuple):
    when: float
    asked: int
    texts: list[str]


_known: WeakKeyDictionary[Tenant, _Known] = WeakKeyDictionary()


def last_events(tenant: Tenant, count: int = SAMPLE) -> list[str]:
    """The last events as JSON texts, oldest first."""
    known = _known.get(tenant)
    if known is None or known.asked < count or time.monotonic() - known.when > _SECONDS:
        last = tenant.journal.span().last
        texts = [each.event for each in tenant.journal.events(max(0, last - count), count)]
        known = _known[tenant] = _Known(time.monotonic(), count, texts)
    return known.texts[-count:]


def attributes(tenant: Tenant, start: str, most: int) -> list[str]:
    """Names of attributes that begin with this or have it inside: of events and subscriptions.

    Those of events come first, the most frequent of them at the top.
    """
    found: Counter[str] = Counter()
    for text in last_events(tenant)[-_SHOWN:]:
        # Python refuses numbers of more than 4,300 digits, and names are all that is asked for.
        _count_names(json.loads(text, parse_int=str), "", _DEPTH, found)
    known = dict.fromkeys(name for name, _ in found.most_common())
    for segment in tenant.live.seal().segments:
        names = segment.index.rank.attribute_names()
        known |= dict.fromkeys(name for name in names if name.isprintable())
    wanted = start.casefold()
    first = [name for name in known if name.casefold().startswith(wanted)]
    inside = [name for name in known if wanted in name.casefold()]
    return list(dict.fromkeys(first + inside))[:most]


def _count_names(event: Any, before: str, depth: int, found: Counter[str]) -> None:
    if not isinstance(event, Mapping):
        return
    for key, value in event.items():
        name = before + path_part(key)
        found[name] += 1
        if depth:
            _count_names(value, f"{name}.", depth - 1, found)


class Extremes(NamedTuple):
    """Over so many events: subscriptions that never match, and those that always do."""

    events: int
    subscriptions: int
    n_never: int
    n_always: int
    never: list[str]
    always: list[str]


def extremes(tenant: Tenant, most: int) -> Extremes:
    """Match the last events with the present subscriptions, and see which match none or all."""
    texts = last_events(tenant, JUDGED)
    live = tenant.live
    if not texts:
        return Extremes(0, len(live), 0, 0, [], [])
    found = live.match(texts, remember=False)
    counts = np.bincount(found.subscriptions, minlength=len(found.all_ids))
    never, always = (
        # One that was removed is still among the ids, and matches nothing.
        [str(id_) for id_ in found.all_ids.take_arrow(which).to_pylist() if id_ in live]
        for which in (np.flatnonzero(counts == n).astype(np.int32) for n in (0, len(texts)))
    )
    return Extremes(len(texts), len(live), len(never), len(always), never[:most], always[:most])
