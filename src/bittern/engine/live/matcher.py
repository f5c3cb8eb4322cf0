"""Live changes: subscribe, unsubscribe and replace while other threads match.

``Layers`` (``engine/live/layers.py``) holds the subscriptions and hands out immutable states;
matching takes one and works on it without a lock. Cost: that of ``Matcher`` for the snapshot and
for each delta, of which there are few.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from typing import Any

from bittern.engine.answers import Remembered, answers_from
from bittern.engine.index import Index
from bittern.engine.live.layers import Layers
from bittern.engine.matcher import StateMatcher
from bittern.engine.unanswered import REMEDY, tell_unanswered
from bittern.errors import OptionError
from bittern.model.matches import Matches

#: While a match is under way, a writer pauses after so many changes.
CHANGES_IN_A_ROW = 24


class LiveMatcher(Layers):
    """A matcher whose subscriptions change while it matches. Threads may share one.

    A subscription counts from the next ``match`` call on after ``subscribe`` returns; a call sees
    one consistent state from beginning to end. Whatever is raised in the middle of a change, all of
    it is there or nothing.

    A forked child goes on with a copy of what was subscribed, without its parent's history.

    >>> with LiveMatcher() as live:
    ...     live.subscribe("s1", "price < 10")
    ...     live.match([{"price": 5}]).to_pylist()
    [['s1']]
    """

    def __init__(
        self,
        index: Index | None = None,
        version: int = 0,
        *,
        history: Remembered | str | os.PathLike[str] | None = None,
    ) -> None:
        """Begin with an index; ``history`` are documents seen before, or the folder they are in.

        Without one EXISTS and FORALL are refused; where the index has some, they match nothing.
        """
        super().__init__(index, version, without_history=REMEDY if history is None else "")
        if history is None and index is not None:
            tell_unanswered(index)
        #: What answers quantified predicates; None without a history.
        self.joins = None if history is None else answers_from(history)
        self._process = os.getpid()
        self._counting = threading.Lock()
        self._matching = 0  # calls of match that are under way
        self._changes = 0
        #: Totals of the last call of ``match``: events, candidates, matches, rejects, mistyped.
        self.last_statistics: dict[str, int] = {}

    def subscribe(self, id_: str | int, expression: str, weight: float | None = None) -> None:
        """Add a subscription; ``SubscriptionError`` if it is bad or the id is taken."""
        super().subscribe(id_, expression, weight)
        self._step_aside()

    def unsubscribe(self, id_: str | int) -> None:
        """Remove a subscription; ``UnknownSubscriptionError`` if there is none with this id."""
        super().unsubscribe(id_)
        self._step_aside()

    def replace(self, id_: str | int, expression: str, weight: float | None = None) -> None:
        """Give a subscription another expression, in one step: no match sees neither or both.

        It keeps its weight, unless another one is given.
        """
        super().replace(id_, expression, weight)
        self._step_aside()

    def _step_aside(self) -> None:
        """Let matching threads have the interpreter now and then.

        A thread that changes subscriptions without a pause holds the interpreter for 5 ms at a
        time, and a batch asks for it some fifty times. A tenth of a millisecond's sleep every few
        changes costs the writer little and saves the reader most of its waiting.
        """
        self._changes += 1
        if self._matching and self._changes % CHANGES_IN_A_ROW == 0:
            time.sleep(1e-4)

    def match(
        self,
        events: Any,
        *,
        limit: int | None = None,
        json: str | Sequence[str] = (),
        remember: bool = True,
        at_once: bool = False,
    ) -> Matches:
        """Which subscriptions does each event satisfy now? As ``Matcher.match``.

        With a history each event is compared with the documents before it, those of the same call
        included unless they come ``at_once``, and then becomes one, unless ``remember`` is False.
        Such calls wait for each other: answers depend on the order of arrival.
        """
        if self.joins is not None and self._process != os.getpid():
            raise OptionError(
                "the history of this matcher is the parent process's: make a LiveMatcher with a "
                "history of its own in this one"
            )
        matcher = StateMatcher(self.seal(), self.joins)
        with self._counting:
            self._matching += 1
        try:
            with contextlib.nullcontext() if self.joins is None else self.joins.history.lock:
                found = matcher.match(
                    events, limit=limit, json=json, remember=remember, at_once=at_once
                )
        finally:
            with self._counting:  # a lock of its own: a reader that is done waits for nobody
                self._matching -= 1
        self.last_statistics, self.sample = matcher.last_statistics, matcher.last_block
        return found

    def close(self) -> None:
        """Stop what goes on in the background, and let go of the history."""
        try:
            # A forked child's end is not its parent's.
            if self.joins is not None and self._process == os.getpid():
                self.joins.close()
        finally:
            super().close()

    def _after_fork(self) -> None:
        super()._after_fork()
        self._counting, self._matching = threading.Lock(), 0
