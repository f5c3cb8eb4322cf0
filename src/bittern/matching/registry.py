"""Subscription indexes by name. A strategy's module is imported when it is first used.

``pivot`` and ``bits`` are Bittern's own, ``scan`` the definition of truth. The papers' are in
``literature/``, which is not imported from here: a process that never names one of them never loads
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bittern.errors import OptionError, brief

if TYPE_CHECKING:
    from bittern.matching.contract import SubscriptionIndex

STRATEGIES = {
    "pivot": "matching.pivot.index.Pivot",
    "bits": "matching.bits.index.Bits",
    "pivot-bits": "matching.pivot.with_bits.PivotBits",
    "scan": "matching.scan.Scan",
    "betree": "literature.betree.index.BETree",
    "counting": "literature.counting.index.Counting",
    "hem": "literature.rectangles.hem.Hem",
    "kindex": "literature.kindex.index.KIndex",
    "opindex": "literature.opindex.index.OpIndex",
    "opindex-bs": "literature.opindex.index.OpIndexBS",
    "rein": "literature.rectangles.rein.Rein",
    "tama": "literature.rectangles.tama.Tama",
}
"""Module and class of every strategy under its name; a new one is added here and nowhere else."""


def strategy(name: str) -> type[SubscriptionIndex]:
    """The subscription index of this name."""
    if not isinstance(name, str):
        raise OptionError(f"strategy must be the name of a strategy, not {brief(name)}")
    if name not in STRATEGIES:
        known = ", ".join(sorted(STRATEGIES))
        raise OptionError(f"no strategy is named {name!r}: choose from {known}")
    module, _, cls = STRATEGIES[name].rpartition(".")
    found: type[SubscriptionIndex] = getattr(import_module(f"bittern.{module}"), cls)
    return found


def given_parameters(
    name: str, parameters: Mapping[str, Any] | None, **short: Any
) -> dict[str, Any]:
    """The parameters of a strategy, with those that are given by themselves (None: not given)."""
    if not isinstance(parameters, Mapping | None):
        raise OptionError(
            f"parameters must be a mapping from name to value, as in {{'stabbing': 'cei'}}, "
            f"not {brief(parameters)}"
        )
    alone = {each: value for each, value in short.items() if value is not None}
    for each in alone:
        if parameters is not None and each in parameters:
            raise OptionError(
                f"{each} is given twice, as an argument and in parameters: give it once"
            )
    given = {**(parameters or {}), **alone}
    strategy(name).check_parameters(given)
    return given
