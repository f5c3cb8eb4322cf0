"""Stabbing indexes by name. A structure's module is imported when it is first used.

The default, ``cei``, is in this package, with ``dlist`` and ``interval-tree``. The others are in
``literature/``, even ``interval``, which ``stabbing="auto"`` may choose, because it is one of a
family. Nothing is imported from there: modules are named by text, and a process that never uses a
structure never loads it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bittern.errors import OptionError, brief
from bittern.options import whole_number

if TYPE_CHECKING:
    from bittern.stabbing.contract import StabbingIndex

AUTO = "auto"
"""The name that asks for a choice."""

ALLOWANCE = 16 * 2**20
"""Bytes that an index may take however few intervals there are."""

BYTES_PER_INTERVAL = 64
"""Bytes that it may take for each interval beside."""

STRUCTURES = {
    "dlist": "stabbing.dlist.Dlist",
    "cei": "stabbing.cei.CEI",
    "interval-tree": "stabbing.interval_tree.IntervalTree",
    "interval": "literature.bit_vectors.interval_index.IntervalIndex",
    "ui": "literature.constructs.ui.UI",
    "sci": "literature.constructs.sci.SCI",
    "sci-bc": "literature.constructs.sci_bc.ClippedSCI",
    "sci-bv": "literature.constructs.sci_bv.VirtualSCI",
    "sci-dt": "literature.constructs.sci_dt.TableSCI",
    "lci": "literature.constructs.lci.LCI",
    "lci-bc": "literature.constructs.lci_bc.ClippedLCI",
    "lci-bv": "literature.constructs.lci_bv.VirtualLCI",
    "lci-dt": "literature.constructs.lci_dt.TableLCI",
    "is-list": "literature.is_list.index.ISList",
    "cluster": "literature.bit_vectors.cluster_index.ClusterIndex",
    "hybrid": "literature.bit_vectors.hybrid_index.HybridIndex",
    "segment-tree": "literature.bit_vectors.segment_tree.SegmentTree",
    "grouped-filter": "literature.predicates.grouped_filter.GroupedFilter",
    "red-black": "literature.predicates.red_black.RedBlack",
    "pb-tree": "literature.pb_tree.index.PBTree",
}
"""Module and class of every structure under its name; a new one is added here, and predicted in
``stabbing/predict.py`` or ``literature/predictions``."""


def structure(name: str) -> type[StabbingIndex]:
    """Return the structure of this name; OptionError lists the known names."""
    try:
        module, _, cls = STRUCTURES[name].rpartition(".")
    except (KeyError, TypeError):
        known = ", ".join(sorted(STRUCTURES))
        raise OptionError(
            f"no stabbing index is called {brief(name)}: choose from {known}"
        ) from None
    found: type[StabbingIndex] = getattr(import_module(f"bittern.{module}"), cls)
    return found


def default_memory(n: int) -> int:
    """Bytes that an index of n intervals may take unless the caller says otherwise."""
    return ALLOWANCE + BYTES_PER_INTERVAL * n


def checked_memory(memory: int | None, n: int) -> int:
    """Return the memory limit; OptionError if it is not valid."""
    if memory is None:
        return default_memory(n)
    return whole_number("memory for a stabbing index, in bytes,", memory)


def check_name(name: str, memory: int | None = None) -> None:
    """Refuse an unknown name, and a memory limit without "auto"."""
    if name == AUTO:
        checked_memory(memory, 0)
        return
    structure(name)
    if memory is not None:
        raise OptionError(f'a memory limit is only for stabbing="{AUTO}", not for {name!r}')


def build_chosen(
    lows: ArrayLike, highs: ArrayLike, ids: ArrayLike, domain: int, memory: int | None = None
) -> StabbingIndex:
    """Build the chosen structure; the modules for choosing are loaded only here."""
    choose = import_module("bittern.stabbing.choose")
    found: StabbingIndex = choose.build_chosen(lows, highs, ids, domain, memory)
    return found


def build_named(
    name: str,
    lows: ArrayLike,
    highs: ArrayLike,
    domain: int,
    memory: int | None = None,
    cuts: ArrayLike | None = None,
) -> StabbingIndex:
    """Build the structure of this name, or the best one if it is "auto"; ids are positions.

    ``cuts``, the first cells of the attributes, are passed to structures that need them.
    """
    check_name(name, memory)
    ids = np.arange(len(np.asarray(lows)), dtype=np.int32)
    if name == AUTO:
        return build_chosen(lows, highs, ids, domain, memory)
    made = structure(name)
    parameters = {"cuts": cuts} if "cuts" in made.parameter_names() else {}
    return made.build(lows, highs, ids, domain=domain, **parameters)
