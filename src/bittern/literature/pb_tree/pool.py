"""The pool of frames: where a kernel finds a page, and reads it if it is not in memory.

A page has a number for ever, a *place* in the file that changes with every commit that changes the
page, and, while it is in memory, a *frame*. All frames are one stretch of memory, seen as words of
32 bits (``ints``) and of 64 (``longs``). Beside them an array of int64, ``pool``, says what is
where::

    header  POOL_HEADER numbers: file descriptor, words per page, counters, what went wrong
    marks   per frame: the step that used it last; 0 if the clock's hand passed since, or never
    owners  per frame: the page in it; 0 if none
    dirty   per frame: 1 if the page was changed since it was read or written
    slots   per page number: (frame + 1) << 32 | place; frame -1 and place 0 are none
    sums    per page number: the low half of the checksum of what was last written to its place

    pages 1, 2, 3; page 2 lies at place 9 of the file, was changed, and is in frame 0
    marks 5 0    owners 2 0    dirty 1 0    slots: - | -1,7 | 0,9 | -1,8

The work goes in *steps*. What a step has fetched stays where it is until the next one begins: the
mark of its frame is the number of the step. A page that is not there takes the frame of another
one: the hand goes round, passes frames of this step and changed ones, gives every frame that was
used since the hand's last visit another round, and takes the first of the rest. Changed pages are
written by the owner of the file, between steps, when ``has_room`` says that few frames are left.

In memory, without a file, the pool is its header alone, and page p is frame p.

A page's first words are the pool's: long 0 is a checksum of the rest, long 1 the version (commit)
that wrote it, word 4 its number. The checksum has to be the one in ``sums`` too: a page that the
disk forgot to write is an older one, sound in itself. What is not as it should be is noted in the
header and raised as ``PageFault``; ``fault`` puts it in words.

Costs: a page that is in memory takes about ten instructions; one that is not takes a call of the
system and the checksum, 4,096 bytes in about 0.3 us. 24 bytes per frame and 16 per page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.jit import (
    apart,
    i4w,
    i8,
    i8r,
    inline,
    kernel,
    read_at,
    u8,
    u8r,
    u8w,
    void,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The header of ``pool``.
FD = 0
"""The file's descriptor; -1 in memory."""
POOL_WORDS = 1
"""Words (of 32 bits) per page."""
STEP = 2
"""The number of the step; from 1 on."""
FRAMES = 3
PAGES = 4
"""How many slots there are: page numbers are smaller."""
OWNERS = 5
"""Where the owners begin; the marks begin at POOL_HEADER."""
DIRTY_FLAGS = 6
SLOTS = 7
ADDRESS = 8
"""Of the frames in memory."""
VERSION = 9
"""No page of a later commit is taken."""
HAND = 10
DIRTY = 11
"""How many frames are dirty."""
MOST_DIRTY = 12
"""How many may be when a step begins."""
READS = 13
"""Pages read from the file so far."""
DROPPED = 14
"""Pages dropped since the owner last set it to 0."""
ERROR = 15
ERROR_PAGE = 16
SUMS = 17
"""Where the sums begin."""
POOL_HEADER = 32

PLACE_BITS = 0xFFFFFFFF
"""The bits of a slot that are the place; those above are the frame's number plus 1."""

SPARE = 64
"""Frames that are clean when a step begins, if ``has_room``: it cannot fetch more than these."""

# The first numbers of ``tree``; the others are the tree's own.
N_PAGES = 0
"""Page numbers given out so far, 0 (no page) and free ones included."""
N_FREE = 1
"""How many of them are on the stack of free pages."""
TREE_SIZE = 64

VERSION_LONG = 1
NUMBER_WORD = 4

_NO_SUCH_PAGE, _NO_PLACE, _IO, _SHORT, _CHECKSUM, _OTHER_PAGE, _LATER, _NO_FRAME, _AWAY, _OLD = (
    range(1, 11)
)

_FAULTS = {
    _NO_SUCH_PAGE: "there is no page with this number",
    _NO_PLACE: "this page is free, and has no contents",
    _IO: "the system cannot read it",
    _SHORT: "the file ends before or within it",
    _CHECKSUM: "its bytes are not those that were written (checksum)",
    _OTHER_PAGE: "another page lies at its place",
    _LATER: "its place was used again by a later commit",
    _NO_FRAME: "all frames are in use in one step",
    _AWAY: "it was changed without having been fetched",
    _OLD: "what lies at its place is not what was last written there",
}

_PRIME = np.uint64(0x9E3779B97F4A7C15)
_OTHER_PRIME = np.uint64(0xC2B2AE3D27D4EB4F)
_LEFT, _RIGHT, _HALF = np.uint64(29), np.uint64(35), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class PageFault(Exception):  # noqa: N818
    """A kernel could not get a page; the pool's header says which, and why."""


