"""The catalog under stress: hostile values, killed and concurrent writers, replayed changes.

What must be killed runs in a child, which says on its standard output how far it is.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import bittern
from bittern.catalog import reading, writing
from bittern.errors import CatalogError, OptionError, SubscriptionError, UnknownSubscriptionError
from effort import examples
from steady import PATIENCE


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "shop.db")
    return request.getfixturevalue("postgres").new_url()


@pytest.fixture
def catalog(url):
    with bittern.Catalog(url) as catalog:
        yield catalog


def ids(table):
    return table.column("id").to_pylist()


def contents(table):
    """What a version holds, by id."""
    return {row["id"]: row for row in table.to_pylist()}


def replayed(catalog, first, last):
    """The rows of a version, made of an earlier one and the changes since."""
    rows = contents(catalog.at(first))
    changes = catalog.changes(first, last)
    for id_ in changes.removed:
        del rows[id_]
    rows.update(contents(changes.put))
    return rows


# Values


HOSTILE = [
    "'; DROP TABLE bittern_subscriptions; --",
    '" OR 1=1 --',
    "%",
    "_",
    "a%b_c\\",
    "%(id)s",
    ":id",
    "?",
    "$1",
    "{}",
    "\\N",
    "\\.",
    "\t\r\n\x01\x7f",
    " ",
    " a ",
    "A",
    "a",
    "\u00e9",
    "e\u0301",
    "\ufffe\uffff",
    "\U0001f98a",
    "\u202e",
    "null",
    "x" * 500,
    "\U0001f98a" * 500,
]


def test_hostile_texts_are_only_texts(catalog):
    rows = [
        {"id": text, "expression": "x = 1", "subscriber": text, "metadata": {text: text}}
        for text in HOSTILE
    ]
    catalog.apply(rows[::2])
    catalog.load(rows)
    assert ids(catalog.at()) == sorted(HOSTILE, key=str.encode)
    for text in HOSTILE:
        one = catalog.get(text)
        assert (one.id, one.subscriber, one.metadata) == (text, text, {text: text})
    assert ids(catalog.details(HOSTILE)) == HOSTILE
    catalog.remove("%")
    catalog.set_enabled("_", False)
    assert catalog.changes(2).removed == ["%", "_"]
    assert catalog.count() == len(HOSTILE) - 2


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "a\0"}, "U+0000"),
        ({"id": "\ud800"}, "surrogate"),
        ({"id": ""}, "empty"),
        ({"id": "x" * 501}, "500 characters"),
        ({"id": True}, "not bool"),
        ({"id": 1.0}, "not float"),
        ({"id": None}, "not NoneType"),
        ({"id": 2**63}, "64 bits"),
        ({"expression": "x = 'a\0b'"}, "U+0000"),
        ({"expression": "x = '\udfff'"}, "surrogate"),
        ({"expression": "x = 1 OR " * 10_000 + "x = 1"}, "characters"),
        ({"expression": "(" * 300 + "x = 1" + ")" * 300}, "deep"),
        ({"expression": ""}, "condition"),
        ({"expression": 5}, "not int"),
        ({"expression": None}, "a subscription needs an expression"),
        ({"subscriber": "\0"}, "U+0000"),
        ({"subscriber": "\ud800"}, "surrogate"),
        ({"subscriber": 1.5}, "a subscriber"),
        ({"subscriber": "x" * 501}, "500 characters"),
        ({"weight": "1"}, "finite"),
        ({"weight": float("inf")}, "finite"),
        ({"weight": 10**400}, "finite"),
        ({"weight": True}, "finite"),
        ({"metadata": "[1]"}, "JSON object"),
        ({"metadata": "{"}, "not JSON"),
        ({"metadata": '{"a": NaN}'}, "NaN"),
        ({"metadata": {"a": float("nan")}}, "JSON"),
        ({"metadata": {"a": object()}}, "not JSON"),
        ({"metadata": {1: 1, "a": 1}}, "not JSON"),
        ({"metadata": {"a": "x" * 70_000}}, "65,536"),
        ({"metadata": '{"a":' * 50_000 + "1" + "}" * 50_000}, "not JSON"),
        ({"enabled": "yes"}, "true or false"),
    ],
)
def test_what_is_wrong_is_said_at_the_door(tmp_path_factory, row, said):
    row = {"id": "a", "expression": "x = 1"} | row
    with bittern.Catalog(tmp_path_factory.mktemp("c") / "c.db") as catalog:
        for call in (
            lambda: catalog.add(**row),
            lambda: catalog.apply([row]),
            lambda: catalog.load([row]),
        ):
            with pytest.raises(SubscriptionError) as wrong:
                call()
            assert said in wrong.value.bad[0].message
            str(wrong.value).encode(errors="surrogatepass")
        assert catalog.version() == 0


def test_a_line_without_an_expression_is_told_what_it_needs(catalog, tmp_path):
    (tmp_path / "s.jsonl").write_text('{"id": "a"}\n')
    for source in (tmp_path / "s.jsonl", [{"id": "a"}]):
        (bad,) = catalog.load(source, on_error="skip").bad
        assert (bad.id, bad.message) == ("a", "a subscription needs an expression")


CHANGES = {
    "set_enabled": lambda catalog, number: catalog.set_enabled(f"s{number}", True),
    "load": lambda catalog, number: catalog.load({f"s{number}": "EXISTS d (d.x < x)"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_more_writers_of_quantifiers_than_connections_all_get_their_turn(tmp_path, change):
    many = 24  # and the pool has 15
    failed = []
    with bittern.Catalog(tmp_path / "c.db", timeout=600) as catalog:
        catalog.apply(
            {"id": f"s{number}", "expression": "EXISTS d (d.x > x)", "enabled": False}
            for number in range(many)
        )
        together = threading.Barrier(many)

        def write(number):
            together.wait(PATIENCE)
            try:
                CHANGES[change](catalog, number)
            except CatalogError as error:
                failed.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(many)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert catalog.version() == 1 + many


def test_what_json_escapes_is_kept(catalog):
    odd = {"nul": "\0", "half": "\ud800", "deep": [[{"a": "\U0001f98a"}]], "big": 10**30}
    catalog.add("a", "x = 1", metadata=odd)
    assert catalog.get("a").metadata == odd
    assert json.loads(catalog.at().column("metadata")[0].as_py()) == odd


def test_long_expressions_are_kept(catalog):
    long = "x IN (" + ", ".join(map(str, range(4_000))) + ")"
    catalog.add("a", long)
    assert catalog.get("a").expression == catalog.at().column("expression")[0].as_py() == long


# Cost


def test_changes_are_looked_up_in_indexes(catalog):
    """The plan, and not the time: neither part may read through the catalog."""
    catalog.load({f"s{i}": f"x = {i}" for i in range(20_000)})
    catalog.apply([{"id": f"s{i}", "expression": "x = 0"} for i in range(5)], ["s9"])
    ran = []
    plans = []
    with catalog._database.writing() as connection:
        sa.event.listen(connection, "before_cursor_execute", lambda *told: ran.append(told[2:4]))
        connection.execute(reading._CHANGES, {"from": 1, "at": 2}).all()
        statement, parameters = ran[0]
        explain = "EXPLAIN QUERY PLAN " if catalog._database.is_sqlite else "EXPLAIN "
        for _ in ("before the database knows the table", "when it does"):
            plans.append(str(connection.exec_driver_sql(explain + statement, parameters).all()))
            connection.exec_driver_sql("ANALYZE")
    for plan in plans:
        assert "bittern_subscriptions_since" in plan
        assert "bittern_subscriptions_until" in plan
        assert "Seq Scan" not in plan
        assert "SCAN bittern" not in plan


# Killed writers


CHILD = """
import itertools, sys, time
import bittern
from bittern.catalog import writing

