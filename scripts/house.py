"""Figures of the house, to be watched: ``python scripts/house.py``.

Lines and files by room, what a default build and match loads and how long that takes, functions
that take many arguments by position, and public names that stand for several things.
"""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent.parent / "src" / "bittern"
LITERATURE = "literature"
#: A function that takes more by position is hard to call.
MOST_PARAMETERS = 10
#: Run in a process of its own, with compiled kernels: modules and milliseconds of this process.
_DEFAULT_PATH = """
import json, sys, time
import numpy, pyarrow, numba  # what is not ours is loaded before the clock starts
begin = time.process_time()
import bittern.engine.matcher
import bittern.engine.index
imported = time.process_time()
index = bittern.Index.build({"s": "price < 10 AND brand = 'x'"})
bittern.Matcher(index).match([{"price": 5, "brand": "x"}])
matched = time.process_time()
own = [name for name in sys.modules if name.split(".")[0] == "bittern"]
of_papers = [name for name in own if ".literature" in name]
print(json.dumps([len(own), len(of_papers), 1e3 * (imported - begin), 1e3 * (matched - begin)]))
"""
_TIMES = 5


class LongSignature(NamedTuple):
    """A function that takes many arguments by position."""

    parameters: int
    module: str
    function: str
    lines: int


@functools.cache
def modules() -> dict[Path, ast.Module]:
    """All modules of the package, by their path in it."""
    paths = sorted(SOURCE.rglob("*.py"))
    return {path.relative_to(SOURCE): ast.parse(path.read_text("utf-8")) for path in paths}


def room(path: Path) -> str:
    """The room of a module."""
    return path.parts[0] if len(path.parts) > 1 else "(foundation)"


def sizes() -> dict[str, tuple[int, int]]:
    """Files and lines by room."""
    found: dict[str, tuple[int, int]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = room(path.relative_to(SOURCE))
        files, lines = found.get(name, (0, 0))
        found[name] = files + 1, lines + path.read_text("utf-8").count("\n")
    return found


def default_path() -> list[float]:
    """Modules, those of the literature, and CPU-ms to import and to match by default: the least."""
    runs = []
    for _ in range(_TIMES):
        done = subprocess.run(  # noqa: S603 (its own interpreter)
            [sys.executable, "-c", _DEFAULT_PATH], check=True, capture_output=True, text=True
        )
        runs.append(json.loads(done.stdout))
    return [min(each) for each in zip(*runs, strict=True)]


def _long_in(path: Path, tree: ast.Module) -> Iterator[LongSignature]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
            count = len([name for name in names if name not in ("self", "cls")])
            if count > MOST_PARAMETERS:
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                yield LongSignature(count, str(path), node.name, lines)


def long_signatures() -> list[LongSignature]:
    """All of them in the package, longest first."""
    found = [each for path, tree in modules().items() for each in _long_in(path, tree)]
    return sorted(found, key=lambda each: (-each.parameters, each.module, each.function))


def _public(tree: ast.Module) -> Iterator[str]:
    """The classes and types that a module defines."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        else:
            continue
        if name[0].isupper() and not name.isupper():
            yield name


def colliding_types() -> dict[str, list[str]]:
    """Public classes and type aliases that several modules define under one name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in modules().items():
        for name in _public(tree):
            found[name].append(str(path))
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


def main() -> None:
    """Print the figures."""
    of_rooms = sizes()
    for name, (files, lines) in of_rooms.items():
        print(f"{name:14}{files:5} files{lines:8,} lines")
    whole = sum(lines for _, lines in of_rooms.values())
    literature = of_rooms[LITERATURE][1]
    print(f"product {whole - literature:,} lines, literature {literature:,} lines")

    loaded, of_papers, imported, matched = default_path()
    print(
        f"default build and match: {loaded:.0f} modules, {of_papers:.0f} of them literature; "
        f"{imported:.0f} CPU-ms to import, {matched:.0f} to have matched (least of {_TIMES})"
    )

    found = long_signatures()
    print(f"functions with more than {MOST_PARAMETERS} positional parameters: {len(found)}")
    for each in found:
        print(f"  {each.parameters:3}  {each.module:40} {each.function} ({each.lines} lines)")

    colliding = colliding_types()
    print(f"types that several modules define under one name: {len(colliding)}")
    for name, paths in colliding.items():
        print(f"  {name}: {', '.join(paths)}")


if __name__ == "__main__":
    main()
