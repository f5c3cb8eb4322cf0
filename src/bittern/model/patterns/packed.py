"""The pattern sets of all attributes as one set of arrays, however many attributes have patterns.

A ``PatternSet`` consists of some twenty arrays. Saved one by one, a thousand attributes would be
twenty thousand files; here each kind of array is laid end to end::

    attributes  3 8           attribute 3 has a set, and so has attribute 8
    actions     1 1 | 0       set of attribute 3, then of attribute 8
    texts       ...
    ends        2 3           one row per kind of array, in the order of their names: where each
                7 9           set's part ends
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.model.patterns.sets import PatternSet


def pack_sets(sets: Mapping[int, PatternSet]) -> dict[str, npt.NDArray[Any]]:
    """Lay the arrays of all sets end to end. O(bytes)."""
    if not sets:
        return {}
    attributes = sorted(sets)
    parts = [sets[attribute].arrays() for attribute in attributes]
    names = sorted(parts[0])
    packed = {name: np.concatenate([part[name] for part in parts]) for name in names}
    packed["ends"] = np.array(
        [np.cumsum([len(part[name]) for part in parts]) for name in names], dtype=np.int64
    )
    packed["attributes"] = np.array(attributes, dtype=np.int32)
    return packed


def unpack_sets(packed: Mapping[str, npt.NDArray[Any]]) -> dict[int, PatternSet]:
    """The sets again, as views. O(attributes)."""
    if not packed:
        return {}
    arrays = dict(packed)
    ends, attributes = arrays.pop("ends"), arrays.pop("attributes")
    starts = np.concatenate((np.zeros((len(ends), 1), dtype=np.int64), ends[:, :-1]), axis=1)
    return {
        int(attribute): PatternSet.from_arrays(
            {
                name: arrays[name][starts[row, i] : ends[row, i]]
                for row, name in enumerate(sorted(arrays))
            }
        )
        for i, attribute in enumerate(attributes)
    }
