"""Publishing: events are logged, matched against the version of that moment, and acknowledged.

Requests that come while a turn is under way wait, and go together in the next one: one transaction
and one batch for all of them, so that a commit's wait for the disk is shared::

    requests   a ─ b ─ c ────── d ─ e ─ f
    turns      [a]     [b c]      [d e f]       each: lock, look at the catalog, match, log, commit

The journal's lock is held from before the catalog's version is read until all is committed. So an
event's matches are those of the version that it is logged with, numbers and versions ascend
together, and every process has the same order. Nothing is acknowledged before its events, their
matches and their letters are on disk; whatever is killed, they are there together or not at all.

A request with a key (``Idempotency-Key``) may be repeated: the answer comes again, and nothing is
published twice. An event that cannot be read is not logged; the answer says which, and why.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bittern.catalog.journal.journal import LoggedEvent, Turn
from bittern.model.matches import Matches
from bittern.service.http.problems import Problem

if TYPE_CHECKING:
    from bittern.service.http.state import ServiceState
    from bittern.service.http.tenants import Tenant

#: Events of a turn, unless a single request has more.
_IN_A_TURN = 20_000
_REJECTS_TOLD = 1_000
#: Requests that may wait for a turn.
_WAITING = 10_000


@dataclass
class Publication:
    """One request: its events as JSON texts, and the answer to come."""

    events: list[str]
    key: str | None
    answer: asyncio.Future[dict[str, Any]]
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        whole = hashlib.sha256()
        for event in self.events if self.key is not None else ():
            whole.update(event.encode("utf-8", "surrogatepass") + b"\n")
        self.digest = whole.hexdigest()


class Publisher:
    """Publishes the events of one tenant, a group at a time."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self._waiting: list[Publication] = []
        self._turns: asyncio.Task[None] | None = None

    async def publish(
        self, state: ServiceState, events: list[str], key: str | None
    ) -> dict[str, Any]:
        """Publish events in order; returns when they are on disk, with what they matched."""
        if len(self._waiting) >= _WAITING:
            raise Problem(
                503, "busy", "too many requests wait: try again", headers={"Retry-After": "1"}
            )
        loop = asyncio.get_running_loop()
        asked = Publication(events, key, loop.create_future())
        self._waiting.append(asked)
        if self._turns is None:
            self._turns = loop.create_task(self._take_turns(state))
        # A caller that goes away takes nothing back: the turn may be under way.
        return await asyncio.shield(asked.answer)

    async def _take_turns(self, state: ServiceState) -> None:
        try:
            while self._waiting:
                group: list[Publication] = []
                size = 0
                while self._waiting and (not group or size < _IN_A_TURN):
                    group.append(self._waiting.pop(0))
                    size += len(group[-1].events)
                await self._publish(state, group)
                self._tenant.tail.wake()
        finally:
            self._turns = None

    async def _publish(self, state: ServiceState, group: list[Publication]) -> None:
        try:
            answers = await state.run(self._turn, group)
        except Exception as error:  # noqa: BLE001  whatever it is, each caller is told
            if len(group) > 1:  # it may be the fault of one alone
                for asked in group:
                    await self._publish(state, [asked])
                return
            if not group[0].answer.done():
                group[0].answer.set_exception(error)
                group[0].answer.exception()  # its caller may have gone
            return
        for asked, answer in zip(group, answers, strict=True):
            state.metrics.published.inc(answer["accepted"])
            state.metrics.matches.inc(answer["matches"])
            if not asked.answer.done():
                asked.answer.set_result(answer)

    def _turn(self, group: list[Publication]) -> list[dict[str, Any]]:
        tenant = self._tenant
        try:
            with tenant.writing, tenant.journal.turn() as turn, tenant.followed.lock:
                tenant.advance(turn.look())
                tenant.remember(turn.last)
                answers = [self._known(turn, asked) for asked in group]
                new = [asked for asked, answer in zip(group, answers, strict=True) if not answer]
                made = iter(self._log(turn, new))
                told = [answer or next(made) for answer in answers]
        except BaseException:
            tenant.lost_turn()
            raise
        return told

    @staticmethod
    def _known(turn: Turn, asked: Publication) -> dict[str, Any] | None:
        """The answer that was given to this key before."""
        found = None if asked.key is None else turn.answer_to(asked.key)
        if found is None:
            return None
        digest, answer = found
        if digest != asked.digest:
            return {
                "accepted": 0,
                "matches": 0,
                "problem": "this key was used for other events: use a key only for repetitions",
            }
        told: dict[str, Any] = json.loads(answer)
        return {**told, "repeated": True}

    def _log(self, turn: Turn, asked: list[Publication]) -> list[dict[str, Any]]:
        """Match and log the events of new publications; returns their answers."""
        tenant = self._tenant
        # Of two with the same key in one group, the second is answered in its next turn.
        texts = [text for each in asked for text in each.events]
        found = tenant.live.match(texts) if texts else None
        entries = self._entries(texts, found, turn.version)
        tenant.has_remembered(turn.last + sum(entry is not None for entry in entries))
        rejects = dict(found.rejects) if found is not None else {}
        answers, place = [], 0
        for each in asked:
            own = entries[place : place + len(each.events)]
            good = [entry for entry in own if entry is not None]
            first = turn.log(good)
            wrong = [
                {"event": row, "error": rejects[place + row]}
                for row, entry in enumerate(own)
                if entry is None
            ]
            answer = {
                "version": turn.version,
                "accepted": len(good),
                "first": first if good else None,
                "last": turn.last if good else None,
                "matches": sum(len(ids) for entry in good for _, ids in entry.matched),
                "rejected": len(wrong),
                "rejects": wrong[:_REJECTS_TOLD],
            }
            if each.key is not None:
                turn.answer(each.key, each.digest, json.dumps(answer))
            answers.append(answer)
            place += len(each.events)
        return answers

    def _entries(
        self, texts: list[str], found: Matches | None, version: int
    ) -> list[LoggedEvent | None]:
        """What is logged of each event; None if it cannot be read."""
        if found is None:
            return []
        ids_of = [[str(id_) for id_ in ids] for ids in found.to_pylist()]
        asked = dict.fromkeys(id_ for ids in ids_of for id_ in ids)
        known = self._tenant.recipients(asked, version)
        wrong = {row for row, _ in found.rejects}
        entries: list[LoggedEvent | None] = []
        for row, (text, ids) in enumerate(zip(texts, ids_of, strict=True)):
            if row in wrong:
                entries.append(None)
                continue
            matched: dict[str, list[str]] = defaultdict(list)
            letters: dict[tuple[str, str], list[str]] = defaultdict(list)
            for id_ in ids:
                subscriber, url = known[id_]
                matched[subscriber].append(id_)
                if url is not None:
                    letters[url, subscriber].append(id_)
            posted = [(url, who, own) for (url, who), own in letters.items()]
            entries.append(LoggedEvent(text, list(matched.items()), posted))
        return entries
