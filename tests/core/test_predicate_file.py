"""Predicate indexes on disk against brute force: constants of all kinds, growing and shrinking.

Pages are small, so that a few hundred predicates make several levels, lists of many nodes, SidSets
in spill pages, and a cache that does not hold them all.
"""

from __future__ import annotations

import datetime as dt
import random
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bittern.errors import OptionError
from bittern.literature.pb_tree.check import read_page
from bittern.literature.pb_tree.disk import Disk
from bittern.literature.pb_tree.pages import ROOT
from bittern.literature.pb_tree.predicate_file import PredicateFile
from effort import examples
from predicate_oracle import OPERATORS, Oracle, found, rank

NEVER_A_DAY = dt.datetime(2000, 2, 29, 12, 0, 0, 500)
INF, NAN = float("inf"), float("nan")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No loss of power is tested here."""
    monkeypatch.setattr(Disk, "sync", lambda _: None)


def smallest_cache(page_bytes: int) -> int:
    return 128 * page_bytes


# Constants and values of each kind: few that come again and again, many, and odd ones


class Constants:
    @staticmethod
    def together(values: list[Any]) -> list[Any]:
        """What can be in one batch."""
        return values


class Integers(Constants):
    kind = "integer"
    few: ClassVar = [-3, -1, 0, 1, 2, 3, 2.0, Decimal(5)]
    odd: ClassVar = [-(2**63), 2**63 - 1, -(2**63) + 1, 2**53, 2**53 + 1, -(2**53) - 1]
    values: ClassVar = [
        *(2.5, -0.5, -3.000001, 0.0, -0.0, INF, -INF, NAN, 2.0**63, -(2.0**63), -(2.0**64)),
        *(2**63, -(2**63) - 1, 10**30, -(10**30), np.uint64(2**64 - 1), np.int16(-3)),
        *(Decimal("2.0000000000000000000001"), Decimal("-2.5"), Decimal("1E+500"), Decimal("NaN")),
        *(Decimal("9223372036854775806.5"), Decimal("-9223372036854775807.5")),
    ]

    @staticmethod
    def one_of_many(chance: random.Random, _: int) -> Any:
        return chance.randrange(-500, 500)


class Floats(Constants):
    kind = "float"
    few: ClassVar = [-1.5, -0.0, 0.0, 0.1, 3, NAN, INF, -INF, Decimal("0.25")]
    odd: ClassVar = [2.0**53, -(2.0**53), 5e-324, -5e-324, 1.7976931348623157e308, 2.0**63, 1e19]
    values: ClassVar = [
        *(2**53 + 1, -(2**53) - 1, 2**53, 2**64, 10**19, 10**400, -(10**400), 2**63 - 1),
        *(Decimal("0.1"), Decimal("0.1000000000000000000001"), Decimal("0.0999999999999999999999")),
        *(Decimal("1E-500"), Decimal("-1E-500"), Decimal("1.8E308"), Decimal("-1.8E308")),
        *(Decimal("Infinity"), Decimal("NaN"), np.float32(0.1), np.int8(3), 2.5e-324, 1e-320),
    ]

    @staticmethod
    def one_of_many(chance: random.Random, _: int) -> Any:
        return chance.choice([chance.uniform(-2, 2), chance.randrange(400) / 8])


class Strings(Constants):
    kind = "string"
    few: ClassVar = ["", "a", "a\0", "a\0\0", "b", "prefix00", "prefix00\0", "prefix00a", "é"]
    odd: ClassVar = [
        *("\0", "\0" * 8, "\0" * 9, "\0" * 13, "\U0001f600", "\uffff", "\U0010ffff" * 3),
        *("prefix00abc", "prefix00abcd", "prefix00abcd\0", "prefix00abcde", "prefix00\0\0\0\0\0"),
        *("prefix0", "prefix0\0", "prefix0\x01", "prefix00\x7f", "prefix00\x80", "prefix00ÿÿÿ"),
    ]
    values: ClassVar = [
        "prefix00" + "x" * 100,
        "x" * 5000,
        "prefix00abc\0",
        "a\x00\x01",
        "\x7f" * 9,
    ]

    @staticmethod
    def one_of_many(chance: random.Random, page_bytes: int) -> Any:
        longest = 8 + page_bytes // 8
        start = chance.choice(["", "pre", "prefix00", "prefix00" + "x" * (longest - 10)])
        return (start + "".join(chance.choices("abz\0", k=chance.randrange(5))))[:longest]


class Times(Constants):
    kind = "timestamp"
    few: ClassVar = [dt.datetime(2000, 1, day) for day in range(1, 7)]
    odd: ClassVar = [
        dt.datetime(1, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
        dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
        dt.datetime(2000, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    ]
    values: ClassVar = [
        np.datetime64("2000-01-01T00:00:00.000000001"),
        np.datetime64("1999-12-31T23:59:59.999999999"),
        np.datetime64("1970-01-01T00:00:00.000000999"),
        np.datetime64("1969-12-31T23:59:59.999999001"),
        np.datetime64("2000-01-03", "s"),
        dt.datetime(2000, 1, 2, 0, 0, 0, 1),
    ]

    @staticmethod
    def one_of_many(chance: random.Random, _: int) -> Any:
        return NEVER_A_DAY + dt.timedelta(microseconds=chance.randrange(-400, 400))

    @staticmethod
    def together(values: list[Any]) -> list[Any]:
        """Nanoseconds and the year 1 are not in one batch: 64 bits of no unit hold them both."""
        return [value for value in values if value not in Times.odd[:2]]


KINDS = (Integers, Floats, Strings, Times)


class PredicateMachine(RuleBasedStateMachine):
    """One writer, a reader that stays where it is until it refreshes, and what both should find."""

    of: Any

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(Disk, "sync", lambda _: None)
        self.folder = tempfile.TemporaryDirectory(prefix="bittern-predicates-")
        self.path = Path(self.folder.name) / "index"
        self.now, self.committed = Oracle(), Oracle()
        self.inserted: list[tuple[str, Any, int]] = []
        """What may be there, and some that is gone."""
        self.inserted_then: list[tuple[str, Any, int]] = []
        self.reader: PredicateFile | None = None
        self.read = Oracle()

    @initialize(
        seed=st.integers(0, 10_000),
        page_bytes=st.sampled_from([512, 1024]),
        large_cache=st.booleans(),
        loads=st.lists(st.sampled_from(["many", "few", "odd"]), max_size=3),
    )
    def create(self, seed: int, page_bytes: int, *, large_cache: bool, loads: list[str]) -> None:
        self.chance = random.Random(seed)
        self.page_bytes = page_bytes
        self.cache = 1 << 20 if large_cache else smallest_cache(page_bytes)
        self.file = PredicateFile.create(
            self.path, self.of.kind, page_bytes=page_bytes, cache_bytes=self.cache
        )
        for style in loads:
            self.insert_many(300, style, "all")
        self.commit()

    def some(self, count: int, style: str, operators: str) -> list[tuple[str, Any, int]]:
        few = self.chance.sample(self.of.few, 2)

        def constant() -> Any:
            if style == "many":
                return self.of.one_of_many(self.chance, self.page_bytes)
            return self.chance.choice(few if style == "few" else self.of.few + self.of.odd)

        each = {"all": OPERATORS, "lists": ("!=", "<", ">"), "one": self.chance.choices(OPERATORS)}
        sids = self.chance.choice([3, 50, 2**31])
        return [
            (self.chance.choice(each[operators]), constant(), self.chance.randrange(sids))
            for _ in range(count)
        ]

    def given(self, predicates: list[tuple[str, Any, int]]) -> tuple[Any, Any, Any]:
        """The same in one of the forms that are taken."""
        names, constants, sids = map(list, zip(*predicates, strict=True))
        operators: Any = names
        form = self.chance.randrange(3)
        if form == 1:
            operators = np.array([OPERATORS.index(name) for name in names])
        elif len(set(names)) == 1:
            operators = names[0]
        return operators, constants, np.array(sids, np.int64) if form else sids

    @rule(
        count=st.sampled_from([1, 7, 60, 300]),
        style=st.sampled_from(["few", "many", "odd"]),
        operators=st.sampled_from(["all", "lists", "one"]),
    )
    def insert_many(self, count: int, style: str, operators: str) -> None:
        predicates = self.some(count, style, operators)
        self.file.insert_many(*self.given(predicates))
        self.now.insert_many(predicates)
        self.inserted += predicates

    @rule(style=st.sampled_from(["few", "many", "odd"]))
    def insert(self, style: str) -> None:
        for predicate in self.some(3, style, "all"):
            self.file.insert(*predicate)
            self.now.insert(*predicate)
            self.inserted.append(predicate)

    @rule(share=st.sampled_from([0.02, 0.5, 0.95]), part=st.sampled_from(["any", "low", "high"]))
    @precondition(lambda self: self.inserted)
    def delete_many(self, share: float, part: str) -> None:
        """Some of what is there, some of what is not, in any order."""
        gone = list(self.inserted)
        self.chance.shuffle(gone)
        if part != "any":
            gone.sort(key=lambda predicate: rank(predicate[1]), reverse=part == "high")
        gone = gone[: max(1, int(share * len(gone)))]
        gone += self.some(5, "many", "all") + self.some(5, "few", "all")
        self.chance.shuffle(gone)
        self.delete_these(gone)

    @rule()
    @precondition(lambda self: self.inserted)
    def delete_all(self) -> None:
        self.delete_these(list(self.inserted))
        for part, constant, sid in list(self.now.parts.elements()):  # rests of what was cut in two
            match = next(c for _, c, _ in self.inserted if rank(c) == constant)
            self.file.delete(part, match, sid)
            self.now.delete(part, match, sid)
        self.inserted = []

    def delete_these(self, predicates: list[tuple[str, Any, int]]) -> None:
        expected = self.now.delete_many(predicates)
        assert self.file.delete_many(*self.given(predicates)).tolist() == expected

    @rule()
    @precondition(lambda self: self.inserted)
    def delete(self) -> None:
        predicate = self.chance.choice(self.inserted)
        if self.now.delete(*predicate):
            self.file.delete(*predicate)
        else:
            with pytest.raises(OptionError, match="delete exactly what was inserted"):
                self.file.delete(*predicate)

    @rule()
    def commit(self) -> None:
        self.file.commit()
        self.committed, self.inserted_then = self.now.copy(), list(self.inserted)

    @rule()
    def rollback(self) -> None:
        self.file.rollback()
        self.now, self.inserted = self.committed.copy(), list(self.inserted_then)

    @rule(commit=st.booleans())
    def reopen(self, *, commit: bool) -> None:
        if commit:
            self.commit()
        self.file.close()
        self.file = PredicateFile.open(self.path, writable=True, cache_bytes=self.cache)
        assert self.file.kind == self.of.kind
        self.now, self.inserted = self.committed.copy(), list(self.inserted_then)

    @rule()
    def look(self) -> None:
        if self.reader is None:
            self.reader = PredicateFile.open(self.path, cache_bytes=smallest_cache(self.page_bytes))
        else:
            older = self.reader.version < self.file.version
            assert self.reader.refresh() == older
        self.read = self.committed.copy()

    def values(self) -> list[Any]:
        own = [constant for _, constant, _ in self.inserted] or self.of.few
        values: list[Any] = self.chance.choices(own, k=12) + self.chance.choices(self.of.few, k=3)
        values += self.chance.sample(self.of.values, 5) + self.chance.choices(self.of.odd, k=3)
        values += [self.of.one_of_many(self.chance, self.page_bytes), values[0], None, None]
        self.chance.shuffle(values)
        return self.of.together(values)

    @invariant()
    def writer_finds_what_is_there(self) -> None:
        if not hasattr(self, "file"):
            return
        self.file.check()
        values = self.values()
        expected = [self.now.search(value) for value in values]
        for value, sids, right in zip(values, found(self.file, values), expected, strict=True):
            assert sids == right, repr(value)
        for value, sids in zip(values[:6], expected, strict=False):
            assert sorted(self.file.search(value).tolist()) == sids
        figures = self.file.statistics()
        present = +self.now.parts
        assert figures["entries"] == present.total()
        assert figures["keys"] == len({constant for _, constant, _ in present})
        if not present:
            assert (figures["pages"], figures["height"], figures["spill_pages"]) == (7, 1, 0)

    @invariant()
    def reader_finds_what_was_there(self) -> None:
        if self.reader is not None:
            values = self.values()
            assert found(self.reader, values) == [self.read.search(value) for value in values]

    def teardown(self) -> None:
        if self.reader is not None:
            self.reader.check()
            self.reader.close()
        if hasattr(self, "file"):
            self.file.close()
        self.folder.cleanup()
        self.patch.undo()


def machine(of: Any) -> Any:
    case = type(f"{of.__name__}Machine", (PredicateMachine,), {"of": of}).TestCase
    case.settings = examples(0.25, steps=20)
    return case


TestIntegers, TestFloats, TestStrings, TestTimes = map(machine, KINDS)


# Growing and shrinking


def empty_file(tmp_path: Path, kind: str = "integer", page_bytes: int = 512) -> PredicateFile:
    return PredicateFile.create(
        tmp_path / f"{kind}-{page_bytes}",
        kind,
        page_bytes=page_bytes,
        cache_bytes=smallest_cache(page_bytes),
    )


@pytest.mark.parametrize("order", ["upwards", "downwards", "any"])
@pytest.mark.parametrize("of", KINDS)
def test_what_is_emptied_is_as_small_as_new(
    tmp_path: Path, quick: None, of: Any, order: str
) -> None:
    chance = random.Random(order)
    file = empty_file(tmp_path, of.kind)
    for _ in range(2):
        predicates = [
            (chance.choice(OPERATORS), of.one_of_many(chance, 512), sid) for sid in range(600)
        ]
        predicates += [(operator, of.few[2], 7) for operator in OPERATORS for _ in range(150)]
        file.insert_many(*zip(*predicates, strict=True))
        figures = file.statistics()
        assert figures["height"] >= 3
        assert figures["spill_pages"] >= 8
        assert figures["pages"] > 80
        file.commit()
        chance.shuffle(predicates)
        if order != "any":
            predicates.sort(key=lambda each: rank(each[1]), reverse=order == "downwards")
        for predicate in predicates[:50]:
            file.delete(*predicate)
        assert file.delete_many(*zip(*predicates[50:], strict=True)).all()
        file.check()
        figures = file.statistics()
        assert figures["pages"] == 7
        assert figures["height"] == 1
        assert figures["keys"] == figures["entries"] == figures["spill_pages"] == 0
        assert found(file, of.few) == [[]] * len(of.few)
        file.commit()
    for i in range(3):  # the places of the last versions come back when newer ones are there
        file.insert("=", of.few[0], i)
        file.commit()
    assert file.statistics()["file_bytes"] < 60 * 512
    file.close()


@pytest.mark.parametrize("page_bytes", [512, 4096, 65_536])
def test_a_sid_set_that_spills_and_comes_back(tmp_path: Path, quick: None, page_bytes: int) -> None:
    file = empty_file(tmp_path, "integer", page_bytes)
    here, per_page = page_bytes // 32, page_bytes // 4 - 16
    sizes = [here, here + 1, per_page, per_page + 1, 3 * per_page]
    before = 0
    for size in sizes:
        sids = range(before, size)
        file.insert_many(">=", [5] * len(sids), sids)
        file.check()
        pages = 0 if size <= here else -(-size // per_page)
        pages += pages > 1  # a fork leads to them
        assert file.statistics()["spill_pages"] == 2 * pages
        assert found(file, [4, 5, 6]) == [[], list(range(size)), list(range(size))]
        before = size
    for size in [*reversed(sizes[:-1]), here // 2 + 1, here // 2, 1, 0]:
        sids = list(range(size, before))
        random.Random(size).shuffle(sids)
        assert file.delete_many(">=", [5] * len(sids), sids).all()
        file.check()
        assert found(file, [4, 5, 6]) == [[], list(range(size)), list(range(size))]
        before = size
    assert file.statistics()["pages"] == 7
    file.close()


def test_old_sids_of_a_popular_constant_cost_what_new_ones_do(tmp_path: Path, quick: None) -> None:
    """Looked at as pages read with a small cache: some 900 pages have the sids of one constant."""
    file = empty_file(tmp_path)
    n = 50_000
    file.insert_many("=", [5] * n, range(n))
    file.commit()
    some = random.Random(1).sample(range(n), 300)
    for change in (file.delete, file.insert, file.delete):
        before = file.statistics()["page_reads"]
        for sid in some:
            change("=", 5, sid)
        assert file.statistics()["page_reads"] - before <= 8 * len(some)
    file.check()
    assert sorted(file.search(5).tolist()) == sorted(set(range(n)) - set(some))
    file.close()


def test_an_empty_branch_beside_a_full_one(tmp_path: Path, quick: None) -> None:
    """The branch to its right is full of short separators, and is itself behind a long one."""
    file = empty_file(tmp_path, "string")
    n = 1344
    file.insert_many("=", [f"{i:06d}" for i in range(n)], [0] * n)
    root = read_page(file._file, int(file._file.tree[ROOT]))
    separators = [item.key[0].to_bytes(8)[:6] for item in root.items[1:] if item.key]
    assert len(separators) == 4
    before = int(separators[-2]) - 1
    long = [f"{before:06d}{'x' * 60}{i:06d}" for i in range(90)]
    file.insert_many("=", long, [1] * 90)
    file.check()
    for text in reversed(long):
        file.delete("=", text, 1)
        file.check()
    assert file.search(f"{before:06d}").tolist() == [0]
    file.close()


def test_the_same_predicate_many_times(tmp_path: Path, quick: None) -> None:
    file = empty_file(tmp_path)
    for operator in OPERATORS:
        file.insert_many(operator, [5] * 40, [9] * 40)
        file.check()
        value = {"!=": 4, "<": 4, ">": 6}.get(operator, 5)
        assert file.search(value).tolist() == [9] * 40
        assert file.delete_many(operator, [5] * 41, [9] * 41).sum() == 40
        assert file.statistics()["pages"] == 7
    file.close()


def test_what_is_absent_is_not_deleted(tmp_path: Path, quick: None) -> None:
    file = empty_file(tmp_path)
    file.insert_many(["=", "<", ">=", "!="], [5, 5, 7, 9], [1, 2, 3, 4])
    file.insert_many("=", [20] * 300, range(300))
    file.commit()
    version, values = file.version, [4, 5, 6, 7, 8, 9, 10, 20]
    before = found(file, values)
    absent = [
        *(("=", 5, 2), ("<=", 5, 1), ("<=", 5, 2), (">", 5, 1), ("!=", 5, 1), ("=", 6, 1)),
        *(("<=", 7, 3), ("!=", 7, 3), (">=", 9, 4), ("=", 9, 4), ("=", 20, 300), (">=", 20, 0)),
        *(("=", -(2**63), 1), ("=", 2**63 - 1, 1), (">", 0, 1), ("<", 100, 1)),
    ]
    assert not file.delete_many(*zip(*absent, strict=True)).any()
    with pytest.raises(OptionError, match=r"predicate <= 7 with sid 3 is not in the index: delete"):
        file.delete("<=", 7, 3)
    assert file.statistics()["dirty_frames"] == 0
    file.commit()
    assert file.version == version  # nothing to commit
    file.check()
    assert found(file, values) == before
    file.delete("=", 7, 3)  # half of >=
    assert found(file, [7, 8]) == [[4], [3, 4]]
    assert not file.delete_many(">=", [7], [3])[0]
    file.delete(">", 7, 3)
    file.insert("=", 5, 6)
    file.insert("<", 5, 6)
    file.delete("<=", 5, 6)  # what was inserted in two parts is the same as one
    file.check()
    assert found(file, values)[:7] == [[2, 4], [1, 4], [4], [4], [4], [], [4]]
    assert found(file, values)[7] == sorted([*range(300), 4])
    file.close()


# Operators by their SQL meaning, without parts


@pytest.mark.parametrize("of", KINDS)
def test_operators_mean_what_they_mean_in_sql(tmp_path: Path, quick: None, of: Any) -> None:
    constants = of.few + of.odd
    meaning = {
        "=": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    predicates = [(operator, constant) for operator in meaning for constant in constants]
    file = empty_file(tmp_path, of.kind)
    names, given = zip(*predicates, strict=True)
    file.insert_many(names, given, range(len(predicates)))
    for value in constants + of.values:
        expected = [
            sid
            for sid, (operator, constant) in enumerate(predicates)
            if meaning[operator](rank(value), rank(constant))
        ]
        assert sorted(file.search(value).tolist()) == expected, repr(value)
    assert file.search(None).tolist() == []
    file.close()


# Forms in which predicates and values come


def test_forms_of_what_is_given(tmp_path: Path, quick: None) -> None:
    file = empty_file(tmp_path, "float")
    operators = ["=", ">", "!="]
    forms: list[Any] = [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([1, 2, 3], np.uint8),
        np.array([1, 2, 3], np.float32),
        np.ma.masked_array([1.0, 2.0, 3.0]),
        pa.array([1, 2, 3]),
        pa.chunked_array([[1.0], [2.0, 3.0]]),
        pa.array([Decimal("1.00"), Decimal("2.00"), Decimal("3.00")]),
        [1, 2.0, Decimal(3)],
        iter([1, 2, 3]),
    ]
    names: list[Any] = [
        *(operators, tuple(operators), np.array(operators), np.array(operators, object)),
        *(pa.array(operators), np.array([0, 4, 1], np.uint8), np.array([0, 4, 1]), [0, 4, 1]),
        *(pa.array([0, 4, 1]), operators),
    ]
    for k, (constants, given) in enumerate(zip(forms, names, strict=True)):
        sids = np.array([k, 100 + k, 200 + k], np.uint16) if k % 2 else [k, 100 + k, 200 + k]
        file.insert_many(given, constants, sids)
    file.check()
    n = range(len(forms))
    one, above, other = list(n), [100 + k for k in n], [200 + k for k in n]
    for values in ([1, 2.5, None, 3], pa.array([1, 2.5, None, 3]), np.array([1, 2.5, -1, 3])):
        null = found(file, values)[2]
        assert null == ([] if values[2] != -1 else other)
        assert [found(file, values)[k] for k in (0, 1, 3)] == [one + other, above + other, above]
    file.insert_many("<", [], [])
    file.insert_many([], [], [])
    file.insert_many(2, [7.5], [300])
    file.insert_many(np.uint8(2), [7.5], [300])
    assert file.delete_many("<", [7.5, 7.5], [300, 300]).all()
    assert file.delete_many([], [], []).tolist() == []
    for nothing in ([], np.array([]), pa.array([]), pa.array([], pa.float64())):
        offsets, sids = file.search_batch(nothing)
        assert (offsets.tolist(), sids.tolist()) == ([0], [])
    assert found(file, [None] * 3) == [[]] * 3
    file.close()


def test_forms_of_strings_and_times(tmp_path: Path, quick: None) -> None:
    strings = empty_file(tmp_path, "string")
    strings.insert_many("<", pa.array(["-", "m", "zz"]).slice(1), [1, 2])
    texts = ["x", "a", "", None, "m"]
    expected = [[2], [1, 2], [1, 2], [], [2]]
    for values in (
        texts,
        pa.array(texts, pa.large_string()),
        pa.array(texts, pa.string_view()),
        pa.array(texts).dictionary_encode(),
        pa.array(["ab", *texts, "q"]).slice(1, 5),
        pa.chunked_array([texts[:2], texts[2:]]),
    ):
        assert found(strings, values) == expected
    for none in (pa.array([], pa.string()), np.array([], str), pa.array([None], pa.string())):
        assert strings.search_batch(none)[1].tolist() == []
    assert found(strings, [""]) == [[1, 2]]
    strings.close()
    times = empty_file(tmp_path, "timestamp")
    times.insert_many("<", pa.array([10**9], pa.timestamp("s")), [1])
    times.insert_many("=", np.array(["2001-09-09T01:46:40"], "M8[ms]"), [2])
    times.insert(">=", dt.datetime(2001, 9, 9, 1, 46, 40, tzinfo=dt.UTC), 3)
    for unit, factor in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        values = pa.array([10**9 * factor - 1, 10**9 * factor, None], pa.timestamp(unit))
        assert found(times, values) == [[1], [2, 3], []]
        assert found(times, values.to_numpy(zero_copy_only=False)) == [[1], [2, 3], []]
    assert times.search(dt.date(2001, 9, 9)).tolist() == [1]
    assert times.search(np.datetime64("NaT")).tolist() == []
    times.close()


def test_times_beyond_64_bits_of_microseconds(tmp_path: Path, quick: None) -> None:
    file = empty_file(tmp_path, "timestamp")
    file.insert_many(["<", ">"], [dt.datetime(1900, 1, 1)] * 2, [1, 2])
    for unit in ("s", "ms"):
        for far in (-(2**63), -(2**63) + 1, -(2**62)):
            assert found(file, pa.array([far], pa.timestamp(unit))) == [[1]], (far, unit)
        for far in (2**63 - 1, 2**62):
            assert found(file, pa.array([far, 0], pa.timestamp(unit))) == [[2], [2]]
    file.close()


@pytest.mark.parametrize(
    "operators", ["like", 1 << 20_000, [1 << 20_000], [None], [["="]], 1.5, [9]], ids=type
)
def test_what_is_no_operator(tmp_path: Path, operators: Any) -> None:
    with PredicateFile.create(tmp_path / "x.pb", "integer") as file:
        with pytest.raises(OptionError, match="operator"):
            file.insert_many(operators, [1], [1])
        assert file.search(1).tolist() == []
