"""The data of the engine: values and cells, events, patterns, matches.

::

    rank/      every ordered domain as integers: constants cut it into cells, a value has one
    events/    events of any form, read into pairs of event and cell
    patterns/  LIKE, contains and regular expressions: which patterns a text satisfies
    event_schema.py   which attributes a schema of events has, and of which types
    strings.py words.py numbers.py tagged.py hashing.py   values by themselves
    ids.py matches.py   the result: ids of subscriptions, for each event
"""
