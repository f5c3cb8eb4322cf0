"""The plan without an index, as the paper gives it, compiled: the floor, and the judge.

::

    for each profile                        N
        for each document                   D, newest first
            if document matches the profile     c conjuncts, ends with the first that fails
                report the profile
                break

``FORALL`` breaks at the first document that fails instead. As it stands there, the conjuncts on the
event alone are asked again for every document; with ``constants_once`` they are asked before the
loop over documents, which is the best that can be done without an index.

It shares nothing with the engine: values are floats (``world.Records``), NaN compares with nothing.
It also judges: pairs that the engine reported, and pairs that it did not although the constants
on the event hold. O(pairs x documents).
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.draw import Draw, Ints
from benchmarks.history.world import ATTRIBUTES, PLACE, Family, Records, Subscriptions
from benchmarks.run import DisagreementError
from bittern.jit import b1, f8r, i8, i8r, inline, kernel, u1w, void

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
#: Of a family, in this order: number of constants on the event, on the document, of joins,
#: universal, last, per (-1: none), then the constants (attribute, operator), then the joins.
HEAD = 6


class _Plan(NamedTuple):
    """Families as numbers, one row after the other, and where each begins."""

    rows: Ints
    starts: Ints


def _plan(families: tuple[Family, ...]) -> _Plan:
    """Families in the form that the loops read."""
    rows: list[int] = []
    starts = []
    for family in families:
        starts.append(len(rows))
        rows += [len(family.event), len(family.document), len(family.joins)]
        rows += [family.universal, family.last, PLACE[family.per] if family.per else -1]
        for ask in family.asks:
            rows += [PLACE[ask.attribute], OPERATORS.index(ask.operator)]
        for one, operator, other in family.joins:
            rows += [PLACE[one], OPERATORS.index(operator), PLACE[other]]
    return _Plan(np.array(rows, dtype=np.int64), np.array(starts, dtype=np.int64))


@inline
def _compare(left: float, operator: int, right: float) -> bool:
    if operator == 0:
        return left == right
    if operator == 1:  # NaN differs from everything, and must not
        return left < right or left > right
    if operator == 2:
        return left < right
    if operator == 3:
        return left <= right
    if operator == 4:
        return left > right
    return left >= right


@inline
def _constants_hold(
    rows: Any, start: int, values: Any, first: int, events: Any, n: int, event: int
) -> bool:
    """Do the predicates on the event alone hold? Ends with the first that does not."""
    for k in range(rows[start]):
        at = start + HEAD + 2 * k
        if not _compare(events[rows[at] * n + event], rows[at + 1], values[first + k]):
            return False
    return True


@kernel(void, i8r, i8r, i8r, f8r, i8, f8r, i8, u1w)
def _constants(
    rows: Any, starts: Any, family: Any, values: Any, width: int, events: Any, n: int, out: Any
) -> None:
    """``out[s * n + e]``: do the predicates of subscription s on event e alone hold?"""
    for s in range(len(family)):
        for e in range(n):
            held = _constants_hold(rows, starts[family[s]], values, s * width, events, n, e)
            out[s * n + e] = np.uint8(held)


@kernel(void, i8r, i8r, i8r, f8r, i8, f8r, i8, f8r, i8, i8r, i8r, i8r, b1, u1w)
def _match(
    rows: Any,
    starts: Any,
    family: Any,
    values: Any,
    width: int,
    events: Any,
    n_events: int,
    documents: Any,
    n_documents: int,
    visible: Any,
    pair_subscriptions: Any,
    pair_events: Any,
    constants_once: bool,  # noqa: FBT001
    out: Any,
) -> None:
    """``out[i]``: does event ``pair_events[i]`` satisfy subscription ``pair_subscriptions[i]``?"""
    for i in range(len(pair_events)):
        s, e = pair_subscriptions[i], pair_events[i]
        start, first = starts[family[s]], s * width
        n_event, n_document, n_joins = rows[start], rows[start + 1], rows[start + 2]
        universal, last, per = rows[start + 3] == 1, rows[start + 4], rows[start + 5]
        asks = start + HEAD
        joins = asks + 2 * (n_event + n_document)
        held = _constants_hold(rows, start, values, first, events, n_events, e)
        if constants_once and not held:
            out[i] = 0
            continue
        decided = False  # EXISTS: by a document that satisfies; FORALL: by one that does not
        seen = 0
        for d in range(visible[e] - 1, -1, -1):
            if per >= 0 and documents[per * n_documents + d] != events[per * n_events + e]:
                continue
            satisfied = constants_once or _constants_hold(
                rows, start, values, first, events, n_events, e
            )
            for k in range(n_joins):
                if not satisfied:
                    break
                at = joins + 3 * k
                mine = documents[rows[at] * n_documents + d]
                satisfied = _compare(mine, rows[at + 1], events[rows[at + 2] * n_events + e])
            for k in range(n_event, n_event + n_document):
                if not satisfied:
                    break
                at = asks + 2 * k
                mine = documents[rows[at] * n_documents + d]
                satisfied = _compare(mine, rows[at + 1], values[first + k])
            if satisfied != universal:
                decided = True
                break
            seen += 1
            if seen == last:
                break
        out[i] = np.uint8(held and decided != universal)


class Naive:
    """Subscriptions, events and documents as the loops take them."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        documents: Records,
        events: Records,
        *,
        remembered: bool = False,
    ) -> None:
        """``remembered``: each event has the events before it among its documents."""
        past, n = len(documents), len(events)
        if remembered:
            documents = documents.then(events)
        self.visible = past + (np.arange(n) if remembered else np.zeros(n, dtype=np.int64))
        self.n_subscriptions, self.n_events = len(subscriptions), n
        plan = _plan(subscriptions.families)
        width = subscriptions.values.shape[1]
        self._asked = (*plan, subscriptions.family, subscriptions.values.ravel(), width)
        self._events = (events.codes.ravel(), n)
        self._documents = (documents.codes.ravel(), len(documents))

    def match(self, subscriptions: Ints, events: Ints, *, constants_once: bool = True) -> Ints:
        """Which of these pairs match? O(pairs x documents)."""
        out = np.zeros(len(events), dtype=np.uint8)
        _match(
            *self._asked,
            *self._events,
            *self._documents,
            self.visible,
            subscriptions,
            events,
            constants_once,
            out,
        )
        return np.flatnonzero(out)

    def candidates(self, events: Ints) -> tuple[Ints, Ints]:
        """Pairs of a subscription and one of these events whose constants on the event hold."""
        few = np.ascontiguousarray(self._events[0].reshape(len(ATTRIBUTES), -1)[:, events])
        out = np.zeros(self.n_subscriptions * len(events), dtype=np.uint8)
        _constants(*self._asked, few.ravel(), len(events), out)
        found = np.flatnonzero(out)
        return found // len(events), events[found % len(events)]

    def seconds_per_event(self, subscriptions: Ints, n: int, *, constants_once: bool) -> float:
        """Time these subscriptions against the first ``n`` events, and conclude on all of them.

        What a subscription costs does not depend on how many there are, so the seconds of a part
        are multiplied by how many times as many there are.
        """
        pairs = np.repeat(subscriptions, n), np.tile(np.arange(n), len(subscriptions))
        self.match(pairs[0][:1], pairs[1][:1], constants_once=constants_once)  # compiles
        began = perf_counter()
        self.match(*pairs, constants_once=constants_once)
        return (perf_counter() - began) / n * (self.n_subscriptions / len(subscriptions))

    def judge(self, found: Ints, events: Ints, pairs: int, what: str) -> dict[str, int]:
        """Compare with what was found: ``found[i]`` is (event, subscription).

        Of these events, ``pairs`` of those that were found, and as many of those that were not
        although their constants on the event hold; one that is judged otherwise ends the run.
        """
        draw, own = Draw(11, len(found), pairs), found[np.isin(found[:, 0], events)]
        reported = own[:, 1] * self.n_events + own[:, 0]
        subscriptions, of_events = self.candidates(events)
        others = np.setdiff1d(subscriptions * self.n_events + of_events, reported)
        counts = {"judged": 0, "matching": 0}
        for keys, expected in ((reported, True), (others, False)):
            chosen = keys[np.argsort(draw.raw(len(keys)), kind="stable")[:pairs]]
            holding = len(self.match(chosen // self.n_events, chosen % self.n_events))
            wrong = len(chosen) - holding if expected else holding
            if wrong:
                raise DisagreementError(
                    f"{what}: {wrong} of {len(chosen)} pairs that were "
                    f"{'' if expected else 'not '}reported are judged otherwise"
                )
            counts["judged"] += len(chosen)
            counts["matching"] += holding
        return counts
