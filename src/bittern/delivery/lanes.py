"""Many requests to many endpoints at once, where each may be slow, dead or hostile.

A subscriber's requests to an endpoint wait in a lane and are made one after the other, so that they
arrive in order. A few threads serve all lanes; one that waits for another attempt occupies none::

    requests ──►  lanes                          due now        threads
                  a.example/x  [3 4 5]   ───►    a, c    ───►   1  POST 3 to a
                  b.example/y  [6]  in 2.7 s                    2  POST 7 to c
                  c.example/z  [7 8]                                  │
                                                                delivered, or another attempt
    outcomes  ◄── in the order in which they are known ◄──────  later, or given up on

What holds up a batch is bounded at every level:

- an attempt by ``timeout``, whatever the endpoint does;
- a request by ``attempts``, with a random wait before each that doubles at most, from
  ``first_wait`` up to ``longest_wait``, or as long as ``Retry-After`` asks for;
- a lane by ``within`` seconds after its first attempt. When a request of it failed every time, the
  rest of it is given up too;
- a subscriber on a host by ``HOST_FAILURES`` lanes in a row that were given up on: then all of the
  subscriber's lanes there are. Lanes of other subscribers there continue: a failing subscriber does
  not harm others;
- a host by as many lanes in a row that got no connection: then all lanes there are given up on. An
  attempt that had less than its whole time says nothing about the host: its lane used up the rest.

Lanes that were given up before their first attempt are ``untried``: next time they come first.

Another attempt makes sense after no answer, a broken one, and statuses 408, 425, 429 and 5xx. Any
other status is the endpoint's last word on that request, and an address that is refused
(``addresses.py``) ends its lane at once.

Cost: ``MOST_BYTES`` of requests in memory, and as many threads as ``concurrency`` says.
"""

from __future__ import annotations

import heapq
import itertools
import random
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPException

from bittern.delivery.addresses import RefusedError, Target, parse
from bittern.delivery.posting import Reply, Request, UnreachableError

#: Endpoints that are given up on, none answering between them, before the rest of a host is.
HOST_FAILURES = 3
#: Bodies of requests that are waiting, under way, or not yet taken note of.
MOST_BYTES = 64 << 20
_REQUEST_BYTES = 1 << 10  # what a request takes besides its body
_RETRIED = {408, 425, 429}

#: A URL and the subscriber whose requests go there.
Endpoint = tuple[str, str | None]
#: Makes one request within so many seconds (``posting.Post``).
Poster = Callable[[Target, Request, float], Reply]


@dataclass(frozen=True)
class Terms:
    """How hard to try; times are in seconds."""

    attempts: int = 5
    first_wait: float = 0.5
    longest_wait: float = 30.0
    timeout: float = 10.0
    within: float = 60.0
    concurrency: int = 8


@dataclass(frozen=True)
class Outcome:
    """What became of a request: delivered if there is no reason why not."""

    request: Request
    attempts: int
    status: int | None
    reason: str | None = None
    #: It failed every time, and the next time it might not.
    gave_up: bool = False
    #: It was given up before anything was sent to its endpoint, because of others.
    untried: bool = False


