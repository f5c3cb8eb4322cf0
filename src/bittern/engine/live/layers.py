"""Subscriptions that change: a snapshot, deltas on top of it, and marks of removed subscriptions.

Readers see a *state*: an immutable tuple of segments, the big one first. A segment is an index and
a mark for each of its subscriptions that tells whether it is still alive::

    segment 0   the snapshot: 1,000,000 subscriptions      alive 1 1 0 1 1 1 ...
    segment 1   a delta of 9,000                           alive 1 1 1 0 ...
    segment 2   a delta of 300
    changes     what was subscribed and unsubscribed since the last seal: read, not yet indexed

A change is one entry of a dictionary, made under the lock in a few microseconds. ``seal`` makes the
changes visible. It indexes the rows as a new small segment, and folds in older segments that are
not much larger, so that there are few segments and each row is indexed a few times at most. It
copies the marks of segments that lost subscriptions, and it swaps the state. Matching works without
the lock on the state it took, and never blocks a writer for longer than a seal.

When the deltas have grown to a fifth of the snapshot, a separate process folds everything into a
new snapshot (``engine/live/compact.py``) while matching goes on; the result is swapped in, with the
changes made meanwhile on top.

New objects are completed first and then put in place by one assignment (``engine/live/delta.py``):
an exception at any moment leaves all of a change, or nothing. For the same reason a forked child
finds a consistent state: it continues with a copy, from the parent's last change.
"""

from __future__ import annotations

import logging
import shutil
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from bittern.engine.asked import known_schema
from bittern.engine.index import Index
from bittern.engine.live.compact import Compaction
from bittern.engine.live.delta import (
    Held,
    IdState,
    Row,
    State,
    rebased,
    sealed,
)
from bittern.engine.live.work_folder import WorkFolder
from bittern.engine.subscriptions import weight_problem
from bittern.engine.unanswered import needs_history, refused
from bittern.errors import (
    BadSubscription,
    CompactionError,
    ExpressionError,
    OptionError,
    SubscriptionError,
    UnknownSubscriptionError,
    brief,
)
from bittern.language.shapes import Shapes
from bittern.model.ids import id_problem, normal_id
from bittern.options import one_of
from bittern.processes import follow_forks
from bittern.terms.unknown import EMBEDDED, SPARK, any_function

logger = logging.getLogger("bittern")

#: Compaction starts when deltas and dead subscriptions exceed both.
COMPACT_ROWS = 20_000
COMPACT_SHARE = 0.2
#: Shapes of expressions that are gone are kept up to this many.
SPARE_SHAPES = 10_000
#: Seconds that ``close`` waits for a compaction before it stops it.
CLOSE_SECONDS = 60.0

#: Somewhere in a parameter that names a set.
_IN_SET = " IN SET "
_NOWHERE = IdState(is_subscribed=False, row=None, segment=-1, position=-1)


