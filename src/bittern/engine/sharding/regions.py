"""Regions: roughly, the part of the value space that a shard's subscriptions look at.

Chunks of subscriptions are compiled separately, each in its own rank space. They share the *ruler*:
for every attribute and kind a few *marks*, which are constants of theirs. Marks cut the values into
cells just as constants do (``model/rank/space.py``), but there are far fewer::

    key     price, numbers            color, strings         size, present
    marks   9.5         20            'red'
    cells   ..  {9.5}  ..  {20}  ..   ..  {'red'}  ..        all
    number  2   3      4   5     6    7   8        9         10

A predicate of any chunk becomes the closed interval of cells that its values lie in: ``price = 12``
is [4, 4], ``price > 12`` is [4, 6]; more than its values, never less. A shard's *regions* are the
union of these intervals as runs of cells, so they are never more than there are cells, and they
read as expressions: [3, 5] is ``price >= 9.5 AND price <= 20``. Suffixes and patterns count as
"present".

Cell 0 stands for every event: it belongs to what no predicate covers, such as ``a IS NULL``. Cell
1 stands for none: it belongs to expressions that never hold.

The router is also the one index that judges events: which of them cannot be read, and which values
no subscription can compare (``model/events/mistyped.py``). Regions alone do not tell what parts
look at, so there are also *witnesses*, one for each attribute and kind in any part, which never
hold::

    color = '' AND color = 'x'              some part compares color with strings
    size IS NULL AND size IS NOT NULL       parts only ask whether size is there

Their tests make the attribute and the kind known, and exclude each other on one channel, so a
witness is filed nowhere: no event ever meets it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int64s, ranges, starts_of
from bittern.engine.index import Index
from bittern.engine.matcher import Matcher
from bittern.language.limits import MAX_DECIMAL_DIGITS
from bittern.language.printer import print_expression
from bittern.language.syntax import And, BooleanConstant, Compare, Expression, IsNull, Literal, Not
from bittern.model.numbers import INT64_MAX, INT64_MIN, NumberColumns, exact
from bittern.model.rank.space import ANY, BOOLEAN, NUMBER, PATTERN, REVERSED, STRING, TIME
from bittern.terms.unknown import SPARK

#: An exact number, microseconds since 1970 UTC, 0 or 1 for a boolean, or text.
MarkValue: TypeAlias = int | Decimal | str

#: Kinds that are no attribute's: what no predicate covers, and what never holds.
ALWAYS, NEVER = PATTERN + 1, PATTERN + 2
#: A longer constant is cut off; any text can be a mark.
MARK_CHARACTERS = 1_024

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
#: Two values of each kind, which nothing equals both of.
_TWO_VALUES: dict[int, tuple[MarkValue, MarkValue]] = {
    NUMBER: (0, 1),
    TIME: (0, 1),
    BOOLEAN: (0, 1),
    STRING: ("", "x"),
}

#: A region's id holds the shard's number above this many bits, and the region's own below.
REGION_BITS = 20


class RulerKey(NamedTuple):
    """What a section of the ruler covers: an attribute's values of one kind."""

    attribute: str
    kind: int


#: They sort before all others: no attribute's name is empty.
EVERY_EVENT, NO_EVENT = RulerKey("", ALWAYS), RulerKey("", NEVER)
EVERY_CELL, NO_CELL = 0, 1


class CellRuns(NamedTuple):
    """Closed, disjoint intervals of cells, ascending, no two of them adjacent."""

    firsts: Int64s
    lasts: Int64s


