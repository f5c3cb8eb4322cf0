"""Counting, the two-phase algorithm that seeds 000, 001 and 002 assume.

Phase one finds the satisfied intervals with any stabbing index, phase two counts them by clause::

    index.py      the structure                match.py     phase two
    intervals.py  distinct intervals           clauses.py   what classes come to
    checking.py   what matching trusts
"""
