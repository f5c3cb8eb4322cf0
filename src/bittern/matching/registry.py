"""Subscription indexes by name."""

from __future__ import annotations

from bittern.errors import OptionError
from bittern.matching.contract import SubscriptionIndex
from bittern.matching.pivot import Pivot
from bittern.matching.scan import Scan

STRATEGIES: dict[str, type[SubscriptionIndex]] = {each.name: each for each in (Pivot, Scan)}


def strategy(name: str) -> type[SubscriptionIndex]:
    """The subscription index of this name."""
    if name not in STRATEGIES:
        known = ", ".join(sorted(STRATEGIES))
        raise OptionError(f"no strategy is named {name!r}; there are {known}")
    return STRATEGIES[name]
