"""Document sets: does some document satisfy an alternative? For what no summary answers.

An alternative asks several things of one document at once. Each is a *leaf*, a set of documents
that an index knows without making it; most of them are never made::

    EXISTS d IN LAST 4 (d.price > price AND d.year != year AND d.sold = TRUE)

    number             0  1  2  3  4  5
    last 4                   x  x  x  x
    d.price > price    x     x     x          two bisections in the order of prices
    d.year != year        x     x  x  x       two bisections in the order of years
    d.sold = TRUE      x  x  x     x  x       a roaring bitmap, kept
    all of it                      x          so: yes

The leaf with the fewest documents goes first. Up to ``FEW`` of its documents are looked at one by
one, through the columns of values: if one satisfies every other leaf the alternative is satisfied,
and if these were all there are it is not. Otherwise leaves become roaring bitmaps and are
intersected, fewest first, until nothing is left.

Cost for n documents and k leaves: O(k log n) to count, O(k FEW) to look, and where that does not
decide, O(k n / 64) words: linear, some 100 microseconds a leaf for a million documents. With a
selective leaf (an equality on a key, a short window) it never comes to that: about 50 in all.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from bittern.arrays import Int32s
from bittern.errors import OptionError
from bittern.history.sets.ordered import OrderedIndex, outcome
from bittern.history.sets.ordered_runs import bitmap_of, bytes_of, places_of
from bittern.history.sets.outcomes import ANYHOW, APART, EQUAL, OUTCOMES
from bittern.jit import b1w, i8, i8r, kernel, u1r, void
from bittern.language.alternatives import Conjunction
from bittern.language.syntax import Pair, Window
from bittern.model.events.typed.typed import MISSING, TIME, Typed, TypedValue

#: So many documents are looked at one by one before sets are made.
FEW = 2048
#: So many documents are expired, and as many as are left, before those left are renumbered.
FEWEST_EXPIRED = 1024
#: Int32s are signed 32-bit numbers.
MOST_DOCUMENTS = 2**31 - 1
_INT64_MIN = -(2**63)


@kernel(void, u1r, i8r, i8r, u1r, i8r, i8r, u1r, i8, b1w)
def _compare_rows(
    kinds: Any,
    words: Any,
    ties: Any,
    other_kinds: Any,
    other_words: Any,
    other_ties: Any,
    heap: Any,
    outcomes: Any,
    holds: Any,
) -> None:
    """Whether the values of two attributes compare so, event by event."""
    for i in range(len(kinds)):
        how = outcome(
            kinds[i],
            words[i],
            ties[i],
            heap,
            other_kinds[i],
            other_words[i],
            other_ties[i],
            heap,
        )
        holds[i] = how & outcomes != 0


class _Leaf(Protocol):
    """Documents that satisfy one part of an alternative; ``Found`` of an ordered index is one."""

    count: int

    def places(self, most: int | None = None) -> Int32s:
        """All of them, or some if there are more than ``most``."""

    def keep(self, places: Int32s) -> Int32s:
        """Those of these places that are among them."""

    def narrow(self, documents: BitMap) -> BitMap:
        """Those of this set that are among them."""


class _Members:
    """A leaf whose documents are kept as a set."""

    def __init__(self, members: BitMap) -> None:
        self._members = members
        self.count = len(members)

    def places(self, most: int | None = None) -> Int32s:
        return places_of(self._members)[:most]

    def keep(self, places: Int32s) -> Int32s:
        return places_of(bitmap_of(places) & self._members)

    def narrow(self, documents: BitMap) -> BitMap:
        return documents & self._members


class _Others:
    """A leaf of all documents, up to a place, that are not in a set."""

    def __init__(self, members: BitMap, end: int) -> None:
        self._members, self._end = members, end
        self.count = end - len(members)

    def places(self, most: int | None = None) -> Int32s:
        return places_of(BitMap(range(self._end)) - self._members)[:most]

    def keep(self, places: Int32s) -> Int32s:
        return places_of(bitmap_of(places) - self._members)

    def narrow(self, documents: BitMap) -> BitMap:
        return documents - self._members


class DocumentSets:
    """All documents of a history by the values of some attributes. One thread at a time."""

    def __init__(
        self, attributes: Sequence[str], conditions: Sequence[str], pairs: Sequence[Pair]
    ) -> None:
        """What alternatives may speak of: attributes, conditions and pairs, all of the document."""
        self._attributes = {name: OrderedIndex() for name in attributes}
        self._conditions = {text: BitMap() for text in conditions}
        self._pairs = {pair: BitMap() for pair in pairs}
        #: Documents from ``first`` up to ``end`` are live; that of place 0 has number ``_base``.
        self.first = self.end = self._base = 0

    def append(
        self,
        first_number: int,
        typed: Typed,
        satisfied: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    ) -> None:
        """Take documents in the order of their numbers, each in logarithmic time, amortised.

        The rows of ``typed`` are the attributes. ``satisfied`` are offsets and numbers: which
        conditions are TRUE for each document.
        """
        if self._base == self.end:  # nothing is held, so that any number may come next
            self.first = self.end = self._base = max(first_number, self.end)
        if first_number != self.end:
            raise OptionError(f"the next document is number {self.end}, not {first_number}")
        place, n = self.end - self._base, typed.kinds.shape[1]
        if place + n > MOST_DOCUMENTS:
            raise OptionError(
                f"{place + n} documents are more than an index of {MOST_DOCUMENTS} can hold; "
                "let older ones expire"
            )
        for row, index in enumerate(self._attributes.values()):
            index.append(typed.kinds[row], typed.words[row], typed.ties[row], typed.heap)
        rows = {name: row for row, name in enumerate(self._attributes)}
        for pair, members in self._pairs.items():
            holds = _pair_holds(pair, typed, rows)
            members.update(bitmap_of(np.flatnonzero(holds).astype(np.int32) + np.int32(place)))
        self._satisfy(place, *satisfied)
        self.end += n

    def _satisfy(self, place: int, offsets: npt.NDArray[Any], conditions: npt.NDArray[Any]) -> None:
        texts = list(self._conditions)
        n = np.diff(offsets)
        places = np.repeat(np.arange(place, place + len(n), dtype=np.int32), n)
        order = np.argsort(conditions, kind="stable")
        which, starts = np.unique(conditions[order], return_index=True)
        parts = np.split(places[order], starts[1:])
        for condition, part in zip(which.tolist(), parts, strict=False):
            self._conditions[texts[condition]].update(bitmap_of(part))

    def expire(self, before: int) -> None:
        """Let go of documents with smaller numbers: O(1), amortised."""
        self.first = min(max(self.first, before), self.end)
        dead, live = self.first - self._base, self.end - self.first
        if dead < max(FEWEST_EXPIRED, live):
            return
        for index in self._attributes.values():
            index.drop(dead)
        for members in (*self._conditions.values(), *self._pairs.values()):
            kept = places_of(members)
            members.clear()
            members.update(bitmap_of(kept[kept >= dead] - np.int32(dead)))
        self._base = self.first

    def find(
        self,
        alternative: Conjunction,
        window: Window,
        event: Typed,
        event_attributes: Mapping[str, int],
        row: int,
        event_conditions: Container[str],
        stop: int,
        first: int = 0,
    ) -> bool:
        """Whether a document in the window satisfies the alternative for the event in this row.

        Only documents from number ``first`` up to ``stop`` count. ``event_attributes`` are the rows
        of attributes in ``event``, ``event_conditions`` those that are TRUE for it.
        """
        if any((each.text in event_conditions) != each.holds for each in alternative.event):
            return False
        for pair, holds in alternative.pairs:
            if not pair.of_document:
                alone = event.take(np.array([row]))
                if bool(_pair_holds(pair, alone, event_attributes)[0]) != holds:
                    return False
        low = max(first, self.first) - self._base
        high = min(stop, self.end) - self._base
        if window.count is not None and not window.per:
            low = max(low, high - window.count)
        if low >= high:
            return False
        names = _event_names(alternative, window)
        values = {name: TypedValue.of(event, event_attributes[name], row) for name in names}
        leaves = []
        for leaf in chain(
            self._window_leaves(window, values, low, high),
            self._own_leaves(alternative, values),
        ):
            if not leaf.count:
                return False
            leaves.append(leaf)
        return _some(leaves, low, high)

    def _window_leaves(
        self, window: Window, values: Mapping[str, TypedValue], low: int, high: int
    ) -> Iterator[_Leaf]:
        """What a window asks beside a range of numbers."""
        groups = [self._attributes[name].found(EQUAL, values[name]) for name in window.per]
        if window.count is not None and groups:
            yield _Members(bitmap_of(_all(groups, low, high)[-window.count :]))
        else:
            yield from groups
        if window.of is not None and window.microseconds is not None:
            time = values[window.of]
            # With anything else but a time nothing compares. Windows are of whole microseconds.
            kind = TIME if time.kind == TIME else MISSING
            earliest = max(_INT64_MIN, time.word - window.microseconds)
            since = time._replace(kind=kind, word=earliest, tie=0)
            yield self._attributes[window.of].found(OUTCOMES[">="], since)

    def _own_leaves(
        self, alternative: Conjunction, values: Mapping[str, TypedValue]
    ) -> Iterator[_Leaf]:
        held = self.end - self._base
        for join in alternative.joins:
            index = self._attributes[join.document]
            yield index.found(OUTCOMES[join.operator], values[join.event])
        for join in alternative.denied:
            index = self._attributes[join.document]
            yield index.found(ANYHOW ^ OUTCOMES[join.operator], values[join.event])
        for apart in alternative.apart:
            yield self._attributes[apart.document].found(APART, values[apart.event])
        for condition in alternative.document:
            members = self._conditions[condition.text]
            yield _Members(members) if condition.holds else _Others(members, held)
        for pair, holds in alternative.pairs:
            if pair.of_document:
                members = self._pairs[pair]
                yield _Members(members) if holds else _Others(members, held)

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        sets = [*self._conditions.values(), *self._pairs.values()]
        indexes = sum(index.nbytes for index in self._attributes.values())
        return indexes + sum(map(bytes_of, sets))

    def statistics(self) -> dict[str, int]:
        """Sizes of what it is made of; runs, marks and bytes of all attributes together."""
        indexes = [index.statistics() for index in self._attributes.values()]
        return {
            "documents": self.end - self.first,
            "expired": self.first - self._base,
            "attributes": len(self._attributes),
            "conditions": len(self._conditions),
            "pairs": len(self._pairs),
            "runs": sum(each["runs"] for each in indexes),
            "marks": sum(each["marks"] for each in indexes),
            "bytes": self.nbytes,
        }

    def check(self) -> None:
        """Verify every index and that all are of the same documents."""
        assert self._base <= self.first <= self.end, "live documents are not among those held"
        held = self.end - self._base
        for name, index in self._attributes.items():
            assert len(index) == held, f"the index of {name} is of other documents"
            index.check()
        for members in (*self._conditions.values(), *self._pairs.values()):
            assert not members or members.max() < held, "a set has documents that are not there"


def _event_names(alternative: Conjunction, window: Window) -> set[str]:
    names = {join.event for join in (*alternative.joins, *alternative.denied)}
    names |= {apart.event for apart in alternative.apart}
    return names | set(window.per) | ({window.of} if window.of is not None else set())


def _pair_holds(pair: Pair, typed: Typed, rows: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    """Event by event, whether a comparison of two attributes is TRUE."""
    holds = np.empty(typed.kinds.shape[1], dtype=np.bool_)
    left, right = (
        (typed.kinds[rows[name]], typed.words[rows[name]], typed.ties[rows[name]])
        for name in (pair.left, pair.right)
    )
    _compare_rows(*left, *right, typed.heap, OUTCOMES[pair.operator], holds)
    return holds


def _within(places: Int32s, low: int, high: int) -> Int32s:
    return places[(places >= low) & (places < high)]


def _all(leaves: Sequence[_Leaf], low: int, high: int) -> Int32s:
    """The places in a range that satisfy every leaf, all equalities: ascending."""
    first, *rest = sorted(leaves, key=lambda leaf: leaf.count)
    if rest and first.count > FEW:
        return places_of(_intersected([first, *rest], low, high))
    places = _within(first.places(), low, high)
    for leaf in rest:
        places = leaf.keep(places)
    return places


def _some(leaves: list[_Leaf], low: int, high: int) -> bool:
    """Is there a place in a range that satisfies every leaf?"""
    leaves.sort(key=lambda leaf: leaf.count)
    if not leaves:
        return True
    if high - low <= leaves[0].count:
        places, rest = np.arange(max(low, high - FEW), high, dtype=np.int32), leaves
        decided = high - low <= FEW
    else:
        places, rest = _within(leaves[0].places(FEW), low, high), leaves[1:]
        decided = leaves[0].count <= FEW
    for leaf in rest:
        places = leaf.keep(places)
    if len(places) or decided:
        return len(places) > 0
    return bool(_intersected(leaves, low, high))


def _intersected(leaves: Sequence[_Leaf], low: int, high: int) -> BitMap:
    documents = BitMap(range(low, high))
    for leaf in leaves:
        documents = leaf.narrow(documents)
        if not documents:
            break
    return documents
