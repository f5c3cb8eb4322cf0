"""The first use after an installation: kernels that are not on disk yet.

A build and a match with the defaults need some twenty kernels, which take one core more than ten
seconds to compile. The first of them that is not on disk has all of them compiled by several
processes at once (``precompile.py``), and is loaded then. Of processes that start together,
as Spark's workers do, one does so; the others wait, and load what it made. Whatever goes wrong, the
process compiles by itself what it needs.

The user is told once per process, and how often it is going to happen.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bittern.files import hold, released, try_hold

logger = logging.getLogger("bittern")

#: The kernels of a first build and match, as the README has them, the slowest to compile first.
FIRST_USE = (
    "bittern.matching.pivot.match:match_postings",
    "bittern.matching.pivot.filing:_file",
    "bittern.model.rank.cells:tagged_pairs",
    "bittern.model.classes.classes:_canonical",
    "bittern.model.strings:_fill_slots",
    "bittern.stabbing.cei:_search",
    "bittern.model.rank.encoded:_fill_matrix",
    "bittern.stabbing.runs:_copy_runs",
    "bittern.model.classes.classes:_distinct",
    "bittern.model.matches:_fill",
    "bittern.model.matches:_count",
    "bittern.matching.pivot.filing:_renumber",
    "bittern.stabbing.cei:_count_entries",
    "bittern.stabbing.cei:_mark_all",
    "bittern.matching.pivot.filing:_number_classes",
    "bittern.stabbing.cei:_place_entries",
    "bittern.matching.pivot.cover:_count_mentions",
    "bittern.stabbing.cei:_by_length",
    "bittern.matching.contract:_add_candidates",
    "bittern.model.events.mistyped:_find_strays",
    "bittern.model.rank.encoded:_group_pairs",
    "bittern.stabbing.id_lists:_accumulate",
    "bittern.model.distinct:_number",
)

#: Seconds that the processes may take, on a machine that is busy with other things as well.
_PATIENCE = 600.0
_told = False
_asked = False


def n_cores() -> int:
    """The cores that this process may use, which in a container are not all that there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def told_place() -> str:
    """Where compiled kernels are kept first, if that is told.

    Numba would also believe a file in the working directory, which may be anybody's: what is kept
    is run.
    """
    return os.environ.get("NUMBA_CACHE_DIR", "")


def temporary_place() -> Path:
    """Where this user's compiled kernels are kept if nowhere else can be written."""
    try:
        folder = tempfile.gettempdir()
    except OSError:  # not one that can be written
        folder = "/tmp"  # noqa: S108
    return Path(os.path.realpath(folder)) / f"bittern-kernels-{os.geteuid()}"


def compile_quietly() -> None:
    """Say nothing from now on, and compile alone: what a process does that compiles ahead."""
    global _told, _asked
    _told = _asked = True


def tell_once(place: str | None) -> None:
    """Say, before the first kernel is compiled, how often that is going to happen."""
    global _told
    if _told:
        return
    _told = True
    keep = "set NUMBA_CACHE_DIR to a folder that stays, or run `bittern warm-up` as the user who"
    if not place:
        often = (
            f"every process does so again, as neither the package's folder nor the home folder can "
            f"be written, nor is {temporary_place()} this user's alone; {keep} installed Bittern"
        )
    elif Path(place).is_relative_to(temporary_place()):
        often = (
            f"they are kept in {temporary_place()} while that is there, as neither the package's "
            f"folder nor the home folder can be written; {keep} installed Bittern"
        )
    else:
        often = "each is compiled once and kept; `bittern warm-up` compiles all of them"
    logger.warning("bittern: compiling kernels; %s", often)


def compile_together(name: str, kept_in: Callable[[], Path | None]) -> bool:
    """Have all of ``FIRST_USE`` compiled by processes, if the named kernel is one of them.

    Or wait for another process that does so. Once per process; returns whether the kernel may be
    on disk now. ``kept_in`` says where a lock can be.
    """
    global _asked
    if _asked or name not in FIRST_USE or n_cores() == 1:
        return False
    _asked = True
    place = kept_in()
    if place is None or not sys.executable or hasattr(sys, "frozen"):
        return False
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        lock = os.open(place / "bittern-first-use.lock", flags, 0o600)
    except OSError:
        return False
    with released(lock):
        if try_hold(lock):
            _run_crew()
        else:
            hold(lock)
    return True


def _run_crew() -> None:
    """Start a process that compiles in several others, wait, and leave none of them behind."""
    from bittern.processes import start_module  # noqa: PLC0415  most have nothing to compile

    package = str(Path(__file__).resolve().parent)
    try:
        leader = start_module(
            "bittern.precompile",
            ["first-use", package, *FIRST_USE],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,  # so that Ctrl-C reaches this process only, which ends all of them
        )
    except OSError:  # no processes to be had: this one compiles
        return
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):  # then this process compiles
            leader.wait(_PATIENCE)
    finally:
        if leader.poll() is None:
            with contextlib.suppress(OSError):  # it has just ended
                os.killpg(leader.pid, signal.SIGKILL)
        with leader:  # closes the pipe, and waits
            pass
