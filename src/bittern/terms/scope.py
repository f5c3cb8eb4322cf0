"""Evaluating a term over the rows of a batch, whole columns at a time.

::

    rows   price   quantity          price * quantity > 10
    0      4.0     3         ->      12.0 > 10    TRUE
    1      NULL    2                 NULL > 10    NULL
    2      2.0     1                 2.0 > 10     FALSE

A value is an Arrow array with one element per row, or a scalar that holds for all of them; a
function gets scalars where its arguments are constants, and may return one. ``value`` evaluates a
term on the rows of its scope. What only some rows need (a branch of CASE, the second argument of
coalesce) is evaluated in a scope of those rows alone: an error in a branch that no row takes is
none, as in Spark. Nor is it where the arguments before it have settled the result: behind FALSE
AND, behind NULL +, in a list behind the value that is found.

Where Spark in ANSI mode would fail the query for a row, a function calls ``fail`` with a mask of
these rows and the reason, and gives NULL there. Functions that have no meaning for the types of
their arguments raise ``MeaninglessError``.

``functions`` finds what a call means; the tables are in the packages of this room.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import Mask
from bittern.terms.limits import (
    MAX_BUILT_BYTES,
    MAX_BUILT_BYTES_PER_ROW,
    MAX_HELD_BYTES,
    MAX_KEPT_BYTES,
    MAX_TERM_ELEMENTS,
    MAX_TERM_ELEMENTS_PER_ROW,
)
from bittern.terms.nodes import Attribute, Call, Constant, Lambda, Term, walk

if TYPE_CHECKING:
    from bittern.terms.logic.members import NamedSets

Value: TypeAlias = pa.Array | pa.Scalar
_NO_SETS: Mapping[str, Any] = {}


class MeaninglessError(Exception):
    """The function is not defined on values of these types."""


class Failure(NamedTuple):
    """Rows for which Spark in ANSI mode would fail the query, and why."""

    rows: npt.NDArray[np.int64]
    reason: str


@dataclass
class Spent:
    """What evaluating a term over some rows has taken so far, of what ``limits.py`` allows."""

    n_rows: int
    held: int = 0  # bytes of computed columns that wait for others, to be put together
    built: int = 0  # bytes of all texts that were made
    elements: int = 0  # that functions were applied to

    @property
    def bytes_left(self) -> int:
        """How many bytes functions may still build."""
        return MAX_BUILT_BYTES + MAX_BUILT_BYTES_PER_ROW * self.n_rows - self.built

    @property
    def are_elements_left(self) -> bool:
        """Whether there are not too many elements yet."""
        return self.elements <= MAX_TERM_ELEMENTS + MAX_TERM_ELEMENTS_PER_ROW * self.n_rows


class Scope:
    """Some rows of a batch: the columns that terms read, each settled (``terms/types.py``)."""

    def __init__(
        self,
        columns: Mapping[str, pa.Array],
        n_rows: int,
        failures: list[Failure] | None = None,
        rows: npt.NDArray[np.int64] | None = None,
        repeated: frozenset[int] = frozenset(),
        sets: NamedSets = _NO_SETS,
        spent: Spent | None = None,
    ) -> None:
        """``repeated`` are the ids of nodes whose values are asked for again, and kept.

        ``sets`` are those that ``IN SET`` looks values up in. ``spent`` is that of the scope
        around, if these are some of its rows or their elements.
        """
        self.columns = columns
        self.n_rows = n_rows
        self.sets = sets
        self.failures: list[Failure] = [] if failures is None else failures
        self._rows = rows
        self._repeated = repeated
        self._kept: dict[int, tuple[Value, list[Failure]]] = {}
        self._kept_bytes = 0
        #: What ``lambdas.py`` keeps of columns of arrays: their lists, and a scope of the elements.
        self.inside: dict[Any, tuple[Any, Scope]] = {}
        self.spent = Spent(n_rows) if spent is None else spent

    def value(self, term: Term) -> Value:
        """The value of a term for each row."""
        if isinstance(term, Constant):
            return term.scalar
        if isinstance(term, Attribute):
            column = self.columns.get(term.name)
            return pa.scalar(None, pa.null()) if column is None else column
        if isinstance(term, Lambda):
            raise MeaninglessError("-> can only stand in a function of arrays or maps")
        if id(term) in self._kept:
            value, failures = self._kept[id(term)]
            self.failures += failures  # whatever needs it fails there, too
            return value
        before = len(self.failures)
        meaning = functions().get(term.function)
        if meaning is None:
            raise MeaninglessError(f"only Spark knows the function {term.function}")
        arguments = () if meaning.is_lazy else self._arguments(term)
        n_failures = len(self.failures)
        value = meaning.evaluate(self, term, *arguments)
        if arguments and len(self.failures) > n_failures:
            is_backward = term.function in _LAST_FIRST
            first = arguments[-1:] if is_backward else arguments[:1]
            self._excuse(n_failures, self._settled(term, first))
        if id(term) in self._repeated:
            self._keep(term, value, self.failures[before:])
        return value

    def _arguments(self, call: Call) -> list[Value]:
        """The values of a call's arguments, which are all held until the last is computed."""
        found: list[Value] = []
        before = self.spent.held
        is_backward = call.function in _LAST_FIRST
        for argument in reversed(call.arguments) if is_backward else call.arguments:
            n_failures = len(self.failures)
            value = self.value(argument)
            if found and len(self.failures) > n_failures:
                self._excuse(n_failures, self._settled(call, found))
            found.append(value)
            if isinstance(argument, Call) and isinstance(value, pa.Array):
                self.spent.held += value.nbytes
                if self.spent.held > MAX_HELD_BYTES:
                    raise MeaninglessError("the values that it is computed from are too large")
        self.spent.held = before
        return found[::-1] if is_backward else found

    def _settled(self, call: Call, values: Sequence[Value]) -> Mask:
        """The rows for which the first values of a call tell its result, so Spark stops there."""
        settles = functions()[call.function].settles
        if settles is not None:
            return self.mask(settles(self, call, values))
        settled = np.zeros(self.n_rows, dtype=np.bool_)
        if call.function not in _EAGER:
            for value in values:
                settled |= self.mask(
                    value.is_null() if isinstance(value, pa.Array) else not value.is_valid
                )
        return settled

    def _excuse(self, n_failures: int, settled: Mask) -> None:
        """Forget failures, all but the first few, in rows that are settled without them."""
        rows = np.flatnonzero(settled) if self._rows is None else self._rows[settled]
        left = [(np.setdiff1d(own, rows), why) for own, why in self.failures[n_failures:]]
        self.failures[n_failures:] = [Failure(own, why) for own, why in left if len(own)]

    def _keep(self, term: Term, value: Value, failures: list[Failure]) -> None:
        size = value.nbytes if isinstance(value, pa.Array) else 0
        if self._kept_bytes + size <= MAX_KEPT_BYTES:  # else it is computed again
            self._kept_bytes += size
            self._kept[id(term)] = value, failures

    def array(self, value: Value) -> pa.Array:
        """The value with one element per row."""
        if isinstance(value, pa.Array):
            return value
        if pa.types.is_null(value.type) or not value.is_valid or not self.n_rows:
            return pa.nulls(self.n_rows, value.type)
        return pa.repeat(value, self.n_rows)

    def fail(self, mask: Any, reason: str) -> None:
        """Note that the query would fail in Spark for these rows, a mask or a Boolean value."""
        if isinstance(mask, np.ndarray) and not mask.any():
            return
        failed = self.mask(mask)
        if failed.any():
            rows = np.flatnonzero(failed)
            self.failures.append(Failure(rows if self._rows is None else self._rows[rows], reason))

    def mask(self, value: Any) -> Mask:
        """A Boolean value as a mask of rows: NULL is no."""
        if isinstance(value, pa.Scalar):
            return np.full(self.n_rows, value.as_py() is True)
        if isinstance(value, pa.Array):
            return np.asarray(value.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)
        return np.broadcast_to(np.asarray(value, dtype=np.bool_), (self.n_rows,))

    def among(self, mask: Mask) -> Scope:
        """The rows of a mask alone."""
        if mask.all():
            return self
        own = np.flatnonzero(mask)
        rows = own if self._rows is None else self._rows[own]
        columns = _Picked(self.columns, pa.array(own))
        return Scope(columns, len(own), self.failures, rows, sets=self.sets, spent=self.spent)

    def within(self, columns: Mapping[str, pa.Array], n_rows: int) -> Scope:
        """A scope inside of this one, whose rows are others: elements."""
        kept, sets, spent = self._repeated, self.sets, self.spent
        return Scope(columns, n_rows, repeated=kept, sets=sets, spent=spent)


