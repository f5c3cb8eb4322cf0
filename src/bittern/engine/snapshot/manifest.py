"""The manifest of a snapshot: its content, its id, and whether it can be trusted.

::

    kind     "bittern snapshot"
    format   2                         which files this is a manifest of
    release  "0.1.0"                   what wrote it; for people, not part of the content
    meta     {...}                     what belongs to the index beside its arrays
    arrays   [{name, dtype, shape, bytes, blake2b}, ...]
    id       digest of kind, format, meta and arrays

Everything here is about the JSON object and touches no file; ``engine/snapshot/folder.py`` does.
Cost: O(meta + arrays), whatever the arrays' size.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Sequence

KIND = "bittern snapshot"
FORMAT = 3
OLDEST_FORMAT = 2  # tables of strings in format 1 have no key, and no release ever wrote it
MANIFEST = "manifest.json"

MAX_BYTES = 1 << 26  # of a manifest

_DTYPES = frozenset({"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"})
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.]{0,99}")
_MAX_DIMENSIONS = 32


@dataclass(frozen=True)
class ArrayEntry:
    """One array as the manifest describes it; the fields are the manifest's keys."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    blake2b: str


def check_array(name: str, array: np.ndarray) -> None:
    """Raise unless a snapshot can hold this array under this name."""
    if not _NAME.fullmatch(name):
        raise SnapshotError(f"array name {name!r} is not made of up to 100 of a-z 0-9 _ .")
    if array.dtype.str not in _DTYPES:
        raise SnapshotError(f"array {name!r} has type {array.dtype}, which a snapshot cannot hold")
    if not 1 <= array.ndim <= _MAX_DIMENSIONS:
        raise SnapshotError(f"array {name!r} has {array.ndim} dimensions; 1 to 32 are possible")


def describe(name: str, array: np.ndarray, digest: str) -> ArrayEntry:
    """Describe an array whose file has this digest."""
    shape = tuple(int(size) for size in array.shape)
    size = len(npy_header(array.dtype.str, shape)) + array.nbytes
    return ArrayEntry(name, array.dtype.str, shape, size, digest)


def npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the one header that this type and shape can have, in .npy format 1.0."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}"
    padding = -(10 + len(text) + 1) % 64
    body = text.encode("ascii") + b" " * padding + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


def canonical(value: Any) -> bytes:
    """Return the canonical JSON text of a value, for digests."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def content_id(form: int, meta: Any, arrays: Any) -> str:
    """Return the id of this content: 32 hexadecimal digits."""
    content = {"kind": KIND, "format": form, "meta": meta, "arrays": arrays}
    return hashlib.blake2b(canonical(content), digest_size=16).hexdigest()


def release() -> str:
    """Return the release that runs."""
    try:
        return importlib.metadata.version("bittern")
    except importlib.metadata.PackageNotFoundError:  # run from a source tree
        return "unknown"


def new_manifest(meta: Any, entries: Sequence[ArrayEntry]) -> dict[str, Any]:
    """Return the manifest of these arrays, in this release's format."""
    arrays = [asdict(entry) for entry in entries]
    return {
        "kind": KIND,
        "format": FORMAT,
        "release": release(),
        "id": content_id(FORMAT, meta, arrays),
        "meta": meta,
        "arrays": arrays,
    }


def manifest_text(manifest: dict[str, Any]) -> bytes:
    """Return the manifest as it is stored; SnapshotError if a reader would refuse it."""
    try:
        text = json.dumps(manifest, indent=1, allow_nan=False).encode("ascii") + b"\n"
    except RecursionError as error:
        raise SnapshotError("the meta of a snapshot is nested too deeply") from error
    if len(text) > MAX_BYTES:
        raise SnapshotError(
            f"{MANIFEST} would have {len(text):,} bytes, but readers accept at most "
            f"{MAX_BYTES:,}: there are too many arrays ({len(manifest['arrays']):,}), or meta is "
            f"too large"
        )
    check_manifest(parse_manifest(text))
    return text


def parse_manifest(text: bytes) -> dict[str, Any]:
    """Return the JSON object of a manifest; nothing else is checked."""
    try:
        manifest = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"{MANIFEST} is not valid JSON: {error}") from error
    if not isinstance(manifest, dict):
        raise SnapshotError(f"{MANIFEST} is not a JSON object")
    return manifest


def check_format(manifest: dict[str, Any]) -> None:
    """Raise unless this release reads the manifest's format."""
    if manifest.get("kind") != KIND:
        raise SnapshotError(f"{MANIFEST} does not say that this is a {KIND}")
    form, writer = manifest.get("format"), manifest.get("release")
    if type(form) is not int or not isinstance(writer, str):
        raise SnapshotError(f"{MANIFEST} does not state its format and release")
    if form > FORMAT:
        raise SnapshotError(
            f"it has format {form}, but this release ({release()}) reads formats up to {FORMAT}: "
            f"open it with bittern {writer}, which wrote it, or a later release"
        )
    if form < OLDEST_FORMAT:
        raise SnapshotError(
            f"it has format {form}, but this release ({release()}) reads formats from "
            f"{OLDEST_FORMAT} on: build it again (bittern {writer}, which wrote it, can read it)"
        )


def check_manifest(manifest: dict[str, Any]) -> tuple[dict[str, Any], list[ArrayEntry], str]:
    """Check a manifest against its own id, so that no damage in it goes unnoticed."""
    meta, arrays, identity = (manifest.get(key) for key in ("meta", "arrays", "id"))
    if not isinstance(meta, dict) or not isinstance(arrays, list) or not isinstance(identity, str):
        raise SnapshotError(f"{MANIFEST} lacks its meta, arrays or id")
    try:
        actual = content_id(manifest["format"], meta, arrays)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"{MANIFEST} is damaged: {error}") from error
    if actual != identity:
        raise SnapshotError(f"{MANIFEST} is damaged: its content does not have the id it states")
    entries = [_entry(item) for item in arrays]
    if len({entry.name for entry in entries}) < len(entries):
        raise SnapshotError(f"{MANIFEST} names an array twice")
    return meta, entries, identity


def _entry(item: Any) -> ArrayEntry:
    """Read an array's description and check all of it: an id stops damage, not malice."""
    fields = item if isinstance(item, dict) else {}
    name, dtype, shape, size, digest = (
        fields.get(key) for key in ("name", "dtype", "shape", "bytes", "blake2b")
    )
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SnapshotError(f"{MANIFEST} has an array without a valid name")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise SnapshotError(f"{MANIFEST} gives array {name!r} a type that a snapshot cannot hold")
    if (
        not isinstance(shape, list)
        or not 1 <= len(shape) <= _MAX_DIMENSIONS
        or not all(type(length) is int and 0 <= length < 1 << 62 for length in shape)
    ):
        raise SnapshotError(f"{MANIFEST} gives array {name!r} an impossible shape")
    expected = len(npy_header(dtype, tuple(shape))) + math.prod(shape) * np.dtype(dtype).itemsize
    if type(size) is not int or size != expected or not isinstance(digest, str):
        raise SnapshotError(f"{MANIFEST} gives array {name!r} a size that is not its shape's")
    return ArrayEntry(name, dtype, tuple(shape), size, digest)
