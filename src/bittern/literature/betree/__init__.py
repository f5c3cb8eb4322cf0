"""BE-Tree (Sadoghi and Jacobsen), a rival that seed 003 compares itself with.

Clauses are in a tree that is cut by attribute and by value in turns; full leaves are cut where it
pays most::

    index.py     the structure               match.py    leading an event through it
    clauses.py   clauses as rows             nodes.py    c-nodes, and the table of p-directories
    runs.py      what a c-node lists         cuts.py     which cut pays, and making it
    changes.py   inserting, deleting         packing.py  nothing but what is in use
    checking.py checking_clauses.py          what kernels trust
"""
