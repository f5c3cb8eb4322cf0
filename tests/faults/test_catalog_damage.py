"""A catalog whose database is damaged: one clear sentence, or an answer, and never a raw error.

SQLite has no checksums, so a bit that makes another valid value of a value may pass.
"""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
from contextlib import suppress

import pytest

import bittern
from bittern.errors import BitternError, CatalogError
from effort import chosen_seed

FLIPS = 60
#: Enough for rows to stand on several pages.
MANY = 60


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = tmp_path_factory.mktemp("whole") / "c.db"
    with bittern.Catalog(place) as catalog:
        catalog.load(
            {"id": f"s{i}", "expression": f"price < {i} AND model = 'ä'", "weight": i}
            | {"subscriber": f"u{i}", "metadata": {"k": i}}
            for i in range(MANY)
        )
        catalog.add("s1", "price < 2", replace=True)
        catalog.set_enabled(["s2", "s3"], False)
        catalog.apply([{"id": "s4", "expression": "x = 1"}], ["s5", "s6"])
        assert catalog.check() == []
    return place


@pytest.fixture
def place(whole, tmp_path):
    return shutil.copy(whole, tmp_path / "c.db")


def execute(place, *statements):
    connection = sqlite3.connect(place)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def read_all(catalog, folder):
    """Every way to read; each may say that it cannot."""
    calls = [
        catalog.version,
        catalog.check,
        *(lambda v=v: catalog.at(v, all=True).to_pylist() for v in (None, 0, 1, 2, 3, 4)),
        lambda: catalog.at(limit=3).to_pylist(),
        *(lambda v=v: catalog.count(v) for v in (None, 1)),
        *(lambda v=v: catalog.changes(v).put.to_pylist() for v in (0, 1, 3)),
        *(lambda i=i: catalog.get(f"s{i}") for i in range(10)),
        *(lambda i=i: catalog.history(f"s{i}") for i in range(10)),
        lambda: catalog.details([f"s{i}" for i in range(MANY)]).to_pylist(),
        catalog.versions,
        lambda: catalog.export(folder / "out.jsonl"),
        lambda: catalog.export(folder / "out.csv"),
    ]
    for call in calls:
        with suppress(BitternError):
            call()


def test_flipped_bits_are_told_or_pass(whole, tmp_path):
    draw = random.Random(chosen_seed())
    raw = whole.read_bytes()
    place = tmp_path / "c.db"
    for _ in range(FLIPS):
        damaged = bytearray(raw)
        where = [(draw.randrange(len(raw)), draw.randrange(8)) for _ in range(draw.randint(1, 3))]
        for byte, bit in where:
            damaged[byte] ^= 1 << bit
        place.write_bytes(damaged)
        print(where)
        with (
            suppress(BitternError),
            bittern.Catalog(place, create=draw.random() < 0.5, timeout=1) as catalog,
        ):
            read_all(catalog, tmp_path)
            catalog.add("new", "x = 1")
            catalog.load({"s1": "x = 2"})
        for left in tmp_path.glob("c.db-*"):
            left.unlink()


def test_a_name_that_is_not_utf_8_is_told(place):
    """SQLite quotes it in a message that Python cannot read."""
    raw = place.read_bytes()
    name = b"bittern_subscriptions"
    at = raw.index(b"table" + name) + len(b"table")
    damaged = raw[:at] + b"\xc3" + raw[at + 1 :]  # and the statement beside it has another name
    place.write_bytes(damaged.replace(b"CREATE TABLE " + name, b"CREATE TABLF " + name, 1))
    with pytest.raises(CatalogError, match=r"c\.db: it has names that are not UTF-8.*backup"):
        bittern.Catalog(place)


