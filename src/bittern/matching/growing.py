"""Arrays that grow at their end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def longer(array: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """The array with n zeros after it; twice the memory where it has to move.

    An array that is a part of a larger one of its own grows within that, so that n items appended
    one by one cost O(n) moves in all. Never hand out what is still to grow.
    """
    size, room = len(array), array.base
    if not isinstance(room, np.ndarray) or len(room) < size + n or not room.flags.writeable:
        room = np.zeros(size + max(size, n), array.dtype)
        room[:size] = array
    return room[: size + n]
