"""Derived attributes: the values of terms, such as ``lower(brand)``, computed from events.

A subscription that compares a term has a predicate on a *derived attribute*, which no event
carries. Before a batch is encoded, the terms of all subscriptions are evaluated over it, each once,
in whole columns (``terms/scope.py``), and their values become cells like others::

    the batch     gathered.py    attributes that terms read, as Arrow arrays by type
                  opened.py value_types.py   ... where they are lists and objects without a type
    the terms     derived.py     evaluates them, and lists the rows for which Spark would fail
                  elements.py    array_contains with thousands of constants, as one question
    work saved    repeats.py     one evaluation for each distinct value of a batch
                  known.py       ... and none for values that earlier batches had
    one event     one_row.py     the same for the path of a single event, without columns

Which attributes a term reads and under which name its values go on is said by
``language/derived.py``. Loaded when an index has terms.
"""
