"""The rows of a delta in columns: what it is compiled from, and what it gives to a larger one.

Rows come one by one. Once they are columns, making one delta of several takes over whole columns::

    delta 1   ids 7 8   alive 1 0    shapes 0 1    parameters a 1 b 2
    delta 2   ids 9     alive 1      shapes 1      parameters b 3
    joined    ids 7 9                shapes 0 1    parameters a 1 b 3

No step in Python is made for each row, except for its id: a writer that folds keeps the interpreter
from those who match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.engine.index import Index
from bittern.engine.subscriptions import Subscriptions, joined_weights, select_rows
from bittern.model.distinct import encoded, unified
from bittern.model.strings import arrow_of

if TYPE_CHECKING:
    from bittern.engine.live.delta import Row
    from bittern.model.classes.expand import ShapePlan


class RowColumns(NamedTuple):
    """Some rows, and the plans that their shapes are numbers of."""

    held: Subscriptions
    plans: list[ShapePlan]

    @classmethod
    def of_rows(cls, rows: Sequence[Row]) -> RowColumns:
        """From rows as they were read. O(rows)."""
        # Equal plans of different readers may stand side by side, which costs little.
        keys = [id(row.plan) for row in rows]
        plans = dict(zip(keys, (row.plan for row in rows), strict=True))
        shapes = {key: shape for shape, key in enumerate(plans)}
        parameters = [parameter for row in rows for parameter in row.parameters]
        weighted = any(row.weight is not None for row in rows)
        held = Subscriptions(
            [row.id for row in rows],
            pa.array([row.text for row in rows], type=pa.large_string()),
            np.array([1.0 if row.weight is None else row.weight for row in rows])
            if weighted
            else None,
            np.array([shapes[key] for key in keys], dtype=np.int32),
            encoded(arrow_of(parameters)),
            [],
        )
        return cls(held, list(plans.values()))

    @classmethod
    def joined(cls, parts: Sequence[tuple[RowColumns, npt.NDArray[np.uint8]]]) -> RowColumns:
        """The living rows of several, one behind the other; no marks: all are alive."""
        numbers: dict[int, int] = {}
        plans: list[ShapePlan] = []
        living, shape_ids = [], []
        for (held, own), alive in parts:
            if len(alive):
                templates = [plan.template for plan in own]
                held = select_rows(held, templates, alive.view(np.bool_))  # noqa: PLW2901
            for plan in own:
                if numbers.setdefault(id(plan), len(plans)) == len(plans):
                    plans.append(plan)
            living.append(held)
            renumbered = np.array([numbers[id(plan)] for plan in own] or [0], dtype=np.int32)
            shape_ids.append(renumbered[held.shape_ids])
        columns = Subscriptions(
            [id_ for held in living for id_ in held.ids],
            pa.concat_arrays([held.texts for held in living]),
            joined_weights([held.weights for held in living], [len(held.ids) for held in living]),
            np.concatenate(shape_ids),
            unified([held.parameters for held in living]),
            [],
        )
        return cls(columns, plans)

    def compiled(self) -> Index:
        """A small index of them."""
        return Index.of_subscriptions(self.held, self.plans)
