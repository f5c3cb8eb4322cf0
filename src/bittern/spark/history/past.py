"""What precedes the events of a batch: documents and, if events have an order, earlier events.

::

    history                  order_by    event 3 of 1 2 3 is compared with        tasks
    documents                -           the documents                            one per partition
    documents                a column    the documents, events 1 and 2            one
    -                        a column    events 1 and 2                           one

Several tasks at once cannot respect the order of arrival: each event's answer depends on all before
it. So with ``order_by`` the events are brought to one task, sorted by these columns, NULLs first.
Ties are broken by the columns that identify an event, so that a retried task, whose rows may arrive
in another order, sees them in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from bittern.engine.subscriptions import Subscriptions
from bittern.engine.unanswered import needs_history, refused
from bittern.errors import BadSubscription, OptionError
from bittern.language.quantifiers import is_hidden
from bittern.language.templates import Template
from bittern.spark.attributes import names_of, quoted
from bittern.spark.catalogs.views import View
from bittern.spark.history.files import check_history, remembered_of
from bittern.spark.history.remembered import (
    AfterDocuments,
    attributes_of_documents,
    attributes_of_events,
)
from bittern.spark.operator import Reference
from bittern.spark.sharded.shards import Shards
from bittern.spark.snapshots.node_cache import SnapshotRef
from bittern.spark.versions import VariantType

#: What to do about a subscription that needs a history where there is none.
REMEDY = "match it with one (history=)"
_REFUSED = refused("", "EXISTS d (d.a = a)", REMEDY).message


def has_quantifiers(attributes: Sequence[str]) -> bool:
    """Whether a subscription over these attributes of an index has EXISTS or FORALL."""
    return any(map(is_hidden, attributes))


def refuse_quantifiers(attributes: Sequence[str], what: str) -> None:
    """Raise if some subscription needs a history; ``what`` says why there is none."""
    if has_quantifiers(attributes):
        raise OptionError(
            f"some subscriptions compare events with earlier documents (EXISTS, FORALL), and {what}"
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
    """Whether it is bad only because there is no history."""
    return bad.message == _REFUSED


class Past:
    """The arguments of ``match`` about the past; checked, but not read yet."""

    def __init__(self, events: DataFrame, history: Any, order_by: Any) -> None:
        check_history(history)
        self._history = history
        self._order = order_of(events, order_by)
        if self.is_given() and events.isStreaming:
            raise OptionError(
                "history and order_by are for a batch of events: for a stream use "
                "bittern.spark.Pipeline, which remembers its events"
            )

    def is_given(self) -> bool:
        """Whether there is anything to compare events with."""
        return self._history is not None or bool(self._order)

    def refuse_eventual(self) -> None:
        """Raise: a catalog whose version tasks choose themselves cannot have a history."""
        if self.is_given():
            raise OptionError(
                'history and order_by cannot be used with consistency="eventual": a task that is '
                "retried must find the same matches"
            )

    def subscribed(
        self, ref: Reference | Shards, attributes: Sequence[str], json: Sequence[str], store: Any
    ) -> tuple[AfterDocuments, tuple[str, ...]]:
        """What tasks carry for subscriptions with quantifiers, and the attributes of events needed.

        ``attributes`` are named as in an index. A DataFrame is copied now.
        """
        if not self.is_given():
            refuse_quantifiers(
                attributes,
                "there is no history: give history= a DataFrame or a path of Parquet files, or "
                "order_by= the columns that give the order of events; for a stream use "
                "bittern.spark.Pipeline",
            )
        assert isinstance(ref, SnapshotRef | View), "no index in shards has quantifiers"
        documents = attributes_of_documents(attributes)
        remembered = remembered_of(self._history, documents, json, store)
        needed = attributes_needed(attributes, becoming=bool(self._order))
        return AfterDocuments(ref, remembered, bool(self._order)), needed

    def ordered(self, events: DataFrame, keys: Sequence[str]) -> DataFrame:
        """The events in the form that tasks need."""
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
    """The columns that give the order of arrival, checked; none if there is no order."""
    order = names_of(order_by, "order_by")
    if order_by is not None and not order:
        raise OptionError(
            "order_by names no column: name the columns that give the order of arrival"
        )
    for name in order:
        if name not in events.columns:
            raise OptionError(
                f"order_by names {name!r}, but the events have no such column; they have "
                f"{', '.join(events.columns)}"
            )
        type_ = events.schema[name].dataType
        if not _has_order(type_):
            raise OptionError(
                f"order_by names {name!r}, which is {type_.simpleString()} and cannot be sorted"
            )
    return order


def in_order(events: DataFrame, order: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """The events in one partition, in order of arrival."""
    by = [*order]
    by += [key for key in keys if key not in by and _has_order(events.schema[key].dataType)]
    columns = [F.col(quoted(name)).asc_nulls_first() for name in by]
    return events.repartition(1).sortWithinPartitions(*columns)


def _has_order(type_: DataType) -> bool:
    """Whether Spark can sort by it."""
    if isinstance(type_, StructType):
        return all(_has_order(field.dataType) for field in type_)
    if isinstance(type_, ArrayType):
        return _has_order(type_.elementType)
    return not isinstance(type_, MapType | VariantType)
