"""The matcher: events in, matches out, against one immutable index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import starts_of
from bittern.engine.answers import Answering
from bittern.engine.index import Index
from bittern.engine.live.delta import State, state_weights
from bittern.engine.unanswered import alive_and_answered, tell_unanswered
from bittern.errors import EventError, OptionError
from bittern.model.events.columns import from_frame
from bittern.model.events.encoder import read_together
from bittern.model.events.mistyped import listed
from bittern.model.events.reads import Read, first_reasons, readable_rows
from bittern.model.ids import Ids
from bittern.model.matches import Matches, Satisfied, best, concatenate, expanded
from bittern.options import whole_number
from bittern.terms.spelling import spelling

if TYPE_CHECKING:
    from bittern.model.transitions import Transitions

_NO_SETS: Mapping[str, Any] = {}
#: Events matched at once: enough to visit each posting list for many, few enough for the cache.
BLOCK = 16_384
#: A list of so many events is matched one by one: a batch takes longer then. What matches one event
#: takes long to compile, so a list alone does not ask for it.
FEW = 256


class Matcher:
    """Matches batches of events against an index. Threads may share one.

    It has no history: subscriptions with EXISTS or FORALL match nothing, and a warning says so.
    ``sets`` are the sets that subscriptions name, from name to members; those that are not given
    are the index's own.

    >>> matcher = Matcher(Index.build({"s1": "price < 10"}))
    >>> matcher.match([{"price": 5}, {"price": 50}]).to_pylist()
    [['s1'], []]
    """

    def __init__(
        self,
        index: Index,
        *,
        sets: Mapping[str, Any] | None = None,
        case_sensitive: bool = True,
    ) -> None:
        """``sets`` are the sets that subscriptions name; they come in place of the index's own.

        ``case_sensitive=False`` finds ``PRICE`` in the column ``price``, as Spark does. That is
        about columns of tables and fields of structs. Keys are what they are.
        """
        self._sets = sets_for(index, sets)
        self.index = index
        tell_unanswered(index)
        self._state = State.over(index)
        self._case_sensitive = case_sensitive
        #: Totals of the last call: events, candidates, matches, rejects, mistyped.
        self.last_statistics: dict[str, int] = {}

    def match(
        self, events: Any, *, limit: int | None = None, json: str | Sequence[str] = ()
    ) -> Matches:
        """Find the subscriptions that each event satisfies. O(values + candidates).

        ``events`` is an Arrow table, record batch or array, a list of mappings or of JSON texts, or
        a single one (``model/events/reader.py`` lists the forms). ``limit`` keeps the k matches
        with the highest weights per event, best first, ties by id. ``json`` names columns of a
        table that hold JSON objects as text: their fields become attributes, like the other
        columns. Events that cannot be read match nothing and are listed in ``matches.rejects``.
        Events with a value that no subscription can compare are in ``matches.mistyped``.
        """
        if not json:
            singly = match_one_by_one(self._state, events, limit, self._sets)
            if singly is not None:
                found, self.last_statistics = singly
                return found
        # Its own, so that threads do not mix their totals.
        matcher = StateMatcher(self._state, sets=self._sets)
        with spelling(case_sensitive=self._case_sensitive):
            found = matcher.match(events, limit=limit, json=json)
        self.last_statistics = matcher.last_statistics
        return found

    def match_changes(
        self, before: Any, after: Any, *, json: str | Sequence[str] = ()
    ) -> Transitions:
        """Find the subscriptions that rows enter, leave and stay in as they change.

        Row i of ``before`` becomes row i of ``after``; None (in Arrow NULL) is a row that is
        missing: before an insert, after a delete. Forms and ``json`` are those of ``match``. A
        change of which a side cannot be read is listed in ``rejects``. Totals are those of the
        rows of both sides.

        >>> matcher = Matcher(Index.build({"cheap": "price < 10", "any": "price IS NOT NULL"}))
        >>> matcher.match_changes([{"price": 5}], [{"price": 50}]).to_pylist()
        [{'enter': [], 'leave': ['cheap'], 'stay': ['any']}]
        """
        with spelling(case_sensitive=self._case_sensitive):
            found, self.last_statistics = match_sides(self._state, before, after, json, self._sets)
        return found


class StateMatcher:
    """Matches batches of events against a snapshot and deltas, as if they were one index.

    Without joins, subscriptions with EXISTS or FORALL match nothing. ``sets`` has all sets that
    subscriptions name.
    """

    def __init__(
        self, state: State, joins: Answering | None = None, sets: Mapping[str, Any] = _NO_SETS
    ) -> None:
        self._state = state
        self._joins = joins
        self._sets = sets
        self.last_statistics: dict[str, int] = {}
        #: The last events of the last call.
        self.last_block: Any = None

    def match(
        self,
        events: Any,
        *,
        limit: int | None = None,
        json: str | Sequence[str] = (),
        remember: bool = True,
        at_once: bool = False,
    ) -> Matches:
        """Find the subscriptions that each event satisfies; see ``Matcher.match``.

        With joins, ``remember`` turns the events into documents, and ``at_once`` says that none of
        them precedes another.
        """
        check_limit(limit)
        state, totals = self._state, new_totals()
        indexes = [segment.index for segment in state.segments]
        encoders = [index.encoder for index in indexes]
        weights = state_weights(state) if limit is not None else None
        parts, joins, sets = [], self._joins, self._sets
        size: Callable[[], int] | None = None
        late: list[npt.NDArray[np.bool_]] = []
        alive = state.marks
        if joins is None:
            alive = tuple(map(alive_and_answered, indexes, state.marks))
        else:
            joins.prepare(indexes)
            size = partial(joins.block_size, BLOCK)
            before = joins.lookups
        for block in blocks(events, size):
            reads = read_together(encoders, block, json, sets, state.touched)
            if joins is not None:
                added = joins.run(block, json, reads, sets, remember=remember and not at_once)
                if remember and at_once:
                    late.append(joins.readable(reads))
                reads = [read.with_pairs(more) for read, more in zip(reads, added, strict=True)]
            matches = match_read(indexes, reads, alive, state.ids, totals)
            # Ranking block by block holds no more than one block's matches at a time.
            parts.append(matches if limit is None else best(matches, weights, limit))
            self.last_block = block
        if joins is not None:
            totals["join_evaluations"] = joins.lookups - before
            if late:  # now that the last block has been matched
                joins.history.append_some(events, json, np.concatenate(late))
        self.last_statistics = totals
        return concatenate(parts)


def match_one_by_one(
    state: State, events: Any, limit: int | None, sets: Mapping[str, Any]
) -> tuple[Matches, dict[str, int]] | None:
    """Match one event, or a list of a few, without a batch: the matches, and the totals.

    None if a batch has to do it. Matches and totals are those that it would give.
    """
    singly = _one_by_one(state, events, sets)
    if singly is None or limit is None:
        return singly
    check_limit(limit)
    return best(singly[0], state_weights(state), limit), singly[1]


def match_sides(
    state: State, before: Any, after: Any, json: str | Sequence[str], sets: Mapping[str, Any]
) -> tuple[Transitions, dict[str, int]]:
    """Match both sides of changes, and compare what they matched; also the totals."""
    from bittern.model.events.sides import sides  # noqa: PLC0415  only for changes
    from bittern.model.transitions import Transitions  # noqa: PLC0415  only for changes

    batches, rows_before, rows_after = sides(before, after)
    parts, totals = [], new_totals()
    for batch in batches:
        singly = None if json else match_one_by_one(state, batch, None, sets)
        if singly is None:
            matcher = StateMatcher(state, sets=sets)
            singly = matcher.match(batch, json=json), matcher.last_statistics
        parts.append(singly[0])
        totals = {name: total + singly[1][name] for name, total in totals.items()}
    return Transitions.of(concatenate(parts), rows_before, rows_after), totals


def _one_by_one(
    state: State, events: Any, sets: Mapping[str, Any]
) -> tuple[Matches, dict[str, int]] | None:
    if type(events) is str or type(events) is dict:
        one = _find(state, events, sets)
        if one is None:
            return None
        matches = Matches.of_one(one[0], state.ids, one[1])
        return matches, _totals(1, one[1], len(one[0]))
    if type(events) is not list or not 1 <= len(events) <= FEW or not _has_one_event():
        return None
    parts = []
    for event in events:
        is_served = type(event) is str or type(event) is dict
        found = _find(state, event, sets) if is_served else None
        if found is None:
            return None
        parts.append(found)
    subscriptions = np.concatenate([found for found, _ in parts])
    ends = accumulate((len(found) for found, _ in parts), initial=0)
    candidates = [number for _, number in parts]
    matches = Matches(
        np.array(list(ends)), subscriptions, state.ids, candidates=np.array(candidates)
    )
    return matches, _totals(len(parts), sum(candidates), len(subscriptions))


def _has_one_event() -> bool:
    """Whether what matches single events is compiled."""
    from bittern.engine.one_event.kernel import match_one  # noqa: PLC0415  only then

    return match_one.load()


def _totals(events: int, candidates: int, matches: int) -> dict[str, int]:
    """The counters of ``match``, where all events could be read and none is mistyped."""
    return {
        "events": events,
        "candidates": candidates,
        "matches": matches,
        "rejects": 0,
        "mistyped": 0,
    }


def _find(
    state: State, event: str | dict[Any, Any], sets: Mapping[str, Any]
) -> tuple[npt.NDArray[np.int32], int] | None:
    """Subscriptions by position that one event satisfies, and how many were candidates."""
    if len(state.segments) > 1:
        if not state.together:
            from bittern.engine.one_event.together import Together  # noqa: PLC0415  only then

            state.together.append(Together.of(state.segments))
        found = None if state.together[0] is None else state.together[0].match(event)
        if found is not None:
            return found
    parts = []
    for segment in state.segments:
        one = segment.one_event
        found = None if one is None else one.match(event, segment.marks_at, sets)
        if found is None:
            return None
        parts.append(found)
    return parts[0] if len(parts) == 1 else _joined(state, parts)


def _joined(
    state: State, parts: Sequence[tuple[npt.NDArray[np.int32], int]]
) -> tuple[npt.NDArray[np.int32], int]:
    """What one event found in each segment, as positions in the ids of all."""
    sizes = [len(segment.index) for segment in state.segments]
    shifts = starts_of(sizes, np.int32)[:-1]
    moved = [found + shift for (found, _), shift in zip(parts, shifts, strict=True)]
    return np.concatenate(moved), sum(candidates for _, candidates in parts)


def sets_for(index: Index, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The sets that match an index: its own, and those that are given in their place.

    ``OptionError`` if subscriptions name another one, or if there is no index.
    """
    if not isinstance(index, Index):
        kind = type(index).__name__
        raise OptionError(
            f"a matcher takes an index, not {kind}: make one with Index.build or Index.open"
        )
    sets = index.sets if given is None else index.with_sets(given).sets
    if index.set_names:
        from bittern.engine.sets.named import check_there  # noqa: PLC0415  only for sets

        check_there(index.set_names, sets, "give them, as in sets={'vips': [7, 9]}")
    return sets