def say_and_wait(what):
    print(what, flush=True)
    time.sleep(600)

catalog = bittern.Catalog(sys.argv[1])
def rows(n):
    for i in range(n):
        yield {"id": f"new{i}", "expression": f"x = {i}"}
"""
STAGES = {
    "half a load staged": """
def half():
    yield from rows(15_000)
    say_and_wait("there")
catalog.load(half())
""",
    "a load half merged": """
def told(stage, done, total):
    if (stage, done) == ("merge", 2):
        say_and_wait("there")
catalog.load(rows(15_000), mode="replace", progress=told)
""",
    "an apply before its commit": """
merge = writing._merge
def merged(*arguments, **options):
    merge(*arguments, **options)
    say_and_wait("there")
writing._merge = merged
catalog.apply(rows(100), ["old1", "old2"])
""",
    "an apply with its lock": """
merge = writing._merge
writing._merge = lambda *_, **__: say_and_wait("there")
catalog.apply(rows(100), ["old1", "old2"])
""",
}


@contextmanager
def child(code, *arguments):
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def heard(process):
    """The next line that a child says."""
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    try:
        return process.stdout.readline().strip()
    finally:
        timer.cancel()


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_writer_leaves_the_last_version(catalog, url, stage):
    catalog.load({f"old{i}": "x = 1" for i in range(200)})
    before = catalog.at()
    with child(CHILD + STAGES[stage], url) as process:
        assert heard(process) == "there"
        assert catalog.at() == before  # readers do not wait for a writer
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    assert catalog.version() == 1
    assert catalog.at() == before
    assert catalog.apply([{"id": "a", "expression": "x = 1"}], ["old7"]) == 2
    assert catalog.count() == 200
    assert [v.version for v in catalog.versions()] == [2, 1]
    with bittern.Catalog(url) as again:
        assert again.changes(1).removed == ["old7"]


def test_every_committed_version_survives_a_kill(catalog, url):
    """Versions that a writer was told of are there, however soon it dies."""
    code = CHILD + "for row in rows(10**9): print(catalog.apply([row]), flush=True)"
    with child(code, url) as process:
        told = [int(heard(process)) for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        told += [int(line) for line in process.stdout if line.endswith("\n")]
        process.wait(PATIENCE)
    assert told == list(range(1, len(told) + 1))
    last = catalog.version()
    assert last in (told[-1], told[-1] + 1)
    assert catalog.count() == last
    assert [catalog.count(v) for v in told] == told


def test_a_crashed_server_comes_back_with_all_versions(postgres):
    with bittern.Catalog(postgres.new_url()) as catalog:
        catalog.load({f"s{i}": f"x = {i}" for i in range(1_000)})
        catalog.remove("s7")
        before = catalog.at()
        postgres.kill()
        try:
            with pytest.raises(CatalogError, match=r"127\.0\.0\.1"):
                catalog.version()
        finally:
            postgres.start()
        assert catalog.version() == 2
        assert catalog.at() == before
        assert catalog.add("s7", "x = 7") == 3


# Concurrent writers


def test_a_writer_that_waits_too_long_says_so(url):
    with bittern.Catalog(url) as catalog, bittern.Catalog(url, timeout=0.2) as hasty:
        catalog.add("a", "x = 1")

        def meanwhile(stage):
            with pytest.raises(CatalogError, match=r"another writer has held it for 0\.2 s"):
                hasty.add("b", "x = 1")
            assert ids(hasty.at()) == ["a"]

        writing.write(catalog._database, lambda _: None, under_lock=meanwhile)
        assert hasty.add("b", "x = 1") == 2


def test_others_write_while_a_load_reads_its_source(catalog, url):
    def slow():
        yield {"id": "mine", "expression": "x = 1"}
        with bittern.Catalog(url) as other:
            assert other.add("other", "x = 1") == 1
        yield {"id": "also mine", "expression": "x = 1"}

    assert catalog.load(slow(), mode="replace") == (2, 2, 0, 1, 0, [])
    assert ids(catalog.at(1)) == ["other"]
    assert ids(catalog.at(2)) == ["also mine", "mine"]


def test_a_version_is_stable_while_others_write(catalog):
    catalog.apply([{"id": i, "expression": "x = 1"} for i in range(100)])
    before = catalog.at(1)
    with catalog._database.reading() as connection:
        assert reading.newest(connection) == 1
        catalog.apply([{"id": 7, "expression": "x = 2"}], range(50, 60))
        assert reading.newest(connection) == 1
    assert catalog.at(1) == before
    assert catalog.changes(0, 1).put == before
    assert catalog.count() == 90


WRITER = """
import random, sys
import bittern
from bittern.errors import SubscriptionError, UnknownSubscriptionError
url, number = sys.argv[1], int(sys.argv[2])
own = random.Random(number)
catalog = bittern.Catalog(url)  # makes it, at the same time as the others
before, versions = catalog.version(), []
for step in range(20):
    id_ = f"s{own.randrange(12)}"
    try:
        kind = own.randrange(4)
        if kind == 0:
            versions.append(catalog.add(id_, f"x = {number * 1000 + step}"))
        elif kind == 1:
            versions.append(catalog.remove(id_))
        elif kind == 2:
            versions.append(catalog.set_enabled(id_, bool(step % 2)))
        else:
            rows = [{"id": id_, "expression": f"y = {number * 1000 + step}"}]
            versions.append(catalog.apply(rows, [f"t{step}"]))
    except (SubscriptionError, UnknownSubscriptionError):
        pass
