"""What changes of rows did to matches: which subscriptions they entered, left and stayed in.

A row changes from one event to another, and each of them matches some subscriptions::

    before          after           matched before  matches now    entered  left  stayed
    {"price": 5}    {"price": 50}   cheap, any      any            -        cheap any
    -               {"price": 5}    -               cheap, any     cheap, any  -  -        an insert
    {"price": 5}    -               cheap, any      -              -  cheap, any  -        a delete

Both sides are rows of one batch, so that they are matched together. Cost: O(matches), and four
bytes for each subscription.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from bittern.arrays import Int64s, starts_of
from bittern.jit import i4r, i4w, i8r, i8w, kernel, void
from bittern.model.matches import Matches

ENTER, LEAVE, STAY = "enter", "leave", "stay"
#: What a change is to a subscription.
KINDS = (ENTER, LEAVE, STAY)
_SIDES = ("before", "after")

Reasons = list[tuple[int, str]]


@kernel(void, i8r, i8r, i4r, i4w, i8w, i4w, i4w, i4w)
def _compare(
    before: Any,
    after: Any,
    subscriptions: Any,
    stamps: Any,
    counts: Any,
    entered: Any,
    left: Any,
    stayed: Any,
) -> None:
    """Tell the matches of both sides of each change apart; a side has where they start and end.

    ``stamps`` has room for each subscription, and is 0. The counts of a change are those that it
    entered, left and stayed in.
    """
    n_entered = n_left = n_stayed = 0
    for change in range(len(before) // 2):
        matched, matches = np.int32(2 * change + 1), np.int32(2 * change + 2)
        for i in range(before[2 * change], before[2 * change + 1]):
            stamps[subscriptions[i]] = matched
        for i in range(after[2 * change], after[2 * change + 1]):
            each = subscriptions[i]
            if stamps[each] == matched:
                stayed[n_stayed] = each
                n_stayed += 1
                counts[3 * change + 2] += 1
            else:
                entered[n_entered] = each
                n_entered += 1
                counts[3 * change] += 1
            stamps[each] = matches
        for i in range(before[2 * change], before[2 * change + 1]):
            each = subscriptions[i]
            if stamps[each] == matched:
                left[n_left] = each
                n_left += 1
                counts[3 * change + 1] += 1


@dataclass(frozen=True)
class Transitions:
    """What each of some changes did to matches.

    ``rejects`` lists the changes of which a side could not be read: they are in none of the three.
    ``mistyped`` lists those with a value of a kind that no subscription compares its attribute
    with. Both are (change, reason). ``candidates`` is the number of expressions that were evaluated
    for both sides of each.
    """

    entered: Matches
    left: Matches
    stayed: Matches
    rejects: Reasons = field(default_factory=list)
    mistyped: Reasons = field(default_factory=list)
    candidates: Int64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def of(
        cls, matches: Matches, before: Int64s, after: Int64s, wrong: Sequence[Any] = ()
    ) -> Transitions:
        """From the matches of both sides: the row of each change's ``before`` and ``after``.

        -1 is no row: the side is missing. ``wrong`` are (change, reason) of changes that are to be
        rejected whatever their sides are. O(rows + matches).
        """
        n = len(before)
        owners = np.full(len(matches), -1, dtype=np.int64)
        candidates = np.zeros(n, dtype=np.int64)
        for side, rows in enumerate((before, after)):
            there = np.flatnonzero(rows >= 0)
            owners[rows[there]] = 2 * there + side
            candidates[there] += matches.candidates[rows[there]]
        rejects = sorted(dict([*reversed(_told(matches.rejects, owners)), *wrong]).items())
        refused = np.zeros(n, dtype=np.bool_)
        refused[[change for change, _ in rejects]] = True
        sides = [_spans(matches.offsets, np.where(refused, -1, rows)) for rows in (before, after)]
        most = [int((ends - starts).sum()) for starts, ends in sides]
        found = [np.empty(size, dtype=np.int32) for size in (most[1], most[0], min(most))]
        counts = np.zeros((n, 3), dtype=np.int64)
        _compare(
            *(np.column_stack(side).ravel() for side in sides),
            matches.subscriptions,
            np.zeros(len(matches.all_ids), dtype=np.int32),
            counts.reshape(-1),
            *found,
        )
        kinds = []
        for own, array in zip(counts.T, found, strict=True):
            offsets = starts_of(own)
            kinds.append(Matches(offsets, array[: offsets[-1]], matches.all_ids))
        mistyped = sorted(dict(reversed(_told(matches.mistyped, owners))).items())
        entered, left, stayed = kinds
        return cls(entered, left, stayed, rejects, mistyped, candidates)

    def __len__(self) -> int:
        return len(self.entered)

    def of_kind(self, kind: str) -> Matches:
        """The matches that the changes ``enter``, ``leave`` or ``stay`` in."""
        return {ENTER: self.entered, LEAVE: self.left, STAY: self.stayed}[kind]

    def to_pylist(self) -> list[dict[str, list[str | int]]]:
        """For every change the ids by kind. O(matches), and a sort."""
        lists = [self.of_kind(kind).to_pylist() for kind in KINDS]
        return [dict(zip(KINDS, each, strict=True)) for each in zip(*lists, strict=True)]

    def to_arrow(self, *, flat: bool = False) -> pa.Table:
        """A table (event, enter, leave, stay), or ``flat`` (event, subscription, change)."""
        tables = {kind: self.of_kind(kind).to_arrow(flat=flat) for kind in KINDS}
        if not flat:
            columns = {kind: table["subscriptions"] for kind, table in tables.items()}
            return pa.table({"event": tables[ENTER]["event"], **columns})
        rows = [
            table.append_column("change", pa.repeat(pa.scalar(kind), len(table)))
            for kind, table in tables.items()
        ]
        return pa.concat_tables(rows).sort_by("event")


def _spans(offsets: Int64s, rows: Int64s) -> tuple[Int64s, Int64s]:
    """Where the matches of each row start and end; -1 is a row without any."""
    there = rows >= 0
    return np.where(there, offsets[rows], 0), np.where(there, offsets[rows + 1], 0)


def _told(reasons: Reasons, owners: Int64s) -> Reasons:
    """Reasons of rows as those of the changes that they belong to, each with its side."""
    told = [(int(owners[row]), reason) for row, reason in reasons]
    return [(owner >> 1, f"{_SIDES[owner & 1]}: {why}") for owner, why in told if owner >= 0]
