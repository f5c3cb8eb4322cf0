"""``bittern redeliver``: sends a pipeline's dead letters again, and says what became of them.

What is sent, and with which headers, limits and secret, is told by the pipeline's file. It needs no
Spark (``delivery/dead_letters.py``).
"""

from __future__ import annotations

import argparse
import os
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

from bittern.delivery.addresses import networks, shown
from bittern.delivery.dead_letters import Redelivered, Wanted, redeliver
from bittern.delivery.lanes import Terms
from bittern.delivery.posting import Post, check_headers
from bittern.errors import OptionError
from bittern.service import pipeline_file
from bittern.service.pipeline_file import WebhookSink
from bittern.service.report import count, print_table, say

#: Endpoints that are listed with the reason why letters failed.
_SHOWN = 20


def run(options: argparse.Namespace) -> int:
    """Send the letters that the options name."""
    sink = pipeline_file.read(options.pipeline, os.environ).sink
    if not isinstance(sink, WebhookSink):
        raise OptionError(f"{options.pipeline} has no webhook as its sink, so no dead letters")
    wanted = Wanted(
        None if options.subscriber is None else frozenset(options.subscriber),
        _time("--since", options.since),
        _time("--until", options.until),
    )
    given = {each.name: getattr(sink, each.name) for each in fields(Terms)}
    terms = Terms(**{name: value for name, value in given.items() if value is not None})
    secret = None if sink.secret is None else sink.secret.encode()
    post = Post(networks(sink.private), check_headers(sink.headers), secret)
    done = redeliver(Path(sink.dead_letters), post, terms, wanted, dry=options.dry_run)
    _tell(done, dry=options.dry_run)
    return 1 if done.failed else 0


def _tell(done: Redelivered, *, dry: bool) -> None:
    """A table of what became of the letters, and why some failed."""
    table: dict[str, int] = {
        "dead letters": done.letters,
        "delivered before": done.delivered_before,
    }
    if dry:
        print_table({**table, "to be sent": done.letters - done.delivered_before})
        return
    print_table(
        {
            **table,
            "delivered now": done.delivered,
            "matches in them": done.matches,
            "failed again": done.failed,
            "attempts": done.attempts,
        }
    )
    for (url, subscriber, reason), number in done.reasons.most_common(_SHOWN):
        whose = "" if subscriber is None else f" of {subscriber}"
        say(f"{count(number, 'letter')}{whose} to {shown(url)}: {reason}")
    if len(done.reasons) > _SHOWN:
        say(f"... and {len(done.reasons) - _SHOWN:,} more reasons")


def _time(name: str, told: str | None) -> datetime | None:
    if told is None:
        return None
    try:
        moment = datetime.fromisoformat(told)
    except ValueError:
        raise OptionError(f"{name} must be a time such as 2026-03-01T09:00, not {told!r}") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