print(*versions)
"""


def test_writers_take_turns(url):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, url, str(number)], stdout=subprocess.PIPE, text=True
        )
        for number in range(3)
    ]
    outs = [writer.communicate(timeout=PATIENCE)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 3
    told = [int(version) for out in outs for version in out.split()]
    with bittern.Catalog(url, create=False) as catalog:
        last = catalog.version()
        # set_enabled may find that nothing changes: it is told a version that was there already.
        assert set(told) | {0} == set(range(last + 1))
        assert [v.version for v in catalog.versions(limit=1_000)] == list(range(last, 0, -1))
        for version in range(last + 1):
            assert replayed(catalog, 0, version) == contents(catalog.at(version))
            assert replayed(catalog, version, last) == contents(catalog.at())


def test_threads_share_a_catalog(catalog):
    def write(number):
        for step in range(5):
            catalog.add(f"{number}-{step}", "x = 1")
            assert catalog.version() >= 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (catalog.version(), catalog.count()) == (30, 30)


def test_a_forked_process_uses_connections_of_its_own(catalog):
    catalog.add("parent", "x = 1")
    pid = os.fork()
    if pid == 0:
        try:
            catalog.add("child", "x = 1")
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert catalog.add("parent again", "x = 1") == 3
    assert ids(catalog.at(2)) == ["child", "parent"]


FORKED = """
import os, sys
import bittern
from bittern.catalog import writing
from bittern.errors import CatalogError

