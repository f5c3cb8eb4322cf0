"""The HTTP service: subscriptions, matching, publishing and streams, over catalogs of tenants.

``app.py`` makes the application of its settings (configuration.py), and ``server.py`` runs it. The
way of a request::

    entrance.py      headers, who asks, limits, metrics, a line in the log; problems as JSON
    access.py        the caller: token, roles and tenant         limits.py    how much, how fast
    bodies.py        what comes in is read, up to a size         problems.py  RFC 9457
    answers.py       what goes out: subscriptions, steps and times as JSON
    described.py     what OpenAPI says of both

    subscriptions.py versions.py sets.py     what is subscribed, and what was
    importing.py previews.py    files of other systems' rules, looked at before they are loaded
    changes.py       a change of it: audited, made in a thread, and matched from then on
    matching.py arrow_events.py explaining.py   an event or many, without any state; and why
    backtests.py                what a draft would have matched: the journal, or files
    events.py publishing.py     events are logged, matched and acknowledged, a group at a time
    streams.py tails.py         what matched, as it comes: server-sent events, or a waiting request
    tokens.py audit.py operations.py            who may do what; who did; is it well
    description.py                              all of this, described

What requests share is ``state.py``, for each tenant a ``Tenant`` (tenants.py): its catalog, a
matcher that follows it (following.py looks for changes of other processes), its journal, its tail.
webhooks.py posts letters. Nothing that waits for a disk or a network, and no bulk work, runs in the
event loop: ``ServiceState.run`` gives it to a thread. One event is matched in the loop, as that
takes microseconds.

The console (``service/console``) is mounted if it is there.
"""
