"""Earlier documents, join predicates over them, and what is known before an event arrives.

A subscription may ask about the documents before an event, ``EXISTS d (d.isbn = isbn)``. For each
block of events, what is asked is answered first, and then the block is matched as if nothing had
been asked::

    history.py   ``History``: documents that a matcher compares events with
    documents/   where they are kept, and as which bytes
    demands/     subscriptions that cannot match the present documents
    joins/       the phase between reading events and matching them
    table/       which predicates there are, and how each is answered
    passes/      a batch: documents in, events asked, in order of arrival; summaries of documents
    sets/        sets of documents, where no summary answers
    rows.py      numbers by event, which all of these pass on
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bittern.history.history import History

__all__ = ["History"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: importing a part of this room does not load all of it.
    if name != "History":
        raise AttributeError(f"module 'bittern.history' has no attribute {name!r}")
    return import_module("bittern.history.history").History
