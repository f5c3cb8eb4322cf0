"""Which columns of the events cross into Python: the keys, and those with attributes in use.

For subscriptions over ``price`` and ``seller.country``, and ``id`` as the key::

    events     id  price  title  seller: struct<country, rating, ...>  tags: map<string, ...>
    projected  id  price         seller: struct<country>               tags

Transfer costs a microsecond or two for each row and grows with every column, so the JVM leaves out
what no subscription mentions. The attributes in map, variant and JSON columns are only known from
their content, so these cross whole. Of an array that a path leads into, and of what Arrow has no
type for, only whether it is NULL crosses. Terms cross as columns that the JVM computes
(``terms/``), and what only they read does not. Everything else is as in
``model/events/reader.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StringType,
    StructType,
    UserDefinedType,
)

from bittern.errors import OptionError, brief
from bittern.language.derived import is_derived, term_of
from bittern.language.literals import TERM
from bittern.language.presence import is_presence, present_path
from bittern.model.event_schema import EventSchema
from bittern.model.events.derived.derived import REASONS
from bittern.model.events.mappings import Names, path_part
from bittern.spark.arrow_types import arrow_type
from bittern.spark.session import is_case_sensitive
from bittern.spark.terms.columns import OWN, TermPlan, with_terms
from bittern.spark.terms.planning import plan_terms
from bittern.spark.versions import VariantType
from bittern.terms.nodes import attributes_of


def names_of(given: str | Sequence[str] | None, what: str) -> list[str]:
    """One name or several as a list; ``what`` names the argument in errors."""
    names = [given] if isinstance(given, str) else () if given is None else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise OptionError(
            f"{what} must be the name of a column or a list of names, not {brief(given)}"
        )
    if len(set(names)) < len(names):
        raise OptionError(f"{what} names a column twice: {', '.join(names)}")
    return list(names)


def check_columns(
    schema: StructType,
    keys: Sequence[str],
    json: Sequence[str],
    payload: Sequence[str] = (),
    *,
    case_sensitive: bool,
) -> None:
    """Raise unless events of this schema have these keys, JSON columns and payload."""
    _check_twins(schema.names, "columns of the events", case_sensitive=case_sensitive)
    for name in schema.names:
        if name.startswith((TERM, OWN)):
            raise OptionError(f"the column {name!r} starts with a control character: rename it")
    check_fields(schema, case_sensitive=True)  # whatever Spark does, Arrow tells others apart
    for what, names in (("event_id", keys), ("json", json), ("payload", payload)):
        for name in names:
            if name not in schema.names:
                raise OptionError(
                    f"{what} names {name!r}, but the events have no such column; they have "
                    f"{', '.join(schema.names)}"
                )
    for what, names in (("event_id", keys), ("payload", payload)):
        for name in names:
            if not _can_return(schema[name].dataType):
                raise OptionError(
                    f"the column {name!r} is {schema[name].dataType.simpleString()}, which cannot "
                    f"be passed to Python and back: name other columns in {what}, or cast it"
                )
    for name in json:
        if not isinstance(schema[name].dataType, StringType):
            raise OptionError(
                f"json names {name!r}, which is not text but {schema[name].dataType.simpleString()}"
            )


def check_fields(schema: StructType, *, case_sensitive: bool) -> None:
    """Raise where a struct, however deep, has two fields of one name."""
    for field in schema:
        for type_ in _within(field.dataType):
            if isinstance(type_, StructType):
                what = f"fields in {field.name!r}"
                _check_twins(type_.names, what, case_sensitive=case_sensitive)


def _check_twins(names: Sequence[str], what: str, *, case_sensitive: bool) -> None:
    twins = _twins(names, case_sensitive=case_sensitive)
    if twins is None:
        return
    one, other = twins
    if one == other:
        raise OptionError(f"two {what} are named {one!r}: rename one")
    raise OptionError(
        f"two {what} are named {one!r} and {other!r}, which Spark does not tell apart: rename one, "
        f"or set spark.sql.caseSensitive"
    )


def _twins(names: Iterable[str], *, case_sensitive: bool) -> tuple[str, str] | None:
    """Two names that are the same, if there are any."""
    seen: dict[str, str] = {}
    for name in names:
        known = name if case_sensitive else name.lower()
        if known in seen:
            return seen[known], name
        seen[known] = name
    return None


def can_cross(type_: DataType) -> bool:
    """Whether Arrow has a type for it, so that it can be passed to Python."""
    return arrow_type(type_) is not None


#: Where Spark keeps what the type of a text column was written as.
_WRITTEN_TYPE = "__CHAR_VARCHAR_TYPE_STRING"


def event_schema(schema: StructType, json: Sequence[str], *, case_sensitive: bool) -> EventSchema:
    """What the schema of a DataFrame tells about attributes."""
    kinds = [arrow_type(field.dataType) or pa.null() for field in schema]
    own = [pa.field(field.name, kind) for field, kind in zip(schema, kinds, strict=True)]
    apart = _not_by_bytes(schema, "")
    return EventSchema(pa.schema(own), json=json, case_sensitive=case_sensitive, not_by_bytes=apart)


def _not_by_bytes(schema: StructType, before: str) -> Iterator[str]:
    """The columns and fields whose texts have a collation, or are padded as CHAR(n) is."""
    for field in schema:
        path, type_ = before + path_part(field.name), field.dataType
        if isinstance(type_, StructType):
            yield from _not_by_bytes(type_, f"{path}.")
        elif isinstance(type_, StringType):
            written = str(field.metadata.get(_WRITTEN_TYPE, ""))
            if type_ != StringType() or written.startswith("char("):
                yield path


def _can_return(type_: DataType) -> bool:
    """Whether it can be passed to Python and back; a user-defined type would lose its type."""
    own = any(isinstance(each, UserDefinedType) for each in _within(type_))
    return can_cross(type_) and not own


def _within(type_: DataType) -> Iterator[DataType]:
    """The type and all that it is made of."""
    yield type_
    if isinstance(type_, StructType):
        for field in type_:
            yield from _within(field.dataType)
    elif isinstance(type_, MapType):
        yield from _within(type_.keyType)
        yield from _within(type_.valueType)
    elif isinstance(type_, ArrayType):
        yield from _within(type_.elementType)


def is_loose(type_: DataType) -> bool:
    """Whether it is or holds a map or a variant, which Spark can neither hash nor group."""
    return any(isinstance(each, MapType | VariantType) for each in _within(type_))


def quoted(name: str) -> str:
    """A column's name as Spark reads it literally."""
    return "`" + name.replace("`", "``") + "`"


