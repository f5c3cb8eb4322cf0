"""Encodes events of any form into cells in rank space.

What events are, and which attributes they have, is told by ``model/events/reader.py``. Here their
values become packed pairs of cell and event (``model/events/batch.py``), then those of terms
(``derived/derived.py``) and of attributes that stand for the presence of others (``present.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.language.literals import MARKS, PRESENT, TERM
from bittern.model.events.attributes import Attributes
from bittern.model.events.batch import Constants, PairBatch, cells_of, rows_of
from bittern.model.events.columns import read_column
from bittern.model.events.mistyped import Kinds, Strays, joined
from bittern.model.events.objects import (
    is_json,
    is_variant_column,
    json_names,
)
from bittern.model.events.reader import EventReader
from bittern.model.events.reads import Encoded, Read, Rejects, first_reasons, readable_rows
from bittern.model.rank.encoded import Pairs
from bittern.model.rank.space import ANY, RankSpace

if TYPE_CHECKING:
    from bittern.model.events.derived.derived import DerivedAttributes
    from bittern.model.events.present import PresentAttributes
    from bittern.model.events.shared import Asking
    from bittern.model.patterns.sets import PatternSet
    from bittern.model.rank.touched import Touched
    from bittern.model.strings import StringTable
    from bittern.terms.logic.members import NamedSets

_NO_SETS: Mapping[str, Any] = {}


class Encoder(Attributes):
    """Encodes events for one rank space. Immutable; threads may share it."""

    def __init__(
        self, rank: RankSpace, patterns: Mapping[int, PatternSet], *, for_sample: bool = False
    ) -> None:
        """With ``for_sample``, terms that only Spark can evaluate have no values."""
        super().__init__(rank.attribute_names())
        self._canonical = rank.names
        self._within: tuple[Encoder, npt.NDArray[np.int32] | None] | None = None
        self.constants = Constants(rank, patterns)
        self.kinds = Kinds(rank.arrays.channels, patterns, self.numbers)
        #: By cell, whether it belongs to a hidden attribute, which no event carries; None: none do.
        marked = [name for mark in MARKS for name in rank.names_with(mark)]
        self.hidden = self.constants.hidden_cells([self.numbers[name] for name in marked])
        has_terms = any(name.startswith(TERM) for name in marked)
        #: The attributes that stand for terms; None: there are none.
        self.derived = _derived(self.numbers, for_sample=for_sample) if has_terms else None
        asks = any(name.startswith(PRESENT) for name in marked)
        #: The attributes that stand for the presence of others; None: there are none.
        self.present = _present(self.numbers) if asks else None

    def hidden_cell(self, name: str) -> int:
        """The cell that says that a hidden attribute is there."""
        arrays = self.constants.arrays
        return int(arrays.bases[arrays.channels[self.numbers[name], ANY]])

    def encode(
        self, events: Any, json: str | Sequence[str] = (), sets: NamedSets = _NO_SETS
    ) -> Encoded:
        """Read a batch in any of the forms above. O(values).

        ``json`` names columns of a table that hold JSON objects as text. ``sets`` are those that
        values are looked up in.
        """
        return self.read(events, json, sets).encoded()

    def read(self, events: Any, json: str | Sequence[str] = (), sets: NamedSets = _NO_SETS) -> Read:
        """The first half of ``encode``, for callers that have pairs to add."""
        return read_together([self], events, json, sets)[0]

    def numbers_in(self, other: Encoder) -> npt.NDArray[np.int32] | None:
        """By attribute of another encoder the own number, or -1; None if that one lacks some."""
        known = self._within
        if known is None or known[0] is not other:
            own = _own_numbers(self._canonical, other._canonical)
            known = self._within = other, own
        return known[1]

    def completed(
        self,
        batch: PairBatch,
        strays: list[Strays],
        reader: EventReader,
        n_events: int,
        events: Any,
        json: str | Sequence[str],
        sets: NamedSets,
    ) -> Read:
        """What was read, with the attributes that no event carries itself."""
        pairs, rejects = batch.pairs(), list(reader.rejects)
        own_strays = joined(strays) if strays else self.kinds.no_strays()
        if self.hidden is not None:
            pairs = pairs[~self.hidden[cells_of(pairs)]]
        if self.derived is not None:
            more, failures, unread = self._derive(events, json, n_events, sets)
            pairs, own_strays = np.concatenate((pairs, *more)), own_strays.with_failures(failures)
            rejects += unread
        if self.present is not None:
            present = PairBatch(self.constants)
            rejects += self.present.add(events, json, present)
            pairs = np.concatenate((pairs, present.pairs()))
        if rejects:
            rejects = first_reasons(rejects)
            kept = readable_rows(n_events, rejects)
            pairs, own_strays = pairs[kept[rows_of(pairs)]], own_strays.among(kept)
        return Read(pairs, n_events, rejects, own_strays, self.constants.arrays.bases)

    def _derive(
        self, events: Any, json: str | Sequence[str], n_events: int, sets: NamedSets
    ) -> tuple[list[Pairs], list[tuple[int, str]], Rejects]:
        """The pairs of attributes that stand for terms, and the rows for which some has no value.

        Also those that cannot be read because of what only terms ask for. Events are read once
        more, for the attributes that terms read, unless Spark has computed all of them.
        """
        from bittern.model.events.derived.derived import computed_terms  # noqa: PLC0415  only for terms

        assert self.derived is not None
        computed = computed_terms(events)
        gathered, batch = self.derived.columns(), PairBatch(self.constants)
        reader = EventReader(self.derived.found_as, gathered, json)
        if not self.derived.are_all_in(computed):
            reader.read(events)
        failures = self.derived.add(gathered, n_events, batch, computed, sets)
        return batch.pieces(), failures, reader.rejected()

    def mistyped_columns(
        self, schema: pa.Schema, json: str | Sequence[str] = ()
    ) -> list[tuple[str, str]]:
        """Columns, and parts of columns, of a type that no subscription can compare.

        Returns (path, reason).
        """
        objects = json_names(json)
        found = []
        for field, paths in zip(schema, self.names.paths("", schema.names), strict=True):
            if field.name in objects or is_json(field.type) or is_variant_column(field):
                continue
            for path, kind in (type_ for own in paths for type_ in self.types(own, field.type)):
                # An array without rows has the type that columns will have.
                channel = read_column(pa.nulls(0, kind)).kind
                why = self.kinds.complaint(path, channel, f"is of type {kind}")
                if why is not None and not pa.types.is_null(kind):
                    found.append((path, why))
        return found


def read_together(
    encoders: Sequence[Encoder],
    events: Any,
    json: str | Sequence[str] = (),
    sets: NamedSets = _NO_SETS,
    touched: Touched | None = None,
) -> list[Read]:
    """Read a batch for several rank spaces: once for all whose attributes the first has too.

    With ``touched``, the cells of the first that the others ask about, these may be spared values
    that none of their tests holds for. O(values) for each of them.
    """
    if len(encoders) > 1:
        from bittern.model.events.shared import Asking, SharedBatch  # noqa: PLC0415  only then
    first, *others = encoders
    batch = PairBatch(first.constants)
    asking: dict[int, Asking] = {}
    for place, other in enumerate(others):
        numbers = other.numbers_in(first)
        if numbers is not None:
            asking[place] = Asking(numbers, PairBatch(other.constants), other.kinds)
    if asking:
        shared = SharedBatch(batch, first.kinds, list(asking.values()), touched)
        reader = EventReader(first, shared, json, shared)
    else:
        reader = EventReader(first, batch, json, first.kinds)
    n_events = reader.read(events)
    reads = [first.completed(batch, reader.strays, reader, n_events, events, json, sets)]
    for place, other in enumerate(others):
        own = asking.get(place)
        if own is None:
            reads.append(other.read(events, json, sets))
        else:
            reads.append(
                other.completed(own.batch, own.strays, reader, n_events, events, json, sets)
            )
    return reads


def _own_numbers(own: StringTable, of_reading: StringTable) -> npt.NDArray[np.int32] | None:
    places = of_reading.find_batch(own.as_tuple.data, own.as_tuple.offsets, 0)
    if places.min(initial=0) < 0:
        return None
    numbers = np.full(len(of_reading), -1, dtype=np.int32)
    numbers[places] = np.arange(len(own), dtype=np.int32)
    numbers.flags.writeable = False
    return numbers


def _derived(numbers: Mapping[str, int], *, for_sample: bool) -> DerivedAttributes:
    from bittern.model.events.derived.derived import DerivedAttributes  # noqa: PLC0415  only for terms

    return DerivedAttributes(numbers, for_sample=for_sample)


def _present(numbers: Mapping[str, int]) -> PresentAttributes:
    from bittern.model.events.present import PresentAttributes  # noqa: PLC0415  only then

    return PresentAttributes(numbers)
