"""Derived attributes: the values of terms, computed from a batch of events in whole columns.

Each attribute that a term reads is gathered from the events first, by type: a column has one, while
values of mappings and JSON may have several. A term is evaluated once for each combination of types
that occurs, most often once in all::

    rows                           a         b        groups
    0  {"a": 1, "b": "x"}          BIGINT    STRING   rows 0 and 2: a BIGINT, b STRING
    1  {"a": 1.5, "b": "y"}        DOUBLE    STRING   row 1: a DOUBLE, b STRING
    2  {"a": 2}                    BIGINT    -

What a document lacks has no type. That makes no difference to a term that is NULL then (``a + b``),
but ``coalesce(a, b)`` is evaluated for such rows on their own: row 2 must not depend on row 0.

The result goes to the sink as a column of the derived attribute. Rows for which Spark would fail
the query have no value there, and are listed with the reason. O(values + rows x nodes of terms).

Where a batch repeats the values of an attribute, a term that reads nothing else is evaluated once
for each distinct value (``repeats.py``).

Spark itself may have computed terms: then a table has a column for each, under the name of the
derived attribute, and one named ``REASONS`` with the reasons for what has no value. Such columns
are *marked*, since events of other people may have columns of any name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.errors import OptionError
from bittern.language.derived import element_of, has_unknown_functions, is_derived, sets_of, term_of
from bittern.language.literals import TERM
from bittern.language.printer import print_short
from bittern.model.events.attributes import Attributes
from bittern.model.events.batch import EventRows, PairBatch
from bittern.model.events.columns import plain, read_column
from bittern.model.events.derived.elements import Elements
from bittern.model.events.derived.gathered import Gathered, TypedColumn
from bittern.model.events.derived.known import Failures, Known
from bittern.model.events.derived.opened import named_fields
from bittern.model.events.derived.repeats import Repeated, Repeats
from bittern.model.events.reader import EventReader
from bittern.model.events.sinks import RepeatingSink
from bittern.model.rank.encoded import Pairs
from bittern.terms.logic.members import NamedSets, sets_in
from bittern.terms.machine.machine import LEAST_ROWS, Machine
from bittern.terms.nodes import Term, attributes_of, shared
from bittern.terms.scope import MeaninglessError, Scope, Spent, is_strict
from bittern.terms.unknown import unknown_functions

#: The name of the column of reasons.
REASONS = TERM
_MARK = {b"bittern": b"term"}
_NONE: Mapping[str, Any] = {}
#: What Arrow raises where it has no kernel for a type, or no room: no event stops a batch.
_REFUSALS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


def marked(field: pa.Field) -> pa.Field:
    """The field of a column that Spark has computed for a term, or of their reasons."""
    return field.with_metadata({**(field.metadata or {}), **_MARK})


def computed_terms(events: Any) -> dict[str, pa.Array]:
    """The columns of a table, or an array of structs, that Spark has computed for terms."""
    if isinstance(events, pa.Table | pa.RecordBatch):
        fields = list(events.schema)
    elif isinstance(events, pa.StructArray):
        fields = list(events.type)
    else:
        return {}
    columns: dict[str, pa.Array] = {}
    for at, field in enumerate(fields):
        if field.metadata is not None and field.metadata.items() >= _MARK.items():
            whole = isinstance(events, pa.StructArray)
            columns[field.name] = plain(events.field(at) if whole else events.column(at))
    return columns


class Derived(NamedTuple):
    """A derived attribute: its number, its term, and the attributes that the term reads."""

    number: int
    name: str
    term: Term
    reads: tuple[str, ...]
    unknown: tuple[str, ...]  # functions that only Spark knows
    is_strict: bool  # it is NULL where one of the attributes is


class DerivedAttributes:
    """The terms of one rank space. Threads may share it."""

    def __init__(self, numbers: Mapping[str, int], *, for_sample: bool = False) -> None:
        """From the numbers of all attributes by name.

        ``for_sample`` says that terms with functions that only Spark knows just have no values.
        """
        self._for_sample = for_sample
        own: dict[str, int] = {}
        wanted: dict[Term, list[tuple[str, int, pa.Scalar]]] = {}
        for name, number in numbers.items():
            element = None if has_unknown_functions([name]) else element_of(name)
            if element is not None:
                array, constant = element
                wanted.setdefault(array, []).append((name, number, constant))
            elif is_derived(name):
                own[name] = number
        terms, self._repeated = shared([*map(term_of, own), *wanted])
        #: Terms, and arrays whose elements are looked for.
        self.terms: list[Derived] = []
        self.elements: list[tuple[Derived, Elements]] = []
        self.machine = Machine(terms[: len(own)])
        self._known: dict[tuple[str, tuple[int, ...]], Known | None] = {}
        names: dict[str, list[Term]] = {}
        for (name, number), term in zip(own.items(), terms, strict=False):
            unknown = tuple(unknown_functions(term))
            reads, strict = tuple(attributes_of(term)), is_strict(term)
            self.terms.append(Derived(number, name, term, reads, unknown, strict))
        for constants, term in zip(wanted.values(), terms[len(own) :], strict=True):
            reads, strict = tuple(attributes_of(term)), is_strict(term)
            of_array = Derived(-1, constants[0][0], term, reads, (), strict)
            elements = Elements([(number, constant) for _, number, constant in constants])
            self.elements.append((of_array, elements))
        for derived in (*self.terms, *(array for array, _ in self.elements)):
            for read in derived.reads:
                names.setdefault(read, []).append(derived.term)
        self._fields = [named_fields(terms) for terms in names.values()]
        #: The named sets that values are looked up in; for typical events, none is needed.
        self.set_names = [] if for_sample else sets_of(numbers)
        #: Where the attributes that terms read are found in events.
        self.found_as = Attributes(list(names))

    def columns(self) -> Gathered:
        """A sink for the attributes that terms read."""
        return Gathered(list(self.found_as.names.numbers), self._fields)

    def are_all_in(self, computed: Mapping[str, pa.Array]) -> bool:
        """Whether Spark has computed every term, so that nothing has to be gathered."""
        return not self.elements and all(each.name in computed for each in self.terms)

    def add(
        self,
        gathered: Gathered,
        n_events: int,
        sink: RepeatingSink,
        computed: Mapping[str, pa.Array] = _NONE,
        sets: NamedSets = _NONE,
    ) -> Failures:
        """Evaluate every term over what was gathered from a batch; returns (row, reason).

        Terms that Spark has ``computed`` are taken as they are. Others must not have functions that
        only Spark knows. Values are looked up in ``sets``.
        """
        columns = gathered.typed(n_events)
        failures: Failures = []
        # Parts that terms have in common are computed once, where each attribute has one type.
        first = {name: typed.arrays[0] for name, typed in columns.items()}
        scope = Scope(first, n_events, repeated=self._repeated, sets=sets)
        repeated = Repeats(
            {name: typed.arrays[0] for name, typed in columns.items() if typed.codes is None},
            self._repeated,
            sets,
        )
        if REASONS in computed:
            reasons = computed[REASONS].to_pylist()
            failures = [(row, why) for row, why in enumerate(reasons) if why is not None]
        waiting: dict[Repeated | None, list[int]] = {}
        for place, derived in enumerate(self.terms):
            if derived.name in computed:
                sink.add_column(derived.number, read_column(computed[derived.name]))
            elif not derived.unknown:
                waiting.setdefault(repeated.of(derived.reads), []).append(place)
            elif not self._for_sample:
                raise OptionError(only_spark_knows(derived.name, derived.unknown))
        failed: dict[int, Failures] = {}  # by place, as that is the order of reasons
        for repeats, places in waiting.items():
            if repeats is not None:
                entries = self._add_repeated(repeats, places, columns, sink)
                failed |= {place: repeats.in_rows(own) for place, own in entries.items()}
                continue
            for place, rows, array in self._values(places, columns, scope, failed):
                mark = sink.mark()
                sink.add_column(self.terms[place].number, read_column(plain(array)))
                if rows is not None:
                    sink.move_rows(mark, rows)
        for place in sorted(failed):
            failures += failed[place]
        for of_array, elements in self.elements:
            for rows, arrays in evaluated(of_array, columns, scope, failures):
                add_elements(of_array, elements, arrays, rows, sink, failures)
        return failures

    def _add_repeated(
        self,
        repeats: Repeated,
        places: Sequence[int],
        columns: Mapping[str, TypedColumn],
        sink: RepeatingSink,
    ) -> dict[int, Failures]:
        """The values of terms that read one attribute, computed for its distinct values.

        Returns which values fail, by the place of the term.
        """
        (name,) = self.terms[places[0]].reads
        values, known = repeats.scope.columns[name], None

        def add(scope: Scope) -> dict[int, Failures]:
            failed: dict[int, Failures] = {}
            for place, _, array in self._values(places, columns, scope, failed):
                sink.add_column(self.terms[place].number, read_column(plain(array)))
            return failed

        if isinstance(sink, PairBatch):
            known = self._known_of(name, places, len(values), sink)
        if known is None or not isinstance(sink, PairBatch):
            mark = sink.mark()
            failed = add(repeats.scope)
            sink.repeat_rows(mark, repeats.codes)
            return failed

        def compute(values: pa.Array) -> tuple[Pairs, dict[int, Failures]]:
            mark = sink.mark()
            failed = add(repeats.scope_of(name, values))
            return sink.take(mark), failed

        pieces, failed = known.pairs(values, repeats.codes, compute)
        sink.add_pairs(pieces)
        return failed

    def _known_of(
        self, name: str, places: Sequence[int], n_values: int, sink: PairBatch
    ) -> Known | None:
        """What is known of the values of an attribute; named sets may change meanwhile."""
        key = name, tuple(places)
        if key not in self._known:
            numbers = [self.terms[place].number for place in places]
            asks = sets_in(self.terms[place].term for place in places)
            self._known[key] = None if asks else sink.known(numbers)
        known = self._known[key]
        return known if known is not None and known.has_room(n_values) else None

    def _values(
        self,
        places: Sequence[int],
        columns: Mapping[str, TypedColumn],
        scope: Scope,
        failed: dict[int, Failures],
    ) -> Iterator[tuple[int, EventRows | None, pa.Array]]:
        """The values of terms in the rows of a scope: (place, rows that they stand in, values).

        What fails is entered by place.
        """
        done = set[int]()
        if scope.n_rows >= LEAST_ROWS:
            alike = [place for place in places if not _mixed(self.terms[place], columns)]
            for place, array in self.machine.values(alike, scope):
                done.add(place)
                yield place, None, array
        for place in places:
            if place not in done:
                own = failed[place] = []
                for rows, array in evaluated(self.terms[place], columns, scope, own):
                    yield place, rows, array


def only_spark_knows(name: str, functions: Sequence[str]) -> str:
    """Why a derived attribute with these functions cannot be evaluated here."""
    several = "s" * (len(functions) > 1)
    return (
        f"{print_short(name)} has the function{several} {', '.join(functions)}, which only "
        f"Spark knows: match it with bittern.spark"
    )


def term_values(
    names: Sequence[str], events: Any, sets: NamedSets = _NONE
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of derived attributes for one event, in plain Python, and why others have none."""
    numbers = {name: number for number, name in enumerate(names)}
    derived, results = DerivedAttributes(numbers), Gathered(names)
    gathered = derived.columns()
    n_events = EventReader(derived.found_as, gathered, ()).read(events)
    failures = {why for _, why in derived.add(gathered, n_events, results, sets=sets)}
    found: dict[str, Any] = {}
    for name, typed in results.typed(n_events).items():
        for array in typed.arrays:
            if array[0].is_valid:
                found[name] = _in_python(array[0])
    starts = {name: f"{print_short(name)} has no value: " for name in names}
    return found, {
        name: why for name, start in starts.items() for why in failures if why.startswith(start)
    }


