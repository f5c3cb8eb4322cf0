"""The join phase: finds the quantified predicates that hold for each event, as extra attributes.

For a block of events, with the guards (``history/joins/guards.py``) of every segment of the state::

    pre-filter       demands that no document meets   -> guards that cannot lead to a match
    constants first  guards that hold for an event    -> the entries that it needs
    joins first      guards that are alive            -> the entries that all events need
    join table       entries needed, one pass         -> entries that hold, by event
    each segment     an entry that holds              -> the cell of its hidden attribute

Which phase goes first is estimated for each block (``history/joins/phases.py``). Answers depend on
the order of arrival, so one block at a time is matched, under the history's lock.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from bittern.arrays import Int64s, Mask
from bittern.engine.index import Index
from bittern.errors import OptionError
from bittern.history.demands.demands import Demands
from bittern.history.history import History
from bittern.history.joins.conditions import IndexedConditions
from bittern.history.joins.guards import Guards
from bittern.history.joins.phases import AUTO, CONSTANTS, PhaseEstimate, check_phases
from bittern.history.rows import Rows
from bittern.history.table.sections import EventBatch
from bittern.history.table.table import JoinTable
from bittern.language.quantifiers import hidden_name
from bittern.language.syntax import Quantified
from bittern.model.events.reads import Read, readable_rows
from bittern.model.rank.encoded import Pairs

#: Answers of at most so many entries are held at a time where all events ask all entries.
_MOST_ANSWERS = 1 << 24
#: Events of the first block, while it is not known how many entries they need.
_FIRST_BLOCK = 256
#: So many events make up half of the average of what events need.
_MEMORY = 4096


class _Known(NamedTuple):
    """The guards of an index, and the cells of its hidden attributes, by entry of the guards."""

    guards: Guards
    cells: Int64s


class _Guarded(NamedTuple):
    """An index with its guards, and the numbers of their entries and demands in the whole."""

    guards: Guards
    entries: Int64s  # in the join table
    demands: Int64s  # among the demands
    cells: Int64s  # by entry of the join table: the cell of the hidden attribute, or -1


class Joins:
    """Answers quantified predicates from a history. One thread at a time, under its lock.

    ``phases`` is "auto", "joins first" or "constants first". ``prefilter`` says whether
    subscriptions that cannot match the present documents are left out beforehand. A history that is
    given as a folder is opened, and is closed with the joins.
    """

    def __init__(self, history: History | str | os.PathLike[str]) -> None:
        self._own: History | None = None
        if not isinstance(history, History):
            history = self._own = History(history)
        self.history = history
        self.prefilter = True
        self._phases = AUTO
        self._table = JoinTable(history.documents, IndexedConditions, history.keep)
        self._demands = Demands(history.documents, IndexedConditions, history.keep)
        self._known: WeakKeyDictionary[Index, _Known | None] = WeakKeyDictionary()
        self._indexes: tuple[Index, ...] = ()
        self._guarded: list[_Guarded | None] = []
        self._needed: float | None = None
        self._held: float | None = None
        self._is_behind = self._is_closed = False
        self._last: tuple[Mask, list[Mask | None], Mask] | None = None
        #: The counts that chose the phase of the last block; None before the first.
        self.estimate: PhaseEstimate | None = None
        history.follow(self)

    @property
    def phases(self) -> str:
        """Which phase goes first."""
        return self._phases

    @phases.setter
    def phases(self, wanted: str) -> None:
        self._phases = check_phases(wanted)

    @property
    def lookups(self) -> int:
        """The number of lookups and searches so far."""
        return self._table.lookups

    def close(self) -> None:
        """Release the history for another matcher; this one cannot match any more."""
        self._is_closed = True
        self.history.unfollow(self)
        if self._own is not None:
            self._own.close()

    def take(self, batch: EventBatch) -> None:
        """Documents have come that were not matched."""
        if self._is_behind:
            return  # the rebuild will see them
        with self._whole():
            self._table.run(batch)
            self._demands.take(batch)

    def lost(self) -> None:
        """Documents may have been added or removed without notice."""
        self._is_behind = True

    def forget(self) -> None:
        """Documents have gone: what is known of all is built again. O(documents)."""
        with self._whole():
            self._table.rebuild()
            self._demands.rebuild()
            self._is_behind = False

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """An interrupt in the middle (Ctrl-C, no memory) leaves everything marked for rebuilding.

        The documents are stored first, and all else is rebuilt from them.
        """
        try:
            yield
        except BaseException:
            self._is_behind = True
            raise

    def prepare(self, indexes: Sequence[Index]) -> None:
        """Prepare for these segments."""
        if self._is_closed:
            raise OptionError(
                "this matcher is closed, and another one may use its history: make a new matcher"
            )
        if self._is_behind:
            self.forget()
        if tuple(indexes) != self._indexes:
            found = [self._read(index) for index in indexes]
            guards = [known.guards for known in found if known is not None]
            self._indexes, self._last = (), None  # or an interrupt here would leave old numbers
            self._table.use([name for each in guards for name in each.entries])
            self._demands.use([each for own in guards for each in own.constraints])
            self._guarded = [None if known is None else self._placed(known) for known in found]
            self._indexes = tuple(indexes)

    def _read(self, index: Index) -> _Known | None:
        """The guards of an index, which are read once."""
        if index not in self._known:
            guards, known = Guards.of(index), None
            if guards is not None:
                cells = [index.encoder.hidden_cell(name) for name in guards.entries]
                known = _Known(guards, np.array(cells, dtype=np.int64))
            self._known[index] = known
        return self._known[index]

    def _placed(self, known: _Known) -> _Guarded:
        guards, own_cells = known
        entries = self._table.add(guards.entries)
        cells = np.full(len(self._table), -1, dtype=np.int64)
        cells[entries] = own_cells
        return _Guarded(guards, entries, self._demands.use(guards.constraints), cells)

    def block_size(self, most: int) -> int:
        """The number of events to take next; all of their entries are in memory at once."""
        asked = float(len(self._table))
        if self._choice(0.0, len(self._table)).choice == CONSTANTS:
            if self._needed is None:
                return min(most, _FIRST_BLOCK)  # then it is known what events need
            asked = self._needed
        return max(1, min(most, int(_MOST_ANSWERS / max(1.0, asked))))

    def outlook(self, indexes: Sequence[Index], attributes: float) -> PhaseEstimate:
        """The counts of the last block, or what they are now if there was none."""
        with self.history.lock:
            self.prepare(indexes)
            return self.estimate or self._choice(attributes, len(self._table))

    def _choice(self, attributes: float, entries: int) -> PhaseEstimate:
        return PhaseEstimate(
            sum(map(len, self._indexes)),
            len(self.history),
            entries,
            self._needed,
            self._held or 0.0,
            attributes,
            self._phases,
        )

    def run(
        self,
        events: Any,
        json: str | Sequence[str],
        reads: Sequence[Read],
        sets: Mapping[str, Any],
        *,
        remember: bool,
    ) -> list[Pairs]:
        """For each segment, the pairs to add to its encoded block.

        ``sets`` are those that values are looked up in. With ``remember``, each event becomes a
        document that later events see.
        """
        with self._whole():
            return self._run(events, json, reads, sets, remember=remember)

    def _run(
        self,
        events: Any,
        json: str | Sequence[str],
        reads: Sequence[Read],
        sets: Mapping[str, Any],
        *,
        remember: bool,
    ) -> list[Pairs]:
        n = reads[0].n_events
        asks = self.readable(reads)
        joins = asks if remember else np.zeros(n, dtype=np.bool_)
        batch = self.history.remember(events, json, asks, joins)
        met = self._demands.take(batch)
        if not self.prefilter:
            met = np.ones_like(met)
        alive, active = self._alive(met)
        attributes = sum(len(read.pairs) for read in reads) / max(1, n)
        self.estimate = self._choice(attributes, int(active.sum()))
        needed = None
        if self.estimate.choice == CONSTANTS:
            needed = self._all_needed(events, json, sets, n, alive)
            self._needed = _averaged(self._needed, len(needed.numbers), n)
        holding = self._table.run(batch, active, needed)
        return [self._pairs(each, holding) for each in self._guarded]

    @staticmethod
    def readable(reads: Sequence[Read]) -> Mask:
        """Which events of a block can be answered and remembered: all segments could read them."""
        return readable_rows(reads[0].n_events, *(read.rejects for read in reads))

    def _alive(self, met: Mask) -> tuple[list[Mask | None], Mask]:
        """Which guards, by segment, and which entries matter, given the demands that are met."""
        if self._last is None or not np.array_equal(met, self._last[0]):
            alive: list[Mask | None] = []
            active = np.zeros(len(self._table), dtype=np.bool_)
            for each in self._guarded:
                own = None if each is None else each.guards.alive(met[each.demands])
                alive.append(own)
                if each is not None and own is not None:
                    active[each.entries[each.guards.entries_alive(own)]] = True
            self._last = met, alive, active
        return self._last[1:]

    def holds(self, quantified: Sequence[Quantified], event: Any) -> list[bool]:
        """Whether each of these predicates would hold for an event that came now."""
        with self.history.lock, self._whole():
            names = [hidden_name(each) for each in quantified]
            table = self._table
            if self._is_behind or not all(name in table for name in names):
                table = JoinTable(self.history.documents, IndexedConditions, self.history.keep)
            entries = table.add(names)
            ask, nobody = np.ones(1, dtype=np.bool_), np.zeros(1, dtype=np.bool_)
            batch = self.history.remember([event], (), ask, nobody)
            needed = Rows(np.array([0, len(entries)]), entries)
            found = table.run(batch, None, needed).numbers
            return [bool(held) for held in np.isin(entries, found)]

    def _all_needed(
        self,
        events: Any,
        json: str | Sequence[str],
        sets: Mapping[str, Any],
        n: int,
        alive: Sequence[Mask | None],
    ) -> Rows:
        """The entries that each event needs for any segment, each once."""
        found, held = [], 0
        for each, own in zip(self._guarded, alive, strict=True):
            if each is not None:
                needed, n_held = each.guards.needed(events, json, own, sets)
                found.append(Rows(needed.starts, each.entries[needed.numbers]))
                held += n_held
        self._held = _averaged(self._held, held, n)
        if len(found) == 1:
            return found[0]
        keys = [rows.events() * len(self._table) + rows.numbers for rows in found]
        distinct = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *keys]))
        starts = np.searchsorted(distinct, np.arange(n + 1) * len(self._table))
        return Rows(starts.astype(np.int64), distinct % max(1, len(self._table)))

    def _pairs(self, each: _Guarded | None, holding: Rows) -> Pairs:
        """What holds, as cells of the segment's hidden attributes."""
        if each is None:
            return np.empty(0, dtype=np.uint64)
        cells = each.cells[holding.numbers]
        events, known = holding.events(), cells >= 0
        packed: Pairs = (cells[known] << 32 | events[known]).astype(np.uint64)
        return packed

    def statistics(self) -> dict[str, Any]:
        """What is known of the documents, and the choice of phases for the last block."""
        return self._table.statistics() | {"phases": str(self.estimate or "")}


def _averaged(known: float | None, total: int, n: int) -> float | None:
    """The average for an event, after n more that needed ``total`` together."""
    if n == 0:
        return known
    share = 1.0 if known is None else n / (n + _MEMORY)
    return (1 - share) * (known or 0.0) + share * total / n
