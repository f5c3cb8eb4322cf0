"""Documents seen before: join predicates over them, and what can be told before an event comes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bittern.history.history import History

__all__ = ["History"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: who imports a part of this room does not load all of it.
    if name != "History":
        raise AttributeError(f"module 'bittern.history' has no attribute {name!r}")
    return import_module("bittern.history.history").History
