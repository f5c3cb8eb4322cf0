"""Patterns: string predicates that cannot be answered by sorting.

::

    sets.py        all patterns of one attribute      packed.py   those of all attributes, in arrays
    substrings.py  many constants in one pass         fragments.py   LIKE, piece by piece
    regexes.py     RE2
"""