catalog = bittern.Catalog(sys.argv[1], timeout=300)
catalog.add("parent", "x = 1")

def forked(run):
    \"\"\"What a child says at its end, which is that of any program.\"\"\"
    child = os.fork()
    if child == 0:
        run()
        sys.exit(0)
    return child

def ended(child):
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
FORKS = {
    "a child that does nothing ends": """
ended(forked(lambda: None))
assert catalog.add("again", "x = 1") == 2
""",
    "a child that has read and written ends": """
ended(forked(lambda: catalog.add("child", "x = 1")))
assert catalog.add("again", "x = 1") == 3
""",
    "a child goes on after its parent has closed": """
(told, tell), (going, go) = os.pipe(), os.pipe()
def run():
    catalog.add("child", "x = 1")
    os.write(tell, b".")
    os.read(going, 1)
    assert catalog.add("again", "x = 1") == 3
child = forked(run)
os.read(told, 1)
catalog.close()
os.write(go, b".")
ended(child)
""",
    "a child of a writer that has the lock ends": """
def under_lock(stage):
    child = os.fork()
    if child == 0:
        try:
            catalog.version()
        except CatalogError as error:
            os._exit("forked while the catalog was in use" not in str(error))
        os._exit(2)
    ended(child)
    stage.put([("again", "x = 1", None, None, None, True, 0)])
writing.write(catalog._database, lambda _: None, under_lock=under_lock)
""",
}


@pytest.mark.parametrize("fork", FORKS)
def test_a_forked_process_harms_nobody(tmp_path, fork):
    place = tmp_path / "c.db"
    subprocess.run(
        [sys.executable, "-c", FORKED + FORKS[fork], place], check=True, timeout=PATIENCE
    )
    with bittern.Catalog(place, create=False) as catalog:
        assert {"again", "parent"} <= set(ids(catalog.at()))
        assert catalog.count() == catalog.version()
        assert catalog.check() == []


def test_a_full_disk_changes_nothing(tmp_path):
    with bittern.Catalog(tmp_path / "c.db") as catalog:
        catalog.add("a", "x = 1")
        with catalog._database.writing() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()

        @sa.event.listens_for(catalog._database._engine, "checkout")
        def _(connection, *_):
            connection.execute(f"PRAGMA max_page_count = {pages + 5}")

        with pytest.raises(CatalogError, match="full"):
            catalog.load({str(i): f"x = {i}" for i in range(20_000)})
        assert (catalog.version(), ids(catalog.at())) == (1, ["a"])
        assert catalog.remove("a") == 2


