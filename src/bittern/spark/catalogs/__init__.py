"""A catalog that changes, as the tasks that match against it see it.

::

    views.py     one version of a catalog, on its way to tasks: a snapshot, deltas, marks
    builder.py   keeps the newest view: snapshots are made anew as deltas grow
    eventual.py  a running query takes newer versions up by itself
    sending.py   what a batch of a pipeline carries of a view
"""
