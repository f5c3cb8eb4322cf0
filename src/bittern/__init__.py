"""Bittern: match every event against millions of Boolean SQL subscriptions.

>>> import bittern
>>> index = bittern.Index.build({"s1": "model = 'iphone5s' AND color = 'silver' AND price <= 580"})
>>> matcher = bittern.Matcher(index)
>>> matcher.match([{"model": "iphone5s", "color": "silver", "price": 550}]).to_pylist()
[['s1']]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bittern import errors as errors
    from bittern import imports as imports
    from bittern.catalog.catalog import Catalog
    from bittern.engine.backtest.backtest import backtest
    from bittern.engine.explain import explain
    from bittern.engine.index import Index
    from bittern.engine.intervals import Intervals
    from bittern.engine.live.matcher import LiveMatcher
    from bittern.engine.matcher import Matcher
    from bittern.language.parser import parse
    from bittern.literature.pb_tree.predicate_file import PredicateFile
    from bittern.model.matches import Matches

__version__ = "0.1.0"
__all__ = [
    "Catalog",
    "Index",
    "Intervals",
    "LiveMatcher",
    "Matcher",
    "Matches",
    "PredicateFile",
    "backtest",
    "errors",
    "explain",
    "imports",
    "parse",
]

# Loaded on first use: the command line's --help should not wait for NumPy and Numba.
_HOMES = {
    "Catalog": "bittern.catalog.catalog",
    "Index": "bittern.engine.index",
    "Intervals": "bittern.engine.intervals",
    "LiveMatcher": "bittern.engine.live.matcher",
    "Matcher": "bittern.engine.matcher",
    "Matches": "bittern.model.matches",
    "PredicateFile": "bittern.literature.pb_tree.predicate_file",
    "backtest": "bittern.engine.backtest.backtest",
    "explain": "bittern.engine.explain",
    "parse": "bittern.language.parser",
}


def __getattr__(name: str) -> Any:
    if name in ("errors", "imports"):
        return import_module(f"bittern.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'bittern' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
