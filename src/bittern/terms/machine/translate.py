"""Terms as instructions, with Spark's types for what is between.

A translation holds for columns of some types. It fails where the machine does not have Spark's
meaning; then the call becomes an input of those above it, or the term has no translation at all.

::

    price * (quantity + 3)      quantity BIGINT, price DOUBLE       r3 = quantity + 3     BIGINT
                                                                    r4 = to real(r3)      DOUBLE
                                                                    r5 = price * r4       DOUBLE
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from bittern.terms.machine import meanings  # noqa: F401  which enters them
from bittern.terms.machine.translator import (
    COMPUTED,
    RESULTS,
    Translation,
    Translator,
    TypedRegister,
    UntranslatableError,
)
from bittern.terms.nodes import Call, Term
from bittern.terms.scope import MeaninglessError


def translate(terms: Sequence[Term], types: Mapping[str, pa.DataType]) -> Translation:
    """Instructions for the terms that have some, over columns of these types. O(nodes)."""
    own = Translator(types)
    found: list[tuple[int, TypedRegister]] = []
    for place, term in enumerate(terms):
        try:
            typed = own.value(term) if isinstance(term, Call) else None
        except (UntranslatableError, MeaninglessError, pa.ArrowException):
            continue
        # A term that is nothing but an input is computed as well without the machine.
        if typed is not None and typed.kind in RESULTS and typed.register >= COMPUTED:
            found.append((place, typed))
    return own.together(found)
