"""A benchmark run at its smallest size, as its own tests look at it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from steady import PATIENCE

ROOT = Path(__file__).parent.parent


def small_run(module: str, folder: Path) -> Any:
    """The results of ``python -m module --small``."""
    output = folder / "result.json"
    command = [sys.executable, "-m", module, "--small", "--output", str(output)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=4 * PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(output.read_text())
