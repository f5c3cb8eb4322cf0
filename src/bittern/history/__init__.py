"""Earlier documents, join predicates over them, and what is known before an event arrives.

::

    history.py                  ``History``: documents that a matcher compares events with
    documents.py document_file.py   where they are kept
    segments.py arrivals.py mapping_rows.py   ... and as which bytes
    joins.py phases.py          the join phase of a matcher, and which phase goes first
    guards.py conditions.py     what constants decide before anything is looked up
    implied.py demands.py prefilter.py   subscriptions that cannot match the present documents
    table.py sections.py plans.py        which predicates there are, and how each is answered
    passes.py intake.py lookups.py       a batch: documents in, events asked, in order of arrival
    groups.py summaries.py listed.py sets.py   what is known about the documents
    ordered.py ordered_runs.py outcomes.py     ... in the order of an attribute's values
    rows.py                     numbers by event, which all of these pass on
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
