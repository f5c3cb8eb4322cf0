"""The durable catalog: subscriptions in SQLite or PostgreSQL, every change a version.

In come subscriptions, one by one or from a source. Out come one version, or the changes between
two, from which a matcher is built or kept up to date. A change takes this way::

    catalog.py               ``bittern.Catalog``: ``add``, ``remove``, ``load``, ``export``, ...
    sources.py files.py      a table, a frame, a mapping or a file becomes rows, part by part
    rows.py                  each row is checked: id, expression, weight, metadata
    writing.py               rows are staged, then merged in one transaction: a new version
    layout.py                the tables; a row is closed by a later version, never overwritten
    database.py              connections, transactions, and errors as sentences
    reading.py               one version, the changes between two, one subscription's past

``searching.py`` finds subscriptions page by page, ``conditional.py`` changes one if nobody else
has, and ``following.py`` keeps a live matcher at a catalog's version. What a service writes down
beside the subscriptions (events, matches, tokens) is in ``journal``.

Members of named sets go a way of their own through the same versions: ``catalog.sets`` (sets.py)
takes them, set_parts.py turns them into bytes and back, set_rows.py stores what changed.

checking.py compares every row with what is ever written, for ``bittern catalog check``.
"""
