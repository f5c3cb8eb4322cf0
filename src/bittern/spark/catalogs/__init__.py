"""A changing catalog, as seen by the tasks that match against it.

::

    views.py     one version of a catalog, as sent to tasks: a snapshot, deltas, marks
    builder.py   keeps the newest view: new snapshots are made as deltas grow
    eventual.py  a running query picks up newer versions by itself
    sending.py   how the batches of a pipeline carry a view
    in_shards.py the same for a catalog in parts: shards that stay, and what has changed since
"""
