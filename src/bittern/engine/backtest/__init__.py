"""Backtest: what a draft of a subscription would have matched, over events that are remembered.

::

    backtest.py   ``backtest``: events of any form and a draft in, a ``Backtest`` out
    sources.py    where the events are: folders, files, tables, lists; batch by batch
    draft.py      the draft, and each of its predicates as a subscription of its own
    counting.py   one batch after the other: matches, rejections, hours, samples
    result.py     what comes out, as an object, as text and as JSON

The draft and its predicates are matched as subscriptions of one index, so a backtest gives exactly
the matches that the draft would have given. Memory: one batch, and what is counted.
"""
