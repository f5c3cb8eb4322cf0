"""One pass over a batch in order of arrival: ask for each event, then add it to the documents.

Lookups are filed under one of the event attributes that they cannot do without, so those of
attributes that an event lacks are never touched; or the caller names the entries that each event
needs, and only those are asked::

    attribute  isbn -> lookups 0, 3     price -> lookup 1     (none needed) -> lookup 2
    event      {isbn, shop}             asks 0, 3 and 2

    entry 0 (EXISTS)   lookup 0           found: holds
    entry 1 (FORALL)   lookups 2, 3       none found: holds

An entry with a term that is left to document sets (``history/sets.py``) is *pending* unless its
lookups have decided it. What holds comes out as (starts, entries), pending entries likewise.

Cost for an event: O(log steps) for each lookup asked and each summary that takes the document, and
a look at each FORALL and each entry with sets, which may hold where nothing is found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.history.groups import GROUPS_TYPE, SPECS, Groups, Specs, comparable, renew
from bittern.history.intake import INTAKE, Intake, is_taken
from bittern.history.lookups import ENTRY, LOOKUPS, NEEDS, Lookups, is_found
from bittern.history.rows import Rows
from bittern.jit import frozen, i4w, i8, i8r, i8r2, i8w, kernel, u1r, u1r2
from bittern.model.events.typed import STRING, Typed

#: Why a pass stopped.
_DONE, _NO_ROOM, _NO_OUTPUT = range(3)
#: In ``progress``: the next event, whether it has been asked, its number, entries that hold, that
#: are pending, and lookups made.
_NEXT, _ASKED, _NUMBER, _HOLDING, _PENDING, _LOOKUPS = range(6)
_FIRST_OUTPUT = 1 << 12


def live_from(first: int, keep: int | None, number: int) -> int:
    """The oldest document that counts for document ``number``, if ``keep`` before it do."""
    return first if keep is None else max(first, number - keep)


class Answers(NamedTuple):
    """Entries that hold and entries that are pending, by event; and how many lookups it took."""

    holding: Rows
    pending: Rows
    lookups: int


@kernel(
    i8,
    *(SPECS, GROUPS_TYPE, LOOKUPS, INTAKE),
    *(u1r2, i8r2, i8r2, u1r, i8r, i8r, u1r),
    *(i8r, i8r, u1r, u1r, u1r),
    *(i8, i8, i8, i8r, i8r),
    *(i8w, i8w, i8w, i4w, i8w, i4w, i8w),
)
def _run(
    specs: Any,
    state: Any,
    lookups: Any,
    intake: Any,
    kinds: Any,
    words: Any,
    ties: Any,
    fixed_kinds: Any,
    fixed_words: Any,
    fixed_ties: Any,
    heap: Any,
    true_starts: Any,
    true_conditions: Any,
    asks: Any,
    joins: Any,
    active: Any,
    first: Any,
    keep: Any,
    by_need: Any,
    need_starts: Any,
    needs: Any,
    stamps: Any,
    found: Any,
    out_starts: Any,
    out: Any,
    pending_starts: Any,
    pending: Any,
    progress: Any,
) -> Any:
    """Go on from ``progress`` until the batch is done or an array is full; says which."""
    question, axis, axis_of, value_rows, key_starts, keys, listed_starts, listed = specs
    slots, groups, parts, steps, own_heap, used, key = state
    table, lists, entry_starts, negated, has_sets, filed_starts, filed, unfiled, open_ = lookups
    taken_starts, taken, always_taken, counters, condition_starts, conditions = intake
    n_rows, n_events = kinds.shape
    for event in range(progress[_NEXT], n_events):
        progress[_NEXT] = event
        stamp, number = event + 1, progress[_NUMBER]
        low_true, high_true = true_starts[event], true_starts[event + 1]
        for i in range(low_true, high_true):
            stamps[true_conditions[i]] = stamp
        live = max(first, number - keep) if keep >= 0 else first
        if asks[event] and not progress[_ASKED]:
            n_asked, n_lists = np.int64(len(negated)), np.int64(n_rows + 1)
            if by_need:
                n_asked = n_lists = need_starts[event + 1] - need_starts[event]
            if (
                len(out) - progress[_HOLDING] < n_asked
                or len(pending) - progress[_PENDING] < n_asked
            ):
                return _NO_OUTPUT
            for which in range(n_lists):
                if by_need:
                    entry = needs[need_starts[event] + which]
                    low, high = entry_starts[entry], entry_starts[entry + 1]
                elif which == n_rows:
                    low, high = np.int64(0), np.int64(len(unfiled))
                elif comparable(kinds[which, event]):
                    low, high = filed_starts[which], filed_starts[which + 1]
                else:
                    continue
                for place in range(low, high):
                    lookup = np.int64(place)
                    if not by_need:
                        lookup = unfiled[place] if which == n_rows else filed[place]
                    entry = table[lookup, ENTRY]
                    if found[entry] == stamp or not active[entry]:
                        continue
                    row = table[lookup, NEEDS]
                    if row >= 0 and not comparable(kinds[row, event]):
                        continue
                    progress[_LOOKUPS] += 1
                    if is_found(
                        table,
                        lists,
                        lookup,
                        question,
                        axis,
                        axis_of,
                        key_starts,
                        keys,
                        listed_starts,
                        key,
                        slots,
                        groups,
                        parts,
                        steps,
                        own_heap,
                        event,
                        number,
                        live,
                        kinds,
                        words,
                        ties,
                        fixed_kinds,
                        fixed_words,
                        fixed_ties,
                        heap,
                        stamps,
                        stamp,
                    ):
                        found[entry] = stamp
                        if not negated[entry]:
                            out[progress[_HOLDING]] = entry
                            progress[_HOLDING] += 1
            n_open = n_lists if by_need else np.int64(len(open_))
            for which in range(n_open):
                entry = needs[need_starts[event] + which] if by_need else open_[which]
                if found[entry] == stamp or not active[entry]:
                    continue
                if has_sets[entry]:
                    pending[progress[_PENDING]] = entry
                    progress[_PENDING] += 1
                elif negated[entry]:
                    out[progress[_HOLDING]] = entry
                    progress[_HOLDING] += 1
            progress[_ASKED] = 1
        if joins[event]:
            # By each condition that is TRUE, without any, counters made, counters raised.
            n_true = high_true - low_true
            for which in range(n_true + 3):
                low, high = np.int64(0), np.int64(len(counters))
                if which < n_true:
                    condition = true_conditions[low_true + which]
                    low, high = taken_starts[condition], taken_starts[condition + 1]
                elif which == n_true:
                    high = np.int64(len(always_taken))
                for place in range(low, high):
                    summary = counters[place] if which > n_true else np.int64(0)
                    if which < n_true:
                        summary = taken[place]
                    elif which == n_true:
                        summary = always_taken[place]
                    if not is_taken(
                        summary,
                        which == n_true + 2,
                        question,
                        axis,
                        axis_of,
                        value_rows,
                        key_starts,
                        keys,
                        listed_starts,
                        listed,
                        condition_starts,
                        conditions,
                        key,
                        slots,
                        groups,
                        parts,
                        steps,
                        own_heap,
                        used,
                        event,
                        number,
                        live,
                        kinds,
                        words,
                        ties,
                        fixed_kinds,
                        fixed_words,
                        fixed_ties,
                        heap,
                        stamps,
                        stamp,
                    ):
                        return _NO_ROOM
            progress[_NUMBER] += 1
        out_starts[event + 1] = progress[_HOLDING]
        pending_starts[event + 1] = progress[_PENDING]
        progress[_ASKED] = 0
    progress[_NEXT] = n_events
    return _DONE


class Pass(NamedTuple):
    """What a pass is made with: all but the batch and the state."""

    specs: Specs
    lookups: Lookups
    intake: Intake
    fixed: Typed  # the constants of lookups: one row of them
    n_conditions: int

    def run(
        self,
        groups: Groups,
        typed: Typed,
        true: Rows,
        *,
        asks: npt.NDArray[np.bool_],
        joins: npt.NDArray[np.bool_],
        active: npt.NDArray[np.bool_],
        number: int,
        first: int,
        keep: int | None,
        needed: Rows | None,
    ) -> tuple[Answers, Groups]:
        """Ask for some events of a batch and let some become documents, from ``number`` on.

        ``true`` has the conditions that are TRUE, ``needed`` the entries to ask (None: all that
        are ``active``), ``keep`` how many documents stay. Gives the groups, which may be others.
        """
        n = typed.kinds.shape[1]
        n_entries = len(self.lookups.negated)
        out = [np.empty(max(_FIRST_OUTPUT, n_entries), dtype=np.int32) for _ in range(2)]
        starts = [np.zeros(n + 1, dtype=np.int64) for _ in range(2)]
        progress = np.array([0, 0, number, 0, 0, 0], dtype=np.int64)
        stamps = np.zeros(self.n_conditions, dtype=np.int64)
        found = np.zeros(n_entries, dtype=np.int64)
        none = np.zeros(0, dtype=np.int64)
        stopped_at, spare = -1, 1024
        fixed_ties = self.fixed.ties[0]
        fixed_ties = np.where(
            self.fixed.kinds[0] == STRING, fixed_ties + len(typed.heap), fixed_ties
        )
        heap = np.concatenate((typed.heap, self.fixed.heap))  # constants' strings come last
        while True:
            why = _run(
                frozen(self.specs),
                groups,
                frozen(self.lookups),
                frozen(self.intake),
                *(typed.kinds, typed.words, typed.ties),
                *(self.fixed.kinds[0], self.fixed.words[0], fixed_ties, heap),
                *(true.starts, true.numbers),
                *(asks.view(np.uint8), joins.view(np.uint8), active.view(np.uint8)),
                *(first, -1 if keep is None else keep, needed is not None),
                *((none, none) if needed is None else needed),
                *(stamps, found, starts[0], out[0], starts[1], out[1], progress),
            )
            if why == _DONE:
                break
            if why == _NO_OUTPUT:
                out = [np.concatenate((each, np.empty_like(each))) for each in out]
                continue
            spare = 2 * spare if stopped_at == progress[_NEXT] else spare
            stopped_at = int(progress[_NEXT])
            live = live_from(first, keep, int(progress[_NUMBER]))
            groups = renew(frozen(self.specs), groups, live, spare)
        holding, pending = (
            Rows(own, numbers[: int(own[-1])]) for own, numbers in zip(starts, out, strict=True)
        )
        return Answers(holding, pending, int(progress[_LOOKUPS])), groups
