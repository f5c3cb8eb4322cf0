"""The interface that receives the values of a batch, and that of stored events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy.typing as npt

    from bittern.model.events.attributes import Attributes
    from bittern.model.events.columns import Column
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
        """Tagged values of documents, among them what ``add_tagged`` left out."""

    def mark(self) -> int:
        """Where the next values will be, for ``move_rows``."""

    def move_rows(self, mark: int, rows: Rows) -> None:
        """Values since ``mark`` that are in row i belong in ``rows[i]``."""


class KeptEvents(Protocol):
    """Events that were kept, and know how to be read again (``history/segments.py``)."""

    def read_into(self, attributes: Attributes, sink: ValueSink) -> tuple[int, Rejects]:
        """Read values of these attributes; returns the number of events and the unreadable ones."""
