"""``bittern catalog``: every command, and one sentence for everything that is wrong."""

from __future__ import annotations

import json

import pyarrow.parquet
import pytest

import bittern


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "shop.db")
    return request.getfixturevalue("postgres").new_url()


@pytest.fixture
def run(bittern_command):
    return lambda *arguments, **options: bittern_command("catalog", *arguments, **options)


def lines(out):
    return [json.loads(line) for line in out.splitlines()]


COMMANDS = ["add", "remove", "enable", "disable", "show", "load", "export", "history", "check"]


@pytest.mark.parametrize(
    "command", [*COMMANDS, "quantifiers", "set", "sets", "members", "forget", None]
)
def test_help_has_an_example(run, command):
    code, out, _ = run(*([command] if command else []), "--help")
    assert code == 0
    assert "example:\n  bittern catalog " in out


def test_a_subscription_from_beginning_to_end(run, place):
    more = ["--weight", "2.5", "--subscriber", "me", "--metadata", '{"k": 1}', "--disabled"]
    assert run("add", place, "s1", "price < 10", *more) == (0, "", "bittern: version 1\n")
    assert run("add", place, "s2", "price < 20")[2] == "bittern: version 2\n"
    assert run("enable", place, "s1")[2] == "bittern: version 3\n"
    assert run("add", place, "s1", "price < 11", "--replace")[2] == "bittern: version 4\n"
    assert run("disable", place, "s1", "s2")[2] == "bittern: version 5\n"
    assert run("remove", place, "s1", "s2")[2] == "bittern: version 6\n"
    code, out, _ = run("history", place)
    assert (code, len(out.splitlines())) == (0, 7)
    assert out.splitlines()[1].split()[0] == "6"
    _, out, _ = run("history", place, "--json", "--limit", "2")
    assert [(v["version"], v["removed"]) for v in lines(out)] == [(6, 2), (5, 0)]
    _, out, _ = run("history", place, "s1", "--json")
    assert [(v["version"], v["until"], v["enabled"]) for v in lines(out)] == [
        (5, 6, False),
        (4, 5, True),
        (3, 4, True),
        (1, 3, False),
    ]
    code, _, err = run("forget", place, "5")
    assert (code, err.split(";")[0]) == (0, "bittern: 4 rows dropped")
    assert run("show", place, "--version", "4")[0] == 2


def test_show(run, place):
    with bittern.Catalog(place) as catalog:
        catalog.load({f"s{i}": f"price < {i}" for i in range(9)})
        catalog.add("odd\x1b[31m\n", "x = 'a\nb'", metadata={"k": 1}, weight=1e6)
        catalog.set_enabled("s1", False)
    code, out, err = run("show", place, "--limit", "3")
    assert code == 0
    assert out.splitlines() == [
        "id             enabled  weight  subscriber  version  expression",
        "odd\\x1b[31m\\n  yes      1e+06   -           2        x = 'a\\nb'",
        "s0             yes      -       -           1        price < 0",
        "s1             no       -       -           3        price < 1",
    ]
    assert err == "bittern: 3 of 10 subscriptions shown: use --limit to see more\n"
    _, out, err = run("show", place, "s3", "s1", "--version", "1", "--json")
    assert err == ""
    assert [(row["id"], row["enabled"], row["version"]) for row in lines(out)] == [
        ("s3", True, 1),
        ("s1", True, 1),
    ]
    _, out, _ = run("show", place, "--json")
    rows = lines(out)
    assert len(rows) == 10
    assert rows[0]["metadata"] == {"k": 1}


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl", "s.parquet"])
def test_files_out_and_in_again(run, place, tmp_path, name):
    run("add", place, "a", "x = 1", "--metadata", '{"k": "\u00e4"}')
    run("add", place, "b", "x = 2", "--disabled")
    file = tmp_path / name
    code, out, err = run("export", place, file, "--version", "1")
    assert (code, out) == (0, "")
    assert err == f"bittern: 1 subscription written to {file}\n"
    code, _, err = run("load", place, file, "--mode", "replace")
    assert code == 0
    assert "merge: 3 of 3\n" in err
    assert "version 3: 0 added, 0 changed, 1 removed, 1 unchanged in " in err
    assert run("load", place, file, "--quiet") == (0, "", "")
    code, out, _ = run("export", place, "-", "--format", "csv")
    assert (code, out.splitlines()[0].split(",")[0]) == (0, '"id"')
    code, exported, _ = run("export", place, "-")
    assert lines(exported)[0]["metadata"] == {"k": "\u00e4"}
    code, _, err = run("load", place, "-", stdin=exported.encode())
    assert (code, "1 unchanged" in err) == (0, True)


