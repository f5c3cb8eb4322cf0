"""Pivot and verify: Bittern's own subscription index.

A class is filed under predicates of which at least one has to hold; an event that satisfies one
makes the class a candidate, and the rest of its tests decides::

    index.py         the structure       cover.py         which predicates to file under
    filing.py        classes to postings alternatives.py  an OR at the top, piece by piece
    match.py         a batch against the postings    few.py  a batch against a small index
    choice.py        pivots or bits?     with_bits.py     an index of both
"""