def place(at: int) -> str:
    """The name of a user's column on its way to Python, unlike any of ours."""
    return f"c{at}"


def placed(frame: DataFrame) -> DataFrame:
    """The columns by place: ``mapInArrow`` cannot tell a name with a dot, or ``a`` from ``A``."""
    return frame.toDF(*map(place, range(len(frame.columns))))


def carriers(
    schema: StructType,
    attributes: Iterable[str],
    json: Sequence[str],
    columns: Sequence[Column] | None = None,
    *,
    case_sensitive: bool,
) -> dict[str, Column]:
    """The columns that carry attributes, by name, pruned where only parts of one are in use.

    A schema may have columns of terms already (``project``). The others are evaluated by workers,
    and what they read is in use. ``columns`` are those of the schema, if names do not tell them
    apart. If case does not count, ``price`` carries ``PRICE``, and workers find it there.
    """
    attributes = tuple(attributes)
    if columns is None:
        columns = [F.col(quoted(name)) for name in schema.names]
    in_use = _InUse(schema, attributes, case_sensitive=case_sensitive)
    terms = {*filter(is_derived, attributes), REASONS}
    found = {}
    for field, column in zip(schema.fields, columns, strict=True):
        is_whole = field.name in json or _is_open(field.dataType) or field.name in terms
        if is_whole and can_cross(field.dataType):
            found[field.name] = column.alias(field.name)
            continue
        pruned = in_use.of(column, in_use.path(field.name), field.dataType)
        if pruned is not None:
            found[field.name] = pruned.alias(field.name)
    return found


