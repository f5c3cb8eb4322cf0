"""The durable catalog: subscriptions in SQLite or PostgreSQL, every change a version.

::

    catalog.py            ``bittern.Catalog``
    database.py           connections, transactions, errors       layout.py   the tables
    rows.py               what a subscription must be to enter
    sources.py files.py   what a catalog can be loaded from; files of subscriptions
    writing.py            a change becomes a version
    reading.py            one version, the changes between two, one subscription's past
    sets.py               ``catalog.sets``: named sets, versioned like subscriptions
    set_rows.py set_parts.py   how they are stored
    checking.py           every row against what is ever written
"""
