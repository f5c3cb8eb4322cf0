"""A process that dies at a point of its own choosing, for tests of what it leaves behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any


def die_before(last: int, operations: Sequence[str]) -> None:
    """From now on, kill this process just before the ``last``-th of these functions of ``os``."""
    seen = 0

    def counting(real: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return call

    for name in operations:
        setattr(os, name, counting(getattr(os, name)))
