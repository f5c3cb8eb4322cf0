"""The history: earlier documents, durable if they have a folder, and their follower.

``LiveMatcher(history=History("folder"))`` compares each event with the documents before it, and
then remembers it as a document. Use a ``History`` object to fill a history beforehand, to remove
old documents, and to look at what it holds::

    number     0    1    2    3    4    5
    documents  gone gone  a    b    c    (next)         first 2, end 5, len 3

With ``keep=n`` only the n newest documents are used, whatever is still on disk.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self

import numpy as np

from bittern.arrays import Mask
from bittern.errors import OptionError, brief
from bittern.history.documents.documents import Documents
from bittern.history.passes.passes import live_from
from bittern.history.table.sections import EventBatch
from bittern.model.events.reads import readable_rows
from bittern.model.events.typed.typed import TypedReader
from bittern.options import whole_number
from bittern.processes import follow_forks


def check_keep(keep: int | None) -> None:
    """How many documents count is None, for all, or a whole number that kernels can take."""
    if keep is not None:
        whole_number("keep", keep, 1, 2**63 - 1)


class Follower(Protocol):
    """What is told about every new document: a matcher's joins."""

    def take(self, batch: EventBatch) -> None:
        """Documents have come."""

    def forget(self) -> None:
        """Documents have gone."""

    def lost(self) -> None:
        """Documents may have been added or removed without notice."""


class History:
    """Earlier documents. Threads may share it; it serves one matcher at a time.

    ``path`` is its own folder, or None to keep documents in memory. ``keep`` is how many of the
    newest documents are used (None: all).

    >>> with History() as history:
    ...     history.append([{"price": 10}, {"price": 25}])
    ...     len(history)
    0
    2
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, keep: int | None = None
    ) -> None:
        check_keep(keep)
        self.path = path
        self.keep = keep
        self.lock = threading.RLock()
        # Not kept alive: a matcher that was never closed ends as any object does.
        self._follower: Callable[[], Follower | None] = lambda: None
        self._reader = TypedReader([])
        follow_forks(self)
        self.documents = Documents(path)

    def after_fork(self) -> None:
        """In a forked child: nobody releases a lock that another thread held, or goes on there."""
        is_free = self.lock.acquire(blocking=False)
        self.lock = threading.RLock()
        if not is_free and (follower := self._follower()) is not None:
            follower.lost()

    @property
    def first(self) -> int:
        """The number of the oldest document that is used."""
        return live_from(self.documents.first, self.keep, self.end)

    @property
    def end(self) -> int:
        """The number that the next document gets."""
        return self.documents.end

    def __len__(self) -> int:
        return self.end - self.first

    def __repr__(self) -> str:
        return f"<bittern.history.History of {len(self):,} documents>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, events: Any, *, json: str | Sequence[str] = ()) -> int:
        """Remember events without matching them; returns the number of the first. O(bytes).

        Events have any form that can be matched; those that cannot be read do not become documents.
        """
        with self.lock:
            reading = self._reader.read(events, json)
            readable = readable_rows(reading.n_events, reading.rejects)
            return self.append_some(events, json, readable)

    def append_some(self, events: Any, json: str | Sequence[str], which: Mask) -> int:
        """Remember the events that ``which`` marks; returns the number of the first."""
        with self.lock:
            with self._telling():
                batch = self.remember(events, json, np.zeros_like(which), which)
                if (follower := self._follower()) is not None:
                    follower.take(batch)
            return batch.number

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """While inside, documents change; the follower is told, even after an interrupt."""
        try:
            yield
        except BaseException:
            if (follower := self._follower()) is not None:
                follower.lost()
            raise

    def remember(self, events: Any, json: Any, asks: Mask, joins: Mask) -> EventBatch:
        """Store the events that become documents; returns them as a batch for the join table."""
        number, first = self.documents.end, self.documents.first
        if joins.any():
            self.documents.append(events, json, joins)
            if self.keep is not None:
                self._let_go()
        return EventBatch(events, json, len(asks), asks, joins, number, first, self.keep)

    def _let_go(self) -> None:
        """Delete documents that are no longer used, many at a time."""
        assert self.keep is not None
        if len(self.documents) > 2 * self.keep:
            self.documents.expire(self.end - self.keep)

    def expire(self, before: int) -> None:
        """Remove documents with lower numbers for good. O(documents that stay)."""
        if isinstance(before, bool) or not isinstance(before, int):
            raise OptionError(
                f"before must be the number of a document, an integer, not {brief(before)}"
            )
        with self.lock:
            if before <= self.documents.first:
                return
            with self._telling():
                self.documents.expire(before)
                if (follower := self._follower()) is not None:
                    follower.forget()

    def follow(self, follower: Follower) -> None:
        """Set the follower, which is told about documents that come and go; there is only one."""
        with self.lock:
            if self._follower() is not None:
                raise OptionError("another matcher uses this history already: close that one first")
            self._follower = weakref.ref(follower)

    def unfollow(self, follower: Follower) -> None:
        """Remove the follower."""
        with self.lock:
            if self._follower() is follower:
                self._follower = lambda: None

    def statistics(self) -> dict[str, Any]:
        """Figures about the documents."""
        return {"first": self.first, "end": self.end} | self.documents.statistics()

    def close(self) -> None:
        """Release the folder. Nothing is lost if this is not called."""
        self.documents.close()