def test_the_format_can_be_said(run, place, tmp_path):
    run("add", place, "a", "x = 1")
    file = tmp_path / "s.data"
    assert run("export", place, file)[0] == 2
    assert run("export", place, file, "--format", "parquet")[0] == 0
    assert pyarrow.parquet.read_table(file).num_rows == 1
    assert run("load", place, file)[0] == 2
    assert run("load", place, file, "--format", "parquet")[0] == 0


def test_bad_subscriptions(run, place, tmp_path):
    file = tmp_path / "s.csv"
    file.write_text("id,expression\na,x = 1\nb,x = =\na,x = 2\n")
    code, _, err = run("load", place, file)
    assert code == 1
    assert "bittern: 2 subscriptions not valid; nothing was written\n  'b', position 4: " in err
    code, _, err = run("load", place, file, "--on-error", "skip")
    assert code == 0
    assert "2 subscriptions not valid and skipped" in err
    assert "version 1: 1 added" in err
    for wrong in (
        ["a", "x = 3"],
        ["c", "x ="],
        ["c", "x = 1", "--metadata", "{"],
        ["", "x = 1"],
        ["c", "x = 1", "--weight", "nan"],
    ):
        code, out, err = run("add", place, *wrong)
        assert (code, out) == (1, "")
        assert "1 subscription not valid; nothing was written" in err
    with bittern.Catalog(place) as catalog:
        assert catalog.version() == 1


def test_a_taken_id_is_told_as_the_command_line_says_it(run, place):
    run("add", place, "a", "x = 1")
    code, _, err = run("add", place, "a", "x = 2")
    assert code == 1
    assert "position 0: this id is taken: choose another, or use --replace\n" in err


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_subscriber_is_refused(run, tmp_path, empty):
    code, _, err = run("add", tmp_path / "shop.db", "a", "x = 1", "--subscriber", empty)
    assert code == 2
    assert "--subscriber: it is empty" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [[], ["--mode", "replace"]])
@pytest.mark.parametrize("text", ["id,expression\na,x =\n", "id,text\na,x = 1\n", None])
def test_what_fails_makes_no_catalog(run, tmp_path, text, options):
    place, file = tmp_path / "shop.db", tmp_path / "s.csv"
    if text is not None:
        file.write_text(text)
    before = list(tmp_path.iterdir())
    assert run("load", place, file, *options)[0] in (1, 2)
    assert run("add", place, "a", "x =")[0] == 1
    assert list(tmp_path.iterdir()) == before
    place.touch()  # this one was there
    assert run("add", place, "a", "x =")[0] == 1
    assert place.exists()


def test_replacing_by_an_empty_file_is_refused(run, place, tmp_path):
    run("add", place, "a", "x = 1")
    (tmp_path / "s.jsonl").touch()
    code, _, err = run("load", place, tmp_path / "s.jsonl", "--mode", "replace", "--quiet")
    assert code == 2
    assert "the source has no subscription, so replacing would remove all" in err
    assert run("load", place, tmp_path / "s.jsonl", "--quiet") == (0, "", "")
    assert run("show", place, "--json")[1].count("\n") == 1


@pytest.mark.parametrize("command", ["show", "remove", "enable", "export", "history", "forget"])
def test_reading_makes_no_catalog(run, tmp_path, command):
    more = {"remove": ["a"], "enable": ["a"], "export": [tmp_path / "x.csv"], "forget": ["0"]}
    code, out, err = run(command, tmp_path / "typo.db", *more.get(command, []))
    assert (code, out) == (1, "")
    assert err == f"bittern: there is no catalog at {tmp_path}/typo.db\n"
    assert list(tmp_path.iterdir()) == []


def test_a_catalog_needs_its_folder(run, tmp_path):
    code, out, err = run("add", tmp_path / "gone" / "shop.db", "a", "x > 1")
    assert (code, out) == (1, "")
    assert err.endswith(f"shop.db: there is no folder {tmp_path}/gone: make it first\n")


def test_what_is_not_there_is_said(run, place, tmp_path):
    run("add", place, "a", "x = 1")
    for code, *arguments in (
        (1, "remove", place, "a", "zz"),
        (1, "disable", place, "a", "zz"),
        (1, "show", place, "zz"),
        (1, "history", place, "zz"),
        (2, "show", place, "--version", "9"),
        (2, "show", place, "--version", "-1"),
        (2, "show", place, "--version", "9" * 30),
        (2, "export", place, tmp_path / "no" / "x.csv"),
        (2, "export", place, "-", "--format", "parquet"),
        (2, "load", place, tmp_path / "none.csv"),
        (2, "forget", place, "2"),
        (2, "show", "mysql://x/y"),
        (2, "add", place, "b"),
        (2,),
    ):
        found, out, err = run(*arguments)
        assert (found, out) == (code, ""), arguments
        assert "bittern" in err
    with bittern.Catalog(place) as catalog:
        assert catalog.version() == 1