class Layers:
    """Subscriptions that change, and the states that readers match on. Threads may share one.

    ``version`` is that of the last changes that ``apply`` made, ``base_version`` the one that the
    snapshot was made from. A forked child may use it; its changes do not affect the parent.
    """

    def __init__(
        self,
        index: Index | None = None,
        version: int = 0,
        *,
        without_history: str = "",
        functions: str = EMBEDDED,
        sets: Mapping[str, Any] | None = None,
        schema: Any = None,
        unknown: str = "warn",
    ) -> None:
        """Start with an index.

        ``without_history``, if given, means that there is no history, and says what to do about it:
        then a subscription with EXISTS or FORALL is bad. ``functions="spark"`` allows functions
        that only Spark knows. ``sets`` are the sets that subscriptions may name; None: any.
        ``schema`` and ``unknown`` are those of ``Index.build``, for what is subscribed from now on.
        """
        one_of("unknown", unknown, ("warn", "raise", "ignore"))
        self._typed_by = None if schema is None else known_schema(schema, functions)
        self._unknown = unknown
        self._checks_sets = sets is not None
        #: The sets that subscriptions name, as they are now.
        self.named_sets: Mapping[str, Any] = sets or {}
        self._any_function = functions == SPARK
        self._without_history = without_history
        self._lock = threading.RLock()
        self._shapes = Shapes()
        index = index if index is not None else Index.build({})
        self._held = Held(State.over(index), version, version, {}, len(index))
        #: Some recent events, for the choice of pivots when the next snapshot is made.
        self.sample: Any = None
        self._compacting: Compaction | None = None
        self._compact_from = _compact_from(index)
        self._work: Path | None = None
        self._work_folder = WorkFolder()
        self._remove_folder = weakref.finalize(self, self._work_folder.remove)
        self._is_closed = False
        follow_forks(self)

    @property
    def version(self) -> int:
        """The version of the last changes that ``apply`` made."""
        return self._held.version

    @property
    def base_version(self) -> int:
        """The version that the snapshot was made from."""
        return self._held.base_version

    # -- changes -------------------------------------------------------------------------------

    def subscribe(self, id_: str | int, expression: str, weight: float | None = None) -> None:
        """Add a subscription; ``SubscriptionError`` if it is bad or the id is taken."""
        id_ = normal_id(id_)
        with self._lock:
            found = self._find(id_)
            if found.is_subscribed:
                raise SubscriptionError(
                    [BadSubscription(id_, 0, "this id is subscribed already; use replace")]
                )
            self._held.put(self._read(id_, expression, weight), found)
            self._tidy()

    def unsubscribe(self, id_: str | int) -> None:
        """Remove a subscription; ``UnknownSubscriptionError`` if there is none with this id."""
        id_ = normal_id(id_)
        with self._lock:
            self._held.drop(id_, self._known(id_))
            self._tidy()

    def replace(self, id_: str | int, expression: str, weight: float | None = None) -> None:
        """Give a subscription another expression in one step: each match sees exactly one of them.

        It keeps its weight unless another one is given.
        """
        id_ = normal_id(id_)
        with self._lock:
            row = self._read(id_, expression, weight)
            found = self._known(id_)
            if weight is None:
                row = row._replace(weight=self._held.weight(found))
            self._held.put(row, found)
            self._tidy()

    def apply(
        self,
        removed: Iterable[str | int],
        put: Iterable[tuple[str | int, str, float | None]],
        version: int,
    ) -> list[BadSubscription]:
        """Make all changes up to a version, in one step; returns the bad subscriptions.

        An id of ``put`` that exists gets the new expression; an id of ``removed`` that does not
        exist is ignored. If the new expression is bad, the subscription is removed.
        """
        bad: list[BadSubscription] = []
        with self._lock:
            held = self._held.copy()
            for id_ in map(normal_id, removed):
                found = _find(held, id_)
                if found.is_subscribed:
                    held.drop(id_, found)
            for given, expression, weight in put:
                id_ = normal_id(given)
                found = _find(held, id_)
                try:
                    held.put(self._read(id_, expression, weight), found)
                except SubscriptionError as wrong:
                    bad += wrong.bad
                    if found.is_subscribed:
                        held.drop(id_, found)
            held.version = version
            self._held = held
            self._tidy()
        return bad

    def _read(self, id_: Any, expression: Any, weight: Any) -> Row:
        problem = id_problem(id_)
        problem = problem or weight_problem(weight)
        if problem is not None:
            raise SubscriptionError([BadSubscription(id_, 0, problem)])
        try:
            with any_function(allowed=self._any_function):
                if self._typed_by is None:
                    shape, parameters = self._shapes.read(expression)
                else:
                    expression, shape, parameters = self._typed_by.read(
                        id_, expression, self._shapes, self._unknown
                    )
        except ExpressionError as wrong:
            bad = BadSubscription(id_, wrong.position, wrong.message)
            raise SubscriptionError([bad]) from None
        template = self._shapes.templates[shape]
        if self._without_history and needs_history(template):
            raise SubscriptionError([refused(id_, expression, self._without_history)])
        if self._checks_sets and _IN_SET in "".join(parameters):
            from bittern.engine.sets.named import check_subscription  # noqa: PLC0415  only then

            check_subscription(id_, expression, parameters, self.named_sets)
        return Row(id_, expression, weight, template, parameters)

    def change_sets(self, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> bool:
        """Put other sets in place of those that there are, in one step; False: none changed."""
        with self._lock:
            before = self.named_sets
            self.named_sets = change(before)
            return self.named_sets is not before

    def _find(self, id_: Any) -> IdState:
        return _find(self._held, id_)

    def _known(self, id_: Any) -> IdState:
        found = self._find(id_)
        if not found.is_subscribed:
            raise UnknownSubscriptionError(f"no subscription has the id {brief(id_)}")
        return found

    def _tidy(self) -> None:
        """After a change: drop what is no longer needed, and compact if it is time."""
        rows = self._held.in_deltas + len(self._held.changes)
        if len(self._shapes.templates) > 4 * rows + SPARE_SHAPES:
            self._shapes = Shapes()  # these were mostly of expressions that are gone
        if self._changed() > self._compact_from and self._running is None:
            self._compact_because_due()

    def __contains__(self, id_: object) -> bool:
        with self._lock:
            return self._find(normal_id(id_)).is_subscribed

    def __len__(self) -> int:
        return self._held.count

    def expression(self, id_: str | int) -> str:
        """The text of a subscription."""
        with self._lock:
            return self._held.text(self._known(normal_id(id_)))

    def seal(self) -> State:
        """Make every change so far visible; returns the state to match on. O(changes)."""
        with self._lock:
            if self._held.changes:
                self._held = sealed(self._held)
            return self._held.state

    def sealed_with_sets(self) -> tuple[State, Mapping[str, Any]]:
        """The state to match on, and the sets of the same moment."""
        with self._lock:
            return self.seal(), self.named_sets

    def base(self) -> tuple[Index, int]:
        """The snapshot, and the version that it was made from."""
        held = self._held
        return held.state.segments[0].index, held.base_version

    # -- compaction ----------------------------------------------------------------------------

    def compact(self) -> Index:
        """Fold all changes so far into a new snapshot, and wait for it; returns its index.

        Other threads may match and change subscriptions meanwhile.
        """
        while True:
            with self._lock:
                if self._is_closed:
                    raise OptionError(
                        "this matcher is closed: it can still match, but it cannot compact"
                    )
                running = self._running
                if running is None:
                    compaction = self._start_compaction()
                    break
            running.join()
        compaction.join()
        if compaction.failure is not None:
            raise compaction.failure
        assert compaction.index is not None
        return compaction.index

    def save(self, path: str | Path) -> str:
        """Compact, then write the snapshot to ``path``; returns its id."""
        return self.compact().save(path)

    @property
    def _running(self) -> Compaction | None:
        """The compaction that runs now; one that ended without calling back does not count."""
        running = self._compacting
        return running if running is not None and running.is_alive() else None

    def _changed(self) -> int:
        held = self._held
        return held.in_deltas + held.state.segments[0].dead + len(held.changes)

    def _compact_because_due(self) -> None:
        """Compact in the background; if that cannot start, the change still succeeds."""
        if self._is_closed:
            return
        try:
            self._start_compaction()
        except Exception as failure:  # noqa: BLE001  no thread, no disk, no memory
            self._postpone(failure)

    def _postpone(self, failure: BaseException) -> None:
        """Try again only when much more has changed."""
        self._compact_from = 2 * self._changed()
        logger.error("bittern: compaction failed; the changes stay in memory: %s", failure)

    def _start_compaction(self) -> Compaction:
        state, version = self.seal(), self.version
        if not self._work_folder.is_usable():  # it was removed, or this is a forked child
            self._take_folder(WorkFolder())
        base, *deltas = state.segments
        compaction = Compaction(
            self._work_folder.new(),
            base.index,
            base.alive,
            [row for delta in deltas for row in delta.living()],
            self.sample,
            lambda done: self._finish(done, version),
        )
        self._compacting = compaction
        try:
            compaction.start()  # it cannot finish before this thread lets go of the lock
        except BaseException:
            self._compacting = None  # if it runs nevertheless, its result is not taken
            raise
        return compaction

    def _take_folder(self, folder: WorkFolder) -> None:
        remove_old = self._remove_folder
        self._work_folder, self._work = folder, None
        self._remove_folder = weakref.finalize(self, folder.remove)
        remove_old()

    def _finish(self, compaction: Compaction, version: int) -> None:
        """Put the new snapshot in place, with the changes since its start on top."""
        unused: Path | None = compaction.work
        with self._lock:
            if self._compacting is compaction:
                try:
                    if compaction.failure is None:
                        unused = self._swap(compaction, version)
                    else:
                        self._postpone(compaction.failure)
                except BaseException as failure:
                    compaction.index = None
                    compaction.failure = CompactionError(f"its result could not be used: {failure}")
                    self._postpone(failure)
                    if not isinstance(failure, Exception):
                        raise
                finally:
                    self._compacting = None
        if unused is not None:
            shutil.rmtree(unused, ignore_errors=True)

    def _swap(self, compaction: Compaction, version: int) -> Path | None:
        """Returns the folder that is no longer needed: mapped arrays stay readable without it."""
        index, unused = compaction.index, self._work
        assert index is not None
        held = rebased(self._held, index, version, compaction.kept, compaction.added)
        compact_from, shapes = _compact_from(index), Shapes()
        self._held = held
        self._compact_from, self._shapes, self._work = compact_from, shapes, compaction.work
        return unused

    def close(self) -> None:
        """Wait for a running compaction, but not forever, and remove temporary files.

        A compaction that has not ended by then is stopped, and its result is not used.
        """
        with self._lock:
            self._is_closed = True
            running = self._compacting
        if running is not None:
            running.end(CLOSE_SECONDS)
            self._compacting = None
        self._work_folder.remove()
        self._remove_folder.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def after_fork(self) -> None:
        """In a forked child, replace locks that threads of the parent may hold."""
        self._lock = threading.RLock()
        self._compacting = None


def _find(held: Held, id_: Any) -> IdState:
    return held.find(id_) if id_problem(id_) is None else _NOWHERE


def _compact_from(index: Index) -> int:
    """The number of changes that makes a compaction worthwhile."""
    return max(COMPACT_ROWS, int(COMPACT_SHARE * len(index)))
