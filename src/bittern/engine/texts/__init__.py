"""Columns of subscriptions' texts, read by kernels where their shape is known.

::

    distinct.py      growing sets of byte strings: the distinct keys and parameters
    words.py         cuts texts into words, as the lexer does, and looks up their keys
    conjunctions.py  sorts the predicates of conjunctions whose key is not known
    columns.py       reads a column with these, and with the plain reader what they do not know
"""
