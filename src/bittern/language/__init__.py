"""Text to syntax tree to normal form, and back to text.

In comes the text of a subscription. Out comes a *template*, the normal form that all texts of its
shape share, and the names and constants that fill its slots. ``Shapes.read`` takes millions of
texts, ``parse`` takes one. A text of a new shape goes all the way down::

    shapes.py cuts.py         is the shape known? then a split and a look-up per word, and no more
    conjuncts.py              a conjunction of a new shape is cut before it is parsed
    conditions.py             what nests AND, OR and NOT is put together from known predicates
    lexer.py                  text -> tokens
    parser.py predicates.py   tokens -> AND, OR, NOT and quantifiers, and the predicates in them
    scalars/ constants.py     tokens -> terms, such as ``price * 2``
    syntax.py                 the tree that the readers make
    normalize.py              tree -> normal form: negations at the leaves, constants folded
    templates.py              normal form -> template; slot_parser.py: its slots

What an event does not simply carry becomes an attribute on the way, under a name that no text can
write. So the rooms to the right know only attributes and constants::

    price * 2 < 10            the term ``price * 2``, with a value      derived.py
    brand IS MISSING          whether ``brand`` is there                presence.py
    EXISTS d (d.isbn = isbn)  whether there is such a document          quantifiers.py

Beside the way::

    literals.py durations.py      what raw constants and durations mean, read when it is needed
    complaints.py limits.py       what is wrong with a text, and when one is too large
    trees.py                      building and walking trees without recursion
    printer.py term_printer.py    trees and terms to text, one text for all that are equal
    alternatives.py               a quantifier as alternatives, for ``history``
    conversions.py                texts with the casts that a schema asks for
"""