class _InUse:
    """What is in use of the columns of a schema."""

    def __init__(
        self, schema: StructType, attributes: Sequence[str], *, case_sensitive: bool
    ) -> None:
        self._fold: Callable[[str], str] = str if case_sensitive else str.lower
        waiting = [name for name in attributes if is_derived(name) and name not in schema.names]
        read = [each for name in waiting for each in attributes_of(term_of(name))]
        # Whether an attribute is missing is told from its column.
        plain = [
            present_path(name) if is_presence(name) else name
            for name in attributes
            if not is_derived(name)
        ]
        self._names = self._folded([*plain, *read])
        #: What terms read that workers evaluate: they see what is in an array.
        self._read = self._folded(read)

    def _folded(self, names: Sequence[str]) -> Names:
        return Names(list(dict.fromkeys(map(self._fold, names))))

    def path(self, name: str, inside: str = "") -> str:
        """The path of a column, or of a field inside of one."""
        part = self._fold(path_part(name))
        return f"{inside}.{part}" if inside else part

    def of(self, column: Column, path: str, type_: DataType) -> Column | None:
        """What of a column is in use, or None; a struct that is tested itself stays whole."""
        if path in self._names.numbers:
            return column if can_cross(type_) else _whether_there(column, type_)
        if path not in self._names.prefixes:
            return None
        if isinstance(type_, ArrayType) and path not in self._read.prefixes:
            return _whether_there(column, type_)  # nothing else counts
        if isinstance(type_, ArrayType | MapType):
            return column if can_cross(type_) else _whether_there(column, type_)
        if not isinstance(type_, StructType):
            return F.lit(None)  # nothing lies inside it, whatever a document says
        if can_cross(type_) and _twins(type_.names, case_sensitive=False) is not None:
            return column  # Spark may not know which field is meant, but Arrow does
        fields = []
        for field in type_.fields:
            inner = column.getField(field.name)
            kept = self.of(inner, self.path(field.name, path), field.dataType)
            if kept is not None:
                fields.append(kept.alias(field.name))
        return F.struct(*fields) if fields else None


def project(
    events: DataFrame,
    keys: Sequence[str],
    attributes: Iterable[str],
    json: Sequence[str],
    plan: TermPlan | None = None,
) -> DataFrame:
    """Keys first, then what else carries attributes, terms included.

    ``plan`` says how terms are computed; by default Spark is asked.
    """
    attributes = tuple(attributes)
    if plan is None:
        plan = plan_terms(events.sparkSession, events.schema, attributes, json)
    events = with_terms(events, plan)
    # By place: the names of two terms may differ in nothing but case.
    own = [F.col(place(at)) for at in range(len(events.columns))]
    counts = is_case_sensitive(events.sparkSession)
    found = carriers(events.schema, attributes, json, own, case_sensitive=counts)
    columns = [own[events.columns.index(key)].alias(key) for key in keys]
    columns += [column for name, column in found.items() if name not in keys]
    return placed(events).select(*columns)


def _is_open(type_: DataType) -> bool:
    """Whether only the content tells which attributes there are."""
    return isinstance(type_, VariantType) or (
        isinstance(type_, MapType) and isinstance(type_.keyType, StringType)
    )


def _whether_there(column: Column, type_: DataType) -> Column:
    """A value without a kind, an array if the column is one, which is NULL where the column is."""
    something = F.array(F.lit(0)) if isinstance(type_, ArrayType) else F.expr("X''")
    return F.when(column.isNotNull(), something)
