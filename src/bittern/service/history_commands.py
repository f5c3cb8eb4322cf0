"""A history on the command line: matching with it, explaining with it, and looking at it.

::

    bittern match shop.bittern monday.jsonl --history seen     documents 0 to 99 are made
    bittern match shop.bittern tuesday.jsonl --history seen    and are what Tuesday is compared with
    bittern explain shop.bittern s1 '{...}' --history seen     what would it match now?
    bittern inspect seen --check                               documents, segments, bytes

The folder does not store ``--keep``, how many of the documents are used: give it each time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import bittern
from bittern.engine.unanswered import answered
from bittern.errors import HistoryError, OptionError
from bittern.history.documents.file import holds_documents
from bittern.history.history import History
from bittern.model.matches import Matches
from bittern.service.report import count, print_table, say


def check_options(options: argparse.Namespace) -> None:
    """Raise if options about a history are given without one."""
    if options.history is not None:
        return
    said = {
        "--keep": options.keep is not None,
        "--batch-at-once": getattr(options, "batch_at_once", False),
        "--no-remember": not getattr(options, "remember", True),
    }
    for option, is_said in said.items():
        if is_said:
            raise OptionError(f"{option} needs a history: give --history FOLDER too")


@contextlib.contextmanager
def matching(
    index: bittern.Index, options: argparse.Namespace
) -> Iterator[Callable[[Any], Matches]]:
    """A function that matches a batch, with the documents of a history or without."""
    if options.history is None:
        if not answered(index).all():
            raise OptionError(
                "some subscriptions compare events with earlier documents (EXISTS, FORALL): "
                "give --history FOLDER"
            )
        matcher = bittern.Matcher(index, case_sensitive=not options.ignore_case)
        yield partial(matcher.match, limit=options.limit)
        return
    with (
        History(options.history, keep=options.keep) as history,
        bittern.LiveMatcher(index, history=history, case_sensitive=not options.ignore_case) as live,
    ):
        begin = history.end
        try:
            yield partial(
                live.match,
                limit=options.limit,
                remember=options.remember,
                at_once=options.batch_at_once,
            )
        except BaseException:  # also an interrupt: what is remembered stays so
            if history.end > begin:
                remembered = count(history.end - begin, "event")
                say(
                    f"{remembered} remembered in {options.history}, from document {begin} on, but "
                    "not all of their matches were written"
                )
            raise


@contextlib.contextmanager
def after_history(
    index: bittern.Index, options: argparse.Namespace
) -> Iterator[bittern.Index | bittern.LiveMatcher]:
    """What explains an event: the index, with the documents of a history if one is named.

    A folder without documents is a mistake here, whereas ``matching`` starts a history in it.
    """
    if options.history is None:
        yield index
        return
    if not holds_documents(options.history):
        raise HistoryError(f"there are no documents in {options.history}")
    with (
        History(options.history, keep=options.keep) as history,
        bittern.LiveMatcher(index, history=history) as live,
    ):
        yield live


def inspect(options: argparse.Namespace) -> int:
    """Show what is in a history's folder; with ``--check``, read and verify all of it."""
    with History(options.snapshot) as history:
        if options.check:
            history.documents.check()
        about = history.statistics()
    if options.json:
        print(json.dumps(about, indent=1))
        return 0
    print_table(about)
    if options.check:
        print("\nchecked: checksums and order are correct")
    return 0
