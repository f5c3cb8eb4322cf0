"""JSON texts as events: their values, tagged with types, in one compiled pass over the bytes.

No tree is built. The scanner goes through a text once, keeps the values of attributes that are in
use, and checks the rest as strictly as if it were kept::

    {"price": 9, "car": {"color": "red", "doors": 3}}       in use: price, car.color

    price       INTEGER  9
    car.color   STRING   red, which stays where it is in the text

    text.py      the scanner: objects, lists, what is rejected and why
    tokens.py    strings, numbers and the three words
    lines.py     files of lines, as arrays of text
    envelopes.py what Debezium wraps changes in: the old row and the new one
    entries.py   paths of keys, and entries of values: shared with the scanner of variants

The functions are given bytes from anywhere: none reads outside of its text, recurses or raises.
"""
