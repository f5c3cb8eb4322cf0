"""Every example in README and docs does what it shows.

- ``python`` blocks of one page run in order, in one namespace and one empty folder. A value in a
  comment behind an expression is what the expression must give.
- A ``text`` block right behind a ``python`` block is what that block prints.
- ``console`` blocks of ``bittern`` commands run in that folder too: those of README as they stand,
  in a shell, and the others in the test's process, which has the kernels already. ``cat FILE``
  shows what the file holds, so the test writes it; other output must be as shown, ``...`` standing
  for anything.
- Every line of an ``sql`` block is an expression.
- Links lead somewhere, and so do names of source files.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tokenize
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import bittern
from bittern.stabbing.registry import STRUCTURES, structure

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md")])
SOURCES = ROOT / "src"
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
RUN_COMMANDS = ("bittern", "echo", "cat")


class Block(NamedTuple):
    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[2], found[3], text.count("\n", 0, found.start(3)))
        for found in FENCE.finditer(text)
    ]


def pages_with(*languages: str) -> list[Any]:
    found = [page for page in PAGES if any(b.language in languages for b in blocks(page))]
    return [
        pytest.param(
            page,
            id=str(page.relative_to(ROOT)),
            marks=[pytest.mark.spark] if uses_spark(page) else [],
        )
        for page in found
    ]


def uses_spark(page: Path) -> bool:
    return "import bittern.spark" in page.read_text(encoding="utf-8")


def shown_values(source: str) -> dict[int, Any]:
    """Line numbers and the values that comments there show."""
    values = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            try:
                values[token.start[0]] = ast.literal_eval(token.string.removeprefix("# "))
            except (ValueError, SyntaxError):
                continue  # a remark
    return values


class _Checked(ast.NodeTransformer):
    """Turn ``expression  # value`` into a call that compares."""

    def __init__(self, values: dict[int, Any]) -> None:
        self.values = values

    def visit_Expr(self, node: ast.Expr) -> Any:
        if node.end_lineno not in self.values:
            return node
        name = ast.Name("_must_be", ast.Load())
        line = ast.Constant(node.end_lineno)
        call = ast.Expr(ast.Call(name, [node.value, line], []))
        return ast.fix_missing_locations(ast.copy_location(call, node))


def run_python(block: Block, namespace: dict[str, Any]) -> str:
    """Run a block, check the values it shows, and return what it prints."""
    values = shown_values(block.text)
    seen = {}

    def must_be(found: Any, line: int) -> None:
        assert found == values[line], f"line {block.line + line}: {found!r}"
        seen[line] = found

    namespace["_must_be"] = must_be
    tree = _Checked(values).visit(ast.parse(block.text))
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, f"line {block.line}", "exec"), namespace)
    assert seen.keys() == values.keys(), "a value is shown behind something that did not run"
    return printed.getvalue()


#: Runs a command: its exit code, standard output and standard error.
Shell = Callable[[str], tuple[int, str, str]]


def real_shell(command: str) -> tuple[int, str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", command],
        env=os.environ | {"PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr


def small_shell(bittern_command: Callable[..., tuple[int, str, str]]) -> Shell:
    """One for ``bittern ...`` and ``echo ... | bittern ...``, without processes."""

    def run(command: str) -> tuple[int, str, str]:
        words = shlex.split(command)
        said = b""
        if words[0] == "echo":
            end = words.index("|")
            said = " ".join(words[1:end]).encode() + b"\n"
            words = words[end + 1 :]
        assert words[0] == "bittern", command
        return bittern_command(*words[1:], stdin=said)

    return run


def run_console(block: Block, shell: Shell) -> None:
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
        if command.startswith("cat "):
            Path(command.removeprefix("cat ")).write_text(shown)
            continue
        code, out, err = shell(command)
        assert code == 0, f"{command}: {err}"
        pattern = re.escape(shown).replace(r"\.\.\.", ".*")
        assert re.fullmatch(pattern, out, re.DOTALL), f"{command}: {out}"


@pytest.mark.parametrize("page", pages_with("python", "console"))
def test_examples(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bittern_command: Any, request: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    shell = real_shell if page.name == "README.md" else small_shell(bittern_command)
    namespace: dict[str, Any] = {"__name__": "example"}
    if uses_spark(page):
        namespace["spark"] = request.getfixturevalue("spark")
    printed = ""
    for block in blocks(page):
        if block.language == "text":
            assert printed == block.text, f"line {block.line}: {printed}"
        printed = run_python(block, namespace) if block.language == "python" else ""
        if block.language == "console":
            commands = re.findall(r"^\$ (\w+)", block.text, re.MULTILINE)
            if all(command in RUN_COMMANDS for command in commands):
                run_console(block, shell)


@pytest.mark.parametrize("page", pages_with("sql"))
def test_expressions_parse(page: Path) -> None:
    for block in blocks(page):
        if block.language == "sql":
            for line in block.text.splitlines():
                bittern.parse(line)


@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in PAGES])
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text))]
    local = [link for link in links if link and "://" not in link]
    dead = [link for link in local if not (page.parent / link).exists()]
    named = re.findall(r"`((?:\w+/)+\w+\.(?:py|md|sh))`", text)
    homes = (ROOT, SOURCES / "bittern", ROOT / "docs", ROOT / "benchmarks")
    dead += [path for path in named if not any((home / path).exists() for home in homes)]
    assert not dead