@dataclass(frozen=True)
class Ruler:
    """The cells that all chunks share. Keys ascend, from ``EVERY_EVENT`` and ``NO_EVENT`` on."""

    keys: tuple[RulerKey, ...]
    marks: tuple[tuple[MarkValue, ...], ...]  # of each key, ascending

    @cached_property
    def bases(self) -> Int64s:
        """The first cell of each key, and the end."""
        return starts_of([2 * len(marks) + 1 for marks in self.marks])

    @cached_property
    def places(self) -> dict[RulerKey, int]:
        """Where each key stands among the keys."""
        return {key: place for place, key in enumerate(self.keys)}

    @cached_property
    def mark_starts(self) -> Int64s:
        """Where the marks of each key begin among all marks, and the end."""
        return starts_of([len(marks) for marks in self.marks])

    @cached_property
    def values(self) -> list[MarkValue]:
        """All marks, key by key."""
        return [mark for marks in self.marks for mark in marks]

    @cached_property
    def numbers(self) -> NumberColumns:
        """All marks as numbers; 0 where one is text."""
        return NumberColumns.of([0 if isinstance(mark, str) else mark for mark in self.values])

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return int(self.bases[-1])

    def expressions(self, runs: CellRuns) -> list[str]:
        """Runs of cells as expressions, at most ``2 ** REGION_BITS``; a run may span keys."""
        owners, (firsts, lasts) = self._owned(runs)
        if _are_everywhere(firsts):
            return [print_expression(BooleanConstant(value=True))]
        return [
            print_expression(self._region(owner, first, last))
            for owner, first, last in zip(
                owners.tolist(),
                (firsts - self.bases[owners]).tolist(),
                (lasts - self.bases[owners]).tolist(),
                strict=True,
            )
        ]

    def _owned(self, runs: CellRuns) -> tuple[Int64s, CellRuns]:
        """The same cells in runs of one key each, and the places of these keys."""
        split = _split(runs, self.bases)
        return np.searchsorted(self.bases, split.firsts, "right") - 1, split

    def _region(self, owner: int, first: int, last: int) -> Expression:
        (attribute, kind), marks = self.keys[owner], self.marks[owner]
        if first == last and first % 2:
            return Compare(attribute, "=", literal(kind, marks[first // 2]))
        ends: list[Expression] = []
        if first > 0:
            low = literal(kind, marks[(first - 1) // 2])
            ends.append(Compare(attribute, ">=" if first % 2 else ">", low))
        if last < 2 * len(marks):
            high = literal(kind, marks[last // 2])
            ends.append(Compare(attribute, "<=" if last % 2 else "<", high))
        if not ends:
            return Not(IsNull(attribute))
        return ends[0] if len(ends) == 1 else And(tuple(ends))


def _are_everywhere(firsts: Int64s) -> bool:
    """Whether these regions cover every event, or are too many to be told apart."""
    return len(firsts) >= 1 << REGION_BITS or bool((firsts == EVERY_CELL).any())


def _split(runs: CellRuns, bases: Int64s) -> CellRuns:
    """The same cells, in runs that do not reach from one key into another."""
    firsts, lasts = runs
    owners = np.searchsorted(bases, firsts, "right") - 1
    counts = np.searchsorted(bases, lasts, "right") - owners
    keys = ranges(owners, counts)
    return CellRuns(
        np.maximum(np.repeat(firsts, counts), bases[keys]),
        np.minimum(np.repeat(lasts, counts), bases[keys + 1] - 1),
    )


def united(firsts: Int64s, lasts: Int64s) -> CellRuns:
    """The union of intervals. O(n log n)."""
    order = np.argsort(firsts, kind="stable")
    firsts, lasts = firsts[order], np.maximum.accumulate(lasts[order])
    apart = np.ones(len(firsts), dtype=np.bool_)
    apart[1:] = firsts[1:] > lasts[:-1] + 1
    ends = np.append(apart[1:], True)[: len(firsts)]
    return CellRuns(firsts[apart], lasts[ends])


def literal(kind: int, value: MarkValue) -> Literal:
    """A mark as a literal that reads back as exactly this value."""
    if kind == BOOLEAN:
        return Literal(bool(value))
    if kind == TIME:
        assert isinstance(value, int)
        return Literal(_EPOCH + dt.timedelta(microseconds=value))
    if isinstance(value, str):
        return Literal(value)
    if isinstance(value, int):
        return Literal(value if INT64_MIN <= value <= INT64_MAX else float(value))
    digits = f"{value:f}".lstrip("+-0")
    # What the language cannot write as a decimal has been written as a float.
    return Literal(value if len(digits) - 1 <= MAX_DECIMAL_DIGITS else float(value))


def value_text(value: MarkValue) -> str:
    """A value as text, for a column of them."""
    return value if isinstance(value, str) else str(value)


def text_value(kind: int, text: str) -> MarkValue:
    """The value again."""
    if kind == STRING:
        return text
    return exact(Decimal(text)) if kind == NUMBER else int(text)


def shared_kind(kind: int) -> int:
    """The kind of a channel, with all those that the ruler does not cut as "present"."""
    return kind if kind <= STRING else ANY


def compared(index: Index) -> list[RulerKey]:
    """The attributes of an index, with each kind that it compares them with, or ``ANY``."""
    names, rank = index.rank.attribute_names(), index.rank
    kinds = np.where(np.isin(rank.channel_kinds, (REVERSED, PATTERN)), STRING, rank.channel_kinds)
    pairs = np.unique(np.stack((rank.channel_attributes, kinds), axis=1), axis=0)
    return [RulerKey(names[attribute], kind) for attribute, kind in pairs.tolist()]


def witnesses(keys: Iterable[RulerKey]) -> list[str]:
    """Expressions that never hold, and that make these attributes and kinds known."""
    distinct = set(keys)
    with_kind = {key.attribute for key in distinct if key.kind != ANY}
    return [
        print_expression(_witness(*key))
        for key in sorted(distinct)
        if key.kind != ANY or key.attribute not in with_kind
    ]


def _witness(attribute: str, kind: int) -> Expression:
    if kind == ANY:
        return And((IsNull(attribute), Not(IsNull(attribute))))
    return And(tuple(Compare(attribute, "=", literal(kind, value)) for value in _TWO_VALUES[kind]))


def build_router(
    ruler: Ruler, regions: Sequence[CellRuns], sample: Any, keys: Iterable[RulerKey] = ()
) -> Index:
    """The index that tells which shards an event visits; ``regions`` are those of each shard.

    It judges events by the attributes and kinds in ``keys``, those of all parts. Of two mistyped
    values, it reports the one whose attribute comes first by name.
    """
    above = len(regions) << REGION_BITS
    texts = {above + k: text for k, text in enumerate(witnesses(keys))}
    texts |= {
        shard << REGION_BITS | k: text
        for shard, runs in enumerate(regions)
        for k, text in enumerate(ruler.expressions(runs))
    }
    return Index.build(texts, sample=sample, functions=SPARK)


def visits(router: Index, n_shards: int, events: Any) -> Int64s:
    """How many of the events visit each shard."""
    return _counts(router, np.asarray(router.ids) >> REGION_BITS, n_shards, events)


def presence(attributes: Sequence[str], events: Any) -> npt.NDArray[np.float64]:
    """The share of events that carry each attribute."""
    texts = {i: print_expression(Not(IsNull(name))) for i, name in enumerate(attributes)}
    counts = _counts(Index.build(texts, functions=SPARK), np.arange(len(texts)), len(texts), events)
    return counts / max(1, len(events))


def _counts(index: Index, groups: Int64s, n_groups: int, events: Any) -> Int64s:
    """For each group of subscriptions, how many events match at least one of it."""
    matches = Matcher(index.for_sample()).match(events)
    rows = np.repeat(np.arange(len(matches.offsets) - 1), np.diff(matches.offsets))
    found = np.unique(rows * n_groups + groups[matches.subscriptions])
    return np.bincount(found % max(1, n_groups), minlength=n_groups)
