"""A change: written down, made in a thread, matched from then on, and answered.

::

    audit: begun ─ the catalog commits ─ this process matches the version ─ audit: done ─ answer

So an acknowledged change counts in every match of this process that begins after its answer, and
in those of other processes as soon as they look (``following.py``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from bittern.service.http.access import Caller
from bittern.service.http.problems import Problem, problem_of

_Made = TypeVar("_Made")


async def changed(
    caller: Caller,
    action: str,
    target: str,
    make: Callable[[], tuple[int | None, _Made]],
    more: int = 0,
    *,
    is_long: bool = False,
) -> _Made:
    """Make a change, which returns the catalog's version after it, and something more.

    ``more`` subscriptions may be added by it: a problem if the token may not have as many. Others
    may write while a long one is prepared.
    """
    tenant = caller.tenant

    def work() -> _Made:
        number = tenant.audit.begin(caller.name, action, target)
        try:
            if more:
                _check_room(caller, more)
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


def _check_room(caller: Caller, more: int) -> None:
    limit = caller.limit("subscriptions")
    if limit is not None and caller.tenant.catalog.count(all=True) + more > limit:
        raise Problem(
            403,
            "too-many-subscriptions",
            f"{limit:,} subscriptions are allowed here: remove some, or ask for more",
        )
