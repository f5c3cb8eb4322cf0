"""Subscriptions of any form, made ready for executors: built if need be, published, checked.

::

    a DataFrame of texts        compiled on the executors, by the schema of the events
    an index, or its path       published as it is
    a catalog                   its newest version, fixed from now on
    what ``build`` returned     as it is

Named sets travel as a snapshot without subscriptions does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bittern.catalog.catalog import Catalog
from bittern.engine.index import Index
from bittern.engine.known_schema import KnownSchema, Unknown, tell_unknown
from bittern.engine.sets.named import check_there
from bittern.errors import OptionError
from bittern.language.derived import sets_of
from bittern.model.event_schema import EventSchema
from bittern.options import one_of
from bittern.spark.asked import Asked
from bittern.spark.attributes import names_of
from bittern.spark.catalogs.builder import Builder
from bittern.spark.operator import (
    Reference,
)
from bittern.spark.sharded.shards import Shards
from bittern.spark.snapshots.node_cache import SnapshotRef, attach
from bittern.spark.snapshots.store import publish
from bittern.spark.subscriptions.building import Built, build
from bittern.spark.subscriptions.samples import sample_table
from bittern.spark.workers import check_workers
from bittern.terms.unknown import SPARK

#: An error names so many attributes.
_SHOWN = 5


@dataclass(frozen=True)
class Resolved:
    """Subscriptions ready to be matched: where they are, and which attributes they need."""

    ref: Reference | Shards
    attributes: tuple[str, ...]
    integer_ids: bool


def resolve(
    spark: SparkSession,
    subscriptions: Any,
    asked: Asked,
    *,
    history: bool = False,
    schema: EventSchema | None = None,
) -> Resolved:
    """Build subscriptions of any form, and publish them where executors find them.

    Without a ``history``, subscriptions of a DataFrame or a catalog that need one are bad. A
    ``schema`` of the events tells what they mean, or at least what they ask for in vain.
    """
    one_of("unknown", asked.unknown, ("warn", "raise", "ignore"))
    found = _built(spark, subscriptions, asked, schema, history=history)
    needed = sets_of(found.attributes)
    if asked.sets is None and not needed:
        return found
    if isinstance(subscriptions, Catalog):
        if asked.sets is not None:
            raise OptionError("a catalog has its own sets: change them with catalog.sets")
        return found
    return _with_sets(spark, found, needed, asked)


def _with_sets(
    spark: SparkSession, found: Resolved, needed: Sequence[str], asked: Asked
) -> Resolved:
    """The subscriptions with the sets that they name; ``OptionError`` if one is missing.

    The sets travel as a snapshot without subscriptions does.
    """
    assert isinstance(found.ref, SnapshotRef | Shards), "what is not a catalog"
    own = attach(found.ref).sets if isinstance(found.ref, SnapshotRef) else {}
    more = Index.build({}, sets=asked.sets or {})
    check_there(needed, {**own, **more.sets}, "give them, as in sets={'vips': [7, 9]}")
    if asked.sets is None:
        return found
    sets = publish(spark, more, asked.store)
    if isinstance(found.ref, Shards):
        return replace(found, ref=found.ref.with_sets(sets))
    return replace(found, ref=replace(found.ref, more_sets=sets))


def _built(
    spark: SparkSession,
    subscriptions: Any,
    asked: Asked,
    schema: EventSchema | None,
    *,
    history: bool,
) -> Resolved:
    """What is built from a DataFrame now, or what is there already."""
    check_workers(spark)
    if not isinstance(subscriptions, DataFrame):
        found = _resolved(spark, subscriptions, asked, schema, history=history)
        if schema is not None:
            _tell_missing(found, schema, asked.unknown)
        return found
    built = build(
        subscriptions,
        sample=asked.sample,
        json=asked.json,
        store=asked.store,
        shards=asked.shards,
        on_error=asked.on_error,
        history=history,
        schema=schema,
        unknown=asked.unknown,
    )
    return Resolved(built.ref, built.attributes, built.integer_ids)


def _tell_missing(source: Resolved, schema: EventSchema, unknown: str) -> None:
    """Say which attributes of what was built before the events do not have."""
    missing = KnownSchema(schema, SPARK).missing(source.attributes) if unknown != "ignore" else []
    if missing and unknown == "raise":
        raise OptionError("; ".join(reason for _, reason in missing[:_SHOWN]))
    tell_unknown([Unknown(None, *each) for each in missing])


def _resolved(
    spark: SparkSession,
    subscriptions: Any,
    asked: Asked,
    schema: EventSchema | None,
    *,
    history: bool,
) -> Resolved:
    """What was built before, or is in a catalog."""
    if isinstance(subscriptions, Built):
        return Resolved(subscriptions.ref, subscriptions.attributes, subscriptions.integer_ids)
    if isinstance(subscriptions, Shards):
        return Resolved(subscriptions, subscriptions.attributes, subscriptions.integer_ids)
    if isinstance(subscriptions, Catalog):
        return _of_catalog(spark, subscriptions, asked, schema, history=history)
    if isinstance(subscriptions, Index | str | Path):
        ref = publish(spark, subscriptions, asked.store)
        index = subscriptions if isinstance(subscriptions, Index) else attach(ref)
        return Resolved(ref, tuple(index.rank.attribute_names()), index.all_ids.is_int64)
    raise refusal(subscriptions, catalog=True)


def _of_catalog(
    spark: SparkSession,
    catalog: Catalog,
    asked: Asked,
    schema: EventSchema | None,
    *,
    history: bool,
) -> Resolved:
    """The newest version of a catalog, fixed from now on."""
    builder = Builder(spark, catalog, asked.store, history=history, schema=schema)
    documents = names_of(asked.json, "json")
    try:
        view = builder.view(catalog.version(), lambda: sample_table(asked.sample, documents))
        return Resolved(view, builder.attributes(), integer_ids=False)
    finally:
        builder.close()


def refusal(subscriptions: Any, *, catalog: bool) -> OptionError:
    """The error for something that cannot be subscriptions, where a catalog may be or not."""
    return OptionError(
        "subscriptions must be a DataFrame with the columns id and expression, a mapping, pairs or "
        "a table of the same, "
        f"{'a bittern.Catalog, ' if catalog else ''}a bittern.Index, what bittern.spark.build "
        f"returned, or the path of a saved snapshot, not {type(subscriptions).__name__}"
    )
