"""Subscription indexes by name."""

from __future__ import annotations

from bittern.errors import OptionError
from bittern.matching.betree import BETree
from bittern.matching.contract import SubscriptionIndex
from bittern.matching.counting import Counting
from bittern.matching.kindex import KIndex
from bittern.matching.opindex import OpIndex, OpIndexBS
from bittern.matching.pivot import Pivot
from bittern.matching.scan import Scan

STRATEGIES: dict[str, type[SubscriptionIndex]] = {
    each.name: each for each in (BETree, Counting, KIndex, OpIndex, OpIndexBS, Pivot, Scan)
}


def strategy(name: str) -> type[SubscriptionIndex]:
    """The subscription index of this name."""
    if not isinstance(name, str):
        raise OptionError(f"a strategy is chosen by its name, not by {name!r}")
    if name not in STRATEGIES:
        known = ", ".join(sorted(STRATEGIES))
        raise OptionError(f"no strategy is named {name!r}; there are {known}")
    return STRATEGIES[name]
