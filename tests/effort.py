"""How many examples random tests try: one profile for all of them, chosen in ``conftest.py``.

Most tests take the profile as it is. ``examples`` says how many more or fewer a test needs than
others do: more where one takes microseconds, fewer where one starts with a file or an index.
"""

from __future__ import annotations

import random

from hypothesis import settings


def chosen_seed() -> int:
    """A seed for draws without Hypothesis, printed; always the same where the profile says so."""
    seed = 1 if settings.default.derandomize else random.randrange(1 << 32)
    print("seed", seed)
    return seed


def rounds() -> int:
    """How often a test with draws of its own goes: once, and 20 times where the profile is long."""
    return max(1, settings.default.max_examples // 100)


def examples(factor: float = 1, *, steps: int | None = None) -> settings:
    """Settings with ``factor`` times as many examples as the profile, of ``steps`` steps each."""
    count = max(1, round(factor * settings.default.max_examples))
    if steps is None:
        return settings(max_examples=count)
    return settings(max_examples=count, stateful_step_count=steps)
