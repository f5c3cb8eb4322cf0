"""Which events one compiled call serves, and what the batch has to do.

``OneEvent.of(index)`` is None for an index that it cannot serve: one of another strategy or
stabbing index, with functions that only Spark knows, or with more channels than a row should have.
``match`` returns None for an event that the batch has to do: one that is not JSON or would be
reported as mistyped, one with values of rarer types, one too large for the scratch.

A mapping becomes two numbers for each value in use, and the strings as bytes. With the attributes
0 = price, 1 = color and 2 = sold, ``{"price": 9.5, "color": "red", "x": 1, "sold": False}`` is::

    longs   0 << 8 | FLOAT  bits   1 << 8 | STRING  3   2 << 8 | BOOLEAN  0
    text    red

Keys that no subscription mentions cost one look-up. Values are told apart by their exact type; what
is none of the usual ones (a decimal, a date, a list on the way) is left to the batch, which knows
all of them (``model/events/mappings.py``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import under
from bittern.engine.one_event.kernel import (
    AGAIN,
    COMPUTE,
    FALL_BACK,
    JSON,
    NUMBERS,
    ROOM,
    STRINGS,
    match_one,
)
from bittern.engine.one_event.table import INPUT, BitsHalf, IndexArrays, Scratch
from bittern.matching.pivot.match import PivotArrays
from bittern.model.events.json.entries import longest_name
from bittern.model.events.json.tokens import NUMBER_TEXT
from bittern.model.events.mappings import Heads
from bittern.model.rank.encoded import SMALL_MATRIX
from bittern.model.rank.space import HEAD, SINGLE_KINDS
from bittern.model.tagged import BOOLEAN, FLOAT, INTEGER, OTHER, STRING, TIMESTAMP
from bittern.stabbing.cei import GROUP_BITS
from bittern.terms.unknown import EMBEDDED

if TYPE_CHECKING:
    from bittern.engine.index import Index
    from bittern.engine.one_event.computed import Computed
    from bittern.model.events.attributes import Attributes
    from bittern.terms.logic.members import NamedSets

Positions = npt.NDArray[np.int32]
_COUNT = 0xFFFFFFFF
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
#: The type of each array of an index, and its columns where it has some.
_FORMS: tuple[str | tuple[str, int], ...] = (
    *("u1", "i8", "i4", "u8", "u8"),  # names
    *(("i4", SINGLE_KINDS), "i4", ("i8", HEAD), "i8", "i4", "u1", "f8", "i4"),  # rank space
    *("u1", "i8", "i4", "u8", "u8", "u8"),  # strings, kinds
    *("i4", "i4", "i4", "i4", "i8"),  # stabbing index
    *(("i4", 2), ("i4", 2), "i4", "i4", "i4", ("i4", 4), "u1", "i4", "i4", "u1"),  # postings
    *("i4", "i4"),  # subscribers
)


class OneEvent:
    """Matches one event at a time against an index. Threads may share it."""

    def __init__(self, arrays: IndexArrays, heads: Heads, computed: Computed | None) -> None:
        self._arrays = arrays
        self._heads = heads
        self._computed = computed
        self._free: list[Scratch] = []
        self._call: Callable[..., int] | None = None

    @classmethod
    def of(cls, index: Index) -> OneEvent | None:
        """For an index; None if it cannot be served."""
        encoder, strategy = index.encoder, index.subscriptions
        own, parameters, bits = strategy.arrays(), strategy.parameters, None
        if strategy.name == "pivot-bits":
            bits = _bits_half(under(own, "bits."), strategy.statistics()["pivot"]["classes"])
            own, parameters = under(own, "pivot."), parameters["pivot"]
            if bits is None:
                return None
        elif strategy.name != "pivot":
            return None
        small = 4 * (index.rank.n_channels + 1) <= SMALL_MATRIX
        if parameters["stabbing"] != "cei" or not small or index.functions != EMBEDDED:
            return None
        rank, kinds = encoder.constants.arrays, encoder.kinds.masks
        names: Attributes = encoder
        computed = numbering = None
        if encoder.hidden is not None:
            from bittern.engine.one_event.computed import (  # noqa: PLC0415  only then
                Computed,
                Numbering,
            )

            numbering = Numbering.of(encoder)
            names, kinds = numbering.names, numbering.kinds
            rank = rank._replace(channels=numbering.channels)
            computed = Computed(encoder, numbering)
        offsets, cut = own["stabbing.offsets"], own["stabbing.shape"]
        shape = np.append(cut, min(int(cut[1]), GROUP_BITS))
        arrays = (
            *names.table.as_tuple,
            *rank[:-1],
            *rank.strings,
            kinds,
            offsets[:-1],
            offsets[1:],
            own["stabbing.masks"],
            own["stabbing.items"],
            shape,
            *(own[field] for field in (*PivotArrays._fields, "owners", "repeats")),
            index.subscribers.starts,
            index.subscribers.subscribers,
        )
        if not all(_fits(array, form) for array, form in zip(arrays, _FORMS, strict=True)):
            return None  # damaged: where arrays are taken as such, it is told
        patterns = None
        if encoder.constants.patterns:
            from bittern.engine.one_event.patterns import PatternArrays  # noqa: PLC0415  only then

            patterns = PatternArrays.of(encoder.constants, len(encoder.kinds.masks))
            if numbering is not None:
                patterns = patterns._replace(set_of=numbering.moved(patterns.set_of))
            if not patterns.are_sound():
                return None
        sizes = longest_name(names.table), len(names.table), index.rank.n_channels
        half = None if computed is None else computed.half
        parts = IndexArrays(arrays, *sizes, len(own["repeats"]), patterns, bits, half)
        return cls(parts, names.names.heads, computed)

    def match(
        self, event: Any, alive: tuple[int, int], sets: NamedSets
    ) -> tuple[Positions, int] | None:
        """Match JSON text or a dictionary: the subscriptions, and how many were candidates.

        None if the batch has to do it. ``alive`` is the address of the marks of the living and
        their number, 0 if all are alive. ``sets`` are those that subscriptions name.
        """
        call = self._call
        if call is None:
            call = self._call = match_one.prepare()
        scratch = self.take()
        try:
            mode, given = self.read(event, scratch)
        except IndexError:
            scratch.ask(INPUT, 3 * len(scratch.longs))
            if not scratch.grow():
                return None
            self._free.append(scratch)
            return self.match(event, alive, sets)
        except Exception:  # noqa: BLE001  whatever is in an event, the batch says what to do
            self._free.append(scratch)
            return None
        if scratch.alive != alive:
            scratch.set_alive(alive)
        found = call(scratch.parts_at, 1, given, mode)
        if found < 0 or self._arrays.bits is not None:
            found = self._go_on(scratch, found, (mode, given, event), alive, sets)
            if found < 0:
                self._free.append(scratch)
                return None
        subscriptions = scratch.found[: found & _COUNT].copy()
        self._free.append(scratch)
        return subscriptions, found >> 32

    @property
    def is_one_call(self) -> bool:
        """Whether one call does all, without patterns, bits, or what is computed."""
        return (self._arrays.patterns, self._arrays.bits, self._computed) == (None, None, None)

    def take(self) -> Scratch:
        """A scratch that no other call has: one that is kept from an earlier call, or a new one."""
        try:
            return self._free.pop()
        except IndexError:
            return Scratch(self._arrays)

    def read(self, event: str | dict[Any, Any], scratch: Scratch) -> tuple[int, bytes]:
        """The mode and the bytes of an event, whose values may be in the scratch.

        Raises as ``read_mapping`` does.
        """
        if type(event) is str:
            return JSON, event.encode()
        assert isinstance(event, dict)
        return read_mapping(event, self._heads, scratch.longs, scratch.reals)

    def _go_on(
        self,
        scratch: Scratch,
        found: int,
        read: tuple[int, bytes, Any],
        alive: tuple[int, int],
        sets: NamedSets,
    ) -> int:
        """Go on where the call stopped, up to the end; negative if the batch has to do it."""
        mode, given, event = read
        bits = self._arrays.bits
        while True:
            if found == NUMBERS:
                mode, given = AGAIN - _settle_numbers(scratch), b""
            elif found == COMPUTE:
                assert self._computed is not None
                if not self._computed.add(scratch, event, sets):
                    return FALL_BACK
                mode, given = AGAIN - scratch.n_entries, b""
            elif found == STRINGS:
                mode, given = AGAIN - scratch.n_entries, b""
                if not self._find_patterns(scratch):
                    return FALL_BACK
            elif found == ROOM:
                if not scratch.grow():
                    return FALL_BACK
            elif found < 0 or bits is None:
                return found
            else:
                more = _match_bits(scratch.table, bits.first_class, found & _COUNT, *alive)
                if more >= 0:
                    return more + (found >> 32 << 32)
                mode, given = AGAIN - scratch.n_entries, b""  # what pivots found may be gone
                if not scratch.grow():
                    return FALL_BACK
            found = match_one(scratch.parts_at, 1, given, mode)

    def _find_patterns(self, scratch: Scratch) -> bool:
        """Leave the patterns that hold in the scratch; False if that is too much for it."""
        from bittern.engine.one_event.patterns import (  # noqa: PLC0415  only for patterns
            ask_re2,
            find_patterns,
        )

        assert self._arrays.patterns is not None
        while (n := find_patterns(scratch.table, scratch.n_entries)) < 0:
            if not scratch.grow():
                return False
        if n:
            ask_re2(self._arrays.patterns, scratch, n)
        return True


def _match_bits(*arguments: int) -> int:
    from bittern.engine.one_event.bits import match_bits  # noqa: PLC0415  only for bits

    return int(match_bits(*arguments))


def _bits_half(own: Mapping[str, npt.NDArray[Any]], first_class: int) -> BitsHalf | None:
    """The classes in bits; None if they are damaged."""
    from bittern.engine.one_event.bits import ARRAYS  # noqa: PLC0415  only for bits
    from bittern.vectors import WORDS  # noqa: PLC0415

    arrays = tuple(own[name] for name in ARRAYS)
    if not all(_fits(array, form) for array, form in zip(arrays, ARRAYS.values(), strict=True)):
        return None
    return BitsHalf(arrays, first_class, len(own["channels"]), WORDS)


def _fits(array: npt.NDArray[Any], form: str | tuple[str, int]) -> bool:
    """Whether an array is as the kernel takes it to be."""
    dtype, *columns = (form,) if isinstance(form, str) else form
    return bool(
        array.dtype == np.dtype(dtype)
        and array.shape[1:] == tuple(columns)
        and array.flags.c_contiguous
    )


def _settle_numbers(scratch: Scratch) -> int:
    """Round the numbers that the kernel left as text; returns how many entries there are."""
    n = scratch.n_entries
    for i in np.flatnonzero(scratch.tags[:n] == NUMBER_TEXT).tolist():
        start = int(scratch.payloads[i])
        digits = scratch.data[start : start + int(scratch.lengths[i])].tobytes()
        scratch.payloads.view(np.float64)[i] = float(digits)
        scratch.tags[i], scratch.lengths[i] = FLOAT, 0
    return n


class Buffers(NamedTuple):
    """Where values are written: integers, the same memory as floats, and strings."""

    longs: memoryview
    reals: memoryview
    strings: list[str]


def read_mapping(
    event: dict[Any, Any], heads: Heads, longs: memoryview, reals: memoryview
) -> tuple[int, bytes]:
    """Write the values of an event; returns how many there are, and their strings.

    ``IndexError`` if there are more than there is room for. Some other exception if there is one
    that only the batch can read, such as an integer of more than 64 bits or half a surrogate pair.
    """
    strings: list[str] = []
    n = _read(event, heads, Buffers(longs, reals, strings), 0) >> 1
    return n, "".join(strings).encode()


def _read(event: dict[Any, Any], heads: Heads, buffers: Buffers, at: int) -> int:
    """Write from ``at`` on; returns where the values end. Calls itself for mappings inside."""
    keys, paths = heads
    longs, reals, strings = buffers
    for key, value in event.items():
        head = keys.get(key)
        if head is None or value is None:
            continue
        if type(key) is not str:
            raise TypeError(key)
        kind = type(value)
        if head < 0:
            head, _, inside = paths[~head]
            if kind is dict:
                at = _read(value, inside, buffers, at)
            elif kind is not str and kind is not int and kind is not float and kind is not bool:
                raise TypeError(kind)
            if head < 0:
                continue
        if kind is str:
            longs[at] = head | STRING
            longs[at + 1] = len(value)
            strings.append(value)
        elif kind is int:
            longs[at] = head | INTEGER
            longs[at + 1] = value
        elif kind is float:
            longs[at] = head | FLOAT
            reals[at + 1] = value
        elif kind is bool:
            longs[at] = head | BOOLEAN
            longs[at + 1] = value
        elif kind is dt.datetime:
            aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            longs[at] = head | TIMESTAMP
            longs[at + 1] = (aware - _EPOCH) // _MICROSECOND
        elif kind is dict or kind is list or kind is tuple:
            longs[at] = head | OTHER
            longs[at + 1] = 0
        else:
            raise TypeError(kind)
        at += 2
    return at
