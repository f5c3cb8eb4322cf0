"""OpIndex (seed 003): partitions by pivot attribute and operator, searched and counted.

::

    index.py       ``opindex``, and ``opindex-bs``, which searches without signatures
    partitions.py  what both are made of, and how it changes
    filing.py      pivots: what goes into which list      operators.py   basic predicates
    directory.py   where a list is      entries.py   all entries of the lists, as rows
    counters.py    how many predicates each filing still needs
    match.py       Algorithm 2, for a batch
    space.py trie.py   what is kept of the rank space; prefixes
    checking.py    what matching trusts
"""
