"""The join phase: between reading a block of events and matching it.

A subscription with EXISTS or FORALL is two things: quantified predicates, each an entry of the join
table, and what is left, its *guard*. An entry that holds for an event becomes the cell of a hidden
attribute, and then the event is matched like any other::

    joins.py        the phase, step by step
    guards.py       which entries an event needs at all: guards are matched like subscriptions
    conditions.py   constant expressions on documents and events, matched by an index of their own
    phases.py       guards or the join table first? an estimate for each block
"""
