"""A Python UDF over rules: every subscription a compiled lambda, every event tried on all of them.

The rules are a Python file of one expression per subscription, each over ``get``, which gives an
attribute's value, or -1 (below all values of the workloads) where the event has none::

    get("a17", -1) == 4 and 1 <= get("a905", -1) <= 33
    12 <= get("a4", -1) <= 50

A worker compiles them when it gets its first event, and keeps them.

Cost: 25 us to compile a rule, about 0.1 us to try it.
"""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.draw import Ints
    from benchmarks.generators import Conjunctions

#: Rules that one call of the Python compiler gets.
_CHUNK = 1_000


def narrowest_first(conjunctions: Conjunctions) -> Ints:
    """The codes of each subscription's predicates, the most selective ones first."""
    vocabulary, codes = conjunctions.vocabulary, conjunctions.codes
    sizes = np.diff(conjunctions.offsets)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return codes[np.lexsort((vocabulary.high[codes] - vocabulary.low[codes], owner))]


def source(conjunctions: Conjunctions) -> str:
    """Write all rules, a line each."""
    vocabulary, codes = conjunctions.vocabulary, narrowest_first(conjunctions)
    tests = [
        f'get("{vocabulary.attributes[attribute]}", -1) == {low}'
        if low == high
        else f'{low} <= get("{vocabulary.attributes[attribute]}", -1) <= {high}'
        for attribute, low, high in zip(
            vocabulary.attribute[codes].tolist(),
            vocabulary.low[codes].tolist(),
            vocabulary.high[codes].tolist(),
            strict=True,
        )
    ]
    pairs = itertools.pairwise(conjunctions.offsets.tolist())
    return "\n".join(" and ".join(tests[first:last]) for first, last in pairs)


@functools.cache
def compiled(path: str) -> list[Callable[[Callable[..., Any]], bool]]:
    """Compile the rules of a file, once in each process."""
    lines = Path(path).read_text().split("\n")
    found: list[Any] = []
    for first in range(0, len(lines), _CHUNK):
        lambdas = [f"lambda get: {line}" for line in lines[first : first + _CHUNK]]
        found += eval(f"[{', '.join(lambdas)}]", {})
    return found


class Loop:
    """What Spark calls for each event."""

    def __init__(self, path: str) -> None:
        self.path = path

    def holding(self, values: Any) -> list[int]:
        """Numbers of the rules that hold for an event, given as a mapping or a row."""
        get = (values if isinstance(values, dict) else values.asDict()).get
        return [number for number, rule in enumerate(compiled(self.path)) if rule(get)]
