"""What came before the events of a batch: documents, and for events in order the events before.

::

    history                  order_by    event 3 of 1 2 3 is compared with        tasks
    documents                -           the documents                            one per partition
    documents                a column    the documents, events 1 and 2            one
    -                        a column    events 1 and 2                           one

Order of arrival cannot be had in several tasks at once: each event's answer depends on all before
it. So with ``order_by`` the events are brought to one task, sorted by these columns, NULLs first.
Events that are equal in them go by the columns that identify an event, so that a task that is
retried, whose rows may arrive otherwise, sees them in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from bittern.engine.subscriptions import Subscriptions
from bittern.engine.unanswered import needs_history, refused
from bittern.errors import BadSubscription, OptionError
from bittern.language.quantifiers import is_hidden
from bittern.language.templates import Template
from bittern.spark.attributes import names_of, quoted
from bittern.spark.catalogs.views import View
from bittern.spark.history_files import check_history, remembered_of
from bittern.spark.operator import Reference
from bittern.spark.remembered import AfterDocuments, attributes_of_documents, attributes_of_events
from bittern.spark.sharded.shards import Shards
from bittern.spark.snapshots.node_cache import SnapshotRef

#: What to do about a subscription that needs a history where there is none.
REMEDY = "match it with one (history=)"
_REFUSED = refused("", "EXISTS d (d.a = a)", REMEDY).message


def has_quantifiers(attributes: Sequence[str]) -> bool:
    """Has some subscription over these attributes, as an index names them, EXISTS or FORALL?"""
    return any(map(is_hidden, attributes))


def refuse_quantifiers(attributes: Sequence[str], what: str) -> None:
    """Raise if some subscription needs a history, which ``what`` has none of."""
    if has_quantifiers(attributes):
        raise OptionError(
            f"some subscriptions compare events with documents seen before (EXISTS, FORALL), and "
            f"{what}"
        )


def without_quantifiers(
    subscriptions: Subscriptions, templates: Sequence[Template]
) -> Subscriptions:
    """Those that can be matched without a history; the others are among the bad. O(parameters)."""
    marks = np.array([False, *map(needs_history, templates)])
    rows = np.flatnonzero(marks[subscriptions.shape_ids + 1]).tolist()
    ids, texts = subscriptions.ids, subscriptions.texts
    bad = [refused(ids[row], texts[row].as_py(), REMEDY) for row in rows]
    return subscriptions.without(bad, list(templates)) if bad else subscriptions


def lacks_history(bad: BadSubscription) -> bool:
    """Is it bad for no other reason than that there is no history?"""
    return bad.message == _REFUSED


class Past:
    """What ``match`` was told of what came before; checked, and not read yet."""

    def __init__(self, events: DataFrame, history: Any, order_by: Any) -> None:
        check_history(history)
        self._history = history
        self._order = order_of(events, order_by)
        if self.is_given() and events.isStreaming:
            raise OptionError(
                "history and order_by are for a batch of events: bittern.spark.Pipeline matches a "
                "stream whose events are remembered"
            )

    def is_given(self) -> bool:
        """Is there anything to compare events with?"""
        return self._history is not None or bool(self._order)

    def refuse_eventual(self) -> None:
        """A catalog whose version tasks choose themselves has no history."""
        if self.is_given():
            raise OptionError(
                'history and order_by do not go with consistency="eventual": a task that is '
                "retried has to find the same"
            )

    def subscribed(
        self, ref: Reference | Shards, attributes: Sequence[str], json: Sequence[str], store: Any
    ) -> tuple[AfterDocuments, tuple[str, ...]]:
        """What tasks carry of subscriptions with quantifiers, and the attributes of events needed.

        ``attributes`` are named as in an index. A DataFrame is copied now.
        """
        if not self.is_given():
            refuse_quantifiers(
                attributes,
                "there is no history: give history= a DataFrame or a path of Parquet files, or "
                "order_by= the columns that tell the order of events; bittern.spark.Pipeline "
                "matches a stream",
            )
        assert isinstance(ref, SnapshotRef | View), "no index in shards has quantifiers"
        documents = attributes_of_documents(attributes)
        remembered = remembered_of(self._history, documents, json, store)
        needed = attributes_needed(attributes, becoming=bool(self._order))
        return AfterDocuments(ref, remembered, bool(self._order)), needed

    def ordered(self, events: DataFrame, keys: Sequence[str]) -> DataFrame:
        """The events as tasks are to be given them."""
        return in_order(events, self._order, keys) if self._order else events


def attributes_needed(attributes: Sequence[str], *, becoming: bool) -> tuple[str, ...]:
    """What is needed of events for attributes as an index names them.

    ``becoming`` says that events become documents.
    """
    needed = attributes_of_events(attributes)
    if becoming:
        needed += attributes_of_documents(attributes)
    return tuple(dict.fromkeys(needed))


def order_of(events: DataFrame, order_by: str | Sequence[str] | None) -> list[str]:
    """The columns that tell the order of arrival, checked; none if it does not count."""
    order = names_of(order_by, "order_by")
    if order_by is not None and not order:
        raise OptionError("order_by names no column: name those that tell the order of arrival")
    for name in order:
        if name not in events.columns:
            raise OptionError(
                f"order_by names {name!r}, and the events have no such column; they have "
                f"{', '.join(events.columns)}"
            )
        type_ = events.schema[name].dataType
        if not _has_order(type_):
            raise OptionError(
                f"order_by names {name!r}, which is {type_.simpleString()} and has no order"
            )
    return order


def in_order(events: DataFrame, order: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """The events in one partition, in order of arrival."""
    by = [*order]
    by += [key for key in keys if key not in by and _has_order(events.schema[key].dataType)]
    columns = [F.col(quoted(name)).asc_nulls_first() for name in by]
    return events.repartition(1).sortWithinPartitions(*columns)


def _has_order(type_: DataType) -> bool:
    """Can Spark sort by it?"""
    if isinstance(type_, StructType):
        return all(_has_order(field.dataType) for field in type_)
    if isinstance(type_, ArrayType):
        return _has_order(type_.elementType)
    return not isinstance(type_, MapType | VariantType)
