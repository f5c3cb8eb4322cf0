"""Workers, executors and drivers that die, tasks that run twice, hosts that race: same answers.

Each job has a stage that makes trouble at a chosen place (``spark_jobs/faults.py``) and leaves
files that prove it; then its rows must be the oracle's, each match exactly once. The cluster has
two hosts, 127.0.0.1 and 127.0.0.2, since Spark never copies a slow task to the same host.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq
import pytest

import bittern
from spark_jobs import world
from spark_sessions import Session, why_no_spark
from steady import wait_until

pytestmark = pytest.mark.spark

Asked: TypeAlias = dict[str, Any]

N_HOSTS = 2
CONF = {
    # A task is copied when it takes longer than three seconds and half of the others are done.
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "3s",
    # A batch reaches the next stage when the one after it is there, not when 64 KiB are.
    "spark.buffer.size": "32",
}


@pytest.fixture(scope="module", autouse=True)
def _java() -> None:
    reason = why_no_spark()
    if reason is not None:
        pytest.skip(f"NO SPARK: {reason}")


@pytest.fixture(scope="module")
def cluster(_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    scratch = tmp_path_factory.mktemp("cluster")
    with Session("two hosts", scratch / "session", CONF) as session:
        yield session


@pytest.fixture(scope="module")
def case(cluster: Session, tmp_path_factory: pytest.TempPathFactory) -> world.World:
    """Made while the cluster starts."""
    made = world.make(tmp_path_factory.mktemp("world") / "world", 120, 200)
    assert cluster.call("spark_jobs.faults:executors", n=N_HOSTS)
    return made


@pytest.fixture
def trouble(tmp_path: Path) -> Path:
    folder = tmp_path / "trouble"
    folder.mkdir()
    return folder


def attempts(trouble: Path) -> Counter[int]:
    """How many attempts there were of each partition."""
    return Counter(int(file.name.split("-")[1]) for file in trouble.glob("attempt-*"))


def assert_troubled(trouble: Path, kind: str) -> None:
    """The trouble came, in the midst of a partition, and another attempt of it went to the end."""
    hit = [int(file.name.split("-")[1]) for file in trouble.glob("chosen-*")] or [1]
    assert (trouble / "reached").exists()
    assert (trouble / "killed").exists() == (kind != "slow")
    assert (trouble / f"complete-{hit[0]}").exists()
    assert attempts(trouble)[hit[0]] > 1


@pytest.mark.parametrize("shards", [None, 3])
@pytest.mark.parametrize("kind", ["worker", "executor", "slow"])
def test_before_matching(
    cluster: Session, case: world.World, trouble: Path, kind: str, shards: int | None
) -> None:
    """A Python worker is killed, an executor is killed, a speculative copy wins."""
    asked: Asked = {"kind": kind, "trouble": str(trouble), "shards": shards, "explode": True}
    found = cluster.call("spark_jobs.faults:match", folder=str(case.folder), **asked)
    assert found == case.matches()
    assert_troubled(trouble, kind)


@pytest.mark.parametrize("metrics", [{}, {"observe": "metrics"}], ids=["plain", "observed"])
def test_executor_is_lost_with_what_it_shuffled(
    cluster: Session, case: world.World, trouble: Path, metrics: Asked
) -> None:
    """Killed when part of the result is there: some events are read and routed again.

    Spark then compares the rows that are shuffled again with those that were, in any order, and
    fails the job where they differ; with metrics, the counts of candidates are among them.
    """
    asked: Asked = {"kind": "late", "trouble": str(trouble), "shards": 3, "after": True}
    found = cluster.call("spark_jobs.faults:match", folder=str(case.folder), **asked, **metrics)
    assert found == case.answers["events"]
    assert_troubled(trouble, "late")


@pytest.mark.parametrize("kind", ["worker", "executor", "slow"])
def test_while_tasks_write(
    cluster: Session, case: world.World, trouble: Path, tmp_path: Path, kind: str
) -> None:
    """The table has the files of accepted attempts, one for each partition, and no others."""
    target = tmp_path / "matches"
    asked: Asked = {"kind": kind, "trouble": str(trouble), "target": str(target)}
    written = cluster.call("spark_jobs.faults:write", folder=str(case.folder), **asked)
    assert_table(target, case)
    assert_troubled(trouble, kind)
    files = [file for file in tmp_path.rglob("*.parquet") if file.is_file()]
    assert written == {"files": world.N_FILES, "rows": len(case.matches())}
    assert sorted(file.parent for file in files) == [target] * world.N_FILES


def assert_table(target: Path, case: world.World) -> None:
    table = pq.read_table(target)
    found = sorted(list(row) for row in zip(*table.to_pydict().values(), strict=True))
    assert found == case.matches()


# ------------------------------------------------------------------ drivers


@pytest.fixture(scope="module")
def drivers(
    case: world.World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[list[Session], Path]]:
    """Two drivers, four workers each, and two empty caches: one for both drivers and one for all
    workers, which would find what their driver has put there otherwise.
    """
    scratch = tmp_path_factory.mktemp("drivers")
    env = {"BITTERN_CACHE_DIR": str(scratch / "of drivers")}
    conf = {"spark.executorEnv.BITTERN_CACHE_DIR": str(scratch / "of workers")}
    sessions = [Session("classic", scratch / name, conf, env) for name in ("first", "second")]
    yield sessions, scratch
    for session in sessions:
        session.end()


def test_drivers_race_for_one_copy(
    drivers: tuple[list[Session], Path], case: world.World, tmp_path: Path
) -> None:
    sessions, scratch = drivers
    for session in sessions:
        asked: Asked = {"gate": str(tmp_path), "drivers": len(sessions)}
        session.send("spark_jobs.faults:race", folder=str(case.folder), **asked)
    for session in sessions:
        assert session.receive() == case.answers["events"]
    snapshot = bittern.Index.open(case.folder / "snapshot").id
    for cache in ("of drivers", "of workers"):
        folders = [entry for entry in (scratch / cache).iterdir() if entry.is_dir()]
        assert [folder.name for folder in folders] == [snapshot]
        bittern.Index.open(folders[0], verify=True).check()


def test_driver_dies_while_tasks_write(
    drivers: tuple[list[Session], Path], case: world.World, trouble: Path, tmp_path: Path
) -> None:
    (first, second), _ = drivers
    target = tmp_path / "matches"
    asked: Asked = {"folder": str(case.folder), "target": str(target)}
    first.send("spark_jobs.faults:write", kind="stuck", trouble=str(trouble), **asked)

    def look() -> None:
        assert not first.has_replied(), first.receive()

    wait_until(lambda: (trouble / "reached").exists() and written_somewhere(tmp_path), look)
    first.end()
    assert not target.exists()

    shutil.rmtree(trouble)
    trouble.mkdir()
    second.call("spark_jobs.faults:write", kind="none", trouble=str(trouble), **asked)
    assert_table(target, case)
    assert {file.parent for file in tmp_path.rglob("*.parquet")} == {target}


def written_somewhere(folder: Path) -> bool:
    return any(file.stat().st_size for file in folder.rglob("*.parquet"))
