"""What a version of a page file is made of: a meta, and a table from page numbers to places.

The file is a row of places, each as long as a page. The first 8,192 bytes hold two metas; commit t
writes the one of number t % 2, twice, so that a damaged one is not taken for one that was never
written. The newest that is whole wins::

    byte 0      meta of even versions     meta of even versions, again
    byte 4096   meta of odd versions      meta of odd versions, again
    then        pages and maps, wherever there was room

    meta   checksum, version, magic, format, page_bytes, end, root, length of record, root's
           sum; tree; record

The table has an entry for each page: its place, 0 for a free page, and its *sum*, the low half of
its checksum, 32 bits each. It is cut into *maps*, pages that hold one stretch each, first the
places and behind them the sums. The maps have entries again, which are cut the same way, until one
map is left: the root, whose entry is in the meta. With pages of 4,096 bytes, 504 entries in each::

    20,000 pages      maps of level 0: 40      maps of level 1: 1, the root

A commit writes only the maps with an entry that changed, and those above them. A map is a page with
checksum and version like any other; its number is -1 - (its position in its level), and word 5 is
the level.

So the meta stands for every byte of its version. A page or map that was sound once, at the same
place, is told from the one that was committed last, as is one that was never written. Only a lost
meta cannot be told: the version before it is whole then, and the newest.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from bittern.arrays import Int64s
from bittern.errors import OptionError, PageError, brief
from bittern.literature.pb_tree.disk import Disk
from bittern.literature.pb_tree.places import Places
from bittern.literature.pb_tree.pool import (
    N_FREE,
    N_PAGES,
    TREE_SIZE,
    checksum,
    first_unsound,
    stamp,
)
from bittern.stabbing.contract import as_integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

_VERIFIED_AT_ONCE = 1024

PAGE_SIZES = tuple(1 << bits for bits in range(9, 17))
MOST_PAGES = (1 << 31) - 1
MOST_RECORD = 256

_FORMAT = 3
_MAGIC = int.from_bytes(b"btrnpage", "little")
_SLOT_BYTES = 4096
_COPY_BYTES = 2048
_TREE_AT = 16
_RECORD_AT = _TREE_AT + TREE_SIZE
_MAP_START = 16
_LEVEL_WORD = 5


class PageEntries(NamedTuple):
    """Where pages or maps are, and the low halves of their checksums."""

    places: Int64s
    sums: Int64s

    @classmethod
    def none(cls, count: int) -> Self:
        """So many, all without a place."""
        return cls(np.zeros(count, np.int64), np.zeros(count, np.int64))


def sums_of(pages: NDArray[np.uint64]) -> Int64s:
    """The low halves of their checksums, a page in each row."""
    return (pages[:, 0] & np.uint64(0xFFFFFFFF)).astype(np.int64)


class Meta(NamedTuple):
    """One version: all that is known of it without reading further."""

    version: int
    page_bytes: int
    end: int
    """Places that the file has at least."""
    root: int
    """The place of the one map of the last level; 0 if there are no pages."""
    root_sum: int
    """The low half of its checksum."""
    tree: Int64s
    record: bytes

    @property
    def n_pages(self) -> int:
        """Page numbers given out, 0 included."""
        return int(self.tree[N_PAGES])


def checked_page_bytes(page_bytes: int) -> int:
    """The size of a page; OptionError if there is none of that size."""
    size = as_integer(page_bytes, "page_bytes")
    if size not in PAGE_SIZES:
        known = ", ".join(map(str, PAGE_SIZES))
        raise OptionError(f"page_bytes is {brief(size)}: choose from {known}")
    return size


def first_place(page_bytes: int) -> int:
    """The first place behind the metas."""
    return -(-2 * _SLOT_BYTES // page_bytes)


def meta_offset(version: int) -> int:
    """Where the meta of this version is written."""
    return version % 2 * _SLOT_BYTES


def is_page_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file that begins as a page file does, sound or not; nothing is locked."""
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        head = file.read(2 * _SLOT_BYTES)
    magic = _MAGIC.to_bytes(8, "little")
    return any(head[at + 16 : at + 24] == magic for at in range(0, len(head), _COPY_BYTES))


