"""One event at a time: from text or mapping to subscriptions in one compiled call.

A batch shares its costs among its events: some dozen kernels are called, and arrays are made for
what they hand to each other. For one event these calls would be nearly all of the time. Here the
same functions are put together in one kernel, which finds everything by address::

    kernel     the compiled call: parse, encode, stab, verify, expand
    found      parts of it: from postings to subscriptions
    patterns   a call in the middle of it, for strings that patterns are asked of
    computed   between two calls: terms, sets and presence, which no event carries itself
    bits       a call behind it, for the classes that stand in bits
    table      the addresses of an index's arrays, and of the scratch that a call writes
    together   a snapshot and its deltas in one call
    matcher    the events that are served, in the form that the kernel reads; what falls back

It serves an index of the strategy ``pivot`` (with or without bits) over ``cei``, unless it has
functions that only Spark knows. What it cannot do, it leaves to the batch: ``OneEvent.of`` says so
of an index, and the kernel by its result of an event. So there is one definition of what matches.
"""