def test_the_log_is_flushed_at_each_commit(tmp_path):
    with bittern.Catalog(tmp_path / "c.db") as catalog:
        with catalog._database.reading() as connection:
            told = [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                for name in ("journal_mode", "synchronous")
            ]
        assert told == ["wal", 2]
    with sqlite3.connect(tmp_path / "c.db") as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    plain.close()


# Files that go away, and files that others write to


def test_a_file_that_is_gone_is_not_made_again(tmp_path):
    place = tmp_path / "c.db"
    with bittern.Catalog(place) as catalog:
        catalog.add("a", "x = 1")
        place.rename(tmp_path / "other.db")
        for call in (catalog.version, lambda: catalog.remove("a")):
            with pytest.raises(CatalogError, match="was moved, removed or replaced"):
                call()
        assert not place.exists()
        (tmp_path / "other.db").rename(place)
        assert catalog.version() == 1  # it is the same file


def test_a_file_that_goes_away_meanwhile_takes_no_version(tmp_path):
    place = tmp_path / "c.db"

    def rows():
        yield {"id": "a", "expression": "x = 1"}
        place.rename(tmp_path / "other.db")

    with bittern.Catalog(place) as catalog:
        with pytest.raises(CatalogError, match="moved, removed or replaced"):
            catalog.load(rows())
        (tmp_path / "other.db").rename(place)
        assert catalog.version() == 0


def test_only_a_new_file_without_any_version_is_discarded(tmp_path):
    place = tmp_path / "c.db"
    bittern.Catalog(place).discard()
    assert list(tmp_path.iterdir()) == []
    first = bittern.Catalog(place)
    with bittern.Catalog(place) as other:
        first.discard()
        assert other.add("a", "x = 1") == 1
    first.discard()
    with bittern.Catalog(place) as again:
        assert again.remove("a") == 2
        with again._database.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
    again.discard()
    assert place.exists()
    place.rename(tmp_path / "other.db")
    first.discard()
    assert [each.name for each in tmp_path.iterdir()] == ["other.db"]


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("weight", "'heavy'", "'heavy' as weight"),
        ("weight", "x'00ff'", "as weight"),
        ("expression", "x'ff'", "as expression"),
        ("subscriber", "x'ff'", "as subscriber"),
        ("created", "'today'", "'today' as created"),
        ("changed", "x'00'", "as changed"),
    ],
)
def test_what_other_programs_wrote_is_told_with_its_id(tmp_path, column, value, shown):
    with bittern.Catalog(tmp_path / "c.db") as catalog:
        catalog.load(dict.fromkeys("abc", "x = 1"))
        with catalog._database.writing() as connection:
            connection.exec_driver_sql(
                f"UPDATE bittern_subscriptions SET {column} = {value} WHERE id = 'b'"
            )
        calls = [
            catalog.at,
            lambda: catalog.changes(0),
            lambda: catalog.get("b"),
            lambda: catalog.history("b"),
        ]
        if column in ("weight", "subscriber"):
            calls.append(lambda: catalog.details("abc"))
        for call in calls:
            with pytest.raises(CatalogError, match=f"c.db: the subscription 'b' has .*{shown}"):
                call()
        assert catalog.get("a").id == "a"
        catalog.remove("b")
        catalog.add("b", "x = 2")
        assert ids(catalog.at()) == ["a", "b", "c"]


def test_metadata_that_other_programs_wrote(tmp_path):
    with bittern.Catalog(tmp_path / "c.db") as catalog:
        catalog.add("b", "x = 1")
        with catalog._database.writing() as connection:
            connection.exec_driver_sql("UPDATE bittern_subscriptions SET metadata = '{'")
        with pytest.raises(CatalogError, match="'b' has metadata that is not JSON"):
            catalog.get("b")


# Everything at once, against a dictionary


IDS = st.sampled_from(["a", "b", "c", "d"])
CONTENT = st.fixed_dictionaries(
    {
        "expression": st.sampled_from(["x = 1", "x = 2"]),
        "weight": st.sampled_from([None, 1.0]),
        "enabled": st.booleans(),
    }
)
PUTS = st.dictionaries(IDS, CONTENT, max_size=3)
USUAL = {"weight": None, "enabled": True}
#: What a source says of some: fields that it does not name are left alone.
PARTS = st.dictionaries(
    IDS,
    st.fixed_dictionaries(
        {"expression": st.sampled_from(["x = 1", "x = 2"])},
        optional={"weight": st.sampled_from([None, 1.0]), "enabled": st.booleans()},
    ),
    max_size=3,
)