def memory_pool(page_bytes: int) -> NDArray[np.int64]:
    """The pool of pages that are all in memory: page p is frame p."""
    pool = np.zeros(POOL_HEADER, np.int64)
    pool[FD] = -1
    pool[POOL_WORDS] = page_bytes // 4
    pool[STEP] = 1
    return pool


def fault(pool: NDArray[np.int64]) -> str:
    """What a kernel complained of, in words; it is forgotten with this."""
    sentence = f"page {pool[ERROR_PAGE]}: {_FAULTS.get(int(pool[ERROR]), 'unknown error')}"
    pool[ERROR] = pool[ERROR_PAGE] = 0
    return sentence


# Checksums


@inline
def _mix(lane: Any, long: Any) -> Any:
    """One step of a lane; for a given lane every long has a result of its own.

    Multiplying carries a bit upwards only, so that the long is multiplied before it is turned: its
    last bit alone would else be taken back by one bit of the lane's next long.
    """
    lane += long * _OTHER_PRIME
    return (lane << _LEFT | lane >> _RIGHT) * _PRIME


@inline
def _checksum(longs: Any, start: Any, count: Any) -> Any:
    """Of ``count`` longs, a multiple of 8, without the first; eight lanes, so none waits."""
    i = np.uint64(start)
    end = i + np.uint64(count)
    one, eight = np.uint64(1), np.uint64(8)
    a = _mix(_PRIME, np.uint64(count))
    b = _mix(_PRIME + one, longs[i + one])
    c = _mix(_PRIME + np.uint64(2), longs[i + np.uint64(2)])
    d = _mix(_PRIME + np.uint64(3), longs[i + np.uint64(3)])
    e = _mix(_PRIME + np.uint64(4), longs[i + np.uint64(4)])
    f = _mix(_PRIME + np.uint64(5), longs[i + np.uint64(5)])
    g = _mix(_PRIME + np.uint64(6), longs[i + np.uint64(6)])
    h = _mix(_PRIME + np.uint64(7), longs[i + np.uint64(7)])
    i += eight
    while i < end:
        a = _mix(a, longs[i])
        b = _mix(b, longs[i + one])
        c = _mix(c, longs[i + np.uint64(2)])
        d = _mix(d, longs[i + np.uint64(3)])
        e = _mix(e, longs[i + np.uint64(4)])
        f = _mix(f, longs[i + np.uint64(5)])
        g = _mix(g, longs[i + np.uint64(6)])
        h = _mix(h, longs[i + np.uint64(7)])
        i += eight
    a = _mix(_mix(_mix(a, b), c), d)
    a = _mix(_mix(_mix(_mix(a, e), f), g), h)
    a = (a ^ a >> _HALF) * _OTHER_PRIME
    return a ^ a >> _HALF


@inline
def _low_half(checksum: Any) -> Any:
    return np.int64(checksum & _LOW)


@kernel(u8, u8r)
def checksum(longs: Any) -> Any:
    """The checksum of one page or meta: of all its longs but the first; a multiple of 8."""
    return _checksum(longs, 0, len(longs))


@kernel(void, i4w, u8w, i8, i8, i8r, i8r)
def stamp(ints: Any, longs: Any, words: Any, version: Any, frames: Any, numbers: Any) -> None:
    """Write version, number and, last, the checksum into the pages in these frames."""
    size = words >> 1
    for i in range(len(frames)):
        start = frames[i] * size
        longs[start + VERSION_LONG] = np.uint64(version)
        ints[2 * start + NUMBER_WORD] = np.int32(numbers[i])
        longs[start] = _checksum(longs, start, size)


@kernel(i8, u8r, i8, i8, i8r, i8r)
def first_unsound(longs: Any, words: Any, version: Any, numbers: Any, sums: Any) -> Any:
    """The first of pages, one behind the other, that is not of this number and sum; or -1."""
    size = words >> 1
    for i in range(len(numbers)):
        start = i * size
        number = np.int32(longs[start + (NUMBER_WORD >> 1)] & np.uint64(0xFFFFFFFF))
        later = longs[start + VERSION_LONG] > np.uint64(version)
        is_old = _low_half(longs[start]) != sums[i]
        if number != numbers[i] or later or is_old or longs[start] != _checksum(longs, start, size):
            return i
    return -1


# For kernels


@inline
def begin(pool: Any) -> None:
    """A new step: what earlier ones fetched may lose its frame from now on."""
    pool[STEP] += 1


@inline
def has_room(pool: Any) -> Any:
    """Whether at least SPARE frames are clean; if not, the owner must flush, between steps."""
    return pool[DIRTY] <= pool[MOST_DIRTY]