class Time:
    """The clock, and waiting for it."""

    def now(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def wait(self, changed: threading.Condition, seconds: float) -> None:
        """Wait until something changes, or the seconds are over."""
        changed.wait(seconds)

    def jitter(self, most: float) -> float:
        """A random time up to ``most``, so that requests do not all return at once."""
        return random.uniform(0, most)  # noqa: S311 - guessing it gains nothing


@dataclass
class _Lane:
    """The requests of one subscriber to one endpoint that are still to be made."""

    url: str
    subscriber: str | None
    attempts: int  # for each request
    waiting: deque[Request] = field(default_factory=deque)
    failed: int = 0  # attempts of the first in waiting
    until: float | None = None
    connected: bool = True  # by the last attempt that had its whole time
    ended: str | None = None  # why nothing more is sent


class Delivery:
    """Makes requests and yields their outcomes. For one use.

    ``suspects`` were given up on the last time: their requests get one attempt.
    """

    def __init__(
        self,
        post: Poster,
        terms: Terms,
        suspects: Collection[Endpoint] = (),
        clock: Time | None = None,
    ) -> None:
        self._post = post
        self._terms = terms
        self._suspects = suspects
        self._time = clock or Time()
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, _Lane]] = []  # a heap of the lanes that no thread has
        self._numbers = itertools.count()
        self._last: _Lane | None = None
        self._done: list[Outcome] = []
        self._open = 0  # requests without an outcome
        self._bytes = 0
        self._failures: Counter[tuple[str, str | None]] = Counter()  # by host and subscriber
        self._unreachable: Counter[str] = Counter()  # by host; both are in a row
        self._stopped = False
        self._error: BaseException | None = None

    def run(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Requests of one subscriber to one endpoint must be adjacent; their order is kept."""
        threads = [
            threading.Thread(target=self._work, name=f"webhook-{number}", daemon=True)
            for number in range(self._terms.concurrency)
        ]
        for thread in threads:
            thread.start()
        try:
            for request in requests:
                self._put(request)
                yield from self._take(MOST_BYTES)
            while self._open:
                yield from self._take(0)
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()
            for thread in threads:
                thread.join()

    def _put(self, request: Request) -> None:
        with self._changed:
            lane, pair = self._last, (request.url, request.subscriber)
            if lane is None or (lane.url, lane.subscriber) != pair:
                attempts = 1 if pair in self._suspects else self._terms.attempts
                lane = self._last = _Lane(*pair, attempts)
            lane.waiting.append(request)
            self._open += 1
            self._bytes += _size(request)
            if len(lane.waiting) == 1:
                self._enter(lane, self._time.now())

    def _take(self, most_bytes: int) -> list[Outcome]:
        """Outcomes that are known; waits for some while there are more than ``most_bytes``."""
        with self._changed:
            while not self._done and self._bytes > most_bytes and self._error is None:
                self._changed.wait()
            if self._error is not None:
                raise self._error
            done, self._done = self._done, []
            self._open -= len(done)
            self._bytes -= sum(_size(outcome.request) for outcome in done)
        return done

    def _enter(self, lane: _Lane, at: float) -> None:
        heapq.heappush(self._due, (at, next(self._numbers), lane))
        self._changed.notify_all()

    # In the threads

    def _work(self) -> None:
        try:
            while (lane := self._next()) is not None:
                # A thread has a lane for itself: no other thread takes from its waiting requests.
                outcome, wait = self._try(lane, lane.waiting[0])
                with self._changed:
                    if outcome is not None:
                        lane.waiting.popleft()
                        lane.failed = 0
                        self._done.append(outcome)
                        self._changed.notify_all()
                    if lane.waiting:
                        self._enter(lane, self._time.now() + wait)
        except BaseException as error:  # noqa: BLE001 - raised where the outcomes are taken
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _next(self) -> _Lane | None:
        """A lane whose time has come, or None at the end."""
        with self._changed:
            while not self._stopped:
                if not self._due:
                    self._changed.wait()
                    continue
                early = self._due[0][0] - self._time.now()
                if early <= 0:
                    return heapq.heappop(self._due)[2]
                self._time.wait(self._changed, early)
        return None

    def _try(self, lane: _Lane, request: Request) -> tuple[Outcome | None, float]:
        """One attempt: the outcome of the request, or how long to wait before another."""
        if lane.ended is not None:
            return Outcome(request, 0, None, lane.ended), 0
        terms, now = self._terms, self._time.now()
        try:
            target = parse(lane.url)
        except RefusedError as error:
            return self._end(lane, request, None, str(error)), 0
        host = f"{target.host}:{target.port}"
        own = host, lane.subscriber
        if self._unreachable[host] >= HOST_FAILURES:
            reason = f"{host} was given up on: {HOST_FAILURES} endpoints in a row got no connection"
            return self._end(lane, request, None, reason, gave_up=True), 0
        if self._failures[own] >= HOST_FAILURES:
            reason = f"{host} was given up on: {HOST_FAILURES} endpoints in a row failed there"
            return self._end(lane, request, None, reason, gave_up=True), 0
        left = terms.within if lane.until is None else lane.until - now
        if left <= 0:
            reason = f"the endpoint took more than {terms.within:g} s of this batch"
            return self._end(lane, request, None, reason, gave_up=True), 0
        if lane.until is None:
            lane.until = now + left
        lane.failed += 1
        status, asked = None, 0.0
        was_connected, lane.connected = lane.connected, True
        try:
            status, asked = self._post(target, request, min(terms.timeout, left))
        except RefusedError as error:
            return self._end(lane, request, None, str(error)), 0
        except ssl.SSLCertVerificationError as error:
            return self._end(lane, request, None, f"certificate: {error.verify_message}"), 0
        except UnreachableError as error:
            reason = f"no answer: {_why(error.__cause__)}"
            lane.connected = was_connected and left < min(terms.timeout, terms.within)
        except (OSError, HTTPException, ValueError) as error:
            reason = f"no answer: {_why(error)}"
        else:
            if status // 100 != 5 and status not in _RETRIED:
                with self._changed:
                    self._unreachable[host] = self._failures[own] = 0
                return Outcome(request, lane.failed, status, _refusal(status)), 0
            reason = f"answered {status}"
        most = min(terms.longest_wait, terms.first_wait * 2 ** (lane.failed - 1))
        wait = max(asked, self._time.jitter(most))
        if lane.failed >= lane.attempts or self._time.now() + wait >= lane.until:
            with self._changed:
                self._unreachable[host] = 0 if lane.connected else self._unreachable[host] + 1
                self._failures[own] += 1
            return self._end(lane, request, status, reason, gave_up=True), 0
        return None, wait

    def _end(
        self,
        lane: _Lane,
        request: Request,
        status: int | None,
        reason: str,
        *,
        gave_up: bool = False,
    ) -> Outcome:
        """Give up on a request, and on those that wait behind it."""
        lane.ended = (
            f"not tried, because an earlier request failed: {reason}" if gave_up else reason
        )
        untried = gave_up and lane.until is None
        return Outcome(request, lane.failed, status, reason, gave_up, untried)


def _size(request: Request) -> int:
    return len(request.body) + _REQUEST_BYTES


def _refusal(status: int) -> str | None:
    """Why a request with this answer counts as not delivered, if it does."""
    if status // 100 == 2:
        return None
    return f"answered {status}" + (": redirects are not followed" if status // 100 == 3 else "")


def _why(error: BaseException | None) -> str:
    """An error in our own words, because a stranger may have chosen those of the message."""
    if isinstance(error, TimeoutError):
        return "out of time"
    if isinstance(error, ssl.SSLError) and error.reason:
        return f"TLS, {error.reason}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
