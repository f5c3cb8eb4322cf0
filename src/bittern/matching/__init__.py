"""Subscription indexes: they find the subscriptions that an event satisfies.

What comes in are *classes* (``model/classes``): one distinct expression each, however many
subscribe to it. A strategy files them when an index is built, and finds for each event those that
it satisfies::

    contract.py    what every strategy promises       registry.py   strategies by name
    scan.py        the definition of truth: every class for every event
    pivot/         Bittern's own strategy, the default
    bits/          Bittern's own for many wide ranges

What strategies share::

    program.py     the tests of a class as rows with jumps, and running them
    always.py      classes that no index can look up
    stabbed.py     a stabbing index below a strategy
    output.py      matches as kernels write them
    checks.py      what kernels trust, verified

The strategies of the papers are in ``literature/``.
"""
