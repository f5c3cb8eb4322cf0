"""Terms: scalar expressions over the attributes of one event, with Spark's meaning.

``lower(brand)``, ``price * quantity``, ``CAST(code AS INT)``, ``coalesce(discount, 0)``: each
distinct term of a catalog is a *derived attribute*, computed once per batch for all subscriptions,
in whole columns. Comparing it with a constant is a predicate like any other.

::

    nodes.py        the tree of a term
    types.py        Spark's types as Arrow's, and what two of them have in common
    scope.py        evaluation over the rows of a batch; the table of all functions
    comparisons.py conditions.py casts.py numbers.py strings.py times.py arrays.py   the functions
<<<<<<< HEAD
    positions.py encodings.py patterns.py   more functions of strings; texts.py is under them
    limits.py       how large what is computed may become
=======
    moments.py zones.py time_texts.py time_patterns.py    more of times
    intervals.py interval_literals.py shifting.py         intervals, and + and - of times
>>>>>>> 02f5a66261eed58d3e31e3cdf95274bcb7782167

The room stands left of ``language``, which reads terms from text and folds those that are constant.
"""
