"""Patterns: string predicates that cannot be answered by sorting.

::

    sets.py        all patterns of one attribute      packed.py   those of all attributes, in arrays
    filing.py      what each is filed under           covers.py   what a value must contain
    candidates.py  which may hold, and running them
    substrings.py  many literals in one pass          automaton.py  byte by byte, and
    windows.py     only where one may begin           likes.py    LIKE programs
    regex/         regular expressions as programs    regexes.py  RE2, for what those leave
    older.py       sets of older snapshots

They are many modules, which only an index with patterns loads.
"""

#: Kinds of pattern, as ``PatternSet.build`` takes them.
CONTAINS, LIKE, REGEX = 0, 1, 2
