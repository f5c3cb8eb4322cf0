"""Both sides of changes as events, in the columns that cross into Python.

::

    changes   id  before        after           what crosses   key  state    price  colour
              7   {8, red}      {12, red}                      7    -        8      red
              8   -             {5, tan}                       7    -        12     red
                                                               8    missing  -      -
                                                               8    -        5      tan

A change is exploded into its old and its new row, which stay together, so that all that holds for
events holds for them: only attributes in use cross, and the JVM computes terms. Envelopes cross as
they are, once, and workers take them apart. Keys and payload cross under names of their own: only
what is in a row is an attribute.

Cost: what two events cost, keys twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from bittern.errors import OptionError
from bittern.model.event_schema import EventSchema
from bittern.spark.attributes import check_columns, event_schema, project, quoted
from bittern.spark.changes.forms import AFTER, BEFORE, ENVELOPE, WRONG, ChangeForm
from bittern.spark.changes.operator import CHANGE, MISSING, ChangeOperator
from bittern.spark.frames import names_in, payload_in
from bittern.spark.operator import CANDIDATES, REJECTED, SUBSCRIPTIONS, Reference, id_type
from bittern.spark.session import is_case_sensitive
from bittern.spark.terms.columns import TermPlan
from bittern.spark.versions import VariantType

#: Names of columns that cross beside the attributes.
_KEY, _STATE = "\4key", "\4state"
#: The column of a row that is a text, a variant or a map.
ROW = "row"


@dataclass(frozen=True)
class Sides:
    """Changes that are about to be matched."""

    form: ChangeForm
    #: Keys and payload, what is for rejects alone, then the rows.
    frame: DataFrame
    carried: tuple[StructField, ...]
    keys: tuple[str, ...]
    #: How many of the last carried columns are for rejects alone.
    texts: int
    #: Of a row.
    schema: StructType
    json: tuple[str, ...]

    @property
    def is_envelope(self) -> bool:
        """Whether workers take the rows apart."""
        return ENVELOPE in self.frame.columns

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that come back with each match."""
        return tuple(field.name for field in self.carried)

    def event_schema(self) -> EventSchema:
        """What is known of the attributes."""
        counts = is_case_sensitive(self.frame.sparkSession)
        return event_schema(self.schema, self.json, case_sensitive=counts)

    def rows(self) -> DataFrame | None:
        """The rows alone, as a sample of what is matched; None if only workers know them."""
        if self.is_envelope:
            return None
        return self.frame.filter(F.col(_STATE).isNull()).select(*map(quoted, self.schema.names))

    def projected(self, attributes: Iterable[str], plan: TermPlan | None = None) -> DataFrame:
        """The columns that cross into Python."""
        if self.is_envelope:
            return self.frame
        hidden = [f"{_KEY}{at}" for at in range(len(self.carried))]
        return project(self.frame, [*hidden, _STATE], attributes, self.json, plan)

    def operator(self, ref: Reference) -> ChangeOperator:
        """What matches them in a worker."""
        counts = is_case_sensitive(self.frame.sparkSession)
        return ChangeOperator(
            ref, self.names, self.texts, self.form.kinds, self.json, self.is_envelope, counts
        )

    def output_schema(self, *, integer_ids: bool) -> StructType:
        """What the operator yields, but for the mark of first rows."""
        last = len(self.carried) - self.texts
        return StructType(
            [
                *self.carried[:last],
                StructField(CHANGE, StringType()),
                *self.carried[last:],
                StructField(SUBSCRIPTIONS, ArrayType(id_type(integer_ids=integer_ids))),
                StructField(CANDIDATES, LongType()),
                StructField(REJECTED, StringType()),
            ]
        )


def sides_of(
    events: DataFrame,
    form: ChangeForm,
    event_id: str | Sequence[str] | None,
    payload: str | Sequence[str],
    *,
    taken: Sequence[str] = (),
    with_texts: bool = False,
) -> Sides:
    """Both sides of the changes in a DataFrame; ``OptionError`` for what cannot be matched.

    ``taken`` are further names that no column of the output may have.
    """
    changes = form.changes(events)
    visible = changes.select(*(quoted(name) for name in changes.columns if name[0] != "\4"))
    if event_id is None:
        event_id = [name for name in visible.columns if name not in form.own]
    keys, _ = names_in(visible, event_id, ())
    taken = (CHANGE, *taken)
    payload_in(visible, (), keys, taken)
    carried = [*keys, *payload_in(visible, keys, payload, taken)]
    texts = [
        name
        for name in (form.texts if with_texts else ())
        if name not in carried and isinstance(visible.schema[name].dataType, StringType)
    ]
    carried += texts
    for name in texts:
        if name.lower() in (REJECTED, *taken):
            raise OptionError(
                f"the column {name!r} has the name of a column of the rejects: rename it"
            )
    hidden = [F.col(quoted(name)).alias(f"{_KEY}{at}") for at, name in enumerate(carried)]
    schema = StructType([StructField(ROW, StringType())])
    json: tuple[str, ...] = (ROW,)
    if ENVELOPE in changes.columns:
        frame = changes.select(*hidden, quoted(ENVELOPE))
    else:
        frame, schema, json = _in_turn(changes, hidden)
    return Sides(
        form,
        frame,
        tuple(visible.schema[name] for name in carried),
        tuple(keys),
        len(texts),
        schema,
        json,
    )


def _in_turn(
    changes: DataFrame, hidden: Sequence[Column]
) -> tuple[DataFrame, StructType, tuple[str, ...]]:
    """Old and new rows in turn, the schema of a row, and which of its columns are JSON."""
    type_ = changes.schema[BEFORE].dataType
    sides = [
        F.struct(
            F.coalesce(quoted(WRONG), F.when(F.col(quoted(name)).isNull(), MISSING)).alias("state"),
            F.col(quoted(name)).alias("row"),
        )
        for name in (BEFORE, AFTER)
    ]
    frame = changes.select(*hidden, F.explode(F.array(*sides)).alias("\4side"))
    side = F.col(quoted("\4side"))
    names = [quoted(name) for name in frame.columns[:-1]]
    state, whole = side.getField("state").alias(_STATE), side.getField("row")
    if isinstance(type_, StructType):
        check_columns(type_, (), (), case_sensitive=is_case_sensitive(changes.sparkSession))
        rows = [whole.getField(field.name).alias(field.name) for field in type_]
        return frame.select(*names, state, *rows), type_, ()
    if isinstance(type_, StringType | VariantType | MapType):
        schema = StructType([StructField(ROW, type_)])
        json = (ROW,) if isinstance(type_, StringType) else ()
        return frame.select(*names, state, whole.alias(ROW)), schema, json
    raise OptionError(
        f"a row must be a struct, a variant, a map or JSON text, not {type_.simpleString()}"
    )
