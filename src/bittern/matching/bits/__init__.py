"""Bits: a subscription index for many wide ranges, where a pivot leaves too many candidates.

Every attribute of an event rules classes out, all of them at once, 512 at a time::

    index.py    the structure                     groups.py   cells of a channel, grouped
    limits.py   which groups a class may match    lines.py    bitmaps of blocks of 512
    order.py    which classes share a block       match.py    a batch against the blocks
"""
