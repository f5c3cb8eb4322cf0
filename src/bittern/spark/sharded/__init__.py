"""Indexes that outgrow a host: built, carried and matched in parts.

::

    shards.py    what a closure carries of one       building.py tasks.py   building it
    matching.py  the stages of a match               routing.py             events to their shards
    visiting.py  events in a shard                   gathering.py           one row per event again
    since_cut.py  what has changed in a catalog that stays cut
"""
