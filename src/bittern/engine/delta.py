"""A delta: a small index over what was subscribed since the snapshot, and marks of the dead.

Row       one subscription as it was read, and where it is indexed
Segment   an index and its marks: the snapshot, or a delta, which keeps its rows
State     the segments that one call of ``match`` works on, with the marks as they were then
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.engine.index import Index
from bittern.engine.subscriptions import Subscriptions
from bittern.model.ids import Ids

if TYPE_CHECKING:
    from bittern.language.shapes import Shapes

#: The marks of an index that has lost no subscription.
ALL_ALIVE = np.empty(0, dtype=np.uint8)


@dataclass(slots=True)
class Row:
    """A subscription that is not in the snapshot: its reading, and where it is indexed."""

    id: str | int
    text: str
    weight: float | None
    shape: int
    parameters: tuple[str, ...]
    segment: Segment | None = None
    position: int = -1


@dataclass(eq=False)
class Segment:
    """An index and its marks; ``rows`` are those of a delta, None for the snapshot."""

    index: Index
    alive: npt.NDArray[np.uint8]
    dead: int
    rows: list[Row] | None


class State(NamedTuple):
    """What one call of ``match`` works on."""

    segments: tuple[Segment, ...]
    marks: tuple[npt.NDArray[np.uint8], ...]
    ids: Ids


def index_rows(rows: list[Row], shapes: Shapes) -> Index:
    """A small index of rows that have been read already."""
    parameters = [parameter for row in rows for parameter in row.parameters]
    weighted = any(row.weight is not None for row in rows)
    catalog = Subscriptions(
        [row.id for row in rows],
        pa.array([row.text for row in rows], type=pa.large_string()),
        np.array([1.0 if row.weight is None else row.weight for row in rows]) if weighted else None,
        np.array([row.shape for row in rows], dtype=np.int32),
        pa.array(parameters, type=pa.large_string()).dictionary_encode(),
        [],
    )
    return Index.of_subscriptions(catalog, shapes.templates)


def state_weights(state: State) -> npt.NDArray[np.float64] | None:
    """The weights of all subscriptions of a state, by position; None if all weigh the same."""
    if all(segment.index.weights is None for segment in state.segments):
        return None
    return np.concatenate(
        [
            np.ones(len(segment.index)) if segment.index.weights is None else segment.index.weights
            for segment in state.segments
        ]
    )
