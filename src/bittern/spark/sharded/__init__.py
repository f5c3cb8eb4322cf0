"""Indexes that outgrow a host: built, carried and matched in parts.

::

    shards.py    what a closure carries of one       building.py tasks.py   building it
    matching.py  route events, visit shards          gathering.py           one row per event again
"""
