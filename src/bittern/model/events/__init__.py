"""Reading events of any form into rank space.

A batch comes in as columns, mappings, JSON texts or variants, and goes out as pairs of a cell and
an event. What is read is what subscriptions ask for, attribute by attribute::

    encoder.py     the entrance: events in, cells out
    attributes.py  which attributes are looked at, and where they are found
    reader.py      the forms: tables, mappings, texts, one or many
    columns.py maps.py objects.py mappings.py utf8.py   a form each, and what they need
    batch.py sinks.py reads.py   values in, packed pairs of cell and event out
    mistyped.py    values of a type that no subscription can compare
    present.py     what an event has at all, NULL or not
    shared.py      one reading for a snapshot and the deltas on top of it
    sides.py       what rows were before and are after a change, as one batch

    json/          JSON text
    variant/       variants, as Spark and Parquet keep them
    derived/       the values of terms, in a batch and in one event
    typed/         values by themselves, for events that are compared with others
"""
