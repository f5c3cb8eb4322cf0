"""The house keeps its order: imports point one way, and what should stay light does."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "bittern"
#: From left to right; a room imports itself and rooms to its left.
ROOMS = (
    "language",
    "model",
    "stabbing",
    "matching",
    "history",
    "engine",
    "catalog",
    "spark",
    "service",
)
#: What every room may import (docs/decisions/0001-kernels.md).
SHARED = ("bittern.errors", "bittern.files", "bittern.jit")
MAX_LINES = 420
#: Longer ones, which are to become shorter and may not grow.
EXCEPTIONS: dict[Path, int] = {}

MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def imported(module: Path) -> set[str]:
    """Full names that a module imports, wherever in it, names of a package included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def is_within(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def test_every_module_is_in_a_room() -> None:
    outside = {path.name for path in MODULES if len(path.parts) == 1}
    assert outside == {"__init__.py", "errors.py", "files.py"}
    assert {path.parts[0] for path in MODULES if len(path.parts) > 1} == set(ROOMS)


@pytest.mark.parametrize("module", [m for m in MODULES if len(m.parts) > 1], ids=str)
def test_imports_only_point_left(module: Path) -> None:
    left = ROOMS[: ROOMS.index(module.parts[0]) + 1]
    allowed = [*SHARED, *(f"bittern.{room}" for room in left)]
    own = {name for name in imported(module) if is_within(name, "bittern")}
    if module.parts[0] == ROOMS[-1]:
        own.discard("bittern")  # the last room is a user like any other
    assert not {name for name in own if not any(is_within(name, each) for each in allowed)}


@pytest.mark.parametrize("module", ["errors.py", "files.py", "jit.py"])
def test_what_everybody_imports_imports_no_room(module: str) -> None:
    assert not {name for name in imported(Path(module)) if is_within(name, "bittern")}


def users(library: str) -> set[Path]:
    return {path for path in MODULES if any(is_within(n, library) for n in imported(path))}


def test_only_jit_imports_numba() -> None:
    assert users("numba") == {Path("jit.py")}


@pytest.mark.parametrize(("library", "room"), [("pyspark", "spark"), ("sqlalchemy", "catalog")])
def test_only_one_room_imports(library: str, room: str) -> None:
    assert {path.parts[0] for path in users(library)} == {room}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_modules_are_short_enough_to_read(module: Path) -> None:
    lines = (PACKAGE / module).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= EXCEPTIONS.get(module, MAX_LINES)


@pytest.mark.parametrize(
    "start", ["import bittern", "import bittern.service.cli", "import bittern.spark"]
)
def test_importing_is_light(start: str) -> None:
    code = f"import sys; {start}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "bittern" in loaded
    assert not loaded & {"numpy", "pyarrow", "numba", "pandas", "pyspark", "re2", "sqlalchemy"}


def test_facade_has_few_names_and_all_of_them_exist() -> None:
    import bittern

    assert len(bittern.__all__) <= 8
    assert all(getattr(bittern, name) for name in bittern.__all__)
