"""CAST: values of one type as values of another, and where Spark adds a cast by itself.

A cast is asked for in a text, or a function asks for it (``lower(5)`` is of ``'5'``), or Spark's
analyzer would add one because two sides of a comparison differ. All are one function, ``cast``,
which finds the way from type to type and takes a column along it::

    CAST(code AS INT)        code   '12'   'x'    NULL
                             INT    12     fails  NULL       TRY_CAST: 12  NULL  NULL

A row whose value does not fit the type fails with its reason, as in Spark's ANSI mode; the other
rows of the column do not notice. Which casts there are is a table in ``casts.py``::

    casts.py             from any type to any other: the table of ways, binary, lists, structs
    numbers.py           among numbers, Booleans and times
    from_text.py         STRING to numbers and Booleans, with all forms that Spark reads
    from_text_times.py   STRING to DATE, TIMESTAMP and TIMESTAMP_NTZ
    to_text.py           anything to STRING, as Spark writes it
    coercions.py         the casts that Spark adds, where a schema tells the types
"""
