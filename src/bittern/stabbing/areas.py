"""Areas: how lists in flat arrays grow, both id lists and the words of bit vectors.

List n is the part [begins[n], ends[n]) of one or more arrays, ascending, and may grow up to
``limits[n]``. One that is at its limit moves to the free end with twice the room, and leaves a
hole::

    begins   0  2                5  2
    ends     2  5       ->       8  5        a third number for list 0
    limits   2  5                9  5
    array    3 8|1 4 9|free ...  . .|1 4 9|3 5 8 .|free ...

``figures`` are what is in use from the start of the arrays on, holes included, and what belongs to
lists. The caller makes sure that there is room, and copies the list, since only it knows of which
arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.jit import inline

if TYPE_CHECKING:
    from bittern.arrays import Int32s

# Where the running figures are.
USED, HELD = 0, 1


@inline
def rank(numbers: Any, begin: Any, end: Any, number: Any) -> Any:
    """Position in numbers[begin:end] of the first that is not below ``number``."""
    while begin < end:
        middle = (begin + end) >> 1
        if numbers[np.uint64(middle)] < number:  # unsigned: no test for a negative index
            begin = middle + 1
        else:
            end = middle
    return begin


@inline
def room_to_move(begin: Any, end: Any, smallest: Any) -> Any:
    """Size of the area that a list gets when it moves, at least ``smallest``."""
    return max(smallest, 2 * (int(end) - int(begin)))


@inline
def move_to_end(
    n: Any, begins: Any, ends: Any, limits: Any, figures: Any, smallest: Any
) -> tuple[Any, Any]:
    """Give list n an area at the free end; where it begins and ends there."""
    begin, end, moved = int(begins[n]), int(ends[n]), int(figures[USED])
    figures[USED] += room_to_move(begin, end, smallest)
    begins[n] = moved
    ends[n] = moved + end - begin
    limits[n] = figures[USED]
    return moved, moved + end - begin


def check_areas(begins: Int32s, ends: Int32s, limits: Int32s, used: int, what: str) -> None:
    """Verify that every list is in its area, and areas apart and in use: O(n log n)."""
    assert (ends <= limits).all(), f"a {what} leaves its area"
    areas = np.flatnonzero(limits > begins)
    areas = areas[np.argsort(begins[areas], kind="stable")]
    assert not len(areas) or limits[areas[-1]] <= used, "an area is past the end"
    assert (limits[areas[:-1]] <= begins[areas[1:]]).all(), f"two {what}s share an area"
