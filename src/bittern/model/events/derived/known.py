"""Cells that the terms of an attribute have for values which earlier batches had as well.

Offers have the same hundred brands in every batch. What ``lower(brand)`` and the other terms that
read nothing but ``brand`` are for a brand is computed when it first comes, then looked up::

    values                Acme  Apex  Zeta
    channel of lower(…)   17    12    -1        -1: no cell, as the term is NULL
    channel of length(…)  40    40    40

Values for which Spark would fail a term are not kept, as each batch has to list them. What is kept
is replaced as a whole, so that threads may share it. O(rows x channels), and the terms over what is
new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.model.distinct import places_in, table_of
from bittern.model.rank.cells import spread_cells
from bittern.model.rank.encoded import Pairs
from bittern.model.strings import StringTable

#: Rows that fail, and why each does.
Failures = list[tuple[int, str]]
#: Pairs of the terms over some values; and by term which of the values fail, and why.
Compute = Callable[[pa.Array], tuple[Pairs, dict[int, Failures]]]

#: Cells, and bytes of values, that are kept for one attribute.
_MOST_CELLS = 1 << 21
_MOST_BYTES = 1 << 21
_SHIFT, _ROW_MASK = np.uint64(32), np.uint64(0xFFFFFFFF)


class _Seen(NamedTuple):
    values: pa.Array
    cells: npt.NDArray[np.int32]  # (channels, values): global cells, or -1
    table: StringTable | None = None  # of strings: where each is

    def places(self, values: pa.Array) -> npt.NDArray[np.int64]:
        """Where these values are, or -1."""
        if self.table is not None:
            return places_in(self.table, values).astype(np.int64)
        found = pc.index_in(values, self.values).fill_null(-1)
        return np.asarray(found.to_numpy(), dtype=np.int64)

    def joined(self, other: _Seen) -> _Seen:
        values = pa.concat_arrays([self.values, other.values])
        return _Seen(values, np.concatenate((self.cells, other.cells), axis=1))

    def at(self, places: npt.NDArray[np.int64]) -> _Seen:
        return _Seen(self.values.take(pa.array(places)), self.cells.take(places, axis=1))

    def may_stay(self) -> bool:
        return self.cells.size <= _MOST_CELLS and self.values.nbytes <= _MOST_BYTES


class Known:
    """Of one attribute, for terms whose cells are in these channels."""

    def __init__(self, channels: Sequence[int], bases: npt.NDArray[np.int32]) -> None:
        self._channels = np.unique(np.asarray(channels, dtype=np.int64))
        self._bases = bases
        self._seen: dict[pa.DataType, _Seen] = {}

    def has_room(self, n_values: int) -> bool:
        """Whether a batch with so many values may be asked for."""
        return n_values * len(self._channels) <= _MOST_CELLS

    def pairs(
        self, values: pa.Array, codes: npt.NDArray[np.int64], compute: Compute
    ) -> tuple[list[Pairs], dict[int, Failures]]:
        """The pairs of all rows, whose codes are places of distinct values; and which values fail.

        One piece for each channel.
        """
        seen = self._seen.get(values.type) or self._placed(values[:0], np.empty(0, np.uint64))
        found = seen.places(values)
        new = np.flatnonzero(found < 0)
        failures: dict[int, Failures] = {}
        if len(new):
            own = values.take(pa.array(new))
            pairs, failed = compute(own)
            found[new] = len(seen.values) + np.arange(len(new))
            seen = seen.joined(self._placed(own, pairs))
            for term, entries in failed.items():
                failures[term] = [(int(new[place]), why) for place, why in entries]
            self._keep(seen, found, {place for each in failures.values() for place, _ in each})
        places, n_rows = found[codes], len(codes)
        pieces = []
        for cells in seen.cells:
            out = np.empty(n_rows, dtype=np.uint64)
            pieces.append(out[: spread_cells(cells, places, out)])
        return pieces, failures

    def _keep(self, seen: _Seen, found: npt.NDArray[np.int64], failing: set[int]) -> None:
        """Keep all but what fails; or what this batch has, which the next one may have as well."""
        kept = np.arange(len(seen.values)) if seen.may_stay() else np.unique(found)
        if failing or not seen.may_stay():
            seen = seen.at(np.setdiff1d(kept, found[sorted(failing)]))
        if seen.may_stay():
            kind = seen.values.type
            table = table_of(seen.values) if pa.types.is_string(kind) else None
            self._seen[kind] = seen._replace(table=table)

    def _placed(self, values: pa.Array, pairs: Pairs) -> _Seen:
        cells = np.full((len(self._channels), len(values)), -1, dtype=np.int32)
        own = (pairs >> _SHIFT).astype(np.int64)
        channels = np.searchsorted(self._bases, own, "right") - 1
        rows = (pairs & _ROW_MASK).astype(np.int64)
        cells[np.searchsorted(self._channels, channels), rows] = own
        return _Seen(values, cells)
