"""Documents: where earlier events are kept, and as which bytes.

An event that has been matched is remembered as a document, in order of arrival. What is stored is
the event as it came (columns of Arrow, JSON, mappings), because a later subscription may ask for
attributes that nobody asks for now::

    arrivals.py       an event of any form becomes a block of bytes
    mapping_rows.py   ... where it is a mapping, whose values have types of their own
    segments.py       blocks of consecutive documents, and reading attributes from them
    documents.py      all segments, in memory or in a file: appending, expiring, merging
    replay.py         documents as events again
    file.py           the file: a database of SQLite in a folder, which one process holds

``append`` is durable when it returns, and a change has happened as a whole or not at all.
"""
