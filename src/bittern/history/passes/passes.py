"""One pass over a batch in order of arrival: ask for each event, then add it to the documents.

Lookups are filed under one of the event attributes that they cannot do without, so those of
attributes that an event lacks are never touched; or the caller names the entries that each event
needs, and only those are asked::

    attribute  isbn -> lookups 0, 3     price -> lookup 1     (none needed) -> lookup 2
    event      {isbn, shop}             asks 0, 3 and 2

    entry 0 (EXISTS)   lookup 0           found: holds
    entry 1 (FORALL)   lookups 2, 3       none found: holds

An entry with an alternative that is left to document sets (``history/sets/sets.py``) is *pending*
unless its lookups have decided it. What holds comes out as (starts, entries), pending entries
likewise.

Cost for an event: O(log steps) for each lookup asked and each summary that takes the document, and
a look at each FORALL and each entry with sets, which may hold where nothing is found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.history.passes.groups import (
    GROUPS_TYPE,
    OPERANDS,
    SPECS,
    Groups,
    Operands,
    Specs,
    comparable,
    renew,
)
from bittern.history.passes.intake import INTAKE, Intake, is_taken
from bittern.history.passes.lookups import ENTRY, LOOKUPS, NEEDS, Lookups, Moment, is_found
from bittern.history.rows import Rows
from bittern.jit import frozen, i4w, i8, i8r, i8w, inline, kernel, tuple_type, u1r
from bittern.model.events.typed.typed import STRING, Typed

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


class Errand(NamedTuple):
    """What is to be done with each event of a batch."""

    true_starts: npt.NDArray[np.int64]
    true: npt.NDArray[np.int64]  # the conditions that are TRUE
    asks: npt.NDArray[np.uint8]
    joins: npt.NDArray[np.uint8]  # it becomes a document
    active: npt.NDArray[np.uint8]  # by entry
    first: int  # the oldest document
    keep: int  # how many documents stay, or -1
    by_need: int  # are only the entries asked that follow?
    need_starts: npt.NDArray[np.int64]
    needs: npt.NDArray[np.int64]


class PassOutput(NamedTuple):
    """What comes of it, and what a pass notes meanwhile."""

    starts: npt.NDArray[np.int64]
    holding: npt.NDArray[np.int32]
    pending_starts: npt.NDArray[np.int64]
    pending: npt.NDArray[np.int32]
    stamps: npt.NDArray[np.int64]  # by condition: of the event that it was last TRUE for
    found: npt.NDArray[np.int64]  # by entry: of the event that it was last found for
    progress: npt.NDArray[np.int64]


_ERRAND = tuple_type(Errand, i8r, i8r, u1r, u1r, u1r, i8, i8, i8, i8r, i8r)
_OUTPUT = tuple_type(PassOutput, i8w, i4w, i8w, i4w, i8w, i8w, i8w)


@kernel(i8, SPECS, GROUPS_TYPE, LOOKUPS, INTAKE, OPERANDS, _ERRAND, _OUTPUT)
def _run(
    specs: Any, state: Any, lookups: Any, intake: Any, operands: Any, errand: Any, output: Any
) -> Any:
    """Go on from ``progress`` until the batch is done or an array is full; says which."""
    return _go_on(specs, state, lookups, intake, operands, errand, output)


@inline
def _go_on(
    specs: Any, state: Any, lookups: Any, intake: Any, operands: Any, errand: Any, output: Any
) -> Any:
    progress = output.progress
    n_events = operands.kinds.shape[1]
    for event in range(progress[_NEXT], n_events):
        progress[_NEXT] = event
        number, live = progress[_NUMBER], errand.first
        if errand.keep >= 0:
            live = max(live, number - errand.keep)
        moment = Moment(event, number, live, event + 1)
        for i in range(errand.true_starts[event], errand.true_starts[event + 1]):
            output.stamps[errand.true[i]] = moment.stamp
        if errand.asks[event] and not progress[_ASKED]:
            if not _has_room(lookups, errand, output, event):
                return _NO_OUTPUT
            _ask(specs, state, lookups, operands, errand, output, moment)
            _conclude(lookups, errand, output, moment)
            progress[_ASKED] = 1
        if errand.joins[event]:
            if not _take(specs, state, intake, operands, errand, output, moment):
                return _NO_ROOM
            progress[_NUMBER] += 1
        output.starts[event + 1] = progress[_HOLDING]
        output.pending_starts[event + 1] = progress[_PENDING]
        progress[_ASKED] = 0
    progress[_NEXT] = n_events
    return _DONE


@inline
def _has_room(lookups: Any, errand: Any, output: Any, event: Any) -> Any:
    """Is there room for every entry that may be asked for an event?"""
    n_asked = np.int64(len(lookups.negated))
    if errand.by_need:
        n_asked = errand.need_starts[event + 1] - errand.need_starts[event]
    progress = output.progress
    return (
        len(output.holding) - progress[_HOLDING] >= n_asked
        and len(output.pending) - progress[_PENDING] >= n_asked
    )


@inline
def _ask(
    specs: Any, state: Any, lookups: Any, operands: Any, errand: Any, output: Any, moment: Any
) -> None:
    """Make the lookups of an event: of the entries needed, or of its attributes and without any."""
    event, progress = moment.event, output.progress
    n_rows, first_need = operands.kinds.shape[0], np.int64(0)
    n_lists = np.int64(n_rows + 1)
    if errand.by_need:
        first_need = errand.need_starts[event]
        n_lists = errand.need_starts[event + 1] - first_need
    for which in range(n_lists):
        if errand.by_need:
            entry = errand.needs[first_need + which]
            low, high = lookups.entry_starts[entry], lookups.entry_starts[entry + 1]
        elif which == n_rows:
            low, high = np.int64(0), np.int64(len(lookups.unfiled))
        elif comparable(operands.kinds[which, event]):
            low, high = lookups.filed_starts[which], lookups.filed_starts[which + 1]
        else:
            continue
        for place in range(low, high):
            lookup = np.int64(place)
            if not errand.by_need:
                lookup = lookups.unfiled[place] if which == n_rows else lookups.filed[place]
            entry, row = lookups.table[lookup, ENTRY], lookups.table[lookup, NEEDS]
            if output.found[entry] == moment.stamp or not errand.active[entry]:
                continue
            if row >= 0 and not comparable(operands.kinds[row, event]):
                continue
            progress[_LOOKUPS] += 1
            if is_found(lookup, lookups, specs, state, operands, output.stamps, moment):
                output.found[entry] = moment.stamp
                if not lookups.negated[entry]:
                    output.holding[progress[_HOLDING]] = entry
                    progress[_HOLDING] += 1


@inline
def _conclude(lookups: Any, errand: Any, output: Any, moment: Any) -> None:
    """Say which entries hold because nothing was found, and which are pending."""
    progress = output.progress
    first_need, n_open = np.int64(0), np.int64(len(lookups.open))
    if errand.by_need:
        first_need = errand.need_starts[moment.event]
        n_open = errand.need_starts[moment.event + 1] - first_need
    for which in range(n_open):
        entry = errand.needs[first_need + which] if errand.by_need else lookups.open[which]
        if output.found[entry] == moment.stamp or not errand.active[entry]:
            continue
        if lookups.has_sets[entry]:
            output.pending[progress[_PENDING]] = entry
            progress[_PENDING] += 1
        elif lookups.negated[entry]:
            output.holding[progress[_HOLDING]] = entry
            progress[_HOLDING] += 1


@inline
def _take(
    specs: Any, state: Any, intake: Any, operands: Any, errand: Any, output: Any, moment: Any
) -> Any:
    """Let all summaries take the event as a document; False if there is no room.

    By each condition that is TRUE, without any, counters made, counters raised.
    """
    first_true = errand.true_starts[moment.event]
    n_true = errand.true_starts[moment.event + 1] - first_true
    for which in range(n_true + 3):
        low, high, summaries = np.int64(0), np.int64(len(intake.counters)), intake.counters
        if which < n_true:
            condition = errand.true[first_true + which]
            low, high = intake.filed_starts[condition], intake.filed_starts[condition + 1]
            summaries = intake.filed
        elif which == n_true:
            high, summaries = np.int64(len(intake.unfiled)), intake.unfiled
        for place in range(low, high):
            raise_counts = which == n_true + 2
            if not is_taken(
                *(summaries[place], raise_counts),
                *(intake, specs, state, operands, output.stamps, moment),
            ):
                return False
    return True


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
        specs, lookups, intake = frozen(self.specs), frozen(self.lookups), frozen(self.intake)
        operands = frozen(self._operands(typed))
        errand = Errand(
            *(true.starts, true.numbers),
            *(asks.view(np.uint8), joins.view(np.uint8), active.view(np.uint8)),
            *(first, -1 if keep is None else keep),
            *(int(needed is not None), *((none, none) if needed is None else needed)),
        )
        errand = frozen(errand)
        while True:
            output = PassOutput(starts[0], out[0], starts[1], out[1], stamps, found, progress)
            why = _run(specs, groups, lookups, intake, operands, errand, output)
            if why == _DONE:
                break
            if why == _NO_OUTPUT:
                out = [np.concatenate((each, np.empty_like(each))) for each in out]
                continue
            spare = 2 * spare if stopped_at == progress[_NEXT] else spare
            stopped_at = int(progress[_NEXT])
            live = live_from(first, keep, int(progress[_NUMBER]))
            groups = renew(specs, groups, live, spare)
        holding, pending = (
            Rows(own, numbers[: int(own[-1])]) for own, numbers in zip(starts, out, strict=True)
        )
        return Answers(holding, pending, int(progress[_LOOKUPS])), groups

    def _operands(self, typed: Typed) -> Operands:
        """The values of a batch and the constants, whose strings come last."""
        kinds, words, ties, heap = self.fixed
        own_ties = np.where(kinds[0] == STRING, ties[0] + len(typed.heap), ties[0])
        both = np.concatenate((typed.heap, heap))
        return Operands(*typed[:3], kinds[0], words[0], own_ties, both)
