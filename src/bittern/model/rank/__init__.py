"""Rank space: every value of every ordered type becomes one integer, exactly.

::

    space.py    constants in order, channels, and the cells between them
    cells.py    values to cells, in kernels       direct.py   a table look-up for dense integers
    tables.py   from a cell to what stands there  encoded.py  a batch of events, as indexes read it
    touched.py  which cells another rank space asks about
"""
