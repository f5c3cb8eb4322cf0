"""Terms: scalar expressions over the attributes of one event, with Spark's meaning.

``lower(brand)``, ``price * quantity``, ``CAST(code AS INT)``, ``coalesce(discount, 0)``: each
distinct term of a catalog is a *derived attribute*, computed once per batch for all subscriptions,
in whole columns. Comparing it with a constant is a predicate like any other.

::

    nodes.py        the tree of a term
    types.py        Spark's types as Arrow's, and what two of them have in common
    scope.py        evaluation over the rows of a batch; the table of all functions
    comparisons.py conditions.py casts.py numbers.py strings.py times.py arrays.py   the functions
    rounding.py mathematics.py bits.py                                   and those of numbers only
    cast_numbers.py to_text.py from_text.py from_text_times.py           what casts are made of
    columns.py      columns as NumPy sees them
    decimals.py shortest.py calendar.py     exact decimals, shortest decimals, days and zones

The room stands left of ``language``, which reads terms from text and folds those that are constant.
"""
