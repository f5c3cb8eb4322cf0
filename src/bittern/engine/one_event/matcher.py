"""Which events one compiled call serves, and what the batch has to do.

``OneEvent.of(index)`` is None for an index that it cannot serve: one of another strategy or
stabbing index, with patterns, terms, history or presence, or with more channels than one row should
have.
``match`` returns None for an event that the batch has to do: one that is not JSON or would be
reported as mistyped, one with values of rarer types, one too large for the scratch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bittern.engine.one_event.kernel import AGAIN, JSON, NUMBERS, ROOM, match_one
from bittern.engine.one_event.table import INPUT, IndexArrays, Scratch
from bittern.engine.one_event.values import read_mapping
from bittern.matching.pivot.match import PivotArrays
from bittern.model.events.entries import longest_name
from bittern.model.events.json_tokens import NUMBER_TEXT
from bittern.model.events.mappings import Heads
from bittern.model.rank.encoded import SMALL_MATRIX
from bittern.model.rank.space import HEAD, SINGLE_KINDS
from bittern.model.tagged import FLOAT
from bittern.stabbing.cei import GROUP_BITS

if TYPE_CHECKING:
    from bittern.engine.index import Index

Positions = npt.NDArray[np.int32]
_COUNT = 0xFFFFFFFF
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

    def __init__(self, arrays: IndexArrays, heads: Heads) -> None:
        self._arrays = arrays
        self._heads = heads
        self._free: list[Scratch] = []
        self._call: Callable[..., int] | None = None

    @classmethod
    def of(cls, index: Index) -> OneEvent | None:
        """For an index; None if it cannot be served."""
        encoder, strategy = index.encoder, index.subscriptions
        plain = encoder.hidden is None and not encoder.constants.patterns
        small = 4 * (index.rank.n_channels + 1) <= SMALL_MATRIX
        if strategy.name != "pivot" or not plain or not small:
            return None
        if strategy.parameters["stabbing"] != "cei":
            return None
        own, rank = strategy.arrays(), encoder.constants.arrays
        offsets, cut = own["stabbing.offsets"], own["stabbing.shape"]
        shape = np.append(cut, min(int(cut[1]), GROUP_BITS))
        arrays = (
            *encoder.table.as_tuple,
            *rank[:-1],
            *rank.strings,
            encoder.kinds.masks,
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
        sizes = longest_name(encoder.table), len(encoder.table), index.rank.n_channels
        return cls(IndexArrays(arrays, *sizes, len(own["repeats"])), encoder.names.heads)

    def match(self, event: Any, alive: tuple[int, int]) -> tuple[Positions, int] | None:
        """Match JSON text or a dictionary: the subscriptions, and how many were candidates.

        None if the batch has to do it. ``alive`` is the address of the marks of the living and
        their number, 0 if all are alive.
        """
        call = self._call
        if call is None:
            call = self._call = match_one.prepare()
        try:
            scratch = self._free.pop()
        except IndexError:
            scratch = Scratch(self._arrays)
        try:
            if type(event) is str:
                mode, given = JSON, event.encode()
            else:
                mode, given = read_mapping(event, self._heads, scratch.longs, scratch.reals)
        except IndexError:
            scratch.ask(INPUT, 3 * len(scratch.longs))
            if not scratch.grow():
                return None
            self._free.append(scratch)
            return self.match(event, alive)
        except Exception:  # noqa: BLE001  whatever is in an event, the batch says what to do
            self._free.append(scratch)
            return None
        found = call(scratch.table, given, mode, *alive)
        while found < 0:
            if found == NUMBERS:
                mode, given = AGAIN - _settle_numbers(scratch), b""
            elif found != ROOM or not scratch.grow():
                self._free.append(scratch)
                return None
            found = call(scratch.table, given, mode, *alive)
        subscriptions = scratch.found[: found & _COUNT].copy()
        self._free.append(scratch)
        return subscriptions, found >> 32


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
