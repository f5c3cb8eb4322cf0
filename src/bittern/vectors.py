"""Lines of 512 bits, combined in the processor's vectors: one instruction where words take eight.

Numba has no vectors of its own and does not make them of eight words that stand in a short loop. So
this is written for LLVM, as ``prefetch`` and ``popcount`` are (``jit.py``), and takes a third of
the time of the loop below, which runs where nothing is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from bittern.jit import IS_COMPILING

#: Words of a line.
WORDS = 8


def _emit_and_lines(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    words, starts, columns, values, out = (
        context.make_array(signature.args[i])(context, builder, arguments[i]).data
        for i in (0, 1, 2, 3, 7)
    )
    row, first, last = arguments[4:7]
    word = ir.IntType(64)
    vector = ir.VectorType(word, WORDS)
    kept = cgutils.alloca_once_value(builder, ir.Constant(vector, [-1] * WORDS))
    with cgutils.for_range_slice(builder, first, last, ir.Constant(word, 1), word) as (at, _):
        column = builder.sext(builder.load(builder.gep(columns, [at])), word)
        value = builder.zext(builder.load(builder.gep(values, [builder.add(row, column)])), word)
        start = builder.sext(builder.load(builder.gep(starts, [at])), word)
        place = builder.mul(builder.add(start, value), ir.Constant(word, WORDS))
        line = builder.bitcast(builder.gep(words, [place]), vector.as_pointer())
        builder.store(builder.and_(builder.load(kept), builder.load(line, align=8)), kept)
    found = builder.load(kept)
    builder.store(found, builder.bitcast(out, vector.as_pointer()), align=8)
    shape = ir.FunctionType(word, [vector])
    any_of = cgutils.get_or_insert_function(builder.module, shape, "llvm.vector.reduce.or.v8i64")
    return builder.call(any_of, [found])


@intrinsic
def and_lines(
    _context: Any,
    words: Any,
    starts: Any,
    columns: Any,
    values: Any,
    row: Any,
    first: Any,
    last: Any,
    out: Any,
) -> Any:
    """AND lines into ``out``; returns 0 if no bit is left.

    For each ``i`` from ``first`` to ``last`` it takes line ``starts[i] + values[row + columns[i]]``
    of ``words``, which has 8 words for each line. Indices are trusted.
    """
    arguments = (words, starts, columns, values, row, first, last, out)
    return types.uint64(*arguments), _emit_and_lines


def _and_lines(
    words: Any,
    starts: Any,
    columns: Any,
    values: Any,
    row: Any,
    first: Any,
    last: Any,
    out: Any,
) -> Any:
    out[:] = ~np.uint64(0)
    for i in range(first, last):
        line = int(starts[i]) + int(values[row + columns[i]])
        out &= words[WORDS * line : WORDS * (line + 1)]
    return np.bitwise_or.reduce(out)


if not IS_COMPILING:
    and_lines = _and_lines
