"""Named sets in a catalog: versions of them, what refuses, what damage is found; both databases."""

from __future__ import annotations

import datetime as dt
import math
import sqlite3
from contextlib import closing
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import bittern
from bittern.catalog import set_parts, set_rows
from bittern.engine.sets.content import content_of
from bittern.errors import (
    BitternError,
    CatalogError,
    OptionError,
    SubscriptionError,
    UnknownSetError,
)
from effort import examples
from interrupts import each_fault


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "shop.db")
    return request.getfixturevalue("postgres").new_url()


@pytest.fixture
def catalog(url):
    with bittern.Catalog(url) as catalog:
        yield catalog


def test_each_change_is_a_version_that_stays(catalog, url):
    assert dict(catalog.sets) == {}
    assert catalog.sets.put("vips", [7, 9]) == 1
    assert catalog.add("s", "u IN SET vips") == 2
    assert catalog.sets.add("vips", {11, 7}) == 3
    assert catalog.sets.remove("vips", [7, 8]) == 4
    catalog.sets["names"] = ["ann"]
    assert catalog.version() == 5
    assert [sorted(catalog.sets.members("vips", v)) for v in range(1, 6)] == [
        [7, 9],
        [7, 9],
        [7, 9, 11],
        [9, 11],
        [9, 11],
    ]
    assert {name: list(each) for name, each in catalog.sets.at(4).items()} == {"vips": [9, 11]}
    assert list(catalog.sets) == ["names", "vips"]
    assert catalog.sets.versions(3) == {"vips": set_rows.SetVersion(3, 3)}
    assert "vips" in catalog.sets
    assert len(catalog.sets) == 2
    with pytest.raises(UnknownSetError, match=r"there is no set 'names' in version 4$"):
        catalog.sets.members("names", 4)
    with pytest.raises(UnknownSetError, match=r"no set 'VIPS' in version 5: did you mean vips"):
        catalog.sets.members("VIPS")
    assert catalog.sets.get("VIPS") is None
    with pytest.raises(OptionError, match="no version 6"):
        catalog.sets.at(6)
    # No subscription changes with a set.
    changes = catalog.changes(2)
    assert (changes.version, changes.removed, changes.put.num_rows) == (5, [], 0)
    assert [each.added for each in catalog.versions()] == [0, 0, 0, 1, 0]
    assert catalog.check() == []
    with bittern.Catalog(url) as again:
        assert sorted(again.sets["vips"]) == [9, 11]
        index = bittern.Index.build(again.at(5), sets=again.sets.at(5))
        assert bittern.Matcher(index).match([{"u": 9}, {"u": 7}]).to_pylist() == [["s"], []]


def test_what_changes_nothing_makes_no_version(catalog):
    catalog.sets["a"] = [1, 2]
    assert catalog.sets.put("a", pa.array([2.0, 1.0])) == 1
    assert catalog.sets.add("a", [1]) == 1
    assert catalog.sets.add("a", []) == 1
    assert catalog.sets.remove("a", [3]) == 1
    assert catalog.sets.put("b", []) == 2
    assert catalog.sets.put("b", ()) == 2
    assert catalog.version() == 2
    assert catalog.check() == []


def test_members_of_every_kind_come_back(catalog):
    kinds = {
        "n": [1, -(2**63), 2.5, math.inf, math.nan, Decimal("0.10000000000000000555"), 2**70],
        "s": ["", "a", "é", "\U0001f600", "x" * 10_000],
        "t": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.date(1960, 1, 1)],
        "b": [True, False],
        "e": [],
    }
    for name, members in kinds.items():
        catalog.sets[name] = members
    for name, members in kinds.items():
        assert catalog.sets[name].content().equals(content_of(members))
    assert catalog.check() == []


