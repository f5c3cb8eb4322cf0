"""Checks of option values: each returns the value, or raises an ``OptionError`` that says why.

A Boolean is not a number here, although Python counts it as one: ``limit=True`` is a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bittern.errors import OptionError, brief


def whole_number(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """A whole number within bounds."""
    good = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if not good or (most is not None and value > most):
        bounds = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise OptionError(f"{name} must be a whole number {bounds}, not {brief(value)}")
    return int(value)


def true_or_false(name: str, value: Any) -> bool:
    """A Boolean."""
    if not isinstance(value, bool):
        raise OptionError(f"{name} must be True or False, not {brief(value)}")
    return value


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """One of these names."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        *others, last = map(repr, names)
        listed = f"{', '.join(others)} or {last}" if others else last
        raise OptionError(f"{name} must be {listed}, not {brief(value)}")
    return value
