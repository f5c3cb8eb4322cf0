"""What test modules share: hypothesis profiles, one Spark session per run, the command line.

The session is lazy: a run that selects no test marked ``spark`` never starts a JVM. Where Java 17
or pyspark is missing those tests skip, and the reason is printed by ``pytest -ra``.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The first call of a kernel compiles it, so a deadline per example would measure the compiler.
settings.register_profile(
    "default",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("long", settings.get_profile("default"), max_examples=2_000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default")
)

_JAVA_NEEDED = 17


def _why_no_spark() -> str | None:
    """Say what is missing for a Spark session, or None when nothing is."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed (pip install 'bittern[spark]')"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return f"no Java found (JAVA_HOME={home!r}); Spark needs Java {_JAVA_NEEDED} or later"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', told)
    if version is None or int(version.group(1)) < _JAVA_NEEDED:
        return f"Spark needs Java {_JAVA_NEEDED} or later, {java} says: {told.strip()}"
    return None


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Start the one local Spark session of the run: quick to start, UTC, loopback only."""
    reason = _why_no_spark()
    if reason is not None:
        pytest.skip(f"NO SPARK: {reason}")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers run whatever python3 is on PATH
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(prefix="bittern-spark-") as scratch:
        session = (
            SparkSession.builder.master("local[2]")
            .appName("bittern-tests")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            # A short-lived JVM: no second compiler tier, no parallel collector.
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.adaptive.enabled", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.execution.arrow.pyspark.validateSchema.enabled", "true")
            .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
            .config("spark.local.dir", f"{scratch}/local")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture
def bittern_command(capsys, monkeypatch):
    """Call ``bittern`` with arguments: the exit code, standard output and standard error."""
    from bittern.service.cli import main

    def call(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            code = exit_.code
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call
