"""Matchers of other systems that are packages of npm, asked by tests: one node for all of them.

``json_logic`` answers as json-logic-js does, the implementation that the others follow. npm gets it
by name, once for each session; where it cannot, tests are skipped, and say so.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steady import PATIENCE

_PACKAGE = "json-logic-js@2.0.5"
_SERVER = """
const logic = require("json-logic-js");
const lines = require("readline").createInterface({input: process.stdin});
lines.on("line", (line) => {
    const [rule, event] = JSON.parse(line);
    console.log(JSON.stringify(logic.truthy(logic.apply(rule, event))));
});
"""


class NodeJudge:
    """A node that answers one line at a time; it ends when its input does."""

    def __init__(self, folder: Path) -> None:
        self._node = subprocess.Popen(
            ["node", "-e", _SERVER],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def json_logic(self, rule: Any, event: Any) -> bool:
        """Whether the rule is truthy for the event."""
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        self._node.stdin.write(json.dumps([rule, event]) + "\n")
        self._node.stdin.flush()
        return bool(json.loads(self._node.stdout.readline()))

    def close(self) -> None:
        """End it."""
        self._node.communicate(timeout=PATIENCE)


@pytest.fixture(scope="session")
def node_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeJudge]:
    """Skips where there is no node, or npm cannot get the package."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("json-logic-js judges JSON Logic, and there is no node with npm")
    folder = tmp_path_factory.mktemp("npm")
    command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", _PACKAGE]
    try:
        got = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not get {_PACKAGE} in two minutes")
    if got.returncode:
        pytest.skip(f"npm cannot get {_PACKAGE}: {got.stderr[-200:]}")
    judge = NodeJudge(folder)
    yield judge
    judge.close()
