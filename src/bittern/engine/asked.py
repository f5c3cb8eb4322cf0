"""What an index or a matcher may be given beside subscriptions, read when there is some.

Most have neither a schema nor sets, and do not load what knows about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bittern.engine.known_schema import KnownSchema
    from bittern.engine.sets.members import Members


def known_schema(schema: Any, functions: str) -> KnownSchema:
    """What a schema of events says about subscriptions."""
    from bittern.engine.known_schema import KnownSchema  # noqa: PLC0415  only for a schema

    return KnownSchema.of(schema, functions)


def read_sets(sets: Mapping[str, Any]) -> dict[str, Members]:
    """Named sets, from name to members of any form."""
    from bittern.engine.sets import named  # noqa: PLC0415  only for sets

    return named.read_sets(sets)
