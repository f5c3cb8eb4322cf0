"""Where compiled kernels are kept: on disk, or in what another process has sent.

A compiled kernel is kept on disk until its own file changes, as Numba has it, or the file of any
function or constant that it uses, however deep, as is seen to here: what was compiled by an older
release is not run on the data of a newer one. It is where NUMBA_CACHE_DIR says, beside its source,
in the user's folder for caches, or in one of the user's alone below the temporary one, as it is run
without being looked at.

A *bundle* has such code as bytes, for processes on hosts that have none on disk. Each piece is
found by a key: a hash of what it was compiled from, for which signature, by which versions, and for
which processor. A process in which any of this differs finds nothing, and compiles. Code is run, so
who calls ``take`` has verified that the bundle is what the sender made::

    driver    kernels on disk       ──►  bundle(...)  ──►  bytes, and their digest in each task
    worker    bytes of that digest  ──►  take(...)         a kernel that is not on disk is loaded
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import platform
import struct
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import compiler

from bittern import first_use
from bittern.files import is_trusted, make_private
from bittern.sources import digest_of

_KEY_BYTES = 16
_LENGTH = struct.Struct(">Q")
#: Code that came in bundles, by key.
_taken: dict[bytes, bytes] = {}


def cached(function: Callable[..., Any]) -> Any:
    """``njit`` with a disk cache where there is a safe place for one, else without."""
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    dispatcher = _kept(function, options) or numba.njit(**options)(function)
    cache = getattr(dispatcher, "_cache", None)  # absent under NUMBA_DISABLE_JIT
    if cache is None:
        return dispatcher
    if cache.cache_path:
        _mend(cache, function)
    load = cache.load_overload

    def load_or_take(signature: Any, context: Any) -> Any:
        found = load(signature, context)
        return _taken_code(function, signature, context) if found is None else found

    cache.load_overload = load_or_take
    return dispatcher


# -- bundles -------------------------------------------------------------------------------------


def code_on_disk(function: Callable[..., Any], signature: Any) -> tuple[bytes, bytes] | None:
    """The key and code of a kernel in a bundle; None if it is not on disk."""
    dispatcher = _kept(function, {})
    cache = getattr(dispatcher, "_cache", None)
    if not getattr(cache, "cache_path", None):
        return None
    assert cache is not None
    context = dispatcher.targetctx
    context.refresh()
    key = cache._index_key(signature, context.codegen())  # noqa: SLF001
    for file in _files(cache, function):
        with contextlib.suppress(Exception):  # damage, whatever it is
            if (name := file._load_index().get(key)) is not None:  # noqa: SLF001
                code = Path(file._data_path(name)).read_bytes()  # noqa: SLF001
                return _key(function, signature, context), code
    return None


def bundle(codes: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Keys and code as bytes: the same bytes for the same code."""
    parts = [key + _LENGTH.pack(len(code)) + code for key, code in sorted(codes)]
    return zlib.compress(b"".join(parts), 1)


def take(data: bytes) -> None:
    """Have kernels that are not on disk come from a verified bundle."""
    parts, at = zlib.decompress(data), 0
    while at < len(parts):
        key, at = parts[at : at + _KEY_BYTES], at + _KEY_BYTES
        (length,) = _LENGTH.unpack_from(parts, at)
        at += _LENGTH.size
        _taken[key] = parts[at : at + length]
        at += length


def _key(function: Callable[..., Any], signature: Any, context: Any) -> bytes:
    known = (
        (function.__module__, function.__qualname__, str(signature), digest_of(function).hex()),
        (sys.version, numba.__version__, llvmlite.__version__, np.__version__),
        (platform.libc_ver(), context.codegen().magic_tuple()),
    )
    return hashlib.blake2b(repr(known).encode(), digest_size=_KEY_BYTES).digest()


def _taken_code(function: Callable[..., Any], signature: Any, context: Any) -> Any:
    if not _taken:
        return None
    context.refresh()
    code = _taken.get(_key(function, signature, context))
    if code is None:
        return None
    with contextlib.suppress(Exception):  # then it is compiled
        return compiler.CompileResult._rebuild(context, *pickle.loads(code))  # noqa: S301, SLF001
    return None


# -- on disk -------------------------------------------------------------------------------------


def _mend(cache: Any, function: Callable[..., Any]) -> None:
    """Have a cache that is damaged, full or stale cost no more than compiling again.

    What is kept beside a package that another user installed is read there, too: Numba itself looks
    only where it can write.
    """
    files = _files(cache, function)
    own = cache._cache_file  # noqa: SLF001
    load, save = cache.load_overload, cache.save_overload

    def load_or_none(signature: Any, context: Any) -> Any:
        for file in files:
            cache._cache_file = file  # noqa: SLF001
            try:
                with contextlib.suppress(Exception):  # damage, whatever it is
                    if (found := load(signature, context)) is not None:
                        return found
            finally:
                cache._cache_file = own  # noqa: SLF001
        return None

    def save_or_not(signature: Any, data: Any) -> None:
        with contextlib.suppress(Exception):  # a full disk, or something in the way
            save(signature, data)

    cache.load_overload, cache.save_overload = load_or_none, save_or_not


def _files(cache: Any, function: Callable[..., Any]) -> list[Any]:
    """The files of Numba's that may have a kernel, its own first, changed as ``_mend`` says."""
    digest = digest_of(function)
    own, source = cache._cache_file, Path(function.__code__.co_filename).parent  # noqa: SLF001
    files, beside = [own], source / "__pycache__"
    if beside != Path(cache.cache_path) and is_trusted(beside, source):
        base = cache._impl.filename_base  # noqa: SLF001
        files.append(type(own)(str(beside), base, own._source_stamp))  # noqa: SLF001
    for file in files:
        file._source_stamp = file._source_stamp, digest  # noqa: SLF001
        file._load_index = _readable(file._load_index)  # noqa: SLF001
        # An index whose writer was killed before it wrote the code must not name older code.
        pattern = file._data_name_pattern  # noqa: SLF001
        numbered = f"{digest.hex()[:16]}.{{number"
        file._data_name_pattern = pattern.replace("{number", numbered)  # noqa: SLF001
    return files


def _readable(load: Callable[[], Any]) -> Callable[[], dict[Any, Any]]:
    """What an index tells, or nothing if it cannot be read, so that it is written anew.

    Signatures are pickled, and name classes of the release that wrote them.
    """

    def load_or_forget() -> dict[Any, Any]:
        with contextlib.suppress(Exception):  # damage, or a class that is gone
            if isinstance(found := load(), dict):
                return found
        return {}

    return load_or_forget


def _kept(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """``njit`` with a disk cache, or None."""
    told, spare = first_use.told_place(), first_use.temporary_place()
    source = Path(function.__code__.co_filename).parent
    with contextlib.suppress(RuntimeError):  # neither the package nor the home folder is writable
        dispatcher = _kept_below(told, function, options)
        place = getattr(getattr(dispatcher, "_cache", None), "cache_path", "")
        if not place or told or is_trusted(Path(place), source):
            return dispatcher
    with contextlib.suppress(RuntimeError):  # no room
        return _kept_below(str(spare), function, options) if make_private(spare) else None
    return None


def _kept_below(place: str, function: Callable[..., Any], options: dict[str, Any]) -> Any:
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, place
    try:
        return numba.njit(cache=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = before


def kept_in() -> Path | None:
    """The folder in which a kernel of this module would be kept; None if nowhere."""
    found = getattr(getattr(cached(kept_in), "_cache", None), "cache_path", None)
    return Path(found) if found else None
