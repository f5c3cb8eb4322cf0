"""Subscriptions on Spark: from whatever a caller has to a snapshot that executors find.

::

    resolving.py    a DataFrame, an index, a path, a catalog: made ready for executors
    handed_over.py  what the driver has in its memory, as a DataFrame
    building.py     ``build``: read by the executors, compiled by the driver or in shards
    reading.py      a task that reads subscriptions, and joining what tasks have read
    samples.py      typical events, by which subscriptions are filed
"""
