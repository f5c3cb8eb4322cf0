"""Pivot and verify: Bittern's own subscription index.

Each class is filed under its pivot cover (``matching/pivot/cover.py``) in one stabbing index over
the global axis of cells; a filed pivot is a *posting*. A batch visits the postings of each distinct
cell once for all events that carry it, and verifies::

    postings, in order of their lowest cell and of the inline test's channel, so that neighbours
    on the axis are near in memory:
      heads     (channel, class)   channel of the first residual test, which is kept inline: most
                                   candidates are rejected here without touching anything else;
                                   ~class where nothing is left to test after it
      bounds    (low, high)        of that test
      lows, highs                  the pivot's own interval
    classes, numbered in order of their first posting:
      starts -> rows (channel, low, high, jump)   what is left to test (``matching/program.py``)
      several  1 where a class has several pivots; its rows then begin with the pivots, their
               number in the jump column, and the program follows

``model = 'x' AND price <= 9 AND size = 4`` filed under ``model`` keeps ``size = 4`` inline and one
row for ``price <= 9``. A test that always holds uses the events' extra column.

An event that satisfies several pivots of a class finds it several times; only the first pivot in
order that holds reports it. Classes that no index can cover (``a IS NULL``) are on the ``always``
list and run in full for each event.

Classes that pivots serve badly, many wide ranges, go to bits where that pays: then what is built is
an index of both (``matching/pivot/with_bits.py``).

An OR at the top is taken apart first (``matching/pivot/alternatives.py``): then "class" above is a
part, ``owners`` has the class of each, and a class found by several of its parts is reported once.

Cost: O(pairs + candidates) per batch; 24 bytes per posting, plus the stabbing index's, plus 16
per row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, record_of, stretches
from bittern.jit import frozen
from bittern.matching.always import run_programs
from bittern.matching.contract import Found, SubscriptionIndex, candidates_of
from bittern.matching.output import Output
from bittern.matching.pivot.alternatives import alternatives, once
from bittern.matching.pivot.choice import worth_bits
from bittern.matching.pivot.filing import file_classes
from bittern.matching.pivot.match import PENDING, PivotArrays, match_postings
from bittern.matching.stabbed import Chosen, StabbedIndex
from bittern.model.classes.classes import Classes
from bittern.model.rank.encoded import EncodedEvents, Pairs
from bittern.model.rank.space import RankSpace
from bittern.options import true_or_false

if TYPE_CHECKING:
    from bittern.matching.pivot.few import Few
    from bittern.model.rank.touched import CellTests

#: Postings looked up at once: bounds memory, and keeps them in the cache until they are verified.
CHUNK = 1 << 17
#: Matches to make room for at first, at most; where fewer are candidates, as many as they.
ROOM = 1 << 22


_NO_OWNERS = np.empty(0, dtype=np.int32)
_NO_REPEATS = np.empty(0, dtype=np.uint8)


def _number_owners(
    owners: npt.NDArray[np.int32], numbers: npt.NDArray[np.int32], n_classes: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """The class of each part by the part's number, and the number of each class.

    Classes are numbered as their first parts are, so that subscribers are near as well.
    """
    firsts = np.full(n_classes, len(numbers), dtype=np.int32)
    np.minimum.at(firsts, owners, numbers)
    class_numbers = np.empty(n_classes, dtype=np.int32)
    class_numbers[np.argsort(firsts, kind="stable")] = np.arange(n_classes, dtype=np.int32)
    by_number = np.empty(len(numbers), dtype=np.int32)
    by_number[numbers] = class_numbers[owners]
    return by_number, class_numbers


class Pivot(StabbedIndex):
    """Candidates by stabbing, then verification; see the module for the layout."""

    name: ClassVar[str] = "pivot"

    def __init__(
        self,
        arrays: PivotArrays,
        owners: npt.NDArray[np.int32],
        repeats: npt.NDArray[np.uint8],
        chosen: Chosen,
    ) -> None:
        self._arrays = frozen(arrays)
        self._owners = owners
        self._repeats = repeats
        self.chosen = chosen
        #: Whether other classes of such an index may go to bits.
        self.may_use_bits = True
        self._few: Few | None = None

    @classmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],
        rank: RankSpace,
        *,
        stabbing: str = "cei",
        stabbing_memory: int | None = None,
        bits: bool = True,
    ) -> tuple[SubscriptionIndex, npt.NDArray[np.int32]]:
        """Choose covers, file the classes under them, index the filed intervals.

        Classes that pivots serve badly go to bits where that pays, unless ``bits`` is False.
        """
        chosen = worth_bits(classes, mass, rank.n_channels) if bits else None
        if chosen is not None:
            from bittern.matching.pivot.with_bits import PivotBits  # noqa: PLC0415  only then

            both, numbers = PivotBits.split(chosen, classes, mass, rank, stabbing, stabbing_memory)
            both.is_asked_for = False
            return both, numbers
        index, numbers = cls.alone(classes, mass, rank, stabbing, stabbing_memory)
        index.may_use_bits = bits
        return index, numbers

    @classmethod
    def alone(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],
        rank: RankSpace,
        stabbing: str,
        stabbing_memory: int | None,
    ) -> tuple[Self, npt.NDArray[np.int32]]:
        """File all classes under pivots. O(tests)."""
        taken = alternatives(classes)
        arrays, numbers = file_classes(
            classes if taken is None else taken.parts, mass, rank.n_channels
        )
        bases = rank.arrays.bases
        chosen = Chosen.build(stabbing, stabbing_memory, arrays.lows, arrays.highs, bases)
        if taken is None:
            return cls(arrays, _NO_OWNERS, _NO_REPEATS, chosen), numbers
        owners, numbers = _number_owners(taken.owners, numbers, len(classes))
        repeats = np.empty_like(taken.repeats)
        repeats[numbers] = taken.repeats
        return cls(arrays, owners, repeats, chosen), numbers

    def match(self, events: EncodedEvents) -> Found:
        """Candidates of all events, verified. O(pairs + candidates)."""
        out = Output()
        candidates = self._match_postings(events, out)
        if len(self._arrays.always):
            always, starts, rows = self._arrays.always, self._arrays.starts, self._arrays.rows
            run_programs(always, always, starts, rows, events, out)
            candidates += len(always)
        return self._found(out, candidates)

    def match_pairs(self, pairs: Pairs, n_events: int, bases: Int32s) -> Found:
        """Event by event if the index is small (``matching/pivot/few.py``), else as ``match``."""
        if self._few is None:
            from bittern.matching.pivot.few import Few  # noqa: PLC0415  only for deltas

            self._few = Few(self._arrays, self.chosen.index, bases)
        if not self._few.is_few:
            return super().match_pairs(pairs, n_events, bases)
        out = Output()
        return self._found(out, self._few.match(pairs, n_events, out))

    def _found(self, out: Output, candidates: npt.NDArray[np.int64]) -> Found:
        """What was found, each class once."""
        n = int(out.state[2])
        rows, found = out.rows[:n], out.classes[:n]
        if len(self._owners):
            found = self._owners[found]
            rows, found = once(rows, found, self._repeats, len(candidates))
        return Found(rows, found, candidates)

    def _match_postings(self, events: EncodedEvents, out: Output) -> npt.NDArray[np.int64]:
        """Look cells up chunk by chunk, so that a chunk's postings are read while still cached."""
        located = self.chosen.index.locate_batch(events.cells)
        ends = located.offsets
        candidates = candidates_of(events, ends)
        out.make_room(min(int(candidates.sum()), ROOM))
        for first, last in stretches(ends, CHUNK):
            offsets = ends[first : last + 1] - ends[first]
            ids = located.ids(first, last)
            longest = int((offsets[1:] - offsets[:-1]).max())
            pending = np.empty((2, max(PENDING, longest + 1)), dtype=np.int32)
            out.state[:2] = 0, 0
            while True:
                match_postings(
                    self._arrays,
                    events.by_event,
                    events.offsets[first : last + 1],
                    events.rows,
                    offsets,
                    ids,
                    pending,
                    out.rows,
                    out.classes,
                    out.state,
                )
                if out.state[0] == last - first:
                    break
                out.make_room(longest)
        return candidates

    def tests(self) -> CellTests:
        """Those of pivots, those inline, and those of programs."""
        from bittern.model.rank.touched import CellTests  # noqa: PLC0415  only for deltas

        own = self._arrays
        pivots = np.zeros(len(own.lows), dtype=np.int32)  # which holds for no missing value
        return CellTests(
            np.concatenate((pivots, own.heads[:, 0], own.rows[:, 0])),
            np.concatenate((own.lows, own.bounds[:, 0], own.rows[:, 1])),
            np.concatenate((own.highs, own.bounds[:, 1], own.rows[:, 2])),
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Own arrays, and the stabbing index's under ``stabbing.``."""
        own = {"owners": self._owners, "repeats": self._repeats}
        return self._arrays._asdict() | own | self.chosen.arrays()

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], parameters: Mapping[str, Any]
    ) -> Self:
        """Search these arrays in place."""
        own = record_of(PivotArrays, arrays)
        chosen = Chosen.from_arrays(arrays, parameters)
        index = cls(own, arrays["owners"], arrays["repeats"], chosen)
        index.may_use_bits = parameters.get("bits", True)
        return index

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of the stabbing index, and whether there must be no bits."""
        return super().parameters | ({} if self.may_use_bits else {"bits": False})

    @property
    def options(self) -> dict[str, Any]:
        """The request for the stabbing index, and whether there must be no bits."""
        return super().options | ({} if self.may_use_bits else {"bits": False})

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, Any]) -> None:
        """Also refuse ``bits`` that is neither True nor False."""
        super().check_parameters(parameters)
        true_or_false("bits", parameters.get("bits", True))

    def statistics(self) -> dict[str, Any]:
        """Postings, classes on the always list, and the stabbing index's own figures."""
        arrays, stabbing = self._arrays, self.chosen.index
        filed = np.zeros(len(arrays.several), dtype=np.bool_)
        filed[np.maximum(arrays.heads[:, 1], ~arrays.heads[:, 1])] = True
        filed[arrays.always] = True
        n_classes = len(self._repeats) if len(self._owners) else len(filed)
        held = np.unique(self._owners[filed]) if len(self._owners) else np.flatnonzero(filed)
        return {
            "classes": n_classes,
            "parts": len(filed),
            "postings": len(arrays.lows),
            "always": len(arrays.always),
            "never": n_classes - len(held),
            "rows": len(arrays.rows),
            "stabbing": {"structure": stabbing.name} | stabbing.statistics(),
        }

    def check(self, n_channels: int, n_cells: int) -> None:
        """Postings, pivots, programs and the stabbing index are sound and fit together."""
        from bittern.matching.checks import check_filed, check_parts  # noqa: PLC0415  only then

        arrays = self._arrays
        check_filed(arrays, n_channels, n_cells)
        self.chosen.check(arrays.lows, arrays.highs, n_cells)
        check_parts(arrays, self._owners, self._repeats, n_channels)
