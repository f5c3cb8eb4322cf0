"""JSON Logic: rules as JSON, with JavaScript's meaning of every comparison.

JavaScript compares anything with anything, so a test is told for each kind that a value may have::

    rules.py        a rule: and, or, if, some, all, none, and what joins tests and operands
    operands.py     variables and constants
    tests.py        what a test says of a value, kind by kind
    numbers.py      arithmetic, case by case
    javascript.py   constants as JavaScript compares them: as numbers, as texts
"""
