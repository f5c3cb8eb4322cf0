"""A durable file of pages: commits are complete or absent, and readers work beside a writer.

A page is never overwritten in a place where a version that may still be read has it. A commit
writes changed pages to free places, then the maps of their table. Both are on disk before the meta
that makes them the newest version::

    page 3 changes          before             after             then
      version 6 (meta 0)    3 -> place 12      3 -> place 12     (waits until no reader has it)
      version 7 (meta 1)                       3 -> place 15

    write place 15, its map, the maps above;  fsync;  write meta 7;  fsync

Whatever stops a writer, the newest complete meta points to a complete version: there is nothing to
repair, and the places of an unfinished commit are free again. ``page_table`` has the meta and the
table, ``places`` the places, ``views`` the readers' versions, ``frames`` the pages in memory.

One writer (a lock on the file), many readers. A reader stays on its version until ``refresh``. The
frames bound the memory: a writer whose frames are full of changes writes them to free places early
(``flush``), and can still roll back. One thread at a time uses a ``PageFile``.

Cost of a commit: its changed pages, at most as many maps, a meta, two fsyncs. Memory: the frames,
and 20 bytes per page.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Self

import numpy as np

from bittern.arrays import Int64s
from bittern.errors import OptionError, PageError
from bittern.literature.pb_tree.disk import Disk, create_file
from bittern.literature.pb_tree.frames import Frames
from bittern.literature.pb_tree.page_table import (
    MOST_PAGES,
    MOST_RECORD,
    Meta,
    PageEntries,
    checked_page_bytes,
    first_place,
    meta_offset,
    pack,
    read_metas,
    read_table,
    verify,
    write_table,
)
from bittern.literature.pb_tree.places import Places
from bittern.literature.pb_tree.pool import (
    DIRTY,
    DROPPED,
    FRAMES,
    MOST_DIRTY,
    N_FREE,
    N_PAGES,
    PLACE_BITS,
    READS,
    TREE_SIZE,
    VERSION,
    PageFault,
    fault,
)
from bittern.literature.pb_tree.views import ReaderView, oldest_view

_ROOM = 1024
"""Page numbers that there is room for at least, where more are asked for."""

_State = Literal["sound", "to roll back", "to open again", "closing", "closed"]
_REMEDY = {
    "to roll back": "writing to it failed: roll back, or open it again",
    "to open again": "a commit failed at its end: open it again, to see whether it is there",
    "closing": "it was closed: open it again",
    "closed": "it was closed: open it again",
}


class PageFile:
    """An open page file; made by ``create``, opened by ``open``.

    Kernels take ``ints``, ``longs``, ``pool``, ``tree`` and ``free``. What stands in ``tree`` and
    ``free`` is the caller's business, but for the first two numbers of ``tree`` (see ``pool``).
    After ``grow``, ``pool`` and ``free`` may be other arrays.
    """

    _state: _State = "closed"

    def __init__(self, disk: Disk, cache_bytes: int, *, writable: bool) -> None:
        self.tree = np.zeros(TREE_SIZE, np.int64)
        """The tree's numbers, as they are now."""
        self.free = np.zeros(1, np.int32)
        """A stack of ``tree[N_FREE]`` free page numbers; below, there is room for more."""
        self._disk = disk
        self._writable = writable
        self._view: ReaderView | None = None
        self._meta: Meta
        self._maps: list[PageEntries] = []
        self._changed: list[Int64s] = []
        self._begun = False
        metas = read_metas(disk)
        disk.page_bytes = metas[0].page_bytes
        self._frames = Frames(disk.file, disk.page_bytes, cache_bytes)
        self.ints, self.longs = self._frames.ints, self._frames.longs
        """The frames, as words and as longs."""
        if writable:
            self._adopt(metas[0], short=self._is_short(metas[0]))
            self._places = self._find_places(metas)
        else:
            self._look()

    @staticmethod
    def create(
        path: str | os.PathLike[str], page_bytes: int, tree: Int64s, record: bytes = b""
    ) -> None:
        """Make a file without pages, version 1, which is there when it is whole.

        ``record`` is kept as it is. Of ``tree`` the first two numbers are set here.
        """
        page_bytes = checked_page_bytes(page_bytes)
        if len(tree) != TREE_SIZE or len(record) > MOST_RECORD:
            raise OptionError(
                f"tree must be {TREE_SIZE} numbers, not {len(tree)}, and record at most "
                f"{MOST_RECORD} bytes, not {len(record)}"
            )
        tree = tree.copy()
        tree[N_PAGES], tree[N_FREE] = 1, 0
        end = first_place(page_bytes)
        data = bytes(meta_offset(1)) + pack(Meta(1, page_bytes, end, 0, 0, tree, record))
        create_file(Path(path), data.ljust(end * page_bytes, b"\0"))

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, writable: bool, cache_bytes: int) -> Self:
        """Open the newest version; for writing, if there is no other writer."""
        disk = Disk(Path(path), writable=writable)
        try:
            return cls(disk, cache_bytes, writable=writable)
        except BaseException:
            disk.close()
            raise

    def close(self) -> None:
        """Let go of the file; what was not committed is gone."""
        if self._state != "closed":
            self._state = "closing"  # to be closed again if this is interrupted
            self._frames.shut()
            if self._view is not None:
                self._view.close()
            self._disk.close()
            self._state = "closed"

    def __del__(self) -> None:
        """Close it, as files do: a forgotten one holds neither the lock nor a view for long."""
        self.close()

    # Versions

    def _find_places(self, metas: list[Meta]) -> Places:
        """Which places are free, from what the two versions use."""
        end, first = max(meta.end for meta in metas), first_place(self.page_bytes)
        used = np.concatenate([self._table.places, *(level.places for level in self._maps)])
        before = None
        with contextlib.suppress(IndexError, PageError):  # there is none, or it is damaged
            before = np.concatenate([level.places for level in read_table(self._disk, metas[1])])
        return Places.besides(first, end, self.version, used, before)

    def _is_short(self, meta: Meta) -> bool:
        return self._disk.size < meta.end * meta.page_bytes

    def _look(self) -> bool:
        """Take a view of the newest version; False if that is the one that is looked at."""
        while True:
            meta = read_metas(self._disk)[0]
            if self._view is not None and meta.version == self.version:
                return False
            view = ReaderView(self._disk.path, meta.version)
            try:
                # A writer that does not know of the view spares the newest version and the one
                # before it, so that this one is safe unless two commits happened meanwhile. The
                # newest one has its length, one before it may have had places that it needs not.
                short = self._is_short(meta)
                newest = read_metas(self._disk)[0].version
                if newest > meta.version + (not short):
                    view.close()
                    continue
                self._adopt(meta, short=short)
            except BaseException:
                view.close()
                raise
            before, self._view = self._view, view
            if before is not None:
                before.close()
            return True

    def _adopt(self, meta: Meta, *, short: bool = False) -> None:
        """Move to this version, without changes."""
        if short:
            raise PageError(f"{self._disk.path} is damaged: its end was cut off")
        table, *maps = read_table(self._disk, meta)
        self._state = "to open again"  # if this is interrupted
        self._grow(meta.n_pages)
        self._frames.adopt(table, meta.version + self._writable)
        self.tree[:] = meta.tree
        free = np.flatnonzero(table.places[1:] == 0)[::-1] + 1
        self.free[: len(free)] = free
        self._meta, self._maps, self._changed, self._begun = meta, maps, [], False
        self._state = "sound"

    def refresh(self) -> bool:
        """Move a reader on to the newest version; False if it is there already, or writes."""
        self._check("sound")
        return not self._writable and self._look()

    def rollback(self) -> None:
        """Forget what was changed since the last commit."""
        self._check("sound", "to roll back")
        self.check_writable()
        self._places.rolled_back()
        self._adopt(self._meta)

    # Changes

    def grow(self, pages: int) -> None:
        """Make room for this many more page numbers, in ``pool`` and ``free``."""
        self._check("sound")
        needed = int(self.tree[N_PAGES]) + pages
        if needed > MOST_PAGES:
            raise PageError(f"{self._disk.path} can have {MOST_PAGES:,} pages: use larger ones")
        self._grow(needed)

    def _grow(self, pages: int) -> None:
        self._frames.grow(pages, MOST_PAGES)
        more = len(self._frames.slots) - len(self.free)
        if more:
            self.free = np.concatenate([self.free, np.zeros(more, np.int32)])

    def make_room(self) -> None:
        """Write changed pages if they fill the frames, and have page numbers to give out."""
        if self.pool[DIRTY] > self.pool[MOST_DIRTY]:
            self.flush()
        self.grow(max(_ROOM, int(self.tree[N_PAGES]) // 4))

    def flush(self) -> None:
        """Write changed pages to free places, so that others can have their frames; no commit."""
        self._check("sound")
        with self._writing():
            self._flush()

    def _flush(self) -> None:
        if not self.pool[DIRTY]:
            return
        frames, pages = self._frames.stamp_dirty(self.version + 1)
        places = self._slots[pages] & PLACE_BITS
        # What was written since the last commit has no readers, and is overwritten.
        moving = ~self._places.is_new(places)
        left = places[moving]
        self._begin()
        places[moving] = self._places.take(len(left))
        self._disk.write_pages(self._frames.pages, frames, places)
        self._places.leave(left[left > 0])
        self._frames.cleaned(frames, pages, places)
        self._changed.append(pages)

    def _begin(self) -> None:
        """Before the first place is taken: find out which are free now."""
        if not self._begun:
            spared = self.version - 1
            oldest = oldest_view(self._disk.path)
            self._places.release(spared if oldest is None else min(spared, oldest))
            self._begun = True

    def _leave_dropped(self) -> None:
        """Free pages have no place in the next version."""
        if self.pool[DROPPED]:
            pages = self.free[: self.tree[N_FREE]].astype(np.int64)
            pages = pages[self._slots[pages] & PLACE_BITS > 0]
            self._places.leave(self._slots[pages] & PLACE_BITS)
            self._slots[pages] = 0
            self._frames.sums[pages] = 0
            if len(pages):
                self._changed.append(pages)
            self.pool[DROPPED] = 0

    def commit(self) -> None:
        """Make what was changed the newest version; it is on disk when this returns."""
        self._check("sound")
        before, version = self._meta, self.version + 1
        with self._writing():
            self._flush()
            self._leave_dropped()
            if not self._changed and np.array_equal(self.tree, before.tree):
                return
            self._begin()
            changed = np.concatenate([np.zeros(0, np.int64), *self._changed])
            maps = write_table(self._disk, self._places, version, self._table, self._maps, changed)
            self._disk.sync()
            self._state = "to open again"  # from here on the commit may be there, or not
            root, root_sum = (int(level[0]) for level in maps[-1]) if maps else (0, 0)
            end = self._places.finish()
            tree = self.tree.copy()
            meta = Meta(version, self.page_bytes, end, root, root_sum, tree, before.record)
            self._disk.write(meta_offset(version), pack(meta))
            self._disk.sync()
            self._places.committed(version)
            self._meta, self._maps, self._changed, self._begun = meta, maps, [], False
            self.pool[VERSION] = version + 1
        size = max(before.end, end) * self.page_bytes
        if self._disk.size > size:
            with contextlib.suppress(OSError):  # it is no harm if the file stays long
                self._disk.cut(size)

    def _check(self, *states: str) -> None:
        if self._disk.is_inherited:
            raise PageError(f"{self._disk.path} was opened before a fork: open it in this process")
        if self._state not in states:
            raise PageError(f"{self._disk.path} cannot be used: {_REMEDY[self._state]}")

    def check_usable(self) -> None:
        """PageError, which says what to do, if it is closed or something has gone wrong."""
        self._check("sound")

    def check_writable(self) -> None:
        """PageError if it is open for reading."""
        if not self._writable:
            raise PageError(f"{self._disk.path} is open for reading: open it with writable=True")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """What ends this early, even an interrupt, leaves changes that can only be rolled back."""
        self.check_writable()
        self._state = "to roll back"
        try:
            yield
        except OSError as error:
            raise PageError(f"{self._disk.path} cannot be written: {error.strerror}") from error
        self._state = "sound"

    # What is there

    @property
    def pool(self) -> Int64s:
        """What is where; see ``pool``."""
        return self._frames.pool

    @property
    def _slots(self) -> Int64s:
        return self._frames.slots[: self.tree[N_PAGES]]

    @property
    def _table(self) -> PageEntries:
        slots = self._slots
        return PageEntries(slots & PLACE_BITS, self._frames.sums[: len(slots)])

    @property
    def version(self) -> int:
        """The commit that is looked at, or that changes start from."""
        return self._meta.version

    @property
    def page_bytes(self) -> int:
        """The size of a page."""
        return self._disk.page_bytes

    @property
    def record(self) -> bytes:
        """What ``create`` was given to keep."""
        return self._meta.record

    def statistics(self) -> dict[str, int]:
        """Figures that explain size and speed."""
        self._check("sound", "to roll back", "to open again")
        return {
            "version": self.version,
            "page_bytes": self.page_bytes,
            "pages": int(self.tree[N_PAGES] - 1 - self.tree[N_FREE]),
            "free_pages": int(self.tree[N_FREE]),
            "map_pages": sum(len(level.places) for level in self._maps),
            "file_bytes": self._disk.size,
            "frames": int(self.pool[FRAMES]),
            "used_frames": int(np.count_nonzero(self._frames.owners)),
            "dirty_frames": int(self.pool[DIRTY]),
            "page_reads": int(self.pool[READS]),
            "page_writes": self._disk.writes,
        }

    def verify(self) -> None:
        """Read all that the last commit has, and see that it is sound; PageError says what not."""
        self._check("sound", "to roll back")
        verify(self._disk, self._meta)

    def what_is_wrong(self) -> PageError:
        """After a kernel's ``PageFault``: what it complained of, and in which file."""
        self._check("sound", "to roll back", "to open again")
        return PageError(f"{self._disk.path} cannot be used: {fault(self.pool)}")

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """What a kernel complains of becomes a ``PageError`` that names the file."""
        try:
            yield
        except PageFault:
            raise self.what_is_wrong() from None
