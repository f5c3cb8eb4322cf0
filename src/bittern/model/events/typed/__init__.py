"""Typed values: what events hold, in a form in which one event's values compare with another's.

Rank space tells a value's place among constants, and no more. A history compares events with
events, so there each value is a kind and two integers that have the order of the values::

    typed.py     events of any form, attribute by attribute, as kinds, words, ties and a heap
    numbers.py   numbers: a word that orders floats, and a tie that orders what rounds to one

Loaded by ``history``.
"""
