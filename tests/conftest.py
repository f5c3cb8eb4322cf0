"""What test modules share: how random tests try, disks, one Spark session, the command line.

Folders are tiers: ``core`` needs no Spark, ``spark`` is everything on Spark and in streams,
``faults`` kills, interrupts and damages, ``papers`` holds the structures of the literature to their
papers, and ``bench`` runs the benchmarks small. Modules beside this one are helpers of all of them.

The session is lazy: a run that selects no test marked ``spark`` never starts a JVM. Where Java 17
or pyspark is missing those tests skip, and the reason is printed by ``pytest -ra``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import logging
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from class_archive import jvm_options
from judges import judges  # noqa: F401  a fixture
from kafka_broker import kafka  # noqa: F401  a fixture
from postgres import postgres  # noqa: F401 (a fixture)
from s3_server import s3  # noqa: F401  a fixture
from spark_sessions import quick_settings, why_no_spark
from steady import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The first call of a kernel compiles it, so a deadline per example would measure the compiler; and
#: how much a strategy filters is chance, which is no reason to fail. Tests say how many examples
#: they need relative to this number (``effort.py``).
settings.register_profile(
    "default",
    deadline=None,
    max_examples=25,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.large_base_example,
    ],
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("long", settings.get_profile("default"), max_examples=2_000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default")
)


#: Names the files that take long, the longest first (``scripts/test_times.py`` writes it).
LONGEST = Path(__file__).with_name("longest.txt")


#: What the name of a test must not have: no two processes would agree about it.
ADDRESS = re.compile(" at 0x[0-9a-f]")


def pytest_configure() -> None:
    """Drivers' JVMs start fast, in whatever process a test starts them."""
    os.environ["SPARK_SUBMIT_OPTS"] = jvm_options()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """What is made while tests are collected stays: looking for garbage there takes seconds.

    Nor is it gone through again later; and what tests make is gone through less often than Python
    does, which takes a tenth of their time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first, then the others that use Spark, then the rest.

    Whole files are given to two processes, in this order: what a file sets up (a cluster, a world)
    is set up once, and short files at the end leave neither process waiting.
    """
    addressed = [item.nodeid for item in items if ADDRESS.search(item.nodeid)]
    if addressed:
        raise pytest.UsageError(
            f"each process would give these tests other names, as they have an address: {addressed}"
        )
    place = {name: n for n, name in enumerate(LONGEST.read_text(encoding="utf-8").split())}
    with_spark = {item.path for item in items if item.get_closest_marker("spark")}
    last = len(place)
    items.sort(key=lambda item: place.get(item.path.stem, last + (item.path not in with_spark)))


@pytest.fixture(scope="module", autouse=True)
def _disk(request: pytest.FixtureRequest) -> Iterator[None]:
    """Only tests of faults wait for the disk; what the others write need not survive a crash."""
    if request.path.parent.name == "faults":
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # which refuses what is no open file, too
        for name in ("bittern.catalog.database", "bittern.history.documents.file"):
            with contextlib.suppress(ImportError):
                module = importlib.import_module(name)
                patch.setattr(module, "_PRAGMAS", (*module._PRAGMAS, "PRAGMA synchronous = OFF"))
        yield


@pytest.fixture(scope="module", autouse=True)
def _logging() -> Iterator[None]:
    """Programs that a module runs in this process may turn logging off: the next one wants it."""
    yield
    logging.disable(logging.NOTSET)


#: Modules whose short lists are matched one by one, as users' are.
ONE_BY_ONE = ("test_one_event", "test_docs", "test_live", "test_single_bench")


@pytest.fixture(scope="module", autouse=True)
def _batches(request: pytest.FixtureRequest) -> Iterator[None]:
    """Elsewhere a list is a batch: most lists of tests are short, and batches are what they try."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.stem not in ONE_BY_ONE:
            patch.setattr("bittern.engine.matcher.FEW", 0)
        yield


@pytest.fixture(scope="session")
def running_spark() -> Iterator[Callable[[], Any]]:
    """Gives the one local Spark session of the process; starts it if there is none, or none left.

    It is quick to start, in UTC, and listens on loopback only.
    """
    reason = why_no_spark()
    if reason is not None:
        pytest.skip(f"NO SPARK: {reason}")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers run whatever python3 is on PATH
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_AUTH_SOCKET_TIMEOUT"] = str(PATIENCE)
    with tempfile.TemporaryDirectory(prefix="bittern-spark-") as scratch:
        os.environ["BITTERN_CACHE_DIR"] = f"{scratch}/cache"  # of this run alone
        session: Any = None

        def running() -> Any:
            nonlocal session
            if session is None or not runs(session):
                builder = SparkSession.builder.master("local[2]").appName("bittern-tests")
                session = builder.config(map=quick_settings(Path(scratch))).getOrCreate()
                session.sparkContext.setLogLevel("OFF")
            return session

        yield running
        if session is not None and runs(session):
            session.stop()


def runs(session: Any) -> bool:
    """Is a session's JVM there? If not, it is forgotten, and the next session starts another."""
    from pyspark import SparkContext

    try:
        session.range(1).count()
    except Exception:  # noqa: BLE001  py4j and pyspark have several for it
        with contextlib.suppress(Exception):
            session.stop()
        with SparkContext._gateway.proc as jvm:  # closes the pipe to it, and waits for it
            jvm.kill()
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        type(session)._instantiatedSession = type(session)._activeSession = None
        return False
    return True


@pytest.fixture(scope="module")
def spark(running_spark: Callable[[], Any]) -> Iterator[Any]:
    """Give a module a Spark session, whatever has become of the one that another has failed with.

    Streams that it leaves behind are stopped.
    """
    session = running_spark()
    yield session
    with contextlib.suppress(Exception):  # the session is lost: the next module gets another
        for query in session.streams.active:
            query.stop()


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
