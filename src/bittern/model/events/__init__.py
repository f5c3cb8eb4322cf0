"""Reading events of any form into rank space.

::

    encoder.py     the entrance: events in, cells out
    reader.py      Arrow tables, mappings, JSON texts, one or many: where attributes are found
    attributes.py  which attributes are looked at, and where they are found
    columns.py maps.py mappings.py objects.py   the forms
    json_text.py json_tokens.py entries.py variant.py variant_values.py utf8.py   text and variants
    batch.py sinks.py reads.py   values in, packed pairs of cell and event out
    shared.py      one reading for a snapshot and the deltas on top of it
    mistyped.py    values of a type that no subscription can compare
    derived.py gathered.py repeats.py known.py elements.py   the values of terms in a batch
    one_row.py     the values of terms for one event
    opened.py value_types.py variant_trees.py   lists and objects, for terms
    present.py     what an event has at all, NULL or not
    typed.py typed_numbers.py    values by themselves, for events that are compared with others
"""
