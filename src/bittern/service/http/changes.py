"""A change: written down, made in a thread, matched from then on, and answered.

::

    audit: begun ─ the catalog commits ─ this process matches the version ─ audit: done ─ answer

So an acknowledged change counts in every match of this process that begins after its answer, and
in those of other processes as soon as they look (``following.py``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from bittern.errors import UnknownSubscriptionError
from bittern.service.http.access import Caller
from bittern.service.http.problems import Problem, problem_of

_Made = TypeVar("_Made")


async def changed(
    caller: Caller,
    action: str,
    target: str,
    make: Callable[[], tuple[int | None, _Made]],
    *,
    is_long: bool = False,
) -> _Made:
    """Make a change, which returns the catalog's version after it, and something more.

    Others may write while a long one is prepared.
    """
    tenant = caller.tenant

    def work() -> _Made:
        number = tenant.audit.begin(caller.name, action, target)
        try:
            with contextlib.nullcontext() if is_long else tenant.writing:
                version, made = make()
        except Exception as error:
            found = problem_of(error)
            outcome = (
                f"failed: {type(error).__name__}" if found is None else f"refused: {found.kind}"
            )
            tenant.audit.end(number, outcome, None)
            raise
        if version is not None:
            tenant.advance(version)
        tenant.audit.end(number, "done", version)
        return made

    made = await caller.state.run(work)
    caller.state.metrics.changes.labels(action).inc()
    return made


def check_room(caller: Caller, more: int) -> None:
    """A problem unless the token may have so many subscriptions more."""
    limit = caller.limit("subscriptions")
    if limit is not None and caller.tenant.catalog.count(all=True) + more > limit:
        raise Problem(
            403,
            "too-many-subscriptions",
            f"{limit:,} subscriptions are allowed here: remove some, or ask for more",
        )


def check_room_for(caller: Caller, id_: Any) -> None:
    """A problem if a subscription is not there yet, and the token may have no more."""
    try:
        caller.tenant.catalog.get(id_)
    except UnknownSubscriptionError:
        check_room(caller, 1)
