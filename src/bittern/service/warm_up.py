"""``bittern warm-up``: compile kernels ahead of their first use."""

from __future__ import annotations

import argparse
import sys

from bittern import jit, kept, precompile
from bittern.errors import BitternError, OptionError
from bittern.first_use import temporary_place
from bittern.service.progress import Progress
from bittern.service.report import count, say


def run(options: argparse.Namespace) -> int:
    """Compile what is asked for. It is an error if the next process would compile it again."""
    if not jit.IS_COMPILING:
        raise OptionError("NUMBA_DISABLE_JIT is set: nothing is compiled; unset it")
    place = kept.kept_in()
    if place is None:
        raise BitternError(
            "compiled kernels cannot be kept: neither the package's folder nor the home folder can "
            f"be written, nor is {temporary_place()} this user's alone; set NUMBA_CACHE_DIR to a "
            "folder of your own"
        )
    compile_them = precompile.compile_first_use if options.defaults else precompile.compile_all
    progress = None if options.quiet else Progress(sys.stderr)
    try:
        n_kernels = compile_them(options.processes, progress)
    finally:
        if progress is not None:
            progress.close()
    if place.is_relative_to(temporary_place()):
        say(
            f"they are kept in {temporary_place()}, which may not stay: neither the package's "
            "folder nor the home folder can be written; set NUMBA_CACHE_DIR to a folder that stays"
        )
    if not options.quiet:
        say(f"{count(n_kernels, 'kernel')} compiled")
    return 0
