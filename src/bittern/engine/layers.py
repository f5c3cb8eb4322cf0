"""Subscriptions that change: a snapshot, deltas on top of it, and marks of what is gone.

What readers see is a *state*: an immutable tuple of segments, the big one first. A segment is an
index and a mark for each of its subscriptions that is still alive::

    segment 0   the snapshot: 1,000,000 subscriptions      alive 1 1 0 1 1 1 ...
    segment 1   a delta of 9,000                           alive 1 1 1 0 ...
    segment 2   a delta of 300
    pending     rows subscribed since the last seal: read and checked, not yet indexed

A change only touches dictionaries and lists, under the lock: a few microseconds. ``seal`` makes
what is pending visible: it indexes the rows as a new small segment, folding in older ones that are
not much larger, so that there are few segments and each row is indexed a few times at most; it
copies the marks of segments that lost subscriptions; and it swaps the state. Matching runs without
the lock on the state it took, and never blocks a writer for longer than a seal.

When the deltas have grown to a fifth of the snapshot, a separate process folds everything into a
new snapshot (``engine/compact.py``) while matching goes on; the result is swapped in, with the
changes made meanwhile on top.
"""

from __future__ import annotations

import logging
import shutil
import threading
import uuid
import weakref
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from bittern.engine.compact import Compaction
from bittern.engine.delta import ALL_ALIVE, Row, Segment, State, index_rows
from bittern.engine.index import Index
from bittern.engine.subscriptions import weight_problem
from bittern.engine.work_folder import new_work_folder, remove_work_folder
from bittern.errors import (
    BadSubscription,
    ExpressionError,
    OptionError,
    SubscriptionError,
    UnknownSubscriptionError,
)
from bittern.language.shapes import Shapes
from bittern.model.ids import Ids, id_problem, normal_id

logger = logging.getLogger("bittern")

#: A delta of up to this many rows is rebuilt rather than kept beside a new one.
SMALL_DELTA = 1024
#: So is one that is at most this many times as large as what is folded into it.
FOLD_RATIO = 4
#: Compaction starts when deltas and dead subscriptions exceed both.
COMPACT_ROWS = 20_000
COMPACT_SHARE = 0.2
#: Shapes of expressions that are gone are kept up to this many.
SPARE_SHAPES = 10_000