def _in_python(value: pa.Scalar) -> Any:
    """A value in Python; a time that Python's calendar cannot hold as NumPy has it."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return pa.array([value]).to_numpy(zero_copy_only=False)[0]


def add_elements(
    of_array: Derived,
    elements: Elements,
    arrays: pa.Array,
    rows: EventRows | None,
    sink: RepeatingSink,
    failures: Failures,
) -> None:
    """Tell a sink which elements that are looked for the arrays in these rows have."""
    if (why := elements.complaint(arrays)) is not None:
        there = np.flatnonzero(arrays.is_valid().to_numpy(zero_copy_only=False))
        _list(failures, there, rows, of_array.name, why)
    attributes, found = elements.found(arrays)
    sink.add_present(attributes, found if rows is None else rows[found])


def evaluated(
    derived: Derived, columns: Mapping[str, TypedColumn], scope: Scope, failures: Failures
) -> list[tuple[EventRows | None, pa.Array]]:
    """The values of a term, in pieces with the rows that they stand in (None: all rows)."""
    mixed = _mixed(derived, columns)
    if not mixed:
        return _piece(derived, scope, None, failures)
    members = np.zeros(scope.n_rows, dtype=np.int64)
    for codes in mixed.values():
        members = np.unique((members << 16) + codes, return_inverse=True)[1]
    found = []
    for group in range(int(members.max(initial=-1)) + 1):
        rows = np.flatnonzero(members == group)
        picked = pa.array(rows)
        own = {name: scope.columns[name] for name in derived.reads}
        for name, codes in mixed.items():
            own[name] = columns[name].array(int(codes[rows[0]]))
        own = {name: array.take(picked) for name, array in own.items()}
        found += _piece(derived, Scope(own, len(rows), sets=scope.sets), rows, failures)
    return found


def _mixed(derived: Derived, columns: Mapping[str, TypedColumn]) -> dict[str, npt.NDArray[Any]]:
    """The attributes of a term whose types differ from row to row, and the code of each row."""
    mixed = {}
    for name in derived.reads:
        codes, arrays = columns[name]
        if codes is not None and not derived.is_strict:
            mixed[name] = codes
        elif codes is not None and len(arrays) > 1:
            mixed[name] = np.maximum(codes, 0)
    return mixed


def _piece(
    derived: Derived, scope: Scope, rows: EventRows | None, failures: Failures
) -> list[tuple[EventRows | None, pa.Array]]:
    before, scope.spent = len(scope.failures), Spent(scope.n_rows)
    try:
        array = scope.array(scope.value(derived.term))
    except (MeaninglessError, *_REFUSALS) as wrong:
        there = np.ones(scope.n_rows, dtype=np.bool_)
        for name in derived.reads:
            there &= scope.mask(pc.is_valid(scope.columns[name]))
        _list(failures, np.flatnonzero(there), rows, derived.name, str(wrong))
        return []
    failed = scope.failures[before:]
    for each in failed:
        _list(failures, each.rows, rows, derived.name, each.reason)
    if failed:
        kept = np.ones(scope.n_rows, dtype=np.bool_)
        kept[np.concatenate([each.rows for each in failed])] = False
        array = pc.if_else(kept, array, pa.scalar(None, array.type))
    return [(rows, array)]


def _list(
    failures: Failures, failed: EventRows, rows: EventRows | None, name: str, why: str
) -> None:
    reason = f"{print_short(name)} has no value: {why}"
    failures += [(row, reason) for row in (failed if rows is None else rows[failed]).tolist()]
