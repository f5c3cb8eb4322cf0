"""Keys of hash tables: an attacker cannot choose content that collides.

A table whose hash function is known can be filled with strings or numbers that all have the same
home slot, and then each look-up goes through all of them. So every hash here takes a *key* of three
words, or of one if only integers are hashed. There are two ways to get a key:

- ``key_of(content)``, for a table that is made at once and then never changes: a digest of what is
  in it. Adding content changes the key under which it was meant to collide, so colliding content
  cannot be found even by someone who knows all of it. The same content has the same key, so a
  snapshot that is built twice has the same id.
- ``secret_key()``, for a table that changes while it is in use, within one process: random.

The hash itself is made of folded products, ``low ^ high`` of the 128 bits of ``(a ^ k) * (b ^ l)``,
as wyhash and its kind do. One that is not keyed in both factors, or only by a seed that is added at
the end, would collide under every key alike. Cost: a multiplication for each 16 bytes, and one.

docs/decisions/0017-hashing.md has the reasons, and lists the tables.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bittern.jit import folded_product, inline

HashKey: TypeAlias = npt.NDArray[np.uint64]

KEY_WORDS = 3


def key_of(*content: npt.NDArray[Any]) -> HashKey:
    """The key of a table with this content. O(bytes)."""
    digest = hashlib.blake2b(digest_size=8 * KEY_WORDS)
    for array in content:
        digest.update(len(array).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return np.frombuffer(digest.digest(), "<u8").astype(np.uint64)


def secret_key() -> HashKey:
    """A random key."""
    return np.frombuffer(secrets.token_bytes(8 * KEY_WORDS), np.uint64).copy()


def multiplier_of(*content: npt.NDArray[Any]) -> np.uint64:
    """The key of a table of integers with this content: one odd word. O(bytes)."""
    return np.uint64(key_of(*content)[0] | np.uint64(1))


def secret_multiplier() -> np.uint64:
    """A random key for a table of integers."""
    return np.uint64(secret_key()[0] | np.uint64(1))


@inline
def hash_word(word: Any, multiplier: Any) -> Any:
    """32 well-mixed bits of an integer."""
    return folded_product(np.uint64(word), multiplier) >> np.uint64(32)


@inline
def hash_pair(first: Any, second: Any, key: Any) -> Any:
    """64 bits of two words, to be mixed once more with what else there is (``hash_last``)."""
    return folded_product(np.uint64(first) ^ key[1], np.uint64(second) ^ key[0])


@inline
def hash_last(mixed: Any, salt: Any, length: Any, key: Any) -> Any:
    """64 well-mixed bits of what was mixed so far, a salt and a length."""
    return folded_product(mixed ^ np.uint64(salt), np.uint64(length) ^ key[2])
