"""Live changes: subscribe, unsubscribe and replace while other threads match.

``Layers`` (``engine/live/layers.py``) holds the subscriptions and hands out immutable states. A
match takes one and works on it without a lock. Cost: that of ``Matcher`` for the snapshot and for
each delta, of which there are few.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bittern.engine.answers import SeenBefore, answers_from
from bittern.engine.index import Index
from bittern.engine.live.layers import Layers
from bittern.engine.matcher import StateMatcher, match_one_by_one, match_sides, sets_for
from bittern.engine.unanswered import REMEDY, tell_unanswered
from bittern.errors import OptionError
from bittern.model.matches import Matches
from bittern.terms.spelling import spelling

if TYPE_CHECKING:
    from bittern.engine.live.sets import LiveSets
    from bittern.model.event_schema import EventSchema
    from bittern.model.transitions import Transitions

#: While a match is under way, a writer pauses after so many changes.
CHANGES_IN_A_ROW = 24


class LiveMatcher(Layers):
    """A matcher whose subscriptions change while it matches. Threads may share one.

    A subscription is matched by every ``match`` call that begins after ``subscribe`` has returned.
    A call sees one consistent state from beginning to end. If an exception is raised in the middle
    of a change, either all of the change is made or nothing.

    A forked child continues with a copy of the subscriptions, without its parent's history.

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
        history: SeenBefore | str | os.PathLike[str] | None = None,
        case_sensitive: bool = True,
        sets: Mapping[str, Any] | None = None,
        schema: pa.Schema | EventSchema | None = None,
        unknown: str = "warn",
    ) -> None:
        """Start with an index; ``history`` is a history of documents, or the folder that holds it.

        Without it, new EXISTS and FORALL are refused, and those in the index match nothing.
        ``case_sensitive`` is that of ``Matcher``, and holds for documents too.
        ``sets`` are the sets that subscriptions name, from name to members: they come in place of
        the index's own, and change later through the attribute ``sets``. ``schema`` and
        ``unknown`` are those of ``Index.build``, for what is subscribed from now on.
        """
        index = index if index is not None else Index.build({})
        super().__init__(
            index,
            version,
            without_history=REMEDY if history is None else "",
            sets=sets_for(index, sets),
            schema=schema,
            unknown=unknown,
        )
        if history is None:
            tell_unanswered(index)
        #: What answers quantified predicates; None without a history.
        self.joins = None if history is None else answers_from(history)
        self._case_sensitive = case_sensitive
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
        """Give a subscription another expression in one step: each match sees exactly one of them.

        It keeps its weight unless another one is given.
        """
        super().replace(id_, expression, weight)
        self._step_aside()

    def _step_aside(self) -> None:
        """Give matching threads the interpreter now and then.

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
        """Find the subscriptions that each event satisfies now; see ``Matcher.match``.

        With a history, each event is compared with the documents before it. These include earlier
        events of the same call, unless they come ``at_once``. The event then becomes a document,
        unless ``remember`` is False. Such calls wait for each other: answers depend on the order of
        arrival.
        """
        if self.joins is not None and self._process != os.getpid():
            raise OptionError(
                "the history of this matcher belongs to the parent process: make a LiveMatcher "
                "with its own history in this process"
            )
        state, sets = self.sealed_with_sets()
        if self.joins is None and not json:
            singly = match_one_by_one(state, events, limit, sets)
            if singly is not None:
                found, self.last_statistics = singly
                self.sample = events[:] if type(events) is list else events
                return found
        matcher = StateMatcher(state, self.joins, sets)
        lock = contextlib.nullcontext() if self.joins is None else self.joins.history.lock
        with self._counted(), lock, spelling(case_sensitive=self._case_sensitive):
            found = matcher.match(
                events, limit=limit, json=json, remember=remember, at_once=at_once
            )
        self.last_statistics, self.sample = matcher.last_statistics, matcher.last_block
        return found

    def match_changes(
        self, before: Any, after: Any, *, json: str | Sequence[str] = ()
    ) -> Transitions:
        """Find the subscriptions that rows enter, leave and stay in; see ``Matcher``.

        Both sides are matched with one consistent state. A history is refused: it has events, and
        these are not.
        """
        if self.joins is not None:
            raise OptionError(
                "changes are not compared with a history: make a LiveMatcher without one for them"
            )
        state, sets = self.sealed_with_sets()
        with self._counted(), spelling(case_sensitive=self._case_sensitive):
            found, self.last_statistics = match_sides(state, before, after, json, sets)
        return found

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """While a batch is matched: writers step aside for it."""
        with self._counting:
            self._matching += 1
        try:
            yield
        finally:
            with self._counting:  # a lock of its own, so that a reader that is done does not wait
                self._matching -= 1

    @property
    def sets(self) -> LiveSets:
        """The sets that subscriptions name: ``live.sets["vips"] = [7, 9]`` (``live/sets.py``).

        A change counts in every match that begins after it, and compiles no subscription.
        """
        from bittern.engine.live.sets import LiveSets  # noqa: PLC0415  only for sets

        return LiveSets(self)

    def save(self, path: str | os.PathLike[str]) -> str:
        """Compact, then write the snapshot with all sets to ``path``; returns its id."""
        return self.compact().with_sets(self.named_sets).save(Path(path))

    def close(self) -> None:
        """Stop background work, and release the history."""
        try:
            # A forked child's end is not its parent's.
            if self.joins is not None and self._process == os.getpid():
                self.joins.close()
        finally:
            super().close()

    def after_fork(self) -> None:
        """In a forked child, replace locks that threads of the parent may hold."""
        super().after_fork()
        self._counting, self._matching = threading.Lock(), 0
