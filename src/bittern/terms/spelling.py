"""Whether upper and lower case count in the names of columns and of the fields of structs.

They do, unless events are read inside of ``spelling(case_sensitive=False)``: then ``PRICE`` is the
column ``price``, as Spark has it by default. Keys of maps, of mappings and of documents are data,
and their case always counts, in Spark too.

A name that is there exactly as it is written is meant; else the only one that differs from it in
nothing but case. If there are two of these, none is. (Spark refuses a name that fits two.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_case_counts: ContextVar[bool] = ContextVar("case_counts", default=True)


@contextmanager
def spelling(*, case_sensitive: bool) -> Iterator[None]:
    """While inside, names are found with regard to case or without.

    Inside of another, both must regard it.
    """
    token = _case_counts.set(case_sensitive and _case_counts.get())
    try:
        yield
    finally:
        _case_counts.reset(token)


def does_case_count() -> bool:
    """Whether names that differ in case are different names."""
    return _case_counts.get()


def place_of(name: str, names: Sequence[str], *, case_sensitive: bool | None = None) -> int:
    """Which of the names is meant by one; -1 if none is. O(names)."""
    if name in names:
        return names.index(name)
    if does_case_count() if case_sensitive is None else case_sensitive:
        return -1
    folded = name.lower()
    alike = [place for place, each in enumerate(names) if each.lower() == folded]
    return alike[0] if len(alike) == 1 else -1
