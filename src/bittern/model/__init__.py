"""What flows through the engine: values and cells, events, patterns, matches.

::

    rank/      every ordered domain as integers: constants cut it into cells, a value has one
    events/    events in whatever form they come, read into pairs of event and cell
    patterns/  LIKE, contains and regular expressions: which patterns does a text satisfy?
    strings.py numbers.py tagged.py hashing.py   values by themselves
    ids.py matches.py   what comes out: ids of subscriptions, for each event
"""