def new_totals() -> dict[str, int]:
    """The counters of ``match``, all zero."""
    return dict.fromkeys(("events", "candidates", "matches", "rejects", "mistyped"), 0)


def check_limit(limit: int | None) -> None:
    """Raise unless a limit is None or a positive integer."""
    if limit is not None:
        whole_number("limit", limit)


def blocks(events: Any, size: Callable[[], int] | None = None) -> Iterator[Any]:
    """Cut a batch into blocks of at most ``BLOCK`` events; at least one block, maybe empty.

    ``size`` returns how many events the next block may have.
    """
    size = size or (lambda: BLOCK)
    if isinstance(events, pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray):
        n = events.num_rows if isinstance(events, pa.Table | pa.RecordBatch) else len(events)
        for start, stop in _stretches(n, size):
            yield events.slice(start, stop - start)
    elif isinstance(events, list | tuple):
        for start, stop in _stretches(len(events), size):
            yield events[start:stop]
    elif hasattr(events, "__dataframe__") and not isinstance(events, Mapping | str):
        try:
            yield from blocks(from_frame(events), size)
        except ValueError as wrong:
            raise EventError(str(wrong)) from None
    else:
        yield events


def _stretches(n: int, size: Callable[[], int]) -> Iterator[tuple[int, int]]:
    """(start, stop) of stretches that make up n events."""
    start = 0
    while True:
        stop = min(n, start + size())
        yield start, stop
        start = stop
        if start >= n:
            return


