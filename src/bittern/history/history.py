"""The history: documents seen before, durable if they have a folder, and who is told of new ones.

``LiveMatcher(history=History("folder"))`` compares each event with the documents before it, and
then remembers it as a document. A history of its own is for filling one beforehand, for letting go
of old documents and for looking at what is there::

    number     0    1    2    3    4    5
    documents  gone gone  a    b    c    (next)         first 2, end 5, len 3

With ``keep=n`` only the n newest documents count, whatever is still on disk.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self

import numpy as np

from bittern.errors import OptionError
from bittern.history.documents import Documents
from bittern.history.passes import live_from
from bittern.history.sections import Batch, Mask
from bittern.model.events.reads import readable_rows
from bittern.model.events.typed import TypedReader
from bittern.options import whole_number


def check_keep(keep: int | None) -> None:
    """How many documents count is None, for all, or a whole number."""
    if keep is not None:
        whole_number("keep", keep)


class Follower(Protocol):
    """Somebody who wants to see every new document: a matcher's joins."""

    def take(self, batch: Batch) -> None:
        """Documents have come."""

    def forget(self) -> None:
        """Documents have gone."""

    def lost(self) -> None:
        """Documents may have come or gone without a word."""


class History:
    """Documents seen before. Threads may share it; it serves one matcher at a time.

    ``path`` is a folder of its own, or None to keep documents in memory; ``keep`` how many of the
    newest documents count (None: all).

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
        self.documents = Documents(path)
        self.lock = threading.RLock()
        # Not kept alive: a matcher that was never closed ends as any object does.
        self._follower: Callable[[], Follower | None] = lambda: None
        self._reader = TypedReader([])

    @property
    def first(self) -> int:
        """The number of the oldest document that counts."""
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
        """Remember events without matching them; returns the first's number. O(bytes).

        Events are of any form that is matched; those that cannot be read become no documents.
        """
        with self.lock:
            reading = self._reader.read(events, json)
            readable = readable_rows(reading.n_events, reading.rejects)
            return self.append_some(events, json, readable)

    def append_some(self, events: Any, json: str | Sequence[str], which: Mask) -> int:
        """Remember those of the events that ``which`` marks; returns the first's number."""
        with self.lock:
            with self._telling():
                batch = self.remember(events, json, np.zeros_like(which), which)
                if (follower := self._follower()) is not None:
                    follower.take(batch)
            return batch.number

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Documents change, and whoever follows is told; also if that is interrupted."""
        try:
            yield
        except BaseException:
            if (follower := self._follower()) is not None:
                follower.lost()
            raise

    def remember(self, events: Any, json: Any, asks: Mask, joins: Mask) -> Batch:
        """Store the events that become documents; what the join table needs to take them."""
        number, first = self.documents.end, self.documents.first
        if joins.any():
            self.documents.append(events, json, joins)
            if self.keep is not None:
                self._let_go()
        return Batch(events, json, len(asks), asks, joins, number, first, self.keep)

    def _let_go(self) -> None:
        """Delete what no longer counts, a lot at a time."""
        assert self.keep is not None
        if len(self.documents) > 2 * self.keep:
            self.documents.expire(self.end - self.keep)

    def expire(self, before: int) -> None:
        """Let documents with lower numbers go, for good. O(documents that stay)."""
        if isinstance(before, bool) or not isinstance(before, int):
            raise OptionError(f"documents expire before a number, an integer, not {before!r:.80}")
        with self.lock:
            if before <= self.documents.first:
                return
            with self._telling():
                self.documents.expire(before)
                if (follower := self._follower()) is not None:
                    follower.forget()

    def follow(self, follower: Follower) -> None:
        """Have somebody told of documents that come and go; only one can be."""
        with self.lock:
            if self._follower() is not None:
                raise OptionError(
                    "this history serves another matcher already; close that one first"
                )
            self._follower = weakref.ref(follower)

    def unfollow(self, follower: Follower) -> None:
        """Tell it no more."""
        with self.lock:
            if self._follower() is follower:
                self._follower = lambda: None

    def statistics(self) -> dict[str, Any]:
        """What is kept of the documents."""
        return {"first": self.first, "end": self.end} | self.documents.statistics()

    def close(self) -> None:
        """Let go of the folder. Nothing is lost without it."""
        self.documents.close()
