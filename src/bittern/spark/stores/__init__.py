"""Storage without paths: what a pipeline keeps and writes in an object store, S3's for now.

An object store has neither locks nor renames. What it has is *conditional creation*: of all who
create an object of one name, one succeeds, and whoever reads it finds all of it. Everything here
rests on that alone::

    places.py        which storage a path names
    hadoop.py        small objects, from the driver: through the Hadoop layer of Spark's JVM
    remote_files.py  large objects, from the tasks: through pyarrow, with the JVM's settings
    manifests.py     a table whose batches are there when their manifests are
    reading.py       ``read_matches``

The claim of a checkpoint, which takes the place of locks, is in ``streaming/claims.py``.
"""
