"""Child processes: each runs a module of Bittern's beside the process that starts it.

Nothing of the caller's is imported again, and nothing is found in the working directory. A child
can end when its parent does, whatever ends that: its standard input is closed then.

A forked child is a copy instead, with one thread. It would wait forever for a module that another
thread of its parent was importing. So a process with several threads imports what matching may need
before it is forked for the first time. Cost: once some 0.1 s. And it would wait forever for a lock
that such a thread held: objects with locks of their own renew them there (``follow_forks``).
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

#: The rooms of which some modules are imported only when a subscription or an event needs them.
_ROOMS = ("language", "terms", "model", "stabbing", "matching", "engine")
_are_imported = False


def start_module(module: str, arguments: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Run a module in a process; ``options`` are Popen's."""
    path = {"PYTHONPATH": os.pathsep.join(_search_path())}
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", "-m", module, *arguments],
        env={**os.environ, **path},
        stdin=subprocess.PIPE,
        **options,
    )


def _search_path() -> list[str]:
    """Where a child finds modules. Not "wherever it is working", which relative paths mean."""
    found = [path for path in sys.path if Path(path).is_absolute()]
    own = str(Path(__file__).absolute().parents[1])
    return found if own in found else [*found, own]


def _import_rest() -> None:
    """Import all of the rooms, and so wait for other threads that are in the middle of that."""
    global _are_imported
    if _are_imported or threading.active_count() == 1:
        return
    for room in _ROOMS:
        package = import_module(f"bittern.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    _are_imported = True


class _Follower(Protocol):
    def after_fork(self) -> None:
        """Called in a forked child, whose only thread does nothing else now."""


_followers: weakref.WeakSet[_Follower] = weakref.WeakSet()


def follow_forks(owner: _Follower) -> None:
    """Call ``owner.after_fork`` in each child that this process is forked into while it lives."""
    _followers.add(owner)


def _tell_followers() -> None:
    for each in list(_followers):
        each.after_fork()


os.register_at_fork(before=_import_rest, after_in_child=_tell_followers)
