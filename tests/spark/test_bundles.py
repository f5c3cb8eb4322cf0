"""Kernels that the driver has compiled: executors on fresh hosts run these, and no others."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import bittern
from bittern import kept
from bittern.spark.snapshots import bundles, store
from bittern.spark.snapshots.bundles import BundleRef
from bittern.spark.snapshots.node_cache import SnapshotRef
from spark_jobs import world
from spark_sessions import TESTS, Session

PACKAGE = Path(bittern.__file__).parent


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> dict[bytes, bytes]:
    """What a process has taken that has taken nothing yet."""
    taken: dict[bytes, bytes] = {}
    monkeypatch.setattr(kept, "_taken", taken)
    monkeypatch.setattr(bundles, "_known", set())
    return taken


def test_a_bundle_is_taken_by_its_digest_and_once(tmp_path: Path, fresh: dict[Any, Any]) -> None:
    data = kept.bundle([(b"k" * 16, b"code"), (b"m" * 16, b"")])
    file = tmp_path / "any name"
    file.write_bytes(data)
    ref = BundleRef(bundles._digest(data), str(file))
    bundles.take(ref)
    assert fresh == {b"k" * 16: b"code", b"m" * 16: b""}
    file.unlink()
    fresh.clear()
    bundles.take(ref)
    assert not fresh


@pytest.mark.parametrize("damage", ["changed", "shorter", "foreign", "missing"])
def test_bytes_that_are_not_the_drivers_are_never_run(
    tmp_path: Path, fresh: dict[Any, Any], caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    data = kept.bundle([(b"k" * 16, b"code" * 99)])
    found = {
        "changed": data[:-1] + bytes([data[-1] ^ 1]),
        "shorter": data[:-1],
        "foreign": kept.bundle([(b"k" * 16, b"other code")]),
    }
    file = tmp_path / "bundle"
    if damage in found:
        file.write_bytes(found[damage])
    with caplog.at_level(logging.WARNING, "bittern"):
        bundles.take(BundleRef(bundles._digest(data), str(file)))
    assert not fresh
    assert "compiled" in caplog.text


def test_an_artifact_that_this_process_cannot_have_is_no_error(
    fresh: dict[Any, Any], caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("0123.kernels", "../../etc/passwd"):
        bundles.take(BundleRef(name, artifact=name))
    assert not fresh
    assert caplog.text.count("compiled") == 2


def test_kernels_go_where_snapshots_go_if_executors_may_be_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = kept.bundle([(b"k" * 16, b"code")])
    monkeypatch.setattr(bundles, "packed", lambda: (bundles._digest(data), data))
    ref = SnapshotRef("0" * 32)
    monkeypatch.setattr(store, "_is_local", lambda _: True)
    assert store.with_kernels(None, ref, str(tmp_path)).kernels is None
    monkeypatch.setattr(store, "_is_local", lambda _: False)
    found = store.with_kernels(None, ref, str(tmp_path)).kernels
    assert found is not None
    assert Path(found.uri).read_bytes() == data
    Path(found.uri).write_bytes(b"damaged")
    assert store.with_kernels(None, ref, str(tmp_path)).kernels == found
    assert Path(found.uri).read_bytes() == data
    # Old ones are removed with old snapshots.
    store.clean(tmp_path, 60)
    assert Path(found.uri).exists()
    os.utime(found.uri, (0, 0))
    store.clean(tmp_path, 60)
    assert not Path(found.uri).exists()
    # A store that cannot be written is one of which executors get the snapshot alone.
    (tmp_path / "file").touch()
    assert store.with_kernels(None, ref, str(tmp_path / "file")).kernels is None


@pytest.mark.spark
@pytest.mark.parametrize("where", ["artifacts", "store"])
def test_executors_on_a_fresh_host_compile_nothing(tmp_path: Path, where: str) -> None:
    """Their package was never used, and what they compile would be in a folder of their own."""
    package, home = tmp_path / "package", tmp_path / "home"
    shutil.copytree(PACKAGE, package / "bittern", ignore=shutil.ignore_patterns("__pycache__"))
    home.mkdir()
    made = world.make(tmp_path / "world", 120, 200)
    conf = {
        "spark.executorEnv.PYTHONPATH": f"{package}{os.pathsep}{TESTS}",
        "spark.executorEnv.PYTHONDONTWRITEBYTECODE": "1",
        "spark.executorEnv.NUMBA_CACHE_DIR": str(home),
    }
    asked = {} if where == "artifacts" else {"store": str(tmp_path / "store")}
    with Session("local-cluster", tmp_path / "session", conf) as session:
        found = session.call("spark_jobs.parity:match", folder=str(made.folder), **asked)
    assert found == made.answers["events"]
    compiled = [path.name for path in tmp_path.rglob("*.nbc")]
    assert compiled == []
