"""What no event carries itself, computed for one event: terms, sets and presence.

The call for one event (``kernel.py``) stops where it has read an attribute that something is
computed from. What is computed becomes either a value more, which the call then encodes like the
others, or the cells that a batch would find::

    reads       price 8   brand "Acme"                  what the call has read
    values      price * 2 = 16                          by the machine of terms, on one row
    values      user IN SET vips = TRUE                 by one look-up
    cells       lower(brand) = 'acme'  7:31             by the functions of a batch, and kept
    cells       price is there         9:40

Terms that are NULL where an attribute is are left alone if the event lacks it. Cells are kept for
the values that they were computed from, so a value that comes again costs a look-up. They are
forgotten when there are too many, and when a set is changed. What Spark would fail for, lists, and
objects that terms read are left to the batch.

An index numbers the attributes that it asks for in its own way. Here they are numbered anew, as
events may also have attributes that only terms read, and as none may have a hidden one::

    0 ..          attributes that events carry        in the order of ``names``
    n ..          paths that lead to some             as the scanner of JSON numbers them
    behind these  hidden ones: terms and presence     in the order of the index
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.engine.one_event.kernel import ALWAYS, NULLS
from bittern.engine.one_event.table import ComputedHalf
from bittern.language.literals import MARKS
from bittern.language.presence import is_presence, present_path
from bittern.model.events.attributes import Attributes
from bittern.model.events.derived.one_row import TAGS, LeftError, OneRow
from bittern.model.events.json.tokens import NULL
from bittern.model.rank.space import ANY, SINGLE_KINDS
from bittern.model.tagged import STRING
from bittern.terms.scope import MeaninglessError

if TYPE_CHECKING:
    from bittern.engine.one_event.table import Scratch
    from bittern.model.events.derived.one_row import Given
    from bittern.model.events.encoder import Encoder
    from bittern.terms.logic.members import NamedSets

#: No tag: a value here is left to the batch.
_NO_TAG = 1 << 63


class Numbering(NamedTuple):
    """The arrays of an index by attribute, numbered as the kernel has them."""

    names: Attributes
    channels: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.uint64]
    numbers: npt.NDArray[np.int64]  # in the index, or -1
    hidden: dict[int, int]  # by number in the index

    @classmethod
    def of(cls, encoder: Encoder) -> Numbering:
        """Of an index some of whose attributes no event carries itself."""
        marked = [name for name in encoder.numbers if name.startswith(MARKS)]
        asked = [name for name in encoder.numbers if not name.startswith(MARKS)]
        if encoder.derived is not None:
            asked += encoder.derived.found_as.numbers
        asked += [present_path(name) for name in marked if is_presence(name)]
        names = Attributes(list(dict.fromkeys(asked)))
        n, first = len(names.numbers), len(names.table)
        numbers = np.full(first + len(marked), -1)
        numbers[:n] = [encoder.numbers.get(name, -1) for name in names.numbers]
        numbers[first:] = [encoder.numbers[name] for name in marked]
        known = numbers >= 0
        rank, kinds = encoder.constants.arrays, np.zeros(len(numbers), np.uint64)
        channels = np.full((len(numbers), SINGLE_KINDS), -1, np.int32)
        channels[known] = rank.channels[numbers[known]]
        kinds[known] = encoder.kinds.masks[numbers[known]]
        kinds[n:first], kinds[first:] = _NO_TAG, 0  # terms may have any type
        hidden = {int(number): first + i for i, number in enumerate(numbers[first:])}
        return cls(names, channels, kinds, numbers, hidden)

    def moved(self, places: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """What an index has by attribute, or -1."""
        return np.where(self.numbers >= 0, places[self.numbers], np.int32(-1))


class Computed:
    """What an index asks for that no event carries itself. Threads may share it."""

    def __init__(self, encoder: Encoder, numbering: Numbering) -> None:
        names, rank, patterns = (
            numbering.names,
            encoder.constants.arrays,
            encoder.constants.patterns,
        )
        asking = np.zeros(len(names.table) + 1, np.uint8)
        self._hidden = numbering.hidden
        self._terms, self._read_as = None, {}
        if encoder.derived is not None:
            self._terms = OneRow(encoder.derived, encoder.constants)
            reads = encoder.derived.found_as.numbers
            self._read_as = {names.numbers[name]: number for name, number in reads.items()}
            asking[list(self._read_as)] = 1
            asking[-1] |= ALWAYS * self._terms.are_always_asked
        self._present = encoder.present
        self._cells: dict[int, tuple[int, int]] = {}
        self._there: dict[int, list[int]] = {}
        if self._present is not None:
            asking[-1] |= ALWAYS | NULLS
            for name, number in encoder.numbers.items():
                if is_presence(name):
                    channel = int(rank.channels[number, ANY])
                    self._cells[number] = channel, int(rank.bases[channel])
                    self._there[names.numbers[present_path(name)]] = [number]
            for path, prefix in names.names.prefixes.items():
                below = (self._there.get(place, ()) for place in names.names.below(path))
                self._there[prefix] = [number for own in below for number in own]
        channels = rank.channels[[*numbering.hidden]]
        n_cells = int((channels >= 0).sum())
        n_cells += sum(len(patterns[number]) for number in patterns.keys() & numbering.hidden)
        #: What the scratch has to have.
        self.half = ComputedHalf(asking, len(numbering.hidden), n_cells)

    def add(self, scratch: Scratch, event: Any, sets: NamedSets) -> bool:
        """Compute all for an event that has been read; False if the batch has to do it."""
        entries = list(scratch.entries())
        cells: list[int] = []
        if self._present is not None:
            if type(event) is str:
                there = (self._there.get(entry[0], ()) for entry in entries)
                present = {number for own in there for number in own}
                if any(entry[1] == NULL for entry in entries):
                    entries = [entry for entry in entries if entry[1] != NULL]
                    scratch.put_entries(entries)
            else:
                present = set(self._present.in_mapping(event))
            for number in present:
                cells += self._cells[number]
        if self._terms is not None:
            given: list[Given] = [None] * len(self._read_as)
            for place, tag, payload, length in entries:
                read = self._read_as.get(place)
                if read is None:
                    continue
                if tag not in TAGS:
                    return False
                given[read] = tag, scratch.text(payload, length) if tag == STRING else payload
            try:
                values, more = self._terms.of(given, sets)
            except (LeftError, MeaninglessError, LookupError):
                return False
            scratch.add_entries([(self._hidden[one], tag, word) for one, tag, word in values])
            cells += more
        scratch.put_computed(cells)
        return True
