r"""LIKE patterns as small byte programs, and running them.

::

    LIKE 'h_llo%\%'       h ONE l l o RUN %

Two bytes that UTF-8 never uses stand for the wildcards. A program goes back to its last ``%`` where
a run does not fit; where that happens over and over again, it is run by all its states at once.
O(value), and O(value * program / 64) at worst.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import apart, inline

#: In a LIKE program: any run of characters, and exactly one character.
ANY_RUN, ANY_ONE = 0xFF, 0xFE

#: What running a LIKE program says.
FAILS, HOLDS, GIVEN_UP = 0, 1, -1
BYTES = 256


def like_program(text: str) -> bytes:
    r"""Compile a LIKE pattern whose escape character is the backslash.

    >>> like_program(r"50\%_%")
    b'50%\xfe\xff'
    """
    program = bytearray()
    escaped = False
    for character in text:
        if not escaped and character == "\\":
            escaped = True
            continue
        if not escaped and character == "%":
            if not program or program[-1] != ANY_RUN:
                program.append(ANY_RUN)
        elif not escaped and character == "_":
            program.append(ANY_ONE)
        else:
            program += character.encode()
        escaped = False
    return bytes(program) + b"\\" * escaped


@inline
def _next_character(value: Any, position: Any) -> Any:
    position += 1
    while position < value.shape[0] and value[position] & 0xC0 == 0x80:
        position += 1
    return position


@inline
def run_greedily(value: Any, program: Any, most: Any) -> Any:
    """Whether a LIKE program holds for a value, or ``GIVEN_UP``; and how much was read again.

    Only the last ``%`` is ever retried: if a run fits, its leftmost place serves as well as any.
    A retry moves by whole characters, so ``_`` never sees half of one. Values and programs can be
    made so that each retry reads a long run again: after ``most`` such bytes it is given up.
    """
    end, last = value.shape[0], program.shape[0]
    i, j = 0, 0
    retry_i, retry_j = 0, -1
    again = 0
    while i < end:
        if j < last and program[j] == ANY_RUN:
            j += 1
            if j == last:
                return HOLDS, again
            retry_i, retry_j = i, j
        elif j < last and program[j] == ANY_ONE:
            i = _next_character(value, i)
            j += 1
        elif j < last and program[j] == value[i]:
            i += 1
            j += 1
        elif retry_j >= 0:
            again += i - retry_i
            if again > most:
                return GIVEN_UP, again
            retry_i = _next_character(value, retry_i)
            i, j = retry_i, retry_j
        else:
            return FAILS, again
    if j == last or (j == last - 1 and program[j] == ANY_RUN):
        return HOLDS, again
    return FAILS, again


@inline
def count_words(program: Any) -> Any:
    """Words with a bit for each state of a LIKE program: how many of its bytes are matched."""
    return (program.shape[0] >> 6) + 1


@apart
def run_in_parallel(value: Any, program: Any, room: Any) -> Any:
    """Whether a LIKE program holds, by all of its states at once: O(value * program / 64).

    A byte takes each state that it fits to the next. A state before ``%`` stays whatever comes, and
    one behind ``_`` until the character is over: what follows there begins with another one.
    """
    words = count_words(program)
    # By byte, the states that it leads to; then those behind _, those before %, those reached.
    ones, stays, reached = BYTES * words, (BYTES + 1) * words, (BYTES + 2) * words
    room[: (BYTES + 3) * words] = 0
    state = 0
    for j in range(program.shape[0]):
        row = stays
        if program[j] != ANY_RUN:
            state += 1
            row = ones if program[j] == ANY_ONE else np.int64(program[j]) * words
        room[row + (state >> 6)] |= np.uint64(1) << np.uint64(state & 63)
    room[reached] = 1
    for i in range(value.shape[0]):
        row = np.int64(value[i]) * words
        is_first = value[i] & 0xC0 != 0x80
        carry = np.uint64(0)
        for k in range(words):
            old = room[reached + k]
            moved = old << np.uint64(1) | carry
            carry = old >> np.uint64(63)
            one = moved if is_first else old
            room[reached + k] = moved & room[row + k] | one & room[ones + k] | old & room[stays + k]
    return room[reached + (state >> 6)] >> np.uint64(state & 63) & np.uint64(1) != 0


def room_needed(length: Any) -> Any:
    """Words that ``run_in_parallel`` needs for a program of so many bytes."""
    return (BYTES + 3) * ((length >> 6) + 1)


_room_needed = inline(room_needed)


@apart
def holds_like(value: Any, program: Any, room: Any) -> Any:
    """Whether a LIKE program holds for a value. O(value), at worst O(value * program / 64)."""
    holds, _ = run_greedily(value, program, 4 * value.shape[0] + _room_needed(program.shape[0]))
    if holds == GIVEN_UP:
        return run_in_parallel(value, program, room)
    return holds == HOLDS
