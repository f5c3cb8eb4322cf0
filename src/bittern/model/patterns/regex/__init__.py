"""Regular expressions in kernels of our own; what they do not know for certain is RE2's.

::

    syntax.py     the text to a row of tokens       tokens.py    adding one to the row
    classes.py    sets of characters
    programs.py   tokens to a program, and running it
"""
