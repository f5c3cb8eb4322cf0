"""BE-Tree: clauses in a tree that is cut by attribute and by value in turns (seed 003, section 3).

A c-node holds clauses (its l-node) and has a p-directory: one p-node for each channel that it is
partitioned by. A p-node is the top of a c-directory: c-nodes that halve its channel's cells as far
as there are clauses enough. A clause is filed in one c-node, reached through channels that it has
and intervals that enclose its predicates on them, so an event follows only p-nodes whose channel it
has, and of a c-directory only the intervals that contain its cell::

    S1  A = 2 AND B IN (3, 6, 9)        root  []
    S2  A <= 8 AND C >= 2                |-- p-node A  all cells [S2]
    S3  C = 6 AND B <= 4 AND ...         |     |-- left half  [S1 S4]
    S4  A = 2                            |-- p-node B  all cells []
                                               |-- left half  [S3]

An expression is a clause in disjunctive form; a class is reported once for an event, whichever of
its clauses hold. Classes that no tree can look up are run for each event (``matching/always.py``).

The original keeps inverted lists of bitmaps in its leaves. Here a leaf lists its clauses, each with
its most selective predicate that is not on the path, and what gets past this has all its predicates
evaluated, up to the first that fails. The parts:

    nodes     c-nodes, and the table of all p-directories
    clauses   clauses as rows of predicates
    runs      what c-nodes list, as it changes
    cuts      which cut pays most, and making it
    changes   insertion and deletion
    match     leading events through the tree
    packing   everything in order of the tree, without gaps

Cost of an event: the c-nodes that it is led to, and what they list. Memory: 48 bytes for a c-node,
16 for each clause and p-node listed, 16 for a clause and each of its predicates, 16 to 32 for a
p-node in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s
from bittern.errors import OptionError
from bittern.growing import GrowingColumn, longer
from bittern.jit import frozen
from bittern.literature.betree.changes import delete, insert
from bittern.literature.betree.checking import check_tree
from bittern.literature.betree.clauses import (
    DELETED,
    NO_CLAUSE,
    are_there,
    lay_out,
    n_rows,
)
from bittern.literature.betree.cuts import CUT, N_STATES, NO_CUT, PENDING_ROOM, CutGuide, Insertion
from bittern.literature.betree.match import BETreeScratch, match
from bittern.literature.betree.nodes import (
    AREAS,
    CAPACITY,
    CHANNEL,
    DELETED_ROWS,
    FREE_NODE,
    HIGH,
    LEFT,
    N_CLAUSES,
    N_FIGURES,
    N_PNODES,
    N_SEVERAL,
    NO_CHANNEL,
    NODE_WIDTH,
    NONE,
    PARENT,
    RIGHT,
    ROOT,
    USED_ITEMS,
    USED_NODES,
    USED_ROWS,
    TreeArrays,
    enter_again,
    shape_of,
)
from bittern.literature.betree.packing import pack, table_of
from bittern.literature.clauses.normal import Clauses, normal_forms
from bittern.matching.always import Always
from bittern.matching.checks import check_channels
from bittern.matching.contract import (
    NOT_THERE,
    ChangingIndex,
    Found,
    Refused,
    are_numbers,
    check_size,
)
from bittern.matching.output import Output
from bittern.model.classes.classes import Classes
from bittern.model.hashing import secret_multiplier
from bittern.model.rank.encoded import EncodedEvents, event_entries
from bittern.model.rank.space import RankSpace
from bittern.options import whole_number

_LEAST_ROOM = 64
#: Matches to make room for at first.
_ROOM = 1 << 12


class BETree(ChangingIndex):
    """A tree of clauses, cut by channel and by value; see the module for the layout."""

    name: ClassVar[str] = "betree"

    def __init__(
        self, arrays: Mapping[str, npt.NDArray[Any]], always: Always, capacity: int
    ) -> None:
        """Take packed arrays as they are."""
        nodes, items, rows, slots = (arrays[name] for name in TreeArrays._fields[:4])
        self._show(TreeArrays(nodes, items, rows, slots, np.array(arrays["figures"])))
        self._firsts = GrowingColumn(arrays["firsts"])
        self._guide = frozen(CutGuide(arrays["bases"], arrays["frequencies"], capacity))
        self._always = always
        self._owned = False  # whether arrays may be changed, and have room
        self._packed = True

    def _show(self, tree: TreeArrays) -> None:
        """From now on these are the arrays, to be changed and to be searched."""
        self._tree, self._searched = tree, frozen(tree)

    @property
    def _figures(self) -> Int64s:
        return self._tree.figures

    @classmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],
        rank: RankSpace,
        *,
        capacity: int = 5,
    ) -> tuple[Self, Int32s]:
        """Insert one class after the other; a c-node is cut when it has over ``capacity`` clauses.

        Where no cut pays, it keeps more. Seed 003 measures what the capacity trades (section 7.2):
        a smaller one takes longer to build and is faster to match.
        """
        bases = np.array(rank.arrays.bases, dtype=np.int32)
        nodes = np.zeros((1, NODE_WIDTH), dtype=np.int32)
        for column in (CHANNEL, LEFT, RIGHT, PARENT):
            nodes[ROOT, column] = NONE
        nodes[ROOT, CHANNEL], nodes[ROOT, HIGH] = NO_CHANNEL, -1
        nodes[ROOT, CAPACITY] = capacity
        figures = np.zeros(N_FIGURES, dtype=np.int64)
        figures[USED_NODES] = 1
        figures[FREE_NODE] = NONE
        figures[AREAS:] = NONE
        empty: dict[str, npt.NDArray[Any]] = {
            "nodes": nodes,
            "items": np.empty((0, 4), dtype=np.int32),
            "rows": np.empty((0, 4), dtype=np.int32),
            "slots": table_of(0, secret_multiplier()),
            "firsts": np.empty(0, dtype=np.int32),
            "bases": bases,
            "frequencies": np.diff(mass[bases]),
            "figures": figures,
        }
        none = np.empty(0, dtype=np.int32)
        tree = cls(empty, Always.of(classes, none, none), capacity)
        numbers = tree.insert(classes)
        tree._pack()
        return tree, numbers

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, Any]) -> None:
        """Also refuse a capacity that is not a positive integer."""
        super().check_parameters(parameters)
        whole_number("capacity", parameters.get("capacity", 5), 1, 2**30 - 1)

    # -- matching ------------------------------------------------------------------------------

    def match(self, events: EncodedEvents) -> Found:
        """Lead each event through the tree. O(c-nodes reached + what they list)."""
        bases, figures = self._guide.bases, self._figures
        entries = event_entries(events, bases)
        # Only what is touched of these is ever made.
        scratch = BETreeScratch(
            np.full(len(bases) - 1, -1, dtype=np.int32),
            np.empty(int(figures[USED_NODES]), dtype=np.int32),
            np.empty(1 + int(figures[N_CLAUSES]), dtype=np.int32),
            np.zeros(self._n_classes if figures[N_SEVERAL] else 0, dtype=np.int32),
        )
        candidates = np.zeros(events.n_events, dtype=np.int64)
        out = Output()
        out.make_room(_ROOM)
        while True:
            match(self._searched, entries, scratch, candidates, out.arrays)
            if out.state[0] == events.n_events:
                break
            out.make_room(int(out.state[1]) + 8 * events.n_events)
        self._always.match(events, out)
        n = int(out.state[2])
        return Found(out.rows[:n], out.classes[:n], candidates + len(self._always.classes))

    # -- changes -------------------------------------------------------------------------------

    @property
    def _n_classes(self) -> int:
        return len(self._firsts)

    def insert(self, classes: Classes) -> Int32s:
        """Insert clause by clause: amortised O(path + capacity x predicates) for each."""
        forms = normal_forms(classes, cnf=False)
        first, more = self._n_classes, len(classes)
        check_size("classes", first + more)
        check_size("predicates and intervals", int(self._figures[USED_ROWS]) + n_rows(forms.dnf))
        numbers = np.arange(first, first + more, dtype=np.int32)
        self._own()
        self._firsts.extended(more)[first:] = NO_CLAUSE
        if len(forms.dnf):
            self._insert_clauses(forms.dnf, numbers)
        if len(forms.always):
            own = numbers[forms.always]
            self._always = self._always.with_more(Always.of(classes, forms.always, own))
        return numbers

    def _insert_clauses(self, clauses: Clauses, numbers: Int32s) -> None:
        figures, needed = self._figures, n_rows(clauses)
        bases, frequencies, _ = self._guide
        if figures[USED_ROWS] + needed > len(self._tree.rows):
            if 2 * figures[DELETED_ROWS] > figures[USED_ROWS]:
                self._pack()
                self._own()
            used = int(figures[USED_ROWS])
            more = used + needed + (used >> 1) - len(self._tree.rows)
            self._show(self._tree._replace(rows=longer(self._tree.rows, max(0, more))))
        start = int(figures[USED_ROWS])
        places = lay_out(clauses, numbers, bases, frequencies, self._tree.rows, start)
        figures[USED_ROWS] += needed
        begins = np.flatnonzero(np.diff(clauses.owners, prepend=-1))
        self._firsts.items[numbers[clauses.owners[begins]]] = places[begins]
        figures[N_SEVERAL] += np.count_nonzero(np.diff(begins, append=len(clauses)) > 1)
        if start == 0:  # all at once: as much as it may well take
            nodes = longer(self._tree.nodes, _LEAST_ROOM + len(clauses) // 2)
            items = longer(self._tree.items, _LEAST_ROOM + 2 * len(clauses))
            self._show(self._tree._replace(nodes=nodes, items=items))
        n_channels = len(frequencies)
        counts, touched = np.zeros((2, n_channels), dtype=np.int32)
        work = Insertion(
            np.zeros(n_channels, dtype=np.int64),
            counts,
            np.empty(n_channels),
            touched,
            np.empty(_LEAST_ROOM, dtype=np.int32),
            np.zeros(N_STATES, dtype=np.int64),
        )
        work.state[CUT] = NO_CUT
        while not insert(self._tree, self._guide, places, work):
            if work.state[PENDING_ROOM] > len(work.pending):
                more = int(work.state[PENDING_ROOM])
                work = work._replace(pending=longer(work.pending, more))
            else:
                self._make_room()

    def _make_room(self) -> None:
        """Room for more of whatever is used up, in proportion, so that it costs O(1) for each."""
        nodes, items, _, slots, figures = self._tree
        n_nodes = int(figures[USED_NODES])
        if figures[FREE_NODE] < 0 and n_nodes == len(nodes):
            nodes = longer(nodes, _LEAST_ROOM + (n_nodes >> 1))
        elif 2 * (figures[N_PNODES] + 1) > len(slots) - 1:
            slots = table_of(2 * int(figures[N_PNODES]), self._tree.slots[-1])
            enter_again(self._tree.slots, slots)
        else:
            check_size("places in c-nodes", int(figures[USED_ITEMS]))
            items = longer(items, _LEAST_ROOM + len(items) // 2)
        self._show(self._tree._replace(nodes=nodes, items=items, slots=slots))

    def delete(self, classes: Classes, numbers: Int32s) -> None:
        """Remove classes, and c-nodes that become empty: O(clauses)."""
        numbers = np.ascontiguousarray(numbers, dtype=np.int32)
        if numbers.shape != (len(classes),):
            raise OptionError(f"{len(classes)} classes to delete have {len(numbers)} numbers")
        try:
            forms = normal_forms(classes, cnf=False)
        except Refused:
            raise OptionError(NOT_THERE) from None
        wanted = np.empty((n_rows(forms.dnf), 4), dtype=np.int32)
        bases, frequencies, capacity = self._guide
        places = lay_out(forms.dnf, numbers, bases, frequencies, wanted, 0)
        firsts = self._firsts.items
        if not (
            are_numbers(numbers, len(classes), self._n_classes)
            and (firsts[numbers] != DELETED).all()
            and np.count_nonzero(firsts[numbers] >= 0) == len(np.unique(forms.dnf.owners))
            and are_there(wanted, places, self._tree.rows, firsts)
            and self._always.holds(classes, forms.always, numbers)
        ):
            raise OptionError(NOT_THERE)
        self._own()
        delete(self._tree, capacity, self._firsts.extended(0), numbers)
        if len(forms.always):
            self._always = self._always.without(numbers)

    def _own(self) -> None:
        """Before a change: arrays of its own, with some room."""
        self._packed = False
        if self._owned:
            return
        nodes, items, rows, slots, figures = self._tree
        nodes, items, rows = (longer(each, len(each) >> 2) for each in (nodes, items, rows))
        self._show(TreeArrays(nodes, items, rows, np.array(slots), figures))
        self._owned = True

    def _pack(self) -> None:
        """Everything in order, without gaps and room; what was given away stays as it is."""
        self._show(pack(self._tree, self._firsts.extended(0)))
        self._owned = False
        self._packed = True

    # -- looking inside ------------------------------------------------------------------------

    def _held(self) -> dict[str, npt.NDArray[Any]]:
        return {
            **self._tree._asdict(),
            "firsts": self._firsts.items,
            "bases": self._guide.bases,
            "frequencies": self._guide.frequencies,
            "figures": self._figures.copy(),
            **self._always.arrays(),
        }

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All arrays, packed if there were changes; the next change copies."""
        if not self._packed:
            self._pack()
        self._firsts.share()
        return self._held()

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], parameters: Mapping[str, Any]
    ) -> Self:
        """Search these arrays in place."""
        return cls(arrays, Always.from_arrays(arrays), parameters["capacity"])

    @property
    def parameters(self) -> dict[str, Any]:
        """The capacity."""
        return {"capacity": self._guide.capacity}

    @property
    def nbytes(self) -> int:
        """What its arrays occupy, their room included."""
        return sum(array.nbytes for array in self._held().values())

    def statistics(self) -> dict[str, Any]:
        """Clauses, c-nodes, p-nodes, and how deep and how full the tree is. O(c-nodes x depth)."""
        return {
            "classes": self._n_classes,
            "clauses": int(self._figures[N_CLAUSES]),
            "always": len(self._always.classes),
            "p_nodes": int(self._figures[N_PNODES]),
            **shape_of(self._tree.nodes[: self._figures[USED_NODES]]),
        }

    def check(self, n_channels: int, n_cells: int) -> None:
        """Clauses, c-nodes, directories and free lists are sound and fit together."""
        self._always.check(self._n_classes, n_channels, n_cells)
        check_channels(self._guide.bases, n_channels, n_cells)
        check_tree(self._held(), self._guide.capacity)
        filed = self._firsts.items[self._always.classes] != NO_CLAUSE
        assert not filed.any(), "an always-candidate is filed or deleted"