def match_read(
    indexes: Sequence[Index],
    reads: Sequence[Read],
    marks: Sequence[npt.NDArray[np.uint8]],
    ids: Ids,
    totals: dict[str, int],
) -> Matches:
    """Match one block that was read for each index; matches are positions in the joined ids.

    ``marks`` tell of each index which subscriptions are alive (empty: all).
    """
    n_events = reads[0].n_events
    rejects = first_reasons([each for read in reads for each in read.rejects])
    # Whatever lacks all attributes would match "a IS NULL".
    readable = readable_rows(n_events, rejects) if rejects else None
    parts, candidates, shift = [], np.zeros(n_events, dtype=np.int64), 0
    for number, (index, read, alive) in enumerate(zip(indexes, reads, marks, strict=True)):
        if number:  # a delta
            found = index.subscriptions.match_pairs(read.pairs, n_events, read.bases)
        else:
            found = index.subscriptions.match(read.encoded().events)
        rows, classes, own_candidates = found
        if readable is not None:
            kept = readable[rows]
            rows, classes = rows[kept], classes[kept]
        parts.append(Satisfied(rows, classes, index.subscribers, alive, shift))
        candidates += own_candidates
        shift += len(index)
    offsets, subscriptions = expanded(parts, n_events)
    mistyped = listed([read.strays for read in reads])
    totals["events"] += n_events
    totals["candidates"] += int(candidates.sum())
    totals["matches"] += len(subscriptions)
    totals["rejects"] += len(rejects)
    totals["mistyped"] += len(mistyped)
    return Matches(offsets, subscriptions, ids, rejects, mistyped=mistyped, candidates=candidates)
