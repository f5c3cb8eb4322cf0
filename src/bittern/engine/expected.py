"""How many events to expect in each cell, from a sample of typical events if there is one.

A subscription is filed under predicates that few events satisfy (``matching/pivot/cover.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bittern.matching.pivot.cover import cell_mass
from bittern.model.classes.compile import Compiled
from bittern.model.events.encoder import Encoder

if TYPE_CHECKING:
    from bittern.engine.sets.members import Members

_NO_SETS: Mapping[str, Any] = {}


def expected_events(
    compiled: Compiled, sample: Any, sets: Mapping[str, Members] = _NO_SETS
) -> npt.NDArray[np.float64]:
    """The number of events to expect in each cell, from a sample if there is one."""
    if sample is None:
        return cell_mass(compiled.rank, compiled.classes, None, 0)
    encoder = Encoder(compiled.rank, compiled.patterns, for_sample=True)
    events = encoder.encode(sample, sets=sets).events
    counts = np.zeros(compiled.rank.n_cells, dtype=np.int64)
    counts[events.cells] = np.diff(events.offsets)
    return cell_mass(compiled.rank, compiled.classes, counts, events.n_events)
