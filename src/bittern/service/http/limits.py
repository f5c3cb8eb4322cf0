"""How much and how fast: for each token a bucket of requests, and sizes.

A bucket fills with ``rate`` requests a second and holds as many; each process has its own. What a
token may do is its own limit, or else the service's.
"""

from __future__ import annotations

import math
import time
from typing import Any

from bittern.service.http.configuration import ServiceSettings
from bittern.service.http.problems import Problem

#: RequestBuckets of this many tokens are kept; then all begin anew.
_BUCKETS = 100_000


class RequestBuckets:
    """How many requests each token may still make now."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}  # by token: requests, and when

    def take(self, token: str, rate: int) -> None:
        """Take one request out of a token's bucket; a problem if there is none."""
        now = time.monotonic()
        if len(self._left) > _BUCKETS:
            self._left.clear()
        left, then = self._left.get(token, (float(rate), now))
        left = min(float(rate), left + (now - then) * rate)
        if left < 1:
            wait = max(1, math.ceil((1 - left) / rate))
            raise Problem(
                429,
                "too-many-requests",
                f"this token may make {rate:,} requests a second: wait, then try again",
                headers={"Retry-After": str(wait)},
            )
        self._left[token] = left - 1, now


def limit_of(name: str, own: dict[str, int], settings: ServiceSettings) -> int | None:
    """A token's own limit, or the service's; None: there is none."""
    found: Any = own.get(name, getattr(settings, name))
    return None if found is None else int(found)