class Layers:
    """Subscriptions that change, and the states that readers match on. Threads may share one.

    ``version`` is that of the last changes that ``apply`` took, ``base_version`` the one that the
    snapshot was made of.
    """

    def __init__(self, index: Index | None = None, version: int = 0) -> None:
        self.version = self.base_version = version
        self._lock = threading.RLock()
        self._shapes = Shapes()
        self._base = Segment(index if index is not None else Index.build({}), ALL_ALIVE, 0, None)
        self._deltas: list[Segment] = []
        self._rows: dict[str | int, Row] = {}
        self._pending: dict[str | int, Row] = {}
        self._dying: list[tuple[Segment, int]] = []
        self._dying_base: set[int] = set()
        self._state = self._new_state()
        #: Some recent events, for the choice of pivots when the next snapshot is made.
        self.sample: Any = None
        self._compacting: Compaction | None = None
        self._compact_from = _compact_from(self._base.index)
        self._work: Path | None = None
        self._folder, lock = new_work_folder()
        self._remove_folder = weakref.finalize(self, remove_work_folder, self._folder, lock)

    # -- changes -------------------------------------------------------------------------------

    def subscribe(self, id_: str | int, expression: str, weight: float | None = None) -> None:
        """Add a subscription; ``SubscriptionError`` if it is bad or the id is taken."""
        id_ = normal_id(id_)
        with self._lock:
            if id_problem(id_) is None and id_ in self:
                raise SubscriptionError(
                    [BadSubscription(id_, 0, "this id is subscribed already; use replace")]
                )
            self._add(self._read(id_, expression, weight))
            self._start_compaction_if_due()

    def unsubscribe(self, id_: str | int) -> None:
        """Remove a subscription; ``UnknownSubscriptionError`` if there is none with this id."""
        id_ = normal_id(id_)
        with self._lock:
            self._remove(id_)
            self._start_compaction_if_due()

    def replace(self, id_: str | int, expression: str, weight: float | None = None) -> None:
        """Give a subscription another expression, in one step: no match sees neither or both.

        It keeps its weight, unless another one is given.
        """
        id_ = normal_id(id_)
        with self._lock:
            row = self._read(id_, expression, weight)
            before = self._remove(id_)
            if weight is None:
                row.weight = before
            self._add(row)
            self._start_compaction_if_due()

    def apply(
        self,
        removed: Iterable[str | int],
        put: Iterable[tuple[str | int, str, float | None]],
        version: int,
    ) -> list[BadSubscription]:
        """Take in all that changed up to a version, in one step; returns what is bad of it.

        An id of ``put`` that is there gets the new expression, one of ``removed`` that is not there
        stays away. Where the new expression is bad, the subscription is gone.
        """
        bad: list[BadSubscription] = []
        with self._lock:
            for id_ in removed:
                if id_ in self:
                    self._remove(id_)
            for id_, expression, weight in put:
                if id_ in self:
                    self._remove(id_)
                try:
                    self._add(self._read(id_, expression, weight))
                except SubscriptionError as wrong:
                    bad += wrong.bad
            self.version = version
            self._start_compaction_if_due()
        return bad

    def _read(self, id_: Any, expression: Any, weight: Any) -> Row:
        problem = id_problem(id_)
        problem = problem or weight_problem(weight)
        if problem is not None:
            raise SubscriptionError([BadSubscription(id_, 0, problem)])
        try:
            shape, parameters = self._shapes.read(expression)
        except ExpressionError as wrong:
            bad = BadSubscription(id_, wrong.position, wrong.message)
            raise SubscriptionError([bad]) from None
        return Row(id_, expression, weight, shape, parameters)

    def _add(self, row: Row) -> None:
        self._rows[row.id] = row
        self._pending[row.id] = row
        if len(self._shapes.templates) > 4 * len(self._rows) + SPARE_SHAPES:
            self._forget_shapes()

    def _forget_shapes(self) -> None:
        """Start with new shapes: the old ones are mostly of expressions that are gone."""
        self._shapes = Shapes()
        for row in self._rows.values():
            row.shape, row.parameters = self._shapes.read(row.text)

    def _remove(self, id_: str | int) -> float | None:
        """Take a subscription out; returns its weight."""
        row = self._rows.pop(id_, None) if id_problem(id_) is None else None
        if row is not None:
            self._pending.pop(id_, None)
            if row.segment is not None:
                self._dying.append((row.segment, row.position))
            return row.weight
        position = self._base_position(id_)
        if position < 0:
            raise UnknownSubscriptionError(f"no subscription has the id {id_!r}")
        self._dying.append((self._base, position))
        self._dying_base.add(position)
        weights = self._base.index.weights
        return None if weights is None else float(weights[position])

    def _base_position(self, id_: str | int) -> int:
        """Where an id lives in the snapshot, or -1 if it does not or no longer does."""
        position = self._base.index.all_ids.find(id_)
        if position < 0 or position in self._dying_base:
            return -1
        if len(self._base.alive) and not self._base.alive[position]:
            return -1
        return position

    def __contains__(self, id_: object) -> bool:
        with self._lock:
            known: Any = normal_id(id_)
            if id_problem(known) is not None:
                return False
            return known in self._rows or self._base_position(known) >= 0

    def __len__(self) -> int:
        with self._lock:
            alive = len(self._base.index) - self._base.dead - len(self._dying_base)
            return alive + len(self._rows)

    def expression(self, id_: str | int) -> str:
        """The text of a subscription."""
        id_ = normal_id(id_)
        with self._lock:
            if id_problem(id_) is None and id_ in self._rows:
                return self._rows[id_].text
            position = self._base_position(id_)
            if position < 0:
                raise UnknownSubscriptionError(f"no subscription has the id {id_!r}")
            return str(self._base.index.texts[position].as_py())

    def seal(self) -> State:
        """Make every change so far visible; returns the state to match on. O(changes)."""
        with self._lock:
            if self._pending or self._dying:
                self._bury()
                if self._pending:
                    self._index_pending()
                self._state = self._new_state()
            return self._state

    def base(self) -> tuple[Index, int]:
        """The snapshot, and the version that it was made of."""
        with self._lock:
            return self._base.index, self.base_version

    def _bury(self) -> None:
        """Mark the dead, in copies: a state that someone is matching on never changes."""
        copied: set[int] = set()
        for segment, position in self._dying:
            if id(segment) not in copied:
                marks = segment.alive
                segment.alive = (
                    marks.copy() if len(marks) else np.ones(len(segment.index), dtype=np.uint8)
                )
                copied.add(id(segment))
            segment.alive[position] = 0
            segment.dead += 1
        self._dying.clear()
        self._dying_base.clear()

    def _index_pending(self) -> None:
        rows = list(self._pending.values())
        self._pending.clear()
        while self._deltas:
            last = self._deltas[-1]
            assert last.rows is not None
            alive = len(last.rows) - last.dead
            if alive > SMALL_DELTA and alive > FOLD_RATIO * len(rows):
                break
            rows = [row for row in last.rows if row.segment is last and self._is_live(row)] + rows
            self._deltas.pop()
        index = index_rows(rows, self._shapes)
        segment = Segment(index, ALL_ALIVE, 0, rows)
        for position, row in enumerate(rows):
            row.segment, row.position = segment, position
        self._deltas.append(segment)

    def _is_live(self, row: Row) -> bool:
        return self._rows.get(row.id) is row

    def _new_state(self) -> State:
        segments = (self._base, *self._deltas)
        return State(
            segments,
            tuple(segment.alive for segment in segments),
            Ids.joined([segment.index.all_ids for segment in segments]),
        )

    # -- compaction ----------------------------------------------------------------------------

    def compact(self) -> Index:
        """Fold all changes so far into a new snapshot, and wait for it; returns its index.

        Other threads may match and change subscriptions meanwhile.
        """
        while True:
            with self._lock:
                if not self._remove_folder.alive:
                    raise OptionError(
                        "it is closed: what was sealed can be matched, nothing compacted"
                    )
                if self._compacting is None:
                    compaction = self._start_compaction()
                    break
                running = self._compacting
            running.join()
        compaction.join()
        if compaction.failure is not None:
            raise compaction.failure
        assert compaction.index is not None
        return compaction.index

    def save(self, path: str | Path) -> str:
        """Compact, then write the snapshot to ``path``; returns its id."""
        return self.compact().save(path)

    def _start_compaction_if_due(self) -> None:
        due = self._changed() > self._compact_from
        if due and self._compacting is None and self._remove_folder.alive:
            self._start_compaction()

    def _changed(self) -> int:
        return len(self._rows) + self._base.dead + len(self._dying_base)

    def _start_compaction(self) -> Compaction:
        self.seal()
        base, rows, version = self._base, list(self._rows.values()), self.version
        compaction = Compaction(
            self._folder / uuid.uuid4().hex,
            base.index,
            base.alive,
            [(row.id, row.text, row.weight) for row in rows],
            self.sample,
            lambda done: self._swap_base(done, base, rows, version),
        )
        compaction.start()  # it cannot finish before this thread lets go of the lock
        self._compacting = compaction
        return compaction

    def _swap_base(
        self, compaction: Compaction, base: Segment, rows: list[Row], version: int
    ) -> None:
        """Put the new snapshot in place, with what changed since it was begun on top."""
        with self._lock:
            self._compacting = None
            if compaction.index is None:
                # Try again only when much more has changed.
                self._compact_from = 2 * self._changed()
                logger.error(
                    "bittern: compaction failed; the changes stay in memory: %s", compaction.failure
                )
                return
            self._bury()
            index, kept = compaction.index, compaction.kept
            marks = np.ones(len(index), dtype=np.uint8)
            if len(base.alive):  # unsubscribed from the old snapshot meanwhile
                marks[: len(kept)] = base.alive[kept]
            for position, row in enumerate(rows, start=len(kept)):
                if self._is_live(row):
                    del self._rows[row.id]
                else:
                    marks[position] = 0
            dead = int(np.count_nonzero(marks == 0))
            self._base = Segment(index, marks if dead else ALL_ALIVE, dead, None)
            self.base_version = version
            self._deltas = []
            self._pending = self._rows.copy()
            for row in self._pending.values():
                row.segment, row.position = None, -1
            self._forget_shapes()
            self._compact_from = _compact_from(index)
            self._state = self._new_state()
            # What is mapped stays readable after its files are gone.
            old, self._work = self._work, compaction.work
            if old is not None:
                shutil.rmtree(old, ignore_errors=True)

    def close(self) -> None:
        """Wait for a compaction that is under way, and remove temporary files."""
        with self._lock:
            running = self._compacting
        if running is not None:
            running.join()
        self._remove_folder()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _compact_from(index: Index) -> int:
    """How many changes make a compaction worth it."""
    return max(COMPACT_ROWS, int(COMPACT_SHARE * len(index)))
