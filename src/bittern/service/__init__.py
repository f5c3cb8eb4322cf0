"""The command line, the service over HTTP (``http``), and its pages (``console``).

``cli.py`` is the entrance. It has the words read (parser.py: commands, options and help;
arguments.py: numbers and sizes), calls one function for the command, and turns its errors into a
sentence and an exit code. What a command does stands here or in the module beside it::

    build match explain inspect     cli.py                  with a history: history_commands.py
    inspect, of a predicate file    predicate_commands.py
    backtest                        backtest.py
    catalog ...                     catalog_commands.py set_commands.py
    import                          import_rules.py
    advise                          advise.py measures, advice.py tells, picture.py draws
    spark-match                     spark_match.py
    run                             run.py runs the pipeline that a file describes
    redeliver                       redelivery.py
    serve token                     serve_commands.py
    warm-up completion              warm_up.py completion.py

``run`` reads its file with pipeline_file.py, which says what each section may hold, and
settings.py, which checks that and reports everything that is wrong at once. live_view.py shows the
pipeline while it runs.

What several commands share::

    tables.py csv_events.py   files of subscriptions, events and matches, batch by batch
    member_files.py           files of the members of named sets
    schema_file.py            files that tell what events are like
    report.py progress.py     what is said, at the end and meanwhile
"""
