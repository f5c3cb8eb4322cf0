"""Compiled kernels on disk: good as long as nothing that they were compiled from changes."""

from __future__ import annotations

import contextlib
import importlib
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bittern.jit  # noqa: F401  for those who are forked
from dying import Call, forks_of

KERNEL = """
from bittern.jit import i8, kernel
from parts.steps import step

@kernel(i8, i8)
def run(number):
    return step(number)

if __name__ == "parts.kernels":
    print(run(1), sum(run._dispatcher.stats.cache_hits.values()))
"""
STEPS = """
from bittern.jit import inline
from parts.sizes import SIZE

@inline
def step(number):
    return number + SIZE * {factor}
"""


Run = Callable[[], tuple[int, int]]


def import_parts(folder: str) -> None:
    """Import the kernel, and write down what it says."""
    sys.dont_write_bytecode = True  # which would go by the seconds in which a source has changed
    sys.path.insert(0, folder)
    warnings.simplefilter("error")
    with Path(folder, "shown").open("w") as shown, contextlib.redirect_stdout(shown):
        importlib.import_module("parts.kernels")


@pytest.fixture(scope="module")
def processes() -> Iterator[Call]:
    """Each a new one, as far as kernels go; Numba is there already."""
    with forks_of(import_parts) as call:
        yield call


@pytest.fixture
def run(processes: Call, tmp_path: Path) -> Run:
    def one() -> tuple[int, int]:
        """What the kernel says, and how often it came from disk."""
        assert processes(str(tmp_path)) == 0
        number, hits = (tmp_path / "shown").read_text().split()
        return int(number), int(hits)

    return one


def test_a_kernel_is_compiled_again_when_anything_that_it_uses_changes(
    tmp_path: Path, run: Run
) -> None:
    """Its own file stays the same; a function in another one changes, and a constant in a third."""
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "__init__.py").write_text("")
    (parts / "kernels.py").write_text(KERNEL)
    (parts / "steps.py").write_text(STEPS.format(factor=1))
    (parts / "sizes.py").write_text("SIZE = 10\n")
    assert run() == (11, 0)
    assert run() == (11, 1)
    (old,) = tmp_path.rglob("*.nbc")
    (parts / "steps.py").write_text(STEPS.format(factor=2))
    assert run() == (21, 0)
    # Under names of their own, or an index whose writer was killed would lead to the older code.
    (new,) = {*tmp_path.rglob("*.nbc")} - {old}
    new.unlink()
    assert run() == (21, 0)
    (parts / "sizes.py").write_text("SIZE = 100\n")
    assert run() == (201, 0)
    assert run() == (201, 1)


def test_what_an_older_release_kept_is_compiled_again_if_it_cannot_be_read(
    tmp_path: Path, run: Run
) -> None:
    """A signature names a class, which has another name by now; or the file is damaged."""
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "__init__.py").write_text("")
    (parts / "kernels.py").write_text(KERNEL)
    (parts / "steps.py").write_text(STEPS.format(factor=1))
    (parts / "sizes.py").write_text("SIZE = 10\n")
    assert run() == (11, 0)
    (index,) = tmp_path.rglob("*.nbi")
    with index.open("rb") as file:
        pickle.load(file)  # the version of Numba
        length = file.tell()
    for rest in (b"cparts.kernels\nGone\n.", b"\x80"):
        index.write_bytes(index.read_bytes()[:length] + rest)
        assert run() == (11, 0)
        assert run() == (11, 1)
    (code,) = tmp_path.rglob("*.nbc")
    for damaged in (b"", b"\x80", code.read_bytes()[:100]):
        code.write_bytes(damaged)
        assert run() == (11, 0)
        assert run() == (11, 1)
    code.unlink()
    code.mkdir()  # nothing can be written there
    assert run() == (11, 0)
