"""Writing matches from the tasks: Parquet straight from Arrow, committed by the driver.

``writing.py`` is ``bittern.spark.write``, ``part_files.py`` what a task writes, ``staging.py`` how
a table gets to its place whole or not at all.
"""
