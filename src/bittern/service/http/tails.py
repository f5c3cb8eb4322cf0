"""The end of a journal, for those who wait for it: each row is read once, however many wait.

::

    journal   ... 17 18 19 │ 20        a turn of this process, or a look at what others logged
                           │ └─ read once, given to the streams of ann and to those of all
                          last

A stream begins behind what it has seen: first it reads the journal up to ``last``, and from there
on it is given what comes. A stream that does not take what it is given loses that, and reads the
journal again: so nothing is skipped, and memory is bounded.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import Any

from bittern.catalog.journal.journal import Journal, LoggedMatch

#: Rows that wait for a stream, at most.
_MOST = 1_000
#: Events that are read at a time.
_EVENTS = 500

#: Calls a function in a thread.
Runner = Callable[..., Awaitable[Any]]


class Stream:
    """One who waits: for the matches of a subscriber, or of all (None)."""

    def __init__(self, subscriber: str | None) -> None:
        self.subscriber = subscriber
        self._rows: deque[LoggedMatch] = deque()
        self._come = asyncio.Event()
        #: It was given more than it took: it has to read the journal.
        self.is_late = False

    def give(self, rows: list[LoggedMatch]) -> None:
        """Rows have come."""
        if self.is_late or len(self._rows) + len(rows) > _MOST:
            self._rows.clear()
            self.is_late = True
        else:
            self._rows.extend(rows)
        self._come.set()

    def wake(self) -> None:
        """Let it look around, though nothing has come."""
        self._come.set()

    async def wait(self, seconds: float) -> bool:
        """Wait until something has come, or it is woken; False if nothing has in this time."""
        try:
            async with asyncio.timeout(seconds):
                await self._come.wait()
        except TimeoutError:
            return False
        return True

    def take(self) -> list[LoggedMatch]:
        """What has come."""
        rows = list(self._rows)
        self._rows.clear()
        self._come.clear()
        return rows


class Tail:
    """The end of one journal, and those who wait for it. For the event loop alone."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._streams: dict[str | None, set[Stream]] = defaultdict(set)
        self._come = asyncio.Event()
        self._reading = asyncio.Lock()
        #: The last event whose matches have been given to the streams.
        self.last = 0

    @property
    def n_streams(self) -> int:
        """How many wait."""
        return sum(map(len, self._streams.values()))

    async def open(self, subscriber: str | None, run: Runner) -> tuple[Stream, int]:
        """Begin to wait: the stream, and the number behind which it is given everything."""
        stream = Stream(subscriber)
        async with self._reading:
            if not self._streams:
                self.last = (await run(self._journal.span)).last
            self._streams[subscriber].add(stream)
        return stream, self.last

    def close(self, stream: Stream) -> None:
        """Wait no more."""
        own = self._streams[stream.subscriber]
        own.discard(stream)
        if not own:
            del self._streams[stream.subscriber]

    def wake_streams(self) -> None:
        """Let all streams see that the service stops."""
        for own in self._streams.values():
            for stream in own:
                stream.wake()

    def wake(self) -> None:
        """Events may have been logged."""
        self._come.set()

    async def wait(self, seconds: float) -> None:
        """Wait until events may have been logged, or for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._come.wait()
        except TimeoutError:
            pass
        self._come.clear()

    async def read(self, run: Runner) -> None:
        """Give what has been logged to those who wait for it. O(matches)."""
        async with self._reading:
            while self._streams:
                last = (await run(self._journal.span)).last
                if last <= self.last:
                    return
                until = min(last, self.last + _EVENTS)
                rows = await run(self._journal.matches, None, self.last, None, until)
                by_subscriber: dict[str | None, list[LoggedMatch]] = defaultdict(list)
                for row in rows:
                    by_subscriber[row.subscriber].append(row)
                by_subscriber[None] = rows
                for subscriber, streams in list(self._streams.items()):
                    own = by_subscriber.get(subscriber)
                    if own:
                        for stream in list(streams):
                            stream.give(own)
                self.last = until
