"""The join table: every distinct quantified predicate once, and how each is answered.

::

    table.py      the entries, in sections: one for those that came together
    sections.py   a section: what is known about documents for its entries, kept up to date
    plans.py      from an entry to lookups of summaries, or to sets of documents where none answers

A new entry is filled from the documents that are there, so a section is made once and grows with
every document; many sections are merged into one.
"""
