"""What is remembered of documents, and passes over batches that ask for it and add to it.

Most quantified predicates have a key (``d.isbn = isbn``) and ask for little of the documents that
share it: is there one, how many, what is the highest price. That is a *summary*, which takes a
document in constant time and answers without looking at documents again::

    groups.py      documents with the same key: one hash table for all summaries, in flat arrays
    summaries.py   what is kept of a group, and what it can answer
    listed.py      ... where only a list of its documents can
    intake.py      which summaries take a document
    lookups.py     what a predicate asks of a summary
    passes.py      a batch in order of arrival: each event is asked for, then it is a document

All of it is compiled: a pass is one call.
"""
