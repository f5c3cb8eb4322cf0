"""Live changes: a snapshot, deltas on top of it, and marks of removed subscriptions.

::

    matcher.py      ``LiveMatcher``: subscribe, unsubscribe and replace while other threads match
    layers.py       what it holds, and when it is compacted
    changes.py      changes, the locks they take, and when they are sealed and folded
    reading.py      texts become rows
    delta.py        segments, states and changes, all immutable
    columns.py      the rows of a delta in columns, which are joined where deltas are folded
    sets.py         the named sets that its subscriptions look values up in
    compact.py      deltas become part of a new snapshot, in a child process (work_folder.py)
"""
