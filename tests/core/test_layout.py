"""The house keeps its order: imports point one way, and what should stay light does."""

from __future__ import annotations

import ast
import functools
import re
import runpy
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "bittern"
#: The script that prints the figures of the house.
HOUSE = runpy.run_path(str(ROOT / "scripts" / "house.py"))
#: What every room may import, and what imports no room.
FOUNDATION = (
    *("jit", "kept", "sources", "vectors", "first_use", "processes"),
    *("errors", "files", "options", "arrays", "growing", "notebooks"),
)
#: From left to right; a room imports itself and rooms to its left.
ROOMS = (
    "terms",
    "language",
    "imports",
    "model",
    "stabbing",
    "matching",
    "literature",
    "engine",
    "history",
    "catalog",
    "delivery",
    "spark",
    "service",
)
#: No rooms either: the façade, which loads what it names, and what compiles kernels by name.
BESIDE = ("__init__", "precompile")
MAX_LINES = 450

#: They take more arguments by position than others may; the figure that says why is beside them.
MEASURED = {"verify", "dense_pass"}

MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


@functools.cache
def imported(module: Path) -> set[str]:
    """Full names that a module imports, wherever in it, names of a package included."""
    names: set[str] = set()
    for node in ast.walk(HOUSE["modules"]()[module]):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def is_within(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def users(library: str) -> set[Path]:
    return {path for path in MODULES if any(is_within(n, library) for n in imported(path))}


def test_every_module_is_in_a_room() -> None:
    outside = {path.stem for path in MODULES if len(path.parts) == 1}
    assert outside == {*FOUNDATION, *BESIDE}
    assert {path.parts[0] for path in MODULES if len(path.parts) > 1} == set(ROOMS)


def test_imports_only_point_left() -> None:
    for module in MODULES:
        if module == Path("__init__.py"):
            continue
        room = module.parts[0]
        left = ROOMS[: ROOMS.index(room) + 1] if room in ROOMS else ()
        allowed = [f"bittern.{each}" for each in (*FOUNDATION, *left)]
        own = {name for name in imported(module) if is_within(name, "bittern")}
        if room == ROOMS[-1]:
            own -= {"bittern"}  # the last room is a user like any other
        if room in ROOMS[-2:]:
            own -= {"bittern.precompile"}  # both have kernels compiled ahead
        wrong = {name for name in own if not any(is_within(name, each) for each in allowed)}
        assert not wrong, f"{module} imports {wrong}"


def test_the_product_names_no_literature_in_an_import() -> None:
    """But the command line, of which a part is about a file of the literature's, and the façade.

    The façade loads what it names when it is asked for.
    """
    beside = ("literature", "service", "__init__.py")
    product = {path for path in MODULES if path.parts[0] not in beside}
    assert not product & users("bittern.literature")


def test_only_the_foundation_imports_numba() -> None:
    assert users("numba") == {Path("jit.py"), Path("kept.py"), Path("vectors.py")}


def test_only_one_room_imports_a_library() -> None:
    assert {path.parts[0] for path in users("pyspark")} == {"spark"}
    assert {path.parts[0] for path in users("sqlalchemy")} == {"catalog"}
    assert {path.parts[0] for path in users("sigma")} == {"imports"}


def test_modules_are_short_enough_to_read() -> None:
    lengths = {path: (PACKAGE / path).read_text("utf-8").count("\n") for path in MODULES}
    assert not {path: length for path, length in lengths.items() if length > MAX_LINES}


def test_a_type_has_a_name_of_its_own() -> None:
    assert not HOUSE["colliding_types"]()


def test_functions_take_few_arguments_by_position() -> None:
    assert {each.function for each in HOUSE["long_signatures"]()} == MEASURED


def test_every_package_says_what_is_in_it() -> None:
    for path in MODULES:
        part = path.parent if path.name == "__init__.py" else path
        if len(part.parts) > 1:  # the README has the map of the rooms
            text = (PACKAGE / part.parent / "__init__.py").read_text("utf-8")
            named = re.findall(r"[\w*]+", ast.get_docstring(ast.parse(text)) or "")
            assert any(fnmatch(part.stem, name) for name in named), part


def loaded_by(code: str) -> set[str]:
    code = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "start", ["import bittern", "import bittern.service.cli", "import bittern.spark"]
)
def test_importing_is_light(start: str) -> None:
    loaded = loaded_by(start)
    assert "bittern" in loaded
    assert not loaded & {
        "numpy",
        "pyarrow",
        "numba",
        "pandas",
        "pyspark",
        "re2",
        "sqlalchemy",
        "sigma",
    }


def test_building_and_matching_load_what_they_need_and_no_literature() -> None:
    build = "index = bittern.Index.build({'s': \"price < 10 AND brand = 'x'\"})"
    match = "bittern.Matcher(index).match([{'price': 5, 'brand': 'x'}])"
    loaded = loaded_by(f"import bittern; {build}; {match}")
    own = {name for name in loaded if "bittern" in name}
    assert {"bittern.matching.pivot.index", "bittern.stabbing.cei"} <= own
    rooms = ("literature", "history", "imports", "stabbing.choose", "stabbing.predict")
    assert not {name for name in own if any(is_within(name, f"bittern.{room}") for room in rooms)}
    assert len(own) <= 110
    assert "pandas" not in loaded


def test_facade_has_few_names_and_all_of_them_exist() -> None:
    import bittern

    assert len(bittern.__all__) <= 12
    assert all(getattr(bittern, name) for name in bittern.__all__)
