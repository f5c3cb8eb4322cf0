"""Selectors of JMS: conditions of SQL-92 over the properties of a message.

::

    selectors.py    the reader: text to a tree of conditions
    conditions.py   the tree: each condition says when it is TRUE and when it is FALSE
"""
