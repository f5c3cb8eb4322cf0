"""Changes of rows on Spark: which subscriptions a row enters, leaves and stays in.

::

    BeforeAfter    id  before  after     ChangeFeed   id  price  _change_type       _commit_version
                   7   {8}     {12}                   7   8      update_preimage    41
                                                      7   12     update_postimage   41
    Debezium       value
                   {"op": "u", "before": {"price": 8}, "after": {"price": 12}}

    forms.py      where the old and the new row of a change are
    sides.py      both as events in turn, in the columns that cross into Python
    operator.py   in a worker: both matched together, and compared
    matching.py   ``match_changes``

What comes out has a row for each kind of change that a change is to any subscription.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bittern.spark.changes.forms import BeforeAfter, ChangeFeed, Debezium
    from bittern.spark.changes.matching import match_changes

__all__ = ["BeforeAfter", "ChangeFeed", "Debezium", "match_changes"]


def __getattr__(name: str) -> Any:
    """Loaded on first use, so that importing the package does not load pyspark."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "matching" if name == "match_changes" else "forms"
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
