"""What a cell of an index stands for, in words: ``price`` above 10 and below 99.5."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.language.printer import print_attribute, print_short
from bittern.model.rank.space import (
    ANY,
    BOOLEAN,
    COUNT,
    FIRST,
    PATTERN,
    REVERSED,
    STRING,
    TIME,
    RankSpace,
)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LONG = 60


class Cell(NamedTuple):
    """An attribute, and which of its values."""

    attribute: str
    values: str


def shown_name(name: str) -> str:
    """An attribute's name for people; a term as its text."""
    text = print_attribute(name) if name.isprintable() else print_short(name)
    return "".join(c if c.isprintable() else "·" for c in text)


def channels_of(rank: RankSpace, cells: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The channel of each cell."""
    return np.searchsorted(rank.arrays.bases, cells, "right") - 1


def cell_in_words(rank: RankSpace, names: list[str], cell: int) -> Cell:
    """One cell of the global axis."""
    channel = int(channels_of(rank, np.array([cell], dtype=np.int32))[0])
    name = shown_name(names[int(rank.channel_attributes[channel])])
    kind = int(rank.channel_kinds[channel])
    if kind == ANY:
        return Cell(name, "any value")
    if kind == PATTERN:
        own = np.flatnonzero(
            (rank.channel_kinds == PATTERN)
            & (rank.channel_attributes == rank.channel_attributes[channel])
        )
        return Cell(name, f"matches pattern {channel - int(own[0]) + 1}")
    local, count = cell - int(rank.arrays.bases[channel]), int(rank.arrays.heads[channel, COUNT])
    place = local // 2
    if local % 2:
        return Cell(name, f"= {_constant(rank, channel, kind, place)}")
    if kind == BOOLEAN or not count:
        return Cell(name, "any other value")
    above = f"above {_constant(rank, channel, kind, place - 1)}" if place else ""
    below = f"below {_constant(rank, channel, kind, place)}" if place < count else ""
    return Cell(name, " and ".join(filter(None, (above, below))))


def _constant(rank: RankSpace, channel: int, kind: int, place: int) -> str:
    if kind in (STRING, REVERSED):
        at = int(rank.arrays.heads[channel, FIRST]) - len(rank.arrays.floors) + place
        strings = rank.arrays.strings
        data = bytes(strings.data[strings.offsets[at] : strings.offsets[at + 1]])
        text = (data if kind == STRING else data[::-1]).decode("utf-8", "replace")
        shown = text if len(text) <= _LONG else f"{text[:_LONG]}…"
        return f"'{shown}'" if kind == STRING else f"…'{shown}'"
    number = rank.constants(channel).number(place)
    if kind == BOOLEAN:
        return "TRUE" if number else "FALSE"
    if kind == TIME:
        try:
            return (_EPOCH + dt.timedelta(microseconds=int(number))).isoformat()
        except OverflowError:
            return str(number)
    return f"{number}"[:_LONG]
