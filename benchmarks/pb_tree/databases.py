"""SQLite and LMDB with the same predicates, each in the fastest form that was found.

Both keep four *sides*: ``=``, ``!=``, *less* (``<`` and ``<=``) and *greater* (``>`` and ``>=``), a
row for each predicate, in the order of (constant, edge, sid). The *edge* tells apart what is strict
(``>``: 1, ``>=``: 0; ``<``: 0, ``<=``: 1), so that each side is one range that begins or ends at
(value, 1)::

    greater   (3, >=) (5, >=) (5, >) (7, >=)       less   (3, <) (5, <) (5, <=) (7, <)
    value 5   ---------------|                     value 5             |--------------

SQLite: the rows are a table WITHOUT ROWID whose primary key covers everything, and a search is one
prepared statement, UNION ALL of five range scans. The sids come back as one text, by
``group_concat``, which NumPy reads: half the time of a row for each, which the driver makes a tuple
of. Joining a table of values was no faster than one search after the other. The journal is a WAL,
the cache and the memory map are larger than the database; a commit reaches the disk (synchronous).

LMDB has two forms. *cursor*: a side is one key of a DUPSORT database with fixed size, a predicate a
value of 12 bytes, constant and edge and sid in big-endian order; a search positions the cursor and
joins what ``iterprev_dup`` or ``iternext_dup`` yield to the end of the side. *chunks*: a side is
divided into chunks of 256, each under its own key, where they begin is kept in an array, and
``getmulti`` copies whole chunks in C, of which NumPy drops what does not hold; a chunk keeps its
bounds when predicates are inserted. ``=`` is a database of its own in both, a key for each constant
and its sids as values. One read transaction and its cursors serve all searches.
"""

from __future__ import annotations

import sqlite3
import struct
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from benchmarks.draw import Floats, Ints
from benchmarks.pb_tree.peers import Given, Int32s, Peer, offsets_of
from benchmarks.pb_tree.workloads import Predicates, ordered_keys
from bittern.literature.predicates.contract import AT_LEAST, AT_MOST, EQUAL, GREATER, LESS, UNEQUAL

EQUALS, UNEQUALS, LESSER, GREATER_SIDE = range(4)
SIDES = {
    EQUAL: (EQUALS, 0),
    UNEQUAL: (UNEQUALS, 0),
    LESS: (LESSER, 0),
    AT_MOST: (LESSER, 1),
    GREATER: (GREATER_SIDE, 1),
    AT_LEAST: (GREATER_SIDE, 0),
}
"""Side and edge of each operator."""

_SIDE, _EDGE = (np.array([SIDES[operator][i] for operator in range(6)]) for i in range(2))


def _by_side(predicates: Predicates) -> tuple[Ints, Predicates]:
    """Sides and predicates in the order in which they are stored."""
    sides, edges = _SIDE[predicates.operators], _EDGE[predicates.operators]
    order = np.lexsort((predicates.sids, edges, predicates.constants, sides))
    return sides[order], predicates.taken(order)


class SQLite(Peer):
    """A covering primary key and range scans."""

    name = "SQLite"
    on_disk = True
    search_sql: ClassVar[str] = (
        "SELECT group_concat(sid) FROM ("
        " SELECT sid FROM p WHERE side = 0 AND key = ?1"
        " UNION ALL SELECT sid FROM p WHERE side = 1 AND key < ?1"
        " UNION ALL SELECT sid FROM p WHERE side = 1 AND key > ?1"
        " UNION ALL SELECT sid FROM p WHERE side = 2 AND (key, edge) > (?1, 0)"
        " UNION ALL SELECT sid FROM p WHERE side = 3 AND (key, edge) < (?1, 1))"
    )
    insert_sql: ClassVar[str] = "INSERT INTO p VALUES (?, ?, ?, ?)"
    delete_sql: ClassVar[str] = "DELETE FROM p WHERE (side, key, edge, sid) = (?, ?, ?, ?)"

    def __init__(self, given: Given) -> None:
        self._path = given.folder / "sqlite.db"
        self._connection = sqlite3.connect(self._path, isolation_level=None)
        self._execute = self._connection.execute
        for setting in (
            "page_size = 4096",
            "journal_mode = WAL",
            "synchronous = FULL",
            "cache_size = -8000000",
            "mmap_size = 16000000000",
        ):
            self._execute(f"PRAGMA {setting}")
        self._execute(
            "CREATE TABLE p (side INTEGER, key REAL, edge INTEGER, sid INTEGER,"
            " PRIMARY KEY (side, key, edge, sid)) WITHOUT ROWID"
        )
        self._execute("BEGIN")
        self._many(self.insert_sql, given.predicates)
        self.commit()
        self._execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def search(self, value: float) -> Int32s:  # noqa: D102
        (text,) = self._execute(self.search_sql, (value,)).fetchone()
        return np.fromstring(text or "", np.int32, sep=",")

    def search_batch(self, values: Floats) -> tuple[Ints, Int32s]:  # noqa: D102
        one = self._execute
        texts = [one(self.search_sql, (value,)).fetchone()[0] for value in values.tolist()]
        counts = [text.count(",") + 1 if text else 0 for text in texts]
        return offsets_of(counts), np.fromstring(",".join(filter(None, texts)), np.int32, sep=",")

    def insert(self, operator: int, constant: float, sid: int) -> None:  # noqa: D102
        side, edge = SIDES[operator]
        self._begin()
        self._execute(self.insert_sql, (side, constant, edge, sid))

    def delete(self, operator: int, constant: float, sid: int) -> None:  # noqa: D102
        side, edge = SIDES[operator]
        self._begin()
        self._execute(self.delete_sql, (side, constant, edge, sid))

    def insert_many(self, predicates: Predicates) -> None:  # noqa: D102
        self._begin()
        self._many(self.insert_sql, predicates)

    def delete_many(self, predicates: Predicates) -> None:  # noqa: D102
        self._begin()
        self._many(self.delete_sql, predicates)

    def _many(self, sql: str, predicates: Predicates) -> None:
        sides, rows = _by_side(predicates)
        columns = (sides, rows.constants, _EDGE[rows.operators], rows.sids)
        self._connection.executemany(sql, zip(*(c.tolist() for c in columns), strict=True))

    def _begin(self) -> None:
        if not self._connection.in_transaction:
            self._execute("BEGIN")

    def commit(self) -> None:  # noqa: D102
        self._execute("COMMIT")

    @property
    def nbytes(self) -> int:  # noqa: D102
        return self._path.stat().st_size

    def close(self) -> None:  # noqa: D102
        self._connection.close()


