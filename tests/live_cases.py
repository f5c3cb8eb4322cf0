"""Subscriptions and events for live matchers, and a compaction that stops half-way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import oracle
from bittern.engine.live import compact as compact_module
from bittern.language.parser import parse
from steady import PATIENCE

TEXTS = (
    *(
        "a = 1",
        "a = 1.0",
        "a > 0 AND b IS NULL",
        "b = 'x'",
        "b LIKE 'x%'",
        "b LIKE '%y'",
        "b LIKE '%x_%'",
    ),
    *(
        "a IN (1, 2, 3) OR b = 'x'",
        "NOT (a = 1 AND b = 'x')",
        "TRUE",
        "FALSE",
        "a IS NULL",
        "c.d = 0.5",
    ),
    *("a > 5 AND a < 3", "b RLIKE '^x+$'", "a BETWEEN 2 AND 4", "c IS NOT NULL AND a != 2"),
)


EVENTS: tuple[dict[str, Any], ...] = (
    {},
    {"a": 1},
    {"a": 2, "b": "x"},
    {"a": 3, "b": "xy"},
    {"a": 1, "b": "xxz", "c": {"d": 0.5}},
    {"b": "y", "c": {}},
)


HOLDS = {text: [oracle.matches(parse(text), event) for event in EVENTS] for text in TEXTS}


class HeldBack:
    """Stands in for the compacting process: does its work here, when it is told to."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.go_on = threading.Event()
        self.returncode, self.stderr = 0, ""

    def run(self, work: Path) -> None:
        self.started.set()
        assert self.go_on.wait(PATIENCE)
        if self.returncode == 0:
            compact_module.main(work)
        compact_module.check_ended(self.returncode, self.stderr)
