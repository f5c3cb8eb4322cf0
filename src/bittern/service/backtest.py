"""``bittern backtest``: what a draft would have matched, over remembered events."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from bittern.errors import ExpressionError, HistoryError, OptionError
from bittern.service.arguments import add_ignore_case, positive
from bittern.service.report import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from bittern.engine.backtest.result import Backtest


def add_parser(
    commands: Any, new: Callable[[Any, str, str, str], argparse.ArgumentParser]
) -> argparse.ArgumentParser:
    """Add the command and return it; ``new`` makes a command of a name and its help."""
    command = new(
        commands,
        "backtest",
        "show what a draft of a subscription would have matched",
        """EVENTS are the folder of a history, a Parquet file, a file with a JSON object per line,
or a folder of such files. DRAFT is an expression, or - to read it from standard input. It is told
how many events would have matched, which predicate rejects most, and, with --time, how many matches
there were per hour.

example:
  bittern backtest monday.jsonl "price < 10 AND color = 'red'" --time seen_at
""",
    )
    add = command.add_argument
    add("events", metavar="EVENTS")
    add("draft", metavar="DRAFT")
    add("--time", metavar="TERM", help="attribute or term that is the time of an event")
    add("--samples", metavar="N", type=int, default=10, help="matches to show (default: 10)")
    add("--json-columns", metavar="NAMES", default="", help="columns that hold attributes as JSON")
    add("--keep", metavar="N", type=positive, help="use only the N newest documents of a history")
    add("--json", action="store_true", help="print JSON instead of text")
    add("-q", "--quiet", action="store_true", help="show no progress")
    add_ignore_case(add)
    return command


def run(options: argparse.Namespace, sets: Any) -> int:
    """Test the draft and print what was found."""
    from bittern.service import tables  # noqa: PLC0415 (cold start)

    tables.standard_output()  # raises if it is closed: the result would be lost
    draft = options.draft
    if draft == "-":
        try:
            draft = tables.standard_input().read().decode("utf-8-sig").strip()
        except UnicodeDecodeError as error:
            raise OptionError(f"the draft is not UTF-8: {error}") from error
    try:
        found = _backtest(options, draft, sets)
    except ExpressionError as error:
        say(f"the draft is not valid: {error}")
        return 1
    print(json.dumps(found.as_json(), indent=1) if options.json else found)
    if found.unreadable and not found.events:
        say("all events were rejected: none could be read")
        return 1
    return 0


def _backtest(options: argparse.Namespace, draft: str, sets: Any) -> Backtest:
    from bittern.engine.backtest.backtest import backtest  # noqa: PLC0415 (cold start)
    from bittern.service.progress import Progress  # noqa: PLC0415

    progress = None if options.quiet else Progress(sys.stderr)

    def test(events: Any) -> Backtest:
        return backtest(
            events,
            draft,
            time=options.time,
            samples=options.samples,
            json=[name for name in options.json_columns.split(",") if name],
            sets=sets,
            case_sensitive=not options.ignore_case,
            progress=progress,
        )

    try:
        if options.keep is None:
            return test(options.events)
        from bittern.history.documents.file import holds_documents  # noqa: PLC0415 (cold start)
        from bittern.history.history import History  # noqa: PLC0415

        if not holds_documents(options.events):
            raise HistoryError(f"--keep needs a history, and there is none in {options.events}")
        with History(options.events, keep=options.keep) as history:
            return test(history)
    finally:
        if progress is not None:
            progress.close()
