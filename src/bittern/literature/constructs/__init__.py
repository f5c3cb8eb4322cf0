"""Virtual construct intervals (seeds 000 and 001): intervals cut into pieces with fixed places.

An interval is cut into *constructs*, each of which has one list of ids. SCI has constructs of every
length up to L, LCI those whose length is a power of two; a value asks all constructs that contain
it, and four ways find those that are not empty: full bitmaps, clipped ones, virtual ones (no bits
at all), and a table of distances::

    family.py     cutting, lists, changes: what all eight have in common
    covering.py   the four ways
    sci*.py lci*.py   a scheme and a way, named
    ui.py         unit intervals, which are direct lists (``stabbing/dlist.py``)
"""
