"""Terms: scalar expressions over the attributes of one event, with Spark's meaning.

``lower(brand)``, ``price * quantity``, ``CAST(code AS INT)``, ``coalesce(discount, 0)``: each
distinct term is a *derived attribute*, computed once per batch for all subscriptions, in whole
columns. Comparing it with a constant is a predicate like any other.

A term's way: ``language/scalars`` reads its text into a tree (nodes.py), and coercions.py adds the
casts that Spark would, where a schema tells the types. ``model/events/derived.py`` hands tree and
batch to a *scope* (scope.py), which gets the columns that the tree names and evaluates it from the
leaves up: it calls each function, which one of the modules below has registered under its name.
The result is a column, which becomes cells like any other. A row for which Spark would fail fails
alone, with its reason.

::

    nodes.py         the tree of a term
    types.py         Spark's types as Arrow's, and what two of them have in common
    scope.py         evaluation over the rows of a batch; the table of all functions
    limits.py        how large what is computed may become
    pattern_texts.py what LIKE patterns and regular expressions mean, for all rooms
    unknown.py       functions that only Spark knows
    spelling.py      whether case counts in names
    coercions.py     casts that Spark adds where types differ
    columns.py       columns as NumPy sees them, and back
    comparisons.py conditions.py                     order, equality, AND, OR, CASE, coalesce
    casts.py cast_numbers.py from_text.py from_text_times.py to_text.py shortest.py   CAST
    numbers.py decimals.py rounding.py mathematics.py bits.py                         numbers
    strings.py positions.py encodings.py hashes.py patterns.py texts.py               strings
    times.py calendar.py moments.py zones.py time_texts.py time_patterns.py           times
    intervals.py interval_literals.py shifting.py    intervals, and + and - of times
    arrays.py elements.py lambdas.py sets.py structs.py nested.py ranks.py            arrays, maps
    machine/         many numeric terms at once, compiled
    members.py       IN SET: values looked up in sets that whoever evaluates a term gives

The room stands left of ``language``, which reads terms from text and folds those that are constant.
"""
