"""The interface that receives the values of a batch, and that of stored events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

#: What opens a value without a kind, from its row and its payload.
Opener = Callable[[int, int], Any]

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from bittern.model.events.attributes import Attributes
    from bittern.model.events.columns import Column
    from bittern.model.events.mistyped import Strays
    from bittern.model.events.reads import Rejects
    from bittern.model.numbers import Number
    from bittern.model.tagged import TaggedValues

    Rows = npt.NDArray[Any]


class ValueSink(Protocol):
    """Receives the values of a batch of any form; ``Batch`` is one."""

    def add_column(self, attribute: int, column: Column) -> None:
        """The values of a column stand in the rows where it has them."""

    def add_tagged(self, values: TaggedValues) -> None:
        """Values of any kind; those that no payload holds come once more, in the next two."""

    def add_exact_numbers(self, numbers: list[tuple[int, int, Number]]) -> None:
        """(row, attribute, number): what mappings hold and ``add_tagged`` left out."""

    def add_variant_numbers(self, values: TaggedValues) -> None:
        """Tagged values of objects, among them what ``add_tagged`` left out."""

    def add_present(self, attributes: Rows, rows: Rows) -> None:
        """Attributes that are there in these rows, one by one; they have no other value."""

    def mark(self) -> int:
        """Where the next values will be, for ``move_rows``."""

    def move_rows(self, mark: int, rows: Rows) -> None:
        """Values since ``mark`` that are in row i belong in ``rows[i]``."""


class StraySeeker(Protocol):
    """Finds values of a kind that no subscription compares (``model/events/mistyped.py``)."""

    def strays(self, values: TaggedValues) -> Strays:
        """Those among these values."""


class RepeatingSink(ValueSink, Protocol):
    """Also takes values that many rows share."""

    def repeat_rows(self, mark: int, codes: Rows) -> None:
        """Values since ``mark`` that are in row i belong in every row whose code is i."""


class OpeningSink(ValueSink, Protocol):
    """Also wants what lists and objects hold."""

    def add_others(self, values: TaggedValues, open_: Opener) -> None:
        """Values without a kind, among others, and what opens them by row and payload."""

    def within(self, attribute: int, path: str, lists: pa.Array) -> pa.Array:
        """What an attribute is in a column of lists, which stands at a path on the way to it."""


class KeptEvents(Protocol):
    """Events that were kept, and know how to be read again (``history/documents/segments.py``)."""

    def read_into(self, attributes: Attributes, sink: ValueSink) -> tuple[int, Rejects]:
        """Read values of these attributes; returns the number of events and the unreadable ones."""
