"""Kernels compiled ahead of their first call: all of them, each once."""

from __future__ import annotations

from pathlib import Path

import bittern
from bittern import precompile

PACKAGE = Path(bittern.__file__).parent


def test_every_kernel_is_compiled_ahead() -> None:
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    declared = sum(source.count("\n@kernel(") for source in sources)
    found = [each for module in precompile.modules() for each in precompile.kernels(module)]
    assert len(found) == len(set(map(id, found))) == declared > 100


def test_a_module_is_compiled_ahead() -> None:
    module = "bittern.stabbing.guide"
    assert precompile.compile_module(module) == 1
    assert all(each._dispatcher is not None for each in precompile.kernels(module))
