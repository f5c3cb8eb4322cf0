"""Backtests on Spark: what a draft would have matched, over a DataFrame of events.

The draft and each of its predicates are matched as subscriptions, and what was satisfied is counted
where it was matched: of each task only its counts come to the driver::

    events  --match-->  hour, satisfied        --count-->  a row of counts for each task
                        490920  [0, 1, 2, 3]
                        490920  [1, 3]

Samples are drawn in a second job, by Spark. It takes two passes over the events, one without
samples.
"""

from __future__ import annotations

import json as json_format
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bittern.engine.backtest.backtest import MOST_SAMPLES
from bittern.engine.backtest.counting import Tally
from bittern.engine.backtest.draft import DRAFT, ReadDraft
from bittern.engine.backtest.result import Backtest, SampleEvent
from bittern.errors import OptionError, SubscriptionError
from bittern.options import whole_number
from bittern.spark.frames import match
from bittern.spark.operator import SUBSCRIPTIONS
from bittern.terms.unknown import any_function

#: The column of the hour. No event may have such a name.
_HOUR = "bittern_backtest_hour"
_COUNTS = "counts string"


def backtest(
    events: DataFrame,
    draft: str,
    *,
    time: str | None = None,
    samples: int = 10,
    json: str | Sequence[str] = (),
    sets: Mapping[str, Any] | None = None,
    history: DataFrame | str | Path | None = None,
    order_by: str | Sequence[str] | None = None,
    store: str | None = None,
) -> Backtest:
    """What ``draft`` would have matched: ``bittern.backtest`` for a DataFrame that is not a stream.

    ``time`` is an expression of Spark's over the columns that gives the time of an event. Samples
    have no numbers here, and may be others each time. ``json``, ``sets``, ``history``, ``order_by``
    and ``store`` mean what they mean to ``bittern.spark.match``.
    """
    whole_number("samples", samples, 0, MOST_SAMPLES)
    if not isinstance(events, DataFrame):
        raise OptionError(f"events must be a Spark DataFrame, not {type(events).__name__}")
    if events.isStreaming:
        raise OptionError("a stream has no end: backtest a table or files")
    with any_function():
        read = ReadDraft(draft)
    hour = F.lit(None).cast("long") if time is None else _hour(time)
    options: dict[str, Any] = {
        "json": json,
        "sets": sets,
        "history": history,
        "order_by": order_by,
        "store": store,
    }
    wanted = read.subscriptions()
    everything = len(wanted)  # an event that cannot be read satisfies nothing, not even TRUE
    try:
        found = match(
            events.withColumn(_HOUR, hour),
            wanted | {everything: "TRUE"},
            event_id=_HOUR,
            **options,
        )
        counted = found.mapInArrow(_Counting(draft, time is not None), _COUNTS).collect()
        tally = Tally(read)
        for row in counted:
            tally.add_parts(json_format.loads(row["counts"]))
        kept = _samples(events, draft, samples, options) if samples and tally.matches else []
    except SubscriptionError as error:
        raise read.refusal(error) from None
    return tally.result(SampleEvent(None, values) for values in kept)


def _hour(time: str) -> Any:
    micros = F.unix_micros(F.expr(f"try_cast(({time}) AS TIMESTAMP)"))
    return F.floor(micros / F.lit(3_600_000_000)).cast("long")


def _samples(
    events: DataFrame, draft: str, samples: int, options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Some of the events that match, with all their columns."""
    found = match(events, {DRAFT: draft}, **options)
    matched = found.filter(F.size(SUBSCRIPTIONS) > 0).drop(SUBSCRIPTIONS)
    rows = matched.orderBy(F.rand(0)).limit(samples).collect()
    return [row.asDict(recursive=True) for row in rows]


@dataclass(frozen=True)
class _Counting:
    """Counts the events of one partition; the draft is read again where they are."""

    draft: str
    timed: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row: the counts as JSON."""
        with any_function():
            draft = ReadDraft(self.draft)
        tally = Tally(draft)
        n_rows = len(draft.predicates) + 2
        for batch in batches:
            hours, lists = batch.column(0), batch.column(1)
            counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
            truths = np.zeros((n_rows, batch.num_rows), dtype=np.bool_)
            events = np.repeat(np.arange(batch.num_rows), counts)
            truths[lists.flatten().to_numpy(zero_copy_only=False), events] = True
            truths, read = truths[:-1], truths[-1]
            matched = tally.add(truths, read)
            if self.timed:
                known = hours.is_valid().to_numpy(zero_copy_only=False)
                values = pc.fill_null(hours, 0).to_numpy(zero_copy_only=False)
                tally.add_hours(values, known, read, matched)
        text = json_format.dumps(tally.parts())
        yield pa.RecordBatch.from_arrays([pa.array([text])], names=["counts"])
