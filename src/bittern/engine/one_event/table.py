"""The table of addresses: where the arrays of an index and of the scratch lie.

The kernel finds all arrays by the table, a row of (address, length) for each; ``ArrayPlaces`` names
the rows. First come those of the index, then those of the scratch, then what only some indexes
have: patterns, bits, and what is computed.

A call needs a scratch of its own. Scratches are kept in a list: a call takes one and puts it back,
so there are as many as there were calls at a time. Taking and putting back are single steps of the
interpreter. A call that an exception ends does not put its scratch back, and a forked child has
copies.

What is too small is made larger when the kernel asks for it, up to ``MOST_INPUT`` bytes of text,
``MOST_FOUND`` candidates or matches, and ``MOST_PATTERNS`` candidates of patterns: an event that
needs more can do with a batch. A scratch takes 4 bytes for each channel, 1 for each class if
classes have alternatives, 4 for each pattern and 16 for each fragment that patterns are filed
under, and some 200 kB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.model.events.json.entries import MAX_DEPTH
from bittern.model.strings import KEY_ROWS, TOGETHER

if TYPE_CHECKING:
    from bittern.engine.one_event.patterns import PatternArrays


class ArrayPlaces(NamedTuple):
    """The places of arrays in the table, in the order in which they are put there."""

    # The index. The names of its attributes.
    name_data: int
    name_offsets: int
    name_groups: int
    name_slots: int
    name_key: int
    # Rank space, its strings, and the kinds of each attribute.
    channels_of: int
    bases: int
    rank_heads: int
    floors: int
    direct: int
    fine_whole: int
    fine_doubles: int
    fine_cells: int
    string_data: int
    string_offsets: int
    string_groups: int
    string_slots: int
    string_key: int
    kinds: int
    # The stabbing index.
    list_begins: int
    list_ends: int
    masks: int
    items: int
    shape: int
    # Postings, and the programs behind them.
    heads: int
    bounds: int
    lows: int
    highs: int
    starts: int
    rows: int
    several: int
    always: int
    owners: int
    repeats: int
    # The subscribers of each class.
    class_starts: int
    subscribers: int
    # The scratch. The text, and behind it strings without their escapes; the place in it.
    data: int
    path: int
    latest: int
    prefixes: int
    objects: int
    keys: int
    spare: int
    # Entries: what was read.
    attributes: int
    tags: int
    payloads: int
    lengths: int
    # Cells and their channels, runs of postings, one row of channels.
    cells: int
    channels: int
    run_begins: int
    run_lengths: int
    matrix: int
    # Candidates, matches, the state of the call, the values of a mapping.
    pending: int
    events: int
    out_rows: int
    classes: int
    seen: int
    out: int
    state: int
    values: int
    # Patterns: each attribute's set, the table of sets, channels found.
    set_of: int
    sets: int
    found: int
    candidates: int
    questions: int
    # Bits: groups, blocks, unions, programs; the event's lines, room for two.
    bit_firsts: int
    bit_slots: int
    bit_lines: int
    block_offsets: int
    block_columns: int
    block_starts: int
    block_words: int
    union_offsets: int
    union_columns: int
    union_starts: int
    union_words: int
    bit_starts: int
    bit_rows: int
    bit_values: int
    union_line: int
    line: int
    # What is computed: which attributes ask for it, the cells found.
    asking: int
    computed: int


SLOTS = ArrayPlaces(*range(len(ArrayPlaces._fields)))
N_SLOTS = len(SLOTS)
# What the kernel may ask for, by its place in the state: bytes of input (three for each value of a
# mapping), runs, candidates, matches, candidates of patterns. Behind it, how many entries it has
# left in the scratch, how many patterns were found (-1: they were not looked for), how many values
# they were looked for in, how many cells the event has, and how many of these were computed (-1:
# they were not).
INPUT, RUNS, CANDIDATES, MATCHES, PATTERNS, ENTRIES, FOUND, VALUES, CELLS, COMPUTED = range(10)
# A part of a call: where its table is, where the marks of the living are and how many, where the
# numbers are that it has for the attributes of the first part, and how many; what is added to its
# positions.
TABLE, ALIVE, N_ALIVE, NUMBERS_AT, N_NUMBERS, SHIFT, PART = range(7)
MOST_INPUT = 1 << 20
MOST_FOUND = 1 << 22
MOST_PATTERNS = 1 << 20
_FIRST_ROOM = (1 << 12, 1 << 11, 1 << 11, 1 << 10, 0)
_MOST_ROOM = (MOST_INPUT, MOST_FOUND, MOST_FOUND, MOST_FOUND, MOST_PATTERNS)

TableArrays = tuple[npt.NDArray[Any], ...]


class BitsHalf(NamedTuple):
    """The classes that an index has in bits: arrays, the first one, and sizes of the scratch."""

    arrays: TableArrays
    first_class: int
    n_slots: int
    line_words: int


class ComputedHalf(NamedTuple):
    """What an index asks for that no event carries itself, and sizes of the scratch."""

    #: By attribute, as the kernel numbers them, whether something is computed from it; then flags.
    asking: npt.NDArray[np.uint8]
    most_entries: int
    most_cells: int


class IndexArrays(NamedTuple):
    """The arrays of an index, in the order of the slots, and the sizes of its scratch."""

    arrays: TableArrays
    longest_name: int
    n_names: int
    n_channels: int
    n_classes: int  # 0 if none has alternatives
    patterns: PatternArrays | None
    bits: BitsHalf | None
    computed: ComputedHalf | None


def _address(array: npt.NDArray[Any]) -> tuple[int, int]:
    return int(array.ctypes.data), len(array)


class Scratch:
    """What a call writes, and the table of all that it sees."""

    def __init__(self, index: IndexArrays) -> None:
        self._index = index  # keeps the memory
        self._table = np.zeros((N_SLOTS, 2), np.int64)
        #: Where the table is.
        self.table = int(self._table.ctypes.data)
        matrix = np.full(index.n_channels + 1, -1, np.int32)
        matrix[-1] = 0  # for tests that always hold
        self._parts = np.zeros((1, PART), np.int64)
        self._parts[0, TABLE] = self.table
        #: Where this is as the only part of a call, and the marks that it has there.
        self.parts_at, self.alive = int(self._parts.ctypes.data), (0, 0)
        self._state = np.zeros(COMPUTED + 1, np.int64)
        self._kept: dict[int, TableArrays] = {}
        self._put(SLOTS.name_data, *index.arrays)
        self._put(
            SLOTS.path,
            np.empty(index.longest_name, np.uint8),
            np.zeros(index.n_names, np.int64),
            np.empty(MAX_DEPTH, np.int64),
            np.empty(MAX_DEPTH, np.bool_),
            np.zeros((KEY_ROWS, TOGETHER), np.int64),
        )
        self._put(SLOTS.matrix, matrix)
        self._put(SLOTS.seen, np.zeros(index.n_classes, np.uint8))
        self._put(SLOTS.state, self._state)
        if index.patterns is not None:
            self._sets = index.patterns.rows()
            rows = [_address(array) for arrays in self._sets for array in arrays]
            self._put(SLOTS.set_of, index.patterns.set_of, np.array(rows, np.int64).reshape(-1, 2))
        if index.bits is not None:
            lines = np.empty((2, index.bits.line_words), np.uint64)
            self._put(
                SLOTS.bit_firsts, *index.bits.arrays, np.zeros(index.bits.n_slots, np.uint8), *lines
            )
        self._more_entries, self._more_cells = 0, 0
        if index.computed is not None:
            asking, self._more_entries, self._more_cells = index.computed
            self._computed = np.empty(2 * self._more_cells, np.int32)
            self._put(SLOTS.asking, asking, self._computed)
        self._room, self._n_cells = [0] * len(_FIRST_ROOM), 0
        self.longs = self.reals = memoryview(b"")
        self._make_room(_FIRST_ROOM)

    def _put(self, slot: int, *arrays: npt.NDArray[Any]) -> None:
        """Have these arrays in the slots from one on."""
        self._table[slot : slot + len(arrays)] = list(map(_address, arrays))
        self._kept[slot] = arrays

    def _make_room(self, wanted: Sequence[int]) -> None:
        """Make what is smaller than wanted as large."""
        if wanted[INPUT] > self._room[INPUT]:
            self._make_input(wanted[INPUT])
        if wanted[RUNS] > self._room[RUNS]:
            self._put(
                SLOTS.run_begins, np.empty(wanted[RUNS], np.int32), np.empty(wanted[RUNS], np.int32)
            )
        if wanted[CANDIDATES] > self._room[CANDIDATES]:
            pending, rows, classes = np.empty((3, wanted[CANDIDATES]), np.int32)
            self._put(SLOTS.pending, pending, np.zeros(wanted[CANDIDATES], np.int32), rows, classes)
        if wanted[MATCHES] > self._room[MATCHES]:
            #: The matches of a call.
            self.found = np.empty(wanted[MATCHES], np.int32)
            self._put(SLOTS.out, self.found)
        if wanted[PATTERNS] > self._room[PATTERNS]:
            assert self._index.patterns is not None
            self._channels, candidates, self.questions = self._index.patterns.room(wanted[PATTERNS])
            self._put(SLOTS.found, self._channels, candidates, self.questions)
        self._room = list(map(max, self._room, wanted))
        n_cells = 3 * len(self.tags) + self._room[PATTERNS] + self._more_cells
        if n_cells > self._n_cells:
            self._put(SLOTS.cells, np.empty(n_cells, np.int32), np.empty(n_cells, np.int32))
            self._n_cells = n_cells

    def _make_input(self, size: int) -> None:
        n = size // 3 + 1 + self._more_entries
        values = np.zeros(2 * n, np.int64)
        values[: len(self.longs)] = self.longs  # those of the call that needs more room
        #: The values of a mapping as integers, and the same memory as floats.
        self.longs, self.reals = values.data, values.view(np.float64).data
        #: Text, and entries of JSON: for numbers that Python rounds.
        self.data, self.tags = np.empty(2 * size, np.uint8), np.empty(n, np.uint8)
        self.payloads, self.lengths = np.empty(n, np.int64), np.empty(n, np.int32)
        self.attributes = np.empty(n, np.int32)
        self._put(SLOTS.data, self.data)
        self._put(
            SLOTS.spare,
            np.empty(size, np.uint8),
            self.attributes,
            self.tags,
            self.payloads,
            self.lengths,
        )
        self._put(SLOTS.values, values)

    def set_alive(self, alive: tuple[int, int]) -> None:
        """Have these marks, told by address and number, as the only part of a call."""
        self._parts[0, ALIVE], self._parts[0, N_ALIVE] = self.alive = alive

    @property
    def n_entries(self) -> int:
        """How many entries the kernel has left, where it stopped behind reading."""
        return int(self._state[ENTRIES])

    def add_channels(self, more: Sequence[int]) -> None:
        """Add channels of patterns to those that a call has found."""
        n = int(self._state[FOUND])
        self._channels[n : n + len(more)] = more
        self._state[FOUND] = n + len(more)

    def entries(self) -> Iterator[tuple[int, int, int, int]]:
        """What was read: attribute, tag, payload and length of each value."""
        n = self.n_entries
        columns = (self.attributes, self.tags, self.payloads, self.lengths)
        return zip(*(column[:n].tolist() for column in columns), strict=True)

    def put_entries(self, entries: Sequence[tuple[int, int, int, int]]) -> None:
        """Have these in place of what was read."""
        n = self._state[ENTRIES] = len(entries)
        if n:
            rows = np.array(entries)
            self.attributes[:n], self.tags[:n] = rows[:, 0], rows[:, 1]
            self.payloads[:n], self.lengths[:n] = rows[:, 2], rows[:, 3]

    def add_entries(self, more: Sequence[tuple[int, int, int]]) -> None:
        """Add values that are no strings: attribute, tag and payload."""
        n = self.n_entries
        for place, (attribute, tag, payload) in enumerate(more, start=n):
            self.attributes[place], self.tags[place] = attribute, tag
            self.payloads[place], self.lengths[place] = payload, 0
        self._state[ENTRIES] = n + len(more)

    def put_computed(self, cells: Sequence[int]) -> None:
        """Have these channels and cells, in turn, as what was computed."""
        self._computed[: len(cells)] = cells
        self._state[COMPUTED] = len(cells) // 2

    def text(self, payload: int, length: int) -> bytes:
        """The bytes of a string."""
        return self.data[payload : payload + length].tobytes()

    def ask(self, what: int, needed: int) -> None:
        """Note what is needed, as the kernel does."""
        self._state[what] = needed

    def grow(self) -> bool:
        """Make the room that was asked for, and some more; False if that is too much."""
        needed = self._state[:ENTRIES].tolist()
        self._state[:ENTRIES] = 0
        if any(map(int.__gt__, needed, _MOST_ROOM)):
            return False
        self._make_room([2 * each + 1 if each else 0 for each in needed])
        return True
