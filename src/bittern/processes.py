"""Child processes: each runs a module of Bittern's beside the process that starts it.

Nothing of the caller's is imported again, and nothing is found in the working directory. A child
can end when its parent does, whatever ends that: its standard input is closed then.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

_NONE: Mapping[str, str] = MappingProxyType({})


def start_module(
    module: str, arguments: Sequence[str], variables: Mapping[str, str] = _NONE, **options: Any
) -> subprocess.Popen[Any]:
    """Run a module in a process; ``variables`` add to the environment, ``options`` are Popen's."""
    path = {"PYTHONPATH": os.pathsep.join(_search_path())}
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", "-m", module, *arguments],
        env={**os.environ, **path, **variables},
        stdin=subprocess.PIPE,
        **options,
    )


def _search_path() -> list[str]:
    """Where a child finds modules. Not "wherever it is working", which relative paths mean."""
    found = [path for path in sys.path if Path(path).is_absolute()]
    own = str(Path(__file__).absolute().parents[1])
    return found if own in found else [*found, own]
