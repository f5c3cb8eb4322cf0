"""Indexes and matchers: subscriptions in, events in, matches out.

::

    given.py          subscriptions of any form, in chunks
    subscriptions.py  these checked and put into columns
    texts/            columns of texts, read by kernels where their shape is known
    known_schema.py   what they mean for events of a known schema, and what can never hold
    asked.py          schemas and sets, read where some are given
    index.py          an immutable index of them       snapshot/  as it is saved and mapped
    expected.py       what events to expect, which decides where subscriptions are filed
    matcher.py        batches of events against one, or against a snapshot and deltas
    one_event/        one event against an index in one compiled call, without a batch
    live/             a matcher whose subscriptions change meanwhile
    sets/             named sets that subscriptions look values up in
    explain.py one_value.py    why an event matched, or why it did not
    intervals.py      intervals alone, without expressions
    backtest/         what a draft would have matched, over remembered events
    sharding/         how subscriptions that outgrow a host are cut
    answers.py unanswered.py   EXISTS and FORALL: what a matcher asks a history, or does without one
"""
