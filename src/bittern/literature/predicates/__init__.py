"""Predicate indexes in memory, the rivals of the PB+tree in seed 002.

They file *predicates* (attribute, operator, constant), not intervals: ``contract.py`` says what
such an index promises, ``sides.py`` makes a stabbing index of one, and ``two_sided.py`` handles
intervals that are bounded on both sides::

    grouped_filter.py   Grouped Filter: trees for ranges, a hash table (key_table.py) for equalities
    red_black.py        one red-black tree (red_black_nodes.py) for all operators
    keyed_lists.py      lists of ids by key, which both fill
"""
