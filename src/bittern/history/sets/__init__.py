"""Document sets: does some document satisfy what no summary can answer?

A predicate without a key asks about all documents, and several orders at once:
``EXISTS d (d.price > price AND d.rank < rank)``. Each condition is a set of documents, and whether
the sets have one in common is asked of roaring bitmaps::

    sets.py           an alternative of conditions over all documents
    ordered.py        the values of one attribute in order: the paper's augmented B-tree
    ordered_runs.py   stretches of that order as places of documents, with bitmaps along the way
    outcomes.py       how two values compare: below, equal, above, or apart
"""
