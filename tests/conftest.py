"""What test modules share: hypothesis profiles, one Spark session per run, the command line.

The session is lazy: a run that selects no test marked ``spark`` never starts a JVM. Where Java 17
or pyspark is missing those tests skip, and the reason is printed by ``pytest -ra``.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from spark_sessions import quick_settings, why_no_spark

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Share tests out between two processes (``make test``), whole files at a time.

    What uses the one Spark session stays together, and comes first since it takes longest.
    """
    groups = {
        item: "spark"
        if item.get_closest_marker("spark") and item.path.stem != "test_spark_faults"
        else item.path.stem
        for item in items
    }
    first = {"spark": 0, "test_spark_faults": 1}
    items.sort(key=lambda item: first.get(groups[item], 2))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(groups[item]))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Start the one local Spark session of the run: quick to start, UTC, loopback only."""
    reason = why_no_spark()
    if reason is not None:
        pytest.skip(f"NO SPARK: {reason}")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers run whatever python3 is on PATH
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(prefix="bittern-spark-") as scratch:
        os.environ["BITTERN_CACHE_DIR"] = f"{scratch}/cache"  # of this run alone
        builder = SparkSession.builder.master("local[2]").appName("bittern-tests")
        session = builder.config(map=quick_settings(Path(scratch))).getOrCreate()
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
