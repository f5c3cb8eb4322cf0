"""``bittern.backtest``: a draft against remembered events."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from bittern.engine.asked import read_sets
from bittern.engine.backtest.counting import Counter, Matching, TimeOf
from bittern.engine.backtest.draft import ReadDraft
from bittern.engine.backtest.result import Backtest
from bittern.engine.backtest.sources import source_of
from bittern.engine.index import Index
from bittern.engine.live.matcher import LiveMatcher
from bittern.engine.matcher import BLOCK, Matcher
from bittern.engine.subscriptions import OnProgress
from bittern.errors import SubscriptionError
from bittern.model.event_schema import EventSchema
from bittern.model.events.objects import json_names
from bittern.options import whole_number
from bittern.terms.spelling import spelling

#: Samples that may be asked for.
MOST_SAMPLES = 10_000


def backtest(
    events: Any,
    draft: str,
    *,
    time: str | None = None,
    samples: int = 10,
    json: str | Sequence[str] = (),
    sets: Mapping[str, Any] | None = None,
    schema: pa.Schema | EventSchema | None = None,
    case_sensitive: bool = True,
    progress: OnProgress | None = None,
) -> Backtest:
    """What ``draft`` would have matched, had it been a subscription when ``events`` came.

    ``events`` are the folder of a history, a Parquet file or one with a JSON object per line, a
    folder of such files, an Arrow table, or anything else that can be matched, also as an iterator
    of batches (``engine/backtest/sources.py`` lists the forms). They are read batch by batch, and
    only counts and some ``samples`` of what matched are kept.

    ``time`` is the attribute that has the time of an event, or a term that gives it, such as
    ``timestamp_millis(at)``: then matches are counted per hour. ``json``, ``sets``, ``schema`` and
    ``case_sensitive`` mean what they mean to ``Index.build`` and ``Matcher``. ``progress`` is
    called with (stage, done, total); a total of 0 means that it is not known.

    With EXISTS or FORALL, each event is compared with the events before it; these are written to a
    temporary folder meanwhile. O(events), for each predicate of the draft about what a subscription
    costs.

    >>> import bittern
    >>> print(bittern.backtest([{"price": 5}, {"price": 50}], "price < 10"))
    would have matched 1 of 2 events (50.00%)
    <BLANKLINE>
              true       rejects         alone  predicate
                 1             1             1  price < 10  <- rejects most
    <BLANKLINE>
    samples
      event 0: {'price': 5}
    """
    whole_number("samples", samples, 0, MOST_SAMPLES)
    read = ReadDraft(draft)
    counter = Counter(read, time=None if time is None else TimeOf(time), samples=samples)
    known = {} if sets is None else read_sets(sets)
    try:
        index = Index.build(read.subscriptions(), schema=schema, sets=sets)
    except SubscriptionError as error:
        raise read.refusal(error) from None
    source = source_of(events, tuple(json_names(json)), lambda: min(BLOCK, counter.block))
    report = progress or (lambda *_: None)
    with _matching(index, read, case_sensitive=case_sensitive) as matcher:
        for batch in source.batches:
            found = matcher.match(batch.events, json=batch.json)
            with spelling(case_sensitive=case_sensitive):
                counter.add(batch, found, known)
            report("backtest", counter.rows, source.total)
    return counter.result()


@contextlib.contextmanager
def _matching(index: Index, draft: ReadDraft, *, case_sensitive: bool) -> Iterator[Matching]:
    """A matcher of the draft and its predicates, with a history of its own if they ask for one."""
    if not draft.has_quantifiers:
        yield Matcher(index, case_sensitive=case_sensitive)
        return
    with (
        tempfile.TemporaryDirectory(prefix="bittern-backtest-") as folder,
        LiveMatcher(index, history=folder, case_sensitive=case_sensitive) as live,
    ):
        yield live
