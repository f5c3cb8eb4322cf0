"""Text to syntax tree to normal form, and back to text.

::

    lexer.py parser.py predicates.py       text -> tokens -> syntax tree      syntax.py   the tree
    literals.py durations.py               what constants and durations mean
    complaints.py limits.py                what is wrong with a text, and when one is too large
    normalize.py trees.py                  tree -> normal form, without recursion
    printer.py                             tree -> text
    quantifiers.py terms.py                EXISTS and FORALL: as an attribute, and as alternatives
    presence.py                            IS MISSING: as an attribute
    scalars/ constants.py                  text -> terms: what is computed from an event
    derived.py term_printer.py             terms as attributes, and as text
    conversions.py                         texts with the casts that a schema asks for
    shapes.py templates.py cuts.py conjuncts.py   millions of texts of few shapes
"""
