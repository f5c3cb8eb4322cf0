"""Variants as events: the binary form in which Spark and Parquet keep JSON-like values.

What the scanner of JSON is for texts, this is for variants: one pass, a key at a time, and values
of attributes in use become the same tagged entries (``model/events/json/entries.py``). A variant
has more types than JSON: dates, timestamps, decimals, bytes::

    variant.py   the layout, and the scanner of objects
    values.py    scalars: numbers of every width, decimals beyond 64 bits, strings
    trees.py     arrays and objects as Python values, for the terms that read them

The bytes may come from anywhere and are checked as they are read. Loaded when there is a variant.
"""
