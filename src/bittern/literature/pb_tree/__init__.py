"""The PB+tree of seed 002: a predicate index on pages, in memory and on disk.

::

    index.py            the stabbing index ``pb-tree``: a tree in memory, saved with its snapshot
    predicate_file.py   ``PredicateFile``: an index by itself, on disk, maybe larger than memory
    tree.py             the tree: search.py, insert.py, delete.py (adjust.py, join.py), check.py
    pages.py chains.py keys.py   what stands on a page; its neighbours; constants that sort
    sid_sets.py spills.py        the sids of a constant; those that need pages of their own
    pool.py frames.py   pages in memory, as kernels find them
    page_file.py page_table.py places.py views.py disk.py   the file: commits, versions, readers
    fill.py             how full the pages are
"""
