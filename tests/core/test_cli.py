"""The command line: files in, matches out, and one sentence for everything that is wrong."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
from bittern.engine.snapshot.folder import write_snapshot
from bittern.errors import BitternError, OptionError
from bittern.service import cli, csv_events, tables
from bittern.service.cli import main
from bittern.service.parser import parser
from bittern.service.progress import Progress
from steady import PATIENCE, wait_until
from table_files import save

SUBSCRIPTIONS = [
    {"id": "cheap", "expression": "price < 10", "weight": 1.0},
    {"id": "phone", "expression": "model = 'iphone5s' AND price <= 580", "weight": 5.0},
    {"id": 'od"d\n', "expression": "model LIKE 'i%'", "weight": 3.0},
]
EVENTS = [
    {"model": "iphone5s", "price": 550},
    {"model": "nokia", "price": 5},
    {"model": "iphone5s", "price": None},
    {"model": "iphone5s", "price": 7},
]
EXPECTED = [["phone", 'od"d\n'], ["cheap"], ['od"d\n'], ["cheap", "phone", 'od"d\n']]


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def run(bittern_command):
    return bittern_command


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    source = str(save(folder / "s.jsonl", SUBSCRIPTIONS))
    code = main(["build", source, "--output", str(folder / "x"), "--quiet"])
    assert code == 0
    return folder / "x"


# The command itself


def test_starting_imports_nothing_heavy():
    code = (
        "import sys, bittern.service.cli\n"
        "print([m for m in ('numpy', 'pyarrow', 'numba', 'pandas', 'pyspark') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "command", [[], ["build"], ["match"], ["explain"], ["inspect"], ["warm-up"]]
)
def test_help_has_an_example(run, command):
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert "example:\n  " in out


def test_the_release_is_printed(run):
    code, out, _ = run("--version")
    assert (code, out.split()[0]) == (0, "bittern")
    told = dict(line.split(" ", 1) for line in out.splitlines())
    assert told["bittern"] == bittern.__version__
    assert told["pyarrow"] == pa.__version__


def test_help_names_no_file_that_an_installation_lacks():
    commands = [([], parser(dict.fromkeys(cli._COMMANDS)))]
    seen = 0
    while commands:
        words, command = commands.pop()
        text = command.format_help()
        assert not re.search(r"\bdocs/|\.md\b", text), words
        seen += 1
        for action in command._actions:
            if isinstance(action, argparse._SubParsersAction):
                commands += [([*words, name], each) for name, each in action.choices.items()]
    assert seen > len(cli._COMMANDS)


def test_a_shell_completes_commands_and_files(run, tmp_path):
    pytest.importorskip("shtab")
    code, script, _ = run("completion", "bash")
    assert code == 0
    (tmp_path / "script").write_text(script)
    (tmp_path / "shop.bittern").write_text("")
    ask = """
        source ./script
        function=$(complete -p bittern | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        for words in "bittern insp" "bittern match sho" "bittern match x y --out"; do
            COMP_WORDS=($words) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
            $function
            echo "${COMPREPLY[*]}"
        done
    """
    done = subprocess.run(
        ["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["inspect", "shop.bittern", "--output --output-format"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["build", "subs.csv"],
        ["build", "subs.xlsx", "--output", "x"],
        ["match", "x", "events.doc"],
        ["match", "x", "-", "--limit", "0"],
        ["match", "x", "-", "--limit", "1.5"],
        ["match", "x", "-", "--limit", "99999999999999999999"],
        ["match", "x", "-", "--limit", "9" * 5000],
        ["match", "x", "-", "--batch-size", "99999999999999999999"],
        ["build", "-", "--output", "x", "--id-column", "expression"],
        ["match", "x", "-", "--batch-size", "-3"],
        ["match", "x", "-", "--output-format", "parquet"],
    ],
)
def test_a_wrong_command_exits_with_2(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "bittern" in err


def test_missing_and_unreadable_files_are_said_in_a_sentence(run, shop, tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not really")
    (tmp_path / "bad.jsonl").write_bytes(b'{"id": 1, "expr')
    (tmp_path / "latin.csv").write_bytes(b"id,expression\n1,a = '\xe9'\n")
    (tmp_path / "folder.csv").mkdir()
    target = tmp_path / "x"
    for arguments in (
        ["build", tmp_path / "none.csv", "--output", target],
        ["build", tmp_path / "bad.parquet", "--output", target],
        ["build", tmp_path / "bad.jsonl", "--output", target],
        ["build", tmp_path / "latin.csv", "--output", target],
        ["build", tmp_path / "folder.csv", "--output", target],
        ["build", save(tmp_path / "s.csv", SUBSCRIPTIONS), "--output", tmp_path / "no" / "x"],
        ["match", tmp_path / "none", "-"],
        ["match", tmp_path, "-"],
        ["match", shop, tmp_path / "none.jsonl"],
        ["match", shop, tmp_path / "bad.parquet"],
        ["inspect", tmp_path / "none"],
        ["inspect", tmp_path / "none", "--check"],
        ["explain", tmp_path / "none", "s1", "{}"],
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (1, ""), arguments
        assert err.startswith("bittern: "), arguments
        assert err.count("\n") == 1, err
    assert not target.exists()


# build


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_snapshot_is_built_from_every_format(run, tmp_path, suffix):
    source = save(tmp_path / f"s{suffix}", SUBSCRIPTIONS)
    code, out, err = run("build", source, "--output", tmp_path / "x")
    assert code == 0, err
    assert [line.split()[0] for line in out.splitlines()] == [
        "subscriptions",
        "classes",
        "seconds",
        "bytes",
        "snapshot",
    ]
    code, out, _ = run("match", tmp_path / "x", stdin=b'{"model": "iphone5s", "price": 7}')
    assert sorted(lines(out)[0]["subscriptions"]) == sorted(EXPECTED[3])


def test_columns_can_have_other_names_and_come_from_standard_input(run, tmp_path):
    text = b"rank,key,rule,rest\n1,7,price < 10,x\n9,8,price < 20,y\n"
    code, _, err = run(
        *("build", "-", "--format", "csv", "--output", tmp_path / "x", "--quiet"),
        *("--id-column", "key", "--expression-column", "rule", "--weight-column", "rank"),
        stdin=text,
    )
    assert (code, err) == (0, "")
    _, out, _ = run("match", tmp_path / "x", "--limit", "1", stdin=b'{"price": 5}')
    assert lines(out) == [{"event": 0, "subscriptions": [8]}]


@pytest.mark.parametrize("missing", ["--id-column", "--expression-column", "--weight-column"])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_missing_column_is_named(run, tmp_path, missing, suffix):
    source = save(tmp_path / f"s{suffix}", SUBSCRIPTIONS)
    code, _, err = run("build", source, "--output", tmp_path / "x", missing, "absent")
    assert code == 1
    assert "no column 'absent'" in err


@pytest.mark.parametrize("column", ["id", "expression", "weight"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_column_that_is_there_twice_is_named(run, tmp_path, suffix, column):
    rows = pa.Table.from_pylist(SUBSCRIPTIONS)
    twice = rows.append_column(column, rows[column])
    source = tmp_path / f"s{suffix}"
    if suffix == ".csv":
        pa.csv.write_csv(twice, source)
    else:
        pa.parquet.write_table(twice, source)
    code, out, err = run("build", source, "--output", tmp_path / "x")
    assert (code, out) == (1, "")
    assert err == f"bittern: {source} has several columns named {column!r}\n"


def test_bad_subscriptions_fail_the_build_and_are_listed(run, tmp_path):
    rows = [{"id": f"bad{n}", "expression": "price <"} for n in range(25)]
    source = save(tmp_path / "s.jsonl", [*SUBSCRIPTIONS[:1], *rows])
    code, out, err = run("build", source, "--output", tmp_path / "x", "--quiet")
    assert (code, out) == (1, "")
    assert err.startswith("bittern: 25 subscriptions not valid")
    assert err.count("position") >= 20
    assert "'bad19'" in err
    assert "'bad20'" not in err
    assert "... and 5 more" in err
    assert not (tmp_path / "x").exists()


def test_bad_subscriptions_can_be_skipped(run, tmp_path):
    source = save(tmp_path / "s.jsonl", [*SUBSCRIPTIONS, {"id": "bad", "expression": "price <"}])
    code, out, err = run("build", source, "--output", tmp_path / "x", "--on-error", "skip")
    assert code == 0
    assert "1 subscription not valid and skipped" in err
    assert "'bad'" in err
    assert out.splitlines()[0].split() == ["subscriptions", "3"]


def test_subscriptions_that_are_all_bad_make_no_index(run, tmp_path):
    source = save(
        tmp_path / "s.csv", [{"id": "a", "expression": "x <"}, {"id": "b", "expression": ""}]
    )
    output = tmp_path / "x"
    code, out, err = run("build", source, "--output", output, "--on-error", "skip", "--quiet")
    assert (code, out) == (1, "")
    assert err.startswith("bittern: no subscription is valid; nothing was written\n")
    assert "'a', position 3: " in err
    assert not output.exists()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_sample_of_events_may_guide_the_build(run, shop, tmp_path, suffix):
    source = save(tmp_path / "s.jsonl", SUBSCRIPTIONS)
    sample = save(tmp_path / f"e{suffix}", EVENTS)
    code, _, err = run("build", source, "--output", tmp_path / "x", "--sample", sample, "--quiet")
    assert (code, err) == (0, "")
    events = save(tmp_path / "events.jsonl", EVENTS)
    assert run("match", tmp_path / "x", events)[1] == run("match", shop, events)[1]


@pytest.mark.parametrize("text", [b"", b"\n \n"])
def test_no_subscriptions_make_an_index_that_matches_nothing(run, tmp_path, text):
    code, _, err = run("build", "-", "--output", tmp_path / "x", "--quiet", stdin=text)
    assert (code, err) == (0, "")
    assert lines(run("match", tmp_path / "x", stdin=b'{"a": 1}')[1])[0]["subscriptions"] == []


def test_something_else_at_the_output_is_refused_before_the_work(run, tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "thesis.txt").write_text("mine")
    code, _, err = run("build", tmp_path / "none.csv", "--output", tmp_path / "x")
    assert code == 1
    assert "not a snapshot" in err


# match


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("batch", [1, 3, 10_000])
def test_events_of_every_format_match_alike(run, shop, tmp_path, suffix, batch):
    events = save(tmp_path / f"e{suffix}", EVENTS)
    code, out, err = run("match", shop, events, "--batch-size", batch)
    assert code == 0
    found = lines(out)
    assert [line["event"] for line in found] == [0, 1, 2, 3]
    assert [sorted(line["subscriptions"]) for line in found] == [sorted(ids) for ids in EXPECTED]
    assert err == "bittern: 4 events, 7 matches\n"


@pytest.mark.parametrize("name", ["m.jsonl", "m.csv", "m.parquet"])
@pytest.mark.parametrize("flat", [True, False])
def test_matches_of_every_format_say_the_same(run, shop, tmp_path, name, flat):
    events = save(tmp_path / "e.jsonl", EVENTS)
    options = ["--flat"] if flat else []
    output = tmp_path / name
    code, out, _ = run("match", shop, events, "--output", output, "--batch-size", 3, *options)
    assert (code, out) == (0, "")
    if output.suffix == ".parquet":
        rows = pa.parquet.read_table(output).to_pylist()
    elif output.suffix == ".csv":
        parse = pa.csv.ParseOptions(newlines_in_values=True)
        rows = pa.csv.read_csv(output, parse_options=parse).to_pylist()
    else:
        rows = lines(output.read_text())
    pairs = {(event, one) for event, ids in enumerate(EXPECTED) for one in ids}
    if flat or output.suffix == ".csv":
        assert {(row["event"], row["subscription"]) for row in rows} == pairs
        assert len(rows) == len(pairs)
    else:
        assert len(rows) == len(EVENTS)
        assert {(row["event"], one) for row in rows for one in row["subscriptions"]} == pairs


def test_only_the_heaviest_matches_are_kept_with_a_limit(run, shop):
    _, out, _ = run("match", shop, "--limit", 2, stdin=b'{"model": "iphone5s", "price": 7}')
    assert lines(out) == [{"event": 0, "subscriptions": ["phone", 'od"d\n']}]


def test_bad_events_are_reported_and_the_others_matched(run, shop):
    good = b'{"price": 5}\n'
    text = good + b"{broken\n" + good + b'\n{"price": "\xff"}\n' + b"nonsense\n" * 11 + good
    code, out, err = run("match", shop, "--batch-size", 4, stdin=text)
    assert code == 0
    found = lines(out)
    assert [line["event"] for line in found if line["subscriptions"]] == [0, 2, 15]
    assert "bittern: row 1 rejected: " in err
    assert err.count("rejected: ") == 10
    assert "... and 3 more rejected" in err
    assert err.endswith("16 events, 3 matches, 13 rejected\n")


BAD_ROWS = b"""model,price

"no
kia",5
nokia
nokia,6
\xff
nokia\xff,7
"no""kia",8
,999999999999999999999999
nokia,9,9
"""


@pytest.mark.parametrize("batch", [1, 2, 10_000])
def test_bad_rows_of_a_csv_file_are_reported_and_keep_their_numbers(run, shop, tmp_path, batch):
    (tmp_path / "e.csv").write_bytes(BAD_ROWS)
    code, out, err = run("match", shop, tmp_path / "e.csv", "--batch-size", batch)
    assert code == 0
    found = lines(out)
    assert [line["event"] for line in found] == list(range(8))
    assert [line["event"] for line in found if line["subscriptions"]] == [0, 2, 5]
    assert sorted(line for line in err.splitlines() if "rejected:" in line) == [
        "bittern: row 1 rejected: 1 field, not 2",
        "bittern: row 3 rejected: 1 field, not 2",
        "bittern: row 4 rejected: it is not UTF-8",
        "bittern: row 7 rejected: 3 fields, not 2",
    ]
    assert err.endswith("8 events, 3 matches, 4 rejected\n")
    run("match", shop, tmp_path / "e.csv", "--batch-size", batch, "--output", tmp_path / "m.csv")
    assert pa.csv.read_csv(tmp_path / "m.csv")["event"].to_pylist() == [0, 2, 5]


@pytest.mark.parametrize(
    ("form", "text"), [("csv", b"a,price\n1\n2\n"), ("jsonl", b"{broken\n\nnonsense\n")]
)
def test_events_that_are_all_rejected_match_nothing_and_fail(run, shop, form, text):
    code, out, err = run("match", shop, "--format", form, stdin=text)
    assert code == 1
    assert [line["subscriptions"] for line in lines(out)] == [[], []]
    *_, counted, said = err.splitlines()
    assert counted == "bittern: 2 events, 0 matches, 2 rejected"
    assert said == "bittern: all events were rejected: none could be read"


def test_rows_keep_their_numbers_from_block_to_block(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_events, "_BLOCK", 64)
    monkeypatch.setattr(csv_events, "_CHUNK", 7)
    rows = [b"%d\xff,\xc3\xa9\n" % n if n % 5 == 1 else b"%d,\xc3\xa9\n" % n for n in range(99)]
    rows[::7] = [b"short\xff\n"] * len(rows[::7])
    (tmp_path / "e.csv").write_bytes(b"n,e\n" + b"x,y\n" + b"".join(rows))
    rejected, found, done = [], [], 0
    for batch in tables.read_events(
        str(tmp_path / "e.csv"), "csv", 3, lambda *r: rejected.append(r)
    ):
        assert len(batch.events) <= 3
        found += zip(
            (batch.numbers + done).tolist(), *batch.events.to_pydict().values(), strict=True
        )
        done += batch.n_rows
    bad = {n for n in range(99) if n % 7 == 0 or n % 5 == 1}
    assert found == [(0, "x", "y"), *((n + 1, str(n), "é") for n in range(99) if n not in bad)]
    assert sorted(int(place.removeprefix("row ")) - 1 for place, _ in rejected) == sorted(bad)
    assert done == 100


def test_a_header_that_is_not_utf8_is_refused(run, shop):
    code, out, err = run("match", shop, "--format", "csv", stdin=b"pr\xffce\n1\n")
    assert (code, out, err) == (1, "", "bittern: standard input: the header is not UTF-8\n")


@pytest.mark.parametrize(
    ("form", "text"),
    [("jsonl", '{"price": 5}\n{"price": 50}\n'), ("csv", "price\n5\n50\n")],
)
def test_a_byte_order_mark_is_not_part_of_the_first_event(run, shop, form, text):
    code, out, err = run("match", shop, "--format", form, stdin=text.encode("utf-8-sig"))
    assert (code, err) == (0, "bittern: 2 events, 1 match\n")
    assert lines(out)[0] == {"event": 0, "subscriptions": ["cheap"]}


@pytest.mark.parametrize(
    ("form", "text"),
    [("jsonl", '{"id": 1, "expression": "a = 1"}\n'), ("csv", "id,expression\n1,a = 1\n")],
)
def test_a_byte_order_mark_is_not_part_of_the_first_subscription(tmp_path, form, text):
    (tmp_path / "s").write_text(text, "utf-8-sig")
    table = tables.read_subscriptions(str(tmp_path / "s"), form, "id", "expression", None)
    assert table.to_pylist() == [{"id": 1, "expression": "a = 1"}]


def test_no_events_give_no_matches_in_every_format(run, shop, tmp_path):
    for name in ("m.jsonl", "m.csv", "m.parquet"):
        code, _, err = run("match", shop, "--output", tmp_path / name, stdin=b"")
        assert (code, err) == (0, "bittern: 0 events, 0 matches\n")
    assert (tmp_path / "m.jsonl").read_bytes() == b""
    assert pa.parquet.read_table(tmp_path / "m.parquet").num_rows == 0


def test_an_output_file_appears_only_when_it_is_complete(run, shop, tmp_path):
    output = tmp_path / "m.jsonl"
    output.write_text("earlier")
    code, _, _ = run("match", shop, tmp_path / "none.jsonl", "--output", output)
    assert code == 1
    assert output.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [output]


def test_an_output_that_cannot_be_written_is_named_as_it_was_given(run, shop, tmp_path):
    output = tmp_path / "none" / "m.csv"
    code, _, err = run("match", shop, "--output", output, stdin=b'{"price": 5}')
    assert (code, err) == (1, f"bittern: {output}: No such file or directory\n")


def command(*arguments):
    return [sys.executable, "-m", "bittern.service.cli", *map(str, arguments)]


def test_a_closed_pipe_ends_quietly(shop, tmp_path):
    events = tmp_path / "e.jsonl"
    events.write_text('{"price": 5}\n' * 50_000)
    running = subprocess.Popen(
        command("match", shop, events, "--batch-size", 100),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout.readline()
    running.stdout.close()
    err = running.stderr.read().decode()
    running.stderr.close()
    assert running.wait() == 0
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "closed", "code", "said"),
    [
        (["match", "SHOP"], "<&-", 1, "bittern: standard input is closed\n"),
        (["match", "SHOP", "--format", "csv"], "<&-", 1, "bittern: standard input is closed\n"),
        (["build", "-", "--output", "SHOP"], "<&-", 1, "bittern: standard input is closed\n"),
        (["explain", "SHOP", "cheap"], "<&-", 1, "bittern: standard input is closed\n"),
        (["match", "SHOP"], ">&-", 1, "bittern: standard output is closed\n"),
        (["explain", "SHOP", "cheap", "{}"], ">&-", 1, "bittern: standard output is closed\n"),
        (["inspect", "SHOP"], ">&-", 1, "bittern: standard output is closed\n"),
        (["match", "SHOP"], "2>&-", 0, ""),
        (["explain", "SHOP", "nobody", "{}"], "2>&-", 1, ""),
    ],
)
def test_a_closed_stream_is_said_in_a_sentence(shop, arguments, closed, code, said):
    words = [str(shop) if word == "SHOP" else word for word in arguments]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *command(*words)],
        input='{"price": 50}\n',
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, said)
    assert done.stdout == ('{"event": 0, "subscriptions": []}\n' if code == 0 else "")


def test_an_interrupt_ends_quietly_with_130(shop):
    running = subprocess.Popen(
        command("match", shop, "--batch-size", 1),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    running.stdin.write(b'{"price": 5}\n' * 2000)
    running.stdin.flush()
    assert running.stdout.readline()  # it is in the middle of its work now
    os.kill(running.pid, signal.SIGINT)
    _, err = running.communicate()
    assert running.returncode == 130
    assert err == b""


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_sigterm_leaves_nothing_half_written_and_ends_with_143(shop, tmp_path, form):
    output = tmp_path / f"m.{form}"
    output.write_text("earlier")
    running = subprocess.Popen(
        command("match", shop, "--output", output),
        stdin=subprocess.PIPE,  # stays open: there may be more events
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )

    def look():
        assert running.poll() is None

    wait_until(lambda: any(tmp_path.glob(".*.part")), look)
    os.kill(running.pid, signal.SIGTERM)
    try:
        running.wait(PATIENCE)
    finally:
        out, err = running.communicate()
    assert (running.returncode, out, err) == (143, b"", b"")
    assert list(tmp_path.iterdir()) == [output]
    assert output.read_text() == "earlier"


def test_sigterm_is_the_callers_own_again_afterwards(run, shop):
    before = signal.getsignal(signal.SIGTERM)
    run("explain", shop, "cheap", "{}")
    assert signal.getsignal(signal.SIGTERM) == before


def test_sigterm_twice_within_a_moment_is_one(monkeypatch):
    caught = []

    def work(_options):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        except KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGTERM)  # as timeout(1) does; this must not be cut short
            caught.append(signal.getsignal(signal.SIGTERM))
            raise

    assert cli.run(argparse.Namespace(run=work)) == 143
    assert len(caught) == 1


# explain and inspect


def test_explain_says_why_and_why_not(run, shop):
    code, why, _ = run("explain", shop, "phone", '{"model": "iphone5s", "price": 550}')
    assert code == 0
    code, why_not, _ = run("explain", shop, "phone", stdin=b'{"model": "iphone5s", "price": 600}')
    assert code == 0
    assert "price" in why
    assert why != why_not


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("nobody", "{}"),
        ("phone", "{broken"),
        ("phone", "[1]"),
        ("phone", "[" * 100_000),
        ("phone", '{"price": NaN}'),
    ],
)
def test_explain_refuses_unknown_ids_and_broken_events(run, shop, name, event):
    code, out, err = run("explain", shop, name, event)
    assert (code, out) == (1, "")
    assert err.startswith("bittern: ")


def test_explain_reads_utf8_with_or_without_a_mark(run, shop):
    text = '{"model": "é", "price": 5}'
    _, plain, _ = run("explain", shop, "phone", stdin=text.encode())
    assert "'é'" in plain
    assert run("explain", shop, "phone", stdin=text.encode("utf-8-sig"))[1] == plain
    code, out, err = run("explain", shop, "phone", stdin=text.encode("latin-1"))
    assert (code, out) == (1, "")
    assert err.startswith("bittern: the event is not UTF-8")


def test_integer_ids_are_found_as_integers(run, tmp_path):
    source = save(tmp_path / "s.parquet", [{"id": 7, "expression": "price < 10"}])
    run("build", source, "--output", tmp_path / "x", "--quiet")
    assert run("explain", tmp_path / "x", "7", '{"price": 5}')[0] == 0
    code, _, err = run("explain", tmp_path / "x", "seven", '{"price": 5}')
    assert (code, err) == (1, "bittern: 'seven' is not an id of this index: its ids are integers\n")


def test_inspect_shows_statistics(run, shop):
    code, out, err = run("inspect", shop, "--check")
    assert (code, err) == (0, "")
    assert "classes" in out
    assert "bytes per array" in out
    assert "checked" in out
    code, out, _ = run("inspect", shop, "--json")
    report = json.loads(out)
    assert code == 0
    assert report["statistics"]["classes"] == 3
    assert sum(report["arrays"].values()) == report["bytes"]
    shown = run("inspect", shop)[1].splitlines()
    whole = run("inspect", shop, "--all")[1].splitlines()
    assert len(shown) <= 60  # a screen
    left = len(report["arrays"]) - 8
    assert shown[-1].strip().startswith(f"and {left} more of ")
    assert len(whole) == len(shown) - 1 + left


def test_damage_is_found_before_use(run, tmp_path):
    source = save(tmp_path / "s.jsonl", SUBSCRIPTIONS)
    run("build", source, "--output", tmp_path / "x", "--quiet")
    victim = max((tmp_path / "x").glob("*.npy"), key=lambda file: file.stat().st_size)
    raw = bytearray(victim.read_bytes())
    raw[-1] ^= 1
    victim.write_bytes(raw)
    for arguments in (
        ["inspect", tmp_path / "x", "--check"],
        ["match", tmp_path / "x"],
        ["explain", tmp_path / "x", "phone", "{}"],
    ):
        code, out, err = run(*arguments, stdin=b'{"price": 5}')
        assert (code, out) == (1, ""), arguments
        assert victim.stem in err
        assert "digest" in err


def test_a_large_snapshot_is_used_without_being_read_first(run, shop, monkeypatch):
    verified = []

    def opened(path, *, verify=False, real=bittern.Index.open):
        verified.append(verify)
        return real(path, verify=verify)

    monkeypatch.setattr(bittern.Index, "open", opened)
    assert run("match", shop, stdin=b'{"price": 5}')[0] == 0
    size = sum(file.stat().st_size for file in shop.iterdir())
    monkeypatch.setattr(cli, "_VERIFIED_UP_TO", size)
    assert run("match", shop, stdin=b'{"price": 5}')[0] == 0
    assert verified == [True, False]


def test_inspect_finds_a_structure_that_is_not_sound(run, shop, monkeypatch):
    def broken(_):
        raise AssertionError("a posting points to no class")

    monkeypatch.setattr(bittern.Index, "check", broken)
    code, out, err = run("inspect", shop, "--check")
    assert (code, out) == (1, "")
    assert "not sound: a posting points to no class" in err


def test_a_snapshot_that_is_no_index_is_refused(run, tmp_path):
    write_snapshot(tmp_path / "x", {}, {})
    for arguments in (["inspect", tmp_path / "x"], ["match", tmp_path / "x"]):
        code, _, err = run(*arguments)
        assert code == 1
        assert err.startswith("bittern: ")


# The tables


@given(
    st.lists(st.lists(st.text(max_size=4)), max_size=5) | st.lists(st.lists(st.integers(0, 99))),
    st.integers(0, 3),
)
def test_json_lines_are_what_json_would_write(ids, skipped):
    id_type = pa.int64() if any(isinstance(i, int) for row in ids for i in row) else pa.string()
    table = pa.table(
        {
            "event": pa.array(range(len(ids)), pa.int64()),
            "subscriptions": pa.array(ids, pa.list_(id_type)),
        }
    ).slice(skipped)
    text = tables.json_lines(table.column(0), table.column(1), flat=False).tobytes().decode()
    found = [json.loads(line) for line in text.split("\n")[:-1]]
    assert found == table.to_pylist()
    pairs = [(e, i) for e, row in enumerate(ids) for i in row]
    flat = pa.table(
        {
            "event": pa.array([e for e, _ in pairs], pa.int64()),
            "subscription": pa.array([i for _, i in pairs], id_type),
        }
    ).slice(skipped)
    text = tables.json_lines(flat.column(0), flat.column(1), flat=True).tobytes().decode()
    assert [json.loads(line) for line in text.split("\n")[:-1]] == flat.to_pylist()


@pytest.mark.parametrize(
    ("ids", "expected"),
    [(["1", "-20"], [1, -20]), (["007", "8"], ["007", "8"]), (["1", "x"], ["1", "x"])],
)
def test_ids_in_csv_are_integers_only_when_nothing_is_lost(tmp_path, ids, expected):
    path = tmp_path / "s.csv"
    path.write_text("id,expression\n" + "".join(f"{one},a = 1\n" for one in ids))
    table = tables.read_subscriptions(str(path), "csv", "id", "expression", None)
    assert table.to_pydict() == {"id": expected, "expression": ["a = 1"] * 2}


def test_ids_of_two_kinds_are_refused(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"id": 1, "expression": "a = 1"}\n{"id": "b", "expression": "a = 1"}\n')
    with pytest.raises(BitternError, match="only integers or only strings"):
        tables.read_subscriptions(str(path), "jsonl", "id", "expression", None)


def test_an_empty_field_is_missing_and_a_quoted_one_is_empty(tmp_path):
    (tmp_path / "e.csv").write_text('a,b\n,x\n1,""\n2,NA\n')
    (batch,) = tables.read_events(str(tmp_path / "e.csv"), "csv", 10, lambda *_: None)
    assert batch.events.to_pydict() == {"a": [None, 1, 2], "b": ["x", "", "NA"]}


def test_the_format_comes_from_the_option_then_from_the_extension():
    assert tables.format_of("x.CSV", None) == "csv"
    assert tables.format_of("x.csv", "parquet") == "parquet"
    assert tables.format_of("-", None) == "jsonl"
    with pytest.raises(OptionError, match="--output-format"):
        tables.format_of("x.txt", None, "--output-format")


# Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_bar_that_is_wiped():
    now = [0.0]
    stream = Terminal()
    progress = Progress(stream, lambda: now[0])
    progress("parsing", 0, 100)
    progress("parsing", 10, 100)  # too soon to be drawn
    now[0] += 1
    progress("parsing", 50, 100)
    progress("parsing", 100, 100)
    progress.close()
    pictures = stream.getvalue().split("\r")
    assert [picture.count("#") for picture in pictures] == [0, 0, 12, 24, 0, 0]
    assert pictures[-2].isspace()
    assert "\n" not in stream.getvalue()


def test_elsewhere_there_are_few_plain_lines():
    now = [0.0]
    stream = io.StringIO()
    progress = Progress(stream, lambda: now[0])
    for done in range(1001):
        now[0] += 1 / 64
        progress("parsing", done, 1000)
    progress.close()
    assert stream.getvalue().splitlines() == [
        "parsing: 319 of 1,000",
        "parsing: 639 of 1,000",
        "parsing: 959 of 1,000",
        "parsing: 1,000 of 1,000",
    ]
