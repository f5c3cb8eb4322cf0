"""Stabbing indexes by name. A structure's module is imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bittern.errors import OptionError

if TYPE_CHECKING:
    from bittern.stabbing.contract import StabbingIndex

STRUCTURES = {
    "dlist": "dlist.Dlist",
    "sci": "sci.SCI",
    "sci-bc": "sci_bc.ClippedSCI",
    "sci-bv": "sci_bv.VirtualSCI",
    "sci-dt": "sci_dt.TableSCI",
    "lci": "lci.LCI",
    "lci-bc": "lci_bc.ClippedLCI",
    "lci-bv": "lci_bv.VirtualLCI",
    "lci-dt": "lci_dt.TableLCI",
    "is-list": "is_list.ISList",
    "ui": "ui.UI",
    "cei": "cei.CEI",
    "cluster": "cluster_index.ClusterIndex",
    "interval": "interval_index.IntervalIndex",
    "hybrid": "hybrid_index.HybridIndex",
    "segment-tree": "segment_tree.SegmentTree",
    "interval-tree": "interval_tree.IntervalTree",
    "grouped-filter": "grouped_filter.GroupedFilter",
    "red-black": "red_black.RedBlack",
    "pb-tree": "pb_tree.PBTree",
}
"""Module and class of every structure under its name; a new one is added here and nowhere else."""


def structure(name: str) -> type[StabbingIndex]:
    """Return the structure of this name; OptionError lists the known names."""
    try:
        module, cls = STRUCTURES[name].split(".")
    except (KeyError, TypeError):
        known = ", ".join(sorted(STRUCTURES))
        raise OptionError(f"no stabbing index is called {name!r}: choose from {known}") from None
    found: type[StabbingIndex] = getattr(import_module(f"bittern.stabbing.{module}"), cls)
    return found
