"""A predicate index on disk: a PB+tree in a page file, larger than memory if need be.

>>> import tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "price.pb")
>>> with PredicateFile.create(path, "float") as prices:
...     prices.insert("<", 100, 1)
...     prices.insert_many([">=", "!=", "="], [250.0, 120.0, 99.5], [2, 3, 4])
>>> with PredicateFile.open(path) as prices:
...     sorted(prices.search(99.5).tolist())
[1, 3, 4]

All predicates of a file are on one attribute, whose constants are of one kind: integers, floats,
strings or timestamps. A value of an event satisfies a predicate as in SQL: NULL satisfies none, NaN
equals itself and is above every number, strings are ordered by their UTF-8 bytes. Values may be of
finer grain than constants: 2.5 among integers.

Changes belong to the file when ``commit`` returns, all of them or none, whatever happens to the
process. One process writes; others read the version that they opened, until they ``refresh``. The
cache bounds the memory; beside it, 20 bytes per page are in memory. Threads take turns.

A sid is an integer from 0 to 2**31 - 1, of a subscription or of whatever the predicate is a part
of. It is found as often as its predicates are satisfied. The tree stores ``>=`` as ``=`` and ``>``
and forgets that they belong together: what is deleted is to have been inserted. Deleting ``=``
where ``>=`` was inserted leaves ``>``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from bittern.arrays import Int32s, Int64s
from bittern.errors import OptionError, PageError, brief
from bittern.literature.pb_tree.check import check_tree
from bittern.literature.pb_tree.fill import fill_by_kind
from bittern.literature.pb_tree.frames import checked_frames
from bittern.literature.pb_tree.keys import (
    KINDS,
    check_constants,
    encode,
    encode_one,
    keys_of,
)
from bittern.literature.pb_tree.page_file import PageFile
from bittern.literature.pb_tree.page_table import checked_page_bytes
from bittern.literature.pb_tree.pages import NUMBER_BYTES, ROOT, TreeKeys
from bittern.literature.pb_tree.pool import PageFault
from bittern.literature.pb_tree.search import search_one
from bittern.literature.pb_tree.tree import PAGE_BYTES, Tree, new_tree
from bittern.literature.predicates.contract import OPERATORS
from bittern.processes import follow_forks
from bittern.stabbing.contract import as_int32

if TYPE_CHECKING:
    from numpy.typing import NDArray

CACHE_BYTES = 64 << 20
"""Memory for pages, unless said otherwise."""

_ROOM = 1024
"""Sids that one search is given room for at first."""

_MOST_ROOM = 1 << 20

_LAST_SID = 2**31 - 1


class SortedPredicates(NamedTuple):
    """Predicates in the order of their constants, as a tree takes them."""

    keys: TreeKeys
    operators: NDArray[np.uint8]
    sids: Int32s


class PredicateFile:
    """An open predicate index on disk; see the module for the rules."""

    def __init__(self, file: PageFile, *, writable: bool) -> None:
        """Not to be called: ``create`` or ``open`` one."""
        self._file = file
        self._writable = writable
        self.kind = file.record.decode("ascii", "replace")
        """What its constants are."""
        if self.kind not in KINDS:
            raise PageError(f"the page file does not hold predicates, but {self.kind!r}")
        self._tree = Tree(file)
        self._lock = threading.RLock()
        self._torn = False
        self._room = np.empty(_ROOM, np.int32)
        follow_forks(self)
        if writable and not self._is_planted:
            with self._changing():
                file.make_room()
                self._tree.plant()
            self.commit()

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        kind: str,
        *,
        page_bytes: int = PAGE_BYTES,
        cache_bytes: int = CACHE_BYTES,
    ) -> Self:
        """Make an empty index of constants of a kind, and open it for writing.

        ``kind`` is "integer", "float", "string" or "timestamp"; ``page_bytes`` a power of two from
        512 to 65,536. A string constant may have an eighth of a page and 8 bytes.
        """
        if not isinstance(kind, str) or kind not in KINDS:
            raise OptionError(
                f"no kind of keys is called {brief(kind)}: choose from {', '.join(KINDS)}"
            )
        size = checked_page_bytes(page_bytes)
        checked_frames(cache_bytes, size)
        PageFile.create(path, size, new_tree(size), kind.encode())
        return cls.open(path, writable=True, cache_bytes=cache_bytes)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        writable: bool = False,
        cache_bytes: int = CACHE_BYTES,
    ) -> Self:
        """Open an index at its newest version, with so much memory for its pages."""
        file = PageFile.open(path, writable=writable, cache_bytes=cache_bytes)
        try:
            return cls(file, writable=writable)
        except BaseException:
            file.close()
            raise

    # -- changes -------------------------------------------------------------------------------

    def insert(self, operator: str, constant: Any, sid: int) -> None:
        """Add one predicate: O(log n), and the leaves whose pointers are adjusted."""
        rows = self._one(operator, constant, sid)
        with self._changing():
            self._tree.insert(*rows)

    def insert_many(self, operators: Any, constants: Any, sids: Any) -> None:
        """Add predicates; ``operators`` is one for all of them, or one for each.

        All are read before the first is added. In the order of the constants they are added
        fastest, and leave the fullest pages; so they are sorted here.
        """
        rows, _ = self._many(operators, constants, sids)
        with self._changing():
            self._tree.insert(*rows)

    def delete(self, operator: str, constant: Any, sid: int) -> None:
        """Take one predicate out; OptionError, and no change, if it is not there.

        As ``insert``.
        """
        rows = self._one(operator, constant, sid)
        with self._changing():
            found = self._tree.delete(*rows)[0]
        if not found:
            raise OptionError(
                f"predicate {operator} {constant!r} with sid {sid} is not in the index: "
                "delete exactly what was inserted"
            )

    def delete_many(self, operators: Any, constants: Any, sids: Any) -> NDArray[np.bool_]:
        """Take predicates out; True for each that was there."""
        rows, order = self._many(operators, constants, sids)
        found = np.zeros(len(order), np.bool_)
        with self._changing():
            found[order] = self._tree.delete(*rows)
        return found

    def commit(self) -> None:
        """Make the changes the newest version; they are on disk when this returns."""
        with self._lock:
            self._check_whole()
            self._file.commit()

    def rollback(self) -> None:
        """Forget the changes since the last commit."""
        with self._lock:
            self._file.rollback()
            self._torn = False

    def _one(self, operator: str, constant: Any, sid: int) -> SortedPredicates:
        """One predicate, read on a shorter way if it is of the usual types."""
        key = encode_one(self.kind, constant, "constants")
        is_key = key is not None and (self.kind == "string" or key.length == NUMBER_BYTES)
        is_sid = type(sid) is int and 0 <= sid <= _LAST_SID
        if key is None or not is_key or not is_sid or key.length > self._most_bytes:
            return self._many(operator, [constant], [sid])[0]  # which says what is wrong
        codes, sids = np.array([_code(operator)], np.uint8), np.array([sid], np.int32)
        return SortedPredicates(keys_of(key), codes, sids)

    def _many(self, operators: Any, constants: Any, sids: Any) -> tuple[SortedPredicates, Int64s]:
        """Predicates, and where each was among those given; OptionError if one is none."""
        encoded = encode(self.kind, constants, "constants")
        check_constants(encoded, self.kind, self._most_bytes)
        numbers = as_int32(sids, "sids")
        if len(numbers) and numbers.min() < 0:
            raise OptionError(f"sid {int(numbers.min())} is negative: sids start at 0")
        codes = _codes(operators, len(numbers))
        if not len(codes) == len(encoded.valid) == len(numbers):
            raise OptionError(
                f"operators, constants and sids have {len(codes)}, {len(encoded.valid)} and "
                f"{len(numbers)} items: give one of each per predicate"
            )
        order = encoded.order()
        return SortedPredicates(encoded.take(order), codes[order], numbers[order]), order

    @property
    def _most_bytes(self) -> int:
        """Of a string constant, so that a page holds several."""
        return 8 + self._file.page_bytes // 8

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A change that ends early leaves pages that do not fit together: only to roll back."""
        with self._lock, self._file.translated():
            self._check_whole()
            self._file.check_writable()
            self._torn = True
            yield
            self._torn = False

    def _check_whole(self) -> None:
        self._file.check_usable()
        if self._torn:
            raise PageError("a change ended early: roll back first")

    # -- searching -----------------------------------------------------------------------------

    def search(self, value: Any) -> Int32s:
        """Sids of the predicates that a value satisfies: O(log n) page visits, and the output."""
        key, pages = encode_one(self.kind, value, "values"), self._file
        with self._lock:
            self._check_whole()
            room = self._room
            while key is not None and self._is_planted:
                try:
                    count = search_one(pages.pool, pages.ints, pages.longs, pages.tree, *key, room)
                except PageFault:
                    raise self._file.what_is_wrong() from None
                if count <= len(room):
                    return room[:count].copy()
                room = np.empty(count, np.int32)
                if count <= _MOST_ROOM:  # a rare large answer does not stay in memory
                    self._room = room
        return np.empty(0, np.int32)

    def search_batch(self, values: Any) -> tuple[Int64s, Int32s]:
        """Sids per value, as offsets and one flat array; pages are visited in order, once.

        The predicates that ``values[i]`` satisfies have ``sids[offsets[i]:offsets[i + 1]]``.
        """
        encoded = encode(self.kind, values, "values")
        order = encoded.order()
        keys = encoded.take(order)
        offsets = np.zeros(len(encoded.valid) + 1, np.int64)
        with self._searching():
            if not self._is_planted:
                return offsets, np.empty(0, np.int32)
            counts = np.zeros(len(order), np.int64)
            counted = self._tree.search(keys, counts)
            offsets[order + 1] = counts
            np.cumsum(offsets, out=offsets)
            sids = np.empty(int(offsets[-1]), np.int32)
            self._tree.search(keys, offsets[order], sids, counted=counted)
        return offsets, sids

    @contextmanager
    def _searching(self) -> Iterator[None]:
        with self._lock, self._file.translated():
            self._check_whole()
            yield

    def refresh(self) -> bool:
        """Move a reader on to the newest version; False if it was there already."""
        with self._lock:
            return self._file.refresh()

    # -- looking inside ------------------------------------------------------------------------

    @property
    def _is_planted(self) -> bool:
        """Whether there is a tree: no writer got that far if its making was cut short."""
        return bool(self._file.tree[ROOT])

    @property
    def version(self) -> int:
        """The commit that is read, or that changes start from."""
        return self._file.version

    def statistics(self) -> dict[str, Any]:
        """Figures that explain size and speed, of the tree and of the file: O(1)."""
        with self._lock:
            return {"kind": self.kind, **self._file.statistics(), **self._tree.statistics()}

    def fill(self) -> dict[str, float]:
        """How full the pages are, by what they are: reads all of them."""
        with self._searching():
            return fill_by_kind(self._file)

    def check(self) -> None:
        """Verify every page, and every invariant of the tree: O(size).

        PageError if the file is damaged; AssertionError says which invariant is broken.
        """
        with self._searching():
            if not self._writable:
                self._file.verify()
            if self._is_planted:
                check_tree(self._file)

    def close(self) -> None:
        """Let go of the file; changes since the last commit are gone."""
        with self._lock:
            self._file.close()

    def after_fork(self) -> None:
        """Let a forked child be refused, without waiting for what a thread of its parent holds."""
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commit if all went well, and close."""
        try:
            if kind is None and self._writable:
                self.commit()
        finally:
            self.close()


def _codes(operators: Any, n: int) -> NDArray[np.uint8]:
    """Operators as codes, one for each predicate."""
    if isinstance(operators, str):
        operators = _code(operators)
    try:
        given = np.asarray(operators)
    except ValueError:
        raise OptionError(
            "operators must be one operator for all predicates, or a list of operators"
        ) from None
    if given.ndim == 0:  # one for all
        given = np.full(n, given)
    if given.ndim == 1 and given.dtype.kind in "iu":
        wrong = (given < 0) | (given >= len(OPERATORS))
        if wrong.any():
            raise OptionError(f"{given[int(np.argmax(wrong))]} is not an operator: use 0 to 5")
        return given.astype(np.uint8)
    if given.ndim != 1:
        raise OptionError(f"operators must be one-dimensional, not of shape {given.shape}")
    texts = [each if isinstance(each, str) else brief(each) for each in given.tolist()]
    names, places = np.unique(np.array(texts, str), return_inverse=True)
    return np.array([_code(str(name)) for name in names], np.uint8)[places]


def _code(operator: str) -> int:
    try:
        return OPERATORS.index(operator)
    except ValueError:
        known = " ".join(OPERATORS)
        raise OptionError(f"{brief(operator)} is not an operator: choose from {known}") from None
