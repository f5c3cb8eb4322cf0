"""Large objects, which tasks write: pyarrow's file system with the settings of Spark's JVM.

Tasks are Python processes without a way to Hadoop's file systems. pyarrow has one of its own for
S3, and takes as arguments what Hadoop reads from its settings::

    fs.s3a.endpoint, fs.s3a.path.style.access         where, if it is not Amazon's
    fs.s3a.endpoint.region                            else it is asked for
    fs.s3a.access.key, .secret.key, .session.token    else what the process finds by itself: the
                                                      environment, a profile, the host's role

Each may be set for one bucket, as ``fs.s3a.bucket.NAME.endpoint``. An object appears when all of it
was sent. A task that dies leaves parts of an upload, which nobody sees; a rule of the bucket's life
cycle should remove them after some days.
"""

from __future__ import annotations

from typing import Any

from pyarrow import fs
from pyspark.sql import SparkSession

from bittern.errors import OptionError

#: Seconds; by default pyarrow would give up after 1 and 3, which a busy host may take.
_PATIENCE = {"connect_timeout": 15, "request_timeout": 120}
_ANONYMOUS = "AnonymousAWSCredentialsProvider"


def for_tasks(spark: SparkSession, uri: str) -> tuple[fs.FileSystem, str]:
    """The file system that tasks write to, which a closure carries, and the path of a URI in it."""
    path = uri.removeprefix("s3a://")
    bucket = path.partition("/")[0]
    conf: Any = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001

    def of(name: str) -> str | None:
        for key in (f"fs.s3a.bucket.{bucket}.{name}", f"fs.s3a.{name}"):
            found = conf.getPassword(key)  # from the settings or a store of credentials
            if found is not None and (text := "".join(found).strip()):
                return text
        return None

    endpoint, region = of("endpoint"), of("endpoint.region")
    scheme = "http" if of("connection.ssl.enabled") == "false" else "https"
    if endpoint is not None and "://" in endpoint:
        scheme, endpoint = endpoint.rstrip("/").split("://", 1)
    options: dict[str, Any] = {"scheme": scheme, "region": region, **_PATIENCE}
    if endpoint is not None:
        options["endpoint_override"] = endpoint
        options["force_virtual_addressing"] = of("path.style.access") != "true"
    if _ANONYMOUS in (of("aws.credentials.provider") or "").split(",")[0]:
        options["anonymous"] = True
    elif (key := of("access.key")) is not None:
        options |= {"access_key": key, "secret_key": of("secret.key")}
        options["session_token"] = of("session.token")
    try:
        if region is None and endpoint is None:
            options["region"] = fs.resolve_s3_region(bucket)
        return fs.S3FileSystem(**options), path
    except (OSError, ValueError) as error:
        raise OptionError(f"tasks could not reach {uri}: {error}") from error
