"""What a snapshot holds, for tests of those who write it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bittern.engine.snapshot.folder import read_snapshot


def holds(path: Path, arrays: Mapping[str, np.ndarray]) -> bool:
    snapshot = read_snapshot(path, verify=True)
    return snapshot.arrays.keys() == arrays.keys() and all(
        np.array_equal(snapshot.arrays[name], arrays[name]) for name in arrays
    )
