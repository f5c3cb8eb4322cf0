"""Numeric terms of a batch in one compiled call: a machine with registers over blocks of rows.

Evaluated one function after the other, a term makes arrays of all rows at every step, and calls a
hundred Python functions. Most terms of most catalogs are plain arithmetic, comparisons and choices.
These are translated into instructions once, and run over a block of rows at a time, whose registers
stay in the cache::

    a + b * 3 > 10      r3 = b * r0        r0 and r1 are the constants 3 and 10
                        r4 = a + r3
                        r5 = order(r4, r1)
                        r6 = is above(r5)

Equal parts of any two terms are computed once. What the machine does not know, ``length(title)`` or
``CAST(code AS INT)``, is an input: a column that ``scope.py`` computes beforehand, as everything.

Each value has a state: it is there, it is NULL, or it is *left* to ``scope.py``, because Spark
would fail the row or because of more digits than a float has. A state goes on to all that is
computed from the value, but not out of a branch that the row does not take. A term that ends with a
value that is left is computed again, as a whole, by ``scope.py``: all reasons come from there.

::

    machine.py                                  values of many terms over a scope
    translate.py translator.py meanings.py      terms as instructions, with Spark's types
    kernel.py                                   what each instruction does
"""
