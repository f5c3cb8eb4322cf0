"""Where a change has its two rows: in two columns, in Debezium's envelope, in Delta's change feed.

Each form makes of a DataFrame one with a row for each change. It has the columns that may be keys
and payload, and either the text of the envelope or both rows and why they cannot be compared::

    id  ...  before  after  wrong
    7        {8}     {12}   -
    8        -       {5}    -                             an insert
    9        {1}     {2}    two rows have the same key    rejected
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bittern.errors import OptionError
from bittern.model.transitions import KINDS
from bittern.options import one_of
from bittern.spark.attributes import is_loose, names_of, quoted

#: BeforeAfter of what a form makes; none of a user's begins so.
BEFORE, AFTER, WRONG, ENVELOPE = "\4before", "\4after", "\4wrong", "\4envelope"
#: Delta's own columns.
_TYPE, _VERSION, _TIME = "_change_type", "_commit_version", "_commit_timestamp"
_OLD, _NEW = ("update_preimage", "delete"), ("update_postimage", "insert")


@dataclass(frozen=True)
class ChangeForm(abc.ABC):
    """A form of changes. ``kinds`` are those that are asked for: "enter", "leave", "stay"."""

    kinds: tuple[str, ...] = field(default=KINDS, kw_only=True)

    def __post_init__(self) -> None:
        """Check the kinds."""
        kinds = tuple(names_of(self.kinds, "kinds"))
        for kind in kinds:
            one_of("kinds", kind, KINDS)
        if not kinds:
            raise OptionError(f"kinds must name some of {', '.join(KINDS)}")
        object.__setattr__(self, "kinds", kinds)

    @property
    @abc.abstractmethod
    def own(self) -> tuple[str, ...]:
        """The columns that hold rows: they identify no change."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Those of them that may hold texts which cannot be read."""
        return self.own

    @abc.abstractmethod
    def changes(self, events: DataFrame) -> DataFrame:
        """A row for each change, as above."""


@dataclass(frozen=True)
class BeforeAfter(ChangeForm):
    """Two columns with the old and the new row, NULL where there is none.

    Both are structs of the same type, variants, maps, or JSON texts.
    """

    before: str = "before"
    after: str = "after"

    @property
    def own(self) -> tuple[str, ...]:
        """The two columns."""
        return self.before, self.after

    def changes(self, events: DataFrame) -> DataFrame:
        """The rows as they are."""
        _check_there(events, self.own)
        types = {events.schema[name].dataType.simpleString() for name in self.own}
        if len(types) > 1:
            raise OptionError(
                f"{self.before} and {self.after} must have the same type, not {' and '.join(types)}"
            )
        before, after = (F.col(quoted(name)) for name in self.own)
        wrong = F.lit(None).cast("string")
        return events.select("*", before.alias(BEFORE), after.alias(AFTER), wrong.alias(WRONG))


@dataclass(frozen=True)
class Debezium(ChangeForm):
    """A column with the JSON text of Debezium's envelope, with or without its schema.

    Tombstones, truncations and messages change no row. An update or a delete without the old row
    is rejected: the database has to log it (in PostgreSQL, REPLICA IDENTITY FULL).
    """

    envelope: str = "value"

    @property
    def own(self) -> tuple[str, ...]:
        """The column."""
        return (self.envelope,)

    def changes(self, events: DataFrame) -> DataFrame:
        """The text, which workers take apart."""
        _check_there(events, self.own)
        type_ = events.schema[self.envelope].dataType.simpleString()
        if not type_.startswith("string"):
            raise OptionError(f"{self.envelope} must be JSON text, not {type_}: cast it to string")
        return events.select("*", F.col(quoted(self.envelope)).alias(ENVELOPE))


@dataclass(frozen=True)
class ChangeFeed(ChangeForm):
    """The change feed of a Delta table, whose rows with the same key and version are one change.

    Of the feed's columns, the key, ``_commit_version`` and ``_commit_timestamp`` can be keys and
    payload. Bringing the two rows together takes a shuffle.
    """

    key: str | Sequence[str] = field(default=(), kw_only=False)

    def __post_init__(self) -> None:
        """Check the key."""
        super().__post_init__()
        object.__setattr__(self, "key", tuple(names_of(self.key, "key")))
        if not self.key:
            raise OptionError("key names no column: name those that identify a row of the table")

    @property
    def own(self) -> tuple[str, ...]:
        """None: a change is known by all that is left."""
        return ()

    def changes(self, events: DataFrame) -> DataFrame:
        """Old and new rows brought together."""
        _check_there(events, (_TYPE, _VERSION, *self.key))
        for name in self.key:
            if is_loose(events.schema[name].dataType):
                type_ = events.schema[name].dataType.simpleString()
                raise OptionError(f"key names {name!r}, which is {type_}: Spark cannot group by it")
        row = F.struct(
            *(quoted(name) for name in events.columns if name not in (_TYPE, _VERSION, _TIME))
        )
        is_old, is_new = (F.col(_TYPE).isin(*types) for types in (_OLD, _NEW))
        more = [F.first(_TIME).alias(_TIME)] if _TIME in events.columns else []
        old, new = F.count_if(is_old), F.count_if(is_new)
        unknown = F.count_if(~F.coalesce(is_old | is_new, F.lit(False)))
        wrong = (
            F.when(unknown > 0, f"its {_TYPE} is none of {', '.join((*_OLD, *_NEW))}")
            .when((old > 1) | (new > 1), "several rows of one version have this key")
            .otherwise(F.lit(None).cast("string"))
        )
        return events.groupBy(*map(quoted, self.key), _VERSION).agg(
            *more,
            F.first(F.when(is_old, row), ignorenulls=True).alias(BEFORE),
            F.first(F.when(is_new, row), ignorenulls=True).alias(AFTER),
            wrong.alias(WRONG),
        )


def check_form(changes: Any) -> ChangeForm:
    """The form, if it is one."""
    if not isinstance(changes, ChangeForm):
        raise OptionError(
            f"changes must be BeforeAfter(...), Debezium(...) or ChangeFeed(...) of "
            f"bittern.spark.changes, not {type(changes).__name__}"
        )
    return changes


def _check_there(events: DataFrame, names: Sequence[str]) -> None:
    for name in names:
        if name not in events.columns:
            raise OptionError(
                f"the changes have no column {name!r}; they have {', '.join(events.columns)}"
            )
