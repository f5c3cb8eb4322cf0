"""Strings that all had the same home slot in the string table, before its hash had a key.

The hash of a string of eight bytes was ``mix((mixed ^ word) * odd)`` with constants that everybody
knows: every step can be undone. So one starts from the hashes that are wanted, those with the
same low bits, goes back to the words, and keeps the words that are ASCII text.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_SEED, _WORD, _LAST = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xFF51AFD7ED558CCD
_ALL = (1 << 64) - 1
_ASCII = np.uint64(0x8080808080808080)


def _unshifted(words: np.ndarray, shift: int) -> np.ndarray:
    """Undo ``x ^= x >> shift``."""
    undone = words.copy()
    for _ in range(64 // shift):
        undone = words ^ undone >> np.uint64(shift)
    return undone


def old_hash(text: bytes, group: int) -> int:
    """What the hash of a string of eight bytes was."""
    mixed = (group + len(text)) * _SEED & _ALL
    mixed = (mixed ^ int.from_bytes(text, "little")) * _WORD & _ALL
    mixed = (mixed ^ mixed >> 29) * _LAST & _ALL
    return mixed ^ mixed >> 32


def _unkeyed_hash(groups: np.ndarray) -> np.ndarray:
    """The hashes of strings from which those of groups of documents were made, undone."""
    return _unshifted((groups << np.uint64(1)) * np.uint64(pow(_WORD, -1, 1 << 64)), 29)


def colliding_documents(count: int) -> list[bytes]:
    """Values of a key that all had one home among the groups of a history's first summary."""
    return colliding(count, 2 * _SEED & _ALL, 20, _unkeyed_hash)


def colliding(
    count: int,
    group: int = 0,
    low_bits: int = 24,
    undo: Callable[[np.ndarray], np.ndarray] = lambda hashes: hashes,
) -> list[bytes]:
    """So many different ASCII strings of eight letters whose old hashes end in the same bits."""
    found: dict[bytes, None] = {}
    start = 1
    while len(found) < count:
        uppers = np.arange(start, start + (1 << 20), dtype=np.uint64)
        start += 1 << 20
        words = _unshifted(undo(uppers << np.uint64(low_bits) | np.uint64(0x5EED)), 32)
        words = _unshifted(words * np.uint64(pow(_LAST, -1, 1 << 64)), 29)
        words *= np.uint64(pow(_WORD, -1, 1 << 64))
        words ^= np.uint64((group + 8) * _SEED & _ALL)
        # No quotes and no control characters, so that they stand in a SQL text as they are.
        own = words[words & _ASCII == 0].view(np.uint8).reshape(-1, 8)
        own = own[(own > 0x27).all(axis=1) & (own != 0x5C).all(axis=1) & (own < 0x7F).all(axis=1)]
        found |= dict.fromkeys(row.tobytes() for row in own)
    return list(found)[:count]


def longest_run(slots: np.ndarray, empty: int = 0) -> int:
    """The longest run of taken slots, around the end too: what a look-up probes at worst."""
    free = np.flatnonzero(slots == empty)
    if not len(free):
        return len(slots)
    return int(np.diff(free, append=free[0] + len(slots)).max()) - 1


def probes(slots: np.ndarray) -> int:
    """How many slots are looked at to find everything, if all in a run are at home at its start.

    For strings that are made to collide this is what it costs; for others it is an upper bound.
    """
    free = np.flatnonzero(slots == 0)
    runs = np.diff(free, append=free[0] + len(slots)) - 1
    return int((runs * (runs + 1) // 2).sum())


def colliding_in_arrow(count: int, edges: bytes = b"") -> list[str]:
    """So many different ASCII strings of sixteen letters with one hash in Arrow.

    That is the sum, without carries, of a product of each half with a number of its own. Of any
    first half there is one second half, which is ASCII text often enough. ``edges`` is a letter
    that all of them begin and end with, as constants in quotes do.
    """
    first, second = 11400714785074694791, 14029467366897019727
    undone, target = np.uint64(pow(second, -1, 1 << 64)), 0x1234567890ABCDEF
    edge, low = (edges or b"\0")[0], 0
    if edges:  # the last letter of the one half decides about the first of the other
        while not 0x28 <= low < 0x7F or low == 0x5C:
            target += 1
            low = ((target ^ edge * second) * pow(first, -1, 256)) & 255
    random, found = np.random.default_rng(0), dict[str, None]()
    while len(found) < count:
        words = random.integers(0, 1 << 63, 1 << 18, dtype=np.uint64) & ~_ASCII
        words |= _ASCII >> np.uint64(1)
        if edges:
            words = words & np.uint64((1 << 56) - 256) | np.uint64(edge << 56 | low)
        others = (np.uint64(target) ^ words * np.uint64(first)) * undone
        letters = np.stack([others, words], 1).view(np.uint8)
        inside = letters[:, 1:15] if edges else letters
        plain = ((inside >= 0x28) & (inside < 0x7F) & (inside != 0x5C)).all(axis=1)
        found.update(dict.fromkeys(bytes(each).decode() for each in letters[plain]))
    return list(found)[:count]
