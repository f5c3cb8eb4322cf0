"""Changes of what is subscribed, each made as a whole or not at all.

Two locks keep writers and readers out of each other's way::

    writing   one writer at a time, from reading the text to folding deltas
    lock      a change is put in place, or changes are sealed: microseconds, a few milliseconds

A writer holds the first one all the time, and the second one only to put what it has made in its
place. A match takes only the second one, to seal what has been changed since the last seal. That is
never much, as a writer seals when ``SEAL_AFTER`` changes have piled up; only ``apply`` puts any
number of changes in place before they are sealed. With all sealed nothing but a writer can change
what is held: so deltas are folded, and many rows indexed, without the lock.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bittern.engine.asked import known_schema
from bittern.engine.given import GivenSubscriptions, given_ids, given_rows
from bittern.engine.index import Index
from bittern.engine.live.delta import (
    Held,
    IdState,
    Row,
    State,
    diminished,
    extended,
    first_to_fold,
    folded,
    sealed,
)
from bittern.engine.live.reading import RowReader
from bittern.errors import BadSubscription, SubscriptionError, UnknownSubscriptionError, brief
from bittern.model.ids import id_problem, normal_id
from bittern.options import one_of
from bittern.terms.unknown import SPARK

#: So many changes are sealed by who makes them; fewer wait for the next match.
SEAL_AFTER = 400

#: Somewhere in a parameter that names a set.
_IN_SET = " IN SET "
_NOWHERE = IdState(is_subscribed=False, row=None, segment=-1, position=-1)


class LiveChanges:
    """Subscriptions that change. Threads may share one."""

    def __init__(
        self,
        index: Index,
        version: int,
        *,
        without_history: str,
        functions: str,
        sets: Mapping[str, Any] | None,
        schema: Any,
        unknown: str,
    ) -> None:
        """Start with an index; ``Layers`` tells what the others mean."""
        one_of("unknown", unknown, ("warn", "raise", "ignore"))
        self._reading = RowReader(
            None if schema is None else known_schema(schema, functions),
            unknown,
            without_history,
            any_function=functions == SPARK,
        )
        self._checks_sets = sets is not None
        #: The sets that subscriptions name, as they are now.
        self.named_sets: Mapping[str, Any] = sets or {}
        # Of two that are held at a time, a writer's comes first. Matching takes only the other.
        self._writing = threading.RLock()
        self._lock = threading.RLock()
        self._held = Held(State.over(index), version, version, {}, len(index))

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
        with self._writing:
            row = self._reading.read(id_, expression, weight)
            with self._lock:
                self._check_sets(row)
                found = self._find(id_)
                if found.is_subscribed:
                    raise SubscriptionError([_taken(id_)])
                self._held.put(row, found)
            self._tidy()

    def subscribe_many(self, subscriptions: GivenSubscriptions) -> None:
        """Add subscriptions in one step: all of them, or none if one is bad or its id is taken.

        They come in any form that ``Index.build`` takes. ``SubscriptionError`` lists all that are
        bad, each with its id and position. O(total text); nobody waits for the reading.
        """
        _, given = given_rows(subscriptions)
        with self._writing:
            rows, bad = self._reading.read_many(given, self._step_aside)
            ids = [row.id for _, row in rows]
            if len(rows) > SEAL_AFTER:  # with all sealed, only writers can change what is held
                taken = {id_ for own in self.seal().find_many(ids).values() for id_ in own}
            else:
                with self._lock:
                    taken = {id_ for id_ in ids if self._find(id_).is_subscribed}
            bad += [(n, _taken(row.id)) for n, row in rows if row.id in taken]
            if bad:
                raise SubscriptionError([each for _, each in sorted(bad, key=_place)])
            self._put_many([row for _, row in rows])
            self._tidy()

    def _put_many(self, rows: list[Row]) -> None:
        """Subscribe rows of new ids in one step."""
        naming = [row for row in rows if _names_set(row)] if self._checks_sets else []
        if len(rows) > SEAL_AFTER:
            held = extended(self._held, rows)
            with self._lock:
                self._check_all_sets(naming)
                self._held = held
            return
        with self._lock:
            self._check_all_sets(naming)
            held = self._held.copy()
            for row in rows:
                held.put(row, held.find(row.id))
            self._held = held

    def unsubscribe(self, id_: str | int) -> None:
        """Remove a subscription; ``UnknownSubscriptionError`` if there is none with this id."""
        id_ = normal_id(id_)
        with self._writing:
            with self._lock:
                self._held.drop(id_, self._known(id_))
            self._tidy()

    def unsubscribe_many(self, ids: Any) -> None:
        """Remove subscriptions in one step: all of them, or none if one is not there.

        ``ids`` is an iterable, or a column of Arrow or pandas. ``UnknownSubscriptionError`` names
        the first of those that are not there, or stand there twice. O(ids).
        """
        wanted = [normal_id(id_) for id_ in given_ids(ids)]
        with self._writing:
            good = [id_ for id_ in wanted if id_problem(id_) is None]
            counts = Counter(good)
            if len(counts) > SEAL_AFTER:
                found = self.seal().find_many(list(counts))
                there = {id_ for own in found.values() for id_ in own}
                self._check_all_known(wanted, there, counts)
                dying = {n: list(own.values()) for n, own in found.items() if own}
                held = diminished(self._held, dying, len(wanted))
                with self._lock:
                    self._held = held
            else:
                with self._lock:
                    there = {id_ for id_ in counts if self._find(id_).is_subscribed}
                    self._check_all_known(wanted, there, counts)
                    held = self._held.copy()
                    for id_ in wanted:
                        held.drop(id_, held.find(id_))
                    self._held = held
            self._tidy()

    def _check_all_known(
        self, wanted: list[Any], there: set[str | int], counts: Mapping[str | int, int]
    ) -> None:
        """Raise unless each of the wanted ids is there, and wanted once."""
        wrong = [id_ for id_ in wanted if id_problem(id_) is not None or id_ not in there]
        if wrong:
            others = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            raise UnknownSubscriptionError(f"no subscription has the id {brief(wrong[0])}{others}")
        twice = [id_ for id_, times in counts.items() if times > 1]
        if twice:
            raise UnknownSubscriptionError(f"the id {brief(twice[0])} is given twice")

    def replace(self, id_: str | int, expression: str, weight: float | None = None) -> None:
        """Give a subscription another expression in one step: each match sees exactly one of them.

        It keeps its weight unless another one is given.
        """
        id_ = normal_id(id_)
        with self._writing:
            row = self._reading.read(id_, expression, weight)
            with self._lock:
                self._check_sets(row)
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
        with self._writing:
            gone = list(map(normal_id, removed))
            rows: list[tuple[str | int, Row | None]] = []
            for given, expression, weight in put:
                id_ = normal_id(given)
                try:
                    rows.append((id_, self._reading.read(id_, expression, weight)))
                except SubscriptionError as wrong:
                    bad += wrong.bad
                    rows.append((id_, None))
            with self._lock:
                held = self._held.copy()
                for id_ in gone:
                    found = _find(held, id_)
                    if found.is_subscribed:
                        held.drop(id_, found)
                for id_, row in rows:
                    found = _find(held, id_)
                    wrong_sets = [] if row is None else self._wrong_sets(row)
                    bad += wrong_sets
                    if row is not None and not wrong_sets:
                        held.put(row, found)
                    elif found.is_subscribed:
                        held.drop(id_, found)
                held.version = version
                self._held = held
            self._tidy()
        return bad

    def _step_aside(self) -> None:
        """Let others have the interpreter now and then."""

    def _check_sets(self, row: Row) -> None:
        """Refuse a subscription that names a set which is not there."""
        if self._checks_sets and _names_set(row):
            from bittern.engine.sets.named import check_subscription  # noqa: PLC0415  only then

            check_subscription(row.id, row.text, row.parameters, self.named_sets)

    def _check_all_sets(self, rows: Iterable[Row]) -> None:
        bad = [each for row in rows for each in self._wrong_sets(row)]
        if bad:
            raise SubscriptionError(bad)

    def _wrong_sets(self, row: Row) -> list[BadSubscription]:
        """What is wrong with a subscription because a set is not there."""
        try:
            self._check_sets(row)
        except SubscriptionError as wrong:
            return wrong.bad
        return []

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
        """After a change: index what has piled up, so that no match has to.

        The change is made: what fails here is left to the next match, which says so.
        """
        if len(self._held.changes) > SEAL_AFTER or self._held.is_full:
            with contextlib.suppress(Exception):
                self._fold()

    def _fold(self) -> None:
        """Seal, and make one delta of several where there are too many.

        Matching goes on meanwhile: with all sealed, only writers can change what is held.
        """
        first = first_to_fold(self.seal())
        if first:
            held = folded(self._held, first)
            with self._lock:
                self._held = held

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
        """Make every change so far visible; returns the state to match on. O(changes).

        These are few: a writer seals when ``SEAL_AFTER`` have piled up.
        """
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


def _taken(id_: str | int) -> BadSubscription:
    return BadSubscription(id_, 0, "this id is subscribed already; use replace")


def _place(bad: tuple[int, BadSubscription]) -> int:
    return bad[0]


def _names_set(row: Row) -> bool:
    return _IN_SET in "".join(row.parameters)


def _find(held: Held, id_: Any) -> IdState:
    return held.find(id_) if id_problem(id_) is None else _NOWHERE
