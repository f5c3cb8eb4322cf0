"""Which storage a path or URI names: a file system with paths, or an object store.

::

    matches, /data/matches, file:/data/matches    paths
    s3a://bucket/matches                          an object store, by Hadoop's name of it
    s3://..., gs://..., hdfs://..., dbfs:/...     refused: what to write is said
"""

from __future__ import annotations

import os
import re

from bittern.errors import OptionError
from bittern.spark.sink.staging import local_path

_REMOTE = re.compile(r"s3a://(?P<bucket>[^/?#]+)(?:/(?P<key>[^?#]*))?")
_SYNONYMS = re.compile(r"s3n?://")


def remote_place(path: str | os.PathLike[str], what: str) -> str | None:
    """The URI of a folder of an object store, without a slash at its end; None for a path.

    ``what`` it is for stands in the OptionError for storage that is neither.
    """
    text = os.fspath(path)
    found = _REMOTE.fullmatch(text)
    if found is None:
        if text.startswith("s3a:"):
            raise OptionError(
                f"{what} must be s3a://bucket/folder, and {text} has no bucket or has options: "
                f"what Spark needs to reach a bucket are its settings spark.hadoop.fs.s3a.*"
            )
        if _SYNONYMS.match(text):
            raise OptionError(
                f"{what} is {text}, which names S3 as Spark does not: write s3a://bucket/folder"
            )
        local_path(text, what)
        return None
    parts = [part for part in (found["key"] or "").split("/") if part]
    if not parts or {".", ".."} & {*parts}:
        raise OptionError(f"{what} must be a folder in a bucket, s3a://bucket/folder, not {text}")
    return "/".join(["s3a:/", found["bucket"], *parts])
