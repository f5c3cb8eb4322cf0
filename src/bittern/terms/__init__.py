"""Terms: scalar expressions over the attributes of one event, with Spark's meaning.

``lower(brand)``, ``price * quantity``, ``CAST(code AS INT)``, ``coalesce(discount, 0)``: each
distinct term is a *derived attribute*, computed once per batch for all subscriptions, in whole
columns. Comparing it with a constant is a predicate like any other.

A term's way: ``language/scalars`` reads its text into a tree (nodes.py), and ``casts/coercions.py``
adds the casts that Spark would, where a schema tells the types. ``model/events/derived`` hands tree
and batch to a *scope* (scope.py), which gets the columns that the tree names and evaluates it from
the leaves up: it calls each function, which a module of one of the packages below has registered
under its name. The result is a column, which becomes cells like any other. A row for which Spark
would fail fails alone, with its reason.

What all functions rest on::

    nodes.py          the tree of a term
    types.py          Spark's types as Arrow's, and what two of them have in common
    scope.py          evaluation over the rows of a batch; the table of all functions
    columns.py        columns as NumPy sees them, and back
    limits.py         how large what is computed may become
    pattern_texts.py  what LIKE patterns and regular expressions mean, for all rooms
    spelling.py       whether case counts in names
    unknown.py        functions that only Spark knows

The functions, by what they are about, and the machine::

    casts/            CAST, and the casts that Spark adds
    logic/            comparisons, AND, OR, CASE, coalesce; IN SET
    numbers/          arithmetic, rounding, mathematics, bits
    strings/          strings, bytes and patterns
    times/            dates, timestamps, time zones, intervals
    nested/           arrays, maps, structs, and functions of functions
    machine/          many numeric terms at once, compiled

The room stands left of ``language``, which reads terms from text and folds those that are constant.
"""
