"""The options that ``match``, ``write`` and ``register`` share.

``bittern.spark.match`` describes each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options as they were given; missing ones have the defaults of ``match``."""

    event_id: str | Sequence[str] | None = None
    payload: str | Sequence[str] = ()
    limit: int | None = None
    json: str | Sequence[str] = ()
    store: str | None = None
    shards: str | int | None = "auto"
    sample: Any = None
    on_error: str = "raise"
    unknown: str = "warn"
    consistency: str = "snapshot"
    history: Any = None
    order_by: str | Sequence[str] | None = None
    sets: Mapping[str, Any] | None = None
