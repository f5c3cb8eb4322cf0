"""Conditions: constant expressions on documents and events, matched like subscriptions.

The join table and the pre-filter need to know which of their conditions are TRUE for each event of
a batch; an index finds them. O(values + candidates) for a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bittern.engine.index import Index
from bittern.engine.live.delta import ALL_ALIVE
from bittern.engine.matcher import match_read, new_totals
from bittern.history.documents.mapping_rows import readable
from bittern.history.rows import Rows


class IndexedConditions:
    """Some expressions, by number."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._index = Index.build(enumerate(texts))

    def __call__(self, events: Any, json: str | Sequence[str]) -> Rows:
        """Which of them are TRUE for each event of a block; none are for an unreadable event."""
        read = self._index.encoder.read(events, json)
        if read.rejects:
            read = self._index.encoder.read(readable(events, read.rejects), json)
        index = self._index
        found = match_read([index], [read], [ALL_ALIVE], index.all_ids, new_totals())
        return Rows(found.offsets, found.subscriptions.astype(np.int64))