MODULES = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCES.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted
    assert not result.failed


def test_the_worked_example_is_what_the_engine_builds() -> None:
    """The subscriptions, intervals and cells that how_it_works.md draws."""
    page = ROOT / "docs" / "how_it_works.md"
    namespace: dict[str, Any] = {}
    run_python(next(b for b in blocks(page) if b.language == "python"), namespace)
    index, text = namespace["index"], page.read_text(encoding="utf-8")
    axis = re.findall(r"\d+", re.findall(r"^global(.*)$", text, re.MULTILINE)[0])
    assert list(map(int, axis)) == list(range(index.rank.n_cells))
    shown = re.findall(r"\[(\d+), (\d+)\]", re.findall(r"^interval(.*)$", text, re.MULTILINE)[0])
    arrays = index.subscriptions.arrays()
    built = zip(arrays["lows"].tolist(), arrays["highs"].tolist(), strict=True)
    assert [(int(low), int(high)) for low, high in shown] == list(built)
    events = index.encoder.encode(namespace["events"]).events
    grouped = re.findall(r"(\d+): events? ((?:\d )*\d)", text)
    assert {int(cell): list(map(int, rows.split())) for cell, rows in grouped} == {
        cell: events.rows[first:last].tolist()
        for cell, first, last in zip(
            events.cells.tolist(), events.offsets[:-1], events.offsets[1:], strict=True
        )
    }


def test_every_array_of_a_snapshot_is_described(tmp_path: Path) -> None:
    """Names with the attribute's number as N; the automata's arrays go by their prefix."""
    catalog = {
        "s1": "a = 1 AND b > 2.5",
        "s2": "s LIKE '%x%' OR s LIKE '%y'",
        3: "s RLIKE '(?i)abc' AND t IS NULL",
    }
    names = set()
    for subscriptions in (catalog, {1: "a = 1"}):
        rows = [
            {"id": str(i), "expression": text, "weight": 1.0} for i, text in subscriptions.items()
        ]
        for form in (subscriptions, _table(rows)):
            for strategy in ("pivot", "scan"):
                bittern.Index.build(form, strategy=strategy).save(tmp_path / "snapshot")
                manifest = json.loads((tmp_path / "snapshot" / "manifest.json").read_text())
                names |= {array["name"] for array in manifest["arrays"]}
    known = [re.sub(r"^patterns\.\d+\.", "patterns.N.", name) for name in sorted(names)]
    known = [re.sub(r"\.(plain|folded)_.*", r".\1_...", name) for name in known]
    page = (ROOT / "docs" / "file_format.md").read_text()
    described = set(re.findall(r"`([^`]+)`", page.split("## Arrays")[1]))
    assert set(known) <= described
    listed = {
        name for name in described if name.startswith(("rank.", "index.", "patterns.", "ids."))
    }
    assert not listed - set(known)


def _table(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(rows)


def test_the_arrays_of_every_stabbing_index_are_listed() -> None:
    rows: dict[str, list[str]] = {}
    for line in (ROOT / "docs" / "file_format.md").read_text().splitlines():
        cells = line.split("|")
        names = re.findall(r"`([a-z-]+)`", cells[1]) if len(cells) == 4 else []
        if names and set(names) <= set(STRUCTURES):
            listed = re.findall(r"`([a-z_.]+)`", cells[2])
            if listed[0] in STRUCTURES:
                listed = rows[listed[0]] + listed[1:]
            prefixes = [array for array in listed if array.endswith(".")]
            if prefixes:  # what follows them is there under each
                own, repeated = (
                    listed[: listed.index(prefixes[0])],
                    listed[listed.index(prefixes[-1]) + 1 :],
                )
                listed = [*own, *(prefix + array for prefix in prefixes for array in repeated)]
            rows |= dict.fromkeys(names, listed)
    assert rows.keys() | {"cei"} == STRUCTURES.keys()
    for name, arrays in rows.items():
        built = structure(name).build([1, 2], [3, 4], [0, 1], domain=10)
        assert list(built.arrays()) == arrays


def test_structures_are_counted_right() -> None:
    words = {18: "eighteen", 19: "nineteen", 20: "twenty", 21: "twenty-one"}
    assert f"{words[len(STRUCTURES)]} structures" in (ROOT / "README.md").read_text("utf-8")
    others = f"[{words[len(STRUCTURES) - 1]} others](stabbing.md)"
    assert others in (ROOT / "docs" / "how_it_works.md").read_text("utf-8")


def public_names() -> list[str]:
    """What users are to call, as it is named in the reference."""
    from bittern.engine.backtest.result import Backtest
    from bittern.engine.explain import Explanation

    names = [f"bittern.{name}" for name in bittern.__all__]
    for package in ("bittern.history", "bittern.spark", "bittern.spark.streaming"):
        names += [f"{package}.{name}" for name in importlib.import_module(package).__all__]
    names += [f"{each.__module__}.{each.__name__}" for each in (Explanation, Backtest)]
    # The same class by its longer name, and a package whose names stand there one by one.
    return sorted({*names} - {"bittern.spark.Pipeline", "bittern.spark.streaming"})


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert set(public_names()) <= set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))