def test_refusals(catalog):
    with pytest.raises(SubscriptionError) as refused:
        catalog.add("s", "y = 1 AND u IN SET vips")
    assert refused.value.bad[0].position == 19
    assert "there is no set 'vips'" in refused.value.bad[0].message
    for load in (catalog.load, lambda rows: catalog.apply([{"id": "s", "expression": rows["s"]}])):
        with pytest.raises(SubscriptionError, match="there is no set 'vips'"):
            load({"s": "u NOT IN SET vips"})
    catalog.sets["vips"] = []
    catalog.load({"s": "u NOT IN SET vips", "t": "vips = 'SET'"})
    catalog.set_enabled("s", False)
    with pytest.raises(OptionError, match="'s' names the set 'vips'"):
        del catalog.sets["vips"]
    catalog.remove("s")
    del catalog.sets["vips"]
    assert list(catalog.sets) == []
    for change in (catalog.sets.add, catalog.sets.remove):
        with pytest.raises(UnknownSetError, match=r"no set 'vips'$"):
            change("vips", [1])
    with pytest.raises(UnknownSetError):
        del catalog.sets["vips"]
    catalog.sets["vips"] = [1]
    for change in (catalog.sets.add, catalog.sets.remove):
        with pytest.raises(UnknownSetError, match="no set 'vip': did you mean vips"):
            change("vip", [1])
    with pytest.raises(OptionError, match="has numbers, not strings"):
        catalog.sets.add("vips", ["a"])
    with pytest.raises(OptionError, match="NULL"):
        catalog.sets.add("vips", [None])
    with pytest.raises(OptionError, match="the name of a set"):
        catalog.sets[""] = [1]
    assert catalog.check() == []


def test_a_set_that_goes_while_a_subscription_comes(catalog, url, monkeypatch):
    """What the door saw is looked at again under the lock."""
    catalog.sets["a"] = [1]
    with bittern.Catalog(url) as other:
        write = catalog._write

        def late(*arguments, **options):
            other.sets.drop("a")
            return write(*arguments, **options)

        monkeypatch.setattr(catalog, "_write", late)
        with pytest.raises(OptionError, match="'a' was removed meanwhile"):
            catalog.add("s", "u IN SET a")
        other.sets["a"] = [1]
        with pytest.raises(OptionError, match="'a' was removed meanwhile"):
            catalog.load({"s": "u IN SET a"})
    assert catalog.count() == 0


def test_many_small_changes_are_folded(catalog, monkeypatch):
    monkeypatch.setattr(set_rows, "MOST_CHANGES", 5)
    catalog.sets["a"] = range(100)
    for number in range(20):
        catalog.sets.add("a", [1000 + number])
        catalog.sets.remove("a", [number])
    for version in range(1, 42):
        added, gone = version // 2, (version - 1) // 2
        right = {*range(gone, 100), *range(1000, 1000 + added)}
        assert set(catalog.sets.members("a", version)) == right
    with catalog._database.reading() as connection:
        chain = set_rows._chain(connection, "a", catalog.version())
    assert len(chain.rows) <= 6
    assert catalog.check() == []


def test_large_sets_have_parts(catalog, monkeypatch):
    monkeypatch.setattr(set_parts, "PART_BYTES", 100)
    numbers = [*range(100), *(n + 0.5 for n in range(50))]
    texts = [f"{n:04}" * (n % 30) for n in range(100)] + ["x" * 1000]
    catalog.sets["n"] = numbers
    catalog.sets["s"] = texts
    assert catalog.sets["n"].content().equals(content_of(numbers))
    assert catalog.sets["s"].content().equals(content_of(texts))
    assert catalog.check() == []


def test_two_million_members(catalog):
    members = np.arange(2_000_000, dtype=np.int64) * 977
    catalog.sets["big"] = members
    catalog.sets.add("big", [5])
    found = catalog.sets["big"]
    assert len(found) == 2_000_001
    assert found.holds(pa.array([5, 977, 978, 1_999_999 * 977]), "big").to_pylist() == [
        True,
        True,
        False,
        True,
    ]


def test_forgetting(catalog):
    catalog.sets["a"] = [1]
    catalog.sets.add("a", [2])
    catalog.sets["b"] = ["x"]
    catalog.sets["a"] = [3]
    catalog.sets.drop("b")
    catalog.sets.add("a", [4])
    catalog.forget(5)
    assert [sorted(catalog.sets.members("a", v)) for v in (5, 6)] == [[3], [3, 4]]
    assert list(catalog.sets.at(5)) == ["a"]
    with pytest.raises(OptionError, match="forgotten"):
        catalog.sets.at(4)
    with catalog._database.reading() as connection:
        rows = connection.exec_driver_sql("SELECT name, version FROM bittern_set_parts").all()
    assert sorted(map(tuple, rows)) == [("a", 4), ("a", 6)]
    assert catalog.check() == []


