"""CloudEvents SQL: filters over the attributes of CloudEvents.

A value of CESQL is a text, an integer or a Boolean, and often only the event tells which. So what
an expression is worth is a few cases, each with the condition under which it applies; operators and
functions go over the cases of their operands::

    expressions.py   the reader: text to the value of the whole, and that to an expression
    values.py        values as cases; attributes, constants, casts
    operators.py     comparisons, IN, LIKE, AND, OR, XOR, NOT
    functions.py     functions and arithmetic
"""
