"""Other engines on the same subscriptions and events, in the same run: ``make rivals``.

::

    ruler/      event-ruler, a Java program       equalities and ranges of JSON events
    quamina/    Quamina, a Go program             equalities
    engines.py  starts them, and asks them
    run.py      python -m benchmarks.rivals.run: asks all in turns, and writes the figures
    report.py   python -m benchmarks.rivals.report: writes docs/benchmarks/rivals.md from them

``scripts/rivals.sh`` builds the two programs into ``.rivals``. Each gets two files, of patterns and
of events, one on each line, and is asked through its standard input::

    in                out
                      1500000000         the CPU time that adding the patterns took, nanoseconds
    (a line)          480000000 5120     that of matching all events once, and how much was found

Before it is asked, it writes the numbers of the patterns that each event matches into a third file,
a line for each event. They must be those that Bittern finds. What counts is the CPU time of the
thread that matches: what garbage collectors and compilers of Java and Go do beside it does not.
"""