DAMAGE = {
    "kind": "UPDATE bittern_set_changes SET kind = 3",
    "no kind": "UPDATE bittern_set_changes SET kind = NULL",
    "odd kind": "UPDATE bittern_set_changes SET kind = 'x'",
    "action": "UPDATE bittern_set_changes SET action = 9",
    "no beginning": "UPDATE bittern_set_changes SET action = 1",
    "members": "UPDATE bittern_set_changes SET members = 7",
    "moved": "UPDATE bittern_set_changes SET moved = -1",
    "data": "UPDATE bittern_set_parts SET data = x'0700000000000000'",
    "text": "UPDATE bittern_set_parts SET data = 'text'",
    "cut": "UPDATE bittern_set_parts SET data = substr(data, 2)",
    "digest": "UPDATE bittern_set_parts SET digest = ''",
    "form": "UPDATE bittern_set_parts SET form = 2",
    "odd form": "UPDATE bittern_set_parts SET form = 5",
    "part": "DELETE FROM bittern_set_parts WHERE version = 1",
    "later": "UPDATE bittern_set_changes SET version = 99 WHERE version = 1",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found(tmp_path, damage):
    path = tmp_path / "shop.db"
    with bittern.Catalog(path) as catalog:
        catalog.sets["a"] = [7, 9, 2.5]
        catalog.sets.add("a", [11])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(DAMAGE[damage])
        connection.commit()
    with bittern.Catalog(path) as catalog:
        assert catalog.check()
        with pytest.raises((CatalogError, KeyError)):
            catalog.sets.members("a")


@pytest.mark.parametrize(
    ("form", "data"),
    [
        (set_parts.INTEGERS, b"\0" * 16),  # twice the same
        (set_parts.INTEGERS, b"\1" + b"\0" * 15),  # descending
        (set_parts.INTEGERS, b"\0" * 7),
        (set_parts.TEXTS, b""),
        (set_parts.TEXTS, b"\xff" * 8),
        (set_parts.TEXTS, b"\1" + b"\0" * 7 + b"\2" + b"\0" * 7 + b"a"),
        (set_parts.TEXTS, b"\1" + b"\0" * 7 + b"\1" + b"\0" * 7 + b"\xff"),
        (set_parts.TEXTS, b"\2" + b"\0" * 7 + (b"\1" + b"\0" * 7) * 2 + b"a"),
    ],
)
def test_parts_with_right_digests_are_checked_nevertheless(form, data):
    from bittern.catalog.database import DamageError

    part = set_parts._part(form, data)
    with pytest.raises(DamageError):
        set_parts.content_of_parts(0 if form == set_parts.INTEGERS else 3, [part])


CHANGES = {
    "put": lambda catalog: catalog.sets.put("a", [5]),
    "define": lambda catalog: catalog.sets.put("new", ["x"]),
    "add": lambda catalog: catalog.sets.add("a", [5]),
    "remove": lambda catalog: catalog.sets.remove("a", [1]),
    "drop": lambda catalog: catalog.sets.drop("unused"),
    "forget": lambda catalog: catalog.forget(3),
}


def state(catalog):
    newest, oldest = catalog.version(), catalog.versions()[-1].version
    assert catalog.check() == []
    return (
        newest,
        oldest,
        [
            {name: sorted(each) for name, each in catalog.sets.at(version).items()}
            for version in range(oldest, newest + 1)
        ],
    )


@pytest.mark.parametrize("change", CHANGES)
def test_an_exception_leaves_all_of_a_change_or_nothing(tmp_path, change):
    numbers = iter(range(10**9))

    def make():
        catalog = bittern.Catalog(tmp_path / f"{next(numbers)}.db")
        catalog.sets["a"] = [1, 2]
        catalog.sets["unused"] = [True]
        catalog.sets.add("a", [3])
        catalog.add("s", "u IN SET a")
        return catalog

    with make() as catalog:
        before = state(catalog)
        CHANGES[change](catalog)
        after = state(catalog)
    moments = 20
    for fault in each_fault(make, CHANGES[change], moments=moments, unmake=lambda c: c.close()):
        with bittern.Catalog(fault.subject.url) as again:
            found = state(again)
            assert found in (before, after), fault
            if found == before:
                CHANGES[change](again)
                assert state(again) == after, fault


class SetVersions(RuleBasedStateMachine):
    """A catalog's sets, and what each version of them should be."""

    NAMES = st.sampled_from(["a", "b"])
    MEMBERS = st.lists(st.integers(0, 5) | st.sampled_from([0.5, 1.5]), max_size=4)

    def __init__(self):
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.catalog = bittern.Catalog(f"{self.folder.name}/c.db")
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(set_rows, "MOST_CHANGES", 3)
        self.past = [{}]
        self.oldest = 0

    def now(self, name, members):
        """After a change: a new version, unless nothing is new."""
        sets = {**self.past[-1], name: frozenset(members)}
        if sets != self.past[-1]:
            self.past.append(sets)

    @rule(name=NAMES, members=MEMBERS)
    def put(self, name, members):
        assert self.catalog.sets.put(name, members) <= len(self.past)
        self.now(name, members)

    @precondition(lambda self: self.past[-1])
    @rule(data=st.data(), members=MEMBERS, is_added=st.booleans())
    def change(self, data, members, is_added):
        name = data.draw(st.sampled_from(sorted(self.past[-1])))
        known = self.past[-1][name]
        if is_added:
            self.catalog.sets.add(name, members)
            self.now(name, known | set(members))
        else:
            self.catalog.sets.remove(name, members)
            self.now(name, known - set(members))

    @precondition(lambda self: self.past[-1])
    @rule(data=st.data())
    def drop(self, data):
        name = data.draw(st.sampled_from(sorted(self.past[-1])))
        self.catalog.sets.drop(name)
        self.past.append({n: each for n, each in self.past[-1].items() if n != name})

    @rule(data=st.data())
    def forget(self, data):
        self.oldest = data.draw(st.integers(self.oldest, len(self.past) - 1))
        self.catalog.forget(self.oldest)

    @invariant()
    def agrees(self):
        assert self.catalog.version() == len(self.past) - 1
        self.agrees_at(len(self.past) - 1)

    def agrees_at(self, version):
        found = self.catalog.sets.at(version)
        assert {n: frozenset(each) for n, each in found.items()} == self.past[version]
        sizes = self.catalog.sets.versions(version)
        assert {n: each.members for n, each in sizes.items()} == {
            n: len(each) for n, each in self.past[version].items()
        }

    def teardown(self):
        for version in range(self.oldest, len(self.past)):
            self.agrees_at(version)
        assert self.catalog.check() == []
        self.patch.undo()
        self.catalog.close()
        self.folder.cleanup()


TestSetVersions = SetVersions.TestCase
TestSetVersions.settings = examples(steps=20)


# The command line


@pytest.fixture
def run(bittern_command):
    return bittern_command


def write(path, text):
    path.write_text(text)
    return str(path)


def test_commands(run, url, tmp_path):
    file = write(tmp_path / "v.csv", "user,name\n7,a\n9,b\n")
    assert run("catalog", "set", url, "vips", f"{file}:user")[2] == "bittern: version 1\n"
    assert run("catalog", "add", url, "s", "u IN SET vips")[2] == "bittern: version 2\n"
    more = write(tmp_path / "v.jsonl", '11\n{"user": 12}\n\n')
    assert run("catalog", "set", url, "vips", more, "--add")[0] == 0
    assert run("catalog", "set", url, "vips", f"{file}:user", "--remove")[0] == 0
    code, out, _ = run("catalog", "sets", url)
    assert (code, out.split()) == (0, ["set", "members", "version", "vips", "2", "4"])
    _, out, _ = run("catalog", "sets", url, "--version", "2", "--json")
    assert out == '{"set": "vips", "members": 2, "version": 1}\n'
    assert run("catalog", "members", url, "vips")[1] == "11\n12\n"
    assert run("catalog", "members", url, "vips", "--version", "1")[1] == "7\n9\n"
    parquet = str(tmp_path / "out.parquet")
    assert run("catalog", "members", url, "vips", parquet)[0] == 0
    assert pyarrow.parquet.read_table(parquet).to_pydict() == {"member": [11, 12]}
    assert run("catalog", "set", url, "vips", parquet)[2] == "bittern: version 4\n"
    for arguments, words in (
        (["set", url, "vips", "--drop"], "'s' names the set"),
        (["set", url, "vips"], "give either a FILE"),
        (["set", url, "vips", file], "has several columns"),
        (["set", url, "vips", f"{file}:nope"], f"{file} has no column 'nope'; it has: user, "),
        (["set", url, "vips", "gone.csv"], "bittern: gone.csv: No such file"),
        (["set", url, "vips", "gone.csv:user"], "bittern: gone.csv: No such file"),
        (["set", url, "vips", str(tmp_path / "v.xls")], "the extension"),
        (["set", url, "no", file + ":user", "--add"], "no set 'no'"),
        (["members", url, "no"], "no set 'no'"),
    ):
        code, _, err = run("catalog", *arguments)
        assert code in (1, 2)
        assert words in err


@pytest.mark.parametrize(
    ("name", "text", "members"),
    [
        ("a.txt", "ann\nbob\n\n007\n", ["007", "ann", "bob"]),
        ("a.jsonl", '"ann"\n"7"\n', ["7", "ann"]),
        ("a.jsonl", "1\n2.5\n", [1, 2.5]),
        ("a.csv", "id\n1\n2\n", [1, 2]),
        ("a.csv", "id\n007\n8\n", ["007", "8"]),
        ("a.csv", "id\n1.5\n2\n", [2, 1.5]),
        ("a.csv", "id\nann\n", ["ann"]),
        ("a.csv", "day\n2024-01-01\n", [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]),
        ("a.csv", "id\n", []),
    ],
)
def test_files_of_members(tmp_path, name, text, members):
    from bittern.engine.sets.members import Members
    from bittern.service.member_files import read_file

    assert list(Members.of(read_file(write(tmp_path / name, text)))) == members


def test_files_that_cannot_be_read(tmp_path):
    from bittern.service.member_files import read_file, read_sets

    for name, text in (("a.jsonl", "{\n"), ("a.parquet", "x"), ("a.jsonl", '{"a": 1, "b": 2}')):
        with pytest.raises(BitternError, match=name):
            read_file(write(tmp_path / name, text))
    with pytest.raises(OptionError, match="given 2 times"):
        read_sets([("a", "x"), ("a", "y")])


def test_sets_of_an_index_on_the_command_line(run, tmp_path):
    subscriptions = write(tmp_path / "s.csv", "id,expression\na,u IN SET v\nb,lower(n) = 'x'\n")
    first = write(tmp_path / "v.jsonl", "7\n")
    other = write(tmp_path / "w.jsonl", "8\n")
    index = str(tmp_path / "i.bittern")
    assert run("build", subscriptions, "--output", index, "--set", f"w={first}")[0] == 1
    assert run("build", subscriptions, "--output", index, "--set", f"v={first}", "--quiet")[0] == 0
    events = write(tmp_path / "e.jsonl", '{"u": 7, "n": "X"}\n{"u": 8}\n')
    flat = ["--flat", "--output-format", "csv"]
    rows = run("match", index, events, *flat)[1].splitlines()[1:]
    assert rows == ['0,"a"', '0,"b"']
    rows = run("match", index, events, *flat, "--set", f"v={other}")[1].splitlines()[1:]
    assert rows == ['0,"b"', '1,"a"']
    told = run("explain", index, "a", '{"u": 8}', "--set", f"v={other}")[1]
    assert "u IN SET v: true, u is 8" in told
    bare = str(tmp_path / "bare.bittern")
    assert run("build", subscriptions, "--output", bare, "--quiet")[0] == 0
    code, _, err = run("match", bare, events)
    assert code == 2
    assert "the set 'v'" in err
