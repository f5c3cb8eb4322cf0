"""How much of what Spark's filter says of one row Bittern says too, measured on Spark's own tests.

Spark's SQL tests are some hundred files of statements. Every Boolean expression in them that says
something about one row of one relation is asked of Spark, of Bittern inside a process, and of
Bittern on Spark, over the same rows::

    WHERE a > 1         Filter(a > 1, Relation t)      Spark      rows 0, 2
    SELECT a = 'x'      Project([a = 'x'], ...)        embedded   rows 0, 2          alike
                                                       on Spark   refused: ...       listed

The files are not part of this repository: ``inputs.py`` gets them through Maven, by the name of
Spark's artifact, or reads a folder.

::

    inputs.py        the files, and the statements in them
    catalyst.py      Spark's own parser: plans, expressions, and where they are in the text
    collecting.py    the expressions of a file, and what is left out for which reason
    relations.py     the rows that they are about, in Spark and as Arrow
    answering.py     the answers of all three
    reasons.py       why something is refused or differs, in few words
    report.py        the page
    run.py           ``python -m benchmarks.conformance.run``
"""
