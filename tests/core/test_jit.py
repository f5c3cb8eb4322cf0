"""Compiled kernels on disk: good as long as nothing that they were compiled from changes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

from steady import PATIENCE

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


def run(folder: Path) -> tuple[int, int]:
    """What the kernel says, and how often it came from disk."""
    source = "import parts.kernels"
    shown = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    ).stdout
    number, hits = shown.split()
    return int(number), int(hits)


def test_a_kernel_is_compiled_again_when_anything_that_it_uses_changes(tmp_path: Path) -> None:
    """Its own file stays the same; a function in another one changes, and a constant in a third."""
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "__init__.py").write_text("")
    (parts / "kernels.py").write_text(KERNEL)
    (parts / "steps.py").write_text(STEPS.format(factor=1))
    (parts / "sizes.py").write_text("SIZE = 10\n")
    assert run(tmp_path) == (11, 0)
    assert run(tmp_path) == (11, 1)
    (old,) = tmp_path.rglob("*.nbc")
    (parts / "steps.py").write_text(STEPS.format(factor=2))
    assert run(tmp_path) == (21, 0)
    # Under names of their own, or an index whose writer was killed would lead to the older code.
    (new,) = {*tmp_path.rglob("*.nbc")} - {old}
    new.unlink()
    assert run(tmp_path) == (21, 0)
    (parts / "sizes.py").write_text("SIZE = 100\n")
    assert run(tmp_path) == (201, 0)
    assert run(tmp_path) == (201, 1)


def test_what_an_older_release_kept_is_compiled_again_if_it_cannot_be_read(tmp_path: Path) -> None:
    """A signature names a class, which has another name by now; or the file is damaged."""
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "__init__.py").write_text("")
    (parts / "kernels.py").write_text(KERNEL)
    (parts / "steps.py").write_text(STEPS.format(factor=1))
    (parts / "sizes.py").write_text("SIZE = 10\n")
    assert run(tmp_path) == (11, 0)
    (index,) = tmp_path.rglob("*.nbi")
    with index.open("rb") as file:
        pickle.load(file)  # the version of Numba
        length = file.tell()
    for rest in (b"cparts.kernels\nGone\n.", b"\x80"):
        index.write_bytes(index.read_bytes()[:length] + rest)
        assert run(tmp_path) == (11, 0)
        assert run(tmp_path) == (11, 1)
    (code,) = tmp_path.rglob("*.nbc")
    for damaged in (b"", b"\x80", code.read_bytes()[:100]):
        code.write_bytes(damaged)
        assert run(tmp_path) == (11, 0)
        assert run(tmp_path) == (11, 1)
    code.unlink()
    code.mkdir()  # nothing can be written there
    assert run(tmp_path) == (11, 0)
