"""Compiled kernels as bytes: another process runs them, or compiles where anything differs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.smoke

KERNELS = """
from bittern.jit import i8, kernel
from parts.inner import MORE

@kernel(i8, i8)
def more(number):
    return number + MORE
"""
SEND = """
import sys
from pathlib import Path
from bittern import kept
from parts.kernels import more
assert more.packed() is None, "nothing is compiled yet"
more.prepare()
key, code = more.packed()
Path(sys.argv[1]).write_bytes(kept.bundle([(key, eval(sys.argv[2])), (b"k" * 16, b"other")]))
"""
RUN = """
import sys
from pathlib import Path
from bittern import kept
kept.take(Path(sys.argv[1]).read_bytes())
from parts.kernels import more
print(more(1), sum(more._dispatcher.stats.cache_hits.values()))
"""


def process(folder: Path, program: str, *arguments: str, **variables: str) -> str:
    known = {**os.environ, "PYTHONPATH": str(folder), **variables}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=known, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    package = tmp_path / "parts"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text("MORE = 1\n")
    (package / "kernels.py").write_text(KERNELS)
    return tmp_path


@pytest.fixture
def sent(parts: Path) -> Path:
    bundle = parts / "bundle"
    process(parts, SEND, str(bundle), "code", NUMBA_CACHE_DIR=str(parts / "sender"))
    return bundle


def test_another_process_runs_what_was_compiled_here(parts: Path, sent: Path) -> None:
    """Also one that could keep nothing itself."""
    for place in (parts / "empty", Path("/dev/null")):
        assert process(parts, RUN, str(sent), NUMBA_CACHE_DIR=str(place)) == "2 1\n"
    assert not list((parts / "empty").rglob("*.nbc"))


def test_what_was_compiled_from_other_sources_or_for_another_processor_is_compiled_here(
    parts: Path, sent: Path
) -> None:
    place = str(parts / "generic")
    told = process(parts, RUN, str(sent), NUMBA_CACHE_DIR=place, NUMBA_CPU_NAME="generic")
    assert told == "2 0\n"
    (parts / "parts" / "inner.py").write_text("MORE = 2\n")
    assert process(parts, RUN, str(sent), NUMBA_CACHE_DIR=str(parts / "edited")) == "3 0\n"


@pytest.mark.parametrize("damage", ["b''", "code[:999]", "b'cos\\nsystem\\n.'"])
def test_code_that_cannot_be_loaded_is_compiled_here(parts: Path, damage: str) -> None:
    bundle = parts / "bundle"
    process(parts, SEND, str(bundle), damage, NUMBA_CACHE_DIR=str(parts / "sender"))
    assert process(parts, RUN, str(bundle), NUMBA_CACHE_DIR=str(parts / "empty")) == "2 0\n"
