"""Pages with one number each, repeated all over the page: what tests write into page files."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from bittern.jit import i4r, i4w, i8, i8r, i8w, kernel, u8r, void
from bittern.literature.pb_tree.page_file import PageFile
from bittern.literature.pb_tree.pool import (
    N_FREE,
    N_PAGES,
    POOL_WORDS,
    TREE_SIZE,
    begin,
    drop,
    fetch,
    fresh,
    has_room,
    touch,
)

PAGE_BYTES = 512
CACHE_BYTES = 128 * PAGE_BYTES
"""The smallest cache."""
FIRST_WORD = 5


@kernel(i8, i4w, i8w, i8w, i4r, i8r, i8w)
def _add(ints: Any, pool: Any, tree: Any, free: Any, values: Any, pages: Any) -> Any:
    """A new page for each value, as long as there is room; how many were done."""
    for i in range(len(values)):
        if not has_room(pool):
            return i
        begin(pool)
        if tree[N_FREE] > 0:
            tree[N_FREE] -= 1
            page = np.int64(free[tree[N_FREE]])
        else:
            page = tree[N_PAGES]
            tree[N_PAGES] += 1
        base = fresh(pool, page)
        for word in range(FIRST_WORD, pool[POOL_WORDS]):
            ints[base + word] = np.int32(values[i] + word)
        pages[i] = page
    return len(values)


@kernel(i8, i4w, u8r, i8w, i8r, i8r)
def _change(ints: Any, longs: Any, pool: Any, pages: Any, values: Any) -> Any:
    for i in range(len(values)):
        if not has_room(pool):
            return i
        begin(pool)
        base = fetch(pool, longs, pages[i])
        touch(pool, pages[i])
        for word in range(FIRST_WORD, pool[POOL_WORDS]):
            ints[base + word] = np.int32(values[i] + word)
    return len(values)


@kernel(void, i8w, i8w, i4w, i8r)
def _remove(pool: Any, tree: Any, free: Any, pages: Any) -> None:
    for i in range(len(pages)):
        drop(pool, pages[i])
        free[tree[N_FREE]] = np.int32(pages[i])
        tree[N_FREE] += 1


@kernel(void, i4r, u8r, i8w, i8r, i8w)
def _read(ints: Any, longs: Any, pool: Any, pages: Any, values: Any) -> None:
    """The number in each page; -1 if it is not the same all over."""
    for i in range(len(pages)):
        begin(pool)
        base = fetch(pool, longs, pages[i])
        value = ints[base + FIRST_WORD] - FIRST_WORD
        for word in range(FIRST_WORD, pool[POOL_WORDS]):
            if ints[base + word] - word != value:
                value = -1
                break
        values[i] = value


class Contents:
    """A page file, and what can be done with its pages."""

    def __init__(self, file: PageFile) -> None:
        self.file = file

    @classmethod
    def create(cls, path: Any, page_bytes: int = PAGE_BYTES, record: bytes = b"") -> Self:
        PageFile.create(path, page_bytes, np.zeros(TREE_SIZE, np.int64), record)
        return cls.open(path, writable=True, cache_bytes=128 * page_bytes)

    @classmethod
    def open(cls, path: Any, *, writable: bool = False, cache_bytes: int = CACHE_BYTES) -> Self:
        return cls(PageFile.open(path, writable=writable, cache_bytes=cache_bytes))

    def add(self, values: Any) -> list[int]:
        values = np.array(values, np.int64)
        pages, done, file = np.zeros(len(values), np.int64), 0, self.file
        while done < len(values):
            file.grow(len(values) - done)
            with file.translated():
                done += _add(
                    file.ints, file.pool, file.tree, file.free, values[done:], pages[done:]
                )
            if done < len(values):
                file.flush()
        return pages.tolist()

    def change(self, pages: Any, values: Any) -> None:
        pages, values, done = np.array(pages, np.int64), np.array(values, np.int64), 0
        while done < len(values):
            file = self.file
            with file.translated():
                done += _change(file.ints, file.longs, file.pool, pages[done:], values[done:])
            if done < len(values):
                file.flush()

    def remove(self, pages: Any) -> None:
        file = self.file
        _remove(file.pool, file.tree, file.free, np.array(pages, np.int64))

    def read(self, pages: Any) -> list[int]:
        pages, file = np.array(pages, np.int64), self.file
        values = np.zeros(len(pages), np.int64)
        with file.translated():
            _read(file.ints, file.longs, file.pool, pages, values)
        return values.tolist()

    def all(self) -> dict[int, int]:
        """Every page that is not free, with its number."""
        file = self.file
        free = set(file.free[: file.tree[N_FREE]].tolist())
        pages = [page for page in range(1, int(file.tree[N_PAGES])) if page not in free]
        return dict(zip(pages, self.read(pages), strict=True))
