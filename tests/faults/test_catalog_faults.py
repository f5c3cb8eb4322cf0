"""A catalog when a change is not finished: an exception at any moment, and around its COMMIT.

All of the change or nothing is there, the versions say which, nobody is locked out, and the next
call works. That a caller is not told of a change that was committed is allowed: ``version()`` says.
"""

from __future__ import annotations

import json
import shutil
from itertools import count, product

import pytest
from sqlalchemy.engine.default import DefaultDialect

import bittern
from bittern.errors import CatalogError, OptionError
from interrupts import FAULTS, each_fault
from steady import PATIENCE

ROWS = [
    {"id": id_, "expression": "x = 1", "subscriber": "me", "weight": 1.0, "metadata": {"k": 1}}
    for id_ in "abc"
]
OTHERS = {"a": "x = 2", "d": "x = 4"}


def load_file(catalog):
    place = catalog._test_folder / "s.jsonl"
    place.write_text("\n".join(json.dumps({"id": i, "expression": e}) for i, e in OTHERS.items()))
    return catalog.load(place)


CHANGES = {
    "add": lambda catalog: catalog.add("d", "x = 4", metadata={"k": 2}),
    "replace": lambda catalog: catalog.add("a", "x = 2", replace=True),
    "remove": lambda catalog: catalog.remove("a"),
    "enable": lambda catalog: catalog.set_enabled("b", False),
    "apply": lambda catalog: catalog.apply([{"id": "d", "expression": "x = 4"}], ["a", "b"]),
    "load": lambda catalog: catalog.load(OTHERS),
    "load all": lambda catalog: catalog.load(OTHERS, mode="replace"),
    "import": load_file,
    "forget": lambda catalog: catalog.forget(2),
    "settings": lambda catalog: catalog.set_quantifiers(False),
}


def state(catalog):
    """All that a catalog says, apart from times."""
    newest = catalog.version()
    told = catalog.versions()
    oldest = told[-1].version
    tables = []
    for version in range(oldest, newest + 1):
        table = catalog.at(version, all=True)
        assert catalog.count(version, all=True) == table.num_rows
        tables.append(table.drop_columns(["created", "changed"]).to_pylist())
        # What is between two versions leads from one to the other.
        rows = {row["id"]: row for row in catalog.at(oldest).to_pylist()}
        changes = catalog.changes(oldest, version)
        for id_ in changes.removed:
            del rows[id_]
        rows |= {row["id"]: row for row in changes.put.to_pylist()}
        assert [rows[id_] for id_ in sorted(rows)] == catalog.at(version).to_pylist()
    return newest, [v[:1] + v[2:] for v in told], tables, catalog.allows_quantifiers()


def judge(catalog, change, before, after, said):
    """Nothing or all is there, others can write at once, and the catalog goes on."""
    with bittern.Catalog(catalog.url, create=False, timeout=PATIENCE) as other:
        found = state(other)
        assert found in (before, after), said
        assert catalog.version() == found[0], said
        with other._database.writing() as connection:  # takes the lock, and changes nothing
            connection.exec_driver_sql("UPDATE bittern_catalog SET oldest = oldest")
    assert catalog._database._engine.pool.checkedout() == 0, said
    if found == before:
        change(catalog)
    assert state(catalog) == after, said
    assert catalog.apply([{"id": "z", "expression": "x = 9"}]) == after[0] + 1, said


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A catalog of three subscriptions and three versions, closed."""
    place = tmp_path_factory.mktemp("template") / "c.db"
    with bittern.Catalog(place) as catalog:
        catalog.load(ROWS)
        catalog.set_enabled("c", False)
        catalog.add("b", "x = 2", replace=True)
    return place


@pytest.fixture
def make(template, tmp_path):
    numbers = count()

    def made():
        place = tmp_path / f"{next(numbers)}.db"
        shutil.copy(template, place)
        catalog = bittern.Catalog(place, create=False, timeout=PATIENCE)
        catalog._test_folder = tmp_path
        return catalog

    return made


@pytest.fixture
def make_in_postgres(postgres, tmp_path):
    def made():
        catalog = bittern.Catalog(postgres.new_url(), timeout=PATIENCE)
        catalog._test_folder = tmp_path
        catalog.load(ROWS)
        catalog.set_enabled("c", False)
        catalog.add("b", "x = 2", replace=True)
        return catalog

    return made


def states(make, change):
    with make() as catalog:
        before = state(catalog)
        change(catalog)
        return before, state(catalog)


def check_faults(make, change, moments):
    before, after = states(make, change)
    for fault in each_fault(make, change, moments=moments, unmake=lambda made: made.close()):
        assert fault.caught is None or isinstance(
            fault.caught, type(fault.raised) | CatalogError | OptionError
        ), fault
        judge(fault.subject, change, before, after, str(fault))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_is_not_finished(make, name):
    check_faults(make, CHANGES[name], 12)


def test_a_change_that_is_not_finished_in_postgresql(make_in_postgres):
    check_faults(make_in_postgres, CHANGES["load all"], 6)


@pytest.mark.parametrize("name", CHANGES)
def test_a_driver_that_raises_around_a_statement(make, name):
    """Between SQLite and SQLAlchemy, where no line of the catalog's runs."""
    check_driver_faults(make, CHANGES[name], ["begin", "execute", "commit"])