def test_a_load_of_two_columns_leaves_the_others_alone(run, place, tmp_path):
    more = ["--weight", "2.5", "--subscriber", "me", "--metadata", '{"k": 1}', "--disabled"]
    run("add", place, "s1", "price < 10", *more)
    (tmp_path / "s.csv").write_text("id,expression\ns1,price < 11\n")
    assert "1 changed" in run("load", place, tmp_path / "s.csv")[2]
    (row,) = lines(run("show", place, "--json")[1])
    assert (row["expression"], row["weight"], row["subscriber"]) == ("price < 11", 2.5, "me")
    assert (row["metadata"], row["enabled"]) == ({"k": 1}, False)
    _, out, _ = run("load", "--help")
    assert "stays as it is" in " ".join(out.split())


def test_a_check_says_what_is_wrong(run, place):
    run("add", place, "s1", "price < 10")
    assert run("check", place) == (0, "", "bittern: version 1, 1 subscription: nothing is wrong\n")
    with bittern.Catalog(place) as catalog, catalog._database.writing() as connection:
        connection.exec_driver_sql("UPDATE bittern_subscriptions SET expression = 'price <'")
    code, out, err = run("check", place)
    assert (code, out.count("\n")) == (1, 1)
    assert out.startswith("from version 1 on the subscription 's1' is not valid, position 7: ")
    assert err.startswith("bittern: 1 problem: ")


def test_the_remedy_leaves_nothing_for_a_check(run, place):
    run("add", place, "s1", "price < 10")
    run("add", place, "s2", "price < 20")
    run("add", place, "s1", "price < 11", "--replace")
    with bittern.Catalog(place) as catalog, catalog._database.writing() as connection:
        connection.exec_driver_sql(
            "UPDATE bittern_subscriptions SET expression = 'price <', created = -1 - "
            "9223372036854775807 WHERE id = 's1'"
        )
    _, out, err = run("check", place)
    assert [line.split(" has ")[0] for line in out.splitlines()[::2]] == [
        "in versions 1 to 2 the subscription 's1'",
        "from version 3 on the subscription 's1'",
    ]
    assert "remove these subscriptions, add them again, and forget earlier versions" in err
    code, _, err = run("show", place, "s1")
    assert (code, "remove it, add it again, and forget earlier versions" in err) == (1, True)
    code, _, err = run("remove", place, "s1", "s3")  # all or none
    assert (code, err) == (1, "bittern: no subscription has the id 's3'\n")
    assert run("remove", place, "s1", "s1") == (0, "", "bittern: version 4\n")
    assert run("add", place, "s1", "price < 12") == (0, "", "bittern: version 5\n")
    _, out, _ = run("check", place)
    assert "in version 3 the subscription 's1' is not valid, position 7: " in out
    assert run("forget", place, "5")[0] == 0
    assert run("check", place) == (0, "", "bittern: version 5, 2 subscriptions: nothing is wrong\n")


@pytest.mark.parametrize("file", ["-", "out.jsonl"])
def test_an_export_of_damaged_metadata_names_the_catalog(run, tmp_path, monkeypatch, file):
    monkeypatch.chdir(tmp_path)
    place = str(tmp_path / "shop.db")
    run("add", place, "s1", "price < 10", "--metadata", "{}")
    with bittern.Catalog(place) as catalog, catalog._database.writing() as connection:
        connection.exec_driver_sql("UPDATE bittern_subscriptions SET metadata = '{'")
    for command in (["export", place, file], ["show", place, "--json"]):
        code, out, err = run(*command)
        assert (code, out) == (1, "")
        assert err.startswith(f"bittern: catalog {place}: the subscription 's1' has metadata that ")
        assert "remove it, add it again, and forget earlier versions" in err


def test_quantifiers_can_be_refused(run, place):
    text = "EXISTS d (d.price > price)"
    run("add", place, "a", text)
    assert run("quantifiers", place) == (0, "allow\n", "")
    assert run("quantifiers", place, "refuse")[2] == "bittern: EXISTS and FORALL are refused\n"
    assert run("quantifiers", place) == (0, "refuse\n", "")
    code, _, err = run("add", place, "b", text)
    assert code == 1
    assert "'b', position 0: this catalog refuses EXISTS and FORALL" in err
    assert run("quantifiers", place, "maybe")[0] == 2
    assert run("quantifiers", place, "allow")[2] == "bittern: EXISTS and FORALL are allowed\n"
    assert run("add", place, "b", text)[0] == 0
