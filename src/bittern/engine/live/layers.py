"""Subscriptions that change: a snapshot, deltas on top of it, and marks of removed subscriptions.

Readers see a *state*: an immutable tuple of segments, the big one first. A segment is an index and
a mark for each of its subscriptions that tells whether it is still alive::

    segment 0   the snapshot: 1,000,000 subscriptions      alive 1 1 0 1 1 1 ...
    segment 1   a delta of 9,000                           alive 1 1 1 0 ...
    segment 2   a delta of 300
    changes     what was subscribed and unsubscribed since the last seal: read, not yet indexed

A change is one entry of a dictionary, made under the lock in a few microseconds. ``seal`` makes the
changes visible: it indexes the rows as a new small segment, copies the marks of segments that lost
subscriptions, and swaps the state. A match seals what few changes there are since the last seal; a
writer seals when more have piled up, and makes one segment of several that are of about a size
(``engine/live/changes.py``). So a match never does much for writers, there are few segments, and
each row is indexed a few times at most. Matching works without the lock on the state it took.

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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from bittern.engine.index import Index
from bittern.engine.live.changes import LiveChanges
from bittern.engine.live.compact import Compaction
from bittern.engine.live.delta import rebased
from bittern.engine.live.work_folder import WorkFolder
from bittern.errors import CompactionError, OptionError
from bittern.processes import follow_forks
from bittern.terms.unknown import EMBEDDED

logger = logging.getLogger("bittern")

#: Compaction starts when deltas and dead subscriptions exceed both.
COMPACT_ROWS = 20_000
COMPACT_SHARE = 0.2
#: Shapes of expressions that are gone are kept up to this many.
SPARE_SHAPES = 10_000
#: Seconds that ``close`` waits for a compaction before it stops it.
CLOSE_SECONDS = 60.0


class Layers(LiveChanges):
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
        index = index if index is not None else Index.build({})
        super().__init__(
            index,
            version,
            without_history=without_history,
            functions=functions,
            sets=sets,
            schema=schema,
            unknown=unknown,
        )
        #: Some recent events, for the choice of pivots when the next snapshot is made.
        self.sample: Any = None
        self._compacting: Compaction | None = None
        self._compact_from = _compact_from(index)
        self._work: Path | None = None
        self._work_folder = WorkFolder()
        self._remove_folder = weakref.finalize(self, self._work_folder.remove)
        self._is_closed = False
        follow_forks(self)

    def _tidy(self) -> None:
        """After a change: index and drop what is to be, and compact if it is time."""
        super()._tidy()
        rows = self._held.in_deltas + len(self._held.changes)
        if len(self._reading.shapes.templates) > 4 * rows + SPARE_SHAPES:
            self._reading.forget()
        if self._changed() > self._compact_from and self._running is None:
            self._compact_because_due()

    # -- compaction ----------------------------------------------------------------------------

    def compact(self) -> Index:
        """Fold all changes so far into a new snapshot, and wait for it; returns its index.

        Other threads may match and change subscriptions meanwhile.
        """
        while True:
            with self._writing:
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
        with self._writing, self._lock:
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
        compact_from = _compact_from(index)
        self._reading.forget()  # before, so that nothing is called once it is in place
        self._held = held
        self._compact_from, self._work = compact_from, compaction.work
        return unused

    def close(self) -> None:
        """Wait a minute for a running compaction, and remove temporary files.

        A compaction that has not ended by then is asked to end, and killed five seconds later, even
        if it is suspended; its result is not used.
        """
        with self._writing:
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
        self._writing, self._lock = threading.RLock(), threading.RLock()
        self._compacting = None


def _compact_from(index: Index) -> int:
    """The number of changes that makes a compaction worthwhile."""
    return max(COMPACT_ROWS, int(COMPACT_SHARE * len(index)))