def pack(meta: Meta) -> bytes:
    """The bytes of a meta: both copies."""
    longs = np.zeros(_COPY_BYTES // 8, np.int64)
    longs[1:9] = (
        meta.version,
        _MAGIC,
        _FORMAT,
        meta.page_bytes,
        meta.end,
        meta.root,
        len(meta.record),
        meta.root_sum,
    )
    longs[_TREE_AT:_RECORD_AT] = meta.tree
    raw = longs.view(np.uint8)
    raw[_RECORD_AT * 8 :][: len(meta.record)] = np.frombuffer(meta.record, np.uint8)
    longs.view(np.uint64)[0] = checksum(longs.view(np.uint64))
    return longs.tobytes() * 2


def _unpack(longs: Int64s, path: Path) -> Meta:
    version, _, form, page_bytes, end, root, length, root_sum = longs[1:9].tolist()
    if form != _FORMAT:
        raise PageError(
            f"{path} is a page file of format {form}; this release reads format {_FORMAT}: create "
            "it again"
        )
    record = longs.view(np.uint8)[_RECORD_AT * 8 :][: max(0, length)].tobytes()
    tree = longs[_TREE_AT:_RECORD_AT].copy()
    meta = Meta(version, page_bytes, end, root, root_sum, tree, record)
    if not (
        page_bytes in PAGE_SIZES
        and 0 < meta.n_pages <= MOST_PAGES
        and length == len(record) <= MOST_RECORD
        and end >= first_place(page_bytes)
        and (root == 0 if meta.n_pages == 1 else first_place(page_bytes) <= root < end)
    ):
        raise PageError(f"{path} is damaged: its meta makes no sense")
    return meta


def read_metas(disk: Disk) -> list[Meta]:
    """The versions whose metas are whole, newest first: one or two."""
    path = disk.path
    copies = np.frombuffer(disk.read(0, 2 * _SLOT_BYTES), np.int64).reshape(-1, _COPY_BYTES // 8)
    ours = [copy for copy in copies if copy[2] == _MAGIC]
    if not ours:
        raise PageError(f"{path} is not a page file")
    whole = [copy for copy in ours if checksum(copy.view(np.uint64)) == copy.view(np.uint64)[0]]
    metas = {copy[1]: _unpack(copy, path) for copy in whole}
    if not metas:
        raise PageError(f"{path} is damaged: neither of its metas is whole")
    newest = max(metas)
    return [metas[version] for version in (newest, newest - 1) if version in metas]


def _per_map(page_bytes: int) -> int:
    """How many entries a map has: first their places, then their sums."""
    return (page_bytes // 4 - _MAP_START) // 2


def _sizes(n_pages: int, page_bytes: int) -> list[int]:
    """How many entries each level of the table has, the pages' first; the last has one."""
    per = _per_map(page_bytes)
    sizes = [n_pages]
    while n_pages > 1 and (len(sizes) == 1 or sizes[-1] > 1):
        sizes.append(-(-sizes[-1] // per))
    return sizes


def read_table(disk: Disk, meta: Meta) -> list[PageEntries]:
    """The table of a version: of its pages, of the maps of level 0, of level 1, ..."""
    path = disk.path
    sizes = _sizes(meta.n_pages, meta.page_bytes)
    if meta.page_bytes != disk.page_bytes or sum(sizes[1:]) > meta.end:
        raise PageError(f"{path} is damaged: its meta makes no sense")
    if len(sizes) == 1:
        return [PageEntries.none(1)]
    words, per = meta.page_bytes // 4, _per_map(meta.page_bytes)
    first = first_place(meta.page_bytes)
    levels = [PageEntries(np.array([meta.root]), np.array([meta.root_sum]))]
    for level in range(len(sizes) - 2, -1, -1):
        maps = disk.read_pages(levels[0].places)
        numbers = -1 - np.arange(len(maps))
        bad = first_unsound(maps.reshape(-1), words, meta.version, numbers, levels[0].sums)
        entries = maps.view(np.uint32)
        if bad >= 0 or (entries[:, _LEVEL_WORD] != level).any():
            raise PageError(f"{path} is damaged: map {max(0, bad)} of level {level} is not sound")
        both = entries[:, _MAP_START:].reshape(-1, 2, per).swapaxes(0, 1).reshape(2, -1)
        places, sums = both[:, : sizes[level]].astype(np.int64)
        outside = (places < first) | (places >= meta.end)
        if level == 0:
            outside &= places != 0
        if outside.any():
            raise PageError(f"{path} is damaged: a place in its table lies outside the file")
        levels.insert(0, PageEntries(places, sums))
    return levels


def verify(disk: Disk, meta: Meta) -> None:
    """Read all that a version has, and see that it is sound; PageError says what is not."""
    path = disk.path
    (places, sums), *maps = read_table(disk, meta)
    used = np.concatenate([places[places > 0], *(level.places for level in maps)])
    if len(np.unique(used)) != len(used):
        raise PageError(f"{path} is damaged: two pages have the same place")
    if np.count_nonzero(places[1:] == 0) != meta.tree[N_FREE]:
        raise PageError(f"{path} is damaged: a page that is not free has no place")
    numbers = np.flatnonzero(places)
    for start in range(0, len(numbers), _VERIFIED_AT_ONCE):
        some = numbers[start : start + _VERIFIED_AT_ONCE]
        longs = disk.read_pages(places[some]).reshape(-1)
        bad = first_unsound(longs, meta.page_bytes // 4, meta.version, some, sums[some])
        if bad >= 0:
            raise PageError(f"{path} is damaged: page {some[bad]} is not sound")


def write_table(
    disk: Disk,
    places: Places,
    version: int,
    table: PageEntries,
    maps: list[PageEntries],
    changed: Int64s,
) -> list[PageEntries]:
    """Write the maps with changed pages, and those above; the entries of all maps, level by level.

    ``maps`` are those of the version before, whose table may have been shorter.
    """
    words = disk.page_bytes // 4
    per = _per_map(disk.page_bytes)
    written: list[PageEntries] = []
    for level, size in enumerate(_sizes(len(table.places), disk.page_bytes)[1:]):
        old = maps[level] if level < len(maps) else PageEntries.none(0)
        new = PageEntries.none(size)
        new.places[: len(old.places)], new.sums[: len(old.sums)] = old
        blocks = np.union1d(changed // per, np.arange(len(old.places), size))
        pages = np.zeros((len(blocks), words), np.int32)
        at = blocks[:, None] * per + np.arange(per)
        inside, at = at < len(table.places), np.minimum(at, len(table.places) - 1)
        held = [np.where(inside, each[at], 0) for each in table]
        pages.view(np.uint32)[:, _MAP_START:] = np.concatenate(held, axis=1)
        pages[:, _LEVEL_WORD] = level
        longs = pages.view(np.uint64)
        rows = np.arange(len(blocks))
        stamp(pages.reshape(-1), longs.reshape(-1), words, version, rows, -1 - blocks)
        left = new.places[blocks]
        places.leave(left[left > 0])
        new.places[blocks], new.sums[blocks] = places.take(len(blocks)), sums_of(longs)
        disk.write_pages(longs, rows, new.places[blocks])
        written.append(new)
        table, changed = new, blocks
    return written