class _Picked(Mapping[str, pa.Array]):
    """Some rows of columns, picked when a column is read."""

    def __init__(self, columns: Mapping[str, pa.Array], rows: pa.Array) -> None:
        self._columns = columns
        self._rows = rows
        self._picked: dict[str, pa.Array] = {}

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self._picked:
            self._picked[name] = self._columns[name].take(self._rows)
        return self._picked[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class Meaning(NamedTuple):
    """What a function does: how many arguments it takes, and how it is evaluated.

    ``most`` is -1 where there is no limit. A lazy function gets the call alone and evaluates its
    arguments itself. ``settles`` tells from the values of the first arguments in which rows the
    others are not needed; without it, that is where one is NULL, unless the name is in ``_EAGER``.
    """

    evaluate: Callable[..., Value]
    least: int
    most: int
    is_lazy: bool = False
    settles: Callable[[Scope, Call, Sequence[Value]], Value] | None = None


Functions: TypeAlias = dict[str, Meaning]


class FunctionTable:
    """The functions of a module, by the names that they are called with."""

    def __init__(self) -> None:
        self.functions: Functions = {}

    def add(
        self,
        *names: str,
        least: int,
        most: int | None = None,
        lazy: bool = False,
        settles: Callable[[Scope, Call, Sequence[Value]], Value] | None = None,
    ) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
        """Enter a function under these names; ``most`` is ``least`` unless it is given."""

        def enter(evaluate: Callable[..., Value]) -> Callable[..., Value]:
            for name in names:
                self.functions[name] = Meaning(
                    evaluate, least, least if most is None else most, lazy, settles
                )
            return evaluate

        return enter


#: The modules of this room that have functions.
_MODULES = (
    "casts.casts",
    "logic.comparisons",
    "logic.conditions",
    "logic.members",
    "nested.arrays",
    "nested.elements",
    "nested.lambdas",
    "nested.sets",
    "nested.structs",
    "numbers.bits",
    "numbers.mathematics",
    "numbers.numbers",
    "numbers.rounding",
    "strings.encodings",
    "strings.hashes",
    "strings.patterns",
    "strings.positions",
    "strings.strings",
    "times.intervals",
    "times.texts",
    "times.times",
    "times.zones",
)
_all: Functions = {}


def functions() -> Functions:
    """All functions by name, in lower case. Loaded when first asked for."""
    if not _all:
        found: Functions = {}
        for name in _MODULES:
            found |= importlib.import_module(f"bittern.terms.{name}").TABLE.functions
        _all.update(found)
    return _all


#: Functions that compute all their arguments, whatever the first ones are.
_EAGER = frozenset(
    "<=> equal_null array array_join concat_ws greatest least map struct named_struct "  # noqa: SIM905
    "make_interval make_ym_interval try_make_interval".split()
)
#: Functions that begin with their last argument: the divisor, the text that is trimmed.
_LAST_FIRST = frozenset("/ % div mod pmod try_divide try_mod trim ltrim rtrim".split())  # noqa: SIM905
#: Functions that are NULL where an argument is, of whatever type that is. Not all of them.
_STRICT = frozenset(
    "compare = != < <= > >= + - * / % div & | ^ ~ || negative positive not like ilike rlike "  # noqa: SIM905
    "cast try_cast abs sign sqrt round floor ceil ceiling pow power mod pmod lower upper lcase "
    "ucase trim ltrim rtrim btrim length len char_length substr substring left right replace "
    "concat reverse initcap startswith endswith contains instr year month day hour minute second "
    "extract date_trunc datediff date_add date_sub size cardinality [] .".split()
)


def is_strict(term: Term) -> bool:
    """Whether a term is plainly NULL where one of its attributes is. O(nodes)."""
    return all(
        node.function in _STRICT if isinstance(node, Call) else not isinstance(node, Lambda)
        for node in walk(term)
    )


def evaluate(
    term: Term, columns: Mapping[str, pa.Array], n_rows: int
) -> tuple[pa.Array, list[Failure]]:
    """The values of a term, one per row, and the rows for which Spark would fail.

    ``MeaninglessError`` if the term has no meaning for columns of these types. O(rows x nodes).
    """
    scope = Scope(columns, n_rows)
    return scope.array(scope.value(term)), scope.failures


def folded(term: Term) -> pa.Scalar:
    """The value of a term that reads no attribute; ``ValueError`` says why it has none."""
    scope = Scope({}, 1)
    try:
        value = scope.value(term)
    except MeaninglessError as wrong:
        raise ValueError(str(wrong)) from None
    if scope.failures:
        raise ValueError(scope.failures[0].reason)
    return value[0] if isinstance(value, pa.Array) else value
