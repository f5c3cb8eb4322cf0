"""The data of the engine: values and cells, events, patterns, matches.

Constants come in from subscriptions, values from events. Both become *cells*, integers in the order
of the values, so that what stands to the right compares nothing but integers. Ids come out::

    when an index is built    constants   rank/       cut every domain into cells
                              patterns    patterns/   are filed under what a value must contain
                              ids         ids.py      by position
                              expressions classes/    each distinct one once, as tests of cells
    for each batch            events      events/     any form -> values -> cells, through rank/
                              strings     patterns/   which patterns each of them satisfies
                              matches     matches.py  positions of subscriptions, for each event
                                          transitions.py  those that a row enters, leaves, stays in

``events/encoder.py`` is where a batch enters. What these share::

    strings.py words.py   exact tables of strings and of 64-bit integers, found by hash (hashing.py)
    distinct.py           equal strings get one number
    numbers.py            numbers by their exact value
    tagged.py             values of any type, an entry for each: the form between reading and cells
    event_schema.py       which attributes a schema of events has, and of which types
"""
