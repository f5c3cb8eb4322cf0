"""Names of arrays by what they hold, for annotations."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]
Float64s: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
