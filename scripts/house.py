"""Figures of the house, to be watched: ``python scripts/house.py``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent.parent / "src" / "bittern"
#: A function that takes more by position is hard to call.
MOST_PARAMETERS = 10


class LongSignature(NamedTuple):
    """A function that takes many arguments by position."""

    parameters: int
    module: str
    function: str
    lines: int


def _long_in(path: Path) -> Iterator[LongSignature]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
        count = len([name for name in names if name not in ("self", "cls")])
        if count > MOST_PARAMETERS:
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield LongSignature(count, str(path.relative_to(SOURCE)), node.name, lines)


def long_signatures() -> list[LongSignature]:
    """All of them in the package, longest first."""
    found = [each for path in SOURCE.rglob("*.py") for each in _long_in(path)]
    return sorted(found, key=lambda each: (-each.parameters, each.module, each.function))


def main() -> None:
    """Print the table."""
    found = long_signatures()
    print(f"functions with more than {MOST_PARAMETERS} positional parameters: {len(found)}")
    for each in found:
        print(f"  {each.parameters:3}  {each.module:32} {each.function} ({each.lines} lines)")


if __name__ == "__main__":
    main()
