"""Inspecting a predicate index on disk from the command line.

::

    bittern inspect price.pb             the tree: height, fill, list lengths, pointer adjustments
    bittern inspect price.pb --check     every page is read, and every invariant verified

It reads as every other reader does: a view of the newest version, which other writers do not
change. Every page is read once to see how full it is; ``--check`` reads them twice more.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from bittern.literature.pb_tree.predicate_file import PredicateFile
from bittern.literature.pb_tree.tree import LISTS
from bittern.service.report import print_table, say


def inspect(options: argparse.Namespace) -> int:
    """Show what is in the file of a predicate index; with ``--check``, only after verifying it."""
    with PredicateFile.open(options.snapshot) as index:
        if options.check:
            try:
                index.check()
            except AssertionError as broken:
                say(f"predicate index {options.snapshot} is not sound: {broken}")
                return 1
        about = _about(index)
    if options.json:
        print(json.dumps(about, indent=1))
        return 0
    print_table(about)
    if options.check:
        print("\nchecked: checksums and structure are correct")
    return 0


def _about(index: PredicateFile) -> dict[str, Any]:
    """The figures of a tree and its file, grouped by subject."""
    fill = index.fill()  # first, so that what it reads is counted
    found = index.statistics()
    lists = {
        name: {figure: found[f"{name}_{figure}"] for figure in ("keys", "sids", "pages")}
        for name in LISTS
    }
    pages = {
        "branch": found["branch_pages"],
        "leaf": found["leaf_pages"],
        "list": sum(each["pages"] for each in lists.values()),
        "spill": found["spill_pages"],
        "map": found["map_pages"],
        "free": found["free_pages"],
    }
    top = ("kind", "version", "file_bytes", "page_bytes", "height", "keys", "entries", "leaf_sids")
    changes = (
        "inserted",
        "leaves_adjusted_per_insert",
        "deleted",
        "leaves_adjusted_per_delete",
    )
    cache = ("frames", "used_frames", "page_reads")
    return {
        **{name: found[name] for name in top},
        "pages": pages,
        "fill": fill,
        "lists": lists,
        "changes": {name: found[name] for name in changes},
        "cache": {name: found[name] for name in cache},
    }
