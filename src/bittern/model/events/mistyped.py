"""Values of a kind that no subscription compares their attribute with.

With ``price < 10`` and ``color = 'red' OR color IS NULL``, the event ``{"price": "9", "color": 5}``
has two. Comparing different kinds gives NULL (decision 0005), so the event matches by its other
attributes. The first such value of each event is reported::

    (0, "price is a string, and subscriptions compare it with numbers")

Which kinds an attribute is compared with is a mask, one bit per tag::

    attribute   channels                     mask
    price       numbers                      INTEGER FLOAT EXACT
    color       strings, reversed, patterns  STRING
    seen        any                          none: IS [NOT] NULL takes every kind

A pass over the values of a batch finds the strays, about a nanosecond per value; only strays cost
more, and reasons are written once per attribute and kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.jit import i4r, i8, i8w, kernel, u1r, u8r
from bittern.model.rank.space import BOOLEAN, NUMBER, REVERSED, STRING, TIME
from bittern.model.tagged import BOOLEAN as BOOLEAN_TAG
from bittern.model.tagged import EXACT, EXACT_TIME, FLOAT, INTEGER, OTHER, TIMESTAMP, TaggedValues
from bittern.model.tagged import STRING as STRING_TAG

_TAGS_OF_KIND = {
    NUMBER: (INTEGER, FLOAT, EXACT),
    STRING: (STRING_TAG,),
    BOOLEAN: (BOOLEAN_TAG,),
    TIME: (TIMESTAMP, EXACT_TIME),
}
_MASKS = {kind: sum(1 << tag for tag in tags) for kind, tags in _TAGS_OF_KIND.items()}
_PLURALS = {NUMBER: "numbers", STRING: "strings", BOOLEAN: "booleans", TIME: "times"}
_SINGULARS = {
    **dict.fromkeys(_TAGS_OF_KIND[NUMBER], "a number"),
    **dict.fromkeys(_TAGS_OF_KIND[TIME], "a time"),
    STRING_TAG: "a string",
    BOOLEAN_TAG: "a boolean",
    OTHER: "not a number, string, boolean or time",
}


class Kinds:
    """With which kinds each attribute is compared. Immutable; threads may share it."""

    def __init__(
        self,
        channels: npt.NDArray[np.int32],
        with_patterns: Iterable[int],
        numbers: Mapping[str, int],
    ) -> None:
        """From the channel of each (attribute, kind), and the numbers of attributes by name."""
        self._numbers = numbers
        #: By attribute, the tags that it is compared with, a bit each; 0 if with none.
        self.masks = np.zeros(len(channels), dtype=np.uint64)
        for kind, mask in _MASKS.items():
            self.masks[channels[:, kind] >= 0] |= np.uint64(mask)
        strings = np.uint64(_MASKS[STRING])
        self.masks[channels[:, REVERSED] >= 0] |= strings
        self.masks[np.fromiter(with_patterns, dtype=np.int64)] |= strings
        self._names = list(numbers)

    def strays(self, values: TaggedValues) -> Strays:
        """The values that no subscription compares. O(values)."""
        places = np.empty(len(values.tags), dtype=np.int64)
        n = _find_strays(values.attributes, values.tags, self.masks, places)
        places = places[:n]
        return Strays(self, values.rows[places], values.attributes[places], values.tags[places])

    def no_strays(self) -> Strays:
        """None at all, as in columns of one type each."""
        none = np.empty(0, dtype=np.int32)
        return Strays(self, none, none, np.empty(0, dtype=np.uint8))

    def mask(self, name: str) -> int:
        """The tags that an attribute is compared with; 0 if with none."""
        number = self._numbers.get(name)
        return 0 if number is None else int(self.masks[number])

    def name(self, attribute: int) -> str:
        """The canonical name of an attribute."""
        return self._names[attribute]

    def complaint(self, name: str, kind: int, what: str) -> str | None:
        """What is wrong with values of a kind (-1: of none) in an attribute, or None."""
        mask = self.mask(name)
        taken = mask == 0 or (kind >= 0 and mask & _MASKS[kind])
        return None if taken else _reason(name, what, mask)


class Strays(NamedTuple):
    """Values that no subscription compares: where they are, and their tags."""

    kinds: Kinds
    rows: npt.NDArray[np.int32]
    attributes: npt.NDArray[np.int32]
    tags: npt.NDArray[np.uint8]
    failures: tuple[tuple[int, str], ...] = ()  # (row, reason): terms that have no value there

    def with_failures(self, failures: Sequence[tuple[int, str]]) -> Strays:
        """These, and rows for which some term has no value."""
        return self._replace(failures=(*self.failures, *failures))

    def among(self, rows: npt.NDArray[np.bool_]) -> Strays:
        """Those in some rows, which are marked."""
        kept = rows[self.rows]
        failures = tuple(each for each in self.failures if rows[each[0]])
        return Strays(self.kinds, self.rows[kept], self.attributes[kept], self.tags[kept], failures)


@kernel(i8, i4r, u1r, u8r, i8w)
def _find_strays(attributes: Any, tags: Any, masks: Any, places: Any) -> Any:
    """Write where the strays are; returns how many there are."""
    n = 0
    for i in range(len(tags)):
        mask = masks[np.uint64(attributes[i])]
        if mask != 0 and not mask >> np.uint64(tags[i]) & np.uint64(1):
            places[n] = i
            n += 1
    return n


def joined(parts: Sequence[Strays]) -> Strays:
    """The strays of one batch, found in several steps."""
    if len(parts) == 1:
        return parts[0]
    return Strays(
        parts[0].kinds,
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.attributes for part in parts]),
        np.concatenate([part.tags for part in parts]),
        tuple(failure for part in parts for failure in part.failures),
    )


def listed(parts: Sequence[Strays]) -> list[tuple[int, str]]:
    """(row, reason), one per row: the strays of the same events in one index or in several.

    What no subscription of an index compares, one of another index may: then it is no stray.
    """
    everyone = [part.kinds for part in parts]
    found: dict[int, str] = {}
    for part in parts:
        for row, reason in part.failures:
            found.setdefault(row, reason)
    for kinds, rows, attributes, tags, _ in parts:
        if not len(rows):
            continue
        kinds_of = pa.array(attributes.astype(np.int64) << 8 | tags).dictionary_encode()
        codes = kinds_of.indices.to_numpy()
        texts = [
            _shared_reason(kinds.name(kind >> 8), kind & 255, everyone)
            for kind in kinds_of.dictionary.to_pylist()
        ]
        reasons = np.array(texts, dtype=object)
        counts = np.array([bool(text) for text in texts])
        order = np.argsort(rows.astype(np.int64) << 32 | attributes, kind="stable")
        order = order[counts[codes[order]]]
        first = np.diff(rows[order], prepend=-1) > 0
        own, own_reasons = rows[order[first]], reasons[codes[order[first]]]
        if len(parts) == 1 and not found:
            return list(zip(own.tolist(), own_reasons.tolist(), strict=True))
        for row, reason in zip(own.tolist(), own_reasons.tolist(), strict=True):
            found.setdefault(row, reason)
    return sorted(found.items())


def _shared_reason(name: str, tag: int, everyone: Sequence[Kinds]) -> str:
    """Why a value of this tag is a stray in all indexes; empty if it is none in one of them."""
    mask = 0
    for kinds in everyone:
        mask |= kinds.mask(name)
    return "" if mask >> tag & 1 else _reason(name, f"is {_SINGULARS[tag]}", mask)


def _reason(name: str, what: str, mask: int) -> str:
    compared = [_PLURALS[kind] for kind, own in _MASKS.items() if mask & own]
    *most, last = compared
    others = f"{', '.join(most)} or {last}" if most else last
    return f"{name} {what}, and subscriptions compare it with {others}"
