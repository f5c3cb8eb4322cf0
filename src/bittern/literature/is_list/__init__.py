"""The interval skip list (Hanson and Johnson), dynamic baseline of seed 000.

A skip list over the ends of the intervals, whose edges carry *markers*: an interval is marked on a
staircase of edges from its one end to its other, and a descent to a value meets each interval that
contains it once::

    index.py     the structure          nodes.py     layout, linking, building
    changes.py   inserting, deleting    markers.py   sets of markers in one array
    search.py    many descents at once  checking.py  every invariant, from the definitions
"""