@inline
def fetch(pool: Any, longs: Any, page: Any) -> Any:
    """Where in ``ints`` the page begins, for this step; it is read if it is in no frame."""
    if pool[FD] < 0:
        return np.int64(page) * pool[POOL_WORDS]
    if page <= 0 or page >= pool[PAGES]:
        _complain(pool, page, _NO_SUCH_PAGE)
    frame = (pool[pool[SLOTS] + page] >> 32) - 1
    if frame < 0:
        frame = _read(pool, longs, page)
    pool[POOL_HEADER + frame] = pool[STEP]
    return frame * pool[POOL_WORDS]


@apart
def fresh(pool: Any, page: Any) -> Any:
    """Where a page that has just been allocated begins: dirty, with undefined contents."""
    if pool[FD] < 0:
        return np.int64(page) * pool[POOL_WORDS]
    if page <= 0 or page >= pool[PAGES]:
        _complain(pool, page, _NO_SUCH_PAGE)
    slot = pool[SLOTS] + page
    frame = (pool[slot] >> 32) - 1
    if frame < 0:
        frame = _take_frame(pool, page)
        pool[pool[OWNERS] + frame] = page
        pool[slot] |= (frame + 1) << 32
    pool[POOL_HEADER + frame] = pool[STEP]
    _soil(pool, frame)
    return frame * pool[POOL_WORDS]


@apart
def touch(pool: Any, page: Any) -> None:
    """The page, which this step has fetched, is being changed."""
    if pool[FD] < 0:
        return
    if page <= 0 or page >= pool[PAGES]:
        _complain(pool, page, _NO_SUCH_PAGE)
    frame = (pool[pool[SLOTS] + page] >> 32) - 1
    if frame < 0:
        _complain(pool, page, _AWAY)
    _soil(pool, frame)


@apart
def drop(pool: Any, page: Any) -> None:
    """The page is free from now on; what is in its frame need not be written."""
    if pool[FD] < 0:
        return
    if page <= 0 or page >= pool[PAGES]:
        _complain(pool, page, _NO_SUCH_PAGE)
    pool[DROPPED] += 1
    frame = (pool[pool[SLOTS] + page] >> 32) - 1
    if frame >= 0:
        pool[DIRTY] -= pool[pool[DIRTY_FLAGS] + frame]
        pool[pool[DIRTY_FLAGS] + frame] = 0
        _empty(pool, frame)


@inline
def _soil(pool: Any, frame: Any) -> None:
    at = pool[DIRTY_FLAGS] + frame
    pool[DIRTY] += 1 - pool[at]
    pool[at] = 1


@inline
def _empty(pool: Any, frame: Any) -> None:
    owner = pool[OWNERS] + frame
    pool[pool[SLOTS] + pool[owner]] &= PLACE_BITS
    pool[owner] = 0
    pool[POOL_HEADER + frame] = 0


@apart
def _complain(pool: Any, page: Any, error: Any) -> None:
    pool[ERROR] = error
    pool[ERROR_PAGE] = page
    raise PageFault


@apart
def _take_frame(pool: Any, page: Any) -> Any:
    """An empty frame, which may have been another page's."""
    frames, step = pool[FRAMES], pool[STEP]
    hand = pool[HAND]
    for _ in range(2 * frames + 1):
        frame = hand
        hand = hand + 1 if hand + 1 < frames else 0
        mark = pool[POOL_HEADER + frame]
        if mark == step or pool[pool[DIRTY_FLAGS] + frame]:
            continue
        if mark:
            pool[POOL_HEADER + frame] = 0
            continue
        if pool[pool[OWNERS] + frame]:
            _empty(pool, frame)
        pool[HAND] = hand
        return frame
    _complain(pool, page, _NO_FRAME)
    return 0


@apart
def _read(pool: Any, longs: Any, page: Any) -> Any:
    """Read the page from its place into a frame, and verify that it is this page."""
    slot = pool[SLOTS] + page
    place = pool[slot] & PLACE_BITS
    if place == 0:
        _complain(pool, page, _NO_PLACE)
    frame = _take_frame(pool, page)
    size = pool[POOL_WORDS] * 4
    done = 0
    while done < size:
        address = np.uint64(pool[ADDRESS] + frame * size + done)
        rest = np.uint64(size - done)
        count = read_at(np.int32(pool[FD]), address, rest, np.int64(place * size + done))
        if count <= 0:
            _complain(pool, page, _IO if count < 0 else _SHORT)
        done += count
    pool[READS] += 1
    start = frame * (size >> 3)
    if longs[start] != _checksum(longs, start, size >> 3):
        _complain(pool, page, _CHECKSUM)
    if np.int64(longs[start + (NUMBER_WORD >> 1)] & np.uint64(0xFFFFFFFF)) != page:
        _complain(pool, page, _OTHER_PAGE)
    if longs[start + VERSION_LONG] > np.uint64(pool[VERSION]):
        _complain(pool, page, _LATER)
    if _low_half(longs[start]) != pool[pool[SUMS] + page]:
        _complain(pool, page, _OLD)
    pool[pool[OWNERS] + frame] = page
    pool[slot] |= (frame + 1) << 32
    return frame
