"""Python workers that cannot run bittern are said in a sentence, with the remedy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from spark_sessions import Session, why_no_spark

pytest.importorskip("pyspark")
from bittern.spark import session, workers

#: Runs when a Python starts: from then on it has everything but bittern.
WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "bittern":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Without())
"""


@pytest.fixture
def other_python(tmp_path: Path) -> Path:
    """A Python of the driver's release that has all its packages except ours."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    python = tmp_path / "python3"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    return python


@pytest.mark.spark
def test_workers_without_bittern_are_said_in_a_sentence(tmp_path: Path, other_python: Path) -> None:
    if why_no_spark() is not None:
        pytest.skip(f"NO SPARK: {why_no_spark()}")
    env = {"PYSPARK_PYTHON": str(other_python)}
    with Session("classic", tmp_path / "session", env=env) as child:
        raised = child.call("spark_jobs.workers:attempts", folder=str(tmp_path))
    sentence = (
        f"Spark's Python workers cannot run bittern (No module named 'bittern'): set "
        f"PYSPARK_PYTHON={sys.executable} before Spark starts, or install bittern in the Python "
        f"that they run"
    )
    assert raised == {call: ["OptionError", sentence] for call in raised}
    assert len(raised) == 6
    assert not (tmp_path / "out").exists()


class Context:
    """A context that would notice a job."""

    def __init__(self, master: str, python: str) -> None:
        self.master, self.pythonExec = master, python


class Refusing:
    """A session whose jobs are counted and not run."""

    def __init__(self, context: Context) -> None:
        self.sparkContext = context
        self.jobs = 0

    def range(self, *_: int) -> Any:
        self.jobs += 1
        return self

    def mapInArrow(self, *_: Any) -> Any:  # noqa: N802
        return self

    def collect(self) -> list[Any]:
        return []


def test_only_another_python_on_this_machine_is_tried_and_once(other_python: Path) -> None:
    for master, python, jobs in [
        ("local[2]", sys.executable, 0),
        ("yarn", str(other_python), 0),
        ("local[2]", str(other_python), 1),
        ("local[2]", "no-such-python", 1),
    ]:
        spark: Any = Refusing(Context(master, python))
        for _ in range(2):
            workers.check_workers(spark)
        assert spark.jobs == jobs


@pytest.mark.parametrize(
    "said",
    [
        "No module named 'bittern.spark'",
        "[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed; however, it was not found.",
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than the driver.",
    ],
)
def test_what_spark_says_of_workers_gets_the_remedy(said: str) -> None:
    reason = session.reason(ValueError(f"Job aborted.\nTraceback\nSomeError: {said}\n\tat java"))
    assert said.rstrip(".") in reason
    assert f"PYSPARK_PYTHON={sys.executable}" in reason


def test_what_a_users_function_lacks_is_not_ours() -> None:
    failure = ValueError("Traceback\nModuleNotFoundError: No module named 'shop'\n")
    assert workers.lacking(failure) is None
