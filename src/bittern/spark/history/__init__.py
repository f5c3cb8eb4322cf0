"""Documents on Spark: what events are compared with, in tasks that come and go.

EXISTS and FORALL compare an event with documents, and with earlier events where these have an
order. A task gets the names of Parquet files, and a worker keeps what it knows of their documents
for the tasks to come::

    past.py         what precedes an event: documents, earlier events, or both
    files.py        documents as Parquet files in their order, written by a job if need be
    remembered.py   in a worker: documents that were read, and what the join phase knows of them
"""
