"""Subscription indexes: they find the subscriptions that an event satisfies.

Expressions come in as trees and are compiled once; a *class* is one distinct expression, however
many subscribe to it::

    compile.py expand.py   normal form -> tests on cells      structure.py   the tree of a class
    classes.py             all classes, in arrays             program.py     running one
    contract.py            what every strategy promises       registry.py    strategies by name
    scan.py                the definition of truth: every class for every event
    pivot/                 Bittern's own strategy, the default
    bits/                  Bittern's own for many wide ranges
    stabbed.py always.py output.py growing.py checks.py   what strategies share

The strategies of the papers are in ``literature/``.
"""
