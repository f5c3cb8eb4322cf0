"""Which phase goes first, constants or joins: the paper's estimate, from counts.

With N subscriptions, D documents, k attributes of an event that constant predicates speak of and j
distinct quantified predicates, evaluating takes

    joins first        j log D + k' log N            k' <= k attributes are left after the joins
    constants first    k log N + h + j' log D        j' <= j quantified predicates are left

The paper has no h: how many guards hold for an event, each of which has to be looked at to tell j'.
Both are what events have needed so far, where that is known, and k' is taken to be k. Joins first
pays where few distinct predicates serve many subscriptions; constants first where constants leave
few of many predicates to look up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bittern.options import one_of

AUTO, JOINS, CONSTANTS = "auto", "joins first", "constants first"


class PhaseEstimate(NamedTuple):
    """The counts, and which phase goes first."""

    subscriptions: int
    documents: int
    entries: int  # j
    needed: float | None  # j', if it is known
    held: float  # h
    attributes: float  # k
    wanted: str = AUTO

    @property
    def joins_first(self) -> float:
        """Evaluations for an event if joins go first."""
        return self.entries * _log(self.documents) + self.attributes * _log(self.subscriptions)

    @property
    def constants_first(self) -> float:
        """Evaluations for an event if constants go first; none but theirs while j' is not known."""
        needed = 0.0 if self.needed is None else self.needed
        guards = self.attributes * _log(self.subscriptions) + self.held
        return guards + needed * _log(self.documents)

    @property
    def choice(self) -> str:
        """Which goes first."""
        if self.wanted != AUTO:
            return self.wanted
        return JOINS if self.joins_first <= self.constants_first else CONSTANTS

    def __str__(self) -> str:
        why = "as told" if self.wanted != AUTO else "by the estimate"
        needed = "not known yet" if self.needed is None else f"{self.needed:,.1f}"
        return (
            f"{self.choice}, {why}: joins first {self.joins_first:,.0f}, constants first "
            f"{self.constants_first:,.0f} evaluations for an event (N {self.subscriptions:,}, "
            f"D {self.documents:,}, j {self.entries:,}, j' {needed}, h {self.held:,.1f}, "
            f"k {self.attributes:,.1f})"
        )


def check_phases(wanted: str) -> str:
    """Return the name of a choice; ``OptionError`` if it is not one of the three."""
    return one_of("phases", wanted, (AUTO, JOINS, CONSTANTS))


def _log(count: int) -> float:
    return math.log2(max(2, count))
