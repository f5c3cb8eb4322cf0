"""Stabbing indexes by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bittern.errors import OptionError
from bittern.stabbing.cei import CEI

if TYPE_CHECKING:
    from bittern.stabbing.contract import StabbingIndex

STRUCTURES: dict[str, type[StabbingIndex]] = {cls.name: cls for cls in (CEI,)}
"""Every structure under its name; a new one is added here and nowhere else."""


def structure(name: str) -> type[StabbingIndex]:
    """Return the structure of this name; OptionError lists the known names."""
    try:
        return STRUCTURES[name]
    except KeyError:
        known = ", ".join(sorted(STRUCTURES))
        raise OptionError(f"no stabbing index is called {name!r}: choose from {known}") from None
