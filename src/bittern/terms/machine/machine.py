"""The values of many terms over the rows of a scope, those that the machine can compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.terms.columns import column
from bittern.terms.machine.kernel import LEFT, NULL, run
from bittern.terms.machine.translate import translate
from bittern.terms.machine.translator import Translation
from bittern.terms.nodes import Term
from bittern.terms.scope import MeaninglessError, Scope, Spent
from bittern.terms.types import INTEGERS

#: For fewer rows the kernel is not even loaded.
LEAST_ROWS = 64
#: Results of one run: how many there are with the rows of a batch says how much memory they take.
_MOST_TERMS = 256
_MOST_KEPT = 64
_Key = tuple[tuple[int, ...], tuple[tuple[str, pa.DataType], ...]]


class Machine:
    """Translations of the terms of an index, by the types of columns. Threads may share it."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = terms
        self._translations: dict[_Key, Translation] = {}

    def values(self, numbers: Sequence[int], scope: Scope) -> Iterator[tuple[int, pa.Array]]:
        """Numbers of terms among these, and their values in each row; an integer is a BIGINT.

        Others have no translation, or have to be left to the scope. O(rows x nodes).
        """
        types = tuple((name, array.type) for name, array in scope.columns.items())
        for first in range(0, len(numbers), _MOST_TERMS):
            own = tuple(numbers[first : first + _MOST_TERMS])
            translation = self.translated(own, types)
            if translation.terms:
                for place, array in _run(translation, scope):
                    yield own[place], array

    def translated(
        self, numbers: tuple[int, ...], types: tuple[tuple[str, pa.DataType], ...]
    ) -> Translation:
        """Instructions for those of some terms that have any, over columns of these types."""
        found = self._translations.get((numbers, types))
        if found is None:
            if len(self._translations) >= _MOST_KEPT:
                self._translations = {}
            found = translate([self._terms[number] for number in numbers], dict(types))
            self._translations[numbers, types] = found
        return found


def _run(translation: Translation, scope: Scope) -> Iterator[tuple[int, pa.Array]]:
    n_rows, n_inputs = scope.n_rows, len(translation.inputs)
    numbers = np.empty((n_inputs, n_rows), dtype=np.int64)
    states = np.empty((n_inputs, n_rows), dtype=np.uint8)
    for place, term in enumerate(translation.inputs):
        _read(term, scope, numbers[place], states[place])
    n_results = len(translation.results)
    out = np.empty((n_results, n_rows), dtype=np.int64)
    out_states = np.empty((n_results, n_rows), dtype=np.uint8)
    found = np.zeros(n_results, dtype=np.int64)
    run(
        translation.code,
        translation.constants,
        numbers.ravel(),
        states.ravel(),
        n_rows,
        translation.n_registers,
        translation.results,
        out.ravel(),
        out_states.ravel(),
        found,
    )
    for result, place in enumerate(translation.terms):
        if not found[result] & LEFT:
            missing = out_states[result] if found[result] else None
            yield place, _array(out[result], missing, translation.kinds[result])


def _read(
    term: Term, scope: Scope, numbers: npt.NDArray[np.int64], states: npt.NDArray[np.uint8]
) -> None:
    """An input's values and states; rows that fail are left to whoever lists them."""
    before, scope.spent = len(scope.failures), Spent(scope.n_rows)
    try:
        data, valid = column(scope.array(scope.value(term)))
    except (MeaninglessError, pa.ArrowException):
        numbers[:], states[:] = 0, LEFT
        return
    numbers[:] = data.view(np.int64) if data.dtype == np.float64 else data
    np.multiply(~valid, NULL, out=states, casting="unsafe")
    for failure in scope.failures[before:]:
        states[failure.rows] |= LEFT
    del scope.failures[before:]


def _array(
    numbers: npt.NDArray[np.int64], missing: npt.NDArray[np.uint8] | None, kind: pa.DataType
) -> pa.Array:
    """Numbers as a column, without a copy."""
    there = None
    if missing is not None:
        there = pa.py_buffer(np.packbits(missing == 0, bitorder="little"))
    values: npt.NDArray[Any] = numbers
    if pa.types.is_boolean(kind):
        values = np.packbits(numbers != 0, bitorder="little")
    own = pa.int64() if kind in INTEGERS else kind
    return pa.Array.from_buffers(own, len(numbers), [there, pa.py_buffer(values)])
