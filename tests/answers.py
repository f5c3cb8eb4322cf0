"""Right answers for whole catalogs: the oracle asked for every (event, subscription) pair.

``expected(catalog, events)`` is what ``Matches.to_pylist()`` must be, ids in the catalog's order.
``engine(catalog, events)`` asks the engine the same, after checking all invariants of the index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import bittern
import oracle
from bittern.language.parser import parse

Catalog: TypeAlias = Mapping[Any, str]


def expected(catalog: Catalog, events: Sequence[Any]) -> list[list[Any]]:
    """Ask the oracle; what is no mapping (None, a rejected row) has no attributes."""
    trees = {id_: parse(text) for id_, text in catalog.items()}
    return [
        [
            id_
            for id_, tree in trees.items()
            if oracle.matches(tree, event if isinstance(event, Mapping) else {})
        ]
        for event in events
    ]


def build(catalog: Any, **options: Any) -> bittern.Index:
    """Build an index from any source of subscriptions and verify its invariants."""
    index = bittern.Index.build(catalog, **options)
    index.check()
    return index


def engine(catalog: Catalog, events: Any, **options: Any) -> list[list[Any]]:
    """Build, check and match."""
    return bittern.Matcher(build(catalog, **options)).match(events).to_pylist()
