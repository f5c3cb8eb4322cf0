"""Functions that answer TRUE, FALSE or NULL, and those that choose by such an answer.

::

    comparisons.py   = < <=> IN BETWEEN, greatest, least: all rest on ``compare``
    conditions.py    AND, OR, NOT; CASE, if, coalesce, nullif, ...
    members.py       value IN SET name, with sets that the caller gives

Values of any type meet here. Numbers compare by their exact value, strings by their bytes, NaN is
equal to itself and above all numbers, and lists and structs compare by the numbers that stand for
their elements (``terms/nested/ranks.py``). What is not needed is not evaluated: behind FALSE AND,
in a branch of CASE that a row does not take, a mistake in the row's values is none, as in Spark.
"""
