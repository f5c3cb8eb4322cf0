"""The frames of an open page file, from outside kernels: what ``pool`` lays out, made and kept."""

from __future__ import annotations

import numpy as np

from bittern.arrays import Int64s
from bittern.errors import OptionError, brief
from bittern.literature.pb_tree.page_table import PageEntries, sums_of
from bittern.literature.pb_tree.pool import (
    ADDRESS,
    DIRTY,
    DIRTY_FLAGS,
    DROPPED,
    FD,
    FRAMES,
    MOST_DIRTY,
    OWNERS,
    PAGES,
    PLACE_BITS,
    POOL_HEADER,
    POOL_WORDS,
    SLOTS,
    SPARE,
    STEP,
    SUMS,
    VERSION,
    stamp,
)
from bittern.stabbing.contract import as_integer

FEWEST = 2 * SPARE
"""With fewer, a step might find no frame beside the changed ones."""
_MOST = 2**31 - 1  # half a word holds the number of a frame (``pool``)


def checked_frames(cache_bytes: int, page_bytes: int) -> int:
    """The number of frames in this many bytes; OptionError if there are too few."""
    frames = as_integer(cache_bytes, "cache_bytes") // page_bytes
    if not FEWEST <= frames <= _MOST:
        raise OptionError(
            f"cache_bytes must be at least {FEWEST * page_bytes:,} with pages of {page_bytes:,} "
            f"bytes ({FEWEST} pages), and at most {_MOST:,} pages, not {brief(cache_bytes)}"
        )
    return frames


class Frames:
    """Frames for a bounded number of pages; nothing is in them yet."""

    def __init__(self, file: int, page_bytes: int, cache_bytes: int) -> None:
        frames = checked_frames(cache_bytes, page_bytes)
        self.longs = np.zeros(frames * (page_bytes // 8), np.uint64)
        self.ints = self.longs.view(np.int32)
        self.pages = self.longs.reshape(frames, -1)
        """The same memory, a row for each frame."""
        self.pool = pool = np.zeros(POOL_HEADER + 3 * frames + 2, np.int64)
        pool[FD] = file
        pool[POOL_WORDS] = page_bytes // 4
        pool[STEP] = 1
        pool[FRAMES] = frames
        pool[PAGES] = 1
        pool[OWNERS] = POOL_HEADER + frames
        pool[DIRTY_FLAGS] = POOL_HEADER + 2 * frames
        pool[SLOTS] = POOL_HEADER + 3 * frames
        pool[SUMS] = pool[SLOTS] + 1
        pool[ADDRESS] = self.longs.ctypes.data
        # Were nearly all dirty, the clock's hand would pass many of them to find one that is not.
        pool[MOST_DIRTY] = frames - max(SPARE, frames >> 2)

    @property
    def slots(self) -> Int64s:
        """Of all page numbers that there is room for."""
        return self.pool[self.pool[SLOTS] : self.pool[SUMS]]

    @property
    def sums(self) -> Int64s:
        """The low halves of their checksums."""
        return self.pool[self.pool[SUMS] :]

    @property
    def owners(self) -> Int64s:
        """The page in each frame, or 0."""
        return self.pool[self.pool[OWNERS] :][: self.pool[FRAMES]]

    @property
    def _dirty(self) -> Int64s:
        return self.pool[self.pool[DIRTY_FLAGS] :][: self.pool[FRAMES]]

    def grow(self, pages: int, most: int) -> None:
        """Make slots for the numbers below ``pages``, and some more, up to ``most``."""
        slots = int(self.pool[PAGES])
        if pages > slots:
            more = np.zeros(min(max(pages, slots + slots // 2), most) - slots, np.int64)
            before, sums = np.split(self.pool, [self.pool[SUMS]])
            pool = np.concatenate([before, more, sums, more])
            pool[SUMS] += len(more)
            pool[PAGES] = slots + len(more)
            self.pool = pool

    def stamp_dirty(self, version: int) -> tuple[Int64s, Int64s]:
        """Prepare the changed pages for writing; returns their frames and numbers, ascending."""
        frames = np.flatnonzero(self._dirty)
        pages = self.owners[frames]
        order = np.argsort(pages)
        frames, pages = frames[order], pages[order]
        stamp(self.ints, self.longs, int(self.pool[POOL_WORDS]), version, frames, pages)
        return frames, pages

    def cleaned(self, frames: Int64s, pages: Int64s, places: Int64s) -> None:
        """These pages were written to these places."""
        self.slots[pages] = (frames + 1) << 32 | places
        self.sums[pages] = sums_of(self.pages[frames])
        self._dirty[frames] = 0
        self.pool[DIRTY] -= len(frames)

    def adopt(self, table: PageEntries, version: int) -> None:
        """Move to another version: unchanged pages at the same place stay in memory."""
        frames = np.flatnonzero(self.owners)
        pages = self.owners[frames]
        known = PageEntries.none(len(self.slots))
        known.places[: len(table.places)], known.sums[: len(table.sums)] = table
        same = (self.slots[pages] & PLACE_BITS == known.places[pages]) & (self._dirty[frames] == 0)
        same &= self.sums[pages] == known.sums[pages]
        self.slots[:], self.sums[:] = known
        self.slots[pages[same]] |= (frames[same] + 1) << 32
        self.owners[frames[~same]] = 0
        self.pool[POOL_HEADER + frames[~same]] = 0
        self._dirty[:] = 0
        self.pool[DIRTY] = self.pool[DROPPED] = 0
        self.pool[VERSION] = version

    def shut(self) -> None:
        """Refuse all fetches from now on."""
        self.pool[PAGES] = 0
