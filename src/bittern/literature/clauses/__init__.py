"""Expressions as clauses: the normal forms that the papers' strategies are made for.

``normal.py`` brings classes into disjunctive or conjunctive normal form, ``forms.py`` works the
form of a nested expression out once for all classes that have it.
"""
