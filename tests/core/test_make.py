"""``make test`` and ``make test-all`` set up what they can have, and go on without the rest."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = {
    "postgresql.sh": "WITH POSTGRESQL",
    "kafka_jars.sh": "WITH KAFKA",
    "judge_jars.sh": "BESIDE OTHER SYSTEMS' MATCHERS",
    "s3.sh": "WITH S3",
    "chromium.sh": "WITH A BROWSER",
}


def script(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The Makefile beside programs that only note that they were called, and with what."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    note = f'echo "$(basename $0) $*" >> {tmp_path}/notes'
    for name in ("scripts/setup.sh", *(f"scripts/{each}" for each in NEEDED), ".venv/bin/python"):
        script(tmp_path / name, note)
    script(tmp_path / "scripts" / "java.sh", note, "echo /java")
    return tmp_path


def make(folder: Path, *arguments: str) -> tuple[int, str, list[str]]:
    """Run make: its exit code, what it said, and what was called."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", *arguments], cwd=folder, env=outside, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr, (folder / "notes").read_text().splitlines()


@pytest.mark.parametrize("target", ["test", "test-all"])
def test_what_some_tests_need_is_there_before_they_start(folder: Path, target: str) -> None:
    code, said, notes = make(folder, target, "TEST_ARGS=-k this")
    assert (code, said) == (0, "")
    assert notes[:6] == [
        "setup.sh .venv dev",
        "postgresql.sh ",
        "kafka_jars.sh .kafka .venv/bin/python",
        "judge_jars.sh .judges",
        "s3.sh .s3 .venv/bin/python",
        "chromium.sh ",
    ]
    assert {"python -m bittern.service.cli warm-up", "python tests/class_archive.py"} < {*notes}
    assert notes[-1].startswith("python -m pytest ")
    assert notes[-1].endswith(" -k this")


def test_the_quick_tests_are_some_of_all_tests(folder: Path) -> None:
    """``make test`` only chooses: folders and a marker more, and nothing else differs."""
    _, _, (*_, some) = make(folder, "test")
    _, _, (*_, every) = make(folder, "test-all")
    assert some.startswith(every.rstrip())
    assert some.removeprefix(every.rstrip()).split()[:2] == ["tests/core", "tests/spark"]
    assert "tests" not in every


@pytest.mark.parametrize("name", NEEDED)
def test_tests_run_without_what_cannot_be_had(folder: Path, name: str) -> None:
    script(folder / "scripts" / name, "echo it is nowhere >&2; exit 1")
    code, said, notes = make(folder, "test")
    assert code == 0
    assert said.splitlines() == [
        "it is nowhere",
        f"bittern: TESTS {NEEDED[name]} ARE SKIPPED, see above",
    ]
    assert notes[-1].startswith("python -m pytest ")


def test_tests_run_without_an_archive_of_classes(folder: Path) -> None:
    note = f'echo "python $*" >> {folder}/notes'
    script(folder / ".venv" / "bin" / "python", note, '[ "$1" != tests/class_archive.py ]')
    code, said, notes = make(folder, "test")
    assert (code, said) == (0, "bittern: NO ARCHIVE OF CLASSES, Spark starts slowly\n")
    assert notes[-1].startswith("python -m pytest ")


def test_jars_that_are_there_are_not_got_again(folder: Path) -> None:
    """Neither Java nor Maven is asked for; the pyspark that is to use them is."""
    for name in ("kafka_jars.sh", "kafka-jars.xml", "maven.sh"):
        shutil.copy(ROOT / "scripts" / name, folder / "scripts")
    shutil.copytree(folder / "scripts", folder / ".kafka")
    listed = (folder / "scripts" / "kafka-jars.xml").read_text()
    wanted = listed.partition("<pyspark.version>")[2].partition("<")[0]
    script(folder / ".venv" / "bin" / "python", f"echo {wanted}")
    script(folder / "scripts" / "java.sh", "exit 1")
    command = ["scripts/kafka_jars.sh", ".kafka", ".venv/bin/python"]
    subprocess.run(command, cwd=folder, check=True)
    script(folder / ".venv" / "bin" / "python", "echo 3.0.0")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"the Kafka connector for pyspark {wanted}, and 3.0.0 is installed" in done.stderr
