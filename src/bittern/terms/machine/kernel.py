"""What the instructions do, a block of rows at a time.

An instruction is (operation, target, left, right, extra): numbers of registers, and at last a
number that depends on the operation. Registers hold int64 or float64 in the same memory. The first
ones are constants, the next ones are the columns; no instruction writes into these, nor into what
it reads. O(instructions x rows).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import apart, i8, i8r, i8r2, i8w, inline, kernel, u1r, u1w, void

#: Rows of a block: with a hundred registers it fits the second cache.
BLOCK = 512

#: A value is there, or else a sum of these.
NULL, LEFT = 1, 2

ADD, SUBTRACT, MULTIPLY, REST, NARROW, NEGATE, SIZE, TO_REAL = range(8)
ADD_REAL, SUBTRACT_REAL, MULTIPLY_REAL, DIVIDE_REAL, REST_REAL = range(8, 13)
NEGATE_REAL, SIZE_REAL, FLOOR, CEIL, ROUND, CUT = range(13, 19)
ORDER, ORDER_REAL, TEST, AND, OR, NOT = range(19, 25)
IS_NULL, IS_THERE, IS_TRUE, IS_FALSE, CHOOSE, FIRST = range(25, 31)
GREATEST, LEAST, GREATEST_REAL, LEAST_REAL = range(31, 35)
DAYS, YEAR, MONTH, DAY, HOUR, MINUTE, SECOND = range(35, 42)

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_SHORT = 1 << 31
_LEAST = np.int64(-(2**63))
_GREATEST = np.int64(2**63 - 1)
_TWO_63 = 2.0**63
_WHOLE = 2.0**53
_EXACT = 10.0**15


@inline
def _state(is_wrong: Any, state: Any, extra: Any) -> Any:
    """What a value without a result adds to its state; behind NULL there is nothing wrong."""
    return np.uint8(extra) if is_wrong and state == 0 else np.uint8(0)


@apart
def _on_integers(operation: Any, n: Any, x: Any, y: Any, z: Any, s: Any, extra: Any) -> None:
    """``s`` has the states of both operands; ``extra`` is the state of what has no result.

    For ``NARROW``, it is 4 times the bits of the type, and that state. Compiled code may take it
    for granted that a signed sum or product fits; unsigned ones wrap around.
    """
    if operation == ADD:
        for i in range(n):
            found = np.int64(np.uint64(x[i]) + np.uint64(y[i]))
            z[i] = found
            s[i] |= _state(((x[i] ^ found) & (y[i] ^ found)) < 0, s[i], extra)
    elif operation == SUBTRACT:
        for i in range(n):
            found = np.int64(np.uint64(x[i]) - np.uint64(y[i]))
            z[i] = found
            s[i] |= _state(((x[i] ^ y[i]) & (x[i] ^ found)) < 0, s[i], extra)
    elif operation == MULTIPLY:
        for i in range(n):
            one, other = x[i], y[i]
            found = np.int64(np.uint64(one) * np.uint64(other))  # which wraps around
            z[i] = found
            if not (-_SHORT < one < _SHORT and -_SHORT < other < _SHORT) and one != 0:
                # The lowest number by -1 traps on some machines.
                if one != -1:  # noqa: SIM108  the order matters
                    wrong = found // one != other or found % one != 0
                else:
                    wrong = other == _LEAST
                s[i] |= _state(wrong, s[i], extra)
    elif operation == REST:
        for i in range(n):
            divisor = y[i]
            if divisor == 0:
                s[i] |= _state(True, s[i], extra)
                divisor = np.int64(1)
            if divisor == -1:  # the lowest number by -1 traps on some machines
                divisor = np.int64(1)
            rest = x[i] % divisor
            if rest != 0 and (rest ^ x[i]) < 0:  # the sign is the dividend's
                rest -= divisor
            z[i] = rest
    elif operation == NARROW:
        shift = np.int64(64 - (extra >> 2))
        state = np.uint8(extra & 3)
        for i in range(n):
            found = (x[i] << shift) >> shift
            z[i] = found
            s[i] |= _state(found != x[i], s[i], state)
    elif operation == NEGATE:
        for i in range(n):
            z[i] = np.int64(np.uint64(0) - np.uint64(x[i]))
            s[i] |= _state(x[i] == _LEAST, s[i], extra)
    elif operation == SIZE:
        for i in range(n):
            z[i] = x[i] if x[i] >= 0 or x[i] == _LEAST else -x[i]
            s[i] |= _state(x[i] == _LEAST, s[i], extra)


@apart
def _on_reals(operation: Any, n: Any, x: Any, y: Any, z: Any, s: Any, extra: Any) -> None:
    if operation == ADD_REAL:
        for i in range(n):
            z[i] = x[i] + y[i]
    elif operation == SUBTRACT_REAL:
        for i in range(n):
            z[i] = x[i] - y[i]
    elif operation == MULTIPLY_REAL:
        for i in range(n):
            z[i] = x[i] * y[i]
    elif operation == DIVIDE_REAL:
        for i in range(n):
            s[i] |= _state(y[i] == 0, s[i], extra)
            z[i] = x[i] / y[i]
    elif operation == REST_REAL:
        for i in range(n):
            s[i] |= _state(y[i] == 0, s[i], extra)
            z[i] = np.fmod(x[i], y[i])
    elif operation == NEGATE_REAL:
        for i in range(n):
            z[i] = -x[i]
    elif operation == SIZE_REAL:
        for i in range(n):
            z[i] = abs(x[i])
    elif operation == ROUND:
        power = 10.0**extra
        for i in range(n):
            size = abs(x[i])
            if not size < _WHOLE:  # whole already, infinite or NaN
                z[i] = x[i]
                continue
            near = np.rint(size * power)
            # Numbers with more digits are told by their text (``numbers/shortest.py``).
            s[i] |= _state(not (size < _EXACT and near < _EXACT / 10), s[i], LEFT)
            low, high = 2 * (near - 0.5) / (2 * power), 2 * (near + 0.5) / (2 * power)
            near += np.float64(size >= high) - np.float64(size < low)
            units = -near if x[i] < 0 else near
            z[i] = (units + 0.0) / power  # 0 has no sign


@apart
def _to_integers(operation: Any, n: Any, x: Any, z: Any, s: Any, extra: Any) -> None:
    """Reals become integers; ``extra`` is 4 times the bits of the type, and a state."""
    state = np.uint8(extra & 3)
    if operation == CUT:
        most = 2.0 ** ((extra >> 2) - 1)
        greatest = most if most == _TWO_63 else most - 1
        for i in range(n):
            inside = np.floor(x[i]) <= greatest and np.ceil(x[i]) >= -most
            if inside and x[i] >= greatest:
                z[i] = _GREATEST >> (64 - (extra >> 2))
            else:
                z[i] = np.int64(x[i]) if inside else 0
            s[i] |= _state(not inside, s[i], state)
        return
    for i in range(n):
        found = np.floor(x[i]) if operation == FLOOR else np.ceil(x[i])
        inside = -_TWO_63 <= found < _TWO_63
        z[i] = np.int64(found) if inside else 0  # NaN is 0 here, and only here
        s[i] |= _state(not inside and not np.isnan(x[i]), s[i], state)


@apart
def _on_orders(operation: Any, n: Any, x: Any, y: Any, u: Any, v: Any, z: Any, extra: Any) -> None:
    """Comparisons; bit 0, 1 or 2 of the ``extra`` of ``TEST`` says that below, equal, above do."""
    if operation == ORDER:
        for i in range(n):
            z[i] = np.int64(x[i] > y[i]) - np.int64(x[i] < y[i])
    elif operation == ORDER_REAL:
        for i in range(n):
            above = u[i] > v[i] or (np.isnan(u[i]) and not np.isnan(v[i]))
            below = u[i] < v[i] or (np.isnan(v[i]) and not np.isnan(u[i]))
            z[i] = np.int64(above) - np.int64(below)
    elif operation == TEST:
        for i in range(n):
            z[i] = (extra >> (x[i] + 1)) & 1
    elif operation == NOT:
        for i in range(n):
            z[i] = 1 - x[i]


@apart
def _on_truth(operation: Any, n: Any, x: Any, y: Any, p: Any, q: Any, z: Any, s: Any) -> None:
    """Where a state matters for more than itself. A value that is left stays left."""
    if operation in (AND, OR):
        decides = np.int64(operation == OR)
        for i in range(n):
            is_left = (p[i] | q[i]) & LEFT
            decided = (p[i] == 0 and x[i] == decides) or (q[i] == 0 and y[i] == decides)
            z[i] = decides if decided else 1 - decides
            s[i] = is_left if decided else (p[i] | q[i])
        return
    for i in range(n):
        if operation == IS_NULL:
            z[i] = p[i] & NULL
        elif operation == IS_THERE:
            z[i] = 1 - (p[i] & NULL)
        elif operation == IS_TRUE:
            z[i] = np.int64(p[i] == 0 and x[i] == 1)
        else:
            z[i] = np.int64(p[i] == 0 and x[i] == 0)
        s[i] = p[i] & LEFT


@apart
def _on_choices(
    operation: Any, n: Any, integers: Any, reals: Any, given: Any, z: Any, s: Any, decides: Any
) -> None:
    """One of two values, and its state.

    Both values are there as ``integers`` and as ``reals``, with the states that are ``given``. What
    ``CHOOSE`` decides by is a condition and its states.
    """
    (x, y), (u, v), (p, q) = integers, reals, given
    condition, truth = decides
    for i in range(n):
        is_left = np.uint8(0)
        if operation == CHOOSE:
            takes = truth[i] == 0 and condition[i] == 1
            is_left = truth[i] & LEFT
        elif operation == FIRST:
            takes = p[i] != NULL
        else:
            is_left = (p[i] | q[i]) & LEFT
            if operation == GREATEST:
                takes = x[i] >= y[i]
            elif operation == LEAST:
                takes = x[i] <= y[i]
            elif operation == GREATEST_REAL:
                takes = u[i] >= v[i] or np.isnan(u[i])
            else:
                takes = u[i] <= v[i] or np.isnan(v[i])
            takes = p[i] == 0 and (takes or q[i] != 0)
        z[i] = x[i] if takes else y[i]
        s[i] = (p[i] if takes else q[i]) | is_left


@apart
def _on_times(operation: Any, n: Any, x: Any, z: Any) -> None:
    """Fields of days and of microseconds since 1970, in the calendar of ``times/calendar.py``."""
    if operation == DAYS:
        for i in range(n):
            z[i] = x[i] // _DAY
    elif operation == HOUR:
        for i in range(n):
            z[i] = x[i] % _DAY // _HOUR
    elif operation == MINUTE:
        for i in range(n):
            z[i] = x[i] % _HOUR // _MINUTE
    elif operation == SECOND:
        for i in range(n):
            z[i] = x[i] % _MINUTE // _SECOND
    else:
        for i in range(n):
            shifted = x[i] + 719_468
            era = shifted // 146_097
            of_era = shifted - era * 146_097
            year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
            of_year = of_era - (365 * year + year // 4 - year // 100)
            month = (5 * of_year + 2) // 153
            if operation == DAY:
                z[i] = of_year - (153 * month + 2) // 5 + 1
            elif operation == MONTH:
                z[i] = month + 3 if month < 10 else month - 9
            else:
                z[i] = year + era * 400 + np.int64(month >= 10)


@kernel(void, i8r2, i8r, i8r, u1r, i8, i8, i8r, i8w, u1w, i8w)
def run(
    code: Any,
    constants: Any,
    columns: Any,
    column_states: Any,
    n_rows: Any,
    n_registers: Any,
    results: Any,
    out: Any,
    out_states: Any,
    out_any: Any,
) -> None:
    """Run all instructions over all rows; ``out`` gets the registers named by ``results``.

    ``columns`` and ``out`` hold column after column, and so do their states. ``out_any`` has all
    states of a result, one OR the other.
    """
    n_constants, n_columns = len(constants), len(columns) // max(n_rows, 1)
    values = np.empty((n_registers, BLOCK), dtype=np.int64)
    reals = values.view(np.float64)
    states = np.zeros((n_registers, BLOCK), dtype=np.uint8)
    for register in range(n_constants):
        values[register] = constants[register]
    for start in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - start)
        for column in range(n_columns):
            begin = column * n_rows + start
            values[n_constants + column, :n] = columns[begin : begin + n]
            states[n_constants + column, :n] = column_states[begin : begin + n]
        for step in range(len(code)):
            operation, target = code[step, 0], code[step, 1]
            left, right, extra = code[step, 2], code[step, 3], code[step, 4]
            x, y, z = values[left], values[right], values[target]
            u, v, w = reals[left], reals[right], reals[target]
            p, q, s = states[left], states[right], states[target]
            if operation < IS_NULL and not AND <= operation <= OR:
                for i in range(n):
                    s[i] = p[i] | q[i]
            if operation <= SIZE:
                _on_integers(operation, n, x, y, z, s, extra)
            elif operation == TO_REAL:
                for i in range(n):
                    w[i] = np.float64(x[i])
            elif operation <= SIZE_REAL or operation == ROUND:
                _on_reals(operation, n, u, v, w, s, extra)
            elif operation <= CUT:
                _to_integers(operation, n, u, z, s, extra)
            elif AND <= operation <= OR or IS_NULL <= operation <= IS_FALSE:
                _on_truth(operation, n, x, y, p, q, z, s)
            elif operation <= NOT:
                _on_orders(operation, n, x, y, u, v, z, extra)
            elif operation <= LEAST_REAL:
                decides = values[max(extra, 0)], states[max(extra, 0)]
                _on_choices(operation, n, (x, y), (u, v), (p, q), z, s, decides)
            else:
                for i in range(n):
                    s[i] = p[i]
                _on_times(operation, n, x, z)
        for result in range(len(results)):
            begin = result * n_rows + start
            register = results[result]
            found = np.uint8(0)
            for i in range(n):
                out[begin + i] = values[register, i]
                out_states[begin + i] = states[register, i]
                found |= states[register, i]
            out_any[result] |= found