DAMAGES = {
    "SET weight = 'heavy'": "'s7' has .*'heavy' as weight",
    "SET created = 9223372036854775806": "'s7' has .*as created",
    "SET changed = -9223372036854775806": "'s7' has .*as changed",
    "SET expression = CAST(x'7072696365ff' AS TEXT)": "'s7' has a text that is not UTF-8",
    "SET metadata = CAST(x'ff' AS TEXT)": "s7' has a text that is not UTF-8",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_row_is_told_with_file_row_and_remedy(place, damage):
    execute(place, f"UPDATE bittern_subscriptions {damage} WHERE id = 's7'")
    with bittern.Catalog(place) as catalog:
        for call in (catalog.at, lambda: catalog.changes(0), lambda: catalog.get("s7")):
            with pytest.raises(CatalogError, match=f"c.db: .*{DAMAGES[damage]}.*catalog check"):
                call()
        (problem,) = catalog.check()
        assert re.match("from version 1 on the subscription 's7' (has|is not valid,) ", problem)
        assert catalog.get("s8").id == "s8"
        catalog.remove("s7")
        assert "s7" not in catalog.at()["id"].to_pylist()


FOUND = {
    "UPDATE bittern_subscriptions SET expression = 'price <' WHERE id = 's7'": "position 7",
    "UPDATE bittern_subscriptions SET weight = 9e999 WHERE id = 's7'": "weight",
    "UPDATE bittern_subscriptions SET metadata = '[1]' WHERE id = 's7'": "JSON object",
    "UPDATE bittern_subscriptions SET metadata = '{' WHERE id = 's7'": "not JSON",
    "UPDATE bittern_subscriptions SET metadata = '{ }' WHERE id = 's7'": "bittern writes '{}'",
    "UPDATE bittern_subscriptions SET enabled = 7 WHERE id = 's7'": "7 as enabled",
    "UPDATE bittern_subscriptions SET since = 9 WHERE id = 's7'": "9 as the version",
    "UPDATE bittern_subscriptions SET until = 9 WHERE id = 's7'": "9 as the version",
    "UPDATE bittern_subscriptions SET until = 4 WHERE id = 's1' AND since = 1": "two forms",
    "UPDATE bittern_versions SET time = 'now' WHERE version = 2": "'now' as its time",
    "UPDATE bittern_versions SET added = -1 WHERE version = 2": "numbers of changes",
    "DELETE FROM bittern_versions WHERE version = 2": "has 3 where 2 is expected",
    "DELETE FROM bittern_subscriptions WHERE id = 's7'": "version 1 says that it added 60",
    "UPDATE bittern_catalog SET version = 99": "do not agree",
    "UPDATE bittern_catalog SET oldest = 'x'": "do not agree",
}


@pytest.mark.parametrize("statement", FOUND)
def test_a_check_finds_what_bittern_would_not_write(place, statement):
    execute(place, statement)
    with bittern.Catalog(place) as catalog:
        assert any(FOUND[statement] in problem for problem in catalog.check())


@pytest.mark.parametrize("version", ["99", "'x'", "NULL", "3", "9223372036854775807"])
def test_a_wrong_counter_stops_readers_and_writers(place, version):
    execute(
        place,
        "CREATE TABLE t AS SELECT * FROM bittern_catalog",  # without its constraints
        "DROP TABLE bittern_catalog",
        "ALTER TABLE t RENAME TO bittern_catalog",
        f"UPDATE bittern_catalog SET version = {version}",
    )
    with bittern.Catalog(place) as catalog:
        for call in (
            catalog.version,
            catalog.at,
            lambda: catalog.add("new", "x = 1"),
            lambda: catalog.forget(1),
        ):
            with pytest.raises(CatalogError, match=r"c\.db: .*version.*damaged"):
                call()


@pytest.mark.parametrize(
    "uid", ["../../victim/x", "", "A" * 32, "0" * 31, "0" * 33, "0" * 32 + "\n", b"0" * 32, 7]
)
def test_a_uid_that_bittern_did_not_give_is_refused(place, uid):
    connection = sqlite3.connect(place)
    connection.execute("UPDATE bittern_catalog SET uid = ?", [uid])
    connection.commit()
    connection.close()
    with pytest.raises(CatalogError, match=r"c\.db: its uid is .* not 32 hexadecimal digits"):
        bittern.Catalog(place)


def test_a_uid_of_postgresql_is_looked_at_too(postgres):
    url = postgres.new_url()
    with bittern.Catalog(url) as catalog, catalog._database.writing() as connection:
        connection.exec_driver_sql("UPDATE bittern_catalog SET uid = '../../victim/x'")
    with pytest.raises(CatalogError, match=r"its uid is '\.\./\.\./victim/x'"):
        bittern.Catalog(url)


def test_no_catalog_is_made_beside_what_is_left_of_one(place):
    execute(place, "ALTER TABLE bittern_catalog RENAME TO bittern_catclog")
    for create in (True, False):
        with pytest.raises(
            CatalogError, match="it has only some tables of a catalog: bittern_subscriptions"
        ):
            bittern.Catalog(place, create=create)


def test_a_check_in_postgresql(postgres):
    with bittern.Catalog(postgres.new_url()) as catalog:
        catalog.load({"a": "x = 1", "b": "x = 2"})
        catalog.add("a", "x = 3", replace=True, metadata={"k": [1]}, weight=2)
        catalog.set_enabled("b", False)
        catalog.forget(2)
        assert catalog.check() == []
        with catalog._database.writing() as connection:
            connection.exec_driver_sql("UPDATE bittern_subscriptions SET expression = 'x ='")
        assert len(catalog.check()) == 3
