"""Values that a batch repeats: what is computed from one of them is computed once for all rows.

A batch of ten thousand offers may have a hundred brands. ``lower(brand)`` and every other term that
reads nothing but ``brand`` are then evaluated over a hundred values, and so are their cells::

    brand      Acme Apex Acme NULL          distinct  Acme Apex NULL      lower  acme apex NULL
    codes      0    1    0    2

Whether a column is worth it is seen in its first rows: in a sample of a sixteenth of the rows, a
column with a quarter as many distinct values as rows has nine tenths distinct values. O(rows) for
each attribute that is asked for, and next to nothing where values hardly repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.model.distinct import distinct
from bittern.terms.logic.members import NamedSets
from bittern.terms.scope import Scope

#: In smaller batches there is nothing to gain.
_LEAST_ROWS = 1_024
#: How many rows a distinct value has to have, on average.
_ROWS_EACH = 4
_SAMPLED = 16
#: The share of distinct values in the sample of a column that just has that many rows each.
_SHARE = 0.88


@dataclass(frozen=True, eq=False)
class Repeated:
    """The distinct values of an attribute, NULL included, and which one each row has."""

    scope: Scope
    codes: npt.NDArray[np.int64]

    def scope_of(self, name: str, values: pa.Array) -> Scope:
        """A scope of other values of the attribute."""
        return self.scope.within({name: values}, len(values))

    def in_rows(self, failures: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
        """What fails for distinct values, as (row, reason) for the rows that have them."""
        values: dict[str, list[int]] = {}
        for value, reason in failures:
            values.setdefault(reason, []).append(value)
        return [
            (row, reason)
            for reason, own in values.items()
            for row in np.flatnonzero(np.isin(self.codes, own)).tolist()
        ]


class Repeats:
    """The columns of a batch that terms read, each with one type."""

    def __init__(
        self, columns: Mapping[str, pa.Array], kept: frozenset[int], sets: NamedSets
    ) -> None:
        """``kept`` are the ids of nodes whose values are asked for again (``terms/scope.py``)."""
        self._columns = columns
        self._kept = kept
        self._sets = sets
        self._found: dict[str, Repeated | None] = {}

    def of(self, reads: tuple[str, ...]) -> Repeated | None:
        """The distinct values for a term that reads these attributes, if they are worth it."""
        if len(reads) != 1 or reads[0] not in self._columns:
            return None
        (name,) = reads
        if name not in self._found:
            self._found[name] = self._repeated(name)
        return self._found[name]

    def _repeated(self, name: str) -> Repeated | None:
        column = self._columns[name]
        if len(column) < _LEAST_ROWS or not _is_told_apart(column.type):
            return None
        sample = column.slice(0, len(column) // _SAMPLED)
        if pc.count_distinct(sample, mode="all").as_py() > _SHARE * len(sample):
            return None
        if pa.types.is_string(column.type):
            codes, firsts = distinct(column)
            values = column.take(pa.array(firsts))
        else:
            encoded = pc.dictionary_encode(column, null_encoding="encode")
            codes, values = encoded.indices.to_numpy(), encoded.dictionary
        if _ROWS_EACH * len(values) > len(column):
            return None
        scope = Scope({name: values}, len(values), repeated=self._kept, sets=self._sets)
        return Repeated(scope, codes.astype(np.int64))


def _is_told_apart(kind: pa.DataType) -> bool:
    """Whether equal values of a type are the same: -0.0 and 0.0 are not, printed."""
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_integer(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
    )
