"""The k-index of Whang et al., a rival that seed 003 compares itself with.

Conjunctions are parted by their size k, and an event joins the lists of its values size by size::

    index.py      the structure               match.py      joining
    postings.py   what is posted where        items.py      the numbers of what is posted
    values.py     ranges as values            directory.py  where the lists of a value are
    checking.py   what matching trusts
"""
