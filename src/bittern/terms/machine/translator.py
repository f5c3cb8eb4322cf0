"""From terms to registers and steps; what each call means is in ``meanings.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.terms.casts.casts import widened
from bittern.terms.machine import kernel as to
from bittern.terms.nodes import Attribute, Call, Constant, Lambda, Term
from bittern.terms.scope import Scope
from bittern.terms.types import INTEGERS, TIMESTAMP, TIMESTAMP_NTZ, common_type, widest_type

REAL, BIGINT, INT, BOOLEAN, DATE = (
    pa.float64(),
    pa.int64(),
    pa.int32(),
    pa.bool_(),
    pa.date32(),
)
#: What a register can hold, and what a term can end with.
HELD = frozenset((*INTEGERS, REAL, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ))
RESULTS = HELD - {DATE}
#: More instructions than this take longer to run than they save.
_MOST_INSTRUCTIONS = 1 << 16


class UntranslatableError(Exception):
    """The machine does not have this meaning."""


class TypedRegister(NamedTuple):
    """A register, or a number that stands for one until all are told, and the type of its value."""

    register: int
    kind: pa.DataType


class Translation(NamedTuple):
    """Instructions for columns of some types."""

    code: npt.NDArray[np.int64]
    constants: npt.NDArray[np.int64]
    inputs: list[Term]  # attributes and calls, in the order of their registers
    n_registers: int
    terms: list[int]  # which terms have a result, by their place among those given
    results: npt.NDArray[np.int64]
    kinds: list[pa.DataType]


# Until all are known, registers of constants, inputs and results are counted apart.
_INPUTS, COMPUTED = 1 << 40, 1 << 41


class Translator:
    """Collects constants, inputs and steps while terms are translated, each once."""

    def __init__(self, types: Mapping[str, pa.DataType]) -> None:
        self._types = types
        # Rows are not needed to know what type a value has.
        self._nobody = Scope({name: pa.array([], kind) for name, kind in types.items()}, 0)
        self._values: dict[Term, TypedRegister | None] = {}
        self._constants: dict[int, int] = {}
        self._inputs: dict[Term, TypedRegister] = {}
        self._code: dict[tuple[int, int, int, int], int] = {}

    def value(self, term: Term) -> TypedRegister:
        """The register that a term ends in."""
        if term not in self._values:
            self._values[term] = None
            self._values[term] = self._value(term)
        found = self._values[term]
        if found is None:
            raise UntranslatableError
        return found

    def _value(self, term: Term) -> TypedRegister:
        if isinstance(term, Constant):
            return self._constant(term.scalar)
        if isinstance(term, Attribute):
            return self._input(term, self._types.get(term.name, pa.null()))
        if isinstance(term, Lambda):
            raise UntranslatableError
        meaning = MEANINGS.get(term.function)
        if meaning is not None:
            try:
                return meaning(self, term)
            except UntranslatableError:
                pass
        found = self._nobody.value(term)
        if isinstance(found, pa.Scalar):
            return self._constant(found)
        return self._input(term, found.type)

    def _input(self, term: Term, kind: pa.DataType) -> TypedRegister:
        if kind not in HELD:
            raise UntranslatableError
        return self._inputs.setdefault(term, TypedRegister(_INPUTS + len(self._inputs), kind))

    def _constant(self, scalar: pa.Scalar) -> TypedRegister:
        value, kind = scalar.as_py(), scalar.type
        if value is None or kind not in (*INTEGERS, REAL, BOOLEAN):
            raise UntranslatableError
        return TypedRegister(self.number(value), kind)

    def number(self, value: float) -> int:
        """The register of a constant."""
        bits = int(np.float64(value).view(np.int64)) if isinstance(value, float) else int(value)
        return self._constants.setdefault(bits, len(self._constants))

    def step(self, operation: int, left: int, right: int = -1, extra: int = 0) -> int:
        """The register of an instruction; of an equal one if there is."""
        if len(self._code) >= _MOST_INSTRUCTIONS:
            raise UntranslatableError
        step = operation, left, left if right < 0 else right, extra
        return self._code.setdefault(step, COMPUTED + len(self._code))

    def real(self, term: Term) -> int:
        """A number as a DOUBLE; a constant DECIMAL beside one is one."""
        if isinstance(term, Constant) and pa.types.is_decimal(term.scalar.type):
            value = widened(term.scalar, REAL).as_py()
            if value is None:
                raise UntranslatableError
            return self.number(value)
        register, kind = self.value(term)
        if kind == REAL:
            return register
        if kind not in INTEGERS:
            raise UntranslatableError
        if isinstance(term, Constant):
            return self.number(float(term.scalar.as_py()))
        return self.step(to.TO_REAL, register)

    def kind(self, term: Term) -> pa.DataType:
        """The type of a value; that of a constant may be one that no register holds."""
        return term.scalar.type if isinstance(term, Constant) else self.value(term).kind

    def alike(self, terms: Sequence[Term], kind: pa.DataType | None) -> list[int]:
        """The values in a type that all of them go into without a loss or a failure."""
        if kind == REAL:
            return [self.real(term) for term in terms]
        found = [self.value(term) for term in terms]
        both_times = {TIMESTAMP, TIMESTAMP_NTZ}
        for _, own in found:
            whole = own in INTEGERS and kind in INTEGERS
            if not (own == kind or whole or {own, kind} == both_times):
                raise UntranslatableError
        return [register for register, _ in found]

    def narrow(self, register: int, kind: pa.DataType, state: int) -> TypedRegister:
        """A result in the type of its operands."""
        if kind in (BIGINT, REAL):
            return TypedRegister(register, kind)
        return TypedRegister(self.step(to.NARROW, register, extra=4 * kind.bit_width + state), kind)

    def truth(self, term: Term) -> int:
        """A condition."""
        register, kind = self.value(term)
        if kind != BOOLEAN:
            raise UntranslatableError
        return register

    def order(self, left: Term, right: Term) -> int:
        """-1, 0 or 1."""
        kind = common_type(self.kind(left), self.kind(right))
        one, other = self.alike((left, right), kind)
        return self.step(to.ORDER_REAL if kind == REAL else to.ORDER, one, other)

    def chosen(self, pieces: Sequence[tuple[int, Term]], otherwise: Term) -> TypedRegister:
        """What the first condition that holds leads to."""
        terms = [*(term for _, term in pieces), otherwise]
        kind = widest_type(self.kind(term) for term in terms)
        if kind not in HELD:
            raise UntranslatableError
        *values, found = self.alike(terms, kind)
        for (condition, _), value in zip(reversed(pieces), reversed(values), strict=True):
            found = self.step(to.CHOOSE, value, found, condition)
        return TypedRegister(found, kind)

    def first(self, terms: Sequence[Term]) -> TypedRegister:
        """The first value that is there."""
        kind = widest_type(self.kind(term) for term in terms)
        if kind not in HELD:
            raise UntranslatableError
        values = self.alike(terms, kind)
        found = reduce(lambda later, value: self.step(to.FIRST, value, later), reversed(values))
        return TypedRegister(found, kind)

    def together(self, found: Sequence[tuple[int, TypedRegister]]) -> Translation:
        """What the terms that were found need, in registers that are used again. O(steps)."""
        steps = list(self._code)
        needed, last = set[int](), dict[int, int]()
        results = [typed.register for _, typed in found]
        needed.update(results)
        for at in range(len(steps) - 1, -1, -1):
            if COMPUTED + at in needed:
                for read in _read(steps[at]):
                    needed.add(read)
                    last.setdefault(read, at)
        kept = set(results)
        inputs = [term for term, typed in self._inputs.items() if typed.register in needed]
        n_first = len(self._constants)
        places = {register: register for register in self._constants.values()}
        places |= {self._inputs[term].register: n_first + i for i, term in enumerate(inputs)}
        n_registers, free = n_first + len(inputs), list[int]()
        code = []
        for at, step in enumerate(steps):
            target = COMPUTED + at
            if target not in needed:
                continue
            if not free:
                free.append(n_registers)
                n_registers += 1
            places[target] = free.pop()
            operation, left, right, extra = step
            extra = places[extra] if operation == to.CHOOSE else extra
            code.append((operation, places[target], places[left], places[right], extra))
            free += {
                places[read]
                for read in _read(step)
                if read >= COMPUTED and last[read] == at and read not in kept
            }
        return Translation(
            np.array(code, dtype=np.int64).reshape(-1, 5),
            np.array(list(self._constants), dtype=np.int64),
            inputs,
            n_registers,
            [place for place, _ in found],
            np.array([places[register] for register in results], dtype=np.int64),
            [typed.kind for _, typed in found],
        )


def _read(step: tuple[int, int, int, int]) -> tuple[int, ...]:
    """The registers that an instruction reads."""
    operation, left, right, extra = step
    return (left, right, extra) if operation == to.CHOOSE else (left, right)


#: What translates a call of this name.
MEANINGS: dict[str, Callable[[Translator, Call], TypedRegister]] = {}
