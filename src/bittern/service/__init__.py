"""The command line.

::

    cli.py parser.py arguments.py       the commands, their grammar, their words
    tables.py csv_events.py             files of subscriptions, events and matches
    member_files.py                     files of the members of named sets
    schema_file.py                      files that tell what events are like
    report.py progress.py               what is said, at the end and meanwhile
    history_commands.py                 matching and explaining with a history
    predicate_commands.py               inspecting a predicate file
    catalog_commands.py set_commands.py   ``bittern catalog``
    import_rules.py                     ``bittern import``
    advise.py advice.py picture.py      ``bittern advise``: measured, told, drawn
    spark_match.py                      ``bittern spark-match``
    run.py pipeline_file.py             ``bittern run``, and the file that it runs (settings.py)
    live_view.py                        a running pipeline, on a terminal
    warm_up.py                          ``bittern warm-up``
"""
