"""Functions of numbers, and the forms in which numbers are computed.

Spark computes in machine integers, floats and decimals, and the type of a result follows from the
types of the operands. So does this: integers that overflow fail their row, floats follow IEEE 754,
and decimals are exact, then rounded to the type of the result::

    numbers.py       + - * / % div and their ``try_`` forms: which type, and what comes out
    rounding.py      round, bround, floor, ceil
    mathematics.py   roots, powers, logarithms, angles, all of a DOUBLE
    bits.py          & | ^ ~, shifts, and integers in other bases

Two forms of numbers serve all of these, and the casts::

    decimals.py      a decimal as a whole number of its smallest unit, and the types of decimals
    shortest.py      a float as the shortest decimal that stands for it: what Java prints and rounds

Terms of numbers that many subscriptions compute go through ``terms/machine``, which does the same
in compiled code; what it is not sure of comes back to this package.
"""