def test_a_driver_of_postgresql_that_raises_around_a_commit(make_in_postgres):
    check_driver_faults(make_in_postgres, CHANGES["load"], ["commit"])


def check_driver_faults(make, change, statements):
    before, after = states(make, change)
    for number, (statement, when) in enumerate(product(statements, ["before", "after"])):
        fault = FAULTS[number % len(FAULTS)]
        with make() as catalog:
            with pytest.raises(type(fault())):
                with_fault(catalog, change, when, statement, fault)
            judge(catalog, change, before, after, f"{fault()!r} {when} {statement}")


def with_fault(catalog, change, when, statement, fault):
    """Make a change whose next call of the driver raises."""
    dialect = catalog._database._engine.dialect
    name = f"do_{statement}"
    real = getattr(dialect, name)

    def faulty(*arguments, **options):
        if when == "after":
            real(*arguments, **options)
        raise fault()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dialect, name, faulty)
        return change(catalog)


@pytest.mark.parametrize("fault", FAULTS[1:])
def test_what_is_raised_before_a_statement_reaches_the_driver_is_told_as_it_is(make, fault):
    """SQLAlchemy wraps it in an error of its own, which says nothing to those who use a catalog."""

    def faulty(*_, **__):
        raise fault()

    with make() as catalog, pytest.MonkeyPatch.context() as patch:
        context = catalog._database._engine.dialect.execution_ctx_cls
        patch.setattr(context, "_init_compiled", faulty)
        with pytest.raises(type(fault())):
            CHANGES["remove"](catalog)


def test_a_catalog_that_is_not_made(tmp_path):
    """Opening raises: there is a catalog or none, and the next one that opens it has one."""
    numbers = count()

    def opened(place):
        return bittern.Catalog(place, timeout=PATIENCE)

    for fault in each_fault(lambda: tmp_path / f"{next(numbers)}.db", opened, moments=25):
        assert fault.caught is None or isinstance(
            fault.caught, type(fault.raised) | CatalogError | OptionError
        ), fault
        with bittern.Catalog(fault.subject, timeout=PATIENCE) as catalog:
            assert (catalog.version(), len(catalog.uid)) == (0, 32), fault
            assert catalog.add("a", "x = 1") == 1, fault
            with bittern.Catalog(fault.subject, create=False) as other:
                assert (other.uid, other.version()) == (catalog.uid, 1), fault
        if fault.result is not None:
            fault.result.close()


def test_opening_that_is_not_finished_changes_nothing(make):
    def opened(catalog):
        bittern.Catalog(catalog.url, create=False).close()

    for fault in each_fault(make, opened, moments=12, unmake=lambda made: made.close()):
        assert fault.subject.version() == 3, fault
        assert fault.subject.add("d", "x = 4") == 4, fault


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet"])
def test_an_export_that_is_not_finished_leaves_the_old_file(make, tmp_path, name):
    place = tmp_path / name
    with make() as catalog:
        catalog.export(place, 1)
        old = place.read_bytes()
        new = catalog.export(tmp_path / f"whole-{name}") and (
            (tmp_path / f"whole-{name}").read_bytes()
        )

        def restored():
            place.write_bytes(old)
            return catalog

        for fault in each_fault(restored, lambda made: made.export(place), moments=12):
            assert place.read_bytes() in (old, new), fault
            left = [each.name for each in tmp_path.iterdir() if each.name.endswith(".part")]
            assert left == [], fault


def test_an_interrupted_statement_lets_go_of_its_locks(tmp_path, monkeypatch):
    """Its cursor lives on in the exception, and with it a closed connection's locks did."""
    real, once = DefaultDialect.do_execute, [KeyboardInterrupt]

    def do_execute(self, cursor, statement, *others):
        real(self, cursor, statement, *others)
        if "RETURNING" in statement and once:
            raise once.pop()

    monkeypatch.setattr(DefaultDialect, "do_execute", do_execute)
    place = tmp_path / "s.db"
    once.clear()
    with bittern.Catalog(place, timeout=1) as catalog, bittern.Catalog(place, timeout=1) as other:
        catalog.add("a", "x = 1")
        once.append(KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt) as kept:
            catalog.add("b", "x = 1")
        assert not once
        other.add("c", "x = 1")
        catalog.add("d", "x = 1")
        assert catalog.at(catalog.version())["id"].to_pylist() == ["a", "c", "d"]
    del kept