_CHUNK = 256
_RECORD = np.dtype([("key", ">u8"), ("sid", ">u4")])
_CHUNKED = np.dtype([("chunk", ">u4"), *_RECORD.descr])
_EDGE_BIT = 1 << 31
_SIDE_BITS = 28
_NONE = np.empty(0, ">u4")


def _records(predicates: Predicates) -> Any:
    """Constant, edge in the highest bit of the sid, sid: in this order as bytes."""
    records = np.empty(len(predicates), _RECORD)
    records["key"] = ordered_keys(predicates.constants).view(np.uint64) ^ np.uint64(1 << 63)
    records["sid"] = predicates.sids + _EDGE_BIT * _EDGE[predicates.operators]
    return records


def _key(constant: float) -> int:
    """The key of one constant, as records have it."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", constant))
    return int(bits ^ (2**64 - 1) if bits >> 63 else bits | 1 << 63)


class LMDB(Peer):
    """What both forms share: the environment, transactions, ``=``, and changes."""

    on_disk = True

    def __init__(self, given: Given) -> None:
        import lmdb

        place = str(given.folder / type(self).__name__)
        self._environment = lmdb.open(place, map_size=32 << 30, max_dbs=2)
        self._ranges = self._environment.open_db(b"ranges", dupsort=True, dupfixed=True)
        self._equals = self._environment.open_db(b"equals", dupsort=True, dupfixed=True)
        self._writing: Any = None
        self._prepare(given.predicates)
        self._put(given.predicates, append=True)
        self.commit()

    def _prepare(self, predicates: Predicates) -> None:
        """Look at what will be stored first."""

    @abstractmethod
    def _range_keys(self, side: int, keys: Any) -> list[bytes]:
        """Under which key each predicate of a side is stored, for its constant."""

    def _read(self) -> None:
        self._reading = self._environment.begin()
        self._range_cursor = self._reading.cursor(self._ranges)
        self._equal_cursor = self._reading.cursor(self._equals)

    def _write(self) -> Any:
        if self._writing is None:
            self._writing = self._environment.begin(write=True)
        return self._writing

    def commit(self) -> None:  # noqa: D102
        self._write().commit()
        self._writing = None
        self._read()

    def search_batch(self, values: Floats) -> tuple[Ints, Int32s]:  # noqa: D102
        found = [self.search(value) for value in values.tolist()]
        return offsets_of([len(ids) for ids in found]), np.concatenate([np.empty(0, "i4"), *found])

    def _equal_to(self, key: int) -> Any:
        """Sids of the predicates ``=`` with this constant."""
        of = (key.to_bytes(8),)
        got = self._equal_cursor.getmulti(of, dupdata=True, dupfixed_bytes=4, keyfixed=True)
        return np.frombuffer(got, _RECORD)["sid"]

    def _stored(self, operator: int, constant: float, sid: int) -> tuple[bytes, bytes, Any]:
        """Key, value and database of a predicate."""
        side, edge = SIDES[operator]
        key = _key(constant)
        if side == EQUALS:
            return key.to_bytes(8), sid.to_bytes(4), self._equals
        value = struct.pack(">QI", key, sid | edge << 31)
        return self._range_keys(side, [key])[0], value, self._ranges

    def insert(self, operator: int, constant: float, sid: int) -> None:  # noqa: D102
        key, value, database = self._stored(operator, constant, sid)
        self._write().put(key, value, db=database)

    def delete(self, operator: int, constant: float, sid: int) -> None:  # noqa: D102
        self._write().delete(*self._stored(operator, constant, sid))

    def insert_many(self, predicates: Predicates) -> None:  # noqa: D102
        self._put(predicates, append=False)

    def _put(self, predicates: Predicates, *, append: bool) -> None:
        sides, rows = _by_side(predicates)
        for side in range(4):
            records = _records(rows.taken(sides == side))
            raw = records.tobytes()
            if side == EQUALS:
                pairs = ((raw[i : i + 8], raw[i + 8 : i + 12]) for i in range(0, len(raw), 12))
                self._write().cursor(self._equals).putmulti(pairs, append=append)
            else:
                keys = self._range_keys(side, records["key"])
                at = range(0, len(raw), 12)
                pairs = ((key, raw[i : i + 12]) for key, i in zip(keys, at, strict=True))
                self._write().cursor(self._ranges).putmulti(pairs, append=append)

    @property
    def nbytes(self) -> int:  # noqa: D102
        page_bytes = self._environment.stat()["psize"]
        return int((self._environment.info()["last_pgno"] + 1) * page_bytes)

    def close(self) -> None:  # noqa: D102
        self._reading.abort()
        self._environment.close()


class LMDBCursor(LMDB):
    """A cursor that yields the predicates of a side one by one."""

    name = "LMDB, cursor"

    def _range_keys(self, side: int, keys: Any) -> list[bytes]:
        return [bytes([side])] * len(keys)

    def search(self, value: float) -> Int32s:  # noqa: D102
        key = _key(value)
        first, edge = struct.pack(">QI", key, 0), struct.pack(">QI", key, _EDGE_BIT)
        raw = b"".join(
            [
                *self._before(UNEQUALS, first),
                *self._from(UNEQUALS, struct.pack(">QI", key, 2**32 - 1)),
                *self._from(LESSER, edge),
                *self._before(GREATER_SIDE, edge),
            ]
        )
        ranged = np.frombuffer(raw, _RECORD)["sid"] & (_EDGE_BIT - 1)
        return np.concatenate([ranged, self._equal_to(key)]).astype(np.int32)

    def _before(self, side: int, bound: bytes) -> Any:
        """What is less than the bound, from there to the beginning of the side."""
        cursor, key = self._range_cursor, bytes([side])
        if cursor.set_range_dup(key, bound):
            there = cursor.prev_dup()
        else:
            there = cursor.set_key(key) and cursor.last_dup()
        return cursor.iterprev_dup() if there else ()

    def _from(self, side: int, bound: bytes) -> Any:
        """What is not less than the bound, to the end of the side."""
        cursor = self._range_cursor
        return cursor.iternext_dup() if cursor.set_range_dup(bytes([side]), bound) else ()


class LMDBChunks(LMDB):
    """Chunks of predicates, copied whole."""

    name = "LMDB, chunks"

    def _prepare(self, predicates: Predicates) -> None:
        sides, rows = _by_side(predicates)
        self._bounds, self._keys = [], []
        for side in range(4):
            keys = _records(rows.taken(sides == side))["key"].astype(np.uint64)
            bounds = np.unique(keys[::_CHUNK])[1:]
            self._bounds.append(bounds)
            numbers = np.arange(len(bounds) + 1, dtype=">u4") + (side << _SIDE_BITS)
            raw = numbers.tobytes()
            self._keys.append([raw[i : i + 4] for i in range(0, len(raw), 4)])

    def _range_keys(self, side: int, keys: Any) -> list[bytes]:
        asked = np.asarray(keys, np.uint64)
        names = self._keys[side]
        return [names[i] for i in np.searchsorted(self._bounds[side], asked, "right").tolist()]

    def search(self, value: float) -> Int32s:  # noqa: D102
        key = np.uint64(_key(value))
        found = [self._equal_to(int(key))]
        for side in (UNEQUALS, LESSER, GREATER_SIDE):
            names = self._keys[side]
            at = int(np.searchsorted(self._bounds[side], key, "right"))
            keys, sids = self._chunks(names[at : at + 1])
            keys = keys.astype(np.uint64)
            first, last = np.searchsorted(keys, key, "left"), np.searchsorted(keys, key, "right")
            strict = first
            if first < last:  # the same constant: its edges decide
                strict += int(np.count_nonzero(sids[first:last] < _EDGE_BIT))
            if side != LESSER:
                end = strict if side == GREATER_SIDE else first
                found += [self._chunks(names[:at])[1] if at else _NONE, sids[:end]]
            if side != GREATER_SIDE:
                begin = strict if side == LESSER else last
                rest = names[at + 1 :]
                found += [sids[begin:], self._chunks(rest)[1] if rest else _NONE]
        return (np.concatenate(found) & (_EDGE_BIT - 1)).astype(np.int32)

    def _chunks(self, names: list[bytes]) -> tuple[Any, Any]:
        """Keys and sids of whole chunks."""
        cursor = self._range_cursor
        got = cursor.getmulti(names, dupdata=True, dupfixed_bytes=12, keyfixed=True)
        records = np.frombuffer(got, _CHUNKED)
        return records["key"], records["sid"]
