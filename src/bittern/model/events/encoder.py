"""Encodes events of any form into cells in rank space.

What events are, and which attributes they have, is told by ``model/events/reader.py``. Here their
values become packed pairs of cell and event (``model/events/batch.py``), then those of terms
(``derived.py``) and of attributes that stand for the presence of others (``present.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bittern.language.literals import PRESENT, TERM
from bittern.model.events.attributes import Attributes
from bittern.model.events.batch import Constants, PairBatch, Pairs, cells_of, rows_of
from bittern.model.events.columns import read_column
from bittern.model.events.mistyped import Kinds, joined
from bittern.model.events.objects import (
    is_json,
    is_variant_column,
    json_names,
)
from bittern.model.events.reader import EventReader
from bittern.model.events.reads import Encoded, Read, Rejects, readable_rows
from bittern.model.rank.space import ANY, RankSpace

if TYPE_CHECKING:
    from bittern.model.events.derived import DerivedAttributes
    from bittern.model.events.present import PresentAttributes
    from bittern.model.patterns.sets import PatternSet
    from bittern.terms.members import NamedSets

_NO_SETS: Mapping[str, Any] = {}


class Encoder(Attributes):
    """Encodes events for one rank space. Immutable; threads may share it."""

    def __init__(
        self, rank: RankSpace, patterns: Mapping[int, PatternSet], *, for_sample: bool = False
    ) -> None:
        """With ``for_sample``, terms that only Spark can evaluate have no values."""
        super().__init__(rank.attribute_names())
        self.constants = Constants(rank, patterns)
        self.kinds = Kinds(rank.arrays.channels, patterns, self.names.numbers)
        #: By cell, whether it belongs to a hidden attribute, which no event carries; None: none do.
        self.hidden = self.constants.hidden_cells(self.names.numbers)
        has_terms = any(name.startswith(TERM) for name in self.names.numbers)
        #: The attributes that stand for terms; None: there are none.
        self.derived = _derived(self.names.numbers, for_sample=for_sample) if has_terms else None
        asks = any(name.startswith(PRESENT) for name in self.names.numbers)
        #: The attributes that stand for the presence of others; None: there are none.
        self.present = _present(self.names.numbers) if asks else None

    def hidden_cell(self, name: str) -> int:
        """The cell that says that a hidden attribute is there."""
        arrays = self.constants.arrays
        return int(arrays.bases[arrays.channels[self.names.numbers[name], ANY]])

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
        batch = PairBatch(self.constants)
        reader = EventReader(self, batch, json, self.kinds)
        n_events = reader.read(events)
        pairs = batch.pairs()
        strays = joined(reader.strays) if reader.strays else self.kinds.no_strays()
        if self.hidden is not None:
            pairs = pairs[~self.hidden[cells_of(pairs)]]
        if self.derived is not None:
            more, failures, unread = self._derive(events, json, n_events, sets)
            pairs, strays = np.concatenate((pairs, *more)), strays.with_failures(failures)
            reader.rejects += unread
        if self.present is not None:
            present = PairBatch(self.constants)
            reader.rejects += self.present.add(events, json, present)
            pairs = np.concatenate((pairs, present.pairs()))
        rejects = reader.rejected()
        if rejects:
            kept = readable_rows(n_events, rejects)
            pairs, strays = pairs[kept[rows_of(pairs)]], strays.among(kept)
        return Read(pairs, n_events, rejects, strays, self.constants.arrays.bases)

    def _derive(
        self, events: Any, json: str | Sequence[str], n_events: int, sets: NamedSets
    ) -> tuple[list[Pairs], list[tuple[int, str]], Rejects]:
        """The pairs of attributes that stand for terms, and the rows for which some has no value.

        Also those that cannot be read because of what only terms ask for. Events are read once
        more, for the attributes that terms read, unless Spark has computed all of them.
        """
        from bittern.model.events.derived import computed_terms  # noqa: PLC0415  only for terms

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


def _derived(numbers: Mapping[str, int], *, for_sample: bool) -> DerivedAttributes:
    from bittern.model.events.derived import DerivedAttributes  # noqa: PLC0415  only for terms

    return DerivedAttributes(numbers, for_sample=for_sample)


def _present(numbers: Mapping[str, int]) -> PresentAttributes:
    from bittern.model.events.present import PresentAttributes  # noqa: PLC0415  only then

    return PresentAttributes(numbers)
