"""An archive of Spark's classes, which JVMs of tests map into memory.

A JVM that reads, checks and links all of them for itself spends half of its short life on that. So
``make test`` has one JVM use Spark for a while and write down what it has loaded (class data
sharing, ``python tests/class_archive.py``), and all others begin with that. They do without where
there is none; an archive is of one Java and one pyspark, and has another name with others.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from steady import PATIENCE

_FOLDER = Path(__file__).parents[1] / ".jvm"
#: No second compiler tier, no parallel collector: they pay in JVMs that live longer.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: Nor are classes checked that are not in the archive, or counters kept that others can read.
_UNCHECKED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -XX:-UsePerfData"


def jvm_options() -> str:
    """Options of a JVM that starts fast, and runs Spark for a short while."""
    archive = _archive()
    if archive is None or not archive.exists():
        return SHORT_LIVED
    # A JVM with other classes, such as a broker's, says on its standard output that it has no use
    # for the archive.
    return f"{SHORT_LIVED} {_UNCHECKED} -XX:SharedArchiveFile={archive} -Xlog:cds*=off"


def _archive() -> Path | None:
    """Where the archive of this Java and this pyspark is, once somebody has made it."""
    home = os.environ.get("JAVA_HOME")
    try:
        import pyspark

        used = [Path(home or "none", "lib", "modules"), Path(pyspark.__file__)]
        parts = [f"{file.resolve()} {file.stat().st_mtime_ns}" for file in used]
    except (ImportError, OSError):
        return None
    key = hashlib.sha256("\n".join([pyspark.__version__, *parts]).encode()).hexdigest()[:16]
    path = _FOLDER / f"{key}.jsa"
    return None if " " in str(path) else path  # which options are separated by


def make() -> None:
    """Make the archive of this Java and this pyspark, if there is none, in place of all others."""
    archive = _archive()
    if archive is None or archive.exists():
        return
    _FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_FOLDER) as scratch:
        partial = Path(scratch, "classes")
        _use_spark(Path(scratch), f"{SHORT_LIVED} -XX:ArchiveClassesAtExit={partial} -Xlog:all=off")
        for other in _FOLDER.glob("*.jsa"):
            other.unlink(missing_ok=True)  # those who have mapped it keep it
        partial.rename(archive)


def _use_spark(scratch: Path, options: str) -> None:
    """A little of all that tests do, in a JVM with these options, until that has ended."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from spark_sessions import quick_settings

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ["SPARK_SUBMIT_OPTS"] = options
    settings = quick_settings(scratch)
    spark: Any = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    events = spark.range(0, 20, 1, 2).selectExpr(
        "id", "array(id, 1) ids", "named_struct('a', string(id)) s", "map('k', id / 2) m"
    )
    events.write.parquet(str(scratch / "events"))
    events.selectExpr("id", "to_json(s) text").write.json(str(scratch / "texts"))
    read = spark.read.parquet(str(scratch / "events"))
    mapped = read.mapInArrow(_same, read.schema).selectExpr("id % 3 k", "explode(ids) one")
    mapped.groupBy("k").applyInArrow(_same, "k long, one long").orderBy("one").collect()
    read.join(spark.read.json(str(scratch / "texts")), "id").groupBy("text").count().collect()
    spark.createDataFrame([(1, "x")], "id int, text string").toArrow()
    stream = spark.readStream.schema(read.schema).parquet(str(scratch / "events"))
    query = (
        stream.writeStream.foreachBatch(
            lambda batch, _: batch.mapInArrow(_same, batch.schema).count()
        )
        .option("checkpointLocation", str(scratch / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(PATIENCE)
    jvm = SparkContext._gateway.proc
    spark.stop()
    with contextlib.suppress(Exception):  # py4j has several for a JVM that goes
        SparkContext._gateway.shutdown()
    jvm.stdin.close()
    jvm.wait(PATIENCE)


def _same(rows: Any) -> Any:
    return rows


if __name__ == "__main__":
    make()
