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
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
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
    """The sets again, as views. O(attributes); those of format 2 are built again."""
    if not packed:
        return {}
    arrays = dict(packed)
    ends, attributes = arrays.pop("ends"), arrays.pop("attributes")
    starts = np.concatenate((np.zeros((len(ends), 1), dtype=np.int64), ends[:, :-1]), axis=1)
    if "programs" in arrays:
        from bittern.model.patterns.sets import PatternSet  # noqa: PLC0415  only then

        read = PatternSet.from_arrays
    else:  # format 2
        from bittern.model.patterns.older import set_of_older as read  # noqa: PLC0415
    return {
        int(attribute): read(
            {
                name: arrays[name][starts[row, i] : ends[row, i]]
                for row, name in enumerate(sorted(arrays))
            }
        )
        for i, attribute in enumerate(attributes)
    }


def check_sets(sets: Mapping[int, PatternSet], attributes: npt.NDArray[np.int32]) -> None:
    """Verify all sets; ``attributes`` has the attribute of each channel of a pattern."""
    found, counts = np.unique(attributes, return_counts=True)
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == {
        attribute: len(patterns) for attribute, patterns in sets.items()
    }, "there is not one channel per pattern"
    for patterns in sets.values():
        patterns.check()
