"""The service over HTTP, with its clients on the same cores: ``make bench-serve``.

::

    client.py     asks and waits: single requests, batches, open streams
    processes.py  starts services and Lucene's Monitor, and reads what CPU time they have taken
    monitor/      Lucene's Monitor behind the HTTP server of the JDK, a Java program
    run.py        python -m benchmarks.serve.run: measures, and writes the figures
    report.py     python -m benchmarks.serve.report: writes docs/benchmarks/service.md from them

Subscriptions and events are those of ``benchmarks.streaming.world``: a shop's wishes and price
changes. Answers are compared with those of the embedded engine before anything is timed.
"""
