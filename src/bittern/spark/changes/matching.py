"""``match_changes``: a DataFrame of changes in, what they are to subscriptions out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from bittern.errors import OptionError
from bittern.spark.asked import Asked
from bittern.spark.attributes import placed, quoted
from bittern.spark.changes.forms import BeforeAfter, ChangeFeed, ChangeForm, check_form
from bittern.spark.changes.operator import CHANGE
from bittern.spark.changes.sides import sides_of
from bittern.spark.history.past import refuse_quantifiers
from bittern.spark.operator import (
    FIRST,
    REJECTED,
    SUBSCRIPTION,
    SUBSCRIPTIONS,
    Named,
    carried_schema,
    restored,
)
from bittern.spark.sharded.shards import Shards
from bittern.spark.subscriptions.handed_over import as_frame, is_handed_over
from bittern.spark.subscriptions.resolving import resolve

#: Why there is no history.
NO_HISTORY = "changes of rows have no history: match them without these"
_BEFORE_AFTER = BeforeAfter()


def match_changes(
    events: DataFrame,
    subscriptions: Any,
    *,
    changes: ChangeForm = _BEFORE_AFTER,
    event_id: str | Sequence[str] | None = None,
    payload: str | Sequence[str] = (),
    explode: bool = False,
    rejects: bool = False,
    store: str | None = None,
    sample: Any = None,
    on_error: str = "raise",
    unknown: str = "warn",
    sets: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Find the subscriptions that rows enter, leave and stay in as they change.

    There is a row for each change and each kind of ``change`` ("enter", "leave", "stay") that it is
    to any subscription, with an array ``subscriptions``. Other arguments are those of ``match``;
    the index is whole, whatever its size.

    Parameters
    ----------
    changes
        Where the old and the new row of a change are, and which kinds are asked for:
        ``bittern.spark.changes`` has ``BeforeAfter``, ``Debezium`` and ``ChangeFeed``.
    event_id
        The columns that identify a change in the output; all but those with the rows if None. What
        is inside a row is an attribute, these columns are none.
    explode
        One row for each match, with a column ``subscription``.
    rejects
        Add a column ``rejected``: why a change could not be read. It is in no kind then.
    """
    if not isinstance(events, DataFrame):
        raise OptionError(f"events must be a Spark DataFrame, not {type(events).__name__}")
    if isinstance(check_form(changes), ChangeFeed) and events.isStreaming:
        raise OptionError(
            "the two rows of a change are brought together within a batch: for a stream use "
            "bittern.spark.Pipeline(changes=ChangeFeed(...))"
        )
    sides = sides_of(events, changes, event_id, payload)
    spark = events.sparkSession
    if is_handed_over(subscriptions):
        subscriptions = as_frame(spark, subscriptions)
    if sample is None and not events.isStreaming:
        sample = sides.rows()
    asked = Asked(
        json=sides.json,
        store=store,
        shards=None,
        sample=sample,
        on_error=on_error,
        unknown=unknown,
        sets=sets,
    )
    source = resolve(spark, subscriptions, asked, schema=sides.event_schema())
    if isinstance(source.ref, Shards):
        raise OptionError("changes are matched against a whole index: build it with shards=None")
    refuse_quantifiers(source.attributes, NO_HISTORY)
    frame = sides.projected(source.attributes)
    schema = sides.output_schema(integer_ids=source.integer_ids)
    marked = StructType([*schema, StructField(FIRST, BooleanType())])
    named = Named(tuple(frame.columns), sides.operator(source.ref))
    found = restored(placed(frame).mapInArrow(named, carried_schema(marked)), marked)
    columns = [*map(quoted, sides.names), CHANGE]
    reason = [REJECTED] if rejects else []
    told = F.size(SUBSCRIPTIONS) > 0
    found = found.filter(told | F.col(REJECTED).isNotNull() if rejects else told)
    if explode:
        each = F.explode_outer(SUBSCRIPTIONS).alias(SUBSCRIPTION)
        return found.select(*columns, each, *reason)
    return found.select(*columns, SUBSCRIPTIONS, *reason)