class Model(RuleBasedStateMachine):
    """A catalog beside the list of all its versions as plain dictionaries."""

    new_url = None

    def __init__(self):
        super().__init__()
        self.catalog = bittern.Catalog(self.new_url())
        self.states = [{}]
        self.oldest = 0

    def teardown(self):
        states = self.states
        for first in range(self.oldest, len(states)):
            found = contents(self.catalog.at(first, all=True))
            assert {id_: content(row) for id_, row in found.items()} == states[first]
            for last in range(first, len(states)):
                assert replayed(self.catalog, first, last) == contents(self.catalog.at(last))
                changes = self.catalog.changes(first, last)
                visible = [enabled(states[first]), enabled(states[last])]
                assert set(changes.removed) == visible[0].keys() - visible[1].keys()
                differing = {i for i, row in visible[1].items() if visible[0].get(i) != row}
                assert differing <= set(ids(changes.put)) <= visible[1].keys()
        self.catalog.close()

    def expect(self, version, state):
        """``state`` is there now, in a new version if it is another one."""
        if state != self.states[-1]:
            self.states.append(state)
        assert version == len(self.states) - 1

    @property
    def now(self):
        return self.states[-1]

    @rule(id_=IDS, content=CONTENT, replace=st.booleans())
    def add(self, id_, content, replace):
        if id_ in self.now and not replace:
            with pytest.raises(SubscriptionError):
                self.catalog.add(id_, **content)
        else:
            version = self.catalog.add(id_, **content, replace=replace)
            self.expect(version, self.now | {id_: content})

    @rule(id_=IDS)
    def remove(self, id_):
        if id_ in self.now:
            self.expect(self.catalog.remove(id_), without(self.now, [id_]))
        else:
            with pytest.raises(UnknownSubscriptionError):
                self.catalog.remove(id_)

    @rule(id_=IDS, enabled=st.booleans())
    def set_enabled(self, id_, enabled):
        if id_ in self.now:
            version = self.catalog.set_enabled(id_, enabled)
            self.expect(version, self.now | {id_: self.now[id_] | {"enabled": enabled}})

    @rule(puts=PUTS, removes=st.sets(IDS))
    def apply(self, puts, removes):
        removes -= puts.keys()
        version = self.catalog.apply(as_rows(puts), removes)
        self.expect(version, without(self.now, removes) | puts)

    @rule(parts=PARTS, mode=st.sampled_from(["upsert", "replace"]))
    def load(self, parts, mode):
        old = self.now
        if mode == "replace" and not parts:
            with pytest.raises(OptionError, match="no subscription"):
                self.catalog.load([], mode=mode)
            return
        loaded = self.catalog.load(as_rows(parts), mode=mode)
        puts = {id_: old.get(id_, USUAL) | part for id_, part in parts.items()}
        self.expect(loaded.version, old | puts if mode == "upsert" else puts)
        assert loaded.added == len(puts.keys() - old.keys())
        assert loaded.unchanged == sum(old.get(id_) == row for id_, row in puts.items())
        assert loaded.removed == (len(old.keys() - puts.keys()) if mode == "replace" else 0)

    @precondition(lambda self: len(self.states) > 3)
    @rule(data=st.data())
    def forget(self, data):
        self.oldest = data.draw(st.integers(self.oldest, len(self.states) - 1))
        self.catalog.forget(self.oldest)

    @invariant()
    def newest(self):
        assert self.catalog.version() == len(self.states) - 1
        assert self.catalog.count(all=True) == len(self.now)


def content(row):
    return {name: row[name] for name in ("expression", "weight", "enabled")}


def enabled(state):
    return {id_: row for id_, row in state.items() if row["enabled"]}


def without(state, removed):
    return {id_: row for id_, row in state.items() if id_ not in removed}


def as_rows(puts):
    return [{"id": id_, **row} for id_, row in puts.items()]


def run_model(new_url, factor):
    class Bound(Model):
        pass

    Bound.new_url = staticmethod(new_url)
    Bound.TestCase.settings = examples(factor, steps=10)
    Bound.TestCase().runTest()


def test_any_sequence_of_changes_in_sqlite():
    with tempfile.TemporaryDirectory() as folder:
        run_model(lambda: Path(folder) / f"{secrets.token_hex(8)}.db", 0.25)


def test_any_sequence_of_changes_in_postgresql(postgres):
    run_model(postgres.new_url, 0.15)
