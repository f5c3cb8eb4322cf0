"""What a live matcher holds: immutable segments, and the changes made since they were sealed.

Row       one subscription as it was read
Segment   an index and its marks: the snapshot, or a delta, which keeps its rows
State     the segments that one call of ``match`` works on
Change    what became of an id since the state was sealed, and where in the state it was
Held      all that is subscribed at a time: a state, and the changes on top of it

Only ``Held`` changes, and only by adding one change at a time. Everything else is replaced by new
objects, so an exception at any moment (Ctrl-C, no memory) leaves the previous state::

    state                                         changes              subscribed
      segment 0  x: a = 1   y: b = 2   alive 1 1    x -> a = 7  at 0,0    x: a = 7
      segment 1  z: c = 3              alive 1      z -> gone   at 1,0    y: b = 2
                                                    n -> d = 4  nowhere   n: d = 4
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.engine.index import Index
from bittern.model.classes.expand import ShapePlan
from bittern.model.ids import Ids

if TYPE_CHECKING:
    from bittern.engine.live.columns import RowColumns
    from bittern.engine.one_event.matcher import OneEvent
    from bittern.engine.one_event.together import Together
    from bittern.model.rank.touched import Touched

#: A delta of up to this many rows is rebuilt with those that are sealed, not kept beside them.
SMALL_DELTA = 200
#: A larger one is folded with those after it when they have this many times as many rows.
FOLD_RATIO = 2
#: The marks of an index that has lost no subscription.
ALL_ALIVE = np.empty(0, dtype=np.uint8)


class Row(NamedTuple):
    """A subscription that is not in the snapshot, as it was read."""

    id: str | int
    text: str
    weight: float | None
    plan: ShapePlan
    parameters: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Segment:
    """An index and its marks; ``rows`` are those of a delta, None for the snapshot."""

    index: Index
    alive: npt.NDArray[np.uint8]
    dead: int
    rows: list[Row] | None
    #: Of a delta: where each id is.
    places: dict[str | int, int] = field(default_factory=dict)
    #: Of a delta: its rows once more.
    columns: RowColumns | None = None
    #: What matches one event at a time, once it was asked for; the same for all marks.
    ones: list[OneEvent | None] = field(default_factory=list)
    #: The marks that count for one event at a time, their address and their number.
    _marks: list[tuple[npt.NDArray[np.uint8], tuple[int, int]]] = field(
        default_factory=list, init=False
    )

    @property
    def marks_at(self) -> tuple[int, int]:
        """The address of the marks of those that are alive and need no history, and their number.

        Looked up once.
        """
        if not self._marks:
            from bittern.engine.unanswered import alive_and_answered  # noqa: PLC0415  it needs us

            marks = alive_and_answered(self.index, self.alive)
            self._marks.append((marks, (int(marks.ctypes.data), len(marks))))
        return self._marks[0][1]

    def __reduce__(self) -> Any:
        """A copy has addresses of its own."""
        return Segment, (self.index, self.alive, self.dead, self.rows, self.places, self.columns)

    @property
    def one_event(self) -> OneEvent | None:
        """What matches one event at a time; None if the index needs batches."""
        if not self.ones:
            from bittern.engine.one_event.matcher import OneEvent  # noqa: PLC0415  only then

            self.ones.append(OneEvent.of(self.index))
        return self.ones[0]

    def is_alive(self, position: int) -> bool:
        """Whether the subscription at this position is alive."""
        return not len(self.alive) or bool(self.alive[position])

    def living(self) -> Iterator[Row]:
        """The living rows of a delta, in order."""
        assert self.rows is not None
        return compress(self.rows, self.alive.tolist()) if len(self.alive) else iter(self.rows)

    def without(self, positions: Sequence[int]) -> Segment:
        """The same segment with these living rows marked as dead. O(subscriptions) bytes."""
        marks = self.alive.copy() if len(self.alive) else np.ones(len(self.index), dtype=np.uint8)
        marks[np.asarray(positions)] = 0
        return replace(self, alive=marks, dead=self.dead + len(positions))


class State(NamedTuple):
    """What one call of ``match`` works on."""

    segments: tuple[Segment, ...]
    marks: tuple[npt.NDArray[np.uint8], ...]
    ids: Ids
    #: What matches one event with all segments at once, once it was asked for.
    together: list[Together | None]
    #: The cells of the snapshot that deltas ask about; None if they are not known.
    touched: Touched | None = None

    def __reduce__(self) -> Any:
        """A copy has addresses of its own."""
        return State, (self.segments, self.marks, self.ids, [])

    @classmethod
    def over(cls, index: Index) -> State:
        """The state of one index that has lost no subscription."""
        return cls.of([Segment(index, ALL_ALIVE, 0, None)])

    @classmethod
    def of(cls, segments: list[Segment], touched: Touched | None = None) -> State:
        """The state of these segments, the snapshot first."""
        return cls(
            tuple(segments),
            tuple(segment.alive for segment in segments),
            Ids.joined([segment.index.all_ids for segment in segments]),
            [],
            touched,
        )

    def find_many(self, ids: list[str | int]) -> dict[int, dict[str | int, int]]:
        """By segment the positions of the living ids among these. O(ids x deltas), in bulk."""
        base, *deltas = self.segments
        found: dict[int, dict[str | int, int]] = {}
        positions = base.index.all_ids.find_many(ids).tolist() if len(base.index) else []
        own = {id_: at for id_, at in zip(ids, positions, strict=False) if at >= 0}
        found[0] = {id_: at for id_, at in own.items() if base.is_alive(at)}
        asked = set(ids)
        for number, delta in enumerate(deltas, start=1):
            places = delta.places
            own = {id_: places[id_] for id_ in asked & places.keys()}
            found[number] = {id_: at for id_, at in own.items() if delta.is_alive(at)}
        return found

    def find(self, id_: str | int) -> tuple[int, int]:
        """The segment and the position of a living id; (-1, -1) if there is none."""
        for number in range(len(self.segments) - 1, 0, -1):
            delta = self.segments[number]
            if id_ in delta.places and delta.is_alive(delta.places[id_]):
                return number, delta.places[id_]
        base = self.segments[0]
        position = base.index.all_ids.find(id_)
        return (0, position) if position >= 0 and base.is_alive(position) else (-1, -1)


class Change(NamedTuple):
    """The new row of an id (None: removed), and its place in the state (-1: nowhere)."""

    row: Row | None
    segment: int = -1
    position: int = -1


class IdState(NamedTuple):
    """Whether an id is subscribed, its row if it is not sealed, and its place as in ``Change``."""

    is_subscribed: bool
    row: Row | None
    segment: int
    position: int


@dataclass(slots=True)
class Held:
    """All subscriptions: a state, the changes since, and their number."""

    state: State
    version: int
    base_version: int
    changes: dict[str | int, Change]
    count: int
    #: Subscriptions in deltas.
    in_deltas: int = field(init=False)
    #: Whether there are deltas to be folded.
    is_full: bool = field(init=False)

    def __post_init__(self) -> None:
        """Count once what every change needs to know."""
        _, *deltas = self.state.segments
        self.in_deltas = sum(len(delta.index) - delta.dead for delta in deltas)
        self.is_full = first_to_fold(self.state) > 0

    def copy(self) -> Held:
        """The same, to be changed in several steps. O(changes)."""
        return replace(self, changes=self.changes.copy())

    def find(self, id_: str | int) -> IdState:
        """What is known about an id."""
        change = self.changes.get(id_)
        if change is not None:
            return IdState(change.row is not None, *change)
        segment, position = self.state.find(id_)
        return IdState(segment >= 0, None, segment, position)

    def put(self, row: Row, found: IdState) -> None:
        """Subscribe a row; it replaces what was found, if anything."""
        count = self.count + (not found.is_subscribed)
        change = Change(row, found.segment, found.position)
        # Nothing is called between these two lines, so that no exception comes between them.
        self.changes[row.id] = change
        self.count = count

    def drop(self, id_: str | int, found: IdState) -> None:
        """Unsubscribe what was found."""
        count = self.count - 1
        change = Change(None, found.segment, found.position)
        if found.segment < 0:
            del self.changes[id_]
        else:
            self.changes[id_] = change
        self.count = count

    def text(self, found: IdState) -> str:
        """The expression of what was found."""
        if found.row is not None:
            return found.row.text
        texts = self.state.segments[found.segment].index.texts
        return str(texts[found.position].as_py())

    def weight(self, found: IdState) -> float | None:
        """The weight of what was found; None if it has none."""
        if found.row is not None:
            return found.row.weight
        segment = self.state.segments[found.segment]
        if segment.rows is not None:
            return segment.rows[found.position].weight
        weights = segment.index.weights
        return None if weights is None else float(weights[found.position])


def new_delta(rows: list[Row], columns: RowColumns | None = None) -> Segment:
    """A segment of rows, and of their columns if they are known. O(rows)."""
    from bittern.engine.live.columns import RowColumns  # noqa: PLC0415  only for changes

    columns = columns or RowColumns.of_rows(rows)
    places = dict(zip(columns.held.ids, range(len(rows)), strict=True))
    return Segment(columns.compiled(), ALL_ALIVE, 0, rows, places, columns)


def rebased(
    held: Held, index: Index, version: int, kept: npt.NDArray[np.int64], rows: list[Row]
) -> Held:
    """The same subscriptions on a new snapshot, which was made from an earlier sealed state.

    The snapshot has the rows at ``kept`` of the old one, then ``rows``. O(rows + changes).
    """
    base, *deltas = held.state.segments
    marks = np.ones(len(index), dtype=np.uint8)
    if len(base.alive):  # unsubscribed from the old snapshot meanwhile
        marks[: len(kept)] = base.alive[kept]
    later = {row.id: row for delta in deltas for row in delta.living()}
    places: dict[str | int, int] = {}
    for position, row in enumerate(rows, start=len(kept)):
        if later.get(row.id) is row:
            del later[row.id]
            places[row.id] = position
        else:
            marks[position] = 0
    changes = {id_: Change(row) for id_, row in later.items()}
    for id_, change in held.changes.items():
        position = -1
        if change.segment == 0:
            position = int(np.searchsorted(kept, change.position))
        elif change.segment > 0:
            position = places.get(id_, -1)
        if position >= 0:
            changes[id_] = Change(change.row, 0, position)
        elif change.row is not None:
            changes[id_] = Change(change.row)
        else:
            changes.pop(id_, None)
    dead = int(np.count_nonzero(marks == 0))
    segment = Segment(index, marks if dead else ALL_ALIVE, dead, None)
    return Held(State.of([segment]), held.version, version, changes, held.count)


def state_weights(state: State) -> npt.NDArray[np.float64] | None:
    """The weights of all subscriptions of a state, by position; None if all weigh the same."""
    given = [segment.index.weights for segment in state.segments]
    if all(weights is None for weights in given):
        return None
    if len(given) == 1:  # as large as the index: not copied for each call
        return given[0]
    return np.concatenate(
        [
            np.ones(len(segment.index)) if weights is None else weights
            for segment, weights in zip(state.segments, given, strict=True)
        ]
    )


def sealed(held: Held) -> Held:
    """The same with all changes in segments. O(changes and ``SMALL_DELTA``), and marks."""
    dying: dict[int, list[int]] = {}
    rows: list[Row] = []
    for change in held.changes.values():
        if change.segment >= 0:
            dying.setdefault(change.segment, []).append(change.position)
        if change.row is not None:
            rows.append(change.row)
    segments = _without(held.state, dying)
    if rows:
        while len(segments) > 1 and len(segments[-1].index) <= SMALL_DELTA:
            rows = [*segments.pop().living(), *rows]
        segments.append(new_delta(rows))
    return _with_segments(held, segments, held.count)


def _without(state: State, dying: Mapping[int, Sequence[int]]) -> list[Segment]:
    """The segments, with these living rows of each marked as dead."""
    segments = list(state.segments)
    for number, positions in dying.items():
        segments[number] = segments[number].without(positions)
    return segments


def _with_segments(held: Held, segments: list[Segment], count: int) -> Held:
    """The same, sealed, with other segments."""
    known = held.state.segments if held.state.touched else ()
    fresh = [each for each in segments[1:] if all(each.index is not own.index for own in known)]
    touched = _touched(segments[0], fresh, held.state.touched)
    return Held(State.of(segments, touched), held.version, held.base_version, {}, count)


def _touched(base: Segment, deltas: list[Segment], touched: Touched | None) -> Touched | None:
    """The cells of the snapshot that these deltas ask about, beside those that are known."""
    from bittern.model.rank.touched import Touched  # noqa: PLC0415  only for changes

    for delta in deltas:
        numbers = delta.index.encoder.numbers_in(base.index.encoder)
        if numbers is not None:  # else it reads for itself
            touched = touched or Touched(base.index.rank)
            touched.mark(delta.index.rank, numbers, delta.index.subscriptions.tests())
    return touched


def extended(held: Held, rows: list[Row]) -> Held:
    """What is sealed, and these rows of new ids. O(rows)."""
    delta = new_delta(rows)
    return _with_segments(held, [*held.state.segments, delta], held.count + len(rows))


def diminished(held: Held, dying: Mapping[int, Sequence[int]], count: int) -> Held:
    """What is sealed, without ``count`` living rows, which are told by segment."""
    return _with_segments(held, _without(held.state, dying), held.count - count)


def first_to_fold(state: State) -> int:
    """From which segment on all become one; 0 if they are fine. O(segments).

    Those that a seal rebuilds anyway do not count. So there are at most ``FOLD_RATIO`` deltas of
    about each size, and a row is indexed anew once for each.
    """
    found, after, counted = 0, 0, len(state.segments)
    while counted > 1 and len(state.segments[counted - 1].index) <= SMALL_DELTA:
        counted -= 1
    for number in range(counted - 1, 0, -1):
        alive = len(state.segments[number].index) - state.segments[number].dead
        if number < counted - 1 and after >= FOLD_RATIO * alive:
            found = number
        after += alive
    return found


def folded(held: Held, first: int) -> Held:
    """What is sealed, with the deltas from one on as a single one. O(their rows)."""
    from bittern.engine.live.columns import RowColumns  # noqa: PLC0415  only for changes

    state = held.state
    kept, old = list(state.segments[:first]), state.segments[first:]
    rows = [row for delta in old for row in delta.living()]
    columns = [each.columns or RowColumns.of_rows(each.rows or []) for each in old]
    parts = list(zip(columns, (each.alive for each in old), strict=True))
    made = [new_delta(rows, RowColumns.joined(parts))] if rows else []
    touched, reading = state.touched, kept[0].index.encoder
    if first == 1:  # what is gone can be forgotten
        touched = _touched(kept[0], made, None)
    else:
        for delta in made:  # so that no match has to
            delta.index.encoder.numbers_in(reading)
        if touched and any(each.index.encoder.numbers_in(reading) is None for each in old):
            touched = _touched(kept[0], made, touched)  # else all of them are marked
    return Held(State.of([*kept, *made], touched), held.version, held.base_version, {}, held.count)
