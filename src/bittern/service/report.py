"""What the commands say: sentences on standard error, tables on standard output."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from bittern.errors import BadSubscription

SHOWN_BAD = 20
_SHOWN_REJECTS = 10


def say(sentence: str) -> None:
    """Print one sentence to the user of the command."""
    print(f"bittern: {sentence}", file=sys.stderr)


def count(number: int, noun: str) -> str:
    """Return a number and what it counts: 1 match, 2 matches."""
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def list_bad(bad: Sequence[BadSubscription]) -> None:
    """List the first subscriptions that are not valid, and how many more there are."""
    for one in bad[:SHOWN_BAD]:
        message = one.message.replace("\n", "\n    ")
        print(f"  {one.id!r}, position {one.position}: {message}", file=sys.stderr)
    if len(bad) > SHOWN_BAD:
        print(f"  ... and {len(bad) - SHOWN_BAD:,} more", file=sys.stderr)


def takes_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours, and its user wants them (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class RejectReport:
    """Reports the first rejected rows as they come, and counts all of them."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, place: str, reason: str) -> None:
        """Note one rejected row: its place, and why it is not an event."""
        self.number += 1
        if self.number <= _SHOWN_REJECTS:
            say(f"{place} rejected: {reason}")

    def summarise(self) -> None:
        """Report how many were not shown."""
        if self.number > _SHOWN_REJECTS:
            say(f"... and {self.number - _SHOWN_REJECTS:,} more rejected")


def print_table(rows: dict[str, Any], indent: int = 0) -> None:
    """Print names and values in two columns; a nested mapping gets a heading of its own."""
    flat = {name: value for name, value in rows.items() if not isinstance(value, dict)}
    names = max(map(len, flat), default=0)
    width = max((len(_cell(v)) for v in flat.values() if not isinstance(v, str)), default=0)
    for name, value in flat.items():
        print(f"{'':{indent}}{name:<{names}}  {_cell(value):>{width}}")
    for name, value in rows.items():
        if isinstance(value, dict) and value:
            print(f"\n{'':{indent}}{name}")
            print_table(value, indent + 2)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if value == 0 or abs(value) >= 0.01 else f"{value:.2g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
