"""Tagged values: the values of events of any form, one entry per attribute in use.

Two events ``{"color": "red", "price": 9.5}`` and ``{"price": 7}``, with attributes 0 = color and
1 = price, are::

    rows        0       0      1
    attributes  0       1      1
    tags        STRING  FLOAT  INTEGER
    payloads    10      bits   7           the string starts at data[10]
    lengths     3       0      0

Missing and null values have no entry, and an attribute has one entry at most per event. 21 bytes
per entry, plus the strings' bytes, which mostly stay where the events hold them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

INTEGER = 1  # the payload is the integer
FLOAT = 2  # the payload has the bits of the float64
STRING = 3  # the payload is where the string starts in data
BOOLEAN = 4  # the payload is 0 or 1
TIMESTAMP = 5  # the payload is microseconds since 1970 in UTC
# There is a value, but a list, a struct or of a type no predicate compares. The payload is the
# maker's, who can open the value by it; above PATH_BITS is how much of a path led to the list that
# is in the attribute's way, 0 if it is the attribute itself.
OTHER = 6
PATH_BITS = 48
# There is a value that no payload holds; the maker of the entry compares it with the constants.
EXACT = 7  # a number
EXACT_TIME = 8  # a time between two microseconds


class TaggedValues(NamedTuple):
    """Columns of equal length, one entry per value, ordered by row."""

    rows: npt.NDArray[np.int32]  # number of the event in its batch
    attributes: npt.NDArray[np.int32]
    tags: npt.NDArray[np.uint8]
    payloads: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]  # of strings, in bytes; else 0
    data: npt.NDArray[np.uint8]  # what string payloads point into

    def at(self, which: npt.NDArray[Any] | slice) -> TaggedValues:
        """Some of them, by mask, by ascending places, or by slice."""
        rows, attributes, tags, payloads, lengths, data = self
        return TaggedValues(
            rows[which], attributes[which], tags[which], payloads[which], lengths[which], data
        )
